"""Keyed states and timers of a checkpoint as a Flink job has them: names, serializers and rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

import pyarrow as pa

from flinkcore.checkpoint.checkpoint import Checkpoint
from flinkcore.checkpoint.checkpoint_manifest import OperatorPart
from flinkcore.checkpoint.checkpoint_table import CheckpointTable
from flinkcore.checkpoint.table_file import TableFile, read_table
from flinkcore.checkpoint.table_kinds import TableKind
from flinkcore.checkpoint.value_shape import Shape, has_serialized
from flinkcore.errors import ConfigurationError
from flinkcore.savepoints.flink_operators import FlinkOperator
from flinkcore.savepoints.java_types import serializer_of_shape
from flinkcore.savepoints.keyed_types import KeyedTypes
from flinkcore.savepoints.serializers import basic, times
from flinkcore.savepoints.serializers.composite import (
    BufferEntrySerializer,
    ListSerializer,
    TupleSerializer,
)
from flinkcore.savepoints.serializers.serializer import StateSerializer
from flinkcore.savepoints.writing.checkpoint_rows import (
    BUFFERS,
    MERGING_WINDOW_SET,
    Conversions,
    StateRows,
    timer_rows,
    without_ttl,
)
from flinkcore.savepoints.writing.state_files import KeyedStateContent
from flinkcore.sql.plan.flink_state import FlinkState

TIMERS: Final = "_timer_state/"
OWN_STATE: Final = "flinkcore."
"""Names of operator states that flinkcore's engine of single elements has for itself begin so."""


@dataclass(frozen=True)
class CheckpointOperator:
    """An operator of a checkpoint, with the declaration of the operator that continues with its state.

    Attributes
    ----------
    checkpoint : Checkpoint
    uid : str
        Uid of flinkcore's operator.
    target : FlinkOperator
    max_parallelism : int
        Number of key groups of the Flink job.
    execution_mode : {"process", "thread"} or None
        Mode of a PyFlink program; None if the job is one in Java.
    of_plan : FlinkState or None
        State in Flink, if it is an operator of a compiled plan.
    """

    checkpoint: Checkpoint
    uid: str
    target: FlinkOperator
    max_parallelism: int
    execution_mode: str | None = None
    of_plan: FlinkState | None = None
    last_table: dict[str, CheckpointTable] = field(default_factory=dict, compare=False, repr=False)
    """The table that was read last, by its file: several states are made of one."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "last_table": {}}

    @property
    def parts(self) -> list[OperatorPart]:
        """Parts that the subtasks have written."""
        return self.checkpoint.manifest.parts_by_operator()[self.uid]

    def tables(self, kind: TableKind, name: str = "") -> Iterator[tuple[OperatorPart, TableFile]]:
        """Yield the tables of a kind, and of a name if it is given."""
        for part in self.parts:
            for table in part.tables_of(kind):
                if not name or table.name == name:
                    yield part, table

    def tables_by_name(self, kind: TableKind) -> dict[str, list[TableFile]]:
        """Return the tables of a kind that have rows, by their names."""
        found: dict[str, list[TableFile]] = {}
        for _, table in self.tables(kind):
            if has_state(table, (kind,)):
                found.setdefault(table.name, []).append(table)
        return found

    def has(self, *kinds: TableKind) -> bool:
        """Return whether there are rows of some kinds that a Flink job has, too."""
        return any(has_state(table, kinds) for part in self.parts for table in part.tables)

    def read(self, table: TableFile) -> CheckpointTable:
        """Return the content of a table."""
        if table.file not in self.last_table:
            self.last_table.clear()
            self.last_table[table.file] = read_table(self.checkpoint.storage, table)
        return self.last_table[table.file]

    def key(self) -> tuple[StateSerializer, bool]:
        """Return the serializer of the keys, and whether its key groups are those of the checkpoint.

        Raises
        ------
        ConfigurationError
            If there are several types that Java may have for the keys.
        """
        shapes = [
            table.shapes["key"]
            for kind in (TableKind.KEYED_STATE, TableKind.TIMERS)
            for _, table in self.tables(kind)
            if table.n_rows
        ]
        of_columns = _types_of_key_columns(self.checkpoint.manifest.job, self.uid)
        serializer = self.target.key_serializer
        if serializer is None and len(of_columns) == 1:
            serializer = _OF_COLUMNS.get(of_columns[0])
        if serializer is None:
            if not shapes:
                raise ConfigurationError(
                    f"operator {self.uid!r} has no keyed state or timer from which the type of its keys follows. "
                    f"Declare it: FlinkOperator({self.target.uid!r}, key=...)"
                )
            serializer = inferred(shapes, f"the key of operator {self.uid!r}")
        if of_columns:
            same = len(of_columns) == 1 and _OF_COLUMNS.get(of_columns[0]) == serializer
        else:
            same = all(shape == _SAME_GROUPS.get(serializer) for shape in shapes)
        return serializer, same and self.max_parallelism == self.checkpoint.max_parallelism

    def parts_of(self, key_groups: range, same_groups: bool) -> set[int]:
        """Return the subtasks that may have keys of some key groups of the Flink job."""
        return {
            part.subtask
            for part in self.parts
            if part.key_group_range is not None
            and (
                not same_groups
                or (part.key_group_range[0] < key_groups.stop and part.key_group_range[1] >= key_groups.start)
            )
        }


def has_state(table: TableFile, kinds: Collection[TableKind]) -> bool:
    """Return whether a table has rows of some kinds; states of flinkcore's own, such as clocks, do not count."""
    return table.kind in kinds and table.n_rows > 0 and not table.name.startswith(OWN_STATE)


