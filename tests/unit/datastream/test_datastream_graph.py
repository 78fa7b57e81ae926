"""The API builds a graph as data, and refuses what has no meaning when it is said."""

import pickle
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from flinkcore.common import OutputTag, Time, WatermarkStrategy
from flinkcore.datastream import (
    FILE,
    DataStream,
    KeyedStream,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
    WindowedStream,
)
from flinkcore.datastream.aggregates import Aggregate, collect, count, max_by, mean, min_by, sum_
from flinkcore.datastream.graph.pipeline_executor import load_executor
from flinkcore.datastream.graph.transformations import (
    EventLogSource,
    FilterTransformation,
    PartitionTransformation,
    SelectTransformation,
    StreamGraph,
    TimestampsAndWatermarksTransformation,
    Transformation,
    WindowTransformation,
    WithColumnsTransformation,
)
from flinkcore.errors import ConfigurationError

LATE = OutputTag("late")


class RecordingExecutor:
    """Keeps what it is asked to run; its results answer with the name of the call."""

    name = "recording"
    makes_dataframes = False
    stores = None

    def __init__(self) -> None:
        self.graphs: list[StreamGraph] = []
        self.calls: list[object] = []

    def execute(self, graph, configuration, progress=None, checkpoints=None):
        self.graphs.append(graph)
        self.calls.append((configuration.get_parallelism(), progress))
        return RecordedResult(self)

    def explain_execution(self, graph, configuration):
        return [f"records {len(graph.transformations())} steps"]


class RecordedResult:
    def __init__(self, executor: RecordingExecutor, prefix: str = "") -> None:
        self._executor = executor
        self._prefix = prefix

    def to_arrow(self):
        return f"{self._prefix}arrow"

    def to_batches(self):
        return iter([f"{self._prefix}batch"])

    def to_dataframe(self):
        return f"{self._prefix}dataframe"

    def write_parquet(self, path, side_outputs=None, mode="error", partition_by=()):
        self._executor.calls.append((path, side_outputs, mode))
        return "report"

    def get_side_output(self, output_tag):
        return RecordedResult(self._executor, f"{output_tag.tag_id} ")


@pytest.fixture
def executor() -> RecordingExecutor:
    return RecordingExecutor()


@pytest.fixture
def stream(executor: RecordingExecutor) -> DataStream:
    return StreamExecutionEnvironment(executor).from_event_log("log.parquet", timestamp="ts")


def keyed(stream: DataStream) -> KeyedStream:
    return stream.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps()).key_by("k")


def windowed(stream: DataStream) -> WindowedStream:
    return keyed(stream).window(TumblingEventTimeWindows.of(Time.seconds(10)))


def steps(stream: DataStream) -> tuple[Transformation, ...]:
    return StreamGraph(stream._transformation).transformations()


def test_a_job_is_a_chain_of_transformations(stream: DataStream) -> None:
    result = (
        windowed(stream.filter(pc.field("a") > 1).with_columns(c=pc.field("a") * 2).select("k", "ts", "c"))
        .allowed_lateness(5)
        .side_output_late_data(LATE)
        .aggregate(n=count(), total=sum_("c"))
    )
    graph = steps(result)
    assert [type(step) for step in graph] == [
        EventLogSource,
        FilterTransformation,
        WithColumnsTransformation,
        SelectTransformation,
        TimestampsAndWatermarksTransformation,
        PartitionTransformation,
        WindowTransformation,
    ]
    window = graph[-1]
    assert isinstance(window, WindowTransformation)
    assert window.assigner == TumblingEventTimeWindows(10_000)
    assert window.allowed_lateness_ms == 5
    assert window.late_tag == LATE
    assert window.aggregates == (("n", Aggregate("count")), ("total", Aggregate("sum", "c")))


def test_streams_are_values_and_a_call_does_not_change_the_stream(stream: DataStream) -> None:
    stream.filter(pc.field("a") > 1)
    assert [type(step) for step in steps(stream)] == [EventLogSource]
    base = windowed(stream)
    base.allowed_lateness(7)
    window = steps(base.aggregate(n=count()))[-1]
    assert isinstance(window, WindowTransformation)
    assert window.allowed_lateness_ms == 0


