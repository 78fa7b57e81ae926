"""Jobs over dumps of topics give what the same jobs give over event logs, files and collections."""

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from equipment.text_files import lines_in
from equipment.topic_dumps import FirstField, builder, collected, lines, records, stream_of

from flinkcore.common import (
    Duration,
    OutputTag,
    SimpleStringSchema,
    Time,
    Types,
    WatermarkStrategy,
)
from flinkcore.datastream import (
    DataStream,
    ProcessFunction,
    ProcessWindowFunction,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.connectors.file_system import FileSource, StreamFormat
from flinkcore.datastream.connectors.kafka import (
    FlinkKafkaConsumer,
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from flinkcore.errors import ArgumentTypeError, ConfigurationError, UserCodeError

BOUNDED = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(2))
LATE = OutputTag("late", Types.STRING())


def random_records(seed: int, count: int = 600) -> list[tuple[int, int, int, str]]:
    """Records of three partitions, of which the last lags, in no order."""
    chosen = random.Random(seed)
    rows = []
    for partition in range(3):
        time_ms = 1_000_000
        for offset in range(count):
            time_ms += chosen.randrange(400) * (2 if partition == 2 else 1)
            sent_ms = time_ms - chosen.randrange(4000)
            rows.append((partition, 50 + offset, sent_ms, f"{sent_ms} u{chosen.randrange(4)}"))
    chosen.shuffle(rows)
    return rows


class Seen(ProcessFunction):
    """Gives each element with its timestamp, the watermark and the time of the job's clock."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        timers = ctx.timer_service()
        yield value, ctx.timestamp(), timers.current_watermark(), timers.current_processing_time()


class Counted(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield context.window().start, key, len(list(elements)), context.current_watermark()


def counted(stream: DataStream) -> list[Any]:
    keyed = stream.key_by(lambda value: value.split()[1])
    windows = keyed.window(TumblingEventTimeWindows.of(Time.seconds(10))).side_output_late_data(LATE)
    return list(windows.process(Counted()).execute_and_collect())


def as_log(rows: list[tuple[int, int, int, str]], strategy: WatermarkStrategy) -> DataStream:
    """The same records as an event log, whose arrivals do not go back."""
    columns: dict[str, list[Any]] = {"partition": [], "offset": [], "ts": [], "value": [], "arrival": []}
    latest: dict[int, int] = {}
    for partition, offset, time_ms, value in sorted(rows):
        latest[partition] = max(time_ms, latest.get(partition, 0))
        added = (partition, offset, time_ms, value, latest[partition])
        for name, each in zip(columns, added, strict=True):
            columns[name].append(each)
    environment = StreamExecutionEnvironment.get_execution_environment()
    log = environment.from_event_log(
        pa.table(columns), timestamp="ts", arrival="arrival", split="partition", position="offset"
    )
    return log.assign_timestamps_and_watermarks(strategy).elements().map(lambda row: row.value)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "strategy",
    [
        BOUNDED,
        BOUNDED.with_idleness(Duration.of_seconds(1)),
        WatermarkStrategy.for_monotonous_timestamps(),
        WatermarkStrategy.no_watermarks(),
        BOUNDED.with_watermark_alignment("group", Duration.of_seconds(3)),
    ],
    ids=str,
)
def test_a_topic_is_an_event_log_split_by_partition(
    tmp_path: Path, seed: int, strategy: WatermarkStrategy
) -> None:
    rows = random_records(seed)
    dump = records(tmp_path / "clicks.parquet", rows)
    topic = stream_of(builder("clicks").build(), strategy, clicks=dump)
    expected = list(as_log(rows, strategy).process(Seen()).execute_and_collect())
    assert list(topic.process(Seen()).execute_and_collect()) == expected
    assert counted(stream_of(builder("clicks").build(), BOUNDED, clicks=dump)) == counted(
        as_log(rows, BOUNDED)
    )


def test_files_in_which_records_lie_do_not_matter(tmp_path: Path) -> None:
    rows = random_records(4)
    whole = records(tmp_path / "whole" / "clicks.parquet", rows)
    for number in range(5):
        records(tmp_path / "parts" / f"{number}.parquet", rows[number::5])
    strategy = BOUNDED.with_timestamp_assigner(FirstField())
    seen = [
        list(
            stream_of(builder("clicks").build(), strategy, clicks=dump).process(Seen()).execute_and_collect()
        )
        for dump in (whole, tmp_path / "parts")
    ]
    assert seen[0] == seen[1]


def test_the_watermark_waits_for_the_partition_that_lags(tmp_path: Path) -> None:
    rows = [(0, 0, 10_000, "a"), (1, 0, 10_100, "b"), (0, 1, 40_000, "c"), (1, 1, 40_100, "d")]
    late = [(1, 2, 12_000, "e"), (1, 3, 70_000, "f")]
    dump = records(tmp_path / "clicks.parquet", rows + late)
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    seen = stream_of(builder("clicks").build(), strategy, clicks=dump).process(Seen()).execute_and_collect()
    watermarks = {value: watermark for value, _, watermark, _ in seen}
    assert watermarks["c"] == 9_999  # of partition 0, for 1 is ahead
    assert watermarks["f"] == 39_999


def test_topics_of_a_group_wait_for_each_other(tmp_path: Path) -> None:
    ahead = records(
        tmp_path / "a.parquet", [(0, n, 1_000_000 + n * 100, f"{n * 1000} a") for n in range(200)]
    )
    slow = records(tmp_path / "b.parquet", [(0, n, 1_000_000 + n * 100, f"{n * 100} b") for n in range(200)])

    def read_of_a_meanwhile(strategy: WatermarkStrategy) -> int:
        """How far the one topic is read when the other one is at 8 seconds."""
        environment = StreamExecutionEnvironment.get_execution_environment()
        environment.replace_source(KafkaSource, {"a": ahead, "b": slow})
        a, b = (environment.from_source(builder(topic).build(), strategy, topic) for topic in "ab")
        seen = list(a.union(b).execute_and_collect())
        assert len(seen) == 400
        return max(int(value.split()[0]) for value in seen[: seen.index("8000 b")])

    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(FirstField())
    aligned = strategy.with_watermark_alignment("group", Duration.of_seconds(2), Duration.of_millis(400))
    alone = strategy.with_watermark_alignment("group", Duration.of_days(9), Duration.of_millis(400))
    assert read_of_a_meanwhile(strategy) == read_of_a_meanwhile(alone) == 80_000
    assert read_of_a_meanwhile(aligned) < 20_000


def test_lines_are_read_as_a_source_of_files_reads_them(tmp_path: Path) -> None:
    values = [f"{1_000_000 + number * 37 - number % 7 * 300} u{number % 3}" for number in range(2000)]
    strategy = BOUNDED.with_timestamp_assigner(FirstField())
    for partitions in (1, 3):
        folder = tmp_path / str(partitions)
        for partition in range(partitions):
            lines(folder / f"partition={partition}" / "0.txt", values[partition::partitions])
        environment = StreamExecutionEnvironment.get_execution_environment()
        environment.set_parallelism(partitions)
        files = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(folder)).build()
        lone = environment.from_source(files, strategy, "files")
        topic = stream_of(builder("clicks").build(), strategy, clicks=folder)
        found, expected = counted(topic), counted(lone)
        if partitions > 1:  # each subtask of windows gives those of its keys
            found, expected = sorted(found), sorted(expected)
        assert found == expected
    elements = StreamExecutionEnvironment.get_execution_environment().from_collection(values, Types.STRING())
    topic = stream_of(builder("clicks").build(), strategy, clicks=tmp_path / "1")
    assert counted(topic) == counted(elements.assign_timestamps_and_watermarks(strategy))


def test_an_assigner_is_given_the_element_and_the_timestamp_of_its_record(tmp_path: Path) -> None:
    class Both(FirstField):
        def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
            return record_timestamp + int(value)

    dump = records(tmp_path / "clicks.parquet", [(0, 0, 1000, "7")])
    strategy = BOUNDED.with_timestamp_assigner(Both())
    (seen,) = (
        stream_of(builder("clicks").build(), strategy, clicks=dump).process(Seen()).execute_and_collect()
    )
    assert seen[1] == 1007


def test_timestamps_of_records_are_missed_before_anything_is_read(tmp_path: Path) -> None:
    dump = lines(tmp_path / "clicks.json", ["{"])
    stream = stream_of(builder("clicks").build(), BOUNDED, clicks=dump)
    with pytest.raises(
        ConfigurationError, match=r"The dump of topic 'clicks' has none\. .*with_timestamp_assigner"
    ):
        stream.execute_and_collect()


def test_a_strategy_after_the_source_makes_watermarks_of_the_whole_stream(tmp_path: Path) -> None:
    rows = [(0, 0, 1000, "50000 a"), (1, 0, 2000, "1000 b"), (0, 1, 5000, "51000 c")]
    dump = records(tmp_path / "clicks.parquet", rows)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(FirstField())
    stream = stream_of(builder("clicks").build(), clicks=dump).assign_timestamps_and_watermarks(strategy)
    seen = list(stream.process(Seen()).execute_and_collect())
    assert [watermark for _, _, watermark, _ in seen[1:]] == [49_999, 49_999]


def test_several_topics_are_one_source(tmp_path: Path) -> None:
    clicks = records(tmp_path / "clicks.parquet", [(0, 0, 1000, "a"), (0, 1, 3000, "c")])
    orders = records(tmp_path / "orders.parquet", [(0, 0, 2000, "b")])
    assert collected(builder("clicks", "orders").build(), clicks=clicks, orders=orders) == ["a", "b", "c"]
    pattern = builder().set_topic_pattern("cli.*|x").build()
    assert collected(pattern, clicks=clicks, orders=orders) == ["a", "c"]


def test_batch_mode_takes_a_bounded_source(tmp_path: Path) -> None:
    dump = records(tmp_path / "clicks.parquet", random_records(1))

    def counts(source: KafkaSource) -> list[Any]:
        environment = StreamExecutionEnvironment.get_execution_environment()
        environment.set_runtime_mode(RuntimeExecutionMode.BATCH)
        environment.replace_source(KafkaSource, {"clicks": dump})
        return counted(environment.from_source(source, BOUNDED, "clicks"))

    bounded = builder("clicks").set_bounded(KafkaOffsetsInitializer.latest()).build()
    assert sum(count for _, _, count, _ in counts(bounded)) == 1800
    with pytest.raises(ConfigurationError, match="unbounded"):
        counts(builder("clicks").build())


def test_elements_have_the_type_that_is_declared(tmp_path: Path) -> None:
    dump = lines(tmp_path / "clicks.txt", ["a"])
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.replace_source(KafkaSource, {"clicks": dump})
    none = WatermarkStrategy.no_watermarks()
    assert environment.from_source(builder("clicks").build(), none, "a").get_type() == Types.STRING()
    declared = environment.from_source(builder("clicks").build(), none, "a", Types.CHAR())
    assert declared.get_type() == Types.CHAR()
    assert list(declared.execute_and_collect()) == ["a"]


def test_a_schema_of_the_program_may_leave_elements_out_and_fail(tmp_path: Path) -> None:
    class Numbers(SimpleStringSchema):
        def deserialize(self, message: bytes) -> Any:
            return int(message) or None

    dump = records(tmp_path / "clicks.parquet", [(0, 0, 1, "1"), (0, 1, 2, "0"), (0, 2, 3, "2")])
    source = builder("clicks").set_value_only_deserializer(Numbers())
    assert collected(source.build(), clicks=dump) == [1, 2]
    dump = records(tmp_path / "clicks.parquet", [(0, 0, 1, "x")])
    with pytest.raises(UserCodeError, match="Numbers failed at the record at offset 0 of partition 0"):
        collected(source.build(), clicks=dump)


def test_a_consumer_of_former_versions_reads_dumps_by_partition(tmp_path: Path) -> None:
    rows = random_records(2)
    dump = records(tmp_path / "clicks.parquet", rows)
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.replace_source(FlinkKafkaConsumer, {"clicks": dump})
    consumer = FlinkKafkaConsumer("clicks", SimpleStringSchema(), {"bootstrap.servers": "broker:9092"})
    consumer.set_start_from_earliest().assign_timestamps_and_watermarks(BOUNDED)
    assert counted(environment.add_source(consumer)) == counted(as_log(rows, BOUNDED))


def test_a_job_resumes_with_the_dump_of_what_came_next(tmp_path: Path) -> None:
    rows = sorted(random_records(5), key=lambda row: row[2])
    whole = records(tmp_path / "all" / "clicks.parquet", rows)
    arrival: dict[int, int] = {}
    first, second = [], []
    for row in sorted(rows):
        arrival[row[0]] = max(row[2], arrival.get(row[0], 0))
        (first if arrival[row[0]] < 1_040_000 else second).append(row)
    days = [records(tmp_path / f"day={n}" / "clicks.parquet", part) for n, part in enumerate((first, second))]

    def run(dump: Path, **checkpoints: Any) -> list[Any]:
        stream = stream_of(builder("clicks").build(), BOUNDED, clicks=dump)
        keyed = stream.key_by(lambda value: value.split()[1])
        windows = keyed.window(TumblingEventTimeWindows.of(Time.seconds(10)))
        return list(windows.process(Counted()).execute_and_collect(**checkpoints))

    saved = tmp_path / "checkpoint"
    parts = run(days[0], stop_with_checkpoint=saved) + run(days[1], restore_from=saved)
    assert parts == run(whole)


def test_a_sink_of_topics_commits_with_the_checkpoints_of_its_job(tmp_path: Path) -> None:
    rows = [(0, n, 1_000_000 + n * 100, f"{n} u") for n in range(100)]
    days = [records(tmp_path / f"{n}.parquet", part) for n, part in enumerate((rows[:60], rows[60:]))]
    schema = KafkaRecordSerializationSchema.builder().set_topic("out")
    schema = schema.set_value_serialization_schema(SimpleStringSchema())
    sink = (
        KafkaSink.builder().set_bootstrap_servers("broker:9092").set_record_serializer(schema.build()).build()
    )
    saved = tmp_path / "checkpoint"
    for dump, checkpoints in zip(
        days, ({"stop_with_checkpoint": saved}, {"restore_from": saved}), strict=True
    ):
        stream = stream_of(builder("clicks").build(), BOUNDED, clicks=dump)
        stream._environment.replace_sink(KafkaSink, tmp_path / "topics")
        stream.sink_to(sink)
        stream._environment.execute(**checkpoints)
    assert lines_in(tmp_path / "topics" / "out") == sorted(value for *_, value in rows)


def test_a_topic_is_a_source_in_plans(tmp_path: Path) -> None:
    stream = stream_of(builder("clicks").build(), BOUNDED, clicks=lines(tmp_path / "clicks.txt", ["a"]))
    stream.map(str).print()
    plan = json.loads(stream._environment.get_execution_plan())
    first = plan["nodes"][0]
    assert (first["type"], first["pact"]) == ("Source: topics", "Data Source")


def test_sources_of_other_kinds_are_not_replaced() -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(
        ArgumentTypeError, match="replaces KafkaSource and FlinkKafkaConsumer, and not FileSource"
    ):
        environment.replace_source(FileSource, {"clicks": "dump"})
    with pytest.raises(ArgumentTypeError, match="by topic, such as"):
        environment.replace_source(KafkaSource, "dump")  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="the dump of topic 'clicks' is a path, or several, not 5"):
        environment.replace_source(KafkaSource, {"clicks": 5})  # type: ignore[dict-item]


def test_a_topic_without_a_dump_is_an_error_with_the_command_line(tmp_path: Path) -> None:
    source = builder("clicks", "orders", "views").build()
    with pytest.raises(ConfigurationError) as raised:
        stream_of(source, clicks=tmp_path)
    assert "there are dumps of 'clicks'" in str(raised.value)
    options = "--replace-source KafkaSource orders=PATH --replace-source KafkaSource views=PATH"
    assert f"`flinkcore run {options} " in str(raised.value)
    with pytest.raises(ConfigurationError, match=r"the topics that match 'x\+' of a cluster"):
        stream_of(builder().set_topic_pattern("x+").build(), clicks=tmp_path)


def test_a_dump_is_read_wherever_the_program_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines(Path("clicks.txt"), ["a"])
    stream = stream_of(builder("clicks").build(), clicks="clicks.txt")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert list(stream.execute_and_collect()) == ["a"]


def test_columns_of_other_formats_have_records_too(tmp_path: Path) -> None:
    table = pq.read_table(records(tmp_path / "clicks.parquet", random_records(6, 50)))
    with pa.ipc.new_file(tmp_path / "clicks.arrow", table.schema) as file:
        file.write_table(table)
    found = [
        collected(builder("clicks").build(), clicks=tmp_path / f"clicks.{kind}")
        for kind in ("parquet", "arrow")
    ]
    assert found[0] == found[1]
    assert len(found[0]) == 150
