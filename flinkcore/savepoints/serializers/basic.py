"""Serializers of numbers, texts and arrays of them: `org.apache.flink.api.common.typeutils.base`."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
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


def written_big_integer(number: int | None) -> bytes:
    """Return the bytes that BigIntSerializer writes."""
    size = {None: 0, 0: 1, 1: 2, 10: 3}.get(number)
    if size is not None:
        return size.to_bytes(4, "big")
    assert number is not None
    # As BigInteger.bitLength: of a negative number, that of its complement.
    n_bytes = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return (n_bytes + 4).to_bytes(4, "big") + number.to_bytes(n_bytes, "big", signed=True)


def _big_integer(data: memoryview) -> tuple[bytes | None, int]:
    number, used = read_big_integer(data)
    return None if number is None else str(number).encode(), used


def _written_big_integer(text: bytes | None) -> bytes:
    return written_big_integer(None if text is None else int(text))


def big_decimal_parts(text: str) -> tuple[int, int]:
    """Return the unscaled value and the scale of a decimal number.

    Raises
    ------
    ValueError
        If it is not a number.
    """
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"{text!r} is not a decimal number") from None
    sign, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"{text!r} is not a decimal number of Java")
    unscaled = int("".join(map(str, digits)))
    return -unscaled if sign else unscaled, -exponent


def _written_big_decimal(text: bytes | None) -> bytes:
    if text is None:
        return written_big_integer(None)
    unscaled, scale = big_decimal_parts(text.decode())
    return written_big_integer(unscaled) + scale.to_bytes(4, "big", signed=True)


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
_BASE: Final = "org.apache.flink.api.common.typeutils.base."


def snapshot_class(name: str, package: str = _BASE) -> str:
    """Return the class of the snapshots of a serializer of Flink's basic types, such as ``Long``."""
    return f"{package}{name}Serializer${name}SerializerSnapshot"


def _basic(name: str, java_name: str, make: ReadColumn, size: int | None = None) -> SimpleSerializer:
    return SimpleSerializer(java_name, make, size, snapshot_class(name))


def _array(name: str, java_name: str, make: ReadColumn) -> SimpleSerializer:
    return SimpleSerializer(java_name, make, None, snapshot_class(name, f"{_BASE}array."))


STRING: Final = _basic("String", "String", _string)
LONG: Final = _basic("Long", "Long", _LONG, 8)
INT: Final = _basic("Int", "Integer", _INT, 4)
SHORT: Final = _basic("Short", "Short", _SHORT, 2)
BYTE: Final = _basic("Byte", "Byte", _BYTE, 1)
BOOLEAN: Final = _basic("Boolean", "Boolean", _boolean, 1)
FLOAT: Final = _basic("Float", "Float", _FLOAT, 4)
DOUBLE: Final = _basic("Double", "Double", _DOUBLE, 8)
CHAR: Final = _basic("Char", "Character", _char, 2)
BIG_INTEGER: Final = _basic(
    "BigInt", "BigInteger", lambda exact: TextColumn(_big_integer, _written_big_integer)
)
BIG_DECIMAL: Final = _basic(
    "BigDec", "BigDecimal", lambda exact: TextColumn(_big_decimal, _written_big_decimal)
)
BYTES: Final = _array("BytePrimitiveArray", "byte[]", _bytes)
STRINGS: Final = _array("StringArray", "String[]", _list_of(_string))
PRIMITIVE_ARRAYS: Final[dict[SimpleSerializer, SimpleSerializer]] = {
    LONG: _array("LongPrimitiveArray", "long[]", _list_of(_LONG)),
    INT: _array("IntPrimitiveArray", "int[]", _list_of(_INT)),
    SHORT: _array("ShortPrimitiveArray", "short[]", _list_of(_SHORT)),
    FLOAT: _array("FloatPrimitiveArray", "float[]", _list_of(_FLOAT)),
    DOUBLE: _array("DoublePrimitiveArray", "double[]", _list_of(_DOUBLE)),
    BOOLEAN: _array("BooleanPrimitiveArray", "boolean[]", _list_of(_boolean)),
    CHAR: _array("CharPrimitiveArray", "char[]", _list_of(_char)),
    BYTE: BYTES,
}
"""Serializers of arrays of Java's primitive types, by those of their elements."""

BYTE_ARRAY_WRAPPER: Final = SimpleSerializer(
    "byte[]", _bytes, None, snapshot_class("ByteArrayWrapper", "org.apache.flink.streaming.api.utils.")
)
"""Keys of maps in PyFlink's process mode."""

_ALL: Final[tuple[SimpleSerializer | NothingSerializer, ...]] = (
    *(STRING, LONG, INT, SHORT, BYTE, BOOLEAN, FLOAT, DOUBLE, CHAR, BIG_INTEGER, BIG_DECIMAL),
    *(STRINGS, *PRIMITIVE_ARRAYS.values()),
    NothingSerializer("Void", snapshot_class=snapshot_class("Void")),
    # Flink's mutable values are written as what they hold.
    _basic("LongValue", "LongValue", _LONG, 8),
    _basic("IntValue", "IntValue", _INT, 4),
    _basic("ShortValue", "ShortValue", _SHORT, 2),
    _basic("ByteValue", "ByteValue", _BYTE, 1),
    _basic("BooleanValue", "BooleanValue", _boolean, 1),
    _basic("FloatValue", "FloatValue", _FLOAT, 4),
    _basic("DoubleValue", "DoubleValue", _DOUBLE, 8),
    _basic("CharValue", "CharValue", _char, 2),
    BYTE_ARRAY_WRAPPER,
)
BASIC_SERIALIZERS: Final[dict[str, StateSerializer]] = {each.snapshot_class: each for each in _ALL}
"""Serializers by the class of their snapshots, which have no content."""
