"""A trigger of one's own with state: fires and purges when what was ordered reaches ten pieces."""

from collections.abc import Iterable

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment, WindowFunction
from pyflink.datastream.functions import ReduceFunction
from pyflink.datastream.state import ReducingStateDescriptor
from pyflink.datastream.window import GlobalWindow, GlobalWindows, Trigger, TriggerResult

ORDERS = [("pen", 4), ("pen", 5), ("ink", 12), ("pen", 3), ("ink", 9), ("pen", 9), ("pen", 1), ("ink", 2)]


class Sum(ReduceFunction):
    def reduce(self, value1, value2):
        return value1 + value2


class TenPieces(Trigger[tuple, GlobalWindow]):
    def __init__(self):
        self.descriptor = ReducingStateDescriptor("pieces", Sum(), Types.INT())

    def on_element(self, element, timestamp, window, ctx: "Trigger.TriggerContext"):
        pieces = ctx.get_partitioned_state(self.descriptor)
        pieces.add(element[1])
        if pieces.get() >= 10:
            pieces.clear()
            return TriggerResult.FIRE_AND_PURGE
        return TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_merge(self, window, ctx):
        pass

    def clear(self, window, ctx):
        ctx.get_partitioned_state(self.descriptor).clear()


class Listed(WindowFunction[tuple, tuple, str, GlobalWindow]):
    def apply(self, key: str, window: GlobalWindow, inputs: Iterable[tuple]):
        return [(key, "+".join(str(pieces) for _, pieces in inputs))]


def run(env: StreamExecutionEnvironment):
    batches = (
        env.from_collection(ORDERS, Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(lambda order: order[0], key_type=Types.STRING())
        .window(GlobalWindows.create())
        .trigger(TenPieces())
        .apply(Listed(), Types.TUPLE([Types.STRING(), Types.STRING()]))
    )
    with batches.execute_and_collect() as results:
        return list(results)
