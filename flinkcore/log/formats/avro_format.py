"""Avro files as event logs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from flinkcore._internal.arrow.plain_columns import narrowest, plain_schema
from flinkcore._internal.io.avro_files import AvroFile, avro_library, raw_schema
from flinkcore._internal.io.avro_types import AvroTypes
from flinkcore.errors import ConfigurationError, DataError, SchemaError, SourceError
from flinkcore.log.files.log_files import LogFile
from flinkcore.log.formats.file_format import ColumnsToRead, remedy, source_faults


class AvroFormat:
    """Avro: a record per event.

    The columns are those of the header's schema. A union of null and one type is a column of that type, one of several
    types a struct with the fields member0, member1, ..., all but one null; a union of types whose values cannot be
    distinguished, such as two records, is refused. Enums and UUIDs are strings, fixed types binary, timestamps have the
    time zone UTC, unless they are local. Values are decoded by Python, at some microseconds per event. Avro has no
    checksums, but a marker after each block, which is checked.
    """

    name = "avro"
    is_columnar = False
    has_columns = True
    counts_rows = True
    has_schema = True
    is_text = False
    pieces_name = "files"
    _advice = "The file is truncated, damaged or not Avro: write it again, or take it out of the log"

    def schema(self, file: LogFile, at_a_glance: bool = False) -> pa.Schema | None:
        with self._opened(file) as opened:
            return plain_schema(AvroTypes(opened.schema).arrow_schema())

    def pieces(self, file: LogFile) -> list[int | None]:
        return [None]

    def batches(
        self, file: LogFile, pieces: range | None, columns: ColumnsToRead
    ) -> Iterator[pa.RecordBatch]:
        with self._opened(file) as opened:
            types = AvroTypes(opened.schema)
            found = plain_schema(types.arrow_schema())
            names = list(columns.located(found, file.name)) or narrowest(found)
            fields = {name: (found.field(name), types.raw_to_arrow(field)) for name, field in types.fields()}
            wanted = [fields[name] for name in names]
            held: list[Any] = []
            held_bytes = 0
            # Only what is read need have values of its logical type.
            for records in opened.blocks(raw=raw_schema(opened.schema)):
                held += records
                held_bytes += opened.block_bytes
                if len(held) >= columns.batch_rows or held_bytes >= columns.batch_bytes:
                    yield _batch(held, wanted, file.name)
                    held, held_bytes = [], 0
            if held:
                yield _batch(held, wanted, file.name)

    @contextmanager
    def _opened(self, file: LogFile) -> Iterator[AvroFile]:
        avro_library()
        with source_faults(file.name, self._advice), file.filesystem.open_input_stream(file.path) as stream:
            try:
                yield AvroFile(stream)
            except DataError as failure:
                advice = remedy(failure) or self._advice
                raise SourceError(f"{file.name} cannot be read: {failure}. {advice}") from failure
            except ConfigurationError as failure:
                raise SchemaError(f"{file.name}: {failure}") from failure


def _batch(records: list[Any], wanted: list[tuple[pa.Field, Any]], file: str) -> pa.RecordBatch:
    columns = []
    for field, convert in wanted:
        values = [record[field.name] for record in records]
        try:
            if convert is not None:
                values = [None if value is None else convert(value) for value in values]
            column = pa.array(values, field.type)
            column.validate(full=True)  # a time beyond its day is not one
            columns.append(column)
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as failure:
            raise SourceError(
                f"column {field.name!r} of {file} has a value that is not {field.type}: {failure}. Write the file "
                "again, or leave the column out by select(...)",
                column=field.name,
            ) from failure
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema([field for field, _ in wanted]))
