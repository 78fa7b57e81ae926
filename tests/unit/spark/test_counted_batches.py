"""Batches stay measured where Spark lacks what counting them takes."""

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")

from py4j.protocol import Py4JError
from pyspark.sql.types import LongType, StructField, StructType

from flinkcore.spark.logs.counted_batches import counting_session


def no_method(*_: Any) -> Any:
    raise Py4JError("Method cloneSession([]) does not exist")


def no_class(*_: Any) -> Any:
    raise TypeError("'JavaPackage' object is not callable")


def dataframe(clone: Any, of_rows: Any) -> Any:
    """A DataFrame of numbers, whose session has a JVM that clones sessions and moves plans so."""
    plan = SimpleNamespace(toString=lambda: "Range (0, 9)")
    query = SimpleNamespace(optimizedPlan=lambda: plan, analyzed=lambda: plan)
    dataset = SimpleNamespace(ofRows=of_rows)
    sql = SimpleNamespace(classic=SimpleNamespace(Dataset=dataset))
    spark = SimpleNamespace(
        _jsparkSession=SimpleNamespace(cloneSession=clone),
        _jvm=SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(spark=SimpleNamespace(sql=sql)))),
    )

    class DataFrame:
        schema = StructType([StructField("n", LongType())])
        sparkSession = spark
        _jdf = SimpleNamespace(queryExecution=lambda: query)

        def __init__(self, *_: Any) -> None: ...

    return DataFrame()


def session() -> Any:
    return SimpleNamespace(conf=lambda: SimpleNamespace(set=lambda *_: None))


@pytest.mark.parametrize(
    ("clone", "of_rows", "is_counted"),
    [(session, lambda *_: None, True), (no_method, lambda *_: None, False), (session, no_class, False)],
    ids=["all is there", "no copies of sessions", "no classic DataFrames"],
)
def test_batches_are_counted_only_if_spark_has_all_that_it_takes(
    clone: Any, of_rows: Any, is_counted: bool
) -> None:
    assert (counting_session(dataframe(clone, of_rows)) is not None) is is_counted


def test_spark_3_measures_no_batches_and_counts_them_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.__version__", "3.5.9")
    assert counting_session(dataframe(session, lambda *_: None)) is None
