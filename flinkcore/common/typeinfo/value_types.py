"""Types of single values: numbers, texts, truth values, dates and times."""

from __future__ import annotations

import datetime
import struct
from decimal import Decimal
from enum import Enum
from operator import index
from typing import Any, ClassVar

from flinkcore._internal.java.texts import double_text, float_text, sql_timestamp_text
from flinkcore._native.element_calls import ConversionUnless
from flinkcore.common.time import Instant
from flinkcore.common.typeinfo.type_information import NO_CLASSES, Conversion, TypeInformation
from flinkcore.errors import DataError


class BasicType(Enum):
    """The basic types, by the names of their Java classes."""

    STRING = "String"
    BYTE = "Byte"
    BOOLEAN = "Boolean"
    SHORT = "Short"
    INT = "Integer"
    LONG = "Long"
    FLOAT = "Float"
    DOUBLE = "Double"
    CHAR = "Char"
    BIG_INT = "BigInteger"
    BIG_DEC = "BigDecimal"
    INSTANT = "Instant"


_ARROW_NAMES = {
    BasicType.STRING: "string",
    BasicType.CHAR: "string",
    BasicType.BYTE: "int8",
    BasicType.SHORT: "int16",
    BasicType.INT: "int32",
    BasicType.LONG: "int64",
    BasicType.BOOLEAN: "bool",
    BasicType.FLOAT: "float32",
    BasicType.DOUBLE: "float64",
}
_WHOLE = {BasicType.BYTE, BasicType.SHORT, BasicType.INT, BasicType.LONG, BasicType.BIG_INT}
_BITS = {BasicType.BYTE: 8, BasicType.SHORT: 16, BasicType.INT: 32, BasicType.LONG: 64}
_FLOATING = {BasicType.FLOAT, BasicType.DOUBLE}
_CLASSES = {
    BasicType.BYTE: int,
    BasicType.SHORT: int,
    BasicType.INT: int,
    BasicType.LONG: int,
    BasicType.BIG_INT: int,
    BasicType.FLOAT: float,
    BasicType.DOUBLE: float,
    BasicType.STRING: str,
    BasicType.CHAR: str,
    BasicType.BOOLEAN: bool,
    BasicType.BIG_DEC: Decimal,
    BasicType.INSTANT: Instant,
}


class BasicTypeInfo(TypeInformation):
    """A type of single values.

    Parameters
    ----------
    basic_type : BasicType

    Notes
    -----
    Follows ``pyflink.common.typeinfo.BasicTypeInfo``. Whole numbers become floats for DOUBLE and FLOAT, as in PyFlink's
    process mode; a FLOAT is rounded to 32 bits. An integer with too many bits is an error, as in the process mode; the
    thread mode cuts its bits off. Values are printed as Java does.
    """

    def __init__(self, basic_type: BasicType) -> None:
        self.basic_type = basic_type
        self.is_whole = basic_type in _WHOLE
        self._end = 1 << _BITS[basic_type] - 1 if basic_type in _BITS else None

    def accepts(self, value: Any) -> bool:
        if self.is_whole:
            if type(value) is not int and not hasattr(value, "__index__"):
                return False
            return self._end is None or -self._end <= index(value) < self._end
        if self.basic_type in _FLOATING:
            return type(value) is float or isinstance(value, int) or hasattr(value, "__float__")
        return isinstance(value, _CLASSES[self.basic_type])

    def conversion(self) -> Conversion | None:
        if self.basic_type is BasicType.FLOAT:
            return _as_float
        return ConversionUnless(_CLASSES[self.basic_type], self._converted, _BITS.get(self.basic_type, 0))

    def _converted(self, value: Any) -> Any:
        if value is None:
            return None
        if self.basic_type is BasicType.DOUBLE:
            return _floating(value, self.basic_type)
        if not self.accepts(value):
            bits = _BITS.get(self.basic_type) if hasattr(value, "__index__") else None
            raise DataError(
                f"{value!r} is not of type {self!r}" + (f", which has {bits} bits" if bits else "")
            )
        return index(value) if self.is_whole else value

    def plain_classes(self) -> frozenset[type]:
        if self.basic_type is BasicType.FLOAT or self.basic_type in _BITS:
            return NO_CLASSES
        return NO_CLASSES | {_CLASSES[self.basic_type]}

    def is_immutable(self) -> bool:
        return True

    def to_arrow_type(self) -> Any:
        import pyarrow as pa

        if self.basic_type is BasicType.BIG_DEC:
            return pa.decimal128(38, 18)
        if self.basic_type is BasicType.INSTANT:
            return pa.timestamp("ms", "UTC")
        if self.basic_type not in _ARROW_NAMES:
            return super().to_arrow_type()
        return pa.type_for_alias(_ARROW_NAMES[self.basic_type])

    def text(self, value: Any) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, Instant):
            return _instant_text(value)
        if isinstance(value, float):
            return float_text(value) if self.basic_type is BasicType.FLOAT else double_text(value)
        return super().text(value)

    def collected_type(self) -> TypeInformation:
        return _CollectedFloat(self.basic_type) if self.basic_type is BasicType.FLOAT else self

    def _parts(self) -> tuple[Any, ...]:
        return (self.basic_type,)

    def __repr__(self) -> str:
        return self.basic_type.value


