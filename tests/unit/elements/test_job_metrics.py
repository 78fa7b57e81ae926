"""What the result of a job of Python functions tells of watermarks, late elements and latencies."""

import time
from typing import Any

import pytest
from jobs.timed_elements import BY_VALUE

from flinkcore.common import (
    MAX_TIMESTAMP,
    Configuration,
    Duration,
    OutputTag,
    Time,
    Types,
)
from flinkcore.datastream import (
    CoMapFunction,
    DataStream,
    MapFunction,
    ParallelSourceFunction,
    RuntimeContext,
    SinkFunction,
    StreamExecutionEnvironment,
)
from flinkcore.datastream.connectors import NumberSequenceSource
from flinkcore.datastream.functions import PacedSourceContext
from flinkcore.datastream.window import TumblingEventTimeWindows
from flinkcore.errors import ConfigurationError


class Dropping(SinkFunction):
    def invoke(self, value: Any, context: Any = None) -> None:
        """Drop it."""


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.get_config().set_auto_watermark_interval(1)
    return environment


def metrics_of(stream: DataStream) -> dict[str, Any]:
    stream.add_sink(Dropping()).name("sink")
    return stream.get_execution_environment().execute().metrics


def sums(env: StreamExecutionEnvironment, late: OutputTag | None = None) -> DataStream:
    """Windows of 10 ms over elements of which two come when their window has gone."""
    elements = env.from_collection([1, 12, 25, 3, 26, 14], Types.INT()).name("numbers")
    windows = (
        elements.assign_timestamps_and_watermarks(BY_VALUE)
        .key_by(lambda value: 0)
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    )
    if late is not None:
        windows = windows.side_output_late_data(late)
    return windows.reduce(lambda left, right: left + right).name("sums")


# ---- late elements ----


def test_late_elements_are_counted_where_they_are_dropped(env: StreamExecutionEnvironment) -> None:
    assert metrics_of(sums(env))["sums.numLateRecordsDropped"] == 2


def test_late_elements_of_a_side_output_are_not_dropped(env: StreamExecutionEnvironment) -> None:
    late = OutputTag("late", Types.INT())
    summed = sums(env, late)
    summed.get_side_output(late).add_sink(Dropping())
    assert metrics_of(summed)["sums.numLateRecordsDropped"] == 0


def test_a_job_without_late_elements_says_so(env: StreamExecutionEnvironment) -> None:
    windows = env.from_collection([1, 2]).count_window_all(2)
    assert metrics_of(windows.reduce(max).name("largest"))["largest.numLateRecordsDropped"] == 0


# ---- watermarks ----


