"""Key groups of whole columns against the same arithmetic in numpy; `FLINKCORE_BENCH_EVENTS` sets their rows (1 M)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.sizes import size
from flinkcore._native.key_groups import key_groups

MAX_PARALLELISM = 128
MOST_ROWS = size(1_000_000)
ROWS = [MOST_ROWS // 100, MOST_ROWS]


def _longs(rows: int) -> pa.Array:
    return pa.array(np.random.default_rng(7).integers(-(2**62), 2**62, rows))


def _strings(rows: int) -> pa.Array:
    return pa.array([f"user-{key:08}" for key in np.random.default_rng(7).integers(0, 10**8, rows)])


def _composites(rows: int) -> pa.Array:
    return pa.StructArray.from_arrays([_longs(rows), _strings(rows)], names=["tenant", "user"])


def _murmur_groups(code: np.ndarray) -> np.ndarray:
    """Key groups of uint32 hash codes: Flink's `MathUtils.murmurHash`, then the remainder."""
    code = code * np.uint32(0xCC9E2D51)
    code = code << np.uint32(15) | code >> np.uint32(17)
    code = code * np.uint32(0x1B873593)
    code = code << np.uint32(13) | code >> np.uint32(19)
    code = code * np.uint32(5) + np.uint32(0xE6546B64)
    code = code ^ np.uint32(4)
    code = (code ^ code >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    code = (code ^ code >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    code = (code ^ code >> np.uint32(16)).view(np.int32).astype(np.int64)
    return (np.abs(code) * (code != -(2**31)) % MAX_PARALLELISM).astype(np.int32)


def _numpy_long_codes(array: pa.Array) -> np.ndarray:
    bits = array.to_numpy().view(np.uint64)
    return (bits ^ bits >> np.uint64(32)).astype(np.uint32)


def _numpy_string_codes(array: pa.Array) -> np.ndarray:
    """Java's `String.hashCode` for ASCII text of one length: a column of characters at a time."""
    rows, width = len(array), len(array[0].as_py())
    text = np.frombuffer(array.buffers()[2], np.uint8, count=rows * width).reshape(rows, width)
    code = np.zeros(len(array), np.uint32)
    for position in range(text.shape[1]):
        code = code * np.uint32(31) + text[:, position]
    return code


def _numpy_composite_codes(array: pa.Array) -> np.ndarray:
    """Flink's `RowUtils.deepHashCodeRow` of rows without nulls."""
    code = np.ones(len(array), np.uint32)
    for codes in (_numpy_long_codes(array.field(0)), _numpy_string_codes(array.field(1))):
        code = code * np.uint32(31) + (np.uint32(31) + codes)
    return code


KEYS: dict[str, tuple[Callable[[int], pa.Array], Callable[[pa.Array], np.ndarray]]] = {
    "int64": (_longs, _numpy_long_codes),
    "string": (_strings, _numpy_string_codes),
    "composite": (_composites, _numpy_composite_codes),
}

_numpy_seconds: dict[tuple[str, int], float] = {}


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("side", ["numpy", "native"])
def test_key_groups(benchmark: Any, kind: str, rows: int, side: str) -> None:
    make, numpy_codes = KEYS[kind]
    keys = make(rows)
    functions: dict[str, Callable[[], np.ndarray]] = {
        "numpy": lambda: _murmur_groups(numpy_codes(keys)),
        "native": lambda: key_groups(keys, MAX_PARALLELISM),
    }
    benchmark.group = f"key groups of {kind} keys"
    benchmark(functions[side])
    assert np.array_equal(functions["native"](), functions["numpy"]())
    seconds = benchmark.stats.stats.min
    benchmark.extra_info["ns_per_row"] = seconds / rows * 1e9
    if side == "numpy":
        _numpy_seconds[kind, rows] = seconds
    elif (kind, rows) in _numpy_seconds:
        benchmark.extra_info["times_faster_than_numpy"] = _numpy_seconds[kind, rows] / seconds
