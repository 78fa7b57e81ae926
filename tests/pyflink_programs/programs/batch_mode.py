"""The execution mode BATCH: elements come key by key, in the order of time, and then the timers of the key fire."""

from pyflink.common import Configuration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessWindowFunction,
    TimeDomain,
)
from pyflink.datastream.state import ListStateDescriptor, MapStateDescriptor
from pyflink.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)

ELEMENT = Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()])
TEXT = Types.STRING()
RULES = MapStateDescriptor("rules", Types.INT(), Types.INT())
FIRST = [
    ("b", 30, 1),
    ("a", 20, 2),
    ("b", 10, 3),
    ("a", 5, 4),
    ("a", 20, 5),
    ("c", 7, 6),
    ("b", 30, 7),
    ("a", 1, 8),
]
SECOND = [("a", 3, 100), ("b", 50, 101), ("b", 5, 102), ("d", 1, 103), ("a", 20, 104)]


class Timestamps(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Remembered(KeyedProcessFunction):
    def open(self, runtime_context):
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", Types.STRING()))

    def process_element(self, value, ctx):
        timers = ctx.timer_service()
        self.seen.add(f"{value[2]} at {ctx.timestamp()} under {timers.current_watermark()}")
        timers.register_event_time_timer(value[1] + 10)
        timers.register_processing_time_timer(timers.current_processing_time() + 3_600_000)
        timers.register_event_time_timer(9)
        timers.delete_event_time_timer(9)

    def on_timer(self, timestamp, ctx):
        is_event_time = ctx.time_domain() == TimeDomain.EVENT_TIME
        shown = f"event time {timestamp}" if is_event_time else "processing time"
        if is_event_time or list(self.seen.get()):
            yield f"{ctx.get_current_key()}: {shown}, {list(self.seen.get())}"
        self.seen.clear()


class Collected(ProcessWindowFunction):
    def process(self, key, context, elements):
        window = context.window()
        yield f"{key} {window.start} {window.end} {context.current_watermark()} {[each[2] for each in elements]}"


class Both(KeyedCoProcessFunction):
    def process_element1(self, value, ctx):
        ctx.timer_service().register_event_time_timer(15)
        yield f"first {value}"

    def process_element2(self, value, ctx):
        yield f"second {value}"

    def on_timer(self, timestamp, ctx):
        yield f"timer {ctx.get_current_key()} {timestamp}"


class Ruled(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield f"{value} {ctx.get_broadcast_state(RULES).get(1)}"

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(1, value)
        yield f"rule {value}"


def collected(stream):
    with stream.execute_and_collect() as results:
        return list(results)


def run(env):
    env.configure(Configuration().set_string("execution.runtime-mode", "BATCH"))

    def timed(elements):
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Timestamps())
        return env.from_collection(elements, ELEMENT).assign_timestamps_and_watermarks(strategy)

    def keyed():
        return timed(FIRST).key_by(lambda value: value[0], TEXT)

    def windows(assigner):
        return collected(keyed().window(assigner).process(Collected(), TEXT))

    both = timed(FIRST).connect(timed(SECOND)).key_by(lambda value: value[0], lambda value: value[0], TEXT)
    rules = env.from_collection([1, 2, 3], Types.INT()).broadcast(RULES)
    return {
        "process": collected(keyed().process(Remembered(), TEXT)),
        "tumbling": windows(TumblingEventTimeWindows.of(Time.milliseconds(10))),
        "sliding": windows(SlidingEventTimeWindows.of(Time.milliseconds(20), Time.milliseconds(10))),
        "sessions": windows(EventTimeSessionWindows.with_gap(Time.milliseconds(6))),
        "counted": collected(keyed().count_window(2).reduce(lambda a, b: (a[0], a[1], 10 * a[2] + b[2]))),
        "reduced": collected(keyed().reduce(lambda a, b: (a[0], a[1], 10 * a[2] + b[2]))),
        "mapped": collected(keyed().map(str, TEXT)),
        "all": collected(
            timed(FIRST)
            .window_all(TumblingEventTimeWindows.of(Time.milliseconds(10)))
            .reduce(lambda a, b: (a[0], a[1], 10 * a[2] + b[2]))
        ),
        "both": collected(both.process(Both(), TEXT)),
        "ruled": collected(keyed().connect(rules).process(Ruled(), TEXT)),
    }
