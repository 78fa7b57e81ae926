"""The history of a key as text: what happened, in the order in which it did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.show.durations import shown_duration
from flinkcore._internal.show.times import EARLIEST_DATE_MS, format_timestamp
from flinkcore._internal.values.timestamps import MAX_TIMESTAMP
from flinkcore.sql.plan.column_names import plain_name

if TYPE_CHECKING:
    from flinkcore.analysis.key_history import KeyHistory

_LARGEST = 2**63


def told(history: KeyHistory) -> Iterator[str]:
    """Yield the lines of a story: how much there was, and then a paragraph for each event, firing and timer."""
    column = history.events.column("timestamp")
    is_time = are_dates(column)
    zone = (
        "times in UTC" if pa.types.is_timestamp(column.type) else "times in UTC, made of ms since the epoch"
    )
    logs = len(set(history.events.column("log").to_pylist()))
    story = _Story(is_time, logs, history.kind)
    events, firings, timers = (
        rows_in_ms(table) for table in (history.events, history.firings, history.timers)
    )
    yield ", ".join(f"{plain_name(name)} = {value!r}" for name, value in history.key.items())
    yield f"  {_counts(events)}; {_many(len(firings), 'firing')}{f'; {zone}' * is_time}"
    yield from (f"  read as {table}" for table in history.tables)
    yield from (f"  note: {note}" for note in history.notes)
    told_events = [(_place(each, 0), story.event(each)) for each in events]
    told_timers = [(_place(each, 1), story.timer(each)) for each in timers]
    told_firings = [(_place(each, 2), story.firing(each)) for each in firings]
    # Stable: what a call does with timers is in its order.
    for _, lines in sorted([*told_events, *told_timers, *told_firings], key=itemgetter(0)):
        yield from lines


def are_dates(times: pa.ChunkedArray) -> bool:
    """Return whether times are shown as dates: timestamps are, and numbers of ms that look like dates."""
    if pa.types.is_timestamp(times.type):
        return True
    least = pc.min(times).as_py()
    return least is not None and bool(least >= EARLIEST_DATE_MS)


def shown_time(time_ms: int, is_time: bool) -> str:
    """Return a time as text: a date, or a number."""
    return format_timestamp(time_ms).removesuffix(".000Z").removesuffix("Z") if is_time else f"{time_ms:,}"


def _place(each: dict[str, Any], kind: int) -> tuple[int, ...]:
    """Return the place of a paragraph: by time, then by call; results of windows follow the event that caused them."""
    arrival = _LARGEST if each["arrival"] is None else each["arrival"]
    if each["call"] is not None:
        return arrival, each["call"], 0, kind
    number = each["event"]
    return (arrival, -1, _LARGEST, kind) if number is None else (arrival, -1, number, kind)


def rows_in_ms(table: pa.Table) -> list[dict[str, Any]]:
    """Return rows with times as numbers of ms."""
    columns = []
    for field, column in zip(table.schema, table.columns, strict=True):
        if pa.types.is_timestamp(field.type):
            column = column.cast(pa.int64())
        elif field.name in ("windows", "missed_windows"):
            column = column.cast(pa.list_(pa.struct([("start", pa.int64()), ("end", pa.int64())])))
        columns.append(column)
    rows: list[dict[str, Any]] = pa.table(columns, names=table.column_names).to_pylist()
    return rows


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _counts(events: Sequence[dict[str, Any]]) -> str:
    fates = Counter(event["fate"] for event in events)
    behind = sum(event["behind_watermark"] and event["fate"] == "in window" for event in events)
    in_time = f" ({behind:,} behind the watermark, but in time)" if behind else ""
    parts = [f"{count:,} {fate}{in_time if fate == 'in window' else ''}" for fate, count in fates.items()]
    return ", ".join([_many(len(events), "row"), *parts])


class _Story:
    """Words for what happened.

    Parameters
    ----------
    is_time
        Whether times are shown as dates, and not as numbers.
    logs
        Number of logs.
    kind
        As of `KeyHistory`.
    """

    def __init__(self, is_time: bool, logs: int, kind: str) -> None:
        self._is_time = is_time
        self._kind = kind
        self._several_logs = logs > 1
        self._margin = " " * (25 if is_time else 12)

    def _time(self, time_ms: int | None) -> str:
        return "?" if time_ms is None else shown_time(time_ms, self._is_time)

    def _watermark(self, watermark: int | None) -> str:
        if watermark is None:
            return "no watermark yet"
        return (
            "the watermark at its maximum"
            if watermark == MAX_TIMESTAMP
            else f"watermark {self._time(watermark)}"
        )

    def _window(self, start: int | None, end: int | None) -> str:
        if start is None:
            return "its window"
        first, last = self._time(start), self._time(end)
        day = len("2001-01-01 ")
        return f"[{first}, {last[day:] if self._is_time and first[:day] == last[:day] else last})"

    def _windows(self, windows: Sequence[dict[str, Any]]) -> str:
        return ", ".join(self._window(each["start"], each["end"]) for each in windows)

    def _lines(self, time_ms: int | None, first: str, *others: str) -> list[str]:
        head = self._time(time_ms).ljust(len(self._margin) - 2)
        return [f"{head}  {first}", *(f"{self._margin}  {line}" for line in others)]

    def event(self, event: dict[str, Any]) -> list[str]:
        """Return the arrival of an event, and what became of it."""
        split = "" if event["split"] is None else f" of split {event['split']!r}"
        log = f" of log {event['log']}" if self._several_logs else ""
        at = "" if event["position"] is None else f", position {event['position']:,}"
        first = f"event {event['event']:,} of {self._time(event['timestamp'])}{split}{log}{at}"
        if event["fate"] in ("filtered", "rejected"):
            return self._lines(event["arrival"], first, f"{event['fate']}: {event['reason']}")
        holder = "" if event["held_by"] is None else f", held by split {event['held_by']!r}"
        if holder and event["watermark"] is None:
            holder = f": split {event['held_by']!r} has none"
        is_late = "; the event is behind it" if event["behind_watermark"] else ""
        return self._lines(
            event["arrival"],
            first,
            f"{self._watermark(event['watermark'])}{holder}{is_late}",
            *self._fate(event),
        )

    def _fate(self, event: dict[str, Any]) -> Iterator[str]:
        if event["fate"] == "late":
            missed = self._windows(event["missed_windows"])
            yield f"LATE{f' for {missed}' if missed else ''}: {event['reason']}"
            bound, lateness = event["saving_out_of_orderness_ms"], event["saving_allowed_lateness_ms"]
            ways = {"an out-of-orderness bound": bound, "an allowed lateness": lateness}
            saving = [f"{way} of {shown_duration(ms)}" for way, ms in ways.items() if ms is not None]
            if saving:
                yield f"in time with {' or '.join(saving)}"
            return
        reason = "" if event["reason"] is None else f": {event['reason']}"
        if event["fate"] != "in window":
            yield f"{event['fate']}{reason}"
            return
        windows = [each for each in event["windows"] if each["start"] is not None]
        yield f"into {self._windows(windows) or 'its window'}"
        if event["missed_windows"]:
            yield f"too late for {self._windows(event['missed_windows'])}"
        if reason:
            yield f"in no result{reason}"

    def firing(self, firing: dict[str, Any]) -> list[str]:
        """Return a firing, and what it was made of."""
        causes = {"function": self._cause_of_call, "rows": self._cause_of_row}
        first = causes.get(self._kind, self._cause_of_firing)(firing)
        of = f"of {_many(len(firing['events']), 'event')}: {_spans(firing['events'])}"
        results = [
            ", ".join(f"{plain_name(name)} = {value}" for name, value in row.items())
            for row in firing["results"]
        ]
        has_events = firing["events"] and self._kind != "function"
        return self._lines(firing["arrival"], first, *([of] if has_events else []), *results)

    def _cause_of_call(self, firing: dict[str, Any]) -> str:
        if firing["event"] is None:
            return f"the timer at {self._time(firing['timer'])} gives"
        return f"event {firing['event']:,} gives"

    def _cause_of_row(self, firing: dict[str, Any]) -> str:
        if firing["event"] is not None:
            return f"result of event {firing['event']:,}"
        if firing["cause"] == "end of the log":
            return "result at the end of the log"
        timer = "" if firing["timer"] is None else f"the timer at {self._time(firing['timer'])}, "
        return f"result of {timer}{self._watermark(firing['watermark'])}"

    def _cause_of_firing(self, firing: dict[str, Any]) -> str:
        what = self._window(firing["window_start"], firing["window_end"])
        if firing["cause"] == "event":
            return f"event {firing['event']:,} fires {what}{' again, behind its end' * firing['late_firing']}"
        if firing["cause"] == "end of the log":
            return f"{what} fires at the end of the log"
        return f"{what} fires, {self._watermark(firing['watermark'])}"

    def timer(self, timer: dict[str, Any]) -> list[str]:
        """Return the lines about an action on a timer."""
        by = "" if timer["event"] is None else f" by event {timer['event']:,}"
        what = f"timer of {timer['time_domain']} at {self._time(timer['timestamp'])} {timer['action']}{by}"
        return self._lines(timer["arrival"], what)


def _spans(numbers: Sequence[int]) -> str:
    """Numbers in words: those that follow each other as a span."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(f"{start:,}" if start == end else f"{start:,}-{end:,}" for start, end in spans)
