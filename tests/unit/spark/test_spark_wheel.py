"""flinkcore as a wheel."""

import base64
import csv
import hashlib
import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

import flinkcore
from flinkcore.errors import ConfigurationError, SourceError
from flinkcore.spark import ship_flinkcore
from flinkcore.spark.shipping import wheel
from flinkcore.spark.shipping.archives import zipped, zipped_modules
from flinkcore.spark.shipping.wheel import SUFFIXES, Wheel, check_same_version, installed_wheel
from flinkcore.spark.shipping.worker_environment import build_of, fits, interpreter_abi


def test_the_installed_package_becomes_a_wheel_with_a_true_record() -> None:
    with zipfile.ZipFile(installed_wheel().path) as packed:
        names = set(packed.namelist())
        (record,) = [name for name in names if name.endswith(".dist-info/RECORD")]
        listed = list(csv.reader(packed.read(record).decode().splitlines()))
        assert {path for path, _, _ in listed} == names
        for path, digest, size in listed:
            if path != record:
                content = packed.read(path)
                found = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                assert (digest, size) == (f"sha256={found}", str(len(content)))
        (entry_points,) = [name for name in names if name.endswith(".dist-info/entry_points.txt")]
        text = packed.read(entry_points).decode()
        assert "[console_scripts]\nflinkcore = flinkcore.cli:main\n" in text
        assert "[pytest11]\nflinkcore = flinkcore.pytest_plugin\n" in text
    assert "flinkcore/spark/shipping/tasks.py" in names
    assert any(re.fullmatch(r"flinkcore/_native/valve\..*\.so", name) for name in names)
    assert {"METADATA", "WHEEL"} <= {Path(name).name for name in names}
    # Of a source tree, too, it has what a wheel that is built has: packages.
    assert {str(Path(name).with_name("__init__.py")) for name in names if name.endswith(".py")} <= names


def test_a_wheel_of_a_source_tree_has_no_module_whose_source_is_gone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = tmp_path / "flinkcore"
    kernels = [package / "_native" / f"{name}.cpython-311-x86_64-linux-gnu.so" for name in ("kept", "gone")]
    for file in (package / "__init__.py", package / "_native" / "__init__.py", *kernels):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"")
    monkeypatch.setattr(flinkcore, "__file__", str(package / "__init__.py"))

    def stored(name: str, content: bytes) -> Path:
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    monkeypatch.setattr(wheel, "stored", stored)
    # Installed, a package has no sources beside it.
    for sources, expected in [((), ["gone", "kept"]), (("kept",), ["kept"])]:
        for name in sources:
            (tmp_path / "_native").mkdir()
            (tmp_path / "_native" / f"{name}.pyx").touch()
        with zipfile.ZipFile(installed_wheel.__wrapped__().path) as packed:
            modules = [Path(name) for name in packed.namelist() if name.endswith(".so")]
        assert sorted(module.name.partition(".")[0] for module in modules) == expected


def test_a_wheel_has_all_that_lies_in_the_package() -> None:
    package = Path(flinkcore.__file__).parent
    kinds = {
        path.suffix for path in package.rglob("*") if path.is_file() and path.parent.name != "__pycache__"
    }
    assert kinds - {".typed", ""} <= {*SUFFIXES, ".pyx", ".toml"}


def test_pip_installs_the_wheel_and_it_is_known_by_its_build(tmp_path: Path) -> None:
    wheel = installed_wheel()
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        "--target",
        str(tmp_path),
    ]
    subprocess.run([*command, str(wheel.path)], check=True)
    assert build_of(str(tmp_path / "flinkcore")) == wheel.build
    program = "import flinkcore._native.valve as kernel; print(kernel.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith(str(tmp_path)), done.stderr


def test_a_build_without_a_record_is_known_by_its_files(tmp_path: Path) -> None:
    package = tmp_path / "flinkcore"
    package.mkdir()
    (package / "__init__.py").write_text("")
    before = build_of(str(package))
    assert build_of(str(package)) == before
    (package / "more.py").write_text("")
    assert build_of(str(package)) != before


