"""Rows that Flink's deduplications keep: one of each key."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore.savepoints.keyed_types import KeyedTypes
from flinkcore.savepoints.serializers import basic
from flinkcore.savepoints.sql.names import EMITTED, KEPT_ROW, TIMERS, USER_TIMERS, WAITING_ROW
from flinkcore.savepoints.sql.row_layout import (
    Entries,
    PartTables,
    Restored,
    RowLayout,
    SavepointTables,
    key_columns,
)

_KEPT = "kept"


class LastRow(RowLayout):
    """The last row of each key.

    Notes
    -----
    Flink's ``RowTimeDeduplicateFunction`` and ``ProcTimeDeduplicateKeepLastRowFunction``.
    """

    def states(self) -> Mapping[str, KeyedTypes]:
        return {KEPT_ROW: self.types("VALUE", self.inputs[0])}

    def written(self, name: str, tables: PartTables) -> Entries | None:
        kept = tables.read(_KEPT)
        return None if kept is None else {"key": tables.keys(kept), "value": tables.rows(kept)}

    def restored(self, found: SavepointTables) -> Restored:
        rows = found.read(KEPT_ROW)
        return {_KEPT: [] if rows is None else [_kept(found, rows, has_row=True)]}


class FirstRow(RowLayout):
    """The first row of each key, which waits for the watermark, or that it has been emitted.

    Notes
    -----
    Flink's ``RowTimeDeduplicateKeepFirstRowFunction``.
    """

    def states(self) -> Mapping[str, KeyedTypes]:
        return {
            WAITING_ROW: self.types("VALUE", self.inputs[0]),
            EMITTED: self.types("VALUE", basic.BOOLEAN),
            USER_TIMERS: self.types("TIMERS"),
        }

    def written(self, name: str, tables: PartTables) -> Entries | None:
        kept = tables.read(_KEPT)
        if kept is None:
            return None
        has_row = kept.column("has_row")
        kept = kept.filter(has_row if name != EMITTED else pc.invert(has_row))
        keys = {"key": tables.keys(kept)}
        if name == USER_TIMERS:
            return {**keys, "timestamp_ms": kept.column("timestamp")}
        value = tables.rows(kept) if name == WAITING_ROW else pa.repeat(pa.scalar(True), kept.num_rows)
        return {**keys, "value": value}

    def restored(self, found: SavepointTables) -> Restored:
        waiting, emitted = found.read(WAITING_ROW), found.read(EMITTED)
        tables: Restored = {_KEPT: [], TIMERS: []}
        if waiting is not None:
            kept = _kept(found, waiting, has_row=True)
            tables[_KEPT].append(kept)
            due = {"timestamp_ms": kept["timestamp"], "namespace": _zeros(waiting)}
            tables[TIMERS].append({**key_columns(waiting), **due})
        if emitted is not None:
            tables[_KEPT].append(_kept(found, emitted, has_row=False))
        return tables


class EmittedKey(RowLayout):
    """Keys whose first row by arrival has been emitted.

    Notes
    -----
    Flink's ``ProcTimeDeduplicateKeepFirstRowFunction``.
    """

    def states(self) -> Mapping[str, KeyedTypes]:
        return {KEPT_ROW: self.types("VALUE", basic.BOOLEAN)}

    def written(self, name: str, tables: PartTables) -> Entries | None:
        kept = tables.read(_KEPT)
        if kept is None:
            return None
        return {"key": tables.keys(kept), "value": pa.repeat(pa.scalar(True), kept.num_rows)}

    def restored(self, found: SavepointTables) -> Restored:
        emitted = found.read(KEPT_ROW)
        return {_KEPT: [] if emitted is None else [_kept(found, emitted, has_row=False)]}


def _kept(found: SavepointTables, entries: pa.RecordBatch, *, has_row: bool) -> dict[str, pa.Array]:
    rows = entries.column("value") if has_row else None
    return {
        **key_columns(entries),
        **found.row_columns(rows, entries.num_rows),
        "timestamp": _zeros(entries) if rows is None else found.rowtimes(rows),
    }


def _zeros(entries: pa.RecordBatch) -> pa.Array:
    return pa.array(np.zeros(entries.num_rows, np.int64))
