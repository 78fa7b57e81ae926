"""Sessions by hand: a process function that moves a timer with every click of a user."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ListStateDescriptor, ValueStateDescriptor

GAP_MS = 1_000

CLICKS = [
    ("ann", "/home", 100), ("bob", "/home", 300), ("ann", "/cart", 900), ("ann", "/pay", 1_899),
    ("bob", "/help", 1_301), ("ann", "/home", 5_000), ("bob", "/bye", 2_200), ("ann", "/bye", 5_999),
]  # fmt: skip


class ThirdField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[2]


class Sessions(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.pages = runtime_context.get_list_state(ListStateDescriptor("pages", Types.STRING()))
        self.timer = runtime_context.get_state(ValueStateDescriptor("timer", Types.LONG()))

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        timer = self.timer.value()
        end = max(ctx.timestamp() + GAP_MS, timer or 0)
        if timer is not None:
            ctx.timer_service().delete_event_time_timer(timer)
        ctx.timer_service().register_event_time_timer(end)
        self.timer.update(end)
        self.pages.add(value[1])

    def on_timer(self, timestamp, ctx: "KeyedProcessFunction.OnTimerContext"):
        yield ctx.get_current_key(), timestamp, ",".join(self.pages.get())
        self.pages.clear()
        self.timer.clear()


def run(env: StreamExecutionEnvironment):
    # No watermark comes before the end of the input: all clicks are there when the first timer fires, so that a
    # user has one session.
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ThirdField())
    env.get_config().set_auto_watermark_interval(3_600_000)
    sessions = (
        env.from_collection(CLICKS, Types.TUPLE([Types.STRING(), Types.STRING(), Types.LONG()]))
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda click: click[0], key_type=Types.STRING())
        .process(Sessions(), Types.TUPLE([Types.STRING(), Types.LONG(), Types.STRING()]))
    )
    with sessions.execute_and_collect() as results:
        return list(results)
