"""The time plane: from the times of chunks to the timeline, and back to the events of a chunk."""

import datetime
import pickle
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from models.timed_log import Log, chunk_times, steps, watermarks_of
from models.watermarks import Event

import flinkcore
from flinkcore._internal.arrow.column_ipc import write_columns
from flinkcore.errors import ConfigurationError, DataError, SchemaError, SourceError
from flinkcore.time_plane.chunk_times import ArrivalRate, ChunkCounts, ChunkTimes, position_bases
from flinkcore.time_plane.combine_times import combine
from flinkcore.time_plane.generator_spec import GeneratorSpec
from flinkcore.time_plane.log_records import LogRecords
from flinkcore.time_plane.record_blocks import DEFAULT_LIMITS
from flinkcore.time_plane.timeline import TimePlane

MIN_TIMESTAMP = -(2**63)
MAX_TIMESTAMP = 2**63 - 1
END = (MAX_TIMESTAMP, MAX_TIMESTAMP)


def plane_of(
    *rows: tuple[Any, ...],
    delay: int | None = 0,
    idleness: int | None = None,
    interval: int = 100,
    **log: Any,
) -> TimePlane:
    """Of rows (split, arrival, timestamp, kept)."""
    return Log([Event(*row) for row in rows], **log).time_plane(GeneratorSpec(delay, idleness), interval)


def test_a_watermark_is_emitted_at_the_tick_that_sees_the_event() -> None:
    plane = plane_of((None, 101, 50), (None, 200, 70), (None, 201, 90), (None, 420, 80), delay=10)
    #    arrival  101   200|201        |   420
    #    tick            200     300   400   (end)
    assert steps(plane) == [(200, 59), (300, 79), END]


def test_the_end_of_the_log_emits_what_is_pending() -> None:
    assert steps(plane_of((None, 101, 50), (None, 120, 70))) == [(120, 69), END]


def test_an_event_sees_the_last_step_before_its_arrival() -> None:
    plane = plane_of((None, 100, 50), (None, 101, 60), (None, 300, 70))
    assert steps(plane) == [(100, 49), (200, 59), (300, 69), END]
    assert watermarks_of(plane, [99, 100, 101, 200, 201, 301, MAX_TIMESTAMP]) == [
        MIN_TIMESTAMP, MIN_TIMESTAMP, 49, 49, 59, 69, 69
    ]  # fmt: skip


def test_without_an_interval_all_watermarks_come_at_the_end() -> None:
    assert steps(plane_of((0, 5, 7), (1, 900, 3), (0, 950, 9), interval=0)) == [(950, 2), END]


def test_splits_emit_in_split_order_at_one_tick() -> None:
    # At 200 the minimum is first that of split 1, still at 8, and then that of split 0.
    plane = plane_of((0, 10, 5), (1, 20, 9), (0, 110, 20), (1, 120, 30), (0, 350, 99))
    assert steps(plane) == [(100, 4), (200, 8), (200, 19), (350, 29), END]


def test_any_number_of_splits_emits_in_split_order() -> None:
    splits = range(5_000)
    rows = [(split, 50, split) for split in splits] + [
        (split, 150, 9_999 + split) for split in reversed(splits)
    ]
    plane = plane_of(*rows, (0, 201, 0))
    assert steps(plane) == [*((200 if at else 100, at - 1) for at in splits), (200, 9_998), END]


def test_a_lagging_split_holds_the_watermark_back() -> None:
    assert steps(plane_of(("b", 10, 1_000), ("b", 500, 2_000), ("a", 610, 5))) == [(610, 4), END]


def test_an_idle_split_no_longer_holds_the_watermark_back() -> None:
    # Split a is active at 100; its count starts at 200 and exceeds 150 at 400.
    rows = [("a", 10, 5), *(("b", at, at) for at in range(10, 700, 10))]
    plane = plane_of(*rows, idleness=150)
    assert steps(plane)[:3] == [(100, 4), (400, 299), (400, 399)]
    assert plane.splits.idle_spans(0) == [(400, 690)]
    assert plane.splits.idle_spans(1) == []


