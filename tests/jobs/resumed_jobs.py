"""Jobs of several operators and logs that go on from checkpoints, over random logs that are cut anywhere."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from jobs.scripted_logs import RESULTS, SIDES
from jobs.two_inputs import RULES, ScriptedCo, ScriptedRules, TellingRules
from models.batch_functions import scripted_batches
from models.chained_operators import TOLD, Follower, Followers
from models.process_replay import Scripted

from flinkcore.common import OutputTag, Row, Time, Watermark, WatermarkGenerator, WatermarkOutput
from flinkcore.datastream import CoProcessFunction, DataStream, KeyedProcessFunction
from flinkcore.datastream.aggregates import (
    collect,
    count,
    count_distinct,
    first,
    last,
    max_,
    mean,
    min_,
    stddev,
    sum_,
)
from flinkcore.datastream.functions import (
    CoGroupFunction,
    JoinFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
)
from flinkcore.datastream.state import MapStateDescriptor
from flinkcore.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)

SIDE = OutputTag("side", SIDES)
LATE = OutputTag("late")
TIME = {"timestamp_column": "record_time"}
NUMBERS = pa.schema({"user": pa.string(), "first": pa.list_(pa.int64()), "second": pa.list_(pa.int64())})
TOP = pa.schema({"window": pa.int64(), "users": pa.list_(pa.string()), "clock": pa.int64()})
Logs = list[DataStream]


class Telling(CoProcessFunction):
    """Tells what it sees; of a stream without keys there is no state."""

    def _tell(self, user: str, value: Row, ctx: Any) -> Iterator[Any]:
        timers = ctx.timer_service()
        times = timers.current_watermark(), timers.current_processing_time(), ctx.timestamp()
        yield (user, "seen", value.number, *times, None, None)

    def process_element1(self, value: Row, ctx: Any) -> Iterator[Any]:
        return self._tell(value.user, value, ctx)

    def process_element2(self, value: Row, ctx: Any) -> Iterator[Any]:
        return self._tell(value.who, value, ctx)


class Best(KeyedProcessFunction):
    """The users with the highest numbers of each window, once its watermark has come."""

    def open(self, runtime_context: Any) -> None:
        self.found = runtime_context.get_map_state(MapStateDescriptor("found"))

    def process_element(self, value: Row, ctx: Any) -> None:
        self.found.put(value.user, (value.highest, value.n))
        ctx.timer_service().register_event_time_timer(value.end)
        ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 7)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        ranked = sorted(self.found.items(), key=lambda entry: (entry[1], entry[0]), reverse=True)
        clock = ctx.timer_service().current_processing_time()
        yield ctx.get_current_key(), [user for user, _ in ranked[:2]], clock


class Elements(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        numbers = sorted(element.number for element in elements)
        yield key, numbers, [context.window().max_timestamp(), context.current_watermark()]


class Pairs(ProcessJoinFunction[Row, Row]):
    def process_element(self, left: Row, right: Row, ctx: ProcessJoinFunction.Context) -> Any:
        yield left.user, [left.number], [right.number]


class Groups(CoGroupFunction[Row, Row]):
    def co_group(self, first: list[Row], second: list[Row]) -> Any:
        user = first[0].user if first else second[0].who
        return [(user, [row.number for row in first], [row.number for row in second])]


class WithBoth(JoinFunction[Row, Row, Any]):
    def join(self, first: Row, second: Row) -> Any:
        return first.user, [first.number], [second.number]


class EvenTimestamps(WatermarkGenerator[Any]):
    """Emits at events with an even timestamp, and periodically what it has seen of the others; has a state."""

    def __init__(self) -> None:
        self.odd: list[int] = []

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        if event_timestamp % 2 == 0:
            output.emit_watermark(Watermark(event_timestamp - 3))
        else:
            self.odd = [*self.odd[-2:], event_timestamp]

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        if self.odd:
            output.emit_watermark(Watermark(min(self.odd) - 5))
            if len(self.odd) == 3 and self.odd[0] == self.odd[1]:
                output.mark_idle()

    def snapshot_state(self) -> list[int]:
        return self.odd

    def restore_state(self, state: list[int]) -> None:
        self.odd = state


def tumbling(size_ms: int = 50) -> TumblingEventTimeWindows:
    return TumblingEventTimeWindows.of(Time.milliseconds(size_ms))


def second_names(log: DataStream) -> DataStream:
    return log.select("split", "actions", "number", "ts", "at", who=pc.field("user"))


def function_alone(logs: Logs) -> DataStream:
    return logs[0].key_by("user").process(Scripted(), RESULTS, side_outputs=[SIDE], **TIME)


def batches_alone(logs: Logs) -> DataStream:
    columns = RESULTS.append(pa.field("record_time", pa.int64()))
    sides = OutputTag("side", SIDES.append(pa.field("record_time", pa.int64())))
    function = scripted_batches(columns.names)
    function.one_element_per_key = True
    return logs[0].key_by("user").process(function, columns, side_outputs=[sides])


def windows_alone(logs: Logs) -> DataStream:
    windows = logs[0].key_by("user").window(EventTimeSessionWindows.with_gap(Time.milliseconds(20)))
    return (
        windows.allowed_lateness(10)
        .side_output_late_data(LATE)
        .aggregate(n=count(), numbers=collect("number"))
    )


def windows_of_all(logs: Logs) -> DataStream:
    windows = logs[0].window_all(SlidingEventTimeWindows.of(Time.milliseconds(40), Time.milliseconds(20)))
    return windows.allowed_lateness(10).side_output_late_data(LATE).aggregate(n=count(), total=sum_("number"))


def sessions_of_all(logs: Logs) -> DataStream:
    sessions = logs[0].window_all(EventTimeSessionWindows.with_gap(Time.milliseconds(20)))
    return sessions.allowed_lateness(10).retracting().aggregate(n=count(), numbers=collect("number"))


def counts_of_all(logs: Logs) -> DataStream:
    return logs[0].count_window_all(3).aggregate(n=count(), numbers=collect("number"))


def elements_of_all(logs: Logs) -> DataStream:
    windows = logs[0].window_all(GlobalWindows.create()).trigger(CountTrigger.of(4))
    return windows.aggregate(n=count(), least=min_("number"))


def function_behind_function(logs: Logs) -> DataStream:
    first = logs[0].key_by("user").process(Scripted(), RESULTS, side_outputs=[SIDE])
    return first.select("number", key=pc.field("what")).key_by("key").process(Follower(), TOLD, **TIME)


def function_behind_windows(logs: Logs) -> DataStream:
    windows = (
        logs[0]
        .key_by("user")
        .window(SlidingEventTimeWindows.of(Time.milliseconds(60), Time.milliseconds(20)))
    )
    counted = windows.allowed_lateness(15).side_output_late_data(LATE).aggregate(number=count())
    kind = pc.field("window_start").cast("string")
    return counted.select("number", kind=kind).key_by("kind").process(Follower(), TOLD, **TIME)


def windows_behind_a_function(logs: Logs) -> DataStream:
    first = logs[0].key_by("user").process(Scripted(), RESULTS, side_outputs=[SIDE])
    events = first.filter(pc.field("what") != "PROCESSING_TIME").key_by("user", "what")
    return events.window(tumbling(20)).allowed_lateness(9).aggregate(n=count(), numbers=collect("number"))


def top_of_windows(logs: Logs) -> DataStream:
    counted = logs[0].key_by("user").window(tumbling()).aggregate(n=count(), highest=max_("number"))
    windows = counted.select(
        *("user", "n", "highest"),
        window=pc.field("window_start").cast("int64"),
        end=pc.field("window_end").cast("int64"),
    )
    return windows.key_by("window").process(Best(), TOP)


def three_operators(logs: Logs) -> DataStream:
    counted = (
        logs[0].key_by("user").window(tumbling(20)).trigger(CountTrigger.of(2)).aggregate(n=sum_("number"))
    )
    again = counted.key_by("user").window(EventTimeSessionWindows.with_gap(Time.milliseconds(30)))
    session = again.aggregate(number=sum_("n"))
    return session.key_by("user").process(Follower(), TOLD, **TIME)


def counts_in_a_row(logs: Logs) -> DataStream:
    """Counts behind counts: each result is an event of its own."""
    last_two = (
        logs[0]
        .key_by("user")
        .window(GlobalWindows.create())
        .trigger(CountTrigger.of(1))
        .evictor(CountEvictor.of(2))
        .aggregate(n=sum_("number"))
    )
    return last_two.key_by("user").count_window(3, 1).aggregate(numbers=collect("n"), least=min_("n"))


def windows_of_functions_in_a_row(logs: Logs) -> DataStream:
    first = logs[0].key_by("user").window(tumbling(20)).process(Elements(), NUMBERS)
    numbered = first.select("user", number=pc.list_value_length(pc.field("first")))
    return (
        numbered.key_by("number")
        .window(tumbling(40))
        .process(
            Elements(),
            pa.schema({"number": pa.int32(), "first": pa.list_(pa.int64()), "second": pa.list_(pa.int64())}),
        )
    )


def union_of_logs(logs: Logs) -> DataStream:
    return logs[0].union(logs[1]).key_by("user").process(Scripted(), RESULTS, side_outputs=[SIDE], **TIME)


def batches_of_a_union(logs: Logs) -> DataStream:
    return batches_alone([logs[0].union(logs[1])])


def windows_of_a_union(logs: Logs) -> DataStream:
    windows = logs[0].union(logs[1]).key_by("user").window(tumbling(30)).allowed_lateness(8)
    return windows.side_output_late_data(LATE).aggregate(n=count(), numbers=collect("number"))


def connected_by_key(logs: Logs) -> DataStream:
    connected = logs[0].connect(second_names(logs[1])).key_by("user", "who")
    return connected.process(ScriptedCo(), RESULTS, side_outputs=[SIDE], **TIME)


def connected_and_followed(logs: Logs) -> DataStream:
    first = connected_by_key(logs)
    return first.select("number", key=pc.field("what")).key_by("key").process(Follower(), TOLD, **TIME)


def connected_without_keys(logs: Logs) -> DataStream:
    return logs[0].connect(second_names(logs[1])).process(Telling(), RESULTS, **TIME)


def broadcast_to_keys(logs: Logs) -> DataStream:
    connected = logs[0].key_by("user").connect(second_names(logs[1]).broadcast(RULES))
    return connected.process(ScriptedRules(), RESULTS, side_outputs=[SIDE], **TIME)


def broadcast_without_keys(logs: Logs) -> DataStream:
    connected = logs[0].connect(second_names(logs[1]).broadcast(RULES))
    return connected.process(TellingRules(), RESULTS, **TIME)


def interval_join(logs: Logs) -> DataStream:
    join = logs[0].key_by("user").interval_join(second_names(logs[1]).key_by("who")).between(-20, 12)
    return join.side_output_left_late_data(LATE).process(Pairs(), NUMBERS, **TIME)


def co_group(logs: Logs) -> DataStream:
    grouped = logs[0].co_group(second_names(logs[1])).where("user").equal_to("who")
    return grouped.window(tumbling(40)).allowed_lateness(10).apply(Groups(), NUMBERS, **TIME)


def counted(log: DataStream, size_ms: int = 20) -> DataStream:
    counts = log.key_by("user").window(tumbling(size_ms)).allowed_lateness(9).aggregate(number=count())
    return counts.select("user", "number")


def timed_results(log: DataStream) -> DataStream:
    """Results of a function; those of processing-time timers have no timestamps, which joins ask for."""
    results = log.key_by("user").process(Scripted(), RESULTS, side_outputs=[SIDE])
    return results.filter(pc.field("what") != "PROCESSING_TIME")


def results_joined_with_a_log(logs: Logs) -> DataStream:
    joined = counted(logs[0]).co_group(second_names(logs[1])).where("user").equal_to("who")
    return joined.window(tumbling(40)).allowed_lateness(10).apply(Groups(), NUMBERS, **TIME)


def results_of_two_operators(logs: Logs) -> DataStream:
    second = timed_results(logs[1]).select("number", who=pc.field("user"))
    joined = counted(logs[0]).key_by("user").interval_join(second.key_by("who")).between(-20, 12)
    return joined.process(Pairs(), NUMBERS, **TIME)


def unions_of_results_and_logs(logs: Logs) -> DataStream:
    """Each input of the last operator is a union, with a valve of its own."""
    first = counted(logs[0]).union(logs[1].select("user", "number"))
    second = timed_results(logs[1]).select("user", "number").union(logs[0].select("user", "number"))
    return first.connect(second).key_by("user", "user").process(Followers(), TOLD, **TIME)


def windows_of_a_union_of_results(logs: Logs) -> DataStream:
    union = counted(logs[0]).union(counted(logs[1], 30), timed_results(logs[1]).select("user", "number"))
    return union.key_by("user").window(tumbling(40)).aggregate(n=count(), numbers=collect("number"))


def a_log_on_two_ways(logs: Logs) -> DataStream:
    joined = counted(logs[0]).join(second_names(logs[0])).where("user").equal_to("who")
    return joined.window(tumbling(40)).apply(WithBoth(), NUMBERS, **TIME)


def results_on_two_ways(logs: Logs) -> DataStream:
    first = timed_results(logs[0]).select("user", "number")
    second = counted(first).select("number", who=pc.field("user"))
    connected = first.connect(second).key_by("user", "who")
    followed = connected.process(Followers(), TOLD, **TIME)
    return followed.select("number", "key").key_by("key").process(Follower(), TOLD, **TIME)


def results_are_rules(logs: Logs) -> DataStream:
    rules = counted(logs[1]).select("number", who=pc.field("user"))
    connected = logs[0].key_by("user").connect(rules.broadcast(RULES))
    return connected.process(ScriptedRules(), RESULTS, side_outputs=[SIDE], **TIME)


def over_rows(logs: Logs) -> DataStream:
    framed = logs[0].key_by("user").over(2)
    return framed.aggregate(total=sum_("number"), least=min_("number"), splits=count_distinct("split"))


def over_time(logs: Logs) -> DataStream:
    framed = logs[0].key_by("user").over(Time.milliseconds(30))
    return framed.aggregate(n=count(), mean=mean("number"), numbers=collect("number"), first=first("actions"))


def over_all_rows(logs: Logs) -> DataStream:
    return logs[0].key_by("user").over().aggregate(n=count(), spread=stddev("number"), last=last("actions"))


def over_arrivals(logs: Logs) -> DataStream:
    framed = logs[0].key_by("user").over(1, by="arrival").aggregate(highest=max_("number"))
    return framed.key_by("highest").over(by="arrival").aggregate(n=count())


def final_aggregates(logs: Logs) -> DataStream:
    keyed = logs[0].key_by("user")
    return keyed.aggregate(n=count(), last=last("number"), kinds=count_distinct("actions"))


def changes_of_changes(logs: Logs) -> DataStream:
    """How many keys have a number of rows, which changes with each row."""
    counts = logs[0].key_by("user").aggregate(n=count(), total=sum_("number"), changes=True)
    return counts.key_by("n").aggregate(keys=count(), totals=count_distinct("total"), changes=True)


def windows_behind_over(logs: Logs) -> DataStream:
    framed = logs[0].key_by("user").over(Time.milliseconds(20)).aggregate(sums=sum_("number"))
    windows = framed.key_by("split").window(tumbling(20)).allowed_lateness(9)
    return windows.aggregate(n=count(), sums=collect("sums"))


ONE_LOG: list[Callable[[Logs], DataStream]] = [
    function_alone,
    batches_alone,
    windows_alone,
    windows_of_all,
    sessions_of_all,
    counts_of_all,
    elements_of_all,
    function_behind_function,
    function_behind_windows,
    windows_behind_a_function,
    top_of_windows,
    three_operators,
    counts_in_a_row,
    windows_of_functions_in_a_row,
    a_log_on_two_ways,
    results_on_two_ways,
    over_rows,
    over_time,
    over_all_rows,
    over_arrivals,
    final_aggregates,
    changes_of_changes,
    windows_behind_over,
]
TWO_LOGS: list[Callable[[Logs], DataStream]] = [
    union_of_logs,
    batches_of_a_union,
    windows_of_a_union,
    connected_by_key,
    connected_and_followed,
    connected_without_keys,
    broadcast_to_keys,
    broadcast_without_keys,
    interval_join,
    co_group,
    results_joined_with_a_log,
    results_of_two_operators,
    unions_of_results_and_logs,
    windows_of_a_union_of_results,
    results_are_rules,
]


READ_SEVERAL_TIMES: list[Callable[[Logs], DataStream]] = [
    a_log_on_two_ways,
    unions_of_results_and_logs,
    windows_of_a_union_of_results,
]
"""A log that is read on two ways is two logs, and events that arrive together are in order of the logs."""


def entries_of(
    rows: Sequence[tuple[Any, ...]], logs: int, has_splits: bool
) -> list[tuple[int, tuple[Any, ...]]]:
    """Rows in total order over all logs, each with the number of its log.

    With splits every split has an event before all others, so that all splits are there from the start.
    """
    entries: list[tuple[int, tuple[Any, ...]]] = []
    if has_splits:
        entries += [
            (log, ("a", -1 - log, 3, 3, split, "event:5 processing:20"))
            for log in range(logs)
            for split in range(3)
        ]
    clock, found = 4, []
    for number, (user, stride, delay, split, actions, log) in enumerate(rows):
        clock += stride
        found.append((log % logs, (user, number, clock - delay, clock, split if has_splits else 0, actions)))
    return entries + sorted(found, key=lambda entry: (entry[1][3], entry[0], entry[1][4]))


def not_amid_an_arrival(entries: Sequence[tuple[int, tuple[Any, ...]]], bound: int) -> int:
    """The next bound behind which nothing arrives together with what is before it."""
    while 0 < bound < len(entries) and entries[bound][1][3] == entries[bound - 1][1][3]:
        bound += 1
    return bound


def at_the_last_arrival(entries: Sequence[tuple[int, tuple[Any, ...]]]) -> int:
    """The bound before all that arrives last, when paused splits are read: in the order of all splits."""
    return next(number for number, (_, row) in enumerate(entries) if row[3] == entries[-1][1][3])


def tables_of(entries: Sequence[tuple[int, tuple[Any, ...]]], logs: int) -> list[pa.Table]:
    """The table of each log."""
    names = ["user", "number", "ts", "at", "split", "actions"]
    types = [pa.string(), pa.int64(), pa.int64(), pa.int64(), pa.int64(), pa.string()]
    tables = []
    for log in range(logs):
        columns = list(zip(*(row for of, row in entries if of == log), strict=True)) or [()] * len(names)
        tables.append(pa.table([pa.array(c, kind) for c, kind in zip(columns, types, strict=True)], names))
    return tables
