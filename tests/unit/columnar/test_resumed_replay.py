"""Jobs that stop with a checkpoint and go on from one: what they refuse, and what they leave when they fail."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from equipment.unordered_rows import UnorderedRows

from flinkcore.checkpoint import Checkpoint, OperatorSnapshot, PendingCheckpoint
from flinkcore.common import Duration, Time, WatermarkGenerator, WatermarkStrategy
from flinkcore.common.split_origin import FILE
from flinkcore.datastream import (
    DataStream,
    EventTimeSessionWindows,
    KeyedBatchProcessFunction,
    KeyedProcessFunction,
    KeyedStream,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import count, sum_
from flinkcore.datastream.state import ValueStateDescriptor
from flinkcore.errors import ConfigurationError, DataError, SchemaError, SourceError, UserCodeError

SECOND = Time.seconds(1)
BOUNDED = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(0))


def log(*events: tuple[int, str, str]) -> pa.Table:
    """Of arrivals, which are the timestamps, too, splits and users."""
    at, part, user = (list(column) for column in zip(*events, strict=True)) if events else ([], [], [])
    return pa.table(
        {
            "at": pa.array(at, pa.int64()),
            "part": pa.array(part, pa.string()),
            "user": pa.array(user, pa.string()),
        }
    )


YESTERDAY = log((100, "a", "x"), (1100, "b", "y"), (2100, "a", "x"), (2150, "b", "x"))
TODAY = log((2150, "b", "y"), (2900, "a", "x"), (3200, "b", "x"), (4500, "a", "y"))
BOTH = pa.concat_tables([YESTERDAY, TODAY])


def keyed(
    table: pa.Table,
    *,
    strategy: WatermarkStrategy = BOUNDED,
    interval: int = 100,
    keys: tuple[str, ...] = ("user",),
    key_groups: int = 128,
    steps: dict[str, pc.Expression] | None = None,
    **source: Any,
) -> KeyedStream:
    env = StreamExecutionEnvironment().set_parallelism(1).set_max_parallelism(key_groups)
    env.get_config().set_auto_watermark_interval(interval)
    settings = {"timestamp": "at", "arrival": "at", "split": "part", "integer_times": True} | source
    events = env.from_event_log(table, **settings)
    events = events.with_columns(**steps) if steps else events
    return events.assign_timestamps_and_watermarks(strategy).key_by(*keys)


def windows(
    table: pa.Table, window: Any = None, lateness: int = 0, aggregates: Any = None, **settings: Any
) -> DataStream:
    return (
        keyed(table, **settings)
        .window(window or TumblingEventTimeWindows.of(SECOND))
        .allowed_lateness(lateness)
        .aggregate(**(aggregates or {"n": count(), "total": sum_("at")}))
    )


class Counter(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.n = runtime_context.get_state(ValueStateDescriptor("n"))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.n.update((self.n.value() or 0) + 1)
        yield value.user, self.n.value()


def counted(table: pa.Table, function: KeyedProcessFunction | None = None, **settings: Any) -> DataStream:
    return keyed(table, **settings).process(
        function or Counter(), pa.schema({"user": pa.string(), "n": pa.int64()})
    )


def rows(*tables: pa.Table) -> list[str]:
    return sorted(repr(row) for table in tables for row in table.to_pylist())


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Of windows over yesterday's log."""
    windows(YESTERDAY).execute(stop_with_checkpoint=tmp_path / "yesterday").to_arrow()
    return tmp_path / "yesterday"


def test_rows_without_positions_that_arrived_before_1970_are_resumed(tmp_path: Path) -> None:
    yesterday, today = log((-3, "a", "x"), (-3, "b", "y")), log((-2, "a", "x"), (1500, "b", "y"))
    checkpoint = str(tmp_path / "checkpoint")
    parts = [
        windows(UnorderedRows(yesterday)).execute(stop_with_checkpoint=checkpoint).to_arrow(),
        windows(UnorderedRows(today)).execute(restore_from=checkpoint).to_arrow(),
    ]
    whole = windows(UnorderedRows(pa.concat_tables([yesterday, today]))).execute().to_arrow()
    assert pa.concat_tables(parts).to_pylist() == whole.to_pylist()
    assert whole["n"].to_pylist() == [2, 1, 1]


