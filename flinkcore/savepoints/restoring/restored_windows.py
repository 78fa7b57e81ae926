"""Windows of a savepoint as the windows over columns of an operator of flinkcore."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore._native.key_dictionary import KeyDictionary
from flinkcore.checkpoint.checkpoint_table import CheckpointTable
from flinkcore.columnar.operator_plans.window_contents import WindowContents, WindowTable
from flinkcore.errors import ConfigurationError
from flinkcore.savepoints.flink_operators import FlinkWindow
from flinkcore.savepoints.keyed_state import KeyedState
from flinkcore.savepoints.restoring.fed_accumulators import fed_accumulators
from flinkcore.savepoints.restoring.restored_states import (
    CONTENTS,
    MERGING_WINDOW_SET,
    WINDOW_TIMERS,
    RestoredOperatorStates,
)
from flinkcore.savepoints.serializers import basic
from flinkcore.savepoints.serializers.composite import RowSerializer, TupleSerializer
from flinkcore.savepoints.serializers.pojo import PojoSerializer
from flinkcore.savepoints.serializers.serializer import StateSerializer

Int64s = npt.NDArray[np.int64]

_FILLED, _FIRED, _FIRES_BEFORE = 1, 16, 32
_KINDS: Final = ("time_windows", "triggered_windows", "session_windows")
_TRIGGERS: Final = ("event_time", "count", "continuous_event_time")
_OF_RESULTS: Final = ("count", "sum", "min", "max", "first", "last")
"""Aggregates whose accumulators hold no more than their results."""
_TRIGGER_STATES: Final = ("count", "fire-time")


@dataclass(frozen=True)
class RestoredWindows:
    """Windows of an operator of Flink, with which windows over columns begin; picklable.

    Attributes
    ----------
    states : RestoredOperatorStates
    """

    states: RestoredOperatorStates

    @property
    def _table(self) -> WindowTable:
        table: WindowTable = self.states.operator.windows
        return table

    @property
    def _contents(self) -> WindowContents:
        return self._table.contents

    def check(self, what: str) -> None:
        """Check that the job's aggregates can be restored from what Flink's windows hold.

        Raises
        ------
        ConfigurationError
            If the windows or an aggregate cannot be restored.
        """
        contents, states = self._contents, dict(self.states.keyed_states())
        if (
            self._table.kind not in _KINDS
            or contents.trigger not in _TRIGGERS
            or contents.keeps_results
            or (contents.is_global and contents.trigger == "event_time")
        ):
            raise ConfigurationError(
                f"the windows of {what} ({self._table.kind}, {contents.trigger}) cannot begin with those of a Flink "
                "job. Take tumbling, sliding or session windows with their own trigger, or a function over windows"
            )
        for name, state in states.items():
            expected = name in (CONTENTS, MERGING_WINDOW_SET, *_TRIGGER_STATES)
            if not expected or (name == CONTENTS and state.kind == "LIST"):
                reason = "holds the elements themselves" if expected else "is not one of windows over columns"
                raise ConfigurationError(
                    f"state {name!r} of {what} {reason}. Restore it into a function over windows: process(...) in "
                    "place of aggregate(...)"
                )
        if CONTENTS in states:
            assert states[CONTENTS].keyed_types.value is not None
            self._check_fields(states[CONTENTS].keyed_types.value, what)

    def _check_fields(self, value: StateSerializer, what: str) -> None:
        window = self._window
        parts = _fields_of(value)
        keys = [field.name for field in self.states.operator.key_fields or ()]
        if len(parts) != len(window.fields):
            raise ConfigurationError(
                f"the windows of {what} hold {value.name}, of {len(parts)} fields, and {list(window.fields)} are "
                f"declared. Name an aggregate or key for each: FlinkOperator({self.states.target.uid!r}, "
                "window=FlinkWindow(type, fields))"
            )
        for name, function, column, _, _ in self._contents.aggregates:
            shown = f"{name} = {function}({column or ''})"
            if name not in window.fields:
                raise ConfigurationError(
                    f"the windows of {what} hold nothing for the aggregate {shown}: the declared fields of "
                    f"{value.name} are {list(window.fields)}. Leave the aggregate out, or declare its field: "
                    f"FlinkOperator({self.states.target.uid!r}, window=FlinkWindow(type, fields))"
                )
            if function not in _OF_RESULTS:
                raise ConfigurationError(
                    f"the aggregate {shown} of {what} cannot be restored from the result that a field of {value.name} "
                    f"has; {', '.join(_OF_RESULTS)} can. Restore the accumulator into an AggregateFunction"
                )
        known = [*keys, *(each[0] for each in self._contents.aggregates)]
        for field in window.fields:
            if field is not None and field not in known:
                raise ConfigurationError(
                    f"{what} has no aggregate or key {field!r} for a field of {value.name}; it has {known}"
                )

    @property
    def _window(self) -> FlinkWindow:
        """The declared contents, or by default a field for each aggregate."""
        declared = self.states.target.window
        if declared is not None:
            return declared
        return FlinkWindow(basic.LONG, [each[0] for each in self._contents.aggregates])

    # ---- tables ----

    def tables(self, first: int, last: int) -> list[CheckpointTable]:
        """Return the windows of a range of key groups, both ends included.

        Raises
        ------
        SavepointError
            If a file is damaged or missing.
        DataError
            If a key or a value has no place in the columns of the job.
        """
        found = {name: self._rows(state, first, last) for name, state in self.states.keyed_states()}
        timers = [
            self._rows(state, first, last)
            for service, is_event_time, state in self.states.timers()
            if service == WINDOW_TIMERS and is_event_time
        ]
        sets = found.pop(MERGING_WINDOW_SET, None)
        parts = {name: rows for name, rows in found.items() if name in (CONTENTS, *_TRIGGER_STATES)}
        places = [*parts.values(), *timers]
        if sets is not None:
            places.append(_sessions(sets))
        if not any(rows.n for rows in places):
            return []
        ids = self._ids(places)
        if sets is not None:
            for rows in parts.values():
                _replace_state_windows(rows, places[-1])
        table = self._made(parts, timers, places[-1] if sets is not None else None, ids)
        return [table] if table.batch.num_rows else []

    def _rows(self, state: KeyedState, first: int, last: int) -> _Rows:
        keys = self.states.keys
        assert keys is not None
        columns: dict[str, list[pa.Array]] = {}
        key_batches: list[pa.RecordBatch] = []
        groups: list[npt.NDArray[np.int32]] = []
        for batch in state.batches(self.states.key_groups(first, last)):
            own, _ = keys.groups(batch.column("key"))
            rows = np.flatnonzero((own >= first) & (own <= last))
            taken = batch.take(pa.array(rows))
            key_batches.append(keys.columns(taken.column("key")))
            groups.append(own[rows])
            for name in ("namespace", "value", "timestamp_ms"):
                if name in taken.schema.names:
                    columns.setdefault(name, []).append(taken.column(name))
        n = sum(len(each) for each in groups)
        joined = {name: pa.concat_arrays(arrays) for name, arrays in columns.items()}
        starts, ends = np.full(n, MIN_TIMESTAMP), np.full(n, MAX_TIMESTAMP)
        if "namespace" in joined and pa.types.is_struct(joined["namespace"].type):
            starts, ends = (joined["namespace"].field(number).to_numpy() for number in (0, 1))
        return _Rows(
            key_batches,
            np.concatenate(groups) if groups else np.empty(0, np.int32),
            np.array(starts, np.int64),
            np.array(ends, np.int64),
            joined.get("value"),
            joined["timestamp_ms"].to_numpy() if "timestamp_ms" in joined else None,
            np.empty(0, np.int64),
        )

    def _ids(self, parts: Sequence[_Rows]) -> pa.RecordBatch:
        """Number the keys of all rows, and return the keys in the order of their numbers."""
        fields = list(self.states.operator.key_fields or ())
        schema = pa.schema(fields)
        if not fields:
            for rows in parts:
                rows.ids = np.zeros(rows.n, np.int64)
            return pa.RecordBatch.from_struct_array(pa.array([{}], pa.struct([])))
        numbers = KeyDictionary(schema, [field.name for field in fields])
        keys = [batch for rows in parts for batch in rows.keys]
        for rows in parts:
            own = [numbers.ids(batch).astype(np.int64) for batch in rows.keys]
            rows.ids = np.concatenate(own) if own else np.empty(0, np.int64)
        every = np.concatenate([rows.ids for rows in parts])
        _, firsts = np.unique(every, return_index=True)
        table = pa.Table.from_batches([batch.cast(schema) for batch in keys], schema)
        (batch,) = table.take(pa.array(firsts)).combine_chunks().to_batches() or [
            schema.empty_table().to_batches()
        ]
        return batch

    def _made(
        self,
        parts: dict[str, _Rows],
        timers: Sequence[_Rows],
        sessions: _Rows | None,
        keys: pa.RecordBatch,
    ) -> CheckpointTable:
        """Return a table with a row for each window that has contents, a state of its trigger, or is a session."""
        contents = self._contents
        with_rows = [*parts.values(), *([] if sessions is None else [sessions])]
        every = np.concatenate([rows.places for rows in with_rows])
        places, firsts, numbers = np.unique(every, axis=0, return_index=True, return_inverse=True)
        ends_of_parts = np.cumsum([rows.n for rows in with_rows])[:-1]
        at = dict(zip(parts, np.split(numbers.reshape(-1), ends_of_parts), strict=False))
        n, kind = len(places), self._table.kind
        ids, starts, ends = places[:, 0], places[:, 1], places[:, 2]
        groups = np.concatenate([rows.groups for rows in with_rows])[firsts]
        states = np.full(n, 0 if contents.trigger == "count" else MIN_TIMESTAMP)
        for name in _TRIGGER_STATES:
            if name in parts and parts[name].n:
                value = parts[name].value
                assert value is not None
                states[at[name]] = value.to_numpy()
        flags = np.zeros(n, np.uint8)
        filled = at.get(CONTENTS, np.empty(0, np.int64))
        is_filled = np.zeros(n, np.bool_)
        is_filled[filled] = True
        # Windows that fire at their end alone, and are over then, have not fired.
        armed = (
            set()
            if kind == "time_windows"
            else {(*place, time) for rows in timers for place, time in rows.timers()}
        )
        of_keys = places.tolist() if armed else []
        ends_armed = np.ones(n, np.bool_)
        if kind != "time_windows":
            ends_armed = np.array([(*key, key[2] - 1) in armed for key in of_keys] or [False] * n, np.bool_)
        if contents.trigger == "continuous_event_time":
            is_armed = [(*key, state) in armed for key, state in zip(of_keys, states.tolist(), strict=False)]
            states = np.where(is_armed or [False] * n, states, MIN_TIMESTAMP)
        if kind == "session_windows":
            if contents.trigger == "count":
                flags |= np.uint8(_FIRED)
            else:
                flags |= np.where(ends_armed, 0, _FIRED).astype(np.uint8)
                before = (states != MIN_TIMESTAMP) & (states < ends)
                flags |= np.where(before, _FIRES_BEFORE, 0).astype(np.uint8)
        elif kind == "triggered_windows" and contents.trigger == "event_time":
            states = np.where(ends_armed, ends - 1, MIN_TIMESTAMP)
        elif kind == "time_windows":
            states = np.zeros(n, np.int64)
        if kind != "time_windows":
            flags |= np.where(is_filled, _FILLED, 0).astype(np.uint8)
        columns: dict[str, Any] = {
            "key_group": pa.array(groups.astype(np.int32)),
            **{
                f"key.{name}": column.take(pa.array(ids))
                for name, column in zip(keys.schema.names, keys.columns, strict=True)
            },
            "window_start": pa.array(starts),
            "window_end": pa.array(ends),
            "trigger_state": pa.array(states.astype(np.int64)),
            "flags": pa.array(flags),
            **self._accumulators(parts.get(CONTENTS), filled.astype(np.uint32), n),
        }
        batch = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
        attributes = {
            "kind": kind,
            "earliest_end_ms": pc.min(columns["window_end"]).as_py(),
            "latest_end_ms": pc.max(columns["window_end"]).as_py(),
        }
        return CheckpointTable(batch, {}, attributes)

    def _accumulators(
        self, rows: _Rows | None, entries: npt.NDArray[np.uint32], n: int
    ) -> dict[str, pa.Array]:
        """Return the columns of the accumulators of `n` windows, of which some have contents."""
        values = (
            {}
            if rows is None or rows.value is None
            else dict(zip(self._window.fields, _columns_of(rows.value), strict=False))
        )
        known = {name: value for name, value in values.items() if name is not None}
        what = f"state {CONTENTS!r} of operator {self.states.target.uid!r}"
        return fed_accumulators(self._contents, known, entries, n, what)


@dataclass
class _Rows:
    """Rows of a state or of timers.

    Attributes
    ----------
    keys : list of pyarrow.RecordBatch
        Key columns of the job, in batches.
    groups : numpy.ndarray of int32, shape (n,)
        Key groups that the job gives them.
    starts, ends : numpy.ndarray of int64, shape (n,)
        Bounds of the windows, in ms since the epoch.
    value : pyarrow.Array or None
    times_ms : numpy.ndarray of int64 or None
        Times of timers.
    ids : numpy.ndarray of int64, shape (n,)
        Numbers of the keys.
    """

    keys: list[pa.RecordBatch]
    groups: npt.NDArray[np.int32]
    starts: Int64s
    ends: Int64s
    value: pa.Array | None
    times_ms: Int64s | None
    ids: Int64s

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.groups)

    @property
    def places(self) -> Int64s:
        """Number of the key, and bounds of the window, by row; shape (n, 3)."""
        return np.stack((self.ids, self.starts, self.ends), axis=1)

    def timers(self) -> Iterator[tuple[tuple[int, ...], int]]:
        """Yield the windows of timers with their times."""
        assert self.times_ms is not None or not self.n
        times_ms = [] if self.times_ms is None else self.times_ms.tolist()
        yield from zip(map(tuple, self.places.tolist()), times_ms, strict=True)


def _sessions(sets: _Rows) -> _Rows:
    """Return the sessions of merging sets, a row each, whose `value` is the window that has the state."""
    if sets.value is None:
        return sets
    parents = pc.list_parent_indices(sets.value)
    of_rows = parents.to_numpy()
    pairs = sets.value.flatten()
    starts, ends = (pairs.field(0).field(number).to_numpy() for number in (0, 1))
    keys = pa.Table.from_batches(sets.keys, sets.keys[0].schema).take(parents).to_batches()
    return _Rows(keys, sets.groups[of_rows], starts, ends, pairs.field(1), None, np.empty(0, np.int64))


def _replace_state_windows(rows: _Rows, sessions: _Rows) -> None:
    """Replace the windows that have the states of sessions by the sessions."""
    if sessions.value is None or not rows.n:
        return
    state_windows = zip(*(sessions.value.field(number).to_pylist() for number in (0, 1)), strict=True)
    by_state = {
        (key, *window): (start, end)
        for key, window, start, end in zip(
            sessions.ids.tolist(),
            state_windows,
            sessions.starts.tolist(),
            sessions.ends.tolist(),
            strict=True,
        )
    }
    found = [by_state.get((key, start, end), (start, end)) for key, start, end in rows.places.tolist()]
    bounds = np.array(found, np.int64).reshape(-1, 2)
    rows.starts, rows.ends = bounds[:, 0].copy(), bounds[:, 1].copy()


def _fields_of(serializer: StateSerializer) -> Sequence[StateSerializer]:
    if isinstance(serializer, PojoSerializer):
        return [part for _, part in serializer.fields]
    if isinstance(serializer, TupleSerializer | RowSerializer):
        return serializer.nested
    return [serializer]


def _columns_of(value: pa.Array) -> list[pa.Array]:
    """Return the fields of accumulators, or the accumulators themselves."""
    if pa.types.is_struct(value.type):
        return [value.field(number) for number in range(value.type.num_fields)]
    return [value]