def test_keying_again_keys_the_stream_before(stream: DataStream) -> None:
    rekeyed = keyed(stream).key_by("other")
    result = rekeyed.window(TumblingEventTimeWindows.of(Time.seconds(1))).aggregate(n=count())
    partitions = [step for step in steps(result) if isinstance(step, PartitionTransformation)]
    assert [step.key.names for step in partitions] == [("other",)]


def test_a_graph_travels_by_pickle_with_file_splits_intact(executor: RecordingExecutor) -> None:
    log = StreamExecutionEnvironment(executor).from_event_log("log.csv", timestamp="ts", split=FILE)
    graph = StreamGraph(windowed(log.filter(pc.field("a") > 1)).aggregate(n=count())._transformation)
    source = pickle.loads(pickle.dumps(graph)).transformations()[0]
    assert source.log.split is FILE


def test_lateness_is_milliseconds_or_an_interval(stream: DataStream) -> None:
    for lateness in (2000, Time.seconds(2)):
        window = steps(windowed(stream).allowed_lateness(lateness).aggregate(n=count()))[-1]
        assert isinstance(window, WindowTransformation)
        assert window.allowed_lateness_ms == 2000
    with pytest.raises(ConfigurationError, match="allowed_lateness cannot be negative, it is -1 ms"):
        windowed(stream).allowed_lateness(-1)


@pytest.mark.parametrize(
    "call", [lambda s, e: s.filter(e), lambda s, e: s.select(x=e), lambda s, e: s.with_columns(x=e)]
)
@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("price > 100", "text is a condition of Spark SQL only in filter"),
        (5, r"a constant is pyarrow\.compute\.scalar\(value\)"),
        (None, "takes a pyarrow expression"),
    ],
)
def test_what_is_no_expression_is_refused_with_what_to_write(
    stream: DataStream, call, value, hint: str
) -> None:
    with pytest.raises(ConfigurationError, match=hint):
        call(stream, value)


