"""Places in a topic that the paths of files name: topic, partition, and the offset of the first record."""

import re
from typing import Final, NamedTuple

from flinkcore.log.files.path_partitions import connect_file, is_partition

_NUMBER: Final = re.compile(r"[0-9]{1,10}")


class PlaceInTopic(NamedTuple):
    """The topic and the offsets of the records of a file.

    Attributes
    ----------
    topic : str or None
    partition : int or None
    offset : int or None
        Offset of the first record.
    """

    topic: str | None = None
    partition: int | None = None
    offset: int | None = None


def place_in_topic(path: str) -> PlaceInTopic:
    """Return what a path says of its records, by the name that Kafka Connect gives a file, or by directories.

    Parameters
    ----------
    path : str
        With ``/`` between directories.

    Examples
    --------
    >>> place_in_topic("topics/clicks/partition=1/clicks+1+0000000042.json")
    PlaceInTopic(topic='clicks', partition=1, offset=42)
    >>> place_in_topic("dump/partition=3/part-0.txt")
    PlaceInTopic(topic=None, partition=3, offset=None)
    """
    *directories, file = path.split("/")
    connect = connect_file(file)
    if connect is not None:
        return PlaceInTopic(connect.topic, int(connect.partition), connect.offset)
    topic, partition = None, None
    for directory in directories:
        column, equals, value = directory.partition("=")
        if equals and is_partition(column, value) and _NUMBER.fullmatch(value):
            partition = int(value)
        elif equals and column == "topic":
            topic = value
    return PlaceInTopic(topic, partition)