def test_a_split_without_events_is_idle_once_the_timeout_is_over_from_the_first_tick_on() -> None:
    rows = [("a", 1_990, 5, False), *(("b", at, at) for at in range(1_010, 2_000, 10))]
    plane = plane_of(*rows, idleness=150)
    assert plane.split_values == ["a", "b"]
    assert plane.splits.idle_spans(0) == [(1_300, 1_990)]
    assert steps(plane)[0] == (1_300, 1_199)
    assert steps(plane_of(*rows))[0] == END


def test_an_event_that_does_not_advance_the_watermark_leaves_its_split_idle() -> None:
    busy = [("b", at, at) for at in range(10, 2_000, 10)]
    behind = plane_of(("a", 10, 500), ("a", 1_210, 400), *busy, idleness=150)
    ahead = plane_of(("a", 10, 500), ("a", 1_210, 600), *busy, idleness=150)
    assert behind.splits.idle_spans(0) == [(400, 1_990)]
    assert ahead.splits.idle_spans(0) == [(400, 1_300), (1_600, 1_990)]


def test_arrivals_that_go_back_count_as_the_maximum_before_them_across_chunks() -> None:
    rows = [(None, 950, 1), (None, 40, 30), (None, 60, 70), (None, 1_010, 5), (None, 1_300, 5)]
    whole = plane_of(*rows)
    assert steps(whole) == [(1_000, 69), END]
    for cut in range(1, 5):
        cut_plane = plane_of(*rows, chunk_cuts={cut})
        assert steps(cut_plane) == steps(whole)
        assert cut_plane.splits.regressions.tolist() == [1]


def test_without_watermarks_there_is_only_the_end() -> None:
    plane = plane_of((0, 10, 5), (1, 5_000, 7), delay=None, idleness=100)
    assert steps(plane) == [END]
    assert plane.splits.idle_spans(0) == [(400, 5_000)]


def test_an_empty_log_has_only_the_end() -> None:
    plane = Log([]).time_plane(GeneratorSpec(0), 200)
    assert (steps(plane), plane.split_values, plane.events) == ([END], [], 0)


def test_a_log_without_a_kept_event_has_only_the_end() -> None:
    plane = plane_of((0, 10, 5, False))
    assert (steps(plane), plane.split_values, plane.events) == ([END], [0], 0)
    assert plane.splits.rows.tolist() == [1]
    assert plane.splits.final_watermark_ms.tolist() == [MIN_TIMESTAMP]


def test_timestamps_at_the_ends_of_64_bits_do_not_wrap_around() -> None:
    plane = plane_of(
        (None, 10, MIN_TIMESTAMP), (None, 110, MIN_TIMESTAMP + 50), (None, 210, MAX_TIMESTAMP), delay=40
    )
    assert steps(plane) == [(200, MIN_TIMESTAMP + 9), (210, MAX_TIMESTAMP - 41), END]


NO_RECORDS = LogRecords(200, DEFAULT_LIMITS)


@pytest.mark.parametrize(
    "splits",
    [
        [-5, 3, 20, 100],
        ["B", "a", "ab", "é", "\U0001f600"],
        [None, "", "x"],
        [b"\x00", b"a", b"\xff"],
        [datetime.date(2001, 2, 3), datetime.date(2024, 1, 1)],
        [datetime.datetime(2001, 2, 3, 4, 5, 6), datetime.datetime(2024, 1, 1)],
        [1.5, 2.25],
    ],
)
def test_splits_are_ordered_by_value(splits: list[Any]) -> None:
    plane = combine([ChunkTimes.from_ipc(times_of(splits[::-1]).to_ipc())], NO_RECORDS, GeneratorSpec(0), 200)
    assert pickle.loads(pickle.dumps(plane)).split_values == splits


def test_what_is_suspicious_of_files_comes_in_log_order_from_the_tasks() -> None:
    chunks = [
        replace(times_of(["a"], index), warnings=[f"file {index}"] * (index != 1)) for index in (2, 0, 1)
    ]
    plane = combine(
        [ChunkTimes.from_ipc(chunk.to_ipc()) for chunk in chunks], NO_RECORDS, GeneratorSpec(0), 200
    )
    assert plane.warnings == ("file 0", "file 2")


