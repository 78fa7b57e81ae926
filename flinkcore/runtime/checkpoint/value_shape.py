"""What values a column of a checkpoint has, in a form that JSON can hold."""

from typing import Any

Shape = str | list[Any]
"""The name of a kind, or a list of that name and what it consists of: ``["tuple", "int", ["list", "str"]]``.

`none`, `bool`, `int` (64 bits), `bigint` (any int), `float`, `str`, `bytes`, `decimal`, `date`, `time`, `datetime`,
`datetime_zone` (with a time zone or a fold), `timedelta`; `optional` (of a kind, or None), `union` (of several);
`list`, `tuple` (all of one length, a shape for each position), `tuples` (of any length), `dict` (keys, values),
`row` (all with the same names, ``["names", "user"]``, or `none`, and a shape for each position), `rows` (any),
`serialized` (by which serializers); `time_window`, `count_window`, `global_window`; `tagged_union`
(of two streams, a shape for the values of both).
"""

_TEXTS = {
    "none": "None",
    "bigint": "int",
    "datetime_zone": "datetime",
    "decimal": "Decimal",
    "time_window": "TimeWindow",
    "count_window": "CountWindow",
    "global_window": "GlobalWindow",
}


def shape_text(shape: Shape) -> str:
    """Return a shape as a type is written in Python.

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
    return f"{kind}[{', '.join(texts) or '()'}]"


def has_serialized(shape: Shape) -> bool:
    """Return whether there are values in it that a serializer wrote."""
    return not isinstance(shape, str) and (shape[0] == "serialized" or any(map(has_serialized, shape[1:])))
