"""What a Python worker does around a task that was shipped to it."""

from collections.abc import Iterator

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from flinkcore.spark.shipping import tasks
from flinkcore.spark.shipping.tasks import KEPT_BYTES, ShippedTask, pickled_for_tasks


class Pool:
    """Arrow's memory, of which tasks have used `most` at once."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self.released = 0

    def max_memory(self) -> int | None:
        return self._most

    def release_unused(self) -> None:
        self.released += 1


def same_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


@pytest.mark.parametrize(
    ("most", "released"),
    [(None, 0), (0, 0), (KEPT_BYTES, 0), (KEPT_BYTES + 1, 1)],
    ids=["not counted", "none", "as much as is kept", "more"],
)
def test_worker_returns_memory_after_a_task_only_if_arrow_has_used_more_than_is_kept(
    most: int | None, released: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = Pool(most)
    batch = pa.record_batch({"n": [1]})
    given = ShippedTask(pickled_for_tasks(same_batches))(iter([batch, batch]))
    monkeypatch.setattr(tasks.pa, "default_memory_pool", lambda: pool)
    assert next(given) is batch
    assert pool.released == 0
    assert list(given) == [batch]
    assert pool.released == released
