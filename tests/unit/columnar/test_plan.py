"""From the graph of a job to a plan, checked against the schema of the log."""

import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from equipment.small_batches import read_in_batches_of
from jobs.golden_generators import LegacyPunctuated, ValueAsTimestamp

from flinkcore._internal.arrow.column_ops import apply_ops
from flinkcore.columnar.operator_plans.window_aggregation import WindowAggregation
from flinkcore.columnar.plans.job_description import refuse_changes
from flinkcore.columnar.plans.job_plan import JobPlan, make_plan
from flinkcore.columnar.plans.log_plan import EVENT_TIME, LogPlan
from flinkcore.common import Duration, OutputTag, Time, WatermarkStrategy
from flinkcore.datastream import (
    FILE,
    DataStream,
    KeyedProcessFunction,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import Aggregate, collect, count, count_distinct, last, max_by, sum_
from flinkcore.datastream.graph.transformations import StreamGraph
from flinkcore.datastream.timestamps import as_watermark_strategy
from flinkcore.errors import ConfigurationError, SchemaError
from flinkcore.log import event_log

LATE = OutputTag("late")
REJECTED = OutputTag("rejected")
BOUNDED = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(4))
TABLE = pa.table(
    {
        "ts": pa.array([1000, 2000], pa.timestamp("ms", "UTC")),
        "seconds": [5, 6],
        "k": ["a", "b"],
        "price": [1.5, 2.5],
        "volume": [1, 2],
        "note": ["x", "y"],
    }
)
price = pc.field("price")


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment()


