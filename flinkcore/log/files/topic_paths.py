"""Places in topics that the paths of files name: topic, partition, and the offset of the first record."""

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore.errors import SourceError

COLUMNS: Final = ("partition", "kafka_partition", "shard", "shard_id")
"""Directories ``name=value`` of these names hold a partition or a shard each, whatever the case of the letters."""

TOPIC: Final = "topic"
"""Directories ``name=value`` of this name hold a topic each, whatever the case of the letters."""

_VALUE: Final = re.compile(r"[0-9]{1,5}|shardId-[0-9]+", re.IGNORECASE)
"""A number of more digits is rather a date, such as 20010131."""

_CONNECT_FILE: Final = re.compile(
    r"(?P<topic>[A-Za-z0-9._-]+)\+(?P<partition>[0-9]{1,5})\+(?P<offset>[0-9]{1,19})(\..+)?"
)
_NUMBER: Final = re.compile(r"[0-9]+")


class PlaceInTopic(NamedTuple):
    """The topic and the offsets of the records of a file.

    Attributes
    ----------
    topic : str or None
    partition : int, str or None
        A text is a shard, such as ``shardId-000000000001``.
    offset : int or None
        Offset of the first record, which only the names of Kafka Connect have.
    """

    topic: str | None = None
    partition: int | str | None = None
    offset: int | None = None


def place_in_topic(path: str) -> PlaceInTopic:
    """Return what a path says of its records, by the name that Kafka Connect gives a file, and by directories.

    The innermost directory with a topic counts, and the innermost one with a partition.

    Parameters
    ----------
    path : str
        With ``/`` between directories.

    Raises
    ------
    SourceError
        If the directories and the name of the file contradict each other.

    Examples
    --------
    >>> place_in_topic("topics/clicks/partition=1/clicks+1+0000000042.json")
    PlaceInTopic(topic='clicks', partition=1, offset=42)
    >>> place_in_topic("dump/topic=clicks/partition=3/part-0.txt")
    PlaceInTopic(topic='clicks', partition=3, offset=None)
    """
    *directories, file = path.split("/")
    columns = [_column(directory) for directory in directories]
    topic = topic_of(columns)
    partition = partition_of(columns)
    named = _CONNECT_FILE.fullmatch(file)
    if named is None:
        return PlaceInTopic(topic, partition)
    by_name = PlaceInTopic(named["topic"], int(named["partition"]), int(named["offset"]))
    for what, by_directory, its in (
        ("topic", topic, by_name.topic),
        ("partition", partition, by_name.partition),
    ):
        if by_directory is not None and by_directory != its:
            raise SourceError(
                f"{path} is of {what} {its} by its name, and of {by_directory} by a directory: put the file into the "
                "directory of its own, or rename the directories if they are of something else",
                file=path,
            )
    return by_name


def topic_of(columns: Iterable[tuple[str, object]]) -> str | None:
    """Return the topic that columns of directories name, the innermost of which counts, or None."""
    topics = [str(value) for column, value in columns if column.lower() == TOPIC]
    return topics[-1] if topics else None


def partition_of(columns: Iterable[tuple[str, object]]) -> int | str | None:
    """Return the partition or shard that columns of directories name, the innermost of which counts, or None."""
    partitions = [str(value) for column, value in columns if is_partition(column, value)]
    if not partitions:
        return None
    return int(partitions[-1]) if _NUMBER.fullmatch(partitions[-1]) else partitions[-1]


def is_partition(column: str, value: object) -> bool:
    """Return whether a directory ``column=value`` holds a partition or a shard."""
    return column.lower() in COLUMNS and _VALUE.fullmatch(str(value)) is not None


def partitions_of(paths: Sequence[str]) -> Sequence[int | str] | None:
    """Return the partition that each path names, or None if one of them names none.

    Partitions of several topics are apart: a topic is what a file of Kafka Connect or a directory ``topic=clicks``
    names, or the path up to the partition without directories of dates (``year=2001``, ``2001/01/31``).

    Parameters
    ----------
    paths : sequence of str
        Paths of the files, with ``/`` between directories.

    Returns
    -------
    sequence of int, or of str, or None
        Those that `splits_of` returns.

    Raises
    ------
    SourceError
        If the directories and the name of a file contradict each other.

    Examples
    --------
    >>> partitions_of(["clicks/partition=0/a.json", "clicks/partition=11/a.json"])
    [0, 11]
    >>> partitions_of(["2001/01/31/clicks+2+0000000042.avro"])
    [2]
    """
    places = [place_in_topic(path) for path in paths]
    topics = [
        _directories_of(path) if place.topic is None else place.topic
        for path, place in zip(paths, places, strict=True)
    ]
    return splits_of(topics, [place.partition for place in places])


def splits_of(
    topics: Sequence[str | None], partitions: Sequence[int | str | None]
) -> Sequence[int | str] | None:
    """Return the splits of files by their topics and partitions, or None if one of them has no partition.

    Returns
    -------
    sequence of int, or of str, or None
        Numbers where all partitions are numbers of one topic; shards of one topic, or texts such as ``clicks/3``.
    """
    known = [partition for partition in partitions if partition is not None]
    if not known or len(known) < len(partitions):
        return None
    if len(set(topics)) > 1:
        return [f"{topic}/{partition}" for topic, partition in zip(topics, known, strict=True)]
    numbers = [partition for partition in known if isinstance(partition, int)]
    return numbers if len(numbers) == len(known) else [str(partition) for partition in known]


def split_names(topic: pa.Array | str, partition: pa.Array) -> pa.Array:
    """Return the splits of rows by topic and partition, texts such as ``clicks/3``."""
    return pc.binary_join_element_wise(topic, partition.cast(pa.string()), "/")


def _column(directory: str) -> tuple[str, str]:
    column, _, value = directory.partition("=")
    return column, value


def _directories_of(path: str) -> str:
    """Return the directories above that of the partition, without those of dates."""
    directories = path.split("/")[:-1]
    above = next(
        (at for at in reversed(range(len(directories))) if is_partition(*_column(directories[at]))), 0
    )
    return "/".join(each for each in directories[:above] if "=" not in each and not _NUMBER.fullmatch(each))
