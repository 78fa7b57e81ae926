"""The records of topics as the data of an event log, and the elements that a schema makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

from flinkcore._internal.io.locations import shown_location
from flinkcore.common.boundedness import Boundedness
from flinkcore.common.serialization import DeserializationSchema
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.datastream.connectors.kafka.kafka_offsets import KafkaOffsetsInitializer, KafkaTopicPartition
from flinkcore.datastream.graph.log_settings import LogSettings
from flinkcore.datastream.graph.transformations import (
    EventLogSource,
    LogData,
    SelectTransformation,
    TimestampsAndWatermarksTransformation,
    Transformation,
)
from flinkcore.errors import ConfigurationError

VALUE: Final = "value"
PARTITION: Final = "partition"
OFFSET: Final = "offset"
TIMESTAMP: Final = "timestamp"
ARRIVAL: Final = "arrival"

SETTINGS: Final = LogSettings(
    timestamp=TIMESTAMP,
    arrival=ARRIVAL,
    split=PARTITION,
    has_positions=False,
    position=OFFSET,
    checked_units=(),
)
"""Settings of a log of records: a partition is a split, whose offsets order its records."""


@dataclass(frozen=True, repr=False)
class TopicRecords(LogData):
    """Records of topics in the files of dumps; nothing of them has been read.

    Attributes
    ----------
    dumps : mapping of str to tuple of str
        Paths of the files, by topic.
    partitions : frozenset of KafkaTopicPartition
        The only ones that are read; none: all are.
    starting, stopping : KafkaOffsetsInitializer
        From where to where partitions are read.
    stores : Stores or None
        File systems of the paths, or None for those of the environment.
    rate : float
        Records per second of each partition, where they have no timestamps.
    """

    dumps: Mapping[str, tuple[str, ...]]
    partitions: frozenset[KafkaTopicPartition] = frozenset()
    starting: KafkaOffsetsInitializer = field(default_factory=KafkaOffsetsInitializer.earliest)
    stopping: KafkaOffsetsInitializer = field(default_factory=KafkaOffsetsInitializer.latest)
    stores: Any = None
    rate: float = 1000.0

    @property
    def order(self) -> str:
        return "the order of their offsets"

    def filter(self, condition: Any) -> None:
        return None

    def with_columns(self, expressions: Mapping[str, Any]) -> None:
        return None

    def __str__(self) -> str:
        return "; ".join(
            f"topic {topic} in {', '.join(map(shown_location, paths))}" for topic, paths in self.dumps.items()
        )


@dataclass(eq=False, repr=False)
class TopicSource(EventLogSource):
    """The elements that a schema makes of the values of records.

    Attributes
    ----------
    deserializer : DeserializationSchema
    strategy : WatermarkStrategy
        Strategy of each partition.
    type_info : TypeInformation
    is_bounded : bool
    """

    path: ClassVar[str] = "rows"
    needs_rows: ClassVar[bool] = True
    gives_elements: ClassVar[bool] = True

    deserializer: DeserializationSchema = field(kw_only=True)
    strategy: WatermarkStrategy = field(kw_only=True)
    type_info: TypeInformation = field(kw_only=True)
    is_bounded: bool = field(kw_only=True, default=False)

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED if self.is_bounded else Boundedness.CONTINUOUS_UNBOUNDED

    @property
    def element_type(self) -> TypeInformation:
        return self.type_info

    @property
    def shown_topics(self) -> str:
        """The topics in messages."""
        topics = list(self.data.dumps)
        return f"topic{'s' if len(topics) > 1 else ''} {', '.join(map(repr, topics))}"

    def reading(self, rate: float) -> tuple[EventLogSource, list[Transformation]]:
        """Return the log of the records, and the steps to what its schema and its strategy need of them.

        Parameters
        ----------
        rate : float
            Records per second of each partition, where they have no timestamps.

        Raises
        ------
        ConfigurationError
            If event time comes from a column, which elements do not have.
        """
        strategy = self.strategy
        if strategy.timestamp_column is not None:
            raise ConfigurationError(
                f"event time comes from {strategy.timestamp_column}, but the elements of a topic have no columns. Pass "
                "with_timestamp_assigner a TimestampAssigner, or read the dump by from_event_log(...)"
            )
        log = EventLogSource(replace(self.data, rate=rate), self.log, settings=self.settings)
        values = SelectTransformation(log, (VALUE, OFFSET), ())
        return log, [values, TimestampsAndWatermarksTransformation(values, strategy)]

    def __str__(self) -> str:
        return f"records of {self.data}, {self.strategy}"
