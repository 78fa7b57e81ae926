"""Jobs begin with savepoints of Flink: operators by uid, values as Python has them, errors that say what to do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from equipment.golden_savepoints import rows_of
from jobs.savepoint_jobs import Inputs, records

import flinkcore as fc
from flinkcore import savepoints
from flinkcore.common import Row, Time, Types
from flinkcore.datastream import KeyedProcessFunction
from flinkcore.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from flinkcore.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows
from flinkcore.errors import ArgumentTypeError, ConfigurationError, SavepointError
from flinkcore.savepoints import FlinkOperator, FlinkWindow, SavepointSource, SavepointTarget

GOLDEN = Path(__file__).parents[2] / "golden" / "savepoints"
CASES = GOLDEN / "cases"
VALUE = pa.schema({"value": pa.string()})
SUMS = FlinkWindow(
    Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()]), ["key", "total", "last"], reduces=True
)


def case(name: str) -> Path:
    return CASES / name / "savepoint"


def rest(n_rows: int | None = None, parallelism: int = 2, max_parallelism: int = 128) -> Any:
    """Return a stream of the records after those of the savepoints, or of the first ones of them."""
    env = fc.StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    env.set_max_parallelism(max_parallelism)
    table = records(Inputs(GOLDEN / "inputs", "further")).slice(0, n_rows)
    bound = fc.WatermarkStrategy.for_bounded_out_of_orderness(fc.Duration.of_millis(2000))
    return env.from_event_log(table, timestamp="ts").assign_timestamps_and_watermarks(bound)


class Counts(KeyedProcessFunction):
    """Emits what the states of the job `count_timers` hold for the key of each element."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen"))
        self.sums = runtime_context.get_map_state(MapStateDescriptor("sums"))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield (repr((ctx.get_current_key(), self.count.value(), list(self.seen.get() or ()))),)


class Nothing(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> None:
        pass


def counted(source: Any, **settings: Any) -> set[str]:
    result = rest(**settings).key_by("key").process(Counts(), VALUE).execute(restore_from=source)
    return set(result.to_arrow()["value"].to_pylist())


def expected_counts() -> set[str]:
    operator = savepoints.open(case("count_timers-heap1"), exact=True).operator("counter")
    counts = {row["key"]: row["value"] for row in rows_of(operator.state("count"))}
    seen = {row["key"]: row["value"] for row in rows_of(operator.state("seen"))}
    keys = set(rest().execute().to_arrow()["key"].to_pylist())
    return {repr((key, counts.get(key), seen.get(key, []))) for key in keys}


@pytest.mark.parametrize("name", ["count_timers-heap3", "count_timers-rocks3z", "count_timers-metadata3"])
@pytest.mark.parametrize(("parallelism", "max_parallelism"), [(1, 128), (3, 128), (2, 7)])
def test_a_path_of_a_savepoint_restores_the_only_operator_with_state(
    name: str, parallelism: int, max_parallelism: int
) -> None:
    found = counted(case(name), parallelism=parallelism, max_parallelism=max_parallelism)
    assert found == expected_counts()


def test_the_file_of_the_metadata_names_its_savepoint() -> None:
    assert counted(case("count_timers-heap1") / "_metadata") == expected_counts()


def test_a_state_may_have_another_name_here() -> None:
    declared = FlinkOperator("counter", names={"count": "seen", "seen": "other"})
    with pytest.raises(fc.errors.FlinkcoreError, match="'count' was restored as a list state"):
        counted(SavepointSource(case("count_timers-heap1"), [declared]))


def test_state_without_an_operator_is_an_error_that_names_it() -> None:
    stream = rest().key_by("key").process(Counts(), VALUE)
    with pytest.raises(
        ConfigurationError, match=r"operator 'passing' .* has state \['.*, and has no operator in"
    ) as raised:
        stream.execute(restore_from=case("chain-heap1"))
    assert "leave_out=['passing']" in str(raised.value)
    with pytest.raises(ConfigurationError, match="declared to be of 'other', which the job does not have"):
        counted(SavepointSource(case("count_timers-heap1"), [FlinkOperator("counter", of="other")]))


def test_operators_are_left_out_by_their_uids() -> None:
    source = SavepointSource(case("count_timers-heap1"), leave_out=["counter"])
    assert all(", None, []" in each for each in counted(source))


def test_an_operator_to_leave_out_must_be_in_the_savepoint() -> None:
    with pytest.raises(ConfigurationError, match=r"has no operator 'countre'; it has .*'counter'"):
        counted(SavepointSource(case("count_timers-heap1"), leave_out=["countre"]))


def test_two_operators_for_one_are_an_error() -> None:
    declared = [FlinkOperator("passing", of="process-1"), FlinkOperator("win", of="process-1")]
    operators = savepoints.open(case("chain-heap1")).operators
    others = [each.operator_id for each in operators if each.uid not in ("passing", "win")]
    source = SavepointSource(case("chain-heap1"), declared, others)
    stream = rest().key_by("key").process(Counts(), VALUE).uid("process-1")
    with pytest.raises(
        ConfigurationError, match=r"two operators of the savepoint .* have state for operator 'process-1'"
    ):
        stream.execute(restore_from=source)


def test_values_that_only_java_knows_are_refused_with_the_name_of_the_state() -> None:
    stream = rest().key_by("key").process(Nothing(), VALUE)
    with pytest.raises(
        ConfigurationError, match=r"state 'v_0' of operator 'values' .* Kryo<flinksp.Pojos\$Opaque>"
    ):
        stream.execute(restore_from=case("refuse_kryo-heap1"))


def test_keys_of_another_type_are_refused() -> None:
    stream = rest().key_by("value").process(Counts(), VALUE)
    with pytest.raises(
        ConfigurationError, match="are String in the savepoint, and the job has the key columns value: int64"
    ):
        stream.execute(restore_from=case("count_timers-heap1"))
    declared = FlinkOperator("counter", key=Types.LONG())
    with pytest.raises(ConfigurationError, match="are String, and declared as Long"):
        counted(SavepointSource(case("count_timers-heap1"), [declared]))


def test_a_missing_savepoint_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SavepointError, match="_metadata"):
        counted(SavepointSource(tmp_path))
    with pytest.raises(ArgumentTypeError, match="the path of a directory"):
        SavepointSource(7)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="leave_out is a list"):
        SavepointSource(tmp_path, leave_out="counter")