# ---- the same job ------------------------------------------------------------------------------------------------


def test_the_end_of_a_log_with_a_checkpoint_fires_nothing(tmp_path: Path) -> None:
    stopped = windows(YESTERDAY).execute(stop_with_checkpoint=tmp_path / "c")
    assert [row["window_start"] for row in stopped.to_arrow().to_pylist()] == [0]
    assert stopped.report.watermark_ms == 1099
    going_on = windows(TODAY).execute(restore_from=tmp_path / "c")
    assert rows(stopped.to_arrow(), going_on.to_arrow()) == rows(windows(BOTH).to_arrow())
    assert going_on.report.windowed == len(TODAY)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            {"strategy": BOUNDED.with_idleness(Duration.of_millis(5))},
            "watermark strategy: .* idle after 5 ms now",
        ),
        ({"interval": 50}, "auto-watermark interval: 100 ms then, 50 ms now"),
        ({"keys": ("user", "part")}, "keys: user: string then, user: string, part: string now"),
        (
            {"window": EventTimeSessionWindows.with_gap(SECOND)},
            "window: Tumbling.* then, EventTimeSession.* now",
        ),
        ({"lateness": 7}, "allowed lateness ms: 0 then, 7 now"),
        ({"aggregates": {"n": count()}}, "aggregates: n = count.* then, n = count.* now"),
        ({"arrival": None}, "arrivals: recorded as 'at' then, 1000.0 records/s from 0 ms now"),
        ({"arrival": pc.field("at") + 1}, r"arrivals: recorded as 'at' then, .* add_checked\(at, 1\) now"),
        ({"arrival": "other"}, "arrivals: recorded as 'at' then, recorded as 'other' now"),
        ({"timestamp": "other"}, "timestamp: 'at' then, 'other' now"),
        ({"timestamp": pc.field("at") + 1}, r"timestamp: 'at' then, add_checked\(at, 1\) now"),
        ({"split": None}, "split: 'part' then, none now"),
        ({"split": "user"}, "split: 'part' then, 'user' now"),
        (
            {"steps": {"user": pc.utf8_upper(pc.field("user"))}},
            r"keys computed: none then, user = utf8_upper\(user\) now",
        ),
        (
            {"steps": {"ts": pc.field("at") + 7}, "timestamp": "ts"},
            r"timestamp computed: none then, ts = add_checked\(at, 7\) now",
        ),
        ({"key_groups": 64}, "has 128 key groups, but the job has max_parallelism 64"),
    ],
)
def test_a_job_with_another_setting_is_refused(change: dict[str, Any], told: str, checkpoint: Path) -> None:
    log_with_both = TODAY.append_column("other", TODAY["at"])
    with pytest.raises(ConfigurationError, match=told):
        windows(log_with_both, **change).execute(restore_from=checkpoint)


def test_another_rate_or_origin_of_the_splits_is_refused(tmp_path: Path) -> None:
    files = tmp_path / "log"
    files.mkdir()
    pq.write_table(YESTERDAY, files / "1.parquet")

    def by_rate(**settings: Any) -> DataStream:
        return windows(files, **({"arrival": None, "rate": 1_000_000.0, "split": FILE} | settings))

    by_rate().execute(stop_with_checkpoint=tmp_path / "c").to_arrow()
    for change, told in (
        ({"rate": 1_000_000.5}, r"arrivals: 1000000.0 records/s .* then, 1000000.5 records/s .* now"),
        ({"arrival_start_ms": 7}, "arrivals: .* from 0 ms then, .* from 7 ms now"),
        ({"split": None}, "split: FILE then, none now"),
        ({"split": "part"}, "split: FILE then, 'part' now"),
    ):
        with pytest.raises(ConfigurationError, match=told):
            by_rate(**change).execute(restore_from=tmp_path / "c")


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        ([1, 2], ["x", "y"], "of type str, such as 'x', .* checkpoint of type int, such as 1"),
        ([0, 1], [False, True], "of type bool, such as False, .* checkpoint of type int, such as 0"),
    ],
)
def test_splits_of_another_type_are_refused(
    before: list[Any], now: list[Any], told: str, tmp_path: Path
) -> None:
    first, then = YESTERDAY.slice(0, 2), TODAY.slice(0, 2)
    windows(first.set_column(1, "part", [before])).execute(stop_with_checkpoint=tmp_path / "c").to_arrow()
    with pytest.raises(SchemaError, match=told):
        windows(then.set_column(1, "part", [now])).execute(restore_from=tmp_path / "c").to_arrow()


