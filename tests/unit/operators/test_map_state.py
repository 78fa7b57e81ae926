"""HeapMapState."""

import math
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from equipment.declared_types import Declared
from equipment.keyed_backends import new_backend

from flinkcore.common import Types, WatermarkStrategy
from flinkcore.datastream import (
    DataStream,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    StreamExecutionEnvironment,
)
from flinkcore.datastream.state import MapState, MapStateDescriptor
from flinkcore.errors import LifecycleError, SchemaError
from flinkcore.operators.state import KeyedStateBackend
from flinkcore.testing import for_keyed_process_function


@pytest.fixture
def backend() -> KeyedStateBackend:
    backend = new_backend()
    backend.set_current_key(1)
    return backend


@pytest.fixture
def state(backend: KeyedStateBackend) -> MapState[str, int]:
    state: MapState[str, int] = backend.get_or_create_keyed_state(MapStateDescriptor("m"))
    return state


def test_a_missing_map_key_has_the_value_none_and_can_be_removed(state: MapState[str, int]) -> None:
    assert state.get("a") is None
    assert state["a"] is None
    state.remove("a")
    del state["a"]
    state.clear()
    state.remove("a")
    assert state.is_empty()


def test_put_get_and_remove(state: MapState[str, int]) -> None:
    state.put("a", 1)
    state["b"] = 2
    assert (state.get("a"), state["b"]) == (1, 2)
    assert state.contains("a")
    assert "b" in state
    state.put("a", 3)
    assert state.get("a") == 3
    del state["a"]
    assert not state.contains("a")


def test_put_all_takes_a_mapping_or_pairs(state: MapState[str, int]) -> None:
    state.put_all({"a": 1, "b": 2})
    state.put_all({"b": 3}.items())
    state.put_all({})
    assert state.items() == [("a", 1), ("b", 3)]


def test_put_all_of_nothing_leaves_nothing(backend: KeyedStateBackend, state: MapState[str, int]) -> None:
    state.put_all({})
    assert state.is_empty()
    assert len(backend.snapshot()["m"]) == 0


def test_a_stored_none_is_an_entry(state: MapState[str, int]) -> None:
    state.put("a", None)
    assert state.get("a") is None
    assert state.contains("a")
    assert "a" in state
    assert state.items() == [("a", None)]
    assert not state.is_empty()


def test_items_keys_and_values_are_those_of_the_moment(state: MapState[str, int]) -> None:
    state.put_all({"a": 1, "b": 2})
    assert (list(state.items()), list(state.keys()), list(state.values())) == (
        [("a", 1), ("b", 2)],
        ["a", "b"],
        [1, 2],
    )
    for key in state:
        state.remove(key)
    assert state.is_empty()
    assert (list(state.items()), list(state.keys()), list(state.values())) == ([], [], [])


def test_removing_the_last_map_key_leaves_nothing(
    backend: KeyedStateBackend, state: MapState[str, int]
) -> None:
    state.put("a", 1)
    state.remove("a")
    assert state.is_empty()
    assert len(backend.snapshot()["m"]) == 0


def test_a_dictionary_given_is_the_callers_own(state: MapState[str, int]) -> None:
    given = {"a": 1}
    state.put_all(given)
    given["b"] = 2
    assert state.items() == [("a", 1)]


def test_what_is_no_mapping_is_refused(state: MapState[str, int]) -> None:
    for wrong in (5, [1, 2], None):
        with pytest.raises(SchemaError, match="map state 'm' takes a mapping or pairs"):
            state.put_all(wrong)  # type: ignore[arg-type]


def test_keys_and_values_of_another_type_are_refused_and_nothing_is_put(backend: KeyedStateBackend) -> None:
    state = backend.get_or_create_keyed_state(MapStateDescriptor("typed", Declared(str), Declared(int)))
    state.put("none", None)
    with pytest.raises(SchemaError, match="map keys of the state 'typed' are STR, but 1 is int"):
        state.put(1, 1)
    with pytest.raises(SchemaError, match="values of the state 'typed' are INT, but 'x' is str"):
        state.put_all({"a": 1, "b": "x"})
    assert state.items() == [("none", None)]


def test_use_without_a_current_key_is_an_error(backend: KeyedStateBackend, state: MapState[str, int]) -> None:
    state.put("a", 1)
    backend.key_context.clear_current_key()
    for use in (
        lambda: state.get("a"),
        lambda: state.put("a", 2),
        lambda: state.put_all({"a": 2}),
        lambda: state.remove("a"),
        lambda: state.contains("a"),
        state.items,
        state.keys,
        state.values,
        state.is_empty,
        state.clear,
    ):
        with pytest.raises(LifecycleError, match="'m' was used without a current key"):
            use()


# ---- which keys are one


def test_a_key_that_java_finds_equal_to_an_earlier_one_gets_its_value_and_the_earlier_one_stays(
    state: MapState[Any, Any],
) -> None:
    state.put(0.0, "zero")
    state.put(-0.0, "negative zero")
    state.put(math.nan, 1)
    state.put(float("nan"), 2)
    state.put(Decimal("1.0"), "one digit")
    state.put(Decimal("1.00"), "two digits")
    state.put([1], "list")
    assert (state.get(0.0), state.get(-0.0), state.get(-math.nan)) == ("zero", "negative zero", 2)
    assert (state[Decimal("1.0")], state[Decimal("1.00")], state[[1]]) == ("one digit", "two digits", "list")
    assert (1 in state, True in state, (0.0,) in state) == (False, False, False)
    assert state.keys()[2] is math.nan
    assert repr(state.keys()) == "[0.0, -0.0, nan, Decimal('1.0'), Decimal('1.00'), [1]]"


