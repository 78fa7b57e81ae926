"""A process that plans SQL: Java with Flink's planner, which ends after a while without work."""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from flinkcore._internal.java.installed_java import in_words, installed_java, major_version, packaged_java
from flinkcore.errors import ConfigurationError

FLINK_HOME: Final = "FLINK_HOME"
PACKAGE: Final = "apache-flink-libraries"
SOURCE: Final = Path(__file__).with_name("Planner.java")
MEMORY: Final = "512m"
"""Largest heap of the process; Nexmark's queries need less than 200 MB."""
IDLE_SECONDS: Final = 60.0
_FIRST_JAVA: Final = 17
_DIST: Final = re.compile(r"flink-dist-(\d+\.\d+\.\d+.*)\.jar")
_OPTIONS: Final = (
    *(
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        f"-Xmx{MEMORY}",
        "-Duser.timezone=UTC",
        "-Duser.language=en",
    ),
    *("--add-opens=java.base/java.util=ALL-UNNAMED", "--add-opens=java.base/java.lang=ALL-UNNAMED"),
)
_COMPILER: Final = "org.codehaus.janino.SimpleCompiler"


@dataclass(frozen=True)
class FlinkLibraries:
    """Jars of a Flink.

    Attributes
    ----------
    version : str
        Such as ``2.3.0``.
    jars : tuple of Path
    """

    version: str
    jars: tuple[Path, ...]

    @classmethod
    def found(cls) -> FlinkLibraries | None:
        """Return the libraries of ``FLINK_HOME``, or else of the package apache-flink-libraries, or None.

        Raises
        ------
        ConfigurationError
            If ``FLINK_HOME`` is not the directory of a Flink.
        """
        home = os.environ.get(FLINK_HOME)
        if home:
            libraries = cls._in(Path(home, "lib"))
            if libraries is None:
                raise ConfigurationError(
                    f"{FLINK_HOME}={home} has no lib/flink-dist-*.jar. Name the directory of a Flink 2, or unset it to "
                    f"take that of pip install '{PACKAGE}'"
                )
            return libraries
        try:
            return cls._in(Path(str(metadata.distribution(PACKAGE).locate_file("pyflink/lib"))))
        except metadata.PackageNotFoundError:
            return None

    @classmethod
    def _in(cls, directory: Path) -> FlinkLibraries | None:
        jars = tuple(sorted(directory.glob("*.jar")))
        versions = [match.group(1) for jar in jars if (match := _DIST.fullmatch(jar.name))]
        return cls(versions[0], jars) if versions else None


def required_libraries() -> FlinkLibraries:
    """Return the libraries of Flink; raise ConfigurationError if they are not installed."""
    libraries = FlinkLibraries.found()
    if libraries is None:
        raise ConfigurationError(
            "SQL text is planned by Flink, which is not installed: pip install 'flinkcore[sql]' (330 MB), or set "
            f"{FLINK_HOME} to the directory of a Flink 2. Compiled plans (COMPILE PLAN) run without it"
        )
    return libraries


def required_java() -> Path:
    """Return a Java of 17 or later; raise ConfigurationError if it is not installed."""
    installed = installed_java()
    version = None if installed is None else major_version(installed)
    if installed is not None and version is not None and version >= _FIRST_JAVA:
        return installed
    packaged = packaged_java()
    if packaged is None or major_version(packaged) is None:
        raise ConfigurationError(
            f"Flink's planner needs Java {_FIRST_JAVA} or later, and there is {in_words(version)}: "
            "pip install 'flinkcore[jre]', or install a JDK 17 and set JAVA_HOME"
        )
    return packaged


@dataclass(eq=False)
class FlinkProcess:
    """The process; `answer` starts it where it does not run.

    Attributes
    ----------
    idle_seconds : float
        Seconds after the last answer until it ends.
    """

    idle_seconds: float = IDLE_SECONDS
    _process: subprocess.Popen[str] | None = None
    _java: Path | None = None
    _directory: str | None = None
    _version: str | None = None
    _timer: threading.Timer | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(
        self,
        libraries: FlinkLibraries,
        statements: Sequence[Any],
        settings: Mapping[str, str],
        functions: Sequence[Mapping[str, Any]] = (),
    ) -> dict[str, Any]:
        """Return what the planner answers to the statements of a script, with functions of these names and types.

        Raises
        ------
        ConfigurationError
            If Java is missing, or the process ends without an answer.
        """
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            if self._version != libraries.version:
                self._end()
            if self._process is None or self._process.poll() is not None:
                self._start(libraries)
            try:
                found = self._asked(
                    {
                        "statements": list(statements),
                        "settings": dict(settings),
                        "functions": list(functions),
                    }
                )
            except BaseException:
                self._end()  # its answer to this request must not be that to the next one
                raise
            self._timer = threading.Timer(self.idle_seconds, self.close)
            self._timer.daemon = True
            self._timer.start()
            return found

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _start(self, libraries: FlinkLibraries) -> None:
        self._java = java = required_java()
        self._end()
        self._directory = directory = tempfile.mkdtemp(prefix="flinkcore-planner-")
        Path(directory, "log4j2.properties").write_text("rootLogger.level = OFF\n")
        self._version = libraries.version
        with open(Path(directory, "errors"), "wb") as errors:
            self._process = subprocess.Popen(
                [
                    *(str(java), *_OPTIONS, f"-Djava.io.tmpdir={directory}"),
                    f"-Dlog4j2.configurationFile=file:{directory}/log4j2.properties",
                    *("-cp", os.pathsep.join(map(str, libraries.jars)), _COMPILER, str(SOURCE), SOURCE.stem),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=directory,
                encoding="utf-8",
                start_new_session=True,  # Ctrl-C is for Python, which ends it
            )

    def _asked(self, request: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        printed: list[str] = []
        with suppress(OSError):
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        for line in iter(self._process.stdout.readline, ""):
            with suppress(ValueError):  # of what the virtual machine itself prints
                answer: dict[str, Any] = json.loads(line)
                return answer
            printed.append(line)
        code = self._process.wait()
        raise ConfigurationError(
            f"Flink's planner has ended with code {code}: {self._last_words(printed)}. Check that this Java has "
            f"{MEMORY} of memory: {self._java}"
        )

    def _last_words(self, printed: Sequence[str]) -> str:
        """Return what the process has printed, or else the first line of its errors."""
        lines: list[str] = []
        if self._directory is not None:
            with suppress(OSError):
                lines = Path(self._directory, "errors").read_text("utf-8", "replace").splitlines()
        written = [line for line in lines if line.strip() and not line.startswith(("\t", "WARNING"))]
        shown = [line.strip() for line in printed if line.strip()] or written[:1]
        return ": ".join(shown) if shown else "it has written nothing"

    def forget(self) -> None:
        """Leave the process to the parent of this one, which has forked."""
        if self._process is not None:
            self._process.returncode = 0  # it is not a child of this process, which must not wait for it
        self._process = self._directory = self._timer = None
        self._lock = threading.Lock()

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    with suppress(OSError):  # of what the process has not read
                        stream.close()
            self._process.wait()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
        self._process = self._directory = None


PROCESS: Final = FlinkProcess()
"""The planner of this Python process."""
atexit.register(PROCESS.close)
os.register_at_fork(after_in_child=PROCESS.forget)