def test_a_job_with_another_operator_is_refused(checkpoint: Path) -> None:
    with pytest.raises(
        ConfigurationError, match="operator: aggregates over windows then, process function now"
    ):
        counted(TODAY).execute(restore_from=checkpoint)


def test_the_uids_of_both_jobs_must_be_the_same(tmp_path: Path) -> None:
    counted(YESTERDAY).uid("count").execute(stop_with_checkpoint=tmp_path / "c").to_arrow()
    assert Checkpoint.open(tmp_path / "c").uids == ["count", "watermarks-1"]
    with pytest.raises(
        ConfigurationError, match=r"no operator 'process-1'; it has \['count', 'watermarks-1'\]"
    ):
        counted(TODAY).execute(restore_from=tmp_path / "c")
    going_on = counted(TODAY).uid("count").execute(restore_from=tmp_path / "c").to_arrow()
    assert sorted(zip(*going_on.to_pydict().values(), strict=True)) == [
        ("x", 4),
        ("x", 5),
        ("y", 2),
        ("y", 3),
    ]


def test_two_steps_cannot_have_one_uid() -> None:
    env = StreamExecutionEnvironment()
    stream = env.from_event_log(
        YESTERDAY, timestamp="at", integer_times=True, arrival="at"
    ).assign_timestamps_and_watermarks(BOUNDED)
    twice = (
        stream.uid("x")
        .key_by("user")
        .window(TumblingEventTimeWindows.of(SECOND))
        .aggregate(n=count())
        .uid("x")
    )
    with pytest.raises(ConfigurationError, match="two steps have the uid 'x'"):
        twice.to_arrow()
    with pytest.raises(ConfigurationError, match="a uid is a text that is not empty, not ''"):
        stream.uid("")


class Silent(WatermarkGenerator[Any]):
    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None: ...

    def on_periodic_emit(self, output: Any) -> None: ...


def test_a_generator_without_a_snapshot_is_refused(tmp_path: Path) -> None:
    silent = windows(YESTERDAY, strategy=WatermarkStrategy.for_generator(Silent))
    with pytest.raises(
        ConfigurationError, match=r"Silent has no snapshot_state of its own\. Define snapshot_state"
    ):
        silent.execute(stop_with_checkpoint=tmp_path / "c")


class Adds(KeyedProcessFunction):
    """Adds up the numbers of a key in a state of this name, or leaves it out."""

    def __init__(self, name: str | None) -> None:
        self.name = name

    def open(self, runtime_context: Any) -> None:
        if self.name is not None:
            self.total = runtime_context.get_state(ValueStateDescriptor(self.name))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        if self.name is not None:
            self.total.update((self.total.value() or 0) + 1)
            yield value.user, self.total.value()


class AddsColumns(KeyedBatchProcessFunction):
    """The same over batches."""

    one_element_per_key = True

    def __init__(self, name: str | None) -> None:
        self.name = name

    def open(self, runtime_context: Any) -> None:
        if self.name is not None:
            self.totals = runtime_context.get_column_state(self.name, "int64")

    def process_batch(self, elements: Any, ctx: Any) -> Iterator[Any]:
        if self.name is not None:
            self.totals[elements.key_ids] += 1
            yield {"user": elements["user"], "n": self.totals[elements.key_ids]}