def test_keys_are_compared_as_values_of_their_declared_type(backend: KeyedStateBackend) -> None:
    state = backend.get_or_create_keyed_state(MapStateDescriptor("typed", Types.DOUBLE(), Types.STRING()))
    state.put(1, "one")
    assert (state.get(1.0), state.get(np.float64(1)), state.contains("1")) == ("one", "one", False)
    state.put(1.0, "one again")
    assert state.items() == [(1, "one again")]
    assert type(state.keys()[0]) is int


def test_a_key_that_can_be_neither_hashed_nor_pickled_is_refused(state: MapState[Any, Any]) -> None:
    for use in (state.get, state.contains, state.remove, lambda key: state.put(key, 1)):
        state.put("a", 1)
        with pytest.raises(SchemaError, match=r"cannot be a map key of the state 'm': .* cannot be pickled"):
            use([lambda: None])
    assert state.items() == [("a", 1)]


def test_put_all_takes_another_map_state(backend: KeyedStateBackend, state: MapState[Any, Any]) -> None:
    other = backend.get_or_create_keyed_state(MapStateDescriptor("other"))
    other.put_all([(-0.0, 1), (0.0, 2)])
    state.put_all(other)
    assert repr(state.items()) == "[(-0.0, 1), (0.0, 2)]"


# ---- in jobs

PAIR = Types.TUPLE([Types.STRING(), Types.DOUBLE()])

RULES = MapStateDescriptor("rules", Types.DOUBLE(), Types.STRING())


class CountingNumbers(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.counts = runtime_context.get_map_state(
            MapStateDescriptor("counts", Types.DOUBLE(), Types.LONG())
        )

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.counts.put(value[1], (self.counts.get(value[1]) or 0) + 1)
        yield value[0], repr(sorted(map(repr, self.counts.items())))


NUMBERS = [0.0, -0.0, math.nan, float("nan"), 0.0, -math.nan]
COUNTED = "['(-0.0, 1)', '(0.0, 2)', '(nan, 3)']"


def test_a_harness_keeps_keys_apart_as_java_does_and_shows_them() -> None:
    with for_keyed_process_function(CountingNumbers(), lambda value: value[0]) as before:
        for number in NUMBERS[:3]:
            before.process_element(("a", number))
        state = before.snapshot()
    with for_keyed_process_function(CountingNumbers(), lambda value: value[0], restore_from=state) as after:
        for number in NUMBERS[3:]:
            after.process_element(("a", number))
        assert after.extract_output_values()[-1] == ("a", COUNTED)
        assert repr(sorted(map(repr, after.get_keyed_state("counts", "a")))) == COUNTED


def test_a_job_over_columns_keeps_keys_apart_as_java_does_through_a_checkpoint(tmp_path: Path) -> None:
    def results(first: int, last: int, **checkpoints: Path) -> list[Any]:
        env = StreamExecutionEnvironment().set_parallelism(2)
        table = pa.table({"k": ["a"] * (last - first), "x": NUMBERS[first:last], "at": range(first, last)})
        log = env.from_event_log(table, timestamp="at", arrival="at").assign_timestamps_and_watermarks(
            WatermarkStrategy.for_monotonous_timestamps()
        )
        counted = log.key_by("k").process(CountingNumbers(), pa.schema({"k": pa.string(), "n": pa.string()}))
        found: list[Any] = counted.execute(**checkpoints).to_arrow()["n"].to_pylist()
        return found

    assert results(0, 6)[-1] == COUNTED
    cut = tmp_path / "cut"
    parts = results(0, 3, stop_with_checkpoint=cut) + results(3, 6, restore_from=cut)
    assert parts == results(0, 6)
    shown = subprocess.run(
        [sys.executable, "-m", "flinkcore", "checkpoint", "show", cut, "--state", "counts"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "'a': {0.0: 1, -0.0: 1, nan: 1}" in shown.stdout


class MatchingRules(KeyedBroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        rules = ctx.get_broadcast_state(RULES)
        yield repr(value[1]), rules.get(value[1]), len(rules.keys())

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        ctx.get_broadcast_state(RULES).put(*value)


def test_a_job_of_elements_keeps_broadcast_keys_apart_as_java_does_through_a_checkpoint(
    tmp_path: Path,
) -> None:
    def ruled(rules: list[Any], elements: list[Any], parallelism: int) -> DataStream:
        env = StreamExecutionEnvironment().set_parallelism(parallelism)
        broadcast = env.from_collection(rules, Types.TUPLE([Types.DOUBLE(), Types.STRING()])).broadcast(RULES)
        keyed = env.from_collection(elements, PAIR).key_by(lambda value: value[0])
        return keyed.connect(broadcast).process(MatchingRules())

    rules = [(0.0, "zero"), (-0.0, "negative"), (math.nan, "no number"), (float("nan"), "none")]
    cut = tmp_path / "cut"
    list(ruled(rules, [("a", 5.0)] * 4, 2).execute_and_collect(stop_with_checkpoint=cut))
    elements = [("a", 0.0), ("b", -0.0), ("c", -math.nan)]
    found = ruled([], elements, 3).execute_and_collect(restore_from=cut)
    assert sorted(found) == [("-0.0", "negative", 3), ("0.0", "zero", 3), ("nan", "none", 3)]
