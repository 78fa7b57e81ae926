"""Copies of values, functions and strategies: what one holder changes, no other sees."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, TypeVar

from flinkcore._internal.values.row import Row
from flinkcore.common.time import Instant
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.errors import UserCodeError, in_words
from flinkcore.operators.records.shown_values import shown

F = TypeVar("F")


def copied(value: Any) -> Any:
    """Return a value with copies of its lists, tuples, dictionaries, sets, byte arrays and Rows.

    Parameters
    ----------
    value : object
        Objects of any other type in it, or the value itself, are returned as they are.

    Notes
    -----
    Stands for the copy by ``TypeSerializer`` that Flink makes of a record that an operator keeps.

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
    made = copy.copy(value)
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


_UNCHANGING = frozenset(
    (
        *(str, int, float, bool, bytes, complex, type(None)),
        *(date, datetime, time, timedelta, Decimal, Instant),
    )
)


def detached(value: Any, giver: str) -> Any:
    """Return a copy of a value for another task, or the value itself if it is immutable.

    Functions may change the objects that they gave, such as an accumulator that is a list. Flink serializes values
    between tasks, so that no other task sees it; operators of one chain share objects. Objects of any class are copied,
    where :func:`copied` copies containers only.

    Parameters
    ----------
    value : object
    giver : str
        The name in errors of the function that gave it.

    Raises
    ------
    UserCodeError
        If the object can be neither pickled nor copied, such as an open file, a lock or a generator: tasks would share
        it, and the results would depend on how many tasks there are and where they run.
    """
    kind = type(value)
    if kind in _UNCHANGING:
        return value
    if kind is tuple:
        for field in value:
            if type(field) not in _UNCHANGING:
                return _copied(value, giver)
        return value
    if isinstance(value, Row):
        for field in value._values:
            if type(field) not in _UNCHANGING:
                return _copied(value, giver)
        return value.copied()
    return _copied(value, giver)


def _copied(value: Any, giver: str) -> Any:
    try:
        return pickle.loads(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
    except Exception:
        pass
    try:
        return copy.deepcopy(value)
    except Exception as failure:
        raise UserCodeError(
            f"{giver} gave {shown(value)}, of which the next task needs a copy, but it can be neither pickled nor "
            f"copied: {in_words(failure)}. Give values that pickle can write, such as what is read "
            "from the object, or give its class a __reduce__ or __deepcopy__"
        ) from failure


def copied_function(function: F) -> F:
    """Return a copy: every run of every partition starts with the function as it was given, and shares nothing.

    Raises
    ------
    UserCodeError
        If it cannot be copied.
    """
    try:
        return copy.deepcopy(function)
    except Exception as failure:
        raise UserCodeError(
            f"the function {type(function).__qualname__} cannot be copied, as it must be for every partition: "
            f"{in_words(failure)}. Make what cannot be copied in open(), or give it a __deepcopy__"
        ) from failure


def copied_strategy(watermark_strategy: WatermarkStrategy) -> WatermarkStrategy:
    """Return a copy of a strategy, so that operators share no state of its timestamp assigner or supplier.

    Raises
    ------
    UserCodeError
        If the strategy cannot be copied.

    Notes
    -----
    In Flink, each parallel operator deserializes its own strategy.
    """
    try:
        return copy.deepcopy(watermark_strategy)
    except Exception as failure:
        raise UserCodeError(
            f"the strategy cannot be copied, as it must be so that no two operators share the state of its "
            f"assigner or supplier: {watermark_strategy}. Give what cannot be copied a __deepcopy__"
        ) from failure
