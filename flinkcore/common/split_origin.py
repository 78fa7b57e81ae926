"""The origin of an event log's splits, if it is not a column."""

from enum import Enum
from typing import Final


class SplitOrigin(Enum):
    """The origin of splits, if it is not a column."""

    FILE = "each file is a split"
    PARTITION = "each partition that the paths of the files name is a split"

    def __repr__(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.value


FILE: Final = SplitOrigin.FILE
"""``split=FILE``: each file is a split, and its name the split's value."""

PARTITION: Final = SplitOrigin.PARTITION
"""``split=PARTITION``, the default: each partition or shard in the paths of the files is a split.

It is part of the name of a directory (``partition=3``, ``kafka_partition=3``, ``shard=3``,
``shard_id=shardId-000000000003``) or of a file, as Kafka Connect writes it (``clicks+3+0000000042.avro``). The value of
the split is the number or the shard; where a log has several topics, the topic comes first (``clicks/3``). A log is one
split if a path has no partition.
"""
