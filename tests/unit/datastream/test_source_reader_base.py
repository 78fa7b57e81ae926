"""A reader made of a split reader and an emitter, and the collection source, after Flink's SourceReaderBaseTest."""

from collections import deque
from collections.abc import Collection, Sequence
from typing import Any

import pytest
from equipment.scripted_reader import Split
from equipment.timestamped_source import (
    TimestampedSource,
    TimestampedSourceReader,
    TimestampedSplit,
)

from flinkcore.common import Watermark
from flinkcore.datastream.connectors.base import (
    Boundedness,
    InputStatus,
    SourceOutput,
    SourceReader,
    SourceReaderContext,
)
from flinkcore.datastream.connectors.source_reader_base import RecordsBySplits, SourceReaderBase, SplitReader
from flinkcore.errors import ConfigurationError, LifecycleError, UnsupportedOperationError

MORE, NOTHING, END = InputStatus.MORE_AVAILABLE, InputStatus.NOTHING_AVAILABLE, InputStatus.END_OF_INPUT


class RecordingReaderOutput:
    def __init__(self, split: str = "", collected: list[Any] | None = None) -> None:
        self.split = split
        self.collected: list[Any] = [] if collected is None else collected

    def collect(self, record: Any, timestamp_ms: int | None = None) -> None:
        self.collected.append((self.split, record))

    def emit_watermark(self, watermark: Watermark) -> None: ...
    def mark_idle(self) -> None: ...
    def mark_active(self) -> None: ...

    def create_output_for_split(self, split_id: str) -> "RecordingReaderOutput":
        self.collected.append(("create", split_id))
        return RecordingReaderOutput(split_id, self.collected)

    def release_output_for_split(self, split_id: str) -> None:
        self.collected.append(("release", split_id))

    def taken(self) -> list[Any]:
        taken = list(self.collected)
        self.collected.clear()
        return taken


class ScriptedSplitReader(SplitReader[str, Split]):
    def __init__(self, *fetches: RecordsBySplits[str]) -> None:
        self.fetches = deque(fetches)
        self.closed = False

    def fetch(self) -> RecordsBySplits[str]:
        return self.fetches.popleft() if self.fetches else RecordsBySplits()

    def handle_splits_additions(self, splits: Sequence[Split]) -> None: ...

    def close(self) -> None:
        self.closed = True


class CountingEmitter:
    def emit_record(self, element: str, output: SourceOutput[Any], split_state: list[str]) -> None:
        output.collect(element)
        split_state.append(element)


class Reader(SourceReaderBase[str, Split, list[str]]):
    def __init__(self, *fetches: RecordsBySplits[str]) -> None:
        self.split_reader = ScriptedSplitReader(*fetches)
        self.finished: list[str] = []
        super().__init__(self.split_reader, CountingEmitter())

    def initialized_state(self, split: Split) -> list[str]:
        return []

    def to_split_type(self, split_id: str, split_state: list[str]) -> Split:
        return Split(f"{split_id} after {len(split_state)}")

    def on_split_finished(self, finished_splits: Collection[str]) -> None:
        self.finished += finished_splits


def reader_of(*fetches: RecordsBySplits[str]) -> tuple[Reader, RecordingReaderOutput]:
    reader = Reader(*fetches)
    reader.add_splits([Split("a"), Split("b")])
    return reader, RecordingReaderOutput()


def test_each_poll_emits_one_element_to_the_output_of_its_split() -> None:
    reader, output = reader_of(RecordsBySplits({"a": ["1", "2"], "b": ["3"]}))
    assert [reader.poll_next(output) for _ in range(4)] == [MORE, MORE, MORE, NOTHING]
    assert output.taken() == [("create", "a"), ("a", "1"), ("a", "2"), ("create", "b"), ("b", "3")]


def test_the_output_of_a_split_is_made_once() -> None:
    reader, output = reader_of(RecordsBySplits({"a": ["1"]}), RecordsBySplits({"a": ["2"]}))
    reader.poll_next(output)
    reader.poll_next(output)
    assert output.taken() == [("create", "a"), ("a", "1"), ("a", "2")]


def test_splits_that_ended_are_released_after_the_records_of_the_fetch() -> None:
    reader, output = reader_of(RecordsBySplits({"a": ["1"], "b": ["2"]}, ["a"]))
    reader.poll_next(output)
    reader.poll_next(output)
    output.taken()
    assert reader.poll_next(output) is NOTHING
    assert output.taken() == [("release", "a")]
    assert reader.finished == ["a"]
    assert reader.snapshot_state(1) == [Split("b after 1")]


