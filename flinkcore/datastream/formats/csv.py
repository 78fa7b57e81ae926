"""PyFlink's ``pyflink.datastream.formats.csv`` names: rows in CSV files and messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, TypeVar

from flinkcore._internal.arrow.schemas import repeated_names
from flinkcore._internal.io.text_files import empty_file, no_last_line_break, text_blocks
from flinkcore._internal.python.user_warnings import warn_user
from flinkcore._internal.values.row import Row, row_maker, rows_of_columns
from flinkcore.common.serialization import (
    BulkWriter,
    BulkWriterFactory,
    DeserializationSchema,
    SerializationSchema,
)
from flinkcore.common.typeinfo import RowTypeInfo, TypeInformation, Types
from flinkcore.datastream.connectors.file_system.file_source import StreamFormat
from flinkcore.datastream.formats.csv_values import (
    CsvDialect,
    CsvValueType,
    column_reader,
    row_reader,
    row_writer,
    value_type,
)
from flinkcore.datastream.formats.row_types import checked_row_type
from flinkcore.errors import ArgumentTypeError, ConfigurationError, DataError
from flinkcore.table.types import DataType, DataTypes

_ARRAY_SEPARATOR = ";"


@dataclass(frozen=True)
class CsvColumn:
    """A column of CSV.

    Parameters
    ----------
    name : str
    kind : str
        STRING, NUMBER, BOOLEAN or ARRAY.
    data_type : DataType or TypeInformation
    array_separator : str
        Between the elements of an array; empty: that of the schema.
    """

    name: str
    kind: str
    data_type: DataType | TypeInformation
    array_separator: str = ""


@dataclass(frozen=True)
class CsvSchema:
    """The columns of a CSV file, and their format; made by :meth:`builder`.

    Columns are read by position: names in a header are ignored, unless they are checked (`strict_headers`).

    Notes
    -----
    Follows ``pyflink.datastream.formats.csv.CsvSchema``.
    """

    columns: tuple[CsvColumn, ...] = ()
    dialect: CsvDialect = field(default_factory=CsvDialect)
    array_separator: str = _ARRAY_SEPARATOR
    any_property_name: str | None = None
    use_header: bool = False
    strict_headers: bool = False
    skip_first_data_row: bool = False

    @staticmethod
    def builder() -> CsvSchemaBuilder:
        """Return a builder."""
        return CsvSchemaBuilder()

    @property
    def row_type(self) -> RowTypeInfo:
        """The type of the rows."""
        types = [
            column.data_type.type_info() if isinstance(column.data_type, DataType) else column.data_type
            for column in self.columns
        ]
        return RowTypeInfo(types, self.names)

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]

    def value_types(self) -> list[CsvValueType]:
        """Return how the values of each column are read and written; ConfigurationError if one cannot be."""
        return [
            value_type(
                column.name,
                column.data_type,
                column.array_separator or self.array_separator,
                self.dialect.null_value,
            )
            for column in self.columns
        ]

    def size(self) -> int:
        """Return the number of columns."""
        return len(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __str__(self) -> str:
        columns = ",".join(f'"{column.name}"/{column.kind}' for column in self.columns)
        header, skip = _java_boolean(self.use_header), _java_boolean(self.skip_first_data_row)
        comments = _java_boolean(self.dialect.allow_comments)
        other = "N/A" if self.any_property_name is None else f"as '{self.any_property_name}'"
        return (
            f"[CsvSchema: columns=[{columns}], header? {header}, skipFirst? {skip}, comments? {comments}, "
            f"any-properties? {other}]"
        )

    __repr__ = __str__


def _java_boolean(value: bool) -> str:
    return "true" if value else "false"


@dataclass
class CsvSchemaBuilder:
    """Builds a :class:`CsvSchema`.

    Notes
    -----
    Follows ``pyflink.datastream.formats.csv.CsvSchemaBuilder``. Types are those of ``DataTypes``, or of ``Types``.
    """

    _schema: CsvSchema = field(default_factory=CsvSchema)

    def build(self) -> CsvSchema:
        """Return the schema."""
        return self._schema

    def _with(self, **changes: Any) -> CsvSchemaBuilder:
        self._schema = replace(self._schema, **changes)
        return self

    def _with_dialect(self, **changes: Any) -> CsvSchemaBuilder:
        return self._with(dialect=replace(self._schema.dialect, **changes))

    def _column(
        self, name: str, kind: str, data_type: DataType | TypeInformation, array_separator: str = ""
    ) -> CsvSchemaBuilder:
        if not isinstance(name, str):
            raise ArgumentTypeError(f"the name of a column is a text, not {name!r}")
        if not isinstance(data_type, DataType | TypeInformation):
            raise ArgumentTypeError(
                f"the column {name!r} has a type such as DataTypes.INT(), not {data_type!r}"
            )
        return self._with(columns=(*self._schema.columns, CsvColumn(name, kind, data_type, array_separator)))

    def add_string_column(self, name: str) -> CsvSchemaBuilder:
        """Add a column of texts."""
        return self._column(name, "STRING", DataTypes.STRING())

    def add_boolean_column(self, name: str) -> CsvSchemaBuilder:
        """Add a column of truth values."""
        return self._column(name, "BOOLEAN", DataTypes.BOOLEAN())

    def add_number_column(
        self, name: str, number_type: DataType | TypeInformation | None = None
    ) -> CsvSchemaBuilder:
        """Add a column of numbers, BIGINT by default."""
        return self._column(name, "NUMBER", number_type or DataTypes.BIGINT())

    def add_array_column(
        self,
        name: str,
        separator: str | None = _ARRAY_SEPARATOR,
        element_type: DataType | TypeInformation | None = None,
    ) -> CsvSchemaBuilder:
        """Add a column of lists, of texts by default; without a separator that of the schema."""
        element = element_type or DataTypes.STRING()
        if isinstance(element, TypeInformation):
            return self._column(name, "ARRAY", Types.LIST(element), separator or "")
        return self._column(name, "ARRAY", DataTypes.ARRAY(element), separator or "")

    def add_columns_from(self, schema: CsvSchema) -> CsvSchemaBuilder:
        """Add the columns of another schema."""
        return self._with(columns=(*self._schema.columns, *schema.columns))

    def clear_columns(self) -> CsvSchemaBuilder:
        """Remove all columns."""
        return self._with(columns=())

    def set_allow_comments(self, allow: bool = True) -> CsvSchemaBuilder:
        """Set whether lines that begin with "#" are skipped; so are empty lines, and spaces at the start of a line."""
        return self._with_dialect(allow_comments=allow)

    def set_any_property_name(self, name: str) -> CsvSchemaBuilder:
        """Accept rows with more values than columns, which are ignored; in Flink, too, no row has them."""
        return self._with(any_property_name=name)

    def disable_array_element_separator(self) -> CsvSchemaBuilder:
        """Set no separator of elements for columns without one of their own."""
        return self._with(array_separator="")

    def remove_array_element_separator(self, index: int) -> CsvSchemaBuilder:
        """Let a column have the schema's separator of elements; ConfigurationError if there is no such column."""
        columns = list(self._schema.columns)
        if not 0 <= index < len(columns):
            raise ConfigurationError(f"there is no column {index}, from 0: there are {len(columns)}")
        columns[index] = replace(columns[index], array_separator="")
        return self._with(columns=tuple(columns))

    def set_array_element_separator(self, separator: str) -> CsvSchemaBuilder:
        """Set the separator of elements for columns without one of their own, ";" by default."""
        return self._with(array_separator=separator)

    def set_column_separator(self, char: str) -> CsvSchemaBuilder:
        """Set the separator of columns, a comma by default; ConfigurationError if it is not one character."""
        return self._with_dialect(separator=one_character(char, "Column separator"))

    def set_line_separator(self, separator: str) -> CsvSchemaBuilder:
        r"""Set the separator of rows that are written, "\n" by default; "\n", "\r" and both are read."""
        return self._with_dialect(line_separator=separator)

    def set_quote_char(self, char: str) -> CsvSchemaBuilder:
        """Set the quote character, a double quote by default; ConfigurationError if it is not one character."""
        return self._with_dialect(quote_char=one_character(char, "Quote char"))

    def disable_quote_char(self) -> CsvSchemaBuilder:
        """Use no quote character."""
        return self._with_dialect(quote_char=None)

    def set_escape_char(self, char: str) -> CsvSchemaBuilder:
        """Set the escape character, none by default; ConfigurationError if it is not one character."""
        return self._with_dialect(escape_char=one_character(char, "Escape char"))

    def disable_escape_char(self) -> CsvSchemaBuilder:
        """Use no escape character."""
        return self._with_dialect(escape_char=None)

    def set_null_value(self, null_value: str | None) -> CsvSchemaBuilder:
        """Set the text of a null; by default no text is read as one, and an empty one is written."""
        return self._with_dialect(null_value=null_value)

    def set_skip_first_data_row(self, skip: bool = True) -> CsvSchemaBuilder:
        """Set whether to skip the first line, or that after the header."""
        return self._with(skip_first_data_row=skip)

    def set_strict_headers(self, strict: bool = True) -> CsvSchemaBuilder:
        """Set whether the header must have the names of the columns, in their order."""
        return self._with(strict_headers=strict)

    def set_use_header(self, use: bool = True) -> CsvSchemaBuilder:
        """Set whether the first line is a header."""
        return self._with(use_header=use)

    def size(self) -> int:
        """Return the number of columns."""
        return self._schema.size()

    def __len__(self) -> int:
        return self.size()


