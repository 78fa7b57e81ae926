"""Text files: the checks of CSV and JSON lines that Arrow's readers do not make, and their warnings."""

from __future__ import annotations

import codecs
import csv
import io
import sys
from collections.abc import Callable, Generator, Iterator
from functools import partial
from threading import RLock
from time import monotonic, sleep
from typing import Any, Final
from weakref import ref

from flinkcore._native.json_lines import JsonKeys
from flinkcore.errors import DataError

LET_GO_SECONDS = 60
"""At most so long Arrow's threads are waited for, which take milliseconds unless the machine is overloaded."""


def read_block(stream: Any, n_bytes: int) -> bytes:
    """Return the next bytes of a ``pyarrow.NativeFile``, `n_bytes` at most."""
    # NativeFile.read keeps the memory of its bytes when it fails.
    block: bytes = stream.read_buffer(n_bytes).to_pybytes()
    return block


OTHER_ENCODING: Final = (
    "it is not UTF-8, but UTF-16 or UTF-32, or not text: write it as UTF-8, such as by iconv "
    "-f UTF-16 -t UTF-8"
)


COMPRESSED: Final = (
    "it is compressed, but its name does not say so: rename it to end in .gz, .bz2, .zst or .lz4"
)
_COMPRESSED_MARKS: Final = (
    *(b"BZh%d1AY&SY" % level for level in range(1, 10)),
    b"\x1f\x8b",
    b"\x28\xb5\x2f\xfd",
    b"\x04\x22\x4d\x18",
)


def refuse_other_encodings(block: bytes, or_else: str = "") -> None:
    """Check that the first block of a text file is not UTF-16 or UTF-32, or compressed.

    Parameters
    ----------
    block : bytes
    or_else : str
        Another remedy for the first two.

    Raises
    ------
    pyarrow.ArrowInvalid
        If it begins with a mark of these, or has zero bytes in its first line, which UTF-8 has none of.
    """
    if block.startswith(_COMPRESSED_MARKS):
        raise _invalid(COMPRESSED)
    line = block[:4096].split(b"\n", 1)[0]
    if block.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in line:
        raise _invalid(OTHER_ENCODING + or_else)


_MARKS: Final = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_TEXT_BLOCK_BYTES: Final = 1 << 18
_TEXT_CHARACTERS: Final = 1 << 13


def text_blocks(stream: Any) -> Iterator[str]:
    """Yield the text of a file, block by block: UTF-8, unless its mark says that it is UTF-16 or UTF-32.

    Parameters
    ----------
    stream : pyarrow.NativeFile

    Raises
    ------
    DataError
        If it is not a text.
    UnicodeDecodeError
        If it is not encoded as it says.
    """
    block = read_block(stream, _TEXT_BLOCK_BYTES)
    encoding = next((encoding for mark, encoding in _MARKS.items() if block.startswith(mark)), None)
    if encoding is None and b"\0" in block[:4096].split(b"\n", 1)[0]:
        raise DataError(OTHER_ENCODING)
    decoder = codecs.getincrementaldecoder(encoding or "utf-8")()
    while block:
        text = decoder.decode(block)
        # Values of a few hundred rows stay in the processor's cache, and below the garbage collector's threshold.
        for start in range(0, len(text), _TEXT_CHARACTERS):
            yield text[start : start + _TEXT_CHARACTERS]
        block = read_block(stream, _TEXT_BLOCK_BYTES)
    decoder.decode(b"", final=True)


