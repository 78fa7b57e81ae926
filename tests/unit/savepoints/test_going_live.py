"""A checkpoint becomes a savepoint: declared names and types, defaults, and errors that say what to declare."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import flinkcore as fc
from flinkcore import savepoints
from flinkcore._internal.io.stores import ENVIRONMENT, stores_of
from flinkcore._native import key_groups as native_groups
from flinkcore.checkpoint import Checkpoint, OperatorSnapshot, PendingCheckpoint
from flinkcore.checkpoint.checkpoint_directory import CheckpointDirectory
from flinkcore.checkpoint.checkpoint_table import CheckpointTable
from flinkcore.checkpoint.table_kinds import TableKind
from flinkcore.common import Row, Time, Types
from flinkcore.datastream import KeyedProcessFunction
from flinkcore.datastream.state import StateDescriptor, ValueStateDescriptor
from flinkcore.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from flinkcore.errors import ArgumentTypeError, CheckpointError, ConfigurationError, DataError, SavepointError
from flinkcore.operators.state import DistributionMode, KeyedStateSnapshot, OperatorStateSnapshot
from flinkcore.savepoints import FlinkOperator, FlinkWindow, SavepointTarget
from flinkcore.savepoints.writing import savepoint_writer, state_files
from flinkcore.savepoints.writing.java_hashes import key_groups
from flinkcore.sql.plan.flink_state import FlinkState

LOG = pa.table({"user": ["ada", "bob", "ada"], "price": [3, 5, 8], "time": [10**12, 10**12 + 1, 10**12 + 2]})
OUT = pa.schema({"user": pa.string()})


def stream(parallelism: int = 2) -> Any:
    env = fc.StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    bound = fc.WatermarkStrategy.for_bounded_out_of_orderness(fc.Duration.of_millis(5))
    return env.from_event_log(LOG, timestamp="time").assign_timestamps_and_watermarks(bound).key_by("user")


class Last(KeyedProcessFunction):
    """Keeps the last price of a user."""

    def open(self, runtime_context: Any) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last"))

    def process_element(self, value: Any, ctx: Any) -> None:
        self.last.update(value.price)
        ctx.timer_service().register_event_time_timer(value.time + 100)


class Failing(KeyedProcessFunction):
    """Fails if it is run."""

    def process_element(self, value: Any, ctx: Any) -> None:
        raise AssertionError("the job has run")


def written_state(path: Path, values: list[Any], keys: list[Any], kind: str = "VALUE") -> Path:
    """Write a checkpoint with one state, and return its directory."""
    columns = pa.array(keys) if not isinstance(keys[0], tuple) else pa.array([0] * len(keys))
    groups = native_groups.key_groups(columns, 128).astype(np.int64)
    snapshot = KeyedStateSnapshot(StateDescriptor.Type[kind], None, keys, groups, [None] * len(keys), values)
    with PendingCheckpoint.begin(path, 128) as pending:
        part = pending.writer().write("op", 0, OperatorSnapshot((0, 127), 7, keyed_state={"state": snapshot}))
        pending.commit([part])
    return path


def rows(path: Path, uid: str, state: str) -> list[dict[str, Any]]:
    return savepoints.open(path).operator(uid).state(state).to_arrow().to_pylist()


def test_types_follow_from_the_values(tmp_path: Path) -> None:
    values = [(1, "a", [1.5]), (2, "b", [])]
    savepoints.write(written_state(tmp_path / "c", values, ["x", "y"]), tmp_path / "s")
    operator = savepoints.open(tmp_path / "s").operator("op")
    types = {name: each.name for name, each in operator.state("state").types.items()}
    assert types == {"key": "String", "namespace": "void", "value": "Tuple3<Long, String, List<Double>>"}
    found = {row["key"]: row["value"] for row in rows(tmp_path / "s", "op", "state")}
    assert found == {"x": {"f0": 1, "f1": "a", "f2": [1.5]}, "y": {"f0": 2, "f1": "b", "f2": []}}


def test_declared_types_and_names_replace_those_of_the_values(tmp_path: Path) -> None:
    order = savepoints.pojo("com.acme.Order", {"user": Types.STRING(), "cents": Types.INT()})
    declared = FlinkOperator(
        "flinks", of="op", key=Types.INT(), states={"state": order}, names={"state": "order"}
    )
    values = [Row(user="a", cents=5), Row(cents=7, user="b")]
    savepoints.write(written_state(tmp_path / "c", values, [-1, 2]), tmp_path / "s", [declared])
    state = savepoints.open(tmp_path / "s").operator("flinks").state("order")
    assert state.types["value"].name == "com.acme.Order"
    assert state.types["key"].name == "Integer"
    found = {row["key"]: (row["key_group"], row["value"]) for row in state.to_arrow().to_pylist()}
    groups = key_groups(pa.array([-1, 2], pa.int32()), state.types["key"], 128).tolist()
    assert found == {
        -1: (groups[0], {"user": "a", "cents": 5}),
        2: (groups[1], {"user": "b", "cents": 7}),
    }


def test_a_value_that_its_type_cannot_hold_is_an_error(tmp_path: Path) -> None:
    path = written_state(tmp_path / "c", [2**40], ["x"])
    declared = [FlinkOperator("op", states={"state": Types.INT()})]
    with pytest.raises(DataError, match="state 'state' of operator 'op': int cannot be written as Integer"):
        savepoints.write(path, tmp_path / "s", declared)
    assert os.listdir(tmp_path / "s") == []


def test_a_field_that_an_object_does_not_have_is_an_error(tmp_path: Path) -> None:
    path = written_state(tmp_path / "c", [Row(user="a", cent=5)], ["x"])
    order = savepoints.pojo("com.acme.Order", {"user": Types.STRING(), "cents": Types.INT()})
    with pytest.raises(DataError, match="it has no field 'cent'; its fields are"):
        savepoints.write(path, tmp_path / "s", [FlinkOperator("op", states={"state": order})])


def test_values_of_several_types_need_a_declaration(tmp_path: Path) -> None:
    path = written_state(tmp_path / "c", [1, "a"], ["x", "y"])
    with pytest.raises(
        ConfigurationError, match=r"state 'state' of operator 'op' holds int \| str.*Declare its type"
    ):
        savepoints.write(path, tmp_path / "s")


def test_files_of_attempts_that_do_not_count_are_removed(tmp_path: Path) -> None:
    path = written_state(tmp_path / "c", [1], ["x"])

    def twice(task: Any, n_tasks: int) -> list[str]:
        return [[task(number) for _ in range(2)][-1] for number in range(n_tasks)]

    SavepointTarget(tmp_path / "s").write(Checkpoint.open(path), ENVIRONMENT, twice)
    assert len(os.listdir(tmp_path / "s")) == 2
    assert [row["value"] for row in rows(tmp_path / "s", "op", "state")] == [1]


def test_events_that_wait_for_paused_splits_are_not_lost(tmp_path: Path) -> None:
    waiting = CheckpointTable(pa.record_batch({"x": [1, 2]}), {}, {})
    with PendingCheckpoint.begin(tmp_path / "c", 128) as pending:
        with pending.writer().part("log", 0, 7) as part:
            part.add(TableKind.WAITING_ROWS, "0", waiting)
        pending.commit([part.written()])
    with pytest.raises(ConfigurationError, match="2 events wait for paused splits"):
        savepoints.write(tmp_path / "c", tmp_path / "s")


def test_a_savepoint_is_not_replaced(tmp_path: Path) -> None:
    path = written_state(tmp_path / "c", [1], ["x"])
    savepoints.write(path, tmp_path / "s")
    with pytest.raises(ConfigurationError, match="has a savepoint already"):
        savepoints.write(path, tmp_path / "s")


def test_a_job_does_not_run_for_a_savepoint_that_is_there(tmp_path: Path) -> None:
    savepoints.write(written_state(tmp_path / "c", [1], ["x"]), tmp_path / "s")
    before = set(os.listdir(tmp_path / "s"))
    with pytest.raises(ConfigurationError, match="has a savepoint already"):
        stream().process(Failing(), OUT).execute(stop_with_savepoint=tmp_path / "s").to_arrow()
    env = fc.StreamExecutionEnvironment.get_execution_environment()
    env.from_collection(["a"]).key_by(lambda text: text).process(Failing()).uid("failing")
    with pytest.raises(ConfigurationError, match="has a savepoint already"):
        env.execute(stop_with_savepoint=tmp_path / "s")
    assert set(os.listdir(tmp_path / "s")) == before


@pytest.mark.parametrize("is_late", [False, True])
def test_a_savepoint_that_another_run_completes_meanwhile_stays(
    is_late: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written_state(tmp_path / "c", [1], ["x"])
    other = written_state(tmp_path / "d", [2], ["x"])
    if is_late:  # the other run completes it after the last look
        monkeypatch.setattr(savepoint_writer, "_refuse_savepoint", lambda storage: None)

    def meanwhile(task: Any, n_tasks: int) -> list[str]:
        written = [task(number) for number in range(n_tasks)]
        savepoints.write(other, tmp_path / "s")
        return [*written[:-1], task(n_tasks - 1)]

    with pytest.raises((ConfigurationError, SavepointError), match=r"already|exists"):
        SavepointTarget(tmp_path / "s").write(Checkpoint.open(path), ENVIRONMENT, meanwhile)
    assert len(os.listdir(tmp_path / "s")) == 2
    assert [row["value"] for row in rows(tmp_path / "s", "op", "state")] == [2]


@pytest.mark.parametrize("is_first", [False, True])
def test_two_runs_that_write_into_one_store_leave_a_whole_savepoint(
    is_first: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Checkpoint.open(written_state(tmp_path / "c", [1], ["x"]))
    other = Checkpoint.open(written_state(tmp_path / "d", [2], ["x"]))
    store = MemoryFileSystem(skip_instance_cache=True)
    path, publish = f"{tmp_path.name}/s", CheckpointDirectory.publish
    target = SavepointTarget(path)
    monkeypatch.setattr(savepoint_writer, "_refuse_savepoint", lambda storage: None)  # both looked before

    def racing(*given: Any, **settings: Any) -> bool:
        monkeypatch.setattr(CheckpointDirectory, "publish", publish)
        if not is_first:
            target.write(other, stores_of(store))
        is_new = publish(*given, **settings)
        if is_first:
            target.write(other, stores_of(store))
        return is_new

    monkeypatch.setattr(CheckpointDirectory, "publish", racing)
    target.write(one, stores_of(store))
    (operator,) = savepoints.open(path, filesystem=store).operators
    assert operator.state("state").to_arrow()["value"].to_pylist() == [2 if is_first else 1]


def test_a_failure_after_a_store_has_completed_a_savepoint_leaves_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, publish = MemoryFileSystem(skip_instance_cache=True), CheckpointDirectory.publish

    def failing(*given: Any, **settings: Any) -> bool:
        publish(*given, **settings)
        raise OSError("the answer was lost")

    checkpoint, path = Checkpoint.open(written_state(tmp_path / "c", [1], ["x"])), f"{tmp_path.name}/s"
    monkeypatch.setattr(CheckpointDirectory, "publish", failing)
    with pytest.raises(SavepointError, match="the answer was lost"):
        SavepointTarget(path).write(checkpoint, stores_of(store))
    (operator,) = savepoints.open(path, filesystem=store).operators
    assert operator.state("state").to_arrow()["value"].to_pylist() == [1]


def test_a_savepoint_is_written_to_a_disk_without_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*given: Any) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    savepoints.write(written_state(tmp_path / "c", [1], ["x"]), tmp_path / "s")
    assert [row["value"] for row in rows(tmp_path / "s", "op", "state")] == [1]
    assert len(os.listdir(tmp_path / "s")) == 2


def test_state_that_no_operator_gets_is_an_error(tmp_path: Path) -> None:
    snapshot = OperatorSnapshot(
        operator_state={"list": OperatorStateSnapshot(DistributionMode.SPLIT_DISTRIBUTE, [1, 2, 3])}
    )
    with PendingCheckpoint.begin(tmp_path / "c", 128) as pending:
        pending.commit([pending.writer().write(uid, 0, snapshot) for uid in ("one", "two")])
    with pytest.raises(ConfigurationError, match=r"operator 'two' of the checkpoint .* has state"):
        savepoints.write(tmp_path / "c", tmp_path / "s", [FlinkOperator("a", of="one")])
    savepoints.write(tmp_path / "c", tmp_path / "s", [FlinkOperator("a", of="one")], leave_out=["two"])
    assert [row["value"] for row in rows(tmp_path / "s", "a", "list")] == [1, 2, 3]
    with pytest.raises(ConfigurationError, match="has of='three'"):
        savepoints.write(tmp_path / "c", tmp_path / "t", [FlinkOperator("a", of="three")])
    with pytest.raises(ConfigurationError, match=r"leave_out names the operator 'tow', .* 'one', 'two'"):
        savepoints.write(tmp_path / "c", tmp_path / "t", leave_out=["tow"])


def test_a_job_stops_with_a_savepoint_alone(tmp_path: Path) -> None:
    declared = FlinkOperator("prices", states={"last": Types.INT()})
    target = SavepointTarget(tmp_path / "s", [declared], compression=True)
    stream().process(Last(), OUT).execute(stop_with_savepoint=target).to_arrow()
    assert "checkpoint" not in os.listdir(tmp_path / "s")
    assert {row["key"]: row["value"] for row in rows(tmp_path / "s", "prices", "last")} == {
        "ada": 8,
        "bob": 5,
    }
    timers = rows(tmp_path / "s", "prices", "_timer_state/event_user-timers")
    assert sorted((row["key"], row["timestamp_ms"] - 10**12) for row in timers) == [
        ("ada", 100),
        ("ada", 102),
        ("bob", 101),
    ]


@pytest.mark.parametrize("key", [None, Types.LONG()])
def test_no_key_is_lost_where_java_divides_keys_in_another_way(key: Any, tmp_path: Path) -> None:
    numbers = pa.array([-5, -(2**31), -1, 3, 7, 2**31 - 1, -77], pa.int32())
    table = pa.table({"user": numbers, "price": range(7), "time": range(10**12, 10**12 + 7)})
    env = fc.StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(4)
    bound = fc.WatermarkStrategy.for_bounded_out_of_orderness(fc.Duration.of_millis(5))
    timed = env.from_event_log(table, timestamp="time").assign_timestamps_and_watermarks(bound)
    target = SavepointTarget(tmp_path / "s", [FlinkOperator("prices", key=key)])
    timed.key_by("user").process(Last(), OUT).execute(stop_with_savepoint=target).to_arrow()
    state = savepoints.open(tmp_path / "s").operator("prices").state("last")
    assert state.types["key"].name == ("Integer" if key is None else "Long")
    found = state.to_arrow()
    assert sorted(found["key"].to_pylist()) == sorted(numbers.to_pylist())
    keys = found["key"].combine_chunks()
    assert found["key_group"].to_pylist() == key_groups(keys, state.types["key"], 128).tolist()
    timers = rows(tmp_path / "s", "prices", "_timer_state/event_user-timers")
    assert sorted(row["key"] for row in timers) == sorted(numbers.to_pylist())


class Counts(KeyedProcessFunction):
    """Counts the elements of a key."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: Any, ctx: Any) -> None:
        self.count.update((self.count.value() or 0) + 1)


