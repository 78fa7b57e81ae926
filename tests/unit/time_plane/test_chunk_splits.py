"""Splits of the chunks of a log, and the ticks from which their records are read."""

from collections.abc import Sequence

import numpy as np
import pytest

from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore.errors import DataError
from flinkcore.time_plane.chunk_splits import ChunkSplits
from flinkcore.time_plane.record_blocks import RecordBlock


def int32s(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def parts(splits: Sequence[int], first_tick_ms: Sequence[int]) -> RecordBlock:
    ticks, none = np.array(first_tick_ms, np.int64), np.empty(0, np.int64)
    return RecordBlock(int32s(*splits), ticks, ticks, ticks, np.zeros_like(ticks), none, none)


SPLITS = ChunkSplits.of(
    [(-1, int32s(4), None), (2, int32s(3, 1), np.array([700, MIN_TIMESTAMP])), (5, int32s(0, 1, 2), None)]
)


def test_blocks_get_the_numbers_of_splits_in_the_log() -> None:
    assert SPLITS.in_log(2, parts([1, 0, 1], [0, 0, 0])).split.tolist() == [1, 3, 1]
    assert SPLITS.in_log(5, parts([2, 0], [0, 0])).split.tolist() == [2, 0]
    assert SPLITS.in_log(-1, parts([0], [0])).split.tolist() == [4]


def test_events_before_the_end_of_an_earlier_chunk_are_read_at_the_floor() -> None:
    assert SPLITS.read_ms(2, parts([0, 1, 0], [500, 500, 900])).tolist() == [700, 500, 900]
    assert SPLITS.read_ms(5, parts([0, 1], [500, 900])).tolist() == [500, 900]
    assert SPLITS.last_floors(np.array([5, 2, -1, 2])).tolist() == [MIN_TIMESTAMP, 700, MIN_TIMESTAMP, 700]


def test_they_are_the_same_after_travelling() -> None:
    sent = ChunkSplits.from_ipc(SPLITS.to_ipc())
    assert {name: column.tolist() for name, column in vars(sent).items()} == {
        name: column.tolist() for name, column in vars(SPLITS).items()
    }


def test_a_log_without_chunks_has_none() -> None:
    none = np.empty(0, np.int64)
    assert ChunkSplits.of([]).last_floors(none).tolist() == []


def test_other_bytes_are_refused() -> None:
    with pytest.raises(DataError, match="3 bytes are not ChunkSplits"):
        ChunkSplits.from_ipc(b"abc")
