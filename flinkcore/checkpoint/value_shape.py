"""Shapes: the types of the values of a checkpoint's columns, as JSON."""

from typing import Any

from flinkcore.errors import DataError

MAX_DEPTH = 16
"""Deepest nesting of lists, tuples and dictionaries; Arrow's files do not allow much deeper types."""

Shape = str | list[Any]
"""The name of a kind, or a list of that name and what it consists of: ``["tuple", "int", ["list", "str"]]``.

`none`, `bool`, `int` (64 bits), `bigint` (any int), `float`, `str`, `bytes`, `decimal`, `date`, `time`, `datetime`,
`datetime_zone` (with a time zone or a fold), `timedelta`; `optional` (of a kind, or None), `union` (of several);
`list`, `tuple` (all of one length, a shape for each position), `tuples` (of any length), `dict` (keys, values),
`row` (all with the same names, ``["names", "user"]``, or `none`, and a shape for each position), `rows` (any),
`serialized` (by which serializers); `time_window`, `count_window`, `global_window`; `tagged_union`
(of two streams, a shape for the values of both); `list_view` and `map_view`, as `list` and `dict`.
"""

_PLAIN = {
    *("none", "bool", "int", "bigint", "float", "str", "bytes", "decimal", "date", "time", "datetime"),
    *("datetime_zone", "timedelta", "time_window", "count_window", "global_window"),
}
_PARTS = {
    "optional": 1,
    "list": 1,
    "tuples": 1,
    "rows": 1,
    "tagged_union": 1,
    "list_view": 1,
    "dict": 2,
    "map_view": 2,
}
_MAX_SHAPE_DEPTH = 2 * MAX_DEPTH + 4
"""There may be a union or an optional around each container, and around the innermost values."""

_TEXTS = {
    "none": "None",
    "bigint": "int",
    "datetime_zone": "datetime",
    "decimal": "Decimal",
    "time_window": "TimeWindow",
    "count_window": "CountWindow",
    "global_window": "GlobalWindow",
    "list_view": "ListView",
    "map_view": "MapView",
}


def check_shape(shape: Any, where: str, depth: int = 0) -> None:
    """Check a shape that comes from outside.

    Parameters
    ----------
    shape : object
    where : str
        Its name in messages.
    depth : int
        The number of shapes around it.

    Raises
    ------
    DataError
        If it is not a shape, or nested too deep.
    """
    if depth > _MAX_SHAPE_DEPTH:
        raise DataError(f"{where} is nested more than {_MAX_SHAPE_DEPTH} deep")
    if isinstance(shape, str) and shape in _PLAIN:
        return
    kind, *parts = shape if isinstance(shape, list) and shape else [shape]
    if kind == "row" and parts:
        names, *parts = parts
        if names != "none" and not (
            _are_texts(names) and names[:1] == ["names"] and len(names) == len(parts) + 1
        ):
            raise DataError(f"{where} has a row whose names are not those of its {len(parts)} fields")
    if kind == "serialized" and parts and _are_texts(parts):
        return
    is_whole = (
        len(parts) == _PARTS[kind]
        if isinstance(kind, str) and kind in _PARTS
        else (len(parts) > 0 and kind in ("tuple", "row", "union"))
    )
    if not isinstance(shape, list) or not is_whole:
        raise DataError(f"{where} is {str(shape)[:80]!r}, which this version does not know")
    for part in parts:
        check_shape(part, where, depth + 1)


def _are_texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def shape_text(shape: Shape) -> str:
    """Return a shape in the notation of Python types.

    Examples
    --------
    >>> shape_text(["dict", "str", ["optional", "bigint"]])
    'dict[str, int | None]'
    """
    if isinstance(shape, str):
        return _TEXTS.get(shape, shape)
    kind, *parts = shape
    if kind == "serialized":
        return f"serialized by {', '.join(parts)}"
    if kind == "rows":
        return "Row"
    if kind == "row":
        names = [""] * len(parts) if parts[0] == "none" else [f"{name}: " for name in parts[0][1:]]
        fields = (f"{name}{shape_text(part)}" for name, part in zip(names, parts[1:], strict=False))
        return f"Row[{', '.join(fields)}]"
    texts = [shape_text(part) for part in parts]
    if kind == "optional":
        return f"{texts[0]} | None"
    if kind == "union":
        return " | ".join(dict.fromkeys(texts))
    if kind == "tagged_union":
        return f"TaggedUnion[{texts[0]}]"
    if kind == "tuples":
        return f"tuple[{texts[0]}, ...]"
    return f"{_TEXTS.get(kind, kind)}[{', '.join(texts) or '()'}]"


def has_serialized(shape: Shape) -> bool:
    """Return whether some of its values were written by a serializer."""
    return not isinstance(shape, str) and (shape[0] == "serialized" or any(map(has_serialized, shape[1:])))
