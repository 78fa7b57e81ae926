"""Count windows of two elements; the odd one out at the end never fires."""

from collections.abc import Iterable

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment, WindowFunction
from pyflink.datastream.window import CountWindow

NUMBERS = [(1, "hi"), (2, "hello"), (3, "hi"), (4, "hello"), (5, "hi"), (6, "hello"), (6, "hello"), (7, "hi")]


class SumWindowFunction(WindowFunction[tuple, tuple, str, CountWindow]):
    def apply(self, key: str, window: CountWindow, inputs: Iterable[tuple]):
        result = 0
        for i in inputs:
            result += i[0]
        return [(key, result)]


def run(env: StreamExecutionEnvironment):
    sums = (
        env.from_collection(NUMBERS, type_info=Types.TUPLE([Types.INT(), Types.STRING()]))
        .key_by(lambda x: x[1], key_type=Types.STRING())
        .count_window(2)
        .apply(SumWindowFunction(), Types.TUPLE([Types.STRING(), Types.INT()]))
    )
    with sums.execute_and_collect() as results:
        return list(results)
