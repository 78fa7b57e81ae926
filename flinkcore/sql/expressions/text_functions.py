"""Functions that choose, encode and format texts, such as ELT, TRANSLATE, PRINTF, URL_ENCODE and TYPEOF."""

from __future__ import annotations

import hashlib
import re
from typing import Any, Final
from urllib.parse import quote_plus, unquote_to_bytes

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore.errors import UnsupportedOperationError
from flinkcore.sql.expressions.conditions import converted
from flinkcore.sql.expressions.evaluation import (
    Evaluation,
    by_row,
    function,
    integer_of,
    integers,
    nulls,
    strict,
    text_of,
)
from flinkcore.sql.formats.printf import Float, FormatError, java_format
from flinkcore.sql.plan.rex import RexCall
from flinkcore.sql.types.logical_types import (
    BINARIES,
    INTERVALS,
    MAX_LENGTH,
    NESTED,
    TIMESTAMPS,
    LogicalType,
    Root,
)
from flinkcore.sql.types.times import NANOS_OF_DAY, date_text


@function("TRANSLATE", "TRANSLATE3")
def translate(rows: Evaluation, call: RexCall) -> pa.Array:
    texts, given, wanted = (rows(operand) for operand in call.operands)
    return by_row(rows, call, _translated, texts, given.fill_null(""), wanted.fill_null(""))


def _translated(text: str, given: str, wanted: str) -> str:
    table: dict[int, str | None] = {}
    for number, mark in enumerate(given):
        table.setdefault(ord(mark), wanted[number] if number < len(wanted) else None)
    return text.translate(table)


@function("ELT")
def elt(rows: Evaluation, call: RexCall) -> pa.Array:
    index = rows(call.operands[0])
    numbers, found = integers(index), pa.nulls(rows.num_rows, call.type.arrow)
    is_null = nulls(index)
    for number, operand in enumerate(call.operands[1:], 1):
        chosen = (numbers == number) & ~is_null
        if chosen.any():
            values = converted(rows(operand), operand.type, call.type)
            found = pc.if_else(pa.array(chosen), values, found)
    return found


# ---- PRINTF


def _printable(call: RexCall) -> str | None:
    for operand in call.operands[1:]:
        if operand.type.root in NESTED or operand.type.root in BINARIES:
            return f"PRINTF of {operand.type} writes the address of an object in Flink: CAST it to STRING"
    pattern = text_of(call.operands[0])
    if pattern is not None:
        try:
            java_format(pattern, [None] * (len(call.operands) - 1), [Root.NULL] * (len(call.operands) - 1))
        except FormatError:
            return None
        except UnsupportedOperationError as error:
            return f"PRINTF: {error}"
    return None


def _local_text(value: int, kind: LogicalType) -> str:
    """Return a timestamp as ``LocalDateTime.toString`` writes it."""
    days, within = divmod(value * {"ms": 10**6, "us": 10**3, "ns": 1}[kind.unit], NANOS_OF_DAY)
    second, fraction = divmod(within, 10**9)
    text = f"{date_text(days)}T{second // 3600:02d}:{second // 60 % 60:02d}"
    if second % 60 or fraction:
        text += f":{second % 60:02d}"
    if fraction:
        digits = 3 if fraction % 10**6 == 0 else 6 if fraction % 1000 == 0 else 9
        text += f".{fraction:09d}"[: digits + 1]
    return text


@function("PRINTF", check=_printable)
def printf(rows: Evaluation, call: RexCall) -> pa.Array:
    patterns, *others = (rows(operand) for operand in call.operands)
    kinds = [operand.type for operand in call.operands[1:]]
    columns: list[list[Any]] = []
    for array, kind in zip(others, kinds, strict=True):
        if kind.root in TIMESTAMPS:
            values = array.view(pa.int64()).to_pylist()
            columns.append([None if value is None else _local_text(value, kind) for value in values])
        elif kind.root in (Root.DATE, Root.TIME):
            columns.append(array.view(pa.int32()).to_pylist())
        elif kind.root is Root.FLOAT:
            columns.append([None if value is None else Float(value) for value in array.to_pylist()])
        else:
            columns.append(array.to_pylist())
    roots = [kind.root for kind in kinds]
    found: list[str | None] = []
    for row, pattern in enumerate(patterns.to_pylist()):
        try:
            found.append(
                None if pattern is None else java_format(pattern, [column[row] for column in columns], roots)
            )
        except FormatError:
            found.append(None)
        except UnsupportedOperationError as error:
            rows.fail(row, f"PRINTF: {error}")
    return pa.array(found, pa.string())


