"""The time plane of a replay: watermarks per split, merged into one timeline.

A task summarises the times of a chunk of the log (`ChunkTimes`), independently of the chunks before it;
`combine` makes the summaries, in log order, into the `TimePlane`, from which every task of the data plane
gets the clock of its chunk (`ChunkClock`) and the watermark in force at each arrival. However the log is cut,
the timeline is the same.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from flinkcore._native.timeline import SplitMerge, order_events
from flinkcore._native.valve import IDLE_KIND, WATERMARK_KIND, StatusWatermarkValve
from flinkcore.common.constants import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.errors import DataError, SchemaError, SourceError
from flinkcore.replay.chunk_times import (
    ArrivalRate,
    ChunkCounts,
    ChunkTimes,
    GeneratorSpec,
    TimedEvents,
    arrivals_of,
    position_bases,
)
from flinkcore.replay.column_ipc import read_columns, write_columns
from flinkcore.replay.step_order import steps_before

__all__ = [
    "ArrivalRate",
    "ChunkClock",
    "ChunkCounts",
    "ChunkTimes",
    "GeneratorSpec",
    "TimePlane",
    "Timeline",
    "combine",
    "position_bases",
]

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Timeline:
    """The merged watermark as a step function of the replay clock.

    Parameters
    ----------
    clock_ms : numpy.ndarray of int64, shape (n_steps,)
        Non-decreasing; a step happens after all events with arrival ≤ its clock, unless an event made it.
    watermark_ms : numpy.ndarray of int64, shape (n_steps,)
        Increasing; the last step, at clock 2**63 - 1, is 2**63 - 1.
    split, position : numpy.ndarray of int64, shape (n_steps,) or (0,)
        The event that made the step, which comes right after it, before later events with the same arrival;
        split `AFTER_ALL_SPLITS`, position 0: no event but a tick or the end of the log. Empty if no step was
        made by an event.
    """

    clock_ms: Int64s
    watermark_ms: Int64s
    split: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    position: Int64s = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def is_punctuated(self) -> bool:
        """Whether events made steps, so that arrivals alone do not tell which watermark is in force."""
        return len(self.split) > 0

    def steps_before(self, arrival_ms: Int64s, split: Int32s, position: Int64s) -> Int64s:
        """How many steps lie before events.

        Parameters
        ----------
        arrival_ms, split, position : numpy.ndarray of int64, int32 and int64, shape (n_rows,)
            Their places in the total order.

        Returns
        -------
        numpy.ndarray of int64, shape (n_rows,)
        """
        if not self.is_punctuated:
            return np.searchsorted(self.clock_ms, arrival_ms, side="left")
        return steps_before(self.clock_ms, self.split, self.position, arrival_ms, split, position)

    def watermark_after(self, steps: Int64s) -> Int64s:
        """The watermark in force after so many steps; -2**63 before the first."""
        return np.concatenate((np.array([MIN_TIMESTAMP]), self.watermark_ms))[steps]

    def current_watermark(self, arrival_ms: npt.ArrayLike) -> Int64s:
        """The watermark in force before events that arrive then; -2**63 before the first step.

        That is what events meet, but where those before them with the same arrival made steps: ask
        `watermark_after(steps_before(...))` in a punctuated timeline.

        Parameters
        ----------
        arrival_ms : array_like of int64

        Returns
        -------
        numpy.ndarray of int64, of the same shape
        """
        return self.watermark_after(np.searchsorted(self.clock_ms, arrival_ms, side="left"))


@dataclass(frozen=True, eq=False)
class SplitTimes:
    """What a report tells about the splits, in split order.

    Parameters
    ----------
    values : list
        The values of the split column.
    rows, events : numpy.ndarray of int64, shape (n_splits,)
        Rows before filters, and events after them.
    regressions : numpy.ndarray of int64, shape (n_splits,)
        How often the recorded arrival went back from one event of the split to the next.
    first_arrival_ms, last_arrival_ms : numpy.ndarray of int64, shape (n_splits,)
    min_timestamp_ms, max_timestamp_ms : numpy.ndarray of int64, shape (n_splits,)
        2**63 - 1 for the first and least, -2**63 for the last and greatest of a split without events.
    final_watermark_ms : numpy.ndarray of int64, shape (n_splits,)
        The split's own last watermark before the end of time; -2**63 if there was none.
    idle_split, idle_from_ms, idle_to_ms : numpy.ndarray of int64, shape (n_spans,)
        Which split was idle when, by split and clock; one that is idle at the end is so up to the last
        arrival.
    """

    values: list[Any]
    rows: Int64s
    events: Int64s
    regressions: Int64s
    first_arrival_ms: Int64s
    last_arrival_ms: Int64s
    min_timestamp_ms: Int64s
    max_timestamp_ms: Int64s
    final_watermark_ms: Int64s
    idle_split: Int64s
    idle_from_ms: Int64s
    idle_to_ms: Int64s

    def idle_spans(self, split: int) -> list[tuple[int, int]]:
        """When the split of this number was idle: (from, to) in ms of the replay clock."""
        spans = np.flatnonzero(self.idle_split == split)
        return list(zip(self.idle_from_ms[spans].tolist(), self.idle_to_ms[spans].tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class ChunkStarts:
    """Where each split stands at the start of each of its chunks; entries are grouped by chunk.

    Parameters
    ----------
    chunks : numpy.ndarray of int64, shape (n_chunks,)
        Ascending indices of the chunks.
    rows_read : numpy.ndarray of int64, shape (n_chunks,)
        All rows of each chunk.
    offsets : numpy.ndarray of int64, shape (n_chunks + 1,)
        Entries of chunk i: offsets[i] up to offsets[i + 1].
    split : numpy.ndarray of int32, shape (n_entries,)
        Number of the split.
    base, arrival_ms : numpy.ndarray of int64, shape (n_entries,)
        Rows of the split in the chunks before, and their maximum arrival (-2**63: there was none).
    """

    chunks: Int64s
    rows_read: Int64s
    offsets: Int64s
    split: Int32s
    base: Int64s
    arrival_ms: Int64s


@dataclass(frozen=True, eq=False)
class ArrivalFloors:
    """What arrivals can still come after each batch of the log, in log order.

    Parameters
    ----------
    chunk, rows : numpy.ndarray of int64, shape (n_batches,)
        The chunk of a batch, and the rows of that chunk read by its end.
    arrival_ms : numpy.ndarray of int64, shape (n_batches,)
        No event of this batch, or of a later one, arrives earlier.
    """

    chunk: Int64s
    rows: Int64s
    arrival_ms: Int64s

    def after(self, chunk: int, rows: int) -> int | None:
        """The earliest arrival still to come once so many rows of a chunk are read; None if nothing comes."""
        first = int(np.searchsorted(self.chunk, chunk, side="left"))
        last = int(np.searchsorted(self.chunk, chunk, side="right"))
        at = first + int(np.searchsorted(self.rows[first:last], rows, side="right"))
        return int(self.arrival_ms[at]) if at < len(self.arrival_ms) else None


@dataclass(frozen=True, eq=False)
class TimePlane:
    """The timeline of a log, and the way into its chunks; small enough to go to every task.

    Parameters
    ----------
    timeline : Timeline
    splits : SplitTimes
    starts : ChunkStarts
    floors : ArrivalFloors
    rate : ArrivalRate or None
        Where the log records no arrivals.
    """

    timeline: Timeline
    splits: SplitTimes
    starts: ChunkStarts
    floors: ArrivalFloors
    rate: ArrivalRate | None

    @property
    def split_values(self) -> list[Any]:
        """The values of the split column in split order."""
        return self.splits.values

    @property
    def events(self) -> int:
        """Number of events after filters."""
        return int(self.splits.events.sum())

    def current_watermark(self, arrival_ms: npt.ArrayLike) -> Int64s:
        """The watermark in force at these arrivals; see `Timeline.current_watermark`."""
        return self.timeline.current_watermark(arrival_ms)

    @property
    def rows_read(self) -> int:
        """Number of rows of the log, before filters and rejections."""
        return int(self.starts.rows_read.sum())

    def check_chunk(self, chunk_index: int, label: str, rows_read: int) -> None:
        """Assert that the data plane has read as many rows of a chunk as the time plane.

        Raises
        ------
        SourceError
            If not: the log has changed during the replay.
        """
        expected = int(self.starts.rows_read[np.searchsorted(self.starts.chunks, chunk_index)])
        if rows_read != expected:
            raise SourceError(
                f"{label} had {expected:,} rows when the timeline was computed and has {rows_read:,} now: the log has "
                "changed during the replay; run it again"
            )

    def enter(self, chunk_index: int) -> "ChunkClock":
        """The clock of a chunk's events, from its first batch on.

        Parameters
        ----------
        chunk_index : int
            One of the chunks that were combined.

        Raises
        ------
        DataError
            If there is no such chunk.
        """
        at = int(np.searchsorted(self.starts.chunks, chunk_index))
        if at == len(self.starts.chunks) or self.starts.chunks[at] != chunk_index:
            raise DataError(
                f"chunk {chunk_index} had no part in this timeline; combine the times of all chunks"
            )
        entries = slice(int(self.starts.offsets[at]), int(self.starts.offsets[at + 1]))
        return ChunkClock(
            chunk_index,
            self.splits.values,
            self.starts.split[entries],
            self.starts.base[entries],
            self.starts.arrival_ms[entries],
            self.rate,
        )

    def to_ipc(self) -> bytes:
        """The time plane as an Arrow IPC stream."""
        columns = {
            f"{part}.{member.name}": getattr(getattr(self, part), member.name)
            for part, kind in _PARTS.items()
            for member in fields(kind)
        }
        return write_columns("TimePlane", {"rate": self.rate and asdict(self.rate)}, columns)

    @classmethod
    def from_ipc(cls, data: bytes) -> "TimePlane":
        """The time plane that `to_ipc` wrote; a DataError if these bytes are something else."""
        header, columns = read_columns("TimePlane", data)
        parts: dict[str, Any] = {
            part: kind(
                **{
                    member.name: columns[f"{part}.{member.name}"].to_pylist()
                    if member.name == "values"
                    else columns[f"{part}.{member.name}"].to_numpy()
                    for member in fields(kind)
                }
            )
            for part, kind in _PARTS.items()
        }
        return cls(**parts, rate=ArrivalRate(**header["rate"]) if header["rate"] else None)


_PARTS: dict[str, type[Any]] = {
    "timeline": Timeline,
    "splits": SplitTimes,
    "starts": ChunkStarts,
    "floors": ArrivalFloors,
}


class ChunkClock:
    """The place of a chunk's events in the total order of the replay; batches come in log order, each once.

    Parameters
    ----------
    chunk_index : int
        For error messages.
    split_values : list
        All splits of the log.
    splits : numpy.ndarray of int32, shape (n_chunk_splits,)
        Numbers of the chunk's splits.
    bases, arrivals_ms : numpy.ndarray of int64, shape (n_chunk_splits,)
        As of ChunkStarts.
    rate : ArrivalRate or None
    """

    def __init__(
        self,
        chunk_index: int,
        split_values: list[Any],
        splits: Int32s,
        bases: Int64s,
        arrivals_ms: Int64s,
        rate: ArrivalRate | None,
    ) -> None:
        self._chunk_index = chunk_index
        self._places = {split_values[split]: place for place, split in enumerate(splits.tolist())}
        self._splits = splits
        self._bases = bases
        self._running_arrivals_ms = arrivals_ms.copy()
        self._rate = rate

    def order(self, timed: TimedEvents) -> tuple[Int64s, Int32s, Int64s]:
        """Place the events of the next batch.

        Parameters
        ----------
        timed : TimedEvents

        Returns
        -------
        tuple of numpy.ndarray, each of shape (n_rows,)
            `(arrival_ms int64, split int32, position int64)`: the arrival is the running maximum in the
            split, the split its number in split order, the position that in the whole split.

        Raises
        ------
        SourceError
            If the batch has a split that the first pass did not see in this chunk.
        ConfigurationError
            If the batch has no recorded arrivals, and the time plane no rate.
        """
        try:
            places = np.array([self._places[value] for value in timed.split_values], np.int32)
        except KeyError as error:
            raise SourceError(
                f"split {error.args[0]!r} of chunk {self._chunk_index} was not there when the timeline was "
                "computed; the log has changed during the replay"
            ) from None
        return order_events(
            arrivals_of(timed, self._bases[places], self._rate),
            timed.positions,
            timed.split_codes,
            places,
            self._splits,
            self._bases,
            self._running_arrivals_ms,
        )


# ---- combining chunks --------------------------------------------------------------------------------------


def _in_split_order(values: Iterable[Any]) -> list[Any]:
    # Python orders strings as their UTF-8 bytes.
    try:
        return sorted(values, key=lambda value: (value is not None, value))
    except TypeError as error:
        raise SchemaError(f"the split column has values of different types: {error}") from error


def _in_log_order(chunks: Iterable[ChunkTimes]) -> list[ChunkTimes]:
    ordered = sorted(chunks, key=lambda chunk: chunk.index)
    for before, chunk in pairwise(ordered):
        if before.index == chunk.index:
            raise DataError(f"chunk {chunk.index} comes twice; combine the times of each chunk once")
    return ordered


class _LogTimes:
    """The columns of SplitTimes, as they are after the chunks so far."""

    def __init__(self, values: list[Any]) -> None:
        self.numbers = {value: number for number, value in enumerate(values)}
        self.rows, self.events, self.regressions, self.recorded_arrival_ms = np.zeros(
            (4, len(values)), np.int64
        )
        self.first_arrival_ms = np.full(len(values), MAX_TIMESTAMP)
        self.last_arrival_ms = np.full(len(values), MIN_TIMESTAMP)
        self.min_timestamp_ms = np.full(len(values), MAX_TIMESTAMP)
        self.max_timestamp_ms = np.full(len(values), MIN_TIMESTAMP)

    def add(self, chunk: ChunkTimes, *, check_bases: bool) -> tuple[Int32s, Int64s, Int64s]:
        """Add a chunk; the numbers of its splits, and their rows and last arrivals before it."""
        splits = np.array([self.numbers[value] for value in chunk.split_values], np.int32)
        bases, arrivals_before = self.rows[splits], self.last_arrival_ms[splits]
        if check_bases and not np.array_equal(bases, chunk.bases):
            raise DataError(
                f"the arrivals of chunk {chunk.index} were not counted on from the chunks before; build its "
                "times with the bases that position_bases gives"
            )
        self.rows[splits] += chunk.rows
        live = chunk.times["events"] > 0
        of_chunk = {name: column[live] for name, column in chunk.times.items()}
        at = splits[live]
        again = self.events[at] > 0
        went_back = again & (of_chunk["first_arrival_ms"] < self.recorded_arrival_ms[at])
        self.regressions[at] += of_chunk["regressions"] + went_back
        self.first_arrival_ms[at] = np.where(again, self.first_arrival_ms[at], of_chunk["first_arrival_ms"])
        self.recorded_arrival_ms[at] = of_chunk["recorded_arrival_ms"]
        self.last_arrival_ms[at] = np.maximum(self.last_arrival_ms[at], of_chunk["last_arrival_ms"])
        self.min_timestamp_ms[at] = np.minimum(self.min_timestamp_ms[at], of_chunk["min_timestamp_ms"])
        self.max_timestamp_ms[at] = np.maximum(self.max_timestamp_ms[at], of_chunk["max_timestamp_ms"])
        self.events[at] += of_chunk["events"]
        return splits, bases, arrivals_before


def _merge(
    chunks: list[ChunkTimes],
    splits: list[Int32s],
    log: _LogTimes,
    generator: GeneratorSpec,
    interval_ms: int,
) -> tuple[Timeline, Int64s, list[Int64s]]:
    # The timeline, the final watermarks, and the idle spans as columns; there is at least one event.
    live = log.events > 0
    last_arrival_ms = int(log.last_arrival_ms[live].max())
    merge = SplitMerge(
        splits=len(log.numbers),
        out_of_orderness_ms=generator.out_of_orderness_ms,
        idleness_ms=generator.idleness_ms,
        interval_ms=interval_ms,
        first_arrival_ms=int(log.first_arrival_ms[live].min()),
    )
    for chunk, numbers in zip(chunks, splits, strict=True):
        merge.add_chunk(
            numbers,
            chunk.times["events"],
            chunk.times["first_arrival_ms"],
            chunk.times["last_arrival_ms"],
            chunk.times["max_timestamp_ms"],
            chunk.records["split"],
            chunk.records["kind"],
            chunk.records["first"],
            chunk.records["second"],
        )
    clocks, channels, kinds, timestamps = merge.finish(last_arrival_ms)
    valve = StatusWatermarkValve(len(log.numbers))
    causes, outputs, watermarks = valve.input_batch(channels, kinds, timestamps)
    steps = outputs == WATERMARK_KIND
    timeline = Timeline(
        np.append(clocks[causes[steps]], MAX_TIMESTAMP), np.append(watermarks[steps], MAX_TIMESTAMP)
    )
    return timeline, merge.final_watermarks(), _idle_spans(clocks, channels, kinds, last_arrival_ms)


def _idle_spans(clocks: Int64s, channels: Int32s, kinds: npt.NDArray[np.int8], end_ms: int) -> list[Int64s]:
    statuses = np.flatnonzero(kinds != WATERMARK_KIND)
    statuses = statuses[np.argsort(channels[statuses], kind="stable")]
    begins = np.flatnonzero(kinds[statuses] == IDLE_KIND)
    # A split is idle until its next status, which is active; after that of the last split nothing follows.
    splits = np.append(channels[statuses], -1).astype(np.int64)
    until = np.append(clocks[statuses], end_ms)
    until = np.where(splits[begins + 1] == splits[begins], until[begins + 1], end_ms)
    return [splits[begins], clocks[statuses[begins]], until]


def combine(
    chunks: Iterable[ChunkTimes],
    generator: GeneratorSpec,
    interval_ms: int,
    *,
    rate: ArrivalRate | None = None,
) -> TimePlane:
    """The time plane of a log.

    Every split has a generator and an operator of its own, on its channel of one valve. All operators are
    opened one interval before the first tick that sees an event of the log, so that a split without events
    holds the watermark back from then on, unless it is idle. After the last arrival, each split emits what is
    pending, in split order, and then comes the end of time.

    Follows TimestampsAndWatermarksOperator and StatusWatermarkValve of Flink 2.3; ticks lie on the multiples
    of the interval, where Flink counts on from the opening.

    Parameters
    ----------
    chunks : iterable of ChunkTimes
        Of all chunks of the log, in any order, built with the same generator, interval and rate.
    generator : GeneratorSpec
    interval_ms : int
        The auto-watermark interval, from 0 to 2**60.
    rate : ArrivalRate or None
        Where the log records no arrivals.

    Raises
    ------
    DataError
        If a chunk comes twice, or was not given the position bases that its arrivals by rate need.
    SchemaError
        If the values of the splits cannot be ordered.
    """
    ordered = _in_log_order(chunks)
    values = _in_split_order({value for chunk in ordered for value in chunk.split_values})
    log = _LogTimes(values)
    starts = [log.add(chunk, check_bases=rate is not None) for chunk in ordered]
    timeline = Timeline(np.array([MAX_TIMESTAMP]), np.array([MAX_TIMESTAMP]))
    final_watermarks = np.full(len(values), MIN_TIMESTAMP)
    spans = [np.empty(0, np.int64) for _ in range(3)]
    if log.events.any():
        splits = [splits for splits, _, _ in starts]
        timeline, final_watermarks, spans = _merge(ordered, splits, log, generator, interval_ms)
    return TimePlane(
        timeline=timeline,
        splits=SplitTimes(
            values=values,
            rows=log.rows,
            events=log.events,
            regressions=log.regressions,
            first_arrival_ms=log.first_arrival_ms,
            last_arrival_ms=log.last_arrival_ms,
            min_timestamp_ms=log.min_timestamp_ms,
            max_timestamp_ms=log.max_timestamp_ms,
            final_watermark_ms=final_watermarks,
            idle_split=spans[0],
            idle_from_ms=spans[1],
            idle_to_ms=spans[2],
        ),
        starts=ChunkStarts(
            chunks=np.array([chunk.index for chunk in ordered], np.int64),
            rows_read=np.array([chunk.rows_read for chunk in ordered], np.int64),
            offsets=np.cumsum([0, *(len(splits) for splits, _, _ in starts)], dtype=np.int64),
            split=np.concatenate([np.empty(0, np.int32), *(splits for splits, _, _ in starts)]),
            base=np.concatenate([np.empty(0, np.int64), *(bases for _, bases, _ in starts)]),
            arrival_ms=np.concatenate([np.empty(0, np.int64), *(arrivals for _, _, arrivals in starts)]),
        ),
        floors=_floors(ordered),
        rate=rate,
    )


def _floors(chunks: list[ChunkTimes]) -> ArrivalFloors:
    arrivals = np.concatenate([np.empty(0, np.int64), *(chunk.floors["arrival_ms"] for chunk in chunks)])
    return ArrivalFloors(
        chunk=np.repeat(
            [chunk.index for chunk in chunks], [len(chunk.floors["rows"]) for chunk in chunks]
        ).astype(np.int64),
        rows=np.concatenate([np.empty(0, np.int64), *(chunk.floors["rows"] for chunk in chunks)]),
        arrival_ms=np.minimum.accumulate(arrivals[::-1])[::-1],
    )
