"""Rows as objects of JSON: what Flink makes of values, and Jackson of their texts."""

from __future__ import annotations

import datetime
import json
import re
from base64 import b64encode
from collections.abc import Callable
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from functools import partial
from typing import Any, Final, NoReturn

from flinkcore._internal.java.parsing import (
    boolean_of,
    bytes_of,
    clock_time_of,
    decimal_of,
    double_of,
    float_of,
    integer_of,
    moment_of,
    trimmed,
)
from flinkcore._internal.java.texts import (
    double_text,
    float_text,
    integer_text,
    local_time_text,
)
from flinkcore._internal.values.row import row_maker
from flinkcore.common.typeinfo import (
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    MapTypeInfo,
    RowTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
    TypeInformation,
    Types,
)
from flinkcore.common.typeinfo.composite_types import SequenceTypeInfo
from flinkcore.datastream.formats.row_types import BITS, of_class
from flinkcore.errors import ConfigurationError, DataError

Reader = Callable[[Any], Any]
"""From a value of JSON, which is not null, to that of a type; raises a DataError."""

Writer = Callable[[Any], str]
"""From a value, which is not None, to its JSON; raises a DataError."""

_MISSING: Final = object()
_TRUNCATED: Final = {BasicType.INT, BasicType.LONG}
_EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME: Final = re.compile(r"(\d\d):(\d\d):(\d\d)Z", re.ASCII)
_TIMESTAMP: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{0,9}))?Z", re.ASCII)
_ESCAPED: Final = re.compile(r'["\\\x00-\x1f]')
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def has_decimals(type_info: TypeInformation) -> bool:
    """Return whether values of a type are, or have, decimals; then Flink reads all fractions exactly."""
    if isinstance(type_info, RowTypeInfo):
        return any(map(has_decimals, type_info.get_field_types()))
    if isinstance(type_info, MapTypeInfo):
        return has_decimals(type_info.value_type_info)
    if isinstance(type_info, SequenceTypeInfo):
        return has_decimals(type_info.elem_type)
    return isinstance(type_info, BasicTypeInfo) and type_info.basic_type is BasicType.BIG_DEC


def json_decoder(exact: bool) -> json.JSONDecoder:
    """Return a decoder; an `exact` one gives fractions as decimals without zeros at their ends."""
    fraction = (lambda text: decimal_of(text).normalize(_EXACT)) if exact else float
    return json.JSONDecoder(parse_float=fraction, parse_constant=_no_constant)


def _no_constant(name: str) -> NoReturn:
    raise DataError(f"{name} is not JSON; as a text it is a number")


