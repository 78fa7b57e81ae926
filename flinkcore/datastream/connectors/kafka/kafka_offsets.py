"""Partitions of topics, and the offsets from which and up to which a source reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from flinkcore.errors import ArgumentTypeError, ConfigurationError


@dataclass(frozen=True)
class KafkaTopicPartition:
    """A partition of a topic.

    Parameters
    ----------
    topic : str
    partition : int
        From 0.

    Raises
    ------
    ConfigurationError
        If the name is empty, or the number negative.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.kafka.KafkaTopicPartition``.
    """

    topic: str
    partition: int

    def __post_init__(self) -> None:
        check_topic(self.topic)
        if isinstance(self.partition, bool) or not isinstance(self.partition, int):
            raise ArgumentTypeError(f"a partition is an integer from 0, not {self.partition!r}")
        if self.partition < 0:
            raise ConfigurationError(f"a partition is an integer from 0, not {self.partition!r}")

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def check_topic(topic: object) -> None:
    """Check that something can be the name of a topic.

    Raises
    ------
    ConfigurationError
        If it is empty, or no text.
    """
    if not isinstance(topic, str):
        raise ArgumentTypeError(f"a topic is a text, not {topic!r}")
    if not topic:
        raise ConfigurationError("a topic has a name, not an empty text")


class KafkaOffsetResetStrategy(Enum):
    """The place from which a source reads a partition without an offset.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.kafka.KafkaOffsetResetStrategy``.
    """

    LATEST = 0
    EARLIEST = 1
    NONE = 2


@dataclass(frozen=True)
class KafkaOffsetsInitializer:
    """Offsets from which, or up to which, partitions are read; made by its static methods.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.kafka.KafkaOffsetsInitializer``.
    """

    kind: Literal["earliest", "latest", "committed", "timestamp", "offsets"]
    timestamp_ms: int = 0
    of_partitions: Mapping[KafkaTopicPartition, int] = field(default_factory=dict)
    reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE

    @staticmethod
    def committed_offsets(
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE,
    ) -> KafkaOffsetsInitializer:
        """Return the offsets that the consumer group has committed, of which a dump has none.

        Parameters
        ----------
        offset_reset_strategy : KafkaOffsetResetStrategy
            Says where the dump is read; with ``NONE`` the job fails.
        """
        return KafkaOffsetsInitializer("committed", reset_strategy=_strategy(offset_reset_strategy))

    @staticmethod
    def timestamp(timestamp: int) -> KafkaOffsetsInitializer:
        """Return the offsets of the first record of each partition at or after a time.

        Parameters
        ----------
        timestamp : int
            In ms since the epoch. It is compared with the timestamps of records, which the dump must have.

        Raises
        ------
        ConfigurationError
            If it is negative, or no integer.
        """
        return KafkaOffsetsInitializer("timestamp", timestamp_ms=_number(timestamp, "a timestamp"))

    @staticmethod
    def earliest() -> KafkaOffsetsInitializer:
        """Return the first offset of each partition in the dump."""
        return KafkaOffsetsInitializer("earliest")

    @staticmethod
    def latest() -> KafkaOffsetsInitializer:
        """Return the latest offsets.

        As stopping offsets they are the end of the dump. As starting offsets they are its beginning: a dump is what
        arrived after the job's start.
        """
        return KafkaOffsetsInitializer("latest")

    @staticmethod
    def offsets(
        offsets: Mapping[KafkaTopicPartition, int],
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.EARLIEST,
    ) -> KafkaOffsetsInitializer:
        """Return given offsets.

        Parameters
        ----------
        offsets : mapping of KafkaTopicPartition to int
        offset_reset_strategy : KafkaOffsetResetStrategy
            Where partitions are read that have no offset here, or one before the first in the dump.

        Raises
        ------
        ConfigurationError
            If it is not such a mapping, or an offset is negative.
        """
        if not isinstance(offsets, Mapping) or not all(
            isinstance(partition, KafkaTopicPartition) for partition in offsets
        ):
            raise ArgumentTypeError(
                f"offsets(...) takes offsets by KafkaTopicPartition, such as {{KafkaTopicPartition('clicks', 0): 42}}, "
                f"not {offsets!r}"
            )
        given = {
            partition: _number(offset, f"the offset of {partition}") for partition, offset in offsets.items()
        }
        return KafkaOffsetsInitializer(
            "offsets", of_partitions=given, reset_strategy=_strategy(offset_reset_strategy)
        )

    def __str__(self) -> str:
        if self.kind == "timestamp":
            return f"timestamp {self.timestamp_ms} ms"
        if self.kind == "offsets":
            return "offsets " + ", ".join(f"{at}: {offset}" for at, offset in self.of_partitions.items())
        return f"{self.kind} offsets"


def _strategy(strategy: object) -> KafkaOffsetResetStrategy:
    if not isinstance(strategy, KafkaOffsetResetStrategy):
        raise ArgumentTypeError(
            f"offset_reset_strategy is one such as KafkaOffsetResetStrategy.EARLIEST, not {strategy!r}"
        )
    return strategy


def _number(value: object, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ArgumentTypeError(f"{what} is an integer, not {value!r}")
    if value < 0:
        raise ConfigurationError(f"{what} is not negative, as {value!r} is")
    return value
