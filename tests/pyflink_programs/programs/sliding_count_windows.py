"""Count windows of three elements that slide by two."""

from collections.abc import Iterable

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment, WindowFunction
from pyflink.datastream.window import CountWindow

NUMBERS = [
    (1, "hi"),
    (2, "hello"),
    (3, "hi"),
    (4, "hello"),
    (5, "hi"),
    (6, "hello"),
    (7, "hi"),
    (8, "hi"),
    (9, "hi"),
]


class Listed(WindowFunction[tuple, tuple, str, CountWindow]):
    def apply(self, key: str, window: CountWindow, inputs: Iterable[tuple]):
        return [(key, ",".join(str(number) for number, _ in inputs))]


def run(env: StreamExecutionEnvironment):
    lists = (
        env.from_collection(NUMBERS, type_info=Types.TUPLE([Types.INT(), Types.STRING()]))
        .key_by(lambda x: x[1], key_type=Types.STRING())
        .count_window(3, 2)
        .apply(Listed(), Types.TUPLE([Types.STRING(), Types.STRING()]))
    )
    with lists.execute_and_collect() as results:
        return list(results)
