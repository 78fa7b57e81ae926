"""Functions over batches that go on from a checkpoint, at another parallelism."""

from collections.abc import Iterator
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from equipment.timelines import steps_of, timeline_of

from flinkcore._native.exchange import partition_rows
from flinkcore._native.key_groups import key_groups
from flinkcore.checkpoint import Checkpoint, PendingCheckpoint
from flinkcore.columnar.batch_functions.column_states import ArrowListState, NumpyColumnState
from flinkcore.columnar.operator_plans.batch_process import BatchProcess
from flinkcore.columnar.plans.job_plan import JobPlan
from flinkcore.columnar.replay.chunk_reader import ChunkReader
from flinkcore.columnar.stages import batch_process_stage
from flinkcore.columnar.stages.batch_process_stage import BatchProcessStage
from flinkcore.columnar.stages.stage import StageContext
from flinkcore.common import Duration, Row, WatermarkStrategy
from flinkcore.datastream import KeyedBatchProcessFunction, StreamExecutionEnvironment, TimeDomain
from flinkcore.errors import SchemaError
from flinkcore.time_plane.time_pass import time_planes_of
from flinkcore.time_plane.timeline import Timeline
from flinkcore.time_plane.total_order import Events, TotalOrderMerge

SEEN = pa.schema(
    {
        "user": pa.string(),
        "what": pa.string(),
        "time": pa.int64(),
        "count": pa.int64(),
        "watermark": pa.int64(),
        "clock": pa.int64(),
    }
)


HELD = pa.schema({"at": pa.int64(), "day": pa.date32()})


class Everything(KeyedBatchProcessFunction):
    """Timers of both domains, some of them for times that have passed, and states of several types."""

    one_element_per_key = True

    def open(self, runtime_context: Any) -> None:
        self.counts = runtime_context.get_column_state("count", np.int64)
        self.last = runtime_context.get_column_state("last", "datetime64[ms]", "NaT")
        self.seen = runtime_context.get_column_state("seen", object, None)
        self.held = runtime_context.get_column_list_state("held", HELD)

    def process_batch(self, elements: Any, ctx: Any) -> Iterator[Any]:
        ids, service = elements.key_ids, ctx.timer_service()
        self.counts[ids] += 1
        self.last[ids] = elements.timestamps.astype("datetime64[ms]")
        for key_id, day in zip(ids.tolist(), elements["day"].to_pylist(), strict=True):
            self.seen.array[key_id] = [*(self.seen.array[key_id] or []), (day, 1.5)]
        self.held.add(ids, {"at": elements.timestamps, "day": elements["day"]})
        service.register_event_time_timers(ids, elements.timestamps + 12 - 30 * (self.counts[ids] % 2))
        service.register_processing_time_timers(
            ids, elements.processing_times - 3 + 9 * (elements.timestamps % 3)
        )
        yield self._given("element", elements, ctx)

    def on_timers(self, timers: Any, ctx: Any) -> Iterator[Any]:
        yield self._given(timers.time_domain.name, timers, ctx)
        if timers.time_domain is TimeDomain.EVENT_TIME:
            self.counts.clear(timers.key_ids[timers.timestamps % 5 == 0])
            self.held.clear(timers.key_ids[timers.timestamps % 7 == 0])

    def _given(self, what: str, subject: Any, ctx: Any) -> dict[str, Any]:
        ids = subject.key_ids
        held = [len(found or ()) for found in self.seen[ids]]
        last = np.where(np.isnat(self.last[ids]), 0, self.last[ids].astype(np.int64))
        rows, places = self.held.get(ids)
        weights = np.arange(len(rows)) - np.searchsorted(places, places) + 1
        days = rows["day"].view(pa.int32()).to_numpy()
        np.add.at(last, places, weights * (rows["at"].to_numpy() + 1_000 * days))
        return {
            "user": ctx.keys(ids).columns[-1].cast(pa.string()),
            "what": [what] * len(ids),
            "time": subject.timestamps,
            "count": self.counts[ids] + 100 * np.array(held) + 10_000 * last,
            "watermark": subject.watermarks,
            "clock": subject.processing_times,
        }


