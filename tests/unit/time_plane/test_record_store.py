"""Records of many chunks, in memory or in a file, and the merge that reads them."""

import os
import tempfile
from contextlib import closing
from io import FileIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models.timed_log import Log, chunk_times, steps
from models.watermarks import Event

from flinkcore._native.packed_steps import StepPacker
from flinkcore._native.timeline import SplitMerge, SplitRecords
from flinkcore.errors import ConfigurationError, DataError, SourceError
from flinkcore.time_plane.chunk_splits import ChunkSplits
from flinkcore.time_plane.chunk_times import ChunkTimesBuilder
from flinkcore.time_plane.generator_spec import GeneratorSpec
from flinkcore.time_plane.log_records import LogRecords
from flinkcore.time_plane.record_blocks import RecordBlock, RecordLimits
from flinkcore.time_plane.record_store import RecordStore

PARTS = [np.arange(6), np.empty(0, np.int64), np.arange(100, 104), np.arange(3)]


def read(store: RecordStore, number: int, length: int) -> list[int]:
    return store.values(number, 0, length).tolist()


@pytest.mark.parametrize("memory_bytes", [0, 48, 50, 90, 1_000])
def test_records_are_where_the_store_says(memory_bytes: int) -> None:
    with closing(RecordStore(memory_bytes)) as store:
        numbers = [store.add(part) for part in PARTS]
        for number, part in zip(numbers, PARTS, strict=True):
            assert read(store, number, len(part)) == part.tolist()
        assert (store._file is not None) == (memory_bytes < 104)


def test_the_file_has_no_name_and_goes_with_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with closing(RecordStore(0)) as store:
        store.add(PARTS[0])
        assert store._file is not None
        descriptor = store._file.fileno()
        assert os.fstat(descriptor).st_size == 48
        assert os.listdir(tmp_path) == []
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_writes_that_take_only_a_part_are_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    class ShortWrites(FileIO):
        def write(self, data: Any) -> int:
            return super().write(data[:10])

    real = tempfile.TemporaryFile

    def short_file(**_: Any) -> ShortWrites:
        with real() as file:
            return ShortWrites(os.dup(file.fileno()), "r+b")

    monkeypatch.setattr(tempfile, "TemporaryFile", short_file)
    with closing(RecordStore(0)) as store:
        numbers = [store.add(part) for part in PARTS]
        assert [read(store, number, len(part)) for number, part in zip(numbers, PARTS, strict=True)] == [
            part.tolist() for part in PARTS
        ]


def test_a_directory_without_room_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(SourceError, match=r"48 bytes so far, do not fit into .*missing: .* Let TMPDIR name"):
        RecordStore(0).add(PARTS[0])


LOG = Log([Event(at % 3, 40 * at, 30 * at) for at in range(300)], chunk_cuts={70, 200})


@pytest.mark.parametrize("window_emissions", [1, 2, 3, 10, 100_000])
@pytest.mark.parametrize("range_bytes", [0, 1_000, 4_000])
@pytest.mark.parametrize("window_ticks", [1, 2, 7])
def test_windows_and_ranges_of_any_size_give_the_same_timeline(
    window_emissions: int, range_bytes: int, window_ticks: int
) -> None:
    limits = RecordLimits(window_ticks, 500, 300, 2_000, range_bytes, window_emissions=window_emissions)
    assert steps(LOG.time_plane(GeneratorSpec(0), 100, limits=limits)) == steps(
        LOG.time_plane(GeneratorSpec(0), 100)
    )


def test_only_the_records_of_a_range_are_read_at_once() -> None:
    limits = RecordLimits(4, 0, 0, 0, 500)
    with closing(LogRecords(100, limits)) as records:
        for index, batches in enumerate(LOG.chunks()):
            chunk_times(batches, GeneratorSpec(0), 100, index=index, records=records, limits=limits)
        assert records._store._file is not None
        ranges = list(
            records.ranges(ChunkSplits.of((index, np.arange(3, dtype=np.int32), None) for index in range(3)))
        )
    assert len(ranges) > 10
    assert max(sum(block.nbytes for block in each.blocks) for each in ranges) < 1_500
    for before, after in pairwise(ranges):
        assert before.until_ms is not None
        assert all(block.span_ms[1] < before.until_ms for block in before.blocks)
        assert all(block.span_ms[0] >= before.until_ms for block in after.blocks if len(block))
    assert ranges[-1].until_ms is None


