"""Rows of Flink's OVER whose frames are bounded: those that wait for the watermark, and those in a frame."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore.columnar.relational.frame_aggregates import FRAMES, FrameAggregates
from flinkcore.savepoints.keyed_types import KeyedTypes
from flinkcore.savepoints.serializers import basic
from flinkcore.savepoints.sql.names import CLEAN_UP_TIME, LAST_TIME, PENDING_ROWS, USER_TIMERS
from flinkcore.savepoints.sql.pending_rows import PENDING, TIMES, PendingRows
from flinkcore.savepoints.sql.row_layout import (
    Restored,
    SavepointTables,
    exploded,
    key_columns,
    place_ids,
    places_among,
    rows_of,
)


class FrameRows(PendingRows):
    """Rows by their time, and the time of the last ones that came up, up to which rows are in a frame.

    The accumulators of frames are made of their rows again, whatever Flink has for them.

    Notes
    -----
    Flink's ``RowTimeRowsBoundedPrecedingFunction`` and ``RowTimeRangeBoundedPrecedingFunction``.
    """

    def states(self) -> Mapping[str, KeyedTypes]:
        times = (LAST_TIME,) if self.state.frame_ms is None else (LAST_TIME, CLEAN_UP_TIME)
        return {**super().states(), **{name: self.types("VALUE", basic.LONG) for name in times}}

    def restored(self, found: SavepointTables) -> Restored:
        entries, last = found.read(PENDING_ROWS), found.read(LAST_TIME)
        restored: Restored = {FRAMES: [], PENDING: [], TIMES: []}
        if entries is not None:
            entries, rows = exploded(entries)
            times = entries.column("map_key").to_numpy()
            has_come = times <= _values_of(last, entries)
            waits = pa.array(~has_come)
            columns = {
                **key_columns(entries.filter(waits)),
                **found.row_columns(rows.filter(waits), int((~has_come).sum())),
                "timestamp": pa.array(times[~has_come]),
            }
            restored[PENDING].append(columns)
            if has_come.any():
                came = pa.array(has_come)
                restored[FRAMES].append(self._frames(found, entries.filter(came), rows.filter(came)))
        if self.state.frame_ms is not None:
            restored[PENDING] += _clean_ups(found, entries)
        if last is not None:
            clean_up = found.read(CLEAN_UP_TIME) if self.state.frame_ms is not None else None
            cleanup = pa.array(_values_of(clean_up, last))
            restored[TIMES].append({**key_columns(last), "last": last.column("value"), "cleanup": cleanup})
        return restored

    def _frames(self, found: SavepointTables, entries: pa.RecordBatch, rows: pa.Array) -> dict[str, pa.Array]:
        """Return the frames of keys, made of their rows in the order of time."""
        ids, _ = place_ids(*key_columns(entries).values())
        times = entries.column("map_key").to_numpy()
        order = np.lexsort((times, ids))
        batch = rows_of(found.row_columns(rows, entries.num_rows)).take(pa.array(order))
        frames = FrameAggregates(
            batch.schema,
            [each[1:] for each in found.operator.aggregates.aggregates],
            rows=self.state.frame_rows,
            range_ms=self.state.frame_ms,
            peers=self.state.frame_ms is not None,
        )
        frames.process(batch, ids[order].astype(np.uint32), times[order], emits=False)
        held = dict(frames.snapshot())
        firsts = np.unique(ids, return_index=True)[1][held.pop("key")]
        keys = key_columns(entries.take(pa.array(firsts)))
        return {
            **keys,
            **{name: each if isinstance(each, pa.Array) else pa.array(each) for name, each in held.items()},
        }


def _values_of(values: pa.RecordBatch | None, entries: pa.RecordBatch) -> Int64s:
    """Return the value of the key of each entry; -2**63 without one."""
    if values is None:
        return np.full(entries.num_rows, MIN_TIMESTAMP)
    places = places_among([*key_columns(entries).values()], [*key_columns(values).values()])
    return np.where(places < 0, MIN_TIMESTAMP, values.column("value").to_numpy()[places])


def _clean_ups(found: SavepointTables, entries: pa.RecordBatch | None) -> list[dict[str, pa.Array]]:
    """Return the times of clean-up that wait: those of timers at which no row does."""
    due = found.read(USER_TIMERS)
    if due is None:
        return []
    times = due.column("timestamp_ms")
    if entries is not None:
        of_rows = [*key_columns(entries).values(), entries.column("map_key")]
        due = due.filter(pa.array(places_among([*key_columns(due).values(), times], of_rows) < 0))
    columns = {**key_columns(due), **found.row_columns(None, due.num_rows)}
    return [{**columns, "timestamp": due.column("timestamp_ms")}]