@pytest.mark.parametrize("function", [Adds, AddsColumns])
@pytest.mark.parametrize("between", [None, "other"])
def test_a_state_that_is_not_asked_for_stays_in_the_next_checkpoint(
    function: Any, between: str | None, tmp_path: Path
) -> None:
    def run(table: pa.Table, name: str | None, parallelism: int, **checkpoints: Any) -> list[str]:
        stream = counted(table, function(name))
        stream._environment.set_parallelism(parallelism)
        return rows(stream.execute(**checkpoints).to_arrow())

    first, second, third = tmp_path / "1", tmp_path / "2", tmp_path / "3"
    run(YESTERDAY, "total", 3, stop_with_checkpoint=first)
    found = run(TODAY, between, 2, restore_from=first, stop_with_checkpoint=second)
    assert found == ([] if between is None else run(TODAY, "total", 1))
    names = {table.name for part in Checkpoint.open(second).manifest.parts for table in part.tables}
    assert {"total", *([between] if between else [])} < names
    tomorrow = log((5000, "a", "x"), (5000, "b", "y"))
    found = run(tomorrow, "total", 1, restore_from=second, stop_with_checkpoint=third)
    assert found == ["{'user': 'x', 'n': 4}", "{'user': 'y', 'n': 2}"]


class Reminds(KeyedProcessFunction):
    """Counts the elements of a key, and tells the count when a timer of one is due, of event or processing time."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: Any, ctx: Any) -> None:
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 1000)
        ctx.timer_service().register_processing_time_timer(
            ctx.timer_service().current_processing_time() + 700
        )

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield ctx.get_current_key(), self.count.value() * 10_000 + timestamp


class RemindsBatches(KeyedBatchProcessFunction):
    """The same over batches."""

    one_element_per_key = True

    def open(self, runtime_context: Any) -> None:
        self.counts = runtime_context.get_column_state("count", "int64")

    def process_batch(self, elements: Any, ctx: Any) -> None:
        self.counts[elements.key_ids] += 1
        timers = ctx.timer_service()
        timers.register_event_time_timers(elements.key_ids, elements.timestamps + 1000)
        timers.register_processing_time_timers(elements.key_ids, elements.processing_times + 700)

    def on_timers(self, timers: Any, ctx: Any) -> Iterator[Any]:
        yield {"user": timers.keys["user"], "n": self.counts[timers.key_ids] * 10_000 + timers.timestamps}


@pytest.mark.parametrize(("before", "after"), [(Reminds, RemindsBatches), (RemindsBatches, Reminds)])
def test_timers_and_state_of_a_function_go_on_in_one_over_batches_and_back(
    before: Any, after: Any, tmp_path: Path
) -> None:
    stopped = counted(YESTERDAY, before()).execute(stop_with_checkpoint=tmp_path / "c").to_arrow()
    going_on = counted(TODAY, after()).execute(restore_from=tmp_path / "c").to_arrow()
    assert len(stopped) < len(going_on)
    assert rows(stopped, going_on) == rows(counted(BOTH, before()).to_arrow())


# ---- the cut -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "told"),
    [
        (
            (2149, "a", "x"),
            "split 'a' has an event with the arrival 2149 ms, but .* after the arrival 2150 ms of split 'b'",
        ),
        ((2150, "a", "x"), "split 'a' has an event with the arrival 2150 ms, .* in order of their splits"),
        ((100, "b", "x"), "split 'b' has an event with the arrival 100 ms"),
        ((2149, "c", "x"), "split 'c' has an event with the arrival 2149 ms"),
    ],
)
def test_events_before_the_cut_are_refused(first: tuple[int, str, str], told: str, checkpoint: Path) -> None:
    with pytest.raises(DataError, match=told):
        windows(pa.concat_tables([log(first), TODAY])).execute(restore_from=checkpoint).to_arrow()


@pytest.mark.parametrize(
    ("back", "told"),
    [
        ((2149, "a", "x"), "split 'a' has an event with the arrival 2149 ms, but .* 2150 ms of split 'b'"),
        ((2150, "a", "x"), "split 'a' has an event with the arrival 2150 ms, .* in order of their splits"),
        ((100, "b", "x"), "split 'b' has an event with the arrival 100 ms"),
    ],
)
@pytest.mark.parametrize("is_in_a_file_of_its_own", [False, True])
def test_events_that_go_back_over_the_cut_are_refused_wherever_they_are(
    is_in_a_file_of_its_own: bool, back: tuple[int, str, str], told: str, checkpoint: Path, tmp_path: Path
) -> None:
    parts = [TODAY, log(back)] if is_in_a_file_of_its_own else [pa.concat_tables([TODAY, log(back), TODAY])]
    files = []
    for number, part in enumerate(parts):
        files.append(tmp_path / f"{number}.parquet")
        pq.write_table(part, files[-1])
    with pytest.raises(DataError, match=told):
        windows(files).execute(restore_from=checkpoint).to_arrow()  # type: ignore[arg-type]


def test_events_of_a_log_without_splits_that_go_back_over_the_cut_are_refused(tmp_path: Path) -> None:
    windows(YESTERDAY, split=None).execute(stop_with_checkpoint=tmp_path / "c").to_arrow()
    again = windows(log((2160, "a", "x"), (2149, "a", "x"), (2170, "a", "y")), split=None)
    with pytest.raises(DataError, match="the log has an event with the arrival 2149 ms"):
        again.execute(restore_from=tmp_path / "c").to_arrow()


def test_computed_columns_change_unless_they_make_keys_or_timestamps(
    checkpoint: Path, tmp_path: Path
) -> None:
    expected = windows(TODAY).execute(restore_from=checkpoint).to_arrow()
    note = {"note": pc.utf8_upper(pc.field("user")), "more": pc.field("at") + 1}
    assert windows(TODAY, steps=note).execute(restore_from=checkpoint).to_arrow() == expected

    def computed(table: pa.Table, hour: int, step: int, above: int) -> DataStream:
        steps = {"hour": pc.field("at") - hour, "ts": pc.field("at") + 0, "user": pc.field("user")}
        first = windows(table, steps=steps, timestamp="ts", keys=("user", "hour"))
        second = first.filter(pc.field("n") > above).with_columns(key=pc.field("total") - step).key_by("key")
        return second.window(TumblingEventTimeWindows.of(SECOND)).aggregate(n=count())

    computed(YESTERDAY, 1, 2, 0).execute(stop_with_checkpoint=tmp_path / "c").to_arrow()
    computed(TODAY, 1, 2, 1).execute(restore_from=tmp_path / "c").to_arrow()
    with pytest.raises(
        ConfigurationError, match=r"keys computed: hour = .*\(at, 1\) then, hour = .*\(at, 3\) now"
    ):
        computed(TODAY, 3, 2, 0).execute(restore_from=tmp_path / "c")
    with pytest.raises(
        ConfigurationError, match=r"keys computed: key = .*\(total, 2\) then, key = .*\(total, 3\) now"
    ):
        computed(TODAY, 1, 3, 0).execute(restore_from=tmp_path / "c")


def chosen(*changed: str) -> Any:
    """Which users are among a hundred names, so many that pyarrow's text of the expression leaves most of them out."""
    names = [f"user {number}" for number in range(100)]
    return pc.is_in(pc.field("user"), value_set=pa.array([*names[:50], *changed, *names[50:]]))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (lambda chosen: {"steps": {"vip": chosen}, "keys": ("vip",)}, "keys computed: vip = is_in"),
        (lambda chosen: {"timestamp": chosen.cast(pa.int64()) + pc.field("at")}, "timestamp: "),
        (lambda chosen: {"arrival": pc.field("at") + chosen.cast(pa.int64())}, "arrivals: recorded as "),
    ],
)
def test_a_job_with_other_values_amid_a_long_set_is_refused(
    settings: Callable[[Any], dict[str, Any]], told: str, tmp_path: Path
) -> None:
    windows(YESTERDAY, **settings(chosen("a"))).execute(stop_with_checkpoint=tmp_path / "c").to_arrow()
    windows(TODAY, **settings(chosen("a"))).execute(restore_from=tmp_path / "c").to_arrow()
    assert str(chosen("a")) == str(chosen("b"))
    with pytest.raises(ConfigurationError, match=told):
        windows(TODAY, **settings(chosen("b"))).execute(restore_from=tmp_path / "c")


