"""Which states of a PyFlink program a savepoint for PyFlink has, and which are refused."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, Literal

import pytest

import flinkcore as fc
from flinkcore import savepoints
from flinkcore.common import Row, Time, Types
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.datastream.functions import (
    BroadcastProcessFunction,
    KeyedProcessFunction,
    ProcessWindowFunction,
)
from flinkcore.datastream.state import MapStateDescriptor, ValueStateDescriptor
from flinkcore.datastream.window import CountEvictor, EventTimeSessionWindows, GlobalWindows
from flinkcore.errors import ConfigurationError, DataError
from flinkcore.savepoints import SavepointTarget

PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])
RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())
Mode = Literal["process", "thread"]
BOTH: list[Mode] = ["process", "thread"]


class Remembering(KeyedProcessFunction):
    def __init__(self, type_info: TypeInformation | None, value: Any, name: str = "last") -> None:
        self.type_info, self.value, self.name = type_info, value, name

    def open(self, runtime_context: Any) -> None:
        self.state = runtime_context.get_state(ValueStateDescriptor(self.name, self.type_info))

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.state.update(self.value)


class First(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield from elements


class Ruled(BroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        ctx.get_broadcast_state(RULES).put(value[0], value[1])


def pairs(env: fc.StreamExecutionEnvironment, *elements: Any) -> Any:
    strategy = fc.WatermarkStrategy.for_monotonous_timestamps()
    stream = env.from_collection(list(elements) or [("ada", 1)], PAIR)
    return stream.assign_timestamps_and_watermarks(strategy)


def saved(stream: Any, path: Path, mode: Mode = "process") -> savepoints.Savepoint:
    env = stream.get_execution_environment()
    env.execute(stop_with_savepoint=SavepointTarget(path / "savepoint", execution_mode=mode))
    return savepoints.open(path / "savepoint")


def remembered(
    type_info: TypeInformation | None,
    value: Any,
    key_type: TypeInformation | None = None,
    key: Any = "ada",
    name: str = "last",
) -> Any:
    env = fc.StreamExecutionEnvironment.get_execution_environment()
    keyed = pairs(env).key_by(lambda pair: key, key_type)
    return keyed.process(Remembering(type_info, value, name)).uid("last")


def value_of(savepoint: savepoints.Savepoint, name: str) -> Any:
    (row,) = savepoint.operator("last").state(name).to_arrow().to_pylist()
    return row["value"]


def test_a_mode_is_one_of_pyflinks() -> None:
    with pytest.raises(ConfigurationError, match="execution_mode is 'process' or 'thread'"):
        SavepointTarget("live", execution_mode="threads")  # type: ignore[arg-type]


def test_an_operator_without_a_uid_is_refused(tmp_path: Path) -> None:
    env = fc.StreamExecutionEnvironment.get_execution_environment()
    stream = pairs(env).key_by(lambda pair: pair[0]).process(Remembering(Types.LONG(), 1))
    with pytest.raises(
        ConfigurationError, match=r"has state and no uid, .* Call uid\('...'\) after the step"
    ):
        saved(stream, tmp_path)


@pytest.mark.parametrize("name", ["last", "count", "fire-time"])  # the others are names of triggers' states
def test_a_state_without_a_type_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=f"state '{name}' of operator 'last' has no type"):
        saved(remembered(None, "a text", name=name), tmp_path)


def test_a_value_that_is_not_of_its_type_in_pyflink_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot keep the value \(None, 1\) in the declared type"):
        saved(remembered(PAIR, (None, 1)), tmp_path)


def test_types_without_a_serializer_in_thread_mode_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="thread mode has no serializer that keeps it"):
        saved(remembered(Types.LIST(Types.LONG()), [1]), tmp_path, "thread")


def test_sessions_are_refused_in_thread_mode(tmp_path: Path) -> None:
    env = fc.StreamExecutionEnvironment.get_execution_environment()
    sessions = pairs(env).key_by(lambda pair: pair[0]).window(EventTimeSessionWindows.with_gap(Time.hours(1)))
    with pytest.raises(
        ConfigurationError, match=r"thread mode cannot restore .* Use execution_mode='process'"
    ):
        saved(sessions.process(First()).uid("first"), tmp_path, "thread")


def test_windows_with_an_evictor_are_refused(tmp_path: Path) -> None:
    env = fc.StreamExecutionEnvironment.get_execution_environment()
    windows = (
        pairs(env).key_by(lambda pair: pair[0]).window(GlobalWindows.create()).evictor(CountEvictor.of(1))
    )
    with pytest.raises(ConfigurationError, match="an evictor, which PyFlink does not have"):
        saved(windows.process(First()).uid("first"), tmp_path)


def test_rolling_reductions_are_refused(tmp_path: Path) -> None:
    env = fc.StreamExecutionEnvironment.get_execution_environment()
    stream = pairs(env).key_by(lambda pair: pair[0]).reduce(lambda a, b: b).uid("rolling")
    with pytest.raises(ConfigurationError, match="has another name for it in each run"):
        saved(stream, tmp_path)


@pytest.mark.parametrize("mode", BOTH)
def test_a_job_over_columns_is_refused(mode: Mode, tmp_path: Path) -> None:
    import pyarrow as pa

    env = fc.StreamExecutionEnvironment.get_execution_environment()
    log = env.from_event_log(pa.table({"ts": [1], "user": ["ada"]}), timestamp="ts", split=None)
    log = log.assign_timestamps_and_watermarks(fc.WatermarkStrategy.for_monotonous_timestamps())
    windows = log.key_by("user").window(fc.TumblingEventTimeWindows.of(Time.hours(1))).aggregate(n=fc.count())
    target = SavepointTarget(tmp_path / "savepoint", execution_mode=mode)
    with pytest.raises(ConfigurationError, match="is one over columns, which no PyFlink program has"):
        windows.execute(stop_with_savepoint=target).to_arrow()


@pytest.mark.parametrize("mode", BOTH)
def test_a_key_whose_pickle_is_not_certain_is_refused(mode: Mode, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="equal fields, whose pickle depends on"):
        saved(remembered(Types.LONG(), 1, key=("a", "a")), tmp_path, mode)
    with pytest.raises(DataError, match="is not a number, a text, bytes or a tuple of these"):
        saved(remembered(Types.LONG(), 1, key=Row(1)), tmp_path, mode)


def test_integers_are_longs_in_thread_mode_and_keep_their_size_in_process_mode(tmp_path: Path) -> None:
    of_thread = saved(remembered(Types.INT(), 7), tmp_path / "thread", "thread")
    state = of_thread.operator("last").state("last")
    assert (state.kind, state.types["value"].name, value_of(of_thread, "last")) == ("VALUE", "Long", 7)
    of_process = saved(remembered(Types.INT(), 7), tmp_path / "process")
    assert value_of(of_process, "python-state-last") == [struct.pack(">i", 7)]


def test_a_list_as_a_value_is_one_value(tmp_path: Path) -> None:
    found = saved(remembered(Types.LIST(Types.SHORT()), [1, None]), tmp_path)
    assert value_of(found, "python-state-last") == [b"\0\0\0\2\1\0\1\0"]


@pytest.mark.parametrize("mode", BOTH)
def test_a_broadcast_state_has_the_form_of_its_mode(mode: Mode, tmp_path: Path) -> None:
    env = fc.StreamExecutionEnvironment.get_execution_environment()
    rules = env.from_collection([("one", 1), ("two", 2)], PAIR).broadcast(RULES)
    found = saved(pairs(env).connect(rules).process(Ruled()).uid("ruled"), tmp_path, mode).operator("ruled")
    (name,) = found.states
    rows = {row["key"]: row["value"] for row in found.state(name).to_arrow().to_pylist()}
    written = {b"\0\0\0\3one": struct.pack(">q", 1), b"\0\0\0\3two": struct.pack(">q", 2)}
    expected: dict[Any, Any] = written if mode == "process" else {"one": 1, "two": 2}
    assert (name.removeprefix("python-state-"), rows) == ("rules", expected)


def test_a_checkpoint_with_unknown_declared_types_is_refused(tmp_path: Path) -> None:
    from flinkcore.checkpoint.declared_types import type_of_json

    for wrong in ("NUMBER", ["TUPLE", "LONG", 5], ["MAP", "LONG"], ["ROW", ["a"], "LONG", "LONG"], []):
        with pytest.raises(DataError, match="value_type is "):
            type_of_json(wrong, "value_type")