def test_a_job_over_single_elements_stops_with_a_savepoint(tmp_path: Path) -> None:
    env = fc.StreamExecutionEnvironment.get_execution_environment()
    env.from_collection(["a", "b", "a"]).key_by(lambda text: text).process(Counts()).uid("counts")
    env.execute(stop_with_savepoint=tmp_path / "s")
    assert {row["key"]: row["value"] for row in rows(tmp_path / "s", "counts", "count")} == {"a": 2, "b": 1}
    assert [each.operator_id for each in savepoints.open(tmp_path / "s").operators] == [
        savepoints.open(tmp_path / "s").operator("counts").operator_id
    ]


def test_a_savepoint_that_fails_leaves_the_checkpoint(tmp_path: Path) -> None:
    target = SavepointTarget(tmp_path / "s", [FlinkOperator("prices", of="other")])
    with pytest.raises(ConfigurationError, match="The job has stopped with the checkpoint"):
        stream().process(Last(), OUT).execute(stop_with_savepoint=target).to_arrow()
    savepoints.write(tmp_path / "s" / "checkpoint", tmp_path / "s", [FlinkOperator("prices")])
    assert len(rows(tmp_path / "s", "prices", "last")) == 2


def test_windows_have_the_accumulator_of_all_aggregates_unless_it_is_declared(tmp_path: Path) -> None:
    windows = stream().window(TumblingEventTimeWindows.of(Time.seconds(10)))
    result = windows.aggregate(n=fc.count(), total=fc.sum_("price"))
    result.execute(stop_with_savepoint=tmp_path / "s").to_arrow()
    (operator,) = savepoints.open(tmp_path / "s").operators
    contents = operator.state("window-contents")
    assert contents.kind == "AGGREGATING"
    assert {row["key"]: row["value"] for row in contents.to_arrow().to_pylist()} == {
        "ada": {"f0": 2, "f1": 11},
        "bob": {"f0": 1, "f1": 5},
    }
    only = FlinkOperator("win", window=FlinkWindow(Types.DOUBLE(), ["total"], reduces=True))
    result.execute(stop_with_savepoint=SavepointTarget(tmp_path / "t", [only])).to_arrow()
    contents = savepoints.open(tmp_path / "t").operator("win").state("window-contents")
    assert contents.kind == "REDUCING"
    assert sorted(row["value"] for row in contents.to_arrow().to_pylist()) == [5.0, 11.0]


