"""Windows of a checkpoint, before a native operator opens them: they must be some that this operator can have.

Checksums find damage, and not rows that were never written: a window between those of the assigner would give
results of its own, one that is over would fire again or never, and of one that comes twice one row would be lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.show.times import dated
from flinkcore._native.key_dictionary import KeyDictionary
from flinkcore.checkpoint.checkpoint_table import CheckpointTable
from flinkcore.columnar.operator_plans.native_windows import since_starts, slide_of
from flinkcore.columnar.operator_plans.window_aggregation import WindowAggregation
from flinkcore.columnar.stages.window_state import key_columns_of, window_columns
from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.datastream.graph.columnar_windows import columnar_trigger
from flinkcore.datastream.graph.key_columns import KeyColumns
from flinkcore.datastream.window import (
    CumulativeEventTimeWindows,
    EventTimeSessionWindows,
    LocalEventTimeWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from flinkcore.errors import SchemaError
from flinkcore.operators.keys.element_rows import event_key_groups

Bools = npt.NDArray[np.bool_]

_PANE_FIRED = 1
_FILLED, _GIVEN, _FIRED, _FIRES_BEFORE, _FURTHER, _TWIN = 1, 4, 16, 32, 64, 128
_FLAGS: Final = {
    "time_windows": _PANE_FIRED,
    "sliced_windows": _PANE_FIRED,
    "triggered_windows": _FILLED | _GIVEN | _TWIN,
    "global_windows": _FILLED | _GIVEN | _TWIN,
    "session_windows": _FILLED | _GIVEN | _FIRED | _FIRES_BEFORE | _TWIN,
    "count_windows": _FURTHER,
    "sliced_count_windows": _FURTHER,
}
_WITH_TWINS: Final = ("triggered_windows", "global_windows", "session_windows")
_GREATEST_STATE: Final = 2
"""The greatest `ValueState`."""


@dataclass(frozen=True)
class ExpectedWindows:
    """Constraints on the windows of an operator in a checkpoint.

    Attributes
    ----------
    aggregation : WindowAggregation
        Aggregation of the operator.
    key : KeyColumns
    max_parallelism : int
        Number of key groups.
    events : pyarrow.Schema
        Columns of the events.
    none : CheckpointTable
        Table that the operator writes without any window.
    watermark_ms : int
        At which it was stopped.
    """

    aggregation: WindowAggregation
    key: KeyColumns
    max_parallelism: int
    events: pa.Schema
    none: CheckpointTable
    watermark_ms: int

    def check(self, table: CheckpointTable) -> None:
        """Accept the rows of a table if the operator can have such windows.

        Raises
        ------
        SchemaError
            If not; names the first row, or the column, that is none, and why.
        """
        kind, own_kind = table.attributes["kind"], self.none.attributes["kind"]
        if kind != own_kind:
            raise SchemaError(f"the windows are those of {kind}, and those of this job are {own_kind}")
        self._check_columns(table.batch)
        key_columns = key_columns_of(table.batch, self.key.names)
        self._check_key_groups(key_columns, table.numbers("key_group", pa.int32()))
        windows = _Windows(
            self.aggregation,
            kind,
            self.watermark_ms,
            _key_ids(key_columns, self.key.nulls),
            *window_columns(table),
        )
        windows.check()

    def _check_columns(self, batch: pa.RecordBatch) -> None:
        schema = self.none.batch.schema
        if not batch.schema.equals(schema):
            found, own = (", ".join(f"{f.name}: {f.type}" for f in each) for each in (batch.schema, schema))
            raise SchemaError(f"the windows have the columns {found}, and those of this job are {own}")
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            number, _, part = name.partition(".")
            if number == "key":
                continue
            if column.null_count:
                raise SchemaError(f"the column {name!r} of the windows has {column.null_count} nulls")
            if (name == "touched" and _greatest(column) > 1) or (
                part == "states" and _greatest(column) > _GREATEST_STATE
            ):
                raise SchemaError(f"the column {name!r} of the windows has the state {_greatest(column)}")
            if part == "counts" and len(column) and column.to_numpy().min() < 0:
                raise SchemaError(
                    f"the column {name!r} of the windows has the count {column.to_numpy().min()}"
                )
            if number.isdecimal():
                _check_values(name, part, column, self.aggregation.aggregates[int(number)][1], self.events)

    def _check_key_groups(self, key_columns: pa.RecordBatch, groups: npt.NDArray[np.int32]) -> None:
        wrong = np.flatnonzero(event_key_groups(key_columns, self.key.names, self.max_parallelism) != groups)
        if len(wrong):
            row = int(wrong[0])
            raise SchemaError(
                f"row {row} of the windows, of the key {key_columns.slice(row, 1).to_pylist()[0]}, is in the key "
                f"group {groups[row]}, which is not that of the key"
            )


@dataclass(frozen=True)
class _Windows:
    """Rows of a table: windows of keys, which are known by dense ids."""

    aggregation: WindowAggregation
    kind: str
    watermark_ms: int
    keys: npt.NDArray[np.uint32]
    starts: Int64s
    ends: Int64s
    trigger_states: Int64s
    flags: npt.NDArray[np.uint8]

    def check(self) -> None:
        aggregation = self.aggregation
        self._refuse((self.flags & ~np.uint8(_FLAGS[self.kind])) != 0, "has unknown flags")
        self._refuse(self.starts >= self.ends, "ends before it starts")
        window = aggregation.window
        if isinstance(window, EventTimeSessionWindows):
            self._check_sessions(window.gap_ms)
        elif isinstance(
            window, TumblingEventTimeWindows | SlidingEventTimeWindows | CumulativeEventTimeWindows
        ):
            self._check_aligned(window)
        elif isinstance(window, LocalEventTimeWindows):
            self._check_local(window)
        else:
            is_unbounded = (self.starts == MIN_TIMESTAMP) & (self.ends == MAX_TIMESTAMP)
            self._refuse(~is_unbounded, "has bounds, and the windows of the job have none")
        self._check_triggers()
        if aggregation.is_retracting and self.kind in _WITH_TWINS:
            n_twins = int(np.count_nonzero(self._are_twins))
            if 2 * n_twins != len(self.flags):
                raise SchemaError(
                    f"{n_twins} rows of the windows hold what was given before, and {len(self.flags) - n_twins} are "
                    "windows; each window has one"
                )

    @property
    def _are_twins(self) -> Bools:
        found: Bools = (self.flags & _TWIN) != 0
        return found

    def _check_aligned(
        self, window: TumblingEventTimeWindows | SlidingEventTimeWindows | CumulativeEventTimeWindows
    ) -> None:
        lowest, highest = self.aggregation.timestamp_range
        self._refuse((self.ends <= lowest) | (self.starts > highest), "is beyond all timestamps")
        size, offset, slide = window.size_ms, window.offset_ms, slide_of(window)
        is_cumulative = isinstance(window, CumulativeEventTimeWindows)
        lengths = self.ends - self.starts
        if self.kind == "sliced_windows":
            is_made = (since_starts(self.starts, offset, slide) == 0) & (lengths == slide)
        elif is_cumulative:
            is_made = (
                (since_starts(self.starts, offset, size) == 0) & (lengths % slide == 0) & (lengths <= size)
            )
        else:
            is_made = (since_starts(self.starts, offset, slide) == 0) & (lengths == size)
        self._refuse(~is_made, "is none that the assigner of the job makes")
        last_ends = self.ends
        if self.kind == "sliced_windows" and is_cumulative:
            last_ends = self.starts - since_starts(self.starts, offset, size) + size
        elif self.kind == "sliced_windows":
            last_ends = self.ends + (size - slide)
        self._refuse_ended(last_ends)

    def _check_local(self, window: LocalEventTimeWindows) -> None:
        lowest, highest = self.aggregation.timestamp_range
        self._refuse((self.ends <= lowest) | (self.starts > highest), "is beyond all timestamps")
        starts, ends = window.calendar.bounds(self.starts)
        self._refuse(
            (starts != self.starts) | (ends != self.ends),
            f"is none that the assigner of the job makes: the time zone data on this machine have other rules for "
            f"{window.zone}",
        )
        self._refuse_ended(self.ends)

    def _check_sessions(self, gap_ms: int) -> None:
        _, highest = self.aggregation.timestamp_range
        self._refuse(self.starts > highest, "is beyond all timestamps")
        self._refuse(
            self.ends.view(np.uint64) - self.starts.view(np.uint64) < gap_ms,
            f"is shorter than the gap of {gap_ms} ms",
        )
        self._refuse_ended(self.ends)
        own = np.flatnonzero(~self._are_twins)
        ordered = own[np.lexsort((self.starts[own], self.keys[own]))]
        before, after = ordered[:-1], ordered[1:]
        touch = (self.keys[before] == self.keys[after]) & (self.starts[after] <= self.ends[before])
        self._refuse_rows(after[touch], "touches another session of its key")
        has_fired = (self.flags[own] & _FIRED) != 0
        due = np.full(len(own), True)
        if not self.aggregation.fires_by_count:
            due = self.ends[own] - 1 <= self.watermark_ms
        # A session of a savepoint may have fired at a watermark that the savepoint does not have.
        is_wrong = (
            due & ~has_fired if self.aggregation.savepoint_watermark_ms is not None else has_fired != due
        )
        self._refuse_rows(own[is_wrong], self._against_watermark)

    @property
    def _against_watermark(self) -> str:
        return f"has fired, or not, against the watermark {dated(self.watermark_ms)} of the checkpoint"

    def _refuse_ended(self, ends: Int64s) -> None:
        lateness_ms = self.aggregation.allowed_lateness_ms
        lasts = np.where(ends - 1 > MAX_TIMESTAMP - lateness_ms, MAX_TIMESTAMP, ends - 1 + lateness_ms)
        self._refuse(
            lasts <= self.watermark_ms,
            f"is over at the watermark {dated(self.watermark_ms)} of the checkpoint",
        )

    def _check_triggers(self) -> None:
        if self.kind in ("time_windows", "sliced_windows"):
            self._refuse(self.trigger_states != 0, "has a trigger that the job has not")
            has_fired = (self.flags & _PANE_FIRED) != 0
            self._refuse(has_fired != (self.ends - 1 <= self.watermark_ms), self._against_watermark)
            return
        trigger = columnar_trigger(self.aggregation.window, self.aggregation.trigger)
        if trigger is None or self.kind in ("count_windows", "sliced_count_windows"):
            return  # the operator itself counts windows and elements
        states, twins = self.trigger_states, self._are_twins
        if trigger.name == "continuous_event_time":
            is_armed = (states % trigger.every == 0) | (states == self.ends - 1) | (states == MIN_TIMESTAMP)
            if (
                self.kind == "session_windows"
            ):  # also at the last timestamp of a session that has merged into it
                is_armed |= (states >= self.starts) & (states < self.ends)
            self._refuse(~is_armed & ~twins, f"fires at no multiple of {trigger.every} ms")
        elif trigger.name == "event_time" and self.kind == "triggered_windows":
            is_armed = (states == self.ends - 1) | (states == MIN_TIMESTAMP)
            self._refuse(~is_armed & ~twins, "fires at another time than its end")
        elif trigger.name == "end_of_stream":
            is_armed = (states == MIN_TIMESTAMP) | (states == MAX_TIMESTAMP)
            self._refuse(~is_armed & ~twins, "fires before the end of the stream")
        elif trigger.name == "count" and self.kind != "session_windows":
            self._refuse(
                (states < 0) | (states >= max(trigger.every, 1)),
                f"has a count beyond a firing each {trigger.every}",
            )

    def _refuse(self, is_wrong: Bools, why: str) -> None:
        self._refuse_rows(np.flatnonzero(is_wrong), why)

    def _refuse_rows(self, rows: npt.NDArray[np.intp], why: str) -> None:
        if len(rows):
            row = int(rows[0])
            raise SchemaError(
                f"row {row} of the windows, [{self.starts[row]}, {self.ends[row]}) ms with flags {self.flags[row]} and "
                f"trigger state {self.trigger_states[row]}, {why}"
            )


def _check_values(name: str, part: str, column: pa.Array, aggregate: Any, events: pa.Schema) -> None:
    if part in ("word_set", "byte_set") and column.values.null_count:
        raise SchemaError(f"the column {name!r} of the windows has nulls in its sets")
    source = aggregate.by if part in ("keys", "key_strings") else aggregate.column
    if aggregate.function == "approx_count_distinct":
        return  # its bytes are not values
    if source is None or part not in ("strings", "key_strings", "byte_set", "list"):
        return
    kind = events.field(source).type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    values = column if part in ("strings", "key_strings") else column.values
    if _is_text(kind) and pa.types.is_large_binary(values.type):
        try:
            values.cast(pa.large_string())
        except pa.ArrowInvalid as failure:
            raise SchemaError(f"the column {name!r} of the windows has text that is not UTF-8") from failure


def _key_ids(key_columns: pa.RecordBatch, null_keys: bool) -> npt.NDArray[np.uint32]:
    names = key_columns.schema.names
    if not names:
        return np.zeros(key_columns.num_rows, np.uint32)
    return KeyDictionary(key_columns.schema, names, null_keys=null_keys).ids(key_columns)


def _is_text(kind: pa.DataType) -> bool:
    return any(
        is_kind(kind) for is_kind in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    )


def _greatest(column: pa.Array) -> int:
    return int(column.to_numpy().max()) if len(column) else 0
