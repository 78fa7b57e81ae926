"""The consumer and the producer of topics that PyFlink's versions 1 had, and that its connector still has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar

from flinkcore.common.serialization import DeserializationSchema, SerializationSchema
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.datastream.connectors.kafka.kafka_offsets import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
)
from flinkcore.datastream.connectors.kafka.kafka_sink import KafkaRecordSerializationSchema, KafkaSink
from flinkcore.datastream.connectors.kafka.kafka_source import KafkaSource
from flinkcore.errors import ArgumentTypeError, ConfigurationError

_RESETS = {
    "earliest": KafkaOffsetResetStrategy.EARLIEST,
    "latest": KafkaOffsetResetStrategy.LATEST,
    "none": KafkaOffsetResetStrategy.NONE,
}


class Semantic(Enum):
    """Guarantee of a producer; here records are written once in any case.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.kafka.Semantic``.
    """

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2


class FlinkKafkaConsumer:
    """A source function over topics, which dumps replace, for ``env.add_source``.

    Parameters
    ----------
    topics : str or list of str
    deserialization_schema : DeserializationSchema
        Schema of values.
    properties : mapping of str to str
        ``auto.offset.reset`` says where the consumer starts without committed offsets, which a dump does not have.
        Other properties have no effect.

    Raises
    ------
    ConfigurationError
        If there is no topic, or something is of another type.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.kafka.FlinkKafkaConsumer``; differences are those of :class:`KafkaSource`.
    """

    is_of_cluster: ClassVar[bool] = True

    def __init__(
        self,
        topics: str | Sequence[str],
        deserialization_schema: DeserializationSchema,
        properties: Mapping[str, str],
    ) -> None:
        reset = properties.get("auto.offset.reset", "latest")
        if reset not in _RESETS:
            raise ConfigurationError(f"auto.offset.reset is one of {', '.join(_RESETS)}, not {reset!r}")
        self._builder = (
            KafkaSource.builder()
            .set_bootstrap_servers("")
            .set_group_id("")
            .set_properties(properties)
            .set_topics(*([topics] if isinstance(topics, str) else topics))
            .set_value_only_deserializer(deserialization_schema)
            .set_starting_offsets(KafkaOffsetsInitializer.committed_offsets(_RESETS[reset]))
        )
        self._reset = _RESETS[reset]
        self._produced_type = deserialization_schema.get_produced_type()
        self.strategy = WatermarkStrategy.no_watermarks()

    def assign_timestamps_and_watermarks(self, watermark_strategy: WatermarkStrategy) -> FlinkKafkaConsumer:
        """Set the strategy of each partition; ConfigurationError if it is none."""
        if not isinstance(watermark_strategy, WatermarkStrategy):
            raise ArgumentTypeError(
                "assign_timestamps_and_watermarks takes a WatermarkStrategy, such as WatermarkStrategy."
                f"for_bounded_out_of_orderness(...), not {watermark_strategy!r}"
            )
        self.strategy = watermark_strategy
        return self

    def set_commit_offsets_on_checkpoints(self, commit_on_checkpoints: bool) -> FlinkKafkaConsumer:
        """Accept whether offsets are committed, without an effect."""
        return self

    def set_start_from_earliest(self) -> FlinkKafkaConsumer:
        """Start at the first records."""
        return self._start(KafkaOffsetsInitializer.earliest())

    def set_start_from_latest(self) -> FlinkKafkaConsumer:
        """Start at the latest offsets; see :meth:`KafkaOffsetsInitializer.latest`."""
        return self._start(KafkaOffsetsInitializer.latest())

    def set_start_from_timestamp(self, startup_offsets_timestamp: int) -> FlinkKafkaConsumer:
        """Start at a time; see :meth:`KafkaOffsetsInitializer.timestamp`."""
        return self._start(KafkaOffsetsInitializer.timestamp(startup_offsets_timestamp))

    def set_start_from_group_offsets(self) -> FlinkKafkaConsumer:
        """Start where the group is, which ``auto.offset.reset`` says for a dump; so by default."""
        return self._start(KafkaOffsetsInitializer.committed_offsets(self._reset))

    def disable_filter_restored_partitions_with_subscribed_topics(self) -> FlinkKafkaConsumer:
        """Do nothing: a job reads the partitions of its dumps."""
        return self

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the elements."""
        return self._produced_type

    def _start(self, at: KafkaOffsetsInitializer) -> FlinkKafkaConsumer:
        self._builder.set_starting_offsets(at)
        return self

    def source(self) -> KafkaSource:
        """Return the source with these settings."""
        return self._builder.build()


class FlinkKafkaProducer:
    """A sink function into a topic, which a directory replaces, for ``add_sink``.

    Parameters
    ----------
    topic : str
    serialization_schema : SerializationSchema
        Schema of values.
    producer_config : mapping of str to str
        Without an effect.
    kafka_producer_pool_size : int
        Without an effect.
    semantic : Semantic
        Without an effect: records are written once.

    Raises
    ------
    ConfigurationError
        If the topic has no name, or there is no schema.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.kafka.FlinkKafkaProducer``; differences are those of :class:`KafkaSink`.
    """

    is_of_cluster: ClassVar[bool] = True

    def __init__(
        self,
        topic: str,
        serialization_schema: SerializationSchema,
        producer_config: Mapping[str, str],
        kafka_producer_pool_size: int = 5,
        semantic: Semantic = Semantic.AT_LEAST_ONCE,
    ) -> None:
        builder = KafkaRecordSerializationSchema.builder().set_topic(topic)
        self._serializer = builder.set_value_serialization_schema(serialization_schema).build()
        self._properties: dict[str, Any] = dict(producer_config)

    def set_log_failures_only(self, log_failures_only: bool) -> FlinkKafkaProducer:
        """Accept whether failures are only logged: they end the job."""
        return self

    def set_flush_on_checkpoint(self, flush_on_checkpoint: bool) -> FlinkKafkaProducer:
        """Accept whether checkpoints wait for records, as they do."""
        return self

    def set_write_timestamp_to_kafka(self, write_timestamp_to_kafka: bool) -> FlinkKafkaProducer:
        """Accept whether records have timestamps, which their files do not hold."""
        return self

    def ignore_failures_after_transaction_timeout(self) -> FlinkKafkaProducer:
        """Do nothing: there are no transactions."""
        return self

    def sink(self) -> KafkaSink:
        """Return the sink with these settings."""
        return KafkaSink(self._serializer, properties=self._properties)
