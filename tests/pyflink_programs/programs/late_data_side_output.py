"""Events behind the watermark go to a side output of the window."""

from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import OutputTag, StreamExecutionEnvironment
from pyflink.datastream.window import TumblingEventTimeWindows

PACED = True

EVENT = Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()])
EVENTS = [
    ("a", 100, 1), ("a", 200, 2), ("a", 1_500, 3), ("a", 900, 4), ("a", 2_600, 5), ("a", 999, 6), ("a", 1_600, 7),
    ("a", 9_000, 8), ("a", 2_999, 9), ("a", 8_000, 10),
]  # fmt: skip


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def run(env: StreamExecutionEnvironment):
    env.get_config().set_auto_watermark_interval(1)
    late = OutputTag("late", EVENT)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_millis(1_000)
    ).with_timestamp_assigner(SecondField())
    sums = (
        env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()]))
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda event: event[0], key_type=Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .side_output_late_data(late)
        .reduce(lambda a, b: (a[0], b[1], a[2] + b[2]))
    )
    collected = {}
    for name, stream in {"sums": sums, "late": sums.get_side_output(late)}.items():
        with stream.execute_and_collect() as results:
            collected[name] = list(results)
    return collected
