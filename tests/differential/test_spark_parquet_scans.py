"""DataFrames that are Parquet files: read as such where that gives the rows of Spark, and left to it otherwise."""

import random
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from equipment.spark_sessions import spark_session

pytest.importorskip("pyspark")

from pyspark.sql import functions as F

from flinkcore.errors import DataError
from flinkcore.log.decoding.decoded_chunk import decoded_chunk, decoded_schema
from flinkcore.spark.elements.job_sources import collected_rows
from flinkcore.spark.logs.parquet_scan import ScannedFiles, parquet_files
from flinkcore.spark.logs.plan_nodes import NotJustFiles


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with spark_session("local[2]") as session:
        session.sql(f"CREATE DATABASE scans LOCATION '{tmp_path_factory.mktemp('scans').as_uri()}'")
        session.sql("USE scans")
        yield session
        session.sql("DROP DATABASE scans CASCADE")


def rows_of(scanned: ScannedFiles) -> pa.Table:
    schema = decoded_schema(scanned.decoding, scanned.files.schema)
    chunks = [decoded_chunk(scanned.decoding, chunk, is_lenient=False) for chunk in scanned.files.chunks(3)]
    batches = [batch for chunk in chunks for batch in chunk.read(schema.names, 1 << 17)]
    return pa.Table.from_batches(batches, schema)


def content(table: pa.Table) -> list[str]:
    numbers = [
        column.cast(pa.int32() if column.type == pa.date32() else pa.int64())
        if pa.types.is_temporal(column.type)
        else column
        for column in table.columns  # Python has no times of all years
    ]
    return sorted(map(repr, pa.table(dict(zip(table.column_names, numbers, strict=True))).to_pylist()))


def assert_read_alike(dataframe: Any, least_rows: int = 1) -> ScannedFiles:
    """Assert that Arrow reads from the files the columns, types and rows that Spark gives."""
    scanned = parquet_files(dataframe)
    expected = collected_rows(dataframe)
    found = rows_of(scanned)
    assert found.schema == expected.schema
    assert content(found) == content(expected)
    assert found.num_rows >= least_rows
    return scanned


def reason(dataframe: Any) -> str:
    """Why a DataFrame is left to Spark."""
    with pytest.raises(NotJustFiles) as refused:
        parquet_files(dataframe)
    return str(refused.value)


UTC = timezone.utc
FIRST, LAST = datetime(1, 1, 3, tzinfo=UTC), datetime(9999, 12, 30, 23, 59, 59, 999999, UTC)


def all_types() -> pa.Table:
    """Every type of single values, with the least, the greatest, and null."""
    instants = pa.timestamp("us", "UTC")
    return pa.table(
        {
            "n": pa.array([1, 2, 3, 4], pa.int64()),
            "flag": [True, False, None, True],
            "i8": pa.array([-128, 127, None, 0], pa.int8()),
            "i16": pa.array([-(2**15), 2**15 - 1, None, 0], pa.int16()),
            "i32": pa.array([-(2**31), 2**31 - 1, None, 0], pa.int32()),
            "i64": pa.array([-(2**63), 2**63 - 1, None, 0], pa.int64()),
            "f32": pa.array([float("nan"), float("-inf"), None, -0.0], pa.float32()),
            "f64": pa.array([float("nan"), 5e-324, None, -0.0], pa.float64()),
            "text": ["", "ä\u0000\U0001f600", None, "x" * 1000],
            "bytes": [b"", b"\x00\xff", None, b"x"],
            "day": pa.array([FIRST.date(), LAST.date(), None, date(1969, 12, 31)], pa.date32()),
            "at": pa.array([FIRST, LAST, None, datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)], instants),
            "local": pa.array(
                [FIRST.replace(tzinfo=None), LAST.replace(tzinfo=None), None, None], pa.timestamp("us")
            ),
            "d5": pa.array(
                [Decimal("-999.99"), Decimal("999.99"), None, Decimal("0.01")], pa.decimal128(5, 2)
            ),
            "d18": pa.array([Decimal(10**17), Decimal("0.1"), None, None], pa.decimal128(19, 1)),
            "d38": pa.array([Decimal(10**37), Decimal(-1), None, None], pa.decimal128(38, 0)),
            "struct": [{"a": 1, "b": "x"}, {"a": None, "b": None}, None, {"a": 2, "b": ""}],
            "list": [[1, None], [], None, [2]],
            "map": pa.array([[("a", 1)], [], None, [("b", None)]], pa.map_(pa.string(), pa.int64())),
            "deep": [[{"x": [1]}], [None], None, [{"x": None}]],
        }
    )


