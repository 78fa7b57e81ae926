"""The type of any Python object."""

from __future__ import annotations

from typing import Any

from flinkcore.common.typeinfo.type_information import Check, TypeInformation


class PickledBytesTypeInfo(TypeInformation):
    """Any Python object; what elements are whose type is not declared.

    Notes
    -----
    Follows ``pyflink.common.typeinfo.PickledBytesTypeInfo``. Nothing is pickled here: an object stays in the process.
    """

    def accepts(self, value: object) -> bool:
        """Return True."""
        return True

    def check(self) -> Check | None:
        """Return None."""
        return None

    def text(self, value: Any) -> str:
        """Return the object's own text."""
        return str(value)

    def _parts(self) -> tuple[Any, ...]:
        return ()

    def __repr__(self) -> str:
        return "PickledByteArrayTypeInfo"
