"""The table of Flink's classes and ours names what exists, and what jobs reach."""

import importlib
import inspect
import json
import re
import subprocess
import sys
import threading
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pyarrow as pa
import pytest
from equipment.timestamped_source import TimestampedSource
from jobs.checkpoint_trials import JOBS as JOBS_OVER_LOGS
from jobs.checkpoint_trials import run_job
from jobs.window_programs import Elements

from flinkcore.common import (
    CompletableFuture,
    Configuration,
    Duration,
    Encoder,
    PickleSerializer,
    Row,
    Time,
    TimestampAssigner,
    Watermark,
    WatermarkStrategy,
)
from flinkcore.common.watermark_generators import AscendingTimestampsWatermarks
from flinkcore.datastream import (
    AsyncDataStream,
    DataStream,
    ParallelSourceFunction,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
    TimeCharacteristic,
)
from flinkcore.datastream.connectors import NumberSequenceSource
from flinkcore.datastream.connectors.file_system import FileSink, FileSource, StreamFormat
from flinkcore.datastream.functions import (
    AllWindowFunction,
    AsyncFunction,
    CheckpointedFunction,
    CoFlatMapFunction,
    CoMapFunction,
    FlatJoinFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    KeyedBatchProcessFunction,
    KeyedProcessFunction,
    PacedSourceContext,
    Partitioner,
    ProcessAllWindowFunction,
    ProcessJoinFunction,
    RuntimeContext,
    SinkFunction,
    WindowFunction,
)
from flinkcore.datastream.state import ValueStateDescriptor
from flinkcore.datastream.timestamps import (
    AscendingTimestampExtractor,
    AssignerWithPunctuatedWatermarks,
    BoundedOutOfOrdernessTimestampExtractor,
    IngestionTimeExtractor,
)
from flinkcore.datastream.window import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountEvictor,
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    CumulativeEventTimeWindows,
    DeltaEvictor,
    DeltaTrigger,
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EndOfStreamTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    NeverTrigger,
    ProcessingTimeoutTrigger,
    ProcessingTimeSessionWindows,
    ProcessingTimeTrigger,
    PurgingTrigger,
    SessionWindowTimeGapExtractor,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeEvictor,
    Trigger,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
)

TABLE = Path(__file__).parents[2] / "flinkcore" / "operators" / "README.md"
ROWS = [
    [cell.strip() for cell in line.split("|")[1:-1]]
    for line in TABLE.read_text().splitlines()
    if line.startswith("| ")
][1:]
PARTS = [part.strip() for row in ROWS for part in row[1].split(";") if part.strip()]
JOBS = {"element jobs", "replays", "all", "harnesses", "none"}


def test_the_table_has_rows() -> None:
    assert len(PARTS) > 40


@pytest.mark.parametrize("part", PARTS)
def test_a_row_names_what_exists(part: str) -> None:
    module, *names = re.findall(r"`([\w.]+)`", part)
    assert names
    for name in names:
        assert hasattr(importlib.import_module(f"flinkcore.{module}"), name), name


@pytest.mark.parametrize("row", [row for row in ROWS if not row[0].startswith("**")], ids=lambda row: row[0])
def test_a_row_says_which_jobs_reach_it(row: list[str]) -> None:
    assert row[3] in JOBS


# ---- jobs ----


class Emitting(ParallelSourceFunction, CheckpointedFunction):
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        assert not context.is_restored()

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        assert context.get_checkpoint_id() == 1

    def run(self, ctx: PacedSourceContext[Any]) -> None:
        for at in range(3):
            ctx.collect_with_timestamp(at, at)
            ctx.emit_watermark(Watermark(at))
            ctx.sleep(50)

    def cancel(self) -> None:
        raise AssertionError("it ends by itself")


class Bounded(BoundedOutOfOrdernessTimestampExtractor):
    def extract_element_timestamp(self, element: int) -> int:
        return element


class Ascending(AscendingTimestampExtractor):
    def extract_ascending_timestamp(self, element: int) -> int:
        return element


class Punctuated(AssignerWithPunctuatedWatermarks):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value

    def check_and_get_next_watermark(self, last_element: int, extracted_timestamp: int) -> Watermark:
        return Watermark(extracted_timestamp)


def function_jobs(folder: Path) -> None:
    for characteristic in TimeCharacteristic:
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_stream_time_characteristic(characteristic)
        stream = env.add_source(Emitting(), idle_timeout=Duration.of_millis(10))
        assert len(list(stream.execute_and_collect())) == 3
        stopped = stream.execute_and_collect(stop_with_checkpoint=folder / characteristic.name)
        assert len(list(stopped)) == 3