CORRECTED = {
    f"spark.sql.parquet.{kind}RebaseModeIn{way}": "CORRECTED"
    for kind in ("datetime", "int96")
    for way in ("Read", "Write")
}


@contextmanager
def settings(spark: Any, values: Mapping[str, str]) -> Iterator[None]:
    for name, value in values.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in values:
            spark.conf.unset(name)


@pytest.mark.parametrize("timestamps", ["INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"])
def test_values_of_all_types_that_spark_has_written(spark: Any, tmp_path: Path, timestamps: str) -> None:
    pq.write_table(all_types(), tmp_path / "log.parquet")
    with settings(spark, {**CORRECTED, "spark.sql.parquet.outputTimestampType": timestamps}):
        spark.read.parquet(str(tmp_path / "log.parquet")).write.parquet(str(tmp_path / "log"))
    assert_read_alike(spark.read.parquet(str(tmp_path / "log")), 4)


@pytest.mark.parametrize("int96", [False, True])
def test_values_of_all_types_that_others_have_written(spark: Any, tmp_path: Path, int96: bool) -> None:
    table = all_types()
    if int96:  # which says of no time that it is a local one
        table = table.drop(["local"])
    text = table.schema.get_field_index("text")
    for number, kind in enumerate([pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]):
        written = table.set_column(text, "text", table["text"].cast(kind))
        pq.write_table(written, tmp_path / f"{number}.parquet", use_deprecated_int96_timestamps=int96)
    with settings(spark, CORRECTED):
        assert_read_alike(spark.read.parquet(str(tmp_path)), 12)


def test_partitions_have_the_types_that_spark_gives_them(spark: Any, tmp_path: Path) -> None:
    values: dict[str, list[Any]] = {
        "n": [1, -7, None],
        "big": [2**40, 1, None],
        "text": ["a b/=%", "ä", None],
        "day": [date(2001, 2, 3), date(1969, 1, 1), None],
        "at": [datetime(2001, 2, 3, 4, 5, 6), datetime(1969, 1, 1), None],
        "share": [Decimal("1.5"), Decimal("2.25"), None],
        "padded": ["007", "1e3", None],
    }
    rows = [(i, *(column[i % 3] for column in values.values())) for i in range(6)]
    log = spark.createDataFrame(
        rows,
        "id long, n int, big long, text string, day date, at timestamp, share decimal(5,2), padded string",
    )
    log.write.partitionBy(*values).parquet(str(tmp_path / "log"))
    with settings(spark, {"spark.sql.sources.partitionColumnTypeInference.enabled": "false"}):
        assert_read_alike(spark.read.parquet(str(tmp_path / "log")), 6)
    inferred = spark.read.parquet(str(tmp_path / "log"))
    assert_read_alike(inferred, 6)
    assert_read_alike(spark.read.schema(log.schema).parquet(str(tmp_path / "log")), 6)
    assert_read_alike(inferred.select("day", F.col("id").alias("at"), F.col("at").alias("text")), 6)
    few = assert_read_alike(inferred.filter("n = 1 and id >= 3"))
    files = few.files.files
    assert len(files) == len({file.path for file in files if "n=1/" in file.path})
    assert reason(inferred.select("n", "day")) == "the job reads none of the columns that lie in the files"


