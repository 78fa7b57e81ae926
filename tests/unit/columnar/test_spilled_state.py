"""Open state that does not fit into the managed memory: the same rows, part after part of the key groups."""

import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from equipment.full_disks import most_bytes_of_a_file
from equipment.small_batches import limit, read_in_batches_of
from jobs.checkpoint_trials import JOBS, entries_of_trials
from jobs.resumed_jobs import TWO_LOGS, tables_of

from flinkcore._internal.io.spilled_batches import SpilledBatches
from flinkcore._internal.values.memory_limits import RECORD_BYTES
from flinkcore._native.aggregates import Accumulators
from flinkcore.checkpoint import Checkpoint
from flinkcore.columnar.relational.accumulator_columns import accumulator_columns
from flinkcore.columnar.replay import partition_run
from flinkcore.columnar.replay.partition_run import PartitionRun
from flinkcore.columnar.replay.spilled_part import SpilledPart
from flinkcore.columnar.replay.spilled_rows import SpilledRows
from flinkcore.columnar.stages.partial_results import MergedPartials, PartialAccumulators
from flinkcore.columnar.stages.placed_events import FIXED_COLUMNS, PlacedEvents
from flinkcore.columnar.stages.window_stage import WindowStage
from flinkcore.common import Configuration, Duration, OutputTag, Time, WatermarkStrategy
from flinkcore.datastream import (
    EventTimeSessionWindows,
    KeyedProcessFunction,
    SlidingEventTimeWindows,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import collect, count, count_distinct, last, max_, sum_
from flinkcore.datastream.functions import KeyedBatchProcessFunction, KeyedBroadcastProcessFunction
from flinkcore.datastream.state import MapStateDescriptor, ValueStateDescriptor
from flinkcore.datastream.window import (
    ContinuousEventTimeTrigger,
    CountTrigger,
    CumulativeEventTimeWindows,
    GlobalWindows,
)
from flinkcore.errors import OutOfMemoryError, SourceError
from flinkcore.time_plane.total_order import TimelineEvents

MEMORY = "taskmanager.memory.managed.size"
LATE = OutputTag("late")
BOUNDED = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(15))