def test_a_key_that_is_computed_as_itself_is_the_same_key(checkpoint: Path, tmp_path: Path) -> None:
    expected = windows(TODAY).execute(restore_from=checkpoint).to_arrow()
    same = {"user": pc.field("user")}
    assert windows(TODAY, steps=same).execute(restore_from=checkpoint).to_arrow() == expected
    windows(YESTERDAY, steps=same).execute(stop_with_checkpoint=tmp_path / "c").to_arrow()
    assert windows(TODAY).execute(restore_from=tmp_path / "c").to_arrow() == expected


def test_events_that_go_back_behind_the_cut_count_as_in_the_whole_log(tmp_path: Path) -> None:
    jitter = log((2160, "b", "y"), (2155, "b", "x"), (3300, "b", "x"), (2150, "b", "y"), (4500, "b", "y"))
    stopped = windows(YESTERDAY).execute(stop_with_checkpoint=tmp_path / "c").to_arrow()
    going_on = windows(jitter).execute(restore_from=tmp_path / "c").to_arrow()
    assert rows(stopped, going_on) == rows(windows(pa.concat_tables([YESTERDAY, jitter])).to_arrow())


def test_positions_count_on_in_logs_by_rate(tmp_path: Path) -> None:
    def by_rate(table: pa.Table) -> DataStream:
        return windows(table, arrival=None, rate=10.0)

    first = by_rate(YESTERDAY).execute(stop_with_checkpoint=tmp_path / "c").to_arrow()
    second = by_rate(TODAY).execute(restore_from=tmp_path / "c").to_arrow()
    assert rows(first, second) == rows(by_rate(BOTH).to_arrow())

    uneven = log((1, "a", "x"), (2, "b", "x"), (3, "b", "x"))
    by_rate(uneven).execute(stop_with_checkpoint=tmp_path / "uneven").to_arrow()
    with pytest.raises(
        DataError, match=r"split 'a' has an event with the arrival 100 ms, .* 100 ms of split 'b'"
    ):
        by_rate(TODAY).execute(restore_from=tmp_path / "uneven").to_arrow()


