"""The wheel, the source distribution and the editable install all give a package that works elsewhere."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from equipment.sampling import ALL

import flinkcore

ROOT = Path(__file__).parents[2]
SOURCES = (
    "setup.py",
    "pyproject.toml",
    "MANIFEST.in",
    "README.md",
    "LICENSE",
    "SECURITY.md",
    "CHANGELOG.md",
    "_native",
    "flinkcore",
)
TRANSLATED = Path("build", "cython")
"""Where setup.py has what Cython makes of kernels."""

YEAR_SECONDS = 365 * 24 * 3600

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


@dataclass(frozen=True)
class Distributions:
    """The source distribution, what it unpacks to, and the wheel that was built there."""

    sdist: Path
    tree: Path
    wheel: Path


@pytest.fixture(scope="module")
def distributions(
    sources: Path, quick_compiler: str, tmp_path_factory: pytest.TempPathFactory
) -> Distributions:
    folder = tmp_path_factory.mktemp("distributions")
    build = (sys.executable, "-m", "build", "--no-isolation", "--outdir", folder)
    run(*build, "--sdist", sources, cwd=folder)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    tree = folder / sdist.name.removesuffix(".tar.gz")
    if (ROOT / TRANSLATED).exists():
        # Of sources that are older: Cython needs longer than the compiler, and translates the others.
        shutil.copytree(ROOT / TRANSLATED, tree / TRANSLATED)
    if not ALL:
        # What Cython has translated would be older than the .pxd files of a Cython that is installed now.
        for path in tree.rglob("*"):
            if path.suffix in (".pyx", ".pxd", ".c"):
                os.utime(path, (path.stat().st_mtime + YEAR_SECONDS,) * 2)
    run(*build, "--wheel", tree, cwd=folder, CC=quick_compiler)
    (wheel,) = folder.glob("*.whl")
    return Distributions(sdist, tree, wheel)


def test_the_package_tells_the_version_of_its_distributions() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.findall(r'^version = "(.+)"$', project, re.MULTILINE) == [flinkcore.__version__]


def test_the_source_distribution_has_all_that_kernels_are_made_of(
    sources: Path, distributions: Distributions
) -> None:
    wanted = {
        path.relative_to(sources)
        for folder in ("_native", "flinkcore/_native")
        for path in (sources / folder).rglob("*")
        if path.is_file()
    }
    assert {Path("_native/timers.pyx"), Path("flinkcore/_native/timers.pxd")} < wanted
    with tarfile.open(distributions.sdist) as archive:
        packed = {Path(*Path(name).parts[1:]) for name in archive.getnames()}
    assert wanted <= packed


def test_the_wheel_that_is_built_from_the_source_distribution_works(
    distributions: Distributions, tmp_path: Path
) -> None:
    with zipfile.ZipFile(distributions.wheel) as archive:
        archive.extractall(tmp_path / "site")
    probe = f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})\n{PROBE}"
    assert str(tmp_path / "site") in run(sys.executable, "-I", "-c", probe, cwd=tmp_path)


def test_the_wheel_carries_contracts_stubs_types_and_data_but_no_sources_of_kernels(
    distributions: Distributions,
) -> None:
    with zipfile.ZipFile(distributions.wheel) as archive:
        names = archive.namelist()
        (entry_points,) = (name for name in names if name.endswith(".dist-info/entry_points.txt"))
        assert "[pytest11]\nflinkcore = flinkcore.pytest_plugin\n" in archive.read(entry_points).decode()
    for wanted in ("py.typed", "_native/timers.pxd", "_native/timers.pyi", "examples/flights.parquet"):
        assert f"flinkcore/{wanted}" in names
    data = {str(path.relative_to(ROOT)) for path in (ROOT / "flinkcore").rglob("*.json")}
    assert data
    assert data <= set(names)
    kernels = {"_cyutility", *(path.stem for path in (ROOT / "_native").glob("*.pyx"))}
    assert {name.split("/")[-1].split(".")[0] for name in names if name.endswith(".so")} == kernels
    assert not [
        name for name in names if name.endswith((".pyx", ".c")) or name.startswith(("tests/", "benchmarks/"))
    ]


def test_an_editable_install_works_and_compiles_nothing_that_is_compiled(
    distributions: Distributions, tmp_path: Path
) -> None:
    for module in (distributions.tree / "build").rglob("*.so"):
        os.utime(module, (module.stat().st_mtime + 2 * YEAR_SECONDS,) * 2)  # newer than the sources still
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
        distributions.tree,
        cwd=tmp_path,
        CC="false",
    )
    assert str(distributions.tree) in run(python, "-I", "-c", PROBE, cwd=tmp_path)


@pytest.fixture(scope="module")
def fresh(
    distributions: Distributions, quick_compiler: str, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The programs of a new environment, in which the commands of the native example's page have run in a checkout."""
    folder = tmp_path_factory.mktemp("fresh")
    run(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    programs = folder / "venv" / "bin"
    (commands,) = blocks_of_example("sh")
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    # Compiling all modules of Cython, NumPy and pyarrow, twice, would take most of the time.
    settings = {"PATH": path, "CC": quick_compiler, "PIP_COMPILE": "0"}
    run("bash", "-euxc", commands, cwd=distributions.tree, **settings)
    return programs


def blocks_of_example(kind: str) -> list[str]:
    page = ROOT / "flinkcore" / "examples" / "native_inactivity" / "README.md"
    return re.findall(rf"^```{kind}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_commands_of_the_native_example_install_it_in_a_fresh_environment(
    fresh: Path, tmp_path: Path
) -> None:
    (code,) = blocks_of_example("python")
    code += """
print([column.tolist() for column in (key_ids, timestamps_ms, numbers)])
print(pa.record_batch(counts.key_columns())["user"].take(key_ids).to_pylist())
"""
    assert run(fresh / "python", "-c", code, cwd=tmp_path) == "[[1], [110], [1]]\n['b']\n"


def test_without_extras_the_commands_run_embedded_or_name_the_one_of_spark(
    fresh: Path, tmp_path: Path
) -> None:
    done = subprocess.run(
        [fresh / "flinkcore", "demo", "--engine", "spark"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert re.fullmatch(
        r"flinkcore: .*pip install 'flinkcore\[spark\]', or choose --engine embedded\n", done.stderr
    )
    assert "Hourly flights" in run(fresh / "flinkcore", "demo", cwd=tmp_path)
    # An extra is added to the flinkcore that is there, which is on no index.
    (line,) = re.findall(
        r"pip install ('flinkcore\[delta\]')", (ROOT / "docs" / "index.md").read_text("utf-8")
    )
    extra = line.strip("'").replace("delta", "avro")
    assert "fastavro" in run(fresh / "pip", "install", "--dry-run", extra, cwd=tmp_path)
