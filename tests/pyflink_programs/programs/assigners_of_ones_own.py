"""Window assigners of a program's own: by a field of the element, in shifts, and with windows that merge."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import (
    CountTrigger,
    CountWindow,
    CountWindowSerializer,
    EventTimeTrigger,
    MergingWindowAssigner,
    TimeWindow,
    TimeWindowSerializer,
    WindowAssigner,
)

ORDERED = False

EVENTS = [
    ("a", 100, 1), ("b", 250, 2), ("a", 900, 3), ("a", 1_100, 4), ("b", 1_900, 5), ("a", 2_500, 6), ("b", 2_600, 7),
    ("a", 5_100, 8),
]  # fmt: skip


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class ByParity(WindowAssigner):
    def assign_windows(self, element, timestamp, context):
        return [CountWindow(element[2] % 2)]

    def get_default_trigger(self, env):
        return CountTrigger.of(2)

    def get_window_serializer(self):
        return CountWindowSerializer()

    def is_event_time(self):
        return False


class Shifts(WindowAssigner):
    def assign_windows(self, element, timestamp, context):
        start = timestamp - timestamp % 1_500
        return [TimeWindow(start, start + 1_500)]

    def get_default_trigger(self, env):
        return EventTimeTrigger()

    def get_window_serializer(self):
        return TimeWindowSerializer()

    def is_event_time(self):
        return True


class Visits(Shifts, MergingWindowAssigner):
    def assign_windows(self, element, timestamp, context):
        return [TimeWindow(timestamp, timestamp + 1_000)]

    def merge_windows(self, windows, callback):
        merged = []
        for window in sorted(windows, key=lambda each: each.start):
            if merged and merged[-1][0].intersects(window):
                merged[-1] = merged[-1][0].cover(window), [*merged[-1][1], window]
            else:
                merged.append((window, [window]))
        for whole, parts in merged:
            if len(parts) > 1:
                callback.merge(parts, whole)


class Listed(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, repr(context.window()), ",".join(str(element[2]) for element in elements)


def run(env: StreamExecutionEnvironment):
    env.get_config().set_auto_watermark_interval(3_600_000)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
    outputs = {}
    for name, assigner in {"parity": ByParity(), "shifts": Shifts(), "visits": Visits()}.items():
        windows = (
            env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()]))
            .assign_timestamps_and_watermarks(strategy)
            .key_by(lambda event: event[0], Types.STRING())
            .window(assigner)
            .process(Listed(), Types.TUPLE([Types.STRING(), Types.STRING(), Types.STRING()]))
        )
        with windows.execute_and_collect() as results:
            outputs[name] = list(results)
    return outputs
