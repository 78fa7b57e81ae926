"""clicks.py process|thread all|first|rest: every kind of state, window and timer of PyFlink, over sixty clicks.

`rest` goes on from a savepoint after `first`. SETTINGS has settings of Flink, such as where it is.
"""

import datetime
import decimal
import os
import sys

from pyflink.common import Configuration, Row, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.functions import (
    AggregateFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
)
from pyflink.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from pyflink.datastream.window import (
    ContinuousEventTimeTrigger,
    CountTrigger,
    EventTimeSessionWindows,
    TumblingEventTimeWindows,
)

MODE, PART = sys.argv[1], sys.argv[2]
RECORD = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
USERS = ["ada", "bob", "eve", "zoë"]
CLICKS = [(USERS[n * 7 % 4], n, 1000 * n) for n in range(60)]
HALF = 33
RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())


class EventTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[2]


class CountSum(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + 1, accumulator[1] + (value if isinstance(value, int) else value[1])

    def get_result(self, accumulator):
        return accumulator[1] / accumulator[0]

    def merge(self, a, b):
        return a[0] + b[0], a[1] + b[1]


class AllKinds(KeyedProcessFunction):
    def open(self, ctx):
        self.count = ctx.get_state(ValueStateDescriptor("count", Types.INT()))
        self.pickled = ctx.get_state(ValueStateDescriptor("pickled", Types.PICKLED_BYTE_ARRAY()))
        self.row = ctx.get_state(
            ValueStateDescriptor("row", Types.ROW_NAMED(["u", "n"], [Types.STRING(), Types.LONG()]))
        )
        self.double = ctx.get_state(ValueStateDescriptor("double", Types.DOUBLE()))
        self.seen = ctx.get_list_state(ListStateDescriptor("seen", Types.STRING()))
        self.pairs = ctx.get_list_state(
            ListStateDescriptor("pairs", Types.TUPLE([Types.STRING(), Types.LONG()]))
        )
        self.sums = ctx.get_map_state(MapStateDescriptor("sums", Types.STRING(), Types.LONG()))
        self.max = ctx.get_reducing_state(
            ReducingStateDescriptor("max", lambda a, b: max(a, b), Types.LONG())
        )
        self.avg = ctx.get_aggregating_state(
            AggregatingStateDescriptor("avg", CountSum(), Types.TUPLE([Types.LONG(), Types.LONG()]))
        )
        lasting = ValueStateDescriptor("lasting", Types.LONG())
        lasting.enable_time_to_live(StateTtlConfig.new_builder(Time.days(100000)).build())
        self.lasting = ctx.get_state(lasting)

    def process_element(self, click, ctx):
        user, n, _ = click
        self.count.update((self.count.value() or 0) + 1)
        self.pickled.update([user, n, (self.pickled.value() or [0, 0, 0])[2] + 1])
        self.row.update(Row(u=user, n=n))
        self.double.update((self.double.value() or 0.5) * 1.5)
        self.seen.add(f"{user}{n}")
        self.pairs.add((user, n))
        self.sums.put(f"m{n % 3}", (self.sums.get(f"m{n % 3}") or 0) + n)
        self.max.add(n)
        self.avg.add(n)
        self.lasting.update((self.lasting.value() or 0) + n)
        ctx.timer_service().register_event_time_timer(100_000 + n % 5)
        yield (
            f"kinds {user} {self.count.value()} {self.pickled.value()} {self.row.value().u} {self.row.value().n} "
            f"{self.double.value()} {','.join(self.seen.get())} {list(self.pairs.get())} "
            f"{sorted(self.sums.items())} {self.max.get()} {self.avg.get()} {self.lasting.value()}"
        )

    def on_timer(self, timestamp, ctx):
        yield f"timer {ctx.get_current_key()} {timestamp}"


class Listing(ProcessWindowFunction):
    def process(self, key, ctx, elements):
        yield f"list {key} {ctx.window().start} {[tuple(each) for each in elements]}"


class Shown(ProcessWindowFunction):
    def process(self, key, ctx, elements):
        yield f"mean {key} {ctx.window().start} {list(elements)}"


class Ruled(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(10**7)

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(value[0], value[1])

    def on_timer(self, timestamp, ctx):
        yield f"rules {ctx.get_current_key()} {sorted(ctx.get_broadcast_state(RULES).items())}"


class Both(KeyedCoProcessFunction):
    def open(self, ctx):
        self.sum = ctx.get_state(ValueStateDescriptor("sum", Types.LONG()))

    def process_element1(self, value, ctx):
        self.sum.update((self.sum.value() or 0) + value[1])
        ctx.timer_service().register_event_time_timer(10**7)

    def process_element2(self, value, ctx):
        self.sum.update((self.sum.value() or 0) + 1000 * value[1])

    def on_timer(self, timestamp, ctx):
        yield f"both {ctx.get_current_key()} {self.sum.value()}"


TYPES = {
    "text": (Types.STRING(), lambda n: f"é{n}"),
    "flag": (Types.BOOLEAN(), lambda n: n % 2 == 0),
    "byte": (Types.BYTE(), lambda n: n - 30),
    "short": (Types.SHORT(), lambda n: n * 100),
    "float": (Types.FLOAT(), lambda n: n / 4),
    "tuple": (Types.TUPLE([Types.STRING(), Types.LONG()]), lambda n: (str(n), n)),
    "map": (Types.MAP(Types.STRING(), Types.LONG()), lambda n: {"n": n, "m": -n}),
}
if MODE == "process":
    TYPES |= {
        "list": (Types.LIST(Types.STRING()), lambda n: [str(n), "x"]),
        "day": (Types.SQL_DATE(), lambda n: datetime.date(2001, 1, 1) + datetime.timedelta(n)),
        "time": (Types.SQL_TIME(), lambda n: datetime.time(1, 2, n, 250000)),
        "moment": (Types.SQL_TIMESTAMP(), lambda n: datetime.datetime(2001, 1, 1, 0, 0, n, 5000)),
        "decimal": (Types.BIG_DEC(), lambda n: decimal.Decimal(f"{n}.50")),
        "bytes": (Types.PRIMITIVE_ARRAY(Types.BYTE()), lambda n: bytes([n, 0, 255])),
        "longs": (Types.PRIMITIVE_ARRAY(Types.LONG()), lambda n: [n, -n]),
        "texts": (Types.BASIC_ARRAY(Types.STRING()), lambda n: [str(n), None]),
        "nested": (
            Types.ROW_NAMED(["a", "b"], [Types.TUPLE([Types.LONG(), Types.LONG()]), Types.STRING()]),
            lambda n: Row(a=(n, n), b=None),
        ),
    }


class Further(KeyedProcessFunction):
    def open(self, ctx):
        self.states = {
            name: ctx.get_state(ValueStateDescriptor(name, each)) for name, (each, _) in TYPES.items()
        }
        self.rows = ctx.get_list_state(
            ListStateDescriptor("rows", Types.TUPLE([Types.STRING(), Types.LONG()]))
        )
        self.objects = ctx.get_map_state(
            MapStateDescriptor("objects", Types.LONG(), Types.PICKLED_BYTE_ARRAY())
        )

    def process_element(self, click, ctx):
        n = click[1]
        held = {name: state.value() for name, state in self.states.items()}
        if held["map"]:
            held["map"] = sorted(held["map"].items())  # Java has an order of its own
        yield f"types {click[0]} {n} {sorted(held.items())} {list(self.rows.get())} {sorted(self.objects.items())}"
        for name, (_, make) in TYPES.items():
            self.states[name].update(make(n))
        self.rows.add((click[0], n))
        self.objects.put(n % 3, [n, None, {"x": (n,)}])


class Whole(ProcessAllWindowFunction):
    def process(self, context, elements):
        yield f"whole {context.window().start} {sum(each[1] for each in elements)}"


def add(a, b):
    return a[0], a[1] + b[1], max(a[2], b[2])


configuration = Configuration()
configuration.set_string("python.execution-mode", MODE)
for setting in os.environ.get("SETTINGS", "").split():
    configuration.set_string(*setting.split("="))
env = StreamExecutionEnvironment.get_execution_environment(configuration)
env.set_max_parallelism(128)
env.get_config().set_auto_watermark_interval(3_600_000)  # results must not depend on how fast elements come
chosen = {"all": CLICKS, "first": CLICKS[:HALF], "rest": CLICKS[HALF:]}[PART]
strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(EventTime())
clicks = env.from_collection(chosen, RECORD).assign_timestamps_and_watermarks(strategy)
untyped = clicks.key_by(lambda click: click[0])
by_user = clicks.key_by(lambda click: click[0], Types.STRING())
by_number = clicks.key_by(lambda click: click[1] % 3, Types.INT())
by_pair = clicks.key_by(lambda click: (click[0], click[1] % 2), Types.TUPLE([Types.STRING(), Types.LONG()]))
hundred = TumblingEventTimeWindows.of(Time.seconds(100))
by_user.process(AllKinds(), Types.STRING()).uid("kinds").print()
untyped.process(AllKinds(), Types.STRING()).uid("kinds-untyped").print()
by_pair.process(AllKinds(), Types.STRING()).uid("kinds-pair").print()
by_number.window(hundred).reduce(add, output_type=RECORD).uid("reduced").print()
untyped.window(hundred).process(Listing(), Types.STRING()).uid("listed").print()
by_user.window(hundred).aggregate(
    CountSum(), Shown(), Types.TUPLE([Types.LONG(), Types.LONG()]), Types.STRING()
).uid("means").print()
if MODE == "process":
    sessions = by_user.window(EventTimeSessionWindows.with_gap(Time.seconds(50)))
    sessions.reduce(add, output_type=RECORD).uid("sessions").print()
    by_user.count_window(4).reduce(add, output_type=RECORD).uid("counts").print()
pair = Types.TUPLE([Types.STRING(), Types.LONG()])
all_rules = [("one", 1), ("two", 2), ("three", 3)]
chosen_rules = {"all": all_rules, "first": all_rules[:2], "rest": all_rules[2:]}[PART]
rules = env.from_collection(chosen_rules, pair).broadcast(RULES)
by_user.connect(rules).process(Ruled(), Types.STRING()).uid("ruled").print()
by_user.connect(by_user).process(Both(), Types.STRING()).uid("both").print()
by_user.process(Further(), Types.STRING()).uid("further").print()
clicks.window_all(hundred).process(Whole(), Types.STRING()).uid("whole").print()
by_user.window(hundred).trigger(CountTrigger.of(4)).reduce(add, output_type=RECORD).uid("by-count").print()
often = by_user.window(hundred).trigger(ContinuousEventTimeTrigger.of(Time.seconds(20)))
often.reduce(add, output_type=RECORD).uid("often").print()
env.execute("clicks")