def one_character(text: str, setting: str) -> str:
    """Return a text of one character; raise ConfigurationError for any other."""
    if not isinstance(text, str) or len(text) != 1:
        raise ConfigurationError(f"{setting} must be a single char, got {text}")
    return text


class CsvReaderFormat(StreamFormat):
    """Reads rows of CSV files.

    Parameters
    ----------
    schema : CsvSchema

    Raises
    ------
    ConfigurationError
        If it is not a schema, has no columns, or two of a name, or CSV has no values of a type.

    Notes
    -----
    Follows ``pyflink.datastream.formats.csv.CsvReaderFormat``. Files are UTF-8, or UTF-16 or UTF-32 with a mark. Files
    that are empty or end within a line are warned of.
    """

    def __init__(self, schema: CsvSchema) -> None:
        self._schema = _checked(schema)
        self._row_type = schema.row_type
        schema.value_types()  # fails now if a type is none of CSV

    @staticmethod
    def for_schema(schema: CsvSchema) -> CsvReaderFormat:
        """Return the format of a schema; errors as of the class."""
        return CsvReaderFormat(schema)

    def produced_type(self) -> RowTypeInfo:
        return self._row_type

    def read(self, file: BinaryIO, name: str) -> Iterator[Row]:
        """Yield the rows of a file.

        Raises
        ------
        DataError
            If the file has another encoding, a row has another number of values, or a value is not of its type.
        """
        try:
            yield from self._rows(self._token_rows(file, name))
        except (DataError, UnicodeDecodeError) as failure:
            raise DataError(
                f"{name} does not have rows of {self._row_type!r}: {failure}",
                file=name,
                **getattr(failure, "place", {}),
            ) from failure

    def _rows(self, blocks: Iterator[list[list[str]]]) -> Iterator[Row]:
        schema, types = self._schema, self._schema.value_types()
        make, n_rows = row_maker(schema.names), 0
        columns_of = column_reader(types, schema.dialect.null_value)
        values_of = row_reader(
            schema.names,
            types,
            schema.dialect.null_value,
            takes_more=schema.any_property_name is not None,
        )
        awaits_header = schema.use_header
        for rows in blocks:
            if awaits_header and rows:
                self._check_header(rows.pop(0))
                awaits_header = False
            columns = columns_of(rows)
            if columns is not None:
                yield from rows_of_columns(schema.names, columns)
                n_rows += len(rows)
                continue
            for texts in rows:
                n_rows += 1
                try:
                    values = values_of(texts)
                except DataError as failure:
                    raise DataError(f"row {n_rows}: {failure}", row=n_rows - 1, **failure.place) from failure
                yield make(values)

    def _token_rows(self, file: BinaryIO, name: str) -> Iterator[list[list[str]]]:
        schema = self._schema
        tokens = schema.dialect.tokens(int(schema.use_header) if schema.skip_first_data_row else -1)
        text = ""
        for text in text_blocks(file):
            yield tokens.feed(text)
        yield tokens.finish()
        if not text:
            warn_user(empty_file(name))
        elif not text.endswith(("\n", "\r")):
            warn_user(no_last_line_break(name))

    def _check_header(self, found: Sequence[str]) -> None:
        if self._schema.strict_headers and list(found) != self._schema.names:
            raise DataError(f"the header is {', '.join(found)}, not {', '.join(self._schema.names)}")


