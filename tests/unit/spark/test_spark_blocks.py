"""Blocks of the exchange: what goes into the shuffle comes out of it."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspark")

from flinkcore.errors import DataError
from flinkcore.spark.exchange import blocks
from flinkcore.spark.exchange.blocks import (
    Block,
    BlockKind,
    BlockPlace,
    BlockWriter,
    read_blocks,
    read_events,
    read_side_rows,
    side_rows,
)
from flinkcore.spark.exchange.narrow import NarrowIntegers, narrow_batch, wide_batch
from flinkcore.spark.exchange.ordered_events import OrderedEvents
from flinkcore.spark.exchange.partitioning import partition_slots, spark_hash
from flinkcore.time_plane.total_order import LogEvents

INT64 = st.integers(-(2**63), 2**63 - 1)
NEARBY = st.builds(
    lambda base, steps: [base + step for step in steps],
    st.integers(-(2**62), 2**62),
    st.lists(st.integers(0, 70_000), min_size=1, max_size=30),
)


def place(kind: BlockKind, sender: int = 0, first_arrival: int = 0) -> BlockPlace:
    return BlockPlace(first_arrival, kind, 0, sender, 0)


def taken(writer: BlockWriter) -> pa.RecordBatch:
    (batch,) = writer.take()
    return batch


@settings(deadline=None)
@given(st.one_of(NEARBY, NEARBY.map(sorted), st.lists(INT64, min_size=1, max_size=30)))
def test_narrowed_integers_come_back(values: list[int]) -> None:
    array = np.array(values, np.int64)
    narrow = NarrowIntegers.of(array)
    assert narrow.values(len(values)).tolist() == values


@pytest.mark.parametrize(
    ("values", "width"),
    [
        ([7, 7, 7], None),
        ([2**40, 2**40 + 255], np.uint8),
        ([2**40 + 300, 2**40], np.uint16),
        ([0, 2**31, 1], np.uint32),
        ([0, 2**33, 1], np.uint64),
        ([0, 200, 300, 300, 500, 700], np.uint8),
        ([-(2**63), 2**63 - 1], np.uint64),
        ([-(2**63), -(2**63) + 1], np.uint8),
    ],
)
def test_integers_take_as_few_bytes_as_they_can(values: list[int], width: Any) -> None:
    steps = NarrowIntegers.of(np.array(values, np.int64)).steps
    assert (None if steps is None else steps.dtype.type) is width


def test_a_narrowed_batch_comes_back_with_its_types() -> None:
    numbers = [10**12, 10**12 + 7, 10**12 + 300]
    batch = pa.record_batch(
        {
            "integers": pa.array(numbers),
            "equal": pa.array([5, 5, 5]),
            "instants": pa.array(numbers, pa.timestamp("us", "Europe/Berlin")),
            "with a null": pa.array([1, None, 3]),
            "texts": ["a", "b", None],
            "floats": [0.5, -0.0, float("inf")],
            "lists": [[1], [], None],
        }
    )
    narrow = narrow_batch(batch)
    assert wide_batch(narrow) == batch
    assert [str(each) for each in narrow.schema.types[:3]] == ["uint16", "null", "uint16"]


def events_of(columns: dict[str, pa.Array]) -> LogEvents:
    batch = pa.record_batch(columns)
    n_rows = batch.num_rows
    return LogEvents(
        batch,
        np.arange(n_rows)[::-1] * 1000 - 5,
        np.arange(n_rows) * 40_000,
        (np.arange(n_rows) % 3).astype(np.int32),
        np.arange(n_rows) // 3,
    )


def round_trip(batch: pa.RecordBatch) -> list[Block]:
    # As Spark gives rows to Python: through an Arrow stream of its own.
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return list(read_blocks(iter(pa.ipc.open_stream(sink.getvalue()))))


@pytest.mark.parametrize("rows", [1, 2, 1000])
def test_events_of_all_types_come_back(rows: int) -> None:
    at = [i * 1000 - 3 for i in range(rows)]
    events = events_of(
        {
            "int64": pa.array(at, pa.int64()),
            "with nulls": pa.array([None if i % 2 else i for i in range(rows)], pa.int64()),
            "int8": pa.array([i % 100 for i in range(rows)], pa.int8()),
            "uint64": pa.array([2**64 - 1 - i for i in range(rows)], pa.uint64()),
            "timestamp": pa.array(at, pa.timestamp("us", "Europe/Berlin")),
            "naive": pa.array(at, pa.timestamp("ns")),
            "date64": pa.array([i * 86_400_000 for i in range(rows)], pa.date64()),
            "duration": pa.array(at, pa.duration("ms")),
            "time": pa.array([i * 7 for i in range(rows)], pa.time64("us")),
            "text": pa.array([f"é{i % 5}" for i in range(rows)]),
            "flag": pa.array([i % 3 == 0 for i in range(rows)]),
            "double": pa.array([i / 3 for i in range(rows)]),
            "list": pa.array([[i, None] for i in range(rows)]),
        }
    )
    writer = BlockWriter(range(4))
    writer.add_rows(3, place(BlockKind.EVENTS, 17, 40_000), OrderedEvents(events).packed(0, rows))
    # A slice, whose arrays have offsets.
    half = OrderedEvents(events.slice(rows // 2, rows)).packed(0, rows - rows // 2)
    writer.add_rows(2, place(BlockKind.EVENTS), half)
    backwards = np.arange(rows, dtype=np.uint32)[::-1].copy()
    writer.add_rows(1, place(BlockKind.EVENTS), OrderedEvents(events, backwards).packed(rows // 2, rows))
    first, second, third = round_trip(taken(writer))
    assert (first.partition, first.place) == (3, place(BlockKind.EVENTS, 17, 40_000))
    assert (second.partition, third.partition) == (2, 1)
    for block, expected in (
        (first, events),
        (second, events.slice(rows // 2, rows)),
        (third, events.take(backwards[rows // 2 :])),
    ):
        back = read_events(block, events.batch.schema)
        assert back.batch.equals(expected.batch)
        back.batch.validate(full=True)
        for name in ("timestamps", "arrivals", "splits", "positions"):
            found, wanted = getattr(back, name), getattr(expected, name)
            assert found.dtype == wanted.dtype
            assert found.tolist() == wanted.tolist()


def test_the_bytes_of_a_range_are_those_of_its_own_columns() -> None:
    events = events_of({"text": pa.array(["a" * 1000, "b"]), "number": pa.array([1, 2])})
    swapped = OrderedEvents(events, np.array([1, 0], np.uint32))
    assert swapped.column_bytes(0, 1) < 100
    assert swapped.column_bytes(1, 2) > 1000
    assert (swapped.arrival(0), swapped.arrival(1)) == (40_000, 0)


def test_blocks_sort_by_arrival_kind_input_sender_and_number() -> None:
    numbers = 0, 1, 255, 256, 2**32 - 1
    places = [
        BlockPlace(arrival, kind, input_number, sender, number)
        for arrival in (-(2**63), -256, -1, 0, 1, 255, 2**63 - 1)
        for kind in BlockKind
        for input_number in (0, 1)
        for sender in numbers
        for number in numbers
    ]
    assert sorted(places) == places
    packed = [place.packed() for place in places]
    assert packed == sorted(packed)
    assert [BlockPlace.unpacked(place) for place in packed] == places


def test_manifests_and_side_rows_come_back() -> None:
    rejected = pa.record_batch({"a": pa.array([None, "x"]), "reason": pa.array(["null", "null"])})
    writer = BlockWriter((10, 20))
    writer.add_rows(1, place(BlockKind.SIDE_ROWS), side_rows("bad", rejected))
    writer.add_payload(0, place(BlockKind.MANIFEST), b"{}")
    batch = taken(writer)
    assert batch.column("slot").to_pylist() == [20, 10]
    rows, manifest = round_trip(batch)
    assert rows.place.kind is BlockKind.SIDE_ROWS
    assert read_side_rows(rows) == ("bad", [rejected])
    assert manifest.place.kind is BlockKind.MANIFEST
    assert manifest.payload.to_pybytes() == b"{}"


def test_blocks_that_one_column_cannot_hold_become_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.record_batch({"text": ["x" * 1000]})
    block = BlockWriter((0,))
    block.add_rows(0, place(BlockKind.SIDE_ROWS), side_rows("late", rows))
    monkeypatch.setattr(blocks, "MOST_BLOCK_BYTES", 3 * block.nbytes + 7)
    writer = BlockWriter((0,))
    for chunk in range(7):
        writer.add_rows(0, place(BlockKind.SIDE_ROWS, chunk), side_rows("late", rows))
    batches = list(writer.take())
    assert [batch.num_rows for batch in batches] == [3, 3, 1]
    assert [block.place.sender for block in read_blocks(iter(batches))] == list(range(7))
    for batch in batches:
        batch.validate(full=True)
    assert [read_side_rows(each) for each in read_blocks(iter(batches))] == [("late", [rows])] * 7


def test_a_block_that_no_column_can_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "MOST_BLOCK_BYTES", 1000)
    with pytest.raises(DataError, match=r"partition 3 has 1,\d\d\d bytes.* at most 1,000.*select\(\)"):
        BlockWriter(range(4)).add_rows(3, place(BlockKind.EVENTS), pa.record_batch({"text": ["x" * 1000]}))


def test_writer_begins_anew_after_take() -> None:
    writer = BlockWriter((0,))
    writer.add_payload(0, place(BlockKind.MANIFEST, 1), b"{}")
    assert taken(writer).num_rows == 1
    assert list(writer.take()) == []
    writer.add_payload(0, place(BlockKind.MANIFEST, 2), b"{}")
    assert [block.place.sender for block in round_trip(taken(writer))] == [2]


def test_hash_is_that_of_spark() -> None:
    # SELECT hash(id) on Spark 3.5 and 4.3.
    known = {-1: -1604776387, 0: 933211791, 1: -559580957, 42: 29417773, 999: -975655824}
    assert {value: spark_hash(value) for value in known} == known


@pytest.mark.parametrize("partitions", [1, 2, 7, 128])
def test_slots_reach_every_partition(partitions: int) -> None:
    slots = partition_slots(partitions, by_id=False)
    assert [spark_hash(slot) % partitions for slot in slots] == list(range(partitions))
    assert list(partition_slots(partitions, by_id=True)) == list(range(partitions))
