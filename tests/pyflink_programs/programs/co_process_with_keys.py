"""A CoProcessFunction, not a KeyedCoProcessFunction, on keyed streams: it has the state and the timers of a key."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import CoProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ListStateDescriptor

ORDERED = False

ORDERS = [("a", 100), ("b", 250), ("a", 900)]
PAYMENTS = [("a", 400), ("c", 500)]


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Statement(CoProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.amounts = runtime_context.get_list_state(ListStateDescriptor("amounts", Types.LONG()))

    def process_element1(self, value, ctx):
        self.amounts.add(value[1])
        ctx.timer_service().register_event_time_timer(10_000)
        return []

    def process_element2(self, value, ctx):
        self.amounts.add(-value[1])
        ctx.timer_service().register_event_time_timer(10_000)
        return []

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), sum(self.amounts.get()), timestamp


def run(env: StreamExecutionEnvironment):
    env.get_config().set_auto_watermark_interval(3_600_000)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
    orders, payments = (
        env.from_collection(values, Types.TUPLE([Types.STRING(), Types.LONG()]))
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda value: value[0], Types.STRING())
        for values in (ORDERS, PAYMENTS)
    )
    statements = orders.connect(payments).process(
        Statement(), Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
    )
    with statements.execute_and_collect() as results:
        return list(results)
