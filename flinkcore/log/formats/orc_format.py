"""ORC files as event logs."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from flinkcore._internal.arrow.plain_columns import narrowest, plain_schema
from flinkcore._internal.arrow.sound_columns import check_values
from flinkcore.log.files.log_files import LogFile
from flinkcore.log.formats.file_format import ColumnsToRead, source_faults


class OrcFormat:
    """ORC: the footer gives the schema, and stripes are read one by one.

    A ``timestamp`` is local time without a zone, a ``timestamp with local time zone`` an instant in UTC; both have
    nanoseconds, and so the years 1677 to 2262. ORC has no checksums.
    """

    name = "orc"
    is_columnar = True
    has_columns = True
    counts_rows = False
    has_schema = True
    is_text = False
    pieces_name = "stripes"
    _advice = "The file is truncated, damaged or not ORC: write it again, or take it out of the log"

    def schema(self, file: LogFile, at_a_glance: bool = False) -> pa.Schema | None:
        with self._opened(file) as opened:
            return plain_schema(opened.schema)

    def pieces(self, file: LogFile) -> list[int | None]:
        with self._opened(file) as opened:
            return [None] * opened.nstripes

    def batches(
        self, file: LogFile, pieces: range | None, columns: ColumnsToRead
    ) -> Iterator[pa.RecordBatch]:
        with self._opened(file) as opened:
            names = list(columns.located(opened.schema, file.name)) or narrowest(plain_schema(opened.schema))
            asked = None if _are_ambiguous(names, opened.schema) else names
            left = opened.nrows if pieces is None else None
            for stripe in pieces if pieces is not None else range(opened.nstripes):
                batch = opened.read_stripe(stripe, columns=asked).select(names)
                check_values(batch)
                if left is not None:
                    left -= batch.num_rows
                yield batch
            if left:
                raise pa.ArrowInvalid(
                    f"its stripes do not have as many rows as its footer says ({left} missing)"
                )

    @contextmanager
    def _opened(self, file: LogFile) -> Iterator[Any]:
        from pyarrow import orc  # slow to load, and mostly not needed

        with source_faults(file.name, self._advice), file.filesystem.open_input_file(file.path) as source:
            yield orc.ORCFile(source)


def _are_ambiguous(names: Sequence[str], schema: pa.Schema) -> bool:
    """Return whether ORC may take a name for that of a field within another column, as `a.b` beside `a`."""
    dotted = [name for name in names if "." in name]
    return any(name.startswith(f"{other}.") for name in dotted for other in schema.names)
