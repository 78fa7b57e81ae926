"""The walkthrough's fraud detector: a small transaction and then a large one within a minute make an alert."""

from pyflink.common import Row, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

ORDERED = False

SMALL_AMOUNT = 1.00
LARGE_AMOUNT = 500.00
ONE_MINUTE = 60 * 1_000

# The source waits before each transaction when this is recorded, so that a watermark follows each.
PACED = True

TRANSACTIONS = [
    Row(1, 0, 188.23), Row(2, 360, 374.79), Row(3, 720, 112.15), Row(1, 1_000, 0.52), Row(1, 1_500, 612.00),
    Row(2, 2_000, 0.10), Row(2, 3_000, 20.00), Row(2, 4_000, 900.00), Row(3, 10_000, 0.99), Row(1, 71_000, 5.0),
    Row(3, 75_000, 501.00), Row(2, 80_000, 0.50), Row(2, 81_000, 0.25), Row(2, 100_000, 500.01), Row(1, 200_000, 1.0),
]  # fmt: skip


class TransactionTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class FraudDetector(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.flag_state = runtime_context.get_state(ValueStateDescriptor("flag", Types.BOOLEAN()))
        self.timer_state = runtime_context.get_state(ValueStateDescriptor("timer-state", Types.LONG()))

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        if self.flag_state.value() is not None:
            if value[2] > LARGE_AMOUNT:
                yield Row(ctx.get_current_key(), ctx.timestamp(), value[2])
            self.clean_up(ctx)
        if value[2] < SMALL_AMOUNT:
            self.flag_state.update(True)
            timer = ctx.timestamp() + ONE_MINUTE
            ctx.timer_service().register_event_time_timer(timer)
            self.timer_state.update(timer)

    def on_timer(self, timestamp, ctx: "KeyedProcessFunction.OnTimerContext"):
        self.timer_state.clear()
        self.flag_state.clear()

    def clean_up(self, ctx):
        ctx.timer_service().delete_event_time_timer(self.timer_state.value())
        self.timer_state.clear()
        self.flag_state.clear()


def run(env: StreamExecutionEnvironment):
    env.get_config().set_auto_watermark_interval(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(TransactionTime())
    alerts = (
        env.from_collection(TRANSACTIONS, Types.ROW([Types.LONG(), Types.LONG(), Types.DOUBLE()]))
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda transaction: transaction[0], key_type=Types.LONG())
        .process(FraudDetector(), Types.ROW([Types.LONG(), Types.LONG(), Types.DOUBLE()]))
    )
    with alerts.execute_and_collect() as results:
        return list(results)
