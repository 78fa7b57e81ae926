"""Writes the running totals of users into a topic, with the user as the key."""

from pyflink.common import Row, Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.base import DeliveryGuarantee
from pyflink.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from pyflink.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema

env = StreamExecutionEnvironment.get_execution_environment()
click = Types.ROW_NAMED(["user", "price"], [Types.STRING(), Types.LONG()])
key = Types.ROW_NAMED(["user"], [Types.STRING()])
source = (
    KafkaSource.builder()
    .set_bootstrap_servers("broker:9092")
    .set_topic_pattern("clicks.*")
    .set_starting_offsets(KafkaOffsetsInitializer.earliest())
    .set_bounded(KafkaOffsetsInitializer.latest())
    .set_value_only_deserializer(JsonRowDeserializationSchema.builder().type_info(click).build())
    .build()
)
records = (
    KafkaRecordSerializationSchema.builder()
    .set_topic_selector(lambda row: "large" if row.price > 500 else "small")
    .set_key_serialization_schema(JsonRowSerializationSchema.builder().with_type_info(key).build())
    .set_value_serialization_schema(JsonRowSerializationSchema.builder().with_type_info(click).build())
    .build()
)
sink = (
    KafkaSink.builder()
    .set_bootstrap_servers("broker:9092")
    .set_record_serializer(records)
    .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    .set_transactional_id_prefix("totals")
    .build()
)
totals = (
    env.from_source(source, WatermarkStrategy.no_watermarks(), "clicks")
    .key_by(lambda row: row.user)
    .reduce(lambda one, other: Row(user=one.user, price=one.price + other.price))
)
totals.sink_to(sink)
env.execute("totals")