def _instant_text(value: Instant) -> str:
    """Return a moment as ``java.time.Instant.toString`` does: with 0, 3, 6 or 9 digits of the second.

    One before the year 1 or after 9999 is given in seconds since the epoch.
    """
    try:
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=value.seconds)
    except OverflowError:
        return str(value)
    digits = f"{value.nanos:09d}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return f"{moment.isoformat()}{f'.{digits}' if digits else ''}Z"


class _CollectedFloat(BasicTypeInfo):
    """Floating point numbers of 32 bits with as many digits as tell them apart, as PyFlink reads them from Java."""

    def conversion(self) -> Conversion:
        return lambda value: None if value is None else float(float_text(value))


def _as_float(value: Any) -> Any:
    if value is None:
        return None
    if type(value) is not float:
        value = _floating(value, BasicType.FLOAT)
    return struct.unpack("f", struct.pack("f", value))[0]  # infinite where too large


def _floating(value: Any, basic_type: BasicType) -> float:
    try:
        if isinstance(value, str | bytes | bytearray):  # float() reads numbers in texts
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{value!r} is not of type {basic_type.value}") from None


class _DateTimeTypeInfo(TypeInformation):
    """Values of a class of the module datetime."""

    _class: ClassVar[type]
    _arrow_name: ClassVar[str]

    def accepts(self, value: object) -> bool:
        return isinstance(value, self._class)

    def conversion(self) -> Conversion | None:
        convert = super().conversion()
        return convert and ConversionUnless(self._class, convert)

    def plain_classes(self) -> frozenset[type]:
        return NO_CLASSES | {self._class}

    def is_immutable(self) -> bool:
        return True

    def to_arrow_type(self) -> Any:
        import pyarrow as pa

        return pa.type_for_alias(self._arrow_name)

    def _parts(self) -> tuple[Any, ...]:
        return ()

    def __repr__(self) -> str:
        return type(self).__name__


class DateTypeInfo(_DateTimeTypeInfo):
    """Days as ``datetime.date``; a ``datetime.datetime`` becomes its day.

    Notes
    -----
    Follows ``pyflink.common.typeinfo.DateTypeInfo``.
    """

    _class = datetime.date
    _arrow_name = "date32"

    def conversion(self) -> Conversion:
        return ConversionUnless(datetime.date, self._day)

    def _day(self, value: Any) -> Any:
        if isinstance(value, datetime.datetime):
            return value.date()
        if value is not None and not self.accepts(value):
            raise DataError(f"{value!r} is not of type {self!r}")
        return value


class TimeTypeInfo(_DateTimeTypeInfo):
    """Times of day as ``datetime.time``, truncated to the second like Java's ``Time``; a time with a zone becomes UTC.

    Notes
    -----
    Follows ``pyflink.common.typeinfo.TimeTypeInfo``.
    """

    _class = datetime.time
    _arrow_name = "time32[s]"

    def plain_classes(self) -> frozenset[type]:
        return NO_CLASSES

    def conversion(self) -> Conversion:
        return _to_the_second


class TimestampTypeInfo(_DateTimeTypeInfo):
    """Timestamps: ``datetime.datetime``.

    Notes
    -----
    Follows ``pyflink.common.typeinfo.TimestampTypeInfo``, which converts them to the machine's time zone; here they are
    not converted.
    """

    _class = datetime.datetime
    _arrow_name = "timestamp[us]"

    def text(self, value: Any) -> str:
        return "null" if value is None else sql_timestamp_text(value)


def _to_the_second(value: Any) -> Any:
    if value is None:
        return None
    if not isinstance(value, datetime.time):
        raise DataError(f"{value!r} is not of type TimeTypeInfo")
    offset = value.utcoffset()
    if offset is not None:
        value = (datetime.datetime.combine(datetime.date(2000, 1, 2), value) - offset).time()
    return value if value.microsecond == 0 else value.replace(microsecond=0)


class SqlTimeTypeInfo:
    """Makes the types of SQL's dates and times.

    Notes
    -----
    Follows ``pyflink.common.typeinfo.SqlTimeTypeInfo``.
    """

    @staticmethod
    def DATE() -> DateTypeInfo:
        """Return the type of days."""
        return DateTypeInfo()

    @staticmethod
    def TIME() -> TimeTypeInfo:
        """Return the type of times of day."""
        return TimeTypeInfo()

    @staticmethod
    def TIMESTAMP() -> TimestampTypeInfo:
        """Return the type of moments."""
        return TimestampTypeInfo()
