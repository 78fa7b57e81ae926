"""Windows over columns of a checkpoint as a Flink job has them: contents, timers and the states of triggers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore._native.aggregates import Accumulators
from flinkcore._native.key_dictionary import KeyDictionary
from flinkcore.checkpoint.table_file import TableFile
from flinkcore.checkpoint.table_kinds import TableKind
from flinkcore.columnar.operator_plans.window_contents import WindowContents
from flinkcore.columnar.relational.accumulator_columns import restore_accumulators
from flinkcore.columnar.stages.window_state import key_columns_of
from flinkcore.errors import ConfigurationError, DataError
from flinkcore.savepoints.flink_operators import FlinkWindow
from flinkcore.savepoints.keyed_types import KeyedTypes
from flinkcore.savepoints.serializers import basic, times
from flinkcore.savepoints.serializers.composite import RowSerializer, TupleSerializer
from flinkcore.savepoints.serializers.pojo import PojoSerializer
from flinkcore.savepoints.serializers.serializer import SimpleSerializer, StateSerializer
from flinkcore.savepoints.writing.checkpoint_rows import MERGING_WINDOW_SET
from flinkcore.savepoints.writing.checkpoint_states import TIMERS, CheckpointOperator
from flinkcore.savepoints.writing.java_hashes import key_groups as java_key_groups
from flinkcore.savepoints.writing.java_values import arrow_type
from flinkcore.savepoints.writing.state_files import KeyedStateContent

Int64s = npt.NDArray[np.int64]

_FIRED_PANE, _FIRED_SESSION, _FILLED = 1, 16, 1
_READ: Final = ("time_windows", "sliced_windows", "session_windows", "triggered_windows")
_OF_ARROW: Final[dict[pa.DataType, SimpleSerializer]] = {
    pa.string(): basic.STRING,
    pa.large_string(): basic.STRING,
    pa.int64(): basic.LONG,
    pa.int32(): basic.INT,
    pa.int16(): basic.SHORT,
    pa.int8(): basic.BYTE,
    pa.bool_(): basic.BOOLEAN,
    pa.float64(): basic.DOUBLE,
    pa.float32(): basic.FLOAT,
    pa.date32(): times.LOCAL_DATE,
    pa.binary(): basic.BYTES,
    pa.large_binary(): basic.BYTES,
}


def window_contents(operator: CheckpointOperator) -> list[KeyedStateContent]:
    """Return the states and timers of the windows of an operator over columns.

    Raises
    ------
    ConfigurationError
        If Flink has no such windows, or a declared field is neither an aggregate nor a key.
    """
    return _Windows.of(operator).states()


@dataclass(frozen=True)
class _Windows:
    """Windows of an operator, and the types of the Flink job."""

    operator: CheckpointOperator
    contents: WindowContents
    kind: str
    key_names: tuple[str, ...]
    key: StateSerializer
    same_groups: bool
    window: FlinkWindow
    last_rows: dict[tuple[str, range], _WindowRows] = field(default_factory=dict, compare=False)
    """Rows that were converted last: all states of a range of key groups are made of them."""

    @classmethod
    def of(cls, operator: CheckpointOperator) -> _Windows:
        uid = operator.uid
        contents = WindowContents.of_job(operator.checkpoint.manifest.job, uid)
        tables = [table for _, table in operator.tables(TableKind.WINDOWS)]
        if contents is None or not tables:
            raise ConfigurationError(f"the checkpoint does not describe the windows of operator {uid!r}")
        kind = str(tables[0].attributes["kind"])
        is_known = contents.trigger in ("event_time", "count", "continuous_event_time")
        if kind not in _READ or not is_known or contents.keeps_results:
            raise ConfigurationError(
                f"the windows of operator {uid!r} ({kind}, {contents.trigger}) cannot be written as those of a Flink "
                "job. Take tumbling, sliding or session windows with their own trigger, or a function over windows"
            )
        keys = _keys_of(operator.read(tables[0]).batch)
        names = tuple(keys.schema.names)
        declared = operator.target.key_serializer
        key = declared if declared is not None else _key_serializer(keys.schema, uid)
        same = len(names) == 1 and _OF_ARROW.get(keys.schema.field(0).type) == key
        same &= operator.max_parallelism == operator.checkpoint.max_parallelism
        window = operator.target.window or _default_window(contents)
        for name in window.fields:
            if name not in names and name not in [each[0] for each in contents.aggregates]:
                raise ConfigurationError(
                    f"operator {uid!r} has no aggregate or key {name!r} for the contents of its windows; it has "
                    f"{[*names, *(each[0] for each in contents.aggregates)]}"
                )
        return cls(operator, contents, kind, names, key, same, window)

    @property
    def _is_global(self) -> bool:
        return self.contents.is_global

    def states(self) -> list[KeyedStateContent]:
        namespace = times.GLOBAL_WINDOW if self._is_global else times.TIME_WINDOW
        kind = "REDUCING" if self.window.reduces else "AGGREGATING"
        value = self.window.serializer
        found = [
            self._state(
                "window-contents", KeyedTypes(kind, self.key, namespace, None, value, False), self._values
            )
        ]
        if self.contents.trigger == "count":
            count = KeyedTypes("REDUCING", self.key, namespace, None, basic.LONG, False)
            found.append(self._state("count", count, self._counts))
        if self.contents.trigger == "continuous_event_time":
            fire_time = KeyedTypes("REDUCING", self.key, namespace, None, basic.LONG, False)
            found.append(self._state("fire-time", fire_time, self._fire_times))
        if self.kind == "session_windows":
            pair = TupleSerializer((times.TIME_WINDOW, times.TIME_WINDOW))
            sets = KeyedTypes("LIST", self.key, times.VOID_NAMESPACE, None, pair, False)
            found.append(self._state(MERGING_WINDOW_SET, sets, self._merging_windows))
        if not self._is_global:
            timers = KeyedTypes("TIMERS", self.key, namespace, None, None, False)
            found.append(self._state(f"{TIMERS}event_window-timers", timers, self._timers))
        return found

    def _state(
        self, name: str, types: KeyedTypes, rows: Callable[[_WindowRows], dict[str, pa.Array]]
    ) -> KeyedStateContent:
        def batches(key_groups: range) -> Iterator[pa.RecordBatch]:
            subtasks = self.operator.parts_of(key_groups, self.same_groups)
            for part, table in self.operator.tables(TableKind.WINDOWS):
                if part.subtask in subtasks and table.n_rows:
                    windows = self._rows(table, part.watermark_ms, key_groups)
                    columns = rows(windows)
                    if columns:
                        yield pa.RecordBatch.from_arrays(list(columns.values()), list(columns))

        return KeyedStateContent(name, types, batches)

    def _rows(self, file: TableFile, watermark_ms: int, key_groups: range) -> _WindowRows:
        name = file.file, key_groups
        if name not in self.last_rows:
            self.last_rows.clear()
            self.last_rows[name] = self._converted(file, watermark_ms, key_groups)
        return self.last_rows[name]

    def _converted(self, file: TableFile, watermark_ms: int, key_groups: range) -> _WindowRows:
        batch = self.operator.read(file).batch
        key = self._java_keys(batch)
        groups = java_key_groups(key, self.key, self.operator.max_parallelism)
        rows = _WindowRows(batch, key, groups, None, watermark_ms).where(
            (groups >= key_groups.start) & (groups < key_groups.stop)
        )
        return self._windows_of_slices(rows, watermark_ms) if self.kind == "sliced_windows" else rows

    def _java_keys(self, batch: pa.RecordBatch) -> pa.Array:
        if not self.key_names:  # as the keys of windowAll
            return pa.repeat(pa.scalar(0, pa.int8()), batch.num_rows)
        columns = [batch.column(f"key.{name}") for name in self.key_names]
        if len(columns) == 1 and columns[0].null_count:
            raise DataError(
                f"operator {self.operator.uid!r} has windows whose key {self.key_names[0]!r} is null, which Flink's "
                "DataStream API refuses. Leave null_keys out of key_by, and give nulls a value before it"
            )
        names = [name for name, _ in self.key.fields] if isinstance(self.key, PojoSerializer) else None
        return _structs(columns, list(self.key_names) if names is not None else None, self.key)

    def _windows_of_slices(self, rows: _WindowRows, watermark_ms: int) -> _WindowRows:
        """Return the windows that are still there, from the slices that they share; those of a window are merged."""
        contents, batch = self.contents, rows.batch
        n_slices = contents.size_ms // contents.slide_ms
        of_slice = np.repeat(np.arange(batch.num_rows), n_slices)
        before = np.tile(np.arange(n_slices), batch.num_rows) * contents.slide_ms
        starts = batch.column("window_start").to_numpy()[of_slice] - before
        last = starts + (contents.size_ms - 1)
        is_there = _cleanup_times(last, contents.lateness_ms) > watermark_ms
        of_slice, starts = of_slice[is_there], starts[is_there]
        taken = batch.take(pa.array(of_slice))
        ids = KeyDictionary(_keys_of(batch).schema, list(self.key_names)).ids(_keys_of(taken))
        slices = taken.column("window_start").to_numpy()
        order = np.lexsort((slices, starts, ids))
        is_first = np.ones(len(order), np.bool_)
        if len(order):
            is_first[1:] = (ids[order][1:] != ids[order][:-1]) | (starts[order][1:] != starts[order][:-1])
        firsts = order[is_first]
        accumulators = self._accumulators(taken)
        into = firsts[np.cumsum(is_first) - 1]
        for target, other in zip(into[~is_first].tolist(), order[~is_first].tolist(), strict=True):
            accumulators.merge(target, other)
        ends = starts[firsts] + contents.size_ms
        chosen = pa.array(firsts)
        merged = taken.take(chosen)
        flags = np.where(ends - 1 <= watermark_ms, _FIRED_PANE, 0).astype(np.uint8)
        replaced = {"window_start": starts[firsts], "window_end": ends, "flags": flags}
        columns = [
            pa.array(replaced[name]) if name in replaced else merged.column(name)
            for name in merged.schema.names
        ]
        merged = pa.RecordBatch.from_arrays(columns, schema=merged.schema)
        of_rows = pa.array(of_slice[firsts])
        return _WindowRows(
            merged,
            rows.key.take(of_rows),
            rows.groups[of_slice[firsts]],
            (accumulators, firsts.astype(np.uint32)),
            watermark_ms,
        )

    def _accumulators(self, batch: pa.RecordBatch) -> Accumulators:
        accumulators = Accumulators(self.contents.columns, [each[1:] for each in self.contents.aggregates])
        accumulators.reserve(batch.num_rows)
        touched = batch.column("touched").to_numpy()
        restore_accumulators(accumulators, np.arange(batch.num_rows, dtype=np.uint32), touched, batch)
        return accumulators

    def _values(self, rows: _WindowRows) -> dict[str, pa.Array]:
        if self.kind == "triggered_windows" or (self.contents.purges and self.kind == "session_windows"):
            rows = rows.where((rows.flags & _FILLED) != 0)  # the others were purged
        elif self.contents.purges:
            rows = rows.where((rows.flags & _FIRED_PANE) == 0)
        if rows.merged is None:
            merged = self._accumulators(rows.batch), np.arange(rows.batch.num_rows, dtype=np.uint32)
        else:
            merged = rows.merged
        accumulators, entries = merged
        accumulators.emit(entries)
        results = dict(
            zip(
                [each[0] for each in self.contents.aggregates],
                map(pa.array, accumulators.take()),
                strict=True,
            )
        )
        known = {**{name: rows.batch.column(f"key.{name}") for name in self.key_names}, **results}
        columns = [known[name] for name in self.window.fields if name is not None]
        try:
            value = _structs(columns, None, self.window.serializer)
        except (pa.ArrowException, ValueError) as failure:
            raise DataError(
                f"the windows of operator {self.operator.uid!r} cannot be written as {self.window.serializer.name}: "
                f"{failure}"
            ) from None
        return {**self._names(rows), "value": value}

    def _counts(self, rows: _WindowRows) -> dict[str, pa.Array]:
        rows = rows.where(rows.trigger_states > 0)
        return {**self._names(rows), "value": pa.array(rows.trigger_states)}

    def _fire_times(self, rows: _WindowRows) -> dict[str, pa.Array]:
        rows = rows.where(rows.trigger_states != MIN_TIMESTAMP)
        return {**self._names(rows), "value": pa.array(rows.trigger_states)}

    def _names(self, rows: _WindowRows) -> dict[str, pa.Array]:
        names = {"key_group": pa.array(rows.groups, pa.int32()), "key": rows.key}
        return names if self._is_global else {**names, "namespace": rows.windows}

    def _merging_windows(self, rows: _WindowRows) -> dict[str, pa.Array]:
        """Return the sessions of each key, each of which has its own state."""
        if not rows.batch.num_rows:
            return {}
        ids = KeyDictionary(_keys_of(rows.batch).schema, list(self.key_names)).ids(_keys_of(rows.batch))
        order = np.argsort(ids, kind="stable")
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = ids[order][1:] != ids[order][:-1]
        firsts = np.flatnonzero(is_first)
        offsets = pa.array(np.append(firsts, len(order)), pa.int32())
        windows = rows.windows.take(pa.array(order))
        pairs = pa.StructArray.from_arrays([windows, windows], ["f0", "f1"])
        of_keys = pa.array(order[firsts])
        return {
            "key_group": pa.array(rows.groups[order[firsts]], pa.int32()),
            "key": rows.key.take(of_keys),
            "value": pa.ListArray.from_arrays(offsets, pairs),
        }

    def _timers(self, rows: _WindowRows) -> dict[str, pa.Array]:
        """Return the timers of windows: at their end, unless they have fired, and at the end of their lateness."""
        last = rows.batch.column("window_end").to_numpy() - 1
        fired = _FIRED_SESSION if self.kind == "session_windows" else _FIRED_PANE
        states = rows.trigger_states
        moments: list[Int64s] = []
        if self.contents.trigger == "event_time" and self.kind == "triggered_windows":
            is_armed = (states == last) & (last > rows.watermark_ms)
            moments.append(np.where(is_armed, last, MIN_TIMESTAMP))
        elif self.contents.trigger == "event_time":
            moments.append(np.where((rows.flags & fired) == 0, last, MIN_TIMESTAMP))
        elif self.contents.trigger == "continuous_event_time":
            moments += [last, np.where(states == last, MIN_TIMESTAMP, states)]
        # Without lateness the timer at the end of a window is also the one that cleans it up.
        if self.contents.lateness_ms or not moments:
            cleanup = _cleanup_times(last, self.contents.lateness_ms)
            moments.append(np.where(cleanup == MAX_TIMESTAMP, MIN_TIMESTAMP, cleanup))
        every = np.concatenate(moments) if len(moments) > 1 else moments[0]
        there = every != MIN_TIMESTAMP
        names = self._names(rows)
        if len(moments) > 1 or not there.all():
            of_rows = pa.array(np.flatnonzero(there) % len(last))
            names = {name: column.take(of_rows) for name, column in names.items()}
            every = every[there]
        return {**names, "timestamp_ms": pa.array(every)}


@dataclass(frozen=True)
class _WindowRows:
    """Rows of a table of windows, with the keys of Java.

    Attributes
    ----------
    batch : pyarrow.RecordBatch
    key : pyarrow.Array
    groups : numpy.ndarray of int32, shape (n,)
        Key groups of the Flink job.
    merged : (Accumulators, numpy.ndarray of uint32) or None
        Accumulators, and the entry of each row, where they are not those of the batch.
    watermark_ms : int
        Watermark of the checkpoint.
    """

    batch: pa.RecordBatch
    key: pa.Array
    groups: npt.NDArray[np.int32]
    merged: tuple[Accumulators, npt.NDArray[np.uint32]] | None
    watermark_ms: int

    @property
    def windows(self) -> pa.Array:
        """The windows themselves."""
        bounds = [self.batch.column(name) for name in ("window_start", "window_end")]
        return pa.StructArray.from_arrays(bounds, ["start_ms", "end_ms"])

    @property
    def flags(self) -> npt.NDArray[np.uint8]:
        """Flags of the kernels."""
        found: npt.NDArray[np.uint8] = self.batch.column("flags").to_numpy()
        return found

    @property
    def trigger_states(self) -> Int64s:
        """States of the triggers."""
        found: Int64s = self.batch.column("trigger_state").to_numpy()
        return found

    def where(self, wanted: npt.NDArray[np.bool_]) -> _WindowRows:
        """Return some of the rows."""
        if wanted.all():
            return self
        rows = pa.array(np.flatnonzero(wanted))
        merged = None if self.merged is None else (self.merged[0], self.merged[1][wanted])
        taken = self.batch.take(rows), self.key.take(rows), self.groups[wanted]
        return _WindowRows(*taken, merged, self.watermark_ms)


def _cleanup_times(last: Int64s, lateness_ms: int) -> Int64s:
    return np.where(last > MAX_TIMESTAMP - lateness_ms, MAX_TIMESTAMP, last + lateness_ms)


def _keys_of(batch: pa.RecordBatch) -> pa.RecordBatch:
    names = [name.removeprefix("key.") for name in batch.schema.names if name.startswith("key.")]
    return key_columns_of(batch, names)


def _key_serializer(keys: pa.Schema, uid: str) -> StateSerializer:
    """Return the serializer of keys that a Java job most likely has; of several columns that of a tuple."""
    if not keys.names:
        return basic.BYTE
    parts = []
    for column in keys:
        serializer = times.INSTANT if pa.types.is_timestamp(column.type) else _OF_ARROW.get(column.type)
        if serializer is None:
            raise ConfigurationError(
                f"the key {column.name!r} of operator {uid!r} is {column.type}, for which Java has several types or "
                f"none. Declare its type: FlinkOperator(..., key=...)"
            )
        parts.append(serializer)
    return parts[0] if len(parts) == 1 else TupleSerializer(tuple(parts))


def _default_window(contents: WindowContents) -> FlinkWindow:
    """Return an accumulator of all aggregates: of several a tuple."""
    accumulators = Accumulators(contents.columns, [each[1:] for each in contents.aggregates])
    types = [pa.array(column).type for column in accumulators.take()]
    parts = []
    for (name, *_), each in zip(contents.aggregates, types, strict=True):
        serializer = times.INSTANT if pa.types.is_timestamp(each) else _OF_ARROW.get(each)
        if serializer is None:
            raise ConfigurationError(
                f"aggregate {name!r} is {each}, for which Java has several types or none. Declare the contents of the "
                "windows: FlinkOperator(..., window=FlinkWindow(...))"
            )
        parts.append(serializer)
    names = [name for name, *_ in contents.aggregates]
    return FlinkWindow(parts[0] if len(parts) == 1 else TupleSerializer(tuple(parts)), names)


def _structs(columns: list[pa.Array], names: list[str] | None, serializer: StateSerializer) -> pa.Array:
    """Return values of a serializer whose fields are columns, or whose only column it is."""
    target = arrow_type(serializer)
    if isinstance(serializer, TupleSerializer | RowSerializer | PojoSerializer):
        n_fields = len(serializer.parts)
        if len(columns) != n_fields:
            raise ValueError(f"{serializer.name} has {n_fields} fields, and {len(columns)} are given")
        by_name = dict(zip(names, columns, strict=True)) if names is not None else None
        fields: list[Any] = []
        for number in range(target.num_fields):
            own = target.field(number)
            if number >= n_fields:  # the row kind
                fields.append(pa.repeat(pa.scalar("+I"), len(columns[0])))
            else:
                column = by_name[own.name] if by_name is not None else columns[number]
                fields.append(column.cast(own.type))
        return pa.StructArray.from_arrays(fields, [own.name for own in target])
    if len(columns) != 1:
        raise ValueError(f"{serializer.name} has one field, and {len(columns)} are given")
    return columns[0].cast(target)
