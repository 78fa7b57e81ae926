"""Orders get the name of their product from a broadcast catalogue; a timer waits until the catalogue is there."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import KeyedBroadcastProcessFunction
from pyflink.datastream.state import ListStateDescriptor, MapStateDescriptor

ORDERED = False

ORDERS = [("ann", 1, 1_000), ("bob", 2, 1_500), ("ann", 3, 2_000), ("cy", 1, 2_500)]
PRODUCTS = [(1, "lamp", 0), (2, "desk", 0), (4, "door", 0), (1, "torch", 100)]

CATALOGUE = MapStateDescriptor("catalogue", Types.INT(), Types.STRING())


class ThirdField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[2]


class Enrich(KeyedBroadcastProcessFunction):
    def open(self, runtime_context):
        self.waiting = runtime_context.get_list_state(ListStateDescriptor("waiting", Types.INT()))

    def process_element(self, value, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext):
        self.waiting.add(value[1])
        ctx.timer_service().register_event_time_timer(value[2])

    def process_broadcast_element(self, value, ctx: KeyedBroadcastProcessFunction.Context):
        ctx.get_broadcast_state(CATALOGUE).put(value[0], value[1])

    def on_timer(self, timestamp, ctx: KeyedBroadcastProcessFunction.OnTimerContext):
        catalogue = ctx.get_broadcast_state(CATALOGUE)
        for product in self.waiting.get():
            name = catalogue.get(product) if catalogue.contains(product) else "unknown"
            yield ctx.get_current_key(), product, name
        self.waiting.clear()


def run(env: StreamExecutionEnvironment):
    env.get_config().set_auto_watermark_interval(3_600_000)  # one watermark, at the end
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ThirdField())
    products = env.from_collection(
        PRODUCTS, Types.TUPLE([Types.INT(), Types.STRING(), Types.LONG()])
    ).assign_timestamps_and_watermarks(strategy)
    enriched = (
        env.from_collection(ORDERS, Types.TUPLE([Types.STRING(), Types.INT(), Types.LONG()]))
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ThirdField())
        )
        .key_by(lambda order: order[0], key_type=Types.STRING())
        .connect(products.broadcast(CATALOGUE))
        .process(Enrich(), Types.TUPLE([Types.STRING(), Types.INT(), Types.STRING()]))
    )
    with enriched.execute_and_collect() as results:
        return list(results)
