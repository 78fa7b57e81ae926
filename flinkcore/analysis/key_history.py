"""History of a key, which explains its results: its events, the fate of each, and the events of each result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import methodcaller
from os import PathLike
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.arrow.joined_batches import empty_table
from flinkcore._internal.arrow.milliseconds import to_milliseconds
from flinkcore._internal.show.html import html_lines
from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.analysis.key_replay import run_key, runs_alone
from flinkcore.analysis.key_rows import (
    ARRIVAL,
    PLACE_FIELDS,
    POSITION,
    REASON,
    SPLIT,
    TIMESTAMP,
    Key,
    ReadKeyRows,
    ReadNearKeys,
    filter_reason,
    log_events,
    placed_rows,
    rows_of_key,
)
from flinkcore.analysis.key_run import Bounds, Firing, KeyRun, event_numbers, window_bounds, with_numbers
from flinkcore.analysis.key_story import are_dates, shown_time, told
from flinkcore.analysis.lateness_count import bound_of
from flinkcore.analysis.saving_bounds import SessionsByLateness, lateness_needed
from flinkcore.analysis.verb_replay import windows_of_verb
from flinkcore.columnar.operator_plans.operator_plan import OperatorWindows, bound_type
from flinkcore.columnar.operator_plans.relational import RelationalPlan
from flinkcore.columnar.planned_job import PlannedJob
from flinkcore.columnar.plans.connected_inputs import ConnectedInputs
from flinkcore.columnar.plans.log_plan import LogPlan
from flinkcore.columnar.plans.stage_plan import StagePlan
from flinkcore.datastream.graph.columnar_windows import ROW_KIND
from flinkcore.datastream.graph.pipeline_executor import load_analysis
from flinkcore.datastream.window import WindowStagger
from flinkcore.errors import ConfigurationError
from flinkcore.operators.windowing.merging_windows import SESSIONS
from flinkcore.sql.plan.column_names import plain_name
from flinkcore.time_plane.job_time import JobTime
from flinkcore.time_plane.total_order import LogEvents, concatenate

WindowKind: TypeAlias = Literal["windows", "sessions", "function", "rows"]

NO_WINDOWS: Final = (
    "the job has no windows: leave window= out, and take its results from `firings`, which has the event or the timer "
    "that each was emitted for"
)


@dataclass(frozen=True, eq=False)
class KeyHistory:
    """History of a key: its events, the fate of each, and the events of each result.

    Times are of the type of the log's event time: timestamps of ms, or int64. `print` shows it as a story.

    Attributes
    ----------
    key : dict of str to object
        The columns of the key, and its values.
    events : pyarrow.Table
        A row for each row of the log that has the key, in the order in which they were taken in:

        ====================================  ==========================================================================
        `event`                               its number, from 1 on
        `log`, `split`, `position`            where it lies; the position is that in the split, null where arrival
                                              orders the rows and not where they lie: of a DataFrame, or a table
        `timestamp`, `arrival`
        `watermark`                           int64, ms, in force when it arrived; null before the first
        `held_by`                             split of that watermark; null if unknown, or if all were idle
        `behind_watermark`                    whether it was late for the watermark, and maybe in time for a window
        `fate`                                "in window", "late", "in no window", "processed" (by a process function),
                                              "in result", "in no result" (of a verb without windows), "filtered" or
                                              "rejected"
        `reason`                              why it was filtered or rejected, or is in no result of a verb, or where a
                                              late one goes
        `windows`, `missed_windows`           start and end of those that took it in, and that it was late for
        `saving_out_of_orderness_ms`          of a late event: the least bound of the watermark strategy with which
                                              a window takes it in; null: the strategy has no bound, or
                                              the event lies between windows, or it is beyond 64 bits
        `saving_allowed_lateness_ms`          the same of the allowed lateness
        `call`                                number of the call of a process function that it was for
        `row`                                 the columns that the job reads; of joins those of both streams
        ====================================  ==========================================================================

    firings : pyarrow.Table
        A row for each firing of a window, or call of a process function, that gave results, in their order; of a verb
        such as a join, a row for each result:

        ====================================  ==========================================================================
        `firing`                              its number, from 1 on
        `window_start`, `window_end`          null: it has no bounds, or is a call of a process function
        `arrival`                             what the replay clock showed
        `watermark`                           int64, ms; null before the first
        `cause`                               "watermark", "event", "end of the log", "event-time timer" or
                                              "processing-time timer"
        `event`, `timer`                      number of the event, or time of the timer, that was the cause
        `late_firing`                         whether an event fired the window again, after its end
        `events`                              numbers of those that the results were made of; of a call of a process
                                              function, of the one that it was for; of frames without a bound, and of
                                              changes of an aggregate, of the last one: all before it belong to it, too
        `call`                                number of the call of a process function, from 0 on, in their order
        `results`                             their rows
        ====================================  ==========================================================================

    timers : pyarrow.Table
        Timer actions of a process function: `arrival` and `watermark` at the time; `action`: "registered",
        "deleted" or "fired"; `time_domain`: "event time" or "processing time"; `timestamp` of the timer; `event`:
        number of the one whose call did it, null for that of a timer; `call`: number of that call, or of the one
        for which the timer fired.
    notes : list of str
        Facts that are not known, with the reason.
    kind : {"windows", "sessions", "function", "rows"}
        Whether the windows are such as do not merge, or do, or results are those of a process function, or of a verb
        without windows.
    tables : list of str
        Names of the tables of lakes that are logs, with the versions or snapshots that were read.
    """

    key: dict[str, Any]
    events: pa.Table
    firings: pa.Table
    timers: pa.Table
    notes: list[str]
    kind: WindowKind
    tables: list[str]

    def __str__(self) -> str:
        return "\n".join(told(self))

    def __repr__(self) -> str:
        return (
            f"<KeyHistory of {self.key}: {self.events.num_rows:,} events, {self.firings.num_rows:,} results>"
        )

    def to_html(self, path: str | PathLike[str], title: str | None = None) -> None:
        """Write the history as a page with a picture and the story, which is one file and needs no network.

        Parameters
        ----------
        path
            A local file, which is replaced.
        title
            Title of the page; by default the key.

        Raises
        ------
        ConfigurationError
            If a library of ``flinkcore[report]`` is not installed.
        SourceError
            If the page cannot be written.
        """
        load_analysis("why_page")(self, path, title)

    def _repr_html_(self) -> str:
        return html_lines(str(self))

    def at(self, window: Any) -> KeyHistory:
        """Return the part of the history that is about some windows.

        Parameters
        ----------
        window : int, datetime, str or pair of these
            A time, in ms since the epoch, or as text in ISO 8601: the windows that it falls into. Two: the start and
            the end of one window; of sessions, all that overlap it, so that what it has grown from, and events that
            were late for it, are shown as well. Rows that are not events have no windows, and are kept as far as
            their time is not known, or lies within one.

        Raises
        ------
        ConfigurationError
            If it is not a time, or pair of times, or the history is that of a process function.
        """
        if self.kind in ("function", "rows"):
            raise ConfigurationError(NO_WINDOWS)
        wanted = asked_window(window)
        numbers = pa.list_(pa.struct([("start", pa.int64()), ("end", pa.int64())]))
        taken, missed = (
            [[(each["start"], each["end"]) for each in row] for row in column.cast(numbers).to_pylist()]
            for column in (self.events.column("windows"), self.events.column("missed_windows"))
        )
        of_events = [[*some, *others] for some, others in zip(taken, missed, strict=True)]
        fired: list[Bounds] = list(
            zip(
                *(
                    self.firings.column(name).cast(pa.int64()).to_pylist()
                    for name in ("window_start", "window_end")
                ),
                strict=True,
            )
        )
        fitting = {bounds for bounds in (*fired, *chain(*of_events)) if wanted.fits(bounds)}
        if wanted.end_ms is not None:
            fitting.add((wanted.start_ms, wanted.end_ms))

        def fits(bounds: Bounds) -> bool:
            return bounds in fitting or (
                self.kind == "sessions" and any(_overlap(bounds, each) for each in fitting)
            )

        def is_within(time_ms: int | None) -> bool:
            return (
                time_ms is None
                or not fitting
                or any(_overlap((time_ms, time_ms + 1), each) for each in fitting)
            )

        times = self.events.column("timestamp").cast(pa.int64()).to_pylist()
        is_lost = [fate in ("filtered", "rejected") for fate in self.events.column("fate").to_pylist()]
        is_in = [
            is_within(time_ms) if lost else any(map(fits, windows))
            for time_ms, lost, windows in zip(times, is_lost, of_events, strict=True)
        ]
        events = self.events.filter(pa.array(is_in, pa.bool_()))
        firings = self.firings.filter(pa.array(map(fits, fired), pa.bool_()))
        is_empty = not events.num_rows and not firings.num_rows
        has_times = any(time_ms is not None for time_ms in times)
        notes = [*self.notes, *([self._other_times()] if is_empty and has_times else [])]
        return replace(self, events=events, firings=firings, notes=notes)

    def _other_times(self) -> str:
        """Return the note for a key without a row in the requested windows."""
        column = self.events.column("timestamp")
        first, last = pc.min_max(column.cast(pa.int64())).as_py().values()
        is_time = are_dates(column)
        return (
            f"no window that was asked for has a row of this key: it has {self.events.num_rows:,}, "
            f"of event times from {shown_time(first, is_time)} to {shown_time(last, is_time)}"
        )


def _overlap(one: Bounds, other: Bounds) -> bool:
    """Return whether windows overlap; one without bounds overlaps all."""
    (start, end), (other_start, other_end) = one, other
    if start is None or end is None or other_start is None or other_end is None:
        return True
    return start < other_end and other_start < end


class AskedWindow(NamedTuple):
    """The windows that are asked for: one by its bounds, or all that a time falls into, in ms since the epoch."""

    start_ms: int
    end_ms: int | None

    def fits(self, bounds: Bounds) -> bool:
        """Return whether a window is one of them; a window without bounds always is."""
        start_ms, end_ms = bounds
        if start_ms is None or end_ms is None:
            return True
        if self.end_ms is None:
            return start_ms <= self.start_ms < end_ms
        return (start_ms, end_ms) == (self.start_ms, self.end_ms)


def asked_window(window: Any) -> AskedWindow:
    """Return the windows that a user asks for; parameters as of `KeyHistory.at`.

    Raises
    ------
    ConfigurationError
        If that is not a time, or pair of times.
    """
    if isinstance(window, tuple | list):
        if len(window) != 2:
            raise ConfigurationError(f"window= is a time within it, or its start and its end, not {window!r}")
        start_ms, end_ms = map(_time_ms, window)
        return AskedWindow(start_ms, end_ms)
    return AskedWindow(_time_ms(window), None)


def _time_ms(time: Any) -> int:
    refused = ConfigurationError(
        f"window= is a time within it, such as '2001-01-01T07:00', or ms since the epoch, or its start and its end, "
        f"not {time!r}"
    )
    if isinstance(time, bool | float | np.bool_ | np.floating):
        raise refused
    try:
        column = (
            pa.array([time])
            if isinstance(time, int | str | np.integer)
            else pa.array([time], pa.timestamp("ms"))
        )
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise refused from error
    times, unreadable = to_milliseconds(column)
    if column.null_count or (unreadable is not None and unreadable.any()):
        raise refused
    return int(times[0])


def key_history(planned: PlannedJob, key: Any, window: Any = None) -> KeyHistory:
    """Return the history of one key of a job: its events, the fate of each, and the events of each result.

    The times of the whole log are read, for the watermarks; of the rest only what can have the key.

    Parameters
    ----------
    planned
        A job with one keyed operator over one stream, or one join.
    key
        Its value; of a key of several columns a tuple in their order, or a mapping by name. Text stands for a value of
        any type.
    window
        Time or pair of times as for `KeyHistory.at`, or None for all windows.

    Raises
    ------
    ConfigurationError
        If the job is of another kind, or the key or the window is none of it; before anything is read.
    """
    stage = _only_operator(planned)
    asked = Key.of(key, stage.key_fields, stage.key.nulls)
    if window is not None:
        asked_window(window)
        if _windows_of(stage) is None:
            raise ConfigurationError(NO_WINDOWS)
    history = _KeyAnalysis(planned, stage, asked).history()
    return history if window is None else history.at(window)


def _only_operator(planned: PlannedJob) -> StagePlan:
    plan = planned.plan
    if len(plan.stages) > 1:
        raise ConfigurationError(
            f"the job has {len(plan.stages)} operators, each with keys of its own: call why() on the stream after the "
            "first one, whose events are those of the log"
        )
    (stage,) = plan.stages
    if stage.takes_rows_anywhere:
        raise ConfigurationError(
            "the job passes rows on unchanged, but why() explains results of operators. Call it on the stream of "
            "a window or a process function"
        )
    if len(stage.inputs) > 1 and not runs_alone(stage.operator):
        raise ConfigurationError(
            f"{stage.operator.function_name} takes two streams, but why() explains operators of one, and joins such "
            "as join_interval without a rank after them. Call it on each of the streams before they are connected, "
            "with a window or a process function of its own"
        )
    if stage.clock is not None:
        raise ConfigurationError(
            f"the windows are cut by the {stage.clock}, which why() does not know. Set 'table.local-time-zone' to 'UTC'"
        )
    if not runs_alone(stage.operator):
        raise ConfigurationError(
            f"{stage.operator.function_name} takes the rows of many keys at once: why() explains windows, joins, "
            "deduplicate, top, over, aggregate and a KeyedProcessFunction"
        )
    if isinstance(stage.operator, RelationalPlan) and any(
        ROW_KIND in each.schema.names for each in stage.inputs
    ):
        raise ConfigurationError(
            f"{stage.operator.function_name} takes changes, with a column {ROW_KIND!r}, and why() does not know which "
            "row each of them withdraws. Call it on the stream whose changes these are, or select the column out"
        )
    windows = stage.operator.windows
    if windows is not None:
        _refuse_unknown_windows(windows)
    return stage


def _refuse_unknown_windows(windows: OperatorWindows) -> None:
    assigner = windows.assigner
    if windows.merge and assigner.is_event_time() and type(assigner) not in SESSIONS:
        raise ConfigurationError(
            f"{type(assigner).__name__} merges windows in its own way, and why() does not know which of them take "
            "an event in. It explains sessions, and windows that do not merge"
        )
    if getattr(assigner, "window_stagger", None) is WindowStagger.NATURAL:
        raise ConfigurationError(
            "by WindowStagger.NATURAL the first event of a key group staggers the windows of all its keys, and why() "
            "reads the events of one: take ALIGNED or RANDOM"
        )


def _windows_of(stage: StagePlan) -> OperatorWindows | None:
    return stage.operator.windows or windows_of_verb(stage.operator)


class _KeyAnalysis:
    """The history of a key, as it is put together.

    Parameters
    ----------
    planned
        The job.
    stage
        Its operator.
    key
        The key.
    """

    def __init__(self, planned: PlannedJob, stage: StagePlan, key: Key) -> None:
        self._planned = planned
        self._logs = planned.plan.logs
        self._stage = stage
        self._key = key
        self._job_time = JobTime(planned.plan.streams, planned.time_planes)
        (self._time,) = self._job_time.replay_times()
        self._windows = _windows_of(stage)
        self._shown = _shown_names(stage.input_schemas)
        self._notes: list[str] = []

    def history(self) -> KeyHistory:
        """Read the rows of the key, run the operator over them, and return the history of both."""
        rows = self._rows()
        if not rows.num_rows:
            self._notes.append(self._unknown_key())
        is_event = rows.column(REASON).is_null().to_numpy()
        numbers = np.arange(1, rows.num_rows + 1)
        events = self._events_of_operator(rows, numbers, is_event)
        run = run_key(self._stage, self._time, events)
        (key,) = self._key.values.to_pylist()
        told_events = self._events(rows, numbers, self._fates(run, events), run.calls)
        kind: WindowKind = "rows" if isinstance(self._stage.operator, RelationalPlan) else "function"
        if self._windows is not None:
            kind = "sessions" if self._windows.merge else "windows"
        firings, timers = self._firings(run), self._timers(run)
        return KeyHistory(key, told_events, firings, timers, self._notes, kind, self._planned.plan.tables)

    # ---- rows ----

    def _rows(self) -> pa.Table:
        """Return all rows of the key, in the order of their numbers: events, and those that did not become events."""
        of_rows = {
            names[field.name]: field.with_name(names[field.name])
            for names, schema in zip(self._shown, self._stage.input_schemas, strict=True)
            for field in schema
        }
        fields = [*of_rows.values(), *PLACE_FIELDS]
        tables = [empty_table(pa.schema(fields))]
        for number, log in enumerate(self._logs):
            first_split = self._job_time.first_splits[number]
            names = self._shown[self._stage.input_of_log(number)]
            for table in self._rows_of_log(number, log):
                table = table.rename_columns([names.get(name, name) for name in table.column_names])
                at = table.schema.get_field_index(SPLIT)
                splits = pc.add(table.column(at), pa.scalar(first_split, pa.int32()))
                table = table.set_column(at, table.schema.field(at), splits)
                tables.append(pa.table([_column(table, field) for field in fields], schema=pa.schema(fields)))
        order = [(name, "ascending") for name in (ARRIVAL, SPLIT, POSITION)]
        return pa.concat_tables(tables).sort_by(order).combine_chunks()

    def _events_of_operator(
        self, rows: pa.Table, numbers: Int64s, is_event: npt.NDArray[np.bool_]
    ) -> LogEvents:
        """Return the events with their numbers, in total order; those of two streams side by side."""
        is_second = rows.column(SPLIT).fill_null(0).to_numpy() >= self._time.second_from
        places = [field.name for field in PLACE_FIELDS]
        parts: list[LogEvents] = []
        for side, names in enumerate(self._shown):
            chosen = is_event if len(self._shown) == 1 else is_event & (is_second == bool(side))
            own = rows.filter(pa.array(chosen)).select([*names.values(), *places])
            events = log_events(own.rename_columns([*names, *places]))
            parts.append(with_numbers(events, numbers[chosen]))
        if len(parts) == 1:
            return parts[0]
        inputs = ConnectedInputs(parts[0].batch.schema, parts[1].batch.schema)
        both = concatenate([inputs.widened(side, part) for side, part in enumerate(parts)])
        return both.take(np.argsort(event_numbers(both)).astype(np.uint32))

    def _unknown_key(self) -> str:
        """Return the note for a key that no row has, with similar keys."""
        near = [
            key
            for number, log in enumerate(self._logs)
            if self._reading(number, log).finds_lost_rows
            for key in rows_of_key(
                self._planned.on_chunks(number, ReadNearKeys(self._key_of(number))),
                self._key_of(number).values.schema,
            ).to_pylist()
        ]
        known = sorted({", ".join(map(repr, key.values())) for key in near})
        if not known:
            return "no row has this key"
        return f"no row has this key, but there are rows with {' and with '.join(known[:3])}"

    def _reading(self, number: int, log: LogPlan) -> ReadKeyRows:
        return ReadKeyRows(log, self._planned.time_planes[number].for_reading(), self._key_of(number))

    def _key_of(self, number: int) -> Key:
        """Return the key by the names that its columns have in a log."""
        names = self._stage.inputs[self._stage.input_of_log(number)].key.names
        return Key(self._key.values.rename_columns(list(names)))

    def _rows_of_log(self, number: int, log: LogPlan) -> Iterator[pa.Table]:
        reading = self._reading(number, log)
        rows = rows_of_key(self._planned.on_chunks(number, reading), reading.schema())
        if not reading.finds_lost_rows:
            shown = ", ".join(plain_name(name) for name in reading.key.columns)
            self._notes.append(
                f"the job computes the key ({shown}), so rows that it filters or rejects before "
                "have none, and do not appear"
            )
        is_event = rows.column(REASON).is_null()
        yield rows.filter(pc.invert(is_event))
        events = log_events(rows.filter(is_event))
        for op in log.after if reading.comes_before_steps else ():
            batch, kept = op.apply(events.batch)
            if kept is None:
                events = events.with_batch(batch)
                continue
            dropped = np.setdiff1d(np.arange(len(events.arrivals), dtype=np.uint32), kept)
            yield placed_rows(events.take(dropped), filter_reason(op))
            events = events.take(kept).with_batch(batch)
        yield placed_rows(events)

    # ---- what the operator made of them ----

    def _firings(self, run: KeyRun) -> pa.Table:
        time_type, results = bound_type(self._stage.event_time), run.results.combine_chunks()
        rows = pa.StructArray.from_arrays(
            [_whole(column) for column in results.columns], fields=list(results.schema)
        )
        firings = run.firings
        times = {
            "window_start": [firing.bounds[0] for firing in firings],
            "window_end": [firing.bounds[1] for firing in firings],
            "arrival": [firing.arrival_ms for firing in firings],
            "timer": [None if firing.timer is None else firing.timer.timestamp for firing in firings],
        }
        columns = {name: pa.array(values, pa.int64()).cast(time_type) for name, values in times.items()}
        taken = [index for firing in firings for index in firing.results]
        lengths = np.cumsum([0, *(len(firing.results) for firing in firings)], dtype=np.int32)
        return pa.table(
            {
                "firing": pa.array(range(1, len(firings) + 1), pa.int64()),
                "window_start": columns["window_start"],
                "window_end": columns["window_end"],
                "arrival": columns["arrival"],
                "watermark": pa.array([_known(firing.watermark) for firing in firings], pa.int64()),
                "cause": pa.array([_cause(firing) for firing in firings], pa.string()),
                "event": pa.array([firing.event for firing in firings], pa.int64()),
                "timer": columns["timer"],
                "late_firing": pa.array([firing.is_late for firing in firings], pa.bool_()),
                "events": pa.array([firing.events for firing in firings], pa.list_(pa.int64())),
                "call": pa.array([firing.call for firing in firings], pa.int64()),
                "results": pa.ListArray.from_arrays(
                    pa.array(lengths), rows.take(pa.array(taken, pa.int64()))
                ),
            }
        )

    def _timers(self, run: KeyRun) -> pa.Table:
        time_type, timers = bound_type(self._stage.event_time), run.timers
        times = {
            "arrival": [act.arrival_ms for act in timers],
            "timestamp": [act.timestamp for act in timers],
        }
        columns = {name: pa.array(values, pa.int64()).cast(time_type) for name, values in times.items()}
        domains = ["event time" if act.is_event_time else "processing time" for act in timers]
        return pa.table(
            {
                "arrival": columns["arrival"],
                "watermark": pa.array([_known(act.watermark) for act in timers], pa.int64()),
                "action": pa.array([act.action for act in timers], pa.string()),
                "time_domain": pa.array(domains, pa.string()),
                "timestamp": columns["timestamp"],
                "event": pa.array([act.event for act in timers], pa.int64()),
                "call": pa.array([act.call for act in timers], pa.int64()),
            }
        )

    def _fates(self, run: KeyRun, events: LogEvents) -> dict[int, _Fate]:
        """Return the fate of each event, by its number."""
        windows, numbers = self._windows, event_numbers(events)
        if windows is None and not isinstance(self._stage.operator, RelationalPlan):
            return dict.fromkeys(numbers, _Fate("processed"))
        timeline = self._time.timeline
        steps = timeline.steps_before(events.arrivals, events.splits, events.positions)
        watermarks = timeline.watermark_after(steps).tolist()
        met = [
            _Met(number, watermark, sorted(run.assigned.get(number, ()), key=methodcaller("max_timestamp")))
            for number, watermark in zip(numbers, watermarks, strict=True)
        ]
        saved = self._savings(windows, met, run)
        told_windows = {} if windows is None else _windows_told(run.firings, windows.merge)
        tags = self._stage.operator.late_tags
        sides = (events.splits >= self._time.second_from) & (len(tags) > 1)
        fates: dict[int, _Fate] = {}
        for (number, watermark, assigned), side in zip(met, sides.tolist(), strict=True):
            if number in run.late:
                missed, late_tag = list(map(window_bounds, assigned)), tags[side] if tags else None
                goes_to = "dropped" if late_tag is None else f"to the side output {late_tag.tag_id!r}"
                fates[number] = _Fate("late", (), missed, *saved[number], goes_to)
            elif windows is None:
                unused = run.unused.get(number)
                fates[number] = _Fate("in result" if unused is None else "in no result", reason=unused)
            elif number in run.assigned and not windows.merge:
                is_open = [
                    not windows.assigner.is_event_time()
                    or lateness_needed(window.max_timestamp(), watermark) <= windows.allowed_lateness_ms
                    for window in assigned
                ]
                taken = [
                    window_bounds(window) for window, kept in zip(assigned, is_open, strict=True) if kept
                ]
                missed = [
                    window_bounds(window) for window, kept in zip(assigned, is_open, strict=True) if not kept
                ]
                name = "in window" if taken else "in no window"
                fates[number] = _Fate(name, taken, missed, reason=run.unused.get(number))
            else:
                # Windows that merge take in each event that is not late, and those of counts each.
                fates[number] = _Fate("in window", told_windows.get(number, ()))
        return fates

    # ---- what would have saved late events ----

    def _savings(
        self, windows: OperatorWindows | None, met: Sequence[_Met], run: KeyRun
    ) -> dict[int, tuple[int | None, int | None]]:
        """Return the least bound and lateness in ms, each or None, that would save a late event, by its number."""
        late = run.late
        bounds = {bound_of(log.strategy) for log in self._logs}
        (bound_ms,) = bounds if len(bounds) == 1 else (None,)
        if late and bound_ms is None:
            self._notes.append(
                "there is no least bound of out-of-orderness: the watermark strategy has none, or logs have several"
            )
        lateness_ms = 0 if windows is None else windows.allowed_lateness_ms
        needed: dict[int, int] = {}
        if windows is None:
            needed = {
                number: lateness_needed(run.late_from[number], watermark)
                for number, watermark, _ in met
                if number in late and number in run.late_from
            }
        elif late and windows.merge:
            sessions = SessionsByLateness(lateness_ms)
            for number, watermark, (window,) in met:
                needed[number] = sessions.take(window.start, window.end, watermark)
        else:
            # A late event between windows is in no window at any time.
            needed = {
                number: lateness_needed(assigned[-1].max_timestamp(), watermark)
                for number, watermark, assigned in met
                if number in late and assigned
            }
        has_lateness = None if self._stage.operator.windows is None else lateness_ms  # verbs allow for none
        return {
            number: (
                _saving(bound_ms, needed.get(number), lateness_ms),
                _saving(has_lateness, needed.get(number), lateness_ms),
            )
            for number in late
        }

    # ---- tables ----

    def _events(
        self, rows: pa.Table, numbers: Int64s, fates: Mapping[int, _Fate], calls: Mapping[int, int]
    ) -> pa.Table:
        time_type = bound_type(self._stage.event_time)
        window = pa.list_(pa.struct([("start", time_type), ("end", time_type)]))
        arrivals, splits = rows.column(ARRIVAL), rows.column(SPLIT)
        has_place = pc.and_(arrivals.is_valid(), splits.is_valid()).to_numpy()
        places = [column.fill_null(0).to_numpy() for column in (arrivals, splits, rows.column(POSITION))]
        timeline = self._time.timeline
        watermarks = timeline.watermark_after(timeline.steps_before(*places))
        known = has_place & (watermarks > MIN_TIMESTAMP)
        timestamps = rows.column(TIMESTAMP)
        reasons = rows.column(REASON).to_pylist()
        told_fates = [
            fates[number] if reason is None else _lost(reason)
            for number, reason in zip(numbers.tolist(), reasons, strict=True)
        ]
        behind = (timestamps.fill_null(MAX_TIMESTAMP).to_numpy() <= watermarks) & known
        logs = np.searchsorted(self._job_time.first_splits[1:-1], places[1], side="right")
        has_positions = np.array([not log.log.by_arrival for log in self._logs])[logs]
        values = [value for plane in self._planned.time_planes for value in plane.split_values]
        names = [name for name in rows.column_names if name not in {field.name for field in PLACE_FIELDS}]
        return pa.table(
            {
                "event": pa.array(numbers, pa.int64()),
                "log": pa.array(logs, pa.int32()),
                "split": _split_values(values, splits.to_pylist()),
                "position": pc.if_else(pa.array(has_positions), rows.column(POSITION), None),
                "timestamp": timestamps.cast(time_type),
                "arrival": arrivals.cast(time_type),
                "watermark": pa.array(watermarks, pa.int64(), mask=~known),
                "held_by": _split_values(values, self._holders(places[0], watermarks, has_place)),
                "behind_watermark": pa.array(behind),
                "fate": pa.array([fate.name for fate in told_fates], pa.string()),
                "reason": pa.array([fate.reason for fate in told_fates], pa.string()),
                "windows": pa.array([_window_dicts(fate.windows) for fate in told_fates], window),
                "missed_windows": pa.array([_window_dicts(fate.missed) for fate in told_fates], window),
                "saving_out_of_orderness_ms": pa.array([fate.bound_ms for fate in told_fates], pa.int64()),
                "saving_allowed_lateness_ms": pa.array([fate.lateness_ms for fate in told_fates], pa.int64()),
                "call": pa.array([calls.get(number) for number in numbers.tolist()], pa.int64()),
                "row": pa.StructArray.from_arrays(
                    [_whole(rows.column(name)) for name in names],
                    fields=[rows.schema.field(name) for name in names],
                ),
            }
        )

    def _holders(
        self, arrivals: Int64s, watermarks: Int64s, has_place: npt.NDArray[np.bool_]
    ) -> list[int | None]:
        """Return the split, counted over all logs, whose watermark was in force at each arrival, or None if unknown."""
        held = np.full(len(arrivals), -1)
        planes = self._planned.time_planes
        for number, plane in reversed(list(enumerate(planes))):
            holders = plane.holders.at(arrivals)
            steps = plane.timeline.steps_before_arrivals(arrivals)
            is_held = (holders >= 0) & (plane.timeline.watermark_after(steps) == watermarks) & has_place
            held = np.where(is_held, holders + self._job_time.first_splits[number], held)
        return [None if split < 0 else split for split in held.tolist()]


def _shown_names(inputs: Sequence[pa.Schema]) -> list[dict[str, str]]:
    """Return the names of the columns of each input among those of all: with a suffix where types differ."""
    known: dict[str, pa.DataType] = {}
    shown: list[dict[str, str]] = []
    for schema in inputs:
        names: dict[str, str] = {}
        for field in schema:
            name = field.name
            while known.get(name, field.type) != field.type or name in names.values():
                name += "_right"
            names[field.name] = name
        known |= {names[field.name]: field.type for field in schema}
        shown.append(names)
    return shown


class _Fate(NamedTuple):
    """Fate of an event: windows that took it in, windows that it was late for, and bounds that would have saved it."""

    name: str
    windows: Sequence[Bounds] = ()
    missed: Sequence[Bounds] = ()
    bound_ms: int | None = None
    lateness_ms: int | None = None
    reason: str | None = None


def _lost(reason: str) -> _Fate:
    """Return the fate of a row that was removed before the operator."""
    name, _, why = reason.partition(": ")
    return _Fate(name, reason=why)


class _Met(NamedTuple):
    """An event, the watermark that it met, and the windows that it was assigned to, the last one to end last."""

    number: int
    watermark: int
    assigned: Sequence[Any]


def _saving(present_ms: int | None, needed_ms: int | None, lateness_ms: int) -> int | None:
    """Return a bound or lateness extended by what is needed beyond the present lateness, or None if none is enough."""
    if present_ms is None or needed_ms is None:
        return None
    saving_ms = present_ms + needed_ms - lateness_ms
    return saving_ms if saving_ms <= MAX_TIMESTAMP else None


def _windows_told(firings: Sequence[Firing], merge: bool) -> dict[int, list[Bounds]]:
    """By number of event, the windows whose results it is in; of one that has grown, as it was in the end."""
    told: dict[int, list[Bounds]] = {}
    for firing in firings:
        for number in firing.events:
            before = told.setdefault(number, [])
            if merge:
                before[:] = [bounds for bounds in before if not _is_within(bounds, firing.bounds)]
            if firing.bounds not in before:
                before.append(firing.bounds)
    return told


def _is_within(inner: Bounds, outer: Bounds) -> bool:
    if None in (*inner, *outer):
        return inner == outer
    return cast(int, outer[0]) <= cast(int, inner[0]) and cast(int, inner[1]) <= cast(int, outer[1])


def _cause(firing: Firing) -> str:
    if firing.event is not None:
        return "event"
    if firing.timer is not None:
        return f"{'event' if firing.timer.is_event_time else 'processing'}-time timer"
    return "end of the log" if firing.watermark == MAX_TIMESTAMP else "watermark"


def _known(watermark: int) -> int | None:
    return None if watermark == MIN_TIMESTAMP else watermark


def _window_dicts(windows: Sequence[Bounds]) -> list[dict[str, int | None]]:
    return [{"start": start, "end": end} for start, end in windows]


def _whole(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


def _column(table: pa.Table, field: pa.Field) -> pa.ChunkedArray:
    if field.name in table.column_names and table.schema.field(field.name).type == field.type:
        return table.column(field.name)
    return pa.chunked_array([pa.nulls(table.num_rows, field.type)])


def _split_values(values: Sequence[Any], splits: Sequence[int | None]) -> pa.Array:
    """Return the values of splits, by their numbers over all logs; as text where logs have them of several types."""
    named = [None if split is None or split < 0 else values[split] for split in splits]
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) > 1:
        return pa.array([None if value is None else str(value) for value in named], pa.string())
    return pa.array(named) if kinds else pa.array(named, pa.string())
