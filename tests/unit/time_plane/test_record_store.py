"""Records of many chunks, in memory or in a file, and the merge that reads them."""

import os
import tempfile
from contextlib import closing
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models.timed_log import Log, chunk_times, steps
from models.watermarks import Event

from flinkcore._native.packed_steps import StepPacker
from flinkcore._native.timeline import SplitMerge, SplitRecords
from flinkcore.errors import ConfigurationError, DataError, SourceError
from flinkcore.time_plane.chunk_times import ChunkTimes
from flinkcore.time_plane.combine_times import MergeLimits, combine
from flinkcore.time_plane.generator_spec import GeneratorSpec
from flinkcore.time_plane.record_store import RecordStore

PARTS = [np.arange(6), np.empty(0, np.int64), np.arange(100, 104), np.arange(3)]


def read(store: RecordStore, number: int, length: int) -> list[int]:
    place = store.place(number)
    if not isinstance(place, int):
        return place.tolist()
    assert store.file is not None
    return np.frombuffer(os.pread(store.file, 8 * length, place), np.int64).tolist()


@pytest.mark.parametrize("memory_bytes", [0, 48, 50, 90, 1_000])
def test_records_are_where_the_store_says(memory_bytes: int) -> None:
    with closing(RecordStore(memory_bytes)) as store:
        numbers = [store.add(part) for part in PARTS]
        for number, part in zip(numbers, PARTS, strict=True):
            assert read(store, number, len(part)) == part.tolist()
        assert (store.file is None) == (memory_bytes >= 104)


def test_the_file_has_no_name_and_goes_with_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with closing(RecordStore(0)) as store:
        store.add(PARTS[0])
        assert store.file is not None
        assert os.fstat(store.file).st_size == 48
        assert os.listdir(tmp_path) == []
        descriptor = store.file
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


def test_a_chunk_that_fails_leaves_no_file_open(monkeypatch: pytest.MonkeyPatch) -> None:
    descriptors: list[int] = []
    add = RecordStore.add

    def noting(store: RecordStore, records: Any) -> int:
        number = add(store, records)
        assert store.file is not None
        descriptors.append(store.file)
        return number

    def chunks() -> Any:
        yield times_of(LOG)[0]
        raise KeyboardInterrupt

    monkeypatch.setattr(RecordStore, "add", noting)
    with pytest.raises(KeyboardInterrupt):
        combine(chunks(), GeneratorSpec(0), 100, limits=MergeLimits(record_bytes=0))
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptors[0])


def test_a_directory_without_room_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(SourceError, match=r"48 bytes so far, do not fit into .*missing: .* Let TMPDIR name"):
        RecordStore(0).add(PARTS[0])


LOG = Log([Event(at % 3, 40 * at, 30 * at) for at in range(300)], chunk_cuts={70, 200})


def times_of(log: Log) -> list[ChunkTimes]:
    return [
        chunk_times(batches, GeneratorSpec(0), 100, index=index) for index, batches in enumerate(log.chunks())
    ]


@pytest.mark.parametrize("window_emissions", [1, 2, 3, 10, 100_000])
@pytest.mark.parametrize("buffer_bytes", [0, 64, 4_000])
def test_windows_and_buffers_of_any_size_give_the_same_timeline(
    window_emissions: int, buffer_bytes: int
) -> None:
    limits = MergeLimits(2_000, buffer_bytes, window_emissions)
    assert steps(LOG.time_plane(GeneratorSpec(0), 100, limits=limits)) == steps(
        LOG.time_plane(GeneratorSpec(0), 100)
    )


def columns(n_records: int = 2, events: int = 5) -> list[np.ndarray]:
    same = [np.array([value]) for value in (events, 0, 300, 9, n_records)]
    return [np.zeros(1, np.int32), *same]


def merge_of(records: SplitRecords, **changed: Any) -> SplitMerge:
    settings = {"interval_ms": 100, "first_arrival_ms": 0, "last_arrival_ms": 300}
    return SplitMerge(records, StepPacker(), out_of_orderness_ms=0, idleness_ms=None, **(settings | changed))


@pytest.mark.parametrize(
    ("last_arrival_ms", "record"),
    [(301, [200 * 2, 5]), (2**63 - 100, [200 * 2, 5]), (300, [301 * 2, 5]), (300, [200 * 2 + 1, 301])],
)
@pytest.mark.parametrize("interval_ms", [1, 1000])
def test_what_lies_after_the_last_arrival_is_refused(
    last_arrival_ms: int, record: list[int], interval_ms: int
) -> None:
    records = SplitRecords(splits=1, interval_ms=1)
    events, first, last, greatest, n_records = (np.array([value]) for value in (5, 0, last_arrival_ms, 9, 1))
    records.add_chunk(np.zeros(1, np.int32), events, first, last, greatest, n_records, np.array(record))
    with pytest.raises(DataError, match=r"split number 0 .* after the last arrival of the log, 300 ms"):
        merge_of(records, interval_ms=interval_ms).run()


@pytest.mark.parametrize("ends", [(301, 300), (0, 2**61 + 1), (0, 2**63 - 1), (-(2**61) - 1, 300)])
def test_arrivals_out_of_order_or_bounds_are_refused(ends: tuple[int, int]) -> None:
    with pytest.raises(ConfigurationError, match=f"arrivals from {ends[0]} to {ends[1]} ms"):
        merge_of(SplitRecords(splits=1, interval_ms=100), first_arrival_ms=ends[0], last_arrival_ms=ends[1])


def test_a_file_that_was_cut_short_is_told(tmp_path: Path) -> None:
    (tmp_path / "records").write_bytes(np.array([200, 5]).tobytes())
    with open(tmp_path / "records", "rb") as file:
        records = SplitRecords(splits=1, interval_ms=100, file=file.fileno())
        records.add_chunk(*columns(), 0)
        with pytest.raises(SourceError, match=r"temporary file of watermark steps .* cut short"):
            merge_of(records).run()


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with open(tmp_path / "records", "wb") as file:
        records = SplitRecords(splits=1, interval_ms=100, file=file.fileno())
        records.add_chunk(*columns(), 0)
        with pytest.raises(SourceError, match="cannot be read: Bad file descriptor"):
            merge_of(records).run()


@pytest.mark.parametrize(
    ("summary", "records", "message"),
    [
        (columns(1), np.zeros(4, np.int64), "4 numbers for 1 records: not two each"),
        (columns(1, events=0), np.zeros(2, np.int64), "1 records of 0 events"),
        (columns(-1), np.zeros(0, np.int64), "-1 records of 5 events"),
        ([*columns()[:-1], np.zeros(2, np.int64)], np.zeros(4, np.int64), "differ in length"),
        ([np.ones(1, np.int32), *columns()[1:]], np.zeros(4, np.int64), "split code 1, but there are 1"),
        (columns(), 0, "there is no file"),
    ],
)
def test_summaries_that_do_not_fit_together_are_refused(
    summary: list[np.ndarray], records: Any, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        SplitRecords(splits=1, interval_ms=100).add_chunk(*summary, records)
