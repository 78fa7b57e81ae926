"""What a declared type must be able to say about a value."""

from typing import Protocol, runtime_checkable


@runtime_checkable
class TypeInformation(Protocol):
    """A declared type of values.

    Notes
    -----
    As much of Flink's ``org.apache.flink.api.common.typeinfo.TypeInformation`` as checking a value takes. Its
    text form stands in error messages. Two of the same type are to be equal.
    """

    def accepts(self, value: object) -> bool:
        """Return whether a value is of this type; it is never asked about None."""
