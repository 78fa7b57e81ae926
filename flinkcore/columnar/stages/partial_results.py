"""Partial results: made of events in the order in which tasks read them, and merged with events in the total order.

map task                                          reduce task
events ── before their pane fires ─▶ EventMerger ─▶ PartialResults ─┐
       └─ all others ─────────────────────────────▶ LogEvents ──────┴─▶ MergedPartials ─▶ WindowStage
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s, RowNumbers
from flinkcore._internal.arrow.column_ops import HIDDEN_PREFIX
from flinkcore._internal.arrow.joined_batches import joined
from flinkcore._internal.values.memory_limits import BATCH_BYTES
from flinkcore._native.aggregates import Accumulators
from flinkcore._native.arrow import RecordBatch
from flinkcore._native.exchange import total_order
from flinkcore._native.keys import KeyEncoder
from flinkcore._native.packed_steps import StepPacker
from flinkcore._native.time_windows import different_panes, rows_before_firing
from flinkcore._native.window_operator import WindowOperator
from flinkcore.columnar.operator_plans.partial_windows import PartialWindows
from flinkcore.columnar.relational.accumulator_columns import accumulator_columns, restore_accumulators
from flinkcore.time_plane.timeline import Timeline
from flinkcore.time_plane.total_order import Events, LogEvents, TimelineEvents, TotalOrderMerge, concatenate

KEY: Final = "key."
EVENTS: Final = "events"
_PLACES: Final = tuple(HIDDEN_PREFIX + name for name in ("arrivals", "splits", "positions"))

_NO_STEPS: Final = StepPacker().finish()

Place: TypeAlias = tuple[int, int, int]
Ordered: TypeAlias = tuple[TimelineEvents, RowNumbers | None]


@dataclass(frozen=True)
class PartialResults(LogEvents):
    """Partial results with the places of the first of their events in the total order of the replay.

    The columns are the keys as `key.NAME`, the number of `events`, and what the aggregates hold, as
    `accumulator_columns` names it; the timestamps are the last ones of the panes. What `last` holds stands apart, where
    the last of the events does, with nothing else and no events.
    """

    @property
    def events(self) -> Int64s:
        """The number of events of each partial result."""
        events: Int64s = self.batch.column(EVENTS).to_numpy()
        return events


def partial_schema(windows: PartialWindows) -> pa.Schema:
    """Return the columns of partial results of windows."""
    _, accumulators = windows.native()
    parts = _as_integers(accumulator_columns(accumulators, np.empty(0, np.uint32)))
    return pa.schema(
        [
            *(pa.field(KEY + field.name, field.type) for field in windows.key_fields),
            pa.field(EVENTS, pa.int64()),
            *(pa.field(name, column.type) for name, column in parts.items()),
        ]
    )


def _as_integers(columns: dict[str, pa.Array]) -> dict[str, pa.Array]:
    # Words are exchanged as signed integers, which are stored narrowly.
    return {
        name: column.view(pa.int64()) if pa.types.is_uint64(column.type) else column
        for name, column in columns.items()
    }


# ---- made ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MergeLimits:
    """Limits of merging, by events and by memory; picklable.

    Attributes
    ----------
    judged_rows : int
        So many events of a chunk show how many of them partial results have.
    least_events : float
        Events of a partial result, on average, below which events are not merged: it has more columns than an event.
    most_bytes : int
        Partial results are sent when they hold more.
    sent_rows : int
        Events that are not merged are sent when there are so many.
    """

    judged_rows: int = 1 << 17
    least_events: float = 4.0
    most_bytes: int = 64 << 20
    sent_rows: int = 1 << 15

    @property
    def rows_at_once(self) -> int:
        """Events that are merged between two looks at the memory: each may open a window of a key of its own."""
        return max(self.most_bytes >> 10, 1)

    def are_many(self, results: int, rows: int) -> bool:
        """Return whether there are too many partial results for the events that they are made of."""
        return rows < self.least_events * results


class EventMerger:
    """Merges events of a chunk that come before their panes fire, as long as that leaves far fewer of them.

    The keys and panes of the first events decide whether any are merged. Later the number of events that the last
    partial results had decides.

    Parameters
    ----------
    windows
        Kernel that merges them.
    timeline
        Timeline of the operator to which they come.
    limits
        Limits by events and by memory.

    Attributes
    ----------
    merges : bool
        Whether more events will be merged.
    """

    def __init__(self, windows: PartialWindows, timeline: Timeline, limits: MergeLimits) -> None:
        operator, schema = windows.operator, windows.events
        self.merges = True
        self._limits = limits
        self._windows = windows
        self._timeline = timeline
        self._keys = list(windows.key.names)
        self._columns = operator.columns_read(schema, self._keys)
        types = zip(_PLACES, (pa.int64(), pa.int32(), pa.int64()), strict=True)
        self._schema = pa.schema(
            [*(schema.field(name) for name in self._columns), *(pa.field(*place) for place in types)]
        )
        specs = [each.spec for _, each in operator.aggregates]
        self._own = len(specs)
        self._lasts = {str(number) for number, spec in enumerate(specs) if spec[0] == "last"}
        self._specs: list[tuple[str, str | None, str | None, float | None]] = [
            *specs,
            ("count", None, None, None),
            *(("first", place, None, None) for place in _PLACES),
        ]
        if self._lasts:
            self._specs += [("last", place, None, None) for place in _PLACES]
        self._kernel, _ = windows.native()
        self._panes = windows.panes
        self._encoder = KeyEncoder(self._schema, self._keys, windows.key.nulls)
        self._partial_schema = partial_schema(windows)
        self._is_judged = False
        self._unmerged: list[LogEvents] = []
        self._begin()

    def _begin(self) -> None:
        self._accumulators = Accumulators(self._schema, self._specs)
        self._operator = WindowOperator(
            self._windows.pane_kernel(),
            keys=self._encoder,
            accumulators=self._accumulators,
            key_names=self._keys,
            aggregate_names=[str(number) for number in range(len(self._specs))],
            timeline=_NO_STEPS,
            row_limit=1,
            byte_limit=1,
        )
        self._last_place: Place | None = None
        self._rows = 0

    def add(self, events: LogEvents) -> Iterator[LogEvents]:
        """Take in events of the chunk.

        Yields
        ------
        LogEvents
            Events that are not merged, and partial results; as many as are to be sent now.
        """
        if not self.merges or len(events.arrivals) == 0:
            yield events
            return
        _, order = events.in_order()
        first = events.key(0 if order is None else order[0])
        if self._last_place is not None and first < self._last_place:
            yield from self._partials()
        placed = events.in_timeline(self._timeline, order)
        before, others = rows_before_firing(
            self._kernel,
            order,
            placed.timestamps,
            placed.steps,
            self._timeline.steps,
            **self._panes,
        )
        if len(before):
            batch = self._encoded(placed)
            if not self._is_judged:
                self._is_judged = True
                if self._have_many_panes(placed, before):
                    self.merges = False
                    yield events
                    return
            yield from self._merge(events, placed, batch, before)
        if len(others):
            yield from self._pass_on(events.take(others))

    def finish(self) -> Iterator[LogEvents]:
        """Yield what is left, as `add` does."""
        yield from self._partials()
        yield from self._others()

    def _have_many_panes(self, events: TimelineEvents, rows: RowNumbers) -> bool:
        """Return whether the rows have too many panes of keys to be merged; no pane is opened for that."""
        n_rows = len(rows)
        most = int(n_rows / self._limits.least_events) if self._limits.least_events else n_rows
        panes = different_panes(self._encoder, rows, events.timestamps, most=most, **self._panes)
        return self._limits.are_many(panes, n_rows)

    def _encoded(self, events: TimelineEvents) -> RecordBatch:
        """Return the columns that are merged; the encoder has encoded their keys."""
        columns = [events.batch.column(name) for name in self._columns]
        columns += map(pa.array, (events.arrivals, events.splits, events.positions))
        batch = RecordBatch(pa.RecordBatch.from_arrays(columns, schema=self._schema), any_type=True)
        self._encoder.encode_batch(batch)
        return batch

    def _merge(
        self, events: LogEvents, placed: TimelineEvents, batch: RecordBatch, rows: RowNumbers
    ) -> Iterator[LogEvents]:
        """Merge rows, as long as it pays; yield partial results whenever they hold too much."""
        at_once = self._limits.rows_at_once
        while len(rows) and self.merges:
            some, rows = rows[:at_once], rows[at_once:]
            self._operator.process(batch, self._encoder, some, placed.timestamps, placed.steps)
            self._rows += len(some)
            self._last_place = events.key(some[-1])
            if self._operator.memory_bytes() + self._accumulators.memory_bytes() > self._limits.most_bytes:
                yield from self._partials()
        if len(rows):
            yield from self._pass_on(events.take(rows))

    def _pass_on(self, events: LogEvents) -> Iterator[LogEvents]:
        self._unmerged.append(events)
        if sum(len(part.arrivals) for part in self._unmerged) >= self._limits.sent_rows:
            yield from self._others()

    def _others(self) -> Iterator[LogEvents]:
        if self._unmerged:
            yield concatenate(self._unmerged)
            self._unmerged = []

    def _partials(self) -> Iterator[LogEvents]:
        windows, entries = self._operator.windows()
        if len(entries) == 0:
            return
        self.merges = self.merges and not self._limits.are_many(len(entries), self._rows)
        rows = pa.record_batch(windows)
        keys = {
            KEY + name: column.cast(self._partial_schema.field(KEY + name).type)
            for name, column in zip(self._keys, rows.columns, strict=False)
        }
        ends = rows.column("window_end").to_numpy()
        held = _as_integers(accumulator_columns(self._accumulators, entries))
        counts, *places = (
            held.pop(f"{number}.words").to_numpy() for number in range(self._own, len(self._specs))
        )
        first, last = places[:3], places[3:]
        held = {name: column for name, column in held.items() if name in self._partial_schema.names}
        if not last:
            self._begin()
            yield self._results({**keys, EVENTS: pa.array(counts), **held}, ends, first)
            return
        self._accumulators.clear(entries)
        empty = _as_integers(accumulator_columns(self._accumulators, entries))
        self._begin()
        at_last = {name for name in held if name.partition(".")[0] in self._lasts}
        for where, events, own in (
            (first, counts, held.keys() - at_last),
            (last, np.zeros_like(counts), at_last),
        ):
            parts = {name: (held if name in own else empty)[name] for name in held}
            yield self._results({**keys, EVENTS: pa.array(events), **parts}, ends, where)

    def _results(self, columns: dict[str, pa.Array], ends: Int64s, places: list[Int64s]) -> PartialResults:
        arrivals, splits, positions = places
        batch = pa.RecordBatch.from_arrays(
            [columns[name] for name in self._partial_schema.names], schema=self._partial_schema
        )
        return PartialResults(batch, ends - 1, arrivals, splits.astype(np.int32), positions)


# ---- merged --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MergedPartials:
    """Partial results among events.

    Parameters
    ----------
    events : Events
        Its times are those of the events, and then of the partial results; its batch has the events alone.
    partials : pyarrow.RecordBatch
        The columns of `PartialResults`.
    """

    events: Events
    partials: pa.RecordBatch

    @property
    def partial_events(self) -> Int64s:
        """The number of events of each partial result."""
        events: Int64s = self.partials.column(EVENTS).to_numpy()
        return events

    @property
    def n_events(self) -> int:
        """The number of these events and of those in the partial results."""
        return int(self.events.batch.num_rows + self.partial_events.sum())


class PartialsMerge:
    """Brings events and partial results into the total order, as `TotalOrderMerge` does with events.

    Parameters
    ----------
    timeline
        Timeline of the operator to which they come.
    schema
        Columns of the events.
    batch_bytes
        As of `TotalOrderMerge`.
    """

    def __init__(self, timeline: Timeline, schema: pa.Schema, batch_bytes: int = BATCH_BYTES) -> None:
        self._events = TotalOrderMerge(timeline, most_bytes=batch_bytes)
        self._partials = TotalOrderMerge(timeline, most_bytes=batch_bytes)
        none = np.empty(0, np.int64)
        no_rows = pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)
        self._no_events = TimelineEvents(no_rows, none, none, none.astype(np.int32), none, none)

    def add(self, events: LogEvents) -> None:
        """Add events or partial results, in any order."""
        merge = self._partials if isinstance(events, PartialResults) else self._events
        merge.add(events)

    def release(self, arrival: int | None) -> Iterator[tuple[Events | MergedPartials, RowNumbers | None]]:
        """Yield all that comes before a time, in total order; see `TotalOrderMerge.release`."""
        all_events, all_partials = self._events.release(arrival), self._partials.release(arrival)
        events, partials = next(all_events, None), next(all_partials, None)
        while events is not None and partials is not None:
            until = min(_last_place(events), _last_place(partials))
            own, events = _cut(events, until)
            others, partials = _cut(partials, until)
            if others is None:
                assert own is not None
                yield own
            else:
                yield self._merged(own, others)
            events, partials = events or next(all_events, None), partials or next(all_partials, None)
        if events is not None:
            yield events
            yield from all_events
        while partials is not None:
            yield self._merged(None, partials)
            partials = next(all_partials, None)

    def close(self) -> None:
        """Release memory and files."""
        self._events.close()
        self._partials.close()

    def _merged(self, own: Ordered | None, others: Ordered) -> tuple[MergedPartials, RowNumbers]:
        events, rows = (self._no_events, None) if own is None else own
        if rows is None:
            rows = np.arange(len(events.arrivals), dtype=np.uint32)
        partials = others[0] if others[1] is None else others[0].take(others[1])
        n_events, n_partials = events.batch.num_rows, len(partials.arrivals)
        rows = np.concatenate([rows, np.arange(n_events, n_events + n_partials, dtype=np.uint32)])
        columns = [
            np.concatenate([getattr(events, name), getattr(partials, name)])
            for name in ("timestamps", "arrivals", "splits", "positions", "steps")
        ]
        at = rows.astype(np.intp)
        order = total_order(*(column[at] for column in columns[1:4]))
        merged = MergedPartials(TimelineEvents(events.batch, *columns), partials.batch)
        return merged, rows if order is None else rows[order]


def _place(ordered: Ordered, number: int) -> Place:
    events, rows = ordered
    return events.key(number if rows is None else int(rows[number]))


def _last_place(ordered: Ordered) -> Place:
    return _place(ordered, -1)


def _cut(ordered: Ordered, until: Place) -> tuple[Ordered | None, Ordered | None]:
    """Return what comes up to a place, and what comes after it."""
    events, rows = ordered
    n = len(events.arrivals) if rows is None else len(rows)
    cut = bisect_right(range(n), until, key=lambda number: _place(ordered, number))
    if cut in (0, n):
        return (ordered, None) if cut else (None, ordered)
    if rows is None:
        return (events.slice(0, cut), None), (events.slice(cut, n), None)
    return (events, rows[:cut]), (events, rows[cut:])


class PartialAccumulators:
    """Accumulators of partial results, as window operators take them in.

    Parameters
    ----------
    key_fields
        Names and types of the key columns.
    accumulators
        Accumulators of the aggregates, without entries.
    """

    def __init__(self, key_fields: Sequence[pa.Field], accumulators: Accumulators) -> None:
        self._keys = [field.name for field in key_fields]
        self._key_schema = pa.schema(key_fields)
        self._accumulators = accumulators
        self._n_restored = 0

    def restored(self, partials: pa.RecordBatch) -> Accumulators:
        """The accumulators with an entry for each partial result; those of the batch before are no longer needed."""
        n = partials.num_rows
        # Rows of key groups that wait in a file have not been taken in.
        self._accumulators.clear(np.arange(self._n_restored, dtype=np.uint32))
        self._n_restored = n
        self._accumulators.reserve(n)
        held = [name for name in partials.schema.names if name.partition(".")[0].isdecimal()]
        columns = [
            partials.column(name).view(pa.uint64())
            if name.endswith((".words", ".keys"))
            else partials.column(name)
            for name in held
        ]
        restore_accumulators(
            self._accumulators,
            np.arange(n, dtype=np.uint32),
            partials.column("touched").to_numpy(),
            pa.RecordBatch.from_arrays(columns, held),
        )
        return self._accumulators

    def keys(self, merged: MergedPartials) -> pa.RecordBatch:
        """The keys of the events and of the partial results."""
        batch, partials = merged.events.batch, merged.partials
        columns: list[Any] = [partials.column(KEY + name) for name in self._keys]
        own = pa.RecordBatch.from_arrays(columns, schema=self._key_schema)
        if batch.num_rows == 0:
            return own
        keys = pa.RecordBatch.from_arrays(
            [batch.column(name) for name in self._keys], schema=self._key_schema
        )
        return joined([keys, own])
