"""The summaries of all chunks of a log, combined into its time plane."""

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from flinkcore._internal.arrow.arrays import Int32s, Int64s
from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore._native.packed_steps import BLOCK_STEPS, StepPacker
from flinkcore._native.timeline import SplitMerge, SplitRecords, restore_split_merge, split_merge_state
from flinkcore.common.watermark_strategy import WatermarkAlignmentParams
from flinkcore.errors import DataError, SchemaError
from flinkcore.log.arrival_cut import ArrivalCut
from flinkcore.time_plane.chunk_times import ArrivalRate, ChunkTimes
from flinkcore.time_plane.cut_counts import LogCutCounts
from flinkcore.time_plane.generator_spec import GeneratorSpec
from flinkcore.time_plane.paused_spans import NOT_READ, PausedSpans, summary_interval_ms
from flinkcore.time_plane.record_store import RecordStore
from flinkcore.time_plane.time_cut import TimeCut
from flinkcore.time_plane.timeline import (
    ArrivalFloors,
    ChunkStarts,
    Holders,
    SplitTimes,
    Statuses,
    Timeline,
    TimePlane,
)
from flinkcore.time_plane.unordered_times import Cells, cells_of, records_in_order


@dataclass(frozen=True)
class MergeLimits:
    """Limits of a merge's memory besides its results, which do not depend on them.

    Parameters
    ----------
    record_bytes : int
        Records of the chunks' summaries; more than that go to a temporary file.
    buffer_bytes : int
        Stretches of that file, one of each split.
    window_emissions : int
        Watermarks and statuses between the operators and the valve.
    block_steps : int
        Steps of the timeline that wait to be packed together.
    """

    record_bytes: int = 256 << 20
    buffer_bytes: int = 64 << 20
    window_emissions: int = 1 << 18
    block_steps: int = BLOCK_STEPS


DEFAULT_LIMITS = MergeLimits()
_MOST_WARNINGS = 20


