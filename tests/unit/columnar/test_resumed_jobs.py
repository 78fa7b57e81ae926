"""Jobs of several logs or operators that go on from checkpoints: what they refuse, and how they name their parts."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from equipment.forged_checkpoints import forge

from flinkcore.checkpoint import Checkpoint
from flinkcore.cli import main
from flinkcore.common import Duration, Time, Watermark, WatermarkGenerator, WatermarkStrategy
from flinkcore.datastream import (
    CoProcessFunction,
    DataStream,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import count, sum_
from flinkcore.datastream.functions import ProcessJoinFunction
from flinkcore.errors import CheckpointError, ConfigurationError, DataError, SchemaError, UserCodeError

SECOND = Time.seconds(1)
BOUNDED = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(0))
TOLD = pa.schema({"user": pa.string(), "n": pa.int64()})


def log(*events: tuple[int, str, str]) -> pa.Table:
    """Of arrivals, which are the timestamps, too, splits and users."""
    at, part, user = (list(column) for column in zip(*events, strict=True)) if events else ([], [], [])
    types = {"at": pa.int64(), "part": pa.string(), "user": pa.string()}
    return pa.table(
        [pa.array(c, kind) for c, kind in zip((at, part, user), types.values(), strict=True)], list(types)
    )


CLICKS = log((100, "a", "x"), (1100, "b", "y"), (2100, "a", "x"), (2150, "a", "x"))
RATES = log((900, "c", "x"), (2150, "d", "y"))
CLICKS_TODAY = log((2900, "a", "x"), (3200, "b", "x"), (4500, "a", "y"))
RATES_TODAY = log((3100, "d", "y"), (4400, "c", "y"))


def read(
    env: StreamExecutionEnvironment, table: pa.Table, strategy: WatermarkStrategy = BOUNDED
) -> DataStream:
    events = env.from_event_log(table, timestamp="at", arrival="at", split="part")
    return events.assign_timestamps_and_watermarks(strategy)


class Copies(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield value.user, value.n


class Both(ProcessJoinFunction[Any, Any]):
    def process_element(self, left: Any, right: Any, ctx: Any) -> Iterator[Any]:
        yield left.user, right.at


class Either(CoProcessFunction):
    def process_element1(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield value.user, value.at

    process_element2 = process_element1


class KeyedEither(KeyedCoProcessFunction):
    process_element1 = Either.process_element1
    process_element2 = Either.process_element1


def two_operators(
    table: pa.Table,
    *,
    size: Time = SECOND,
    key: str = "user",
    strategy: WatermarkStrategy = BOUNDED,
    function: KeyedProcessFunction | None = None,
    uid: str | None = None,
) -> DataStream:
    env = StreamExecutionEnvironment().set_parallelism(1)
    windows = read(env, table, strategy).key_by("user").window(TumblingEventTimeWindows.of(size))
    counted = windows.aggregate(n=count()).with_columns(late=pc.field("late_firing"))
    last = counted.key_by(key).process(function or Copies(), TOLD)
    return last if uid is None else last.uid(uid)


def two_logs(
    clicks: pa.Table, rates: pa.Table, strategy: WatermarkStrategy = BOUNDED, lower: int = -2000
) -> DataStream:
    env = StreamExecutionEnvironment().set_parallelism(2)
    left, right = (read(env, table, strategy).key_by("user") for table in (clicks, rates))
    return left.interval_join(right).between(lower, 2000).process(Both(), TOLD)


def union(clicks: pa.Table, rates: pa.Table, strategy: WatermarkStrategy = BOUNDED) -> DataStream:
    env = StreamExecutionEnvironment().set_parallelism(2)
    both = read(env, clicks, strategy).union(read(env, rates, strategy))
    return (
        both.key_by("user").window(TumblingEventTimeWindows.of(SECOND)).aggregate(n=count(), total=sum_("at"))
    )


def diamond(clicks: pa.Table, rates: pa.Table, *, is_swapped: bool = False) -> DataStream:
    """A function takes the windows of a union, and what windows of these and of a log give."""
    first = union(clicks, rates).select("user", at=pc.field("n"))
    again = read(first.get_execution_environment(), rates).select("user", "at").union(first)
    second = again.key_by("user").window(TumblingEventTimeWindows.of(SECOND)).aggregate(at=count())
    streams = [first, second.select("user", "at")]
    left, right = reversed(streams) if is_swapped else streams
    return left.connect(right).key_by("user", "user").process(KeyedEither(), TOLD)


def rows(*tables: pa.Table) -> list[str]:
    return sorted(repr(row) for table in tables for row in table.to_pylist())


# ---- the same job ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"size": Time.seconds(2)}, r"window-1: window: .*size_ms=1000.* then, .*size_ms=2000.* now"),
        ({"key": "late"}, "process-2: keys: user: string then, late: bool now"),
        ({"strategy": BOUNDED.with_idleness(SECOND)}, "log 1: watermark strategy: .* idle after 1000 ms now"),
        ({"uid": "copy"}, "1 log, operators window-1, process-2 then, 1 log, operators window-1, copy now"),
    ],
)
def test_another_setting_of_any_operator_is_refused(
    change: dict[str, Any], told: str, tmp_path: Path
) -> None:
    two_operators(CLICKS).execute(stop_with_checkpoint=tmp_path / "c").to_arrow()
    with pytest.raises(ConfigurationError, match=told):
        two_operators(CLICKS_TODAY, **change).execute(restore_from=tmp_path / "c")


def test_another_bound_of_a_join_and_another_shape_of_the_job_are_refused(tmp_path: Path) -> None:
    two_logs(CLICKS, RATES).execute(stop_with_checkpoint=tmp_path / "c").to_arrow()
    with pytest.raises(ConfigurationError, match="process-1: least difference ms: -2000 then, 0 now"):
        two_logs(CLICKS_TODAY, RATES_TODAY, lower=0).execute(restore_from=tmp_path / "c")
    with pytest.raises(
        ConfigurationError, match="2 logs, operators process-1 then, 1 log, operators window-1"
    ):
        two_operators(CLICKS_TODAY).execute(restore_from=tmp_path / "c")
    env = StreamExecutionEnvironment()
    alone = read(env, CLICKS).with_columns(n=pc.field("at")).key_by("user").process(Copies(), TOLD)
    with pytest.raises(ConfigurationError, match="operators process-1 then, 1 log with 1 operator now"):
        alone.execute(restore_from=tmp_path / "c")


def test_results_that_come_to_another_input_are_refused(tmp_path: Path) -> None:
    diamond(CLICKS, RATES).execute(stop_with_checkpoint=tmp_path / "c").to_arrow()
    told = "process-3: results of stream 1: window-1 then, window-2 now; process-3: results of stream 2: window-2"
    with pytest.raises(ConfigurationError, match=told):
        diamond(CLICKS_TODAY, RATES_TODAY, is_swapped=True).execute(restore_from=tmp_path / "c")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda later: later.pop(), "the watermarks of 2 operators, and 3 take part"),
        (lambda later: later[1].__setitem__(0, 5000), "'process-3' has the watermark 5000 of inputs"),
        (lambda later: later[1].__setitem__(1, 7), "'process-3' has the watermark .* of inputs with .7, "),
        (lambda later: later[0].__setitem__(1, 5000), "'window-2' has the watermark .* of inputs with .5000"),
        (lambda later: later[0].__setitem__(0, None), "has None, no watermark"),
        (lambda later: later[0].pop(), "is not the watermark of an operator and of one or two inputs"),
        (lambda later: later.append({}), "is not the watermark of an operator and of one or two inputs"),
    ],
)
def test_watermarks_of_later_operators_that_contradict_what_comes_to_them_are_refused(
    change: Callable[[list[Any]], Any], told: str, tmp_path: Path
) -> None:
    diamond(CLICKS, RATES).execute(stop_with_checkpoint=tmp_path / "c").to_arrow()

    def of_all_logs(content: dict[str, Any]) -> None:
        for part in content["parts"]:
            for table in part["tables"]:
                if table["kind"] == "time_plane":
                    change(table["attributes"]["later_operators_ms"])

    forge(tmp_path / "c", of_all_logs)
    with pytest.raises(CheckpointError, match=told):
        diamond(CLICKS_TODAY, RATES_TODAY).execute(restore_from=tmp_path / "c")


def test_a_join_that_is_no_join_any_more_is_refused(tmp_path: Path) -> None:
    two_logs(CLICKS, RATES).execute(stop_with_checkpoint=tmp_path / "c").to_arrow()
    env = StreamExecutionEnvironment()
    either = read(env, CLICKS_TODAY).connect(read(env, RATES_TODAY)).process(Either(), TOLD)
    with pytest.raises(
        ConfigurationError, match="operator: interval join then, process function of two streams now"
    ):
        either.execute(restore_from=tmp_path / "c")


def test_every_log_and_operator_has_a_uid_of_its_own(tmp_path: Path) -> None:
    env = StreamExecutionEnvironment().set_parallelism(1)
    logs = [
        env.from_event_log(table, timestamp="at", arrival="at", split="part") for table in (CLICKS, RATES)
    ]
    united = logs[0].union(logs[1]).assign_timestamps_and_watermarks(BOUNDED).uid("times")
    windows = united.key_by("user").window(TumblingEventTimeWindows.of(SECOND)).aggregate(n=count())
    job = windows.key_by("user").process(Copies(), TOLD).uid("copy")
    job.execute(stop_with_checkpoint=tmp_path / "c").to_arrow()
    assert Checkpoint.open(tmp_path / "c").uids == ["copy", "times-1", "times-2", "window-1"]
    with pytest.raises(ConfigurationError, match="two steps have the uid 'copy'"):
        windows.uid("copy").key_by("user").process(Copies(), TOLD).uid("copy").execute()


# ---- the cut -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("job", [two_logs, union])
@pytest.mark.parametrize(
    ("early", "of_log", "told"),
    [
        # The last event is one of the second log: all splits of the first come before it.
        (
            (2150, "b", "x"),
            0,
            "split 'b' .* arrival 2150 ms, but .* after the arrival 2150 ms of another log",
        ),
        ((2150, "c", "x"), 1, "split 'c' .* arrival 2150 ms, but .* after the arrival 2150 ms of split 'd'"),
        ((2149, "d", "x"), 1, "split 'd' has an event with the arrival 2149 ms"),
    ],
)
def test_events_before_the_last_one_of_all_logs_are_refused(
    job: Any, early: tuple[int, str, str], of_log: int, told: str, tmp_path: Path
) -> None:
    job(CLICKS, RATES).execute(stop_with_checkpoint=tmp_path / "c").to_arrow()
    today = [CLICKS_TODAY, RATES_TODAY]
    today[of_log] = pa.concat_tables([log(early), today[of_log]])
    with pytest.raises(DataError, match=told):
        job(*today).execute(restore_from=tmp_path / "c").to_arrow()


def test_a_later_log_may_go_on_at_the_last_arrival(tmp_path: Path) -> None:
    rates = RATES.slice(0, 1), pa.concat_tables([RATES.slice(1), RATES_TODAY])
    first = union(CLICKS, rates[0]).execute(stop_with_checkpoint=tmp_path / "c").to_arrow()
    second = union(CLICKS_TODAY, rates[1]).execute(restore_from=tmp_path / "c").to_arrow()
    both = [pa.concat_tables(parts) for parts in ((CLICKS, CLICKS_TODAY), rates)]
    assert first.num_rows + second.num_rows == union(*both).to_arrow().num_rows


@pytest.mark.parametrize("job", [two_logs, union])
@pytest.mark.parametrize("idleness", [None, 300])
def test_a_log_without_a_split_holds_the_job_back_as_in_the_whole(
    job: Any, idleness: int | None, tmp_path: Path
) -> None:
    strategy = BOUNDED if idleness is None else BOUNDED.with_idleness(Duration.of_millis(idleness))
    paths = [tmp_path / "0", tmp_path / "1"]
    whole = job(pa.concat_tables([CLICKS, CLICKS_TODAY]), log(), strategy).execute()
    first = job(CLICKS, log(), strategy).execute(stop_with_checkpoint=paths[0]).to_arrow()
    between = job(log(), log(), strategy).execute(restore_from=paths[0], stop_with_checkpoint=paths[1])
    assert between.to_arrow().num_rows == 0
    last = job(CLICKS_TODAY, log(), strategy).execute(restore_from=paths[1])
    assert rows(first, last.to_arrow()) == rows(whole.to_arrow())
    assert last.report.watermark_ms == whole.report.watermark_ms


def test_a_job_can_begin_without_events(tmp_path: Path) -> None:
    for job in (two_logs, union):
        job(log(), log()).execute(stop_with_checkpoint=tmp_path / "c").to_arrow()
        going_on = job(CLICKS, RATES).execute(restore_from=tmp_path / "c").to_arrow()
        assert rows(going_on) == rows(job(CLICKS, RATES).to_arrow())


# ---- generators and failures -------------------------------------------------------------------------------------


class Counts(WatermarkGenerator[Any]):
    """Its watermark is the number of events, of all days."""

    def __init__(self) -> None:
        self.n = 0

    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        self.n += 1

    def on_periodic_emit(self, output: Any) -> None:
        output.emit_watermark(Watermark(self.n))

    def snapshot_state(self) -> Any:
        return self.n

    def restore_state(self, state: Any) -> None:
        self.n = state


class Holds(Counts):
    def snapshot_state(self) -> Any:
        return object()


class Raises(Counts):
    def snapshot_state(self) -> Any:
        raise ValueError("unlucky")


class Forgets(Counts):
    def restore_state(self, state: Any) -> None:
        raise KeyError("n")


def test_a_generator_goes_on_from_what_it_held(tmp_path: Path) -> None:
    strategy = WatermarkStrategy.for_generator(Counts)
    two_operators(CLICKS, strategy=strategy).execute(stop_with_checkpoint=tmp_path / "c").to_arrow()
    table = Checkpoint.open(tmp_path / "c").time_plane("watermarks-1")
    assert dict(zip(table.values("split"), table.values("generator"), strict=True)) == {"a": 3, "b": 1}
    again = two_operators(CLICKS_TODAY, strategy=strategy).execute(restore_from=tmp_path / "c")
    again.to_arrow()
    assert again.report.split_watermarks == {(0, "a"): 5, (0, "b"): 2}


@pytest.mark.parametrize(
    ("generator", "error", "told"),
    [
        (Holds, SchemaError, "generator of the splits"),
        (Raises, UserCodeError, "Raises.snapshot_state of split 'a' failed: ValueError: unlucky"),
    ],
)
def test_a_generator_that_cannot_tell_what_it_holds_leaves_no_checkpoint(
    generator: Any, error: Any, told: str, tmp_path: Path
) -> None:
    job = two_operators(CLICKS, strategy=WatermarkStrategy.for_generator(generator))
    with pytest.raises(error, match=told):
        job.write_parquet(tmp_path / "results", stop_with_checkpoint=tmp_path / "c")
    assert not list((tmp_path / "c").glob("*"))
    assert not list((tmp_path / "results").glob("*"))


def test_a_generator_that_cannot_go_on_is_told_of(tmp_path: Path) -> None:
    class Fails(Forgets): ...

    strategy = WatermarkStrategy.for_generator(Fails)
    two_operators(CLICKS, strategy=strategy).execute(stop_with_checkpoint=tmp_path / "c").to_arrow()
    with pytest.raises(UserCodeError, match=r"Fails.restore_state of split 'a' failed: KeyError: 'n'"):
        two_operators(CLICKS_TODAY, strategy=strategy).execute(restore_from=tmp_path / "c").to_arrow()


def test_a_later_operator_that_fails_leaves_the_checkpoint_that_was_there(tmp_path: Path) -> None:
    class Failing(Copies):
        def process_element(self, value: Any, ctx: Any) -> Any:
            raise ValueError("unlucky")

    two_operators(CLICKS).execute(stop_with_checkpoint=tmp_path / "c").to_arrow()
    manifest = Checkpoint.open(tmp_path / "c").manifest
    failing = two_operators(CLICKS_TODAY, function=Failing())
    with pytest.raises(UserCodeError, match="unlucky"):
        failing.write_parquet(
            tmp_path / "results", restore_from=tmp_path / "c", stop_with_checkpoint=tmp_path / "c"
        )
    assert Checkpoint.open(tmp_path / "c").manifest == manifest
    assert not list((tmp_path / "results").glob("*"))


def test_the_command_shows_all_logs_and_operators(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    strategy = WatermarkStrategy.for_generator(Counts)
    two_logs(CLICKS, RATES, strategy).execute(stop_with_checkpoint=tmp_path / "c").to_arrow()
    main(["checkpoint", "show", str(tmp_path / "c")])
    shown = capsys.readouterr().out
    for line in (
        "logs and operators: 2 logs, operators process-1\n",
        "log 2: watermark strategy: watermarks by Counts\n",
        "process-1: logs of stream 2: 2\n",
        "operator 'watermarks-2': 1 subtask",
        "    'a': 3 rows, last arrival 1970-01-01 00:00:02.150Z, watermark 1970-01-01 00:00:00.001Z, generator 3\n",
    ):
        assert line in shown
