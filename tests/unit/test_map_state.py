"""HeapMapState."""

import pytest
from models.declared_types import Declared
from models.keyed_backends import new_backend

from flinkcore.datastream.state import MapState, MapStateDescriptor
from flinkcore.errors import LifecycleError, SchemaError
from flinkcore.runtime.state import KeyedStateBackend


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