_SAME_GROUPS: Final[dict[StateSerializer, Shape]] = {
    basic.STRING: "str",
    basic.LONG: "int",
    basic.DOUBLE: "float",
    basic.BOOLEAN: "bool",
}
"""Keys of single elements that flinkcore and Java hash alike, so that key groups do not change."""

_OF_COLUMNS: Final[dict[str, StateSerializer]] = {
    "string": basic.STRING,
    "large_string": basic.STRING,
    "int64": basic.LONG,
    "int32": basic.INT,
    "int16": basic.SHORT,
    "int8": basic.BYTE,
    "double": basic.DOUBLE,
    "float": basic.FLOAT,
    "bool": basic.BOOLEAN,
}
"""Serializers of keys by the type of their column, with the hash codes by which flinkcore has divided the column."""


def _types_of_key_columns(job: Mapping[str, Any], uid: str) -> list[str]:
    """Return the types of an operator's key columns, as the description of its job has them.

    Returns
    -------
    list of str
        One type, several texts if they are not known to be one, and none if the job has single elements.
    """
    texts = [
        text
        for name in ("keys", "keys of stream 1", "keys of stream 2")
        if (text := job.get(f"{uid}: {name}", job.get(name))) is not None
    ]
    types = list(dict.fromkeys(text.rpartition(": ")[2] for text in texts))
    return ["", ""] if any(", " in text for text in texts) else types


class StateTarget(NamedTuple):
    """A keyed state or timers of a Flink job.

    Attributes
    ----------
    name : str
    types : KeyedTypes
    conversions : Conversions
        From the columns of a checkpoint to those of the types.
    """

    name: str
    types: KeyedTypes
    conversions: Conversions = Conversions()


class FlinkStates(Protocol):
    """Names and types of an operator's keyed states in a Flink job."""

    def key(self) -> tuple[StateSerializer, bool]:
        """Return the serializer of the keys, and whether its key groups are those of the checkpoint."""

    def state(self, name: str, tables: list[TableFile], key: StateSerializer) -> StateTarget:
        """Return a state by its name and its tables, which have rows."""

    def timers(self, name: str, tables: list[TableFile], key: StateSerializer) -> StateTarget:
        """Return the timers of a service by its name and its tables, which have rows."""


def keyed_contents(operator: CheckpointOperator, flink: FlinkStates) -> list[KeyedStateContent]:
    """Return the keyed states and timers of an operator of functions.

    Raises
    ------
    ConfigurationError
        If the type of a state is not known, or was written by a serializer of Python.
    """
    key, same_groups = flink.key()
    states = []
    for name, tables in operator.tables_by_name(TableKind.KEYED_STATE).items():
        if any(has_serialized(table.shapes["value"]) for table in tables):
            raise ConfigurationError(
                f"state {name!r} of operator {operator.uid!r} has values that a serializer of Python has written, "
                "which no Flink job can read"
            )
        states.append(_state_content(operator, name, flink.state(name, tables, key), same_groups))
    timers = [
        content
        for name, tables in operator.tables_by_name(TableKind.TIMERS).items()
        for content in _timer_contents(operator, name, flink.timers(name, tables, key), same_groups)
    ]
    return [*states, *timers]


