"""Rows that Flink's joins keep until rows of the other input match them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore.columnar.relational.row_changes import identities_of
from flinkcore.datastream.graph.columnar_windows import ROW_KIND
from flinkcore.savepoints.keyed_types import KeyedTypes
from flinkcore.savepoints.serializers import basic
from flinkcore.savepoints.serializers.composite import ListSerializer, TupleSerializer
from flinkcore.savepoints.serializers.row_data import row_data
from flinkcore.savepoints.serializers.serializer import StateSerializer
from flinkcore.savepoints.sql.names import (
    INTERVAL_CACHES,
    INTERVAL_TIMERS,
    JOINED_RECORDS,
    TIMERS,
    USER_TIMERS,
    WINDOW_TIMERS,
)
from flinkcore.savepoints.sql.row_layout import (
    PREFIXES,
    Entries,
    PartTables,
    Restored,
    RowLayout,
    SavepointTables,
    exploded,
    fields_of,
    grouped,
    key_columns,
    place_ids,
    rows_of,
)
from flinkcore.sql.plan.flink_state import FlinkState

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
                    **_kept_columns(self.state, found.row_columns(rows, n, number), number),
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
    Flink's ``StreamingJoinOperator`` and ``StreamingSemiAntiJoinOperator``, with ``JoinRecordStateViews`` and
    ``OuterJoinRecordStateViews``: without a unique key rows have the number of those that are equal, with one there is
    one row for each of its values, or for the key of the join. Flink counts the matches of a row; of rows that do not
    change it matters only whether there is one.
    """

    def states(self) -> Mapping[str, KeyedTypes]:
        return {name: self._state(number) for number, name in enumerate(JOINED_RECORDS)}

    def _state(self, number: int) -> KeyedTypes:
        row, unique = self.inputs[number], self.state.unique_keys[number]
        value: StateSerializer = basic.INT if unique is None else row
        if self.state.outer[number]:
            value = TupleSerializer((value, basic.INT))
        if unique is None:
            return self.types("MAP", value, row)
        columns = self.state.inputs[number]
        map_key = row_data([columns[each][1] for each in unique], is_key=True)
        return self.types("MAP", value, map_key) if unique else self.types("VALUE", value)

    def written(self, name: str, tables: PartTables) -> Entries | None:
        number = JOINED_RECORDS.index(name)
        kept = tables.read(_SIDES[number])
        if kept is None:
            return None
        keys, rows = tables.keys(kept), tables.rows(kept, number)
        unique = self.state.unique_keys[number]
        places = rows if unique is None else fields_of(rows, unique)
        ids, chosen = place_ids(keys, places)
        value = pa.array(np.bincount(ids).astype(np.int32))
        if unique is not None:  # the last row of a key counts
            chosen[ids] = np.arange(kept.num_rows)
            value = rows.take(pa.array(chosen))
        if self.state.outer[number]:
            matches = kept.column("matches" if "matches" in kept.schema.names else "matched")
            matches = matches.take(pa.array(chosen)).cast(pa.int32())
            value = pa.StructArray.from_arrays([value, matches], ["f0", "f1"])
        entries = {"key": keys.take(pa.array(chosen)), "value": value}
        return entries if unique == () else {**entries, "map_key": places.take(pa.array(chosen))}

    def restored(self, found: SavepointTables) -> Restored:
        return {side: self._restored_side(found, number) for number, side in enumerate(_SIDES)}

    def _restored_side(self, found: SavepointTables, number: int) -> list[dict[str, pa.Array]]:
        entries, is_outer = found.read(JOINED_RECORDS[number]), self.state.outer[number]
        if entries is None:
            return []
        unique = self.state.unique_keys[number]
        value = entries.column("value").field(0) if is_outer else entries.column("value")
        if unique is None:
            entries = entries.take(pa.array(np.repeat(np.arange(entries.num_rows), value.to_numpy())))
            value = entries.column("map_key")
        # Flink also keeps rows that can match nothing.
        chosen = can_match(entries, nulls_equal=self.state.nulls_equal)
        entries, rows = entries.filter(chosen), value.filter(chosen)
        n = entries.num_rows
        matches = entries.column("value").field(1) if is_outer else pa.array(np.zeros(n, np.int32))
        columns = found.row_columns(rows, n, number)
        kept = _kept_columns(self.state, columns, number)
        there = pa.repeat(pa.scalar(True), n)
        zeros = pa.array(np.zeros(n, np.int64))
        if not any(ROW_KIND in names for names in found.operator.row_names):
            matched = pc.greater(matches, 0)
            return [{**key_columns(entries), **kept, "time": zeros, "matched": matched, "can_match": there}]
        low, high = self._identities(found, columns, number)
        return [
            {
                **key_columns(entries),
                **kept,
                "timestamp": zeros,
                "low": low,
                "high": high,
                "matches": matches.cast(pa.int64()),
                "can_match": there,
            }
        ]

    def _identities(
        self, found: SavepointTables, columns: Mapping[str, pa.Array], number: int
    ) -> tuple[pa.Array, pa.Array]:
        """Return what makes a row that is withdrawn equal to one that is kept; rows that stay have nothing."""
        unique, batch = self.state.unique_keys[number], rows_of(columns, number)
        if ROW_KIND not in found.operator.row_names[number]:
            identities = np.zeros((batch.num_rows, 2), np.uint64)
        else:
            named = None if unique is None else [self.state.inputs[number][each][0] for each in unique]
            identities = identities_of(batch, named)
        low, high = identities.view(np.int64).T
        return pa.array(low), pa.array(high)


def _kept_columns(state: FlinkState, columns: Mapping[str, pa.Array], number: int) -> dict[str, pa.Array]:
    """Return the columns of rows that a join keeps: of right rows that do not come out, those of Flink."""
    if number == 0 or not state.left_alone:
        return dict(columns)
    prefix, bounds = PREFIXES[number], {place for place, _ in state.bounds[number]} if state.bounds else ()
    names = {name for place, (name, _) in enumerate(state.inputs[number]) if place not in bounds}
    return {
        name: each for name, each in columns.items() if "." not in name or name[len(prefix) + 1 :] in names
    }


def can_match(entries: pa.RecordBatch, *, nulls_equal: bool) -> pa.Array:
    """Return whether the key of each entry can equal another one."""
    found = pa.repeat(pa.scalar(True), entries.num_rows)
    for name in entries.schema.names:
        if name.startswith("key.") and not nulls_equal:
            found = pc.and_(found, entries.column(name).is_valid())
    return found
