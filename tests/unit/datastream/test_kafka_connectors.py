"""Builders of Kafka's sources and sinks take what PyFlink's take, and refuse what Flink refuses; sinks write files."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from equipment.topic_dumps import builder, collected

from flinkcore.common import ByteArraySchema, Row, SimpleStringSchema, Types
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.datastream.connectors import FileSource
from flinkcore.datastream.connectors.kafka import (
    DeliveryGuarantee,
    FlinkKafkaConsumer,
    FlinkKafkaProducer,
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
    KafkaTopicPartition,
    KafkaTopicSelector,
    Semantic,
    SimpleStringValueKafkaRecordDeserializationSchema,
)
from flinkcore.datastream.formats.json import JsonRowSerializationSchema
from flinkcore.errors import ArgumentTypeError, ConfigurationError, DataError, UserCodeError

CLICKS_0 = KafkaTopicPartition("clicks", 0)
TEXT = SimpleStringSchema()


def records(topic: Any = "out", value: Any = TEXT, key: Any = None) -> KafkaRecordSerializationSchema:
    schema = KafkaRecordSerializationSchema.builder().set_value_serialization_schema(value)
    schema = schema.set_topic(topic) if isinstance(topic, str) else schema.set_topic_selector(topic)
    return (schema if key is None else schema.set_key_serialization_schema(key)).build()


def sink(schema: KafkaRecordSerializationSchema) -> KafkaSink:
    return KafkaSink.builder().set_bootstrap_servers("broker:9092").set_record_serializer(schema).build()


def written(
    folder: Path, elements: list[Any], schema: KafkaRecordSerializationSchema, **settings: Any
) -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.replace_sink(KafkaSink, folder, **settings)
    environment.from_collection(elements).sink_to(sink(schema))
    environment.execute()


def lines(folder: Path) -> list[str]:
    return [line for path in sorted(folder.iterdir()) for line in path.read_text().splitlines()]


def test_a_source_has_the_settings_of_its_builder() -> None:
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers("broker:9092")
        .set_partitions({CLICKS_0})
        .set_starting_offsets(KafkaOffsetsInitializer.timestamp(5))
        .set_unbounded(KafkaOffsetsInitializer.offsets({CLICKS_0: 7}))
        .set_properties({"a": "1", "b": "2"})
        .set_deserializer(SimpleStringValueKafkaRecordDeserializationSchema("latin-1"))
        .build()
    )
    assert source.topics_among([]) == ["clicks"]
    assert source.starting_offsets.timestamp_ms == 5
    assert source.stopping_offsets is not None
    assert source.stopping_offsets.of_partitions == {CLICKS_0: 7}
    assert not source.is_bounded
    assert source.produced_type() == Types.STRING()
    assert source.properties["b"] == "2"


@pytest.mark.parametrize(
    ("build", "error"),
    [
        (lambda: KafkaSource.builder().set_topics("a").build(), "lacks the servers"),
        (lambda: builder().build(), "lacks topics"),
        (
            lambda: KafkaSource.builder().set_bootstrap_servers("b").set_topics("a").build(),
            "lacks a deserializer",
        ),
        (lambda: builder("a").set_topic_pattern("a.*"), "cannot be set besides topics"),
        (lambda: builder("a").set_topics("b"), "cannot be set besides topics"),
        (lambda: builder().set_topic_pattern("("), "takes a regular expression"),
        (lambda: builder().set_topics(), "one topic at least"),
        (lambda: builder().set_topics(""), "not an empty text"),
        (lambda: builder().set_topics(5), "a topic is a text"),
        (lambda: builder().set_partitions({"clicks"}), "a set of KafkaTopicPartition"),
        (lambda: builder().set_partitions(set()), "one partition at least"),
        (lambda: builder().set_starting_offsets("earliest"), "takes offsets such as"),
        (lambda: builder().set_bounded(None), "set_bounded.* takes offsets such as"),
        (lambda: builder().set_value_only_deserializer(str), "takes a schema such as"),
        (lambda: builder().set_deserializer(TEXT), "takes a KafkaRecordDeserializationSchema"),
        (lambda: builder().set_property("a", 1), "a property is a text"),
        (
            lambda: (
                KafkaSource.builder()
                .set_bootstrap_servers("b")
                .set_topics("a")
                .set_value_only_deserializer(TEXT)
                .set_starting_offsets(KafkaOffsetsInitializer.committed_offsets())
                .build()
            ),
            "lacks the group whose committed offsets",
        ),
        (lambda: KafkaTopicPartition("a", -1), "an integer from 0"),
        (lambda: KafkaTopicPartition("a", "0"), "an integer from 0"),
        (lambda: KafkaOffsetsInitializer.timestamp(-1), "not negative"),
        (lambda: KafkaOffsetsInitializer.timestamp("now"), "is an integer"),
        (lambda: KafkaOffsetsInitializer.offsets({CLICKS_0: -1}), "the offset of clicks-0"),
        (lambda: KafkaOffsetsInitializer.offsets({"clicks": 1}), "by KafkaTopicPartition"),
        (lambda: KafkaOffsetsInitializer.committed_offsets("earliest"), "KafkaOffsetResetStrategy.EARLIEST"),
        (lambda: FlinkKafkaConsumer("a", TEXT, {"auto.offset.reset": "x"}), "auto.offset.reset is one of"),
        (lambda: KafkaRecordSerializationSchema.builder().set_topic("a").build(), "lacks one of values"),
        (
            lambda: KafkaRecordSerializationSchema.builder().set_value_serialization_schema(TEXT).build(),
            "lacks a topic",
        ),
        (
            lambda: KafkaRecordSerializationSchema.builder().set_topic("a").set_topic("b"),
            "topic is set already",
        ),
        (
            lambda: KafkaRecordSerializationSchema.builder().set_topic_selector("a"),
            "takes a KafkaTopicSelector",
        ),
        (
            lambda: KafkaRecordSerializationSchema.builder().set_key_serialization_schema(str),
            "takes a schema such as",
        ),
        (lambda: KafkaSink.builder().set_record_serializer(records()).build(), "lacks the servers"),
        (lambda: KafkaSink.builder().set_bootstrap_servers("b").build(), "lacks a serializer"),
        (lambda: KafkaSink.builder().set_record_serializer(TEXT), "builder.* builds"),
        (lambda: KafkaSink.builder().set_delivery_guarantee("once"), "takes one such as"),
        (lambda: KafkaSink.builder().set_transactional_id_prefix("x" * 64_001), "64,000 bytes at most"),
        (
            lambda: (
                KafkaSink.builder()
                .set_bootstrap_servers("b")
                .set_record_serializer(records())
                .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
                .build()
            ),
            "requires: call set_transactional_id_prefix",
        ),
    ],
)
def test_builders_refuse_what_flink_refuses(build: Any, error: str) -> None:
    with pytest.raises(ConfigurationError, match=error):
        build()


def test_texts_and_json_are_lines_of_a_directory_of_their_topic(tmp_path: Path) -> None:
    written(tmp_path, ["a", "b"], records("letters"))
    row = Types.ROW_NAMED(["n"], [Types.INT()])
    schema = JsonRowSerializationSchema.builder().with_type_info(row).build()
    written(tmp_path, [Row(n=1), Row(n=2)], records(lambda row: "odd" if row.n % 2 else "even", schema))
    assert lines(tmp_path / "letters") == ["a", "b"]
    assert {path.suffix for path in (tmp_path / "letters").iterdir()} == {".txt"}
    assert lines(tmp_path / "odd") == ['{"n":1}']
    assert {path.suffix for path in (tmp_path / "even").iterdir()} == {".json"}
    assert collected(builder("even").build(), even=tmp_path / "even") == ['{"n":2}']


def test_keys_and_bytes_are_columns_of_parquet_which_a_source_reads(tmp_path: Path) -> None:
    written(tmp_path, ["a", "b\nc"], records("keyed", key=TEXT))
    table = pq.read_table(tmp_path / "keyed")
    assert table.to_pydict() == {
        "key": [b"a", b"b\nc"],
        "value": [b"a", b"b\nc"],
        "topic": ["keyed", "keyed"],
    }
    written(tmp_path, [b"\n\x00"], records("bytes", ByteArraySchema()))
    assert collected(builder("keyed").build(), keyed=tmp_path / "keyed") == ["a", "b\nc"]
    assert collected(builder("bytes").build(), bytes=tmp_path / "bytes") == ["\n\x00"]


def test_a_line_break_is_an_error_in_lines_and_not_in_parquet(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has a line break, .*--sink-format parquet"):
        written(tmp_path / "a", ["one\ntwo"], records())
    assert list((tmp_path / "a" / "out").iterdir()) == []
    with pytest.raises(DataError, match="has a key"):
        written(tmp_path / "a", ["one"], records(key=TEXT), format="lines")
    written(tmp_path / "b", ["one\ntwo"], records(), format="parquet")
    assert collected(builder("out").build(), out=tmp_path / "b" / "out") == ["one\ntwo"]


class Spelled(KafkaTopicSelector):
    def apply(self, data: Any) -> str:
        return {1: "one", 2: "../two", 3: ""}[data]


class Digits(SimpleStringSchema):
    def serialize(self, element: Any) -> bytes:
        return b"%d" % element


def test_a_selector_chooses_the_topic_of_each_element(tmp_path: Path) -> None:
    written(tmp_path, [1, 1], records(Spelled(), Digits()))
    assert lines(tmp_path / "one") == ["1", "1"]
    for element in (2, 3):
        with pytest.raises(DataError, match="the topic selector gave"):
            written(tmp_path, [element], records(Spelled(), Digits()))
    with pytest.raises(UserCodeError, match="the topic selector failed at 4: KeyError: 4"):
        written(tmp_path, [4], records(Spelled(), Digits()))
    with pytest.raises(UserCodeError, match="the serializer Digits failed at 'x'"):
        written(tmp_path, ["x"], records("one", Digits()))


def test_a_producer_of_former_versions_writes_lines(tmp_path: Path) -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.replace_sink(FlinkKafkaProducer, tmp_path)
    producer = FlinkKafkaProducer("out", TEXT, {"bootstrap.servers": "b"}, semantic=Semantic.EXACTLY_ONCE)
    environment.from_collection(["a"]).add_sink(producer.set_flush_on_checkpoint(True))
    environment.execute()
    assert lines(tmp_path / "out") == ["a"]


def test_a_sink_without_a_directory_is_an_error_with_the_command_line() -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(
        ConfigurationError, match=r"writes the topic 'out' .*--replace-sink KafkaSink DIRECTORY"
    ):
        environment.from_collection(["a"]).sink_to(sink(records()))
    producer = FlinkKafkaProducer("out", TEXT, {})
    with pytest.raises(ConfigurationError, match="--replace-sink FlinkKafkaProducer DIRECTORY"):
        environment.from_collection(["a"]).add_sink(producer)


def test_sinks_are_replaced_by_local_directories_alone(tmp_path: Path) -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(
        ArgumentTypeError, match="replaces KafkaSink and FlinkKafkaProducer, and not FileSource"
    ):
        environment.replace_sink(FileSource, tmp_path)
    with pytest.raises(ConfigurationError, match="replaced by a local directory"):
        environment.replace_sink(KafkaSink, "s3://bucket/out")
    with pytest.raises(ConfigurationError, match="one of 'lines', 'parquet'"):
        environment.replace_sink(KafkaSink, tmp_path, "csv")  # type: ignore[arg-type]


def test_strategies_of_resetting_are_those_of_kafka() -> None:
    assert [each.name for each in KafkaOffsetResetStrategy] == ["LATEST", "EARLIEST", "NONE"]
