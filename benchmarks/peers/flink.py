"""Compiles and runs Java peers against Flink's jars, which come from PyPI's apache-flink-libraries."""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

VERSION = "2.3.0"
PEERS = Path(__file__).parent
CACHE = PEERS.parent / ".cache"


class FlinkUnavailable(Exception):
    """Error for a missing JDK, or jars that cannot be fetched; the text says which."""


def jdk_tool(name: str) -> str:
    """Path of `java` or `javac`: from JAVA_HOME, else from the PATH."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(name, path=f"{home}/bin") if home else None
    found = found or shutil.which(name)
    if found is None:
        raise FlinkUnavailable(
            f"no {name} in JAVA_HOME or on the PATH; Flink's side needs a JDK of 17 or later"
        )
    return found


def home() -> Path:
    """Directory of a Flink: $FLINK_HOME, or `home` under $FLINK_LIB or benchmarks/.cache, downloaded if missing."""
    named = os.environ.get("FLINK_HOME")
    folder = Path(named) if named else Path(os.environ.get("FLINK_LIB", CACHE)) / "home"
    if not (folder / "lib" / f"flink-dist-{VERSION}.jar").exists():
        if named:
            raise FlinkUnavailable(
                f"FLINK_HOME={named} is not that of Flink {VERSION}; unset it to download one"
            )
        _download(folder / "lib")
    return folder


def set_home() -> None:
    """Let flinkcore plan SQL with the same Flink, unless $FLINK_HOME names one."""
    if not os.environ.get("FLINK_HOME"):
        os.environ["FLINK_HOME"] = str(home())


def class_path() -> str:
    """Flink's jars."""
    return os.pathsep.join(str(jar) for jar in sorted((home() / "lib").glob("*.jar")))


def _download(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        command = [
            *(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"),
            *("-d", temporary, f"apache-flink-libraries=={VERSION}"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        archives = list(Path(temporary).glob("*.tar.gz"))
        if done.returncode or not archives:
            raise FlinkUnavailable(
                f"Flink's jars are not in {folder}, pip cannot download them: {done.stderr[-300:].strip()}"
            )
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archives[0]) as archive:
            for member in archive:
                source = archive.extractfile(member) if member.isfile() else None
                if source and Path(member.name).match("deps/lib/*.jar"):
                    with (folder / Path(member.name).name).open("wb") as target:
                        shutil.copyfileobj(source, target)


def run_java(peer: str, *arguments: str, options: tuple[str, ...] = ()) -> str:
    """Compile PEER.java where it changed, run it with `arguments` and JVM `options`; its standard output."""
    java, javac, jars = jdk_tool("java"), jdk_tool("javac"), class_path()
    source, classes = PEERS / f"{peer}.java", CACHE / "classes" / peer
    compiled = classes / f"{peer}.class"
    if not compiled.exists() or compiled.stat().st_mtime < source.stat().st_mtime:
        classes.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [javac, "-nowarn", "-Xlint:none", "-cp", jars, "-d", str(classes), str(source)], check=True
        )
    done = subprocess.run(
        [java, *options, "-cp", os.pathsep.join((str(classes), jars)), peer, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{peer} failed: {done.stderr[-2000:]}")
    return done.stdout