def test_tables_and_views_of_the_catalog(spark: Any) -> None:
    log = spark.range(200).selectExpr(
        "id", "id % 4 AS part", "concat('u', id % 7) AS user", "id / 8 AS share"
    )
    log.write.partitionBy("part").saveAsTable("rides")
    log.write.bucketBy(3, "user").sortBy("id").saveAsTable("rides_in_buckets")
    spark.sql("CREATE VIEW far_rides AS SELECT id AS ride, part FROM rides WHERE share > 5 AND part <> 2")
    try:
        assert len(assert_read_alike(spark.table("rides"), 200).files.files) >= 4
        assert {
            dict(file.partition)["part"]
            for file in parquet_files(spark.table("rides").where("part = 3")).files.files
        } == {3}
        assert_read_alike(spark.table("rides_in_buckets").where("user = 'u3'"), 20)
        assert_read_alike(spark.table("far_rides").where("ride < 100"), 10)
        spark.sql("ALTER TABLE rides ADD COLUMN late STRING")
        spark.sql("INSERT INTO rides VALUES (1000, 'u9', 1.5, 'x', 3)")
        assert assert_read_alike(spark.table("rides"), 201).files.schema.names == [
            "id",
            "user",
            "share",
            "late",
            "part",
        ]
        spark.sql("CREATE TABLE fares (n LONG, fare DECIMAL(5, 2) DEFAULT 7.5, kind CHAR(3)) USING parquet")
        spark.sql("INSERT INTO fares VALUES (1, 2.5, 'a')")
        assert (
            reason(spark.table("fares").select("fare")) == "column 'fare' has a default value in older files"
        )
        spark.sql("ALTER TABLE fares ADD COLUMN tip LONG DEFAULT 3")
        assert_read_alike(spark.table("fares").select("n"))
        assert (
            reason(spark.table("fares").select("n", "tip"))
            == "column 'tip' has a default value in older files"
        )
        assert re.match(
            r"(Spark computes the )?column 'kind'", reason(spark.table("fares").select("n", "kind"))
        )
    finally:
        for kind, name in (
            ("VIEW", "far_rides"),
            ("TABLE", "rides"),
            ("TABLE", "rides_in_buckets"),
            ("TABLE", "fares"),
        ):
            spark.sql(f"DROP {kind} IF EXISTS {name}")


def test_schemas_that_have_changed(spark: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"Ended": [1, 2], "user": ["a", None]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"ended": [3], "fare": [1.5]}), tmp_path / "b.parquet")
    log = spark.read.option("mergeSchema", True).parquet(str(tmp_path))
    assert_read_alike(log, 3)
    assert_read_alike(
        spark.read.schema("ENDED long, nowhere struct<a: int>, fare double").parquet(str(tmp_path)), 3
    )
    assert_read_alike(log.where("fare is null").select("ended"), 2)
    assert_read_alike(log.where("not fare > 2").select("ended"), 1)
    with settings(spark, {"spark.sql.caseSensitive": "true"}):
        exact = spark.read.schema("ended long, fare double").parquet(str(tmp_path))
        assert content(rows_of(assert_read_alike(exact, 3)))[-1] == "{'ended': None, 'fare': None}"
        pq.write_table(pa.table({"fare": [1.0], "Fare": [2.0]}), tmp_path / "c.parquet")
        assert_read_alike(spark.read.schema("Fare double").parquet(str(tmp_path)), 4)
    both = spark.read.schema("fare double").parquet(str(tmp_path))
    assert re.match(
        r"several columns of .*c\.parquet are column 'fare' of the table: fare, Fare", reason(both)
    )


def test_columns_that_change_their_names_and_conditions_on_others(spark: Any, tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"a": [1, 2, 3], "b": [30, 20, 10], "c": ["x", "y", "x"]}), tmp_path / "a.parquet"
    )
    log = spark.read.parquet(str(tmp_path))
    swapped = log.where("b > 10").selectExpr("a AS b", "b AS a", "7 AS c", "b AS again")
    few = assert_read_alike(swapped.where("a < 30").where("b > 0"))
    assert content(rows_of(few)) == ["{'b': 2, 'a': 20, 'c': 7, 'again': 20}"]
    assert_read_alike(
        log.where("c = 'x'").select(F.col("b").alias("c"), F.lit(None).cast("date").alias("day")), 2
    )
    assert_read_alike(log.where("c = 'z'").select("a"), 0)
    assert_read_alike(
        log.hint("broadcast").alias("l").select("l.a", "l.c").dropDuplicates(["c"]) if False else log, 3
    )


