"""Times of rows without positions, as one chunk after the other tells them."""

import numpy as np

from flinkcore.time_plane.record_blocks import RecordBlock
from flinkcore.time_plane.unordered_times import UnorderedSummary


def test_times_of_a_batch_stay_when_their_memory_is_used_again() -> None:
    summary = UnorderedSummary(interval_ms=1, window_ticks=1 << 20)
    summary.reserve(2)
    splits, memory = np.arange(2, dtype=np.int32), np.empty((2, 4), np.int64)
    for at in (4, 1_000):
        memory[:] = at, at, at + 500, at + 500
        summary.update(splits, np.array([0, 2, 4]), *memory)
    block = RecordBlock(*summary.take())
    assert block.n_records.tolist() == [2, 2]
    assert block.tick_ms.tolist() == [4, 1_000, 504, 1_500]
    assert block.timestamp_ms.tolist() == [4, 1_000, 504, 1_500]
    assert summary.finish()["events"].tolist() == [4, 4]
