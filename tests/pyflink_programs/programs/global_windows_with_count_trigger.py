"""A global window that fires with every third element and keeps all of them."""

from collections.abc import Iterable

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment, WindowFunction
from pyflink.datastream.window import CountTrigger, GlobalWindow, GlobalWindows

NUMBERS = [
    ("a", 1),
    ("a", 2),
    ("b", 10),
    ("a", 3),
    ("a", 4),
    ("b", 20),
    ("a", 5),
    ("b", 30),
    ("a", 6),
    ("a", 7),
]


class Listed(WindowFunction[tuple, tuple, str, GlobalWindow]):
    def apply(self, key: str, window: GlobalWindow, inputs: Iterable[tuple]):
        yield key, ",".join(str(number) for _, number in inputs)


def run(env: StreamExecutionEnvironment):
    windows = (
        env.from_collection(NUMBERS, Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(lambda value: value[0], key_type=Types.STRING())
        .window(GlobalWindows.create())
        .trigger(CountTrigger.of(3))
        .apply(Listed(), Types.TUPLE([Types.STRING(), Types.STRING()]))
    )
    with windows.execute_and_collect() as results:
        return list(results)
