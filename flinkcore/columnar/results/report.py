"""Reports of replays, which account for every event of the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import pyarrow as pa

from flinkcore._internal.python.user_warnings import warn_user
from flinkcore._internal.show.durations import shown_share
from flinkcore._internal.show.html import html_lines, html_table
from flinkcore._internal.show.times import format_timestamp
from flinkcore._internal.values.timestamps import MAX_TIMESTAMP
from flinkcore.columnar.plans.job_plan import JobPlan
from flinkcore.columnar.results.late_events import OnChunks, late_warnings
from flinkcore.columnar.results.rejected_rows import rejection_warning
from flinkcore.columnar.stages.read_counts import ReadCounts
from flinkcore.common import MIN_TIMESTAMP
from flinkcore.datastream.graph.pipeline_executor import load_analysis
from flinkcore.errors import ConfigurationError, InternalError, LateEventsWarning, RejectedRowsWarning
from flinkcore.log.arrival_cut import ArrivalCut
from flinkcore.time_plane.paused_spans import PausedSpans
from flinkcore.time_plane.time_warnings import time_warnings
from flinkcore.time_plane.timed_log import TimedLog
from flinkcore.time_plane.timeline import SplitTimes, Timeline, TimePlane


@dataclass(frozen=True)
class ReportSource:
    """Source of a report's pictures, made again when they are drawn.

    Attributes
    ----------
    planned
        Gives the `PlannedJob`.
    results
        Function that returns batches with these columns of the result rows, or None if they are not available.
    """

    planned: Callable[[], Any]
    results: Callable[[Sequence[str]], Iterator[pa.RecordBatch] | None]


@dataclass
class ReplayReport:
    """Counts of one replay; `check` asserts that no event was lost.

    Attributes
    ----------
    events_read
        Rows of the log.
    filtered
        Rows that filters took out.
    rejected
        Rows refused because of a fault (a null timestamp, say), by reason.
    windowed
        Events that went into at least one window.
    late
        Events too late for all their windows, or for an interval join: in the late side output where there is one,
        else dropped.
    late_pairs
        Pairs of a join that are ranked by windows and come too late for theirs; dropped.
    in_no_window
        Events in no window, where the slide is longer than the size.
    processed
        Events that a process function was called for.
    waiting
        Events of splits that alignment has paused where the job stops: they are in the checkpoint, and the next run
        reads them again.
    before_cut, after_cut
        Rows that were not taken, and are in no other count, because the log is cut at a time of arrival (`until=`):
        those that the run before took, and those that wait for the next.
    passed_on
        Events that went straight to a later operator, in a job in which not only the first one takes logs.
    repeated
        Calls for rows of a broadcast stream besides the first for each, of which there is one per partition.
    on_time_firings, late_firings
        Result rows of windows that fired in time, and after their end by a late event.
    retractions
        Result rows that withdraw an earlier one.
    event_time_timers, processing_time_timers
        Timers that fired.
    pending_processing_time_timers
        Timers that the end of the log left: they were due after its last arrival.
    results, side_results
        Result rows of the operator, before later steps remove any, and rows that functions emitted to the side
        outputs that were requested. In a job with several operators, `by_operator` ends with the one that gives the
        job's rows.
    dropped_side_results
        Rows that it emitted to other side outputs.
    splits
        Splits of the log.
    arrival_regressions
        Number of times that the recorded arrival went back from one event of a split to the next. The running maximum
        was taken for it, and for all events after it up to that: they may be more. `warnings` has it if they are many.
    min_timestamp_ms, max_timestamp_ms
        Range of event time, None where there was no event.
    timeline_steps
        Steps of the merged watermark.
    watermark_ms
        The merged watermark before the last, 2**63 - 1, with which the log ends; -2**63 before the first. If the
        job stops with a checkpoint, the last.
    split_watermarks
        The last watermark of each split before the end of the log, by the split's value in split order; -2**63 if
        it had none. In a job of several logs or operators they go by number of the log, from
        0 on in the order of the job, and value.
    paused_ms
        Time for which each split was paused by watermark alignment, if it ever was, by its value in split order.
    warnings
        Warnings for people about what looks wrong but was left unchanged.
    orders
        Order of the events of a split, in words, for each log without an arrival or without positions.
    log_facts
        Facts from the files of a log, a line for each: how their paths split it, and how their columns differ.
    tables
        Names of the tables of lakes that are logs, with the versions or snapshots that were read.
    later_operators
        Reports of the operators after the first, in a job with several: their `events_read` are the results of those
        before that come to it, and events that the first has passed on; what became of them is counted likewise.
    """

    events_read: int = 0
    filtered: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    windowed: int = 0
    late: int = 0
    late_pairs: int = 0
    in_no_window: int = 0
    processed: int = 0
    waiting: int = 0
    before_cut: int = 0
    after_cut: int = 0
    passed_on: int = 0
    repeated: int = 0
    on_time_firings: int = 0
    late_firings: int = 0
    retractions: int = 0
    event_time_timers: int = 0
    processing_time_timers: int = 0
    pending_processing_time_timers: int = 0
    results: int = 0
    side_results: int = 0
    dropped_side_results: int = 0
    splits: int = 0
    arrival_regressions: int = 0
    min_timestamp_ms: int | None = None
    max_timestamp_ms: int | None = None
    timeline_steps: int = 0
    watermark_ms: int = MIN_TIMESTAMP
    split_watermarks: dict[Any, int] = field(default_factory=dict)
    paused_ms: dict[Any, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    orders: list[str] = field(default_factory=list, compare=False)
    log_facts: list[str] = field(default_factory=list, compare=False)
    tables: list[str] = field(default_factory=list, compare=False)
    later_operators: list[ReplayReport] = field(default_factory=list)
    _has_windows: bool = field(default=True, repr=False, compare=False)
    _is_chain: bool = field(default=True, repr=False, compare=False)
    _is_single: bool = field(default=True, repr=False, compare=False)
    _gives_firings: bool = field(default=True, repr=False, compare=False)
    _logs: list[tuple[SplitTimes, PausedSpans]] = field(default_factory=list, repr=False, compare=False)
    _source: ReportSource | None = field(default=None, repr=False, compare=False)
    _cut: ArrivalCut | None = field(default=None, repr=False, compare=False)
    _waits_for_end: str = field(default="", repr=False, compare=False)
    _of_run: list[tuple[str, type[Warning]]] = field(default_factory=list, repr=False, compare=False)

    @classmethod
    def of(cls, plan: JobPlan, time_planes: Sequence[TimePlane], timeline: Timeline) -> ReplayReport:
        """A report with what the first pass found.

        Parameters
        ----------
        plan
            The job.
        time_planes
            Time plane of each log.
        timeline
            The watermarks of the last operator.
        """
        report, *later = (cls() for _ in plan.stages)
        for number, (log, time_plane) in enumerate(zip(plan.logs, time_planes, strict=True)):
            report._add_log(None if plan.is_single else number, log, time_plane)
        report.tables = plan.tables
        report.timeline_steps = len(timeline)
        report.watermark_ms = timeline.watermark_before_end
        report.later_operators = later
        report.log_facts = plan.log_facts
        report._is_chain, report._is_single = plan.is_chain, plan.is_single
        for number, (each, stage) in enumerate(zip(report.by_operator, plan.stages, strict=True)):
            each._has_windows = stage.operator.has_windows
            each._gives_firings = stage.operator.gives_firings
            if stage.operator.sets_timers:
                each._waits_for_end = _waits_for_end(plan, number, stage.operator.function_name)
        return report

    @property
    def taken(self) -> int:
        """Number of events that came to the operator and were not late."""
        return self.windowed + self.in_no_window + self.processed

    @property
    def by_operator(self) -> list[ReplayReport]:
        """Return one report per operator, in order; the first is this report."""
        return [self, *self.later_operators]

    def _add_log(self, number: int | None, log: TimedLog, time_plane: TimePlane) -> None:
        splits = time_plane.splits
        names = splits.values if number is None else [(number, value) for value in splits.values]
        self.splits += len(names)
        self.arrival_regressions += int(splits.regressions.sum())
        self.split_watermarks |= dict(zip(names, splits.final_watermark_ms.tolist(), strict=True))
        paused_ms = time_plane.paused.total_ms(len(names)).tolist()
        self.paused_ms |= {name: paused for name, paused in zip(names, paused_ms, strict=True) if paused}
        self._logs.append((splits, time_plane.paused))
        if log.log.arrival is None or log.log.by_arrival:
            self.orders.append(f"{'' if number is None else f' of log {number}'}: {log.log.order}")
        self.before_cut += time_plane.rows_before_cut
        self.after_cut += time_plane.rows_after_cut
        if log.log.cut is not None:
            self._cut = log.log.cut
        with_events = splits.events > 0
        if with_events.any():
            least, greatest = splits.min_timestamp_ms[with_events], splits.max_timestamp_ms[with_events]
            known = [ms for ms in (self.min_timestamp_ms, self.max_timestamp_ms) if ms is not None]
            self.min_timestamp_ms = min([int(least.min()), *known])
            self.max_timestamp_ms = max([int(greatest.max()), *known])
        self.warnings += [*time_plane.warnings, *time_warnings(log, splits)]

    def idle_spans(self, split: Any) -> list[tuple[int, int]]:
        """Return the spans for which a split was idle.

        Parameters
        ----------
        split
            Its value in the split column.

        Returns
        -------
        list of (int, int)
            (from, to) in ms of the replay clock, ascending; one that is idle at the end is so up to the last arrival.

        Raises
        ------
        ConfigurationError
            If the log has no such split.
        """
        split_times, _, number = self._split(split)
        return split_times.idle_spans(number)

    def paused_spans(self, split: Any) -> list[tuple[int, int]]:
        """Return the spans for which a split was paused by watermark alignment, because it was ahead of the others.

        Parameters
        ----------
        split
            Its value in the split column.

        Returns
        -------
        list of (int, int)
            (from, to) in ms of the replay clock, ascending; one that is paused at the end is so up to the last arrival.
            Events that arrive after `from` and up to `to` are read after `to`.

        Raises
        ------
        ConfigurationError
            If the log has no such split.
        """
        _, paused, number = self._split(split)
        return paused.of(number)

    def _split(self, split: Any) -> tuple[SplitTimes, PausedSpans, int]:
        if split not in self.split_watermarks:
            raise ConfigurationError(
                f"the log has no split {split!r}; split_watermarks has the {self.splits:,} that there are"
            )
        log, value = (0, split) if self._is_single else split
        split_times, paused = self._logs[log]
        return split_times, paused, split_times.values.index(value)

    def add_log(self, counts: ReadCounts, operator: int) -> None:
        """Add the counts of rows of a log, or a part of it, that come to an operator, counted from 0 on."""
        self._add_read(counts)
        if operator > 0:
            self.passed_on += counts.passed_on
            self.by_operator[operator].events_read += counts.passed_on

    def add_results(self, counts: ReadCounts, operator: int) -> None:
        """Add the counts of results of another operator that come to an operator, counted from 0 on."""
        self.by_operator[operator]._add_read(counts)

    def _add_read(self, counts: ReadCounts) -> None:
        self.events_read += counts.read
        self.filtered += counts.filtered
        self.rejected.update(counts.rejected)
        self.waiting += counts.waiting

    def add_counts(self, counts: Mapping[str, int]) -> None:
        """Add the counts of a keyed operator, by the names that they have here."""
        for name, count in counts.items():
            setattr(self, name, getattr(self, name) + count)

    def complete(self, plan: JobPlan, time_planes: Sequence[TimePlane], on_chunks: OnChunks) -> None:
        """Check the counts of each operator once all are there, and add warnings of lost rows and of timers at the end.

        Parameters
        ----------
        plan
            The job.
        time_planes
            Result of the first pass over each log.
        on_chunks
            Reads a log again, in search of what made its events late, or rejected.

        Raises
        ------
        InternalError
            As of `check`.
        """
        for each in self.by_operator:
            each.check()
        rejected = rejection_warning(plan, self.rejected, self.events_read, on_chunks)
        if rejected is not None:
            self._add_warning(rejected, RejectedRowsWarning)
        counts = [(each.late, each.late + each.taken) for each in self.by_operator]
        for warning in late_warnings(plan, time_planes, counts, on_chunks):
            self._add_warning(warning, LateEventsWarning)
        for each in self.by_operator:
            if each.event_time_timers and each._waits_for_end:
                self._add_warning(
                    f"{_counted(each.event_time_timers, 'event-time timer')} {each._waits_for_end}",
                    UserWarning,
                )

    def _add_warning(self, warning: str, category: type[Warning]) -> None:
        self.warnings.append(warning)
        self._of_run.append((warning, category))

    def warn_of_run(self, known: set[str]) -> None:
        """Warn the user of what the run has found.

        Parameters
        ----------
        known : set of str
            Warnings of earlier runs of the same job, which are not repeated; those of this run are added.
        """
        for warning, category in self._of_run:
            if warning not in known:
                known.add(warning)
                warn_user(warning, category)

    def check(self) -> None:
        """Assert that every event read is accounted for exactly once.

        Raises
        ------
        InternalError
            If events are missing or counted twice.
        """
        fates = self.late + self.taken + self.passed_on + self.waiting
        accounted = self.filtered + self.rejected.total() + fates
        if accounted != self.events_read:
            raise InternalError(
                f"{self.events_read:,} events were read, but {accounted:,} are accounted for: {self}"
            )

    def __str__(self) -> str:
        return "\n".join([*self._warning_lines(), self.without_warnings])

    @property
    def without_warnings(self) -> str:
        """Return the report as text for those who have had the warnings already."""
        lines = self._head_lines() + self._fate_lines()
        for number, later in enumerate(self.later_operators, start=2):
            origin = " from the one before" if self._is_chain else ""
            lines += [
                f"operator {number}: {_counted(later.events_read, 'row')}{origin}",
                *later._fate_lines(),
            ]
        return "\n".join(lines + self._time_lines())

    def _warning_lines(self) -> list[str]:
        return [f"warning: {warning}" for warning in self.warnings]

    def _head_lines(self) -> list[str]:
        head = f"{_counted(self.events_read, 'event')} from {_counted(self.splits, 'split')}"
        if self.min_timestamp_ms is not None and self.max_timestamp_ms is not None:
            first, last = map(format_timestamp, (self.min_timestamp_ms, self.max_timestamp_ms))
            head += f", event time {first} to {last}"
        tables = [f"read as {table}" for table in self.tables]
        orders = [f"order of the events{order}" for order in self.orders]
        return [head, *tables, *self.log_facts, *orders, *self._cut_lines()]

    def _cut_lines(self) -> list[str]:
        lines = []
        if self._cut is not None and self._cut.since_ms != MIN_TIMESTAMP:
            cut = format_timestamp(self._cut.since_ms)
            lines.append(
                f"resumed at the arrival {cut}: {_counted(self.before_cut, 'row')} before it not taken again"
            )
        if self._cut is not None and self._cut.until_ms != MAX_TIMESTAMP:
            cut = format_timestamp(self._cut.until_ms)
            lines.append(f"cut at the arrival {cut}: {_counted(self.after_cut, 'row')} left for the next run")
        return lines

    def _time_lines(self) -> list[str]:
        lines = []
        if self.watermark_ms != MIN_TIMESTAMP:
            lines.append(f"watermark before the end of the log: {format_timestamp(self.watermark_ms)}")
        if self.paused_ms:
            longest = max(self.paused_ms, key=lambda split: self.paused_ms[split])
            lines.append(
                f"{_counted(len(self.paused_ms), 'split')} paused by watermark alignment, "
                f"for {sum(self.paused_ms.values()):,} ms in all; longest {longest!r}, {self.paused_ms[longest]:,} ms"
            )
        if self.arrival_regressions:
            lines.append(
                f"arrivals went back {_counted(self.arrival_regressions, 'time')} from one "
                "event to the next of its split: running maximum taken"
            )
        return lines

    def __repr__(self) -> str:
        return str(self)

    def __getstate__(self) -> dict[str, Any]:
        # The source of pictures has the executor's session.
        return self.__dict__ | {"_source": None}

    def to_html(self, path: str | PathLike[str], title: str | None = None) -> None:
        """Write the report as a page with charts: one file that needs no network.

        Times and keys of the logs are read once more for it; results by time are taken from those that the result
        keeps (`to_arrow`) or has written (`write_parquet`).

        Parameters
        ----------
        path
            A local file, which is replaced.
        title
            Title of the page; by default the names of the logs.

        Raises
        ------
        ConfigurationError
            If a library of ``flinkcore[report]`` is not installed, or this is not a report of a result: one that was
            copied to another process has its counts alone.
        SourceError
            If a log cannot be read any more, or the page cannot be written.
        """
        load_analysis("page")(self, path, title)

    def _repr_html_(self) -> str:
        parts = [html_lines("\n".join([*self._warning_lines(), *self._head_lines()]))]
        for number, each in enumerate(self.by_operator, start=1):
            if self.later_operators:
                parts.append(html_lines(f"operator {number}: {_counted(each.events_read, 'row')}"))
            parts.append(
                html_table(
                    [],
                    [(f"{count:,}", fate, each._share(count)) for count, fate in each.fates()],
                    [True, False, True],
                )
            )
            parts.append(html_lines("\n".join(each._result_lines())))
        parts.append(html_lines("\n".join(self._time_lines())))
        return "".join(parts)

    def fates(self) -> list[tuple[int, str]]:
        """Return the fates of the rows that came to the operator: numbers, which add up to all, and words."""
        if self._has_windows:
            always = [(self.windowed, "in windows"), (self.late, "late for all their windows")]
        else:
            always = [(self.processed, "processed")]
        sometimes = [
            (0 if self._has_windows else self.late, "late: behind the watermark"),
            (self.in_no_window, "between windows (the slide is longer than the size)"),
            (self.filtered, "filtered"),
            (self.waiting, "waiting in the checkpoint for paused splits"),
            (self.passed_on, "straight to later operators"),
            *((count, f"rejected: {reason}") for reason, count in sorted(self.rejected.items())),
        ]
        return always + [(count, fate) for count, fate in sometimes if count]

    def _fate_lines(self) -> list[str]:
        lines = [f"  {count:>14,} {fate}{self._share(count, ' ({})')}" for count, fate in self.fates()]
        return lines + self._result_lines()

    def _share(self, count: int, shown: str = "{}") -> str:
        """Return the share of the operator's rows that a count is; an empty text for none and for all."""
        return shown.format(shown_share(count / self.events_read)) if 0 < count < self.events_read else ""

    def _result_lines(self) -> list[str]:
        return self._window_lines() if self._gives_firings else self._process_lines()

    def _window_lines(self) -> list[str]:
        withdrawn = f"; {self.retractions:,} withdrawn" if self.retractions else ""
        return [
            f"{_counted(self.on_time_firings + self.late_firings, 'result')}: {self.on_time_firings:,} on time, "
            f"{self.late_firings:,} fired by late events{withdrawn}"
        ]

    def _process_lines(self) -> list[str]:
        lines = [
            f"{self.event_time_timers:,} event-time and "
            f"{_counted(self.processing_time_timers, 'processing-time timer')} fired",
            f"{_counted(self.results, 'result')}, {_counted(self.side_results, 'row')} in side outputs",
        ]
        if self.pending_processing_time_timers:
            lines.append(
                f"{_counted(self.pending_processing_time_timers, 'processing-time timer')} due after the end of the log"
            )
        if self.late_pairs:
            lines.append(f"{_counted(self.late_pairs, 'pair')} of rows dropped: late for their window")
        if self.dropped_side_results:
            lines.append(
                f"{_counted(self.dropped_side_results, 'row')} for side outputs that nobody asked for, dropped"
            )
        return lines


def _waits_for_end(plan: JobPlan, number: int, function: str) -> str:
    """Return the note on an operator's timers, after their number; empty with a watermark strategy."""
    logs = plan.logs_without_strategy(number)
    if not logs:
        return ""
    which = "the log" if len(plan.logs) == 1 else f"log {' and '.join(map(str, logs))} of the job"
    return (
        f"of {function} ({plan.stages[number].uid}) fired at the end of the log only: {which} has no watermark "
        "strategy, so no watermark comes before. Call assign_timestamps_and_watermarks(WatermarkStrategy."
        "for_bounded_out_of_orderness(Duration.of_seconds(4))) before the step"
    )


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"
