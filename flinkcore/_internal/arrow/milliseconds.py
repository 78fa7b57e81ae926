"""Time columns of any Arrow type as int64 milliseconds since the epoch."""

from collections.abc import Iterable
from decimal import ROUND_FLOOR, Context, Decimal, localcontext
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.arrow.time_units import TIME_UNITS, UNIT_NAMES, TimeUnit, looks_dated
from flinkcore.errors import ConfigurationError, SchemaError

# Everything that Arrow parses, and little else.
_LOOKS_LIKE_ISO_8601: Final = r"^\d{4}-\d{2}-\d{2}([T ][0-9:.]+(Z|[+-][0-9:]+)?)?$"
_OFFSET: Final = r"[T ][0-9:.]+[Z+-]"
_BELOW_MICROSECONDS: Final = r"(\.\d{6})\d+"
_NUMBER: Final = r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?$"

_DAY_MS = 86_400_000
_PER_MS = {"us": 1_000, "ns": 1_000_000}
_MAX_SECONDS = (2**63 - 1) // 1000
_MOST_DIGITS: Final = 100


def check_time_type(arrow_type: pa.DataType, column: str, unit: TimeUnit | None, setting: str) -> None:
    """Check that a column can be a timestamp or an arrival.

    Parameters
    ----------
    arrow_type : pyarrow.DataType
        Type of the column.
    column : str
        Name of the column in messages.
    unit : {"s", "ms", "us", "ns"} or None
        Unit of the column's numbers, or None if it is not given.
    setting : str
        Name of the setting that gives the unit.

    Raises
    ------
    SchemaError
        If the type is not an integer, an Arrow timestamp or date, or text, nor any number with a unit.
    ConfigurationError
        If the type has a unit, and another one is given.
    """
    types = pa.types
    is_inexact = types.is_floating(arrow_type) or types.is_decimal(arrow_type)
    if unit is not None and (types.is_timestamp(arrow_type) or types.is_date(arrow_type)):
        raise ConfigurationError(
            f"{setting}={unit!r} is for numbers, but time column {column!r} is {arrow_type}, which has a unit. Leave "
            f"{setting} out"
        )
    if unit is not None and is_inexact:
        return
    if (
        types.is_integer(arrow_type)
        or types.is_timestamp(arrow_type)
        or types.is_date(arrow_type)
        or types.is_string(arrow_type)
    ):
        return
    if is_inexact:
        advice = f"give {setting}='s' if its numbers are seconds, {setting}='ms' if they are milliseconds"
    elif types.is_null(arrow_type):
        advice = untyped_advice(column)
    else:
        advice = "convert it to a timestamp or to integer milliseconds first"
    raise SchemaError(
        f"time column {column!r} is {arrow_type}; a time is an integer (ms since the epoch), an Arrow "
        "timestamp "
        f"or date, or ISO 8601 text: {advice}"
    )


def untyped_advice(column: str) -> str:
    """Say what to do about a column in which no value has a type."""
    return (
        "it holds only nulls where it was looked at, or no rows; name another column, or give it a type: in a table by "
        f"a cast, in files with schema={{{column!r}: 'string'}}"
    )


