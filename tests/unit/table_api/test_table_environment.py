"""Table environments hand their statements to Flink's planner, and run what it has planned."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from jobs.sql_scenarios import golden

from flinkcore._internal.python.missing_features import MissingMethodError
from flinkcore.common import Instant, Row, TypeInformation, Types
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.errors import (
    ArgumentTypeError,
    ConfigurationError,
    SchemaError,
    SqlError,
    UnsupportedOperationError,
)
from flinkcore.sql.planner import planned_script
from flinkcore.sql.planner.flink_process import FlinkLibraries
from flinkcore.sql.types.logical_types import type_of
from flinkcore.table import (
    DataTypes,
    EnvironmentSettings,
    ExplainDetail,
    ResultKind,
    RowKind,
    Schema,
    StreamTableEnvironment,
    TableDescriptor,
    TableEnvironment,
)
from flinkcore.table.expressions import col
from flinkcore.table.udf import udf
from flinkcore.table_api.table_result import TableResult

ROWS = pa.table({"k": ["a", "b"], "v": [1, 2], "ts": ["2024-01-01 00:00:01", "2024-01-01 00:00:03"]})
INSERTS, CHANGES = "edges-fire_one_phase", "group_by-1-0"


class Planner:
    """Stands for Flink: plans the last statement as a recorded scenario, and remembers the requests."""

    def __init__(self) -> None:
        self.scenario = INSERTS
        self.options: dict[str, str] = {"connector": "print"}
        self.requests: list[list[str]] = []
        self.settings: dict[str, str] = {}
        self.refused = ""
        self.rows: list[list[Any]] = [["a", "BIGINT", False], ["ts", "TIMESTAMP(3) *ROWTIME*", False]]

    def answer(
        self, libraries: FlinkLibraries, statements: list[str], settings: dict[str, str], functions: Any
    ) -> Any:
        self.requests.append(statements)
        self.settings = settings
        if self.refused in statements:
            failure = "org.apache.flink.table.api.ValidationException"
            return {"statement": statements.index(self.refused), "messages": ["Wrong"], "failure": failure}
        if statements[-1].startswith(("SHOW", "DESCRIBE", "EXPLAIN")):
            step = {"columns": ["name", "type", "null"], "rows": self.rows, "printed": "as Flink prints\n"}
            asking = [
                number for number, text in enumerate(statements) if text.startswith(("SHOW", "DESC", "EXP"))
            ]
            return {"steps": [{"statement": number, **step} for number in asking]}
        plan = json.loads(json.dumps(golden(self.scenario)["plan"]))
        plan["nodes"][-1]["dynamicTableSink"]["table"]["resolvedTable"]["options"] = self.options
        last = len(statements) - 1
        is_query = statements[last].startswith("SELECT")
        return {"steps": [{"statement": last, "is_query": is_query, "settings": settings, "plan": plan}]}


@pytest.fixture
def flink(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Planner:
    found = Planner()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(FlinkLibraries, "found", lambda: FlinkLibraries("2.3.0", ()))
    monkeypatch.setattr(planned_script, "PROCESS", found)
    return found


@pytest.fixture
def tables(flink: Planner) -> Any:
    environment = StreamExecutionEnvironment.get_execution_environment()
    created = StreamTableEnvironment.create(environment, EnvironmentSettings.in_streaming_mode())
    return created.replace_table("f", ROWS)


def test_statements_are_planned_together_when_rows_are_asked_for(flink: Planner, tables: Any) -> None:
    tables.get_config().set("table.local-time-zone", "Europe/Berlin").set_local_timezone("UTC")
    assert next(tables.execute_sql("CREATE TABLE f (k STRING)").collect())[0] == "OK"
    tables.execute_sql("CREATE VIEW w AS SELECT k FROM f")
    assert not flink.requests
    rows = list(tables.execute_sql("SELECT * FROM w").collect())
    assert flink.requests == [
        ["CREATE TABLE f (k STRING)", "CREATE VIEW w AS SELECT k FROM f", "SELECT * FROM w"]
    ]
    assert flink.settings == {"table.local-time-zone": "UTC"}
    assert sorted(row["k"] for row in rows) == ["a", "b"]
    assert {row.get_row_kind() for row in rows} == {RowKind.INSERT}


def test_a_query_has_a_name_in_the_text_of_another_one(flink: Planner, tables: Any) -> None:
    query = tables.sql_query("SELECT 1;")
    tables.sql_query(f"SELECT * FROM {query} JOIN {query}").execute()
    tables.from_path("my.f").execute()
    first, second = flink.requests
    assert first == [
        "CREATE TEMPORARY VIEW `UnnamedTable#1` AS SELECT 1",
        "SELECT * FROM `UnnamedTable#1` JOIN `UnnamedTable#1`",
    ]
    assert second[-1] == "SELECT * FROM `my`.`f`"


def test_elements_become_a_table_with_their_types(flink: Planner, tables: Any) -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    kind = Types.ROW_NAMED(["name", "score"], [Types.STRING(), Types.INT()])
    elements = environment.from_collection([("Alice", 12), (None, 10)], type_info=kind)
    tables.create_temporary_view("scores", elements)
    tables.create_temporary_view("numbers", environment.from_collection([1, 2], type_info=Types.LONG()))
    tables.execute_sql("SELECT * FROM scores")
    first, view, second, _, _ = flink.requests[0]
    assert first.startswith("CREATE TABLE `UnnamedTable#1` (`name` STRING, `score` INT) WITH")
    assert view == "CREATE TEMPORARY VIEW `scores` AS SELECT * FROM `UnnamedTable#1`"
    assert second.startswith("CREATE TABLE `UnnamedTable#2` (`f0` BIGINT) WITH")


def test_a_schema_names_the_columns_of_a_stream(flink: Planner, tables: Any) -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    numbers = environment.from_collection([1], type_info=Types.LONG())
    computed = Schema.new_builder().column_by_expression("c", "f0 + 1")
    tables.create_temporary_view("a", numbers, computed.build())
    tables.from_data_stream(numbers, computed.column("f0", "bigint").watermark("c", "c").build()).execute()
    first, _, second, query = (text.partition(" WITH")[0] for text in flink.requests[0])
    assert first == "CREATE TABLE `UnnamedTable#1` (`f0` BIGINT, `c` AS f0 + 1)"
    assert second == "CREATE TABLE `UnnamedTable#2` (`f0` bigint, `c` AS f0 + 1, WATERMARK FOR `c` AS c)"
    assert query == "SELECT `c`, `f0` FROM `UnnamedTable#2`"


def test_a_schema_that_names_columns_of_a_stream_chooses_these_and_computes_of_all(
    flink: Planner, tables: Any
) -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    kind = Types.ROW([Types.INSTANT(), Types.STRING()])
    elements = environment.from_collection([(Instant(1, 5), "a"), (None, "b")], type_info=kind)
    schema = (
        Schema.new_builder().column_by_expression("ts", "CAST(f0 AS TIMESTAMP(3))").column("f1", "STRING")
    )
    tables.from_data_stream(elements, schema.build()).execute()
    created, query = (text.partition(" WITH")[0] for text in flink.requests[0])
    assert created.endswith("(`f0` TIMESTAMP_LTZ(9), `f1` STRING, `ts` AS CAST(f0 AS TIMESTAMP(3)))")
    assert query == "SELECT `ts`, `f1` FROM `UnnamedTable#1`"


@pytest.mark.parametrize(
    ("kind", "declared"),
    [
        (Types.INT(), "BIGINT"),
        (Types.LONG(), "INT NOT NULL"),
        (Types.LONG(), "TIMESTAMP(3)"),
        (Types.STRING(), "INTEGER"),
        (Types.BIG_DEC(), "DOUBLE"),
        (Types.SQL_TIMESTAMP(), "TIMESTAMP_LTZ(3)"),
        (Types.LIST(Types.INT()), "ARRAY<BIGINT>"),
        (Types.MAP(Types.STRING(), Types.INT()), "MAP<STRING, STRING>"),
    ],
)
def test_a_column_of_a_stream_is_not_declared_with_another_type(
    tables: Any, kind: TypeInformation, declared: str
) -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    elements = environment.from_collection([], type_info=kind)
    schema = Schema.new_builder().column("f0", declared).build()
    with pytest.raises(
        SchemaError, match=rf"'f0' of the stream is .* declares {re.escape(declared)}, .*CAST"
    ):
        tables.from_data_stream(elements, schema)


@pytest.mark.parametrize(
    ("kind", "declared"),
    [
        (Types.INT(), "integer not null"),
        (Types.STRING(), "CHAR(3)"),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), "BINARY(2)"),
        (Types.BIG_DEC(), "DECIMAL(10, 2)"),
        (Types.SQL_TIMESTAMP(), "TIMESTAMP(3)"),
        (Types.ROW([Types.INT(), Types.LIST(Types.STRING())]), "ROW<`a` INT, `b` ARRAY<VARCHAR(9)>>"),
        (Types.INT(), "NO_TYPE"),
    ],
)
def test_a_column_of_a_stream_may_have_another_precision(
    flink: Planner, tables: Any, kind: TypeInformation, declared: str
) -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    rows = environment.from_collection([], type_info=Types.ROW_NAMED(["a"], [kind]))
    tables.from_data_stream(rows, Schema.new_builder().column("a", declared).build()).execute()
    assert f"(`a` {declared})" in flink.requests[0][0]


PRINT = TableDescriptor.for_connector("print").schema(Schema.new_builder().column("k", "INT").build()).build()


def test_tables_of_descriptors_are_created_and_dropped(flink: Planner, tables: Any) -> None:
    tables.create_table("p.a", PRINT)
    tables.create_table("b", PRINT, True)
    tables.create_temporary_table("c", PRINT)
    tables.create_temporary_table("c", PRINT, True)
    with pytest.raises(ConfigurationError, match="there is a temporary table c already"):
        tables.create_temporary_table("c", PRINT)
    tables.create_view("v", tables.from_path("b"))
    assert [tables.drop_table(name) for name in ("p.a", "p.a", "c")] == [True, False, False]
    assert [tables.drop_temporary_table(name) for name in ("C", "c")] == [False, True]
    assert [tables.drop_view("v"), tables.drop_view("v")] == [True, False]
    with pytest.raises(ConfigurationError, match="there is no view v"):
        tables.drop_view("v", False)
    tables.execute_sql("SELECT 1")
    created = "(`k` INT) WITH ('connector' = 'print')"
    assert flink.requests[0][:-1] == [
        f"CREATE TABLE `p`.`a` {created}",
        f"CREATE TABLE IF NOT EXISTS `b` {created}",
        f"CREATE TEMPORARY TABLE `c` {created}",
        "CREATE VIEW `v` AS SELECT * FROM `b`",
        *("DROP TABLE IF EXISTS `p`.`a`", "DROP TABLE IF EXISTS `p`.`a`", "DROP TABLE IF EXISTS `c`"),
        *("DROP TEMPORARY TABLE IF EXISTS `C`", "DROP TEMPORARY TABLE IF EXISTS `c`"),
        *("DROP VIEW IF EXISTS `v`", "DROP VIEW IF EXISTS `v`"),
    ]


def test_a_semicolon_in_a_type_or_an_expression_ends_no_statement(flink: Planner, tables: Any) -> None:
    columns = Schema.new_builder().column("k", "INT); DROP TABLE a; CREATE TABLE b (x INT").build()
    tables.create_table("c", TableDescriptor.for_connector("print").schema(columns).build())
    tables.execute_sql("SELECT 1")
    assert len(flink.requests[0]) == 2


def test_a_descriptor_stands_for_a_table_without_a_name(flink: Planner, tables: Any) -> None:
    query = tables.from_descriptor(PRINT)
    query.execute_insert(PRINT)
    tables.create_statement_set().add_insert(PRINT, query).execute()
    first, second = flink.requests
    assert first[-1] == "INSERT INTO `UnnamedTable#2` SELECT * FROM `UnnamedTable#1`"
    assert "INSERT INTO `UnnamedTable#3` SELECT * FROM `UnnamedTable#1`" in second[-1]


def test_columns_of_a_log_become_a_table_with_their_types(flink: Planner, tables: Any) -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    schema = pa.schema(
        [
            ("at", pa.timestamp("ms")),
            ("seen", pa.timestamp("us", "UTC")),
            ("price", pa.decimal128(10, 2)),
            ("item", pa.struct([("id", pa.int64()), ("tags", pa.list_(pa.string()))])),
            ("m", pa.map_(pa.string(), pa.float64())),
        ]
    )
    tables.from_data_stream(environment.from_event_log(schema.empty_table(), timestamp="at")).execute()
    assert flink.requests[0][0] == (
        "CREATE TABLE `UnnamedTable#1` (`at` TIMESTAMP(3), `seen` TIMESTAMP_LTZ(6), `price` DECIMAL(10, 2), "
        "`item` ROW<`id` BIGINT, `tags` ARRAY<STRING>>, `m` MAP<STRING, DOUBLE>) WITH ('connector' = 'stream')"
    )


def test_results_are_printed_with_their_kinds(
    flink: Planner, tables: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    tables.execute_sql("SELECT 1").print()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == lines[2] == lines[-2]
    assert lines[1].startswith("| op | k | ")
    assert lines[3].startswith("| +I | ")
    assert lines[-1] == "2 rows in set"
    tables.execute_sql("CREATE VIEW w AS SELECT 1").print()
    assert capsys.readouterr().out == "OK\n"


def test_insertions_are_run_together(flink: Planner, tables: Any, capsys: pytest.CaptureFixture[str]) -> None:
    inserts = tables.create_statement_set().add_insert_sql("INSERT INTO a SELECT 1")
    result = inserts.add_insert("b", tables.sql_query("SELECT 2")).execute()
    result.wait()
    assert flink.requests == [
        ["EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; INSERT INTO `b` SELECT 2; END"]
    ]
    assert capsys.readouterr().out.count("+I[") == 2


def test_rows_for_a_connector_need_a_directory(flink: Planner, tables: Any, tmp_path: Path) -> None:
    flink.options = {"connector": "kafka"}
    with pytest.raises(
        ConfigurationError, match=r"table sink has the connector kafka.*replace_sink\('sink', "
    ):
        tables.sql_query("SELECT 1").execute_insert("sink")
    tables.replace_sink("sink", tmp_path / "out").sql_query("SELECT 1").execute_insert("sink")
    assert pq.read_table(tmp_path / "out").num_rows == 2


def test_rows_become_elements_with_their_kinds(flink: Planner, tables: Any) -> None:
    with tables.to_data_stream(tables.sql_query("SELECT 1")).execute_and_collect() as rows:
        assert sorted(row["k"] for row in rows) == ["a", "b"]


def test_other_methods_and_batch_mode_are_refused_by_name(tables: Any) -> None:
    with pytest.raises(AttributeError, match="StreamTableEnvironment has no create_java_temporary_function"):
        tables.create_java_temporary_function("f", "company.F")
    with pytest.raises(AttributeError, match=r"GroupedTable has no flat_aggregate: .*ROW_NUMBER\(\)"):
        tables.from_path("f").group_by(col("k")).flat_aggregate(None)
    with pytest.raises(
        ArgumentTypeError, match=r"select\(\) takes expressions such as col\('name'\), not 'k'"
    ):
        tables.from_path("f").select("k")
    with pytest.raises(UnsupportedOperationError, match="streaming mode"):
        TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    with pytest.raises(UnsupportedOperationError, match=r"takes no expressions\. Give Schema"):
        tables.from_data_stream(None, object())
    timestamps = Schema.new_builder().column_by_metadata("at", "TIMESTAMP_LTZ(3)").build()
    with pytest.raises(UnsupportedOperationError, match=r"no column of metadata.* a field for the timestamp"):
        tables.from_data_stream(None, timestamps)


def test_a_function_has_one_name_and_its_types(flink: Planner, tables: Any) -> None:
    tables.create_temporary_function("f", udf(str.upper, result_type="STRING"))
    with pytest.raises(ConfigurationError, match="there is a function `F` already"):
        tables.create_temporary_function("`F`", udf(str.lower, result_type="STRING"))
    tables.create_temporary_system_function("f", udf(str.lower, result_type="STRING"))
    tables.execute_sql("DROP TEMPORARY FUNCTION F")
    assert tables.drop_temporary_function("f") is False
    assert [tables.drop_temporary_system_function("f") for _ in range(2)] == [True, False]
    tables.create_temporary_function("f", udf(str.lower, result_type="STRING"))
    with pytest.raises(ConfigurationError, match="needs the types of the function g"):
        tables.create_temporary_function("g", str.upper)
    tables.execute_sql("SELECT f('A')")
    created, system, dropped, _, _, _, again, _ = flink.requests[0]
    assert created == "CREATE TEMPORARY FUNCTION `f` AS 'upper' LANGUAGE PYTHON"
    assert system == "CREATE TEMPORARY SYSTEM FUNCTION `f` AS 'lower' LANGUAGE PYTHON"
    assert dropped == "DROP TEMPORARY FUNCTION F"
    assert again == "CREATE TEMPORARY FUNCTION `f` AS 'lower' LANGUAGE PYTHON"


def test_flink_answers_questions_about_the_session(
    flink: Planner, tables: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    tables.execute_sql("CREATE TABLE f (k STRING)")
    tables.from_elements([(1,)], ["a"])
    result = tables.execute_sql("SHOW TABLES")
    assert flink.requests[0] == [
        "CREATE TABLE f (k STRING)",
        "CREATE TABLE `UnnamedTable#1` (`a` BIGINT) WITH ('connector' = 'stream')",
        "DROP TABLE IF EXISTS `UnnamedTable#1`",
        "SHOW TABLES",
    ]
    assert result.get_result_kind() is ResultKind.SUCCESS_WITH_CONTENT
    assert [row["null"] for row in result.collect()] == [False, False]
    result.print()
    assert capsys.readouterr().out == "as Flink prints\n"
    assert tables.list_tables() == tables.list_views() == ["a", "ts"]
    assert tables.get_current_database() == "a"
    assert tables.list_temporary_tables() == tables.list_temporary_views() == []
    flink.rows = [["CREATE TEMPORARY VIEW `a` AS SELECT 1"]]
    assert tables._temporary([("VIEW", "a")]) == ["a"]
    assert flink.requests[-1][-1] == "SHOW CREATE VIEW `a`"
    with pytest.raises(MissingMethodError, match="no create_catalog: write it as a statement"):
        tables.create_catalog("c", None)


def test_flink_explains_queries_and_shows_their_columns(
    flink: Planner, tables: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    query = tables.sql_query("SELECT 1")
    query.print_schema()
    assert capsys.readouterr().out == "(\n  `a` BIGINT NOT NULL,\n  `ts` TIMESTAMP(3) NOT NULL *ROWTIME*\n)\n"
    flink.rows = [["a plan"]]
    assert query.explain(ExplainDetail.CHANGELOG_MODE, ExplainDetail.ESTIMATED_COST) == "a plan"
    inserts = tables.create_statement_set().add_insert_sql("INSERT INTO a SELECT 1;")
    assert inserts.add_insert("b", query).explain() == "a plan"
    assert [request[-1] for request in flink.requests] == [
        "DESCRIBE `described#`",
        "EXPLAIN CHANGELOG_MODE, ESTIMATED_COST SELECT 1",
        "EXPLAIN STATEMENT SET BEGIN INSERT INTO a SELECT 1; INSERT INTO `b` SELECT 1; END",
    ]


def test_a_frame_of_pandas_becomes_a_table(flink: Planner, tables: Any) -> None:
    frame = pa.table({"a": [1, 2], "b": ["x", None]}).to_pandas()
    kind = DataTypes.ROW([DataTypes.FIELD("i", DataTypes.INT()), DataTypes.FIELD("s", DataTypes.STRING())])
    tables.from_pandas(frame.set_index("a", drop=False))
    tables.from_pandas(frame, ["c", "d"])
    tables.from_pandas(frame, kind).execute()
    created = [statement.partition(" WITH")[0] for statement in flink.requests[0][:3]]
    assert created == [
        "CREATE TABLE `UnnamedTable#1` (`a` BIGINT, `b` STRING)",
        "CREATE TABLE `UnnamedTable#2` (`c` BIGINT, `d` STRING)",
        "CREATE TABLE `UnnamedTable#3` (`i` INT, `s` VARCHAR(2147483647))",
    ]


@pytest.mark.parametrize(
    ("statement", "shown"),
    [
        ("SHOW TABLES; SELECT 1", "'SHOW TABLES' is not supported"),
        ("DELETE FROM f", "'DELETE FROM f' is not supported"),
        (
            "CREATE TABLE t WITH ('a' = 'b') AS SELECT 1 AS a",
            "by CREATE TABLE with its columns, and .* INSERT INTO",
        ),
        ("create or replace table t as (select 1)", "INSERT INTO"),
    ],
)
def test_a_statement_that_cannot_be_kept_is_refused_at_once(
    flink: Planner, tables: Any, statement: str, shown: str
) -> None:
    with pytest.raises(UnsupportedOperationError, match=shown):
        tables.execute_sql(statement)
    tables.execute_sql("SELECT 1")
    assert flink.requests == [["SELECT 1"]]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE f (a INT, b AS (a + (1)), WATERMARK FOR b AS b) COMMENT 'x AS y' WITH ('as' = 'b')",
        "CREATE VIEW w AS SELECT * FROM TABLE(g()) AS t",
        "CREATE TABLE `AS` (k STRING)",
    ],
)
def test_a_table_of_declared_columns_is_kept(flink: Planner, tables: Any, statement: str) -> None:
    tables.execute_sql(statement)
    tables.execute_sql("SELECT 1")
    assert flink.requests == [[statement, "SELECT 1"]]


def test_a_kept_statement_that_flink_refuses_is_forgotten(flink: Planner, tables: Any) -> None:
    flink.refused = "CREATE TABLE f (k WRONG)"
    tables.execute_sql(flink.refused)
    with pytest.raises(SqlError, match=r"Wrong\. It reads 'CREATE TABLE f"):
        tables.execute_sql("SELECT 1")
    tables.execute_sql("CREATE TABLE f (k STRING)")
    tables.execute_sql("SELECT 1")
    assert flink.requests[1] == ["CREATE TABLE f (k STRING)", "SELECT 1"]


def test_insertions_do_not_overwrite(tables: Any) -> None:
    query = tables.sql_query("SELECT 1")
    with pytest.raises(
        UnsupportedOperationError, match="overwrite=True is not supported: rows are appended to t"
    ):
        query.execute_insert("t", overwrite=True)
    with pytest.raises(UnsupportedOperationError, match="Delete its files before"):
        tables.create_statement_set().add_insert("t", query, overwrite=True)


def test_a_replaced_sink_may_have_any_format(flink: Planner, tables: Any, tmp_path: Path) -> None:
    flink.options = {"connector": "filesystem", "format": "csv", "path": str(tmp_path / "csv")}
    with pytest.raises(UnsupportedOperationError, match="has the format 'csv'"):
        tables.sql_query("SELECT 1").execute_insert("sink")
    tables.replace_sink("sink", tmp_path / "out").sql_query("SELECT 1").execute_insert("sink")
    assert pq.read_table(tmp_path / "out").num_rows == 2


def test_the_last_value_of_a_setting_counts_whatever_sets_it(flink: Planner, tables: Any) -> None:
    tables.execute_sql("SET 'table.local-time-zone' = 'Europe/Berlin'")
    assert tables.get_config().get_local_timezone() == "Europe/Berlin"
    tables.get_config().set("table.local-time-zone", "Asia/Tokyo")
    tables.execute_sql("set a.b = 'it''s'; SET")
    tables.execute_sql("SELECT 1")
    assert flink.requests == [["SELECT 1"]]
    assert flink.settings == {"table.local-time-zone": "Asia/Tokyo", "a.b": "it's"}
    tables.execute_sql("RESET 'table.local-time-zone'; SELECT 2")
    assert tables.get_config().settings == {"a.b": "it's"}
    tables.execute_sql("RESET")
    assert tables.get_config().settings == {}


def test_rows_of_other_kinds_are_not_inserted(tables: Any) -> None:
    row = Row("a")
    row.set_row_kind(RowKind.DELETE)
    environment = StreamExecutionEnvironment.get_execution_environment()
    elements = environment.from_collection([row], type_info=Types.ROW([Types.STRING()]))
    with pytest.raises(
        UnsupportedOperationError, match=r"an element of the stream is -D.*inserted rows alone"
    ):
        tables.from_data_stream(elements)


def test_fields_of_tuples_are_columns(flink: Planner, tables: Any) -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    kind = Types.TUPLE([Types.STRING(), Types.INT()])
    tables.from_data_stream(environment.from_collection([("a", 1), ("b", None)], type_info=kind)).execute()
    assert flink.requests[0][0].startswith("CREATE TABLE `UnnamedTable#1` (`f0` STRING, `f1` INT) WITH")


def test_elements_of_a_program_become_a_table(flink: Planner, tables: Any) -> None:
    tables.from_elements([(1, "Hi", None), (2, None, [1.5])], ["a", "b", "c"]).execute()
    kind = DataTypes.ROW(
        [DataTypes.FIELD("n", DataTypes.INT().not_null()), DataTypes.FIELD("t", DataTypes.CHAR(2))]
    )
    tables.from_elements([{"n": 1}], kind).execute()
    declared = [statement for statement in flink.requests[-1] if "CREATE TABLE" in statement]
    assert declared == [
        "CREATE TABLE `UnnamedTable#1` (`a` BIGINT, `b` VARCHAR(2147483647), `c` ARRAY<DOUBLE>) WITH "
        "('connector' = 'stream')",
        "CREATE TABLE `UnnamedTable#2` (`n` INT NOT NULL, `t` CHAR(2)) WITH ('connector' = 'stream')",
    ]


def test_a_session_has_temporary_objects_until_they_are_dropped(flink: Planner, tables: Any) -> None:
    tables.create_temporary_view("v", tables.sql_query("SELECT 1"))
    tables.execute_sql("CREATE TEMPORARY TABLE IF NOT EXISTS `t` (a INT) WITH ('connector' = 'print')")
    assert [tables.drop_temporary_view("v") for _ in range(2)] == [True, False]
    assert [tables.drop_temporary_table(name) for name in ("T", "t")] == [False, True]
    tables.use_catalog("c")
    tables.use_database("d")
    tables.execute_sql("SELECT 1")
    assert flink.requests[0][2:] == [
        *("DROP TEMPORARY VIEW IF EXISTS `v`", "DROP TEMPORARY VIEW IF EXISTS `v`"),
        *("DROP TEMPORARY TABLE IF EXISTS `T`", "DROP TEMPORARY TABLE IF EXISTS `t`"),
        "USE CATALOG `c`",
        "USE `d`",
        "SELECT 1",
    ]


def test_settings_are_also_set_by_the_configuration(flink: Planner, tables: Any) -> None:
    tables.get_config().get_configuration().set_string("table.local-time-zone", "Asia/Tokyo")
    assert tables.get_config().get_local_timezone() == "Asia/Tokyo"
    assert tables.execute_sql("CREATE TABLE t (a INT)").get_result_kind() is ResultKind.SUCCESS
    assert tables.execute_sql("SELECT 1").get_result_kind() is ResultKind.SUCCESS_WITH_CONTENT
    assert flink.settings == {"table.local-time-zone": "Asia/Tokyo"}


def test_values_are_shown_as_flink_casts_them(capsys: pytest.CaptureFixture[str]) -> None:
    kinds = {"TIMESTAMP_LTZ(3)": 0, "BYTES": b"\xff\x01", "MAP<STRING, INT>": [("k", None)], "BOOLEAN": True}
    columns = {kind: pa.array([value], type_of(kind).arrow) for kind, value in kinds.items()}
    columns["ROW<`a` DOUBLE>"] = pa.array([{"a": 1e10}], type_of("ROW<`a` DOUBLE>").arrow)
    table = pa.table(columns)
    types = tuple(map(type_of, table.column_names))
    rows = SimpleNamespace(name="select", columns=tuple(table.column_names), has_changes=False, types=types)
    results = {"select": SimpleNamespace(to_arrow=lambda: table, to_batches=table.to_batches)}
    TableResult(results, rows, "Asia/Tokyo").print()  # type: ignore[arg-type]
    cells = [cell.strip() for cell in capsys.readouterr().out.splitlines()[3].strip("|").split("|")]
    assert cells == ["+I", "1970-01-01 09:00:00.000", "x'ff01'", "{k=NULL}", "TRUE", "(1.0E10)"]
    (row,) = TableResult(results, rows).collect()  # type: ignore[arg-type]
    assert list(row)[2:] == [{"k": None}, True, Row(a=1e10)]


def test_a_column_may_be_named_row_kind() -> None:
    table = pa.table({"row_kind": ["x"], "self": [1]})
    kinds = (type_of("STRING"), type_of("BIGINT"))
    rows = SimpleNamespace(name="select", columns=tuple(table.column_names), has_changes=False, types=kinds)
    result = SimpleNamespace(to_batches=table.to_batches)
    (row,) = TableResult({"select": result}, rows).collect()  # type: ignore[arg-type, dict-item]
    assert row.as_dict() == {"row_kind": "x", "self": 1}
    assert row.get_row_kind() is RowKind.INSERT
