from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

_Int32s = npt.NDArray[np.int32]
_Int64s = npt.NDArray[np.int64]
_PositionsT = TypeVar("_PositionsT", _Int64s, None)
_TimestampsT = TypeVar("_TimestampsT", _Int64s, None)

MAX_ARRIVAL_MS: Final[int]

def integer_codes(
    values: npt.NDArray[np.integer[Any]], most_range: int
) -> tuple[_Int32s, _Int64s] | None: ...
def split_positions(codes: _Int32s, next_position: _Int64s) -> _Int64s: ...
def rows_by_split(
    codes: _Int32s,
    n_codes: int,
    arrivals_ms: _Int64s,
    timestamps_ms: _TimestampsT,
    there: _Int64s | None,
) -> tuple[_Int64s, _Int64s, _TimestampsT]: ...
def mix_words(numbers: npt.NDArray[np.uint64], words: npt.NDArray[np.uint64]) -> None: ...
def mix_bytes(numbers: npt.NDArray[np.uint64], bounds: _Int32s, data: npt.NDArray[np.uint8]) -> None: ...
def mix_lists(
    numbers: npt.NDArray[np.uint64], starts: _Int64s, lengths: _Int64s, items: npt.NDArray[np.uint64]
) -> None: ...
def arrivals_by_rate(
    positions: _Int64s, codes: _Int32s, bases: _Int64s, arrival_start_ms: int, rate: float
) -> _Int64s: ...
def running_maxima(
    arrivals_ms: _Int64s, offsets: _Int64s, places: _Int32s, running_arrivals_ms: _Int64s
) -> _Int64s: ...
def add_to_checksum(
    checksum: npt.NDArray[np.uint64],
    timestamps_ms: _Int64s,
    arrivals_ms: _Int64s,
    codes: _Int32s,
    splits: _Int32s,
) -> None: ...
def order_events(
    arrivals_ms: _Int64s,
    positions: _PositionsT,
    codes: _Int32s,
    places: _Int32s,
    splits: _Int32s,
    bases: _Int64s,
    running_arrivals_ms: _Int64s,
) -> tuple[_Int64s, _Int32s, _PositionsT]: ...
def packed_integers(values: _Int64s) -> npt.NDArray[np.uint8]: ...
def unpacked_integers(packed: npt.NDArray[np.uint8], values: _Int64s) -> None: ...
def hold_back(
    arrivals_ms: _Int64s,
    splits: _Int32s,
    offsets: _Int64s,
    from_ms: _Int64s,
    to_ms: _Int64s,
    read_ms: _Int64s,
) -> None: ...