@pytest.mark.parametrize("call", [lambda s, e: s.select(x=e), lambda s, e: s.with_columns(x=e)])
def test_a_function_is_no_expression_of_columns(stream: DataStream, call) -> None:
    with pytest.raises(
        ConfigurationError, match=r"goes to map, flat_map or process, or to filter of elements\(\)"
    ):
        call(stream, lambda row: True)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.select(), "select needs at least one column"),
        (lambda s: s.select("a", "a"), "select names columns twice: a"),
        (lambda s: s.select("a", a=pc.field("b")), "select names columns twice: a"),
        (lambda s: s.select(pc.field("a")), "select takes names of columns"),
        (lambda s: s.with_columns(), "with_columns needs at least one column"),
        (lambda s: s.key_by(), "key_by needs at least one column"),
        (lambda s: s.key_by("a", "a"), "key_by names columns twice: a"),
        (lambda s: s.key_by(lambda row: row, "a"), "key_by takes names of columns, or one function"),
        (
            lambda s: s.key_by(["a", "b"]),
            r"key_by takes names of columns, not a list of them: write key_by\('a', 'b'\)$",
        ),
        (lambda s: s.key_by(("a",)), r"not a tuple of them: write key_by\('a'\)$"),
        (lambda s: s.key_by(pc.field("a")), r"with_columns\(key=expression\), then key_by\('key'\)"),
        (lambda s: s.assign_timestamps_and_watermarks("ts"), "takes a strategy such as WatermarkStrategy"),
        (lambda s: s.key_by("a").window(10), "window takes an assigner such as TumblingEventTimeWindows"),
        (
            lambda s: s.window(TumblingEventTimeWindows(5)),
            r"window needs a keyed stream: call key_by\('column'\).*or take window_all\(\.\.\.\)$",
        ),
        (
            lambda s: s.key_by("a").filter(pc.field("a") > 1).window(TumblingEventTimeWindows(5)),
            "right before it, after filter, select and with_columns",
        ),
        (lambda s: s.sum("a"), "sum needs a keyed stream"),
        (lambda s: s.aggregate(n=count()), "aggregate needs a keyed stream: call key_by"),
        (
            lambda s: s.key_by("a").window(TumblingEventTimeWindows(5)).to_arrow(),
            r"to_arrow is of the results of windows: call aggregate\(",
        ),
        (
            lambda s: s.window_all(TumblingEventTimeWindows(5)).filter(pc.field("a") > 1),
            "filter is of the results of windows",
        ),
        (
            lambda s: s.key_by("a").window(TumblingEventTimeWindows(5)).sum("a"),
            r"sum is of the results of windows: call aggregate\(n=sum_\('column'\)\)",
        ),
        (lambda s: s.key_by("a").allowed_lateness(5), "allowed_lateness needs windows"),
        (
            lambda s: s.key_by(lambda row: row.a).window(TumblingEventTimeWindows(5)).aggregate(n=count()),
            r"aggregates of columns.* need windows over the columns of a log: this stream is keyed by a function, or "
            r"comes from elements\(\): call key_by\('column'\)",
        ),
        (
            lambda s: s.map(str).window_all(TumblingEventTimeWindows(5)).aggregate(count()),
            "aggregates of columns.*runs element by element, because of the step 'map",
        ),
        (
            lambda s: s.key_by(lambda row: row.a).top(3, by="a"),
            r"top, .*: this stream is keyed by a function",
        ),
        (
            lambda s: s.key_by(lambda row: row.a).over(unit="rows"),
            "over, .*: this stream is keyed by a function",
        ),
        (
            lambda s: s.window_all(TumblingEventTimeWindows(5)).aggregate(),
            r"aggregate needs at least one: aggregate\(n=count\(\)\)",
        ),
        (
            lambda s: windowed(s).aggregate(n=count()).execute(restore_from=5),
            "restore_from takes the directory of a checkpoint, such as 'checkpoints/monday', not 5",
        ),
        (
            lambda s: windowed(s).aggregate(n=count()).execute(stop_with_checkpoint=True),
            "stop_with_checkpoint takes the directory of a checkpoint",
        ),
        (
            lambda s: windowed(s).side_output_late_data("late"),
            r"takes an OutputTag, such as OutputTag\('late'\)",
        ),
        (lambda s: windowed(s).aggregate(), r"aggregate needs at least one: aggregate\(n=count\(\)\)"),
        (
            lambda s: windowed(s).aggregate(n=count),
            r"aggregate\(n=\.\.\.\) takes an aggregate such as count\(\)",
        ),
        (lambda s: windowed(s).aggregate(k=count()), "an aggregate cannot be named 'k'"),
        (lambda s: windowed(s).aggregate(watermark=count()), "cannot be named 'watermark'.*window_end"),
        (
            lambda s: s.key_by("watermark").window(TumblingEventTimeWindows(5)).aggregate(n=count()),
            "the key column 'watermark' has the name of a result column; rename it",
        ),
        (lambda s: sum_(""), r"sum\(\) takes the name of a column"),
        (lambda s: mean(pc.field("a")), r"mean\(\) takes the name of a column.*with_columns"),
        (lambda s: max_by("a", by=None), r"max_by\(\) takes the name of a column"),
    ],
)
def test_a_call_that_has_no_meaning_is_refused_at_once(stream: DataStream, call, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        call(stream)


def test_aggregates_name_their_columns() -> None:
    assert count() == Aggregate("count", None, None)
    assert count("x") == Aggregate("count", "x", None)
    assert min_by("price", by="ts").columns == {"price", "ts"}
    assert str(min_by("price", by="ts")) == "min_by(price by ts)"
    assert min_by("price", "ts") == min_by("price", by="ts")
    assert max_by("price", "ts") == max_by("price", by="ts")
    assert str(collect("x")) == "collect(x)"
    assert count().columns == set()


def test_a_spark_dataframe_is_sent_to_from_event_log() -> None:
    class DataFrame:
        def mapInArrow(self) -> None: ...

        def __arrow_c_stream__(self) -> None:
            raise AssertionError("not to be read")

    with pytest.raises(ConfigurationError, match=r"runs in one process.*SparkExecutionEnvironment\(spark\)"):
        StreamExecutionEnvironment().from_event_log(DataFrame(), timestamp="ts")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"timestamp": ""}, "timestamp must be the name of a column"),
        ({"arrival": 5}, "arrival must be the name of a column or a pyarrow expression, not 5"),
        ({"split": 5}, "split must be the name of a column"),
        ({"rate": 0}, "rate must be a number of records per second above zero"),
        ({"rate": float("inf")}, "rate must be"),
        ({"arrival_start_ms": 0.5}, "arrival_start_ms must be an integer"),
        ({"on_bad_row": "skip"}, "on_bad_row must be 'fail', 'drop' or an OutputTag, not 'skip'"),
    ],
)
def test_a_log_setting_without_meaning_is_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        StreamExecutionEnvironment().from_event_log("log.parquet", **{"timestamp": "ts", **settings})


