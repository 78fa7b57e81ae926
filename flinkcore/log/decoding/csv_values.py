"""Messages that are rows of CSV."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pyarrow as pa

from flinkcore._internal.java.parsing import trimmed
from flinkcore.datastream.formats.csv_values import CsvDialect, CsvValueType, row_reader, value_type
from flinkcore.errors import ConfigurationError, DataError, UnsupportedOperationError
from flinkcore.log.decoding.value_decoder import DecodedColumn, decoded_one_by_one
from flinkcore.table.types import DataType, DataTypes

_OPTIONS: Final = frozenset(
    (
        *("field-delimiter", "quote-character", "disable-quote-character", "allow-comments"),
        *("ignore-parse-errors", "array-element-delimiter", "escape-character", "null-literal"),
        "write-bigdecimal-in-scientific-notation",
    )
)
_SIMPLE: Final[Mapping[pa.DataType, DataType]] = {
    pa.bool_(): DataTypes.BOOLEAN(),
    pa.int8(): DataTypes.TINYINT(),
    pa.int16(): DataTypes.SMALLINT(),
    pa.int32(): DataTypes.INT(),
    pa.int64(): DataTypes.BIGINT(),
    pa.float32(): DataTypes.FLOAT(),
    pa.float64(): DataTypes.DOUBLE(),
    pa.string(): DataTypes.STRING(),
    pa.binary(): DataTypes.BYTES(),
    pa.date32(): DataTypes.DATE(),
    pa.time32("s"): DataTypes.TIME(0),
    pa.time32("ms"): DataTypes.TIME(3),
}
_TIMESTAMP: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d)(?::(\d\d)(?:\.(\d{0,9}))?)?(Z?)", re.ASCII
)
_NANOS: Final = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f"}


def csv_values(fields: pa.Schema, options: Mapping[str, str]) -> CsvValues:
    """Return the decoder of messages that are a row of CSV each.

    Parameters
    ----------
    fields : pyarrow.Schema
        Columns of the rows; times have seconds or milliseconds.
    options : mapping of str to str
        Options of Flink's format, without their prefix.

    Raises
    ------
    ConfigurationError
        If an option is not one of the format.
    UnsupportedOperationError
        If the format has no values of a type.
    """
    unknown = set(options) - _OPTIONS
    if unknown:
        raise ConfigurationError(
            f"the format csv has no option {min(unknown)!r}: it has {', '.join(sorted(_OPTIONS))}"
        )
    has_no_quotes = _truth(options, "disable-quote-character")
    if has_no_quotes and "quote-character" in options:
        raise ConfigurationError(
            "csv.quote-character is of no use with csv.disable-quote-character: leave one out"
        )
    dialect = CsvDialect(
        separator=_character(
            "field-delimiter",
            re.sub(r"\\(u+[0-9a-fA-F]{4}|.)", _unescaped, options.get("field-delimiter", ",")),
        ),
        quote_char=None
        if has_no_quotes
        else _character("quote-character", options.get("quote-character", '"')),
        escape_char=_character("escape-character", options["escape-character"])
        if "escape-character" in options
        else None,
        null_value=options.get("null-literal"),
        allow_comments=_truth(options, "allow-comments"),
    )
    separator = _character("array-element-delimiter", options.get("array-element-delimiter", ";"))
    decoder = CsvValues(fields, dialect, separator, _truth(options, "ignore-parse-errors"))
    decoder.types()
    return decoder


def _truth(options: Mapping[str, str], name: str) -> bool:
    text = options.get(name, "false").lower()
    if text not in ("true", "false"):
        raise ConfigurationError(f"csv.{name} is true or false, not {options[name]!r}")
    return text == "true"


def _character(name: str, text: str) -> str:
    if len(text) != 1:
        raise ConfigurationError(f"csv.{name} is a single character, not {text!r}")
    return text


def _unescaped(found: re.Match[str]) -> str:
    """Return the character of an escape of Java."""
    text = found[1]
    return chr(int(text.lstrip("u"), 16)) if len(text) > 1 else _ESCAPES.get(text, text)


@dataclass(frozen=True)
class CsvValues:
    """Decoder of messages that are a row of CSV each; made by `csv_values`.

    Further lines of a message are left out. Digits of timestamps beyond those that the type has are cut off.

    Attributes
    ----------
    schema : pyarrow.Schema
    dialect : CsvDialect
    array_separator : str
        Between elements of arrays and fields of rows.
    is_lenient : bool
        Whether a value that is missing, or not of its type, is null, and not a fault of the message.

    Notes
    -----
    Follows Flink's ``CsvRowDataDeserializationSchema``.
    """

    schema: pa.Schema
    dialect: CsvDialect
    array_separator: str
    is_lenient: bool

    def prepared(self) -> CsvValues:
        return self

    @property
    def type(self) -> pa.DataType:
        return pa.struct(list(self.schema))

    def types(self) -> list[CsvValueType]:
        """Return how the values of each column are read; raise UnsupportedOperationError for one that has none."""
        return [self._type_of(field.name, field.type) for field in self.schema]

    def decode(self, messages: Sequence[bytes | None]) -> DecodedColumn:
        names = self.schema.names
        values_of = row_reader(names, self.types(), self.dialect.null_value, ignores_errors=self.is_lenient)

        def decoded(message: bytes) -> dict[str, Any]:
            tokens = self.dialect.tokens()
            rows = tokens.feed(message.decode("utf-8-sig")) or tokens.finish()
            if not rows:
                raise DataError("it has no row of CSV")
            return dict(zip(names, values_of(rows[0]), strict=True))

        found = decoded_one_by_one(messages, self.type, decoded)
        found.faults.update({row: "it is empty" for row, message in enumerate(messages) if message == b""})
        return found

    def _type_of(self, name: str, kind: pa.DataType) -> CsvValueType:
        if pa.types.is_list(kind):
            return self._array_type(self._simple_type(name, kind.value_type))
        if pa.types.is_struct(kind):
            return self._row_type({field.name: self._simple_type(name, field.type) for field in kind})
        return self._simple_type(name, kind)

    def _simple_type(self, name: str, kind: pa.DataType) -> CsvValueType:
        if pa.types.is_timestamp(kind):
            return CsvValueType(
                partial(_timestamp_of, unit=_NANOS[kind.unit], has_zone=kind.tz is not None), str
            )
        declared = (
            DataTypes.DECIMAL(kind.precision, kind.scale) if pa.types.is_decimal(kind) else _SIMPLE.get(kind)
        )
        if declared is None:
            raise UnsupportedOperationError(
                f"the format csv has no values of the type of column {name!r}, or within it: {kind}. Declare a simple "
                "type, or an ARRAY or ROW of simple types"
            )
        return value_type(name, declared, self.array_separator, self.dialect.null_value)

    def _array_type(self, element: CsvValueType) -> CsvValueType:
        def array_of(text: str) -> list[Any]:
            texts = text.split(self.array_separator) if trimmed(text) else []
            return [self._value(element.value_of, each) for each in texts]

        return CsvValueType(array_of, str, holds_nulls=True)

    def _row_type(self, fields: Mapping[str, CsvValueType]) -> CsvValueType:
        def row_of(text: str) -> dict[str, Any] | None:
            if not trimmed(text):
                return None
            texts: list[str | None] = [*text.split(self.array_separator)]
            if len(texts) < len(fields):
                if not self.is_lenient:
                    raise DataError(f"{text!r:.80} has {len(texts)} values, not {len(fields)}")
                texts += [None] * (len(fields) - len(texts))
            return {
                name: None if each is None else self._value(field.value_of, each)
                for (name, field), each in zip(fields.items(), texts, strict=False)
            }

        return CsvValueType(row_of, str, holds_nulls=True)

    def _value(self, value_of: Callable[[str], Any], text: str) -> Any:
        """Return an element of an array, or a field of a row in a row."""
        if text == self.dialect.null_value:
            return None
        try:
            return value_of(text)
        except DataError:
            if not self.is_lenient:
                raise
            return None


def _timestamp_of(text: str, unit: int, has_zone: bool) -> int:
    """Return the moment of a text in a unit of so many nanoseconds, as ``TimeFormats`` of Flink's formats resolve it.

    A day that the month lacks is its last one, and the hour 24 is the next midnight.
    """
    found = _TIMESTAMP.fullmatch(trimmed(text))
    if found is None or bool(found[8]) != has_zone:
        example = "2020-01-31 03:04:05Z" if has_zone else "2020-01-31 03:04:05"
        raise DataError(f"{text!r:.80} is not a timestamp such as {example!r}")
    year, month, day, hour, minute, second = (int(each or 0) for each in found.groups()[:6])
    nanos = int((found[7] or "").ljust(9, "0"))
    is_midnight = hour == 24 and not (minute or second or nanos)
    try:
        if not 1 <= day <= 31:
            raise ValueError(f"day {day} is out of range")
        next_month = datetime.date(year + month // 12, month % 12 + 1, 1) if 1 <= month <= 12 else None
        if next_month is None:
            raise ValueError(f"month {month} is out of range")
        last = (next_month - datetime.timedelta(days=1)).day
        time = datetime.datetime(year, month, min(day, last), 0 if is_midnight else hour, minute, second)
    except ValueError as error:
        raise DataError(f"{text!r:.80} is not a timestamp: {error}") from error
    seconds = (time - datetime.datetime(1970, 1, 1)) // datetime.timedelta(seconds=1) + 86400 * is_midnight
    found_nanos = (seconds * 10**9 + nanos) // unit
    if not -(2**63) <= found_nanos < 2**63:
        # Not a DataError: Flink has a value for it, so that it is not a null where errors are ignored.
        raise OverflowError(f"{text!r:.80} is beyond the years that a timestamp of nanoseconds has")
    return found_nanos