def test_a_wheel_fits_interpreters_of_its_minor_version_system_and_machine() -> None:
    linux = "cpython-311-x86_64-linux-gnu x86_64"
    assert fits(installed_wheel().tag, interpreter_abi())
    assert fits("cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64", linux)
    assert fits("cp312-cp312-macosx_11_0_arm64", "cpython-312-darwin arm64")
    assert fits("cp312-cp312-macosx_11_0_universal2", "cpython-312-darwin x86_64")
    assert fits("cp312-cp312-manylinux_2_28_aarch64", "cpython-312-aarch64-linux-gnu aarch64")
    assert fits("cp311-cp311-musllinux_1_2_x86_64", "cpython-311-x86_64-linux-musl x86_64")
    assert not fits("cp310-cp310-linux_x86_64", linux)
    assert not fits("cp313-cp313t-linux_x86_64", "cpython-313-x86_64-linux-gnu x86_64")
    assert not fits("cp311-cp311-linux_aarch64", linux)
    assert not fits("cp311-cp311-macosx_11_0_x86_64", linux)
    assert not fits("cp311-cp311-musllinux_1_2_x86_64", linux)


@pytest.mark.parametrize(
    ("platform", "abi"),
    [
        ("linux-x86_64", "x86_64-linux-gnu x86_64"),
        ("linux-aarch64", "aarch64-linux-musl aarch64"),
        ("macosx-11.0-arm64", "darwin arm64"),
    ],
)
def test_the_wheel_of_this_process_fits_its_interpreter(
    monkeypatch: pytest.MonkeyPatch, platform: str, abi: str
) -> None:
    abi = f"cpython-{sys.version_info.major}{sys.version_info.minor}{sys.abiflags}-{abi}"
    monkeypatch.setattr(sysconfig, "get_platform", lambda: platform)
    monkeypatch.setattr(wheel, "interpreter_abi", lambda: abi)
    assert fits(wheel._tag(), abi)


def test_what_is_no_wheel_of_flinkcore_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="is not a wheel of flinkcore: its name would be like"):
        Wheel.of(tmp_path / "numpy-2.0-cp311-cp311-linux_x86_64.whl")


@pytest.mark.parametrize("damage", ["no zip archive", "another archive", "other bytes"])
def test_a_damaged_wheel_is_refused(tmp_path: Path, damage: str) -> None:
    record = "flinkcore-0.1.0.dist-info/RECORD"
    whole = zipped({record: b"flinkcore/a.py," * 100})
    start = whole.index(record.encode()) + len(record)
    content = {
        "no zip archive": b"PK",
        "another archive": zipped({"RECORD": b""}),
        "other bytes": whole[:start] + b"\xff" * 8 + whole[start + 8 :],
    }[damage]
    damaged = tmp_path / "flinkcore-0.1.0-cp311-cp311-linux_x86_64.whl"
    damaged.write_bytes(content)
    with pytest.raises(SourceError, match="cannot be read as a wheel"):
        Wheel.of(damaged)


def test_an_archive_has_the_same_bytes_for_the_same_files(tmp_path: Path) -> None:
    files = {"a.py": b"1", "folder/b.py": b"2"}
    assert zipped(files) == zipped(dict(reversed(files.items())))
    for name in (*files, "c.pyc", ".hidden/d.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(files.get(name, b"3"))
    assert zipped_modules(tmp_path) == zipped(files)
    assert zipped_modules(tmp_path / "a.py") == zipped({"a.py": b"1"})


def test_a_wheel_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "flinkcore-0.0.1-cp311-cp311-linux_x86_64.whl"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("flinkcore-0.0.1.dist-info/RECORD", "flinkcore/__init__.py,sha256=abc,3\n")
    with pytest.raises(ConfigurationError, match="Driver and executors need one version"):
        check_same_version(Wheel.of(path))
    with pytest.raises(ConfigurationError, match="Driver and executors need one version"):
        ship_flinkcore(None, wheel=path)
