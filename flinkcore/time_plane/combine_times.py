"""The summaries of all chunks of a log, combined into its time plane."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from flinkcore._internal.arrow.arrays import Int32s, Int64s
from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore._native.packed_steps import StepPacker
from flinkcore._native.timeline import restore_split_merge
from flinkcore.common.watermark_strategy import WatermarkAlignmentParams
from flinkcore.log.arrival_cut import ArrivalCut
from flinkcore.time_plane.chunk_splits import ChunkSplits
from flinkcore.time_plane.chunk_times import ArrivalRate, ChunkTimes
from flinkcore.time_plane.generator_spec import GeneratorSpec
from flinkcore.time_plane.log_records import RecordRanges
from flinkcore.time_plane.paused_spans import NOT_READ, PausedSpans, summary_interval_ms
from flinkcore.time_plane.record_blocks import DEFAULT_LIMITS, RecordBlock, RecordLimits
from flinkcore.time_plane.split_columns import SplitColumns
from flinkcore.time_plane.splits_merge import MergedSplits, SplitsMerge, add_parts
from flinkcore.time_plane.taken_chunks import TakenChunk, in_log_order, in_split_order, tick_floors
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

_MOST_WARNINGS = 20


class CombinedTimes:
    """Times of all chunks of a log without their records, from which its time plane is made in a second step.

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
        `summary_interval_ms` gives; those with indices below 0 are of what waits in the checkpoint.
    generator : GeneratorSpec
    interval_ms : int
        The auto-watermark interval, from 0 to 2**60.
    rate : ArrivalRate or None
        Where the log records no arrivals.
    by_arrival : bool
        Whether the rows have no positions: see `EventLog`.
    alignment : WatermarkAlignmentParams or None
        Alignment of the splits with each other; see `flinkcore.time_plane.paused_spans`.
    limits : RecordLimits
    cut : TimeCut or None
        Cut at which the log resumes from a checkpoint, whose splits are splits of this log, or None for its start.
    taken : ArrivalCut or None
        The arrivals that the chunks were read for, or None if all.
    stops : bool
        True: what the end of the log would emit is left to a log that is resumed from the time plane's own cut.

    Attributes
    ----------
    replay_range : (int, int) or None
        First and last arrival of the log, or None if nothing has arrived, here or before.

    Raises
    ------
    DataError
        If a chunk comes twice, or was not given the position bases that its arrivals by rate need, or an event lies
        before the cut.
    SchemaError
        If the values of the splits cannot be ordered, or are of another type than those of the cut.
    """

    def __init__(
        self,
        chunks: Iterable[ChunkTimes],
        generator: GeneratorSpec,
        interval_ms: int,
        *,
        rate: ArrivalRate | None = None,
        by_arrival: bool = False,
        alignment: WatermarkAlignmentParams | None = None,
        limits: RecordLimits = DEFAULT_LIMITS,
        cut: TimeCut | None = None,
        taken: ArrivalCut | None = None,
        stops: bool = False,
    ) -> None:
        self._generator = generator
        self._interval_ms = interval_ms
        self._rate = rate
        self._by_arrival = by_arrival
        self._alignment = alignment
        self._limits = limits
        self._stops = stops
        self._before = before = TimeCut.before_all() if cut is None else cut
        known = before.split_values if before.has_splits else []
        numbers: dict[Any, int] = {value: number for number, value in enumerate(known)}
        of_cut = next((value for value in known if value is not None), None)
        self._chunks = ordered = in_log_order(TakenChunk.of(chunk, numbers, of_cut) for chunk in chunks)
        if not numbers and before.split_values:
            numbers[None] = 0
        values = in_split_order(numbers)
        places = np.empty(len(values), np.int32)
        places[[numbers[value] for value in values]] = np.arange(len(values))
        self._log = log = SplitColumns(values, before, by_arrival, taken)
        self._starts: list[tuple[Int32s, Int64s, Int64s]] = []
        self._floors: dict[int, Int64s] = {}
        self._last_ms: list[int] = []
        summary_ms = summary_interval_ms(interval_ms, alignment)
        for chunk in ordered:
            times, splits = chunk.times(), places[chunk.splits]
            self._last_ms.append(int(times.times["last_arrival_ms"].max(initial=MIN_TIMESTAMP)))
            self._starts.append(
                log.add_waiting(times, splits)
                if times.index < 0
                else log.add(times, splits, check_bases=rate is not None)
            )
            if not by_arrival:
                floors = tick_floors(times.times, self._starts[-1][2], summary_ms)
                self._floors |= {} if floors is None else {times.index: floors}
        log.cut_counts.check_taken_before(before.column("rows", values), before.column("taken_ms", values))
        before.check_goes_on(values, log.least_arrival_ms, log.events)
        self.replay_range: tuple[int, int] | None = None
        if log.events.any() or before.last_arrival_ms is not None:
            self.replay_range = log.ends()

    def time_plane(self, records: RecordRanges, replay_range: tuple[int, int] | None = None) -> TimePlane:
        """Return the time plane. Memory is bounded by it, by the splits of all chunks, and by the records of a range.

        Parameters
        ----------
        records : RecordRanges
            Records of all chunks.
        replay_range : (int, int) or None
            First and last arrival of a replay with several logs, or None for those of this log.

        Raises
        ------
        SourceError
            If a temporary file of records cannot be read.
        """
        before, log, ordered, starts = self._before, self._log, self._chunks, self._starts
        replay_range = replay_range or self.replay_range
        packer = Timeline.packer(before.step, self._limits.block_steps)
        splits = ChunkSplits.of(
            (chunk.index, numbers, self._floors.get(chunk.index))
            for chunk, (numbers, _, _) in zip(ordered, starts, strict=True)
        )
        merge = None if replay_range is None else self._merged(records, splits, replay_range, packer)
        return TimePlane(
            timeline=Timeline.ended(packer, stops=self._stops),
            splits=_split_times(log, merge),
            starts=ChunkStarts(
                chunks=splits.chunks,
                rows_read=np.array([chunk.rows_read for chunk in ordered], np.int64),
                checksums=np.array([chunk.checksum for chunk in ordered], np.uint64).ravel(),
                offsets=splits.offsets,
                split=splits.numbers,
                base=np.concatenate([np.empty(0, np.int64), *(bases for _, bases, _ in starts)]),
                arrival_ms=np.concatenate([np.empty(0, np.int64), *(arrivals for _, _, arrivals in starts)]),
                last_ms=np.array(self._last_ms, np.int64),
            ),
            floors=_floors(ordered),
            paused=_paused_spans(replay_range, merge, self._stops),
            rate=self._rate,
            by_arrival=self._by_arrival,
            restored_arrival_ms=before.last_arrival_ms,
            cut=log.cut(None if merge is None else merge.state, replay_range) if self._stops else None,
            statuses=Statuses.none() if merge is None else Statuses.at_ticks(*merge.statuses),
            replay_range=replay_range,
            warnings=_first(text for chunk in ordered for text in chunk.warnings),
            holders=Holders.unknown() if merge is None else Holders(*merge.holders),
            rows_before_cut=int(log.cut_counts.columns["before"].sum()),
            rows_after_cut=int(log.cut_counts.columns["after"].sum()),
        )

    def _merged(
        self, records: RecordRanges, splits: ChunkSplits, replay_range: tuple[int, int], packer: StepPacker
    ) -> MergedSplits:
        log, before = self._log, self._before
        splits_merge = SplitsMerge(
            n_splits=len(log.events),
            generator=self._generator,
            interval_ms=self._interval_ms,
            alignment=self._alignment,
            by_arrival=self._by_arrival,
            replay_range=replay_range,
            stops=self._stops,
            window_emissions=self._limits.window_emissions,
        )
        if splits_merge.is_divisible and before.last_arrival_ms is None:
            merged = records.merged_apart(splits_merge, splits, packer)
            if merged is not None:
                return merged
        of_range, merge = splits_merge.begin(packer)
        if before.last_arrival_ms is not None:
            restore_split_merge(merge, before.operators(log.values), before.last_arrival_ms)
        if self._by_arrival and splits_merge.summary_ms == 0:
            add_parts(of_range, self._without_ticks())
            merge.run(stops=self._stops)
            return MergedSplits.of(merge)
        for until_ms, blocks in records.ranges(splits):
            splits_merge.add(of_range, blocks)
            splits_merge.run(merge, until_ms)
        return MergedSplits.of(merge)

    def _without_ticks(self) -> RecordBlock:
        """Return what generators see of events that are in no order, at the end of the log."""
        log = self._log
        live = np.flatnonzero(log.events > 0).astype(np.int32)
        ticks, none = np.full(len(live), MAX_TIMESTAMP), np.empty(0, np.int64)
        return RecordBlock(live, ticks, ticks, log.max_timestamp_ms[live], np.zeros_like(ticks), none, none)


def combine(
    chunks: Iterable[ChunkTimes],
    records: RecordRanges,
    generator: GeneratorSpec,
    interval_ms: int,
    **settings: Any,
) -> TimePlane:
    """Return the time plane of a log that is replayed by itself; see `CombinedTimes`."""
    return CombinedTimes(chunks, generator, interval_ms, **settings).time_plane(records)


def _first(warnings: Iterable[str]) -> tuple[str, ...]:
    """As many warnings as a user reads, and how many more there are."""
    found = list(warnings)
    left = len(found) - _MOST_WARNINGS
    return (*found[:_MOST_WARNINGS], *([f"{left:,} more files are as suspicious"] if left > 0 else []))


def _split_times(log: SplitColumns, merge: MergedSplits | None) -> SplitTimes:
    values = log.values
    final_watermarks = np.full(len(values), MIN_TIMESTAMP)
    spans: tuple[Int64s, ...] = (np.empty(0, np.int64),) * 3
    if merge is not None:
        final_watermarks = merge.final_watermarks[: len(values)]
        spans = _by_split(merge.idle_spans) if values else spans
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


def _paused_spans(
    replay_range: tuple[int, int] | None, merge: MergedSplits | None, stops: bool
) -> PausedSpans:
    if merge is None or replay_range is None:
        return PausedSpans.none()
    split, from_ms, to_ms = _by_split(merge.paused_spans)
    read_ms = np.minimum(to_ms + 1, replay_range[1])
    if stops:  # only a split that is not resumed is paused up to the last arrival
        read_ms[to_ms == replay_range[1]] = NOT_READ
    return PausedSpans(split, from_ms, to_ms, read_ms)


def _by_split(spans: tuple[Int64s, ...]) -> tuple[Int64s, ...]:
    order = np.argsort(spans[0], kind="stable")
    return tuple(column[order] for column in spans)


def _floors(chunks: list[TakenChunk]) -> ArrivalFloors:
    least = [np.minimum.accumulate(chunk.floors["arrival_ms"][::-1])[::-1] for chunk in chunks]
    return ArrivalFloors(
        chunk=np.repeat(
            [chunk.index for chunk in chunks], [len(chunk.floors["rows"]) for chunk in chunks]
        ).astype(np.int64),
        rows=np.concatenate([np.empty(0, np.int64), *(chunk.floors["rows"] for chunk in chunks)]),
        arrival_ms=np.concatenate([np.empty(0, np.int64), *least]),
    )
