"""Time columns of any Arrow type as int64 milliseconds since the epoch."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore.errors import DataError, SchemaError

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
        advice = "it holds only nulls where it was looked at; give its type, or name another column"
    else:
        advice = "convert it to a timestamp or to integer milliseconds first"
    raise SchemaError(
        f"time column {column!r} is {arrow_type}; a time is an integer (ms since the epoch), an Arrow "
        "timestamp "
        f"or date, or ISO 8601 text: {advice}"
    )


def to_milliseconds(column: pa.Array, name: str, row_name: Callable[[int], str]) -> npt.NDArray[np.int64]:
    """Convert a time column.

    Parameters
    ----------
    column : pyarrow.Array, shape (n,)
        Of a type that :func:`check_time_type` accepts, nullable. Integers are ms. Timestamps are instants
        (without a zone: UTC); finer units are floored towards minus infinity. Dates are midnight UTC. Text is
        ISO 8601, without an offset UTC.
    name : str
        The column's name, for messages.
    row_name : callable
        Gives the name of a row by its index in the column, for messages.

    Returns
    -------
    numpy.ndarray, shape (n,), int64
        Undefined where the column is null. A view of the column's memory where that is int64 ms already.

    Raises
    ------
    DataError
        If an instant does not fit into 64 bits of ms, or a text is not ISO 8601.
    """
    arrow_type = column.type
    if pa.types.is_string(arrow_type):
        column = _parsed(column, name, row_name)
        arrow_type = column.type
    if pa.types.is_timestamp(arrow_type):
        values = _view(column, np.int64)
        if arrow_type.unit == "ms":
            return values
        if arrow_type.unit == "s":
            _check_range(column, values, -_MAX_SECONDS, _MAX_SECONDS, name, row_name)
            return values * 1000
        return values // _PER_MS[arrow_type.unit]
    if pa.types.is_date32(arrow_type):
        return _view(column, np.int32).astype(np.int64) * _DAY_MS
    if pa.types.is_date64(arrow_type):
        return _view(column, np.int64)
    values = _view(column, np.dtype(str(arrow_type)).type)  # Arrow and numpy name integers alike
    if values.dtype == np.uint64:
        _check_range(column, values, 0, 2**63 - 1, name, row_name)
    return values.astype(np.int64, copy=False)


def _view(column: pa.Array, dtype: type) -> npt.NDArray[np.int64]:
    """View the values, nulls included; ``to_numpy`` would turn integers with nulls into floats."""
    size = np.dtype(dtype).itemsize
    values: npt.NDArray[np.int64] = (
        np.frombuffer(column.buffers()[1], dtype, len(column), column.offset * size)
        if len(column)
        else np.empty(0, dtype)
    )
    return values


def _check_range(
    column: pa.Array,
    values: npt.NDArray[np.int64],
    least: int,
    greatest: int,
    name: str,
    row_name: Callable[[int], str],
) -> None:
    if len(values) == 0 or (least <= int(values.min()) and int(values.max()) <= greatest):
        return
    outside = (values < least) | (values > greatest)
    outside &= column.is_valid().to_numpy(zero_copy_only=False)
    if outside.any():
        row = int(outside.argmax())
        raise DataError(
            f"{row_name(row)}: time column {name!r} holds {int(values[row])} ({column.type}), which does "
            "not fit "
            "into 64 bits of milliseconds; repair the value, or filter the row out before"
        )


def _parsed(column: pa.Array, name: str, row_name: Callable[[int], str]) -> pa.Array:
    for target in (
        pa.timestamp("us", "UTC"),
        pa.timestamp("us"),
        pa.timestamp("ns", "UTC"),
        pa.timestamp("ns"),
    ):
        try:
            return column.cast(target)
        except pa.ArrowInvalid:
            continue
    # The batch mixes forms, or holds something else: the slow way finds the row.
    parsed: list[int | None] = []
    for row, text in enumerate(column):
        if not text.is_valid:
            parsed.append(None)
            continue
        for target in (pa.timestamp("ns", "UTC"), pa.timestamp("ns")):
            try:
                parsed.append(text.cast(target).value)
                break
            except pa.ArrowInvalid:
                continue
        else:
            raise DataError(
                f"{row_name(row)}: time column {name!r} holds {text.as_py()!r}, which is not ISO 8601 "
                "(such as 2001-01-31T12:00:00.250Z); repair the value, or convert the column first"
            )
    return pa.array(parsed, pa.int64()).cast(pa.timestamp("ns"))