class CsvBulkWriters:
    """Creates the writers of CSV files.

    Notes
    -----
    Follows ``pyflink.datastream.formats.csv.CsvBulkWriters``. As Jackson does, texts are put into quotes if they are
    longer than 24 characters, or have a character that is not above those of the format.
    """

    @staticmethod
    def for_schema(schema: CsvSchema) -> BulkWriterFactory:
        """Return the factory of writers for a schema; errors as of :class:`CsvReaderFormat`."""
        return _CsvWriterFactory(_checked(schema))


class _CsvWriterFactory(BulkWriterFactory):
    def __init__(self, schema: CsvSchema) -> None:
        self._schema = schema
        schema.value_types()  # fails now if a type is none of CSV

    def create(self, file: BinaryIO) -> BulkWriter:
        return _CsvWriter(file, self._schema)


class _CsvWriter(BulkWriter):
    def __init__(self, file: BinaryIO, schema: CsvSchema) -> None:
        self._file = file
        self._conversion = schema.row_type.conversion()
        self._line_of = row_writer(schema.names, schema.value_types(), schema.dialect)
        if schema.use_header:
            quoted = schema.dialect.quoting()
            names = schema.dialect.separator.join(map(quoted, schema.names))
            file.write(f"{names}{schema.dialect.line_separator}".encode())

    def add_element(self, element: Any) -> None:
        self._file.write(self._line_of(self._conversion(element)).encode(errors="replace"))

    def finish(self) -> None:
        """Do nothing: elements are written at once."""