@pytest.fixture
def log(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_event_log(TABLE, timestamp="ts")


def windowed(stream: DataStream, *keys: str) -> Any:
    return stream.key_by(*(keys or ("k",))).window(TumblingEventTimeWindows.of(Time.seconds(10)))


def plan(stream: DataStream) -> JobPlan:
    return make_plan(StreamGraph(stream._transformation), stream.get_execution_environment().get_config())


def log_plan(stream: DataStream) -> LogPlan:
    (made,) = plan(stream).logs
    return made


def test_a_plan_has_what_the_job_says(env: StreamExecutionEnvironment) -> None:
    env.set_max_parallelism(16).get_config().set_auto_watermark_interval(50)
    log = env.from_event_log(
        TABLE, timestamp="ts", split="note", rate=10, arrival_start_ms=7, on_bad_row="drop"
    )
    job = log.filter(price > 1).assign_timestamps_and_watermarks(BOUNDED).filter(price < 9)
    planned = plan(
        windowed(job, "k", "note")
        .allowed_lateness(3)
        .side_output_late_data(LATE)
        .aggregate(n=count(), best=max_by("note", by="price"))
    )
    (made,), (stage,) = planned.logs, planned.stages
    assert (made.log.timestamp, made.log.arrival, made.log.split) == ("ts", None, "note")
    assert (made.log.rate, made.log.arrival_start_ms, made.log.on_bad_row) == (10.0, 7, "drop")
    assert [str(op.predicate) for op in made.before] == ["(price > 1)"]  # type: ignore[attr-defined]
    assert [str(op.predicate) for op in made.after] == ["(price < 9)"]  # type: ignore[attr-defined]
    assert made.strategy == BOUNDED
    assert made.key.names == ("k", "note")
    assert isinstance(stage.operator, WindowAggregation)
    assert stage.operator.window == TumblingEventTimeWindows(10_000)
    assert stage.operator.allowed_lateness_ms == 3
    assert stage.operator.late_tag == LATE
    assert stage.operator.aggregates == (
        ("n", Aggregate("count")),
        ("best", Aggregate("max_by", "note", "price")),
    )
    assert (made.max_parallelism, made.auto_watermark_interval_ms) == (16, 50)


def test_a_later_change_of_settings_does_not_reach_a_plan(env: StreamExecutionEnvironment) -> None:
    job = windowed(env.from_event_log(TABLE, timestamp="ts").assign_timestamps_and_watermarks(BOUNDED))
    made = plan(job.aggregate(n=count()))
    env.set_max_parallelism(1)
    assert made.max_parallelism == 128


@pytest.mark.parametrize("mode", ["STREAMING", "AUTOMATIC"])
def test_a_log_is_read_in_batches_of_the_size_that_the_plan_has(
    env: StreamExecutionEnvironment, mode: str
) -> None:
    env.set_runtime_mode(RuntimeExecutionMode[mode])
    read_in_batches_of(3, env)
    job = env.from_event_log(pa.table({"ts": range(8), "k": ["a"] * 8}), timestamp="ts", integer_times=True)
    stream = windowed(job.assign_timestamps_and_watermarks(BOUNDED)).aggregate(n=count())
    made = make_plan(StreamGraph(stream._transformation), env.get_config().for_job(is_bounded=False)).logs[0]
    (chunk,) = made.log.chunks(1)
    assert [batch.rows_read for batch in made.data_reader().read(chunk)] == [3, 3, 2]


def test_a_plan_travels_by_pickle(log: DataStream) -> None:
    job = log.with_columns(double=price * 2).assign_timestamps_and_watermarks(BOUNDED).filter(price > 1)
    made = log_plan(windowed(job).aggregate(total=sum_("double")))
    again = pickle.loads(pickle.dumps(made))
    assert again.data_schema() == made.data_schema()
    assert again.strategy == made.strategy


def test_split_by_file_reaches_the_log(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "a.parquet")
    log = env.from_event_log(tmp_path, timestamp="ts", split=FILE).assign_timestamps_and_watermarks(BOUNDED)
    assert log_plan(windowed(log).aggregate(n=count())).log.split is event_log.FILE


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (
            lambda s: windowed(s).aggregate(n=count()),
            r"windows need event time: call assign_timestamps_and_watermarks\(.*before key_by",
        ),
        (
            lambda s: windowed(
                s.assign_timestamps_and_watermarks(BOUNDED)
                .filter(price > 1)
                .assign_timestamps_and_watermarks(WatermarkStrategy.no_watermarks())
            ).aggregate(n=count()),
            "called more than once: out of order by at most 4000 ms; no watermarks. Keep the one that counts",
        ),
    ],
)
def test_a_job_of_another_shape_is_refused_with_what_to_change(
    log: DataStream, job: Any, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        plan(job(log))


def test_late_and_rejected_rows_need_side_outputs_of_their_own(env: StreamExecutionEnvironment) -> None:
    log = env.from_event_log(TABLE, timestamp="ts", on_bad_row=LATE).assign_timestamps_and_watermarks(BOUNDED)
    with pytest.raises(ConfigurationError, match="'late' is named for both late and rejected rows"):
        plan(windowed(log).side_output_late_data(LATE).aggregate(n=count()))


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (
            lambda s: windowed(s, "user").aggregate(n=count()),
            "the key: there is no column 'user'; columns: ts, seconds",
        ),
        (lambda s: windowed(s).aggregate(n=sum_("cost")), r"n = sum\(cost\): there is no column 'cost'"),
        (lambda s: windowed(s).aggregate(n=max_by("note", by="cost")), r"max_by\(note by cost\): .*'cost'"),
        (lambda s: windowed(s.select("k")).aggregate(n=sum_("price")), "no column 'price'; columns: k$"),
        (lambda s: windowed(s.filter(pc.field("q") > 1)).aggregate(n=count()), "there is no column q"),
        (
            lambda s: windowed(s.with_columns(q=price + pc.field("k"))).aggregate(n=count()),
            "no kernel matching",
        ),
    ],
)
def test_columns_are_checked_when_the_job_is_planned(log: DataStream, job: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        plan(job(log.assign_timestamps_and_watermarks(BOUNDED)))


def test_a_missing_time_column_is_named(env: StreamExecutionEnvironment, log: DataStream) -> None:
    missing = env.from_event_log(TABLE, timestamp="time").assign_timestamps_and_watermarks(BOUNDED)
    with pytest.raises(
        SchemaError, match="timestamp= names column 'time', which the log does not have: ts, seconds"
    ):
        plan(windowed(missing).aggregate(n=count()))
    missing = log.assign_timestamps_and_watermarks(BOUNDED.with_timestamp_assigner(pc.field("time") * 1000))
    with pytest.raises(
        SchemaError, match=r"event_time multiply_checked\(time, 1000\): there is no column time"
    ):
        plan(windowed(missing).aggregate(n=count()))


@pytest.mark.parametrize(
    ("column", "advice"),
    [
        (pa.array([["x", "y"], ["z"]]), r"pyarrow.compute.binary_join\(.*field\('tags'\), ','\)"),
        (pa.array([[1, 2], [3]]), r"pyarrow.compute.list_element\(pyarrow.compute.field\('tags'\), 0\)"),
        (pa.array([1, 2], pa.decimal256(40, 2)), r"pyarrow.compute.field\('tags'\).cast\('string'\)"),
    ],
    ids=["texts", "numbers", "wide decimals"],
)
def test_a_key_of_a_type_that_cannot_be_one_is_told_when_the_job_is_planned(
    env: StreamExecutionEnvironment, column: pa.Array, advice: str
) -> None:
    log = env.from_event_log(TABLE.append_column("tags", column), timestamp="ts")
    job = log.assign_timestamps_and_watermarks(BOUNDED)
    with pytest.raises(
        SchemaError, match=f"key column 'tags' is {re.escape(str(column.type))}, .*{advice}"
    ) as error:
        plan(windowed(job, "tags").aggregate(n=count()))
    advised = str(error.value).partition("with_columns(key=")[2].rpartition(").key_by")[0]
    job = job.with_columns(key=eval(advised, {"pyarrow": pa}))
    assert plan(windowed(job, "key").aggregate(n=count())).keys == ("key",)


def test_a_log_without_rows_that_tells_no_types_asks_for_them(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    (tmp_path / "log.csv").write_text("ts,k\n")
    for options, column in (({}, "k"), ({"k": "string"}, "ts")):
        log = env.from_event_log(tmp_path / "log.csv", timestamp="ts", schema=options)
        job = windowed(log.assign_timestamps_and_watermarks(BOUNDED)).aggregate(n=count())
        with pytest.raises(
            SchemaError, match=rf"'{column}' .*no rows; .*give it a type.*\{{'{column}': 'string'\}}"
        ):
            job.to_arrow()
    options["ts"] = "int64"
    assert job.to_arrow().num_rows == 0


def event_times(made: LogPlan) -> list[Any]:
    batch, _ = apply_ops(made.before, TABLE.to_batches()[0])
    return batch.column(made.log.timestamp).cast(pa.int64()).to_pylist()  # type: ignore[no-any-return]


def test_the_strategys_column_replaces_the_timestamp_of_the_log(log: DataStream) -> None:
    made = log_plan(
        windowed(log.assign_timestamps_and_watermarks(BOUNDED.with_timestamp_assigner("seconds"))).aggregate(
            n=count()
        )
    )
    assert made.log.timestamp == "seconds"
    assert made.before == ()
    assert made.found_type() == pa.int64()


def test_the_strategys_expression_is_evaluated_where_the_strategy_stands(log: DataStream) -> None:
    strategy = BOUNDED.with_timestamp_assigner(pc.field("seconds") * 1000)
    job = log.with_columns(seconds=pc.field("seconds") + 1).select("k", "seconds")
    made = log_plan(windowed(job.assign_timestamps_and_watermarks(strategy)).aggregate(n=count()))
    assert made.log.timestamp == EVENT_TIME
    assert event_times(made) == [6000, 7000]


def test_a_column_that_is_replaced_before_the_strategy_gives_the_new_times(log: DataStream) -> None:
    changed = log.with_columns(seconds=pc.field("seconds") * 1000, ts=pc.field("seconds"))
    made = log_plan(
        windowed(
            changed.assign_timestamps_and_watermarks(BOUNDED.with_timestamp_assigner("seconds"))
        ).aggregate(n=count())
    )
    assert event_times(made) == [5000, 6000]
    made = log_plan(windowed(changed.assign_timestamps_and_watermarks(BOUNDED)).aggregate(n=count()))
    assert event_times(made) == [5, 6]
    again = changed.select("k", "ts").select("k").select("k")
    made = log_plan(windowed(again.assign_timestamps_and_watermarks(BOUNDED)).aggregate(n=count()))
    assert event_times(made) == [5, 6]


def test_an_event_keeps_its_source_timestamp_when_the_column_is_not_selected(log: DataStream) -> None:
    made = log_plan(windowed(log.select("k").assign_timestamps_and_watermarks(BOUNDED)).aggregate(n=count()))
    assert event_times(made) == [1000, 2000]
    assert made.time_type() == pa.timestamp("ms", "UTC")
    assert made.data_schema() == pa.schema([("k", pa.string())])


def test_a_select_before_the_strategy_leaves_the_event_time_to_jobs_that_keep_all_columns(
    log: DataStream,
) -> None:
    job = windowed(log.select("k").assign_timestamps_and_watermarks(BOUNDED)).side_output_late_data(LATE)
    made = log_plan(job.aggregate(n=count()))
    assert event_times(made) == [1000, 2000]
    assert made.data_schema() == pa.schema([("k", pa.string())])


def test_a_column_of_arrivals_or_splits_cannot_be_replaced_after_it_has_been_read(
    env: StreamExecutionEnvironment,
) -> None:
    log = env.from_event_log(TABLE, timestamp="ts", arrival="seconds", split="k")
    job = log.with_columns(seconds=pc.field("seconds") * 1000).assign_timestamps_and_watermarks(BOUNDED)
    with pytest.raises(ConfigurationError, match=r"'seconds' is computed after .*arrival=expression"):
        plan(windowed(job).aggregate(n=count()))
    job = log.select("ts", "seconds", k=pc.field("note")).assign_timestamps_and_watermarks(BOUNDED)
    with pytest.raises(ConfigurationError, match="'k' is computed after the splits"):
        plan(windowed(job).aggregate(n=count()))
    log = env.from_event_log(TABLE, timestamp=pc.field("seconds") * 10)
    job = log.with_columns(seconds=pc.field("seconds") * 100).assign_timestamps_and_watermarks(BOUNDED)
    with pytest.raises(ConfigurationError, match=r"after from_event_log\(timestamp=multiply_checked"):
        plan(windowed(job).aggregate(n=count()))


@pytest.mark.parametrize(
    "job",
    [
        lambda log: log.with_columns(__flinkcore_event_time=price).assign_timestamps_and_watermarks(BOUNDED),
        lambda log: log.assign_timestamps_and_watermarks(
            BOUNDED.with_timestamp_assigner(pc.field("__flinkcore_event_time"))
        ),
    ],
    ids=["made", "read"],
)
def test_names_of_hidden_columns_are_not_for_users(log: DataStream, job: Any) -> None:
    with pytest.raises(
        ConfigurationError, match=r"'__flinkcore_event_time': names that begin .* are reserved"
    ):
        plan(windowed(job(log)).aggregate(n=count()))


def test_only_columns_that_something_reads_are_asked_for(log: DataStream) -> None:
    job = (
        log.with_columns(double=price * 2, triple=price * 3)
        .assign_timestamps_and_watermarks(BOUNDED)
        .filter(pc.field("volume") > 0)
        .with_columns(cost=pc.field("double") * pc.field("volume"), unused=pc.field("triple"))
    )
    made = log_plan(windowed(job).aggregate(n=count(), total=sum_("cost"), again=sum_("cost")))
    assert made.read == {"cost"}
    assert made.data_columns() == ["k", "volume", "double"]
    assert made.data_schema() == pa.schema(
        [("k", pa.string()), ("volume", pa.int64()), ("double", pa.float64()), ("cost", pa.float64())]
    )
    batch, _ = apply_ops(made.before, TABLE.select(["ts", "k", "price", "volume"]).to_batches()[0])
    batch, _ = apply_ops(made.after, batch.select(made.data_columns()))
    assert batch.schema == made.data_schema()


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (
            as_watermark_strategy(LegacyPunctuated()),
            "cannot call the timestamp assigner .* LegacyPunctuated. Use with_timestamp_assigner with the name",
        ),
        (
            BOUNDED.with_timestamp_assigner(ValueAsTimestamp()),
            "cannot call the timestamp assigner .* ValueAsTimestamp. Use with_timestamp_assigner with the name",
        ),
    ],
)
def test_what_needs_the_elements_is_refused_in_a_replay(
    log: DataStream, strategy: WatermarkStrategy, message: str
) -> None:
    job = windowed(log.assign_timestamps_and_watermarks(strategy)).aggregate(n=count())
    with pytest.raises(ConfigurationError, match=message):
        plan(job)