def times_of(splits: list[Any], index: int = 0) -> ChunkTimes:
    (batches,) = Log([Event(split, 0, 0) for split in splits]).chunks()
    return chunk_times(batches, GeneratorSpec(0), 200, index=index)


def test_splits_of_different_types_are_refused() -> None:
    with pytest.raises(SchemaError, match="values of different types"):
        combine([times_of([1]), times_of(["x"], index=1)], NO_RECORDS, GeneratorSpec(0), 200)


def test_splits_that_are_no_arrow_column_are_refused() -> None:
    with pytest.raises(SchemaError, match="split_values cannot be an Arrow column"):
        ChunkCounts(0, {1: 1, "x": 1}).to_ipc()


def test_arrivals_by_rate_count_on_from_the_chunks_before() -> None:
    rows = [Event(None, None, at, at % 3 > 0) for at in range(10)]
    rate = ArrivalRate(rate=3.0, start_ms=-1_000)
    log = Log(rows, chunk_cuts={4})
    plane = log.time_plane(GeneratorSpec(0), 200, rate)
    clock = plane.enter(1)
    (batch,) = log.chunks()[1]
    arrivals, splits, positions = clock.order(batch)
    assert positions.tolist() == [4, 5, 7, 8]
    assert arrivals.tolist() == [333, 666, 1_333, 1_666]
    assert splits.tolist() == [0, 0, 0, 0]


def test_arrivals_by_rate_need_the_positions_of_the_chunks_before() -> None:
    chunks = Log([Event(None, None, at) for at in range(6)], chunk_cuts={3}).chunks()
    rate = ArrivalRate()
    times = [
        chunk_times(batches, GeneratorSpec(0), 200, index=i, rate=rate) for i, batches in enumerate(chunks)
    ]
    with pytest.raises(DataError, match=r"arrivals of chunk 1 were not counted on .* position_bases"):
        combine(times, NO_RECORDS, GeneratorSpec(0), 200, rate=rate)


def test_a_log_without_arrivals_needs_a_rate() -> None:
    (batches,) = Log([Event(None, None, 1)]).chunks()
    with pytest.raises(ConfigurationError, match="no arrival column, and no rate"):
        chunk_times(batches, GeneratorSpec(0), 200, index=0)


@pytest.mark.parametrize("rate", [0.0, -1.0, float("inf"), float("nan")])
def test_a_rate_that_is_not_positive_is_refused(rate: float) -> None:
    (batches,) = Log([Event(None, None, 1)]).chunks()
    with pytest.raises(
        ConfigurationError, match="rate must be a number of records per second greater than zero"
    ):
        chunk_times(batches, GeneratorSpec(0), 200, index=0, rate=ArrivalRate(rate))


def test_arrivals_by_rate_beyond_the_bounds_are_refused() -> None:
    (batches,) = Log([Event(None, None, 1), Event(None, None, 2)]).chunks()
    with pytest.raises(
        ConfigurationError, match=r"rate=1e-300 has event 1 \(from 0\) of its split arrive further than"
    ):
        chunk_times(batches, GeneratorSpec(0), 200, index=0, rate=ArrivalRate(1e-300))
    with pytest.raises(ConfigurationError, match="arrival of the first record"):
        chunk_times(batches, GeneratorSpec(0), 200, index=0, rate=ArrivalRate(1.0, 2**62))


def test_position_bases_are_the_rows_of_the_chunks_before() -> None:
    counts = [ChunkCounts(2, {"a": 5}), ChunkCounts(0, {"a": 3, "b": 1}), ChunkCounts(1, {"b": 4})]
    assert position_bases(counts) == {0: {"a": 0, "b": 0}, 1: {"b": 1}, 2: {"a": 3}}


def test_a_chunk_that_comes_twice_is_refused() -> None:
    with pytest.raises(DataError, match="chunk 0 comes twice"):
        combine([times_of([1]), times_of([1])], NO_RECORDS, GeneratorSpec(0), 200)


