"""Elements in bursts, with a pause after each: processing-time timers fire in the pauses, in order."""

import time

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import KeyedProcessFunction

CLOCK = "system"
PAUSE = "pause"
EVENTS = ["tea", "soup", PAUSE, "tea", PAUSE]


def without_pauses(value):
    if value == PAUSE:
        time.sleep(1)
    return value != PAUSE


class Remind(KeyedProcessFunction):
    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        now = ctx.timer_service().current_processing_time()
        ctx.timer_service().register_processing_time_timer(now + (200 if value == "tea" else 500))
        yield f"{value} is on the fire"

    def on_timer(self, timestamp, ctx: "KeyedProcessFunction.OnTimerContext"):
        late = ctx.timer_service().current_processing_time() - timestamp
        yield f"{ctx.get_current_key()} is ready{' too early' if late < 0 else ''}"


def run(env: StreamExecutionEnvironment):
    env.set_buffer_timeout(0)
    ready = (
        env.from_collection(EVENTS, Types.STRING())
        .filter(without_pauses)
        .key_by(lambda value: value, key_type=Types.STRING())
        .process(Remind(), Types.STRING())
    )
    with ready.execute_and_collect() as results:
        return list(results)