def text_of(value: Any) -> str:
    """Return a value of JSON as text: Jackson's ``asText``, which is empty for arrays and objects."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return double_text(value)
    return "" if isinstance(value, list | dict) else str(value)


# ---- reading


def value_reader(
    place: str, type_info: TypeInformation, fails_on_missing: bool = False, ignores_errors: bool = False
) -> Reader:
    """Return the function from a value of JSON, null included, to that of a type.

    Parameters
    ----------
    place : str
        The name of the field, for messages.
    type_info : TypeInformation
    fails_on_missing : bool
        Whether a field that an object lacks is a DataError; otherwise it is None.
    ignores_errors : bool
        Whether a value that is not of its type is None, not a DataError.

    Raises
    ------
    ConfigurationError
        If JSON has no values of the type.
    """
    read = _reader(place, type_info, fails_on_missing, ignores_errors)

    def nullable(value: Any) -> Any:
        if value is None:
            return None
        try:
            return read(value)
        except DataError as failure:
            if ignores_errors:
                return None
            raise DataError(f"{place}: {failure}" if place else str(failure)) from failure

    return nullable


def _reader(place: str, type_info: TypeInformation, fails_on_missing: bool, ignores_errors: bool) -> Reader:
    nested = partial(value_reader, fails_on_missing=fails_on_missing, ignores_errors=ignores_errors)
    if isinstance(type_info, RowTypeInfo):
        names = type_info.get_field_names()
        fields = [
            (name, nested(name, field))
            for name, field in zip(names, type_info.get_field_types(), strict=True)
        ]
        return _row_reader(row_maker(names), fields, fails_on_missing)
    if type_info == Types.PRIMITIVE_ARRAY(Types.BYTE()):
        return _bytes_of
    if isinstance(type_info, SequenceTypeInfo):
        element = nested("an element", type_info.elem_type)
        return lambda value: [element(each) for each in of_class(value, list, "array")]
    if isinstance(type_info, MapTypeInfo):
        key, item = nested("a key", type_info.key_type_info), nested("a value", type_info.value_type_info)
        return lambda value: {key(k): item(v) for k, v in value.items()} if isinstance(value, dict) else {}
    if isinstance(type_info, DateTypeInfo):
        return _date_of
    if isinstance(type_info, TimeTypeInfo):
        return _time_of
    if isinstance(type_info, TimestampTypeInfo):
        return _timestamp_of
    if isinstance(type_info, BasicTypeInfo):
        basic = type_info.basic_type
        if basic is BasicType.STRING:
            return _string_of
        if basic is BasicType.CHAR:
            return _character_of
        if basic is BasicType.BOOLEAN:
            return lambda value: value if isinstance(value, bool) else boolean_of(text_of(value))
        if basic in BITS:
            return partial(_integer_of, bits=BITS[basic], truncated=basic in _TRUNCATED)
        if basic is BasicType.DOUBLE:
            return lambda value: value if isinstance(value, float) else double_of(text_of(value))
        if basic is BasicType.FLOAT:
            return lambda value: float_of(text_of(value))
        if basic is BasicType.BIG_DEC:
            return lambda value: value if isinstance(value, Decimal) else decimal_of(trimmed(text_of(value)))
    raise ConfigurationError(f"the field {place!r} of JSON has no values of the type {type_info!r}")


def _row_reader(
    make: Callable[[Any], Any], fields: list[tuple[str, Reader]], fails_on_missing: bool
) -> Reader:
    def row_of(value: Any) -> Any:
        given = of_class(value, dict, "object")
        values = []
        for name, read in fields:
            field = given.get(name, _MISSING)
            if field is _MISSING and fails_on_missing:
                raise DataError(f"there is no field {name!r}")
            values.append(None if field is _MISSING else read(field))
        return make(tuple(values))

    return row_of


def _string_of(value: Any) -> str:
    return any_json(value) if isinstance(value, list | dict) else text_of(value)


def _character_of(value: Any) -> str:
    if isinstance(value, str) and len(value) == 1:
        return value
    raise DataError(f"{value!r:.80} is not a single character")


def _integer_of(value: Any, bits: int | None, truncated: bool) -> int:
    if (
        bits is not None
        and truncated
        and isinstance(value, float | Decimal)
        and -(1 << (bits - 1)) <= value < 1 << (bits - 1)
    ):
        return int(value)
    return integer_of(text_of(value), bits)


def _bytes_of(value: Any) -> bytes | None:
    return bytes_of(value) if isinstance(value, str) else None


def _date_of(value: Any) -> datetime.date:
    text = text_of(value)
    try:
        if _DATE.fullmatch(text):
            return datetime.date.fromisoformat(text)
    except ValueError:
        pass
    raise DataError(f"{text!r:.80} is not a date such as '2020-01-31'")


def _time_of(value: Any) -> datetime.time:
    found = _TIME.fullmatch(text_of(value))
    try:
        if found:
            return clock_time_of(found)
    except ValueError:
        pass
    raise DataError(f"{value!r:.80} is not a time of UTC without parts of a second, such as '03:04:05Z'")


def _timestamp_of(value: Any) -> datetime.datetime:
    found = _TIMESTAMP.fullmatch(text_of(value))
    try:
        if found:
            return moment_of(found)
    except ValueError:
        pass
    raise DataError(f"{value!r:.80} is not a timestamp of UTC such as '2020-01-31T03:04:05.678Z'")


# ---- writing


def quoted(text: str) -> str:
    """Return a text as JSON, with the escapes that Jackson writes."""
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    return _ESCAPES.get(character) or f"\\u{ord(character):04X}"


def any_json(value: Any) -> str:
    """Return a value that was read from JSON as JSON again, without spaces."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list):
        return f"[{','.join(map(any_json, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{quoted(key)}:{any_json(item)}' for key, item in value.items())}}}"
    return text_of(value)


