"""Processing-time timers that are an hour away when the input ends: they are dropped."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import KeyedProcessFunction


class Remind(KeyedProcessFunction):
    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        now = ctx.timer_service().current_processing_time()
        ctx.timer_service().register_processing_time_timer(now + 3_600_000)
        yield f"{value} {'clock' if now >= 0 else 'no clock'}"

    def on_timer(self, timestamp, ctx: "KeyedProcessFunction.OnTimerContext"):
        yield f"{ctx.get_current_key()} an hour later"


def run(env: StreamExecutionEnvironment):
    reminders = (
        env.from_collection(["a", "b", "a"], Types.STRING())
        .key_by(lambda value: value, key_type=Types.STRING())
        .process(Remind(), Types.STRING())
    )
    with reminders.execute_and_collect() as results:
        return list(results)
