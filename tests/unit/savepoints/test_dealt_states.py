"""State of savepoints whose keys have other key groups in the job: each task reads a part, and deals it out."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from jobs.sql_savepoint_jobs import GOLDEN, changes, replay, rows_as_flink_shows_them

import flinkcore as fc
from flinkcore import savepoints
from flinkcore.common import Types
from flinkcore.datastream import KeyedProcessFunction
from flinkcore.datastream.state import MapStateDescriptor, ValueStateDescriptor
from flinkcore.savepoints import (
    FlinkOperator,
    SavepointOperator,
    SavepointSource,
    SavepointTarget,
    state_streams,
)
from flinkcore.savepoints.beginning import DealtStates, RestoredSavepoint
from flinkcore.savepoints.keyed_state import KeyedState, ReceivedState, batches_of_states

JOBS = (
    *("hop", "group_hop", "session", "count_of_distinct", "left_interval_join", "rank_of_sums"),
    *("window_join", "window_rank"),
)

pytestmark = pytest.mark.filterwarnings("ignore::flinkcore.errors.LateEventsWarning")


@contextmanager
def counted_bytes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Count the bytes that are read from files."""
    found: list[int] = []
    read = state_streams._read_at

    def counting(file: Any, name: str, at: int, size: int) -> bytes:
        found.append(size)
        return read(file, name, at, size)

    with monkeypatch.context() as patched:
        patched.setattr(state_streams, "_read_at", counting)
        yield found


def bytes_beside_entries(operator: SavepointOperator) -> int:
    """Return the bytes of the headers of keyed states, and of operator states, which are read once more."""
    subtasks = operator.metadata.subtasks
    return sum(handle.first_offset for each in subtasks for handle in each.keyed_states) + sum(
        2 * handle.stream.size for each in subtasks for handle in each.operator_states
    )


@pytest.fixture
def dealt_out(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Let state that is dealt out be pickled, as on Spark; has the uids of its operators."""
    dealt, found = RestoredSavepoint.dealt, set[str]()

    def pickled(self: RestoredSavepoint, uid: str) -> DealtStates | None:
        state = dealt(self, uid)
        if state is not None:
            found.add(uid)
        return pickle.loads(pickle.dumps(state))

    monkeypatch.setattr(RestoredSavepoint, "dealt", pickled)
    return found


def test_partitions_in_a_process_read_a_savepoint_once(monkeypatch: pytest.MonkeyPatch) -> None:
    path = GOLDEN / "join" / "savepoint"
    (operator,) = (
        each
        for each in savepoints.open(path).operators
        if any(isinstance(state, KeyedState) for state in each.states.values())
    )
    size = sum(handle.stream.size for each in operator.metadata.subtasks for handle in each.keyed_states)
    with counted_bytes(monkeypatch) as read:
        replay("join", "rest", parallelism=3).execute(restore_from=path).report  # noqa: B018 - runs it
    headers, metadata = bytes_beside_entries(operator), (path / "_metadata").stat().st_size
    assert sum(read) <= metadata + (size - headers) + 5 * headers


@pytest.mark.parametrize("job", JOBS)
def test_a_replay_goes_on_from_entries_that_were_dealt_out(job: str, dealt_out: set[str]) -> None:
    rest = replay(job, "rest").execute(restore_from=GOLDEN / job / "savepoint")
    expected = [json.loads(line) for line in (GOLDEN / job / "rest.jsonl").read_text().splitlines()]
    assert changes(job, rows_as_flink_shows_them(rest)) == changes(job, expected)
    assert dealt_out


class Counted(KeyedProcessFunction):
    """Counts the values of a key, and emits the count at a timer."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.sums = runtime_context.get_map_state(MapStateDescriptor("sums", Types.LONG(), Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.count.update((self.count.value() or 0) + 1)
        self.sums.put(value.ts % 3, value.ts)
        ctx.timer_service().register_event_time_timer(value.ts + 5000)
        return iter(())

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield (f"{ctx.get_current_key()} {timestamp} {self.count.value()} {sorted(self.sums.items())}",)


def functions(stream: Any) -> Any:
    return stream.process(Counted(), pa.schema({"text": pa.string()}))


def windows(stream: Any) -> Any:
    return stream.window(fc.TumblingEventTimeWindows.of(fc.Time.seconds(10))).aggregate(n=fc.count())


@pytest.mark.parametrize("job", [functions, windows])
def test_a_savepoint_with_other_key_groups_is_dealt_out(
    job: Callable[[Any], Any], dealt_out: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = list[ReceivedState]()
    batches = ReceivedState.batches

    def noted(state: ReceivedState, *key_groups: Any) -> Iterator[pa.RecordBatch]:
        taken.append(state)
        return batches(state, *key_groups)

    monkeypatch.setattr(ReceivedState, "batches", noted)

    def result(first: int, last: int, groups: int) -> Any:
        env = fc.StreamExecutionEnvironment.get_execution_environment()
        env.set_max_parallelism(groups)
        env.set_parallelism(2)
        log = pa.table(
            {"key": [f"k{i % 7}" for i in range(first, last)], "ts": [i * 90 for i in range(first, last)]}
        )
        bound = fc.WatermarkStrategy.for_monotonous_timestamps()
        return job(
            env.from_event_log(log, timestamp="ts", arrival="ts")
            .assign_timestamps_and_watermarks(bound)
            .key_by("key")
        )

    def rows(batches: pa.Table) -> list[str]:
        return sorted(
            map(repr, batches.drop(["watermark"] if "watermark" in batches.column_names else []).to_pylist())
        )

    whole = rows(result(0, 200, 128).to_arrow())
    target = SavepointTarget(tmp_path / "s", [FlinkOperator("op", key=Types.STRING())])
    first = rows(result(0, 100, 128).execute(stop_with_savepoint=target).to_arrow())
    rest = rows(result(100, 200, 60).execute(restore_from=SavepointSource(tmp_path / "s")).to_arrow())
    assert sorted(first + rest) == whole
    assert dealt_out
    assert taken
    assert not any(state.entries for state in taken)


def test_a_task_reads_the_key_groups_of_its_range_and_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    found = savepoints.open(GOLDEN / "group_by_count" / "savepoint").operators
    operator = next(each for each in found if any(isinstance(s, KeyedState) for s in each.states.values()))
    of_tasks = operator.for_tasks()
    for key_groups in (range(50), range(50, 128)):
        task = pickle.loads(pickle.dumps(of_tasks))
        with counted_bytes(monkeypatch) as headers:
            states = [state for state in task.states.values() if isinstance(state, KeyedState)]
        files = states[0].files
        assert sum(headers) <= sum(file.handle.first_offset for file in files)
        with counted_bytes(monkeypatch) as read:
            rows = Counter(
                state.name for state, batch in batches_of_states(states, key_groups) for _ in batch["key"]
            )
        own = [end - begin for file in files for group, begin, end in file.ranges if group in key_groups]
        assert sum(read) == sum(own)
        assert rows == {
            state.name: n
            for state in states
            if (n := sum(batch.num_rows for batch in state.batches(key_groups)))
        }
