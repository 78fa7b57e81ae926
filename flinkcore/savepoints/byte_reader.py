"""Reading Java's DataOutput, piece by piece, with errors that name the file and the position."""

from __future__ import annotations

import struct
from typing import Final, NoReturn

from flinkcore.errors import SavepointError

_INTEGERS: Final = {
    size: struct.Struct(f">{letter}") for size, letter in ((1, "b"), (2, "h"), (4, "i"), (8, "q"))
}


class ByteReader:
    """Reads numbers and texts one after the other; all are big endian.

    Parameters
    ----------
    data : bytes
    file : str
        Name of the file in errors.
    base : int
        Position of the data in the file.
    """

    def __init__(self, data: bytes, file: str, base: int = 0) -> None:
        self.data = data
        self.file = file
        self.base = base
        self.at = 0

    @property
    def offset(self) -> int:
        """Position in the file."""
        return self.base + self.at

    @property
    def left(self) -> int:
        """Number of bytes that have not been read."""
        return len(self.data) - self.at

    def fail(self, message: str) -> NoReturn:
        """Raise a SavepointError at the current position."""
        raise damage(self.file, self.offset, message)

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        if not 0 <= size <= self.left:
            self.fail(f"{size:,} bytes are expected, and {self.left:,} are left")
        self.at += size
        return self.data[self.at - size : self.at]

    def integer(self, size: int) -> int:
        """Return a signed integer of 1, 2, 4 or 8 bytes."""
        number: int = _INTEGERS[size].unpack(self.take(size))[0]
        return number

    def count(self, least_bytes: int = 1) -> int:
        """Return a number of elements that follow, each of which has so many bytes at least."""
        number = self.integer(4)
        if not 0 <= number * least_bytes <= self.left:
            self.at -= 4
            self.fail(f"{number:,} elements cannot be in the {self.left - 4:,} bytes that are left")
        return number

    def flag(self) -> bool:
        """Return a boolean."""
        return self.take(1) != b"\0"

    def utf(self) -> str:
        """Return a text as DataOutput.writeUTF writes it; characters that are not valid become escapes."""
        size = int.from_bytes(self.take(2), "big")
        data = self.take(size)
        if data.isascii():
            return data.decode()
        # Java writes NUL in two bytes, and each half of a surrogate pair in three.
        utf_8 = data.replace(b"\xc0\x80", b"\0")
        try:
            units = utf_8.decode("utf-8", "surrogatepass").encode("utf-16", "surrogatepass")
        except UnicodeDecodeError:
            return utf_8.decode("utf-8", "backslashreplace")
        return units.decode("utf-16", "backslashreplace")

    def string(self) -> str:
        """Return a text as Flink's StringValue writes it: length + 1 and UTF-16 units, in groups of 7 bits.

        Halves of surrogate pairs become escapes, and a null an empty text.
        """
        units = [self._groups() for _ in range(max(self._groups() - 1, 0))]
        if max(units, default=0) > 0xFFFF:
            self.fail("a character has more than 16 bits")
        return struct.pack(f"<{len(units)}H", *units).decode("utf-16-le", "backslashreplace")

    def _groups(self) -> int:
        number = 0
        for shift in range(0, 35, 7):
            byte = self.take(1)[0]
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
        return self.fail("a number of a text is too long")

    def nested(self, size: int) -> ByteReader:
        """Return a reader of the next bytes alone."""
        base = self.offset
        return ByteReader(self.take(size), self.file, base)


def damage(file: str, offset: int, message: str) -> SavepointError:
    """Return the error of a file that is damaged at an offset."""
    return SavepointError(f"{file} is damaged at byte {offset:,}: {message}", file=file, offset=offset)
