"""Jobs of real Flink whose savepoints are golden, written in flinkcore: their state and their results are the same."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from decimal import Context, Decimal
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa

import flinkcore as fc
from flinkcore.common import Time, Types
from flinkcore.common.timestamp_assigner import TimestampAssigner
from flinkcore.datastream import DataStream, KeyedProcessFunction
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
    TimeWindow,
    TumblingEventTimeWindows,
)
from flinkcore.savepoints import FlinkOperator, FlinkWindow, SavepointSource, records_of

FAR: Final = 4_000_000_000_000
RECORD: Final = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
PAIR: Final = Types.TUPLE([Types.LONG(), Types.LONG()])
LATENESS_MS: Final = 8_000
DELAY_MS: Final = 2_000
FULL_DELAY_MS: Final = 7_000


class Inputs(NamedTuple):
    """Records of a run: those of the file `part` in a folder, and the number of partitions of the job."""

    folder: Path
    part: str = "first"
    parallelism: int = 2


Job = Callable[[Inputs], tuple[Any, list[FlinkOperator]]]
"""From the records to a stream, or an environment with a step, and the declared operators."""


def text(value: Any) -> str:
    """Return a value as the recorded results have it."""
    return json.dumps(value, separators=(",", ":"))


def by_text(values: Iterable[Any]) -> list[Any]:
    """Return values in the order of their texts, as Java compares them: by units of UTF-16."""
    as_java = partial(json.dumps, separators=(",", ":"), ensure_ascii=False)
    return sorted(values, key=lambda value: as_java(value).encode("utf-16-be"))


def entries(state: Any) -> list[Any]:
    return by_text([key, value] for key, value in state.items())


def record(row: Any) -> dict[str, Any]:
    return {"tuple": list(row)}


def records(inputs: Inputs, stream: int | None = None) -> pa.Table:
    """Return the records of a part, of one of the two streams if it is given."""
    lines = (inputs.folder / f"{inputs.part}.jsonl").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    return pa.Table.from_pylist(
        [
            {"key": row["key"], "value": row["value"], "ts": row["ts"]}
            for row in found
            if stream is None or row["stream"] == stream
        ]
    )


def environment(inputs: Inputs) -> Any:
    env = fc.StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(inputs.parallelism)
    env.set_max_parallelism(128)
    env.get_config().set_auto_watermark_interval(1)
    return env


def log(env: Any, inputs: Inputs, delay_ms: int = DELAY_MS, stream: int | None = None) -> Any:
    """Return a stream of the records, whose watermark follows each of them: one arrives in each ms."""
    bound = fc.WatermarkStrategy.for_bounded_out_of_orderness(fc.Duration.of_millis(delay_ms))
    table = records(inputs, stream)
    return env.from_event_log(table, timestamp="ts").assign_timestamps_and_watermarks(bound)


class CountTimers(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen"))
        self.sums = runtime_context.get_map_state(MapStateDescriptor("sums"))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.count.update((self.count.value() or 0) + 1)
        self.seen.add(f"{value.key}{value.value}")
        name = f"m{value.value % 3}"
        self.sums.put(name, (self.sums.get(name) or 0) + value.value)
        ctx.timer_service().register_event_time_timer(value.ts - value.ts % 5000 + 12000)
        ctx.timer_service().register_processing_time_timer(FAR + value.value % 4)
        yield (text(["element", value.key, value.value, self.count.value()]),)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        held = self.count.value(), list(self.seen.get() or ()), entries(self.sums)
        yield (text(["timer", ctx.get_current_key(), timestamp, *held]),)
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

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.value.update(value.value)
        self.list.add(value.value)
        self.map.put(value.value % 5, f"v{value.value}")
        self.max.add(value.value)
        self.average.add(value.value)
        held = (
            self.value.value(),
            list(self.list.get()),
            entries(self.map),
            self.max.get(),
            self.average.get(),
        )
        yield (text([value.key, *held]),)


class AnyKey(KeyedProcessFunction):
    def __init__(self, kind: str) -> None:
        self.kind = kind

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))
        self.map = runtime_context.get_map_state(MapStateDescriptor("map"))

    def process_element(self, value: Any, ctx: Any) -> None:
        self.count.update((self.count.value() or 0) + 1)
        self.map.put(f"m{value[1] % 3}", value[1])
        ctx.timer_service().register_event_time_timer(value[2] - value[2] % 20000 + 40000)
        ctx.timer_service().register_processing_time_timer(FAR)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        if timestamp < FAR:
            key = tagged_key(ctx.get_current_key(), self.kind)
            yield text([key, timestamp, self.count.value(), entries(self.map)])


class EventTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        timestamp: int = value[2]
        return timestamp


class Listing(ProcessWindowFunction[Any, Any, Any, Any]):
    def __init__(self, is_stateful: bool = False) -> None:
        self.is_stateful = is_stateful

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        counts = []
        if self.is_stateful:
            for store, name in (
                (context.window_state(), "window-firings"),
                (context.global_state(), "global-firings"),
            ):
                firings = store.get_state(ValueStateDescriptor(name))
                firings.update((firings.value() or 0) + 1)
                counts.append(firings.value())
        window = context.window()
        bounds = [window.start, window.end] if isinstance(window, TimeWindow) else ["global"]
        yield (text([key, bounds, by_text(map(record, elements)), *counts]),)

    def clear(self, context: Any) -> None:
        if self.is_stateful:
            context.window_state().get_state(ValueStateDescriptor("window-firings")).clear()


class Joined(ProcessJoinFunction[Any, Any]):
    def process_element(self, left: Any, right: Any, ctx: Any) -> Iterator[Any]:
        yield (text([record(left), record(right)]),)


class Co(KeyedCoProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.left = runtime_context.get_map_state(MapStateDescriptor("left"))
        self.right = runtime_context.get_map_state(MapStateDescriptor("right"))

    def _add(self, state: Any, value: Any, ctx: Any) -> None:
        name = f"m{value.value % 3}"
        state.put(name, (state.get(name) or 0) + value.value)
        ctx.timer_service().register_event_time_timer(FAR)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield (text([ctx.get_current_key(), entries(self.left), entries(self.right)]),)

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

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        rules, last = (ctx.get_broadcast_state(each) for each in (RULES, LAST))
        shared = by_text([key, record(value)] for key, value in rules.items())
        yield (text([ctx.get_current_key(), self.sum.value(), shared, entries(last)]),)


OUT: Final = pa.schema({"value": pa.string()})


def keyed(inputs: Inputs) -> Any:
    return log(environment(inputs), inputs).key_by("key")


def windows(inputs: Inputs, name: str) -> Any:
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
    def job(inputs: Inputs) -> tuple[Any, list[FlinkOperator]]:
        every = {"n": fc.count(), "total": fc.sum_("value"), "last": fc.max_("ts")}
        chosen = {field: every[field] for field in contents.fields if field in every}
        found = windows(inputs, name).aggregate(**chosen)
        return found, [FlinkOperator("win", window=contents)]

    return job


def functions(name: str, function: Any, states: dict[str, Any]) -> Job:
    def job(inputs: Inputs) -> tuple[Any, list[FlinkOperator]]:
        found = function(windows(inputs, name))
        return found, [FlinkOperator("win", states=states)]

    return job


def process(function: Any, uid: str, **declared: Any) -> Job:
    def job(inputs: Inputs) -> tuple[Any, list[FlinkOperator]]:
        return keyed(inputs).process(function, OUT), [FlinkOperator(uid, **declared)]

    return job


def interval_join(inputs: Inputs) -> tuple[Any, list[FlinkOperator]]:
    env = environment(inputs)
    left, right = (log(env, inputs, FULL_DELAY_MS, stream).key_by("key") for stream in (0, 1))
    joined = left.interval_join(right).between(Time.seconds(-20), Time.seconds(30))
    declared = FlinkOperator("join", states={"LEFT_BUFFER": RECORD, "RIGHT_BUFFER": RECORD})
    return joined.process(Joined(), OUT), [declared]


def co_process(inputs: Inputs) -> tuple[Any, list[FlinkOperator]]:
    env = environment(inputs)
    left, right = (log(env, inputs, FULL_DELAY_MS, stream) for stream in (0, 1))
    return left.connect(right).key_by("key", "key").process(Co(), OUT), [FlinkOperator("co")]


def broadcast(inputs: Inputs) -> tuple[Any, list[FlinkOperator]]:
    env = environment(inputs)
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


def tagged_key(key: Any, kind: str) -> Any:
    """Return a key as the recorded results have it."""
    if kind == "DOUBLE":
        return {"double": struct.pack(">d", key).hex()}
    if kind == "BIG_DEC":
        sign, digits, exponent = key.as_tuple()
        number = int("".join(map(str, digits))) * (-1 if sign else 1)
        return {"decimal": str(number), "scale": -exponent}
    if kind == "CHAR":
        return {"char": key}
    return {"tuple": list(key)} if isinstance(key, tuple) else key


def keys(name: str, declared: Any) -> Job:
    """Return a job over single elements whose keys are of a type."""

    def job(inputs: Inputs) -> tuple[Any, list[FlinkOperator]]:
        catalog = json.loads((inputs.folder / "catalog.json").read_text(encoding="utf-8"))
        names, found = catalog["names"], list(map(value_of, catalog["keys"][name]))
        env = environment(inputs)
        elements = [tuple(row.values()) for row in records(inputs).to_pylist()]
        bound = fc.WatermarkStrategy.for_bounded_out_of_orderness(fc.Duration.of_millis(DELAY_MS))
        timed = env.from_collection(elements).assign_timestamps_and_watermarks(
            bound.with_timestamp_assigner(EventTime())
        )
        keyed_stream = timed.key_by(lambda element: found[names.index(element[0]) % len(found)])
        given = keyed_stream.process(AnyKey(name)).uid("keyed")
        return given, [FlinkOperator("keyed", key=declared)]

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


def run_first(job: str, inputs: Inputs, checkpoint: Path) -> list[FlinkOperator]:
    """Run a job over the first part of the records, stop it with a checkpoint, and return the declared operators."""
    found, operators = JOBS[job](Inputs(inputs))
    if isinstance(found, DataStream):
        list(found.execute_and_collect(stop_with_checkpoint=checkpoint))
    else:
        found.execute(stop_with_checkpoint=checkpoint).to_arrow()
    return operators


def results_of_rest(job: str, inputs: Path, savepoint: SavepointSource, parallelism: int) -> list[str]:
    """Run a job from a savepoint over the further records, and return its results as Flink's are recorded, in order."""
    found, operators = JOBS[job](Inputs(inputs, "further", parallelism))
    source = replace(savepoint, operators=operators)
    if isinstance(found, DataStream):
        return sorted(found.execute_and_collect(restore_from=source))
    rows = found.execute(restore_from=source).to_arrow().to_pylist()
    return sorted(row["value"] if "value" in row else text(_of_window(job, row)) for row in rows)


def _of_window(job: str, row: dict[str, Any]) -> Any:
    """Return the result of a window over columns."""
    sums = record((row["key"], row["total"], row["last"])) if "last" in row else None
    if job == "tumbling_reduce":
        return sums
    start, end = (
        row[name] and round(row[name].timestamp() * 1000) for name in ("window_start", "window_end")
    )
    given = f"{row['n']} values, sum {row['total']}" if sums is None else sums
    return [row["key"], ["global"] if start is None else [start, end], [given]]


def name_in_flink(job: str) -> str:
    """Return the name of a job as the tool that restores savepoints has it."""
    kind = job.removeprefix("keys_")
    return job if kind == job else f"keys:{'TUPLE(INT)' if kind == 'tuple_int' else kind.upper()}"
