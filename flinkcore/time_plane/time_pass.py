"""The first pass of a replay: what a task does with a chunk, and how it goes in one process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, TypeVar

from flinkcore._internal.python.user_warnings import warn_user
from flinkcore.log.event_reader import EventReader, read_together
from flinkcore.log.sources.chunks import Chunk
from flinkcore.time_plane.chunk_times import (
    ArrivalRate,
    ChunkCounts,
    ChunkTimes,
    ChunkTimesBuilder,
    position_bases,
)
from flinkcore.time_plane.combine_times import CombinedTimes
from flinkcore.time_plane.element_pass import run_element_pass
from flinkcore.time_plane.generator_spec import GeneratorSpec
from flinkcore.time_plane.kept_times import KeptTimes
from flinkcore.time_plane.log_records import LogRecords, RecordRanges
from flinkcore.time_plane.paused_spans import summary_interval_ms
from flinkcore.time_plane.record_blocks import RecordBlock, RecordLimits
from flinkcore.time_plane.tick_clock import TickClock
from flinkcore.time_plane.time_cut import TimeCut
from flinkcore.time_plane.time_warnings import (
    check_units,
    checked_times,
    tick_calls_warning,
    time_warnings,
)
from flinkcore.time_plane.timed_log import TimedLog
from flinkcore.time_plane.timeline import TimePlane

Summary = TypeVar("Summary")


@dataclass(frozen=True)
class TimePass:
    """Reads the time columns of chunks; picklable.

    Parameters
    ----------
    timed
        The log.
    cut
        Cut at which the log resumes from a checkpoint, or None for its start.
    stops
        Whether the job stops with a checkpoint.
    """

    timed: TimedLog
    cut: TimeCut | None = None
    stops: bool = False

    @property
    def generator(self) -> GeneratorSpec:
        """The watermark generator of every split; none where the strategy's own is called event by event."""
        if self.timed.is_by_element:
            return GeneratorSpec(None)
        return GeneratorSpec(self.timed.strategy.out_of_orderness_ms, self.timed.strategy.idleness_ms)

    @property
    def rate(self) -> ArrivalRate | None:
        """Return where the log records no arrivals: how they follow from positions."""
        log = self.timed.log
        return ArrivalRate(log.rate, log.arrival_start_ms) if log.arrival is None else None

    @property
    def counts_rows(self) -> bool:
        """Return whether arrivals follow from how many rows of a split lie in the chunks before."""
        return self.rate is not None and not self.timed.log.by_arrival

    @cached_property
    def reader(self) -> EventReader:
        """Reader of the time columns."""
        return self.timed.reader(None, is_placed=False)

    def reader_of(self, chunk: Chunk) -> EventReader:
        """Return a reader of the time columns of a chunk, batch by batch as the data plane reads all columns, about.

        The data plane holds rows as long as earlier arrivals may come, which is known for each batch of this pass.
        """
        timed, size = self.timed, chunk.size_bytes or 0
        together = timed.batch_bytes // chunk.growth
        n_rows = chunk.looked_up_rows() if size > together else None
        if n_rows is None:
            return self.reader
        rows = together * n_rows // size
        return replace(timed, batch_rows=max(1, min(timed.batch_rows, rows))).reader(None, is_placed=False)

    def known_counts(self, chunk: Chunk) -> ChunkCounts | None:
        """Rows of each split where they are known without reading."""
        known, split = chunk.only_split(self.timed.log.split)
        return ChunkCounts(chunk.index, {split: chunk.rows}) if known and chunk.rows is not None else None

    def count(self, chunk: Chunk) -> ChunkCounts:
        """Rows of each split of a chunk."""
        return ChunkCounts.build(self.reader.read(chunk), index=chunk.index)

    def builder(
        self,
        chunk: Chunk,
        bases: dict[int, dict[object, int]] | None,
        warnings: list[str],
        records: Callable[[RecordBlock], object],
    ) -> ChunkTimesBuilder:
        """Return a builder that summarises a chunk batch by batch.

        Parameters
        ----------
        chunk
        bases
            Rows of each chunk's splits in the chunks before, for arrivals by position.
        warnings
            Warnings about its file, complete when the batches are.
        records
            Takes the records of the chunk, block by block.
        """
        rows_before = None if bases is None else bases[chunk.index]
        if self.timed.log.by_arrival:
            rows_before = self._rows_before_log()
        return ChunkTimesBuilder(
            self.generator,
            self.summary_interval_ms,
            index=chunk.index,
            records=records,
            rate=self.rate,
            bases=rows_before,
            restored_arrival_ms=None if self.cut is None else self.cut.last_arrival_ms,
            warnings=warnings,
            is_checked=chunk.is_checked,
            by_arrival=self.timed.log.by_arrival,
            limits=self.limits,
        )

    @property
    def limits(self) -> RecordLimits:
        """Limits of the memory of records."""
        return self.timed.record_limits

    @property
    def summary_interval_ms(self) -> int:
        """Interval of the ticks in summaries of chunks."""
        return summary_interval_ms(
            self.timed.auto_watermark_interval_ms, self.timed.strategy.alignment_parameters
        )

    def position_bases(self, counts: Iterable[ChunkCounts]) -> dict[int, dict[Any, int]]:
        """Rows of each chunk's splits before it; see `flinkcore.time_plane.chunk_times.position_bases`."""
        return position_bases(counts, self._rows_before_log())

    def _rows_before_log(self) -> dict[Any, int]:
        if self.cut is None:
            return {}
        return dict(zip(self.cut.split_values, self.cut.columns["rows"].tolist(), strict=True))

    def log_times(self, times: Iterable[ChunkTimes]) -> CombinedTimes:
        """Return the times of all chunks of the log, of which `time_plane` makes the time plane."""
        return CombinedTimes(
            times,
            self.generator,
            self.timed.auto_watermark_interval_ms,
            rate=self.rate,
            by_arrival=self.timed.log.by_arrival,
            alignment=self.timed.strategy.alignment_parameters,
            limits=self.limits,
            cut=self.cut,
            taken=self.timed.log.cut,
            stops=self.stops,
        )

    def time_plane(
        self, log_times: CombinedTimes, records: RecordRanges, replay_range: tuple[int, int] | None
    ) -> TimePlane:
        """Return the time plane of the log.

        Warns of files that may be cut or empty, of doubtful units, and of arrivals out of order: not everyone who takes
        the results looks at the report.

        Parameters
        ----------
        log_times
            Times of all chunks.
        records
            Records of all chunks.
        replay_range
            The first and the last arrival of the replay, of all its logs, or None if nothing arrives.

        Raises
        ------
        ConfigurationError
            If integers that were read as milliseconds cannot be such.
        """
        time_plane = log_times.time_plane(records, replay_range)
        check_units(checked_times(self.timed, time_plane.splits))
        for text in (*time_plane.warnings, *time_warnings(self.timed, time_plane.splits)):
            warn_user(text)
        return time_plane

    def warn_of_ticks(self, time_plane: TimePlane) -> None:
        """Warn if a generator of one's own will be called at very many ticks."""
        if self.timed.is_by_element and time_plane.events and time_plane.replay_range is not None:
            clock = TickClock(self.timed.auto_watermark_interval_ms, *time_plane.replay_range)
            text = tick_calls_warning(self.timed.strategy, clock, len(time_plane.split_values))
            if text is not None:
                warn_user(text)


