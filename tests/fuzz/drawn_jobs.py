"""Random jobs: what is done with one log or two."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from fuzz.logs import VALUE_POOLS, KeyColumn, exact
from hypothesis import strategies as st
from jobs import resumed_jobs
from jobs.element_steps import STEPS, Element

from flinkcore.common import OutputTag, Row, Time, Types
from flinkcore.datastream import DataStream, KeyedProcessFunction
from flinkcore.datastream.aggregates import Aggregate, count
from flinkcore.datastream.functions import (
    AggregateFunction,
    CoGroupFunction,
    JoinFunction,
    KeyedBatchProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    ReduceFunction,
    WindowFunction,
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
    ContinuousProcessingTimeTrigger,
    CountEvictor,
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    CumulativeEventTimeWindows,
    DeltaEvictor,
    DeltaTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    MergingWindowAssigner,
    ProcessingTimeoutTrigger,
    ProcessingTimeSessionWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeEvictor,
    TimeWindow,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    Window,
    WindowAssigner,
)
from flinkcore.datastream.windowed_streams import WindowedStream

LATE = OutputTag("late")
LATE_RIGHT = OutputTag("late right")
RECORD_TIME = "record_time"
"""The timestamp column of those jobs that ask for one."""
EMITTED_AT = "emitted_at"
"""The column of when results were emitted, of those jobs that ask for it."""

Logs = list[DataStream]
Keys = tuple[KeyColumn, ...]


def names_of(keys: Keys, prefix: str = "k") -> list[str]:
    return [f"{prefix}{number}" for number in range(len(keys))]


def fields_of(keys: Keys) -> list[tuple[str, pa.DataType]]:
    return [(name, key.type) for name, key in zip(names_of(keys), keys, strict=True)]


def parts_of(key: Any, keys: Keys) -> tuple[Any, ...]:
    """The key as columns."""
    return (key,) if len(keys) == 1 else tuple(key)


# ---- functions that do what the elements tell them -------------------------------------------------------------------


class Sum(AggregateFunction[int, list[int], int]):
    def create_accumulator(self) -> list[int]:
        return [0, 0]

    def add(self, value: int, accumulator: list[int]) -> list[int]:
        return [accumulator[0] + 1, accumulator[1] + value]

    def get_result(self, accumulator: list[int]) -> int:
        return 100 * accumulator[1] + accumulator[0]

    def merge(self, acc_a: list[int], acc_b: list[int]) -> list[int]:
        return [acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]]


class Later(ReduceFunction[int]):
    def reduce(self, value1: int, value2: int) -> int:
        return value1 * 3 % 1_000 + value2


class Acting(KeyedProcessFunction):
    """Does at each element what its script says, with state of all kinds, and gives all that it sees."""

    def __init__(self, keys: Keys) -> None:
        self.keys = keys

    def open(self, runtime_context: Any) -> None:
        ttl = StateTtlConfig.new_builder(Time.milliseconds(25)).update_ttl_on_read_and_write().build()
        expiring = ValueStateDescriptor("expiring")
        expiring.enable_time_to_live(ttl)
        self.expiring = runtime_context.get_state(expiring)
        self.fuel = runtime_context.get_state(ValueStateDescriptor("fuel"))
        self.registered = runtime_context.get_list_state(ListStateDescriptor("registered"))
        self.values = runtime_context.get_map_state(MapStateDescriptor("values"))
        self.reduced = runtime_context.get_reducing_state(ReducingStateDescriptor("reduced", Later()))
        self.total = runtime_context.get_aggregating_state(AggregatingStateDescriptor("total", Sum()))

    def process_element(self, value: Row, ctx: Any) -> Iterator[Any]:
        timers = ctx.timer_service()
        self.fuel.update(min((self.fuel.value() or 0) + 2, 5))
        yield self._seen("element", value.number, ctx)
        for action in value.actions.split():
            what, text = action.split(":")
            number = int(text)
            if what == "event":
                timers.register_event_time_timer(value.ts + number)
                self.registered.add(value.ts + number)
            elif what == "processing":
                timers.register_processing_time_timer(timers.current_processing_time() + number)
            elif what == "delete":
                for timestamp in list(self.registered.get() or ())[:number]:
                    timers.delete_event_time_timer(timestamp)
            elif what == "forget":
                timers.delete_processing_time_timer(timers.current_processing_time() + number)
            elif what == "list":
                self.registered.update(list(self.registered.get() or ())[number:])
            elif what == "map":
                self.values.put(number, value.value)
            elif what == "unmap" and self.values.contains(number):
                self.values.remove(number)
            elif what == "reduce":
                self.reduced.add(value.number)
                self.total.add(number)
            elif what == "ttl":
                self.expiring.update(value.value)
            elif what == "clear":
                for state in (self.fuel, self.values, self.reduced, self.total):
                    state.clear()
        if value.number % 3 == 0:
            yield OutputTag("side"), (*parts_of(ctx.get_current_key(), self.keys), value.number)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield self._seen(ctx.time_domain().name, timestamp, ctx)
        timers = ctx.timer_service()
        fuel = self.fuel.value() or 0
        if fuel > 0:
            self.fuel.update(fuel - 1)
        if fuel > 0 and timestamp % 2:
            timers.register_event_time_timer(timestamp + 7 * fuel - 12)
            timers.delete_processing_time_timer(timestamp + 3)
        elif fuel > 0:
            timers.register_processing_time_timer(timers.current_processing_time() + 20 * fuel - 45)

    def _seen(self, what: str, number: int, ctx: Any) -> tuple[Any, ...]:
        timers, key = ctx.timer_service(), ctx.get_current_key()
        times = timers.current_watermark(), timers.current_processing_time(), ctx.timestamp()
        states = (
            self.fuel.value(),
            list(self.registered.get() or ()),
            sorted(self.values.items(), key=lambda entry: entry[0]),
            self.reduced.get(),
            self.total.get(),
            self.expiring.value(),
        )
        return (*parts_of(key, self.keys), repr(key), what, number, *times, repr(states))


def acted(keys: Keys) -> pa.Schema:
    """What `Acting` gives."""
    texts, numbers = ("seen", "what"), ("number", "watermark", "clock", "timestamp")
    columns = [*fields_of(keys), *((name, pa.string()) for name in texts)]
    return pa.schema([*columns, *((name, pa.int64()) for name in numbers), ("states", pa.string())])


def side_of(keys: Keys) -> OutputTag:
    return OutputTag("side", pa.schema([*fields_of(keys), ("number", pa.int64())]))


class ActingOnTwo(KeyedCoProcessFunction):
    """`Acting` on the elements of both streams."""

    __init__ = Acting.__init__
    open = Acting.open
    process_element1 = Acting.process_element
    process_element2 = Acting.process_element
    on_timer = Acting.on_timer
    _seen = Acting._seen


def key_in(row: Row, names: Sequence[str]) -> Any:
    """The values of columns as one key: that of a single column, or a tuple."""
    values = tuple(row[name] for name in names)
    return values[0] if len(values) == 1 else values


RULES: MapStateDescriptor[Any, int] = MapStateDescriptor("rules")


class ActingByRules(KeyedBroadcastProcessFunction):
    """`Acting`, which also gives how many rules there are."""

    __init__ = Acting.__init__
    open = Acting.open
    on_timer = Acting.on_timer
    _seen = Acting._seen

    def process_element(self, value: Row, ctx: Any) -> Iterator[Any]:
        yield from Acting.process_element(self, value, ctx)  # type: ignore[arg-type]
        rules = list(ctx.get_broadcast_state(RULES).items())
        key = parts_of(ctx.get_current_key(), self.keys)
        yield (*key, repr(rules), "rules", value.number, None, None, None, "")

    def process_broadcast_element(self, value: Row, ctx: Any) -> Iterator[Any]:
        rules = ctx.get_broadcast_state(RULES)
        rules.put(key_in(value, names_of(self.keys, "w")), value.number)


TYPES_OF_KEYS = {
    "int64": Types.LONG(),
    "string": Types.STRING(),
    "float32": Types.FLOAT(),
    "float64": Types.DOUBLE(),
    "bool": Types.BOOLEAN(),
    "binary": Types.PRIMITIVE_ARRAY(Types.BYTE()),
    "date32": Types.SQL_DATE(),
    "time64[us]": Types.SQL_TIME(),
    "timestamp[us]": Types.SQL_TIMESTAMP(),
    "timestamp[us, zone]": Types.SQL_TIMESTAMP(),
    "decimal128": Types.BIG_DEC(),
    "struct": Types.ROW_NAMED(["a", "b"], [Types.LONG(), Types.STRING()]),
}
"""Types that a map can declare for its keys, by the kind of their column."""

MAPPED = pa.schema(
    [("group", pa.int64()), ("number", pa.int64()), ("found", pa.string()), ("map", pa.string())]
)


class Mapped(KeyedProcessFunction):
    """Holds numbers by the values of columns in a map state, and gives all that is in it."""

    def __init__(self, keys: Keys, is_declared: bool) -> None:
        self.names = names_of(keys)
        types = [TYPES_OF_KEYS.get(key.kind, Types.PICKLED_BYTE_ARRAY()) for key in keys]
        self.type = None if not is_declared else types[0] if len(types) == 1 else Types.TUPLE(types)

    def open(self, runtime_context: Any) -> None:
        self.entries = runtime_context.get_map_state(MapStateDescriptor("entries", self.type))

    def process_element(self, value: Row, ctx: Any) -> Iterator[Any]:
        key = key_in(value, self.names)
        found = self.entries.get(key), self.entries.contains(key)
        if value.number % 5 == 4 and found[1]:
            self.entries.remove(key)
        else:
            self.entries.put(key, value.number)
        yield value.group, value.number, repr(found), repr(list(self.entries.items()))


class Quiet(KeyedBatchProcessFunction):
    """Counts the elements of a key until none has come for a while; gives every element's times, too."""

    def __init__(self, keys: Keys, gap: int) -> None:
        self.names = names_of(keys)
        self.gap = self.min_event_time_delay_ms = gap

    def open(self, runtime_context: Any) -> None:
        self.counts = runtime_context.get_column_state("count", np.int64)
        self.held = runtime_context.get_column_list_state("numbers", pa.schema({"number": pa.float64()}))

    def process_batch(self, elements: Any, ctx: Any) -> Iterator[Any]:
        np.add.at(self.counts.array, elements.key_ids, 1)
        self.held.add(elements.key_ids, {"number": elements["number"]})
        last = elements.last_of_keys()
        ctx.timer_service().delete_event_time_timers(elements.key_ids[last])
        ctx.timer_service().register_event_time_timers(
            elements.key_ids[last], np.minimum(elements.timestamps[last], 2**63 - 1 - self.gap) + self.gap
        )
        keys = ctx.keys(elements.key_ids)
        times = {"watermark": elements.watermarks, "clock": elements.processing_times}
        yield elements.results(self._columns(keys, elements["number"], times, elements.timestamps))

    def on_timers(self, timers: Any, ctx: Any) -> Iterator[Any]:
        times = {"watermark": timers.watermarks, "clock": timers.processing_times}
        held, places = self.held.get(timers.key_ids)
        sums = np.bincount(places, held["number"].to_numpy(), len(timers))
        numbers = self.counts[timers.key_ids] * 1_000 + sums.astype(np.int64)
        yield timers.results(self._columns(timers.keys, -numbers, times, timers.timestamps))
        self.counts.clear(timers.key_ids)
        self.held.clear(timers.key_ids)

    def _columns(self, keys: Any, numbers: Any, times: dict[str, Any], timestamps: Any) -> dict[str, Any]:
        return (
            {name: keys[name] for name in self.names}
            | {"number": numbers}
            | times
            | {"timestamp": timestamps}
        )