def test_the_reader_ends_when_all_splits_have_and_no_more_will_come() -> None:
    reader, output = reader_of(RecordsBySplits({}, ["a", "b"]))
    assert reader.poll_next(output) is NOTHING
    reader.add_splits([Split("c")])
    reader.notify_no_more_splits()
    assert reader.poll_next(output) is NOTHING
    reader.split_reader.fetches.append(RecordsBySplits({"c": ["4"]}, ["c"]))
    assert [reader.poll_next(output) for _ in range(2)] == [MORE, END]


def test_a_fetch_of_splits_without_elements_is_a_fetch_of_nothing() -> None:
    reader, output = reader_of(RecordsBySplits({"a": [], "b": []}), RecordsBySplits({"a": [], "b": ["1"]}))
    assert [reader.poll_next(output) for _ in range(2)] == [NOTHING, MORE]
    assert output.taken()[-1] == ("b", "1")


def test_a_snapshot_counts_what_was_emitted_not_what_was_fetched() -> None:
    reader, output = reader_of(RecordsBySplits({"a": ["1", "2"]}))
    reader.poll_next(output)
    assert reader.snapshot_state(1) == [Split("a after 1"), Split("b after 0")]


@pytest.mark.parametrize("fetch", [RecordsBySplits({"c": ["1"]}), RecordsBySplits({}, ["c"])])
def test_records_of_an_unknown_split_are_an_error(fetch: RecordsBySplits[str]) -> None:
    reader, output = reader_of(fetch)
    with pytest.raises(LifecycleError, match=r"ScriptedSplitReader gave .* 'c'"):
        reader.poll_next(output)


def test_a_split_reader_without_pauses_says_so() -> None:
    reader, _ = reader_of()
    with pytest.raises(UnsupportedOperationError, match="ScriptedSplitReader cannot pause"):
        reader.pause_or_resume_splits(["a"], [])


def test_a_reader_without_pauses_says_so() -> None:
    class Minimal(TimestampedSourceReader):
        pause_or_resume_splits = SourceReader.pause_or_resume_splits

    with pytest.raises(UnsupportedOperationError, match="Minimal cannot pause"):
        Minimal().pause_or_resume_splits(["a"], [])


def test_closing_the_reader_closes_the_split_reader() -> None:
    reader, _ = reader_of()
    reader.close()
    assert reader.split_reader.closed


def collection_reader(source: TimestampedSource) -> TimestampedSourceReader:
    return source.create_reader(SourceReaderContext(lambda: 0))


def test_splits_of_a_collection_source_take_turns_but_for_those_that_are_paused() -> None:
    source = TimestampedSource(
        {"a": [(n, None) for n in range(4)], "b": iter([(n, None) for n in range(10, 13)])}
    )
    assert source.boundedness is Boundedness.BOUNDED
    reader, output = collection_reader(source), RecordingReaderOutput()
    reader.start()
    reader.add_splits(source.create_splits())
    reader.notify_no_more_splits()
    reader.poll_next(output)
    reader.poll_next(output)
    reader.pause_or_resume_splits(["a"], [])
    assert [reader.poll_next(output) for _ in range(3)] == [MORE, MORE, NOTHING]
    assert [record for split, record in output.taken() if split in "ab"] == [0, 10, 11, 12]
    reader.pause_or_resume_splits([], ["a"])
    assert [reader.poll_next(output) for _ in range(4)] == [MORE, MORE, MORE, END]
    assert output.taken() == [("a", 1), ("a", 2), ("a", 3), ("release", "a")]


def test_a_collection_is_read_on_from_a_snapshot() -> None:
    source = TimestampedSource({"a": [("x", 1), ("y", 2), ("z", 3)]})
    reader, output = collection_reader(source), RecordingReaderOutput()
    reader.add_splits(source.create_splits())
    reader.poll_next(output)
    (split,) = reader.snapshot_state(1)
    assert split == TimestampedSplit("a", [("x", 1), ("y", 2), ("z", 3)], 1)
    reader.close()
    restored, output = collection_reader(source), RecordingReaderOutput()
    restored.add_splits([split])
    restored.notify_no_more_splits()
    while restored.poll_next(output) is not END:
        pass
    assert output.taken() == [("create", "a"), ("a", "y"), ("a", "z"), ("release", "a")]


def test_a_collection_source_needs_a_split() -> None:
    with pytest.raises(ConfigurationError, match="at least one split"):
        TimestampedSource({})