def combine(
    chunks: Iterable[ChunkTimes],
    generator: GeneratorSpec,
    interval_ms: int,
    *,
    rate: ArrivalRate | None = None,
    by_arrival: bool = False,
    alignment: WatermarkAlignmentParams | None = None,
    replay_range: tuple[int, int] | None = None,
    limits: MergeLimits = DEFAULT_LIMITS,
    cut: TimeCut | None = None,
    taken: ArrivalCut | None = None,
    stops: bool = False,
) -> TimePlane:
    """Return the time plane of a log.

    Every split has a generator and an operator of its own, on its channel of one valve. All operators are
    opened one interval before the first tick that sees an event of the log, so that a split without events
    holds the watermark back from then on, unless it is idle. After the last arrival, each split emits what is
    pending, in split order, and then comes the end of time.

    Follows TimestampsAndWatermarksOperator and StatusWatermarkValve of Flink 2.3; ticks lie on the multiples
    of the interval, where Flink counts on from the opening.

    Parameters
    ----------
    chunks : iterable of ChunkTimes
        Times of all chunks of the log, in any order, built with the same generator and rate, and with the interval that
        `summary_interval_ms` gives; those with indices below 0 are of what waits in the checkpoint. Memory is bounded
        by the timeline, the idle and paused spans, and the splits of all chunks, if they are made one by one.
    generator : GeneratorSpec
    interval_ms : int
        The auto-watermark interval, from 0 to 2**60.
    rate : ArrivalRate or None
        Where the log records no arrivals.
    by_arrival : bool
        Whether the rows have no positions: see `EventLog`.
    alignment : WatermarkAlignmentParams or None
        Alignment of the splits with each other; see `flinkcore.time_plane.paused_spans`.
    replay_range : (int, int) or None
        First and last arrival of a replay with several logs, or None for those of this log.
    limits : MergeLimits
    cut : TimeCut or None
        Cut at which the log resumes from a checkpoint, whose splits are splits of this log, or None for its start.
    taken : ArrivalCut or None
        The arrivals that the chunks were read for, or None if all.
    stops : bool
        True: what the end of the log would emit is left to a log that is resumed from the time plane's own cut.

    Raises
    ------
    DataError
        If a chunk comes twice, or was not given the position bases that its arrivals by rate need, or an event lies
        before the cut.
    SchemaError
        If the values of the splits cannot be ordered, or are of another type than those of the cut.
    SourceError
        If the temporary file cannot be written.
    """
    before = TimeCut.before_all() if cut is None else cut
    with closing(RecordStore(limits.record_bytes)) as store:
        known = before.split_values if before.has_splits else []
        numbers: dict[Any, int] = {value: number for number, value in enumerate(known)}
        ordered = _in_log_order([_taken_in(chunk, numbers, store) for chunk in chunks])
        _refuse_other_type(known, (value for chunk in ordered for value in chunk.times.split_values))
        if not numbers and before.split_values:
            numbers[None] = 0
        values = _in_split_order(numbers)
        places = np.empty(len(values), np.int32)
        places[[numbers[value] for value in values]] = np.arange(len(values))
        log = _LogTimes(values, before, by_arrival, taken)
        starts = [
            log.add_waiting(chunk.times, places[chunk.splits])
            if chunk.times.index < 0
            else log.add(chunk.times, places[chunk.splits], check_bases=rate is not None)
            for chunk in ordered
        ]
        log.cut_counts.check_taken_before(before.column("rows", values), before.column("taken_ms", values))
        before.check_goes_on(values, log.least_arrival_ms, log.events)
        merge, packer = None, Timeline.packer(before.step, limits.block_steps)
        if replay_range is None and (log.events.any() or before.last_arrival_ms is not None):
            replay_range = log.ends()
        if replay_range is not None:
            numbered = [(chunk, splits) for chunk, (splits, _, _) in zip(ordered, starts, strict=True)]
            if by_arrival:
                summary_ms = summary_interval_ms(interval_ms, alignment)
                times = [_times_in_order(numbered, store, log, generator, summary_ms)]
            else:
                times = [_times_by_split(chunk, splits, store) for chunk, splits in numbered]
            merge = _merge(
                times,
                store,
                log,
                generator,
                interval_ms,
                alignment,
                replay_range,
                limits,
                packer,
            )
            if before.last_arrival_ms is not None:
                restore_split_merge(merge, before.operators(values), before.last_arrival_ms)
            merge.run(stops=stops)
    return TimePlane(
        timeline=Timeline.ended(packer, stops=stops),
        splits=_split_times(values, log, merge),
        starts=ChunkStarts(
            chunks=np.array([chunk.times.index for chunk in ordered], np.int64),
            rows_read=np.array([chunk.times.rows_read for chunk in ordered], np.int64),
            checksums=np.array([chunk.times.checksum for chunk in ordered], np.uint64).ravel(),
            offsets=np.cumsum([0, *(len(splits) for splits, _, _ in starts)], dtype=np.int64),
            split=np.concatenate([np.empty(0, np.int32), *(splits for splits, _, _ in starts)]),
            base=np.concatenate([np.empty(0, np.int64), *(bases for _, bases, _ in starts)]),
            arrival_ms=np.concatenate([np.empty(0, np.int64), *(arrivals for _, _, arrivals in starts)]),
            last_ms=np.array(
                [chunk.times.times["last_arrival_ms"].max(initial=MIN_TIMESTAMP) for chunk in ordered],
                np.int64,
            ),
        ),
        floors=_floors(ordered),
        paused=_paused_spans(replay_range, merge, stops),
        rate=rate,
        by_arrival=by_arrival,
        restored_arrival_ms=before.last_arrival_ms,
        cut=log.cut(merge, replay_range) if stops else None,
        statuses=Statuses.none() if merge is None else Statuses.at_ticks(*merge.statuses()),
        replay_range=replay_range,
        warnings=_first(text for chunk in ordered for text in chunk.times.warnings),
        holders=Holders.unknown() if merge is None else Holders(*merge.holders()),
        rows_before_cut=int(log.cut_counts.columns["before"].sum()),
        rows_after_cut=int(log.cut_counts.columns["after"].sum()),
    )


def _first(warnings: Iterable[str]) -> tuple[str, ...]:
    """As many warnings as a user reads, and how many more there are."""
    found = list(warnings)
    left = len(found) - _MOST_WARNINGS
    return (*found[:_MOST_WARNINGS], *([f"{left:,} more files are as suspicious"] if left > 0 else []))


# ---- taking chunks in --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Chunk:
    """A chunk whose records are elsewhere.

    Attributes
    ----------
    times : ChunkTimes
        Without records.
    splits : int32 array (n_splits,)
        Numbers of its splits.
    records : int
        By which the store gives the place of its records.
    """

    times: ChunkTimes
    splits: Int32s
    records: int