def test_a_block_is_the_same_after_packing() -> None:
    blocks = []
    builder = ChunkTimesBuilder(GeneratorSpec(0, 250), 100, index=0, records=blocks.append)
    for batch in LOG.chunks()[0]:
        builder.add(batch)
    builder.finish()
    (block,) = blocks
    packed = block.packed(100)
    for before, after in zip(vars(block).values(), vars(RecordBlock.unpacked(packed)).values(), strict=True):
        assert before.tolist() == after.tolist()
    assert RecordBlock.bytes_of_packed(packed) == block.nbytes


@pytest.mark.parametrize(
    "change", [lambda packed: packed[:-1], lambda packed: packed[:5], lambda packed: -packed]
)
def test_bytes_that_are_not_a_block_are_refused(change: Any) -> None:
    one = np.ones(1, np.int64)
    packed = RecordBlock(one.astype(np.int32), one, one, one, one, one, one).packed(1)
    with pytest.raises(DataError, match="not a block of records"):
        RecordBlock.unpacked(change(packed))


def columns(n_records: int = 2, first: int = 0, last: int = 300) -> list[np.ndarray]:
    """Columns of a part, for `add_parts`, without its records."""
    return [np.zeros(1, np.int32), *(np.array([value]) for value in (first, last, 9, n_records))]


def merge_of(records: SplitRecords, **changed: Any) -> SplitMerge:
    settings = {"interval_ms": 100, "first_arrival_ms": 0, "last_arrival_ms": 300}
    return SplitMerge(records, StepPacker(), out_of_orderness_ms=0, idleness_ms=None, **(settings | changed))


@pytest.mark.parametrize(("last_ms", "tick_ms"), [(301, 200), (2**63 - 100, 200), (300, 301)])
@pytest.mark.parametrize("interval_ms", [1, 1000])
def test_what_lies_after_the_last_arrival_is_refused(last_ms: int, tick_ms: int, interval_ms: int) -> None:
    records = SplitRecords(splits=1, interval_ms=1)
    records.add_parts(*columns(1, 0, last_ms), np.array([tick_ms]), np.array([5]))
    with pytest.raises(DataError, match=r"split number 0 .* after the last arrival of the log, 300 ms"):
        merge_of(records, interval_ms=interval_ms).run()


@pytest.mark.parametrize("ends", [(301, 300), (0, 2**61 + 1), (0, 2**63 - 1), (-(2**61) - 1, 300)])
def test_arrivals_out_of_order_or_bounds_are_refused(ends: tuple[int, int]) -> None:
    with pytest.raises(ConfigurationError, match=f"arrivals from {ends[0]} to {ends[1]} ms"):
        merge_of(SplitRecords(splits=1, interval_ms=100), first_arrival_ms=ends[0], last_arrival_ms=ends[1])


@pytest.mark.parametrize(
    ("part", "n_records", "message"),
    [
        (columns(1), 2, "2 ticks and 2 timestamps for 1 records"),
        (columns(3), 2, "3 records in a part of a chunk's summary, of 2 in all"),
        (columns(-1), 0, "-1 records in a part"),
        ([*columns()[:-1], np.zeros(2, np.int64)], 2, "differ in length"),
        ([np.ones(1, np.int32), *columns()[1:]], 2, "split code 1, but there are 1"),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(
    part: list[np.ndarray], n_records: int, message: str
) -> None:
    records = np.zeros(n_records, np.int64)
    with pytest.raises(DataError, match=message):
        SplitRecords(splits=1, interval_ms=100).add_parts(*part, records, records)