CASES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a sort": (lambda log: log.orderBy("n"), "its plan has the step Sort"),
    "a limit": (lambda log: log.limit(2), "its plan has the step GlobalLimit"),
    "a sample": (lambda log: log.sample(0.5, seed=4), "its plan has the step Sample"),
    "a repartition": (lambda log: log.repartition(3), "its plan has the step Repartition"),
    "a join": (lambda log: log.join(log.select("n"), "n"), "its plan has the step Join"),
    "distinct rows": (lambda log: log.select("n").distinct(), "its plan has the step Aggregate"),
    "a union": (lambda log: log.union(log), "its plan has the step Union"),
    "a column of text in capitals": (
        lambda log: log.withColumn("m", F.upper("text")),
        "Spark computes the column 'm': upper(text)",
    ),
    "a column that some rows alone may compute": (
        lambda log: log.withColumn("m", F.when(F.col("n") < 3, F.col("n") * 2).otherwise(0)),
        "Spark computes the column 'm': CASE WHEN",
    ),
    "a function in Python": (
        lambda log: log.withColumn("n", F.udf(lambda n: n, "long")("n")),
        "EvalPython",
    ),
    "random rows": (
        lambda log: log.where(F.rand(3) < 0.5),
        "Spark alone evaluates the condition (rand(3L) < 0.5D)",
    ),
    "a computed condition": (
        lambda log: log.where("upper(text) = 'A'"),
        "Spark alone evaluates the condition (upper(text) = 'A')",
    ),
    "a condition that may fail": (
        lambda log: log.where("n + 1 = 2"),
        "Spark alone evaluates the condition ((n + 1L) = 2L)",
    ),
    "metadata": (
        lambda log: log.select("n", "_metadata"),
        "Spark computes the column '_metadata': it is metadata of the files",
    ),
    "several of one name": (lambda log: log.select("n", "n"), "it has several columns of one name"),
    "a whole number of another type": (
        lambda log: log.sparkSession.read.schema("n int").parquet(*log.inputFiles()),
        "column 'n' is int32 in the table but int64 in",
    ),
    "an option": (
        lambda log: log.sparkSession.read.option("ignoreMissingFiles", True).parquet(*log.inputFiles()),
        "the files are read with the option ignoremissingfiles",
    ),
    "text": (
        lambda log: log.sparkSession.read.text(log.inputFiles()[0]),
        "it is not read from Parquet files",
    ),
    "rows in memory": (lambda log: log.sparkSession.range(3), "its plan has the step Range"),
}


@pytest.fixture(scope="module")
def log_of_all_types(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("types")
    pq.write_table(all_types(), folder / "log.parquet")
    return folder


@pytest.mark.parametrize("case", CASES)
def test_what_is_more_than_files_is_left_to_spark(spark: Any, log_of_all_types: Path, case: str) -> None:
    change, expected = CASES[case]
    assert expected in reason(change(spark.read.parquet(str(log_of_all_types))))


@pytest.mark.parametrize(
    "setting",
    [
        "spark.sql.files.ignoreCorruptFiles",
        "spark.sql.files.ignoreMissingFiles",
        "spark.sql.parquet.fieldId.read.enabled",
        "spark.sql.parquet.int96TimestampConversion",
    ],
)
def test_settings_that_change_what_spark_reads(spark: Any, log_of_all_types: Path, setting: str) -> None:
    log = spark.read.parquet(str(log_of_all_types)).select("n")
    with settings(spark, {setting: "true"}):
        assert reason(log) == f"{setting} is set"
    assert_read_alike(log, 4)


def test_rows_that_spark_keeps_are_not_read_from_files_again(spark: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1]}), tmp_path / "a.parquet")
    log = spark.read.parquet(str(tmp_path)).select("n")
    assert_read_alike(log)
    log.persist()
    try:
        assert (
            reason(spark.read.parquet(str(tmp_path)).select("n")) == "its plan has the step InMemoryRelation"
        )
    finally:
        log.unpersist()


@pytest.mark.parametrize("timestamps", ["INT96", "TIMESTAMP_MICROS"])
def test_days_and_times_of_the_old_calendar_are_left_to_spark(
    spark: Any, tmp_path: Path, timestamps: str
) -> None:
    legacy = {
        "spark.sql.parquet.outputTimestampType": timestamps,
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
    }
    with settings(spark, legacy):
        old = spark.sql("SELECT 1L AS n, DATE '1500-01-01' AS day, TIMESTAMP '1500-01-01 00:00:00' AS at")
        old.write.parquet(str(tmp_path / "log"))
    log = spark.read.parquet(str(tmp_path / "log"))
    for column in ("day", "at"):
        assert "may be of the calendar before 1582" in reason(log.select("n", column))
    assert_read_alike(log.select("n"))