def to_milliseconds(
    column: pa.Array, unit: TimeUnit | None = None
) -> tuple[Int64s, npt.NDArray[np.bool_] | None]:
    """Convert a time column.

    Parameters
    ----------
    column : pyarrow.Array, shape (n,)
        Times of a type that :func:`check_time_type` accepts, nullable. Timestamps are instants (without a zone: UTC);
        finer units are floored towards minus infinity. Dates are midnight UTC. Text is ISO 8601, without an offset UTC.
    unit : {"s", "ms", "us", "ns"} or None
        Unit of numbers, among them numbers as text. Fractions of a millisecond are floored, of floats after they are
        rounded to microseconds, since most fractions have no exact float. With None, integers are ms.

    Returns
    -------
    times : numpy.ndarray, shape (n,), int64
        Undefined where the column is null or holds no time. A view of the column's memory where that is int64 ms
        already.
    unreadable : numpy.ndarray, shape (n,), bool, or None
        True where the column is not null and holds no time: :func:`no_time` says why. None if that is nowhere.
    """
    arrow_type = column.type
    if pa.types.is_string(arrow_type):
        return _parsed(column) if unit is None else _text_in_unit(column, unit)
    if pa.types.is_floating(arrow_type):
        return _floats_in_unit(column, unit or "ms")
    if pa.types.is_decimal(arrow_type):
        return _decimals_in_unit(column.to_pylist(), unit or "ms")
    if pa.types.is_timestamp(arrow_type):
        values = _view(column, np.int64)
        if arrow_type.unit == "s":
            return values * 1000, _outside(column, values, -_MAX_SECONDS, _MAX_SECONDS)
        return _floored(column), None
    if pa.types.is_date32(arrow_type):
        return _view(column, np.int32).astype(np.int64) * _DAY_MS, None
    if pa.types.is_date64(arrow_type):
        return _view(column, np.int64), None
    values = _view(column, np.dtype(str(arrow_type)).type)  # Arrow and numpy name integers alike
    unreadable = _outside(column, values, 0, 2**63 - 1) if values.dtype == np.uint64 else None
    numbers = values.astype(np.int64, copy=False)
    if unit == "s":
        beyond = _outside(column, numbers, -_MAX_SECONDS, _MAX_SECONDS)
        if unreadable is None or beyond is None:
            return numbers * 1000, beyond if unreadable is None else unreadable
        return numbers * 1000, unreadable | beyond
    return numbers // _PER_MS[unit] if unit in _PER_MS else numbers, unreadable


def _floats_in_unit(column: pa.Array, unit: TimeUnit) -> tuple[Int64s, npt.NDArray[np.bool_] | None]:
    values = column.cast(pa.float64()).fill_null(0).to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore"):
        micros = np.rint(values / 1000 if unit == "ns" else values * (1e6 / TIME_UNITS[unit]))
    fits = np.abs(micros) < 2.0**63  # not so NaN
    times = np.where(fits, micros, 0).astype(np.int64) // _PER_MS["us"]
    return times, None if fits.all() else ~fits


def _decimals_in_unit(
    values: Iterable[Decimal | None], unit: TimeUnit
) -> tuple[Int64s, npt.NDArray[np.bool_] | None]:
    with localcontext(Context(prec=_MOST_DIGITS, rounding=ROUND_FLOOR)):
        scale = Decimal(1000) / TIME_UNITS[unit]
        times = [0 if value is None else (value * scale).to_integral_value() for value in values]
    fits = np.array([-(2**63) <= time < 2**63 for time in times], np.bool_)
    found = np.array([int(time) if fit else 0 for time, fit in zip(times, fits, strict=True)], np.int64)
    return found, None if fits.all() else ~fits


def _text_in_unit(column: pa.Array, unit: TimeUnit) -> tuple[Int64s, npt.NDArray[np.bool_] | None]:
    try:
        return to_milliseconds(column.cast(pa.int64()), unit)
    except pa.ArrowInvalid:
        pass
    is_number = _matches(column, _NUMBER)
    numbers = [
        Decimal(text) if known and text is not None else None
        for text, known in zip(column.to_pylist(), is_number.tolist(), strict=True)
    ]
    times, beyond = _decimals_in_unit(numbers, unit)
    unreadable = ~is_number if beyond is None else ~is_number | beyond
    return times, unreadable if unreadable.any() else None