class Job:
    """A job taken apart: its events in total order, and its timeline."""

    def __init__(self, function: KeyedBatchProcessFunction, *keys: str) -> None:
        random = np.random.default_rng(11)
        n = 400
        at = np.cumsum(random.choice([0, 0, 1, 4], n))
        table = pa.table(
            {
                "ts": at - random.integers(-3, 20, n),
                "at": at,
                "user": [f"u{number}" for number in random.integers(0, 9, n)],
                "day": pa.array(random.integers(0, 4, n).astype(np.int32), pa.date32()),
            }
        )
        env = StreamExecutionEnvironment().set_max_parallelism(16)
        env.get_config().set_auto_watermark_interval(7)
        self.stream = (
            env.from_event_log(table, timestamp="ts", arrival="at")
            .assign_timestamps_and_watermarks(
                WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(4))
            )
            .key_by(*(keys or ("user",)))
            .process(function, SEEN)
        )
        self.plan: JobPlan = self.stream.execute()._plan
        (log,) = self.plan.logs
        chunks = log.log.chunks(1)
        (time_plane,) = time_planes_of([log], [chunks], 1)
        self.timeline = time_plane.timeline
        merge = TotalOrderMerge(self.timeline)
        for chunk in chunks:
            for read in ChunkReader(log, time_plane).read(chunk):
                merge.add(read.events)
        ((self.events, _),) = merge.release(None)

    def stages(self, partitions: int, timeline: Timeline, last_arrival_ms: int) -> list[BatchProcessStage]:
        (plan,) = self.plan.stages
        assert isinstance(plan.operator, BatchProcess)
        context = StageContext(plan, timeline, last_arrival_ms, partitions)
        return [BatchProcessStage(context, plan.operator, number) for number in range(partitions)]

    def process(self, stages: list[BatchProcessStage], events: Events) -> list[dict[str, Any]]:
        groups = key_groups(events.batch.select(list(self.plan.keys)), self.plan.max_parallelism)
        order, bounds = partition_rows(groups, self.plan.max_parallelism, len(stages), None)
        return [
            row
            for number, stage in enumerate(stages)
            for row in rows(stage.process(events, order[bounds[number] : bounds[number + 1]]))
        ]

    def checkpoint_after(
        self, events: int, partitions: int, path: Path
    ) -> tuple[list[dict[str, Any]], Checkpoint]:
        """Process so many events, and write what the stages hold then."""
        part = self.events.slice(0, events)
        last = part.slice(events - 1, events)
        steps = int(self.timeline.steps_before(last.arrivals, last.splits, last.positions)[0])
        before = timeline_of(*(column[:steps] for column in steps_of(self.timeline)))
        stages = self.stages(partitions, before, int(last.arrivals[0]))
        found = self.process(stages, part)
        found += [row for stage in stages for row in rows(stage.stop())]
        with PendingCheckpoint.begin(path, self.plan.max_parallelism) as pending:
            writer = pending.writer()
            pending.commit(
                [writer.write("op", number, stage.snapshot()) for number, stage in enumerate(stages)]
            )
        return found, Checkpoint.open(path)

    def go_on(self, checkpoint: Checkpoint, events: int, partitions: int) -> list[dict[str, Any]]:
        """Restore, and process the events from that number on."""
        stages = self.stages(partitions, self.timeline, int(self.events.arrivals[-1]))
        for stage in stages:
            stage.restore(
                checkpoint.restore("op", (0, self.plan.max_parallelism - 1), self.plan.max_parallelism),
                checkpoint.watermark_ms("op"),
                int(self.events.arrivals[events - 1]),
            )
        found = self.process(stages, self.events.slice(events, len(self.events.arrivals)))
        return found + [row for stage in stages for row in rows(stage.finish())]


def rows(outputs: Any) -> list[dict[str, Any]]:
    return [row for output in outputs for batch in output.batches for row in batch.to_pylist()]