def test_the_reason_of_a_rejected_row_needs_its_name(env: StreamExecutionEnvironment) -> None:
    log = env.from_event_log(TABLE, timestamp="ts", on_bad_row=REJECTED).with_columns(reason=pc.field("note"))
    job = windowed(log.assign_timestamps_and_watermarks(BOUNDED)).aggregate(n=count())
    with pytest.raises(ConfigurationError, match="has a column 'reason' of its own: rename the log's"):
        plan(job)


def test_side_outputs_show_all_columns(env: StreamExecutionEnvironment) -> None:
    log = env.from_event_log(TABLE, timestamp="ts", on_bad_row=REJECTED)
    job = log.assign_timestamps_and_watermarks(BOUNDED.with_timestamp_assigner(pc.field("seconds") * 1000))
    made = plan(windowed(job.with_columns(double=price * 2)).side_output_late_data(LATE).aggregate(n=count()))
    assert made.logs[0].data_columns() == TABLE.schema.names
    assert made.side_outputs() == (REJECTED, LATE)
    assert made.side_output_schema(LATE).names == [*TABLE.schema.names, "double"]
    assert made.side_output_schema(REJECTED).names == [*TABLE.schema.names, "double", "reason", "record"]
    with pytest.raises(ConfigurationError, match="no side output is named 'x'; this job has: rejected, late"):
        made.side_output_schema(OutputTag("x"))
    with pytest.raises(ConfigurationError, match="named by an OutputTag, not 'late'"):
        made.side_output_schema("late")  # type: ignore[arg-type]


