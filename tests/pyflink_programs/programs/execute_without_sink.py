"""A job without a sink runs its functions; what was executed once is not executed again."""

import os
import tempfile

from pyflink.common import Types
from pyflink.datastream import MapFunction, StreamExecutionEnvironment


class Append(MapFunction):
    def __init__(self, path):
        self.path = path

    def map(self, value):
        with open(self.path, "a") as file:
            file.write(f"{value}\n")
        return value


def run(env: StreamExecutionEnvironment):
    folder = tempfile.mkdtemp()
    first, second = os.path.join(folder, "first"), os.path.join(folder, "second")
    numbers = env.from_collection([1, 2, 3], Types.INT())
    numbers.map(Append(first), Types.INT())
    env.execute("without a sink")
    try:
        env.execute()
        again = "runs"
    except Exception as error:
        again = "No operators defined in streaming topology. Cannot execute" in str(error)
    numbers.map(Append(second), Types.INT()).map(lambda value: -value, Types.INT())
    env.execute()
    outputs = {"again": [again]}
    for path in (first, second):
        with open(path) as file:
            outputs[os.path.basename(path)] = sorted(file.read().splitlines())
    return outputs
