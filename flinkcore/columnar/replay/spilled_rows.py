"""Events of an operator in a temporary file, in the order in which they came."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from typing import Any, Final

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.arrays import RowNumbers
from flinkcore._internal.arrow.joined_batches import joined
from flinkcore._internal.io.spilled_batches import SpilledBatches
from flinkcore.columnar.stages.partial_results import MergedPartials
from flinkcore.columnar.stages.placed_events import PlacedEvents
from flinkcore.time_plane.total_order import Events, TimelineEvents

PIECE_BYTES: Final = 1 << 20
"""About the size of a piece of the file."""

Rows = tuple[Events | MergedPartials, RowNumbers | None]


class SpilledRows:
    """Rows of events that wait in a file.

    Parameters
    ----------
    batches : SpilledBatches
        The file.
    piece_bytes : int
        Rows are written once they take so many bytes.
    """

    def __init__(self, batches: SpilledBatches, piece_bytes: int = PIECE_BYTES) -> None:
        self._batches = batches
        self._piece_bytes = piece_bytes
        self._held: list[Events] = []
        self._held_bytes = 0
        self._pieces: list[Callable[[], Rows]] = []

    def add(self, events: Events | MergedPartials, rows: RowNumbers) -> None:
        """Add rows of events, in the given order; a SourceError if the file cannot be written."""
        if not len(rows):
            return
        if isinstance(events, MergedPartials):
            self._write_held()
            self._write_merged(events, rows)
            return
        self._held.append(events.take(rows))
        self._held_bytes += int(self._held[-1].batch.nbytes)
        if self._held_bytes >= self._piece_bytes:
            self._write_held()

    def read(self) -> Iterator[Rows]:
        """Yield all events with their rows in order, None where they lie so."""
        for piece in self._pieces:
            yield piece()
        if self._held:
            yield _concatenated(self._held), None

    def _write_held(self) -> None:
        if self._held:
            read = self._written(_concatenated(self._held))
            self._pieces.append(lambda: (read(), None))
            self._held, self._held_bytes = [], 0

    def _write_merged(self, merged: MergedPartials, rows: RowNumbers) -> None:
        events, n_events = merged.events, merged.events.batch.num_rows
        are_partials = rows >= n_events
        own, partials = rows[~are_partials], rows[are_partials]
        order = np.empty(len(rows), np.uint32)
        order[~are_partials] = np.arange(len(own))
        order[are_partials] = np.arange(len(own), len(rows))
        read_own = self._written(events.take(own))
        assert isinstance(events, TimelineEvents)
        columns = (getattr(events, field.name)[partials] for field in fields(events)[1:])
        batch = merged.partials.take(pa.array(partials - np.uint32(n_events)))
        read_partials = self._written(TimelineEvents(batch, *columns))

        def read() -> Rows:
            first, second = read_own(), read_partials()
            times = (
                np.concatenate((getattr(first, field.name), getattr(second, field.name)))
                for field in fields(TimelineEvents)[1:]
            )
            return MergedPartials(TimelineEvents(first.batch, *times), second.batch), order

        self._pieces.append(read)

    def _written(self, events: Events) -> Callable[[], Events]:
        """Write events, and return what reads them again."""
        kind, schema = type(events), events.batch.schema
        columns = _hidden_columns(events)
        packed = [*events.batch.columns, *map(pa.array, columns)]
        place = self._batches.append(pa.RecordBatch.from_arrays(packed, list(map(str, range(len(packed))))))

        def read() -> Events:
            found = self._batches.read(place).columns
            batch = pa.RecordBatch.from_arrays(found[: len(schema)], schema=schema)
            return _of_columns(kind, batch, [column.to_numpy() for column in found[len(schema) :]])

        return read


def _hidden_columns(events: Events) -> list[Any]:
    if isinstance(events, PlacedEvents):
        return [events.inputs, events.timestamps, *events.order]
    return [getattr(events, field.name) for field in fields(events)[1:]]


def _of_columns(kind: type[Events], batch: pa.RecordBatch, columns: Sequence[Any]) -> Events:
    if kind is PlacedEvents:
        inputs, timestamps, *order = columns
        return PlacedEvents.of(batch, timestamps, tuple(order), inputs)
    return kind(batch, *columns)


def _concatenated(parts: Sequence[Events]) -> Events:
    if len(parts) == 1:
        return parts[0]
    columns = [np.concatenate(together) for together in zip(*map(_hidden_columns, parts), strict=True)]
    return _of_columns(type(parts[0]), joined([part.batch for part in parts]), columns)
