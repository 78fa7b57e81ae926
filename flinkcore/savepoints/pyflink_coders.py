"""PyFlink's coders: values as the bytes that a PyFlink program in process mode keeps, and its pickles."""

from __future__ import annotations

import datetime
import io
import pickle
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple

from flinkcore._internal.values.row import Row
from flinkcore._internal.values.row_kind import RowKind
from flinkcore._native.keys import dictionary_key, given_items
from flinkcore.common.time import Instant
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
    TimestampTypeInfo,
    TimeTypeInfo,
    TupleTypeInfo,
)
from flinkcore.datastream.window import TimeWindow

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
_EPOCH: Final = datetime.datetime(1970, 1, 1)
_DAY: Final = _EPOCH.date()
_NO_INSTANT: Final = (-(1 << 63), -(1 << 31))


class CoderBytes:
    """Bytes that are read from the front."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    @property
    def has_more(self) -> bool:
        """Return whether bytes are left."""
        return self.at < len(self._data)

    def take(self, size: int) -> bytes:
        """Return the next bytes; raise a ValueError if there are fewer."""
        if not 0 <= size <= len(self._data) - self.at:
            raise ValueError(f"{size:,} bytes are needed at byte {self.at:,} of {len(self._data):,}")
        self.at += size
        return self._data[self.at - size : self.at]

    def number(self, format: str) -> Any:
        """Return a number in a format of `struct`."""
        (found,) = struct.unpack(format, self.take(struct.calcsize(format)))
        return found

    def count(self) -> int:
        """Return a number of elements; raise a ValueError if it is negative."""
        number: int = self.number(">i")
        if number < 0:
            raise ValueError(f"there are {number} elements")
        return number

    def binary(self) -> bytes:
        """Return bytes that follow their length."""
        return self.take(self.number(">i"))


class Coder(NamedTuple):
    """Reads and writes values of a type.

    Attributes
    ----------
    read : callable
        From CoderBytes to a value.
    write : callable
        From a value to bytes. It raises a TypeError, ValueError, OverflowError or struct.error for a value that is not
        of the type.
    """

    read: Callable[[CoderBytes], Any]
    write: Callable[[Any], bytes]


def coder_of(type_info: Any, unpickled: Callable[[bytes], Any]) -> Coder:
    """Return the coder of a type.

    Parameters
    ----------
    type_info : TypeInformation or None
        None is the type of any object.
    unpickled : callable
        Returns the value of a pickle.

    Raises
    ------
    NotImplementedError
        If PyFlink has no coder for the type.

    Notes
    -----
    PyFlink's ``pyflink.fn_execution.coders.from_type_info``.
    """
    if type_info is None or isinstance(type_info, PickledBytesTypeInfo):
        return Coder(lambda data: unpickled(data.binary()), lambda value: _with_length(pickled(value)))
    if isinstance(type_info, BasicTypeInfo) and type_info.basic_type in _FORMATS:
        return _number(_FORMATS[type_info.basic_type])
    if isinstance(type_info, BasicTypeInfo) and type_info.basic_type in _TEXTS:
        make = Decimal if type_info.basic_type is BasicType.BIG_DEC else str
        return Coder(
            lambda data: make(data.binary().decode()),
            lambda value: _with_length(str(_of_class(value, make)).encode()),
        )
    if type(type_info) in _TIMES or isinstance(type_info, BasicTypeInfo):
        return _TIMES.get(type(type_info), Coder(_read_instant, _written_instant))
    if is_bytes(type_info):
        return Coder(CoderBytes.binary, lambda value: _with_length(bytes(value)))
    if isinstance(type_info, PrimitiveArrayTypeInfo):
        element = coder_of(type_info.elem_type, unpickled)
        return Coder(
            lambda data: [element.read(data) for _ in range(data.count())],
            lambda value: _counted(value, element.write),
        )
    if isinstance(type_info, _LISTS):
        element = coder_of(type_info.elem_type, unpickled)
        return Coder(
            lambda data: [element.read(data) if data.number(">?") else None for _ in range(data.count())],
            lambda value: _counted(
                value, lambda each: b"\0" if each is None else b"\1" + element.write(each)
            ),
        )
    if isinstance(type_info, MapTypeInfo):
        return _map(
            *(coder_of(each, unpickled) for each in (type_info.key_type_info, type_info.value_type_info))
        )
    if isinstance(type_info, TupleTypeInfo | RowTypeInfo):
        fields = [coder_of(each, unpickled) for each in type_info.get_field_types()]
        if isinstance(type_info, TupleTypeInfo):
            return Coder(
                lambda data: tuple(field.read(data) for field in fields),
                lambda value: b"".join(field.write(each) for field, each in zip(fields, value, strict=True)),
            )
        names = type_info.get_field_names()
        return Coder(
            lambda data: _read_row(data, names, fields), lambda value: _written_row(value, names, fields)
        )
    raise NotImplementedError(f"{type_info!r} is not one of the types that PyFlink's process mode keeps")


def is_bytes(type_info: Any) -> bool:
    """Return whether a type is that of bytes."""
    if not isinstance(type_info, PrimitiveArrayTypeInfo):
        return False
    element = type_info.elem_type
    return isinstance(element, BasicTypeInfo) and element.basic_type is BasicType.BYTE


def _with_length(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _counted(values: Any, write: Callable[[Any], bytes]) -> bytes:
    return struct.pack(">i", len(values)) + b"".join(map(write, values))


def _of_class(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} is not a {kind.__name__}")
    return value


def _number(format: str) -> Coder:
    return Coder(lambda data: data.number(format), lambda value: struct.pack(format, value))


def _map(key: Coder, value: Coder) -> Coder:
    return Coder(
        lambda data: {
            dictionary_key(key.read(data)): None if data.number(">?") else value.read(data)
            for _ in range(data.count())
        },
        lambda entries: _counted(
            list(given_items(entries)),
            lambda pair: key.write(pair[0]) + (b"\1" if pair[1] is None else b"\0" + value.write(pair[1])),
        ),
    )


def _read_time(data: CoderBytes) -> datetime.time:
    seconds, milliseconds = divmod(data.number(">i"), 1000)
    return (_EPOCH + datetime.timedelta(seconds=seconds, milliseconds=milliseconds)).time()


def _written_time(value: Any) -> bytes:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return struct.pack(">i", seconds * 1000 + value.microsecond // 1000)


def _written_timestamp(value: Any) -> bytes:
    milliseconds, rest = divmod(value - _EPOCH, datetime.timedelta(milliseconds=1))
    if rest:
        raise ValueError(f"{value!r} has microseconds, which PyFlink's SQL_TIMESTAMP does not keep")
    return struct.pack(">q", milliseconds)


def _read_instant(data: CoderBytes) -> Instant | None:
    parts = data.number(">q"), data.number(">i")
    return None if parts == _NO_INSTANT else Instant(*parts)


def _written_instant(value: Any) -> bytes:
    return struct.pack(">qi", *(_NO_INSTANT if value is None else (value.seconds, value.nanos)))


_TIMES: Final[dict[type, Coder]] = {
    DateTypeInfo: Coder(
        lambda data: _DAY + datetime.timedelta(days=data.number(">i")),
        lambda value: struct.pack(">i", value.toordinal() - _DAY.toordinal()),
    ),
    TimeTypeInfo: Coder(_read_time, _written_time),
    TimestampTypeInfo: Coder(
        lambda data: _EPOCH + datetime.timedelta(milliseconds=data.number(">q")), _written_timestamp
    ),
}


def _read_row(data: CoderBytes, names: Sequence[str], fields: Sequence[Coder]) -> Row:
    n_bits = len(fields) + _ROW_KIND_BITS
    mask = int.from_bytes(data.take((n_bits + 7) // 8), "big") >> -n_bits % 8
    bits = [mask >> n_bits - 1 - bit & 1 for bit in range(n_bits)]
    values = [
        None if is_null else field.read(data)
        for is_null, field in zip(bits[_ROW_KIND_BITS:], fields, strict=True)
    ]
    row: Row = Row(*names)(*values)
    if bits[0] or bits[1]:
        row.set_row_kind(RowKind(bits[0] + 2 * bits[1]))
    return row


def _written_row(row: Any, names: Sequence[str], fields: Sequence[Coder]) -> bytes:
    values = _of_class(row, Row).get_fields_by_names(names)
    kind = row.get_row_kind().value
    bits = [kind & 1, kind >> 1, *(each is None for each in values)]
    mask = 0
    for bit in bits:
        mask = mask << 1 | int(bit)
    mask <<= -len(bits) % 8
    written = [field.write(each) for field, each in zip(fields, values, strict=True) if each is not None]
    return mask.to_bytes((len(bits) + 7) // 8, "big") + b"".join(written)


TIME_WINDOWS: Final = Coder(
    lambda data: TimeWindow(data.number(">q"), data.number(">q")),
    lambda window: struct.pack(">qq", window.start, window.end),
)
"""Windows of time, as the namespaces of states have them."""

PREFIX: Final = "python-state-"
"""Names of states of process mode begin so (Flink's ``BeamStateStore.PYTHON_STATE_PREFIX``)."""

# ---- pickles ----

_PROTOCOL: Final = 4
_KEY_PROTOCOL: Final = 5
_ROW_MODULE: Final = "pyflink.common.types"


_PurePickler: Any = pickle._Pickler
"""Pickler in Python, in which the names of classes can be replaced."""


class _FoundRow(Exception):
    """Ends a pickle in whose values a Row is found."""


class _PlainPickler(pickle.Pickler):
    """Writes values without Rows, as fast as `pickle.dumps`."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Row):
            raise _FoundRow
        return NotImplemented


class _RowPickler(_PurePickler):  # type: ignore[misc]
    """Writes Rows as objects of PyFlink's classes, whether or not PyFlink is installed."""

    def reducer_override(self, obj: Any) -> Any:
        if not isinstance(obj, Row):
            return NotImplemented
        fields = obj._fields
        names = None if fields is None else list(fields)
        return _CreatedRow, (names, tuple(obj), obj.get_row_kind())

    def save_global(self, obj: Any, name: str | None = None) -> None:
        known = {_CreatedRow: "_create_row", RowKind: "RowKind"}.get(obj)
        if known is None:
            super().save_global(obj, name)
            return
        self.save(_ROW_MODULE)
        self.save(known)
        self.write(pickle.STACK_GLOBAL)
        self.memoize(obj)


class _CreatedRow:
    """Stands for PyFlink's function `_create_row`, whose name is written."""


def pickled(value: Any) -> bytes:
    """Return the pickle of a value, as PyFlink under Python 3.9 to 3.12 makes it."""
    return _pickled(value, _PROTOCOL)


def _pickled(value: Any, protocol: int) -> bytes:
    for pickler in (_PlainPickler, _RowPickler):
        output = io.BytesIO()
        try:
            pickler(output, protocol).dump(value)
            return output.getvalue()
        except _FoundRow:
            continue
    raise AssertionError(value)


def pickled_key(key: Any, *, is_thread_mode: bool) -> bytes:
    """Return the pickle of a key without a declared type, by whose bytes PyFlink finds its state.

    Raises
    ------
    ValueError
        If equal keys may have different pickles.
    """
    parts = list(key) if type(key) is tuple else [key]
    if any(type(part) not in _PLAIN_KEYS for part in parts):
        raise ValueError(
            f"the key {key!r} is not a number, a text, bytes or a tuple of these, and equal keys may have different "
            "pickles, by which PyFlink finds them. Declare the type: key_by(..., key_type=...)"
        )
    # A pickle refers to the object before where two fields are the same object, which equal fields need not be.
    named = [part for part in parts if isinstance(part, str | bytes)]
    if len(set(named)) < len(named):
        raise ValueError(
            f"the key {key!r} has equal fields, whose pickle depends on whether they are one object. "
            "Declare the type: key_by(..., key_type=...)"
        )
    return _pickled(key, _PROTOCOL if is_thread_mode else _KEY_PROTOCOL)


_PLAIN_KEYS: Final = (str, int, float, bool, bytes, type(None))