class Elements(ProcessWindowFunction[Any, Any, Any, Any]):
    """Lists the numbers of a window's elements, with states of the window and of the key."""

    def __init__(self, keys: Keys, states: bool) -> None:
        self.keys = keys
        self.states = states

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        numbers = [getattr(element, "number", element) for element in elements]
        window, count = context.window(), None
        if self.states:
            firings = context.global_state().get_state(ValueStateDescriptor("firings"))
            firings.update((firings.value() or 0) + 1)
            count = firings.value()
        bounds = getattr(window, "start", None), getattr(window, "end", None)
        yield (*parts_of(key, self.keys), *bounds, numbers, context.current_watermark(), count)


class Applied(WindowFunction[Any, Any, Any, Any]):
    """`Elements`, as a function that is told less."""

    def __init__(self, keys: Keys) -> None:
        self.keys = keys

    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterator[Any]:
        bounds = getattr(window, "start", None), getattr(window, "end", None)
        yield (*parts_of(key, self.keys), *bounds, [element.number for element in inputs], None, None)


def reduced(first: Row, second: Row) -> Row:
    """A row that tells which ones came together, and in which order."""
    fields = first.as_dict()
    return Row(**{**fields, "number": (fields["number"] * 31 + second.number) % 1_000_003})


class Rest(Window):
    """A window that is no stretch of time."""

    def __init__(self, rest: int) -> None:
        self.rest = rest

    def max_timestamp(self) -> int:
        return 2**63 - 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rest) and other.rest == self.rest

    def __hash__(self) -> int:
        return self.rest