@pytest.mark.parametrize("mode", ["EXCEPTION", "LEGACY", "CORRECTED"])
def test_files_that_do_not_tell_their_calendar(spark: Any, tmp_path: Path, mode: str) -> None:
    def written(name: str, year: int, **options: Any) -> Any:
        table = pa.table(
            {"day": [date(year, 1, 1)], "at": pa.array([datetime(year, 1, 1)], pa.timestamp("us", "UTC"))}
        )
        pq.write_table(table, tmp_path / name, **options)
        return (
            spark.read.option("datetimeRebaseMode", mode)
            .option("int96RebaseMode", mode)
            .parquet(str(tmp_path / name))
        )

    young, old = written("young.parquet", 2001), written("old.parquet", 1500)
    unknown = written("unknown.parquet", 2001, write_statistics=False)
    int96 = written("int96.parquet", 2001, use_deprecated_int96_timestamps=True)
    if mode == "CORRECTED":
        for log in (young, old, unknown, int96):
            assert_read_alike(log)
        return
    refused = [old, unknown, int96.select("at")] + ([] if mode == "EXCEPTION" else [young])
    for log in refused:
        assert "may be of the calendar before 1582" in reason(log)
    if mode == "EXCEPTION":
        assert_read_alike(young)
        assert_read_alike(int96.select("day"))


def test_files_whose_columns_mean_something_else_to_spark(spark: Any, tmp_path: Path) -> None:
    nested = pa.table({"list": [[1, 2]], "a.b": [1], "big": pa.array([1], pa.uint64())})
    pq.write_table(nested, tmp_path / "a.parquet", use_compliant_nested_type=True)
    log = spark.read.parquet(str(tmp_path / "a.parquet"))
    assert_read_alike(log.select("list"))
    assert "is uint64, which Spark makes decimal128(20, 0)" in reason(log.select("big"))
    assert "is named like a part of another" in reason(log.select("`a.b`"))
    pq.write_table(pa.table({"n": pa.array([1], pa.timestamp("ns"))}), tmp_path / "ns.parquet")
    assert reason(spark.read.schema("n timestamp_ntz").parquet(str(tmp_path / "ns.parquet")))
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-20])
    assert "cannot be read" in reason(
        spark.read.schema("list array<long>").parquet(str(tmp_path / "cut.parquet"))
    )
    (tmp_path / "a.parquet").unlink()
    assert "is not there any more" in reason(log.select("list"))


def random_condition(dealt: random.Random, depth: int = 3) -> str:
    if depth and dealt.random() < 0.6:
        parts = [random_condition(dealt, depth - 1) for _ in range(2)]
        return dealt.choice(
            [f"({parts[0]} AND {parts[1]})", f"({parts[0]} OR {parts[1]})", f"NOT {parts[0]}"]
        )
    column, values = dealt.choice(
        [
            ("n", ["0", "3", "-2", "5000000000"]),
            ("small", ["0S", "3S", "-2S"]),
            ("share", ["0D", "-0D", "1.5D", "DOUBLE('inf')"]),
            ("text", ["''", "'b'", "'ab'", "'é'"]),
            ("at", ["TIMESTAMP '1970-01-01 00:00:02Z'", "TIMESTAMP '1969-12-31 23:59:59.5Z'"]),
            ("day", ["DATE '1970-01-03'", "DATE '1969-12-30'"]),
            ("fare", ["0.50BD", "1.00BD", "-1.50BD"]),
            ("part", ["0", "2"]),
        ]
    )
    kind = dealt.randrange(7)
    value = dealt.choice(values)
    if kind == 0:
        return f"{column} IS {dealt.choice(['', 'NOT '])}NULL"
    if kind == 1:
        return f"{column} IN ({', '.join(dealt.sample(values, 2))})"
    if kind == 2:
        return f"{column} <=> {value}"
    if kind == 3 and column == "text":
        return f"text LIKE {dealt.choice([repr('a%'), repr('%b'), repr('%a%')])}"
    if kind == 4:
        return dealt.choice(["flag", "flag = true", "flag <=> false"])
    return f"{column} {dealt.choice(['=', '<', '<=', '>', '>=', '<>'])} {value}"


