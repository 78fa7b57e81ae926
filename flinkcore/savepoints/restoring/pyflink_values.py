"""States of PyFlink's operators: values as its coders and pickles have them, by the descriptors of the program.

In process mode the names of states begin with `python-state-`; each is a list or a map of bytes, of which some hold
several elements. In thread mode states have Java's types, but pickled accumulators and elements of windows.
"""

from __future__ import annotations

import datetime
import io
import pickle
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final

from flinkcore._internal.values.row import Row
from flinkcore._internal.values.row_kind import RowKind
from flinkcore._native.keys import dictionary_key
from flinkcore.common.typeinfo import (
    BasicArrayTypeInfo,
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PickledBytesTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
)
from flinkcore.datastream.state import MapStateDescriptor, StateDescriptor
from flinkcore.datastream.window import TimeWindow
from flinkcore.errors import DataError
from flinkcore.operators.state import KeyedStateSnapshot

PREFIX: Final = "python-state-"
_FORMATS: Final = {
    BasicType.BYTE: ">b",
    BasicType.SHORT: ">h",
    BasicType.INT: ">i",
    BasicType.LONG: ">q",
    BasicType.BIG_INT: ">q",
    BasicType.FLOAT: ">f",
    BasicType.DOUBLE: ">d",
    BasicType.BOOLEAN: ">?",
}
_TEXTS: Final = (BasicType.STRING, BasicType.CHAR, BasicType.BIG_DEC)
_LISTS: Final = (ListTypeInfo, BasicArrayTypeInfo, ObjectArrayTypeInfo)
_ROW_KIND_BITS: Final = 2

Read = Callable[["_Bytes"], Any]


