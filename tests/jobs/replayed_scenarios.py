"""Golden window scenarios as jobs of replays, over logs that bring their watermarks and their clock with them.

Each event of a scenario is a row of the log. A generator emits the scenario's watermarks, each at the row that stands
for it, which a filter takes out behind the generator; arrivals show what the scenario's clock shows. The last row comes
one millisecond later, so that everything that is due by then has happened.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from equipment.recorders import OutputRecorder
from jobs import columnar_scenarios
from jobs.window_scenarios import LATE, assigner_of, operation_of

from flinkcore.common import (
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    Watermark,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from flinkcore.datastream import LogStream, StreamExecutionEnvironment
from flinkcore.datastream.aggregates import Aggregate
from flinkcore.datastream.graph.transformations import WindowProcessTransformation
from flinkcore.datastream.window import MergingWindowAssigner, WindowAssigner

Entry = dict[str, Any]


class ScriptedWatermarks(WatermarkGenerator[Any]):
    """Emits at each event what a script has for it."""

    changes_at_events_only = True

    def __init__(self, script: Iterable[int | None]) -> None:
        self._script = iter(script)

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        watermark = next(self._script)
        if watermark is not None:
            output.emit_watermark(Watermark(watermark))

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


def why_not_replayed(scenario: dict[str, Any]) -> str | None:
    """What of a scenario a log cannot bring about."""
    item, entries = scenario["input"], scenario["output"]["entries"]
    watermarks = [event[1] for event in item["events"] if event[0] == "w"]
    if watermarks != sorted(watermarks):
        return "the watermark of a timeline never goes back"
    if item["assigner"]["type"].endswith("_processing") or "global" in item["assigner"]["type"]:
        if item["evictor"] and item["evictor"]["type"] == "time" and _has_rows_without_time(item):
            return "rows of a log have timestamps, and an evictor looks at them"
    elif _has_rows_without_time(item):
        return "rows without a timestamp are rejected before they reach a window"
    if any(entry["type"] == "record" and entry["value"] is None for entry in entries):
        return "a reduce function that is left without elements gives None, which has no columns"
    watermark = None
    for at, event in enumerate(item["events"]):
        fired = [entry["timer"] for entry in entries if entry["at"] == at and "timer" in entry]
        if event[0] == "w":
            if fired and event[1] == watermark:
                return "a watermark comes twice and fires what was registered behind it: a log's rises"
            watermark = event[1]
        is_due_now = event[0] == "pt" and (
            any(timer[:2] == ["processing", event[1]] for timer in fired)
            or event[1] in ends_of_windows(item, item["events"][:at])
        )
        if is_due_now and _more_arrives(item["events"][at + 1 :], event[1]):
            return "a timer is due when further events arrive: a replay fires it after all that arrive at its time"
    now, at_the_end = _at_the_end(item)
    if now in ends_of_windows(item | {"now": now}, at_the_end):
        return (
            "a timer is due when it is registered, and the clock stands still from then on: a log's goes on"
        )
    return None


@dataclass
class _Clock(WindowAssigner.WindowAssignerContext):
    """All that assigners of processing time ask for."""

    now_ms: int

    def get_current_processing_time(self) -> int:
        return self.now_ms

    def get_runtime_context(self) -> Any:
        raise NotImplementedError

    def get_stagger_offset(self, window_stagger: Any, size_ms: int) -> int:
        return 0


def ends_of_windows(item: dict[str, Any], events: list[list[Any]]) -> set[int]:
    """When windows of processing time that events have opened end, perhaps without a result."""
    if not item["assigner"]["type"].endswith("_processing"):
        return set()
    assigner = assigner_of(item["assigner"])
    ends: dict[str, set[int]] = {}
    clock = _Clock(item["now"])
    for verb, *arguments in events:
        if verb == "pt":
            clock.now_ms = max(clock.now_ms, arguments[0])
        elif verb == "r":
            _, key, value = arguments
            windows = assigner.assign_windows((key, value), MIN_TIMESTAMP, clock)
            if isinstance(assigner, MergingWindowAssigner):
                ends[key] = set()  # it has merged with the one before, or that is over
            ends.setdefault(key, set()).update(window.max_timestamp() for window in windows)
    return set().union(*ends.values())


def _at_the_end(item: dict[str, Any]) -> tuple[int, list[list[Any]]]:
    """The last time of the clock, and the events that arrive at it."""
    now, behind = item["now"], 0
    for number, event in enumerate(item["events"]):
        if event[0] == "pt" and event[1] > now:
            now, behind = event[1], number
    return now, item["events"][behind:]


def _more_arrives(events: list[list[Any]], now: int) -> bool:
    """Whether there is a record or a watermark before the clock goes on."""
    at_once = takewhile(lambda event: event[0] != "pt" or event[1] <= now, events)
    return any(event[0] in "rw" for event in at_once)


def _has_rows_without_time(item: dict[str, Any]) -> bool:
    return any(event[0] == "r" and event[1] is None for event in item["events"])


def log_of(item: dict[str, Any]) -> tuple[pa.Table, list[int | None]]:
    """The log of a scenario, and the watermark after each of its rows."""
    known = [event[1] for event in item["events"] if event[0] == "r" and event[1] is not None]
    harmless = known[0] if known else 0
    rows: list[tuple[Any, ...]] = []
    script: list[int | None] = []
    now = item["now"]
    for verb, *arguments in item["events"]:
        if verb == "pt":
            now = max(now, arguments[0])
        if verb == "r":
            timestamp, key, value = arguments
            rows.append((key, value, harmless if timestamp is None else timestamp, now, True))
        elif verb != "s":  # a status does nothing to windows
            rows.append(("", 0, harmless, now, False))
        if verb != "s":
            script.append(arguments[0] if verb == "w" else None)
    rows.append(("", 0, harmless, now + 1, False))
    script.append(None)
    types = {"key": pa.string(), "value": pa.int64(), "ts": pa.int64(), "at": pa.int64(), "kept": pa.bool_()}
    columns = zip(*rows, strict=True)
    return pa.table([pa.array(c, t) for c, t in zip(columns, types.values(), strict=True)], [*types]), script


def _keyed(env: StreamExecutionEnvironment, item: dict[str, Any]) -> Any:
    table, script = log_of(item)
    return (
        env.from_event_log(table, timestamp="ts", integer_times=True, arrival="at")
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_generator(partial(ScriptedWatermarks, script))
        )
        .filter(pc.field("kept"))
        .select("key", "value")
        .key_by("key")
    )


class RowPath:
    """Windows of functions in Python."""

    @staticmethod
    def job(env: StreamExecutionEnvironment, item: dict[str, Any]) -> LogStream:
        keyed = _keyed(env, item)
        operation = operation_of(item, OutputRecorder())
        return LogStream(
            env, WindowProcessTransformation(keyed._input(), operation, schema_of(item), (), "time")
        )

    @staticmethod
    def wanted(item: dict[str, Any], entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Results that a replay must give: its clock shows every millisecond, that at which a timer is due too."""
        wanted = []
        for entry in entries:
            timer, value = entry.get("timer"), entry.get("value")
            if timer and timer[0] == "processing" and isinstance(value, dict):
                entry = {**entry, "value": {**value, "now": timer[1]}}
            wanted.append(entry)
        return wanted

    @staticmethod
    def results(item: dict[str, Any], rows: Iterable[dict[str, Any]]) -> Iterator[Entry]:
        """Rows in the form of golden entries."""
        kind = item["function"]["type"]
        for row in rows:
            value = {name: row[name] for name in row if name != "time"}
            if kind in ("reduce", "aggregate"):
                yield {"type": "record", "value": [*value.values()], "ts": row["time"]}
            else:
                yield {"type": "record", "value": value, "ts": row["time"]}


