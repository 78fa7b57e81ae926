"""Functions from an element to its key."""

from abc import abstractmethod
from typing import Any

from flinkcore.datastream.functions.function import Function


class KeySelector(Function):
    """Tells the key of an element: the same one for the same element, at any time.

    Notes
    -----
    Follows ``pyflink.datastream.KeySelector``.
    """

    @abstractmethod
    def get_key(self, value: Any) -> Any:
        """Return the key of an element."""


class NullByteKeySelector(KeySelector):
    """Gives all elements one key, the byte 0.

    Notes
    -----
    Follows ``pyflink.datastream.functions.NullByteKeySelector``.
    """

    def get_key(self, value: Any) -> int:
        """Return 0."""
        return 0
