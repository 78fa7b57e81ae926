"""Writing Java's DataOutput, piece by piece."""

from __future__ import annotations

import struct
from typing import Final

_INTEGERS: Final = {
    size: struct.Struct(f">{letter}") for size, letter in ((1, "b"), (2, "h"), (4, "i"), (8, "q"))
}
_MOST_TEXT_BYTES: Final = 65_535


class ByteWriter:
    """Collects numbers and texts one after the other; all are big endian."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.size = 0

    def add(self, data: bytes) -> ByteWriter:
        """Append bytes, and return the writer."""
        self._parts.append(data)
        self.size += len(data)
        return self

    def integer(self, number: int, size: int = 4) -> ByteWriter:
        """Append a signed integer of 1, 2, 4 or 8 bytes."""
        return self.add(_INTEGERS[size].pack(number))

    def flag(self, value: bool) -> ByteWriter:
        """Append a boolean."""
        return self.add(b"\1" if value else b"\0")

    def utf(self, text: str) -> ByteWriter:
        """Append a text as DataOutput.writeUTF writes it.

        Raises
        ------
        ValueError
            If the text has more than 65,535 bytes.
        """
        units = memoryview(text.encode("utf-16-be", "surrogatepass")).tobytes()
        # Java writes NUL in two bytes, and each half of a surrogate pair in three.
        data = b"".join(
            chr(unit).encode("utf-8", "surrogatepass") if unit else b"\xc0\x80"
            for (unit,) in struct.iter_unpack(">H", units)
        )
        if len(data) > _MOST_TEXT_BYTES:
            raise ValueError(
                f"the text {text[:40]!r}… has {len(data):,} bytes, and Java writes 65,535 at most"
            )
        self.add(len(data).to_bytes(2, "big"))
        return self.add(data)

    def string(self, text: str) -> ByteWriter:
        """Append a text as Flink's StringValue writes it."""
        data = text.encode("utf-16-be", "surrogatepass")
        units = [unit for (unit,) in struct.iter_unpack(">H", data)]
        groups = bytearray()
        for number in (len(units) + 1, *units):
            while number >= 0x80:
                groups.append(number & 0x7F | 0x80)
                number >>= 7
            groups.append(number)
        return self.add(bytes(groups))

    def data(self) -> bytes:
        """Return all bytes."""
        return b"".join(self._parts)