@pytest.mark.parametrize("data", [5, None, [], ["a.parquet", 5], b"a.parquet"])
def test_a_log_is_paths_or_arrow_data(data: object) -> None:
    with pytest.raises(ConfigurationError, match="an event log is a path, a list of paths, or Arrow data"):
        StreamExecutionEnvironment().from_event_log(data, timestamp="ts")


@pytest.mark.parametrize(
    ("data", "instead"),
    [
        (pl.LazyFrame({"ts": [1]}), r"LazyFrame .*: give data.collect\(\)$"),
        (pd.Series([1, 2]), r"not 0 1 1 2 dtype: int64: give data.to_frame\(\)$"),
        ({"ts": [1]}, r": give pyarrow.table\(data\)$"),
        ([{"ts": 1}], r": give pyarrow.Table.from_pylist\(data\)$"),
        (
            ({"ts": each} for each in range(3)),
            r": give pyarrow.Table.from_pylist\(list\(data\)\) if its items",
        ),
        ([pa.table({"ts": [1]})] * 2, r": give one table, pyarrow.concat_tables\("),
        (np.zeros(2, [("ts", "i8")]), ": give pyarrow.table with each of its columns by name$"),
        (StringIO("ts\n1"), ": give its path$"),
    ],
)
def test_data_that_is_nearly_a_log_is_refused_with_what_makes_a_log_of_it(data: object, instead: str) -> None:
    with pytest.raises(ConfigurationError, match=instead):
        StreamExecutionEnvironment().from_event_log(data, timestamp="ts")


def test_paths_become_text(tmp_path: Path) -> None:
    env = StreamExecutionEnvironment()
    for given, kept in (
        (tmp_path, str(tmp_path)),
        ([tmp_path, "s3://b/c"], [str(tmp_path), "s3://b/c"]),
    ):
        source = steps(env.from_event_log(given, timestamp="ts"))[0]
        assert isinstance(source, EventLogSource)
        assert source.data == kept


def test_terminal_calls_hand_the_graph_to_the_executor(
    stream: DataStream, executor: RecordingExecutor
) -> None:
    stream.get_execution_environment().set_parallelism(3)
    result = windowed(stream).side_output_late_data(LATE).aggregate(n=count())
    assert result.to_arrow() == "arrow"
    assert list(result.to_batches()) == ["batch"]
    assert result.write_parquet("out", {OutputTag("late"): "late"}) == "report"
    assert result.get_side_output(OutputTag("late")).to_arrow() == "late arrow"
    assert list(result.get_side_output(LATE).to_batches()) == ["late batch"]
    assert {graph.result for graph in executor.graphs} == {result._transformation}
    assert ("out", {LATE: "late"}, "error") in executor.calls
    listener = print
    result.execute(progress=listener)
    assert executor.calls[-1] == (3, listener)


@pytest.mark.parametrize(
    ("setting", "progress", "expected"),
    [
        (None, None, "auto"),
        ("off", None, "off"),
        ("on", None, "on"),
        ("off", True, "on"),
        ("on", False, "off"),
        ("off", print, print),
    ],
)
def test_the_call_decides_about_progress_and_else_the_setting(
    stream: DataStream, executor: RecordingExecutor, setting: object, progress: object, expected: object
) -> None:
    if setting is not None:
        stream.get_execution_environment().configure({"flinkcore.progress": setting})
    windowed(stream).aggregate(n=count()).execute(progress=progress)
    assert executor.calls[-1] == (-1, expected)


def test_an_unknown_side_output_is_refused_before_anything_runs(
    stream: DataStream, executor: RecordingExecutor
) -> None:
    result = windowed(stream).aggregate(n=count())
    with pytest.raises(ConfigurationError, match="no side output is named 'late'; this job has: none"):
        result.get_side_output(LATE)
    result = windowed(stream).side_output_late_data(OutputTag("too late")).aggregate(n=count())
    with pytest.raises(ConfigurationError, match="this job has: too late"):
        result.write_parquet("out", {LATE: "late"})
    with pytest.raises(
        ConfigurationError,
        match=r"get_side_output takes an OutputTag, such as OutputTag\('late'\), not 'late'",
    ):
        result.get_side_output("late")  # type: ignore[arg-type]
    assert executor.graphs == []


