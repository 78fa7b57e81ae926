"""Functions given as objects of a class or as plain callables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flinkcore.datastream.functions.function import Function
from flinkcore.errors import ConfigurationError

FunctionOrCallable = Function | Callable[..., Any]


def require_function(function: object, kind: type[Function], call: str) -> None:
    """Check that a function is of a class, or a plain callable.

    Raises
    ------
    ConfigurationError
        If it is neither. (PyFlink raises TypeError.)
    """
    if isinstance(function, kind):
        return
    if not callable(function) or isinstance(function, Function):
        raise ConfigurationError(f"{call} takes a {kind.__name__} or a function, not {function!r}")
    if isinstance(function, type) and issubclass(function, Function):
        raise ConfigurationError(
            f"{call} takes an object of {function.__name__}, not the class: {function.__name__}(...)"
        )


def function_call(function: FunctionOrCallable, kind: type[Function], method: str) -> Callable[..., Any]:
    """Return what is to be called: the method of a function of the class, or the callable itself."""
    return getattr(function, method) if isinstance(function, kind) else function  # type: ignore[return-value]


def function_name(function: object) -> str:
    """Return how a message names a function."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return str(getattr(named, "__qualname__", named))