def _taken_in(times: ChunkTimes, numbers: dict[Any, int], store: RecordStore) -> _Chunk:
    splits = np.array([numbers.setdefault(value, len(numbers)) for value in times.split_values], np.int32)
    return _Chunk(times.without_records(), splits, store.add(times.records))


def _in_log_order(chunks: Iterable[_Chunk]) -> list[_Chunk]:
    ordered = sorted(chunks, key=lambda chunk: chunk.times.index)
    for before, chunk in pairwise(ordered):
        if before.times.index == chunk.times.index:
            raise DataError(f"chunk {chunk.times.index} comes twice; combine the times of each chunk once")
    return ordered


def _refuse_other_type(known: Iterable[Any], values: Iterable[Any]) -> None:
    """Refuse splits of another type than the known ones, of which some might be equal: True is 1."""
    of_cut = next((value for value in known if value is not None), None)
    if of_cut is None:
        return
    for value in values:
        if value is not None and type(value) is not type(of_cut):
            raise SchemaError(
                f"the splits of the log have values of type {type(value).__name__}, such as {value!r}, and those of "
                f"the checkpoint of type {type(of_cut).__name__}, such as {of_cut!r}: resume the job with a split= as "
                "it had"
            )


def _in_split_order(values: Iterable[Any]) -> list[Any]:
    # Python orders strings as their UTF-8 bytes.
    try:
        return sorted(values, key=lambda value: (value is not None, value))
    except TypeError as error:
        raise SchemaError(f"the split column has values of different types: {error}") from error


