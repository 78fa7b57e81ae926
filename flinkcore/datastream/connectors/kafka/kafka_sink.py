"""The sink into topics: its settings, which say what is written into files in their place."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn

from flinkcore.common.serialization import SerializationSchema
from flinkcore.datastream.connectors.base import DeliveryGuarantee, Sink, SinkWriter, WriterContext
from flinkcore.datastream.connectors.kafka.kafka_offsets import check_topic
from flinkcore.errors import ArgumentTypeError, ConfigurationError

_BOOTSTRAP_SERVERS = "bootstrap.servers"
_MOST_PREFIX_BYTES = 64_000


class KafkaTopicSelector(ABC):
    """Chooses the topic of an element.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.kafka.KafkaTopicSelector``.
    """

    @abstractmethod
    def apply(self, data: Any) -> str:
        """Return the topic of an element."""


@dataclass(frozen=True)
class KafkaRecordSerializationSchema:
    """The record that an element becomes: its topic, its key and its value; made by :meth:`builder`.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.kafka.KafkaRecordSerializationSchema``.
    """

    topic: str | Callable[[Any], str]
    value: SerializationSchema
    key: SerializationSchema | None = None

    @staticmethod
    def builder() -> KafkaRecordSerializationSchemaBuilder:
        """Return a builder."""
        return KafkaRecordSerializationSchemaBuilder()


class KafkaRecordSerializationSchemaBuilder:
    """Builds a :class:`KafkaRecordSerializationSchema`; each part is set once, as in Flink.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.kafka.KafkaRecordSerializationSchemaBuilder``.
    """

    def __init__(self) -> None:
        self._parts: dict[str, Any] = {}

    def _set(self, part: str, call: str, given: Any) -> KafkaRecordSerializationSchemaBuilder:
        if part in self._parts:
            raise ConfigurationError(f"{call}(...): the {part} is set already")
        self._parts[part] = given
        return self

    def _schema(self, part: str, call: str, schema: object) -> KafkaRecordSerializationSchemaBuilder:
        if not isinstance(schema, SerializationSchema):
            raise ArgumentTypeError(
                f"{call}(...) takes a schema such as SimpleStringSchema(), not {schema!r}"
            )
        return self._set(part, call, schema)

    def set_topic(self, topic: str) -> KafkaRecordSerializationSchemaBuilder:
        """Set the topic of all records; ConfigurationError if it has no name, or there is one already."""
        check_topic(topic)
        return self._set("topic", "set_topic", topic)

    def set_topic_selector(
        self, topic_selector: Callable[[Any], str] | KafkaTopicSelector
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Set what chooses the topic of each element; ConfigurationError if it is none, or there is a topic already."""
        if isinstance(topic_selector, KafkaTopicSelector):
            return self._set("topic", "set_topic_selector", topic_selector.apply)
        if not callable(topic_selector):
            raise ArgumentTypeError(
                "set_topic_selector(...) takes a KafkaTopicSelector or a function from an element to a topic, not "
                f"{topic_selector!r}"
            )
        return self._set("topic", "set_topic_selector", topic_selector)

    def set_key_serialization_schema(
        self, key_serialization_schema: SerializationSchema
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Set the schema of keys; by default records have none."""
        return self._schema("key", "set_key_serialization_schema", key_serialization_schema)

    def set_value_serialization_schema(
        self, value_serialization_schema: SerializationSchema
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Set the schema of values."""
        return self._schema("value", "set_value_serialization_schema", value_serialization_schema)

    def build(self) -> KafkaRecordSerializationSchema:
        """Return the schema; ConfigurationError if there is no topic, or no schema of values."""
        if "value" not in self._parts:
            _lacks("schema of records", "one of values: call set_value_serialization_schema(...)")
        if "topic" not in self._parts:
            _lacks("schema of records", "a topic: call set_topic(...) or set_topic_selector(...)")
        return KafkaRecordSerializationSchema(**self._parts)


@dataclass(frozen=True)
class KafkaSink(Sink):
    """A sink into topics, which a directory replaces; made by :meth:`builder`.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.kafka.KafkaSink``. Deliberate difference: there is no cluster. Records are
    written into the files of :meth:`StreamExecutionEnvironment.replace_sink`. All of them appear at the end of the
    job, or none, whatever the delivery guarantee. Servers and other properties are kept, and have no effect.
    """

    is_of_cluster: ClassVar[bool] = True

    serializer: KafkaRecordSerializationSchema
    delivery_guarantee: DeliveryGuarantee = DeliveryGuarantee.NONE
    transactional_id_prefix: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def builder() -> KafkaSinkBuilder:
        """Return a builder."""
        return KafkaSinkBuilder()

    def get_transformer(self) -> None:
        """Return no transformer: the sink itself chooses the topic of an element."""

    @property
    def shown_topics(self) -> str:
        """The topic in messages."""
        topic = self.serializer.topic
        return f"the topic {topic!r}" if isinstance(topic, str) else "topics"

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Raise ConfigurationError: the environment writes files in its place."""
        raise ConfigurationError(
            f"the KafkaSink of {self.shown_topics} has no directory: give it to the sink_to of a stream whose "
            "environment has one, by replace_sink(...)"
        )

    def __str__(self) -> str:
        return f"into {self.shown_topics}"


class KafkaSinkBuilder:
    """Builds a :class:`KafkaSink`.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.kafka.KafkaSinkBuilder``, and the checks of Flink's.
    """

    def __init__(self) -> None:
        self._serializer: KafkaRecordSerializationSchema | None = None
        self._guarantee = DeliveryGuarantee.NONE
        self._prefix: str | None = None
        self._properties: dict[str, str] = {}

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSinkBuilder:
        """Set the servers, which are not called."""
        return self.set_property(_BOOTSTRAP_SERVERS, bootstrap_servers)

    def set_delivery_guarantee(self, delivery_guarantee: DeliveryGuarantee) -> KafkaSinkBuilder:
        """Set the guarantee, which has no effect: files hold each record once; ConfigurationError if it is none."""
        if not isinstance(delivery_guarantee, DeliveryGuarantee):
            raise ArgumentTypeError(
                "set_delivery_guarantee(...) takes one such as DeliveryGuarantee.AT_LEAST_ONCE, not "
                f"{delivery_guarantee!r}"
            )
        self._guarantee = delivery_guarantee
        return self

    def set_transactional_id_prefix(self, transactional_id_prefix: str) -> KafkaSinkBuilder:
        """Set the prefix of transactions, without an effect; ConfigurationError if it is too long for Kafka."""
        if not isinstance(transactional_id_prefix, str):
            raise ArgumentTypeError(f"a prefix of transactions is a text, not {transactional_id_prefix!r}")
        if len(transactional_id_prefix.encode()) > _MOST_PREFIX_BYTES:
            raise ConfigurationError(
                f"a prefix of transactions has {_MOST_PREFIX_BYTES:,} bytes at most, this one has "
                f"{len(transactional_id_prefix.encode()):,}"
            )
        self._prefix = transactional_id_prefix
        return self

    def set_record_serializer(self, record_serializer: KafkaRecordSerializationSchema) -> KafkaSinkBuilder:
        """Set how elements become records; ConfigurationError if it is not such a schema."""
        if not isinstance(record_serializer, KafkaRecordSerializationSchema):
            raise ArgumentTypeError(
                "set_record_serializer(...) takes what KafkaRecordSerializationSchema.builder() builds, not "
                f"{record_serializer!r}"
            )
        self._serializer = record_serializer
        return self

    def set_property(self, key: str, value: str) -> KafkaSinkBuilder:
        """Set a property of the producer, which is kept and has no effect; ConfigurationError unless they are texts."""
        if not isinstance(key, str) or not isinstance(value, str):
            raise ArgumentTypeError(f"a property is a text and has one, not {key!r} and {value!r}")
        self._properties[key] = value
        return self

    def build(self) -> KafkaSink:
        """Return the sink.

        Raises
        ------
        ConfigurationError
            If the servers or the serializer are missing, or the prefix that exactly-once delivery requires.
        """
        if _BOOTSTRAP_SERVERS not in self._properties:
            _lacks("KafkaSink", "the servers, which Kafka requires: call set_bootstrap_servers(...)")
        if self._serializer is None:
            _lacks("KafkaSink", "a serializer: call set_record_serializer(...)")
        if self._guarantee is DeliveryGuarantee.EXACTLY_ONCE and self._prefix is None:
            _lacks(
                "KafkaSink",
                "the prefix that DeliveryGuarantee.EXACTLY_ONCE requires: call set_transactional_id_prefix(...)",
            )
        return KafkaSink(self._serializer, self._guarantee, self._prefix, dict(self._properties))


def _lacks(what: str, part: str) -> NoReturn:
    raise ConfigurationError(f"a {what} lacks {part}")
