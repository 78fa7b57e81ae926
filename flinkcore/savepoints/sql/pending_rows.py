"""Rows that wait in Flink's OVER, or to be sorted, until the watermark comes to their time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import pyarrow as pa

from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore.savepoints.keyed_types import KeyedTypes
from flinkcore.savepoints.serializers import basic
from flinkcore.savepoints.serializers.composite import ListSerializer
from flinkcore.savepoints.sql.names import LAST_TIME, PENDING_ROWS, SORTED_ROWS, USER_TIMERS
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

PENDING = "pending"
TIMES = "times"


class PendingRows(RowLayout):
    """Rows by their time, beside the accumulators of their keys.

    Notes
    -----
    Flink's ``RowTimeRowsUnboundedPrecedingFunction`` and ``RowTimeRangeUnboundedPrecedingFunction``.
    """

    rows_state: ClassVar[str] = PENDING_ROWS

    def states(self) -> Mapping[str, KeyedTypes]:
        return {
            self.rows_state: self.types("MAP", ListSerializer((self.inputs[0],)), basic.LONG),
            USER_TIMERS: self.types("TIMERS"),
        }

    def written(self, name: str, tables: PartTables) -> Entries | None:
        pending = tables.read(PENDING)
        if pending is None:
            return None
        keys, times = tables.keys(pending), pending.column("timestamp")
        if name == self.rows_state:
            return grouped({"key": keys, "map_key": times}, tables.rows(pending))
        firsts = pa.array(place_ids(keys, times)[1])
        return {"key": keys.take(firsts), "timestamp_ms": times.take(firsts)}

    def restored(self, found: SavepointTables) -> Restored:
        entries = found.read(self.rows_state)
        if entries is None:
            return {PENDING: []}
        entries, rows = exploded(entries)
        columns = {**key_columns(entries), **found.row_columns(rows, entries.num_rows)}
        return {PENDING: [{**columns, "timestamp": entries.column("map_key")}]}


class SortedRows(PendingRows):
    """Rows that wait to be sorted, and the time of the last ones that were.

    Notes
    -----
    Flink's ``RowTimeSortOperator``.
    """

    rows_state = SORTED_ROWS

    def states(self) -> Mapping[str, KeyedTypes]:
        return {**super().states(), LAST_TIME: self.types("VALUE", basic.LONG)}

    def written(self, name: str, tables: PartTables) -> Entries | None:
        if name != LAST_TIME:
            return super().written(name, tables)
        times = tables.read(TIMES)
        return None if times is None else {"key": tables.keys(times), "value": times.column("last")}

    def restored(self, found: SavepointTables) -> Restored:
        restored, last = super().restored(found), found.read(LAST_TIME)
        if last is not None:
            no_clean_up = pa.array(np.full(last.num_rows, MIN_TIMESTAMP))
            times = {**key_columns(last), "last": last.column("value"), "cleanup": no_clean_up}
            restored[TIMES] = [times]
        return restored