class _Bytes:
    """Bytes that are read from the front."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    @property
    def has_more(self) -> bool:
        return self.at < len(self._data)

    def take(self, size: int) -> bytes:
        if not 0 <= size <= len(self._data) - self.at:
            raise ValueError(f"{size:,} bytes are needed at byte {self.at:,} of {len(self._data):,}")
        self.at += size
        return self._data[self.at - size : self.at]

    def number(self, format: str) -> Any:
        (found,) = struct.unpack(format, self.take(struct.calcsize(format)))
        return found

    def binary(self) -> bytes:
        return self.take(self.number(">i"))


class _PlainUnpickler(pickle.Unpickler):
    """Reads pickles of plain values: numbers, texts, bytes, and containers of them. Nothing is imported or called."""

    def find_class(self, module: str, name: str) -> Any:
        raise ValueError(
            f"a pickle has an object of {module}.{name}, which is not made without your consent. If you trust the "
            "savepoint, give SavepointSource(..., allow_pickle=True)"
        )


def _reader(type_info: Any, unpickled: Callable[[bytes], Any]) -> Read:
    """Return what reads a value of a type.

    Notes
    -----
    PyFlink's ``pyflink.fn_execution.coders.from_type_info``.
    """
    if type_info is None or isinstance(type_info, PickledBytesTypeInfo):
        return lambda data: unpickled(data.binary())
    if isinstance(type_info, BasicTypeInfo) and type_info.basic_type in _FORMATS:
        format = _FORMATS[type_info.basic_type]
        return lambda data: data.number(format)
    if isinstance(type_info, BasicTypeInfo) and type_info.basic_type in _TEXTS:
        make = Decimal if type_info.basic_type is BasicType.BIG_DEC else str
        return lambda data: make(data.binary().decode())
    if isinstance(type_info, DateTypeInfo):
        epoch = datetime.date(1970, 1, 1)
        return lambda data: epoch + datetime.timedelta(days=data.number(">i"))
    if _is_bytes(type_info):
        return _Bytes.binary
    if isinstance(type_info, _LISTS):
        element = _reader(type_info.elem_type, unpickled)
        return lambda data: [
            element(data) if data.number(">?") else None for _ in range(_count(data.number(">i")))
        ]
    if isinstance(type_info, MapTypeInfo):
        key, value = (
            _reader(each, unpickled) for each in (type_info.key_type_info, type_info.value_type_info)
        )
        return lambda data: {
            dictionary_key(key(data)): None if data.number(">?") else value(data)
            for _ in range(_count(data.number(">i")))
        }
    if isinstance(type_info, TupleTypeInfo | RowTypeInfo):
        fields = [_reader(each, unpickled) for each in type_info.get_field_types()]
        if isinstance(type_info, TupleTypeInfo):
            return lambda data: tuple(field(data) for field in fields)
        names = type_info.get_field_names()
        return lambda data: _row(data, names, fields)
    raise NotImplementedError(
        f"{type_info!r} is not one of the types that are read of PyFlink's process mode"
    )


def _is_bytes(type_info: Any) -> bool:
    if not isinstance(type_info, PrimitiveArrayTypeInfo):
        return False
    element = type_info.elem_type
    return isinstance(element, BasicTypeInfo) and element.basic_type is BasicType.BYTE


def _count(number: int) -> int:
    if number < 0:
        raise ValueError(f"there are {number} elements")
    return number


def _row(data: _Bytes, names: Sequence[str], fields: Sequence[Read]) -> Row:
    n_bits = len(fields) + _ROW_KIND_BITS
    mask = int.from_bytes(data.take((n_bits + 7) // 8), "big") >> -n_bits % 8
    bits = [mask >> n_bits - 1 - bit & 1 for bit in range(n_bits)]
    values = [
        None if is_null else field(data) for is_null, field in zip(bits[_ROW_KIND_BITS:], fields, strict=True)
    ]
    row: Row = Row(*names)(*values)
    if bits[0] or bits[1]:
        row.set_row_kind(RowKind(bits[0] + 2 * bits[1]))
    return row


def _window(data: _Bytes) -> TimeWindow:
    return TimeWindow(data.number(">q"), data.number(">q"))


@dataclass(frozen=True)
class PyFlinkStates:
    """Keyed states of a PyFlink operator.

    Parameters
    ----------
    descriptors : mapping of str to StateDescriptor
        Descriptors of the program, by name.
    allow_pickle : bool
        Whether pickles may have objects of any class.
    """

    descriptors: Mapping[str, StateDescriptor]
    allow_pickle: bool

    def unpickled(self, data: bytes) -> Any:
        """Return the value of a pickle: a plain one, or any if pickles are allowed.

        Raises
        ------
        DataError
            If it is damaged, or has an object that is not plain.
        """
        try:
            if self.allow_pickle:
                return pickle.loads(data)
            return _PlainUnpickler(io.BytesIO(data)).load()
        except Exception as failure:
            raise DataError(f"a pickled value of {len(data):,} bytes cannot be read: {failure}") from None

    def obstacle(self, name: str) -> str | None:
        """Return why a state of process mode cannot be read, or None if it can."""
        descriptor = self.descriptors.get(name)
        if descriptor is None:
            return (
                "PyFlink's process mode keeps bytes, whose types the program declares. Give its descriptor: "
                "FlinkOperator(uid, descriptors=[ValueStateDescriptor(...), ...])"
            )
        keys = [descriptor.key_type_info] if isinstance(descriptor, MapStateDescriptor) else []
        try:
            for each in (*keys, descriptor.type_info):
                self._reader(each)
        except NotImplementedError as failure:
            return str(failure)
        return None

    def _reader(self, type_info: Any) -> Read:
        return _reader(type_info, self.unpickled)

    def of_process_mode(self, name: str, raw: KeyedStateSnapshot) -> KeyedStateSnapshot:
        """Return a state of process mode, with the kind and the values that its descriptor declares.

        Raises
        ------
        DataError
            If the bytes are not those of such values.
        """
        if name == "merging-window-set":
            windows = [
                {_one(key, _window): _one(value, _window) for key, value in held.items()}
                for held in raw.values
            ]
            return replace(raw, type=StateDescriptor.Type.VALUE, values=windows)
        descriptor = self.descriptors[name]
        read = self._reader(descriptor.type_info)
        has_ttl = raw.ttl_time is not None
        try:
            if isinstance(descriptor, MapStateDescriptor):
                read_key = self._reader(descriptor.key_type_info)
                values: list[Any] = [
                    {
                        dictionary_key(_one(key, read_key)): _stamped(
                            value, has_ttl, lambda data: _one(data, read)
                        )
                        for key, value in held.items()
                    }
                    for held in raw.values
                ]
            else:
                values = [
                    [element for blob in held for element in _elements(blob, has_ttl, read)]
                    for held in raw.values
                ]
                if descriptor.type is not StateDescriptor.Type.LIST:
                    values = [_single(held) for held in values]
        except (ValueError, ArithmeticError, struct.error, UnicodeDecodeError) as failure:
            raise DataError(
                f"state {name!r} of PyFlink does not hold what its descriptor declares, {descriptor!r}: {failure}"
            ) from None
        return replace(raw, type=descriptor.type, values=values)

    def of_thread_mode(self, name: str, raw: KeyedStateSnapshot) -> KeyedStateSnapshot:
        """Return a state of thread mode, with the kind of its descriptor, and its pickles read."""
        descriptor = self.descriptors.get(name)
        if descriptor is None:
            return raw
        has_ttl = raw.ttl_time is not None

        def value_of(value: Any) -> Any:
            is_pickle = isinstance(value, bytes) and not _is_bytes(descriptor.type_info)
            return self.unpickled(value) if is_pickle else value

        def held_of(held: Any) -> Any:
            if isinstance(held, dict):
                return {key: _stamped(value, has_ttl, value_of) for key, value in held.items()}
            if isinstance(held, list) and descriptor.type is StateDescriptor.Type.LIST:
                return [_stamped(value, has_ttl, value_of) for value in held]
            return _stamped(held, has_ttl, value_of)

        return replace(raw, type=descriptor.type, values=[held_of(held) for held in raw.values])


def _one(blob: bytes, read: Read) -> Any:
    data = _Bytes(blob)
    found = read(data)
    if data.has_more:
        raise ValueError(f"{len(blob) - data.at:,} bytes are left over")
    return found


def _elements(blob: Any, has_ttl: bool, read: Read) -> list[Any]:
    """Return the elements that PyFlink has written together, with the time of their last access if they expire."""
    bytes_of_all, stamp = blob if has_ttl else (blob, None)
    data, found = _Bytes(bytes_of_all), []
    while data.has_more:
        before = data.at
        found.append(read(data))
        if data.at == before:
            raise ValueError("an element takes no bytes")
    return [(each, stamp) for each in found] if has_ttl else found


def _single(held: list[Any]) -> Any:
    if len(held) != 1:
        raise ValueError(f"a key has {len(held)} values instead of one")
    return held[0]


def _stamped(value: Any, has_ttl: bool, convert: Callable[[Any], Any]) -> Any:
    if value is None:
        return None
    return (convert(value[0]), value[1]) if has_ttl else convert(value)


def descriptors_by_name(descriptors: Sequence[StateDescriptor]) -> dict[str, StateDescriptor]:
    """Return descriptors by their names."""
    return {descriptor.name: descriptor for descriptor in descriptors}
