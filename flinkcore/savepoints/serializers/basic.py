"""Serializers of numbers, texts and arrays of them: `org.apache.flink.api.common.typeutils.base`."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from flinkcore._native.state_columns import (
    BooleanColumn,
    BytesColumn,
    FixedColumn,
    ListColumn,
    StateColumn,
    StringColumn,
    TextColumn,
)
from flinkcore.savepoints.serializers.serializer import (
    NothingSerializer,
    ReadColumn,
    SimpleSerializer,
    StateSerializer,
)

_MOST_DIGITS_BYTES: Final = 1700
"""Bytes of the longest number that Python writes in decimal digits: it stops at 4,300 of them."""


def _fixed(format: str, size: int) -> ReadColumn:
    return lambda exact: FixedColumn(format, size)


def _list_of(element: ReadColumn) -> ReadColumn:
    return lambda exact: ListColumn(element(exact))


def _string(exact: bool) -> StateColumn:
    return StringColumn(exact)


def _char(exact: bool) -> StateColumn:
    return StringColumn(exact, True)


def _boolean(exact: bool) -> StateColumn:
    return BooleanColumn()


def _bytes(exact: bool) -> StateColumn:
    return BytesColumn()


def read_big_integer(data: memoryview) -> tuple[int | None, int]:
    """Return a BigInteger as BigIntSerializer writes it, or None, and how many bytes it takes.

    Raises
    ------
    ValueError
        If it is damaged, or has more than 4,000 digits.
    """
    if len(data) < 4:
        raise IndexError
    size = int.from_bytes(data[:4], "big", signed=True)
    if 0 <= size < 4:
        return (None, 0, 1, 10)[size], 4
    size -= 4
    if not 0 < size <= len(data) - 4:
        raise ValueError(f"a BigInteger has {size:,} bytes, and {len(data) - 4:,} are left")
    if size > _MOST_DIGITS_BYTES:
        raise ValueError(f"a BigInteger has {size:,} bytes; numbers of up to {_MOST_DIGITS_BYTES:,} are read")
    return int.from_bytes(data[4 : 4 + size], "big", signed=True), 4 + size


def _big_integer(data: memoryview) -> tuple[bytes | None, int]:
    number, used = read_big_integer(data)
    return None if number is None else str(number).encode(), used


def _big_decimal(data: memoryview) -> tuple[bytes | None, int]:
    number, used = read_big_integer(data)
    if number is None:
        return None, used
    if len(data) < used + 4:
        raise IndexError
    scale = int.from_bytes(data[used : used + 4], "big", signed=True)
    sign, digits = int(number < 0), tuple(map(int, str(abs(number))))
    return str(Decimal((sign, digits, -scale))).encode(), used + 4


_LONG, _INT, _SHORT, _BYTE = _fixed("l", 8), _fixed("i", 4), _fixed("s", 2), _fixed("c", 1)
_FLOAT, _DOUBLE = _fixed("f", 4), _fixed("g", 8)

STRING: Final = SimpleSerializer("String", _string)
LONG: Final = SimpleSerializer("Long", _LONG, 8)

_SIMPLE: Final[dict[str, StateSerializer]] = {
    "String": STRING,
    "Long": LONG,
    "Int": SimpleSerializer("Integer", _INT, 4),
    "Short": SimpleSerializer("Short", _SHORT, 2),
    "Byte": SimpleSerializer("Byte", _BYTE, 1),
    "Boolean": SimpleSerializer("Boolean", _boolean, 1),
    "Float": SimpleSerializer("Float", _FLOAT, 4),
    "Double": SimpleSerializer("Double", _DOUBLE, 8),
    "Char": SimpleSerializer("Character", _char, 2),
    "BigInt": SimpleSerializer("BigInteger", lambda exact: TextColumn(_big_integer)),
    "BigDec": SimpleSerializer("BigDecimal", lambda exact: TextColumn(_big_decimal)),
    "Void": NothingSerializer("Void"),
    # Flink's mutable values are written as what they hold.
    "LongValue": SimpleSerializer("LongValue", _LONG, 8),
    "IntValue": SimpleSerializer("IntValue", _INT, 4),
    "ShortValue": SimpleSerializer("ShortValue", _SHORT, 2),
    "ByteValue": SimpleSerializer("ByteValue", _BYTE, 1),
    "BooleanValue": SimpleSerializer("BooleanValue", _boolean, 1),
    "FloatValue": SimpleSerializer("FloatValue", _FLOAT, 4),
    "DoubleValue": SimpleSerializer("DoubleValue", _DOUBLE, 8),
    "CharValue": SimpleSerializer("CharValue", _char, 2),
}
_ARRAYS: Final[dict[str, StateSerializer]] = {
    "BytePrimitiveArray": SimpleSerializer("byte[]", _bytes),
    "LongPrimitiveArray": SimpleSerializer("long[]", _list_of(_LONG)),
    "IntPrimitiveArray": SimpleSerializer("int[]", _list_of(_INT)),
    "ShortPrimitiveArray": SimpleSerializer("short[]", _list_of(_SHORT)),
    "FloatPrimitiveArray": SimpleSerializer("float[]", _list_of(_FLOAT)),
    "DoublePrimitiveArray": SimpleSerializer("double[]", _list_of(_DOUBLE)),
    "BooleanPrimitiveArray": SimpleSerializer("boolean[]", _list_of(_boolean)),
    "CharPrimitiveArray": SimpleSerializer("char[]", _list_of(_char)),
    "StringArray": SimpleSerializer("String[]", _list_of(_string)),
}
_BASE: Final = "org.apache.flink.api.common.typeutils.base."

BASIC_SERIALIZERS: Final = {
    **{f"{_BASE}{name}Serializer${name}SerializerSnapshot": each for name, each in _SIMPLE.items()},
    **{f"{_BASE}array.{name}Serializer${name}SerializerSnapshot": each for name, each in _ARRAYS.items()},
    # PyFlink's, of process mode.
    "org.apache.flink.streaming.api.utils.ByteArrayWrapperSerializer$ByteArrayWrapperSerializerSnapshot": (
        _ARRAYS["BytePrimitiveArray"]
    ),
}
"""Serializers by the class of their snapshots, which have no content."""
