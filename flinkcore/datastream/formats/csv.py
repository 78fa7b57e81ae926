"""PyFlink's ``pyflink.datastream.formats.csv`` names: rows in CSV files."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, NoReturn

from flinkcore.common.missing_features import MISSING_FORMAT_NAMES, refuse_name
from flinkcore.common.serialization import BulkWriterFactory
from flinkcore.common.text_files import CsvRows, csv_contents, empty_file, no_last_line_break
from flinkcore.common.typeinfo import RowTypeInfo, TypeInformation, Types
from flinkcore.datastream.formats.arrow_format import ArrowRowFormat, ArrowWriterFactory, row_schema
from flinkcore.errors import ConfigurationError, UnsupportedOperationError

_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class CsvSchema:
    """The columns of a CSV file, and their format; made by :meth:`builder`.

    Notes
    -----
    Follows ``pyflink.datastream.formats.csv.CsvSchema``.
    """

    columns: tuple[tuple[str, TypeInformation], ...] = ()
    separator: str = ","
    quote_char: str | None = '"'
    escape_char: str | None = None
    null_value: str = ""
    use_header: bool = False
    skip_first_data_row: bool = False

    @staticmethod
    def builder() -> CsvSchemaBuilder:
        """Return a builder."""
        return CsvSchemaBuilder()

    @property
    def row_type(self) -> RowTypeInfo:
        """The type of the rows."""
        return RowTypeInfo([type_info for _, type_info in self.columns], [name for name, _ in self.columns])

    def size(self) -> int:
        """Return how many columns there are."""
        return len(self.columns)

    def __len__(self) -> int:
        return len(self.columns)


@dataclass
class CsvSchemaBuilder:
    """Builds a :class:`CsvSchema`.

    Notes
    -----
    Follows ``pyflink.datastream.formats.csv.CsvSchemaBuilder``; types are those of ``Types``, where PyFlink takes types
    of the Table API.
    """

    _schema: CsvSchema = field(default_factory=CsvSchema)

    def build(self) -> CsvSchema:
        """Return the schema; ConfigurationError if there is no column."""
        if not self._schema.columns:
            raise ConfigurationError("a CSV schema needs at least one column: add_string_column('name')")
        return self._schema

    def _with(self, **changes: Any) -> CsvSchemaBuilder:
        self._schema = replace(self._schema, **changes)
        return self

    def _column(self, name: str, type_info: TypeInformation) -> CsvSchemaBuilder:
        return self._with(columns=(*self._schema.columns, (name, type_info)))

    def add_string_column(self, name: str) -> CsvSchemaBuilder:
        """Add a column of texts."""
        return self._column(name, Types.STRING())

    def add_boolean_column(self, name: str) -> CsvSchemaBuilder:
        """Add a column of truth values."""
        return self._column(name, Types.BOOLEAN())

    def add_number_column(self, name: str, number_type: TypeInformation | None = None) -> CsvSchemaBuilder:
        """Add a column of numbers, LONG by default."""
        return self._column(name, number_type or Types.LONG())

    def add_array_column(self, name: str, *args: Any, **kwargs: Any) -> CsvSchemaBuilder:
        """Raise an UnsupportedOperationError: lists in CSV columns are not supported."""
        raise UnsupportedOperationError(
            f"add_array_column({name!r}): read the column as a text, and split it in a map"
        )

    def add_columns_from(self, schema: CsvSchema) -> CsvSchemaBuilder:
        """Add the columns of another schema."""
        return self._with(columns=(*self._schema.columns, *schema.columns))

    def clear_columns(self) -> CsvSchemaBuilder:
        """Remove all columns."""
        return self._with(columns=())

    def set_column_separator(self, char: str) -> CsvSchemaBuilder:
        """Set the separator of columns, a comma by default."""
        return self._with(separator=char)

    def set_quote_char(self, char: str) -> CsvSchemaBuilder:
        """Set the quote character, a double quote by default."""
        return self._with(quote_char=char)

    def disable_quote_char(self) -> CsvSchemaBuilder:
        """Use no quote character."""
        return self._with(quote_char=None)

    def set_escape_char(self, char: str) -> CsvSchemaBuilder:
        """Set the escape character, none by default."""
        return self._with(escape_char=char)

    def disable_escape_char(self) -> CsvSchemaBuilder:
        """Use no escape character."""
        return self._with(escape_char=None)

    def set_null_value(self, null_value: str) -> CsvSchemaBuilder:
        """Set the text of a null, empty by default."""
        return self._with(null_value=null_value)

    def set_use_header(self, use: bool = True) -> CsvSchemaBuilder:
        """Set whether the first line has the names of the columns."""
        return self._with(use_header=use)

    def set_skip_first_data_row(self, skip: bool = True) -> CsvSchemaBuilder:
        """Set whether to skip the first line after the header."""
        return self._with(skip_first_data_row=skip)


class CsvReaderFormat(ArrowRowFormat):
    """Reads rows of CSV files.

    Parameters
    ----------
    schema : CsvSchema

    Notes
    -----
    Follows ``pyflink.datastream.formats.csv.CsvReaderFormat``.
    """

    def __init__(self, schema: CsvSchema) -> None:
        super().__init__(_checked(schema).row_type)
        self._schema = schema

    @staticmethod
    def for_schema(schema: CsvSchema) -> CsvReaderFormat:
        """Return the format of a schema; raise ConfigurationError if it is none."""
        return CsvReaderFormat(schema)

    def batches(self, file: Any, name: str) -> Iterator[Any]:
        """Yield the batches of a file; warn of a file without a final line break, which may be truncated."""
        from pyarrow import csv

        schema, columns = self._schema, row_schema(self.row_type)
        skipped = int(schema.skip_first_data_row)
        rows = CsvRows(
            file,
            _BLOCK_BYTES,
            schema.separator,
            schema.quote_char,
            schema.escape_char,
            None if schema.use_header else len(columns),
        )
        if rows.is_empty:
            warnings.warn(empty_file(name), UserWarning, stacklevel=2)
            return
        contents = csv_contents(
            rows,
            csv.ReadOptions(
                block_size=_BLOCK_BYTES,
                column_names=None if schema.use_header else columns.names,
                skip_rows_after_names=skipped,
            ),
            csv.ParseOptions(
                delimiter=schema.separator,
                quote_char=schema.quote_char or False,
                escape_char=schema.escape_char or False,
            ),
            csv.ConvertOptions(
                column_types=columns, null_values=[schema.null_value], strings_can_be_null=True
            ),
        )
        with closing(contents):
            next(contents)
            yield from contents
        rows.check_end()
        if rows.ends_within_line:
            warnings.warn(no_last_line_break(name), UserWarning, stacklevel=2)


class CsvBulkWriters:
    """Creates the writers of CSV files.

    Notes
    -----
    Follows ``pyflink.datastream.formats.csv.CsvBulkWriters``.
    """

    @staticmethod
    def for_schema(schema: CsvSchema) -> BulkWriterFactory:
        """Return the factory of writers for a schema; raise ConfigurationError if it is none."""
        checked = _checked(schema)

        def open_writer(file: BinaryIO, columns: Any) -> Any:
            from pyarrow import csv

            options = csv.WriteOptions(include_header=checked.use_header, delimiter=checked.separator)
            return csv.CSVWriter(file, columns, write_options=options)

        return ArrowWriterFactory(checked.row_type, open_writer)


def _checked(schema: object) -> CsvSchema:
    if not isinstance(schema, CsvSchema):
        raise ConfigurationError(f"CSV needs a CsvSchema, made by CsvSchema.builder(), not {schema!r}")
    return schema


def __getattr__(name: str) -> NoReturn:
    """Report what to use instead of names that PyFlink has and flinkcore does not."""
    refuse_name(__name__, name, MISSING_FORMAT_NAMES)