def test_rejected_rows_are_a_side_output(executor: RecordingExecutor) -> None:
    rejected = OutputTag("rejected")
    log = StreamExecutionEnvironment(executor).from_event_log("log.csv", timestamp="ts", on_bad_row=rejected)
    result = windowed(log).side_output_late_data(LATE).aggregate(n=count())
    assert result.get_side_output(rejected).to_arrow() == "rejected arrow"
    assert result.get_side_output(LATE).to_arrow() == "late arrow"


def test_dataframes_need_an_executor_that_makes_them(stream: DataStream, executor: RecordingExecutor) -> None:
    result = windowed(stream).side_output_late_data(LATE).aggregate(n=count())
    for output in (result, result.get_side_output(LATE)):
        with pytest.raises(ConfigurationError, match="to_dataframe needs Spark, but this job runs recording"):
            output.to_dataframe()
    assert executor.graphs == []
    executor.makes_dataframes = True
    assert result.to_dataframe() == "dataframe"
    assert result.get_side_output(LATE).to_dataframe() == "late dataframe"


def test_explain_tells_every_step_and_its_path(stream: DataStream) -> None:
    result = (
        windowed(stream.filter(pc.field("a") > 1))
        .side_output_late_data(LATE)
        .aggregate(n=count(), s=sum_("a"))
    )
    assert result.explain() == (
        "recording replay, parallelism of the executor, 128 key groups, watermarks every 200 ms\n"
        "  1. [columnar] event log log.parquet: timestamp ts, arrival by position, 1000 records/s from 0 ms, "
        "one split, or one for each partition in its paths or columns\n"
        "  2. [columnar] filter (a > 1)\n"
        "  3. [columnar] timestamps and watermarks: monotonous timestamps\n"
        "  4. [columnar] key by k\n"
        "  5. [columnar] tumbling windows of 10000 ms, allowed lateness 0 ms, late rows to side output late: "
        "n = count(), s = sum(a)\n"
        "     records 5 steps"
    )


def test_explain_does_not_print_a_table(executor: RecordingExecutor) -> None:
    env = StreamExecutionEnvironment(executor)
    log = env.from_event_log(pa.table({"ts": [1]}), timestamp="ts", arrival="at", split=FILE)
    assert "event log Table in memory: timestamp ts, arrival at, each file is a split" in log.explain()


def test_environments_have_settings_of_their_own() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    assert env.set_parallelism(2).set_max_parallelism(4) is env
    env.get_config().set_auto_watermark_interval(50)
    assert (env.get_parallelism(), env.get_max_parallelism()) == (2, 4)
    assert env.get_config().get_auto_watermark_interval() == 50
    assert StreamExecutionEnvironment.get_execution_environment().get_max_parallelism() == 128


def test_an_unknown_executor_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="no executor is named 'flink'; there is embedded"):
        load_executor("flink")


def test_a_stream_without_keys_does_not_have_the_calls_of_one_with_keys(stream: DataStream) -> None:
    assert not hasattr(stream, "window")
    assert hasattr(stream.key_by("a"), "window")
    with pytest.raises(AttributeError, match="'LogStream' object has no attribute 'windows'"):
        stream.windows  # noqa: B018


def test_a_column_without_a_name_is_refused() -> None:
    log = StreamExecutionEnvironment().from_event_log(pa.table({"ts": [1]}), timestamp="ts")
    with pytest.raises(ConfigurationError, match=r"without a name: .* with_columns\(name=expression\)"):
        log.with_columns(pc.field("ts") * 2)


@pytest.mark.parametrize("progress", [3, "bar", 1.5])
def test_a_progress_that_cannot_be_called_is_refused_before_the_job_runs(progress: object) -> None:
    log = StreamExecutionEnvironment().from_event_log(pa.table({"ts": [1], "k": [1]}), timestamp="ts")
    windows = log.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps()).key_by("k")
    counts = windows.window(TumblingEventTimeWindows(10)).aggregate(n=count())
    with pytest.raises(ConfigurationError, match="progress is called with how far the job is"):
        counts.execute(progress=progress)