# ---- encodings


@strict("URL_ENCODE")
def url_encode(text: str) -> str:
    return quote_plus(text, safe="*").replace("~", "%7E")


_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2})")
_SIGNED: Final = re.compile(r"%\+([0-9a-fA-F])")


@strict("URL_DECODE")
def url_decode(text: str) -> str | None:
    text = _SIGNED.sub(r"%0\1", text)  # Integer.parseInt reads a sign
    if _ESCAPE.search(text):
        return None
    return unquote_to_bytes(text.replace("+", " ")).decode("utf-8", "replace")


@strict("UNHEX")
def unhex(text: str) -> bytes | None:
    """Return bytes of hexadecimal digits; the first of an odd number of them is checked and left out, as in Flink."""
    if re.fullmatch("[0-9a-fA-F]*", text) is None:
        return None
    return bytes.fromhex(f"00{text[1:]}" if len(text) % 2 else text)


@strict("BIN")
def bin_(value: int) -> str:
    return f"{value % 2**64:b}"


@strict("INET_NTOA")
def inet_ntoa(number: int) -> str | None:
    if not 0 <= number < 2**32:
        return None
    return ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))


_INET: Final = re.compile(r"\d{1,10}(?:\.\d{1,10}){0,3}", re.ASCII)


@strict("INET_ATON")
def inet_aton(text: str) -> int | None:
    """Return the number of an address; of fewer than four parts the last one is its last byte."""
    if _INET.fullmatch(text) is None:
        return None
    *first, last = map(int, text.split("."))
    if any(part > 255 for part in (*first, last)):
        return None
    return sum(part << 24 - 8 * number for number, part in enumerate(first)) + last


_LENGTHS: Final = (224, 256, 384, 512)


def _known_length(call: RexCall) -> str | None:
    length = integer_of(call.operands[1])
    if length is None or length in _LENGTHS:
        return None
    return f"SHA2 has the lengths 224, 256, 384 and 512, not {length}"


@function("SHA2", check=_known_length)
def sha2(rows: Evaluation, call: RexCall) -> pa.Array:
    def of_row(text: str, length: int) -> str:
        if length not in _LENGTHS:
            raise ValueError(f"SHA-{length} MessageDigest not available")
        return hashlib.new(f"sha{length}", text.encode()).hexdigest()

    return by_row(rows, call, of_row, *map(rows, call.operands), fails=True)


# ---- types


def _summary(kind: LogicalType) -> str:
    """Return Flink's ``LogicalType.asSummaryString``."""
    root, child = kind.root, [_summary(each) for _, each in kind.children]
    text = str(kind.with_nullable(True))
    if root in (Root.VARCHAR, Root.VARBINARY) and kind.precision >= MAX_LENGTH:
        text = "STRING" if root is Root.VARCHAR else "BYTES"
    elif root is Root.TIMESTAMP_LTZ:
        text = f"TIMESTAMP_LTZ({kind.precision})"
    elif root is Root.ROW:
        names = [name for name, _ in kind.children]
        text = f"ROW<{', '.join(f'`{name}` {each}' for name, each in zip(names, child, strict=True))}>"
    elif child:
        text = f"{root.value}<{', '.join(child)}>"
    if kind.time_attribute is not None:
        text = f"{text} *{kind.time_attribute}*"
    return text if kind.nullable or root is Root.NULL else f"{text} NOT NULL"


def _typed(call: RexCall) -> str | None:
    kind = call.operands[0].type
    return f"TYPEOF of {kind} is not supported" if kind.root in INTERVALS else None


@function("TYPEOF", check=_typed)
def type_of_value(rows: Evaluation, call: RexCall) -> pa.Array:
    kind = call.operands[0].type
    summary, whole = _summary(kind), str(kind)
    if len(call.operands) == 1:
        return pa.repeat(pa.scalar(summary), rows.num_rows)
    forced = rows(call.operands[1])
    return pc.if_else(forced.fill_null(False), pa.scalar(whole), pa.scalar(summary))
