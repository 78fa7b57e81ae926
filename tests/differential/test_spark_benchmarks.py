"""Benchmarks on Spark measure what they say: files are read as files, and what Spark should compute it computes."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

ROOT = Path(__file__).parents[2]


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, spark: Any) -> Iterator[dict[str, Any]]:
    """The functions that open engines of the windowed bids on Spark, by name."""
    monkeypatch.syspath_prepend(ROOT)
    for name in ("PYSPARK_PYTHON", "PYTHONPATH"):
        monkeypatch.setenv(name, "")  # they are set by the engines, and are as before after the test
    names = importlib.import_module("benchmarks.engine_process").ENGINES
    monkeypatch.setattr("benchmarks.cached_log.CACHE", tmp_path)
    paths = {name: path.split(":") for name, path in names.items() if "spark" in name and "_bids:" in path}
    yield {
        name: getattr(importlib.import_module(module), function) for name, (module, function) in paths.items()
    }
    for name in [name for name in sys.modules if name.partition(".")[0] == "benchmarks"]:
        del sys.modules[name]


def test_all_engines_open_with_the_plans_that_they_say_and_give_one_answer(
    engines: dict[str, Any],
) -> None:
    bids = importlib.import_module("benchmarks.nexmark").Bids(20_000)
    assert {"flinkcore-spark-evaluated", "flinkcore-spark-dataframe", "spark-evaluated-mapped"} <= set(
        engines
    )
    answers = {name: open_engine(bids, 2)() for name, open_engine in engines.items()}
    found = {name: getattr(answer, "checksum", answer) for name, answer in answers.items()}
    assert found.pop("spark-evaluated-mapped").rows == bids.events
    assert len(set(found.values())) == 1
    assert found["spark-counted"].n == bids.events


@pytest.mark.parametrize("name", ["flinkcore-spark-evaluated", "spark-evaluated-mapped"])
def test_a_dataframe_that_the_optimizer_makes_a_scan_is_none_that_spark_evaluates(
    name: str, engines: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql import functions as F

    bids = importlib.import_module("benchmarks.nexmark").Bids(20_000)
    monkeypatch.setattr(
        "benchmarks.peers.spark_bids.evaluated",
        lambda spark, path: spark.read.parquet(str(path)).where(F.rand(1) < 2),
    )
    with pytest.raises(AssertionError, match=r"something else|would not compute"):
        engines[name](bids, 2)


@pytest.mark.parametrize("sums_integers", [True, False])
def test_jobs_over_logs_of_one_large_dimension_run_as_their_rows_say(
    sums_integers: bool, engines: dict[str, Any]
) -> None:
    module = importlib.import_module("benchmarks.scale_process")
    logs = importlib.import_module("benchmarks.scale_logs")
    job = module.ScaleJob(logs.ScaleLog(1_000, logs.DAY_MS, files=2), sums_integers=sums_integers)
    for engine in module.ENVIRONMENTS:
        module.check_plan(engine, job)
