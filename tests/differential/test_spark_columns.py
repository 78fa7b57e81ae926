"""Jobs without an operator as columns of Spark: the rows, and the errors, of a replay."""

import random
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from equipment.sampling import in_turn

pytest.importorskip("pyspark")

from equipment.spark_sessions import table_of
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from flinkcore._internal.arrow.column_ops import Select
from flinkcore.common import OutputTag
from flinkcore.errors import DataError, FlinkcoreError
from flinkcore.log.decoding.decoded_chunk import decoded_chunk, decoded_schema
from flinkcore.spark import SparkExecutionEnvironment
from flinkcore.spark.columns.arrow_expressions import spark_value
from flinkcore.spark.columns.arrow_functions import ARROW_FUNCTIONS
from flinkcore.spark.columns.function_calls import SessionSettings
from flinkcore.spark.columns.spark_values import SparkValue
from flinkcore.spark.logs.parquet_scan import ScannedFiles, parquet_files
from flinkcore.spark.logs.plan_nodes import NotJustFiles

UTC = timezone.utc
MOST = 2**63 - 1

EDGES: dict[pa.DataType, list[Any]] = {
    pa.int64(): [
        0,
        1,
        -1,
        7,
        -8,
        123,
        2**31,
        -(2**31),
        2**53,
        2**53 + 1,
        -(2**53) - 1,
        MOST,
        -MOST - 1,
        None,
    ],
    pa.int32(): [0, 1, -1, 5, -7, 2**31 - 1, -(2**31), None],
    pa.float64(): [
        0.0,
        -0.0,
        1.5,
        -2.25,
        1e308,
        5e-324,
        float("inf"),
        float("-inf"),
        float("nan"),
        7.0,
        None,
    ],
    pa.bool_(): [True, False, None],
    pa.string(): [
        "",
        "a",
        "c/cc/",
        "/a/b/c",
        "ä€\U0001f600c",
        " x ",
        "cacac",
        "A-b",
        "a,b;c",
        "\u0130",
        None,
    ],
    pa.timestamp("ms"): [
        *(datetime(1970, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999000), datetime(9999, 12, 31, 23, 59)),
        *(datetime(1, 1, 1), datetime(2024, 2, 29, 12, 30, 15), 253_402_300_800_000, -62_167_219_200_001),
        *(-99_999_999_999_999, None),
    ],
    pa.timestamp("us", "UTC"): [
        *(datetime(1970, 1, 1, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)),
        *(
            datetime(2038, 1, 19, 3, 14, 8, tzinfo=UTC),
            253_402_300_800_000_001,
            -62_167_219_200_000_001,
            None,
        ),
    ],
    pa.date32(): [0, -1, 19_000, None],
}
"""Values of each type, which its columns have."""

NAMES = {kind: [f"c{number}_{copy}" for copy in range(2)] for number, kind in enumerate(EDGES)}
ROWS = 64
EXPRESSIONS = 120

Expression = Any


def edge_table(dice: random.Random) -> pa.Table:
    """A table whose rows have values of the edges of all types, in two columns of each."""
    columns = {}
    for kind, values in EDGES.items():
        for name in NAMES[kind]:
            drawn = [*values, *dice.choices(values, k=ROWS - len(values))]
            dice.shuffle(drawn)
            numbers = pa.int64() if pa.types.is_timestamp(kind) else kind
            given = [
                pa.scalar(each, kind if isinstance(each, datetime) else numbers).cast(kind) for each in drawn
            ]
            columns[name] = pa.array([None if not each.is_valid else each for each in given], kind)
    return pa.table({"row": pa.array(range(ROWS), pa.int64()), **columns})