def test_windows_hold_each_aggregate_of_the_job() -> None:
    def job(declared: FlinkWindow | None, **aggregates: Any) -> None:
        hours = rest().key_by("key").window(TumblingEventTimeWindows.of(Time.seconds(10)))
        source = SavepointSource(case("tumbling_reduce-heap1"), [FlinkOperator("win", window=declared)])
        hours.allowed_lateness(8000).aggregate(**aggregates).execute(restore_from=source)

    sums = {"total": fc.sum_("value"), "last": fc.max_("ts")}
    with pytest.raises(ConfigurationError, match=r"hold nothing for the aggregate n = count\(\)"):
        job(SUMS, n=fc.count(), **sums)
    with pytest.raises(ConfigurationError, match=r"of 3 fields, and \['total', 'last'\] are declared"):
        job(None, **sums)
    mean = FlinkWindow(SUMS.type, ["key", "total", "mean"])
    with pytest.raises(
        ConfigurationError, match=r"mean = mean\(value\) .* cannot be restored from the result"
    ):
        job(mean, total=fc.sum_("value"), mean=fc.mean("value"))
    with pytest.raises(ConfigurationError, match="no aggregate or key 'other'"):
        job(FlinkWindow(SUMS.type, ["other", "total", "last"]), **sums)


def test_windows_of_all_keys_begin_with_those_of_flink() -> None:
    every = FlinkWindow(SUMS.type, [None, "total", "last"], reduces=True)
    windows = rest().window_all(TumblingEventTimeWindows.of(Time.seconds(10))).allowed_lateness(8000)
    source = SavepointSource(case("window_all-rocks3z"), [FlinkOperator("win", window=every)])
    found = (
        windows.aggregate(total=fc.sum_("value"), last=fc.max_("ts")).execute(restore_from=source).to_arrow()
    )
    rows = (
        savepoints.open(case("window_all-rocks3z"))
        .operator("win")
        .state("window-contents")
        .to_arrow()
        .to_pylist()
    )
    (before,) = (row["value"] for row in rows if row["namespace"]["start_ms"] == 1_070_000)
    own = sum(
        row["value"] for row in rest().execute().to_arrow().to_pylist() if 1_070_000 <= row["ts"] < 1_080_000
    )
    assert found["total"].to_pylist()[0] == before["f1"] + own


def test_elements_of_windows_are_restored_into_functions_only() -> None:
    sessions = rest().key_by("key").window(fc.EventTimeSessionWindows.with_gap(Time.seconds(9)))
    with pytest.raises(
        ConfigurationError, match=r"'window-contents' of operator 'win' .* holds the elements themselves"
    ):
        sessions.aggregate(n=fc.count()).execute(
            restore_from=SavepointSource(case("session_list-heap1"), [FlinkOperator("win")])
        )


class Names(KeyedProcessFunction):
    """Emits the value that a state has for the key of each element."""

    def __init__(self, name: str) -> None:
        self.name = name

    def open(self, runtime_context: Any) -> None:
        self.held = runtime_context.get_state(ValueStateDescriptor(self.name))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield (repr(self.held.value()),)


PRICES = pa.table({"user": ["ada", "bob"], "time": [10**12, 10**12 + 1]})


