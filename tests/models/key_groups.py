"""Java hash codes of the golden files' keys, and key groups, value by value and in plain Python."""

from datetime import date
from decimal import Decimal
from typing import Any

Key = dict[str, Any]


def to_int(value: int) -> int:
    """The value as a Java int: its low 32 bits, signed."""
    return (value + 2**31) % 2**32 - 2**31


def long_hash(value: int) -> int:
    bits = value % 2**64
    return to_int(bits ^ bits >> 32)


def string_hash(text: str) -> int:
    units = text.encode("utf-16-le", "surrogatepass")
    code = 0
    for i in range(0, len(units), 2):
        code = 31 * code + int.from_bytes(units[i : i + 2], "little")
    return to_int(code)


def bytes_hash(data: bytes) -> int:
    code = 1
    for byte in data:
        code = 31 * code + (byte - 256 if byte > 127 else byte)
    return to_int(code)


def float_hash(bits: int) -> int:
    return to_int(0x7FC00000 if bits & 0x7FFFFFFF > 0x7F800000 else bits)


def double_hash(bits: int) -> int:
    return long_hash(0x7FF8000000000000 if bits & (2**63 - 1) > 0x7FF0000000000000 else bits)


def big_integer_hash(value: int) -> int:
    code, magnitude = 0, abs(value)
    for shift in range(magnitude.bit_length() // 32 * 32, -1, -32):
        code = 31 * code + (magnitude >> shift) % 2**32
    return to_int(code if value >= 0 else -code)


def big_decimal_hash(unscaled: int, scale: int) -> int:
    return to_int(31 * big_integer_hash(unscaled) + scale)


def local_date_hash(year: int, month: int, day: int) -> int:
    return to_int((year & ~0x7FF) ^ ((year << 11) + (month << 6) + day))


def instant_hash(seconds: int, nanos: int) -> int:
    return to_int(long_hash(seconds) + 51 * nanos)


def list_hash(codes: list[int], start: int = 1) -> int:
    for code in codes:
        start = 31 * start + code
    return to_int(start)


def row_hash(codes: list[int | None]) -> int:
    """`Row.of(...)` of fields with these hash codes, None for null."""
    return list_hash([0 if code is None else 31 + code for code in codes])


def _deep_hash(key: Key) -> int:
    """`RowUtils.deepHashCodeInternal`: how a part of a row counts."""
    if key["type"] == "null":
        return 0
    if key["type"] == "list":
        return list_hash([_deep_hash(part) for part in key["value"]])
    return 31 + hash_code(key)


def hash_code(key: Key) -> int:
    """`hashCode()` of a key of a golden file; 0 for null."""
    kind, value = key["type"], key.get("value")
    if kind == "null":
        return 0
    if kind == "boolean":
        return 1231 if value else 1237
    if kind in ("byte", "short", "int"):
        return int(value)
    if kind == "long":
        return long_hash(value)
    if kind == "float":
        return float_hash(int(key["bits"], 16))
    if kind == "double":
        return double_hash(int(key["bits"], 16))
    if kind in ("char", "string"):
        return string_hash(value)
    if kind == "big_integer":
        return big_integer_hash(int(value))
    if kind == "big_decimal":
        sign, digits, exponent = Decimal(value).as_tuple()
        assert isinstance(exponent, int)
        unscaled = int("".join(map(str, digits)))
        return big_decimal_hash(-unscaled if sign else unscaled, -exponent)
    if kind == "date":
        day = date.fromisoformat(value)
        return local_date_hash(day.year, day.month, day.day)
    if kind == "instant":
        return instant_hash(*value)
    if kind == "list":
        return list_hash([hash_code(part) for part in value])
    if kind == "tuple":
        return list_hash([hash_code(part) for part in value], start=0)
    if kind == "row":
        return list_hash([_deep_hash(part) for part in value])
    raise ValueError(f"unknown key type {kind!r}")


def key_group_of_hash(code: int, max_parallelism: int) -> int:
    """`KeyGroupRangeAssignment.computeKeyGroupForKeyHash`."""
    code = code * 0xCC9E2D51 % 2**32
    code = (code << 15 | code >> 17) * 0x1B873593 % 2**32
    code = (code << 13 | code >> 19) % 2**32
    code = (code * 5 + 0xE6546B64) % 2**32 ^ 4
    code = (code ^ code >> 16) * 0x85EBCA6B % 2**32
    code = (code ^ code >> 13) * 0xC2B2AE35 % 2**32
    code = to_int(code ^ code >> 16)
    return 0 if code == -(2**31) else abs(code) % max_parallelism
