"""Rows as lines of CSV: what Flink makes of values, and Jackson of their texts."""

from __future__ import annotations

import datetime
import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import partial
from typing import Any, Final

from flinkcore._internal.java.parsing import (
    boolean_of,
    bytes_of,
    date_of,
    decimal_of,
    double_of,
    doubles_of,
    float_of,
    integer_of,
    integers_of,
    local_time_of,
    sql_time_of,
    timestamp_of,
    trimmed,
)
from flinkcore._internal.java.texts import (
    double_text,
    float_text,
    integer_text,
    local_time_text,
    local_timestamp_text,
    sql_timestamp_text,
)
from flinkcore._internal.values.row import Row
from flinkcore._native.csv_tokens import CsvTokens
from flinkcore.common.typeinfo import (
    BasicArrayTypeInfo,
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    ListTypeInfo,
    ObjectArrayTypeInfo,
    RowTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
    TypeInformation,
    Types,
)
from flinkcore.datastream.formats.row_types import BITS, of_class
from flinkcore.errors import ConfigurationError, DataError
from flinkcore.table.types import ArrayType, DataType, DecimalType, TimeType

_UNQUOTED_LENGTH: Final = 24
"""Longer texts are quoted, whatever they have in them: Jackson does not look."""


@dataclass(frozen=True)
class CsvDialect:
    """Dialect of CSV texts.

    Parameters
    ----------
    separator : str
        Separator of columns; one character.
    quote_char, escape_char : str or None
        One character, or None.
    null_value : str or None
        Text of a null; with None no text is read as a null, and an empty one is written.
    line_separator : str
        Separator of rows that are written.
    allow_comments : bool
        Whether lines that begin with "#" are skipped.
    """

    separator: str = ","
    quote_char: str | None = '"'
    escape_char: str | None = None
    null_value: str | None = None
    line_separator: str = "\n"
    allow_comments: bool = False

    def tokens(self, skip_after: int = -1) -> CsvTokens:
        """Return what cuts a text into rows; for `skip_after` see there."""
        return CsvTokens(self.separator, self.quote_char, self.escape_char, self.allow_comments, skip_after)

    def quoting(self) -> Callable[[str], str]:
        """Return the function that puts a text into quotes if it needs them, as Jackson's ``CsvEncoder`` decides."""
        quote, escape = self.quote_char, self.escape_char
        if quote is None:
            return lambda text: text
        safe_from = max(map(ord, (self.separator, quote, *self.line_separator))) + 1
        special = [escape] if escape else [quote, "\\"]
        needs_quotes = re.compile(
            f"[\\x00-{re.escape(chr(safe_from - 1))}{''.join(map(re.escape, special))}]"
        ).search

        def quoted(text: str) -> str:
            if not needs_quotes(text) and _java_length(text) <= _UNQUOTED_LENGTH:
                return text
            if escape and escape != quote:
                text = text.replace(escape, escape * 2)
            return f"{quote}{text.replace(quote, quote * 2)}{quote}"

        return quoted


def _java_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


@dataclass(frozen=True)
class CsvValueType:
    """Reading and writing of the values of a column.

    Attributes
    ----------
    value_of : callable
        From the text of a value, which is not null; raises a DataError.
    text_of : callable
        From a value, which is not None, to its text; raises a DataError.
    is_text : bool
        Whether the text may need quotes; numbers and truth values never have any.
    holds_nulls : bool
        Whether the text of a null is that of its only element, as in an array.
    column_of : callable, optional
        The same as `value_of` for many texts at once, in a fraction of the time; raises a ValueError for texts of a
        form that it leaves to `value_of`.
    """

    value_of: Callable[[str], Any]
    text_of: Callable[[Any], str]
    is_text: bool = True
    holds_nulls: bool = False
    column_of: Callable[[Sequence[str]], Sequence[Any]] | None = None


