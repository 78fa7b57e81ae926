"""From the columns that `value_encoding` makes back to Python values."""

from collections.abc import Callable
from datetime import timedelta, timezone
from decimal import Decimal
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from flinkcore._internal.values.row import Row, rows_of_columns
from flinkcore._internal.values.row_kind import RowKind
from flinkcore._native.keys import dictionary_key
from flinkcore.checkpoint.value_shape import Shape
from flinkcore.datastream.functions.join_functions import TaggedUnion
from flinkcore.datastream.window import CountWindow, GlobalWindow, TimeWindow
from flinkcore.errors import SchemaError
from flinkcore.operators.state.serialized_values import SerializedValue
from flinkcore.table.data_view import ListView, MapView

Decode = Callable[[pa.Array, Shape], list[Any]]


def decode(array: pa.Array, shape: Shape) -> list[Any]:
    """Return the values of a column.

    Raises
    ------
    SchemaError
        If the column is not of the shape, or has unexpected nulls.
    """
    if shape[0] != "optional":
        _expect_values(array, shape)
    return _decode_nullable(array, shape)


def _decode_nullable(array: pa.Array, shape: Shape) -> list[Any]:
    kind, *parts = [shape] if isinstance(shape, str) else shape
    if kind in _ARROW_TYPES:
        _expect(array.type == _ARROW_TYPES[kind] and not parts, array, shape)
        values: list[Any] = _SCALARS.get(kind, pa.Array.to_pylist)(array)
        return values
    decoder = _NESTED.get(kind)
    if decoder is None:
        raise SchemaError(f"a column of a checkpoint holds {shape!r}, which this version does not know")
    return decoder(array, parts, shape)


def decode_maps(array: pa.Array, shape: Shape) -> list[Any]:
    """Return the dictionaries of a column, as a map state holds them; other values as :func:`decode`."""
    if shape[0] != "dict":
        return decode(array, shape)
    _expect_values(array, shape)
    return [
        {dictionary_key(key): value for key, value in entries}
        for entries in _entries(array, shape[1:], shape)
    ]


class EqualColumnsOnce:
    """Decodes columns; for a column with the same values as the one before it returns the same objects.

    The states and timers of an operator mostly have the same keys, and look-ups of identical objects are faster.
    """

    def __init__(self) -> None:
        self._last: tuple[pa.Array, Shape, list[Any]] | None = None

    def decode(self, array: pa.Array, shape: Shape) -> list[Any]:
        """Return the values of a column, as :func:`decode`; they must not be changed."""
        if self._last is None or self._last[1] != shape or not _same_values(self._last[0], array):
            self._last = array, shape, decode(array, shape)
        return self._last[2]


def _same_values(left: pa.Array, right: pa.Array) -> bool:
    if not left.equals(right):  # NaN, too
        return False
    # To Arrow, -0.0 and 0.0 are equal; they are two keys.
    return not _has_floats(left.type) or _bytes(left) == _bytes(right)


def _has_floats(arrow_type: pa.DataType) -> bool:
    return pa.types.is_floating(arrow_type) or any(
        _has_floats(arrow_type.field(i).type) for i in range(arrow_type.num_fields)
    )


def _bytes(array: pa.Array) -> pa.Buffer:
    return pa.record_batch([array], ["values"]).serialize()


def _expect(is_so: bool, array: pa.Array, shape: Shape) -> None:
    if not is_so:
        raise SchemaError(f"a column of a checkpoint that should hold {shape!r} is {array.type}")


def _expect_values(array: pa.Array, shape: Shape) -> None:
    if not pa.types.is_null(array.type) and array.null_count:
        raise SchemaError(
            f"a column of a checkpoint that should hold {shape!r} is {array.type} with {array.null_count} nulls"
        )


def _objects(array: pa.Array) -> list[Any]:
    # Several times as fast as to_pylist for what is not a number.
    values: list[Any] = array.to_numpy(zero_copy_only=False).tolist()
    return values


