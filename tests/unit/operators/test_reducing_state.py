"""HeapReducingState."""

import pytest
from equipment.declared_types import Declared
from equipment.keyed_backends import new_backend

from flinkcore.datastream.functions import ReduceFunction
from flinkcore.datastream.state import ReducingState, ReducingStateDescriptor
from flinkcore.errors import ConfigurationError, LifecycleError, SchemaError
from flinkcore.operators.state import KeyedStateBackend


class Concatenate(ReduceFunction[str]):
    def reduce(self, value1: str, value2: str) -> str:
        return value1 + value2


@pytest.fixture
def backend() -> KeyedStateBackend:
    backend = new_backend()
    backend.set_current_key(1)
    return backend


@pytest.fixture
def state(backend: KeyedStateBackend) -> ReducingState[str]:
    state: ReducingState[str] = backend.get_or_create_keyed_state(
        ReducingStateDescriptor("r", Concatenate(), Declared(str))
    )
    return state


def test_there_is_nothing_before_the_first_value(state: ReducingState[str]) -> None:
    assert state.get() is None


def test_values_are_reduced_in_the_order_they_were_added(state: ReducingState[str]) -> None:
    for value in "abc":
        state.add(value)
    assert state.get() == "abc"


def test_a_plain_function_reduces(backend: KeyedStateBackend) -> None:
    state = backend.get_or_create_keyed_state(ReducingStateDescriptor("max", max))
    for value in (3, 5, 4):
        state.add(value)
    assert state.get() == 5


def test_adding_none_and_clear_remove_all(state: ReducingState[str]) -> None:
    state.add("a")
    state.add(None)  # type: ignore[arg-type]
    assert state.get() is None
    state.add("b")
    state.clear()
    assert state.get() is None


def test_a_function_that_gives_none_clears(backend: KeyedStateBackend) -> None:
    state = backend.get_or_create_keyed_state(ReducingStateDescriptor("none", lambda a, b: None))
    state.add(1)
    state.add(2)
    assert state.get() is None


def test_a_function_that_fails_leaves_the_value(backend: KeyedStateBackend) -> None:
    state = backend.get_or_create_keyed_state(ReducingStateDescriptor("fails", lambda a, b: a // b))
    state.add(1)
    with pytest.raises(ZeroDivisionError):
        state.add(0)
    assert state.get() == 1


def test_values_of_another_type_are_refused_added_or_reduced(backend: KeyedStateBackend) -> None:
    state = backend.get_or_create_keyed_state(
        ReducingStateDescriptor("typed", lambda a, b: str(a + b), Declared(int))
    )
    with pytest.raises(SchemaError, match="values of the state 'typed' are INT, but 'x' is str"):
        state.add("x")
    state.add(1)
    with pytest.raises(SchemaError, match="values of the state 'typed' are INT, but '3' is str"):
        state.add(2)
    assert state.get() == 1


def test_what_cannot_reduce_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="takes a ReduceFunction or a function of two values, not 5"):
        ReducingStateDescriptor("r", 5)  # type: ignore[arg-type]


def test_use_without_a_current_key_is_an_error(backend: KeyedStateBackend, state: ReducingState[str]) -> None:
    backend.key_context.clear_current_key()
    for use in (state.get, lambda: state.add("a"), lambda: state.add(None), state.clear):  # type: ignore[arg-type]
        with pytest.raises(LifecycleError, match="'r' was used without a current key"):
            use()


def test_merged_namespaces_are_reduced_after_the_target(backend: KeyedStateBackend) -> None:
    descriptor = ReducingStateDescriptor("r", Concatenate())
    for namespace in ("a", "b", "target"):
        backend.get_partitioned_state(namespace, descriptor).add(namespace)
    state = backend.get_partitioned_state("target", descriptor)
    state.merge_namespaces("target", ["b", "unknown", "a"])
    assert state.get() == "targetba"
    assert list(backend.snapshot()["r"].entries()) == [(1, "target", "targetba")]


def test_merging_into_an_empty_namespace_moves(backend: KeyedStateBackend) -> None:
    descriptor = ReducingStateDescriptor("r", Concatenate())
    backend.get_partitioned_state("a", descriptor).add("x")
    state = backend.get_partitioned_state("target", descriptor)
    state.merge_namespaces("target", ["a"])
    state.merge_namespaces("target", ["a"])
    assert list(backend.snapshot()["r"].entries()) == [(1, "target", "x")]
