"""Alerts for rides longer than two hours, even while they last; starts and ends come out of order."""

from pyflink.common import Duration, Row, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import KeyedProcessFunction
from pyflink.datastream.state import ValueStateDescriptor

ORDERED = False
PACED = True

HOUR = 3_600_000
RIDES = [
    Row(9, "start", 0), Row(9, "end", 1), Row(1, "start", 0), Row(2, "start", HOUR // 2), Row(2, "end", 2 * HOUR),
    Row(3, "end", HOUR), Row(3, "start", HOUR // 2), Row(1, "end", 3 * HOUR), Row(4, "start", 3 * HOUR),
    Row(5, "end", 4 * HOUR), Row(5, "start", 3 * HOUR + 1), Row(6, "start", 7 * HOUR), Row(6, "end", 10 * HOUR),
]  # fmt: skip


class RideTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value.time


class LongRides(KeyedProcessFunction):
    def open(self, runtime_context):
        self.first = runtime_context.get_state(
            ValueStateDescriptor("first", Types.TUPLE([Types.STRING(), Types.LONG()]))
        )

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        first = self.first.value()
        if first is None:
            self.first.update((value.kind, value.time))
            if value.kind == "start":
                ctx.timer_service().register_event_time_timer(value.time + 2 * HOUR)
            return
        if value.kind == "start":
            if first[1] - value.time > 2 * HOUR:
                yield Row(value.ride, "too long")
        else:
            ctx.timer_service().delete_event_time_timer(first[1] + 2 * HOUR)
            if value.time - first[1] > 2 * HOUR:
                yield Row(value.ride, "too long")
        self.first.clear()

    def on_timer(self, timestamp, ctx: "KeyedProcessFunction.OnTimerContext"):
        yield Row(ctx.get_current_key(), "still driving")
        self.first.clear()


def run(env: StreamExecutionEnvironment):
    env.get_config().set_auto_watermark_interval(1)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_minutes(60)
    ).with_timestamp_assigner(RideTime())
    alerts = (
        env.from_collection(
            RIDES, Types.ROW_NAMED(["ride", "kind", "time"], [Types.LONG(), Types.STRING(), Types.LONG()])
        )
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda ride: ride.ride, key_type=Types.LONG())
        .process(LongRides(), Types.ROW_NAMED(["ride", "alert"], [Types.LONG(), Types.STRING()]))
    )
    with alerts.execute_and_collect() as results:
        return list(results)
