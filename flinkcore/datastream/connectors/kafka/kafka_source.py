"""The source of topics: its settings, which are those of the reading of a dump."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn

from flinkcore.common.boundedness import Boundedness
from flinkcore.common.serialization import DeserializationSchema, SimpleStringSchema
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.datastream.connectors.base import Source, SourceSplit
from flinkcore.datastream.connectors.kafka.kafka_offsets import (
    KafkaOffsetsInitializer,
    KafkaTopicPartition,
    check_topic,
)
from flinkcore.errors import ArgumentTypeError, ConfigurationError

_BOOTSTRAP_SERVERS = "bootstrap.servers"
_GROUP_ID = "group.id"


@dataclass(frozen=True)
class KafkaRecordDeserializationSchema:
    """The element that a record becomes: that of its value.

    Parameters
    ----------
    value : DeserializationSchema

    Notes
    -----
    Follows ``pyflink.datastream.connectors.kafka.KafkaRecordDeserializationSchema``.
    """

    value: DeserializationSchema


class SimpleStringValueKafkaRecordDeserializationSchema(KafkaRecordDeserializationSchema):
    """Values as texts.

    Parameters
    ----------
    charset : str
        Name of an encoding; an unknown one is a ConfigurationError.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.kafka.SimpleStringValueKafkaRecordDeserializationSchema``.
    """

    def __init__(self, charset: str = "UTF-8") -> None:
        super().__init__(SimpleStringSchema(charset))


@dataclass(frozen=True)
class KafkaSource(Source):
    """The records of topics, which a dump of each topic replaces; made by :meth:`builder`.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.kafka.KafkaSource``. Deliberate difference: there is no cluster. The records
    are those of files, which :meth:`StreamExecutionEnvironment.replace_source` names for each topic. The servers, the
    group and other properties are kept, and have no effect.
    """

    is_of_cluster: ClassVar[bool] = True

    deserializer: DeserializationSchema
    topics: tuple[str, ...] = ()
    topic_pattern: str | None = None
    partitions: frozenset[KafkaTopicPartition] = frozenset()
    starting_offsets: KafkaOffsetsInitializer = field(default_factory=KafkaOffsetsInitializer.earliest)
    stopping_offsets: KafkaOffsetsInitializer | None = None
    is_bounded: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def builder() -> KafkaSourceBuilder:
        """Return a builder."""
        return KafkaSourceBuilder()

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED if self.is_bounded else Boundedness.CONTINUOUS_UNBOUNDED

    def topics_among(self, dumped: Collection[str]) -> list[str]:
        """Return the topics that are read, some of which may have no dump.

        Parameters
        ----------
        dumped : collection of str
            Topics of which there is a dump, and which a pattern chooses from.
        """
        if self.topic_pattern is not None:
            return [topic for topic in dumped if re.fullmatch(self.topic_pattern, topic)]
        return list(self.topics) or sorted({partition.topic for partition in self.partitions})

    @property
    def shown_topics(self) -> str:
        """The topics in messages."""
        if self.topic_pattern is not None:
            return f"the topics that match {self.topic_pattern!r}"
        topics = self.topics_among(())
        return f"the topic{'s' if len(topics) > 1 else ''} {', '.join(map(repr, topics))}"

    def create_splits(self, parallelism: int) -> Sequence[SourceSplit]:
        """Raise ConfigurationError: the environment reads dumps in its place."""
        raise ConfigurationError(
            f"the KafkaSource of {self.shown_topics} has no dumps: give it to the from_source of an environment that "
            "has some, by replace_source(...)"
        )

    def produced_type(self) -> TypeInformation:
        return self.deserializer.get_produced_type()

    def __str__(self) -> str:
        return f"of {self.shown_topics}"


class KafkaSourceBuilder:
    """Builds a :class:`KafkaSource`.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.kafka.KafkaSourceBuilder``, and the checks of Flink's.
    """

    def __init__(self) -> None:
        self._subscribed: dict[str, Any] = {}
        self._starting = KafkaOffsetsInitializer.earliest()
        self._stopping: KafkaOffsetsInitializer | None = None
        self._is_bounded = False
        self._deserializer: DeserializationSchema | None = None
        self._properties: dict[str, str] = {}

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSourceBuilder:
        """Set the servers, which are not called."""
        return self.set_property(_BOOTSTRAP_SERVERS, bootstrap_servers)

    def set_group_id(self, group_id: str) -> KafkaSourceBuilder:
        """Set the consumer group, whose committed offsets a dump does not have."""
        return self.set_property(_GROUP_ID, group_id)

    def set_topics(self, *topics: str) -> KafkaSourceBuilder:
        """Set the topics, each of which needs a dump; ConfigurationError if none is given, or they are set already."""
        if not topics:
            raise ConfigurationError("set_topics(...) takes the name of one topic at least")
        for topic in topics:
            check_topic(topic)
        return self._subscribe("topics", tuple(dict.fromkeys(topics)))

    def set_topic_pattern(self, topic_pattern: str) -> KafkaSourceBuilder:
        """Set a regular expression: those topics are read that have a dump and match it as a whole.

        Raises
        ------
        ConfigurationError
            If it is not an expression, or topics are set already.
        """
        try:
            re.compile(topic_pattern)
        except (re.error, TypeError) as failure:
            raise ConfigurationError(
                f"set_topic_pattern(...) takes a regular expression, not {topic_pattern!r}: {failure}"
            ) from failure
        return self._subscribe("topic_pattern", topic_pattern)

    def set_partitions(self, partitions: Collection[KafkaTopicPartition]) -> KafkaSourceBuilder:
        """Set partitions, which are read alone; ConfigurationError if none is given, or topics are set already."""
        if not isinstance(partitions, Collection) or not all(
            isinstance(partition, KafkaTopicPartition) for partition in partitions
        ):
            raise ArgumentTypeError(
                f"set_partitions(...) takes a set of KafkaTopicPartition, not {partitions!r}"
            )
        if not partitions:
            raise ConfigurationError("set_partitions(...) takes one partition at least")
        return self._subscribe("partitions", frozenset(partitions))

    def _subscribe(self, by: str, to: Any) -> KafkaSourceBuilder:
        for earlier, given in self._subscribed.items():
            raise ConfigurationError(
                f"{by} cannot be set besides {earlier} = {given!r}: a KafkaSource has topics, a pattern or partitions"
            )
        self._subscribed[by] = to
        return self

    def set_starting_offsets(
        self, starting_offsets_initializer: KafkaOffsetsInitializer
    ) -> KafkaSourceBuilder:
        """Set where partitions are read from; the earliest offsets by default."""
        self._starting = _initializer(starting_offsets_initializer, "set_starting_offsets")
        return self

    def set_unbounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """Set where the reading of partitions stops, of a source that counts as unbounded."""
        return self._stop("set_unbounded", stopping_offsets_initializer, is_bounded=False)

    def set_bounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """Set where the reading of partitions stops; the source is bounded, as batch mode needs it."""
        return self._stop("set_bounded", stopping_offsets_initializer, is_bounded=True)

    def _stop(self, call: str, at: object, is_bounded: bool) -> KafkaSourceBuilder:
        self._stopping = _initializer(at, call)
        self._is_bounded = is_bounded
        return self

    def set_value_only_deserializer(
        self, deserialization_schema: DeserializationSchema
    ) -> KafkaSourceBuilder:
        """Set the schema of values; ConfigurationError if it is none."""
        if not isinstance(deserialization_schema, DeserializationSchema):
            raise ArgumentTypeError(
                "set_value_only_deserializer(...) takes a schema such as SimpleStringSchema(), not "
                f"{deserialization_schema!r}"
            )
        self._deserializer = deserialization_schema
        return self

    def set_deserializer(
        self, kafka_record_deserialization_schema: KafkaRecordDeserializationSchema
    ) -> KafkaSourceBuilder:
        """Set the schema of records; ConfigurationError if it is none."""
        if not isinstance(kafka_record_deserialization_schema, KafkaRecordDeserializationSchema):
            raise ArgumentTypeError(
                "set_deserializer(...) takes a KafkaRecordDeserializationSchema, not "
                f"{kafka_record_deserialization_schema!r}; a schema of values goes to set_value_only_deserializer(...)"
            )
        return self.set_value_only_deserializer(kafka_record_deserialization_schema.value)

    def set_client_id_prefix(self, prefix: str) -> KafkaSourceBuilder:
        """Set the prefix of client ids, which has no effect."""
        return self.set_property("client.id.prefix", prefix)

    def set_property(self, key: str, value: str) -> KafkaSourceBuilder:
        """Set a property of the consumer, which is kept and has no effect; ConfigurationError unless they are texts."""
        if not isinstance(key, str) or not isinstance(value, str):
            raise ArgumentTypeError(f"a property is a text and has one, not {key!r} and {value!r}")
        self._properties[key] = value
        return self

    def set_properties(self, props: Mapping[str, str]) -> KafkaSourceBuilder:
        """Set properties of the consumer; see :meth:`set_property`."""
        for key, value in props.items():
            self.set_property(key, value)
        return self

    def build(self) -> KafkaSource:
        """Return the source.

        Raises
        ------
        ConfigurationError
            If the servers, the topics or the deserializer are missing, or the group whose offsets are asked for.
        """
        if _BOOTSTRAP_SERVERS not in self._properties:
            _lacks("the servers, which Kafka requires: call set_bootstrap_servers(...)")
        if not self._subscribed:
            _lacks("topics: call set_topics(...), set_topic_pattern(...) or set_partitions(...)")
        if self._deserializer is None:
            _lacks("a deserializer: call set_value_only_deserializer(...)")
        asks = [
            each for each in (self._starting, self._stopping) if each is not None and each.kind == "committed"
        ]
        if asks and _GROUP_ID not in self._properties:
            _lacks("the group whose committed offsets it asks for: call set_group_id(...)")
        return KafkaSource(
            self._deserializer,
            **self._subscribed,
            starting_offsets=self._starting,
            stopping_offsets=self._stopping,
            is_bounded=self._is_bounded,
            properties=dict(self._properties),
        )


def _lacks(what: str) -> NoReturn:
    raise ConfigurationError(f"a KafkaSource lacks {what}")


def _initializer(initializer: object, call: str) -> KafkaOffsetsInitializer:
    if not isinstance(initializer, KafkaOffsetsInitializer):
        raise ArgumentTypeError(
            f"{call}(...) takes offsets such as KafkaOffsetsInitializer.earliest(), not {initializer!r}"
        )
    return initializer
