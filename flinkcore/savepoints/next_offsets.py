"""Offsets from which a Flink job continues to read the topics whose dump was replayed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.datastream.aggregates import max_
from flinkcore.datastream.window import EndOfStreamTrigger, GlobalWindows
from flinkcore.errors import ConfigurationError, SchemaError


class NextOffsets(dict[int, int]):
    """The next offset of each partition of a topic, as the programs of a Flink job write it.

    Parameters
    ----------
    offsets : mapping of int to int, optional
        By partition.
    starts : mapping of int to str, optional
        Beginnings of partitions of which a job has read nothing: ``earliest``, ``latest``, ``committed`` or
        ``not known yet``.

    Examples
    --------
    >>> print(NextOffsets({0: 42}).to_python("clicks"))
    KafkaOffsetsInitializer.offsets({
        KafkaTopicPartition("clicks", 0): 42,
    })
    """

    def __init__(
        self, offsets: Mapping[int, int] | None = None, starts: Mapping[int, str] | None = None
    ) -> None:
        super().__init__(offsets or {})
        self.starts = dict(starts or {})

    def check_starts(self) -> None:
        """Check that the beginnings of all partitions are known.

        Raises
        ------
        ConfigurationError
            If a partition begins where only the broker knows, such as at its latest offset.
        """
        for each, start in self.starts.items():
            if each not in self and start != "earliest":
                raise ConfigurationError(
                    f"the job has read nothing of partition {each}, which begins at an offset that is in no savepoint "
                    f"({start}). Add its next offset to these: offsets[{each}] = 1234, or 0 for all its rows"
                )

    def unread(self, partition: str = "partition", offset: str = "offset") -> pc.Expression:
        """Return the condition of rows that a Flink job with these offsets has not read, for ``log.filter(...)``.

        Rows of partitions that are not listed, or begin at the earliest offset, are among them.

        Parameters
        ----------
        partition, offset : str
            Columns of the log.

        Raises
        ------
        ConfigurationError
            If a partition begins where only the broker knows, such as at its latest offset.
        """
        self.check_starts()
        if not self:
            return pc.scalar(True)
        # Arrow looks partitions up: of a condition for each it would make a chain, into which it descends.
        listed = pc.SetLookupOptions(value_set=pa.array(list(self), pa.int64()))
        number = pc.index_in(pc.field(partition), options=listed)
        following = pc.choose(number, *map(pc.scalar, self.values()))
        return pc.coalesce(pc.field(offset) >= following, pc.scalar(True))

    def to_java(self, topic: str) -> str:
        """Return the argument of ``KafkaSource.builder().setStartingOffsets(...)``.

        Flink begins partitions that are not listed at the earliest offset.

        Raises
        ------
        ConfigurationError
            If a partition begins where only the broker knows, such as at its latest offset.
        """
        self.check_starts()
        entries = [
            f'Map.entry(new TopicPartition("{topic}", {each}), {offset}L)' for each, offset in self.items()
        ]
        return "OffsetsInitializer.offsets(Map.ofEntries(\n    " + ",\n    ".join(entries) + "))"

    def to_python(self, topic: str) -> str:
        """Return the argument of ``KafkaSource.builder().set_starting_offsets(...)``, as `to_java`."""
        self.check_starts()
        entries = [f'KafkaTopicPartition("{topic}", {each}): {offset},' for each, offset in self.items()]
        return "KafkaOffsetsInitializer.offsets({\n    " + "\n    ".join(entries) + "\n})"


class OffsetsByTopic(dict[str, NextOffsets]):
    """Next offsets of the topics of a source, by topic."""

    def __missing__(self, topic: str) -> NextOffsets:
        raise ConfigurationError(f"the source does not read the topic {topic!r}; it reads {sorted(self)}")


def next_offsets(log: Any, partition: str = "partition", offset: str = "offset") -> NextOffsets:
    """Return the next offset of each partition of a topic, after all rows that a replay takes.

    The log is read once more, as far as ``until=`` says, and of its columns only these and the times.

    Parameters
    ----------
    log : LogStream
        The stream of ``from_event_log``, before any step that leaves out rows.
    partition, offset : str
        Columns of integers.

    Raises
    ------
    SchemaError
        If a column does not exist, is not one of integers, or has a null.
    """
    for name in (partition, offset):
        if name not in log.schema.names or not str(log.schema.field(name).type).lstrip("u").startswith("int"):
            raise SchemaError(f"{name!r} is not a column of integers of the log; it has {log.schema.names}")
    timed = log.assign_timestamps_and_watermarks(WatermarkStrategy.no_watermarks())
    whole = timed.key_by(partition).window(GlobalWindows.create()).trigger(EndOfStreamTrigger())
    rows = whole.aggregate(greatest=max_(offset)).execute().to_arrow().select([partition, "greatest"])
    found = sorted((row[partition], row["greatest"]) for row in rows.to_pylist())
    missing = [number for number, greatest in found if greatest is None]
    if missing:
        raise SchemaError(f"no row of partition {missing[0]} has an offset in the column {offset!r}")
    return NextOffsets({number: greatest + 1 for number, greatest in found})