def test_a_log_without_events_passes_the_state_on(checkpoint: Path, tmp_path: Path) -> None:
    between = windows(log()).execute(restore_from=checkpoint, stop_with_checkpoint=tmp_path / "between")
    assert between.to_arrow().num_rows == 0
    last = windows(TODAY).execute(restore_from=tmp_path / "between").to_arrow()
    assert rows(last) == rows(windows(TODAY).execute(restore_from=checkpoint).to_arrow())
    ended = windows(log()).execute(restore_from=checkpoint).to_arrow()
    assert sorted(ended["total"].to_pylist()) == [1100, 4250]


def test_a_log_can_begin_without_events(tmp_path: Path) -> None:
    windows(log()).execute(stop_with_checkpoint=tmp_path / "c").to_arrow()
    going_on = windows(BOTH).execute(restore_from=tmp_path / "c").to_arrow()
    assert rows(going_on) == rows(windows(BOTH).to_arrow())


@pytest.mark.parametrize("idleness", [None, 300])
def test_a_new_split_holds_the_watermark_back_from_the_cut_on_unless_it_is_idle(
    idleness: int | None, tmp_path: Path
) -> None:
    strategy = BOUNDED if idleness is None else BOUNDED.with_idleness(Duration.of_millis(idleness))
    events = [
        (at + shift, split, "x") for at in range(2200, 4600, 200) for shift, split in ((0, "a"), (50, "b"))
    ]
    today = log(*events, (4950, "c", "x"))

    def watermarks(table: pa.Table, **checkpoints: Any) -> dict[int, int]:
        """With which watermark the windows fire, by their starts."""
        found = windows(table, strategy=strategy).execute(**checkpoints).to_arrow().to_pylist()
        return {row["window_start"]: row["watermark"] for row in found}

    watermarks(YESTERDAY, stop_with_checkpoint=tmp_path / "c")
    # Else it stays where yesterday's log has left it until the end, at which all splits emit what they have.
    assert watermarks(today, restore_from=tmp_path / "c")[2000] == (4399 if idleness is None else 2999)
    if idleness is None:
        # With both logs at once the split holds the watermark back from the beginning.
        assert watermarks(pa.concat_tables([YESTERDAY, today]))[0] == 4399
        assert watermarks(YESTERDAY, stop_with_checkpoint=tmp_path / "c")[0] == 1099


# ---- failures ----------------------------------------------------------------------------------------------------