class Drawn:
    """Draws expressions of a type."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice

    def of(self, kind: pa.DataType, depth: int) -> Expression:
        if depth == 0 or self.dice.random() < 0.15:
            return self.leaf(kind)
        makers = {
            pa.int64(): self.whole,
            pa.float64(): self.fraction,
            pa.bool_(): self.condition,
            pa.string(): self.text,
        }
        return makers[kind](depth - 1) if kind in makers else self.choice(kind, depth - 1)

    def leaf(self, kind: pa.DataType) -> Expression:
        if self.dice.random() < 0.3:
            values = [
                each for each in EDGES[kind] if not pa.types.is_temporal(kind) or isinstance(each, datetime)
            ]
            if values:
                return pc.scalar(pa.scalar(self.dice.choice(values), kind))
        return pc.field(self.dice.choice(NAMES[kind]))

    def choice(self, kind: pa.DataType, depth: int) -> Expression:
        if self.dice.random() < 0.5:
            return pc.if_else(self.of(pa.bool_(), depth), self.of(kind, depth), self.of(kind, depth))
        return pc.coalesce(self.of(kind, depth), self.of(kind, depth))

    def whole(self, depth: int) -> Expression:
        kind = pa.int64()
        a, b = self.of(kind, depth), self.of(kind, depth)
        n = self.dice.choice([1, 2, 123, 10_000])
        time = self.of(self.dice.choice([pa.timestamp("ms"), pa.timestamp("us", "UTC")]), depth)
        return self.dice.choice(
            [
                *(
                    lambda: a + b,
                    lambda: a - b,
                    lambda: a * b,
                    lambda: pc.add(a, b),
                    lambda: pc.multiply(a, b),
                ),
                *(lambda: pc.subtract(a, b), lambda: pc.divide(a, n), lambda: a / n),
                *(lambda: a - pc.divide(a, n) * n, lambda: self.choice(kind, depth)),
                *(
                    lambda: pc.hour(time),
                    lambda: pc.minute(time),
                    lambda: pc.year(time),
                    lambda: pc.month(time),
                ),
                *(lambda: pc.day(time), lambda: pc.field(NAMES[pa.timestamp("us", "UTC")][0]).cast(kind)),
                *(
                    lambda: pc.field(NAMES[pa.int32()][0]).cast(kind),
                    lambda: self.of(pa.bool_(), depth).cast(kind),
                ),
                *(lambda: pc.utf8_length(self.of(pa.string(), depth)).cast(kind),),
                *(lambda: pc.count_substring(self.of(pa.string(), depth), self.pattern()).cast(kind),),
            ]
        )()

    def fraction(self, depth: int) -> Expression:
        kind = pa.float64()
        a, b, n = self.of(kind, depth), self.of(kind, depth), self.of(pa.int64(), depth)
        return self.dice.choice(
            [
                *(
                    lambda: a + b,
                    lambda: pc.subtract(a, b),
                    lambda: a * b,
                    lambda: pc.multiply(n, 0.908),
                    lambda: n * 1.5,
                ),
                *(lambda: n.cast(kind), lambda: pc.divide(a, 3.0), lambda: self.choice(kind, depth)),
                *(lambda: pc.field(NAMES[pa.int32()][1]).cast(kind), lambda: a + n),
            ]
        )()

    def condition(self, depth: int) -> Expression:
        kind = pa.bool_()
        of = self.dice.choice(list(EDGES))
        a, b = self.of(of, depth), self.of(of, depth)
        c, d = self.of(kind, depth), self.of(kind, depth)
        text = self.of(pa.string(), depth)
        members = [each for each in EDGES[of] if each is not None and not isinstance(each, datetime)]
        return self.dice.choice(
            [
                *(
                    lambda: a == b,
                    lambda: a != b,
                    lambda: a < b,
                    lambda: a <= b,
                    lambda: a > b,
                    lambda: a >= b,
                ),
                *(lambda: c & d, lambda: c | d, lambda: ~c, lambda: a.is_null(), lambda: a.is_valid()),
                *(
                    lambda: a.isin(pa.array(members[:3], of)) if members else c,
                    lambda: self.choice(kind, depth),
                ),
                *(lambda: pc.is_nan(self.of(pa.float64(), depth)), lambda: self.of(pa.float64(), depth) > 7),
                *(lambda: pc.starts_with(text, self.pattern()), lambda: pc.ends_with(text, self.pattern())),
                *(lambda: pc.match_substring(text, self.pattern()),),
            ]
        )()

    def text(self, depth: int) -> Expression:
        kind = pa.string()
        a, b = self.of(kind, depth), self.of(kind, depth)
        start = self.dice.randrange(3)
        time = self.of(self.dice.choice([pa.timestamp("ms"), pa.timestamp("us", "UTC")]), depth)
        return self.dice.choice(
            [
                *(
                    lambda: pc.binary_join_element_wise(a, b, self.pattern()),
                    lambda: self.choice(kind, depth),
                ),
                *(
                    lambda: pc.utf8_trim(a, " "),
                    lambda: pc.replace_substring(a, self.pattern(), self.pattern()),
                ),
                *(lambda: pc.utf8_slice_codeunits(a, start, start + self.dice.randrange(3)),),
                *(lambda: pc.list_element(pc.split_pattern(a, self.pattern()), self.dice.randrange(2)),),
                *(
                    lambda: pc.strftime(
                        time, self.dice.choice(["%Y-%m-%d", "%H:%M", "%d.%m.%Y %H", "%Y/%Y"])
                    ),
                ),
                *(
                    lambda: self.of(pa.int64(), depth).cast(kind),
                    lambda: self.of(pa.bool_(), depth).cast(kind),
                ),
            ]
        )()

    def pattern(self) -> str:
        return self.dice.choice(["c", "/", "cc", "a", "ä", ",", "-"])


def in_arrow(table: pa.Table, expression: Expression) -> pa.Array | None:
    """The values of an expression, or None if it fails for a row."""
    (batch,) = table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
    try:
        made, _ = Select((), (("x", expression),)).apply(batch)
    except FlinkcoreError:
        return None
    return made.column(0)


def shown(values: pa.Array) -> list[str]:
    kind = values.type
    if pa.types.is_timestamp(kind):
        values = values.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
    elif pa.types.is_date32(kind):
        values = values.cast(pa.int32())
    return [repr(value) for value in values.to_pylist()]


def differ(others: list[str], expression: Expression, found: pa.ChunkedArray, expected: pa.Array) -> None:
    """Note an expression whose values are not those of Arrow."""
    for at, (one, other) in enumerate(zip(shown(found.combine_chunks()), shown(expected), strict=True)):
        if one != other:
            others.append(f"{expression}: {one} in Spark and {other} in Arrow, of row {at}")
            return


def read_here(scanned: ScannedFiles) -> pa.ChunkedArray:
    """The column `x` of a DataFrame that is read as files, in order of its rows."""
    schema = decoded_schema(scanned.decoding, scanned.files.schema)
    chunks = [decoded_chunk(scanned.decoding, chunk, is_lenient=False) for chunk in scanned.files.chunks(1)]
    batches = [batch for chunk in chunks for batch in chunk.read(["row", "x"], ROWS)]
    return pa.Table.from_batches(batches, pa.schema([schema.field("row"), schema.field("x")])).sort_by("row")[
        "x"
    ]


@pytest.fixture(scope="module")
def utc_spark(spark: Any) -> Iterator[Any]:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    yield spark
    spark.conf.unset("spark.sql.session.timeZone")


@pytest.fixture(params=[True, False], ids=["ansi", "legacy"])
def ansi(request: pytest.FixtureRequest, utc_spark: Any) -> Iterator[bool]:
    utc_spark.conf.set("spark.sql.ansi.enabled", request.param)
    yield request.param
    utc_spark.conf.unset("spark.sql.ansi.enabled")


def test_random_expressions_have_arrows_values_and_errors(utc_spark: Any, ansi: bool, tmp_path: Path) -> None:
    dice = random.Random(f"columns {ansi}")
    table = edge_table(dice)
    pq.write_table(table, tmp_path / "log.parquet")
    log = utc_spark.read.parquet(str(tmp_path / "log.parquet"))
    values = {
        name: SparkValue(F.col(name), kind)
        for name, kind in zip(table.column_names, table.schema.types, strict=True)
    }
    settings, drawn = SessionSettings.of(utc_spark), Drawn(dice)
    assert settings.is_ansi == ansi
    sound, failing, left_to_arrow = [], [], 0
    for _ in range(EXPRESSIONS):
        kind = dice.choice([*EDGES, *(pa.int64(), pa.float64(), pa.bool_(), pa.string()) * 4])
        expression = drawn.of(kind, dice.randrange(1, 4))
        value = spark_value(expression, values, settings)
        if value is None:
            left_to_arrow += 1
        elif (expected := in_arrow(table, expression)) is not None:
            assert value.type == expected.type, expression
            sound.append((expression, value, expected))
        else:
            failing.append((expression, value))
    assert len(sound) > EXPRESSIONS // 3
    assert len(failing) > EXPRESSIONS // 20
    assert left_to_arrow < EXPRESSIONS // 3
    others = []
    for start in range(0, len(sound), 20):
        some = sound[start : start + 20]
        columns = (value.column.alias(f"x{number}") for number, (_, value, _) in enumerate(some))
        found = table_of(log.select("row", *columns)).sort_by("row")
        for number, (expression, _, expected) in enumerate(some):
            differ(others, expression, found.column(f"x{number}"), expected)
    came_back = 0
    for expression, value, expected in sound[::3]:
        # What goes to Spark comes back as what it was, where the table has it in the other direction, too.
        with suppress(NotJustFiles):
            scanned = parquet_files(log.select("row", value.column.alias("x")))
            differ(others, f"back from Spark, {expression}", read_here(scanned), expected)
            came_back += 1
    assert came_back > 5
    for expression, value in dice.sample(failing, 4):
        rows = [at for at in range(ROWS) if in_arrow(table.slice(at, 1), expression) is not None]
        bad = min(set(range(ROWS)) - set(rows))
        expected = in_arrow(table.take(pa.array(rows, pa.int64())), expression)
        good = log.where(F.col("row").isin(rows)).select("row", value.column.alias("x"))
        differ(others, expression, table_of(good).sort_by("row")["x"], expected)
        try:
            log.where(F.col("row") == bad).select(value.column.alias("x")).collect()
        except PySparkException:
            continue
        others.append(f"{expression}: no error in Spark, of row {bad}")
    assert others == []


def log_of(folder: Path, **columns: Any) -> str:
    """The path of a log with event times and arrivals."""
    times = pa.array(
        [datetime(2024, 1, 1, 0, 0, at, tzinfo=UTC) for at in range(6)], pa.timestamp("us", "UTC")
    )
    table = pa.table({"at": times, "came": times, "n": range(6), "text": list("abcdef")})
    for name, values in columns.items():
        table = table.set_column(table.schema.get_field_index(name), name, values)
    pq.write_table(table, folder / "log.parquet")
    return str(folder / "log.parquet")


def stream(spark: Any, log: Any, **settings: Any) -> Any:
    return SparkExecutionEnvironment(spark).from_event_log(log, timestamp="at", arrival="came", **settings)


SPARKS = "to_dataframe() gives columns that Spark computes, without a replay"


def replayed(stream: Any) -> list[dict[str, Any]]:
    """The rows of a replay, in any order, once its DataFrame has the same."""
    rows = stream.execute().to_arrow()
    found = stream.to_dataframe()
    assert found.columns == rows.column_names
    assert sorted(map(str, table_of(found).to_pylist())) == sorted(map(str, rows.to_pylist()))
    return rows.to_pylist()


def test_a_job_without_an_operator_over_files_is_columns_of_spark(utc_spark: Any, tmp_path: Path) -> None:
    log = log_of(tmp_path)
    for data in (log, utc_spark.read.parquet(log), utc_spark.read.parquet(log).repartition(3)):
        numbers = stream(utc_spark, data).filter(pc.field("n") > 1).with_columns(twice=pc.field("n") * 2)
        numbers = numbers.select("twice", "at", shown=pc.strftime(pc.field("at"), "%H:%M"))
        assert SPARKS in numbers.explain()
        plan = numbers.to_dataframe()._jdf.queryExecution().optimizedPlan().toString()
        assert "MapInArrow" not in plan
        assert sorted(row["twice"] for row in replayed(numbers)) == [4, 6, 8, 10]
        both = numbers.union(numbers)
        assert SPARKS in both.explain()
        assert len(replayed(both)) == 8


def test_a_job_that_spark_may_compute_otherwise_is_replayed(utc_spark: Any, tmp_path: Path) -> None:
    log = log_of(tmp_path)
    upper = stream(utc_spark, log).with_columns(text=pc.utf8_upper(pc.field("text")))
    assert (
        "to_dataframe() replays the log, for Spark may give another value of utf8_upper(text)"
        in upper.explain()
    )
    assert {row["text"] for row in replayed(upper)} == set("ABCDEF")
    drawn = stream(utc_spark, utc_spark.read.parquet(log).where("rand() < 0.5"))
    assert (
        "to_dataframe() replays the log, for its DataFrame may have other rows each time" in drawn.explain()
    )
    until = stream(utc_spark, log, until=datetime(2024, 1, 1, 0, 0, 3, tzinfo=UTC))
    assert "to_dataframe() replays the log, for the log is cut at an arrival" in until.explain()
    assert len(replayed(until)) == 3


def test_sums_wrap_as_arrows_do_in_a_session_with_its_defaults(utc_spark: Any, tmp_path: Path) -> None:
    greatest = pa.array([2**31 - 1] * 6, pa.int32())
    log = pq.read_table(log_of(tmp_path)).append_column("greatest", greatest)
    pq.write_table(log, tmp_path / "greatest.parquet")
    sums = stream(utc_spark, str(tmp_path / "greatest.parquet"))
    sums = sums.select("n", sum=pc.add(pc.field("greatest"), pc.field("greatest")))
    assert {row["sum"] for row in sums.to_dataframe().collect()} == {-2}


def test_times_without_a_zone_are_not_formatted_through_another_zone(spark: Any, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        # An hour that clocks of Berlin do not show.
        clock = pa.array([datetime(2024, 3, 31, 2, 30)] * 6, pa.timestamp("us"))
        pq.write_table(
            pq.read_table(log_of(tmp_path)).append_column("clock", clock), tmp_path / "clock.parquet"
        )
        log = stream(spark, str(tmp_path / "clock.parquet"))
        shown = log.select(shown=pc.strftime(pc.field("clock"), "%H:%M"))
        assert {row["shown"] for row in shown.to_dataframe().collect()} == {"02:30"}
    finally:
        spark.conf.unset("spark.sql.session.timeZone")


def test_a_column_that_can_fail_is_not_left_to_spark_before_a_filter(utc_spark: Any, tmp_path: Path) -> None:
    twice = stream(utc_spark, log_of(tmp_path)).with_columns(twice=pc.field("n") + pc.field("n"))
    assert SPARKS in twice.explain()
    kept = twice.filter(pc.field("n") < 3)
    assert "to_dataframe() replays the log, for Spark may filter rows out before" in kept.explain()


def test_files_with_half_floats_are_replayed(utc_spark: Any, tmp_path: Path) -> None:
    half = pa.array([[1.5]] * 6, pa.list_(pa.float16()))
    pq.write_table(pq.read_table(log_of(tmp_path)).append_column("half", half), tmp_path / "half.parquet")
    halves = stream(utc_spark, str(tmp_path / "half.parquet")).select("n", "half")
    assert "to_dataframe() replays the log, for Spark reads no float16" in halves.explain()
    assert [row["half"] for row in halves.to_dataframe().collect()] == [[1.5]] * 6


@pytest.mark.skipif(not hasattr(F, "collate"), reason="Spark 3.5 has no collations")
def test_text_with_a_collation_is_compared_by_its_bytes(utc_spark: Any, tmp_path: Path) -> None:
    log = utc_spark.read.parquet(log_of(tmp_path)).withColumn("text", F.collate("text", "UTF8_LCASE"))
    upper = stream(utc_spark, log).filter(pc.field("text") == "A").select("n")
    assert (
        "to_dataframe() replays the log, for Spark compares text of the log by a collation" in upper.explain()
    )
    assert upper.to_dataframe().count() == 0


@pytest.mark.parametrize(("column", "as_dataframe"), in_turn(["at", "came", "text"], [False, True]))
def test_rows_that_a_replay_refuses_are_an_error_or_left_out(
    utc_spark: Any, tmp_path: Path, column: str, as_dataframe: bool
) -> None:
    times = pa.array([datetime(2024, 1, 1, tzinfo=UTC), *[None] * 5], pa.timestamp("us", "UTC"))
    bad = pa.array(["a", *[None] * 5]) if column == "text" else times
    path = log_of(tmp_path, **{column: bad})
    log = utc_spark.read.parquet(path).repartition(2) if as_dataframe else path
    dropped = stream(utc_spark, log, split="text", on_bad_row="drop").select("n")
    assert SPARKS in dropped.explain()
    assert replayed(dropped) == [{"n": 0}]
    assert replayed(stream(utc_spark, log, split="text", on_bad_row=OutputTag("bad")).select("n")) == [
        {"n": 0}
    ]
    failing = stream(utc_spark, log, split="text").select("n")
    assert SPARKS in failing.explain()
    with pytest.raises(DataError, match="null"):
        failing.execute().to_arrow()
    with pytest.raises(PySparkException, match=f"null .*{column}"):
        failing.to_dataframe().collect()


def test_statistics_of_files_spare_the_search_for_bad_rows(utc_spark: Any, tmp_path: Path) -> None:
    plan = (
        stream(utc_spark, log_of(tmp_path)).select("n").to_dataframe()._jdf.queryExecution().optimizedPlan()
    )
    assert "Filter" not in plan.toString()


def test_numbers_as_times_have_their_bounds(utc_spark: Any, tmp_path: Path) -> None:
    log = log_of(tmp_path, came=pa.array([0, 1, 2, 3, 2**61, 2**61 + 1], pa.int64()))
    numbers = stream(utc_spark, log, on_bad_row="drop").select("n")
    assert SPARKS in numbers.explain()
    assert [row["n"] for row in replayed(numbers)] == [0, 1, 2, 3, 4]


def test_every_function_of_the_table_is_drawn(tmp_path: Path) -> None:
    dice = random.Random(1)
    texts = " ".join(str(Drawn(dice).of(kind, 3)) for kind in list(EDGES) * 300)
    shown_as = {"add_checked", "subtract_checked", "multiply_checked", "divide_checked"}
    symbols = {
        "equal": "==",
        "not_equal": "!=",
        "less": "<",
        "less_equal": "<=",
        "greater": ">",
        "greater_equal": ">=",
    }
    symbols |= {"and_kleene": " and ", "or_kleene": " or ", "invert": "invert("}
    for name in ARROW_FUNCTIONS:
        assert symbols.get(name, f"{name}(") in texts or name in shown_as, name
