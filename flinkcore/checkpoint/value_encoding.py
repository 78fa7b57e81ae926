"""Python values as Arrow columns, from which `value_decoding` makes exactly the same values."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from itertools import chain, compress
from operator import is_
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from flinkcore._internal.values.row import Row
from flinkcore._internal.values.row_kind import RowKind
from flinkcore._native.keys import given_keys
from flinkcore.checkpoint.value_shape import MAX_DEPTH, Shape
from flinkcore.datastream.functions.join_functions import TaggedUnion
from flinkcore.datastream.window import CountWindow, GlobalWindow, TimeWindow
from flinkcore.errors import SchemaError
from flinkcore.operators.state.serialized_values import SerializedValue
from flinkcore.table.data_view import ListView, MapView

MAX_TUPLE_COLUMNS = 32
"""Longer tuples are written as lists."""

Encoded = tuple[pa.Array, Shape]
Encode = Callable[[Sequence[Any], str], Encoded]


def encode(values: Sequence[Any], what: str, depth: int = 0) -> Encoded:
    """Return values as a column, with its shape.

    Values of one type make a column of that type, mixed values a union with a column for each type. The numbers 1, 1.0
    and True are kept apart; NaN, -0.0 and the digits of a Decimal are kept.

    Parameters
    ----------
    values : sequence of object
    what : str
        Their name in messages.
    depth : int
        The number of containers around them.

    Raises
    ------
    SchemaError
        If a value is of a type without a column, or of a subclass of a supported type, or nested too deep.
    """
    types = set(map(type, values))
    if depth > MAX_DEPTH:
        raise SchemaError(
            f"{what}: lists, tuples and dictionaries lie more than {MAX_DEPTH} deep in each other, or in themselves; "
            "for values and map keys name a serializer in the state's descriptor, nest keys less deep"
        )
    kinds = {found: _kind_of(found) for found in types}
    for unknown in (found for found, kind in kinds.items() if kind is None):
        value = next(value for value in values if type(value) is unknown)
        raise SchemaError(
            f"{what}: {value!r} is {unknown.__module__}.{unknown.__qualname__}, which no column of a checkpoint holds: "
            "for values and map keys name a Serializer as the type in the state's descriptor (PickleSerializer takes "
            "any); for keys and all else take built-in types: bool, int, float, str, bytes, Decimal, date, time, "
            "datetime, timedelta, list, tuple, dict, Row, ListView, MapView, TimeWindow, CountWindow, GlobalWindow"
        )
    none = type(None)
    if types <= {none}:
        return pa.nulls(len(values)), "none"
    present = {kind for kind in kinds.values() if kind is not None}
    if len(present) == 1:
        return _ENCODERS[present.pop()](values, what, depth)
    if len(present) == 2 and none in present:
        (other,) = present - {none}
        if other in _NULLABLE:
            array, shape = _ENCODERS[other](values, what, depth)
            return array, ["optional", shape]
    return _union(values, kinds, what, depth)


def _kind_of(found: type) -> type | None:
    """Return the type whose encoder takes values of a type, or None."""
    if found in _ENCODERS:
        return found
    # Rows of one origin have a class of their own, with their field names; it counts as Row.
    return Row if Row in found.__bases__ and found.__name__ == Row.__name__ else None


class EqualValuesOnce:
    """Encodes values; for the same objects as the ones before it returns the same column."""

    def __init__(self) -> None:
        self._values: Sequence[Any] = ()
        self._encoded: Encoded = encode((), "")

    def encode(self, values: Sequence[Any], what: str) -> Encoded:
        """Return values as a column, as :func:`encode`."""
        if len(values) != len(self._values) or not all(map(is_, values, self._values)):
            self._encoded = encode(values, what)
            self._values = values
        return self._encoded


def _union(values: Sequence[Any], kinds: Mapping[type, type | None], what: str, depth: int) -> Encoded:
    names = sorted({kind.__name__ for kind in kinds.values() if kind is not None})
    codes = {found: names.index(kind.__name__) for found, kind in kinds.items() if kind is not None}
    ids = np.array([codes[type(value)] for value in values], np.int8)
    offsets = np.empty(len(values), np.int32)
    children, shapes = [], []
    for code in range(len(names)):
        chosen = ids == code
        offsets[chosen] = np.arange(chosen.sum())
        array, shape = encode(list(compress(values, chosen.tolist())), what, depth)
        children.append(array)
        shapes.append(shape)
    return pa.UnionArray.from_dense(pa.array(ids), pa.array(offsets), children), ["union", *shapes]


def _of_type(arrow_type: pa.DataType, shape: Shape) -> Callable[[Sequence[Any], str, int], Encoded]:
    def encoder(values: Sequence[Any], what: str, depth: int) -> Encoded:
        return pa.array(values, arrow_type), shape

    return encoder


def _ints(values: Sequence[Any], what: str, depth: int) -> Encoded:
    try:
        return pa.array(values, pa.int64()), "int"
    except (OverflowError, pa.ArrowInvalid):
        data = [
            None if value is None else value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
            for value in values
        ]
        return pa.array(data, pa.large_binary()), "bigint"


def _texts(values: Sequence[Any], what: str, depth: int) -> Encoded:
    try:
        return pa.array(values, pa.large_string()), "str"
    except UnicodeEncodeError as failure:
        raise SchemaError(
            f"{what}: the text {failure.object!r} has a lone surrogate at {failure.start}, which UTF-8 cannot hold; "
            "decode it with another error handler, or hold bytes"
        ) from failure


def _decimals(values: Sequence[Any], what: str, depth: int) -> Encoded:
    texts = [None if value is None else str(value) for value in values]
    return pa.array(texts, pa.large_string()), "decimal"


def _times(values: Sequence[Any], what: str, depth: int) -> Encoded:
    for value in values:
        if value is not None and (value.tzinfo is not None or value.fold):
            raise SchemaError(
                f"{what}: {value!r} has a time zone or a fold, which a time of day in a checkpoint has not; hold a "
                "datetime, or name a serializer"
            )
    return pa.array(values, pa.time64("us")), "time"


def _timedeltas(values: Sequence[Any], what: str, depth: int) -> Encoded:
    try:
        return pa.array(values, pa.duration("us")), "timedelta"
    except (OverflowError, pa.ArrowInvalid) as failure:
        raise SchemaError(f"{what}: a timedelta is beyond 64 bits of microseconds ({failure})") from failure


def _datetimes(values: Sequence[Any], what: str, depth: int) -> Encoded:
    if all(value is None or (value.tzinfo is None and not value.fold) for value in values):
        return pa.array(values, pa.timestamp("us")), "datetime"
    parts = [
        pa.array([v and v.replace(tzinfo=None, fold=0) for v in values], pa.timestamp("us")),
        pa.array([None if v is None else bool(v.fold) for v in values], pa.bool_()),
        pa.array([v and _zone(v, what) for v in values], pa.large_string()),
    ]
    return pa.StructArray.from_arrays(parts, ["local", "fold", "zone"]), "datetime_zone"


def _zone(value: datetime, what: str) -> str | None:
    """Return the name of a time zone, or its offset in microseconds."""
    zone = value.tzinfo
    if zone is None:
        return None
    if type(zone) is timezone:
        offset = zone.utcoffset(None)
        if timezone(offset).tzname(None) == zone.tzname(None):
            return str(offset // timedelta(microseconds=1))
    elif type(zone) is ZoneInfo and zone.key is not None:
        return zone.key
    raise SchemaError(
        f"{what}: {value!r} has a time zone of its own; take a datetime.timezone without a name, a zoneinfo.ZoneInfo, "
        "or name a serializer"
    )


def _lists(values: Sequence[Any], what: str, depth: int) -> Encoded:
    items, shape = encode(list(chain.from_iterable(values)), what, depth + 1)
    return pa.LargeListArray.from_arrays(_offsets(values), items), ["list", shape]


def _tuples(values: Sequence[Any], what: str, depth: int) -> Encoded:
    lengths = set(map(len, values))
    length = lengths.pop()
    if lengths or not 0 < length <= MAX_TUPLE_COLUMNS:
        array, shape = _lists(values, what, depth)
        return array, ["tuples", shape[1]]
    columns = [encode(column, what, depth + 1) for column in zip(*values, strict=True)]
    array = pa.StructArray.from_arrays([column for column, _ in columns], [f"f{i}" for i in range(length)])
    return array, ["tuple", *(shape for _, shape in columns)]


def _rows(values: Sequence[Row], what: str, depth: int) -> Encoded:
    rows: list[tuple[Any, ...]] = [value.__reduce__()[1] for value in values]
    names, width = rows[0][0], len(rows[0][1])
    if (
        0 < width <= MAX_TUPLE_COLUMNS
        and all(
            fields == names and len(items) == width and kind is RowKind.INSERT for fields, items, kind in rows
        )
        and (names is None or (len(names) == width and set(map(type, names)) == {str}))
    ):
        array, shape = _tuples([items for _, items, _ in rows], what, depth)
        return array, ["row", "none" if names is None else ["names", *names], *shape[1:]]
    array, shape = encode([(fields, kind.value, items) for fields, items, kind in rows], what, depth + 1)
    return array, ["rows", shape]


def _dicts(values: Sequence[Any], what: str, depth: int) -> Encoded:
    # A map state's dictionaries hold for some keys what compares them as Java does.
    keys, key_shape = encode(given_keys(chain.from_iterable(values)), what, depth + 1)
    items, shape = encode(list(chain.from_iterable(map(dict.values, values))), what, depth + 1)
    entries = pa.StructArray.from_arrays([keys, items], ["key", "value"])
    return pa.LargeListArray.from_arrays(_offsets(values), entries), ["dict", key_shape, shape]


def _offsets(values: Sequence[Any]) -> pa.Array:
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, values), np.int64, len(values)), out=offsets[1:])
    return pa.array(offsets)


def _serialized(values: Sequence[SerializedValue], what: str, depth: int) -> Encoded:
    names = sorted({value.serializer for value in values})
    parts = [
        pa.array([value.serializer for value in values], pa.large_string()),
        pa.array([value.data for value in values], pa.large_binary()),
    ]
    return pa.StructArray.from_arrays(parts, ["serializer", "data"]), ["serialized", *names]


def _time_windows(values: Sequence[TimeWindow], what: str, depth: int) -> Encoded:
    bounds = [
        pa.array([window.start for window in values], pa.int64()),
        pa.array([window.end for window in values], pa.int64()),
    ]
    return pa.StructArray.from_arrays(bounds, ["start", "end"]), "time_window"


def _count_windows(values: Sequence[CountWindow], what: str, depth: int) -> Encoded:
    return pa.array([window.id for window in values], pa.int64()), "count_window"


def _global_windows(values: Sequence[GlobalWindow], what: str, depth: int) -> Encoded:
    return pa.array([True] * len(values), pa.bool_()), "global_window"


def _list_views(values: Sequence[ListView[Any]], what: str, depth: int) -> Encoded:
    array, shape = _lists([view.get() for view in values], what, depth)
    return array, ["list_view", shape[1]]


def _map_views(values: Sequence[MapView[Any, Any]], what: str, depth: int) -> Encoded:
    array, shape = _dicts([dict(view.items()) for view in values], what, depth)
    return array, ["map_view", *shape[1:]]


def _tagged_unions(values: Sequence[TaggedUnion[Any, Any]], what: str, depth: int) -> Encoded:
    is_second = [value.is_two() for value in values]
    elements = [value.get_two() if value.is_two() else value.get_one() for value in values]
    array, shape = encode(elements, what, depth + 1)
    parts = [pa.array(is_second, pa.bool_()), array]
    return pa.StructArray.from_arrays(parts, ["is_second", "value"]), ["tagged_union", shape]


_ENCODERS: dict[type, Callable[[Sequence[Any], str, int], Encoded]] = {
    type(None): lambda values, what, depth: (pa.nulls(len(values)), "none"),
    bool: _of_type(pa.bool_(), "bool"),
    int: _ints,
    float: _of_type(pa.float64(), "float"),
    str: _texts,
    bytes: _of_type(pa.large_binary(), "bytes"),
    Decimal: _decimals,
    date: _of_type(pa.date32(), "date"),
    time: _times,
    datetime: _datetimes,
    timedelta: _timedeltas,
    list: _lists,
    tuple: _tuples,
    dict: _dicts,
    Row: _rows,
    SerializedValue: _serialized,
    TimeWindow: _time_windows,
    CountWindow: _count_windows,
    GlobalWindow: _global_windows,
    TaggedUnion: _tagged_unions,
    ListView: _list_views,
    MapView: _map_views,
}

_NULLABLE = {bool, int, float, str, bytes, Decimal, date, time, timedelta}
