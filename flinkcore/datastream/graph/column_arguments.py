"""Checks of names of columns, expressions and switches that programs give to steps over columns."""

from __future__ import annotations

from typing import Any

from flinkcore._internal.arrow.expressions import is_expression
from flinkcore.datastream.functions import Function
from flinkcore.errors import ArgumentTypeError, ConfigurationError


def require_key_columns(columns: tuple[Any, ...], call: str, otherwise: str = "") -> tuple[str, ...]:
    """Return the names of the columns that make up a key.

    Raises
    ------
    ConfigurationError
        If no column is given, one is given twice, or one is not a name.
    """
    if not columns:
        raise ConfigurationError(f"{call} needs at least one column: {call}('user'){otherwise}")
    for name in columns:
        if isinstance(name, list | tuple) and name and all(isinstance(each, str) for each in name):
            raise ArgumentTypeError(
                f"{call} takes names of columns, not a {type(name).__name__} of them: write "
                f"{call}({', '.join(map(repr, name))})"
            )
        if not isinstance(name, str) or not name:
            raise ArgumentTypeError(
                f"{call} takes names of columns{otherwise}, not {name!r}; compute a key first: "
                f"with_columns(key=expression), then {call}('key')"
            )
    refuse_repeated(columns, call)
    return columns


def require_expression(value: object, call: str) -> None:
    """Raise ArgumentTypeError for anything but an expression of pyarrow, with what to write instead."""
    if is_expression(value):
        return
    if type(value).__name__ == "Column":
        hint = (
            "columns of Spark are for filter and with_columns on the stream of a log that is a Spark DataFrame, before "
            "any other step, and all of the call"
        )
    elif isinstance(value, str):
        hint = (
            "text is a condition of Spark SQL only in filter on the stream of a log that is a Spark DataFrame, before "
            "any other step; a column is pyarrow.compute.field(name)"
        )
    elif callable(value) or isinstance(value, Function):
        hint = "a Python function, called for each row, goes to map, flat_map or process, or to filter of elements()"
    else:
        hint = "a constant is pyarrow.compute.scalar(value)"
    raise ArgumentTypeError(
        f"{call} takes a pyarrow expression, such as pyarrow.compute.field('price') > 100, not {value!r}: "
        f"{hint}"
    )


def require_boolean(value: object, argument: str) -> None:
    """Raise ArgumentTypeError if an argument, which is shown as `argument`, is not True or False."""
    if not isinstance(value, bool):
        raise ArgumentTypeError(f"{argument} is True or False, not {value!r}")


def refuse_repeated(names: tuple[str, ...], call: str, what: str = "columns") -> None:
    """Raise ConfigurationError if a call names something twice."""
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ConfigurationError(f"{call} names {what} twice: {', '.join(repeated)}")