def by_user(found: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    return {user: [row for row in found if row["user"] == user] for user in {row["user"] for row in found}}


@pytest.mark.parametrize(
    ("events", "keys", "before", "after"),
    [
        (1, ("user",), 1, 1),
        (57, ("user",), 1, 3),
        (230, ("user",), 4, 2),
        (399, ("day", "user"), 1, 3),
        (230, ("day", "user"), 4, 2),
    ],
)
def test_a_function_goes_on_from_a_checkpoint_at_another_parallelism(
    tmp_path: Path, keys: tuple[str, ...], events: int, before: int, after: int
) -> None:
    job = Job(Everything(), *keys)
    found, checkpoint = job.checkpoint_after(events, before, tmp_path)
    found += job.go_on(checkpoint, events, after)
    expected = job.stream.to_arrow().to_pylist()
    if keys == ("user",):
        assert by_user(found) == by_user(expected)
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


def test_a_checkpoint_holds_values_other_than_the_default_and_timers_by_key(tmp_path: Path) -> None:
    _, checkpoint = Job(Everything()).checkpoint_after(100, 2, tmp_path)
    users = {key for part in checkpoint.keyed_state("op", "last") for key in part.keys}
    assert users == {f"u{number}" for number in range(9)}
    (count,) = {type(value) for part in checkpoint.keyed_state("op", "count") for value in part.values}
    assert count is int
    seen = [value for part in checkpoint.keyed_state("op", "seen") for value in part.values]
    assert {type(day) for found in seen for day, _ in found} == {date}
    snapshots = checkpoint.restore("op", (0, 15), 16)
    assert sum(len(part.timers["user-timers"].event_time_timers.keys) for part in snapshots)


HOUR = 3_600_000
VALUES = {
    "ns": pa.array([1, None, 2**62], pa.timestamp("ns")),
    "autumn": pa.array([0, HOUR, 2 * HOUR], pa.timestamp("ms", "Europe/Berlin")),
    "far": pa.array([2**60, -(2**60), 0], pa.timestamp("s")),
    "time": pa.array([1, 2, None], pa.time64("ns")),
    "length": pa.array([2**62, -1, None], pa.duration("us")),
    "amount": pa.array([Decimal("1.10"), None, Decimal("-0.01")], pa.decimal128(5, 2)),
    "float": pa.array([float("nan"), -0.0, float("-inf")], pa.float32()),
    "data": pa.array([b"", b"\0\xff", None], pa.large_binary()),
    "parts": pa.array([[1, None], [], None], pa.list_(pa.int8())),
    "pair": pa.array(
        [{"a": 1, "b": ["x"]}, {"a": None, "b": None}, None],
        pa.struct({"a": "i4", "b": pa.list_(pa.string())}),
    ),
    "map": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())),
    "flag": pa.array([True, False, None]),
    "none": pa.nulls(3),
}


@pytest.mark.parametrize("names", [[name] for name in VALUES] + [list(VALUES)], ids="-".join)
def test_rows_of_all_types_come_back_from_a_checkpoint(names: list[str], tmp_path: Path) -> None:
    repeated = datetime(2026, 10, 25, tzinfo=timezone.utc).timestamp() * 1000
    autumn = pc.add(VALUES["autumn"].cast(pa.int64()), int(repeated)).cast(VALUES["autumn"].type)
    rows = pa.record_batch({name: autumn if name == "autumn" else VALUES[name] for name in names})
    found: list[pa.RecordBatch] = []

    class Holds(KeyedBatchProcessFunction):
        def open(self, runtime_context: Any) -> None:
            self.held = runtime_context.get_column_list_state("held", rows.schema)

        def process_batch(self, elements: Any, ctx: Any) -> None:
            for key_id in set(elements.key_ids.tolist()):
                if not self.held.lengths([key_id])[0]:
                    self.held.add([key_id] * 3, rows)
                found.append(self.held.get([key_id])[0])

    job = Job(Holds())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_process_stage, "copied_function", lambda function: function)
        _, checkpoint = job.checkpoint_after(300, 1, tmp_path)
        del found[:]
        job.go_on(checkpoint, 300, 1)
    assert found
    for column, expected in ((each[name], rows[name]) for each in found for name in names):
        # No NaN equals another.
        assert column.equals(expected) or repr(column.to_pylist()) == repr(expected.to_pylist())


def test_lists_and_columns_are_not_taken_for_each_other(tmp_path: Path) -> None:
    _, checkpoint = Job(Everything()).checkpoint_after(50, 1, tmp_path)
    with pytest.raises(SchemaError, match="'held' of the checkpoint is not a plain value per key"):
        Job(Other(held=np.int64)).go_on(checkpoint, 50, 1)
    with pytest.raises(SchemaError, match="'count' of the checkpoint is not a list of rows per key"):
        Job(Other(count=HELD)).go_on(checkpoint, 50, 1)


def test_rows_of_other_columns_are_refused(tmp_path: Path) -> None:
    _, checkpoint = Job(Everything()).checkpoint_after(50, 1, tmp_path)
    with pytest.raises(
        SchemaError, match="rows of the state 'held' in the checkpoint are not those of this job"
    ):
        Job(Other(held=pa.schema({"at": pa.int64()}))).go_on(checkpoint, 50, 1)
    with pytest.raises(SchemaError, match=r"of this job, which are day, at: Row\(at="):
        Job(Other(held=pa.schema({"day": pa.date32(), "at": pa.int64()}))).go_on(checkpoint, 50, 1)


