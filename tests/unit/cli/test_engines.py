"""Which engine a command runs on, and what it says of that."""

import argparse
import importlib.machinery
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import flinkcore as fc
from flinkcore.cli import engines, main
from flinkcore.cli.engines import add_engine, environment_of
from flinkcore.errors import ConfigurationError
from flinkcore.log.formats.columnar_formats import ParquetFormat

IN_PROCESS = "flinkcore: the job runs in this process: "
ON_SPARK = "flinkcore: the job runs on Spark: "


@pytest.fixture
def masters(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The masters of the sessions that are asked for; none is started."""
    asked: list[str] = []

    def environment(master: str, otherwise: str) -> fc.StreamExecutionEnvironment:
        asked.append(master)
        return fc.StreamExecutionEnvironment()

    monkeypatch.setattr(engines, "spark_environment", environment)
    return asked


def install(monkeypatch: pytest.MonkeyPatch, is_installed: bool) -> None:
    spec = importlib.machinery.ModuleSpec("pyspark", None) if is_installed else None
    monkeypatch.setattr(engines, "find_spec", lambda name: spec)


def job(environment: fc.StreamExecutionEnvironment) -> fc.JobResult:
    log = pa.table({"ts": [1, 2], "user": ["a", "b"]})
    strategy: Any = fc.WatermarkStrategy.for_monotonous_timestamps()
    stream = environment.from_event_log(log, timestamp="ts").assign_timestamps_and_watermarks(strategy)
    windows = stream.key_by("user").window(fc.TumblingEventTimeWindows.of(fc.Duration.of_seconds(1)))
    return windows.aggregate(n=fc.count()).execute()


def chosen(*options: str, of_log: bool = True) -> fc.StreamExecutionEnvironment:
    parser = argparse.ArgumentParser()
    add_engine(parser)
    with TemporaryDirectory() as folder:
        Path(folder, "log.csv").write_text("ts,user\n1,a\n2,b\n")
        parser.set_defaults(input=[folder], format=None)
        return environment_of(parser.parse_args(options), job if of_log else None)


def test_a_small_log_is_replayed_in_this_process(
    masters: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(monkeypatch, True)
    chosen()
    assert masters == []
    said = r"the log has \d+ bytes, and Spark is chosen from 8 GiB on\n"
    assert re.fullmatch(f"{IN_PROCESS}{said}", capsys.readouterr().err)


def test_a_large_log_is_replayed_on_spark(
    masters: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(monkeypatch, True)
    monkeypatch.setattr(engines, "SPARK_FROM_GIB", 0)
    chosen()
    assert masters == ["local[*]"]
    said = r"the log has \d+ bytes, and Spark is chosen from 0 GiB on\n"
    assert re.fullmatch(f"{ON_SPARK}{said}", capsys.readouterr().err)


def test_a_large_log_is_replayed_in_this_process_where_spark_is_missing(
    masters: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(monkeypatch, False)
    monkeypatch.setattr(engines, "SPARK_FROM_GIB", 0)
    chosen()
    assert masters == []
    assert capsys.readouterr().err == f"{IN_PROCESS}pyspark is not installed\n"


@pytest.mark.parametrize("is_installed", [True, False])
def test_a_master_asks_for_spark(
    is_installed: bool,
    masters: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    install(monkeypatch, is_installed)
    chosen("--master", "local[3]")
    assert masters == ["local[3]"]
    assert capsys.readouterr().err == f"{ON_SPARK}--master is local[3]\n"


def test_the_demo_shows_spark_where_it_is_installed(
    masters: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, True)
    chosen(of_log=False)
    assert masters == ["local[*]"]


@pytest.mark.parametrize(
    "options", [("--engine", "spark"), ("--engine", "embedded"), ("--master", "local", "--quiet")]
)
def test_nothing_is_said_where_the_user_has_chosen_or_wants_quiet(
    options: tuple[str, ...], masters: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert chosen(*options, "--parallelism", "2").get_parallelism() == 2
    assert masters == ["local[*]"] * ("spark" in options) + ["local"] * ("--master" in options)
    assert capsys.readouterr().err == ""


def test_a_master_for_the_embedded_engine_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match=r"^--master local\[2\] is for Spark\. Leave it out"):
        chosen("--engine", "embedded", "--master", "local[2]")


def test_an_invalid_job_is_reported_before_spark_starts(masters: list[str]) -> None:
    parser = argparse.ArgumentParser()
    add_engine(parser)

    def invalid(environment: fc.StreamExecutionEnvironment) -> fc.JobResult:
        raise ConfigurationError("invalid")

    with pytest.raises(ConfigurationError, match="invalid"):
        environment_of(parser.parse_args(["--master", "local"]), invalid)
    assert masters == []


def test_the_size_of_a_log_is_that_of_its_files(
    masters: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(monkeypatch, True)
    for name in ("a.parquet", "b.parquet"):
        pq.write_table(pa.table({"ts": [1, 2], "user": ["a", "b"]}), tmp_path / name)
    size = sum(file.stat().st_size for file in tmp_path.iterdir())
    assert main(["lateness", str(tmp_path), "--timestamp", "ts"]) == 0
    assert f"the log has {size:,} bytes" in capsys.readouterr().err


def test_the_choice_of_the_engine_opens_no_file(
    masters: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, True)
    pq.write_table(pa.table({"ts": [1, 2], "user": ["a", "b"]}), tmp_path / "a.parquet")
    opened: list[str] = []
    whole = ParquetFormat._open

    def counting(self: ParquetFormat, file: Any, *options: Any, **named: Any) -> Any:
        opened.append(file.path)
        return whole(self, file, *options, **named)

    monkeypatch.setattr(ParquetFormat, "_open", counting)
    arguments = ["replay", str(tmp_path), "--timestamp", "ts", "--key", "user", "--window", "tumbling:1s"]
    arguments += ["--aggregate", "n=count()", "--quiet"]
    assert main([*arguments, "--engine", "embedded"]) == 0
    of_embedded = len(opened)
    assert main(arguments) == 0
    assert 0 < of_embedded == len(opened) - of_embedded
    assert masters == []
