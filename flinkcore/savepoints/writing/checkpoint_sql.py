"""State of a compiled plan's operators in a checkpoint, as Flink's operators of the same nodes keep it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._native.aggregates import Accumulators
from flinkcore._native.key_dictionary import KeyDictionary
from flinkcore.checkpoint.table_file import TableFile
from flinkcore.checkpoint.table_kinds import TableKind
from flinkcore.columnar.operator_plans.aggregate_contents import AggregateContents
from flinkcore.columnar.operator_plans.window_contents import WindowContents
from flinkcore.columnar.relational.accumulator_columns import restore_accumulators
from flinkcore.columnar.relational.frame_aggregates import FRAMES, held_by_frames
from flinkcore.columnar.stages.window_state import key_columns_of
from flinkcore.errors import ConfigurationError, DataError, UnsupportedOperationError
from flinkcore.savepoints.keyed_types import KeyedTypes
from flinkcore.savepoints.serializers import basic, times
from flinkcore.savepoints.serializers.row_data import RowDataSerializer, row_data
from flinkcore.savepoints.sql_accumulators import accumulator_rows, rows_of_columns
from flinkcore.savepoints.sql_states import (
    ACCUMULATORS,
    EMITTED,
    KEPT_ROW,
    KEPT_TABLE,
    WAITING_ROW,
    WATERMARK,
    WINDOW_ACCUMULATORS,
)
from flinkcore.savepoints.writing.checkpoint_states import TIMERS, CheckpointOperator
from flinkcore.savepoints.writing.java_hashes import key_groups as java_key_groups
from flinkcore.savepoints.writing.savepoint_writer import OperatorContent
from flinkcore.savepoints.writing.state_files import KeyedStateContent, OperatorStateContent
from flinkcore.sql.plan.flink_state import FlinkState

Int64s = npt.NDArray[np.int64]


def sql_content(operator: CheckpointOperator, state: FlinkState) -> OperatorContent:
    """Return the state of an operator of a plan.

    Raises
    ------
    ConfigurationError
        If it is not known how Flink keeps such a state; names the node.
    """
    if state.refusal:
        raise ConfigurationError(
            f"operator {operator.uid!r}, {state.node}: {state.refusal}. Replay this query without a savepoint, or "
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
        """Return the states for each subtask.

        Notes
        -----
        Flink's ``GroupAggFunction``, and ``WindowAggOperator`` with ``SliceUnsharedWindowAggProcessor`` and
        ``SliceSharedWindowAggProcessor``, whose windows are named by the ends of their slices.
        """
        groups = self.operator.max_parallelism
        listed: list[list[OperatorStateContent]] = []
        parallelism = max(1, min(len(self.operator.parts), groups))
        if self.state.rows:
            return OperatorContent(
                self.operator.target.uid, groups, parallelism, self._key, self._deduplicated(), listed
            )
        of_windows = self.state.kind != "group-aggregate"
        namespace = basic.LONG if of_windows else times.VOID_NAMESPACE
        name = WINDOW_ACCUMULATORS if of_windows else ACCUMULATORS
        types = KeyedTypes("VALUE", self._key, namespace, None, self._value, False)
        keyed = [KeyedStateContent(name, types, self._batches(self._accumulators))]
        if of_windows:
            timers = KeyedTypes("TIMERS", self._key, namespace, None, None, False)
            keyed.append(
                KeyedStateContent(f"{TIMERS}event_window-timers", timers, self._batches(self._timers))
            )
            listed = [[self._watermark()] for _ in range(parallelism)]
        return OperatorContent(self.operator.target.uid, groups, parallelism, self._key, keyed, listed)

    def _deduplicated(self) -> list[KeyedStateContent]:
        """Return the row of each key.

        Notes
        -----
        Flink's ``RowTimeDeduplicateFunction``, and ``RowTimeDeduplicateKeepFirstRowFunction``, which waits.
        """
        void = times.VOID_NAMESPACE
        row = KeyedTypes(
            "VALUE", self._key, void, None, row_data([kind for _, kind in self.state.rows]), False
        )
        if not self.state.waits:
            return [KeyedStateContent(KEPT_ROW, row, self._batches(self._kept_rows))]
        done = KeyedTypes("VALUE", self._key, void, None, basic.BOOLEAN, False)
        timers = KeyedTypes("TIMERS", self._key, void, None, None, False)
        return [
            KeyedStateContent(WAITING_ROW, row, self._batches(self._kept_rows)),
            KeyedStateContent(EMITTED, done, self._batches(self._emitted)),
            KeyedStateContent(f"{TIMERS}event_user-timers", timers, self._batches(self._row_timers)),
        ]

    def _kept_rows(self, file: TableFile, batch: pa.RecordBatch, watermark_ms: int) -> dict[str, pa.Array]:
        rows, taken = _chosen(batch, batch.column("has_row"))
        columns = [taken.column(f"row.{column}") for column, _ in self.state.rows]
        value = rows_of_columns(row_data([kind for _, kind in self.state.rows]), columns, taken.num_rows)
        return {"row": rows, "value": value}

    def _emitted(self, file: TableFile, batch: pa.RecordBatch, watermark_ms: int) -> dict[str, pa.Array]:
        rows, taken = _chosen(batch, pc.invert(batch.column("has_row")))
        return {"row": rows, "value": pa.repeat(pa.scalar(True), taken.num_rows)}

    def _row_timers(self, file: TableFile, batch: pa.RecordBatch, watermark_ms: int) -> dict[str, pa.Array]:
        rows, taken = _chosen(batch, batch.column("has_row"))
        return {"row": rows, "timestamp_ms": taken.column("timestamp")}

    @cached_property
    def _key(self) -> RowDataSerializer:
        return row_data([kind for _, kind in self.state.keys])

    @cached_property
    def _value(self) -> RowDataSerializer:
        return row_data([each.type for each in self.state.fields])

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
            for watermark_ms, file in self._tables():
                batch = self.operator.read(file).batch
                columns = {"key": self._keys(batch), **columns_of(file, batch, watermark_ms)}
                rows = columns.pop("row", None)
                if rows is not None:
                    columns["key"] = columns["key"].take(rows)
                groups = java_key_groups(columns["key"], self._key, self.operator.max_parallelism)
                wanted = pa.array((groups >= key_groups.start) & (groups < key_groups.stop))
                columns = {"key_group": pa.array(groups, pa.int32()), **columns}
                yield pa.RecordBatch.from_arrays(list(columns.values()), list(columns)).filter(wanted)

        return batches

    def _tables(self) -> Iterator[tuple[int, TableFile]]:
        """Yield tables of accumulators with the watermark of their part."""
        relation = KEPT_TABLE if self.state.rows else FRAMES
        for kind, name in ((TableKind.WINDOWS, ""), (TableKind.RELATION, relation)):
            for part, file in self.operator.tables(kind, name):
                if file.n_rows:
                    yield part.watermark_ms, file

    def _keys(self, batch: pa.RecordBatch) -> pa.Array:
        columns = [batch.column(f"key.{column}") for column, _ in self.state.keys]
        return rows_of_columns(self._key, columns, batch.num_rows)

    def _accumulators(self, file: TableFile, batch: pa.RecordBatch, watermark_ms: int) -> dict[str, pa.Array]:
        contents, n = self._contents, batch.num_rows
        specs = [each[1:] for each in contents.aggregates]
        touched = np.zeros(n, np.uint8)
        columns: dict[str, pa.Array] = {}
        if file.kind is TableKind.WINDOWS:
            self._check_slices(file)
            accumulators = Accumulators(contents.columns, specs)
            touched = batch.column("touched").to_numpy()
            columns["namespace"] = batch.column("window_end")
        else:
            accumulators = Accumulators(contents.columns, specs, slides=True)
            batch = held_by_frames(batch.select([name for name in batch.schema.names if name[:1].isdigit()]))
        accumulators.reserve(n)
        entries = np.arange(n, dtype=np.uint32)
        restore_accumulators(accumulators, entries, touched, batch)
        accumulators.emit(entries)
        names = [name for name, *_ in contents.aggregates]
        results = dict(zip(names, map(pa.array, accumulators.take()), strict=True))
        try:
            columns["value"] = accumulator_rows(self._value, self.state.fields, results, n)
        except (pa.ArrowException, ValueError) as failure:
            raise DataError(f"operator {self.operator.uid!r}, {self.state.node}: {failure}") from None
        return columns

    def _check_slices(self, file: TableFile) -> None:
        contents = self._contents
        assert isinstance(contents, WindowContents)
        kind = file.attributes["kind"]
        if kind != ("time_windows" if contents.size_ms == contents.slide_ms else "sliced_windows"):
            raise ConfigurationError(
                f"operator {self.operator.uid!r}, {self.state.node}: these aggregates are kept by window, where Flink "
                "keeps them by slice. Take others, such as those of integers and decimals, or TUMBLE"
            )

    def _timers(self, file: TableFile, batch: pa.RecordBatch, watermark_ms: int) -> dict[str, pa.Array]:
        """Return the timers of windows: each slice has one at its end, or at that of the next window that it is in."""
        contents = self._contents
        assert isinstance(contents, WindowContents)
        ends: Int64s = batch.column("window_end").to_numpy()
        # Without a watermark it is the least of 64 bits, of which nothing can be taken.
        reached = np.maximum(watermark_ms, ends - 1 - contents.slide_ms)
        late = (reached - (ends - 1) + contents.slide_ms) // contents.slide_ms
        fires = ends + late * contents.slide_ms
        rows = np.flatnonzero(fires <= ends + (contents.size_ms - contents.slide_ms))
        names = [name.removeprefix("key.") for name in batch.schema.names if name.startswith("key.")]
        keys = key_columns_of(batch, names)
        of_keys = (
            KeyDictionary(keys.schema, names, null_keys=True).ids(keys)
            if names
            else np.zeros(len(ends), np.uint32)
        )
        places = np.stack((of_keys[rows].astype(np.int64), fires[rows]), axis=1)
        rows = rows[np.unique(places, axis=0, return_index=True)[1]]
        fires = fires[rows]
        return {"row": pa.array(rows), "namespace": pa.array(fires), "timestamp_ms": pa.array(fires - 1)}


def _chosen(batch: pa.RecordBatch, wanted: pa.Array) -> tuple[pa.Array, pa.RecordBatch]:
    """Return the numbers of some rows, and the rows."""
    rows = pa.array(np.flatnonzero(wanted.to_numpy(zero_copy_only=False)))
    return rows, batch.take(rows)
