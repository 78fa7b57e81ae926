"""Files of which each line is the value of a record."""

import codecs
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from flinkcore._internal.io.text_files import no_last_line_break, read_block, refuse_other_encodings
from flinkcore.log.files.log_files import LogFile
from flinkcore.log.formats.file_format import ColumnsToRead, source_faults
from flinkcore.log.formats.known_formats import kind_by_name

VALUE: Final = "value"
"""The only column of the format."""

_BLOCK_BYTES: Final = 1 << 20


class LineFormat:
    """Lines as they are: a row per line, with its bytes up to a line feed, or a carriage return and one.

    A byte order mark does not belong to the first line. Blank lines of JSON are passed over; those of other files are
    empty texts. Compressed files have an extension that says so.
    """

    name = "lines"
    is_columnar = False
    has_columns = True
    counts_rows = True
    has_schema = True
    is_text = True
    pieces_name = "files"
    _advice = "The file is truncated or damaged: write it again, or take it out of the dump"

    def schema(self, file: LogFile, at_a_glance: bool = False) -> pa.Schema | None:
        return pa.schema([(VALUE, pa.binary())])

    def pieces(self, file: LogFile) -> list[int | None]:
        return [None]

    def batches(
        self, file: LogFile, pieces: range | None, columns: ColumnsToRead
    ) -> Iterator[pa.RecordBatch]:
        is_json = kind_by_name(file) == "json"
        with source_faults(file.name, self._advice), file.filesystem.open_input_stream(file.path) as stream:
            for lines, is_whole in _lines(stream):
                if not is_whole:
                    columns.warnings.append(no_last_line_break(file.name))
                records = [line for line in lines if line and not line.isspace()] if is_json else lines
                for start in range(0, len(records), columns.batch_rows):
                    values = pa.array(records[start : start + columns.batch_rows], pa.binary())
                    yield pa.RecordBatch.from_arrays([values], [VALUE])


def _lines(stream: Any) -> Iterator[tuple[list[bytes], bool]]:
    """Yield lines in groups that are not empty, and whether the last one of the group ends with a line break."""
    mark = codecs.BOM_UTF8
    held: list[bytes] = []
    is_first = True
    while block := read_block(stream, _BLOCK_BYTES):
        if is_first:
            refuse_other_encodings(block)
            is_first = False
        head, *rest = block.split(b"\n")
        held.append(head)
        if rest:
            lines = [b"".join(held).removeprefix(mark), *rest]
            mark = b""
            held = [lines.pop()]
            yield [line.removesuffix(b"\r") for line in lines], True
    if last := b"".join(held).removeprefix(mark):
        yield [last.removesuffix(b"\r")], False
