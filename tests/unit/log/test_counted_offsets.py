"""Offsets that are counted from the names of files are sure, or the files are refused."""

from pathlib import Path

import pytest
from equipment.topic_dumps import builder, collected, lines
from hypothesis import given
from hypothesis import strategies as st

from flinkcore.datastream.connectors.kafka import KafkaTopicPartition
from flinkcore.errors import SourceError
from flinkcore.log.topics.counted_offsets import CountedOffsets, refuse_turns


def clicks(path: Path) -> list[str]:
    return collected(builder("clicks").build(), clicks=path)


def test_hours_with_records_in_turn_are_refused(tmp_path: Path) -> None:
    lines(tmp_path / "hour=00" / "clicks+0+0000000000.txt", ["a0", "a1", "a3", "a5"])
    lines(tmp_path / "hour=01" / "clicks+0+0000000002.txt", ["a2", "a4"])
    says = r"hour=00/.* has 4 records of clicks-0 from offset 0 on, and .*hour=01/.* with offset 2: .*column 'offset'"
    with pytest.raises(SourceError, match=says):
        clicks(tmp_path)


def test_hours_that_follow_each_other_are_read(tmp_path: Path) -> None:
    lines(tmp_path / "hour=00" / "clicks+0+0000000000.txt", ["a0", "a1"])
    lines(tmp_path / "hour=01" / "clicks+0+0000000002.txt", ["a2", "a3"])
    lines(tmp_path / "hour=00" / "clicks+1+0000000000.txt", ["b0", "b1", "b2"])
    lines(tmp_path / "hour=01" / "clicks+1+0000000003.txt", ["b3"])
    assert clicks(tmp_path) == ["a0", "b0", "a1", "b1", "a2", "b2", "a3", "b3"]


@pytest.mark.parametrize(
    "names", [("clicks+0+0.txt", "clicks+0+1.txt"), ("hour=1/clicks+0+0.txt", "hour=2/clicks+0+0.txt")]
)
def test_records_that_a_restarted_sink_repeats_are_read_once(tmp_path: Path, names: tuple[str, str]) -> None:
    first, second = names
    lines(tmp_path / first, ["a0", "a1"])
    lines(tmp_path / second, ["a1", "a2"] if second.endswith("1.txt") else ["a0", "a1", "a2"])
    with pytest.warns(UserWarning, match="are in the dump more than once"):
        assert clicks(tmp_path) == ["a0", "a1", "a2"]


def test_a_file_without_an_offset_in_its_name_overlaps_none(tmp_path: Path) -> None:
    lines(tmp_path / "partition=0" / "clicks+0+0.txt", ["a0", "a1"])
    lines(tmp_path / "partition=0" / "more.txt", ["a2"])
    assert clicks(tmp_path) == ["a0", "a1", "a2"]
    lines(tmp_path / "partition=0" / "clicks+0+2.txt", ["a2"])
    lines(tmp_path / "partition=0" / "clicks+0+1.txt", ["a1", "a2"])
    lines(tmp_path / "partition=0" / "a.txt", ["x", "y", "z"])
    with pytest.raises(SourceError, match=r"a\.txt has 3 records"):
        clicks(tmp_path)


FILES = st.builds(
    lambda first, rows, directory, name: CountedOffsets(first, first + rows, directory, name),
    st.integers(0, 9),
    st.integers(1, 4),
    st.sampled_from("abc"),
    st.sampled_from("xyz"),
)


@given(st.lists(FILES, max_size=7))
def test_files_are_refused_if_and_only_if_two_of_them_have_records_in_turn(
    files: list[CountedOffsets],
) -> None:
    in_turn = any(
        before.directory != file.directory and before.first < file.first < before.end
        for before in files
        for file in files
    )
    if not in_turn:
        refuse_turns(KafkaTopicPartition("clicks", 0), files)
        return
    with pytest.raises(SourceError, match="in turn"):
        refuse_turns(KafkaTopicPartition("clicks", 0), files)
