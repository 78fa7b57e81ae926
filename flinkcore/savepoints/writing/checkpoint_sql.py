"""State of a compiled plan's operators in a checkpoint, as Flink's operators of the same nodes keep it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._native.aggregates import Accumulators
from flinkcore._native.key_dictionary import KeyDictionary
from flinkcore.checkpoint.checkpoint_manifest import OperatorPart
from flinkcore.checkpoint.table_file import TableFile
from flinkcore.checkpoint.table_kinds import TableKind
from flinkcore.columnar.operator_plans.aggregate_contents import AggregateContents
from flinkcore.columnar.operator_plans.window_contents import WindowContents
from flinkcore.columnar.relational.accumulator_columns import accumulator_columns, restore_accumulators
from flinkcore.columnar.relational.frame_aggregates import FRAMES, held_by_frames
from flinkcore.columnar.relational.frame_rows import FRAME_ROWS
from flinkcore.columnar.stages.window_state import key_columns_of
from flinkcore.errors import ConfigurationError, DataError, UnsupportedOperationError
from flinkcore.savepoints.serializers import basic
from flinkcore.savepoints.serializers.row_data import RowDataSerializer, row_data
from flinkcore.savepoints.sql.accumulators import (
    NO_SUM,
    accumulator_rows,
    counted,
    float_sums,
    n_kept,
    rows_of_columns,
)
from flinkcore.savepoints.sql.aggregate_states import accumulator_data, aggregate_states
from flinkcore.savepoints.sql.frame_rows import running_frames
from flinkcore.savepoints.sql.layouts import layout_of
from flinkcore.savepoints.sql.names import OF_NULL, SESSIONS, WATERMARK, WINDOW_TIMERS
from flinkcore.savepoints.sql.row_layout import Entries, PartTables, RowLayout
from flinkcore.savepoints.sql.views import view_rows
from flinkcore.savepoints.sql.window_names import ends_of_windows, first_slices, last_ends, names_of_windows
from flinkcore.savepoints.sql.window_slices import require_divisible, slices_of_windows
from flinkcore.savepoints.writing.checkpoint_states import CheckpointOperator
from flinkcore.savepoints.writing.java_hashes import key_groups as java_key_groups
from flinkcore.savepoints.writing.savepoint_writer import OperatorContent
from flinkcore.savepoints.writing.state_files import KeyedStateContent, OperatorStateContent
from flinkcore.sql.plan.flink_state import (
    CUMULATE,
    ROWS,
    SESSION,
    TUMBLE,
    FlinkState,
    Layout,
    StateWindows,
    ValuesView,
)

Int64s = npt.NDArray[np.int64]


def sql_content(operator: CheckpointOperator, state: FlinkState) -> OperatorContent:
    """Return the state of an operator of a plan.

    Raises
    ------
    ConfigurationError
        If it is not known how Flink keeps such a state; names the node.
    """
    if reason := state.refusal or state.only_read:
        raise ConfigurationError(
            f"operator {operator.uid!r}, {state.node}: {reason}. Replay this query without a savepoint, or "
            f"leave out its state: SavepointTarget(path, leave_out=[{operator.uid!r}])"
        )
    try:
        return _SqlOperator(operator, state).content()
    except UnsupportedOperationError as failure:
        raise ConfigurationError(f"operator {operator.uid!r}, {state.node}: {failure}") from None


@dataclass(frozen=True)
class _SqlOperator:
    """An operator of a plan in a checkpoint.

    Attributes
    ----------
    operator : CheckpointOperator
    state : FlinkState
    """

    operator: CheckpointOperator
    state: FlinkState

    def content(self) -> OperatorContent:
        """Return the states for each subtask."""
        self._check_frames()
        self._check_windows()
        groups = self.operator.max_parallelism
        listed: list[list[OperatorStateContent]] = []
        parallelism = max(1, min(len(self.operator.parts), groups))
        keyed = [] if self.state.layout is Layout.ACCUMULATORS else self._rows()
        if self.state.has_accumulators:
            of_states = {WINDOW_TIMERS: self._timers, SESSIONS: self._sessions}
            of_states |= {view.state: partial(self._values, view) for view in self.state.views}
            keyed += [
                KeyedStateContent(name, types, self._batches(of_states.get(name, self._accumulators)))
                if not name.endswith(OF_NULL)
                else KeyedStateContent(name, types, lambda key_groups: iter(()))
                for name, types in aggregate_states(self.state).items()
            ]
        if self.state.has_watermark:
            listed = [[self._watermark()] for _ in range(parallelism)]
        return OperatorContent(self.operator.target.uid, groups, parallelism, self._key, keyed, listed)

    def _check_frames(self) -> None:
        if self.state.layout is not Layout.FRAME_ROWS:
            return
        for part in self.operator.parts:
            n_rows = {file.name: file.n_rows for file in part.tables_of(TableKind.RELATION)}
            if n_rows.get(FRAMES) and FRAME_ROWS not in n_rows:
                raise UnsupportedOperationError(
                    "the checkpoint has the aggregates of bounded frames, and Flink's state has their rows. Stop the "
                    "job with stop_with_savepoint, which keeps them"
                )

    def _check_windows(self) -> None:
        if self.state.windows is None or not self.state.has_accumulators:
            return
        for _, file in self.operator.tables(TableKind.WINDOWS):
            if file.n_rows and self._is_kept_by_window(file):
                require_divisible(self._contents)

    def _rows(self) -> list[KeyedStateContent]:
        layout = layout_of(self.state)
        return [
            KeyedStateContent(name, types, self._entries(layout, name))
            for name, types in layout.states().items()
        ]

    def _entries(self, layout: RowLayout, name: str) -> Callable[[range], Iterator[pa.RecordBatch]]:
        def entries(key_groups: range) -> Iterator[pa.RecordBatch]:
            for part in self.operator.parts:
                found = layout.written(name, PartTables(self.state, partial(self._table, part)))
                if found is not None:
                    yield self._of_groups(found, key_groups)

        return entries

    def _table(self, part: OperatorPart, name: str) -> pa.RecordBatch | None:
        tables = [
            self.operator.read(file).batch
            for file in part.tables_of(TableKind.RELATION)
            if file.name == name and file.n_rows
        ]
        return pa.concat_batches(tables) if tables else None

    def _of_groups(self, entries: Entries, key_groups: range) -> pa.RecordBatch:
        """Return the entries of some key groups, with them."""
        groups = java_key_groups(entries["key"], self._key, self.operator.max_parallelism)
        wanted = pa.array((groups >= key_groups.start) & (groups < key_groups.stop))
        columns = {"key_group": pa.array(groups, pa.int32()), **entries}
        return pa.RecordBatch.from_arrays(list(columns.values()), list(columns)).filter(wanted)

    @cached_property
    def _key(self) -> RowDataSerializer:
        return row_data([kind for _, kind in self.state.keys], is_key=True)

    @cached_property
    def _value(self) -> RowDataSerializer:
        return accumulator_data(self.state)

    @cached_property
    def _contents(self) -> AggregateContents:
        of_windows = self.operator.has(TableKind.WINDOWS)
        kind: type[AggregateContents] = WindowContents if of_windows else AggregateContents
        found = kind.of_job(self.operator.checkpoint.manifest.job, self.operator.uid)
        if found is None:
            raise ConfigurationError(
                f"the checkpoint does not describe the aggregates of operator {self.operator.uid!r}. Run the job "
                "again with this version"
            )
        return found

    def _watermark(self) -> OperatorStateContent:
        """Return the watermark by which Flink's windows know late rows; Flink takes the least of all subtasks."""
        watermark_ms = min(part.watermark_ms for part in self.operator.parts)
        rows = pa.RecordBatch.from_arrays([pa.array([watermark_ms], pa.int64())], ["value"])
        return OperatorStateContent(WATERMARK, "UNION", None, basic.LONG, rows)

    def _batches(
        self, columns_of: Callable[[TableFile, pa.RecordBatch, int], dict[str, pa.Array]]
    ) -> Callable[[range], Iterator[pa.RecordBatch]]:
        def batches(key_groups: range) -> Iterator[pa.RecordBatch]:
            for watermark_ms, file, batch in self._tables():
                columns = {"key": self._keys(batch), **columns_of(file, batch, watermark_ms)}
                rows = columns.pop("row", None)
                if rows is not None:
                    columns["key"] = columns["key"].take(rows)
                yield self._of_groups(columns, key_groups)

        return batches

    def _tables(self) -> Iterator[tuple[int, TableFile, pa.RecordBatch]]:
        """Yield tables of accumulators with the watermark of their part."""
        for kind, name in ((TableKind.WINDOWS, ""), (TableKind.RELATION, FRAMES)):
            for part, file in self.operator.tables(kind, name):
                if file.n_rows:
                    batch = self.operator.read(file).batch
                    if kind is TableKind.WINDOWS and self._is_kept_by_window(file):
                        batch = slices_of_windows(self.state, batch, self._contents, part.watermark_ms)
                    rows = self._table(part, FRAME_ROWS)
                    if rows is not None:
                        batch = running_frames(batch, rows, self._contents, retracts=self._retracts)
                    yield part.watermark_ms, file, batch

    @property
    def _retracts(self) -> bool:
        return any(view.is_counted for view in self.state.views)

    def _keys(self, batch: pa.RecordBatch) -> pa.Array:
        columns = [batch.column(f"key.{column}") for column, _ in self.state.keys]
        return rows_of_columns(self._key, columns, batch.num_rows)

    def _held(self, file: TableFile, batch: pa.RecordBatch, watermark_ms: int) -> _Held:
        """Return the accumulators of a table, of which those merge that Flink has as one."""
        contents, n = self._contents, batch.num_rows
        specs = [each[1:] for each in contents.aggregates]
        touched, numbers = np.zeros(n, np.uint8), {str(number) for number in range(len(specs))}
        if file.kind is TableKind.WINDOWS:
            accumulators = Accumulators(contents.columns, specs)
            touched = batch.column("touched").to_numpy()
        else:
            accumulators = Accumulators(contents.columns, specs, runs=True, retracts=self._retracts)
            # A count of rows comes last if they are withdrawn, and no aggregate has its number.
            names = [name for name in batch.schema.names if name.partition("_")[0] in numbers]
            batch = held_by_frames(batch.select(names))
        accumulators.reserve(n)
        entries = np.arange(n, dtype=np.uint32)
        restore_accumulators(accumulators, entries, touched, batch)
        columns: dict[str, pa.Array] = {}
        if self.state.windows is not None:
            entries, namespaces = self._named_windows(self.state.windows, accumulators, batch, watermark_ms)
            columns = {"row": pa.array(entries), "namespace": namespaces}
        return _Held(accumulators, entries, columns, batch)

    def _accumulators(self, file: TableFile, batch: pa.RecordBatch, watermark_ms: int) -> dict[str, pa.Array]:
        held = self._held(file, batch, watermark_ms)
        held.accumulators.emit(held.entries)
        names = [name for name, *_ in self._contents.aggregates]
        results = dict(zip(names, map(pa.array, held.accumulators.take()), strict=True))
        if self.state.windows is None:
            results[ROWS] = batch.column("time")
            for number, name in enumerate(names):
                if f"{number}.counts" in held.parts.schema.names:
                    results[counted(name)] = held.parts.column(f"{number}.counts")
                if f"{number}.set_counts" in held.parts.schema.names:
                    results[n_kept(name)] = pc.list_value_length(held.parts.column(f"{number}.set_counts"))
            for number, name in float_sums(self._contents).items():
                # Last bits of a sum may be left when all values have been taken away.
                words = held.parts.column(f"{number}.words").to_numpy()
                is_none = words == np.float64(NO_SUM).view(np.uint64)
                left = pa.array(words.view(np.float64), mask=is_none).cast(results[name].type)
                results[name] = pc.coalesce(results[name], left)
        try:
            value = accumulator_rows(self._value, self.state.fields, results, len(held.entries))
        except (pa.ArrowException, ValueError) as failure:
            raise DataError(f"operator {self.operator.uid!r}, {self.state.node}: {failure}") from None
        return {**held.columns, "value": value}

    def _values(
        self, view: ValuesView, file: TableFile, batch: pa.RecordBatch, watermark_ms: int
    ) -> dict[str, pa.Array]:
        held = self._held(file, batch, watermark_ms)
        numbers = {name: number for number, (name, *_) in enumerate(self._contents.aggregates)}
        found = view_rows(view, accumulator_columns(held.accumulators, held.entries), numbers)
        rows = pa.array(found.rows)
        columns = {name: column.take(rows) for name, column in held.columns.items()} or {"row": rows}
        return {**columns, "map_key": found.values, "value": pa.array(found.counts)}

    def _is_kept_by_window(self, file: TableFile) -> bool:
        """Return whether a table has windows, where Flink has the slices that they share."""
        windows = self.state.windows
        assert windows is not None
        kinds = {TUMBLE: "time_windows", SESSION: "session_windows"}
        if file.attributes["kind"] == kinds.get(windows.kind, "sliced_windows"):
            return False
        if windows.kind in kinds or windows.by_window:
            raise UnsupportedOperationError(
                "these aggregates are kept by window, where Flink keeps them by pane. Take others, such as those of "
                "integers and decimals, or TUMBLE. If the job began with a savepoint, replay from before it"
            )
        return True

    def _named_windows(
        self, windows: StateWindows, accumulators: Accumulators, batch: pa.RecordBatch, watermark_ms: int
    ) -> tuple[npt.NDArray[np.uint32], pa.Array]:
        """Return the rows of windows or slices with their names; of windows that cumulate, merge what has fired."""
        starts, ends = _bounds(batch)
        rows = np.arange(len(ends), dtype=np.uint32)
        if windows.kind != CUMULATE:
            return rows, names_of_windows(windows, starts, ends)
        # Flink adds slices that have fired to the first one of their window.
        ends = np.where(ends - 1 <= watermark_ms, first_slices(windows, ends), ends)
        places = np.stack((self._key_ids(batch), ends), axis=1)
        _, firsts, into = np.unique(places, axis=0, return_index=True, return_inverse=True)
        targets = firsts[into.reshape(-1)]
        for row in np.flatnonzero(targets != rows).tolist():
            accumulators.merge(int(targets[row]), row)
        return firsts.astype(np.uint32), pa.array(ends[firsts])

    def _timers(self, file: TableFile, batch: pa.RecordBatch, watermark_ms: int) -> dict[str, pa.Array]:
        """Return the timers of windows: each slice has one at its end, or at that of the next window that it is in."""
        windows = self.state.windows
        assert windows is not None
        starts, ends = _bounds(batch)
        rows = np.arange(len(ends))
        if windows.kind != SESSION and windows.by_window:
            rows, ends = ends_of_windows(windows, ends)
            is_open = ends - 1 > watermark_ms
            rows, ends = rows[is_open], ends[is_open]
            starts = ends - windows.size_ms
        elif windows.kind != SESSION:
            # Without a watermark it is the least of 64 bits, of which nothing can be taken.
            reached = np.maximum(watermark_ms, ends - 1 - windows.slide_ms)
            late = (reached - (ends - 1) + windows.slide_ms) // windows.slide_ms
            fires = ends + late * windows.slide_ms
            rows = np.flatnonzero(fires <= last_ends(windows, ends))
            ends, starts = fires[rows], starts[rows]
        places = np.stack(
            (self._key_ids(batch)[rows], starts if windows.kind == SESSION else ends, ends), axis=1
        )
        firsts = np.unique(places, axis=0, return_index=True)[1]
        rows, starts, ends = rows[firsts], starts[firsts], ends[firsts]
        names = names_of_windows(windows, starts, ends)
        return {"row": pa.array(rows), "namespace": names, "timestamp_ms": pa.array(ends - 1)}

    def _sessions(self, file: TableFile, batch: pa.RecordBatch, watermark_ms: int) -> dict[str, pa.Array]:
        assert self.state.windows is not None
        names = names_of_windows(self.state.windows, *_bounds(batch))
        return {"map_key": names, "value": names}

    def _key_ids(self, batch: pa.RecordBatch) -> Int64s:
        names = [name.removeprefix("key.") for name in batch.schema.names if name.startswith("key.")]
        keys = key_columns_of(batch, names)
        if not names:
            return np.zeros(batch.num_rows, np.int64)
        return KeyDictionary(keys.schema, names, null_keys=True).ids(keys).astype(np.int64)


@dataclass(frozen=True)
class _Held:
    """Accumulators of a table.

    Attributes
    ----------
    accumulators : Accumulators
    entries : numpy.ndarray of uint32
        Those that Flink has.
    columns : dict of str to pyarrow.Array
        For windows, the row of each entry in the table, and its namespace.
    parts : pyarrow.RecordBatch
        Contents of the aggregates.
    """

    accumulators: Accumulators
    entries: npt.NDArray[np.uint32]
    columns: dict[str, pa.Array]
    parts: pa.RecordBatch


def _bounds(batch: pa.RecordBatch) -> tuple[Int64s, Int64s]:
    return batch.column("window_start").to_numpy(), batch.column("window_end").to_numpy()
