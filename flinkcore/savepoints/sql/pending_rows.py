"""Rows that wait in Flink's OVER until the watermark comes to their time."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from flinkcore.savepoints.keyed_types import KeyedTypes
from flinkcore.savepoints.serializers import basic
from flinkcore.savepoints.serializers.composite import ListSerializer
from flinkcore.savepoints.sql.names import PENDING_ROWS, USER_TIMERS
from flinkcore.savepoints.sql.row_layout import (
    Entries,
    PartTables,
    Restored,
    RowLayout,
    SavepointTables,
    exploded,
    grouped,
    key_columns,
    place_ids,
)

_PENDING = "pending"


class PendingRows(RowLayout):
    """Rows by their time, beside the accumulators of their keys.

    Notes
    -----
    Flink's ``RowTimeRowsUnboundedPrecedingFunction`` and ``RowTimeRangeUnboundedPrecedingFunction``.
    """

    def states(self) -> Mapping[str, KeyedTypes]:
        return {
            PENDING_ROWS: self.types("MAP", ListSerializer((self.inputs[0],)), basic.LONG),
            USER_TIMERS: self.types("TIMERS"),
        }

    def written(self, name: str, tables: PartTables) -> Entries | None:
        pending = tables.read(_PENDING)
        if pending is None:
            return None
        keys, times = tables.keys(pending), pending.column("timestamp")
        if name == PENDING_ROWS:
            return grouped({"key": keys, "map_key": times}, tables.rows(pending))
        firsts = pa.array(place_ids(keys, times)[1])
        return {"key": keys.take(firsts), "timestamp_ms": times.take(firsts)}

    def restored(self, found: SavepointTables) -> Restored:
        entries = found.read(PENDING_ROWS)
        if entries is None:
            return {_PENDING: []}
        entries, rows = exploded(entries)
        columns = {**key_columns(entries), **found.row_columns(rows, entries.num_rows)}
        return {_PENDING: [{**columns, "timestamp": entries.column("map_key")}]}