def source_jobs() -> None:
    aligned = WatermarkStrategy.for_monotonous_timestamps().with_watermark_alignment(
        "group", Duration.of_millis(1), Duration.of_millis(1)
    )
    splits = TimestampedSource({"a": [(1, 1), (2, 2)], "b": [(3, 3)]})
    for mode, strategy in (
        (RuntimeExecutionMode.STREAMING, aligned),
        (RuntimeExecutionMode.BATCH, WatermarkStrategy.no_watermarks()),
    ):
        env = StreamExecutionEnvironment.get_execution_environment(Configuration()).set_runtime_mode(mode)
        env.get_config().set_latency_tracking_interval(1)
        numbers = env.from_source(NumberSequenceSource(1, 2), strategy, "numbers")
        stream = numbers.union(env.from_source(splits, strategy, "splits"))
        assert sorted(stream.execute_and_collect()) == [1, 1, 2, 2, 3]


def assigner_jobs() -> None:
    for assigner in (Bounded(Duration.of_millis(1)), Ascending(), Punctuated(), IngestionTimeExtractor()):
        env = StreamExecutionEnvironment.get_execution_environment()
        stream = env.from_collection([1, 2]).assign_timestamps_and_watermarks(assigner)
        assert list(stream.execute_and_collect()) == [1, 2]


def system_clock_jobs() -> None:
    for chaining in (True, False):
        env = StreamExecutionEnvironment.get_execution_environment().set_clock("system")
        env.get_config().set_chaining_enabled(chaining)
        strategy = WatermarkStrategy.for_monotonous_timestamps()
        stream = env.from_source(NumberSequenceSource(1, 2), strategy, "numbers")
        assert list(stream.execute_and_collect()) == [1, 2]


class Slowly(AsyncFunction[Any, Any]):
    async def async_invoke(self, value: Any) -> list[Any]:
        return [value]


class OneOrOther(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return value

    def map2(self, value: Any) -> Any:
        return value


class OneAndOther(CoFlatMapFunction):
    def flat_map1(self, value: Any) -> Any:
        yield value

    def flat_map2(self, value: Any) -> Any:
        yield value


class Written(SinkFunction):
    def invoke(self, value: Any) -> None:
        assert value is not None


def step_jobs(folder: Path) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    lines = env.from_collection(["1", "2"]).sink_to
    lines(FileSink.for_row_format(str(folder / "lines"), Encoder.simple_string_encoder()).build())
    env.execute()
    source = FileSource.for_record_stream_format(
        StreamFormat.text_line_format(), str(folder / "lines")
    ).build()
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines").map(
        lambda line: [int(line)]
    )
    dealt = numbers.rebalance().map(list).shuffle().map(list).broadcast().filter(lambda value: True)
    by_number = dealt.partition_custom(ByNumber(), lambda value: value[0]).flat_map(lambda value: [value])
    summed = by_number.key_by(lambda value: "a").reduce(lambda one, other: one + other)
    for operator in (OneOrOther(), OneAndOther()):
        both = summed.connect(numbers)
        summed = (both.map if isinstance(operator, CoMapFunction) else both.flat_map)(operator)  # type: ignore
    summed.print()
    summed.add_sink(Written())
    waited = AsyncDataStream.unordered_wait(summed, Slowly(), Time.seconds(5), 2)
    assert [1] in list(waited.execute_and_collect())
    for wait in (AsyncDataStream.ordered_wait, AsyncDataStream.unordered_wait):
        clock = StreamExecutionEnvironment.get_execution_environment().set_clock("system")
        waited = wait(clock.from_collection([1, 2]), Slowly(), Time.seconds(5), 2)
        assert sorted(waited.execute_and_collect()) == [1, 2]
    clock.from_collection([1]).print()
    assert isinstance(clock.execute_async().get_job_execution_result(), CompletableFuture)


class ByNumber(Partitioner):
    def partition(self, key: Any, num_partitions: int) -> int:
        return int(key) % num_partitions


