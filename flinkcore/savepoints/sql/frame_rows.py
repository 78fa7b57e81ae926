"""Rows of Flink's OVER whose frames are bounded: those that wait for the watermark, and those in a frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore.columnar.operator_plans.aggregate_contents import AggregateContents
from flinkcore.columnar.relational.frame_aggregates import FRAMES, FrameAggregates
from flinkcore.columnar.relational.frame_rows import FRAME_ROWS
from flinkcore.savepoints.keyed_types import KeyedTypes
from flinkcore.savepoints.serializers import basic
from flinkcore.savepoints.sql.accumulators import float_sums, words_of_sums
from flinkcore.savepoints.sql.names import (
    ACCUMULATORS,
    CLEAN_UP_TIME,
    COUNTED_ROWS,
    LAST_TIME,
    PENDING_ROWS,
    USER_TIMERS,
)
from flinkcore.savepoints.sql.pending_rows import PENDING, TIMES, PendingRows
from flinkcore.savepoints.sql.row_layout import (
    Entries,
    PartTables,
    Restored,
    SavepointTables,
    exploded,
    grouped,
    key_columns,
    place_ids,
    places_among,
    rows_of,
)

_BEFORE_ALL: Final = 0
"""Time of the last rows of a key of which none has come up."""
_RUNNING: Final = 0
"""Part of a frame with the aggregates of all its rows that can be taken away again."""


class FrameRows(PendingRows):
    """Rows by their time, and the time of the last ones that came up, up to which rows are in a frame.

    The accumulators of frames are made of their rows again, but for sums of floats.

    Notes
    -----
    Flink's ``RowTimeRowsBoundedPrecedingFunction`` and ``RowTimeRangeBoundedPrecedingFunction``.
    """

    def states(self) -> Mapping[str, KeyedTypes]:
        times = (LAST_TIME, COUNTED_ROWS if self.state.frame_ms is None else CLEAN_UP_TIME)
        return {**super().states(), **{name: self.types("VALUE", basic.LONG) for name in times}}

    def written(self, name: str, tables: PartTables) -> Entries | None:
        if name == PENDING_ROWS:
            return self._written_rows(tables)
        if name == COUNTED_ROWS:
            rows = tables.read(FRAME_ROWS)
            if rows is None:
                return None
            keys = tables.keys(rows)
            ids, firsts = place_ids(keys)
            return {"key": keys.take(pa.array(firsts)), "value": pa.array(np.bincount(ids))}
        if name in (LAST_TIME, CLEAN_UP_TIME):
            times = tables.read(TIMES)
            if times is None:
                return None
            column, none = ("last", _BEFORE_ALL) if name == LAST_TIME else ("cleanup", MIN_TIMESTAMP)
            times = times.filter(pc.not_equal(times.column(column), none))
            return {"key": tables.keys(times), "value": times.column(column)}
        return super().written(name, tables)

    def _written_rows(self, tables: PartTables) -> Entries | None:
        """Return the rows in frames, and those that wait."""
        found = [tables.read(FRAME_ROWS), tables.read(PENDING)]
        if found[1] is not None:  # others are times of clean-up
            found[1] = found[1].filter(found[1].column("has_row"))
        given = [each for each in found if each is not None]
        if not given:
            return None
        keys = pa.concat_arrays([tables.keys(each) for each in given])
        times = pa.concat_arrays([each.column("timestamp") for each in given])
        return grouped(
            {"key": keys, "map_key": times}, pa.concat_arrays([tables.rows(each) for each in given])
        )

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
                came = entries.filter(pa.array(has_come))
                order = pa.array(np.lexsort((times[has_come], place_ids(*key_columns(came).values())[0])))
                came, rows = came.take(order), rows.filter(pa.array(has_come)).take(order)
                columns = {
                    **key_columns(came),
                    **found.row_columns(rows, came.num_rows),
                    "timestamp": came.column("map_key"),
                }
                table = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
                is_range = self.state.frame_ms is not None
                bounds: dict[str, Any] = {"rows": self.state.frame_rows, "range_ms": self.state.frame_ms}
                frames = frames_of_rows(table, found.operator.aggregates, **bounds, peers=is_range)
                restored[FRAMES].append(self._with_sums(found, frames))
                if found.operator.keeps_frame_rows:
                    restored[FRAME_ROWS] = [columns]
        if self.state.frame_ms is not None:
            restored[PENDING] += _clean_ups(found, entries)
        if last is not None:
            clean_up = found.read(CLEAN_UP_TIME) if self.state.frame_ms is not None else None
            cleanup = pa.array(_values_of(clean_up, last))
            restored[TIMES].append({**key_columns(last), "last": last.column("value"), "cleanup": cleanup})
        return restored

    def _with_sums(self, found: SavepointTables, frames: dict[str, pa.Array]) -> dict[str, pa.Array]:
        """Return frames with Flink's sums of floats, which are those of all that has been added and taken away."""
        aggregates = found.operator.aggregates
        accumulators = found.read(ACCUMULATORS) if float_sums(aggregates) and self.state.fields else None
        if accumulators is None:
            return frames
        table = pa.RecordBatch.from_arrays(list(frames.values()), list(frames))
        places = places_among([*key_columns(table).values()], [*key_columns(accumulators).values()])
        own = (places >= 0) & (frames["part"].to_numpy() == _RUNNING)
        for number, new in words_of_sums(self.state.fields, accumulators.column("value"), aggregates).items():
            words = f"{number}_words"
            found_words = frames[words].to_numpy().copy()
            found_words[own] = new[places[own]]
            frames[words] = pa.array(found_words)
        return frames