@dataclass(frozen=True)
class ByRest(WindowAssigner[Any, Rest]):
    """Windows of a class that flinkcore does not know."""

    divisor: int

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> list[Rest]:
        return [Rest(element.number % self.divisor)]

    def get_default_trigger(self, env: Any = None) -> Any:
        return CountTrigger(2)

    def is_event_time(self) -> bool:
        return False


@dataclass(frozen=True)
class Uneven(WindowAssigner[Any, TimeWindow]):
    """Windows whose number and size depend on the element and on its time."""

    size: int

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> list[TimeWindow]:
        start = timestamp - timestamp % self.size
        return [TimeWindow(start, start + self.size * (number + 1)) for number in range(element.number % 3)]

    def get_default_trigger(self, env: Any = None) -> Any:
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        return True


def gap_of_number(element: Any) -> int:
    return 1 + element.number % 20


def listed(keys: Keys) -> pa.Schema:
    """What `Elements` gives."""
    columns = [*fields_of(keys), ("window_start", pa.int64()), ("window_end", pa.int64())]
    return pa.schema(
        [*columns, ("numbers", pa.list_(pa.int64())), ("watermark", pa.int64()), ("count", pa.int64())]
    )


class Numbers(AggregateFunction[Row, list[int], Any]):
    """All numbers of a window, collected by an aggregate function."""

    def create_accumulator(self) -> list[int]:
        return []

    def add(self, value: Row, accumulator: list[int]) -> list[int]:
        return [*accumulator, value.number]

    def get_result(self, accumulator: list[int]) -> int:
        return hash(tuple(accumulator)) % 2**31

    def merge(self, acc_a: list[int], acc_b: list[int]) -> list[int]:
        return sorted(acc_a + acc_b)


class Pair(JoinFunction[Row, Row, Any]):
    def __init__(self, keys: Keys) -> None:
        self.names = names_of(keys)

    def join(self, first: Row, second: Row) -> Any:
        return (*(first[name] for name in self.names), first.number, second.number)


class Group(CoGroupFunction[Row, Row]):
    def __init__(self, keys: Keys) -> None:
        self.names, self.others = names_of(keys), names_of(keys, "w")

    def co_group(self, first: list[Row], second: list[Row]) -> Any:
        names, row = (self.names, first[0]) if first else (self.others, second[0])
        numbers = [100 * len(first) + len(second), sum(row.number for row in [*first, *second])]
        return [(*(row[name] for name in names), *numbers)]


class Near(ProcessJoinFunction[Row, Row]):
    def __init__(self, keys: Keys) -> None:
        self.names = names_of(keys)

    def process_element(self, left: Row, right: Row, ctx: Any) -> Any:
        yield (*(left[name] for name in self.names), left.number, right.number)


def paired(keys: Keys) -> pa.Schema:
    return pa.schema([*fields_of(keys), ("first", pa.int64()), ("second", pa.int64())])


# ---- jobs ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """A job that can be printed; `keys` are those of its logs."""

    keys: Keys
    logs: int = field(default=1, init=False, repr=False)

    @property
    def shape(self) -> str:
        return type(self).__name__

    @property
    def values(self) -> list[str] | None:
        """Types that the column `value` must have; None: any."""
        return None

    @property
    def goes_into_checkpoints(self) -> bool:
        return True

    @property
    def reads_a_log_several_times(self) -> bool:
        return False

    @property
    def other_path(self) -> "Job | None":
        """The same job on the other one of two paths, if there are two."""
        return None

    @property
    def of_elements(self) -> bool:
        """Whether it runs element by element, where parallelism counts."""
        return False

    def alike(self, given: pa.Table) -> Iterable[Sequence[Any]]:
        """Of its results what both paths give: what stands for the key, and the rest."""
        return ()

    @property
    def timed(self) -> dict[str, Any]:
        """What the job asks for beyond the columns of its functions."""
        return {"timestamp_column": RECORD_TIME} if getattr(self, "has_timestamps", False) else {}

    def build(self, logs: Logs) -> DataStream:
        raise NotImplementedError

    def keyed(self, stream: DataStream) -> Any:
        return stream.key_by(*names_of(self.keys))

    def second(self, stream: DataStream) -> DataStream:
        """The other log, whose key columns have other names."""
        renamed = dict(
            zip(names_of(self.keys, "w"), (pc.field(name) for name in names_of(self.keys)), strict=True)
        )
        return stream.select("number", "value", "ts", "actions", **renamed)

    def keyed_second(self, stream: DataStream) -> Any:
        return self.second(stream).key_by(*names_of(self.keys, "w"))


@dataclass(frozen=True)
class Function(Job):
    has_timestamps: bool = False

    def build(self, logs: Logs) -> DataStream:
        process = self.keyed(logs[0]).process
        return process(Acting(self.keys), acted(self.keys), side_outputs=[side_of(self.keys)], **self.timed)


