"""The base of user-defined functions, which are objects of a class or plain callables."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterable
from typing import Any

from flinkcore.datastream.functions.runtime_context import RuntimeContext
from flinkcore.errors import ArgumentTypeError

Results = Iterable[Any] | None
"""Results that a function yields or returns: elements of the main output, and ``(tag, element)`` for a side output."""


class Function(ABC):  # noqa: B024 - as in PyFlink, where there is nothing that a function must override
    """Base of user-defined functions.

    Notes
    -----
    Follows ``pyflink.datastream.Function``.
    """

    def open(self, runtime_context: RuntimeContext) -> None:  # noqa: B027
        """Initialise; called once, before any element. There is no current key yet, for timers or state."""

    def close(self) -> None:  # noqa: B027
        """Release what `open` acquired; called once, after the last element, and after a failure."""


FunctionOrCallable = Function | Callable[..., Any]


def require_function(function: object, kind: type[Function], call: str) -> None:
    """Check that a function is an object of a class, or a plain callable.

    Raises
    ------
    ArgumentTypeError
        If it is neither.
    """
    if isinstance(function, kind):
        return
    if not callable(function) or isinstance(function, Function):
        raise ArgumentTypeError(f"{call} takes a {kind.__name__} or a function, not {function!r}")
    if isinstance(function, type) and issubclass(function, Function):
        raise ArgumentTypeError(
            f"{call} takes an object of {function.__name__}, not the class: {function.__name__}(...)"
        )


def function_call(function: FunctionOrCallable, kind: type[Function], method: str) -> Callable[..., Any]:
    """Return what is to be called: the method of a function of the class, or the callable itself."""
    return getattr(function, method) if isinstance(function, kind) else function  # type: ignore[return-value]


def function_name(function: object) -> str:
    """Return the name of a function in messages."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return str(getattr(named, "__qualname__", named))