def test_a_field_that_is_no_aggregate_is_an_error(tmp_path: Path) -> None:
    windows = stream().window(EventTimeSessionWindows.with_gap(Time.seconds(10))).aggregate(n=fc.count())
    declared = FlinkOperator("win", window=FlinkWindow(Types.LONG(), ["total"]))
    with pytest.raises(ConfigurationError, match=r"has no aggregate or key 'total'.*'user', 'n'"):
        windows.execute(stop_with_savepoint=SavepointTarget(tmp_path / "s", [declared])).to_arrow()


def test_windows_that_flink_does_not_have_are_refused(tmp_path: Path) -> None:
    windows = stream().window(TumblingEventTimeWindows.of(Time.seconds(10))).retracting()
    with pytest.raises(ConfigurationError, match="cannot be written as those of a Flink job"):
        windows.aggregate(n=fc.count()).execute(stop_with_savepoint=tmp_path / "s").to_arrow()


def test_arguments_of_other_types_are_refused() -> None:
    with pytest.raises(ArgumentTypeError, match="fields is a list of names"):
        FlinkWindow(Types.LONG(), "total")
    with pytest.raises(ArgumentTypeError, match="a type of a Flink job"):
        FlinkOperator("a", key=int)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="stop_with_savepoint takes a path"):
        stream().process(Last(), OUT).execute(stop_with_savepoint=7)


@pytest.mark.parametrize("text", ["[]", "{}", "{", '{"uid": "5_sort", "kind": "sort"}', "1"])
def test_a_description_of_a_plan_that_is_none_is_an_error(text: str) -> None:
    with pytest.raises(CheckpointError, match="is not one of this version of flinkcore"):
        FlinkState.of_text(text)


def test_states_that_wait_in_a_temporary_file_are_written_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream().process(Last(), OUT).uid("last").execute(stop_with_checkpoint=tmp_path / "checkpoint").report  # noqa: B018
    contents = []
    for limit in (state_files.HELD_BYTES, 0):
        monkeypatch.setattr(state_files, "HELD_BYTES", limit)
        savepoints.write(tmp_path / "checkpoint", tmp_path / f"{limit}")
        contents.append(sorted(file.read_bytes() for file in (tmp_path / f"{limit}").glob("*-keyed")))
    assert contents[0] == contents[1]
    assert all(contents)
