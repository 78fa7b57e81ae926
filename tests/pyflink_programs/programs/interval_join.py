"""An interval join by hand: a shipment within four seconds after its order; both sides are buffered in map state."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import KeyedCoProcessFunction
from pyflink.datastream.state import MapStateDescriptor

ORDERED = False

UPPER_MS = 4_000

ORDERS = [("x", 1_000, "o1"), ("y", 2_000, "o2"), ("x", 3_000, "o3"), ("y", 9_000, "o4")]
SHIPMENTS = [
    ("x", 900, "s1"),
    ("x", 1_000, "s2"),
    ("x", 5_000, "s3"),
    ("y", 6_001, "s4"),
    ("y", 12_000, "s5"),
]


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class IntervalJoin(KeyedCoProcessFunction):
    def open(self, runtime_context):
        self.orders = runtime_context.get_map_state(
            MapStateDescriptor("orders", Types.LONG(), Types.STRING())
        )
        self.shipments = runtime_context.get_map_state(
            MapStateDescriptor("shipments", Types.LONG(), Types.STRING())
        )

    def process_element1(self, value, ctx):
        self.orders.put(value[1], value[2])
        ctx.timer_service().register_event_time_timer(value[1] + UPPER_MS)
        for time, shipment in self.shipments.items():
            if value[1] <= time <= value[1] + UPPER_MS:
                yield value[0], value[2], shipment

    def process_element2(self, value, ctx):
        self.shipments.put(value[1], value[2])
        ctx.timer_service().register_event_time_timer(value[1] + UPPER_MS)
        for time, order in self.orders.items():
            if time <= value[1] <= time + UPPER_MS:
                yield value[0], order, value[2]

    def on_timer(self, timestamp, ctx):
        self.orders.remove(timestamp - UPPER_MS)
        self.shipments.remove(timestamp - UPPER_MS)


def run(env: StreamExecutionEnvironment):
    env.get_config().set_auto_watermark_interval(3_600_000)  # one watermark, at the end

    def events(collection):
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
        type_info = Types.TUPLE([Types.STRING(), Types.LONG(), Types.STRING()])
        return env.from_collection(collection, type_info).assign_timestamps_and_watermarks(strategy)

    joined = (
        events(ORDERS)
        .connect(events(SHIPMENTS))
        .key_by(lambda order: order[0], lambda shipment: shipment[0], Types.STRING())
        .process(IntervalJoin(), Types.TUPLE([Types.STRING(), Types.STRING(), Types.STRING()]))
    )
    with joined.execute_and_collect() as results:
        return list(results)
