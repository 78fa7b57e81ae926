"""What elements are grouped into."""

from abc import ABC, abstractmethod


class Window(ABC):
    """A finite group of elements of a key; it is the namespace of their state, so it is hashable.

    Notes
    -----
    Follows ``pyflink.datastream.window.Window``.
    """

    __slots__ = ()

    @abstractmethod
    def max_timestamp(self) -> int:
        """Return the largest timestamp, in ms, that still belongs to the window."""
