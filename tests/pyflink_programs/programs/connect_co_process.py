"""A process function over two streams without keys, with a side output."""

from pyflink.common import Types
from pyflink.datastream import CoProcessFunction, OutputTag, StreamExecutionEnvironment

ORDERED = False

ODD = OutputTag("odd", Types.INT())


class Split(CoProcessFunction):
    def process_element1(self, value, ctx: "CoProcessFunction.Context"):
        if value % 2:
            yield ODD, value
        else:
            yield str(value)

    def process_element2(self, value, ctx: "CoProcessFunction.Context"):
        return [value, value.upper()]


def run(env: StreamExecutionEnvironment):
    numbers = env.from_collection([1, 2, 3, 4], Types.INT())
    words = env.from_collection(["a", "b"], Types.STRING())
    split = numbers.connect(words).process(Split(), Types.STRING())
    collected = {}
    for name, stream in {"main": split, "odd": split.get_side_output(ODD)}.items():
        with stream.execute_and_collect() as results:
            collected[name] = list(results)
    return collected
