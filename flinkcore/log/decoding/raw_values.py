"""Messages that are single values, as in Flink's format raw."""

from __future__ import annotations

import codecs
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from flinkcore.errors import ConfigurationError, DataError, UnsupportedOperationError
from flinkcore.log.decoding.value_decoder import DecodedColumn

_FORMS: Final = {
    pa.bool_(): "?",
    pa.int8(): "b",
    pa.int16(): "h",
    pa.int32(): "i",
    pa.int64(): "q",
    pa.float32(): "f",
    pa.float64(): "d",
}
_CHARSETS: Final = {
    **dict.fromkeys(("UTF-8", "UTF8"), "utf-8"),
    **dict.fromkeys(("UTF-16", "UTF16"), "utf-16"),
    **{name: name.lower() for name in ("UTF-16BE", "UTF-16LE")},
    **dict.fromkeys(("US-ASCII", "ASCII"), "ascii"),
    **dict.fromkeys(("ISO-8859-1", "LATIN1"), "latin-1"),
    "WINDOWS-1252": "cp1252",
}
_ENDS: Final = {"big-endian": ">", "little-endian": "<"}


def raw_values(fields: pa.Schema, options: Mapping[str, str], keeps_nulls: bool) -> RawValues:
    """Return the decoder of messages that are a value each.

    Parameters
    ----------
    fields : pyarrow.Schema
        The column of the values.
    options : mapping of str to str
        ``charset`` and ``endianness``.
    keeps_nulls : bool
        Whether a message that is null is a row with a null, and not left out.

    Raises
    ------
    ConfigurationError
        If an option is not one of the format.
    UnsupportedOperationError
        If there are several columns, or the format has no values of the type.
    """
    if len(fields) != 1:
        raise UnsupportedOperationError(
            f"the format raw has the value of one column, and the table has {len(fields)}: {', '.join(fields.names)}. "
            "Declare one, and the others as METADATA"
        )
    unknown = set(options) - {"charset", "endianness"}
    if unknown:
        raise ConfigurationError(
            f"the format raw has no option {min(unknown)!r}: it has charset and endianness"
        )
    (field,) = fields
    if field.type not in _FORMS and not (pa.types.is_string(field.type) or pa.types.is_binary(field.type)):
        raise UnsupportedOperationError(
            f"the format raw has no values of the type of column {field.name!r}, {field.type}. Declare BYTES, STRING, "
            "BOOLEAN or a number other than DECIMAL"
        )
    charset = _CHARSETS.get(options.get("charset", "UTF-8").upper())
    if charset is None:
        raise UnsupportedOperationError(
            f"raw.charset {options['charset']!r} is not supported: {', '.join(sorted(_CHARSETS))} are. Declare BYTES, "
            "and decode the column by DECODE"
        )
    end = options.get("endianness", "big-endian")
    if end not in _ENDS:
        raise ConfigurationError(f"raw.endianness is big-endian or little-endian, not {end!r}")
    return RawValues(field, charset, _ENDS[end], keeps_nulls)


@dataclass(frozen=True)
class RawValues:
    """Decoder of messages that are a value each; made by `raw_values`.

    Attributes
    ----------
    field : pyarrow.Field
    charset : str
        Python's name of the charset of texts.
    end : str
        ">" or "<", as of `struct`.
    keeps_nulls : bool

    Notes
    -----
    Follows Flink's ``RawFormatDeserializationSchema``.
    """

    field: pa.Field
    charset: str
    end: str
    keeps_nulls: bool

    def prepared(self) -> RawValues:
        return self

    @property
    def type(self) -> pa.DataType:
        return pa.struct([self.field])

    def decode(self, messages: Sequence[bytes | None]) -> DecodedColumn:
        values: list[Any] = []
        faults: dict[int, str] = {}
        for row, message in enumerate(messages):
            value = None
            if message is not None:
                try:
                    value = self._value_of(message)
                except DataError as failure:
                    faults[row] = str(failure)
            values.append(value)
        is_left_out = pa.array([message is None and not self.keeps_nulls for message in messages], pa.bool_())
        column = pa.array(values, self.field.type)
        return DecodedColumn(
            pa.StructArray.from_arrays([column], fields=[self.field], mask=is_left_out), faults
        )

    def _value_of(self, message: bytes) -> Any:
        kind = self.field.type
        if pa.types.is_binary(kind):
            return message
        if pa.types.is_string(kind):
            charset = self.charset
            if charset == "utf-16" and message[:2] not in (codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE):
                charset = "utf-16-be"  # Java's order without a mark
            return message.decode(charset, "replace")
        form = self.end + _FORMS[kind]
        if len(message) != struct.calcsize(form):
            raise DataError(
                f"column {self.field.name!r} has values of {struct.calcsize(form)} bytes, and it has {len(message)}"
            )
        return struct.unpack(form, message)[0]
