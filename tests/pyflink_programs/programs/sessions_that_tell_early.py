"""Sessions that tell what they have with every second click; a purging trigger forgets what it has told."""

from collections.abc import Iterable

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import CountTrigger, EventTimeSessionWindows, PurgingTrigger, TimeWindow

CLICKS = [
    ("ann", 1_000),
    ("bob", 1_500),
    ("ann", 2_000),
    ("ann", 2_500),
    ("ann", 3_000),
    ("bob", 9_000),
    ("ann", 9_500),
]


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Times(ProcessWindowFunction[tuple, str, str, TimeWindow]):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[tuple]
    ):
        window = context.window()
        yield f"{key} [{window.start}, {window.end}): {' '.join(str(time) for _, time in elements)}"


def run(env: StreamExecutionEnvironment):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())

    def sessions(trigger):
        clicks = env.from_collection(CLICKS, Types.TUPLE([Types.STRING(), Types.LONG()]))
        windows = (
            clicks.assign_timestamps_and_watermarks(strategy)
            .key_by(lambda click: click[0], Types.STRING())
            .window(EventTimeSessionWindows.with_gap(Time.seconds(2)))
        )
        return list(windows.trigger(trigger).process(Times(), Types.STRING()).execute_and_collect())

    return {"kept": sessions(CountTrigger.of(2)), "purged": sessions(PurgingTrigger.of(CountTrigger.of(2)))}