def _big_ints(array: pa.Array) -> list[Any]:
    return [None if data is None else int.from_bytes(data, "little", signed=True) for data in _objects(array)]


def _decimals(array: pa.Array) -> list[Any]:
    return [None if text is None else Decimal(text) for text in _objects(array)]


def _fields(array: pa.Array) -> list[pa.Array]:
    # Not flatten(): it gives children the nulls of the struct, and a union must not have any.
    return [array.field(i) for i in range(array.type.num_fields)]


def _optional(array: pa.Array, parts: list[Any], shape: Shape) -> list[Any]:
    _expect(len(parts) == 1, array, shape)
    return _decode_nullable(array, parts[0])


def _union(array: pa.Array, parts: list[Any], shape: Shape) -> list[Any]:
    _expect(pa.types.is_union(array.type) and array.type.num_fields == len(parts), array, shape)
    children = [decode(array.field(i), part) for i, part in enumerate(parts)]
    # Not type_codes and offsets: in a slice, those are of the array that it is a slice of.
    _, code_buffer, offset_buffer, *_ = array.buffers()
    rows = slice(array.offset, array.offset + len(array))
    codes = np.frombuffer(code_buffer, np.int8)[rows].tolist() if len(array) else []
    offsets = np.frombuffer(offset_buffer, np.int32)[rows].tolist() if len(array) else []
    return [children[code][offset] for code, offset in zip(codes, offsets, strict=True)]


def _tuple(array: pa.Array, parts: list[Any], shape: Shape) -> list[Any]:
    _expect(pa.types.is_struct(array.type) and array.type.num_fields == len(parts) > 0, array, shape)
    columns = [decode(column, part) for column, part in zip(_fields(array), parts, strict=True)]
    return list(zip(*columns, strict=True))


def _row(array: pa.Array, parts: list[Any], shape: Shape) -> list[Any]:
    _expect(len(parts) > 1, array, shape)
    names, *column_shapes = parts
    rows = _tuple(array, column_shapes, shape)
    if names == "none":
        return [Row(*row) for row in rows]
    _expect(len(names) == len(parts) and names[0] == "names", array, shape)
    return list(rows_of_columns(names[1:], list(zip(*rows, strict=True)))) if rows else []


def _rows(array: pa.Array, parts: list[Any], shape: Shape) -> list[Any]:
    _expect(len(parts) == 1, array, shape)
    rows = []
    for names, kind, values in decode(array, parts[0]):
        row = Row(*values)
        row.set_row_kind(RowKind(kind))
        if names is not None:
            row.set_field_names(names)
        rows.append(row)
    return rows


def _list(array: pa.Array, parts: list[Any], shape: Shape) -> list[Any]:
    _expect(pa.types.is_large_list(array.type) and len(parts) == 1, array, shape)
    items = decode(array.values, parts[0])
    return [items[start:end] for start, end in pairwise(array.offsets.to_pylist())]


def _tuples(array: pa.Array, parts: list[Any], shape: Shape) -> list[Any]:
    return [tuple(items) for items in _list(array, parts, shape)]


def _dict(array: pa.Array, parts: list[Any], shape: Shape) -> list[Any]:
    return list(map(dict, _entries(array, parts, shape)))


def _entries(array: pa.Array, parts: Any, shape: Shape) -> list[list[Any]]:
    _expect(
        pa.types.is_large_list(array.type) and pa.types.is_struct(array.type.value_type) and len(parts) == 2,
        array,
        shape,
    )
    _expect_values(array.values, shape)
    entries = _tuple(array.values, parts, shape)
    return [entries[start:end] for start, end in pairwise(array.offsets.to_pylist())]


def _list_views(array: pa.Array, parts: list[Any], shape: Shape) -> list[Any]:
    views = []
    for items in _list(array, parts, shape):
        view = ListView[Any]()
        view.add_all(items)
        views.append(view)
    return views


