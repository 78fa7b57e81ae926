"""State of Flink SQL's operators, with which operators of the same nodes of a compiled plan begin."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore._native.aggregates import Accumulators
from flinkcore._native.key_dictionary import KeyDictionary
from flinkcore.checkpoint import OperatorSnapshot
from flinkcore.checkpoint.checkpoint_table import CheckpointTable
from flinkcore.checkpoint.state_origin import JobOperator
from flinkcore.columnar.operator_plans.window_contents import WindowContents
from flinkcore.columnar.relational.accumulator_columns import accumulator_columns, restore_accumulators
from flinkcore.columnar.relational.frame_aggregates import FRAMES, columns_of_frames
from flinkcore.errors import ConfigurationError
from flinkcore.operators.keys.element_rows import event_key_groups
from flinkcore.savepoints.keyed_state import KeyedState
from flinkcore.savepoints.operator_state import OperatorState
from flinkcore.savepoints.restoring.fed_accumulators import fed_accumulators
from flinkcore.savepoints.savepoint import SavepointOperator
from flinkcore.savepoints.serializers.row_data import row_data
from flinkcore.savepoints.serializers.sql import SqlSerializer
from flinkcore.savepoints.sql_accumulators import aggregate_values
from flinkcore.savepoints.sql_states import (
    ACCUMULATORS,
    EMITTED,
    KEPT_ROW,
    KEPT_TABLE,
    WAITING_ROW,
    WATERMARK,
    WINDOW_ACCUMULATORS,
)
from flinkcore.sql.plan.flink_state import FlinkState

_TIMER_TABLE: Final = "timers"
_TIMERS: Final = "_timer_state/"
_FILLED: Final = 1


@dataclass(frozen=True)
class RestoredPlanState:
    """State of an operator of a Flink SQL job, with which one of a plan begins; picklable.

    Attributes
    ----------
    found : SavepointOperator
    operator : JobOperator
    state : FlinkState
    """

    found: SavepointOperator
    operator: JobOperator
    state: FlinkState

    def __getstate__(self) -> dict[str, Any]:
        return {"found": self.found, "operator": self.operator, "state": self.state}

    def check(self, what: str) -> None:
        """Check that the state is one of this node.

        Raises
        ------
        ConfigurationError
            If it is not known how Flink keeps it, or the savepoint has it in another way.
        """
        leave_out = f"Leave it out: leave_out=[{self.found.uid or self.found.operator_id!r}]"
        if self.state.refusal:
            raise ConfigurationError(f"{what}, {self.state.node}: {self.state.refusal}. {leave_out}")
        expected = self._names | ({WATERMARK} if self._has_windows else set())
        found = {each for each in self.found.states if not each.startswith(_TIMERS)}
        if not self._names <= found <= expected:
            raise ConfigurationError(
                f"{what} has the states {sorted(self.found.states)}, and {self.state.node} has {sorted(expected)}. "
                f"Give the plan with which the job was started. {leave_out}"
            )
        types = self._first.keyed_types
        values = [each for _, each in self.state.rows] or [each.type for each in self.state.fields]
        for serializer, fields, kind in (
            (types.key, [each for _, each in self.state.keys], "keys"),
            (types.value, values, "rows" if self.state.rows else "accumulators"),
        ):
            own = row_data(fields)
            if not isinstance(serializer, SqlSerializer) or serializer.type != own.type:
                shown = "nothing" if serializer is None else serializer.name
                raise ConfigurationError(
                    f"the {kind} of {what} are {shown}, and those of {self.state.node} are {own.name}. Give the plan "
                    f"with which the job was started. {leave_out}"
                )

    @property
    def _has_windows(self) -> bool:
        return self.operator.windows is not None

    @property
    def _names(self) -> set[str]:
        """Names of the states in Flink."""
        if self.state.rows:
            return {WAITING_ROW, EMITTED} if self.state.waits else {KEPT_ROW}
        return {WINDOW_ACCUMULATORS if self._has_windows else ACCUMULATORS}

    @property
    def _first(self) -> KeyedState:
        """The state with rows or accumulators."""
        return self._state(next(name for name in self._names if name != EMITTED))

    def _state(self, name: str) -> KeyedState:
        found = self.found.states[name]
        assert isinstance(found, KeyedState)
        return found

    @cached_property
    def watermark_ms(self) -> int:
        """Watermark up to which windows have fired: the least of all subtasks; -2**63 without one."""
        found = self.found.states.get(WATERMARK)
        if not isinstance(found, OperatorState):
            return MIN_TIMESTAMP
        marks = [mark for batch in found.batches() for mark in batch.column("value").to_pylist()]
        return min(marks, default=MIN_TIMESTAMP)

    def snapshot(self, first: int, last: int) -> OperatorSnapshot:
        """Return the state of a range of key groups of the job, both ends included.

        Raises
        ------
        SavepointError
            If a file is damaged or missing.
        DataError
            If a value has no place in the job.
        """
        key_groups = (first, last)
        if self.state.rows:
            return OperatorSnapshot(key_groups, relations=self._deduplicated(first, last))
        tables = [self._table(*rows) for rows in self._rows(self._first, first, last)]
        if not tables:
            return OperatorSnapshot(key_groups)
        batch = pa.concat_batches(tables)
        if not self._has_windows:
            return OperatorSnapshot(key_groups, relations={FRAMES: CheckpointTable(batch, {}, {})})
        ends = batch.column("window_end")
        attributes = {
            "kind": self.operator.windows.kind,
            "earliest_end_ms": pc.min(ends).as_py(),
            "latest_end_ms": pc.max(ends).as_py(),
        }
        return OperatorSnapshot(key_groups, windows=[CheckpointTable(batch, {}, attributes)])

    def _deduplicated(self, first: int, last: int) -> dict[str, CheckpointTable]:
        """Return the rows of keys, those that have none any more, and the timers of those that wait."""
        of_rows = self.operator.row_names[0]
        types = {name: kind.arrow for name, kind in self.state.rows}
        tables, timers = [], []
        for name in sorted(self._names):
            for keys, value, _ in self._rows(self._state(name), first, last):
                n, has_row = len(value), name != EMITTED
                numbers = {column: i for i, (column, _) in enumerate(self.state.rows)} if has_row else {}
                columns = {
                    each: value.field(numbers[each]) if has_row else pa.nulls(n, types[each])
                    for each in of_rows
                }
                time = pa.array(np.zeros(n, np.int64))
                if has_row:
                    rowtime = value.field(self.state.rowtime)
                    time = rowtime.cast(pa.timestamp("ms", rowtime.type.tz)).cast(pa.int64())
                named = self._named_keys(keys)
                kept = {
                    **named,
                    "has_row": pa.repeat(pa.scalar(has_row), n),
                    **{f"row.{each}": column for each, column in columns.items()},
                    "timestamp": time,
                }
                tables.append(pa.RecordBatch.from_arrays(list(kept.values()), list(kept)))
                if has_row and self.state.waits:
                    due = {**named, "timestamp_ms": time, "namespace": pa.array(np.zeros(n, np.int64))}
                    timers.append(pa.RecordBatch.from_arrays(list(due.values()), list(due)))
        found = {KEPT_TABLE: tables, _TIMER_TABLE: timers}
        return {
            name: CheckpointTable(pa.concat_batches(batches), {}, {})
            for name, batches in found.items()
            if batches
        }

    def _rows(
        self, state: KeyedState, first: int, last: int
    ) -> list[tuple[pa.RecordBatch, pa.Array, pa.Array | None]]:
        """Return the keys, accumulators and ends of slices of the rows in a range of key groups."""

        def own(key: pa.Array) -> npt.NDArray[np.int64]:
            # Flink hashes the bytes of a row, so that keys of any of its key groups are among those of the task.
            keys = self._key_columns(key)
            groups = event_key_groups(keys, keys.schema.names, self.operator.max_parallelism)
            return np.flatnonzero((groups >= first) & (groups <= last))

        found = []
        for batch in state.batches_of_keys(own):
            if batch.num_rows:
                ends = batch.column("namespace") if self._has_windows else None
                found.append((self._key_columns(batch.column("key")), batch.column("value"), ends))
        if self._has_windows and found:
            # The slices of a window may lie in several batches.
            keys, values, ends = zip(*found, strict=True)
            return [(pa.concat_batches(keys), pa.concat_arrays(values), pa.concat_arrays(ends))]
        return found

    def _key_columns(self, key: pa.Array) -> pa.RecordBatch:
        numbers = {name: i for i, (name, _) in enumerate(self.state.keys)}
        fields = list(self.operator.key_fields or ())
        if not fields:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * len(key), pa.struct([])))
        columns = [key.field(numbers[each.name]).cast(each.type) for each in fields]
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))

    def _table(self, keys: pa.RecordBatch, value: pa.Array, ends: pa.Array | None) -> pa.RecordBatch:
        n = len(value)
        values = aggregate_values(self.state.fields, value)
        contents = self.operator.windows.contents if self._has_windows else self.operator.aggregates
        held = fed_accumulators(
            contents,
            values.results,
            np.arange(n, dtype=np.uint32),
            n,
            f"the accumulators of operator {self.state.uid!r}",
            orders=values.orders,
            slides=not self._has_windows,
        )
        if ends is not None:
            return self._windows(keys, held, ends.to_numpy())
        columns = {
            **self._named_keys(keys),
            "part": pa.array(np.zeros(n, np.uint8)),
            # The number of rows of a key matters only if they can be taken back.
            "time": pa.array(np.ones(n, np.int64)),
            **columns_of_frames(held),
        }
        return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))

    def _named_keys(self, keys: pa.RecordBatch) -> dict[str, pa.Array]:
        names = keys.schema.names
        groups = event_key_groups(keys, names, self.operator.max_parallelism)
        return {
            "key_group": pa.array(groups, pa.int32()),
            **{f"key.{name}": column for name, column in zip(names, keys.columns, strict=True)},
        }

    def _windows(
        self, keys: pa.RecordBatch, held: dict[str, pa.Array], ends: npt.NDArray[np.int64]
    ) -> pa.RecordBatch:
        """Return the windows that have not fired, each of which merges its slices."""
        contents: WindowContents = self.operator.windows.contents
        n_slices = contents.size_ms // contents.slide_ms
        of_slice = np.repeat(np.arange(len(ends)), n_slices)
        own_ends = ends[of_slice] + np.tile(np.arange(n_slices), len(ends)) * contents.slide_ms
        is_open = own_ends - 1 > self.watermark_ms
        of_slice, own_ends = of_slice[is_open], own_ends[is_open]
        names = keys.schema.names
        ids = (
            KeyDictionary(keys.schema, names, null_keys=True).ids(keys)
            if names
            else np.zeros(len(ends), np.uint32)
        )
        order = np.lexsort((ends[of_slice], own_ends, ids[of_slice]))
        of_slice, own_ends = of_slice[order], own_ends[order]
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = (ids[of_slice][1:] != ids[of_slice][:-1]) | (own_ends[1:] != own_ends[:-1])
        batch = pa.RecordBatch.from_arrays(list(held.values()), list(held)).take(pa.array(of_slice))
        accumulators = Accumulators(contents.columns, [each[1:] for each in contents.aggregates])
        accumulators.reserve(len(order))
        every = np.arange(len(order), dtype=np.uint32)
        restore_accumulators(accumulators, every, batch.column("touched").to_numpy(), batch)
        firsts = np.flatnonzero(is_first)
        into = firsts[np.cumsum(is_first) - 1]
        for target, other in zip(into[~is_first].tolist(), every[~is_first].tolist(), strict=True):
            accumulators.merge(target, other)
        own_ends = own_ends[firsts]
        # Windows that overlap begin in the kernel of triggers, where each has its own accumulator.
        is_triggered = self.operator.windows.kind == "triggered_windows"
        columns = {
            **self._named_keys(keys.take(pa.array(of_slice[firsts]))),
            "window_start": pa.array(own_ends - contents.size_ms),
            "window_end": pa.array(own_ends),
            "trigger_state": pa.array(own_ends - 1 if is_triggered else np.zeros(len(firsts), np.int64)),
            "flags": pa.array(np.full(len(firsts), _FILLED if is_triggered else 0, np.uint8)),
            **accumulator_columns(accumulators, firsts.astype(np.uint32)),
        }
        return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
