"""Offsets of records in files of Kafka Connect, whose names have that of the first one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from flinkcore.log.files.topic_paths import place_in_topic

if TYPE_CHECKING:
    from flinkcore.log.files.log_files import LogFile


@dataclass(frozen=True)
class FileOffsets:
    """Offsets of the records of a file: they ascend, perhaps with gaps.

    Attributes
    ----------
    first : int
        Offset of the first record.
    end : int or None
        Offset of the first record of the file that follows, below which those of this one lie; None if no file
        determines it.
    followed_by : str
        Name of that file.
    """

    first: int
    end: int | None = None
    followed_by: str = ""

    def of_row(self, row: int) -> str:
        """Return the offset of a row of the file, counted from 0, in words."""
        if row == 0:
            return f"offset {self.first}"
        return f"offset {self.first + row}, if the file has all from {self.first} on"

    def overlap(self, file: str, rows: int) -> str | None:
        """Return a warning if a file has so many rows that some of them are in the next file as well, or None."""
        if self.end is None or self.first + rows <= self.end:
            return None
        return (
            f"{file} has {rows:,} rows from offset {self.first} on, and {self.followed_by} begins with offset "
            f"{self.end}: both files have records of the same offsets, which count twice, as after a restart of the "
            "sink. Take the rows that are repeated out of the log, by a list of files without one of the two"
        )


def in_order_of_offsets(files: Sequence[LogFile]) -> list[LogFile]:
    """Return the files of a log, those of each split in the order of the offsets that their names have.

    Splits take turns as before. Files of a split keep their order if one of them is not of Kafka Connect, or they are
    of several topics or partitions.

    Parameters
    ----------
    files : sequence of LogFile
        Each with its split.
    """
    ordered = list(files)
    places: dict[object, list[int]] = defaultdict(list)
    for place, file in enumerate(files):
        places[file.split].append(place)
    for of_split in places.values():
        named = [(place_in_topic(files[place].path), files[place]) for place in of_split]
        found = [(name.offset, file) for name, file in named if name.offset is not None]
        if len(found) == len(of_split) and len({name[:2] for name, _ in named}) == 1:
            for place, file in zip(of_split, _with_offsets(found), strict=True):
                ordered[place] = file
    return ordered


def _with_offsets(found: Sequence[tuple[int, LogFile]]) -> list[LogFile]:
    """Return files of one partition in the order of their offsets.

    The sink ends a file before it begins the next one of the same directory. Directories, such as those of hours, may
    have records in turn: their files overlap for certain only where they begin with the same offset.
    """
    by_offset = sorted(found, key=lambda each: each[0])
    ordered: list[LogFile] = []
    next_in: dict[str, tuple[int, str]] = {}
    next_of_all: tuple[int, str] | None = None
    for offset, file in reversed(by_offset):
        directory = file.path.rpartition("/")[0]
        follows = next_in.get(directory)
        if next_of_all is not None and next_of_all[0] == offset:
            follows = next_of_all
        end, followed_by = follows or (None, "")
        ordered.append(replace(file, offsets=FileOffsets(offset, end, followed_by)))
        next_in[directory] = next_of_all = (offset, file.name)
    return ordered[::-1]
