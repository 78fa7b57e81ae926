"""Times of rows without positions, as one chunk after the other tells them."""

import numpy as np

from flinkcore.time_plane.unordered_times import UnorderedSummary


def test_times_of_a_batch_stay_when_their_memory_is_used_again() -> None:
    summary = UnorderedSummary(interval_ms=1)
    summary.reserve(2)
    splits, memory = np.arange(2, dtype=np.int32), np.empty((2, 4), np.int64)
    for at in (4, 1_000):
        memory[:] = at, at, at + 500, at + 500
        summary.update(splits, np.array([0, 2, 4]), *memory)
    times, records = summary.finish()
    assert times["n_records"].tolist() == [2, 2]
    assert records.reshape(2, 2, 2).tolist() == [[[8, 4], [2_000, 1_000]], [[1_008, 504], [3_000, 1_500]]]
