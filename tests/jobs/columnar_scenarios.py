"""The programs of golden window scenarios, as windows over columns."""

from typing import Any

import pyarrow as pa

from flinkcore._native.aggregates import Accumulators
from flinkcore.common import Time
from flinkcore.datastream.window import (
    ContinuousEventTimeTrigger,
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    Trigger,
    TumblingEventTimeWindows,
    WindowAssigner,
)

ROWS = pa.schema([("key", pa.string()), ("value", pa.int64())])
RESULT = {
    "aggregate": [
        ("sum", "value", None),
        ("count", None, None),
        ("min", "value", None),
        ("max", "value", None),
    ],
    "sum": [("sum", "value", None)],
    "min": [("min", "value", None)],
    "max": [("max", "value", None)],
    "last": [("last", "value", None)],
    "list": [("collect", "value", None)],
}


MIN, MAX = -(2**63), 2**63 - 1
TRIGGERS = ("default", "event_time", "count", "continuous_event_time")


def inner_trigger(item: dict[str, Any]) -> dict[str, Any]:
    """The trigger, or what a purging one is made of."""
    trigger: dict[str, Any] = item["trigger"]
    return trigger["of"] if trigger["type"] == "purging" else trigger


def why_not_columnar(item: dict[str, Any]) -> str | None:
    """What of a scenario's program does not run over columns."""
    assigner, trigger = item["assigner"]["type"], inner_trigger(item)["type"]
    if assigner not in ("tumbling", "sliding", "session", "global", "global_end_of_stream"):
        return f"assigner {assigner} does not run over columns"
    if trigger not in TRIGGERS or (assigner == "global" and trigger == "default"):
        return f"trigger {trigger} of {assigner} does not run over columns"
    if item["evictor"] and (
        item["evictor"]["type"] != "count" or trigger != "count" or not assigner.startswith("global")
    ):
        return "only evictors by count, on global windows with a trigger by count, run over columns"
    if item["evictor"] and item["evictor"]["n"] == 0 and not item["evictor"]["after"]:
        return "an evictor that leaves nothing to aggregate does not run over columns"
    if assigner == "session" and item["function"].get("window_state"):
        return "per-window state needs a ProcessWindowFunction"
    if any(event[0] == "r" and event[1] is None for event in item["events"]):
        return "records without a timestamp are rejected before they reach a columnar window"
    watermarks = [event[1] for event in item["events"] if event[0] == "w"]
    if watermarks != sorted(watermarks):
        return "the watermark of a timeline never goes back"
    return None


def aggregates_of(function: dict[str, Any]) -> list[tuple[str, str | None, str | None]]:
    kind = function["type"].removesuffix("_process")
    return RESULT[function["op"] if kind == "reduce" else kind]


def assigner_of(item: dict[str, Any]) -> WindowAssigner[Any, Any]:
    assigner = item["assigner"]
    times = {name: Time.milliseconds(value) for name, value in assigner.items() if name != "type"}
    if assigner["type"] == "global":
        return GlobalWindows.create()
    if assigner["type"] == "global_end_of_stream":
        return GlobalWindows.create_with_end_of_stream_trigger()
    if assigner["type"] == "session":
        return EventTimeSessionWindows.with_gap(times["gap"])
    if assigner["type"] == "sliding":
        return SlidingEventTimeWindows.of(times["size"], times["slide"], times["offset"])
    return TumblingEventTimeWindows.of(times["size"], times["offset"])


def trigger_of(item: dict[str, Any]) -> Trigger[Any, Any] | None:
    trigger = inner_trigger(item)
    if trigger["type"] == "default":
        return None
    made: Trigger[Any, Any] = EventTimeTrigger.create()
    if trigger["type"] == "count":
        made = CountTrigger.of(trigger["n"])
    elif trigger["type"] == "continuous_event_time":
        made = ContinuousEventTimeTrigger.of(Time.milliseconds(trigger["interval"]))
    return PurgingTrigger.of(made) if item["trigger"]["type"] == "purging" else made


def evictor_of(item: dict[str, Any]) -> CountEvictor | None:
    evictor = item["evictor"]
    return evictor and CountEvictor.of(evictor["n"], evictor["after"])


def value_of(item: dict[str, Any], row: dict[str, Any]) -> Any:
    function = item["function"]
    results = [row[f"a{i}"] for i in range(len(aggregates_of(function)))]
    kind = function["type"]
    inner: Any = [row["key"], results[0]] if kind.startswith("reduce") else results
    if kind in ("reduce", "aggregate"):
        return inner
    elements = results[0] if kind == "list" else [results[0] if kind == "reduce_process" else results]
    return {
        "key": row["key"],
        "start": row["window_start"],
        "end": row["window_end"],
        "elements": elements,
        "watermark": row["watermark"],
    }


def shown(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Golden entries without what only a ProcessWindowFunction shows: clear calls, its clock and its state."""
    hidden = ("now", "window_firings", "global_firings")
    kept = []
    for entry in entries:
        if entry["type"] in ("clear", "status"):
            continue
        if isinstance(entry.get("value"), dict):
            entry = {**entry, "value": {k: v for k, v in entry["value"].items() if k not in hidden}}
        kept.append(entry)
    return kept


def accumulators_of(item: dict[str, Any]) -> Accumulators:
    """What the windows of a scenario add up."""
    return Accumulators(ROWS, aggregates_of(item["function"]))


def tells_timers(item: dict[str, Any], shareable: bool) -> bool:
    """Whether the windows that an operator holds tell Flink's timers; those that share slices are held as slices."""
    assigner = item["assigner"]["type"]
    if (
        assigner == "session"
    ):  # one that fires continuously leaves timers behind where it is merged, which do nothing
        return inner_trigger(item)["type"] != "continuous_event_time"
    return not (assigner == "sliding" and shareable)


def event_timers_of(item: dict[str, Any], windows: list[dict[str, Any]], watermark: int) -> int:
    """The number of timers that Flink has for live windows."""
    trigger = inner_trigger(item)["type"]
    fires_at_end = trigger in ("event_time", "continuous_event_time")
    fires_at_end |= trigger == "default" and item["assigner"]["type"] != "global"
    timers = set()
    for row in windows:
        window = row["key"], row["window_start"], row["window_end"]
        is_global = window[1:] == (MIN, MAX)
        last = MAX if is_global else row["window_end"] - 1
        if not is_global:
            timers.add((*window, last + item["allowed_lateness"]))  # of the cleanup
        if fires_at_end and last > watermark:
            timers.add((*window, last))
        if item["assigner"]["type"] == "global_end_of_stream" and row["trigger_state"] == last:
            timers.add((*window, last))  # also one that a row behind the maximum watermark has registered
        if trigger == "continuous_event_time" and MIN < row["trigger_state"] < last:
            timers.add(
                (*window, row["trigger_state"])
            )  # also one that is due: it fires with the next watermark
    return len(timers)
