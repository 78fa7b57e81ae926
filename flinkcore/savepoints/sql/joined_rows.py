"""Rows that Flink's joins keep until rows of the other input match them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore.savepoints.keyed_types import KeyedTypes
from flinkcore.savepoints.serializers import basic
from flinkcore.savepoints.serializers.composite import ListSerializer, TupleSerializer
from flinkcore.savepoints.sql.names import (
    INTERVAL_CACHES,
    INTERVAL_TIMERS,
    JOINED_RECORDS,
    TIMERS,
    USER_TIMERS,
    WINDOW_TIMERS,
)
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

_SIDES: Final = ("left", "right")
_CLEAN_UP: Final = "clean_up"


class IntervalJoinRows(RowLayout):
    """Rows of both inputs by their time, whether each has matched, and the times of clean-up.

    Notes
    -----
    Flink's ``RowTimeIntervalJoin``. It also keeps rows whose key is null, which match nothing, and marks rows that
    have matched even if that makes no difference.
    """

    def states(self) -> Mapping[str, KeyedTypes]:
        return {
            **{
                name: self.types("MAP", ListSerializer((TupleSerializer((row, basic.BOOLEAN)),)), basic.LONG)
                for name, row in zip(INTERVAL_CACHES, self.inputs, strict=True)
            },
            **{name: self.types("VALUE", basic.LONG) for name in INTERVAL_TIMERS},
            USER_TIMERS: self.types("TIMERS"),
        }

    def written(self, name: str, tables: PartTables) -> Entries | None:
        if name in INTERVAL_CACHES:
            number = INTERVAL_CACHES.index(name)
            kept = tables.read(_SIDES[number])
            if kept is None:
                return None
            elements = pa.StructArray.from_arrays(
                [tables.rows(kept, number), kept.column("matched")], ["f0", "f1"]
            )
            return grouped({"key": tables.keys(kept), "map_key": kept.column("time")}, elements)
        due = tables.read(_CLEAN_UP)
        if due is None:
            return None
        if name in INTERVAL_TIMERS:
            due = due.filter(pc.equal(due.column("input"), INTERVAL_TIMERS.index(name)))
            return {"key": tables.keys(due), "value": due.column("time")}
        keys, times = tables.keys(due), due.column("time")
        firsts = pa.array(place_ids(keys, times)[1])
        return {"key": keys.take(firsts), "timestamp_ms": times.take(firsts)}

    def restored(self, found: SavepointTables) -> Restored:
        restored: Restored = {_CLEAN_UP: [], TIMERS: []}
        for number, side in enumerate(_SIDES):
            entries, due = found.read(INTERVAL_CACHES[number]), found.read(INTERVAL_TIMERS[number])
            restored[side] = []
            if entries is not None:
                entries, elements = exploded(entries)
                columns = found.row_columns(elements.field(0), entries.num_rows, number)
                restored[side].append(
                    {
                        **key_columns(entries),
                        **columns,
                        "time": entries.column("map_key"),
                        "matched": elements.field(1),
                        "can_match": can_match(entries, nulls_equal=self.state.nulls_equal),
                    }
                )
            if due is not None:
                keys, times = key_columns(due), due.column("value")
                inputs = pa.array(np.full(due.num_rows, number))
                restored[_CLEAN_UP].append({**keys, "input": inputs, "time": times})
                restored[TIMERS].append({**keys, "timestamp_ms": times, "namespace": inputs})
        return restored


class WindowJoinRows(RowLayout):
    """Rows of both inputs by the end of their window.

    Notes
    -----
    Flink's ``WindowJoinOperator``.
    """

    def states(self) -> Mapping[str, KeyedTypes]:
        return {
            **{
                name: self.types("LIST", row, namespace=basic.LONG)
                for name, row in zip(JOINED_RECORDS, self.inputs, strict=True)
            },
            WINDOW_TIMERS: self.types("TIMERS", namespace=basic.LONG),
        }

    def written(self, name: str, tables: PartTables) -> Entries | None:
        if name == WINDOW_TIMERS:
            due = tables.read(TIMERS)
            if due is None:
                return None
            times = due.column("timestamp_ms")
            return {"key": tables.keys(due), "namespace": pc.add(times, 1), "timestamp_ms": times}
        number = JOINED_RECORDS.index(name)
        kept = tables.read(_SIDES[number])
        if kept is None:
            return None
        ends = kept.column("time")
        return grouped({"key": tables.keys(kept), "namespace": ends}, tables.rows(kept, number, ends))

    def restored(self, found: SavepointTables) -> Restored:
        restored: Restored = {TIMERS: []}
        for number, side in enumerate(_SIDES):
            entries = found.read(JOINED_RECORDS[number])
            restored[side] = []
            if entries is None:
                continue
            entries, rows = exploded(entries)
            n = entries.num_rows
            restored[side].append(
                {
                    **key_columns(entries),
                    **found.row_columns(rows, n, number),
                    "time": entries.column("namespace"),
                    "matched": pa.repeat(pa.scalar(False), n),
                    "can_match": can_match(entries, nulls_equal=self.state.nulls_equal),
                }
            )
        due = found.read(WINDOW_TIMERS)
        if due is not None:
            times = {
                "timestamp_ms": due.column("timestamp_ms"),
                "namespace": pa.array(np.zeros(due.num_rows, np.int64)),
            }
            restored[TIMERS].append({**key_columns(due), **times})
        return restored


class RegularJoinRows(RowLayout):
    """Rows of both inputs, each with how many times it is there, and those of an outer input with their matches.

    Notes
    -----
    Flink's ``StreamingJoinOperator``, whose inputs have no unique key: ``JoinRecordStateViews`` and
    ``OuterJoinRecordStateViews``. Flink counts the matches of a row; of rows that do not change it matters only
    whether there is one.
    """

    def states(self) -> Mapping[str, KeyedTypes]:
        counts = TupleSerializer((basic.INT, basic.INT))
        return {
            name: self.types("MAP", counts if is_outer else basic.INT, row)
            for name, row, is_outer in zip(JOINED_RECORDS, self.inputs, self.state.outer, strict=True)
        }

    def written(self, name: str, tables: PartTables) -> Entries | None:
        number = JOINED_RECORDS.index(name)
        kept = tables.read(_SIDES[number])
        if kept is None:
            return None
        keys, rows = tables.keys(kept), tables.rows(kept, number)
        ids, firsts = place_ids(keys, rows)
        value = pa.array(np.bincount(ids).astype(np.int32))
        chosen = pa.array(firsts)
        if self.state.outer[number]:
            matches = kept.column("matched").take(chosen).cast(pa.int32())
            value = pa.StructArray.from_arrays([value, matches], ["f0", "f1"])
        return {"key": keys.take(chosen), "map_key": rows.take(chosen), "value": value}

    def restored(self, found: SavepointTables) -> Restored:
        restored: Restored = {}
        for number, side in enumerate(_SIDES):
            entries, is_outer = found.read(JOINED_RECORDS[number]), self.state.outer[number]
            restored[side] = []
            if entries is None:
                continue
            counts = entries.column("value").field(0) if is_outer else entries.column("value")
            entries = entries.take(pa.array(np.repeat(np.arange(entries.num_rows), counts.to_numpy())))
            # Flink also keeps rows that can match nothing.
            entries = entries.filter(can_match(entries, nulls_equal=self.state.nulls_equal))
            n = entries.num_rows
            matched = pa.repeat(pa.scalar(False), n)
            if is_outer:
                matched = pc.greater(entries.column("value").field(1), 0)
            restored[side].append(
                {
                    **key_columns(entries),
                    **found.row_columns(entries.column("map_key"), n, number),
                    "time": pa.array(np.zeros(n, np.int64)),
                    "matched": matched,
                    "can_match": pa.repeat(pa.scalar(True), n),
                }
            )
        return restored


def can_match(entries: pa.RecordBatch, *, nulls_equal: bool) -> pa.Array:
    """Return whether the key of each entry can equal another one."""
    found = pa.repeat(pa.scalar(True), entries.num_rows)
    for name in entries.schema.names:
        if name.startswith("key.") and not nulls_equal:
            found = pc.and_(found, entries.column(name).is_valid())
    return found