def value_type(
    column: str, declared: DataType | TypeInformation, array_separator: str, null_value: str | None
) -> CsvValueType:
    """Return how the values of a column are read and written.

    Parameters
    ----------
    column : str
        Its name, for messages.
    declared : DataType or TypeInformation
        With a type of the Table API, decimals are rounded to its scale, and times have parts of a second, as in
        Flink's ``RowData``; otherwise as in its ``Row``.
    array_separator : str
        Between the elements of an array, or the fields of a row in a row; empty: there is one element.
    null_value : str or None
        The text of a null in an array or row.

    Raises
    ------
    ConfigurationError
        If CSV has no values of the type.
    """
    type_info = declared.type_info() if isinstance(declared, DataType) else declared
    if isinstance(type_info, RowTypeInfo):
        fields = [
            _element_type(column, field, array_separator, null_value) for field in type_info.get_field_types()
        ]
        return _row_type(fields, array_separator, null_value)
    if isinstance(type_info, ListTypeInfo | BasicArrayTypeInfo | ObjectArrayTypeInfo):
        element = declared.element_type if isinstance(declared, ArrayType) else type_info.elem_type
        return _array_type(
            _element_type(column, element, array_separator, null_value), array_separator, null_value
        )
    if type_info == Types.PRIMITIVE_ARRAY(Types.BYTE()):
        return CsvValueType(bytes_of, lambda value: b64encode(value).decode())
    if isinstance(type_info, DateTypeInfo):
        return CsvValueType(date_of, lambda value: of_class(value, datetime.date, "date").isoformat())
    if isinstance(type_info, TimeTypeInfo):
        return _time_type(declared)
    if isinstance(type_info, TimestampTypeInfo):
        text = local_timestamp_text if isinstance(declared, DataType) else sql_timestamp_text
        return CsvValueType(timestamp_of, lambda value: text(of_class(value, datetime.datetime, "timestamp")))
    simple = _basic_type(type_info, declared, null_value)
    if simple is None:
        raise ConfigurationError(f"the column {column!r} of CSV has no values of the type {declared!r}")
    return simple


def _element_type(
    column: str, declared: DataType | TypeInformation, array_separator: str, null_value: str | None
) -> CsvValueType:
    type_info = declared.type_info() if isinstance(declared, DataType) else declared
    if isinstance(type_info, RowTypeInfo | ListTypeInfo | BasicArrayTypeInfo | ObjectArrayTypeInfo):
        raise ConfigurationError(
            f"elements of arrays and fields of rows within the column {column!r} of CSV are single values, not "
            f"{declared!r}"
        )
    return value_type(column, declared, array_separator, null_value)


def _basic_type(type_info: TypeInformation, declared: object, null_value: str | None) -> CsvValueType | None:
    if not isinstance(type_info, BasicTypeInfo):
        return None
    basic = type_info.basic_type
    if basic in (BasicType.STRING, BasicType.CHAR):
        return CsvValueType(str, partial(of_class, cls=str, name="text"), column_of=lambda texts: texts)
    if basic is BasicType.BOOLEAN:
        return CsvValueType(
            boolean_of,
            lambda value: "true" if value else "false",
            is_text=False,
            column_of=lambda texts: list(map(boolean_of, texts)),
        )
    if basic in BITS:
        bits = BITS[basic]
        return CsvValueType(
            partial(integer_of, bits=bits),
            partial(integer_text, bits=bits),
            is_text=False,
            column_of=partial(integers_of, bits=bits),
        )
    if basic is BasicType.DOUBLE:
        return CsvValueType(
            double_of, lambda value: double_text(float(value)), is_text=False, column_of=doubles_of
        )
    if basic is BasicType.FLOAT:
        return CsvValueType(float_of, lambda value: float_text(float(value)), False)
    if basic is not BasicType.BIG_DEC:
        return None
    if isinstance(declared, DecimalType):
        rounded = declared.rounded
        return CsvValueType(
            lambda text: rounded(decimal_of(text)), partial(_decimal_text, declared, null_value or ""), False
        )
    return CsvValueType(
        lambda text: decimal_of(trimmed(text)), lambda value: str(of_class(value, Decimal, "decimal")), False
    )


def _decimal_text(declared: DecimalType, null: str, value: Any) -> str:
    """Return a decimal as Flink's ``RowData`` has it, without zeros at its end."""
    rounded = declared.rounded(of_class(value, Decimal, "decimal"))
    return null if rounded is None else str(rounded.normalize(Context(prec=declared.precision)))


