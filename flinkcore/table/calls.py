"""Calls of Flink's Table API: a program records them, and Flink makes them when it plans the query."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Final

from flinkcore.errors import ArgumentTypeError
from flinkcore.table.types import DataType
from flinkcore.table.udf import DeclaredFunction, type_text

_UNSHOWN: Final = ("Expressions", "TableEnvironment")
_INT: Final = range(-(1 << 31), 1 << 31)
_LONG: Final = range(-(1 << 63), 1 << 63)


@dataclass(frozen=True, eq=False)
class Call:
    """A call of a method in Java.

    Attributes
    ----------
    method : str
        Its name in Java.
    target : Recorded or str
        Object of the method; or the name of a class, of a static method.
    arguments : tuple
        Values, types, functions, members of enumerations, and what has been recorded.
    text : str
        The call as Python writes it.
    """

    method: str
    target: Recorded | str
    arguments: tuple[Any, ...]
    text: str


class Recorded:
    """Something of the Table API that a call returns."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def __str__(self) -> str:
        """Return the call as Python writes it."""
        return self._call.text

    __repr__ = __str__


def called(target: Recorded | str, name: str, method: str, arguments: tuple[Any, ...]) -> Call:
    """Return a call; `name` is that of the method in Python."""
    place = target if isinstance(target, str) else target._call.text
    place = "" if place in _UNSHOWN else f"{place}."
    return Call(method, target, arguments, f"{place}{name}({', '.join(map(shown, arguments))})")


def shown(argument: Any) -> str:
    """Return an argument as Python writes it."""
    if isinstance(argument, DeclaredFunction):
        return argument.name
    if isinstance(argument, DataType):
        return f"'{type_text(argument)}'"
    if isinstance(argument, Recorded):
        return argument._call.text
    return str(argument) if isinstance(argument, Enum) else repr(argument)


def java_name(name: str) -> str:
    """Return the name in Java of a method, such as ``isNull`` of ``is_null``."""
    first, *others = name.rstrip("_").split("_")
    return first + "".join(map(str.capitalize, others))


def node_of(recorded: Any, name_of: Callable[[DeclaredFunction], str]) -> Any:
    """Return what was recorded, or an argument, as the planner reads it.

    Parameters
    ----------
    recorded : object
    name_of : callable
        Returns the name under which Flink has a function in Python.

    Raises
    ------
    ArgumentTypeError
        If an argument has no value in Java.
    """
    if isinstance(recorded, Recorded):
        call = recorded._call
        of_class = isinstance(call.target, str)
        return {
            "call": call.method,
            "class" if of_class else "on": call.target if of_class else node_of(call.target, name_of),
            "arguments": [node_of(each, name_of) for each in call.arguments],
        }
    if isinstance(recorded, DeclaredFunction):
        return name_of(recorded)
    return _value(recorded)


def _value(value: Any) -> Any:
    """Return a value as JSON; types that it does not have are objects with the name of the type."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, DataType):
        return {"type": type_text(value)}
    if isinstance(value, Enum):
        return {"enum": [type(value).__name__, value.name]}
    if isinstance(value, int):
        kind = "int" if value in _INT else "long" if value in _LONG else "integer"
        return {kind: str(value)}
    if isinstance(value, float):
        return {"double": repr(value).replace("inf", "Infinity").replace("nan", "NaN")}
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    if isinstance(value, bytes | bytearray):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, datetime):  # before date, whose subclass it is
        return {"timestamp" if value.tzinfo is None else "instant": value.isoformat()}
    if isinstance(value, date):
        return {"date": value.isoformat()}
    if isinstance(value, time):
        return {"time": value.isoformat()}
    if isinstance(value, timedelta):
        return {"duration": str(value // timedelta(microseconds=1))}
    raise ArgumentTypeError(
        f"{value!r:.80} is not a value of SQL: expressions take numbers, texts, bytes, dates, times and expressions"
    )