@pytest.mark.parametrize("chaining", [True, False])
def test_each_operator_tells_its_watermarks(env: StreamExecutionEnvironment, chaining: bool) -> None:
    env.get_config().set_chaining_enabled(chaining)
    seen: list[dict[str, int]] = []

    class Watching(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.group = runtime_context.get_metrics_group()

        def map(self, value: int) -> int:
            values = self.group.values()  # type: ignore[attr-defined]
            seen.append({name.partition(".")[2]: value for name, value in values.items()})
            return value

    numbers = env.from_collection([5, 6, 7]).assign_timestamps_and_watermarks(BY_VALUE)
    metrics = metrics_of(numbers.map(Watching()).name("watching"))
    # The watermark of an element comes with the tick after it.
    assert [watermarks["currentInputWatermark"] for watermarks in seen] == [-(2**63), 4, 5]
    assert [watermarks["currentOutputWatermark"] for watermarks in seen] == [-(2**63), 4, 5]
    assert metrics["watching.currentInputWatermark"] == MAX_TIMESTAMP
    assert metrics["watching.currentOutputWatermark"] == MAX_TIMESTAMP
    assert metrics["sink.currentInputWatermark"] == MAX_TIMESTAMP
    assert metrics["Collection Source.currentOutputWatermark"] == MAX_TIMESTAMP


class Both(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return value

    def map2(self, value: Any) -> Any:
        return value


def test_an_operator_with_two_inputs_tells_both_watermarks(env: StreamExecutionEnvironment) -> None:
    first, second = env.from_collection([1]), env.from_collection([2])
    metrics = metrics_of(first.connect(second).map(Both()).name("both"))
    names = ("currentInput1Watermark", "currentInput2Watermark", "currentInputWatermark")
    assert [metrics[f"both.{name}"] for name in names] == [MAX_TIMESTAMP] * 3


def test_each_subtask_has_metrics_of_its_own(env: StreamExecutionEnvironment) -> None:
    metrics = metrics_of(env.set_parallelism(2).from_collection([1, 2]).map(str).name("text"))
    assert {name for name in metrics if name.startswith("text.")} == {
        f"text.{index}.{name}"
        for index in (0, 1)
        for name in ("currentInputWatermark", "currentOutputWatermark")
    }


# ---- operators of the same name ----


def test_operators_of_one_name_have_metrics_of_their_own(env: StreamExecutionEnvironment) -> None:
    class Counting(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.counter = runtime_context.get_metrics_group().counter("seen")

        def map(self, value: int) -> int:
            self.counter.inc()
            return value

    env.get_config().set_latency_tracking_interval(1)
    numbers = env.from_collection([1, 2]).name("numbers").map(Counting()).name("count")
    few = numbers.filter(lambda value: value > 1).name("count-2").map(Counting()).name("count")
    metrics = metrics_of(few.map(Counting()).name("count").uid("last"))
    assert {name: value for name, value in metrics.items() if name.endswith(".seen")} == {
        "count.seen": 2,
        "count-3.seen": 1,
        "count-4.seen": 1,
    }
    for name in ("count", "count-2", "count-3", "count-4", "sink"):
        assert metrics[f"{name}.currentInputWatermark"] == MAX_TIMESTAMP
    assert [name.split(".")[4] for name in latencies(metrics)] == [
        "count",
        "count-2",
        "count-3",
        "last",
        "sink",
    ]


def test_the_uid_of_an_operator_may_be_the_name_of_another_one(env: StreamExecutionEnvironment) -> None:
    env.get_config().set_latency_tracking_interval(1)
    stream = env.from_collection([1]).name("numbers").map(str).name("text").map(str).name("again").uid("text")
    found = latencies(metrics_of(stream))
    assert [name.split(".")[4] for name in found] == ["text", "text-2", "sink"]


# ---- splits ----


def test_splits_tell_their_watermark_and_how_long_they_were_read(env: StreamExecutionEnvironment) -> None:
    aligned = BY_VALUE.with_watermark_alignment("group", Duration.of_millis(1), Duration.of_millis(1))
    metrics = metrics_of(env.from_source(NumberSequenceSource(1, 20), aligned, "numbers"))
    (split_id,) = {name.split(".")[2] for name in metrics if name.startswith("numbers.split.")}
    of_split = f"numbers.split.{split_id}.watermark"
    assert metrics[f"{of_split}.currentWatermark"] == 19
    times = [metrics[f"{of_split}.accumulated{what}TimeMs"] for what in ("Active", "Paused", "Idle")]
    assert times[0] > 0
    assert times[2] == 0
    assert metrics["numbers.accumulatedAlignmentTimeMs"] >= 0


# ---- latency markers ----


class Naps(ParallelSourceFunction):
    """Emits for some time, now and then."""

    def run(self, ctx: PacedSourceContext[Any]) -> None:
        for number in range(4):
            ctx.collect(number)
            ctx.sleep(20)

    def cancel(self) -> None:
        raise AssertionError("it ends by itself")


def latencies(metrics: dict[str, Any]) -> dict[str, dict[str, float]]:
    return {name: value for name, value in metrics.items() if name.startswith("latency.")}


@pytest.mark.parametrize(
    ("granularity", "sources"),
    [
        ("single", [""]),
        ("operator", ["source_id.naps."]),
        ("subtask", [f"source_id.naps.source_subtask_index.{index}." for index in (0, 1)]),
    ],
)
def test_latency_markers_go_from_sources_to_sinks(
    env: StreamExecutionEnvironment, granularity: str, sources: list[str]
) -> None:
    env.configure({"metrics.latency.granularity": granularity})
    env.get_config().set_latency_tracking_interval(10)
    naps = env.set_parallelism(2).add_source(Naps(), "naps").map(lambda value: value).name("map").uid("m")
    found = latencies(metrics_of(naps.key_by(lambda value: value).map(str).name("text")))
    assert set(found) == {
        f"latency.{source}operator_id.{operator}.operator_subtask_index.{index}.latency"
        for source in sources
        for operator in ("m", "text", "sink")
        for index in (0, 1)
        # A marker goes to the subtask of its own index in a chain, and to the first one of another task.
        if (operator == "m" or index == 0) and (operator != "m" or not source.endswith(f"index.{1 - index}."))
    }
    for histogram in found.values():
        assert histogram["count"] >= 8
        assert histogram["min"] == histogram["max"] == histogram["p50"] == 0  # on the arrival clock


@pytest.mark.parametrize("make", ["collection", "splits", "log"])
def test_all_sources_emit_latency_markers(env: StreamExecutionEnvironment, make: str) -> None:
    pa = pytest.importorskip("pyarrow")
    env.configure(Configuration().set_string("metrics.latency.interval", "1 ms"))
    stream = {
        "collection": lambda: env.from_collection([1, 2, 3]).name("source"),
        "splits": lambda: env.from_source(NumberSequenceSource(1, 3), BY_VALUE, "source"),
        "log": lambda: env.from_event_log(pa.table({"at": [1, 2, 3]}), timestamp="at").name("source"),
    }[make]()
    found = latencies(metrics_of(stream))
    assert list(found) == ["latency.source_id.source.operator_id.sink.operator_subtask_index.0.latency"]
    assert all(histogram["count"] >= 2 for histogram in found.values())


def test_latencies_on_the_system_clock_are_those_of_the_machine(env: StreamExecutionEnvironment) -> None:
    env.set_clock("system").get_config().set_latency_tracking_interval(5)

    def nap(value: Any) -> Any:
        time.sleep(0.03)
        return value

    stream = env.from_collection([1, 2, 3]).name("source").map(nap).name("nap")
    (nap_to_sink,) = [
        value for name, value in latencies(metrics_of(stream)).items() if "operator_id.sink" in name
    ]
    assert nap_to_sink["count"] >= 2
    assert nap_to_sink["max"] >= nap_to_sink["p99"] >= nap_to_sink["min"] >= 0


def test_no_latency_is_measured_unless_there_is_an_interval(env: StreamExecutionEnvironment) -> None:
    assert env.get_config().get_latency_tracking_interval() == 0
    env.get_config().set_latency_tracking_interval(-1)
    assert latencies(metrics_of(env.from_collection([1]))) == {}


def test_a_histogram_keeps_so_many_latencies(env: StreamExecutionEnvironment) -> None:
    env.configure({"metrics.latency.interval": "1", "metrics.latency.history-size": "2"})
    assert env.get_config().get_latency_history_size() == 2
    (histogram,) = latencies(metrics_of(env.from_collection(range(9)))).values()
    assert histogram["count"] >= 8
    assert histogram["stddev"] == 0


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("metrics.latency.granularity", "job", "single, operator, subtask, not 'job'"),
        ("metrics.latency.history-size", "0", "metrics.latency.history-size must be an integer from 1"),
        (
            "metrics.latency.interval",
            "soon",
            "metrics.latency.interval must be a length of time",
        ),
    ],
)
def test_settings_of_latencies_are_checked(
    env: StreamExecutionEnvironment, key: str, value: str, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        env.configure({key: value})