@dataclass(frozen=True)
class JavaStates:
    """Names and types of states as an obvious Java job has them.

    Attributes
    ----------
    operator : CheckpointOperator
    """

    operator: CheckpointOperator

    def key(self) -> tuple[StateSerializer, bool]:
        """Return the serializer of the keys; see `CheckpointOperator.key`."""
        return self.operator.key()

    def state(self, name: str, tables: list[TableFile], key: StateSerializer) -> StateTarget:
        """Return a state with the types that are declared, or else follow from the values."""
        what = f"state {name!r} of operator {self.operator.uid!r}"
        shown = self.operator.target.names.get(name, name)
        shapes = [table.shapes["value"] for table in tables]
        attributes = tables[0].attributes
        kind, has_ttl = str(attributes["type"]).upper(), attributes["ttl_time"] is not None
        map_key, value = self.operator.target.types_of(name)
        if name == MERGING_WINDOW_SET:
            windows = TupleSerializer((times.TIME_WINDOW, times.TIME_WINDOW))
            return StateTarget(shown, KeyedTypes("LIST", key, times.VOID_NAMESPACE, None, windows, False))
        namespace = _namespace(tables, what)
        if name in BUFFERS and kind == "MAP":
            element = value or inferred([shape[2][1] for shape in shapes], what)
            entries = ListSerializer((BufferEntrySerializer((element,)),))
            return StateTarget(shown, KeyedTypes("MAP", key, namespace, basic.LONG, entries, False))
        if kind == "MAP" and map_key is None:
            map_key = inferred([shape[1] for shape in shapes], f"the keys of {what}")
        if value is None:
            of_values = shapes if kind not in ("LIST", "MAP") else [shape[-1] for shape in shapes]
            value = inferred([without_ttl(each) for each in of_values] if has_ttl else of_values, what)
        map_key = map_key if kind == "MAP" else None
        return StateTarget(shown, KeyedTypes(kind, key, namespace, map_key, value, has_ttl))

    def timers(self, name: str, tables: list[TableFile], key: StateSerializer) -> StateTarget:
        """Return timers with the namespaces that follow from the values."""
        namespace = _namespace(tables, f"timers {name!r} of operator {self.operator.uid!r}")
        types = KeyedTypes("TIMERS", key, namespace, None, None, False)
        return StateTarget(self.operator.target.names.get(name, name), types)


def inferred(shapes: list[Shape], what: str) -> StateSerializer:
    """Return the serializer of values of several tables.

    Raises
    ------
    ConfigurationError
        If the values are of several types, or of one that Java does not have.
    """
    found = {serializer_of_shape(shape, what): None for shape in shapes}
    if len(found) != 1:
        names = " and ".join(each.name for each in found)
        raise ConfigurationError(f"{what} has values of several types: {names}. Declare its type")
    return next(iter(found))


def _namespace(tables: list[TableFile], what: str) -> StateSerializer:
    return inferred([table.shapes["namespace"] for table in tables], f"the namespace of {what}")


def _state_content(
    operator: CheckpointOperator, name: str, state: StateTarget, same_groups: bool
) -> KeyedStateContent:
    def batches(key_groups: range) -> Iterator[pa.RecordBatch]:
        subtasks = operator.parts_of(key_groups, same_groups)
        for part, table in operator.tables(TableKind.KEYED_STATE, name):
            if part.subtask in subtasks and table.n_rows:
                rows = StateRows(
                    operator.read(table),
                    state.types,
                    name,
                    operator.uid,
                    operator.max_parallelism,
                    state.conversions,
                )
                yield rows.batch(key_groups)

    return KeyedStateContent(state.name, state.types, batches)


def _timer_contents(
    operator: CheckpointOperator, name: str, timers: StateTarget, same_groups: bool
) -> Iterator[KeyedStateContent]:
    for is_event_time, domain in ((True, "event"), (False, "processing")):

        def batches(key_groups: range, is_event_time: bool = is_event_time) -> Iterator[pa.RecordBatch]:
            subtasks = operator.parts_of(key_groups, same_groups)
            for part, table in operator.tables(TableKind.TIMERS, name):
                count = table.attributes["event_time" if is_event_time else "processing_time"]["count"]
                if part.subtask in subtasks and count:
                    yield timer_rows(
                        operator.read(table),
                        timers.types,
                        is_event_time,
                        key_groups,
                        operator.max_parallelism,
                        timers.conversions,
                    )

        yield KeyedStateContent(f"{TIMERS}{domain}_{timers.name}", timers.types, batches)
