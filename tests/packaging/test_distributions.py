"""The wheel, the source distribution and the editable install all give a package that works elsewhere."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = (
    "setup.py",
    "pyproject.toml",
    "MANIFEST.in",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "_native",
    "flinkcore",
)
PROBE = """
import sys
class NoPandas:  # it is not a dependency
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=name)
sys.meta_path.insert(0, NoPandas())
import numpy as np, pyarrow as pa
import flinkcore
from flinkcore.datastream import StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count
from flinkcore.common import Time, WatermarkStrategy
log = pa.table({"ts": [0, 5, 12], "k": ["a", "a", "b"]})
rows = (
    StreamExecutionEnvironment.get_execution_environment()
    .from_event_log(log, timestamp="ts")
    .assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
    .key_by("k").window(TumblingEventTimeWindows.of(Time.milliseconds(10))).aggregate(n=count())
    .to_arrow().to_pylist()
)
assert sorted((row["k"], row["n"]) for row in rows) == [("a", 2), ("b", 1)], rows
print(flinkcore.__file__)
"""


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        capture_output=True,
        text=True,
        env=clean_environment() | environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def clean_environment() -> dict[str, str]:
    return {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "FLINKCORE_SANITIZE")
    }


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what a checkout holds, so that no stale build leaks in."""
    copy = tmp_path_factory.mktemp("checkout")
    ignore = shutil.ignore_patterns("*.so", "*.c", "__pycache__", "*.egg-info")
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=ignore)
        else:
            shutil.copy(source, copy / name)
    return copy


@pytest.fixture(scope="module")
def distributions(sources: Path) -> tuple[Path, Path]:
    """The sdist, and the wheel built from it."""
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", "dist", ".", cwd=sources)
    (sdist,) = (sources / "dist").glob("*.tar.gz")
    (wheel,) = (sources / "dist").glob("*.whl")
    return sdist, wheel


def test_the_wheel_that_is_built_from_the_source_distribution_works(
    distributions: tuple[Path, Path], tmp_path: Path
) -> None:
    _, wheel = distributions
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    probe = f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})\n{PROBE}"
    assert str(tmp_path / "site") in run(sys.executable, "-P", "-c", probe, cwd=tmp_path)


def test_the_wheel_carries_contracts_stubs_types_and_data_but_no_sources_of_kernels(
    distributions: tuple[Path, Path],
) -> None:
    with zipfile.ZipFile(distributions[1]) as archive:
        names = archive.namelist()
        (entry_points,) = (name for name in names if name.endswith(".dist-info/entry_points.txt"))
        assert "[pytest11]\nflinkcore = flinkcore.pytest_plugin\n" in archive.read(entry_points).decode()
    for wanted in ("py.typed", "_native/timers.pxd", "_native/timers.pyi", "examples/flights.parquet"):
        assert f"flinkcore/{wanted}" in names
    kernels = {path.stem for path in (ROOT / "_native").glob("*.pyx")}
    assert {name.split("/")[-1].split(".")[0] for name in names if name.endswith(".so")} == kernels
    assert not [
        name for name in names if name.endswith((".pyx", ".c")) or name.startswith(("tests/", "benchmarks/"))
    ]


@pytest.fixture
def quick_compiler(tmp_path: Path) -> str:
    """The compiler of extensions, but one that does not optimize: that is most of its time."""
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    script = tmp_path / "quick-compiler"
    script.write_text(f'#!/bin/sh\nexec {compiler} "$@" -O0\n')
    script.chmod(0o755)
    return str(script)


def test_an_editable_install_works(sources: Path, tmp_path: Path, quick_compiler: str) -> None:
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    paths = [path for path in sys.path if path.endswith("site-packages")]
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (site / "parent.pth").write_text("\n".join(paths) + "\n")
    run(
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-build-isolation",
        "--no-deps",
        "-e",
        sources,
        cwd=tmp_path,
        CC=quick_compiler,
    )
    assert str(sources) in run(python, "-P", "-c", PROBE, cwd=tmp_path)


def test_the_native_example_builds_against_the_wheel(
    distributions: tuple[Path, Path], tmp_path: Path
) -> None:
    with zipfile.ZipFile(distributions[1]) as archive:
        archive.extractall(tmp_path / "site")
    with tarfile.open(distributions[0]) as archive:
        prefix = archive.getnames()[0].split("/")[0]
        for name in ("setup.py", "inactivity.pyx"):
            content = archive.extractfile(f"{prefix}/flinkcore/examples/native_inactivity/{name}")
            assert content is not None
            (tmp_path / name).write_bytes(content.read())
    build = (
        f"import sys; sys.path[:0] = [{str(tmp_path / 'site')!r}, '.']\n"
        "sys.argv = ['setup.py', '-q', 'build_ext', '--inplace']\n"
        "exec(open('setup.py').read())\n"
        "import pyarrow as pa, inactivity\n"
        "counts = inactivity.InactivityCounts(pa.schema({'user': pa.string()}), ['user'], 'ts', 10)\n"
        "counts.process(pa.record_batch({'user': ['a', 'a'], 'ts': [0, 5]}))\n"
        "assert [column.tolist() for column in counts.advance(15)] == [[0], [15], [2]]\n"
    )
    run(sys.executable, "-P", "-c", build, cwd=tmp_path)