def test_a_directory_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ConfigurationError, match=r"notes\.txt"):
        windows(YESTERDAY).execute(stop_with_checkpoint=tmp_path).to_arrow()
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_what_is_no_checkpoint_of_a_replay_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="is not a checkpoint"):
        windows(TODAY).execute(restore_from=tmp_path)
    with PendingCheckpoint.begin(tmp_path / "c", 128) as pending:
        pending.commit([pending.writer().write("window-1", 0, OperatorSnapshot((0, 127)))])
    with pytest.raises(ConfigurationError, match="was not written by a replay"):
        windows(TODAY).execute(restore_from=tmp_path / "c")


def test_damaged_files_are_refused(checkpoint: Path) -> None:
    files = list(checkpoint.glob("data-*/*.arrow"))
    assert files
    for file in files:
        content = file.read_bytes()
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        with pytest.raises(SourceError, match="is damaged"):
            windows(TODAY).execute(restore_from=checkpoint).to_arrow()
        file.write_bytes(content)


def test_a_failed_or_abandoned_run_leaves_the_checkpoint_that_was_there(
    checkpoint: Path, tmp_path: Path
) -> None:
    manifest = Checkpoint.open(checkpoint).manifest

    class Failing(Counter):
        def process_element(self, value: Any, ctx: Any) -> Any:
            raise ValueError("unlucky")

    batches = windows(TODAY).execute(restore_from=checkpoint, stop_with_checkpoint=checkpoint).to_batches()
    next(batches)
    batches.close()
    assert Checkpoint.open(checkpoint).manifest == manifest
    with pytest.raises(UserCodeError, match="unlucky"):
        counted(YESTERDAY, Failing()).write_parquet(tmp_path / "results", stop_with_checkpoint=tmp_path / "c")
    assert not list((tmp_path / "c").iterdir())
    assert not list((tmp_path / "results").glob("*"))


def test_one_directory_can_be_gone_on_from_and_stopped_at(checkpoint: Path) -> None:
    at_once = windows(TODAY).execute(restore_from=checkpoint).to_arrow()
    first = windows(TODAY).execute(restore_from=checkpoint, stop_with_checkpoint=checkpoint).to_arrow()
    last = windows(log()).execute(restore_from=checkpoint).to_arrow()
    assert rows(first, last) == rows(at_once)


def test_a_result_that_replaced_the_checkpoint_it_went_on_from_cannot_run_again(
    checkpoint: Path, tmp_path: Path
) -> None:
    result = windows(TODAY).execute(restore_from=checkpoint, stop_with_checkpoint=checkpoint)
    other = windows(TODAY).execute(restore_from=checkpoint)
    table = result.to_arrow()
    assert pa.Table.from_batches(result.to_batches()) == table
    for again in (result, other):
        with pytest.raises(
            ConfigurationError, match=r"has been replaced by a later one, .* cannot run again"
        ):
            again.write_parquet(tmp_path / "results")


@pytest.mark.parametrize("is_committed", [False, True])
def test_results_count_when_the_checkpoint_does(
    is_committed: bool, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that dies while it completes the checkpoint: `_temporary` tells that the results are not complete."""

    class Killed(BaseException): ...

    commit = PendingCheckpoint.commit

    def killed(self: PendingCheckpoint, *parts: Any) -> None:
        assert list((tmp_path / "results").glob("*.parquet"))
        assert (tmp_path / "results" / "_temporary").exists()
        if is_committed:
            commit(self, *parts)
        raise Killed

    def run(results: Path) -> Any:
        return windows(TODAY).write_parquet(results, restore_from=checkpoint, stop_with_checkpoint=checkpoint)

    before = Checkpoint.open(checkpoint).manifest
    with monkeypatch.context() as patched:
        patched.setattr(PendingCheckpoint, "commit", killed)
        patched.setattr(PendingCheckpoint, "__exit__", lambda *_: None)
        patched.setattr(
            "flinkcore.columnar.outputs.parquet_directory.ParquetOutput.withdraw", lambda *_: None
        )
        with pytest.raises(Killed):
            run(tmp_path / "results")
    after = Checkpoint.open(checkpoint).manifest
    assert (after == before) is not is_committed
    if is_committed:
        assert after.job["results"] == [str(tmp_path / "results")]
        with pytest.raises(DataError, match="is done, and is not done again"):
            run(tmp_path / "others")
    else:
        run(tmp_path / "others")