@dataclass(frozen=True)
class FunctionOfUnion(Function):
    logs: int = field(default=2, init=False, repr=False)

    @property
    def values(self) -> list[str]:
        return [*VALUE_POOLS]  # one of them: the streams of a union have the same columns

    def build(self, logs: Logs) -> DataStream:
        names = names_of(self.keys)
        first, second = (log.select(*names, "number", "value", "ts", "actions") for log in logs)
        return super().build([first.union(second)])


@dataclass(frozen=True)
class MapStates(Job):
    """Map states whose keys are of the types of the logs' keys."""

    is_declared: bool

    def build(self, logs: Logs) -> DataStream:
        grouped = logs[0].with_columns(group=pc.bit_wise_and(pc.field("number"), 1))
        return grouped.key_by("group").process(Mapped(self.keys, self.is_declared), MAPPED)


@dataclass(frozen=True)
class Batches(Job):
    gap: int

    def build(self, logs: Logs) -> DataStream:
        numbers = [(name, pa.int64()) for name in ("number", "watermark", "clock", "timestamp")]
        return self.keyed(logs[0]).process(
            Quiet(self.keys, self.gap), pa.schema([*fields_of(self.keys), *numbers])
        )


@dataclass(frozen=True)
class Windows(Job):
    """Windows, their trigger and evictor, and what becomes of late elements."""

    assigner: WindowAssigner[Any, Any]
    trigger: Any
    evictor: Any
    lateness: int
    has_late_output: bool

    def windowed(self, stream: DataStream) -> WindowedStream:
        windows = self.keyed(stream).window(self.assigner)
        windows = windows if self.trigger is None else windows.trigger(self.trigger)
        windows = windows if self.evictor is None else windows.evictor(self.evictor)
        windows = windows.allowed_lateness(self.lateness) if self.lateness else windows
        return windows.side_output_late_data(LATE) if self.has_late_output else windows  # type: ignore[no-any-return]


@dataclass(frozen=True)
class WindowsOverColumns(Windows):
    mode: str
    value: str
    aggregates: tuple[str, ...]

    @property
    def values(self) -> list[str]:
        return [self.value]

    def build(self, logs: Logs) -> DataStream:
        windows = self.windowed(logs[0])
        if self.mode != "accumulating":
            windows = getattr(windows, self.mode)()
        return windows.aggregate(**{f"{name}_": aggregate_of(name) for name in self.aggregates})


def aggregate_of(name: str) -> Aggregate:
    if name == "count":
        return Aggregate("count")
    if name in ("min_by", "max_by"):
        return Aggregate(name, "number", "value")
    return Aggregate(name, "value", percentage=0.5 if name == "approx_percentile" else None)


@dataclass(frozen=True)
class Frames(Job):
    """Aggregates over the rows before each row, or over all rows of a key."""

    over: str
    preceding: int
    value: str
    aggregates: tuple[str, ...]
    has_late_output: bool

    @property
    def values(self) -> list[str]:
        return [self.value]

    def build(self, logs: Logs) -> DataStream:
        aggregates = {f"{name}_": aggregate_of(name) for name in self.aggregates}
        keyed = self.keyed(logs[0])
        if self.over in ("changes", "final"):
            stream: DataStream = keyed.aggregate(changes=self.over == "changes", **aggregates)
            return stream
        frames = {
            "rows": lambda: keyed.over(self.preceding),
            "time": lambda: keyed.over(Time.milliseconds(9 * self.preceding)),
            "all": lambda: keyed.over(),
            "arrivals": lambda: keyed.over(self.preceding, by="arrival"),
        }
        framed = frames[self.over]()
        if self.has_late_output and self.over != "arrivals":
            framed = framed.side_output_late_data(LATE)
        return framed.aggregate(**aggregates)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class WindowsOfBothPaths(Windows):
    """Windows that can run over columns and by functions; `by_function` tells by which."""

    by_function: bool = False

    @property
    def other_path(self) -> Job | None:
        # Of times below microseconds there are no Python objects.
        is_for_functions = not any(key.kind.startswith("fine ") for key in self.keys)
        return replace(self, by_function=True) if is_for_functions else None

    def alike(self, given: pa.Table) -> Iterable[Sequence[Any]]:
        # Windows of a key that end together may fire in any order.
        windows = given.select([*names_of(self.keys), "window_start", "window_end"])
        times = [name for name in (EMITTED_AT,) if name in given.column_names]
        rest = given.select(["numbers", "watermark", *times]).to_pydict()
        return zip(zip(*map(exact, windows.columns), strict=True), *rest.values(), strict=True)

    def build(self, logs: Logs) -> DataStream:
        windows = self.windowed(logs[0])
        if self.by_function:
            return windows.process(Elements(self.keys, False), listed(self.keys))
        return windows.aggregate(numbers=Aggregate("collect", "number"))


@dataclass(frozen=True)
class WindowsByFunctions(Windows):
    how: str
    has_timestamps: bool = False

    @property
    def goes_into_checkpoints(self) -> bool:
        return not isinstance(self.assigner, ByRest)  # checkpoints take windows of Flink's classes

    def build(self, logs: Logs) -> DataStream:
        windows, given = self.windowed(logs[0]), listed(self.keys)
        if self.how == "aggregate":
            elements = Elements(self.keys, False)
            return windows.aggregate(Numbers(), elements, output_type=given, **self.timed)
        if self.how == "apply":
            return windows.apply(Applied(self.keys), given, **self.timed)
        if self.how == "reduce":
            return windows.reduce(reduced, **self.timed)
        if self.how == "reduce and apply":
            return windows.reduce(reduced, Applied(self.keys), given, **self.timed)
        return windows.process(Elements(self.keys, self.how == "states"), given, **self.timed)


@dataclass(frozen=True)
class FunctionBehindWindows(WindowsOverColumns):
    def build(self, logs: Logs) -> DataStream:
        results = (
            super()
            .build(logs)
            .with_columns(
                number=pc.field("watermark"),
                ts=pc.min_element_wise(pc.field("watermark"), pc.scalar(2**62)),  # timers come behind it
                actions=pc.scalar("event:3 processing:5"),
                value=pc.field("watermark"),
            )
        )
        process = self.keyed(results).process
        return process(Acting(self.keys), acted(self.keys), side_outputs=[side_of(self.keys)])


