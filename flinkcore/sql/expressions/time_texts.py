"""Times from texts and as texts by patterns of ``SimpleDateFormat``: UNIX_TIMESTAMP, FROM_UNIXTIME and CONVERT_TZ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa

from flinkcore.errors import UnsupportedOperationError
from flinkcore.sql.expressions.evaluation import Evaluation, by_row, function, text_of
from flinkcore.sql.expressions.refused_functions import OF_THE_CLOCK
from flinkcore.sql.formats.simple_dates import check_read, check_written, read_date, write_date
from flinkcore.sql.plan.rex import Rex, RexCall

DEFAULT_PATTERN: Final = "yyyy-MM-dd HH:mm:ss"

_NO_TIME: Final = -(2**63)
"""The number that Flink returns for a text which is not of the pattern."""


def pattern_of(rex: Rex, check: Callable[[str], str | None]) -> str | None:
    """Return why a pattern does not run, or None."""
    pattern = text_of(rex)
    if pattern is None:
        return "a pattern that is not constant is not supported"
    try:
        return check(pattern)
    except UnsupportedOperationError as error:
        return str(error)


def read_or_fail(text: str, pattern: str, zone: str) -> int:
    """Read a date by `read_date`; a text that cannot be read here is the failure of its row."""
    try:
        return read_date(text, pattern, zone)
    except UnsupportedOperationError as error:
        raise ArithmeticError(str(error)) from None


def _read(call: RexCall) -> str | None:
    if not call.operands:
        return f"the function {call.name}() is not supported: {OF_THE_CLOCK}"
    return pattern_of(call.operands[1], check_read) if len(call.operands) == 2 else None


def _written(call: RexCall) -> str | None:
    return pattern_of(call.operands[1], check_written) if len(call.operands) == 2 else None


@function("UNIX_TIMESTAMP", check=_read)
def unix_timestamp(rows: Evaluation, call: RexCall) -> pa.Array:
    pattern = DEFAULT_PATTERN if len(call.operands) == 1 else text_of(call.operands[1]) or ""

    def of_row(text: str) -> int:
        try:
            millis = read_or_fail(text, pattern, rows.zone)
        except ValueError:
            return _NO_TIME
        return millis // 1000 if millis >= 0 else -(-millis // 1000)

    return by_row(rows, call, of_row, rows(call.operands[0]), fails=True)


@function("FROM_UNIXTIME", check=_written)
def from_unixtime(rows: Evaluation, call: RexCall) -> pa.Array:
    pattern = DEFAULT_PATTERN if len(call.operands) == 1 else text_of(call.operands[1]) or ""

    def of_row(seconds: int) -> str:
        millis = (seconds * 1000 + 2**63) % 2**64 - 2**63  # a long wraps
        return write_date(millis, pattern, rows.zone)

    return by_row(rows, call, of_row, rows(call.operands[0]))


@function("CONVERT_TZ")
def convert_tz(rows: Evaluation, call: RexCall) -> pa.Array:
    def of_row(text: str, given: str, wanted: str) -> str | None:
        return write_date(read_date(text, DEFAULT_PATTERN, given), DEFAULT_PATTERN, wanted)

    return by_row(rows, call, of_row, *map(rows, call.operands))


def format_text(rows: Evaluation, call: RexCall) -> pa.Array:
    """Return DATE_FORMAT of texts, which has no zone."""
    pattern = text_of(call.operands[1]) or ""

    def of_row(text: str) -> str | None:
        return write_date(read_date(text, DEFAULT_PATTERN, "UTC"), pattern, "UTC")

    return by_row(rows, call, of_row, rows(call.operands[0]))
