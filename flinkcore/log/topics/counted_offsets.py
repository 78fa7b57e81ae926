"""Offsets of records that are counted from that of the first one in each file, and whether they are sure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from flinkcore.datastream.connectors.kafka.kafka_offsets import KafkaTopicPartition
from flinkcore.errors import SourceError


class CountedOffsets(NamedTuple):
    """Offsets of the records of a file, if it has all of them from the first one on.

    Attributes
    ----------
    first : int
    end : int
        The offset after the last one.
    directory : str
    file : str
        Name of the file.
    """

    first: int
    end: int
    directory: str
    file: str


def refuse_turns(partition: KafkaTopicPartition, files: Sequence[CountedOffsets]) -> None:
    """Raise if files of several directories have records of a partition in turn.

    The sink ends a file before it begins the next one of the same directory, so that offsets which both of them have
    are those of the same records. Directories, such as those of hours, may have records in turn: there are gaps in
    their files then, and counted offsets are those of other records. Only where such files begin with the same offset,
    both have its record.

    Parameters
    ----------
    partition : KafkaTopicPartition
    files : sequence of CountedOffsets
        One for each file with records of the partition.

    Raises
    ------
    SourceError
        If files of different directories begin with different offsets, and have some in common.
    """
    last: CountedOffsets | None = None
    last_elsewhere: CountedOffsets | None = None
    for _, group in groupby(sorted(files), key=lambda file: file.first):
        together = list(group)
        for file in together:
            is_elsewhere = last is None or last.directory != file.directory
            before = last if is_elsewhere else last_elsewhere
            if before is not None and before.end > file.first:
                records = (
                    f"{before.end - before.first:,} records of {partition} from offset {before.first} on"
                )
                raise SourceError(
                    f"{before.file} has {records}, and {file.file} begins with offset {file.first}: they have records "
                    "in turn, whose offsets cannot be counted. Give a dump with the column 'offset'",
                    file=file.file,
                )
        for file in together:
            if last is None or last.directory == file.directory:
                last = file if last is None or file.end > last.end else last
            elif file.end > last.end:
                last, last_elsewhere = file, last
            elif last_elsewhere is None or file.end > last_elsewhere.end:
                last_elsewhere = file
