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
