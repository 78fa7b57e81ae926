"""State of Flink SQL's operators, with which operators of the same nodes of a compiled plan begin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore._native.aggregates import Accumulators
from flinkcore.checkpoint import OperatorSnapshot
from flinkcore.checkpoint.checkpoint_table import CheckpointTable
from flinkcore.checkpoint.state_origin import JobOperator
from flinkcore.columnar.operator_plans.aggregate_contents import AggregateContents
from flinkcore.columnar.operator_plans.window_contents import WindowContents
from flinkcore.columnar.relational.accumulator_columns import accumulator_columns, restore_accumulators
from flinkcore.columnar.relational.frame_aggregates import FRAMES, columns_of_frames
from flinkcore.datastream.graph.columnar_windows import ROW_KIND
from flinkcore.errors import ConfigurationError, SavepointError
from flinkcore.operators.keys.element_rows import event_key_groups
from flinkcore.savepoints.keyed_state import KeyedState
from flinkcore.savepoints.keyed_types import KeyedTypes
from flinkcore.savepoints.operator_state import OperatorState
from flinkcore.savepoints.restoring.fed_accumulators import fed_accumulators
from flinkcore.savepoints.savepoint import SavepointOperator
from flinkcore.savepoints.sql.accumulators import AggregateValues, aggregate_values, words_of_sums
from flinkcore.savepoints.sql.aggregate_states import aggregate_states
from flinkcore.savepoints.sql.layouts import layout_of
from flinkcore.savepoints.sql.names import (
    ACCUMULATORS,
    OF_ACCUMULATORS,
    OF_TIMERS,
    SESSIONS,
    WATERMARK,
    WINDOW_ACCUMULATORS,
    WINDOW_TIMERS,
)
from flinkcore.savepoints.sql.row_layout import SavepointTables, key_columns, place_ids, places_among
from flinkcore.savepoints.sql.views import ViewRows, held_values
from flinkcore.savepoints.sql.window_names import ends_of_windows, first_slices, starts_of_windows
from flinkcore.sql.plan.flink_state import CUMULATE, SESSION, FlinkState, Layout, StateWindows

_FILLED: Final = 1

_KeyGroups: TypeAlias = tuple[int, int]


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
        states = self._states
        expected = set(states)
        optional = {WATERMARK} if self.state.has_watermark else set()
        # Flink's operators also register timers that they never set.
        others = {each for each in self.found.states if not each.startswith(OF_TIMERS)} - expected
        if self.state.layout is Layout.FRAME_ROWS:
            others = {each for each in others if not each.startswith(OF_ACCUMULATORS)}
        if not expected <= self.found.states.keys() or not others <= optional:
            raise ConfigurationError(
                f"{what} has the states {sorted(self.found.states)}, and {self.state.node} has "
                f"{sorted(expected | optional)}. Give the plan with which the job was started. {leave_out}"
            )
        for name, types in states.items():
            given = self._state(name).keyed_types
            for part, own in types.by_column.items():
                serializer = given.by_column.get(part)
                if serializer is None or serializer.name != own.name:
                    shown = "nothing" if serializer is None else serializer.name
                    raise ConfigurationError(
                        f"state {name!r} of {what} has a {part} of {shown}, and that of {self.state.node} is "
                        f"{own.name}. Give the plan with which the job was started. {leave_out}"
                    )

    @cached_property
    def _states(self) -> Mapping[str, KeyedTypes]:
        """Types of the states in Flink by name."""
        rows = {} if self.state.layout is Layout.ACCUMULATORS else layout_of(self.state).states()
        return {**rows, **(aggregate_states(self.state) if self._takes_accumulators else {})}

    @property
    def _takes_accumulators(self) -> bool:
        """Return whether accumulators are those of Flink, and not made again of the rows in frames."""
        return self.state.has_accumulators and self.state.layout is not Layout.FRAME_ROWS

    def _state(self, name: str) -> KeyedState:
        found = self.found.states[name]
        assert isinstance(found, KeyedState)
        return found

    @cached_property
    def _fired_ms(self) -> int:
        """Time up to which windows have fired: the watermark, or that before the first timer of legacy windows."""
        if self.state.windows is None or not self.state.windows.by_window:
            return self.watermark_ms
        due = [pc.min(batch.column("timestamp_ms")).as_py() for batch in self._state(WINDOW_TIMERS).batches()]
        return min(due, default=MIN_TIMESTAMP + 1) - 1

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
        if self.state.windows is None or self.state.layout is not Layout.ACCUMULATORS:
            relations = {} if self.state.layout is Layout.ACCUMULATORS else self._kept_rows(first, last)
            if self._takes_accumulators:
                relations |= self._frames(first, last)
            return OperatorSnapshot(key_groups, relations=relations)
        entries = self._entries(WINDOW_ACCUMULATORS, first, last)
        if entries is None:
            return OperatorSnapshot(key_groups)
        if self.state.windows.kind == SESSION:
            batch = self._sessions(entries, first, last)
        else:
            batch = self._windows(self.state.windows, entries, (first, last))
        if not batch.num_rows:
            return OperatorSnapshot(key_groups)
        ends = batch.column("window_end")
        attributes = {
            "kind": self.operator.windows.kind,
            "earliest_end_ms": pc.min(ends).as_py(),
            "latest_end_ms": pc.max(ends).as_py(),
        }
        return OperatorSnapshot(key_groups, windows=[CheckpointTable(batch, {}, attributes)])

    def dealt_states(self) -> list[KeyedState]:
        """Return the states that tasks need for their keys."""
        # Timers of aggregates fire at the end of the windows that the accumulators have. Those of joins and ranks say
        # which rows are left.
        names = [*self._states]
        if self.state.layout is Layout.ACCUMULATORS and WINDOW_TIMERS in names:
            names.remove(WINDOW_TIMERS)
        if self.state.layout is Layout.FRAME_ROWS and ACCUMULATORS in self.found.states:
            names.append(ACCUMULATORS)  # for sums of floats
        return [self._state(name) for name in names]

    def key_groups_of(self, keys: pa.Array) -> npt.NDArray[np.int32]:
        """Return the key groups that keys of the savepoint have in the job."""
        columns = self._key_columns(keys)
        return event_key_groups(columns, columns.schema.names, self.operator.max_parallelism)

    def first_timers(self, key_groups: range) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the first timer of some key groups of the savepoint if it says which windows have fired."""
        if self.state.windows is None or not self.state.windows.by_window:
            return
        for batch in self._state(WINDOW_TIMERS).batches(key_groups):
            first = int(np.argmin(batch.column("timestamp_ms").to_numpy()))
            yield WINDOW_TIMERS, batch.slice(first, 1)

    def _kept_rows(self, first: int, last: int) -> dict[str, CheckpointTable]:
        found = SavepointTables(self.state, self.operator, lambda name: self._entries(name, first, last))
        tables = layout_of(self.state).restored(found)
        batches = {
            name: [pa.RecordBatch.from_arrays(list(each.values()), list(each)) for each in parts]
            for name, parts in tables.items()
        }
        return {
            name: CheckpointTable(pa.concat_batches(parts), {}, {})
            for name, parts in batches.items()
            if parts
        }

    def _entries(self, name: str, first: int, last: int) -> pa.RecordBatch | None:
        """Return the entries of a state in a range of key groups, with their keys as columns of a checkpoint."""
        batches = []
        for batch, keys in self._batches(self._state(name), first, last):
            others = [each for each in batch.schema.names if each not in ("key_group", "key")]
            columns = {**self._named_keys(keys), **{each: batch.column(each) for each in others}}
            batches.append(pa.RecordBatch.from_arrays(list(columns.values()), list(columns)))
        return pa.concat_batches(batches) if batches else None

    def _batches(
        self, state: KeyedState, first: int, last: int
    ) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
        """Yield the entries of a state in a range of key groups, and their keys."""

        def own(key: pa.Array) -> Int64s:
            # Flink hashes the bytes of a row, so that keys of any of its key groups are among those of the task.
            groups = self.key_groups_of(key)
            return np.flatnonzero((groups >= first) & (groups <= last))

        for batch in state.batches_of_keys(own):
            if batch.num_rows:
                yield batch, self._key_columns(batch.column("key"))

    def _key_columns(self, key: pa.Array) -> pa.RecordBatch:
        numbers = {name: i for i, (name, _) in enumerate(self.state.keys)}
        fields = list(self.operator.key_fields or ())
        if not fields:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * len(key), pa.struct([])))
        columns = [key.field(numbers[each.name]).cast(each.type) for each in fields]
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))

    def _held(self, values: AggregateValues, entries: pa.RecordBatch, own: _KeyGroups) -> dict[str, pa.Array]:
        """Return what native accumulators hold that are those of Flink.

        Parameters
        ----------
        values : AggregateValues
        entries : pyarrow.RecordBatch
            Entries of the accumulators.
        own : tuple of int
            First and last key group.
        """
        windows, n = self.operator.windows, entries.num_rows
        contents: AggregateContents = self.operator.aggregates if windows is None else windows.contents
        what = f"the accumulators of operator {self.state.uid!r}"
        runs, retracts = windows is None, windows is None and ROW_KIND in self.operator.row_names[0]
        held = fed_accumulators(
            contents,
            values.results,
            np.arange(n, dtype=np.uint32),
            n,
            what,
            orders=values.orders,
            runs=runs,
            retracts=retracts,
        )
        numbers = {name: number for number, (name, *_) in enumerate(contents.aggregates)}
        for view in self.state.views:
            found = self._view(view.state, entries, own)
            for bit, name in enumerate(view.aggregates):
                parts = held_values(view, found, n, bit, runs=runs, retracts=retracts)
                held |= {f"{numbers[name]}.{part}": column for part, column in parts.items()}
        return dict(sorted(held.items(), key=lambda each: _number_of(each[0])))

    def _view(self, name: str, entries: pa.RecordBatch, own: _KeyGroups) -> ViewRows:
        """Return the values of a view, with the numbers of the accumulators among their entries."""
        values = self._entries(name, *own)
        if values is None:
            nothing = np.zeros(0, np.int64)
            return ViewRows(nothing, pa.array([], self._state(name).schema.field("map_key").type), nothing)
        places = [*key_columns(entries), *(each for each in entries.schema.names if each == "namespace")]
        rows = places_among(
            [values.column(each) for each in places], [entries.column(each) for each in places]
        )
        if (rows < 0).any():
            raise SavepointError(
                f"the state {name!r} of operator {self.state.uid!r} has a value of a key that has no accumulator"
            )
        return ViewRows(rows, values.column("map_key"), values.column("value").to_numpy())

    def _frames(self, first: int, last: int) -> dict[str, CheckpointTable]:
        entries = self._entries(ACCUMULATORS, first, last)
        if entries is None:
            return {}
        n = entries.num_rows
        values = aggregate_values(self.state.fields, entries.column("value"))
        held = self._held(values, entries, (first, last))
        aggregates = self.operator.aggregates.aggregates
        for number, (name, *_) in enumerate(aggregates):
            if name in values.counts and f"{number}.counts" in held:
                held[f"{number}.counts"] = values.counts[name]
        for number, words in words_of_sums(
            self.state.fields, entries.column("value"), self.operator.aggregates
        ).items():
            held[f"{number}.words"] = pa.array(words)
        if ROW_KIND in self.operator.row_names[0]:  # its rows are counted beside the aggregates
            assert values.rows is not None
            held[f"{len(aggregates)}.words"] = values.rows.cast(pa.uint64())
        columns = {
            **key_columns(entries),
            "part": pa.array(np.zeros(n, np.uint8)),
            # The number of rows of a key matters only if they can be taken back.
            "time": pa.array(np.ones(n, np.int64)) if values.rows is None else values.rows,
            **columns_of_frames(held),
        }
        batch = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
        return {FRAMES: CheckpointTable(batch, {}, {})}

    def _named_keys(self, keys: pa.RecordBatch) -> dict[str, pa.Array]:
        names = keys.schema.names
        groups = event_key_groups(keys, names, self.operator.max_parallelism)
        return {
            "key_group": pa.array(groups, pa.int32()),
            **{f"key.{name}": column for name, column in zip(names, keys.columns, strict=True)},
        }

    def _sessions(self, entries: pa.RecordBatch, first: int, last: int) -> pa.RecordBatch:
        """Return the sessions, whose accumulators have the name of a window in it."""
        sessions = self._entries(SESSIONS, first, last)
        n = entries.num_rows
        if sessions is None or sessions.num_rows != n:
            raise SavepointError(f"the sessions of operator {self.state.uid!r} and their accumulators differ")
        both = pa.concat_arrays([entries.column("namespace"), sessions.column("value")])
        keys = [
            pa.concat_arrays([entries.column(name), sessions.column(name)]) for name in key_columns(entries)
        ]
        ids, _ = place_ids(*keys, both)
        order = np.argsort(ids[n:])
        if not np.array_equal(np.sort(ids[:n]), ids[n:][order]):
            raise SavepointError(f"the sessions of operator {self.state.uid!r} and their accumulators differ")
        of_entries = pa.array(order[np.searchsorted(ids[n:][order], ids[:n])])
        window = sessions.column("map_key").take(of_entries)
        values = aggregate_values(self.state.fields, entries.column("value"))
        held = self._held(values, entries, (first, last))
        columns = {
            **key_columns(entries),
            "window_start": window.field("start_ms"),
            "window_end": window.field("end_ms"),
            "trigger_state": pa.array(np.full(n, MIN_TIMESTAMP)),
            "flags": pa.array(np.full(n, _FILLED, np.uint8)),
            **held,
        }
        return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))

    def _windows(self, windows: StateWindows, entries: pa.RecordBatch, own: _KeyGroups) -> pa.RecordBatch:
        """Return the windows that have not fired, each of which merges its slices."""
        held = self._held(aggregate_values(self.state.fields, entries.column("value")), entries, own)
        batch = pa.RecordBatch.from_arrays(list(held.values()), list(held))
        names = entries.column("namespace")
        ends = (names.field("end_ms") if windows.by_window else names).to_numpy()
        if windows.kind == CUMULATE:
            # Slices that have fired are in the first one.
            is_needed = (ends - 1 > self._fired_ms) | (ends == first_slices(windows, ends))
            entries, batch = entries.filter(pa.array(is_needed)), batch.filter(pa.array(is_needed))
            ends = ends[is_needed]
        of_slice, own_ends = ends_of_windows(windows, ends)
        is_open = own_ends - 1 > self._fired_ms
        of_slice, own_ends = of_slice[is_open], own_ends[is_open]
        keys = key_columns(entries)
        ids, _ = place_ids(*keys.values())
        order = np.lexsort((ends[of_slice], own_ends, ids[of_slice]))
        of_slice, own_ends = of_slice[order], own_ends[order]
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = (ids[of_slice][1:] != ids[of_slice][:-1]) | (own_ends[1:] != own_ends[:-1])
        batch = batch.take(pa.array(of_slice))
        contents: WindowContents = self.operator.windows.contents
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
        of_first = pa.array(of_slice[firsts])
        columns = {
            **{name: column.take(of_first) for name, column in keys.items()},
            "window_start": pa.array(starts_of_windows(windows, own_ends)),
            "window_end": pa.array(own_ends),
            "trigger_state": pa.array(own_ends - 1 if is_triggered else np.zeros(len(firsts), np.int64)),
            "flags": pa.array(np.full(len(firsts), _FILLED if is_triggered else 0, np.uint8)),
            **accumulator_columns(accumulators, firsts.astype(np.uint32)),
        }
        return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


def _number_of(part: str) -> int:
    """Return the number of the aggregate of a part; -1 of that of all, which comes first."""
    number = part.partition(".")[0]
    return int(number) if number.isdecimal() else -1