def summarised_together(
    passes: Sequence[TimePass],
    chunk: Chunk,
    bases: Sequence[dict[int, dict[object, int]] | None],
    kept: KeptTimes | None = None,
) -> Iterator[tuple[int, RecordBlock | ChunkTimes]]:
    """Yield the summaries of a chunk of a log that is used on several ways, and is read once for all of them.

    Parameters
    ----------
    passes
        Over the log, one for each way.
    chunk
        A chunk of the log.
    bases
        For each pass, rows of each chunk's splits in the chunks before, for arrivals by position.
    kept
        Keeps the times of the chunk, of the only pass.

    Yields
    ------
    tuple
        Number of a pass, and a block of its records of the chunk; after all of them its times.
    """
    warnings: list[str] = []
    blocks: list[tuple[int, RecordBlock]] = []

    def taker(way: int) -> Callable[[RecordBlock], object]:
        return lambda block: blocks.append((way, block))

    builders = [
        time_pass.builder(chunk, before, warnings, taker(way))
        for way, (time_pass, before) in enumerate(zip(passes, bases, strict=True))
    ]
    readers = [time_pass.reader_of(chunk) for time_pass in passes]
    if kept is not None:
        kept.begin(chunk.index)
    side = readers[0].side_of(chunk)
    if side is not None:
        for builder in builders:
            builder.leave_unread(side)
    else:
        for batches in read_together(readers, chunk, warnings):
            for builder, batch in zip(builders, batches, strict=True):
                times = builder.add(batch)
                if kept is not None:
                    kept.add(chunk.index, batch, times)
            yield from blocks
            blocks.clear()
    found = [builder.finish() for builder in builders]
    yield from blocks
    blocks.clear()  # which the builders, a cycle, refer to until garbage is collected
    yield from enumerate(found)