def _checked(schema: object) -> CsvSchema:
    if not isinstance(schema, CsvSchema):
        raise ArgumentTypeError(f"CSV needs a CsvSchema, made by CsvSchema.builder(), not {schema!r}")
    if not schema.columns:
        raise ConfigurationError("a CSV schema needs at least one column: add_string_column('name')")
    twice = repeated_names(schema.names)
    if twice:
        raise ConfigurationError(f"a CSV schema has columns of different names, not {twice[0]!r} twice")
    return schema


class _CsvSchemaBuilder:
    """Base of the builders of both schemas of messages."""

    def __init__(self, type_info: TypeInformation) -> None:
        self._type_info = checked_row_type(type_info, type(self).__qualname__)
        self._dialect = CsvDialect()
        self._array_separator = _ARRAY_SEPARATOR

    def _with(self: _Builder, **changes: Any) -> _Builder:
        self._dialect = replace(self._dialect, **changes)
        return self

    def set_field_delimiter(self: _Builder, delimiter: str) -> _Builder:
        """Set the separator of fields, a comma by default; ConfigurationError if it is not one character."""
        return self._with(separator=one_character(delimiter, "Field delimiter"))

    def set_array_element_delimiter(self: _Builder, delimiter: str) -> _Builder:
        """Set the separator of the elements of arrays, and of fields of rows in a field, ";" by default."""
        self._array_separator = delimiter
        return self

    def set_quote_character(self: _Builder, c: str) -> _Builder:
        """Set the quote character, a double quote by default; ConfigurationError if it is not one character."""
        return self._with(quote_char=one_character(c, "Quote character"))

    def set_escape_character(self: _Builder, c: str) -> _Builder:
        """Set the escape character, none by default; ConfigurationError if it is not one character."""
        return self._with(escape_char=one_character(c, "Escape character"))

    def set_null_literal(self: _Builder, null_literal: str) -> _Builder:
        """Set the text of a null; by default no text is read as one, and an empty one is written."""
        return self._with(null_value=null_literal)


def _value_types(row_type: RowTypeInfo, dialect: CsvDialect, array_separator: str) -> list[CsvValueType]:
    fields = zip(row_type.get_field_names(), row_type.get_field_types(), strict=True)
    return [value_type(name, field_type, array_separator, dialect.null_value) for name, field_type in fields]


_Builder = TypeVar("_Builder", bound=_CsvSchemaBuilder)