def test_a_chunk_that_was_not_combined_cannot_be_entered() -> None:
    with pytest.raises(DataError, match="chunk 7 had no part in this timeline"):
        plane_of((None, 1, 1)).enter(7)


def test_a_split_that_appears_only_in_the_second_pass_is_named() -> None:
    plane = plane_of(("a", 1, 1), ("b", 2, 2), chunk_cuts={1})
    ((batch,), _) = Log([Event("b", 1, 1), Event("c", 1, 1)], chunk_cuts={1}).chunks()
    with pytest.raises(SourceError, match=r"split 'b' of chunk 0 was not there .* log has changed"):
        plane.enter(0).order(batch)


def test_a_clock_entered_twice_starts_anew() -> None:
    log = Log([Event(None, 900, 1), Event(None, 100, 2)], chunk_cuts={1})
    plane = log.time_plane(GeneratorSpec(0), 200)
    for _ in range(2):
        clock = plane.enter(1)
        assert clock.order(log.chunks()[1][0])[0].tolist() == [900]


def test_an_arrival_that_goes_back_is_no_floor() -> None:
    rows = [Event(None, arrival, 1) for arrival in (100, 200, 300, 5, 400)]
    floors = Log(rows, batch_cuts={1, 2, 3, 4}).time_plane(GeneratorSpec(0), 200).floors
    assert [floors.after(0, rows_read) for rows_read in range(6)] == [100, 200, 300, 300, 400, None]


def test_each_chunk_has_floors_and_ends_of_its_own() -> None:
    rows = [Event(None, arrival, 1) for arrival in (100, 300, 50, 400, 500)]
    plane = Log(rows, chunk_cuts={2, 4}, batch_cuts={1, 3}).time_plane(GeneratorSpec(0), 200)
    assert [plane.floors.after(0, rows_read) for rows_read in range(3)] == [100, 300, None]
    assert [plane.floors.after(1, rows_read) for rows_read in range(3)] == [50, 400, None]
    first_ms, last_ms = plane.arrivals_of(np.array([2, 0, 1]))
    # No event of the second chunk is read before the last one of the first.
    assert (first_ms.tolist(), last_ms.tolist()) == ([500, 100, 300], [500, 300, 400])


def test_a_time_plane_travels_as_pickle() -> None:
    plane = plane_of(("a", 1, 1), ("b", 950, 2), idleness=100)
    copy = pickle.loads(pickle.dumps(plane))
    assert steps(copy) == steps(plane)
    assert copy.splits.idle_spans(0) == plane.splits.idle_spans(0)


@pytest.mark.parametrize("data", [b"", b"nonsense", bytes(64)])
def test_bytes_that_are_something_else_are_refused(data: bytes) -> None:
    with pytest.raises(DataError, match=f"these {len(data)} bytes are not ChunkTimes"):
        ChunkTimes.from_ipc(data)


def test_a_stream_of_another_kind_is_refused() -> None:
    with pytest.raises(DataError, match="are not ChunkTimes of this version"):
        ChunkTimes.from_ipc(write_columns("ChunkCounts", {}, {"rows": [1]}))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([("x", pa.int64())])) as writer:
        writer.write_batch(pa.record_batch({"x": [1]}))
    with pytest.raises(DataError, match="are not ChunkCounts"):
        ChunkCounts.from_ipc(bytes(sink.getvalue()))


def test_a_generator_out_of_range_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="out-of-orderness"):
        GeneratorSpec(-1)
    with pytest.raises(ConfigurationError, match="idle timeout"):
        GeneratorSpec(0, 0)


def test_only_what_the_driver_does_unpacks_all_steps() -> None:
    """Tasks have as many steps as the driver; they read one block at a time."""
    package = Path(flinkcore.__file__).parent
    uses = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if re.search(r"timeline\.blocks\(|steps\.block\(", path.read_text())
    }
    # These join ranges that were merged apart, unite the watermarks of several logs, and find causes of late events.
    assert uses == {
        "time_plane/splits_merge.py",
        "time_plane/timeline.py",
        "time_plane/stream_watermarks.py",
        "columnar/results/late_events.py",
    }
