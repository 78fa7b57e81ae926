"""Triggers within triggers on windows that slide and merge, and a side output of a window beside its results."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import OutputTag, ProcessWindowFunction
from pyflink.datastream.window import (
    ContinuousEventTimeTrigger,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)

ORDERED = False

ELEMENTS = [("a", 1), ("b", 2), ("a", 3), ("a", 4), ("b", 11), ("a", 12), ("a", 30), ("b", 31), ("b", 33)]
TIMES = OutputTag("times", Types.STRING())


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Told(ProcessWindowFunction):
    def process(self, key, context, elements):
        times = [element[1] for element in elements]
        yield TIMES, f"{key} {sum(times)}"
        yield f"{key} {context.window()} {times}"


def run(env):
    env.get_config().set_auto_watermark_interval(3_600_000)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
    ten, five = Time.milliseconds(10), Time.milliseconds(5)
    windows = [
        (TumblingEventTimeWindows.of(ten), PurgingTrigger.of(CountTrigger.of(2))),
        (
            TumblingEventTimeWindows.of(ten, Time.milliseconds(3)),
            PurgingTrigger.of(EventTimeTrigger.create()),
        ),
        (SlidingEventTimeWindows.of(ten, five), CountTrigger.of(2)),
        (EventTimeSessionWindows.with_gap(ten), CountTrigger.of(2)),
        (EventTimeSessionWindows.with_gap(ten), PurgingTrigger.of(CountTrigger.of(2))),
        (EventTimeSessionWindows.with_gap(ten), ContinuousEventTimeTrigger.of(five)),
    ]
    results = {}
    for assigner, trigger in windows:
        elements = env.from_collection(ELEMENTS, Types.TUPLE([Types.STRING(), Types.INT()]))
        keyed = elements.assign_timestamps_and_watermarks(strategy).key_by(lambda element: element[0])
        told = keyed.window(assigner).trigger(trigger).process(Told(), Types.STRING())
        both = told.union(told.get_side_output(TIMES))
        with both.execute_and_collect() as collected:
            results[f"{assigner} {type(trigger).__name__} {len(results)}"] = list(collected)
    return results