class CsvRowDeserializationSchema(DeserializationSchema):
    """Reads a row from a message of CSV; made by its ``Builder``.

    Notes
    -----
    Follows Flink's ``CsvRowDeserializationSchema``: of a message the first row counts.

    Examples
    --------
    >>> from flinkcore.common import Types
    >>> people = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    >>> CsvRowDeserializationSchema.Builder(people).build().deserialize(b"ada,36")
    Row(name='ada', age=36)
    """

    def __init__(
        self,
        row_type: RowTypeInfo,
        dialect: CsvDialect,
        array_separator: str,
        ignores_errors: bool,
    ) -> None:
        self._settings = row_type, dialect, array_separator, ignores_errors
        self._row_type = row_type
        self._dialect = dialect
        self._ignores_errors = ignores_errors
        self._make = row_maker(row_type.get_field_names())
        self._values_of = row_reader(
            row_type.get_field_names(),
            _value_types(row_type, dialect, array_separator),
            dialect.null_value,
            ignores_errors=ignores_errors,
        )

    def deserialize(self, message: bytes) -> Row | None:
        """Return the row of a message.

        Raises
        ------
        DataError
            If it has no row, or none of the type, unless errors are ignored: a field that cannot be read is None then,
            and so is the row of a message that cannot.
        """
        try:
            tokens = self._dialect.tokens()
            rows = tokens.feed(message.decode("utf-8-sig")) or tokens.finish()
            if not rows:
                raise DataError("it is empty")
            return self._make(self._values_of(rows[0]))
        except (DataError, UnicodeDecodeError) as failure:
            if self._ignores_errors:
                return None
            raise DataError(f"{message!r:.200} is not a row of {self._row_type!r}: {failure}") from failure

    def get_produced_type(self) -> RowTypeInfo:
        return self._row_type

    def __reduce__(self) -> tuple[Any, ...]:
        return CsvRowDeserializationSchema, self._settings

    class Builder(_CsvSchemaBuilder):
        """Builds a :class:`CsvRowDeserializationSchema`.

        Parameters
        ----------
        type_info : RowTypeInfo
            Any other type is a ConfigurationError.
        """

        def __init__(self, type_info: TypeInformation) -> None:
            super().__init__(type_info)
            self._ignores_errors = False

        def set_allow_comments(self, allow_comments: bool) -> CsvRowDeserializationSchema.Builder:
            """Set whether lines that begin with "#" are skipped."""
            return self._with(allow_comments=allow_comments)

        def set_ignore_parse_errors(self, ignore_parse_errors: bool) -> CsvRowDeserializationSchema.Builder:
            """Set whether a field that cannot be read is None, and so is a row."""
            self._ignores_errors = ignore_parse_errors
            return self

        def build(self) -> CsvRowDeserializationSchema:
            """Return the schema; ConfigurationError if CSV has no values of a type."""
            return CsvRowDeserializationSchema(
                self._type_info, self._dialect, self._array_separator, self._ignores_errors
            )


class CsvRowSerializationSchema(SerializationSchema):
    """Writes a row as a message of CSV; made by its ``Builder``.

    Notes
    -----
    Follows Flink's ``CsvRowSerializationSchema``.

    Examples
    --------
    >>> from flinkcore.common import Row, Types
    >>> people = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    >>> CsvRowSerializationSchema.Builder(people).build().serialize(Row("ada", 36))
    b'ada,36\\n'
    """

    def __init__(self, row_type: RowTypeInfo, dialect: CsvDialect, array_separator: str) -> None:
        self._settings = row_type, dialect, array_separator
        self._conversion = row_type.conversion()
        self._line_of = row_writer(
            row_type.get_field_names(), _value_types(row_type, dialect, array_separator), dialect
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return CsvRowSerializationSchema, self._settings

    def serialize(self, element: Any) -> bytes:
        """Return the message of a row; raise DataError if it is None, or a field is not of its type."""
        return self._line_of(self._conversion(element)).encode(errors="replace")

    class Builder(_CsvSchemaBuilder):
        """Builds a :class:`CsvRowSerializationSchema`.

        Parameters
        ----------
        type_info : RowTypeInfo
            Any other type is a ConfigurationError.
        """

        def set_line_delimiter(self, delimiter: str) -> CsvRowSerializationSchema.Builder:
            r"""Set the end of a message: "\n", the default, "\r", "\r\n" or nothing; else a ConfigurationError."""
            if delimiter not in ("\n", "\r", "\r\n", ""):
                raise ConfigurationError(
                    f"a line ends with \\n, \\r, \\r\\n or nothing, not with {delimiter!r}"
                )
            return self._with(line_separator=delimiter)

        def set_field_delimiter(self, c: str) -> CsvRowSerializationSchema.Builder:
            """Set the separator of fields, a comma by default; ConfigurationError if it is not one character."""
            return super().set_field_delimiter(c)

        def set_null_literal(self, s: str) -> CsvRowSerializationSchema.Builder:
            """Set the text of a null, which is empty by default."""
            return super().set_null_literal(s)

        def disable_quote_character(self) -> CsvRowSerializationSchema.Builder:
            """Write no quotes."""
            return self._with(quote_char=None)

        def build(self) -> CsvRowSerializationSchema:
            """Return the schema; ConfigurationError if CSV has no values of a type."""
            return CsvRowSerializationSchema(self._type_info, self._dialect, self._array_separator)