@pytest.fixture
def spilled(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Key groups of the parts that have waited in files."""
    found: list[tuple[int, int]] = []

    class Noted(SpilledPart):
        def __init__(self, key_groups: tuple[int, int], place: Any) -> None:
            super().__init__(key_groups, place)
            found.append(key_groups)

    monkeypatch.setattr(partition_run, "SpilledPart", Noted)
    return found


def environment(memory: int | None, parallelism: int = 1) -> StreamExecutionEnvironment:
    """An environment with memory for so many bytes of state, which reads four rows at once."""
    env = StreamExecutionEnvironment().set_parallelism(parallelism).set_max_parallelism(8)
    env.get_config().set_auto_watermark_interval(5)
    read_in_batches_of(4, env)
    if memory is not None:
        env.configure(Configuration().set_string(MEMORY, f"{memory} b"))
    return env


def by_key(table: pa.Table, keys: list[str]) -> dict[Any, list[Any]]:
    found = defaultdict(list)
    for row in table.to_pylist():
        found[tuple(row[key] for key in keys)].append(row)
    return dict(found)


def outputs_of(name: str, memory: int | None, parallelism: int = 1, **checkpoints: Any) -> Any:
    """The rows of each output in their order by key, and the counts of the report."""
    job = JOBS[name]
    entries = entries_of_trials(2 if job in TWO_LOGS else 1)
    env = environment(memory, parallelism)
    logs = [
        env.from_event_log(
            table, timestamp="ts", integer_times=True, arrival="at", split="split"
        ).assign_timestamps_and_watermarks(BOUNDED)
        for table in tables_of(entries, 2 if job in TWO_LOGS else 1)
    ]
    result = job(logs).execute(**checkpoints)
    plan = result._plan  # type: ignore[attr-defined]
    tables = {"": result.to_arrow()}
    tables |= {tag.tag_id: result.get_side_output(tag).to_arrow() for tag in plan.side_outputs()}
    outputs = {
        tag: by_key(table, [key for key in plan.keys if key in table.column_names] or table.column_names[:1])
        for tag, table in tables.items()
    }
    return outputs, [str(report) for report in result.report.by_operator]


@pytest.mark.parametrize("name", sorted(set(JOBS) - {"windows_of_aligned_splits"}))
def test_a_job_without_memory_for_its_state_gives_the_same_rows_and_counts(
    name: str, spilled: list[tuple[int, int]]
) -> None:
    expected = outputs_of(name, None)
    assert not spilled
    assert outputs_of(name, 0, parallelism=2) == expected
    assert bool(spilled) == (not name.endswith(("_of_all", "_without_keys")))


LOG = pa.table(
    {
        "user": [f"user-{n * 7 % 23}" for n in range(400)],
        "ts": [n - n % 7 * 3 for n in range(400)],
        "value": [float(n % 11) for n in range(400)],
        "text": ["abc"[n % 3] * (n % 5) for n in range(400)],
    }
)


def keyed(env: StreamExecutionEnvironment) -> Any:
    log = env.from_event_log(LOG, timestamp="ts", integer_times=True, rate=1000.0)
    return log.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(9))
    ).key_by("user")


def ms(number: int) -> Time:
    return Time.milliseconds(number)


WINDOWS = {
    "tumbling": lambda k: k.window(TumblingEventTimeWindows.of(ms(90))).allowed_lateness(20),
    "sliding": lambda k: k.window(SlidingEventTimeWindows.of(ms(90), ms(30))).allowed_lateness(20),
    "cumulate": lambda k: k.window(CumulativeEventTimeWindows.of(ms(90), ms(30))),
    "sessions": lambda k: k.window(EventTimeSessionWindows.with_gap(ms(40))).allowed_lateness(20),
    "retracted": lambda k: (
        k.window(EventTimeSessionWindows.with_gap(ms(15))).allowed_lateness(30).retracting()
    ),
    "triggered": lambda k: k.window(TumblingEventTimeWindows.of(ms(200))).trigger(
        ContinuousEventTimeTrigger.of(ms(30))
    ),
    "counted": lambda k: k.count_window(5, 2),
    "sliced": lambda k: k.count_window(6, 2),
    "global": lambda k: k.window(GlobalWindows.create()).trigger(CountTrigger.of(3)),
}


@pytest.mark.parametrize("memory", [0, 20_000])
@pytest.mark.parametrize("kind", WINDOWS)
def test_windows_that_have_spilled_give_the_same_rows(
    kind: str, memory: int, spilled: list[tuple[int, int]]
) -> None:
    def run(memory: int | None) -> Any:
        windows = WINDOWS[kind](keyed(environment(memory)))
        result = windows.aggregate(
            n=count(),
            total=sum_("value"),
            most=max_("text"),
            last=last("value"),
            kinds=count_distinct("text"),
            texts=collect("text"),
        ).execute()
        return by_key(result.to_arrow(), ["user"]), str(result.report)

    expected = run(None)
    assert run(memory) == expected
    assert spilled


class Sums(KeyedBatchProcessFunction):
    """Has states of every kind, and timers of both domains that set further ones."""

    min_event_time_delay_ms = 5
    min_processing_time_delay_ms = 5

    def open(self, runtime_context: Any) -> None:
        self.sums = runtime_context.get_column_state("sum", np.float64, np.nan)
        self.texts = runtime_context.get_column_state("text", "U8", "")
        self.objects = runtime_context.get_column_state("object", object, None)
        self.rows = runtime_context.get_column_list_state("rows", pa.schema({"text": pa.string()}))

    def process_batch(self, elements: Any, ctx: Any) -> Any:
        ids = elements.key_ids
        for key_id, value, text in zip(
            ids, elements.batch["value"].to_pylist(), elements.batch["text"].to_pylist(), strict=True
        ):
            self.sums[key_id] = value + np.nan_to_num(self.sums[key_id])
            self.texts[key_id] = text
            self.objects[key_id] = (text, self.objects[key_id] is None)
        self.rows.add(ids, elements.batch.select(["text"]))
        timers = ctx.timer_service()
        timers.register_event_time_timers(ids, elements.timestamps + 40)
        timers.register_processing_time_timers(ids, elements.processing_times + 25)

    def on_timers(self, timers: Any, ctx: Any) -> Any:
        ids = timers.key_ids
        yield {
            "user": timers.keys["user"],
            "time": timers.timestamps,
            "domain": [str(timers.time_domain)] * len(timers),
            "sum": self.sums[ids],
            "text": self.texts[ids],
            "object": [str(self.objects[key_id]) for key_id in ids],
            "rows": self.rows.lengths(ids),
        }


SUMS = pa.schema(
    {
        "user": pa.string(),
        "time": pa.int64(),
        "domain": pa.string(),
        "sum": pa.float64(),
        "text": pa.string(),
        "object": pa.string(),
        "rows": pa.int64(),
    }
)


def test_a_function_over_batches_that_has_spilled_gives_the_same_rows(
    spilled: list[tuple[int, int]],
) -> None:
    def run(memory: int | None) -> Any:
        result = keyed(environment(memory)).process(Sums(), SUMS).execute()
        return by_key(result.to_arrow(), ["user"]), str(result.report)

    expected = run(None)
    assert run(0) == expected
    assert spilled
    assert run(40_000) == expected


class Held:
    """No column holds it."""

    n = 0


class Holds(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.held = runtime_context.get_state(ValueStateDescriptor("held"))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        held = self.held.value() or Held()
        held.n += 1
        self.held.update(held)
        yield value.user, held.n


def test_state_that_no_column_holds_stays_in_memory() -> None:
    def run(memory: int | None) -> Any:
        schema = pa.schema({"user": pa.string(), "n": pa.int64()})
        return keyed(environment(memory)).process(Holds(), schema).execute().to_arrow().to_pylist()

    assert run(0) == run(None)


SEEN: MapStateDescriptor[str, int] = MapStateDescriptor("seen")


class Seen(KeyedBroadcastProcessFunction):
    """Tells how many rules it has seen at each element, and at a timer behind the last rule."""

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        ctx.timer_service().register_event_time_timer(10_000)
        return self._told(value.user, ctx)

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        seen = ctx.get_broadcast_state(SEEN)
        seen.put(value.text, (seen.get(value.text) or 0) + 1)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        return self._told(ctx.get_current_key(), ctx)

    def _told(self, user: str, ctx: Any) -> Iterator[Any]:
        yield user, ctx.timestamp(), sum(n for _, n in ctx.get_broadcast_state(SEEN).items())


def seen(memory: int | None, max_parallelism: int, parallelism: int, **checkpoints: Any) -> Any:
    env = environment(memory, parallelism).set_max_parallelism(max_parallelism)
    elements, rules = (
        env.from_event_log(LOG.select(columns), timestamp="ts", integer_times=True, rate=1000.0)
        .assign_timestamps_and_watermarks(BOUNDED)
        .uid(name)
        for name, columns in {"elements": ["user", "ts"], "rules": ["text", "ts"]}.items()
    )
    schema = pa.schema({"user": pa.string(), "time": pa.int64(), "seen": pa.int64()})
    told = elements.key_by("user").connect(rules.broadcast(SEEN)).process(Seen(), schema).uid("told")
    result = told.execute(**checkpoints)
    return by_key(result.to_arrow(), ["user"]), [str(report) for report in result.report.by_operator]


@pytest.mark.parametrize("max_parallelism", [8, 64])
@pytest.mark.parametrize("parallelism", [1, 2])
def test_broadcast_elements_reach_every_part_that_waits_once(
    parallelism: int, max_parallelism: int, spilled: list[tuple[int, int]], tmp_path: Path
) -> None:
    expected = seen(None, max_parallelism, 1)
    assert not spilled
    assert seen(0, max_parallelism, parallelism) == expected
    assert any(first == last for first, last in spilled)  # of 64, a part of a part
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    before = seen(None, max_parallelism, 1, stop_with_checkpoint=whole)
    assert seen(0, max_parallelism, parallelism, stop_with_checkpoint=parts) == before
    (state,) = Checkpoint.open(whole).operator_states("told", 1)
    assert Checkpoint.open(parts).operator_states("told", max_parallelism) == [state] * max_parallelism


@pytest.mark.parametrize("name", ["windows_alone", "batches_alone", "function_behind_function"])
def test_a_job_whose_state_has_spilled_stops_with_one_checkpoint(name: str, tmp_path: Path) -> None:
    expected = outputs_of(name, None, stop_with_checkpoint=tmp_path / "whole")
    assert outputs_of(name, 0, stop_with_checkpoint=tmp_path / "parts") == expected
    whole, parts = (Checkpoint.open(tmp_path / each) for each in ("whole", "parts"))
    for uid in whole.uids:
        assert parts.watermarks_ms(uid) == [whole.watermark_ms(uid)] * parts.parallelism(uid)
        ranges = [part.key_group_range for part in parts.manifest.parts_by_operator()[uid]]
        if ranges != [None]:
            assert ranges == [(group, group) for group in range(8)]


def test_results_reach_the_next_operator_in_order(spilled: list[tuple[int, int]]) -> None:
    def run(memory: int | None, parallelism: int) -> list[Any]:
        windows = keyed(environment(memory, parallelism)).window(TumblingEventTimeWindows.of(ms(30)))
        counts = windows.aggregate(n=count(), last=last("value"))
        named = counts.with_columns(one=pa.compute.field("n") - pa.compute.field("n"))
        numbers = named.key_by("one").window(GlobalWindows.create()).trigger(CountTrigger.of(1))
        rows = numbers.aggregate(users=collect("user"), lasts=collect("last")).execute().to_arrow()
        return rows.to_pylist()

    expected = run(None, 1)
    for parallelism in (1, 2, 3):
        assert run(0, parallelism) == expected
    assert spilled


def test_spilled_files_are_given_back_and_a_full_disk_is_an_error(tmp_path: Path) -> None:
    env = environment(0)
    limit(env, record_bytes=RECORD_BYTES)  # times of the log stay in memory
    with (
        most_bytes_of_a_file(1000),
        pytest.raises(SourceError, match=r"state and rows of the key groups .* do not fit"),
    ):
        keyed(env).window(TumblingEventTimeWindows.of(ms(90))).aggregate(
            texts=collect("text")
        ).execute().to_arrow()


def out_of_memory(*_: Any) -> Any:
    raise MemoryError("9 bytes for keys")


def test_an_allocation_for_state_that_fails_names_the_operator_and_the_setting_that_helps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(WindowStage, "suspend", out_of_memory)
    windows = keyed(environment(0)).window(TumblingEventTimeWindows.of(ms(90)))
    with pytest.raises(OutOfMemoryError) as failed:
        windows.aggregate(n=count()).execute().to_arrow()
    assert re.fullmatch(
        r"there is no memory for the state \(9 bytes for keys\) of operator 1 \(.*\), partition 1 of 1, key groups 0 "
        r"to 7: [\d,]+ windows of keys.* bytes, and 0 are .*\. Arrow holds .*\. Let "
        r"taskmanager\.memory\.managed\.size be less, [^.]*\(on Spark, spark\.executor\.pyspark\.memory\)",
        str(failed.value),
    )


@pytest.mark.parametrize("method", ["process", "finish"])
@pytest.mark.parametrize("is_large", [False, True])
def test_an_allocation_that_fails_blames_the_state_only_if_that_is_large(
    monkeypatch: pytest.MonkeyPatch, method: str, is_large: bool
) -> None:
    monkeypatch.setattr(WindowStage, method, out_of_memory)
    if is_large:
        monkeypatch.setattr(WindowStage, "memory_bytes", lambda self: 1 << 60)
        monkeypatch.setattr(PartitionRun, "_spill_if_large", lambda self: iter(()))
    windows = keyed(environment(None)).window(TumblingEventTimeWindows.of(ms(90)))
    with pytest.raises(OutOfMemoryError) as failed:
        windows.aggregate(n=count()).execute().to_arrow()
    text = str(failed.value)
    assert "9 bytes for keys" in text
    assert "operator 1" in text
    assert ("no memory for the state" in text) == is_large
    assert ("managed.size be less" in text) == is_large
    assert ("a lower set_parallelism()" in text) != is_large


def test_rows_that_wait_are_read_as_they_came() -> None:
    numbers = np.arange(10, dtype=np.int64)
    batch = pa.record_batch({"n": numbers, "text": [str(n) if n % 3 else None for n in range(10)]})
    splits = numbers.astype(np.int32)
    timeline = TimelineEvents(batch, numbers, numbers + 1, splits, numbers + 2, numbers + 3)
    order = tuple(numbers + place for place in range(FIXED_COLUMNS + 1))
    placed = PlacedEvents.of(batch, numbers, order, splits % 2)
    twice = TimelineEvents(
        batch, *(np.tile(each, 2) for each in (numbers, numbers, splits, numbers, numbers))
    )
    for events in (timeline, placed):
        with closing(SpilledBatches("rows")) as batches:
            rows = SpilledRows(batches, piece_bytes=1)
            rows.add(events, np.array([3, 1], np.uint32))
            rows.add(events, np.array([], np.uint32))
            rows.add(events, np.array([9], np.uint32))
            (first, _), (second, _) = rows.read()
        assert type(first) is type(events)
        assert first.batch == batch.take(pa.array([3, 1]))
        assert second.batch == batch.take(pa.array([9]))
        for name in ("timestamps", "arrivals", "steps"):
            assert getattr(first, name).tolist() == getattr(events, name)[[3, 1]].tolist()
    with closing(SpilledBatches("rows")) as batches:
        rows = SpilledRows(batches)
        rows.add(MergedPartials(twice, batch), np.array([12, 4, 11], np.uint32))
        ((merged, in_order),) = rows.read()
    assert isinstance(merged, MergedPartials)
    assert merged.events.batch == batch.take(pa.array([4]))
    assert merged.partials == batch.take(pa.array([2, 1]))
    assert merged.events.timestamps[in_order].tolist() == [2, 4, 1]


def test_partial_results_that_were_not_taken_in_leave_nothing_to_the_next_ones() -> None:
    numbers = Accumulators(pa.schema({"n": pa.int64()}), [("count_distinct", "n", None, None)])
    partials = PartialAccumulators([], numbers)
    parts = accumulator_columns(numbers, np.empty(0, np.uint32))

    def batch(words: list[int]) -> pa.RecordBatch:
        columns = {name: pa.nulls(1, column.type) for name, column in parts.items()}
        columns |= {
            "touched": pa.array([0], pa.uint8()),
            "0.word_set": pa.array([words], pa.large_list(pa.uint64())),
        }
        return pa.record_batch({name: columns[name] for name in parts})

    partials.restored(batch([3, 4]))
    left = accumulator_columns(partials.restored(batch([])), np.zeros(1, np.uint32))
    assert left["0.word_set"].to_pylist() == [[]]


def test_the_result_may_be_written_to_files(tmp_path: Path) -> None:
    for name, memory in (("whole", None), ("parts", 0)):
        windows = keyed(environment(memory)).window(TumblingEventTimeWindows.of(ms(90)))
        windows.aggregate(n=count()).execute().write_parquet(tmp_path / name)
    whole, parts = (pq.read_table(tmp_path / name) for name in ("whole", "parts"))
    order = [(name, "ascending") for name in ("user", "window_start", "n", "watermark")]
    assert parts.sort_by(order) == whole.sort_by(order)