def value_writer(place: str, type_info: TypeInformation) -> Writer:
    """Return the function from a value of a type, None included, to its JSON.

    Parameters
    ----------
    place : str
        The name of the field, for messages.
    type_info : TypeInformation

    Raises
    ------
    ConfigurationError
        If JSON has no values of the type.
    """
    write = _writer(place, type_info)

    def nullable(value: Any) -> str:
        if value is None:
            return "null"
        try:
            return write(value)
        except (DataError, TypeError, ValueError) as failure:
            raise DataError(f"{place}: {failure}" if place else str(failure)) from failure

    return nullable


def _writer(place: str, type_info: TypeInformation) -> Writer:
    if isinstance(type_info, RowTypeInfo):
        names = type_info.get_field_names()
        fields = [
            (quoted(name), value_writer(name, field))
            for name, field in zip(names, type_info.get_field_types(), strict=True)
        ]
        return _row_writer(fields)
    if type_info == Types.PRIMITIVE_ARRAY(Types.BYTE()):
        return lambda value: f'"{b64encode(value).decode()}"'
    if isinstance(type_info, SequenceTypeInfo):
        element = value_writer("an element", type_info.elem_type)
        return lambda value: f"[{','.join(map(element, of_class(value, list | tuple, 'list')))}]"
    if isinstance(type_info, MapTypeInfo):
        item = value_writer("a value", type_info.value_type_info)
        return lambda value: (
            "{"
            + ",".join(f"{quoted(_key_text(k))}:{item(v)}" for k, v in of_class(value, dict, "map").items())
            + "}"
        )
    if isinstance(type_info, DateTypeInfo):
        return lambda value: f'"{of_class(value, datetime.date, "date").isoformat()}"'
    if isinstance(type_info, TimeTypeInfo):
        return lambda value: f'"{local_time_text(of_class(value, datetime.time, "time"))}Z"'
    if isinstance(type_info, TimestampTypeInfo):
        return lambda value: (
            f'"{of_class(value, datetime.datetime, "timestamp").date().isoformat()}T{local_time_text(value)}Z"'
        )
    if isinstance(type_info, BasicTypeInfo):
        basic = type_info.basic_type
        if basic in (BasicType.STRING, BasicType.CHAR):
            return lambda value: quoted(of_class(value, str, "text"))
        if basic is BasicType.BOOLEAN:
            return lambda value: "true" if value else "false"
        if basic in BITS:
            return partial(integer_text, bits=BITS[basic])
        if basic is BasicType.DOUBLE:
            return lambda value: _number(double_text(float(value)))
        if basic is BasicType.FLOAT:
            return lambda value: _number(float_text(float(value)))
        if basic is BasicType.BIG_DEC:
            return lambda value: str(of_class(value, Decimal, "decimal"))
    raise ConfigurationError(f"the field {place!r} of JSON has no values of the type {type_info!r}")


def _row_writer(fields: list[tuple[str, Writer]]) -> Writer:
    def json_of(row: Any) -> str:
        if len(row) != len(fields):
            raise DataError(f"{row!r:.200} has {len(row)} values, not {len(fields)}")
        return f"{{{','.join(f'{name}:{write(value)}' for (name, write), value in zip(fields, row, strict=True))}}}"

    return json_of


def _key_text(key: Any) -> str:
    if key is None:
        raise DataError("a key of JSON is a text, not None")
    return text_of(key)


def _number(text: str) -> str:
    return text if text[-1] not in "Ny" else f'"{text}"'