def test_conditions_are_true_of_the_rows_of_which_they_are_to_spark(spark: Any, tmp_path: Path) -> None:
    dealt = random.Random(7)

    def some(*values: Any) -> list[Any]:
        return [dealt.choice([None, *values]) for _ in range(300)]

    zero = datetime(1970, 1, 1, tzinfo=UTC)
    table = pa.table(
        {
            "id": range(300),
            "n": pa.array(some(0, 3, -2, 7, 5_000_000_000), pa.int64()),
            "small": pa.array(some(0, 3, -2, 7), pa.int16()),
            "share": pa.array(
                some(0.0, -0.0, 1.5, 2.5, float("nan"), float("inf"), float("-inf")), pa.float64()
            ),
            "text": some("", "a", "b", "ab", "ba", "é", "z"),
            "flag": some(True, False),
            "at": pa.array(
                some(*(zero + timedelta(seconds=s) for s in (-1, -0.5, 0, 2, 3))), pa.timestamp("us", "UTC")
            ),
            "day": pa.array(
                some(*(date(1970, 1, 1) + timedelta(days=d) for d in (-2, 0, 2, 3))), pa.date32()
            ),
            "fare": pa.array(some(*map(Decimal, ("0.50", "1.00", "-1.50", "7.25"))), pa.decimal128(5, 2)),
        }
    ).sort_by("n")
    for part in range(3):
        (tmp_path / f"part={part}").mkdir()
        pq.write_table(
            table.slice(part * 100, 100), tmp_path / f"part={part}" / "a.parquet", row_group_size=25
        )
    log = spark.read.parquet(str(tmp_path))
    conditions = [random_condition(dealt) for _ in range(60)]
    chosen = [F.collect_list(F.when(F.expr(condition), F.col("id"))) for condition in conditions]
    expected = log.select(*(each.alias(f"c{number}") for number, each in enumerate(chosen))).collect()[0]
    left_to_spark = 0
    for number, condition in enumerate(conditions):
        try:
            files = parquet_files(log.where(condition).select("id"))
        except NotJustFiles:
            left_to_spark += 1
            continue
        assert sorted(rows_of(files)["id"].to_pylist()) == sorted(expected[number]), condition
    assert left_to_spark < 12


NUMBERS = [
    "n + 1",
    "n * 2 - i",
    "-n",
    "abs(n)",
    "abs(x)",
    "i - small",
    "x * 2 + y",
    "x / 2",
    "n % 7",
    "i % 7",
    "pmod(n, 7)",
    "n div 10",
    "n & 255",
    "n | i",
    "n ^ 3",
    "greatest(n, i, 0)",
    "least(n, i)",
    "cast(small AS bigint)",
    "cast(n AS double)",
    "cast(i AS float)",
    "cast(f AS double)",
    "cast(flag AS int)",
    "isnan(x)",
]
CHOICES = [
    "coalesce(n, i, 0)",
    "coalesce(text, 'none')",
    "nullif(n, 0)",
    "if(n > 1, text, 'z')",
    "case when n > 1 then 'much' when n > 0 then 'little' end",
    "case when flag then 1 else 2 end",
    "n > 1 or text = 'ab'",
    "text like 'a%'",
    "n is null",
    "n in (0, 1, 7)",
]
TEXTS = [
    "concat(text, '-', cast(n as string))",
    "text || text",
    "length(text)",
    "substring(text, 2, 3)",
    "substring(text, 0, 2)",
    "left(text, 2)",
    "trim(text)",
    "replace(text, 'a', 'bb')",
    "cast(flag as string)",
    "s.a",
    "s.t",
    "deep.s.a",
]
TIMES = [
    "unix_millis(at)",
    "unix_seconds(at)",
    "unix_micros(at)",
    "cast(at as long)",
    "cast(at as double)",
    "cast(n as timestamp)",
    "timestamp_micros(n)",
    "timestamp_millis(i)",
    "timestamp_seconds(i)",
    "date_trunc('HOUR', at)",
    "date_trunc('DAY', local)",
    "to_date(at)",
    "cast(local as date)",
    "hour(at)",
    "minute(at)",
    "second(at)",
    "year(at)",
    "month(at)",
    "dayofmonth(day)",
    "year(day)",
    "cast(at as timestamp_ntz)",
]


