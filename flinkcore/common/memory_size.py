"""Numbers of bytes, as Flink's settings spell them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from flinkcore._internal.python.missing_features import WithoutJava
from flinkcore.errors import ConfigurationError

_UNITS: Final = {
    "": 1,
    **dict.fromkeys(("b", "bytes"), 1),
    **dict.fromkeys(("k", "kb", "kibibytes"), 1 << 10),
    **dict.fromkeys(("m", "mb", "mebibytes"), 1 << 20),
    **dict.fromkeys(("g", "gb", "gibibytes"), 1 << 30),
    **dict.fromkeys(("t", "tb", "tebibytes"), 1 << 40),
}
_SHOWN_UNITS: Final = (("tb", 1 << 40), ("gb", 1 << 30), ("mb", 1 << 20), ("kb", 1 << 10))
_LARGEST: Final = (1 << 63) - 1


@dataclass(frozen=True, order=True)
class MemorySize(WithoutJava):
    """A number of bytes.

    Parameters
    ----------
    bytes_size : int
        From 0 to 2**63 - 1.

    Raises
    ------
    ConfigurationError
        If it is not a whole number, negative, or too large.

    Notes
    -----
    Follows ``pyflink.datastream.slot_sharing_group.MemorySize``.

    Examples
    --------
    >>> str(MemorySize.parse("65536 kb"))
    '64 mb'
    """

    bytes_size: int

    def __post_init__(self) -> None:
        size = self.bytes_size
        if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= _LARGEST:
            raise ConfigurationError(f"a memory size is a number of bytes from 0, not {size!r}")

    @staticmethod
    def of_mebi_bytes(mebi_bytes: int) -> MemorySize:
        """Return a size of so many units of 1,048,576 bytes."""
        return MemorySize(mebi_bytes << 20)

    @staticmethod
    def parse(text: str) -> MemorySize:
        """Return the size that a text such as ``64 mb`` spells; without a unit it is a number of bytes.

        Raises
        ------
        ConfigurationError
            If the text is not a size, or the size does not fit in 64 bits.
        """
        found = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", text.lower(), re.ASCII)
        unit = None if found is None else _UNITS.get(found[2])
        if found is None or unit is None:
            raise ConfigurationError(
                f"a memory size is a whole number and a unit such as kb, mb or gb, not {text!r}"
            )
        return MemorySize(int(found[1]) * unit)

    def get_bytes(self) -> int:
        """Return the number of bytes."""
        return self.bytes_size

    def get_kibi_bytes(self) -> int:
        """Return the number of whole units of 1,024 bytes."""
        return self.bytes_size >> 10

    def get_mebi_bytes(self) -> int:
        """Return the number of whole units of 1,024 kibibytes."""
        return self.bytes_size >> 20

    def get_gibi_bytes(self) -> int:
        """Return the number of whole units of 1,024 mebibytes."""
        return self.bytes_size >> 30

    def get_tebi_bytes(self) -> int:
        """Return the number of whole units of 1,024 gibibytes."""
        return self.bytes_size >> 40

    def __str__(self) -> str:
        for unit, size in _SHOWN_UNITS:
            if self.bytes_size and self.bytes_size % size == 0:
                return f"{self.bytes_size // size} {unit}"
        return f"{self.bytes_size} bytes"