def test_settings_that_nobody_has_made_are_no_changes_of_a_job() -> None:
    before = {"operator": "process", "results": "a", "keys": "k"}
    refuse_changes(before, before | {"trigger": "None"}, "here")
    with pytest.raises(ConfigurationError) as refused:
        refuse_changes(before, {"operator": "window", "trigger": "None", "offset": "3", "keys": "k"}, "here")
    assert "operator: process then, window now; offset: none then, 3 now: " in str(refused.value)


ARROW_TYPES = [
    *(pa.bool_(), pa.int8(), pa.uint16(), pa.int32(), pa.int64(), pa.uint64(), pa.decimal128(9, 2)),
    *(pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int8(), pa.string())),
    *(pa.date32(), pa.time64("us"), pa.timestamp("us", "UTC"), pa.duration("ms")),
]


@pytest.mark.parametrize("arrow_type", ARROW_TYPES, ids=str)
@pytest.mark.parametrize(
    "time_type", [pa.int64(), pa.timestamp("ns"), pa.timestamp("ms", "Europe/Berlin")], ids=str
)
def test_the_columns_of_results_are_known_before_a_job_runs(
    env: StreamExecutionEnvironment, arrow_type: pa.DataType, time_type: pa.DataType
) -> None:
    env.set_parallelism(1)
    values = pa.array([None, None], arrow_type)
    log = pa.table({"ts": pa.array([1, 2]).cast(time_type), "k": values, "m": [1, 2], "v": values})
    stream = env.from_event_log(log, timestamp="ts").assign_timestamps_and_watermarks(BOUNDED)
    for keys in (("k", "m"), ("m",)):
        windows = windowed(stream, *keys).allowed_lateness(1).retracting()
        job = windows.aggregate(n=count(), last=last("v"), different=count_distinct("v"), all=collect("v"))
        *_, batch = job.execute().to_batches()
        assert batch.num_rows == 2
        assert batch.schema == plan(job).result_schema()