@dataclass(frozen=True)
class WindowsBehindFunction(Windows):
    def build(self, logs: Logs) -> DataStream:
        first = self.keyed(logs[0]).process(Acting(self.keys), acted(self.keys))
        return self.windowed(first.filter(pc.field("what") != "PROCESSING_TIME")).aggregate(
            n=Aggregate("count"), numbers=Aggregate("collect", "number")
        )


@dataclass(frozen=True)
class Deduplicated(Job):
    """One row of each key, or of each window of a key; a window may follow, which needs the order of results."""

    keep: Any
    by: Any
    changes: bool
    window: WindowAssigner[Any, Any] | None
    is_followed: bool
    has_late_output: bool

    def build(self, logs: Logs) -> DataStream:
        keyed = self.keyed(logs[0])
        if self.window is None:
            waits = (self.keep, self.by, self.changes) == ("first", "event_time", False)
            late_to = LATE if self.has_late_output and waits else None
            rows = keyed.deduplicate(self.keep, self.by, changes=self.changes, late_to=late_to)
        else:
            rows = cut(self, keyed).deduplicate(self.keep, self.by)
        return followed(self, rows) if self.is_followed else rows


@dataclass(frozen=True)
class HighestRows(Job):
    """The highest rows of each key, or of each window of a key; a window may follow."""

    value: str
    by: tuple[str, ...]
    settings: tuple[tuple[str, Any], ...]
    changes: bool
    window: WindowAssigner[Any, Any] | None
    is_followed: bool
    has_late_output: bool

    @property
    def values(self) -> list[str]:
        return [self.value]

    def build(self, logs: Logs) -> DataStream:
        keyed = self.keyed(logs[0])
        if self.window is None:
            rows = keyed.top(by=list(self.by), changes=self.changes, **dict(self.settings))
        else:
            rows = cut(self, keyed).top(by=list(self.by), **dict(self.settings))
        return followed(self, rows) if self.is_followed else rows


@dataclass(frozen=True)
class ChangesTaken(Job):
    """An operator over changes: those of the highest rows of each key."""

    value: str
    by: str
    operator: str
    changes: bool

    @property
    def values(self) -> list[str]:
        return [self.value]

    def build(self, logs: Logs) -> DataStream:
        highest = self.keyed(logs[0]).top(3, self.by, rank_column=None, changes=True)
        keyed = self.keyed(highest)
        if self.operator == "top":
            return keyed.top(2, "number", changes=self.changes)  # type: ignore[no-any-return]
        if self.operator == "aggregate":
            aggregates = {
                f"{name}_": aggregate_of(name) for name in ("count", "min", "first", "last", "collect")
            }
            return keyed.aggregate(changes=self.changes, **aggregates)  # type: ignore[no-any-return]
        others = highest.select(
            "number",
            "row_kind",
            **{
                other: pc.field(name)
                for name, other in zip(names_of(self.keys), names_of(self.keys, "w"), strict=True)
            },
        )
        return keyed.join_regular(  # type: ignore[no-any-return]
            others.key_by(*names_of(self.keys, "w")), self.operator, changes=self.changes, nulls_equal=True
        )


LOOKED_UP = pa.table({"id": [0, 2, 2, 5, None], "name": ["a", "b", None, "d", "e"]})


@dataclass(frozen=True)
class LookedUp(Job):
    """Rows with those of a table that they find, and a window: rows without keys have no order."""

    how: Any
    has_condition: bool

    def build(self, logs: Logs) -> DataStream:
        rows = logs[0].with_columns(group=pc.bit_wise_and(pc.field("number"), 7))
        where = pc.field("name") != "b" if self.has_condition else None
        found = rows.join_lookup(LOOKED_UP, {"group": "id"}, self.how, where=where)
        return followed(self, found)


@dataclass(frozen=True)
class HighestResults(Windows):
    """The highest results of windows, by the end of the window."""

    rank: Any

    def build(self, logs: Logs) -> DataStream:
        counted = self.windowed(logs[0]).aggregate(n=Aggregate("count"), last=Aggregate("last", "number"))
        by = ["n", "last"] if self.rank == "row_number" else "n"
        return counted.key_by("window_end").top(2, by, rank=self.rank, window_end="window_end")


def cut(job: Deduplicated | HighestRows, keyed: Any) -> Any:
    """Windows whose late rows go to a side output, or are dropped."""
    windows = keyed.window(job.window)
    return windows.side_output_late_data(LATE) if job.has_late_output else windows


def followed(job: Job, rows: Any) -> DataStream:
    """Windows over the results of an operator, which show their order."""
    windows = job.keyed(rows).window(CountTumblingWindowAssigner(2))
    return windows.aggregate(numbers=Aggregate("collect", "number"))  # type: ignore[no-any-return]


@dataclass(frozen=True)
class TwoLogs(Job):
    logs: int = field(default=2, init=False, repr=False)
    has_timestamps: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class Connected(TwoLogs):
    def build(self, logs: Logs) -> DataStream:
        connected = self.keyed(logs[0]).connect(self.keyed_second(logs[1]))
        return connected.process(
            ActingOnTwo(self.keys), acted(self.keys), side_outputs=[side_of(self.keys)], **self.timed
        )


@dataclass(frozen=True)
class Broadcast(TwoLogs):
    def build(self, logs: Logs) -> DataStream:
        connected = self.keyed(logs[0]).connect(self.second(logs[1]).broadcast(RULES))
        return connected.process(
            ActingByRules(self.keys), acted(self.keys), side_outputs=[side_of(self.keys)], **self.timed
        )


