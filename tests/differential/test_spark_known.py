"""When results were known, what was served then, and how two sinks differ: on Spark as in one process."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from equipment.sampling import sampled
from equipment.spark_sessions import dataframe_of, table_of

pytest.importorskip("pyspark")

from pyspark.sql import functions as f

from flinkcore import analysis
from flinkcore import spark as on_spark
from flinkcore.common import Time
from flinkcore.datastream import SlidingEventTimeWindows, StreamExecutionEnvironment
from flinkcore.datastream.aggregates import count, mean
from flinkcore.errors import ConfigurationError, DataError, SchemaError
from flinkcore.examples.flights import flights_by_origin
from flinkcore.spark import SparkExecutionEnvironment, comparison
from flinkcore.spark.columns.spark_types import SparkSchema

pytestmark = pytest.mark.spark_session(
    "local[2]", spark_sql_session_timeZone="America/New_York", spark_sql_shuffle_partitions="3"
)


def features(environment: StreamExecutionEnvironment) -> Any:
    """Flights and their mean delay of three hours, each hour; windows that late flights change."""
    windows = SlidingEventTimeWindows.of(Time.hours(3), Time.hours(1))
    windowed = flights_by_origin(environment).window(windows).allowed_lateness(Time.hours(1)).retracting()
    return windowed.aggregate(flights=count(), mean_delay=mean("delay")).with_emitted_at().execute()


@pytest.fixture(scope="module")
def known(spark: Any) -> Any:
    """They are emitted once for all tests."""
    return features(SparkExecutionEnvironment(spark).set_parallelism(3)).to_dataframe().persist()


@pytest.fixture(scope="module")
def embedded() -> pa.Table:
    return features(StreamExecutionEnvironment()).to_arrow()


def asked() -> pa.Table:
    """Questions at odd times, of airports and of none; a day has 24 hours in every zone."""
    start = datetime(2001, 1, 1)
    origins = ["ATL", "BOS", "SFO", "none", None]
    return pa.Table.from_pylist(
        [
            {"origin": origins[number % 5], "time": start + timedelta(minutes=37 * number), "number": number}
            for number in range(80)
        ],
        pa.schema({"origin": pa.string(), "time": pa.timestamp("us"), "number": pa.int64()}),
    )


def test_results_say_when_they_were_emitted(known: Any, embedded: pa.Table) -> None:
    assert known.columns == embedded.column_names
    assert sorted(map(repr, map(tuple, known.collect()))) == sorted(
        repr(tuple(row.values())) for row in embedded.to_pylist()
    )
    assert 0 < embedded.column("emitted_at").null_count < len(embedded) / 2


@pytest.mark.parametrize(
    "parameters",
    [{}, {"latest_by": "window_end"}, {"max_age": Time.minutes(50)}, {"allow_exact_matches": False}],
    ids=str,
)
def test_questions_have_the_answers_of_one_process(
    spark: Any, known: Any, embedded: pa.Table, parameters: dict[str, Any]
) -> None:
    # At the very times at which results were emitted, too.
    times = embedded.column("emitted_at").drop_null().unique().cast(pa.timestamp("us"))[:40]
    exact = pa.table({"origin": ["ATL"] * len(times), "time": times, "number": range(100, 100 + len(times))})
    questions = pa.concat_tables([asked(), exact.cast(asked().schema)])
    keys = {"at": "time", "keys": "origin", **parameters}
    expected = analysis.as_of(questions, embedded, **keys)
    found = on_spark.as_of(dataframe_of(spark, questions), known, **keys).sort("number")
    assert found.columns == expected.column_names
    assert [tuple(row) for row in found.collect()] == [tuple(row.values()) for row in expected.to_pylist()]
    assert 0 < expected.column("flights").null_count < len(expected)


def test_a_result_of_a_job_is_taken_as_it_is(spark: Any, embedded: pa.Table) -> None:
    questions = dataframe_of(spark, asked())
    answered = on_spark.as_of(questions, features(SparkExecutionEnvironment(spark)), at="time", keys="origin")
    assert sum(row.flights is not None for row in answered.collect()) == len(asked()) - (
        analysis.as_of(asked(), embedded, at="time", keys="origin").column("flights").null_count
    )


def test_times_with_a_zone_numbers_and_dates_are_instants_of_utc(spark: Any) -> None:
    # In New York the hour from 5 to 6 UTC comes twice on this day.
    start = datetime(2001, 10, 28, 5)
    known = pa.table({"k": [1, 1], "n": [1, 2], "emitted_at": [start, start + timedelta(hours=1)]})
    times = [start + timedelta(minutes=minutes) for minutes in (-1, 0, 59, 60)]
    naive = pa.table({"k": [1] * 4, "at": pa.array(times, pa.timestamp("us"))})
    zoned = dataframe_of(spark, naive).selectExpr(
        "k", "timestamp_micros(unix_micros(to_timestamp(concat(cast(at as string), '+00:00')))) as at"
    )
    numbers = pa.table({"k": [1] * 4, "at": naive.column("at").cast(pa.timestamp("ms")).cast(pa.int64())})
    answers = [None, 1, 1, 2]
    frame = dataframe_of(spark, known)
    for questions in (dataframe_of(spark, naive), zoned, dataframe_of(spark, numbers)):
        answered = on_spark.as_of(questions, frame, at="at", keys="k", max_age=Time.hours(1))
        assert [row.n for row in answered.sort("at").collect()] == answers
    dates = dataframe_of(spark, pa.table({"k": [1], "at": [start.date() + timedelta(days=1)]}))
    assert on_spark.as_of(dates, frame, at="at", keys="k").collect()[0].n == 2
    both_numbers = frame.selectExpr("k", "n", "n * 10 as emitted_at")
    by_number = dataframe_of(spark, pa.table({"k": [1, 1, 1], "at": [9, 15, 35]}))
    answered = on_spark.as_of(by_number, both_numbers, at="at", keys="k", max_age=10).sort("at")
    assert [row.n for row in answered.collect()] == [None, 1, None]


ZEROS = "inline(array(struct({0} k, 10L at), struct({1} k, 11L at), struct({2} k, 12L at)))"
KEYS_AND_TIMES = [
    (ZEROS.format("0D", "double('-0.0')", "double('NaN')"), "double('-0.0') k, 10L emitted_at"),
    (ZEROS.format("0D", "double('-0.0')", "double(null)"), "double('0.0') k, 10L emitted_at"),
    (ZEROS.format("0D", "double('-0.0')", "double('NaN')"), "float('NaN') k, 10L emitted_at"),
    (
        ZEROS.format(*(f"named_struct('x', named_struct('y z', float('{x}')))" for x in ("0", "-0", "NaN"))),
        "named_struct('x', named_struct('y z', double('-0'))) k, 10L emitted_at",
    ),
    ("1 k, 10L at", "1 k, 10L emitted_at"),
    ("cast(1 AS SMALLINT) k, 70000L at", "1L k, 70000L emitted_at"),
    # Less than a millisecond apart.
    (
        "1 k, timestamp_ntz'1969-12-31 23:59:59.9985' at",
        "1 k, timestamp_ntz'1969-12-31 23:59:59.9989' emitted_at",
    ),
    ("1 k, timestamp_micros(-1500L) at", "1 k, timestamp_ntz'1969-12-31 23:59:59.9985' emitted_at"),
    ("1 k, timestamp_micros(-1499L) at", "1 k, timestamp_ntz'1969-12-31 23:59:59.9975' emitted_at"),
    ("1 k, timestamp_micros(-1500L) at", "1 k, timestamp_ntz'1969-12-31 23:59:59.9975' emitted_at"),
    # As far apart as times can be.
    (
        "1 k, explode(array(-9223372036854775808L, 0L, 9223372036854775807L)) at",
        "1 k, explode(array(-9223372036854775808L, 9223372036854775807L)) emitted_at",
    ),
    ("1 k, timestamp_millis(1000) at", "1 k, explode(array(0L, 9223372036854775807L)) emitted_at"),
    (
        "1 k, timestamp_ntz'9999-12-31 23:59:59.999999' at",
        "1 k, timestamp_ntz'0001-01-01 00:00:00' emitted_at",
    ),
]


@pytest.mark.parametrize(("asked", "known"), sampled(KEYS_AND_TIMES, 4))
def test_keys_and_times_of_any_type_have_the_answers_of_one_process(
    spark: Any, asked: str, known: str
) -> None:
    questions, features = spark.sql(f"select {asked}"), spark.sql(f"select {known}, 7 v")
    tables = [table_of(frame) for frame in (questions, features)]
    for more in ({}, {"max_age": 1}, {"max_age": 2**63 - 1}, {"allow_exact_matches": False}):
        parameters = {"at": "at", "keys": "k", "columns": ["v"], **more}
        expected = analysis.as_of(*tables, **parameters).column("v").to_pylist()
        found = on_spark.as_of(questions, features, **parameters).sort("at").collect()
        assert [row.v for row in found] == expected


@pytest.mark.parametrize(
    ("asked", "known"),
    [
        ("'1' k, 10L at", "1 k, 10L emitted_at"),
        ("timestamp'2020-01-01' k, 10L at", "timestamp_ntz'2020-01-01' k, 10L emitted_at"),
        ("array(1) k, 10L at", "array(1) k, 10L emitted_at"),
        ("1 k, '2020-01-01' at", "1 k, 10L emitted_at"),
    ],
)
def test_keys_and_times_of_other_types_are_refused_as_in_one_process(
    spark: Any, asked: str, known: str
) -> None:
    questions, features = spark.sql(f"select {asked}"), spark.sql(f"select {known}, 7 v")
    with pytest.raises(SchemaError) as refusal:
        analysis.as_of(table_of(questions), table_of(features), at="at", keys="k")
    with pytest.raises(SchemaError, match=re.escape(str(refusal.value))):
        on_spark.as_of(questions, features, at="at", keys="k")


def planted(replay: pa.Table) -> pa.Table:
    """A sink that has the last row of most windows, with a difference of each kind."""
    last = {}
    for row in replay.to_pylist():
        last[row["origin"], row["window_start"]] = row
    rows = [row for number, row in enumerate(last.values()) if number % 50]
    for number, row in enumerate(rows):
        row["flights"] += number % 40 == 0
        row["mean_delay"] *= 1 + 1e-12
    rows.append({**rows[0], "origin": "nowhere"})
    schema = replay.schema.set(1, pa.field("window_start", pa.timestamp("us")))
    table = pa.Table.from_pylist(rows, schema).select(["flights", "mean_delay", "window_start", "origin"])
    return table.set_column(0, "flights", table.column("flights").cast(pa.int32()))


@pytest.mark.parametrize("upserts", [None, False])
def test_differences_are_those_of_one_process(
    spark: Any, known: Any, embedded: pa.Table, upserts: bool | None
) -> None:
    sink = planted(embedded)
    parameters = {"keys": ["origin", "window_start"], "upserts": upserts}
    expected = analysis.compare(sink, embedded, **parameters)
    with patch.object(comparison, "PIECE_ROWS", 1):
        found = on_spark.compare(dataframe_of(spark, sink), known, **parameters)
    assert found.counts == expected.counts
    assert {"another value", "only in the sink", "only in the replay"} <= found.counts.keys()
    assert (found.equal, found.upserts) == (expected.equal, expected.upserts)
    assert (found.expected_rows, found.found_rows) == (len(sink), len(embedded))
    assert repr(found).splitlines()[:3] == repr(expected).splitlines()[:3]
    assert (found.keys, found.columns, found.left_out) == (expected.keys, expected.columns, expected.left_out)
    assert sorted(map(repr, found.to_arrow().to_pylist())) == sorted(
        map(repr, expected.to_arrow().to_pylist())
    )
    assert found.to_dataframe().columns == expected.to_arrow().column_names
    assert not found.is_equal
    assert on_spark.compare(known, known, keys=["origin", "window_start", "emitted_at"]).is_equal


def test_sinks_with_keys_of_both_zeros_keep_the_last_row_of_each(spark: Any) -> None:
    sink = spark.sql("select inline(array(struct(double('-0.0') k, 1 v), struct(0D k, 2 v)))")
    replay = spark.sql(
        "select inline(array(struct(double('-0.0') k, 0 v), struct(0D k, 2 v), struct(double('-0.0') k, 1 v)))"
    )
    with on_spark.compare(sink, replay, keys="k") as compared:
        assert (compared.upserts, compared.counts) == (True, {})
    case = spark.sql("select named_struct('a', 1D, 'A', double('-0')) k, 10L at")
    answered = on_spark.as_of(case, case.selectExpr("k", "at as emitted_at", "7 v"), at="at", keys="k")
    assert answered.collect()[0].v == 7


def test_timestamps_with_and_without_a_zone_are_the_same_instants(spark: Any) -> None:
    # In New York the hour from 5 to 6 UTC comes twice on this day.
    times = [datetime(2001, 10, 28, hour) for hour in (4, 5, 6)]
    naive = dataframe_of(spark, pa.table({"t": times, "n": [1, 2, 3]}))
    zoned = naive.selectExpr("timestamp_seconds(1004241600 + 3600 * (n - 1)) as t", "n")
    assert on_spark.compare(zoned, naive, keys="t").is_equal
    assert on_spark.compare(naive, zoned, keys="n").is_equal


def test_the_replay_runs_once_and_its_differences_are_released(spark: Any) -> None:
    def counted(name: str) -> tuple[Any, Any]:
        reads = spark.sparkContext.accumulator(0)

        def told(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                reads.add(batch.num_rows)
                yield batch

        rows = dataframe_of(spark, pa.table({"k": range(50), "n": range(50)}))
        return rows.mapInArrow(told, "k long, n long").withColumn("n", f.expr(f"n + {name}")), reads

    (sink, sink_reads), (replay, replay_reads) = counted("0"), counted("if(k = 7, 1, 0)")
    before = len(spark.sparkContext._jsc.getPersistentRDDs())
    with on_spark.compare(sink, replay, keys="k", upserts=True) as found:
        assert "1 another value" in repr(found)
        assert [row["k"] for row in found.to_arrow().to_pylist()] == [7]
        assert (sink_reads.value, replay_reads.value) == (50, 50)
        assert len(spark.sparkContext._jsc.getPersistentRDDs()) == before + 1
    assert len(spark.sparkContext._jsc.getPersistentRDDs()) == before
    assert (found.expected_rows, found.found_rows, found.equal) == (50, 50, 49)
    assert "1 another value" in repr(found)
    with pytest.raises(ConfigurationError, match="the comparison is closed"):
        found.to_dataframe()


def test_a_key_with_too_many_rows_is_refused_before_all_of_them_are_held() -> None:
    side = pa.schema([("k", pa.int64()), ("n", pa.int64())])
    compared = analysis.comparison.ResultComparison.of(
        side, side, keys="k", columns=None, upserts=False, rel_tol=0.0, abs_tol=0.0
    )
    task = comparison.CompareTask(compared, SparkSchema(compared.schema()))
    taken = []

    def batches() -> Iterator[pa.RecordBatch]:
        rows = pa.array([{"k": 1, "n": 0}] * 100, pa.struct(list(side)))
        none = pa.nulls(100, rows.type)
        for number in range(100):
            taken.append(number)
            sides = [rows, none] if number < 50 else [none, rows]
            yield pa.record_batch([pa.array([5] * 100), *sides], ["place", "expected", "found"])

    with (
        patch.object(comparison, "MOST_PAIRS", 1 << 20),
        patch.object(analysis.comparison, "MOST_PAIRS", 1 << 20),
        pytest.raises(DataError, match="5,000 rows of the sink and 300 of the replay have the key"),
    ):
        list(task(batches()))
    assert len(taken) == 53


def test_keys_that_name_no_result_are_refused(spark: Any) -> None:
    same = dataframe_of(spark, pa.table({"k": [1] * 3_000, "n": range(3_000)}))
    with pytest.raises(DataError, match="3,000 rows of the sink and 3,000 of the replay have the key"):
        on_spark.compare(same, same, keys="k")


def test_what_cannot_be_answered_is_refused(spark: Any) -> None:
    questions = dataframe_of(spark, asked())
    with pytest.raises(ConfigurationError, match=r"questions are a DataFrame of Spark.*flinkcore\.analysis"):
        on_spark.as_of(asked(), questions, at="time", keys="origin")
    with pytest.raises(SchemaError, match="time column 'origin' is string"):
        on_spark.as_of(
            questions, questions, at="time", keys="origin", emitted_at="origin", columns="time", prefix="f"
        )