def schema_of(item: dict[str, Any]) -> pa.Schema:
    """Columns of what the functions of a scenario give."""
    kind = item["function"]["type"]
    number = pa.int64()
    if kind == "reduce":
        return pa.schema({"key": pa.string(), "value": number})
    if kind == "aggregate":
        return pa.schema(dict.fromkeys(("sum", "count", "min", "max"), number))
    element = pa.list_(number) if kind == "aggregate_process" else number
    columns = {"key": pa.string(), "start": number, "end": number, "elements": pa.list_(element)}
    columns |= {"watermark": number, "now": number}
    for state in ("window", "global"):
        if item["function"].get(f"{state}_state"):
            columns[f"{state}_firings"] = number
    return pa.schema(columns)


class ColumnarPath:
    """Windows over columns."""

    @staticmethod
    def job(env: StreamExecutionEnvironment, item: dict[str, Any]) -> LogStream:
        windows = _keyed(env, item).window(columnar_scenarios.assigner_of(item))
        trigger = columnar_scenarios.trigger_of(item)
        if trigger is not None:
            windows = windows.trigger(trigger)
        evictor = columnar_scenarios.evictor_of(item)
        if evictor is not None:
            windows = windows.evictor(evictor)
        windows = windows.allowed_lateness(item["allowed_lateness"])
        if item["late_output"]:
            windows = windows.side_output_late_data(LATE)
        aggregates = columnar_scenarios.aggregates_of(item["function"])
        return windows.aggregate(  # type: ignore[no-any-return]
            **{f"a{i}": Aggregate(*aggregate) for i, aggregate in enumerate(aggregates)}
        )

    @staticmethod
    def wanted(item: dict[str, Any], entries: list[Entry]) -> list[Entry]:
        """What aggregates show of the results, and the columns that say how each came about."""
        wanted = []
        for entry in columnar_scenarios.shown(entries):
            if entry["type"] == "record":
                events = item["events"][: entry["at"] + 1]
                watermark = max((event[1] for event in events if event[0] == "w"), default=MIN_TIMESTAMP)
                is_late = events[-1][0] == "r" and entry["ts"] <= watermark
                key = entry["timer"][2] if "timer" in entry else events[-1][2]
                entry = {**entry, "key": key, "watermark": watermark, "late_firing": is_late}
            wanted.append(entry)
        return wanted

    @staticmethod
    def results(item: dict[str, Any], rows: Iterable[dict[str, Any]]) -> Iterator[Entry]:
        """Rows in the form of golden entries, with the columns that say how each came about."""
        for row in rows:
            end = row["window_end"]
            yield {
                "type": "record",
                "value": columnar_scenarios.value_of(item, row),
                "ts": MAX_TIMESTAMP if end is None else end - 1,
                "key": row["key"],
                "watermark": row["watermark"],
                "late_firing": row["late_firing"],
            }
