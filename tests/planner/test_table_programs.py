"""A PyFlink program of SQL text runs unedited."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.table import EnvironmentSettings, StreamTableEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
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
| -U | Alice |    12 |
| +U | Alice |   112 |
| +I |   Bob |    10 |
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
