"""State of aggregates as Arrow columns of a checkpoint: see `flinkcore._native.accumulator_state`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._native.accumulator_state import accumulator_parts, restore_accumulator_parts, touched_entries
from flinkcore._native.aggregates import Accumulators

_DECIMALS: Final = pa.binary(24)
_NUMBERS: Final = {
    "words": pa.uint64(),
    "counts": pa.int64(),
    "keys": pa.uint64(),
    "states": pa.uint8(),
    "deviations": pa.float64(),
}


def accumulator_columns(accumulators: Accumulators, entries: npt.NDArray[np.uint32]) -> dict[str, pa.Array]:
    """Return what aggregates hold for entries: `touched`, and the parts of each aggregate as NUMBER.PART.

    Parameters
    ----------
    accumulators : Accumulators
    entries : numpy.ndarray of uint32, shape (n,)
    """
    columns = {"touched": pa.array(touched_entries(accumulators, entries))}
    for number, parts in enumerate(accumulator_parts(accumulators, entries)):
        columns |= {f"{number}.{part}": _to_arrow(part, values) for part, values in parts.items()}
    return columns


def restore_accumulators(
    accumulators: Accumulators,
    entries: npt.NDArray[np.uint32],
    touched: npt.NDArray[np.uint8],
    batch: pa.RecordBatch,
) -> None:
    """Let empty entries hold what columns of a batch say, as `accumulator_columns` gives them.

    Parameters
    ----------
    accumulators : Accumulators
        Accumulators of the same aggregates.
    entries : numpy.ndarray of uint32, shape (n,)
    touched : numpy.ndarray of uint8, shape (n,)
    batch : pyarrow.RecordBatch
        With the parts of the aggregates, and maybe other columns.

    Raises
    ------
    SchemaError
        If the parts are not those of the aggregates.
    """
    parts: dict[int, dict[str, Any]] = {}
    for name in batch.schema.names:
        number, _, part = name.partition(".")
        if number.isdecimal():
            parts.setdefault(int(number), {})[part] = _of_arrow(part, batch.column(name))
    of_all = [parts[number] for number in sorted(parts)]
    restore_accumulator_parts(accumulators, entries, touched, of_all)


def _to_arrow(part: str, values: Any) -> pa.Array:
    if part in _NUMBERS:
        return pa.array(values, _NUMBERS[part])
    if part in ("strings", "key_strings"):
        return _binary(*values)
    if part == "decimals":
        return pa.Array.from_buffers(_DECIMALS, len(values), [None, pa.py_buffer(values)])
    if part in ("word_set", "set_counts"):
        ends, words = values
        return _lists(ends, pa.array(words))
    if part == "byte_set":
        ends, *strings = values
        return _lists(ends, _binary(*strings))
    ends, *elements, nulls = values
    is_null = pa.array(nulls.astype(np.bool_))
    if len(elements) == 1:
        return _lists(ends, pa.array(elements[0], pa.uint64(), mask=nulls.astype(np.bool_)))
    return _lists(ends, pc.if_else(is_null, pa.scalar(None, pa.large_binary()), _binary(*elements)))


def _lists(ends: npt.NDArray[np.int64], elements: pa.Array) -> pa.Array:
    return pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), elements)


def _binary(ends: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> pa.Array:
    return pa.Array.from_buffers(
        pa.large_binary(), len(ends) - 1, [None, pa.py_buffer(ends), pa.py_buffer(data)]
    )


def _of_arrow(part: str, column: pa.Array) -> Any:
    if part in _NUMBERS:
        return column.to_numpy(zero_copy_only=False)
    if part in ("strings", "key_strings"):
        return _values(column)
    if part == "decimals":
        words = np.frombuffer(
            column.buffers()[1], np.uint64, 3 * len(column), column.offset * _DECIMALS.byte_width
        )
        return words.reshape(-1, 3)
    ends = column.offsets.to_numpy(zero_copy_only=False)
    elements = column.flatten()
    own = _values(elements)
    nulls = elements.is_null().to_numpy(zero_copy_only=False).astype(np.uint8)
    found = (ends - ends[0] if len(ends) else ends, *own)
    return (*found, nulls) if part == "list" else found


def _values(values: pa.Array) -> tuple[Any, ...]:
    """Words, or where byte strings end, and the bytes; nulls are 0 or empty."""
    if pa.types.is_integer(values.type):
        return (values.fill_null(0).to_numpy(zero_copy_only=False),)
    filled = values.fill_null(b"")
    _, offsets, data = filled.buffers()
    if len(filled) == 0 or offsets is None:
        return np.zeros(1, np.int64), np.empty(0, np.uint8)
    ends = np.frombuffer(offsets, np.int64)[filled.offset : filled.offset + len(filled) + 1]
    held = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return ends - ends[0], held[ends[0] : ends[-1]]