class CsvRows:
    """The bytes of a CSV file for Arrow's reader, followed by one more row with a column too many.

    Arrow reads everything after an unclosed quote as one value. It sees the additional row only if no value is open at
    the end, and passes it to `take_invalid_row`, which must be the reader's ``invalid_row_handler``.

    Parameters
    ----------
    stream : pyarrow.NativeFile
    block_bytes : int
        Size of the reader's blocks.
    delimiter : str

    Attributes
    ----------
    names : list of str
        Names of the columns, from the header.
    is_empty : bool
        Whether the file has nothing but line breaks, which Arrow refuses.
    ends_within_line : bool
        Whether the file has no line break at its end; known once all is read.
    line_breaks : int
        Number of line breaks in the bytes read so far.

    Raises
    ------
    pyarrow.ArrowInvalid
        If the header is not a row.
    """

    closed = False  # of Python's files, for PythonFile

    def __init__(self, stream: Any, block_bytes: int, delimiter: str) -> None:
        self._stream = stream
        self._block = self._filled_block(block_bytes)
        refuse_other_encodings(self._block, ", or give format_options={'encoding': 'utf-16'}")
        self.is_empty = not self._block
        self.names = self._header(delimiter)
        self._end_row = delimiter.encode() * len(self.names) + b"\n"
        self._end_rows, self._has_ended = 0, False
        self.ends_within_line = False
        self.line_breaks = 0

    def _filled_block(self, block_bytes: int) -> bytes:
        while block := read_block(self._stream, block_bytes - 1):
            if block.strip(b"\r\n"):
                return block
        return b""

    def _header(self, delimiter: str) -> list[str]:
        block = self._block.removeprefix(codecs.BOM_UTF8)
        text = io.TextIOWrapper(io.BytesIO(block), "latin-1", newline="")
        rows = csv.reader(text, delimiter=delimiter)
        try:
            return [name.encode("latin-1").decode(errors="replace") for name in next(filter(None, rows), ())]
        except csv.Error as error:
            raise _invalid(f"its header is not a row of CSV: {error}") from error

    def read(self, n_bytes: int) -> bytes:
        """Return the next block, which has `n_bytes` at most; the last is the additional row."""
        block, self._block = self._block, b""
        if self._has_ended:
            return block
        self._block = read_block(self._stream, n_bytes - 1)
        self.line_breaks += block.count(b"\n")
        if not self._block:
            self._block, self._has_ended = self._end_row, True
            self.ends_within_line = not block.endswith((b"\n", b"\r"))
            if self.ends_within_line:
                self.line_breaks += 1
                return block + b"\n"
            if block == b"\n":
                # Arrow takes a block for the end of the file if it has only what belongs to a "\r" before it.
                self._block = b""
                return block + self._end_row
        return block

    def close(self) -> None:
        """Return no more blocks; the caller closes the stream."""
        self._block, self._has_ended = b"", True

    def take_invalid_row(self, row: Any) -> str:
        """Skip the additional row; refuse every other invalid one."""
        text = (row.text or "").encode() + b"\n"
        if text != self._end_row:
            # A row that contains the additional one is reported by `check_end`.
            return "skip" if text.endswith(b"\n" + self._end_row) else "error"
        # The file may have such a row itself, which is one too many.
        self._end_rows += 1
        return "skip" if self._end_rows == 1 else "error"

    def check_end(self) -> None:
        """Check, once everything was read, that no value was open at the end; pyarrow.ArrowInvalid if one was."""
        if not self._end_rows:
            raise _invalid("it ends within a quoted value")


class _ArrowsRows:
    """Arrow's reference to the rows, which shows when Arrow has released them."""

    closed = False

    def __init__(self, rows: CsvRows) -> None:
        from pyarrow import py_buffer

        self.read = rows.read
        self._buffer_of = py_buffer
        self._take_invalid_row = rows.take_invalid_row
        self.held: list[Callable[[], object]] = [ref(self)]
        """Weak references to the objects that Arrow may still hold: this one, and the blocks given to it."""

    def read_buffer(self, n_bytes: int) -> Any:
        """Return the next block."""
        read, buffer_of, held = self.read, self._buffer_of, self.held
        del self  # an error of `read` keeps this frame as long as it is handled
        block = buffer_of(read(n_bytes))
        held[:] = [*(one for one in held if one() is not None), ref(block)]
        return block

    def take_invalid_row(self, row: Any) -> str:
        """Return what is done with a row; see `CsvRows`."""
        return self._take_invalid_row(row)

    def close(self) -> None:
        """Do nothing: the reader's caller closes the rows."""


