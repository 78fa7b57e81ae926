"""States of a checkpoint as a PyFlink program has them, in process mode and in thread mode."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, NamedTuple

import pyarrow as pa

from flinkcore.checkpoint.declared_types import TYPES, type_of_json
from flinkcore.checkpoint.table_file import TableFile
from flinkcore.checkpoint.value_decoding import decode
from flinkcore.checkpoint.value_shape import Shape
from flinkcore.common.typeinfo import (
    BasicType,
    BasicTypeInfo,
    MapTypeInfo,
    PickledBytesTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
)
from flinkcore.datastream.state import MapStateDescriptor
from flinkcore.errors import ConfigurationError, DataError
from flinkcore.savepoints.java_types import serializer_of
from flinkcore.savepoints.keyed_types import KeyedTypes
from flinkcore.savepoints.pyflink_coders import PREFIX, TIME_WINDOWS, Coder, coder_of, pickled, pickled_key
from flinkcore.savepoints.serializers import basic, times
from flinkcore.savepoints.serializers.composite import MapSerializer, RowSerializer
from flinkcore.savepoints.serializers.serializer import StateSerializer
from flinkcore.savepoints.writing.checkpoint_rows import MERGING_WINDOW_SET, Conversions
from flinkcore.savepoints.writing.checkpoint_states import CheckpointOperator, StateTarget
from flinkcore.savepoints.writing.java_values import arrow_type, java_values

_CONTENTS: Final = "window-contents"
_USER_TIMERS, _WINDOW_TIMERS = "user-timers", "window-timers"
_ROLLING: Final = "_op_state"
_BUFFERS: Final = ("LEFT_BUFFER", "RIGHT_BUFFER")
_NAMESPACES: Final[dict[Any, StateSerializer]] = {
    "none": times.VOID_NAMESPACE,
    "time_window": times.TABLE_TIME_WINDOW,
    "count_window": times.TABLE_COUNT_WINDOW,
    "global_window": times.TABLE_GLOBAL_WINDOW,
}
_THREAD_TYPES: Final[dict[BasicType, StateSerializer]] = {
    BasicType.STRING: basic.STRING,
    BasicType.CHAR: basic.STRING,
    BasicType.BYTE: basic.LONG,
    BasicType.SHORT: basic.LONG,
    BasicType.INT: basic.LONG,
    BasicType.LONG: basic.LONG,
    BasicType.FLOAT: basic.DOUBLE,
    BasicType.DOUBLE: basic.DOUBLE,
    BasicType.BOOLEAN: basic.BOOLEAN,
}
"""Serializers of thread mode (PyFlink's ``to_java_typeinfo`` of ``fn_execution.embedded.java_utils``)."""


class _Types(NamedTuple):
    """Types of a state as the program declares them.

    Attributes
    ----------
    map_key : TypeInformation or None
    value : TypeInformation or None
        Type of a value, of an element of a list, or of a value of a map.
    """

    map_key: Any
    value: Any


@dataclass(frozen=True)
class PythonStates:
    """Names and types of an operator's states in a PyFlink program.

    Parameters
    ----------
    operator : CheckpointOperator
    is_thread_mode : bool
        Whether ``python.execution-mode`` is ``thread``; otherwise it is ``process``.

    Notes
    -----
    Flink's ``BeamKeyedStateStore`` and ``BeamOperatorStateStore``; PyFlink's ``fn_execution.embedded.state_impl``.
    """

    operator: CheckpointOperator
    is_thread_mode: bool

    def check(self) -> None:
        """Check that a PyFlink program has such an operator.

        Raises
        ------
        ConfigurationError
            If it has not, or restores it under another id.
        """
        operator = self.operator
        job = operator.checkpoint.manifest.job
        if f"{operator.uid}: {TYPES}" not in job:
            is_of_elements = f"{operator.uid}: input 1" in job
            raise ConfigurationError(
                f"operator {operator.uid!r} has state and no uid, by which PyFlink finds it. Call uid('...') after the "
                "step in the program"
                if is_of_elements
                else f"operator {operator.uid!r} is one over columns, which no PyFlink program has. Leave "
                "execution_mode out, which writes the savepoint for a Java job"
            )
        if job.get(f"{operator.uid}: evictor") not in (None, "None"):
            raise ConfigurationError(
                f"operator {operator.uid!r} has windows with an evictor, which PyFlink does not have"
            )

    @cached_property
    def _declared(self) -> dict[str, Any]:
        uid = self.operator.uid
        content = json.loads(self.operator.checkpoint.manifest.job[f"{uid}: {TYPES}"])
        return {name: type_of_json(each, f"{name} of operator {uid!r}") for name, each in content.items()}

    @cached_property
    def _is_of_windows(self) -> bool:
        return f"{self.operator.uid}: assigner" in self.operator.checkpoint.manifest.job

    # ---- keyed states ----

    def key(self) -> tuple[StateSerializer, bool]:
        """Return the serializer of PyFlink's keys, which are rows of one field."""
        declared = self.operator.target.key_serializer
        if declared is None:
            key = self._declared["key"]
            is_any = key is None or isinstance(key, PickledBytesTypeInfo)
            declared = basic.BYTES if is_any else serializer_of(key)
        return RowSerializer((declared,)), False

    def state(self, name: str, tables: list[TableFile], key: StateSerializer) -> StateTarget:
        """Return a state with the kind and the types that PyFlink keeps.

        Raises
        ------
        ConfigurationError
            If PyFlink does not have such a state, or its type is not declared.
        """
        operator = self.operator
        what = f"state {name!r} of operator {operator.uid!r}"
        shown = operator.target.names.get(name, name)
        namespace = self._namespace(tables, what)
        if name == MERGING_WINDOW_SET:
            return self._merging_windows(key)
        attributes = tables[0].attributes
        kind, has_ttl = str(attributes["type"]).upper(), attributes["ttl_time"] is not None
        types = self._types(name, tables, what)
        if self.is_thread_mode:
            map_key = _thread_serializer(types.map_key, what) if kind == "MAP" else None
            value = _thread_serializer(types.value, what)
            kind = kind if kind in ("LIST", "MAP") else "VALUE"
            conversions = Conversions(self._keys, _windows, _thread_values, _thread_values)
            return StateTarget(shown, KeyedTypes(kind, key, namespace, map_key, value, has_ttl), conversions)
        written = partial(_coded, _coder(types.value, what).write)
        map_key, written_key = None, java_values
        if kind == "MAP":
            map_key = basic.BYTE_ARRAY_WRAPPER
            written_key = partial(_coded, _coder(types.map_key, what).write)
            written = partial(_coded, _coder(types.value, what).write, null=None)
        kind = "MAP" if kind == "MAP" else "LIST"
        found = KeyedTypes(kind, key, namespace, map_key, basic.BYTES, has_ttl)
        return StateTarget(PREFIX + shown, found, Conversions(self._keys, _windows, written_key, written))

    def timers(self, name: str, tables: list[TableFile], key: StateSerializer) -> StateTarget:
        """Return timers with the service that PyFlink has for them.

        Raises
        ------
        ConfigurationError
            If PyFlink has no such timers.
        """
        what = f"timers {name!r} of operator {self.operator.uid!r}"
        if name not in (_USER_TIMERS, _WINDOW_TIMERS):
            raise ConfigurationError(f"PyFlink has no {what}, which are of a step that only flinkcore has")
        types = KeyedTypes("TIMERS", key, self._namespace(tables, what), None, None, False)
        service = name if self.is_thread_mode else _USER_TIMERS
        return StateTarget(service, types, Conversions(self._keys, _windows))

    def _namespace(self, tables: list[TableFile], what: str) -> StateSerializer:
        shapes = {json.dumps(table.shapes["namespace"]): table.shapes["namespace"] for table in tables}
        found = {_NAMESPACES.get(shape) if isinstance(shape, str) else None for shape in shapes.values()}
        namespace = found.pop() if len(found) == 1 else None
        if namespace is None:
            raise ConfigurationError(f"{what} has namespaces that PyFlink does not have: {', '.join(shapes)}")
        if self.is_thread_mode and self._is_of_windows and namespace == times.VOID_NAMESPACE:
            # Its backend has the serializer of windows for all states: Java raises a ClassCastException.
            raise ConfigurationError(
                f"PyFlink's thread mode cannot restore {what}: in windows it keeps no state of a key alone, as session "
                "windows and count windows have. Use execution_mode='process'"
            )
        return namespace

    def _merging_windows(self, key: StateSerializer) -> StateTarget:
        conversions = Conversions(
            self._keys,
            _windows,
            partial(_coded, TIME_WINDOWS.write),
            partial(_coded, TIME_WINDOWS.write),
        )
        types = KeyedTypes("MAP", key, times.VOID_NAMESPACE, basic.BYTE_ARRAY_WRAPPER, basic.BYTES, False)
        return StateTarget(PREFIX + MERGING_WINDOW_SET, types, conversions)

    def _types(self, name: str, tables: list[TableFile], what: str) -> _Types:
        """Return the types of a state: of a declared descriptor, or those that the program has declared."""
        for descriptor in self.operator.target.descriptors:
            if descriptor.name == name:
                of_key = descriptor.key_type_info if isinstance(descriptor, MapStateDescriptor) else None
                return _Types(of_key, descriptor.type_info)
        if name == _ROLLING or name in _BUFFERS:
            raise ConfigurationError(
                f"{what} cannot be restored by PyFlink, which "
                + ("has no interval joins" if name in _BUFFERS else "has another name for it in each run")
                + ". Use a KeyedProcessFunction with a state of its own"
            )
        if name == _CONTENTS and self._declared["contents"] is not None:
            return _Types(None, self._declared["contents"])
        found = _Types(
            *(
                next((each for table in tables if (each := _type_of(table, which)) is not None), None)
                for which in ("key_type", "value_type")
            )
        )
        if found.value is None or (tables[0].attributes.get("type") == "map" and found.map_key is None):
            raise ConfigurationError(
                f"{what} has no type, which PyFlink needs, as the program has not asked for it or not declared one. "
                f"Declare it: FlinkOperator({self.operator.target.uid!r}, descriptors=[ValueStateDescriptor(...)])"
            )
        return found

    def _keys(self, column: pa.Array, shape: Shape, key: StateSerializer) -> pa.Array:
        """Return keys as rows of one field."""
        (part,) = key.parts
        if part == basic.BYTES and shape != "bytes":
            write = partial(pickled_key, is_thread_mode=self.is_thread_mode)
            if self._declared["key"] is None:  # windows of all elements: PyFlink's NullByteKeySelector
                column, shape = pa.repeat(pa.scalar(0, pa.int64()), len(column)), "int"
            values = _coded(write, column, shape, part)
        else:
            values = java_values(column, shape, part)
        fields = {"f0": values, "row_kind": pa.repeat(pa.scalar("+I"), len(column))}
        names = [field.name for field in arrow_type(key)]
        return pa.StructArray.from_arrays([fields[name] for name in names], names).cast(arrow_type(key))

    # ---- broadcast state ----

    def broadcast_state(
        self, name: str, table: TableFile
    ) -> tuple[str, StateSerializer, StateSerializer, Conversions]:
        """Return name, serializers and conversions of a broadcast state."""
        what = f"broadcast state {name!r} of operator {self.operator.uid!r}"
        types = self._types(name, [table], what)
        if types.map_key is None:
            raise ConfigurationError(f"{what} has no type of its keys, which PyFlink needs")
        shown = self.operator.target.names.get(name, name)
        if self.is_thread_mode:
            key, value = (_thread_serializer(each, what) for each in types)
            return shown, key, value, Conversions(map_key=_thread_values, value=_thread_values)
        key_coder, value_coder = (_coder(each, what) for each in types)
        conversions = Conversions(
            map_key=partial(_coded, key_coder.write), value=partial(_coded, value_coder.write)
        )
        return PREFIX + shown, basic.BYTE_ARRAY_WRAPPER, basic.BYTES, conversions


def _type_of(table: TableFile, which: str) -> Any:
    return type_of_json(table.attributes.get(which), which)


def _coder(type_info: Any, what: str) -> Coder:
    try:
        return coder_of(type_info, bytes)
    except NotImplementedError as failure:
        raise ConfigurationError(f"{what}: {failure}") from None


def _thread_serializer(type_info: Any, what: str) -> StateSerializer:
    """Return the serializer that thread mode has for a declared type: that of bytes for pickles."""
    if isinstance(type_info, BasicTypeInfo) and type_info.basic_type in _THREAD_TYPES:
        return _THREAD_TYPES[type_info.basic_type]
    if isinstance(type_info, PickledBytesTypeInfo | TupleTypeInfo | RowTypeInfo):
        return basic.BYTES
    if isinstance(type_info, MapTypeInfo):
        parts = type_info.key_type_info, type_info.value_type_info
        nested = tuple(_thread_serializer(each, what) for each in parts)
        if basic.BYTES not in nested:
            return MapSerializer(nested)
    raise ConfigurationError(
        f"{what} is of {type_info!r}, for which PyFlink's thread mode has no serializer that keeps it. Declare it as "
        "Types.PICKLED_BYTE_ARRAY() in the program, or use execution_mode='process'"
    )


def _thread_values(column: pa.Array, shape: Shape, serializer: StateSerializer) -> pa.Array:
    if serializer == basic.BYTES:
        return _coded(pickled, column, shape, serializer, null=None)
    return java_values(column, shape, serializer)


def _coded(
    write: Callable[[Any], bytes],
    column: pa.Array,
    shape: Shape,
    serializer: StateSerializer,
    null: Any = ...,
) -> pa.Array:
    """Return values as bytes; None as `null` if it is given."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    value: Any = None
    blobs: list[bytes | None] = []
    try:
        for value in decode(column, shape):
            blobs.append(null if value is None and null is not ... else write(value))
    except (TypeError, ValueError, OverflowError, AttributeError, struct.error) as failure:
        raise DataError(
            f"PyFlink cannot keep the value {value!r:.80} in the declared type: {failure}"
        ) from None
    return pa.array(blobs, arrow_type(serializer))


def _windows(column: pa.Array, shape: Shape, serializer: StateSerializer) -> pa.Array:
    """Return namespaces; those of the void namespace and of global windows have no column."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if shape == "time_window":
        return pa.StructArray.from_arrays([column.field(0), column.field(1)], ["start_ms", "end_ms"])
    return column.cast(pa.int64())