def lists_of(column: pa.Array) -> ArrowListState:
    state = ArrowListState("held", pa.schema({"value": column.type}))
    state.grow(2)
    state.add([1] * len(column), {"value": column})
    return state


FAR = [2**60, None, -(2**60), 0]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("time", [pa.timestamp, pa.duration])
def test_times_within_columns_come_back_also_if_python_has_none_such(time: Any, unit: str) -> None:
    times = pa.array(FAR, pa.int64()).cast(time(unit))
    offsets = pa.array([0, 0, 3, 4], pa.int32())
    columns = [
        pa.ListArray.from_arrays(offsets, times),
        pa.FixedSizeListArray.from_arrays(times, 2),
        pa.MapArray.from_arrays(offsets, pa.array(list("abcd")), times),
        pa.array([[None, [1_001]], None], pa.large_list(pa.list_(time(unit)))),
        pa.StructArray.from_arrays([pa.ListArray.from_arrays(offsets, times)], ["times"]),
    ]
    for column in columns:
        state, restored = lists_of(column), lists_of(column.slice(0, 0))
        restored.restore(*state.kept())
        assert restored.get([1])[0]["value"].equals(column)


@pytest.mark.parametrize(
    ("had", "kind"),
    [
        (pa.array([1.0, 1.5]), pa.int64()),
        (pa.array([[2], [1.5]]), pa.list_(pa.int64())),
        (pa.array([1, 2**24 + 1]), pa.float32()),
        (pa.array([0.1]), pa.float32()),
        (pa.array(["1"]), pa.binary()),
        (pa.array([{"a": 1, "b": 2}]), pa.struct({"a": pa.int64()})),
        (pa.array([1_500], pa.timestamp("ms")), pa.timestamp("s")),
        (pa.array([1_500], pa.timestamp("ms")), pa.date32()),
    ],
    ids=str,
)
def test_rows_that_would_change_are_refused(had: pa.Array, kind: pa.DataType) -> None:
    with pytest.raises(
        SchemaError, match="rows of the state 'held' in the checkpoint are not those of this job"
    ):
        lists_of(pa.array([], kind)).restore(*lists_of(had).kept())


@pytest.mark.parametrize(
    "row", ["x", ("x",), {"value": "x"}, ["x"], Row("x", "y"), Row(values="x")], ids=repr
)
def test_elements_that_are_no_such_rows_are_refused(row: Any) -> None:
    with pytest.raises(SchemaError, match="which are value: "):
        lists_of(pa.array([], pa.string())).restore(np.array([1]), [[row]])


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (np.int64, 1.5),
        (np.int8, 300),
        (np.bool_, 2),
        (np.float32, 0.1),
        ("U2", "abc"),
        ("S2", b"abc"),
        ("datetime64[s]", datetime(2026, 1, 1, 0, 0, 0, 5)),
    ],
)
def test_values_that_would_change_are_refused(dtype: Any, value: Any) -> None:
    state = NumpyColumnState("held", np.dtype(dtype), np.zeros(1, dtype)[0])
    state.grow(2)
    with pytest.raises(SchemaError, match="values of the checkpoint for the state 'held' are not "):
        state.restore(np.array([1]), [value])


class Other(KeyedBatchProcessFunction):
    def __init__(self, **states: Any) -> None:
        self.states = states

    def open(self, runtime_context: Any) -> None:
        for name, dtype in self.states.items():
            if isinstance(dtype, pa.Schema):
                runtime_context.get_column_list_state(name, dtype)
            else:
                runtime_context.get_column_state(name, dtype, None if dtype is object else dtype(0))

    def process_batch(self, elements: Any, ctx: Any) -> None:
        pass


def test_values_of_another_type_are_refused(tmp_path: Path) -> None:
    _, checkpoint = Job(Everything()).checkpoint_after(50, 1, tmp_path)
    with pytest.raises(SchemaError, match="for the state 'seen' are not float64"):
        Job(Other(count=np.int64, last=object, seen=np.float64)).go_on(checkpoint, 50, 1)


def test_keys_of_another_type_are_refused(tmp_path: Path) -> None:
    _, checkpoint = Job(Everything(), "day").checkpoint_after(50, 1, tmp_path)
    job = Job(Everything(), "at")
    with pytest.raises(
        SchemaError, match="keys of the checkpoint are not those of this job, which are at: int64"
    ):
        job.go_on(checkpoint, 50, 1)