class _Reports:
    """Python's reports of errors that nobody can raise, except errors of rows that Arrow cannot hand over.

    Arrow decodes an invalid row for its handler. Where that fails the row counts as faulty: Arrow's error shows it.
    """

    def __init__(self) -> None:
        self._lock = RLock()  # a garbage collection meanwhile may close another reader
        self._readers = 0
        self._before = self._hook = sys.unraisablehook

    def __enter__(self) -> None:
        with self._lock:
            self._readers += 1
            if self._readers == 1:
                self._before = sys.unraisablehook
                self._hook = sys.unraisablehook = partial(_report_other, self._before)

    def __exit__(self, *failure: object) -> None:
        with self._lock:
            self._readers -= 1
            # Somebody may have set another one meanwhile.
            if self._readers == 0 and sys.unraisablehook is self._hook:
                sys.unraisablehook = self._before


def _report_other(report: Callable[[Any], object], error: Any) -> None:
    if not isinstance(getattr(error.object, "__self__", None), _ArrowsRows):
        report(error)


_REPORTS: Final = _Reports()


def csv_contents(
    rows: CsvRows, read_options: Any, parse_options: Any, convert_options: Any
) -> Generator[Any, None, None]:
    """Yield the schema of a CSV file, and then its batches; to be closed where not all of them are taken.

    Arrow reads ahead in a thread of its own, and continues when an error has ended the reading. A thread of Arrow's
    that is in Python when the process ends aborts it: none is left here.

    Parameters
    ----------
    rows : CsvRows
    read_options, parse_options, convert_options
        Options of ``pyarrow.csv``. The handler of invalid rows is set here, so the caller must not keep the options.
    """
    import pyarrow as pa
    from pyarrow import csv

    given = _ArrowsRows(rows)
    held = given.held
    file = pa.PythonFile(given, "r")
    parse_options.invalid_row_handler = given.take_invalid_row
    del given
    reader = None
    with _REPORTS:
        try:
            reader = csv.open_csv(file, read_options, parse_options, convert_options)
            yield reader.schema
            yield from reader
        finally:
            rows.close()
            reader = file = parse_options = None
            end = monotonic() + LET_GO_SECONDS
            # Nothing is called back: that would be Python in Arrow's thread once more.
            while any(one() is not None for one in held) and monotonic() < end:
                sleep(0.0005)


def _invalid(text: str) -> Exception:
    import pyarrow as pa

    error: Exception = pa.ArrowInvalid(text)
    return error


MOST_LEVELS = 100
"""The number of levels that Arrow allows in Parquet files; type inference is recursive, and deeper ones crash it."""


def json_fault(block: bytes, keys: JsonKeys | None = None) -> str | None:
    """Return what is wrong with a block of JSON lines that Arrow's reader would not notice, or crash at, or None.

    Levels are counted across lines: Arrow allows an object to span several. Of a null in place of an object it makes a
    row of nulls; in place of the first one, it crashes.

    Parameters
    ----------
    block : bytes
    keys : JsonKeys, optional
        Counts the keys of the block that are not among its known ones.
    """
    levels, has_null = (keys or JsonKeys()).scan(block)
    if levels > MOST_LEVELS:
        return f"arrays and objects that are more than {MOST_LEVELS} levels deep"
    return "null where an object belongs" if has_null else None


def empty_file(name: str) -> str:
    """Return the warning about an empty file."""
    return f"{name} is empty: it adds no event. Take it out of the log if nothing is missing"


def no_last_line_break(name: str) -> str:
    """Return the warning about a file whose last row may be truncated."""
    return (
        f"{name} ends without a line break: if it was cut off, the last value of its last row may be, too. "
        "End the file with a line break if it is whole"
    )