def frames_of_rows(
    table: pa.RecordBatch, aggregates: AggregateContents, *, retracts: bool = False, **frames: Any
) -> dict[str, pa.Array]:
    """Return the columns of the table of frames of rows.

    Parameters
    ----------
    table : pyarrow.RecordBatch
        Rows as a checkpoint has them, those of a key in the order of time.
    aggregates : AggregateContents
    retracts : bool
        Whether rows can be withdrawn, of frames that are all rows.
    **frames
        As of `FrameAggregates`.
    """
    keys, rows = key_columns(table), rows_of(dict(zip(table.schema.names, table.columns, strict=True)))
    ids, firsts = place_ids(*keys.values())
    specs, times = [each[1:] for each in aggregates.aggregates], table.column("timestamp").to_numpy()
    made = FrameAggregates(rows.schema, specs, retracts=retracts, **frames)
    none = np.zeros(len(times), np.uint8) if retracts else None
    made.process(rows, ids.astype(np.uint32), times, retracts=none, emits=False)
    held = dict(made.snapshot())
    first = pa.array(firsts[held.pop("key")])
    return {
        **{name: column.take(first) for name, column in keys.items()},
        **{name: each if isinstance(each, pa.Array) else pa.array(each) for name, each in held.items()},
    }


def running_frames(
    frames: pa.RecordBatch, rows: pa.RecordBatch, aggregates: AggregateContents, *, retracts: bool
) -> pa.RecordBatch:
    """Return bounded frames as if they were all rows of their keys, so that these can be withdrawn.

    Parameters
    ----------
    frames, rows : pyarrow.RecordBatch
        Tables of the frames and of their rows in a checkpoint.
    aggregates : AggregateContents
    retracts : bool
        As of `frames_of_rows`.
    """
    columns = frames_of_rows(rows, aggregates, retracts=retracts)
    table = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
    running = frames.filter(pc.equal(frames.column("part"), _RUNNING))
    places = pa.array(places_among([*key_columns(table).values()], [*key_columns(running).values()]))
    for number in float_sums(aggregates):  # those of all that has been added and taken away
        words = f"{number}_words"
        place = table.schema.get_field_index(words)
        table = table.set_column(place, words, running.column(words).take(places))
    return table


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
