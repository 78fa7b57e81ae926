"""Sessions that end when nothing has come for half a second; the last one is still open when the input ends."""

import time

from pyflink.common import Time, Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import ProcessWindowFunction
from pyflink.datastream.window import ProcessingTimeSessionWindows

CLOCK = "system"
EVENTS = [("a", 0), ("a", 0), ("a", 50), ("a", 1_000), ("a", 0), ("a", 1_000)]
"""Keys, and how many ms the event comes after the one before."""


def when_it_comes(event):
    time.sleep(event[1] / 1000)
    return event


class Session(ProcessWindowFunction):
    def process(self, key, context: "ProcessWindowFunction.Context", elements):
        window = context.window()
        waits = [wait for _, wait in elements]
        has_ended = context.current_processing_time() >= window.max_timestamp()
        yield key, str(waits), window.end - window.start >= 500 + sum(waits[1:]), has_ended

    def clear(self, context: "ProcessWindowFunction.Context"):
        pass


def run(env: StreamExecutionEnvironment):
    env.set_buffer_timeout(0)
    event = Types.TUPLE([Types.STRING(), Types.INT()])
    sessions = (
        env.from_collection(EVENTS, event)
        .map(when_it_comes, event)
        .key_by(lambda event: event[0], key_type=Types.STRING())
        .window(ProcessingTimeSessionWindows.with_gap(Time.milliseconds(500)))
        .process(Session(), Types.TUPLE([Types.STRING(), Types.STRING(), Types.BOOLEAN(), Types.BOOLEAN()]))
    )
    with sessions.execute_and_collect() as results:
        return list(results)
