"""Jobs over dumps of topics give on Spark what they give embedded, in the same order."""

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from equipment import topic_dumps
from equipment.spark_sessions import spark_session
from equipment.text_files import lines_in
from equipment.topic_dumps import FirstField, builder, lines, records

pytest.importorskip("pyspark")

from pyspark import cloudpickle

from flinkcore.common import Duration, SimpleStringSchema, Time, Types, WatermarkStrategy
from flinkcore.datastream import (
    DataStream,
    ProcessFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from flinkcore.datastream.formats.json import JsonRowDeserializationSchema
from flinkcore.errors import ConfigurationError
from flinkcore.spark import SparkExecutionEnvironment

BOUNDED = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(2))


class Seen(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        timers = ctx.timer_service()
        yield f"{value} {ctx.timestamp()} {timers.current_watermark()} {timers.current_processing_time()}"


class Counted(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield f"{context.window().start} {key} {len(list(elements))}"


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    modules = (sys.modules[__name__], topic_dumps)
    for module in modules:
        cloudpickle.register_pickle_by_value(module)  # workers do not have it
    with spark_session("local[2]") as session:
        yield session
    for module in modules:
        cloudpickle.unregister_pickle_by_value(module)


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Records of two topics: columns with timestamps, and lines."""
    folder, chosen = tmp_path_factory.mktemp("dumps"), random.Random(7)
    rows, time_ms = [], 1_000_000
    for offset in range(600):
        time_ms += chosen.randrange(200)
        sent_ms = time_ms - chosen.randrange(5000)
        rows.append((chosen.randrange(3), offset, sent_ms, f"{sent_ms} u{chosen.randrange(4)}"))
    chosen.shuffle(rows)
    for number in range(3):
        records(folder / "clicks" / f"{number}.parquet", rows[number::3])
    for partition in range(2):
        values = [{"user": f"u{chosen.randrange(4)}", "ts": 1_000_000 + n * 90} for n in range(300)]
        lines(folder / "orders" / f"partition={partition}" / f"orders+{partition}+0000000000.json", values)
    return {"clicks": folder / "clicks", "orders": folder / "orders"}


def with_dumps(environment: StreamExecutionEnvironment, dumps: dict[str, Path]) -> StreamExecutionEnvironment:
    return environment.replace_source(KafkaSource, dumps)


def per_partition(environment: StreamExecutionEnvironment) -> DataStream:
    source = builder("clicks").set_starting_offsets(KafkaOffsetsInitializer.timestamp(1_010_000)).build()
    return environment.from_source(source, BOUNDED.with_idleness(Duration.of_seconds(1)), "clicks").process(
        Seen()
    )


def after_the_source(environment: StreamExecutionEnvironment) -> DataStream:
    stream = environment.from_source(builder("clicks").build(), WatermarkStrategy.no_watermarks(), "clicks")
    strategy = BOUNDED.with_timestamp_assigner(FirstField())
    return stream.assign_timestamps_and_watermarks(strategy).process(Seen())


def windows_of_two_topics(environment: StreamExecutionEnvironment) -> DataStream:
    row = Types.ROW_NAMED(["user", "ts"], [Types.STRING(), Types.LONG()])
    schema = JsonRowDeserializationSchema.builder().type_info(row).build()
    orders = builder("orders").set_value_only_deserializer(schema).build()
    none = WatermarkStrategy.no_watermarks()
    users = environment.from_source(orders, none, "orders").map(lambda row: f"{row.ts} {row.user}")
    clicks = environment.from_source(builder("clicks").build(), none, "clicks")
    both = clicks.union(users).assign_timestamps_and_watermarks(BOUNDED.with_timestamp_assigner(FirstField()))
    keyed = both.key_by(lambda value: value.split()[1])
    return keyed.window(TumblingEventTimeWindows.of(Time.seconds(10))).process(Counted())


def aligned(environment: StreamExecutionEnvironment) -> DataStream:
    strategy = BOUNDED.with_watermark_alignment("group", Duration.of_seconds(1), Duration.of_millis(300))
    return environment.from_source(builder("clicks").build(), strategy, "clicks").process(Seen())


@pytest.mark.parametrize("job", [per_partition, after_the_source, windows_of_two_topics, aligned])
@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_job_over_topics_gives_on_spark_what_it_gives_embedded(
    spark: Any, dumps: dict[str, Path], job: Any, parallelism: int
) -> None:
    embedded = with_dumps(StreamExecutionEnvironment.get_execution_environment(), dumps)
    on_spark = with_dumps(SparkExecutionEnvironment(spark), dumps)
    expected = list(job(embedded.set_parallelism(parallelism)).execute_and_collect())
    assert len(expected) > 20
    assert list(job(on_spark.set_parallelism(parallelism)).execute_and_collect()) == expected


def test_topics_of_a_group_are_not_aligned_on_spark(spark: Any, dumps: dict[str, Path]) -> None:
    environment = with_dumps(SparkExecutionEnvironment(spark), dumps)
    strategy = BOUNDED.with_timestamp_assigner(FirstField()).with_watermark_alignment(
        "group", Duration.of_seconds(1)
    )
    streams = [environment.from_source(builder(topic).build(), strategy, topic) for topic in dumps]
    with pytest.raises(ConfigurationError, match="on Spark tasks run each for itself"):
        streams[0].union(streams[1]).execute_and_collect()


def test_a_topic_is_written_on_spark_as_embedded(spark: Any, dumps: dict[str, Path], tmp_path: Path) -> None:
    schema = KafkaRecordSerializationSchema.builder().set_topic_selector(lambda value: value.split()[1])
    schema = schema.set_value_serialization_schema(SimpleStringSchema())
    sink = (
        KafkaSink.builder().set_bootstrap_servers("broker:9092").set_record_serializer(schema.build()).build()
    )
    written = []
    for number, environment in enumerate(
        (StreamExecutionEnvironment.get_execution_environment(), SparkExecutionEnvironment(spark))
    ):
        with_dumps(environment, dumps).replace_sink(KafkaSink, tmp_path / str(number))
        none = WatermarkStrategy.no_watermarks()
        environment.from_source(builder("clicks").build(), none, "clicks").sink_to(sink)
        environment.execute()
        topics = sorted((tmp_path / str(number)).iterdir())
        written.append({topic.name: sorted(lines_in(topic)) for topic in topics})
    assert written[0] == written[1]
    assert json.dumps(sorted(written[0])) == '["u0", "u1", "u2", "u3"]'