class _LogTimes:
    """The columns of SplitTimes, as they are after the chunks so far; and the cut from which the log is resumed."""

    def __init__(
        self, values: list[Any], before: TimeCut, by_arrival: bool, taken: ArrivalCut | None
    ) -> None:
        splits = len(values)
        self._by_arrival = by_arrival
        self._values = values
        self._before = before
        self.cut_counts = LogCutCounts(taken, values)
        self._rows_before = before.column("rows", values)
        self._arrival_before_ms = before.column("last_arrival_ms", values)
        self.recorded_arrival_ms = before.column("recorded_arrival_ms", values)
        self.rows, self.events, self.regressions, self.raised = np.zeros((4, splits), np.int64)
        self.first_arrival_ms = np.full(splits, MAX_TIMESTAMP)
        self.least_arrival_ms = np.full(splits, MAX_TIMESTAMP)
        self.last_arrival_ms = np.full(splits, MIN_TIMESTAMP)
        self.min_timestamp_ms = np.full(splits, MAX_TIMESTAMP)
        self.max_timestamp_ms = np.full(splits, MIN_TIMESTAMP)

    def add(self, chunk: ChunkTimes, splits: Int32s, *, check_bases: bool) -> tuple[Int32s, Int64s, Int64s]:
        """Add a chunk with these splits; they, and their rows and last arrivals before it."""
        bases = self._rows_before[splits]
        arrivals_before = self._arrival_before_ms[splits]
        if not self._by_arrival:
            bases = bases + self.rows[splits]
            arrivals_before = np.maximum(arrivals_before, self.last_arrival_ms[splits])
        if check_bases and not np.array_equal(bases, chunk.bases):
            raise DataError(
                f"the arrivals of chunk {chunk.index} were not counted on from the chunks before; build its "
                "times with the bases that position_bases gives"
            )
        self.rows[splits] += chunk.rows
        self.cut_counts.add(chunk.cut, splits)
        live = chunk.times["events"] > 0
        of_chunk = {name: column[live] for name, column in chunk.times.items()}
        at = splits[live]
        if self._by_arrival:
            first_ms = np.minimum(self.first_arrival_ms[at], of_chunk["first_arrival_ms"])
            recorded_ms = np.maximum(self.recorded_arrival_ms[at], of_chunk["recorded_arrival_ms"])
        else:
            again = self.events[at] > 0
            had_events = again | (self._arrival_before_ms[at] > MIN_TIMESTAMP)
            went_back = had_events & (of_chunk["first_arrival_ms"] < self.recorded_arrival_ms[at])
            self.regressions[at] += of_chunk["regressions"] + went_back
            lies_before = of_chunk["last_arrival_ms"] < arrivals_before[live]
            self.raised[at] += np.where(
                lies_before, of_chunk["events"], np.maximum(of_chunk["raised"], went_back)
            )
            first_ms = np.where(again, self.first_arrival_ms[at], of_chunk["first_arrival_ms"])
            recorded_ms = of_chunk["recorded_arrival_ms"]
        self.first_arrival_ms[at] = first_ms
        self.recorded_arrival_ms[at] = recorded_ms
        self.least_arrival_ms[at] = np.minimum(self.least_arrival_ms[at], of_chunk["least_arrival_ms"])
        self.last_arrival_ms[at] = np.maximum(self.last_arrival_ms[at], of_chunk["last_arrival_ms"])
        self.min_timestamp_ms[at] = np.minimum(self.min_timestamp_ms[at], of_chunk["min_timestamp_ms"])
        self.max_timestamp_ms[at] = np.maximum(self.max_timestamp_ms[at], of_chunk["max_timestamp_ms"])
        self.events[at] += of_chunk["events"]
        return splits, bases, arrivals_before

    def add_waiting(self, chunk: ChunkTimes, splits: Int32s) -> tuple[Int32s, Int64s, Int64s]:
        """Add events that wait in the checkpoint, as `add`: their rows and arrivals have been counted before."""
        live = chunk.times["events"] > 0
        of_chunk = {name: column[live] for name, column in chunk.times.items()}
        at = splits[live]
        for name in ("first_arrival_ms", "min_timestamp_ms"):
            column = getattr(self, name)
            column[at] = np.minimum(column[at], of_chunk[name])
        for name in ("last_arrival_ms", "max_timestamp_ms"):
            column = getattr(self, name)
            column[at] = np.maximum(column[at], of_chunk[name])
        self.events[at] += of_chunk["events"]
        return splits, np.zeros(len(splits), np.int64), np.full(len(splits), MIN_TIMESTAMP)

    def ends(self) -> tuple[int, int]:
        """Return the first and the last arrival; there is an event, here or before."""
        live, stopped = self.events > 0, self._before.last_arrival_ms
        firsts, lasts = self.first_arrival_ms[live].tolist(), self.last_arrival_ms[live].tolist()
        before = [] if stopped is None else [stopped]
        return min(firsts + before), max(lasts + before)

    def cut(self, merge: SplitMerge | None, replay_range: tuple[int, int] | None) -> TimeCut:
        """Return the cut from which another log can be resumed; without a merge there was never an event."""
        before, values = self._before, self._values
        columns = {
            "rows": self._rows_before + self.rows,
            "last_arrival_ms": np.maximum(self._arrival_before_ms, self.last_arrival_ms),
            "recorded_arrival_ms": self.recorded_arrival_ms,
        }
        until_ms = self.cut_counts.until_ms
        taken_ms = np.maximum(before.column("taken_ms", values), self.cut_counts.columns["taken_ms"])
        columns["taken_ms"] = np.maximum(taken_ms, self.recorded_arrival_ms)
        if merge is None or replay_range is None:
            all_columns = before.columns_of(values) | columns
            return TimeCut(None, None, MIN_TIMESTAMP, values, all_columns, until_ms=until_ms)
        if not values:
            values, columns = [None], {name: TimeCut.of_no_split()[name] for name in columns}
        state = split_merge_state(merge)
        opened_ms, watermark_ms = state.pop("opened_ms"), state.pop("output_ms")
        return TimeCut(replay_range[1], opened_ms, watermark_ms, values, state | columns, until_ms=until_ms)


class _TimesBySplit(NamedTuple):
    """Columns of a chunk for `SplitRecords.add_chunk`; records as the store returns them."""

    splits: Int32s
    events: Int64s
    first_arrival_ms: Int64s
    last_arrival_ms: Int64s
    max_timestamp_ms: Int64s
    n_records: Int64s
    records: Int64s | int


# ---- merging splits ----------------------------------------------------------------------------------------


def _times_by_split(chunk: _Chunk, splits: Int32s, store: RecordStore) -> _TimesBySplit:
    times = chunk.times.times
    return _TimesBySplit(
        splits,
        times["events"],
        times["first_arrival_ms"],
        times["last_arrival_ms"],
        times["max_timestamp_ms"],
        times["n_records"],
        store.place(chunk.records),
    )