@pytest.fixture(scope="module")
def log_of_edges(tmp_path_factory: pytest.TempPathFactory) -> Path:
    dealt = random.Random(11)

    def some(*values: Any) -> list[Any]:
        return [dealt.choice([None, *values]) for _ in range(400)]

    zero = datetime(1970, 1, 1, tzinfo=UTC)
    instants = [
        FIRST,
        LAST,
        zero,
        zero - timedelta(microseconds=1),
        zero - timedelta(hours=1, microseconds=-1),
        datetime(2024, 2, 29, 23, 59, 59, 999999, UTC),
    ]
    whole = 0, 1, -1, 7, -7, 10, -10
    floats = 0.0, -0.0, 1.5, -2.5, float("nan"), float("inf"), float("-inf"), 5e-324
    texts = "", " ", "a", "ab", "aba", " a b ", "\ta\t", "é", "e\u0301", "\U0001f600a", "a" * 20
    structs = {"a": 1, "t": "x"}, {"a": None, "t": "a"}
    table = pa.table(
        {
            "id": range(400),
            "n": pa.array(some(*whole, 2**53 + 1, 2**62, -(2**62) - 1), pa.int64()),
            "big": pa.array(some(*whole, 2**63 - 1, -(2**63)), pa.int64()),
            "i": pa.array(some(*whole, 2**24 + 1, 2**30), pa.int32()),
            "small": pa.array(some(*whole, 2**15 - 1, -(2**15)), pa.int16()),
            "x": pa.array(some(*floats), pa.float64()),
            "y": pa.array(some(*floats), pa.float64()),
            "f": pa.array(some(*floats[:-1], 0.1), pa.float32()),
            "flag": some(True, False),
            "text": some(*texts),
            "at": pa.array(some(*instants), pa.timestamp("us", "UTC")),
            "local": pa.array(some(*(each.replace(tzinfo=None) for each in instants)), pa.timestamp("us")),
            "day": pa.array(some(*(each.date() for each in instants)), pa.date32()),
            "s": some(*structs),
            "deep": some(*({"s": each} for each in structs), {"s": None}),
        }
    )
    folder = tmp_path_factory.mktemp("edges")
    for part in range(2):
        pq.write_table(table.slice(part * 200, 200), folder / f"{part}.parquet", row_group_size=64)
    return folder


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize(
    "expressions", [NUMBERS, CHOICES, TEXTS, TIMES], ids=["numbers", "choices", "texts", "times"]
)
def test_computed_columns_have_the_values_that_spark_gives(
    spark: Any, log_of_edges: Path, expressions: list[str], ansi: str
) -> None:
    modes = {**CORRECTED, "spark.sql.ansi.enabled": ansi, "spark.sql.session.timeZone": "UTC"}
    with settings(spark, modes):
        log = spark.read.parquet(str(log_of_edges))
        if ansi == "true" and expressions is NUMBERS:
            log = log.where("n < 1000 and n > -1000")
        columns = [f"{expression} AS c{number}" for number, expression in enumerate(expressions)]
        assert_read_alike(log.selectExpr("id", *columns), 50)
        assert_read_alike(log.selectExpr("id AS n", "n AS id", *columns[:3]), 50)


def test_whole_numbers_wrap_where_spark_wraps_them(spark: Any, log_of_edges: Path) -> None:
    with settings(spark, {"spark.sql.ansi.enabled": "false"}):
        log = spark.read.parquet(str(log_of_edges))
        assert_read_alike(
            log.selectExpr("id", "big * 3 AS a", "-big AS b", "abs(big) AS c", "small + 1S AS d")
        )
        assert_read_alike(log.where("big * 3 > 5 AND pmod(big, 7) < 3").select("id"))


def test_a_number_that_overflows_is_an_error_as_it_is_to_spark(spark: Any, log_of_edges: Path) -> None:
    with settings(spark, {"spark.sql.ansi.enabled": "true"}):
        scanned = parquet_files(spark.read.parquet(str(log_of_edges)).selectExpr("id", "big + 1 AS more"))
        with pytest.raises(
            DataError, match=r"more add_checked.*overflow in the row .*big = 9223372036854775807"
        ):
            rows_of(scanned)


def test_times_on_a_clock_outside_utc_are_left_to_spark(spark: Any, log_of_edges: Path) -> None:
    with settings(spark, {**CORRECTED, "spark.sql.session.timeZone": "Europe/Berlin"}):
        log = spark.read.parquet(str(log_of_edges))
        for expression in ("hour(at)", "to_date(at)", "date_trunc('HOUR', at)"):
            assert "Spark computes the column 'c'" in reason(log.selectExpr("id", f"{expression} AS c"))