def _time_type(declared: DataType | TypeInformation) -> CsvValueType:
    if not isinstance(declared, TimeType):
        return CsvValueType(sql_time_of, lambda value: f"{of_class(value, datetime.time, 'time'):%H:%M:%S}")
    unit = 10 ** (6 - declared.precision) if declared.precision <= 3 else None
    if unit is None:
        raise ConfigurationError(
            f"a time of CSV has 3 digits of the second at most, as in Flink, not {declared.precision}"
        )

    def time_of(text: str) -> datetime.time:
        time = local_time_of(text)
        return time.replace(microsecond=time.microsecond // unit * unit)

    return CsvValueType(time_of, lambda value: local_time_text(of_class(value, datetime.time, "time")))


def _array_type(element: CsvValueType, separator: str, null_value: str | None) -> CsvValueType:
    def array_of(text: str) -> list[Any]:
        if not trimmed(text):
            return []
        texts = text.split(separator) if separator else [text]
        return [None if each == null_value else element.value_of(each) for each in texts]

    def text_of(values: Any) -> str:
        if isinstance(values, str) or not hasattr(values, "__iter__"):
            raise DataError(f"{values!r:.80} is not a list")
        return separator.join(
            (null_value or "") if each is None else element.text_of(each) for each in values
        )

    return CsvValueType(array_of, text_of, holds_nulls=True)


def _row_type(fields: Sequence[CsvValueType], separator: str, null_value: str | None) -> CsvValueType:
    def row_of(text: str) -> Row | None:
        if not trimmed(text):
            return None
        texts = text.split(separator) if separator else [text]
        if len(texts) != len(fields):
            raise DataError(f"{text!r:.80} has {len(texts)} values, not {len(fields)}")
        return Row(
            *(
                None if each == null_value else field.value_of(each)
                for each, field in zip(texts, fields, strict=True)
            )
        )

    def text_of(row: Any) -> str:
        if not isinstance(row, Row | tuple | list) or len(row) != len(fields):
            raise DataError(f"{row!r:.80} is not a row of {len(fields)} values")
        return separator.join(
            (null_value or "") if value is None else field.text_of(value)
            for value, field in zip(row, fields, strict=True)
        )

    return CsvValueType(row_of, text_of, holds_nulls=True)


def row_reader(
    names: Sequence[str],
    types: Sequence[CsvValueType],
    null_value: str | None,
    *,
    takes_more: bool = False,
    ignores_errors: bool = False,
) -> Callable[[list[str]], tuple[Any, ...]]:
    """Return the function from the texts of a row to its values.

    Parameters
    ----------
    names : sequence of str
        Names of the columns.
    types : sequence of CsvValueType
    null_value : str or None
    takes_more : bool
        Whether to ignore further values of a row; a single empty one, after a separator at the end of the line, is
        always ignored.
    ignores_errors : bool
        Whether a value that is missing, or not of its type, becomes None. Otherwise the function raises a DataError
        that names the column.
    """
    n_columns = len(names)
    columns = list(zip(types, names, strict=True))

    def values_of(texts: list[str]) -> tuple[Any, ...]:
        if len(texts) > n_columns and not takes_more:
            if len(texts) > n_columns + 1 or trimmed(texts[n_columns]):
                raise DataError(f"it has {len(texts)} values, not {n_columns}")
        elif len(texts) < n_columns and not ignores_errors:
            raise DataError(f"it has {len(texts)} values, not {n_columns}")
        values: list[Any] = []
        for text, (column, name) in zip(texts, columns, strict=False):
            if text == null_value and not column.holds_nulls:
                values.append(None)
                continue
            try:
                values.append(column.value_of(text))
            except DataError as failure:
                if not ignores_errors:
                    raise DataError(f"column {name!r}: {failure}", column=name) from failure
                values.append(None)
        return (*values, *[None] * (n_columns - len(values)))

    return values_of


def column_reader(
    types: Sequence[CsvValueType], null_value: str | None
) -> Callable[[Sequence[Sequence[str]]], list[Sequence[Any]] | None]:
    """Return the function from the texts of rows to the values of each column.

    It returns None if the rows have to be read one by one.

    Parameters
    ----------
    types : sequence of CsvValueType
    null_value : str or None
    """
    n_columns = {len(types)}

    def columns_of(rows: Sequence[Sequence[str]]) -> list[Sequence[Any]] | None:
        if set(map(len, rows)) != n_columns:
            return None
        columns: list[Sequence[Any]] = []
        for texts, column in zip(zip(*rows, strict=True), types, strict=True):
            if column.column_of is None or (null_value is not None and null_value in texts):
                return None
            try:
                columns.append(column.column_of(texts))
            except ValueError:
                return None
        return columns

    return columns_of


def row_writer(
    names: Sequence[str], types: Sequence[CsvValueType], dialect: CsvDialect
) -> Callable[[Sequence[Any] | None], str]:
    """Return the function from the values of a row to its line, with the line separator at its end.

    The function raises a DataError if the row is None, and one that names the column whose value is not of its type.
    """
    quoted, null = dialect.quoting(), dialect.null_value or ""
    columns = list(zip(types, names, strict=True))
    separator, end = dialect.separator, dialect.line_separator

    def line_of(values: Sequence[Any] | None) -> str:
        if values is None:
            raise DataError("None is not a row of CSV. Drop it before")
        if len(values) != len(columns):
            raise DataError(f"{values!r:.200} has {len(values)} values, not {len(columns)}")
        texts = []
        for value, (column, name) in zip(values, columns, strict=True):
            if value is None:
                texts.append(null)
                continue
            try:
                text = column.text_of(value)
            except (DataError, TypeError, ValueError) as failure:
                raise DataError(f"column {name!r}: {failure}", column=name) from failure
            texts.append(quoted(text) if column.is_text else text)
        return separator.join(texts) + end

    return line_of
