"""Counts in windows of a second of processing time; each burst comes early in a window."""

import time

from pyflink.common import Time, Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.window import TumblingProcessingTimeWindows

ORDERED = False
CLOCK = "system"
BURST = "burst"
EVENTS = [BURST, "a", "b", "a", BURST, "b", "b"]


def when_a_window_begins(value):
    if value == BURST:
        time.sleep(1.1 - time.time() % 1)
    return value != BURST


def run(env: StreamExecutionEnvironment):
    env.set_buffer_timeout(0)
    counts = (
        env.from_collection(EVENTS, Types.STRING())
        .filter(when_a_window_begins)
        .map(lambda value: (value, 1), Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(lambda pair: pair[0], key_type=Types.STRING())
        .window(TumblingProcessingTimeWindows.of(Time.seconds(1)))
        .reduce(lambda one, other: (one[0], one[1] + other[1]))
    )
    with counts.execute_and_collect() as results:
        return list(results)