def nanoseconds_within(column: pa.Array) -> Int64s:
    """Return what times have beyond whole milliseconds, in ns.

    Parameters
    ----------
    column : pyarrow.Array, shape (n,)
        Timestamps, dates or integers; nullable.

    Returns
    -------
    numpy.ndarray, shape (n,), int64
        From 0 to 999,999; undefined where the column is null.
    """
    if not pa.types.is_timestamp(column.type) or column.type.unit not in _PER_MS:
        return np.zeros(len(column), np.int64)
    per_ms = _PER_MS[column.type.unit]
    return _view(column, np.int64) % per_ms * (_PER_MS["ns"] // per_ms)


def no_time(value: pa.Scalar, column: str, unit: TimeUnit | None = None, setting: str | None = None) -> str:
    """Return why a value is not a time.

    Parameters
    ----------
    value : pyarrow.Scalar
        Value of a row that :func:`to_milliseconds` calls unreadable.
    column : str
        Name of its column in messages.
    unit : {"s", "ms", "us", "ns"} or None
        Unit that was given for the column.
    setting : str or None
        Name of the setting that gives the unit, or None.
    """
    if pa.types.is_string(value.type) and unit is not None:
        return (
            f"time column {column!r} holds {value.as_py()!r}, which is not a number of {UNIT_NAMES[unit]} within 64 "
            f"bits of milliseconds. If the column holds ISO 8601 text, leave {setting} out"
        )
    if pa.types.is_string(value.type):
        text, field = value.as_py(), f"pyarrow.compute.field({column!r})"
        if text.strip().lstrip("-").isdigit():
            remedy = (
                "cast the column to int64"
                if setting is None
                else f"give their unit, {setting}={_usual_unit(text)!r}"
            )
            return (
                f"time column {column!r} holds {text!r}, a number as text. If all its values are numbers, {remedy}. If "
                "not, look for a row with a word, such as a second header"
            )
        return (
            f"time column {column!r} holds {text!r}, which is not ISO 8601 (such as 2001-01-31T12:00:00.250Z). "
            f"Give what parses it in place of the column: pyarrow.compute.strptime({field}, "
            "format='%d.%m.%Y %H:%M:%S', unit='ms'), or on a Spark DataFrame F.to_timestamp"
            f"({column!r}, 'dd.MM.yyyy HH:mm:ss')"
        )
    number = value.value if pa.types.is_timestamp(value.type) else value.as_py()
    return f"time column {column!r} holds {number} ({value.type}), which does not fit into 64 bits of milliseconds"


def _usual_unit(digits: str) -> TimeUnit:
    """Return the unit in which a number lies between 1973 and 2200, or else milliseconds."""
    number = abs(int(digits))
    fits: list[TimeUnit] = [unit for unit in TIME_UNITS if looks_dated(number, unit)]
    return fits[0] if fits else "ms"


def _view(column: pa.Array, dtype: type) -> Int64s:
    """View the values, nulls included; ``to_numpy`` would turn integers with nulls into floats."""
    size = np.dtype(dtype).itemsize
    values: Int64s = (
        np.frombuffer(column.buffers()[1], dtype, len(column), column.offset * size)
        if len(column)
        else np.empty(0, dtype)
    )
    return values


def _floored(timestamps: pa.Array) -> Int64s:
    values, unit = _view(timestamps, np.int64), timestamps.type.unit
    return values if unit == "ms" else values // _PER_MS[unit]


def _outside(column: pa.Array, values: Int64s, least: int, greatest: int) -> npt.NDArray[np.bool_] | None:
    if len(values) == 0 or (least <= int(values.min()) and int(values.max()) <= greatest):
        return None
    outside: npt.NDArray[np.bool_] = (values < least) | (values > greatest)
    outside &= column.is_valid().to_numpy(zero_copy_only=False)
    return outside if outside.any() else None


def _parsed(column: pa.Array) -> tuple[Int64s, npt.NDArray[np.bool_] | None]:
    times = _parsed_together(column)
    if times is not None:
        return times, None
    # The batch mixes forms, or holds something else. What is left of each form after a look at the characters is
    # halved until what cannot be parsed stands alone. Digits below microseconds, which would not fit into 64 bits in
    # years such as 9999, have no part in milliseconds.
    column = pc.replace_substring_regex(column, _BELOW_MICROSECONDS, r"\1")
    times = np.zeros(len(column), np.int64)
    unreadable = ~_matches(column, _LOOKS_LIKE_ISO_8601)
    has_offset = _matches(column, _OFFSET)
    pending = [np.flatnonzero(~unreadable & has_offset), np.flatnonzero(~unreadable & ~has_offset)]
    while pending:
        rows = pending.pop()
        parsed = _parsed_together(column.take(pa.array(rows)))
        if parsed is not None:
            times[rows] = parsed
        elif len(rows) == 1:
            unreadable[rows] = True
        else:
            pending += np.array_split(rows, 2)
    return times, unreadable if unreadable.any() else None


def _parsed_together(column: pa.Array) -> Int64s | None:
    for unit in ("us", "ns"):
        for zone in ("UTC", None):
            try:
                return _floored(column.cast(pa.timestamp(unit, zone)))
            except pa.ArrowInvalid:
                continue
    return None


def _matches(column: pa.Array, pattern: str) -> npt.NDArray[np.bool_]:
    """True also where the column is null."""
    matches: npt.NDArray[np.bool_] = pc.fill_null(pc.match_substring_regex(column, pattern), True).to_numpy(
        zero_copy_only=False
    )
    return matches