def _times_in_order(
    chunks: Iterable[tuple[_Chunk, Int32s]],
    store: RecordStore,
    log: _LogTimes,
    generator: GeneratorSpec,
    interval_ms: int,
) -> _TimesBySplit:
    """Return the times of all chunks of a log whose rows have no positions, as of one chunk in order of arrival."""
    cells = Cells()
    for chunk, splits in chunks:
        n_records = chunk.times.times["n_records"]
        cells.add(*cells_of(splits, n_records, store.values(chunk.records, 0, 2 * int(n_records.sum()))))
    n_splits = len(log.events)
    n_records, records = records_in_order(
        cells, n_splits, interval_ms, generator.idleness_ms, generator.makes_steps
    )
    return _TimesBySplit(
        np.arange(n_splits, dtype=np.int32),
        log.events,
        log.first_arrival_ms,
        log.last_arrival_ms,
        log.max_timestamp_ms,
        n_records,
        records,
    )


def _merge(
    times: list[_TimesBySplit],
    store: RecordStore,
    log: _LogTimes,
    generator: GeneratorSpec,
    interval_ms: int,
    alignment: WatermarkAlignmentParams | None,
    replay_range: tuple[int, int],
    limits: MergeLimits,
    packer: StepPacker,
) -> SplitMerge:
    # A log without splits holds its replay back as one split without events does.
    records = SplitRecords(
        splits=max(1, len(log.events)),
        interval_ms=summary_interval_ms(interval_ms, alignment),
        file=store.file,
        buffer_bytes=limits.buffer_bytes,
    )
    for each in times:
        records.add_chunk(*each)
    first_arrival_ms, last_arrival_ms = replay_range
    return SplitMerge(
        records,
        packer,
        interval_ms=interval_ms,
        out_of_orderness_ms=generator.out_of_orderness_ms,
        idleness_ms=generator.idleness_ms,
        first_arrival_ms=first_arrival_ms,
        last_arrival_ms=last_arrival_ms,
        max_drift_ms=alignment.max_allowed_watermark_drift_ms if alignment else None,
        update_interval_ms=alignment.update_interval_ms if alignment else None,
        window_emissions=limits.window_emissions,
    )


def _split_times(values: list[Any], log: _LogTimes, merge: SplitMerge | None) -> SplitTimes:
    final_watermarks = np.full(len(values), MIN_TIMESTAMP)
    spans: tuple[Int64s, ...] = (np.empty(0, np.int64),) * 3
    if merge is not None:
        final_watermarks = merge.final_watermarks()[: len(values)]
        spans = _by_split(merge.idle_spans()) if values else spans
    return SplitTimes(
        values=values,
        rows=log.rows,
        events=log.events,
        regressions=log.regressions,
        raised=log.raised,
        first_arrival_ms=log.first_arrival_ms,
        last_arrival_ms=log.last_arrival_ms,
        min_timestamp_ms=log.min_timestamp_ms,
        max_timestamp_ms=log.max_timestamp_ms,
        final_watermark_ms=final_watermarks,
        idle_split=spans[0],
        idle_from_ms=spans[1],
        idle_to_ms=spans[2],
    )


def _paused_spans(replay_range: tuple[int, int] | None, merge: SplitMerge | None, stops: bool) -> PausedSpans:
    if merge is None or replay_range is None:
        return PausedSpans.none()
    split, from_ms, to_ms = _by_split(merge.paused_spans())
    read_ms = np.minimum(to_ms + 1, replay_range[1])
    if stops:  # only a split that is not resumed is paused up to the last arrival
        read_ms[to_ms == replay_range[1]] = NOT_READ
    return PausedSpans(split, from_ms, to_ms, read_ms)


def _by_split(spans: tuple[Int64s, ...]) -> tuple[Int64s, ...]:
    order = np.argsort(spans[0], kind="stable")
    return tuple(column[order] for column in spans)


def _floors(chunks: list[_Chunk]) -> ArrivalFloors:
    floors = [chunk.times.floors for chunk in chunks]
    least = [np.minimum.accumulate(each["arrival_ms"][::-1])[::-1] for each in floors]
    return ArrivalFloors(
        chunk=np.repeat(
            [chunk.times.index for chunk in chunks], [len(each["rows"]) for each in floors]
        ).astype(np.int64),
        rows=np.concatenate([np.empty(0, np.int64), *(each["rows"] for each in floors)]),
        arrival_ms=np.concatenate([np.empty(0, np.int64), *least]),
    )
