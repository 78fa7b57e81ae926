"""Values that aggregates over changes keep: those that no key holds are freed, and few are shown at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from equipment.small_batches import read_in_batches_of

from flinkcore._internal.values.memory_limits import BATCH_BYTES
from flinkcore.columnar.stages.kept_values_column import KeptValuesColumn
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.datastream.aggregates import collect

FIELD = pa.field("v", pa.int64())
ROWS = pa.record_batch({"v": pa.array([1, 2], pa.int64())})
KEYS = np.zeros(2, np.uint32)
NO, YES = np.zeros(2, np.uint8), np.ones(2, np.uint8)


@pytest.mark.parametrize("emits", [False, True])
def test_values_that_are_withdrawn_are_freed_whether_or_not_there_are_results(emits: bool) -> None:
    column = KeptValuesColumn("collect", FIELD, pa.list_(FIELD.type), dead_values=4)
    column.process(ROWS, KEYS, NO, emits)
    for _ in range(20):
        column.process(ROWS, KEYS, NO, emits)
        column.process(ROWS, KEYS, YES, emits)
        if emits:
            column.take()
    assert len(column._values) <= 2 * 2 + 4
    column.emit(KEYS[:1])
    assert column.take().to_pylist() == [[1, 2]]


def test_events_fit_whose_results_have_few_values() -> None:
    column = KeptValuesColumn("collect", FIELD, pa.list_(FIELD.type), shown_bytes=16 * 12)
    column.process(ROWS, KEYS, NO, False)
    # Key 0 shows 2 values before, and then 3, 3 and 4; key 1 none, and then 1.
    ids = np.array([0, 1, 0, 0, 0], np.uint32)
    retracts = np.array([0, 0, 1, 0, 0], np.uint8)
    assert column.fitting(ids, retracts) == 3
    assert column.fitting(ids[:2], retracts[:2]) == 2
    column.process(ROWS, KEYS, NO, False)
    for _ in range(5):
        column.process(ROWS, KEYS, NO, False)
    assert column.fitting(ids, retracts) == 1
    assert KeptValuesColumn("last", FIELD, FIELD.type, shown_bytes=1).fitting(ids, retracts) == 5


def test_the_first_values_have_the_size_of_the_rows_that_come() -> None:
    column = KeptValuesColumn("collect", FIELD, pa.list_(FIELD.type), shown_bytes=16 * 12)
    ids = np.zeros(20, np.uint32)
    rows = pa.record_batch([pa.array(range(20), FIELD.type)], schema=pa.schema([FIELD]))
    # 1 + 2 + 3 + 4 values of 8 bytes each, and as much for each number.
    assert column.fitting(ids, rows=rows) == 4


@pytest.mark.parametrize("changes", [False, True])
def test_a_call_shows_no_more_values_than_batches_have_bytes(
    changes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = 60
    table = pa.table(
        {
            "k": [number % 3 for number in range(n)],
            "v": pa.array(range(n), pa.int64()),
            "row_kind": ["+I"] * n,
            "ts": pa.array(range(n), pa.int64()),
        }
    )
    shown: list[int] = []
    take = KeptValuesColumn.take

    def watched(column: KeptValuesColumn) -> pa.Array:
        values = take(column)
        shown.append(len(values.flatten()))
        return values

    monkeypatch.setattr(KeptValuesColumn, "take", watched)
    found = {}
    for n_bytes in (1, 2_000, BATCH_BYTES):
        env = StreamExecutionEnvironment().set_parallelism(1)
        read_in_batches_of(n, env, n_bytes)
        log = env.from_event_log(table, timestamp="ts", timestamp_unit="ms").select("k", "v", "row_kind")
        shown.clear()
        found[n_bytes] = log.key_by("k").aggregate(l=collect("v"), changes=changes).to_arrow().to_pylist()
        # A single event shows the values of its key, at most 20, before and after it.
        assert max(shown) <= max(39, n_bytes // 16)
    assert found[1] == found[2_000] == found[BATCH_BYTES]
    assert len(found[1]) == (2 * n - 3 if changes else 3)