class Keeps(KeyedProcessFunction):
    """Keeps a value of its own for each key."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def open(self, runtime_context: Any) -> None:
        self.held = runtime_context.get_state(ValueStateDescriptor("held"))

    def process_element(self, value: Any, ctx: Any) -> None:
        self.held.update(self.value)


def prices() -> Any:
    env = fc.StreamExecutionEnvironment.get_execution_environment()
    return env.from_event_log(PRICES, timestamp="time").key_by("user")


@pytest.mark.parametrize(
    ("value", "written", "read", "expected"),
    [
        ((3, "x"), Types.TUPLE([Types.INT(), Types.STRING()]), None, (3, "x")),
        (
            (3, "x"),
            Types.TUPLE([Types.INT(), Types.STRING()]),
            Types.ROW_NAMED(["n", "name"], [Types.INT(), Types.STRING()]),
            Row(n=3, name="x"),
        ),
        (
            Row(b=2, a="y"),
            savepoints.pojo("P", {"a": Types.STRING(), "b": Types.INT()}),
            None,
            Row(a="y", b=2),
        ),
        ([1.5, 2.5], Types.LIST(Types.DOUBLE()), None, [1.5, 2.5]),
        ({"a": 1}, Types.MAP(Types.STRING(), Types.LONG()), None, {"a": 1}),
        (2**70, Types.BIG_INT(), None, 2**70),
    ],
)
def test_values_come_back_as_they_were_written(
    value: Any, written: Any, read: Any, expected: Any, tmp_path: Path
) -> None:
    target = SavepointTarget(tmp_path / "s", [FlinkOperator("op", states={"held": written})])
    prices().process(Keeps(value), VALUE).execute(stop_with_savepoint=target).to_arrow()
    declared = FlinkOperator("op", states={} if read is None else {"held": read})
    result = (
        prices()
        .process(Names("held"), VALUE)
        .execute(restore_from=SavepointSource(tmp_path / "s", [declared]))
    )
    assert result.to_arrow()["value"].to_pylist() == [repr(expected)] * 2


def test_a_job_that_began_with_a_savepoint_stops_and_resumes_like_one_run(tmp_path: Path) -> None:
    source = SavepointSource(case("sliding_reduce-heap3"), [FlinkOperator("win", window=SUMS)])

    def job(name: str, **checkpoints: Any) -> list[dict[str, Any]]:
        env = fc.StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(2)
        env.set_max_parallelism(128)
        bound = fc.WatermarkStrategy.for_bounded_out_of_orderness(fc.Duration.of_millis(2000))
        stream = env.from_event_log(tables[name], timestamp="ts", arrival="at")
        slides = SlidingEventTimeWindows.of(Time.seconds(10), Time.seconds(4), Time.seconds(1))
        hours = stream.assign_timestamps_and_watermarks(bound).key_by("key").window(slides)
        found = hours.aggregate(total=fc.sum_("value"), last=fc.max_("ts")).execute(**checkpoints)
        return found.to_arrow().select(["key", "window_start", "total", "last"]).to_pylist()

    every = rest().execute().to_arrow().select(["key", "value", "ts"])
    every = every.append_column("at", pa.array(range(len(every))))
    tables = {"whole": every, "first": every.slice(0, 20), "second": every.slice(20)}
    whole = job("whole", restore_from=source)
    first = job("first", restore_from=source, stop_with_checkpoint=tmp_path)
    second = job("second", restore_from=tmp_path)
    assert first
    assert second
    assert sorted(map(repr, first + second)) == sorted(map(repr, whole))


def test_windows_that_began_with_a_savepoint_are_written_again(tmp_path: Path) -> None:
    declared = FlinkOperator("win", window=SUMS)
    for name in ("tumbling_reduce-heap1", "sliding_reduce-heap3", "session_reduce-heap1"):
        stream = rest(0).key_by("key")
        windows = {
            "tumbling": lambda stream=stream: stream.window(
                TumblingEventTimeWindows.of(Time.seconds(10))
            ).allowed_lateness(8000),
            "sliding": lambda stream=stream: stream.window(
                SlidingEventTimeWindows.of(Time.seconds(10), Time.seconds(4), Time.seconds(1))
            ),
            "session": lambda stream=stream: stream.window(
                fc.EventTimeSessionWindows.with_gap(Time.seconds(9))
            ).allowed_lateness(8000),
        }[name.partition("_")[0]]()
        job = windows.aggregate(total=fc.sum_("value"), last=fc.max_("ts"))
        target = SavepointTarget(tmp_path / name, [declared])
        job.execute(
            restore_from=SavepointSource(case(name), [declared]), stop_with_savepoint=target
        ).to_arrow()
        before, after = (
            savepoints.open(path)
            .operator("win")
            .state("_timer_state/event_window-timers")
            .to_arrow()
            .drop(["key_group"])
            for path in (case(name), tmp_path / name)
        )
        columns = [("timestamp_ms", "ascending"), ("key", "ascending")]
        assert before.sort_by(columns).equals(after.sort_by(columns))
