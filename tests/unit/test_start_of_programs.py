"""What a small program loads: libraries of columns would take longer than all the rest of its start."""

import subprocess
import sys

PROGRAM = """
import sys
from flinkcore.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
words = env.from_collection(["to be", "or not to be"]).flat_map(str.split).map(lambda word: (word, 1))
counts = words.key_by(lambda pair: pair[0]).reduce(lambda one, other: (one[0], one[1] + other[1]))
print(dict(counts.execute_and_collect()))
print(sorted({"numpy", "pandas", "pyarrow", "pyspark"} & set(sys.modules)))
"""


def test_a_program_of_python_objects_starts_without_libraries_of_columns() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["{'to': 2, 'be': 2, 'or': 1, 'not': 1}", "[]"]