@dataclass(frozen=True)
class LogSummaries:
    """Summaries of all chunks of a log, as they are read: times first, records in the order of time.

    Attributes
    ----------
    times
        Times of all chunks, which are read once, before the records.
    records
        Records of all chunks.
    """

    times: Iterable[ChunkTimes]
    records: RecordRanges


def time_planes_of(
    logs: Sequence[TimedLog],
    chunks: Sequence[Sequence[Chunk]],
    threads: int,
    *,
    ways: Sequence[Sequence[int]] = (),
    cuts: Sequence[TimeCut] = (),
    waiting: Sequence[Sequence[Chunk]] = (),
    stops: bool = False,
    kept: KeptTimes | None = None,
    read: Callable[[int], None] | None = None,
) -> list[TimePlane]:
    """Run the first pass of a replay in this process.

    Parameters
    ----------
    logs
        Logs of the job.
    chunks
        All chunks of each log.
    threads
        Number of chunks that are read at once.
    ways
        Numbers of the logs that are read together, as of `JobPlan`; none: each is read by itself.
    cuts
        Cut at which each log resumes from a checkpoint; empty if they start at their beginning.
    waiting
        For each log the events of paused splits that wait in the checkpoint; none: of none.
    stops
        Whether the job stops with a checkpoint.
    kept
        Keeps the times of all events of the only log, as far as they have room.
    read
        Called with the number of files of each chunk whose times have been read.
    """
    passes = time_passes(logs, cuts, stops)
    summaries: dict[int, LogSummaries] = {}
    with ExitStack() as open_records:
        for together in ways or [(number,) for number in range(len(passes))]:
            of_ways = [passes[number] for number in together]
            records = [
                open_records.enter_context(closing(LogRecords(each.summary_interval_ms, each.limits)))
                for each in of_ways
            ]
            times = _times(of_ways, chunks[together[0]], threads, kept, records, read=read)
            for number, own, own_times in zip(together, records, by_way(times, len(together)), strict=True):
                of_log = waiting[number] if waiting else ()
                before = chain.from_iterable(_times([passes[number]], of_log, 1, None, [own], waited=True))
                summaries[number] = LogSummaries(chain(before, own_times), own)
        time_planes = combine_logs(passes, [summaries[number] for number in range(len(passes))])
    return [
        run_element_pass(time_pass.timed, time_plane, of_log, time_pass.cut)
        if time_pass.timed.is_by_element
        else time_plane
        for time_pass, time_plane, of_log in zip(passes, time_planes, chunks, strict=True)
    ]


