"""Queries of tables from expressions are those of SQL text: both give the same changes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from zipfile import ZipFile

import pyarrow as pa
import pytest

from flinkcore.common import Row
from flinkcore.errors import SqlError
from flinkcore.sql.planner.flink_process import FlinkLibraries
from flinkcore.table import DataTypes, StreamTableEnvironment, Table, expressions
from flinkcore.table.calls import java_name
from flinkcore.table.expression import METHODS, PROPERTIES
from flinkcore.table.expressions import (
    CURRENT_ROW,
    UNBOUNDED_RANGE,
    UNBOUNDED_ROW,
    and_,
    call_sql,
    col,
    concat,
    if_then_else,
    lit,
    null_of,
    row_interval,
    with_columns,
)
from flinkcore.table.udf import AggregateFunction, udaf, udf, udtf
from flinkcore.table.window import Over, Session, Slide, Tumble
from flinkcore.table_api.stream_tables import quoted

ROWS = [
    (1, "ada", 2.5, "a b", 1_000),
    (2, "bob", None, "b", 2_500),
    (3, "ada", -1.0, "", 2_000),
    (4, "eve", 4.0, "c d e", 9_000),
    (5, "ada", 7.25, "f", 12_000),
]


@udf(result_type=DataTypes.BIGINT())
def doubled(value: int) -> int:
    return 2 * value


@udtf(result_types=[DataTypes.STRING()])
def words_of(text: str) -> Any:
    yield from text.split()


@udf(
    result_type=DataTypes.ROW(
        [DataTypes.FIELD("id", DataTypes.BIGINT()), DataTypes.FIELD("n", DataTypes.BIGINT())]
    )
)
def sizes(row: Row) -> Row:
    return Row(row.id, len(row.words))


class CountAndSum(AggregateFunction):
    def create_accumulator(self) -> list[int]:
        return [0, 0]

    def accumulate(self, accumulator: list[int], *args: Any) -> None:
        accumulator[0] += 1
        accumulator[1] += args[0].id

    def retract(self, accumulator: list[int], *args: Any) -> None:
        accumulator[0] -= 1
        accumulator[1] -= args[0].id

    def get_value(self, accumulator: list[int]) -> Row:
        return Row(*accumulator)

    def get_result_type(self) -> str:
        return "ROW<n BIGINT, total BIGINT>"


@pytest.fixture(scope="module")
def tables() -> StreamTableEnvironment:
    t_env = StreamTableEnvironment.create()
    t_env.create_temporary_view("clicks", t_env.from_elements(ROWS, ["id", "name", "price", "words", "ms"]))
    t_env.execute_sql(
        "CREATE TABLE timed (id BIGINT, name STRING, price DOUBLE, ts TIMESTAMP(3), "
        "WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'filesystem')"
    )
    start = datetime(2026, 1, 5)
    columns = list(zip(*ROWS, strict=True))
    t_env.replace_table(
        "timed",
        pa.table(
            {
                "id": columns[0],
                "name": columns[1],
                "price": columns[2],
                "ts": pa.array([start + timedelta(milliseconds=ms) for ms in columns[4]], pa.timestamp("ms")),
            }
        ),
    )
    t_env.create_temporary_system_function("doubled", doubled)
    t_env.create_temporary_system_function("words_of", words_of)
    return t_env


def changes(table: Table) -> list[tuple[str, list[Any]]]:
    with table.execute().collect() as rows:
        return [(str(row.get_row_kind()), list(row)) for row in rows]


QUERIES: list[tuple[Callable[[Table], Table], str]] = [
    (
        lambda t: t.select(
            col("id"),
            (t.price * 2 + 1).alias("p"),
            -col("id"),
            10 - col("id"),
            abs(col("price")),
            col("id") % 2,
            concat(col("name"), "-", col("words")),
            col("name").upper_case.substring(1, 2),
        ),
        "SELECT id, price * 2 + 1, -id, 10 - id, ABS(price), MOD(id, 2), CONCAT(name, '-', words), "
        "SUBSTRING(UPPER(name), 1, 2) FROM clicks",
    ),
    (
        lambda t: t.filter((col("price") > 0) & ~col("name").like("e%") | col("price").is_null).select(
            col("id")
        ),
        "SELECT id FROM clicks WHERE (price > 0 AND name NOT LIKE 'e%') OR price IS NULL",
    ),
    (
        lambda t: t.where(and_(col("id").in_(1, 2, 5), col("id") != 2)).select(with_columns(1, 2)),
        "SELECT id, name FROM clicks WHERE id IN (1, 2, 5) AND id <> 2",
    ),
    (
        lambda t: t.select(
            if_then_else(col("price").is_null, lit(0), col("price").cast(DataTypes.INT())).alias("p"),
            null_of(DataTypes.STRING()).alias("nothing"),
            call_sql("CHAR_LENGTH(words)"),
            lit("2026-01-05").to_date.alias("day"),
            col("id").between(2, 3),
        ),
        "SELECT IF(price IS NULL, 0, CAST(price AS INT)), CAST(NULL AS STRING), CHAR_LENGTH(words), DATE '2026-01-05', "
        "id BETWEEN 2 AND 3 FROM clicks",
    ),
    (
        lambda t: t.group_by(col("name")).select(
            col("name"), lit(1).count, col("price").sum, col("price").max, col("words").count.distinct
        ),
        "SELECT name, COUNT(1), SUM(price), MAX(price), COUNT(DISTINCT words) FROM clicks GROUP BY name",
    ),
    (
        lambda t: (
            t.add_columns((col("id") + 1).alias("next"))
            .rename_columns(col("name").alias("who"))
            .drop_columns(col("words"), col("ms"))
            .add_or_replace_columns((col("price") + 1).alias("price"))
        ),
        "SELECT id, name, price + 1, id + 1 FROM clicks",
    ),
    (lambda t: t.select(doubled(col("id"))).distinct(), "SELECT DISTINCT doubled(id) FROM clicks"),
    (
        lambda t: t.join_lateral(words_of(col("words")).alias("word")).select(col("id"), col("word")),
        "SELECT id, word FROM clicks, LATERAL TABLE(words_of(words)) AS t(word)",
    ),
    (
        lambda t: t.left_outer_join_lateral(words_of(col("words")).alias("word")).select(
            col("id"), col("word")
        ),
        "SELECT id, word FROM clicks LEFT JOIN LATERAL TABLE(words_of(words)) AS t(word) ON TRUE",
    ),
    (lambda t: t.map(sizes), "SELECT id, CAST(CHAR_LENGTH(words) AS BIGINT) FROM clicks"),
    (
        lambda t: (
            t.group_by(col("name"))
            .aggregate(udaf(CountAndSum()).alias("n", "total"))
            .select(col("name"), col("n"), col("total"))
        ),
        "SELECT name, COUNT(*), SUM(id) FROM clicks GROUP BY name",
    ),
    (
        lambda t: t.join(
            t.select((col("id") + 1).alias("next"), col("name").alias("who")), col("id") == col("next")
        ).select(col("name"), col("who")),
        "SELECT a.name, b.name FROM clicks AS a JOIN clicks AS b ON a.id = b.id + 1",
    ),
    (
        lambda t: t.left_outer_join(
            t.alias("i", "n", "p", "w", "m").filter(col("i") > 2), col("id") == col("i")
        ).select(col("id"), col("n")),
        "SELECT a.id, b.name FROM clicks AS a LEFT JOIN (SELECT * FROM clicks WHERE id > 2) AS b ON a.id = b.id",
    ),
    (
        lambda t: t.select(col("name")).union_all(t.select(col("words"))),
        "SELECT name FROM clicks UNION ALL SELECT words FROM clicks",
    ),
    (
        lambda t: t.select(col("price").avg, col("price").min, lit(1).count, col("id").sum0),
        "SELECT AVG(price), MIN(price), COUNT(1), SUM(id) FROM clicks",
    ),
    (
        lambda t: t.group_by(col("price") > 3).select(col("id").count.distinct, col("words").list_agg(";")),
        "SELECT COUNT(DISTINCT id), LISTAGG(words, ';') FROM clicks GROUP BY price > 3",
    ),
    (lambda t: t.limit(2).select(col("id")), "SELECT id FROM clicks LIMIT 2"),
]

TIMED: list[tuple[Callable[[Table], Table], str]] = [
    (
        lambda t: (
            t.window(Tumble.over(lit(2).seconds).on(col("ts")).alias("w"))
            .group_by(col("name"), col("w"))
            .select(col("name"), col("w").start, col("w").end, col("id").count)
        ),
        "SELECT name, TUMBLE_START(ts, INTERVAL '2' SECOND), TUMBLE_END(ts, INTERVAL '2' SECOND), COUNT(id) FROM timed "
        "GROUP BY name, TUMBLE(ts, INTERVAL '2' SECOND)",
    ),
    (
        lambda t: (
            t.window(Slide.over(lit(4).seconds).every(lit(2).seconds).on(col("ts")).alias("w"))
            .group_by(col("w"))
            .select(col("w").end.alias("e"), col("price").sum)
        ),
        "SELECT HOP_END(ts, INTERVAL '2' SECOND, INTERVAL '4' SECOND), SUM(price) FROM timed "
        "GROUP BY HOP(ts, INTERVAL '2' SECOND, INTERVAL '4' SECOND)",
    ),
    (
        lambda t: (
            t.window(Session.with_gap(lit(3).seconds).on(col("ts")).alias("w"))
            .group_by(col("w"), col("name"))
            .select(col("name"), col("id").sum)
        ),
        "SELECT name, SUM(id) FROM timed GROUP BY SESSION(ts, INTERVAL '3' SECOND), name",
    ),
    (
        lambda t: t.over_window(
            Over.partition_by(col("name"))
            .order_by(col("ts"))
            .preceding(row_interval(1))
            .following(CURRENT_ROW)
            .alias("w")
        ).select(col("id"), col("id").sum.over(col("w"))),
        "SELECT id, SUM(id) OVER (PARTITION BY name ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM timed",
    ),
    (
        lambda t: t.over_window(Over.order_by(col("ts")).preceding(UNBOUNDED_RANGE).alias("w")).select(
            col("id"), col("price").max.over(col("w"))
        ),
        "SELECT id, MAX(price) OVER (ORDER BY ts RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM timed",
    ),
    (
        lambda t: t.over_window(
            Over.partition_by(t.name).order_by(t.ts).preceding(UNBOUNDED_ROW).alias("w")
        ).select(t.id, t.id.count.over(col("w"))),
        "SELECT id, COUNT(id) OVER (PARTITION BY name ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) "
        "FROM timed",
    ),
]


@pytest.mark.parametrize(
    ("source", "made", "text"),
    [("clicks", *each) for each in QUERIES] + [("timed", *each) for each in TIMED],
    ids=[text.removeprefix("SELECT ")[:60] for _, text in QUERIES + TIMED],
)
def test_a_query_of_expressions_gives_the_changes_of_its_sql(
    tables: StreamTableEnvironment, source: str, made: Callable[[Table], Table], text: str
) -> None:
    assert changes(made(tables.from_path(source))) == changes(tables.sql_query(text))


def test_a_table_of_expressions_is_named_in_sql_and_inserted(
    tables: StreamTableEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    words = tables.from_path("clicks").join_lateral(words_of(col("words")).alias("word")).select(col("word"))
    tables.execute_sql("CREATE TABLE printed (word STRING) WITH ('connector' = 'print')")
    inserts = tables.create_statement_set().add_insert("printed", words)
    inserts.add_insert_sql("INSERT INTO printed SELECT name FROM clicks WHERE id = 2").execute()
    assert sorted(capsys.readouterr().out.split()) == sorted(
        f"+I[{word}]" for word in ("a", "b", "b", "c", "d", "e", "f", "bob")
    )
    counted = tables.sql_query(f"SELECT word, COUNT(*) FROM {words} WHERE word <> 'b' GROUP BY word")
    assert sorted(changes(counted)) == [("+I", [word, 1]) for word in ("a", "c", "d", "e", "f")]
    assert "words_of" in words.explain()
    assert "doubled" in tables.from_path("clicks").select(doubled(col("id"))).explain()
    high = tables.from_path("clicks").filter(col("id") > 3).select(col("id"), col("name"))
    assert changes(tables.sql_query(f"SELECT name FROM {high} WHERE id < 5")) == [("+I", ["eve"])]
    unnamed = {quoted(name) for name in tables.list_tables() if name.startswith("UnnamedTable")}
    assert unnamed == {str(words), str(high)}  # which a program has named in SQL


def test_flink_refuses_a_wrong_call_with_the_call_as_python_writes_it(tables: StreamTableEnvironment) -> None:
    wrong = tables.from_path("clicks").group_by(col("nobody")).select(col("nobody"), col("id").sum)
    for _ in range(2):
        with pytest.raises(
            SqlError, match=r"refuses .*\.group_by\(col\('nobody'\)\).*Cannot resolve field \[nobody\]"
        ):
            wrong.execute()
    assert changes(tables.from_path("clicks").select(lit(1).count)) != []


def test_a_name_that_is_neither_a_method_nor_a_column_is_refused(tables: StreamTableEnvironment) -> None:
    clicks = tables.from_path("clicks")
    assert str(clicks.name) == "col('name')"
    with pytest.raises(AttributeError, match="no column 'nmae'; its columns are id, name, price, words, ms"):
        _ = clicks.nmae


def test_every_expression_is_a_method_of_flinks() -> None:
    libraries = FlinkLibraries.found()
    assert libraries is not None
    (jar,) = (each for each in libraries.jars if each.name.startswith("flink-table-api-java-uber"))
    with ZipFile(jar) as classes:
        of_expressions = classes.read("org/apache/flink/table/api/internal/BaseExpressions.class")
        static = classes.read("org/apache/flink/table/api/Expressions.class")
    names = [(of_expressions, name) for name in {*PROPERTIES, *METHODS}]
    names += [(static, name) for name in expressions.__all__ if name.islower()]
    assert [
        name
        for content, name in names
        if bytes([0, len(java_name(name))]) + java_name(name).encode() not in content
    ] == []


def test_tables_in_expressions_have_names_of_their_own(tables: StreamTableEnvironment) -> None:
    clicks = tables.from_path("clicks")
    others = clicks.select(col("id").alias("k"))
    for n in range(3):  # Flink counts the names for the whole process
        kept = clicks.filter(col("id").in_(others.filter(col("k") > n))).select(col("id"))
        assert sorted(changes(kept)) == [("+I", [id]) for id in range(n + 1, 6)]
