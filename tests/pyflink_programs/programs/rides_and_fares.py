"""Joins rides with their fares, whichever comes first; what stays alone for five minutes goes to side outputs."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import OutputTag, StreamExecutionEnvironment
from pyflink.datastream.functions import KeyedCoProcessFunction
from pyflink.datastream.state import ValueStateDescriptor

ORDERED = False

RIDE = Types.TUPLE([Types.LONG(), Types.LONG(), Types.STRING()])
FARE = Types.TUPLE([Types.LONG(), Types.LONG(), Types.DOUBLE()])
UNMATCHED_RIDES = OutputTag("unmatched rides", Types.TUPLE([Types.LONG(), Types.STRING()]))
UNMATCHED_FARES = OutputTag("unmatched fares", Types.TUPLE([Types.LONG(), Types.DOUBLE()]))

RIDES = [(1, 0, "harbour"), (2, 60_000, "museum"), (3, 90_000, "station"), (5, 400_000, "airport")]
FARES = [(2, 10_000, 12.5), (1, 20_000, 8.0), (4, 100_000, 30.0), (5, 650_000, 41.0)]


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Enrich(KeyedCoProcessFunction):
    def open(self, runtime_context):
        self.ride = runtime_context.get_state(ValueStateDescriptor("ride", RIDE))
        self.fare = runtime_context.get_state(ValueStateDescriptor("fare", FARE))

    def process_element1(self, value, ctx: "KeyedCoProcessFunction.Context"):
        fare = self.fare.value()
        if fare is not None:
            self.fare.clear()
            yield value[0], value[2], fare[2]
        else:
            self.ride.update(value)
            ctx.timer_service().register_event_time_timer(value[1] + 300_000)

    def process_element2(self, value, ctx: "KeyedCoProcessFunction.Context"):
        ride = self.ride.value()
        if ride is not None:
            self.ride.clear()
            yield value[0], ride[2], value[2]
        else:
            self.fare.update(value)
            ctx.timer_service().register_event_time_timer(value[1] + 300_000)

    def on_timer(self, timestamp, ctx: "KeyedCoProcessFunction.OnTimerContext"):
        ride, fare = self.ride.value(), self.fare.value()
        if ride is not None:
            self.ride.clear()
            yield UNMATCHED_RIDES, (ride[0], ride[2])
        if fare is not None:
            self.fare.clear()
            yield UNMATCHED_FARES, (fare[0], fare[2])


def run(env: StreamExecutionEnvironment):
    env.get_config().set_auto_watermark_interval(3_600_000)  # one watermark, at the end

    def strategy():
        return WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())

    rides = env.from_collection(RIDES, Types.TUPLE([Types.LONG(), Types.LONG(), Types.STRING()]))
    fares = env.from_collection(FARES, Types.TUPLE([Types.LONG(), Types.LONG(), Types.DOUBLE()]))
    joined = (
        rides.assign_timestamps_and_watermarks(strategy())
        .connect(fares.assign_timestamps_and_watermarks(strategy()))
        .key_by(lambda ride: ride[0], lambda fare: fare[0], Types.LONG())
        .process(Enrich(), Types.TUPLE([Types.LONG(), Types.STRING(), Types.DOUBLE()]))
    )
    outputs = {
        "joined": joined,
        "unmatched rides": joined.get_side_output(UNMATCHED_RIDES),
        "unmatched fares": joined.get_side_output(UNMATCHED_FARES),
    }
    collected = {}
    for name, stream in outputs.items():
        with stream.execute_and_collect() as results:
            collected[name] = list(results)
    return collected
