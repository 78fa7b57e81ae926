"""A global window that fires and is emptied with every second element."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.window import CountTrigger, GlobalWindows, PurgingTrigger

NUMBERS = [("a", 1), ("a", 2), ("b", 10), ("a", 3), ("a", 4), ("b", 20), ("a", 5), ("b", 30)]


def run(env: StreamExecutionEnvironment):
    sums = (
        env.from_collection(NUMBERS, Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(lambda value: value[0], key_type=Types.STRING())
        .window(GlobalWindows.create())
        .trigger(PurgingTrigger.of(CountTrigger.of(2)))
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )
    with sums.execute_and_collect() as results:
        return list(results)
