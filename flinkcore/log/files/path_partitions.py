"""Partitions of Kafka, and shards, that the paths of a log's files name."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

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


class ConnectFile(NamedTuple):
    """Records of a file of Kafka Connect, as its name describes them.

    Attributes
    ----------
    topic : str
    partition : str
        A number.
    offset : int
        Offset of the first record.
    """

    topic: str
    partition: str
    offset: int


def connect_file(name: str) -> ConnectFile | None:
    """Return what the name of a file, without directories, says if Kafka Connect has given it; else None."""
    named = _CONNECT_FILE.fullmatch(name)
    return None if named is None else ConnectFile(named["topic"], named["partition"], int(named["offset"]))


def is_partition(column: str, value: object) -> bool:
    """Return whether a directory ``column=value`` holds a partition or a shard."""
    return column.lower() in COLUMNS and _VALUE.fullmatch(str(value)) is not None


def partitions_of(paths: Sequence[str]) -> list[int] | list[str] | None:
    """Return the partition that each path names, or None if one of them names none.

    The names are those of directories, the innermost of which counts, or of files of Kafka Connect
    (``topic+partition+offset.format``). Partitions of several topics are apart: a topic is what a file of Kafka Connect
    or a directory ``topic=clicks`` names, or the path up to its partition without directories of dates (``year=2001``,
    ``2001/01/31``).

    Parameters
    ----------
    paths : sequence of str
        Paths of the files, with ``/`` between directories.

    Returns
    -------
    list of int, list of str or None
        Numbers where all partitions are numbers of one topic; else texts, such as ``clicks/3``.

    Examples
    --------
    >>> partitions_of(["clicks/partition=0/a.json", "clicks/partition=11/a.json"])
    [0, 11]
    >>> partitions_of(["2001/01/31/clicks+2+0000000042.avro"])
    [2]
    """
    found = [_topic_and_partition(path) for path in paths]
    named = [each for each in found if each is not None]
    if not named or len(named) < len(found):
        return None
    return split_names(named)


def split_names(places: Sequence[tuple[str, str]]) -> list[int] | list[str]:
    """Return the splits of topics and partitions: numbers, if all are of one topic, else texts such as ``clicks/3``."""
    if len({topic for topic, _ in places}) > 1:
        return [f"{topic}/{partition}" for topic, partition in places]
    partitions = [partition for _, partition in places]
    if all(map(_NUMBER.fullmatch, partitions)):
        return [int(partition) for partition in partitions]
    return partitions


def topic_of(directories: Sequence[tuple[str, object]]) -> str | None:
    """Return the topic that columns of directories name, the innermost of which counts, or None."""
    topics = [str(value) for column, value in directories if column.lower() == TOPIC]
    return topics[-1] if topics else None


def _topic_and_partition(path: str) -> tuple[str, str] | None:
    *directories, file = path.split("/")
    columns = [
        (column, value) for column, equals, value in (each.partition("=") for each in directories) if equals
    ]
    topic = topic_of(columns)
    for at in reversed(range(len(directories))):
        column, equals, value = directories[at].partition("=")
        if equals and is_partition(column, value):
            return topic or "/".join(filter(_is_of_topic, directories[:at])), value
    connect = connect_file(file)
    return None if connect is None else (connect.topic, connect.partition)


def _is_of_topic(directory: str) -> bool:
    return "=" not in directory and _NUMBER.fullmatch(directory) is None
