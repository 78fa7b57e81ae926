"""PyFlink's ``pyflink.datastream.connectors.kafka`` names, for programs that run over files in place of topics."""

from functools import partial
from typing import TYPE_CHECKING, Final

from flinkcore._internal.python.lazy_names import by_name, lazy_names
from flinkcore._internal.python.missing_features import refuse_name

if TYPE_CHECKING:
    from flinkcore.datastream.connectors.kafka.flink_kafka import (
        FlinkKafkaConsumer,
        FlinkKafkaProducer,
        Semantic,
    )
    from flinkcore.datastream.connectors.kafka.kafka_offsets import (
        KafkaOffsetResetStrategy,
        KafkaOffsetsInitializer,
        KafkaTopicPartition,
    )
    from flinkcore.datastream.connectors.kafka.kafka_sink import (
        KafkaRecordSerializationSchema,
        KafkaRecordSerializationSchemaBuilder,
        KafkaSink,
        KafkaSinkBuilder,
        KafkaTopicSelector,
    )
    from flinkcore.datastream.connectors.kafka.kafka_source import (
        KafkaRecordDeserializationSchema,
        KafkaSource,
        KafkaSourceBuilder,
        SimpleStringValueKafkaRecordDeserializationSchema,
    )

__all__ = [
    "DeliveryGuarantee",
    "FlinkKafkaConsumer",
    "FlinkKafkaProducer",
    "KafkaOffsetResetStrategy",
    "KafkaOffsetsInitializer",
    "KafkaRecordDeserializationSchema",
    "KafkaRecordSerializationSchema",
    "KafkaRecordSerializationSchemaBuilder",
    "KafkaSink",
    "KafkaSinkBuilder",
    "KafkaSource",
    "KafkaSourceBuilder",
    "KafkaTopicPartition",
    "KafkaTopicSelector",
    "Semantic",
    "SimpleStringValueKafkaRecordDeserializationSchema",
]

from flinkcore.datastream.connectors.base import DeliveryGuarantee

_MODULES: Final = by_name(
    {
        "flink_kafka": "FlinkKafkaConsumer FlinkKafkaProducer Semantic",
        "kafka_offsets": "KafkaOffsetResetStrategy KafkaOffsetsInitializer KafkaTopicPartition",
        "kafka_sink": "KafkaRecordSerializationSchema KafkaRecordSerializationSchemaBuilder KafkaSink "
        "KafkaSinkBuilder KafkaTopicSelector",
        "kafka_source": "KafkaRecordDeserializationSchema KafkaSource KafkaSourceBuilder "
        "SimpleStringValueKafkaRecordDeserializationSchema",
    }
)

__getattr__, __dir__ = lazy_names(__name__, _MODULES, partial(refuse_name, __name__))