def _map_views(array: pa.Array, parts: list[Any], shape: Shape) -> list[Any]:
    views = []
    for entries in _dict(array, parts, shape):
        view = MapView[Any, Any]()
        view.put_all(entries)
        views.append(view)
    return views


def _serialized(array: pa.Array, names: list[Any], shape: Shape) -> list[Any]:
    wanted = pa.struct([("serializer", pa.large_string()), ("data", pa.large_binary())])
    _expect(array.type == wanted, array, shape)
    for column in _fields(array):
        _expect_values(column, shape)
    return [SerializedValue(name, data) for name, data in zip(*map(_objects, _fields(array)), strict=True)]


def _tagged_unions(array: pa.Array, parts: list[Any], shape: Shape) -> list[Any]:
    _expect(pa.types.is_struct(array.type) and array.type.num_fields == 2 and len(parts) == 1, array, shape)
    is_second, values = _fields(array)
    return list(map(TaggedUnion, decode(values, parts[0]), decode(is_second, "bool")))


def _time_windows(array: pa.Array) -> list[Any]:
    for column in _fields(array):
        _expect_values(column, "time_window")
    return list(map(TimeWindow, *(column.to_pylist() for column in _fields(array))))


def _count_windows(array: pa.Array) -> list[Any]:
    return list(map(CountWindow, array.to_pylist()))


def _global_windows(array: pa.Array) -> list[Any]:
    return [GlobalWindow.get()] * len(array)


_TIME_WINDOW = pa.struct([("start", pa.int64()), ("end", pa.int64())])
_DATETIME_ZONE = pa.struct([("local", pa.timestamp("us")), ("fold", pa.bool_()), ("zone", pa.large_string())])


def _datetimes(array: pa.Array) -> list[Any]:
    for column in _fields(array)[:2]:
        _expect_values(column, "datetime_zone")
    local, fold, zone = (column.to_pylist() for column in _fields(array))
    zones = {name: _zone(name) for name in set(zone)}
    return [
        moment.replace(tzinfo=zones[name], fold=int(is_second))
        for moment, is_second, name in zip(local, fold, zone, strict=True)
    ]


def _zone(name: str | None) -> Any:
    if name is None:
        return None
    try:
        if name.lstrip("-").isdigit():
            offset = timedelta(microseconds=int(name))
            return timezone(offset) if offset else timezone.utc
        return ZoneInfo(name)
    except (KeyError, ValueError, OverflowError, OSError) as failure:
        raise SchemaError(
            f"a column of a checkpoint has datetimes of the time zone {name!r}, which is not known here. Install the "
            f"package tzdata ({failure})"
        ) from failure


_ARROW_TYPES: dict[str, pa.DataType] = {
    "none": pa.null(),
    "bool": pa.bool_(),
    "int": pa.int64(),
    "bigint": pa.large_binary(),
    "float": pa.float64(),
    "str": pa.large_string(),
    "bytes": pa.large_binary(),
    "decimal": pa.large_string(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "datetime": pa.timestamp("us"),
    "datetime_zone": _DATETIME_ZONE,
    "timedelta": pa.duration("us"),
    "time_window": _TIME_WINDOW,
    "count_window": pa.int64(),
    "global_window": pa.bool_(),
}

_SCALARS: dict[str, Callable[[pa.Array], list[Any]]] = {
    "bigint": _big_ints,
    "str": _objects,
    "bytes": _objects,
    "decimal": _decimals,
    "datetime_zone": _datetimes,
    "time_window": _time_windows,
    "count_window": _count_windows,
    "global_window": _global_windows,
}

_NESTED: dict[str, Callable[[pa.Array, list[Any], Shape], list[Any]]] = {
    "optional": _optional,
    "union": _union,
    "tuple": _tuple,
    "tuples": _tuples,
    "row": _row,
    "rows": _rows,
    "list": _list,
    "dict": _dict,
    "serialized": _serialized,
    "tagged_union": _tagged_unions,
    "list_view": _list_views,
    "map_view": _map_views,
}