def never_null(stream: DataStream) -> set[str]:
    planned = plan(stream)
    tight = planned.tight_result_schema()
    assert [(field.name, field.type) for field in tight] == [
        (field.name, field.type) for field in planned.result_schema()
    ]
    return {field.name for field in tight if not field.nullable}


def test_a_plan_knows_which_columns_of_results_have_no_null(log: DataStream) -> None:
    stream = log.assign_timestamps_and_watermarks(BOUNDED)
    aggregates = {"n": count(), "prices": count("price"), "spent": sum_("price"), "notes": collect("note")}
    firing = {"window_start", "window_end", "late_firing", "watermark"}
    results = windowed(stream).aggregate(**aggregates)
    assert never_null(results) == firing | {"k", "n", "prices"}
    assert never_null(windowed(stream, "k", "note").aggregate(**aggregates)) == firing | {"n", "prices"}
    by_count = [stream.key_by("k").count_window(*sizes).aggregate(n=count()) for sizes in ((2,), (3, 1))]
    assert [never_null(each) for each in by_count] == [
        firing - {"window_start", "window_end"} | {"k", "n"}
    ] * 2
    assert never_null(windowed(stream).retracting().aggregate(spent=sum_("price"))) == firing | {
        "k",
        "row_kind",
    }
    kinds = stream.with_columns(row_kind=pc.field("note"))
    assert never_null(windowed(kinds, "k", "row_kind").aggregate(n=count())) == firing | {"n"}
    emitted = windowed(stream).aggregate(row_kind=sum_("price")).with_emitted_at("known")
    assert never_null(emitted) == firing | {"k"}
    behind = results.filter(pc.field("n") > 1).with_columns(watermark=pc.field("watermark") + 1)
    assert never_null(behind) == (firing - {"watermark"}) | {"k", "n", "prices"}
    assert never_null(results.select("k", "spent", m=pc.field("n"))) == {"k"}
    assert never_null(stream.filter(price > 0)) == set()


