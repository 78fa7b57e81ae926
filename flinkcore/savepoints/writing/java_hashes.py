"""Java's hash codes of keys by their types, which decide about their key groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._native.arrow import RecordBatch
from flinkcore._native.binary_rows import SizedColumn
from flinkcore._native.key_groups import hash_codes
from flinkcore._native.key_groups import key_groups as groups_of_integers
from flinkcore.errors import ConfigurationError
from flinkcore.savepoints.serializers import basic, times
from flinkcore.savepoints.serializers.basic import big_decimal_parts
from flinkcore.savepoints.serializers.composite import RowSerializer, TupleSerializer
from flinkcore.savepoints.serializers.pojo import PojoSerializer
from flinkcore.savepoints.serializers.serializer import NothingSerializer, StateSerializer
from flinkcore.savepoints.serializers.sql import SqlSerializer

Codes = npt.NDArray[np.int32]


def key_groups(keys: pa.Array, serializer: StateSerializer, max_parallelism: int) -> Codes:
    """Return the key groups of keys, as Flink's ``KeyGroupRangeAssignment`` assigns them.

    Parameters
    ----------
    keys : pyarrow.Array
        In the type in which the serializer's values are read.
    serializer : StateSerializer
    max_parallelism : int

    Raises
    ------
    ConfigurationError
        If the hash code of such keys is not known.
    """
    # An Integer is its own hash code.
    return groups_of_integers(pa.array(java_hash_codes(keys, serializer)), max_parallelism)


def java_hash_codes(values: pa.Array, serializer: StateSerializer) -> Codes:
    """Return ``hashCode()`` of each value, and 0 for null.

    Raises
    ------
    ConfigurationError
        If the hash code of such values is not known.
    """
    if serializer in _NATIVE:
        return hash_codes(values)
    if serializer in _OTHERS:
        return _where_valid(values, _OTHERS[serializer](values))
    if isinstance(serializer, TupleSerializer):
        codes = np.zeros(len(values), np.int32)
        for number, part in enumerate(serializer.nested):
            codes = codes * np.int32(31) + java_hash_codes(_field(values, number), part)
        return codes
    if isinstance(serializer, RowSerializer):
        return _row_codes(values, serializer)
    if isinstance(serializer, PojoSerializer) and serializer.hash_fields is not None:
        codes = np.full(len(values), serializer.hash_start, np.int32)
        for name in serializer.hash_fields:
            (number,) = (i for i, (field, _) in enumerate(serializer.fields) if field == name)
            codes = codes * np.int32(31) + java_hash_codes(
                _field(values, number), serializer.fields[number][1]
            )
        return _where_valid(values, codes)
    if isinstance(serializer, SqlSerializer):
        column: SizedColumn = serializer.column(False)
        column.bind_batch(RecordBatch(pa.RecordBatch.from_arrays([values], ["key"]), any_type=True), 0)
        return column.hash_codes(len(values))
    if isinstance(serializer, NothingSerializer):
        return np.zeros(len(values), np.int32)
    remedy = (
        ". Say in which order its hashCode combines the fields: pojo(..., hash_fields=[...])"
        if isinstance(serializer, PojoSerializer)
        else ""
    )
    raise ConfigurationError(f"the hash code of keys of the type {serializer.name} is not known{remedy}")


def _field(values: pa.Array, number: int) -> pa.Array:
    return pc.struct_field(values, [number])


def _where_valid(values: pa.Array, codes: Codes) -> Codes:
    if values.null_count:
        codes[values.is_null().to_numpy(zero_copy_only=False)] = 0
    return codes


def _row_codes(values: pa.Array, row: RowSerializer) -> Codes:
    """Return hash codes of rows, as ``RowUtils.deepHashCodeRow`` computes them: a null field counts 0."""
    kinds = np.zeros(len(values), np.int32)
    if row.has_kind:
        order = {"+I": 0, "-U": 1, "+U": 2, "-D": 3}
        kinds = np.array([order[kind] for kind in _field(values, len(row.nested)).to_pylist()], np.int32)
    codes = np.int32(1) + kinds
    for number, part in enumerate(row.nested):
        column = _field(values, number)
        there = column.is_valid().to_numpy(zero_copy_only=False)
        codes = codes * np.int32(31) + (np.int32(31) + java_hash_codes(column, part)) * there
    return codes


def _folded(words: npt.NDArray[np.int64]) -> Codes:
    return (words ^ (words >> 32)).astype(np.int32)


def _milliseconds(values: pa.Array) -> Codes:
    return _folded(values.cast(pa.int64()).fill_null(0).to_numpy())


def _date_times(values: pa.Array) -> Codes:
    nanos = values.cast(pa.int64()).fill_null(0).to_numpy()
    days = nanos // 86_400_000_000_000
    dates = hash_codes(pa.array(days, pa.int64()).cast(pa.int32()).cast(pa.date32()))
    times_of_day = pa.array(nanos - days * 86_400_000_000_000, pa.int64()).cast(pa.time64("ns"))
    return dates ^ hash_codes(times_of_day)


def _timestamps(values: pa.Array) -> Codes:
    # java.sql.Timestamp inherits the hash code of its milliseconds.
    return _folded(values.cast(pa.int64()).fill_null(0).to_numpy() // 1_000_000)


def _int(number: int) -> int:
    return (number + 0x80000000) % 0x100000000 - 0x80000000


def _big_integer_code(number: int) -> int:
    magnitude, code = abs(number), 0
    n_words = (magnitude.bit_length() + 31) // 32
    for shift in range(n_words - 1, -1, -1):
        code = _int(31 * code + (magnitude >> 32 * shift & 0xFFFFFFFF))
    return _int(code if number >= 0 else -code)


def _big_decimal_code(text: str) -> int:
    # A value of 63 bits is hashed in its own way, with the same result as that of a BigInteger.
    unscaled, scale = big_decimal_parts(text)
    return _int(31 * _big_integer_code(unscaled) + scale)


def _by_texts(code: Callable[[str], int]) -> Callable[[pa.Array], Codes]:
    return lambda values: np.array(
        [0 if text is None else code(text) for text in values.to_pylist()], np.int32
    )


_NATIVE: Final = frozenset(
    {
        *(basic.LONG, basic.INT, basic.SHORT, basic.BYTE, basic.BOOLEAN, basic.FLOAT, basic.DOUBLE),
        *(basic.STRING, basic.CHAR, basic.BYTES, times.LOCAL_DATE, times.LOCAL_TIME, times.INSTANT),
    }
)
_OTHERS: Final[dict[StateSerializer, Callable[[pa.Array], Codes]]] = {
    basic.BIG_INTEGER: _by_texts(lambda text: _big_integer_code(int(text))),
    basic.BIG_DECIMAL: _by_texts(_big_decimal_code),
    times.LOCAL_DATE_TIME: _date_times,
    times.SQL_DATE: _milliseconds,
    times.SQL_TIME: _milliseconds,
    times.SQL_TIMESTAMP: _timestamps,
}
