"""CAST and TRY_CAST, by Flink's rules for each pair of types."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timezone
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.expressions import RowFailure
from flinkcore._internal.java.texts import double_text, float_text
from flinkcore.sql.expressions.decimals import fit_one
from flinkcore.sql.expressions.evaluation import Evaluation, column, function, integers, nulls, valid
from flinkcore.sql.expressions.numeric_casts import cast_number
from flinkcore.sql.expressions.time_arithmetic import per_milli, toward_zero
from flinkcore.sql.plan.rex import RexCall
from flinkcore.sql.types.logical_types import (
    BINARIES,
    INTEGERS,
    INTERVALS,
    MAX_LENGTH,
    NESTED,
    NUMERIC,
    TEXTS,
    TIMESTAMPS,
    LogicalType,
    Root,
)
from flinkcore.sql.types.times import (
    MS_OF_DAY,
    date_text,
    day_of_text,
    millis_of_day,
    time_text,
    timestamp_of_text,
    timestamp_text,
)

_TIMES: Final = frozenset((Root.DATE, Root.TIME, *TIMESTAMPS))


def _supported(call: RexCall) -> str | None:
    given, wanted = call.operands[0].type, call.type
    if _cast_of(given, wanted) is not None:
        return None
    return f"CAST of {given} to {wanted} is not supported"


@function("CAST", "TRY_CAST", check=_supported)
def cast(rows: Evaluation, call: RexCall) -> pa.Array:
    (operand,) = call.operands
    array = rows(operand)
    given, wanted = operand.type, call.type
    of_type = _cast_of(given, wanted)
    assert of_type is not None, "checked when the plan was read"
    return of_type(rows, array, given, wanted, call.name == "TRY_CAST")


Cast = Callable[[Evaluation, pa.Array, LogicalType, LogicalType, bool], pa.Array]


def _cast_of(given: LogicalType, wanted: LogicalType) -> Cast | None:
    """Return what casts values of one type to another, or None if nothing does."""
    source, target = given.root, wanted.root
    if source is Root.NULL:
        return lambda rows, array, given, wanted, tries: pa.nulls(len(array), wanted.arrow)
    if source in NESTED:
        return _cast_of_nested(given, wanted)
    if source in NUMERIC and target in NUMERIC:
        return lambda rows, array, given, wanted, tries: cast_number(array, given, wanted)
    if target in TEXTS and (source in TEXTS or source in _TEXTS_OF or source in BINARIES):
        return _to_text
    if source in TEXTS and (target in _OF_TEXT or target in INTEGERS or target in BINARIES):
        return _from_text
    if source in BINARIES and target in BINARIES:
        return _binary
    if target is Root.BOOLEAN and source in INTEGERS:
        return lambda rows, array, given, wanted, tries: pc.not_equal(array, pa.scalar(0, array.type))
    if source is Root.BOOLEAN and target in NUMERIC:
        small = LogicalType(Root.TINYINT)
        return lambda rows, array, given, wanted, tries: cast_number(array.cast(pa.int8()), small, wanted)
    if source in _TIMES and target in _TIMES and (source, target) != (Root.DATE, Root.TIME):
        return _time
    if (source in INTERVALS and target in INTEGERS) or source is target is Root.BOOLEAN or source is target:
        return lambda rows, array, given, wanted, tries: array.cast(wanted.arrow)
    return None


# ---- arrays, maps and rows

BLANKS: Final = "".join(map(chr, range(33)))
"""Characters that ``String.trim`` leaves out."""

_STRING: Final = LogicalType(Root.VARCHAR, precision=MAX_LENGTH)


def _cast_of_nested(given: LogicalType, wanted: LogicalType) -> Cast | None:
    kinds = [kind for _, kind in given.children]
    if wanted.root in TEXTS and given.root is not Root.MULTISET:
        return _nested_texts if all(_cast_of(kind, _STRING) for kind in kinds) else None
    if given.root is not wanted.root or len(kinds) != len(wanted.children):
        return None
    castable = all(_cast_of(kind, child) for kind, (_, child) in zip(kinds, wanted.children, strict=True))
    return _nested if castable else None


def _children(array: pa.Array, kind: LogicalType) -> list[pa.Array]:
    """Return the fields of rows, the elements of arrays, or keys and values of maps, without those of nulls."""
    if kind.root is Root.ROW:
        return list(array.flatten())
    if kind.root is Root.ARRAY:
        return [array.flatten()]
    entries = array.drop_null()
    start, end = (entries.offsets[0].as_py(), entries.offsets[-1].as_py()) if len(entries) else (0, 0)
    return [entries.keys[start:end], entries.items[start:end]]


def _lengths(array: pa.Array, kind: LogicalType) -> npt.NDArray[np.int64]:
    """Return how many children each value has."""
    if kind.root is Root.ROW:
        return np.ones(len(array), np.int64)
    found = [0 if each is None else len(each) for each in array.to_pylist()]
    return np.array(found, np.int64)


def _cast_children(
    rows: Evaluation, array: pa.Array, given: LogicalType, wanted: list[LogicalType], tries: bool
) -> list[pa.Array]:
    """Return the children of nested values as other types; a failure is that of the row that has the child."""
    numbers_of_rows = np.arange(len(array)) if rows.rows is None else rows.rows
    of_children = np.repeat(numbers_of_rows, _lengths(array, given))
    inner = Evaluation((), len(of_children), rows.zone, of_children)
    found = []
    for child, (_, kind), target in zip(_children(array, given), given.children, wanted, strict=True):
        of_type = _cast_of(kind, target)
        assert of_type is not None, "checked when the plan was read"
        found.append(of_type(inner, child, kind, target, tries))
    return found


def _nested(
    rows: Evaluation, array: pa.Array, given: LogicalType, wanted: LogicalType, tries: bool
) -> pa.Array:
    kinds = [kind for _, kind in wanted.children]
    children = _cast_children(rows, array, given, kinds, tries)
    is_valid, lengths = valid(array), _lengths(array, given)
    if tries:  # a child that cannot be cast makes all of it null
        at = np.repeat(np.arange(len(array)), lengths)
        for before, after in zip(_children(array, given), children, strict=True):
            is_valid[at[valid(before) & ~valid(after)]] = False
    if wanted.root is Root.ROW:
        mask = pa.array(~is_valid)
        return pa.StructArray.from_arrays(children, fields=list(wanted.arrow), mask=mask)
    if not is_valid.all():  # Arrow gives what a null still has to the value before it
        kept = pa.array(np.repeat(is_valid, lengths))
        children = [child.filter(kept) for child in children]
    ends = np.concatenate([[0], np.cumsum(np.where(is_valid, lengths, 0))]).astype(np.int32)
    offsets = pa.array(ends, mask=np.append(~is_valid, False))
    if wanted.root is Root.ARRAY:
        return pa.ListArray.from_arrays(offsets, children[0]).cast(wanted.arrow)
    return pa.MapArray.from_arrays(offsets, *children).cast(wanted.arrow)


def _nested_texts(
    rows: Evaluation, array: pa.Array, given: LogicalType, wanted: LogicalType, tries: bool
) -> pa.Array:
    children = _cast_children(rows, array, given, [_STRING] * len(given.children), tries)
    texts = [["NULL" if text is None else text for text in child.to_pylist()] for child in children]
    entries = [
        "=".join(each) if given.root is Root.MAP else ", ".join(each) for each in zip(*texts, strict=True)
    ]
    left, right = {Root.ARRAY: ("[", "]"), Root.MAP: ("{", "}")}.get(given.root, ("(", ")"))
    is_null, at, found = nulls(array), 0, []
    for row, length in enumerate(_lengths(array, given).tolist()):
        found.append(None if is_null[row] else f"{left}{', '.join(entries[at : at + length])}{right}")
        at += length
    return _to_text(rows, pa.array(found, pa.string()), _STRING, wanted, tries)


# ---- to texts


def _time_unit_nanos(values: Any, kind: LogicalType) -> list[int]:
    nanos = 10**6 // per_milli(kind)
    return [value * nanos for value in values.tolist()]


def _to_text(
    rows: Evaluation, array: pa.Array, given: LogicalType, wanted: LogicalType, tries: bool
) -> pa.Array:
    texts = array if given.root in TEXTS else _texts(rows, array, given)
    length = wanted.precision
    if length >= MAX_LENGTH:
        return texts
    if wanted.root is Root.CHAR:
        texts = pc.utf8_rpad(texts, width=length, padding=" ")
    return pc.utf8_slice_codeunits(texts, 0, length)


def _texts(rows: Evaluation, array: pa.Array, given: LogicalType) -> pa.Array:
    if given.root in INTEGERS:
        return array.cast(pa.string())
    if given.root is Root.BOOLEAN:
        return pc.if_else(array, pa.scalar("TRUE"), pa.scalar("FALSE"))
    if given.root in BINARIES:
        return pa.array(
            [None if each is None else each.decode("utf-8", "replace") for each in array.to_pylist()],
            pa.string(),
        )
    if given.root is Root.TIMESTAMP_LTZ:
        array = local_time(array, rows.zone)
    is_valid = valid(array)
    made = _TEXTS_OF[given.root]
    texts = (
        made(array.to_pylist(), given)
        if given.root in (Root.DECIMAL, Root.FLOAT, Root.DOUBLE)
        else made(integers(array), given)
    )
    return pa.array(texts, pa.string(), mask=None if is_valid.all() else ~is_valid)


_TEXTS_OF: Final[dict[Root, Callable[[Any, LogicalType], list[str | None]]]] = {
    **{root: lambda values, kind: [] for root in (*INTEGERS, Root.BOOLEAN)},
    Root.DECIMAL: lambda values, kind: [None if each is None else f"{each:f}" for each in values],
    Root.DOUBLE: lambda values, kind: [None if each is None else double_text(each) for each in values],
    Root.FLOAT: lambda values, kind: [None if each is None else float_text(each) for each in values],
    Root.DATE: lambda values, kind: list(map(date_text, values.tolist())),
    Root.TIME: lambda values, kind: [time_text(each, kind.precision) for each in values.tolist()],
    Root.TIMESTAMP: lambda values, kind: [
        timestamp_text(nanos, kind.precision) for nanos in _time_unit_nanos(values, kind)
    ],
    Root.TIMESTAMP_LTZ: lambda values, kind: [
        timestamp_text(nanos, kind.precision) for nanos in _time_unit_nanos(values, kind)
    ],
}


# ---- from texts

_TRUE: Final = frozenset(("t", "true", "y", "yes", "1"))
_FALSE: Final = frozenset(("f", "false", "n", "no", "0"))
_INTEGER: Final = re.compile(r"([+-]?[0-9]*)(?:\.[0-9]*)?")
_FLOAT: Final = re.compile(
    r"[\x00-\x20]*([+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(?=[fFdD]?[\x00-\x20]*$))[fFdD]?[\x00-\x20]*"
)
_SHORT_DECIMAL: Final = re.compile(
    r"[\n\t ]*(?![+-]\Z)(?P<sign>[+-])?(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?:[eE](?=.)(?![+-]\Z)(?P<minus>[+-])?(?P<exponent>[0-9]*)[\x00-\x7f]?|[^0-9.eE\x80-\U0010ffff]|[eE]\Z)?[\n\t ]*",
    re.DOTALL,
)
"""A decimal of 64 bits, as Flink reads it itself: without digits it is 0, and any one character may end a number."""

_DECIMAL: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,10})?")
_MOST_COMPACT: Final = 18
"""Most digits of a decimal of 64 bits."""

_ENOUGH_EXPONENT: Final = 40
"""Flink reads no further digits of an exponent that is as large."""


def _boolean(text: str, kind: LogicalType, zone: str) -> bool:
    word = text.lower()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise ValueError(f"Cannot parse '{text}' as BOOLEAN.")


def _integer(text: str, kind: LogicalType, zone: str) -> int:
    match = _INTEGER.fullmatch(text.strip(" "))
    if match is None or match[0] in ("", "+", "-"):
        raise ValueError(f"For input string: '{text}'. Invalid character found.")
    value = int(match[1]) if match[1] not in ("", "+", "-") else 0
    bits = INTEGERS[kind.root]
    if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise ValueError(f"For input string: '{text}'. Overflow.")
    return value


def _double(text: str, kind: LogicalType, zone: str) -> float:
    match = _FLOAT.fullmatch(text)
    if match is None:
        stripped = text.strip(" ")
        if re.fullmatch(r"[+-]?0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*[pP][+-]?[0-9]+[fFdD]?", stripped):
            return float.fromhex(stripped.rstrip("fFdD") if stripped[-1] in "fFdD" else stripped)
        raise ValueError(f'For input string: "{text}"')
    value = float(match[1])
    return float(np.float32(value)) if kind.root is Root.FLOAT else value


def _decimal(text: str, kind: LogicalType, zone: str) -> Decimal:
    stripped = text.strip(" ")
    is_short = kind.precision <= _MOST_COMPACT and len(stripped.encode()) <= _MOST_COMPACT
    found = _short_decimal(stripped, kind) if is_short else _long_decimal(stripped.strip("\n\t "), kind)
    if found is None:
        raise ValueError(f"For input string: '{text}'. Overflow.")
    return found


def _short_decimal(text: str, kind: LogicalType) -> Decimal | None:
    """Return a decimal of 64 bits; None if it is none, or has too many digits, of which zeros at the front count."""
    match = _SHORT_DECIMAL.fullmatch(text)
    if match is None or not text.strip("\n\t "):
        return None
    part, exponent = match["part"] or "", 0
    digits = match["whole"] + part
    for digit in match["exponent"] or "":
        if exponent < _ENOUGH_EXPONENT:
            exponent = exponent * 10 + int(digit)
    places = (-exponent if match["minus"] == "-" else exponent) - len(part) + kind.scale
    value = int(digits or "0")
    if len(digits) + places > kind.precision or places < -_MOST_COMPACT:
        return None
    if places >= 0:
        value *= 10**places
    else:
        value = (value + 5 * 10 ** (-places - 1)) // 10**-places
    exact = Decimal(-value if match["sign"] == "-" else value).scaleb(-kind.scale)
    return fit_one(exact, kind)


def _long_decimal(text: str, kind: LogicalType) -> Decimal | None:
    """Return a decimal of more digits, as ``BigDecimal`` of Java reads it; None if it is none, or does not fit."""
    if _DECIMAL.fullmatch(text) is None:
        return None
    try:
        exact = Decimal(text)
    except InvalidOperation:
        return None
    exponent = exact.as_tuple().exponent
    if not isinstance(exponent, int) or not -(2**31) < exponent <= 2**31:
        return None
    try:
        return fit_one(exact, kind)
    except InvalidOperation:
        return None


def day_before_blank(text: str) -> int:
    """Return the day of a text, which may have a time after it; ValueError if it has no day."""
    blank = text.find(" ")
    return day_of_text((text[:blank] if blank > 0 else text).strip(BLANKS))


def _date(text: str, kind: LogicalType, zone: str) -> int:
    try:
        return day_before_blank(text)
    except ValueError:
        raise ValueError(f"For input string: '{text}'.") from None


def _timestamp(text: str, kind: LogicalType, zone: str) -> int:
    nanos = timestamp_of_text(text)
    if kind.root is Root.TIMESTAMP_LTZ:
        nanos -= _offset_of_local(nanos // 10**9, zone) * 10**9
    digits: int = 10 ** (9 - kind.precision)
    return nanos // digits * digits * per_milli(kind) // 10**6


_OF_TEXT: Final[dict[Root, Callable[[str, LogicalType, str], Any]]] = {
    Root.BOOLEAN: _boolean,
    **dict.fromkeys(INTEGERS, _integer),
    Root.FLOAT: _double,
    Root.DOUBLE: _double,
    Root.DECIMAL: _decimal,
    Root.DATE: _date,
    Root.TIME: lambda text, kind, zone: millis_of_day(text),
    Root.TIMESTAMP: _timestamp,
    Root.TIMESTAMP_LTZ: _timestamp,
}


def _from_text(
    rows: Evaluation, array: pa.Array, given: LogicalType, wanted: LogicalType, tries: bool
) -> pa.Array:
    if wanted.root in BINARIES:
        return _binary(rows, array.cast(pa.binary()), given, wanted, tries)
    of_text = _OF_TEXT[wanted.root]
    found: list[Any] = []
    for row, text in enumerate(array.to_pylist()):
        if text is None:
            found.append(None)
            continue
        try:
            found.append(of_text(text, wanted, rows.zone))
        except ValueError as error:
            if not tries:
                rows.fail(row, str(error))
            found.append(None)
    kind = wanted.arrow
    if wanted.root in (Root.DATE, Root.TIME):
        return pa.array(found, pa.int32()).view(kind)
    return pa.array(found, pa.int64()).view(kind) if wanted.root in TIMESTAMPS else pa.array(found, kind)


def cast_text(array: pa.Array, wanted: LogicalType) -> pa.Array:
    """Return texts of a log as values of a type, by the rules of CAST; times also in the form of ISO 8601.

    Raises
    ------
    ValueError
        If a text is not of the type.
    """
    texts = array.to_pylist()
    if wanted.root in TIMESTAMPS:
        texts = [
            None if text is None else text.strip(" ").replace("T", " ").removesuffix("Z") for text in texts
        ]
    rows = Evaluation((), len(texts))
    text_type = LogicalType(Root.VARCHAR, precision=MAX_LENGTH)
    try:
        return _from_text(rows, pa.array(texts, pa.string()), text_type, wanted, False)
    except RowFailure as failure:
        raise ValueError(str(failure)) from None


def _binary(
    rows: Evaluation, array: pa.Array, given: LogicalType, wanted: LogicalType, tries: bool
) -> pa.Array:
    length = wanted.precision
    if length >= MAX_LENGTH:
        return array
    cut = [None if each is None else each[:length] for each in array.to_pylist()]
    if wanted.root is Root.BINARY:
        cut = [None if each is None else each.ljust(length, b"\0") for each in cut]
    return pa.array(cut, pa.binary())


# ---- times


def _offset_of_local(seconds: int, zone: str) -> int:
    """Return the offset in seconds of a local time: in a gap that before it, of a doubled hour the first one."""
    local = datetime.fromtimestamp(seconds, timezone.utc).replace(tzinfo=ZoneInfo(zone))
    offset = local.utcoffset()
    assert offset is not None
    return int(offset.total_seconds())


def local_time(array: pa.Array, zone: str) -> pa.Array:
    """Return instants as local times of a zone."""
    if zone == "UTC":
        return array.cast(pa.timestamp(array.type.unit))
    return pc.local_timestamp(array.cast(pa.timestamp(array.type.unit, zone)))


def instants(array: pa.Array, zone: str) -> pa.Array:
    """Return local times of a zone as instants, as ``LocalDateTime.atZone`` does."""
    unit = array.type.unit
    if zone == "UTC":
        return array.cast(pa.timestamp(unit, "UTC"))
    try:
        found = pc.assume_timezone(array, zone, ambiguous="earliest", nonexistent="raise")
        return found.cast(pa.timestamp(unit, "UTC"))
    except pa.ArrowInvalid:
        per_second = {"ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
        values = integers(array)
        offsets = [_offset_of_local(value // per_second, zone) * per_second for value in values.tolist()]
        return column(values - np.array(offsets, np.int64), valid(array), pa.timestamp(unit, "UTC"))


def _time(
    rows: Evaluation, array: pa.Array, given: LogicalType, wanted: LogicalType, tries: bool
) -> pa.Array:
    source, target = given.root, wanted.root
    if source is target and given.precision == wanted.precision:
        return array
    if source is Root.TIMESTAMP_LTZ and target is not Root.TIMESTAMP_LTZ:
        array = local_time(array, rows.zone)
    values, is_valid = integers(array), valid(array)
    if source in TIMESTAMPS and target in (Root.DATE, Root.TIME):
        millis = values // per_milli(given)
        if source is Root.TIMESTAMP_LTZ:  # Flink takes days and times of LTZ from a LocalDateTime
            days, times = np.divmod(millis, MS_OF_DAY)
        else:
            days, times = toward_zero(millis, MS_OF_DAY), np.fmod(millis, MS_OF_DAY)
        found = days if target is Root.DATE else _of_day(times, wanted)
        return column(found, is_valid, wanted.arrow)
    if source is Root.TIME and target is Root.TIME:
        return column(_of_day(values, wanted), is_valid, wanted.arrow)
    if source is target and given.precision == wanted.precision:
        return array
    if source in TIMESTAMPS:
        values = _rescaled(integers(array), given, wanted)
    else:
        values = (values * MS_OF_DAY if source is Root.DATE else values) * per_milli(wanted)
    local = column(values, is_valid, pa.timestamp(wanted.unit))
    if target is Root.TIMESTAMP_LTZ:
        if source is Root.TIMESTAMP_LTZ:
            return local.view(wanted.arrow)
        return instants(local, rows.zone)
    return local


def _of_day(millis: Any, kind: LogicalType) -> Any:
    step = 10 ** max(0, 3 - kind.precision)
    return toward_zero(millis, step) * step  # before 1970 it is negative, which sinks refuse


def _rescaled(values: Any, given: LogicalType, wanted: LogicalType) -> Any:
    """Return timestamps of another precision: further digits are cut off, toward the past."""
    have, want = per_milli(given), per_milli(wanted)
    found = values * (want // have) if want >= have else values // (have // want)
    if wanted.precision < 3:  # of milliseconds Flink cuts off digits toward the epoch
        step = want * 10 ** (3 - wanted.precision)
        return toward_zero(found // want * want, step) * step
    step = max(1, want * 1000 // 10**wanted.precision)
    return found // step * step
