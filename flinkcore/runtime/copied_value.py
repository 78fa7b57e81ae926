"""Values as they are now: what a function gave may go on changing in its state."""

from collections.abc import Callable
from copy import copy
from typing import Any

from flinkcore.common.row import Row


def copied(value: Any) -> Any:
    """Return a value whose lists, tuples, dictionaries, sets, byte arrays and Rows are the caller's own.

    Parameters
    ----------
    value : object
        What else there is in it, and itself if it is none of these, is returned as it is.

    Notes
    -----
    Stands for the copy by ``TypeSerializer`` that Flink makes of a record for an operator that keeps it.

    Examples
    --------
    >>> visits = ["home"]
    >>> kept = copied(("ada", visits))
    >>> visits.append("cart")
    >>> kept
    ('ada', ['home'])
    """
    copy_of = _COPIES.get(type(value))
    if copy_of is not None:
        return copy_of(value)
    if isinstance(value, Row):
        return _copied_row(value)
    return _copied_container(value) if isinstance(value, (list, tuple, dict, set, bytearray)) else value


def _copied_row(row: Row) -> Row:
    make, (fields, values, row_kind) = row.__reduce__()
    made: Row = make(fields, [copied(part) for part in values], row_kind)
    return made


def _copied_container(value: Any) -> Any:
    """Return a copy of a container of a class such as defaultdict, or a named tuple."""
    if isinstance(value, tuple):
        return value._make(map(copied, value)) if hasattr(value, "_make") else value
    made = copy(value)
    if isinstance(made, dict | list):
        places = list(made) if isinstance(made, dict) else range(len(made))
        for place in places:
            made[place] = copied(made[place])
    return made


_COPIES: dict[type, Callable[[Any], Any]] = {
    list: lambda value: [copied(part) for part in value],
    tuple: lambda value: tuple([copied(part) for part in value]),
    dict: lambda value: {key: copied(part) for key, part in value.items()},
    set: set.copy,
    bytearray: bytearray.copy,
}
