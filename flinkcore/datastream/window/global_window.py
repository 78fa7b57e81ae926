"""The window of everything."""

from typing import Any

from flinkcore.common.constants import MAX_TIMESTAMP
from flinkcore.datastream.window.window import Window


class GlobalWindow(Window):
    """The window that all elements of a key are in; there is one object only.

    Notes
    -----
    Follows ``pyflink.datastream.window.GlobalWindow``.
    """

    __slots__ = ()

    _instance: "GlobalWindow | None" = None

    def __new__(cls) -> "GlobalWindow":
        """Return the one global window."""
        if GlobalWindow._instance is None:
            GlobalWindow._instance = super().__new__(cls)
        return GlobalWindow._instance

    @staticmethod
    def get() -> "GlobalWindow":
        """Return the one global window."""
        return GlobalWindow()

    def max_timestamp(self) -> int:
        """Return the largest timestamp there is."""
        return MAX_TIMESTAMP

    def __reduce__(self) -> tuple[Any, ...]:
        return GlobalWindow, ()

    def __repr__(self) -> str:
        return "GlobalWindow"
