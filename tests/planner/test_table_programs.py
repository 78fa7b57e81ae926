"""A PyFlink program of SQL text runs unedited."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.table import EnvironmentSettings, StreamTableEnvironment

env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
t_env = StreamTableEnvironment.create(env, environment_settings=EnvironmentSettings.in_streaming_mode())
kind = Types.ROW_NAMED(["name", "score"], [Types.STRING(), Types.INT()])
scores = env.from_collection([("Alice", 12), ("Bob", 10), ("Alice", 100)], type_info=kind)
t_env.create_temporary_view("scores", t_env.from_data_stream(scores))
totals = t_env.sql_query("SELECT name, SUM(score) AS total FROM scores GROUP BY name")
totals.execute().print()
with t_env.execute_sql(f"SELECT COUNT(*) AS n FROM {totals}").collect() as rows:
    print(list(rows)[-1]["n"])
t_env.execute_sql("CREATE TABLE high (name STRING, score INT) WITH ('connector' = 'print')")
t_env.execute_sql("INSERT INTO high SELECT name, score FROM scores WHERE score > 50").wait()
t_env.to_changelog_stream(totals).print()
t_env.to_data_stream(t_env.from_path("scores")).map(lambda row: row.name + "!", Types.STRING()).print()
env.execute()
"""

PRINTED = """\
+----+-------+-------+
| op |  name | total |
+----+-------+-------+
| +I | Alice |    12 |
| +I |   Bob |    10 |
| -U | Alice |    12 |
| +U | Alice |   112 |
+----+-------+-------+
4 rows in set
2
+I[Alice, 100]
"""


