"""Jobs of real Flink whose savepoints are golden, written in flinkcore: their state is the same."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Iterator
from decimal import Context, Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

import flinkcore as fc
from flinkcore.common import Time, Types
from flinkcore.common.timestamp_assigner import TimestampAssigner
from flinkcore.datastream import KeyedProcessFunction
from flinkcore.datastream.functions import (
    AggregateFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
)
from flinkcore.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from flinkcore.datastream.window import (
    ContinuousEventTimeTrigger,
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from flinkcore.savepoints import FlinkOperator, FlinkWindow, records_of

FAR: Final = 4_000_000_000_000
RECORD: Final = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
PAIR: Final = Types.TUPLE([Types.LONG(), Types.LONG()])
LATENESS_MS: Final = 8_000
DELAY_MS: Final = 2_000
FULL_DELAY_MS: Final = 7_000

Job = Callable[[Path], tuple[Any, list[FlinkOperator]]]
"""From the directory of the records to a stream, or an environment with a sink, and the declared operators."""


def records(inputs: Path, stream: int | None = None, name: str = "first") -> pa.Table:
    """Return the records of a part, of one of the two streams if it is given."""
    lines = (inputs / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    return pa.Table.from_pylist(
        [
            {"key": row["key"], "value": row["value"], "ts": row["ts"]}
            for row in found
            if stream is None or row["stream"] == stream
        ]
    )


def environment() -> Any:
    env = fc.StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    env.set_max_parallelism(128)
    env.get_config().set_auto_watermark_interval(1)
    return env


def log(env: Any, inputs: Path, delay_ms: int = DELAY_MS, stream: int | None = None) -> Any:
    """Return a stream of the records, whose watermark follows each of them: one arrives in each ms."""
    bound = fc.WatermarkStrategy.for_bounded_out_of_orderness(fc.Duration.of_millis(delay_ms))
    table = records(inputs, stream)
    return env.from_event_log(table, timestamp="ts").assign_timestamps_and_watermarks(bound)


class CountTimers(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen"))
        self.sums = runtime_context.get_map_state(MapStateDescriptor("sums"))

    def process_element(self, value: Any, ctx: Any) -> None:
        self.count.update((self.count.value() or 0) + 1)
        self.seen.add(f"{value.key}{value.value}")
        name = f"m{value.value % 3}"
        self.sums.put(name, (self.sums.get(name) or 0) + value.value)
        ctx.timer_service().register_event_time_timer(value.ts - value.ts % 5000 + 12000)
        ctx.timer_service().register_processing_time_timer(FAR + value.value % 4)

    def on_timer(self, timestamp: int, ctx: Any) -> None:
        if (self.count.value() or 0) > 8:
            self.count.clear()
            self.seen.clear()
            self.sums.clear()


class CountSum(AggregateFunction):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: Any, accumulator: tuple[int, int]) -> tuple[int, int]:
        number = value if isinstance(value, int) else value.value
        return accumulator[0] + 1, accumulator[1] + number

    def get_result(self, accumulator: tuple[int, int]) -> str:
        return f"{accumulator[0]} values, sum {accumulator[1]}"

    def merge(self, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        return a[0] + b[0], a[1] + b[1]


class AllKinds(KeyedProcessFunction):
    def __init__(self, has_ttl: bool) -> None:
        self.has_ttl = has_ttl

    def open(self, runtime_context: Any) -> None:
        def kept(descriptor: Any) -> Any:
            if self.has_ttl:
                descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.days(36_500)).build())
            return descriptor

        self.value = runtime_context.get_state(kept(ValueStateDescriptor("value")))
        self.list = runtime_context.get_list_state(kept(ListStateDescriptor("list")))
        self.map = runtime_context.get_map_state(kept(MapStateDescriptor("map")))
        self.max = runtime_context.get_reducing_state(kept(ReducingStateDescriptor("max", max)))
        self.average = runtime_context.get_aggregating_state(
            kept(AggregatingStateDescriptor("average", CountSum()))
        )

    def process_element(self, value: Any, ctx: Any) -> None:
        self.value.update(value.value)
        self.list.add(value.value)
        self.map.put(value.value % 5, f"v{value.value}")
        self.max.add(value.value)
        self.average.add(value.value)


class AnyKey(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))
        self.map = runtime_context.get_map_state(MapStateDescriptor("map"))

    def process_element(self, value: Any, ctx: Any) -> None:
        self.count.update((self.count.value() or 0) + 1)
        self.map.put(f"m{value[1] % 3}", value[1])
        ctx.timer_service().register_event_time_timer(value[2] - value[2] % 20000 + 40000)
        ctx.timer_service().register_processing_time_timer(FAR)


class EventTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        timestamp: int = value[2]
        return timestamp


class Listing(ProcessWindowFunction[Any, Any, Any, Any]):
    def __init__(self, is_stateful: bool = False) -> None:
        self.is_stateful = is_stateful

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        if self.is_stateful:
            for store, name in (
                (context.window_state(), "window-firings"),
                (context.global_state(), "global-firings"),
            ):
                firings = store.get_state(ValueStateDescriptor(name))
                firings.update((firings.value() or 0) + 1)
        yield key, len(list(elements))

    def clear(self, context: Any) -> None:
        if self.is_stateful:
            context.window_state().get_state(ValueStateDescriptor("window-firings")).clear()


class Joined(ProcessJoinFunction[Any, Any]):
    def process_element(self, left: Any, right: Any, ctx: Any) -> Iterator[Any]:
        yield left.key, left.value, right.value


class Co(KeyedCoProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.left = runtime_context.get_map_state(MapStateDescriptor("left"))
        self.right = runtime_context.get_map_state(MapStateDescriptor("right"))

    def _add(self, state: Any, value: Any, ctx: Any) -> None:
        name = f"m{value.value % 3}"
        state.put(name, (state.get(name) or 0) + value.value)
        ctx.timer_service().register_event_time_timer(FAR)

    def process_element1(self, value: Any, ctx: Any) -> None:
        self._add(self.left, value, ctx)

    def process_element2(self, value: Any, ctx: Any) -> None:
        self._add(self.right, value, ctx)


RULES: Final = MapStateDescriptor("rules")
LAST: Final = MapStateDescriptor("last")


class Ruled(KeyedBroadcastProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.sum = runtime_context.get_state(ValueStateDescriptor("sum"))

    def process_element(self, value: Any, ctx: Any) -> None:
        self.sum.update((self.sum.value() or 0) + value.value)
        ctx.timer_service().register_event_time_timer(FAR)

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        ctx.get_broadcast_state(RULES).put(value.key, (value.key, value.value, value.ts))
        ctx.get_broadcast_state(LAST).put(value.value % 4, value.ts)


OUT: Final = pa.schema({"key": pa.string(), "n": pa.int64()})


def keyed(inputs: Path) -> Any:
    return log(environment(), inputs).key_by("key")


def windows(inputs: Path, name: str) -> Any:
    """Return the windows of a job by its name."""
    stream = keyed(inputs)
    if name.startswith("tumbling"):
        return stream.window(TumblingEventTimeWindows.of(Time.seconds(10))).allowed_lateness(LATENESS_MS)
    if name.startswith("sliding"):
        return stream.window(SlidingEventTimeWindows.of(Time.seconds(10), Time.seconds(4), Time.seconds(1)))
    if name.startswith("session"):
        found = stream.window(EventTimeSessionWindows.with_gap(Time.seconds(9)))
        return found if name == "session_aggregate" else found.allowed_lateness(LATENESS_MS)
    if name == "evictor_count":
        return stream.window(TumblingEventTimeWindows.of(Time.seconds(30))).evictor(CountEvictor.of(3))
    if name == "purging_trigger":
        found = stream.window(TumblingEventTimeWindows.of(Time.seconds(10))).allowed_lateness(LATENESS_MS)
        return found.trigger(PurgingTrigger.of(EventTimeTrigger.create()))
    if name == "continuous_trigger":
        found = stream.window(TumblingEventTimeWindows.of(Time.seconds(30)))
        return found.trigger(ContinuousEventTimeTrigger.of(Time.seconds(5)))
    if name == "count_global":
        return stream.window(GlobalWindows.create()).trigger(CountTrigger.of(4))
    return stream.window(GlobalWindows.create()).trigger(PurgingTrigger.of(CountTrigger.of(4)))


def columnar(name: str, contents: FlinkWindow) -> Job:
    def job(inputs: Path) -> tuple[Any, list[FlinkOperator]]:
        found = windows(inputs, name).aggregate(n=fc.count(), total=fc.sum_("value"), last=fc.max_("ts"))
        return found, [FlinkOperator("win", window=contents)]

    return job


def functions(name: str, function: Any, states: dict[str, Any]) -> Job:
    def job(inputs: Path) -> tuple[Any, list[FlinkOperator]]:
        found = function(windows(inputs, name))
        return found, [FlinkOperator("win", states=states)]

    return job


def process(function: Any, uid: str, **declared: Any) -> Job:
    def job(inputs: Path) -> tuple[Any, list[FlinkOperator]]:
        return keyed(inputs).process(function, OUT), [FlinkOperator(uid, **declared)]

    return job


def interval_join(inputs: Path) -> tuple[Any, list[FlinkOperator]]:
    env = environment()
    left, right = (log(env, inputs, FULL_DELAY_MS, stream).key_by("key") for stream in (0, 1))
    joined = left.interval_join(right).between(Time.seconds(-20), Time.seconds(30))
    declared = FlinkOperator("join", states={"LEFT_BUFFER": RECORD, "RIGHT_BUFFER": RECORD})
    schema = pa.schema({"key": pa.string(), "a": pa.int64(), "b": pa.int64()})
    return joined.process(Joined(), schema), [declared]


def co_process(inputs: Path) -> tuple[Any, list[FlinkOperator]]:
    env = environment()
    left, right = (log(env, inputs, FULL_DELAY_MS, stream) for stream in (0, 1))
    return left.connect(right).key_by("key", "key").process(Co(), OUT), [FlinkOperator("co")]


def broadcast(inputs: Path) -> tuple[Any, list[FlinkOperator]]:
    env = environment()
    left, right = (log(env, inputs, FULL_DELAY_MS, stream) for stream in (0, 1))
    shared = right.broadcast(RULES, LAST)
    states = {"last": (Types.INT(), Types.LONG())}
    return left.key_by("key").connect(shared).process(Ruled(), OUT), [FlinkOperator("ruled", states=states)]


def value_of(tagged: Any) -> Any:
    """Return a key of the catalog as Python has it."""
    if not isinstance(tagged, dict):
        return tagged
    if "double" in tagged:
        return struct.unpack(">d", bytes.fromhex(tagged["double"]))[0]
    if "decimal" in tagged:
        return Decimal(tagged["decimal"]).scaleb(-tagged["scale"], Context(prec=100))
    return tagged["char"] if "char" in tagged else tuple(tagged["tuple"])


def keys(name: str, declared: Any) -> Job:
    """Return a job over single elements whose keys are of a type."""

    def job(inputs: Path) -> tuple[Any, list[FlinkOperator]]:
        catalog = json.loads((inputs / "catalog.json").read_text(encoding="utf-8"))
        names, found = catalog["names"], list(map(value_of, catalog["keys"][name]))
        env = environment()
        elements = [tuple(row.values()) for row in records(inputs).to_pylist()]
        bound = fc.WatermarkStrategy.for_bounded_out_of_orderness(fc.Duration.of_millis(DELAY_MS))
        timed = env.from_collection(elements).assign_timestamps_and_watermarks(
            bound.with_timestamp_assigner(EventTime())
        )
        keyed_stream = timed.key_by(lambda element: found[names.index(element[0]) % len(found)])
        keyed_stream.process(AnyKey()).uid("keyed")
        return env, [FlinkOperator("keyed", key=declared)]

    return job


SUMS: Final = FlinkWindow(RECORD, ["key", "total", "last"], reduces=True)
COUNTS: Final = FlinkWindow(PAIR, ["n", "total"])
_LISTS: Final = {"window-contents": RECORD}


def listed(stateful: bool = False) -> Callable[[Any], Any]:
    return lambda stream: stream.process(Listing(stateful), OUT)


JOBS: Final[dict[str, Job]] = {
    "count_timers": process(CountTimers(), "counter"),
    "reducing_aggregating": process(AllKinds(False), "kinds", states={"map": (Types.INT(), Types.STRING())}),
    "ttl": process(AllKinds(True), "kinds", states={"map": (Types.INT(), Types.STRING())}),
    "tumbling_reduce": columnar("tumbling_reduce", SUMS),
    "tumbling_aggregate": columnar("tumbling_aggregate", COUNTS),
    "tumbling_list": functions("tumbling_list", listed(True), _LISTS),
    "sliding_reduce": columnar("sliding_reduce", SUMS),
    "session_reduce": columnar("session_reduce", SUMS),
    "session_aggregate": columnar("session_aggregate", COUNTS),
    "session_list": functions("session_list", listed(), _LISTS),
    "evictor_count": functions("evictor_count", listed(), {"window-contents": records_of(RECORD)}),
    "purging_trigger": columnar("purging_trigger", SUMS),
    "continuous_trigger": columnar("continuous_trigger", SUMS),
    "count_global": functions("count_global", listed(), _LISTS),
    "count_purging_global": columnar("count_purging_global", SUMS),
    "interval_join": interval_join,
    "co_process": co_process,
    "broadcast": broadcast,
    "keys_long": keys("LONG", Types.LONG()),
    "keys_int": keys("INT", Types.INT()),
    "keys_short": keys("SHORT", Types.SHORT()),
    "keys_byte": keys("BYTE", Types.BYTE()),
    "keys_boolean": keys("BOOLEAN", Types.BOOLEAN()),
    "keys_double": keys("DOUBLE", Types.DOUBLE()),
    "keys_char": keys("CHAR", Types.CHAR()),
    "keys_big_dec": keys("BIG_DEC", Types.BIG_DEC()),
    "keys_tuple_int": keys("TUPLE(INT)", Types.TUPLE([Types.INT()])),
}
"""Jobs by the names that their savepoints have."""


def run_first(job: str, inputs: Path, checkpoint: Path) -> list[FlinkOperator]:
    """Run a job over the first part of the records, stop it with a checkpoint, and return the declared operators."""
    found, operators = JOBS[job](inputs)
    result = found.execute(stop_with_checkpoint=checkpoint)
    if hasattr(result, "to_arrow"):
        result.to_arrow()
    return operators


def name_in_flink(job: str) -> str:
    """Return the name of a job as the tool that restores savepoints has it."""
    kind = job.removeprefix("keys_")
    return job if kind == job else f"keys:{'TUPLE(INT)' if kind == 'tuple_int' else kind.upper()}"