class Silent(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> None:
        pass


def test_columns_of_a_function_are_never_null_where_they_are_declared_so(log: DataStream) -> None:
    columns = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.int64())])
    assert never_null(log.key_by("k").process(Silent(), columns)) == {"a"}


CUT = "a\0b"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda s: windowed(s, CUT).aggregate(n=count()),
            r"the name 'a\\x00b' of a column that the job reads has",
        ),
        (lambda s: windowed(s).aggregate(n=last(CUT)), "of a column that the job reads has a NUL character"),
        (
            lambda s: windowed(s, "nested").aggregate(n=count()),
            "of a column that the job reads in 'nested' has",
        ),
        (lambda s: s.key_by("k").process(Nothing(), pa.schema({"n": pa.int64()})), "that the job reads has"),
        (lambda s: windowed(s).aggregate(**{CUT: count()}), "of a column of results has a NUL character"),
        (lambda s: windowed(s).aggregate(n=count()).with_emitted_at(CUT), "of a column of results has"),
        (
            lambda s: s.select("k", "ts").key_by("k").process(Nothing(), pa.schema({CUT: pa.int64()})),
            "of a column of results has a NUL character, at which names end for Arrow. Rename it, or leave it out",
        ),
    ],
)
def test_a_name_that_kernels_would_cut_is_refused(
    env: StreamExecutionEnvironment, make: Callable[[DataStream], DataStream], message: str
) -> None:
    with pytest.raises(SchemaError, match=message):
        plan(make(with_cut_name(env)))


def test_a_parallelism_above_the_maximum_that_is_set_is_refused(
    env: StreamExecutionEnvironment, log: DataStream
) -> None:
    stream = windowed(log.assign_timestamps_and_watermarks(BOUNDED)).aggregate(n=count())
    env.set_parallelism(200)
    plan(stream)
    env.set_parallelism(8).set_max_parallelism(4)
    with pytest.raises(
        ConfigurationError, match=r"the parallelism 8 is higher than the maximum parallelism 4\. Lower"
    ):
        plan(stream)
    env.set_max_parallelism(8)
    plan(stream)


def nested(levels: int) -> pa.Array:
    column = pa.array([1])
    for _ in range(levels):
        column = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), column)
    return column


@pytest.mark.parametrize("levels", [65, 500])
def test_a_column_that_nests_too_much_is_refused_where_it_is_read(
    env: StreamExecutionEnvironment, levels: int
) -> None:
    log = pa.table({"k": ["x"], "ts": [1], "deep": nested(levels)})
    stream = env.from_event_log(log, timestamp="ts").assign_timestamps_and_watermarks(BOUNDED)
    assert windowed(stream).aggregate(n=count()).to_arrow()["n"].to_pylist() == [1]
    with pytest.raises(
        SchemaError, match=f"'deep', a column that the job reads, has {levels} levels of values"
    ):
        plan(windowed(stream).aggregate(n=last("deep")))
    with pytest.raises(
        ConfigurationError, match=rf"column 'n' with {levels} levels of values within values\. Declare"
    ):
        stream.key_by("k").process(Nothing(), pa.schema({"n": nested(levels).type}))


def test_a_name_that_kernels_would_cut_does_not_matter_where_nothing_reads_it(
    env: StreamExecutionEnvironment,
) -> None:
    stream = with_cut_name(env)
    plan(windowed(stream).aggregate(n=count()))
    plan(windowed(stream.select("k", "ts", renamed=pc.field(CUT))).aggregate(n=last("renamed")))


class Nothing(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> None:
        pass


def with_cut_name(env: StreamExecutionEnvironment) -> DataStream:
    log = pa.table({"k": ["x"], "ts": [1], CUT: ["y"], "nested": [{CUT: 1}]})
    return env.from_event_log(log, timestamp="ts").assign_timestamps_and_watermarks(BOUNDED)