def test_a_program_of_sql_runs_unedited(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "flinkcore", "run", str(tmp_path / "program.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.removeprefix(PRINTED).splitlines()) == sorted(
        ["+I[Alice,12]", "-U[Alice,12]", "+U[Alice,112]", "+I[Bob,10]", "Alice!", "Alice!", "Bob!"]
    )


QUESTIONS = """
from pyflink.table import ExplainDetail, StreamTableEnvironment

t_env = StreamTableEnvironment.create()
x = t_env.from_elements([(1, "a"), (2, "b")], ["a", "b"])
t_env.create_temporary_view("x", x)
t_env.execute_sql(
    "CREATE TEMPORARY TABLE s (a BIGINT NOT NULL, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH "
    " ('connector' = 'kafka', 'format' = 'json')"
)
print(t_env.list_tables(), t_env.list_views(), t_env.list_user_defined_functions())
print(t_env.list_catalogs(), t_env.get_current_catalog(), t_env.list_databases(), t_env.get_current_database())
print("upper" in t_env.list_functions())
t_env.execute_sql("SHOW TABLES").print()
t_env.from_path("s").print_schema()
print(t_env.execute_sql("SHOW CREATE TABLE s").collect().__next__()[0].split("(")[0])
count = t_env.sql_query("SELECT a, COUNT(*) AS n FROM s GROUP BY a")
print("changelogMode=[I,UA]" in count.explain(ExplainDetail.CHANGELOG_MODE))
print("Sink(" in t_env.create_statement_set().add_insert_sql("INSERT INTO s SELECT a, ts FROM s").explain())
"""

ANSWERS = """\
['s', 'x'] ['x'] []
['default_catalog'] default_catalog ['default_database'] default_database
True
+------------+
| table name |
+------------+
|          s |
|          x |
+------------+
2 rows in set
(
  `a` BIGINT NOT NULL,
  `ts` TIMESTAMP(3) *ROWTIME*
)
CREATE TEMPORARY TABLE `default_catalog`.`default_database`.`s`
True
True
"""


def test_flink_answers_what_a_program_asks_about_its_session(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(QUESTIONS)
    command = [sys.executable, "-m", "flinkcore", "run", str(tmp_path / "program.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [line.rstrip() for line in done.stdout.splitlines()] == [
        line.rstrip() for line in ANSWERS.splitlines()
    ]


FUNCTIONS = """
from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.table import AggregateFunction, DataTypes, ScalarFunction, StreamTableEnvironment
from pyflink.table.udf import udaf, udf, udtf


class Mean(AggregateFunction):
    def create_accumulator(self):
        return [0, 0]

    def accumulate(self, accumulator, value, weight):
        accumulator[0] += value * weight
        accumulator[1] += weight

    def get_value(self, accumulator):
        return accumulator[0] / accumulator[1]

    def get_result_type(self):
        return DataTypes.DOUBLE()

    def get_accumulator_type(self):
        return DataTypes.ARRAY(DataTypes.BIGINT())


class Add(ScalarFunction):
    def open(self, function_context):
        self.added = 10

    def eval(self, value):
        return value + self.added


@udf(result_type=DataTypes.STRING())
def shout(text):
    return text.upper() + "!"


@udtf(result_types=[DataTypes.STRING(), "INT"])
def letters(text):
    for letter in text:
        yield letter, ord(letter)


env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
t_env = StreamTableEnvironment.create(env)
kind = Types.ROW_NAMED(["name", "score", "weight"], [Types.STRING(), Types.INT(), Types.INT()])
scores = env.from_collection([("Al", 12, 1), ("Bo", 10, 2), ("Al", 100, 3)], type_info=kind)
t_env.create_temporary_view("scores", t_env.from_data_stream(scores))
t_env.create_temporary_function("average", udaf(Mean()))
t_env.create_temporary_system_function("shout", shout)
t_env.create_temporary_system_function("letters", letters)
t_env.create_temporary_function("add", udf(Add(), ["BIGINT"], "BIGINT"))
t_env.execute_sql(
    "SELECT shout(name), add(score), c, o FROM scores, LATERAL TABLE(letters(name)) AS t(c, o) WHERE weight = 2"
).print()
t_env.execute_sql("SELECT name, average(score, weight) AS a FROM scores GROUP BY name").print()
"""

ROWS_OF_FUNCTIONS = [
    "| +I |    BO! |     20 | B |  66 |",
    "| +I |    BO! |     20 | o | 111 |",
    "| +I |   Al | 12.0 |",
    "| +I |   Bo | 10.0 |",
    "| -U |   Al | 12.0 |",
    "| +U |   Al | 78.0 |",
]


def test_a_program_with_functions_in_python_runs_unedited(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(FUNCTIONS)
    command = [sys.executable, "-m", "flinkcore", "run", str(tmp_path / "program.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith(("| +", "| -"))]
    assert [line.split() for line in rows] == [line.split() for line in ROWS_OF_FUNCTIONS]


AS_PYFLINK_TESTS = """
import datetime
import functools
from decimal import Decimal

from pyflink.common import Row
from pyflink.table import DataTypes, ScalarFunction, StreamTableEnvironment, TableFunction
from pyflink.table.udf import udaf, udf, udtf

t_env = StreamTableEnvironment.create()
big = DataTypes.BIGINT()


def show(query):
    with t_env.execute_sql(query).collect() as rows:
        print(sorted(tuple(row) for row in rows))


class Subtract(ScalarFunction):
    def open(self, function_context):
        self.subtracted = 1

    def eval(self, i):
        return i - self.subtracted


class AddOne:
    def __call__(self, i):
        return i + 1


class MultiEmit(TableFunction):
    def eval(self, x, y):
        for i in range(y):
            yield x, i


def checked(p, none, tiny, real, exact, flag, text, day, time, moment):
    assert (none, tiny, exact, flag, text) == (None, 1, Decimal("1.05"), True, "flink")
    assert (day, time) == (datetime.date(2014, 9, 13), datetime.time(12))
    assert moment == datetime.datetime(1999, 9, 10, 5, 20, 10)
    return p + tiny + int(real)


functions = {
    "add_one": udf(lambda i: i + 1, result_type=big),
    "subtract": udf(Subtract(), result_type=big),
    "sum_of": udf(lambda i, j: i + j, [big, big], big),
    "as_object": udf(AddOne(), result_type=big),
    "part": udf(functools.partial(lambda i, more: i + more, more=1), result_type=big),
    "checked": udf(checked, result_type=big),
    "upper": udf(lambda text: text + "!", result_type="STRING"),
    "drawn": udf(lambda: 2, result_type=big, deterministic=False),
    "multi_emit": udtf(MultiEmit(), result_types=[big, big]),
    "few": udtf(lambda x, y: range(x, y) if x == 3 else None, result_types=big),
    "pandas_sum": udf(lambda i, j: i + j, result_type=big, func_type="pandas"),
    "mean_of": udaf(lambda v: v.mean(), result_type=DataTypes.DOUBLE(), func_type="pandas"),
}
for name, function in functions.items():
    t_env.create_temporary_system_function(name, function)


pairs = DataTypes.ROW([DataTypes.FIELD("x", big), DataTypes.FIELD("y", DataTypes.STRING())])


@udf(result_type=pairs, func_type="pandas")
def pair(i):
    import pandas as pd

    return pd.DataFrame({0: i, 1: i.astype(str)})


@udf(result_type="STRING", func_type="pandas")
def second(pairs):
    return pairs["y"]


t_env.create_temporary_function("pair", pair)
t_env.create_temporary_function("second", second)
t_env.create_temporary_view("t", t_env.from_elements([(1, 2, 3), (2, 5, 6), (3, 1, 9)], ["a", "b", "c"]))
show("SELECT add_one(a), subtract(b), sum_of(a, c), as_object(a), part(a) FROM t WHERE add_one(b) <= 3")
show("SELECT sum_of(add_one(a), subtract(b)) FROM t")
show(
    "SELECT checked(a, CAST(NULL AS BIGINT), CAST(1 AS TINYINT), CAST(1.98 AS DOUBLE), CAST(1.05 AS DECIMAL(20, 10)), "
    "TRUE, 'flink', DATE '2014-09-13', TIME '12:00:00', TIMESTAMP '1999-09-10 05:20:10') FROM t"
)
show("SELECT upper('x') FROM t WHERE a = 1")
show("SELECT l.a, r.b FROM t l JOIN t r ON add_one(l.a) = add_one(r.c)")
show("SELECT a, x, y FROM t, LATERAL TABLE(multi_emit(a, b)) AS e(x, y) WHERE y > 0")
show("SELECT a, x FROM t LEFT JOIN LATERAL TABLE(few(a, 6)) AS e(x) ON TRUE WHERE a > 1 AND x IS NOT NULL")
show("SELECT pandas_sum(a, 1), pair(a).y, second(pair(b)) FROM t")
nested = t_env.from_elements(
    [(1, Row(a="x", b=2), {"k": 1.5}, [b"y"])],
    DataTypes.ROW(
        [
            DataTypes.FIELD("id", DataTypes.INT()),
            DataTypes.FIELD(
                "data", DataTypes.ROW([DataTypes.FIELD("a", DataTypes.STRING()), DataTypes.FIELD("b", DataTypes.INT())])
            ),
            DataTypes.FIELD("m", DataTypes.MAP(DataTypes.STRING(), DataTypes.DOUBLE())),
            DataTypes.FIELD("l", DataTypes.ARRAY(DataTypes.BYTES())),
        ]
    ),
)
show(f"SELECT id, data.b + 1, data, m, l FROM {nested}")
columns = "a BIGINT, m MAP<STRING, DOUBLE>, f BOOLEAN, ts TIMESTAMP(3)"
t_env.execute_sql(f"CREATE TABLE printed ({columns}) WITH ('connector' = 'print')")
t_env.execute_sql(f"INSERT INTO printed SELECT id, m, TRUE, TIMESTAMP '2024-01-01 00:00:00' FROM {nested}").wait()
"""

AS_PRINTED = """\
[(2, 1, 4, 2, 2), (4, 0, 12, 4, 4)]
[(3,), (4,), (7,)]
[(3,), (4,), (5,)]
[('x!',)]
[(3, 2)]
[(1, 1, 1), (2, 2, 1), (2, 2, 2), (2, 2, 3), (2, 2, 4)]
[(3, 3), (3, 4), (3, 5)]
[(2, '1', '2'), (3, '2', '5'), (4, '3', '1')]
[(1, 3, Row(a='x', b=2), {'k': 1.5}, [b'y'])]
+I[1, {k=1.5}, true, 2024-01-01T00:00]
"""


def test_what_pyflinks_own_tests_of_sql_check_holds(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(AS_PYFLINK_TESTS)
    command = [sys.executable, "-m", "flinkcore", "run", str(tmp_path / "program.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == AS_PRINTED


DESCRIBED = """
from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.table import (
    AggregateFunction, DataTypes, ListView, MapView, Schema, StreamTableEnvironment, TableDescriptor
)
from pyflink.table.udf import udaf

env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
t_env = StreamTableEnvironment.create(env)
kind = Types.ROW_NAMED(["a", "b", "t"], [Types.INT(), Types.STRING(), Types.LONG()])
at = [1000, 7000, 8000]
stream = env.from_collection([(1, "x", at[0]), (2, "y", at[1]), (3, "x", at[2])], kind)
schema = Schema.new_builder().column_by_expression("c", "a + 1").column("t", "BIGINT")
schema = schema.column_by_expression("ts", "TO_TIMESTAMP_LTZ(t, 3)").column("a", "INT").column("b", "STRING")
events = t_env.from_data_stream(stream, schema.watermark("ts", "ts - INTERVAL '1' SECOND").build())
events.print_schema()
t_env.create_temporary_view("events", events)
t_env.create_temporary_view("derived", stream, Schema.new_builder().column_by_expression("c", "UPPER(b)").build())
counts = Schema.new_builder().column("n", DataTypes.BIGINT(False)).column("s", "BIGINT").build()
printed = TableDescriptor.for_connector("print").schema(counts).build()
t_env.create_temporary_table("printed", printed)
t_env.create_table("kept", printed)
windows = "TABLE(TUMBLE(TABLE events, DESCRIPTOR(ts), INTERVAL '5' SECOND)) GROUP BY window_start, window_end"
t_env.execute_sql(f"INSERT INTO printed SELECT COUNT(*), SUM(c) FROM {windows}").wait()
t_env.sql_query("SELECT a, CHAR_LENGTH(b) + 5 FROM events").execute_insert(printed).wait()
print(t_env.list_tables(), t_env.list_views())
print(t_env.list_temporary_tables(), t_env.list_temporary_views())
print(t_env.drop_table("kept"), t_env.drop_table("kept"), t_env.drop_temporary_table("printed"))
print(t_env.list_tables())


class Joined(AggregateFunction):
    def create_accumulator(self):
        return Row(ListView(), MapView())

    def accumulate(self, accumulator, value):
        texts, counts = accumulator[0], accumulator[1]
        texts.add(value)
        counts[value] = (counts[value] if value in counts else 0) + 1

    def get_value(self, accumulator):
        return ",".join(accumulator[0]) + str(sorted(accumulator[1].items()))

    def get_accumulator_type(self):
        text = DataTypes.STRING()
        views = [DataTypes.LIST_VIEW(text), DataTypes.MAP_VIEW(text, DataTypes.BIGINT())]
        return DataTypes.ROW([DataTypes.FIELD(f"f{number}", view) for number, view in enumerate(views)])

    def get_result_type(self):
        return DataTypes.STRING()


t_env.create_temporary_function("joined", udaf(Joined()))
with t_env.execute_sql("SELECT joined(b) AS r, SUM(a) AS s FROM derived GROUP BY a / 5").collect() as rows:
    print(tuple(list(rows)[-1]))
print(t_env.from_path("derived").to_pandas().c.tolist())
"""

AS_PYFLINK_PRINTS = """\
(
  `c` INT,
  `t` BIGINT,
  `ts` TIMESTAMP_LTZ(3) *ROWTIME*,
  `a` INT,
  `b` STRING
)
+I[1, 2]
+I[2, 7]
+I[1, 6]
+I[2, 6]
+I[3, 6]
['derived', 'events', 'kept', 'printed'] ['derived', 'events']
['derived', 'events', 'printed'] ['derived', 'events']
True False True
['derived', 'events']
("x,y,x[('x', 2), ('y', 1)]", 6)
['X', 'Y', 'X']
"""


def test_a_program_with_descriptors_of_tables_runs_unedited(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(DESCRIBED)
    command = [sys.executable, "-m", "flinkcore", "run", str(tmp_path / "program.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == AS_PYFLINK_PRINTS