def replayed_jobs(folder: Path) -> None:
    for name in JOBS_OVER_LOGS:
        run_job(name, 0, stop_with_checkpoint=folder / name)
        run_job(name, 1, restore_from=folder / name)
    events = StreamExecutionEnvironment().from_event_log(pa.table({"user": ["a"], "ts": [1]}), timestamp="ts")
    percentiles = WatermarkStrategy.for_percentile_out_of_orderness(Duration.of_millis(1), 0.9, 10)
    timed = events.assign_timestamps_and_watermarks(percentiles.with_idleness(Duration.of_millis(5)))
    for function in (Serialized(), Columns()):
        told = timed.key_by("user").process(function, pa.schema({"user": pa.string()}))
        for checkpoint in ({"stop_with_checkpoint": folder / "state"}, {"restore_from": folder / "state"}):
            assert told.execute(**checkpoint).to_arrow().num_rows == 1

    joined = timed.join(timed).where("user").equal_to("user").window(TumblingEventTimeWindows.of(TEN_MS))
    assert joined.apply(Both(), pa.schema({"user": pa.string()})).to_arrow().num_rows == 1


class Both(FlatJoinFunction[Row, Row]):
    def join(self, first: Row, second: Row) -> Any:
        yield (first.user,)


class Serialized(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", PickleSerializer()))

    def process_element(self, value: Row, ctx: Any) -> Any:
        self.seen.update(value.user)
        yield (value.user,)


class Columns(KeyedBatchProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.seen = runtime_context.get_column_state("seen", int)
        self.users = runtime_context.get_column_list_state("users", pa.schema({"user": pa.string()}))

    def process_batch(self, elements: Any, ctx: Any) -> Any:
        self.users.add(elements.key_ids, {"user": elements["user"]})
        yield {"user": elements["user"]}


class Gap(SessionWindowTimeGapExtractor):
    def extract(self, element: Any) -> int:
        return 5


class Windowed(WindowFunction[Any, Any, Any, Any]):
    def apply(self, key: Any, window: Any, inputs: Any) -> Any:
        yield key, len(list(inputs))


class WindowedAll(AllWindowFunction[Any, Any, Any]):
    def apply(self, window: Any, inputs: Any) -> Any:
        yield len(list(inputs))


class ProcessedAll(ProcessAllWindowFunction[Any, Any, Any]):
    def process(self, context: Any, elements: Any) -> Any:
        yield len(list(elements))


TEN_MS = Time.milliseconds(10)
WINDOWS: list[tuple[WindowAssigner[Any, Any], Trigger[Any, Any] | None]] = [
    (TumblingEventTimeWindows.of(TEN_MS), None),
    (TumblingProcessingTimeWindows.of(TEN_MS), None),
    (SlidingEventTimeWindows.of(TEN_MS, Time.milliseconds(5)), EventTimeTrigger()),
    (SlidingProcessingTimeWindows.of(TEN_MS, Time.milliseconds(5)), ProcessingTimeTrigger()),
    (EventTimeSessionWindows.with_gap(TEN_MS), None),
    (ProcessingTimeSessionWindows.with_gap(TEN_MS), None),
    (DynamicEventTimeSessionWindows(Gap()), None),
    (DynamicProcessingTimeSessionWindows(Gap()), None),
    (CumulativeEventTimeWindows.of(TEN_MS, Time.milliseconds(5)), None),
    (TumblingEventTimeWindows.of_local_days("Europe/Berlin"), None),
    (CountTumblingWindowAssigner(2), None),
    (CountSlidingWindowAssigner(2, 1), None),
    (GlobalWindows.create(), CountTrigger.of(1)),
    (GlobalWindows.create(), PurgingTrigger.of(CountTrigger.of(1))),
    (GlobalWindows.create(), DeltaTrigger.of(0, lambda one, other: 1)),
    (GlobalWindows.create(), ProcessingTimeoutTrigger.of(CountTrigger.of(2), Duration.of_millis(1))),
    (GlobalWindows.create(), ContinuousProcessingTimeTrigger.of(TEN_MS)),
    (TumblingEventTimeWindows.of(TEN_MS), ContinuousEventTimeTrigger.of(TEN_MS)),
    (GlobalWindows.create(), NeverTrigger()),
    (GlobalWindows.create(), EndOfStreamTrigger()),
]
EVICTORS = [CountEvictor.of(1), TimeEvictor.of(TEN_MS), DeltaEvictor.of(1, lambda one, other: 0)]


def window_jobs() -> None:
    def elements() -> DataStream:
        env = StreamExecutionEnvironment.get_execution_environment()
        by_value = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
        collection = env.from_collection([("a", 1), ("a", 2), ("a", 40)])
        return collection.assign_timestamps_and_watermarks(by_value)

    for assigner, trigger in WINDOWS:
        windows = elements().key_by(lambda element: element[0]).window(assigner)
        list(
            (windows if trigger is None else windows.trigger(trigger)).apply(Windowed()).execute_and_collect()
        )
    for evictor in EVICTORS:
        windows = elements().key_by(lambda element: element[0]).window(TumblingEventTimeWindows.of(TEN_MS))
        assert len(list(windows.evictor(evictor).process(Elements()).execute_and_collect())) == 2
    everyone = elements().window_all(TumblingEventTimeWindows.of(TEN_MS))
    assert list(everyone.apply(WindowedAll()).execute_and_collect()) == [2, 1]
    everyone = elements().window_all(TumblingEventTimeWindows.of(TEN_MS))
    assert list(everyone.process(ProcessedAll()).execute_and_collect()) == [2, 1]
    keyed = elements().key_by(lambda element: element[0])
    near = keyed.interval_join(keyed).between(Time.milliseconds(0), Time.milliseconds(1))
    assert len(list(near.process(Pairs()).execute_and_collect())) == 4
    for strategy in (
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(1)),
        WatermarkStrategy.for_generator(AscendingTimestampsWatermarks),
        WatermarkStrategy.no_watermarks(),
    ):
        idle = strategy.with_timestamp_assigner(Second()).with_idleness(Duration.of_millis(1))
        assert len(list(elements().assign_timestamps_and_watermarks(idle).execute_and_collect())) == 3


class Pairs(ProcessJoinFunction[Any, Any]):
    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Any:
        yield left, right


class Second(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


# ---- what they reach ----

REACHED_ROWS = [
    row for row in ROWS if not row[0].startswith("**") and row[1] and row[3] not in ("harnesses", "none")
]


class Reached:
    """Classes whose methods were called, and functions, of the package, in any thread."""

    def __init__(self) -> None:
        self.classes: set[type] = set()
        self.code: set[CodeType] = set()

    def note(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event != "call" or not frame.f_globals.get("__name__", "").startswith(
            ("flinkcore", "equipment", "jobs", "models", "test")
        ):
            return
        self.code.add(code)
        if (
            code.co_varnames[:1] == ("self",)
            and (own := type(frame.f_locals.get("self"))) not in self.classes
        ):
            self.classes.update(own.__mro__)

    def has(self, found: Any) -> bool:
        if not isinstance(found, type):
            return inspect.unwrap(found).__code__ in self.code
        members = (getattr(member, "__func__", member) for member in vars(found).values())
        return found in self.classes or any(getattr(each, "__code__", None) in self.code for each in members)


def reached(folder: Path) -> Reached:
    """Return what all these jobs reach."""
    noted = Reached()
    threading.setprofile(noted.note)
    sys.setprofile(noted.note)
    try:
        function_jobs(folder)
        source_jobs()
        assigner_jobs()
        system_clock_jobs()
        step_jobs(folder)
        replayed_jobs(folder)
        window_jobs()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return noted


def is_run(found: Any) -> bool:
    """Whether it has code of its own: enumerations, protocols and native classes have none that Python sees."""
    of_kernel = getattr(found, "__module__", "").startswith("flinkcore._native")
    return not (of_kernel or hasattr(found, "__members__") or getattr(found, "_is_protocol", False))


def print_missed(folder: str) -> None:
    """Print the names of each row that no job reaches, as JSON."""
    noted = reached(Path(folder))
    missed: dict[str, list[str]] = {}
    for row in REACHED_ROWS:
        names_missed = missed[row[0]] = []
        for part in row[1].split(";"):
            module, *names = re.findall(r"`([\w.]+)`", part)
            for name in names:
                found = getattr(importlib.import_module(f"flinkcore.{module}"), name)
                if is_run(found) and not noted.has(found):
                    names_missed.append(name)
    print(json.dumps(missed))


@pytest.fixture(scope="module")
def missed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The names of each row that these jobs do not reach."""
    # In a process of its own: CPython 3.11 may hang where it traces functions that have run often.
    here = Path(__file__).parent
    program = (
        "import sys; sys.path[:0] = sys.argv[2:]; import test_class_table as t; t.print_missed(sys.argv[1])"
    )
    command = [sys.executable, "-c", program, tmp_path_factory.mktemp("jobs"), here, here.parent]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])  # below what the jobs print


@pytest.mark.parametrize("row", REACHED_ROWS, ids=lambda row: row[0])
def test_jobs_reach_the_classes_of_a_row(row: list[str], missed: dict[str, list[str]]) -> None:
    assert missed[row[0]] == []