@dataclass(frozen=True)
class IntervalJoin(TwoLogs):
    """`late` has the sides whose late rows are wanted, `exclusive` the bounds that do not belong to it."""

    lower: int
    upper: int
    late: frozenset[str]
    exclusive: frozenset[str]

    def build(self, logs: Logs) -> DataStream:
        join = self.keyed(logs[0]).interval_join(self.keyed_second(logs[1])).between(self.lower, self.upper)
        join = join.lower_bound_exclusive() if "lower" in self.exclusive else join
        join = join.upper_bound_exclusive() if "upper" in self.exclusive else join
        join = join.side_output_left_late_data(LATE) if "left" in self.late else join
        join = join.side_output_right_late_data(LATE_RIGHT) if "right" in self.late else join
        return join.process(Near(self.keys), paired(self.keys), **self.timed)


@dataclass(frozen=True)
class WindowJoin(TwoLogs):
    assigner: WindowAssigner[Any, Any]
    lateness: int
    groups: bool

    def build(self, logs: Logs) -> DataStream:
        first, second = logs[0], self.second(logs[1])
        streams = first.co_group(second) if self.groups else first.join(second)
        windows = (
            streams.where(*names_of(self.keys)).equal_to(*names_of(self.keys, "w")).window(self.assigner)
        )
        function = Group(self.keys) if self.groups else Pair(self.keys)
        return windows.allowed_lateness(self.lateness).apply(function, paired(self.keys), **self.timed)


@dataclass(frozen=True)
class ColumnJoin(TwoLogs):
    """A join of a `kind` over columns; `length` is that of an interval or a window. A window may follow.

    `late` has the sides of a window join whose late rows are wanted.
    """

    kind: str
    how: str
    has_condition: bool
    nulls_equal: bool
    length: int
    is_followed: bool
    late: frozenset[str]

    def build(self, logs: Logs) -> DataStream:
        left, right = self.keyed(logs[0]), self.keyed_second(logs[1])
        where = (
            pc.less(pc.field("number"), pc.add(pc.field("number_right"), 3)) if self.has_condition else None
        )
        settings: dict[str, Any] = {"how": self.how, "where": where, "nulls_equal": self.nulls_equal}
        if self.kind == "interval":
            joined = left.join_interval(right, self.length - 20, self.length, **settings)
        elif self.kind == "window":
            windows = SlidingEventTimeWindows.of(
                Time.milliseconds(2 * self.length), Time.milliseconds(self.length)
            )
            tags = {"left": LATE, "right": LATE_RIGHT}
            late_to: dict[str, Any] = {f"{side}_late_to": tags[side] for side in self.late}
            joined = left.join_window(right, windows, **settings, **late_to)
        elif self.kind == "temporal":
            joined = left.join_temporal(right, **settings)
        else:
            joined = left.join_regular(right, changes=self.kind == "changes", **settings)
        if not self.is_followed or self.kind == "changes":
            if self.how not in ("right", "full"):
                return joined
            # Results are compared key by key, and a row without a match has one of two.
            names = zip(names_of(self.keys), names_of(self.keys, "w"), strict=True)
            return joined.with_columns(
                **{name: pc.coalesce(pc.field(name), pc.field(other)) for name, other in names}
            )
        numbers = "number" if self.how in ("semi", "anti") else "number_right"
        keyed = joined.select(group=pc.bit_wise_and(pc.coalesce(pc.field(numbers), 0), 3)).key_by("group")
        return keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(20))).aggregate(rows=count())


HOW_TO_JOIN = {
    "interval": ("inner", "left", "right", "full"),
    "window": ("inner", "left", "right", "full", "semi", "anti"),
    "temporal": ("inner", "left"),
    "regular": ("inner", "left", "full", "semi", "anti"),
    "changes": ("left", "right", "full", "anti"),
}


ONE_LOG = {job.__name__: job for job in resumed_jobs.ONE_LOG}
TWO_LOGS = {job.__name__: job for job in resumed_jobs.TWO_LOGS}


@dataclass(frozen=True)
class Several(Job):
    """A job of `jobs.resumed_jobs`, several operators or logs; its one key is text."""

    name: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "logs", 2 if self.name in TWO_LOGS else 1)

    @property
    def shape(self) -> str:
        return self.name

    @property
    def reads_a_log_several_times(self) -> bool:
        return self.name in {job.__name__ for job in resumed_jobs.READ_SEVERAL_TIMES}

    def build(self, logs: Logs) -> DataStream:
        named = [log.select("number", "ts", "at", "split", "actions", user=pc.field("k0")) for log in logs]
        return (ONE_LOG | TWO_LOGS)[self.name](named)


def element_of(row: Row) -> Element:
    """A row as an element of those that steps take."""
    return row.ts % 2000, repr(row.k0)[:4], row.number % 9


@dataclass(frozen=True)
class StepsOverElements(Job):
    """A program of PyFlink's: steps over Python objects, in a row; with two logs over the elements of both."""

    logs: int = 1
    steps: tuple[str, ...] = ()
    is_chained: bool = True

    @property
    def of_elements(self) -> bool:
        return True

    def build(self, logs: Logs) -> DataStream:
        logs[0].get_execution_environment().get_config().set_chaining_enabled(self.is_chained)
        stream, *others = (log.map(element_of) for log in logs)
        stream = stream.union(*others) if others else stream
        for step in self.steps:
            stream = STEPS[step](stream)
        return stream


# ---- strategies ------------------------------------------------------------------------------------------------------

