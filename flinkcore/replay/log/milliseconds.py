"""Time columns of any Arrow type as int64 milliseconds since the epoch."""

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore.errors import SchemaError
from flinkcore.replay.log.arrays import Int64s

# Everything that Arrow parses, and little else.
_LOOKS_LIKE_ISO_8601: Final = r"^\d{4}-\d{2}-\d{2}([T ][0-9:.]+(Z|[+-][0-9:]+)?)?$"
_OFFSET: Final = r"[T ][0-9:.]+[Z+-]"
_BELOW_MICROSECONDS: Final = r"(\.\d{6})\d+"

_DAY_MS = 86_400_000
_PER_MS = {"us": 1_000, "ns": 1_000_000}
_MAX_SECONDS = (2**63 - 1) // 1000


def check_time_type(arrow_type: pa.DataType, column: str, computed: bool = False) -> None:
    """Check that a column can be a timestamp or an arrival.

    Parameters
    ----------
    arrow_type : pyarrow.DataType
    column : str
        What messages call it.
    computed : bool
        True if that is the text of an expression.

    Raises
    ------
    SchemaError
        If the type is not an integer, an Arrow timestamp or date, or text; the message says how to convert
        it.
    """
    types = pa.types
    if (
        types.is_integer(arrow_type)
        or types.is_timestamp(arrow_type)
        or types.is_date(arrow_type)
        or types.is_string(arrow_type)
    ):
        return
    if types.is_floating(arrow_type) or types.is_decimal(arrow_type):
        advice = (
            "end the expression in .cast('int64'), after pyarrow.compute.round"
            if computed
            else "name an expression instead of the column; for seconds, pyarrow.compute.round("
            f"pyarrow.compute.field({column!r}) * 1000).cast('int64')"
        )
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
        f"a cast, in CSV and JSON with format_options={{'column_types': {{{column!r}: 'string'}}}}"
    )


def to_milliseconds(column: pa.Array) -> tuple[Int64s, npt.NDArray[np.bool_] | None]:
    """Convert a time column.

    Parameters
    ----------
    column : pyarrow.Array, shape (n,)
        Of a type that :func:`check_time_type` accepts, nullable. Integers are ms. Timestamps are instants
        (without a zone: UTC); finer units are floored towards minus infinity. Dates are midnight UTC. Text is
        ISO 8601, without an offset UTC.

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
        return _parsed(column)
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
    return values.astype(np.int64, copy=False), unreadable


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


_NUMBER_AS_TEXT: Final = (
    " but a number as text: all are, or another row holds a word, such as a second header"
)


def no_time(value: pa.Scalar, column: str) -> str:
    """Say why a value is no time.

    Parameters
    ----------
    value : pyarrow.Scalar
        Of a row that :func:`to_milliseconds` calls unreadable.
    column : str
        What messages call its column.
    """
    if pa.types.is_string(value.type):
        text, field = value.as_py(), f"pyarrow.compute.field({column!r})"
        fault = (
            f"time column {column!r} holds {text!r}, which is not ISO 8601 (such as 2001-01-31T12:00:00.250Z)"
        )
        if text.strip().lstrip("-").isdigit():
            return f"{fault}{_NUMBER_AS_TEXT}. If all are, give {field}.cast('int64') in place of the column"
        return (
            f"{fault}. Give what parses it in place of the column: pyarrow.compute.strptime({field}, "
            "format='%d.%m.%Y %H:%M:%S', unit='ms'), or on a Spark DataFrame F.to_timestamp"
            f"({column!r}, 'dd.MM.yyyy HH:mm:ss')"
        )
    number = value.value if pa.types.is_timestamp(value.type) else value.as_py()
    return f"time column {column!r} holds {number} ({value.type}), which does not fit into 64 bits of milliseconds"


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
