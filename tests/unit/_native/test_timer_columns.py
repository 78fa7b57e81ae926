"""Timers as columns: what batch verbs and snapshots refuse, and that a snapshot brings back what was in the heap."""

import numpy as np
import pyarrow as pa
import pytest
from equipment.timer_batches import advance, delete, register, timer_batch
from models.timers import random_timers, rows

from flinkcore._native.timers import TimerHeap
from flinkcore.errors import ConfigurationError, DataError, SchemaError

# ---- bad columns ----


GOOD = timer_batch([1], [1], [1])


@pytest.mark.parametrize(
    ("name", "column", "message"),
    [
        ("timestamp_ms", pa.array([1.5]), "'timestamp_ms' of timers has Arrow format 'g'; it must be int64"),
        ("key", pa.array(["a"]), "'key' of timers has Arrow format 'u'"),
        ("key", pa.array([1], pa.uint64()), "'key' of timers has Arrow format 'L'"),
        ("key_group", pa.array([1]), "'key_group' of timers has Arrow format 'l'; it must be int32"),
        ("key_group", pa.array([None], pa.int32()), "'key_group' of timers has 1 nulls"),
        ("namespace", pa.array([None], pa.int64()), "'namespace' of timers has 1 nulls"),
    ],
)
def test_bad_columns_are_named_and_change_nothing(name: str, column: pa.Array, message: str) -> None:
    timers = TimerHeap()
    number = GOOD.schema.get_field_index(name)
    bad = GOOD.set_column(number, name, column)
    for verb in (timers.register, timers.delete):
        with pytest.raises(SchemaError, match=message):
            verb(bad)
        with pytest.raises(SchemaError, match=f"no column '{name}'"):
            verb(GOOD.drop_columns([name]))
    assert timers.is_empty()


def test_columns_come_in_any_order_and_from_any_place() -> None:
    timers = TimerHeap()
    batch = timer_batch([9, 1, 2, 3, 9], [9, 1, 2, 3, 9], [0, 1, 2, 3, 0], [9, 4, 5, 6, 9]).slice(1, 3)
    assert pa.array(timers.register(batch.select(batch.schema.names[::-1]))).to_pylist() == [True] * 3
    assert pa.record_batch(timers.advance(2)).equals(batch.slice(0, 2))
    data = b"x" + np.array([3], np.int64).tobytes()
    unaligned = pa.Array.from_buffers(pa.int64(), 1, [None, pa.py_buffer(data).slice(1)])
    one = pa.record_batch({"timestamp_ms": unaligned, "key": unaligned, "namespace": pa.array([6])})
    assert pa.array(timers.delete(one.append_column("key_group", pa.array([3], pa.int32())))).to_pylist() == [
        True
    ]
    timers._check()


def test_empty_batches_change_nothing() -> None:
    timers = TimerHeap()
    assert register(timers, [], [], []).tolist() == []
    assert delete(timers, [], [], [], []).tolist() == []
    timers._check()


# ---- snapshots ----


def test_a_snapshot_restores_timers_and_their_order() -> None:
    timers = TimerHeap()
    batch = random_timers(5_000)
    register(timers, *batch)
    advance(timers, -600)
    snapshot = pa.record_batch(timers.snapshot())
    assert snapshot.schema == pa.schema(
        [
            ("timestamp_ms", pa.int64()),
            ("key", pa.int64()),
            ("key_group", pa.int32()),
            ("namespace", pa.int64()),
        ]
    )
    restored = TimerHeap()
    assert restored.restore(snapshot) == snapshot.num_rows == timers.size()
    restored._check()
    assert rows(advance(restored, 2**63 - 1)) == rows(advance(timers, 2**63 - 1))


def test_rescaling_loses_and_doubles_nothing() -> None:
    timers = TimerHeap()
    batch = random_timers(5_000)
    register(timers, *batch)
    snapshot = pa.record_batch(timers.snapshot())
    parts = []
    for part_range in ((0, 20), (21, 99), (100, 127)):
        part = TimerHeap(128, part_range)
        part.restore(snapshot)
        part._check()
        assert part.size() == sum(part_range[0] <= group <= part_range[1] for group in batch[2].tolist())
        parts.append(part)
    merged = TimerHeap()
    for part in parts:
        merged.restore(pa.record_batch(part.snapshot()))
    merged._check()
    assert sorted(rows(merged.timers())) == sorted(rows(timers.timers()))
    one = TimerHeap()
    assert one.restore(snapshot, (7, 7)) == timers.subset_for_key_group(7).keys.size == one.size()


def test_restoring_keeps_what_is_already_registered() -> None:
    timers = TimerHeap()
    register(timers, [5, 5], [1, 2], [1, 2])
    snapshot = pa.record_batch(timers.snapshot())
    other = TimerHeap()
    other.add(5, 2, 2)
    assert other.restore(snapshot) == 1
    assert advance(other, 5).keys.tolist() == [2, 1]


def test_an_empty_snapshot_restores_nothing() -> None:
    timers = TimerHeap()
    snapshot = pa.record_batch(timers.snapshot())
    assert snapshot.num_rows == 0
    assert timers.restore(snapshot) == 0


def test_a_sliced_snapshot_restores_its_rows() -> None:
    timers = TimerHeap()
    register(timers, [1, 2, 3, 4], [1, 2, 3, 4], [0, 0, 0, 0])
    part = pa.record_batch(timers.snapshot()).slice(1, 2)
    restored = TimerHeap()
    restored.restore(part)
    assert restored.timers().keys.tolist() == [2, 3]


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"key": None}, SchemaError, "no column 'key'"),
        (
            {"key": pa.array([1, 2], pa.int32())},
            SchemaError,
            "'key' of timers has Arrow format 'i'; it must be int64",
        ),
        ({"key_group": pa.array([1, 2])}, SchemaError, "'key_group' .* must be int32"),
        ({"timestamp_ms": pa.array([1, None])}, SchemaError, "'timestamp_ms' of timers has 1 nulls"),
        ({"namespace": pa.array(["a", "b"])}, SchemaError, "'namespace' .* format 'u'"),
        (
            {"key_group": pa.array([1, 128], pa.int32())},
            DataError,
            "row 1 .*: key_group is 128, but max_parallelism is 128",
        ),
        ({"key_group": pa.array([-1, 0], pa.int32())}, DataError, "row 0 .*: key_group is -1"),
    ],
)
def test_a_bad_snapshot_is_refused_whole(
    changes: dict[str, pa.Array | None], error: type[Exception], message: str
) -> None:
    columns = {
        "timestamp_ms": pa.array([1, 2]),
        "key": pa.array([1, 2]),
        "key_group": pa.array([0, 1], pa.int32()),
        "namespace": pa.array([0, 0]),
    } | changes
    timers = TimerHeap()
    with pytest.raises(error, match=message):
        timers.restore(
            pa.record_batch({name: column for name, column in columns.items() if column is not None})
        )
    assert timers.is_empty()
    timers._check()


def test_a_snapshot_of_key_groups_that_are_not_here_is_refused() -> None:
    timers = TimerHeap(128, (10, 20))
    for verb in (timers.timers, timers.snapshot, lambda wanted: timers.restore(None, wanted)):
        with pytest.raises(
            ConfigurationError, match=r"key_group_range is \(5, 12\); .* this heap's range 10 to 20"
        ):
            verb((5, 12))


def test_what_is_no_record_batch_is_refused() -> None:
    with pytest.raises(TypeError, match="list has no __arrow_c_array__"):
        TimerHeap().restore([1, 2])  # type: ignore[arg-type]