lengths = st.sampled_from([1, 2, 5, 10, 30, 100])
tumbling = st.builds(
    lambda size, offset: TumblingEventTimeWindows(size, offset % size), lengths, st.sampled_from([0, 0, 3])
)
sliding = st.builds(
    SlidingEventTimeWindows, st.sampled_from([10, 30, 7]), st.sampled_from([5, 10, 12]), st.just(0)
)
sessions = st.builds(EventTimeSessionWindows, lengths)
cumulative = st.builds(
    lambda step, steps: CumulativeEventTimeWindows(step * steps, step, 0),
    st.integers(1, 9),
    st.integers(1, 4),
)
event_time = st.one_of(tumbling, sliding, cumulative, sessions)
fired = st.one_of(
    st.none(),
    st.builds(CountTrigger, st.integers(1, 4)),
    st.builds(ContinuousEventTimeTrigger, st.integers(1, 9)),
)
triggers = st.one_of(
    fired, fired.map(lambda trigger: PurgingTrigger(EventTimeTrigger() if trigger is None else trigger))
)
counts = st.builds(CountTrigger, st.integers(1, 5))
of_time = st.tuples(event_time, st.one_of(st.none(), triggers), st.none())
counted = st.one_of(
    st.tuples(st.builds(CountTumblingWindowAssigner, st.integers(1, 4)), st.none(), st.none()),
    st.tuples(
        st.builds(CountSlidingWindowAssigner, st.integers(1, 7), st.integers(1, 5)), st.none(), st.none()
    ),
    st.tuples(
        st.just(GlobalWindows.create()), st.one_of(counts, st.builds(PurgingTrigger, counts)), st.none()
    ),
    st.tuples(
        st.just(GlobalWindows.create()), counts, st.builds(CountEvictor, st.integers(1, 7), st.booleans())
    ),
    st.tuples(st.just(GlobalWindows.create_with_end_of_stream_trigger()), st.none(), st.none()),
)
windows = st.one_of(of_time, of_time, counted)


def distance(old: Any, new: Any) -> float:
    return float(abs(new.number - old.number))


def ends(drawn: tuple[WindowAssigner[Any, Any], Any, Any]) -> bool:
    """Whether the end of the log ends the timers: a continuous trigger's go on to the end of a window in its time."""
    assigner, trigger, _ = drawn
    inner = trigger.nested_trigger if isinstance(trigger, PurgingTrigger) else trigger
    return assigner.is_event_time() or not isinstance(inner, ContinuousEventTimeTrigger)


of_any_windows = st.tuples(
    st.one_of(
        event_time,
        event_time,
        st.builds(TumblingProcessingTimeWindows, lengths, st.just(0)),
        st.just(SlidingProcessingTimeWindows(20, 10, 0)),
        st.builds(ProcessingTimeSessionWindows, lengths),
        st.just(EventTimeSessionWindows.with_dynamic_gap(gap_of_number)),
        st.just(ProcessingTimeSessionWindows.with_dynamic_gap(gap_of_number)),
        st.builds(Uneven, lengths),
        st.just(GlobalWindows.create()),
    ),
    st.one_of(
        st.none(),
        triggers,
        st.builds(ContinuousProcessingTimeTrigger, st.integers(1, 50)),
        st.just(DeltaTrigger(2.0, distance)),
        st.builds(
            ProcessingTimeoutTrigger, counts, st.sampled_from([0, 5, 60]), st.booleans(), st.booleans()
        ),
        counts,
    ),
    st.one_of(
        st.none(),
        st.none(),
        st.builds(CountEvictor, st.integers(1, 4), st.booleans()),
        st.builds(TimeEvictor, st.sampled_from([1, 5, 20]), st.booleans()),
        st.builds(lambda after: DeltaEvictor(3.0, distance, after), st.booleans()),
    ),
).filter(ends)
# A continuous trigger would go on to the end of time, which is that of these windows.
of_other_windows = st.tuples(
    st.builds(ByRest, st.integers(1, 3)),
    st.one_of(st.none(), counts, st.builds(PurgingTrigger, counts)),
    st.one_of(st.none(), st.builds(CountEvictor, st.integers(1, 4), st.booleans())),
)
by_functions = st.one_of(*[of_any_windows] * 9, of_other_windows)

of_rows = st.one_of(tumbling, sliding, cumulative)
RANKS = ["row_number", "rank", "dense_rank"]
settings_of_tops = st.tuples(
    st.tuples(st.just("n"), st.sampled_from([1, 2, 5])),
    st.tuples(st.just("skip"), st.sampled_from([0, 0, 1])),
    st.tuples(st.just("descending"), st.booleans()),
    st.tuples(st.just("nulls_last"), st.sampled_from([None, True, False])),
    st.tuples(st.just("rank"), st.sampled_from(RANKS)),
    st.tuples(st.just("rank_column"), st.sampled_from(["place", None])),
)

AGGREGATES = [
    "count",
    "sum",
    "min",
    "max",
    "bit_or",
    "bit_and",
    "mean",
    "stddev",
    "var_pop",
    "first",
    "last",
    "min_by",
    "max_by",
    "count_distinct",
    "approx_count_distinct",
    "approx_percentile",
    "collect",
]
NUMERIC = {"sum", "mean", "stddev", "var_pop", "approx_percentile"}
OF_INTEGERS = {"bit_or", "bit_and"}


def taking(value: str, names: list[str]) -> list[str]:
    """Those of the aggregates that take values of the type, which is not nested."""
    refused = set() if value.startswith("int") else OF_INTEGERS
    if value in ("string", "bool", "timestamp[ms]"):
        refused = refused | NUMERIC
    return [name for name in names if name not in refused]


@st.composite
def settings_of_windows(draw: st.DrawFn, drawn: Any) -> tuple[Any, ...]:
    return (*draw(drawn), draw(st.sampled_from([0, 0, 4, 20])), draw(st.booleans()))


def modes_of(assigner: WindowAssigner[Any, Any], trigger: Any, evictor: Any) -> list[str]:
    """How these windows can give their results."""
    counted = isinstance(assigner, CountTumblingWindowAssigner | CountSlidingWindowAssigner)
    if evictor is not None or counted or isinstance(trigger, PurgingTrigger):
        return ["accumulating"]
    changes = ["retracting"] if isinstance(assigner, MergingWindowAssigner) else ["retracting", "delta"]
    return ["accumulating"] * 4 + changes


@st.composite
def aggregated(draw: st.DrawFn, modes: list[str]) -> tuple[str, str, tuple[str, ...]]:
    mode, value = draw(st.sampled_from(modes)), draw(st.sampled_from(list(VALUE_POOLS)))
    names = taking(value, ["count", "sum"] if mode == "delta" else AGGREGATES)
    if value == "nested":
        mode, names = mode if mode != "delta" else "accumulating", ["count", "first", "last", "collect"]
    return mode, value, tuple(draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True)))


