"""What all user-defined functions have in common."""

from abc import ABC
from collections.abc import Iterable
from typing import Any

from flinkcore.datastream.functions.runtime_context import RuntimeContext

Results = Iterable[Any] | None
"""What a function yields or returns: elements of the main output, and ``(tag, element)`` for a side output."""


class Function(ABC):  # noqa: B024 - as in PyFlink, where there is nothing that a function must override
    """Base of user-defined functions.

    Notes
    -----
    Follows ``pyflink.datastream.Function``.
    """

    def open(self, runtime_context: RuntimeContext) -> None:  # noqa: B027
        """Prepare for work; called once, before any element. Not within a key: no timers, no state values."""

    def close(self) -> None:  # noqa: B027
        """Let go of what `open` took; called once, after the last element, and after a failure."""