def time_passes(logs: Sequence[TimedLog], cuts: Sequence[TimeCut], stops: bool) -> list[TimePass]:
    """Return what reads the time columns of each log; parameters as of `time_planes_of`."""
    return [TimePass(timed, cuts[number] if cuts else None, stops) for number, timed in enumerate(logs)]


def combine_logs(passes: Sequence[TimePass], summaries: Sequence[LogSummaries]) -> list[TimePlane]:
    """Return the time planes of logs that are replayed together: each lasts as long as all of them.

    Parameters
    ----------
    passes
        Time pass of each log.
    summaries
        Summaries of all chunks of each log.
    """
    times = [time_pass.log_times(of_log.times) for time_pass, of_log in zip(passes, summaries, strict=True)]
    ranges = [of_log.replay_range for of_log in times if of_log.replay_range is not None]
    whole = (min(first for first, _ in ranges), max(last for _, last in ranges)) if ranges else None
    time_planes = [
        time_pass.time_plane(log_times, of_log.records, whole)
        for time_pass, log_times, of_log in zip(passes, times, summaries, strict=True)
    ]
    for time_pass, time_plane in zip(passes, time_planes, strict=True):
        time_pass.warn_of_ticks(time_plane)
    return [_told_of_order(*each) for each in zip(passes, time_planes, strict=True)]


def _told_of_order(time_pass: TimePass, time_plane: TimePlane) -> TimePlane:
    """Warn if events of paused splits are read with the last arrival, and that is the one before the checkpoint."""
    cut = time_pass.cut
    has_waited = bool((time_plane.starts.chunks < 0).any())
    if cut is None or time_pass.stops or not has_waited or time_plane.last_arrival_ms != cut.last_arrival_ms:
        return time_plane
    text = (
        "nothing has arrived since the checkpoint, so that the events of paused splits are read now, behind all that "
        "arrived before it; a run over all would have read those of its last arrival, and these, in the order of their "
        "splits. Results that depend on the order of events may differ"
    )
    warn_user(text)
    return replace(time_plane, warnings=(*time_plane.warnings, text))


def by_way(times: Iterator[Sequence[ChunkTimes]], ways: int) -> list[Iterable[ChunkTimes]]:
    """Return the times of each way of a log, from those of all ways of each chunk; held if there are several."""
    if ways == 1:
        return [(own for (own,) in times)]
    held = list(times)
    return [[of_chunk[way] for of_chunk in held] for way in range(ways)]


def _times(
    passes: Sequence[TimePass],
    chunks: Sequence[Chunk],
    threads: int,
    kept: KeptTimes | None,
    records: Sequence[LogRecords],
    *,
    waited: bool = False,
    read: Callable[[int], None] | None = None,
) -> Iterator[list[ChunkTimes]]:
    """Times of each chunk, for all ways of a log, whose records are added to `records`.

    The arrivals of events that have waited in a checkpoint are known.
    """

    def on_all(task: Callable[[Chunk], Summary]) -> Iterator[Summary]:
        if threads == 1 or len(chunks) == 1:
            yield from map(task, chunks)
        else:
            with ThreadPoolExecutor(threads) as pool:
                yield from pool.map(task, chunks)

    bases: list[dict[int, dict[Any, int]] | None] = [None for _ in passes]
    first = passes[0]
    if first.counts_rows and not waited:
        counts = list(on_all(lambda chunk: first.known_counts(chunk) or first.count(chunk)))
        bases = [time_pass.position_bases(counts) for time_pass in passes]

    def summarise(chunk: Chunk) -> list[ChunkTimes]:
        times = []
        for way, found in summarised_together(passes, chunk, bases, kept):
            if isinstance(found, RecordBlock):
                records[way].add(chunk.index, found)
            else:
                times.append(found)
        return times

    for chunk, found in zip(chunks, on_all(summarise), strict=True):
        if read is not None:
            read(len(chunk.parts))
        yield found