@st.composite
def jobs(draw: st.DrawFn, keys: Keys) -> Job:
    """A job of any shape over logs with these keys."""
    kind = draw(st.sampled_from(SHAPES))
    if kind in (WindowsOverColumns, FunctionBehindWindows):
        drawn = draw(settings_of_windows(windows))
        return kind(keys, *drawn, *draw(aggregated(modes_of(*drawn[:3]))))
    if kind is Frames:
        over = draw(st.sampled_from(["rows", "time", "all", "arrivals", "changes", "final"]))
        aggregates = draw(aggregated(["accumulating"]))[1:]
        return kind(keys, over, draw(st.integers(0, 4)), *aggregates, draw(st.booleans()))
    if kind is Deduplicated:
        window = draw(st.one_of(st.none(), of_rows))
        keep, by = draw(st.sampled_from(["first", "last"])), draw(st.sampled_from(["event_time", "arrival"]))
        flags = draw(st.booleans()), draw(st.booleans())
        return kind(keys, keep, by, draw(st.booleans()), window, *flags)
    if kind is HighestRows:
        value = draw(st.sampled_from([name for name in VALUE_POOLS if name != "nested"]))
        by = draw(st.sampled_from([("value",), ("number",), ("value", "number"), ("actions", "value")]))
        window = draw(st.one_of(st.none(), of_rows))
        flags = draw(st.booleans()), draw(st.booleans())
        return kind(keys, value, by, draw(settings_of_tops), draw(st.booleans()), window, *flags)
    if kind is ChangesTaken:
        value = draw(st.sampled_from([name for name in VALUE_POOLS if name != "nested"]))
        operator = draw(st.sampled_from(["top", "aggregate", "inner", "left", "semi", "anti"]))
        return kind(keys, value, draw(st.sampled_from(["value", "number"])), operator, draw(st.booleans()))
    if kind is LookedUp:
        return kind(keys, draw(st.sampled_from(["inner", "left"])), draw(st.booleans()))
    if kind is HighestResults:
        return kind(keys, draw(of_rows), None, None, 0, False, draw(st.sampled_from(RANKS)))
    if kind is WindowsOfBothPaths:
        return kind(keys, *draw(settings_of_windows(windows)))
    if kind is WindowsByFunctions:
        how = draw(st.sampled_from(HOW))
        return kind(keys, *draw(settings_of_windows(by_functions)), how, draw(st.booleans()))
    if kind is WindowsBehindFunction:
        return kind(keys, *draw(settings_of_windows(of_time)))
    if kind is StepsOverElements:
        steps = tuple(draw(st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=4)))
        return kind(keys, draw(st.sampled_from([1, 1, 2])), steps, draw(st.booleans()))
    if kind is MapStates:
        return kind(keys, draw(st.booleans()))
    if kind is Batches:
        return kind(keys, draw(st.sampled_from([1, 10, 40])))
    if kind is IntervalJoin:
        bounds = draw(st.sampled_from([(-20, 12), (0, 0), (-5, 40)]))
        late = draw(st.frozensets(st.sampled_from(["left", "right"])))
        exclusive = draw(st.sampled_from([frozenset(), frozenset(["lower"]), frozenset(["lower", "upper"])]))
        return kind(keys, *bounds, late, exclusive, has_timestamps=draw(st.booleans()))
    if kind is WindowJoin:
        settings = draw(event_time), draw(st.sampled_from([0, 10])), draw(st.booleans())
        return kind(keys, *settings, has_timestamps=draw(st.booleans()))
    if kind is ColumnJoin:
        of = draw(st.sampled_from(sorted(HOW_TO_JOIN)))
        flags = draw(st.booleans()), draw(st.booleans())
        return kind(
            keys,
            of,
            draw(st.sampled_from(HOW_TO_JOIN[of])),
            *flags,
            draw(st.sampled_from([1, 7, 30])),
            draw(st.booleans()),
            draw(st.frozensets(st.sampled_from(["left", "right"]))),
        )
    return kind(keys, has_timestamps=draw(st.booleans()))


EXACTLY_MERGED = [
    "count",
    "sum",
    "mean",
    "min",
    "max",
    "bit_or",
    "bit_and",
    "first",
    "last",
    "count_distinct",
    "approx_count_distinct",
    "approx_percentile",
]
"""Of floating numbers, sums and means are not."""


@st.composite
def mergeable(draw: st.DrawFn, keys: Keys) -> Job:
    """Windows whose events map tasks can merge, nearly always."""
    value = draw(st.sampled_from([name for name in VALUE_POOLS if not name.startswith("float")]))
    names = EXACTLY_MERGED
    if value not in ("decimal128", "wide decimal128"):
        names = [name for name in names if name != "mean"]
    names = taking(value, names)
    if value == "nested":
        names = ["count", "first", "last"]
    assigner = draw(st.one_of(tumbling, tumbling, sliding, cumulative))
    trigger = draw(st.sampled_from([None, None, None, PurgingTrigger(EventTimeTrigger())]))
    mode = draw(st.sampled_from(modes_of(assigner, trigger, None)))
    if mode == "delta":
        names = [name for name in names if name in ("count", "sum")]
    aggregates = tuple(draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True)))
    settings = draw(st.sampled_from([0, 0, 4, 20])), draw(st.booleans())
    return WindowsOverColumns(keys, assigner, trigger, None, *settings, mode, value, aggregates)


HOW = ["process", "states", "aggregate", "apply", "reduce", "reduce and apply"]

SHAPES: list[Any] = [
    Function,
    Function,
    FunctionOfUnion,
    MapStates,
    MapStates,
    Batches,
    WindowsOverColumns,
    WindowsOverColumns,
    Frames,
    Frames,
    WindowsOfBothPaths,
    Deduplicated,
    HighestRows,
    ChangesTaken,
    LookedUp,
    HighestResults,
    WindowsByFunctions,
    FunctionBehindWindows,
    WindowsBehindFunction,
    StepsOverElements,
    StepsOverElements,
    Connected,
    Broadcast,
    IntervalJoin,
    WindowJoin,
    ColumnJoin,
    ColumnJoin,
]
several = st.sampled_from([*ONE_LOG, *TWO_LOGS]).map(lambda name: Several((KeyColumn("string"),), name))
