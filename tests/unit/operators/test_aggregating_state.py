"""HeapAggregatingState."""

import pytest
from equipment.declared_types import Declared
from equipment.keyed_backends import Average, new_backend

from flinkcore.datastream.state import AggregatingState, AggregatingStateDescriptor
from flinkcore.errors import ConfigurationError, LifecycleError, SchemaError
from flinkcore.operators.state import KeyedStateBackend


@pytest.fixture
def backend() -> KeyedStateBackend:
    backend = new_backend()
    backend.set_current_key(1)
    return backend


@pytest.fixture
def state(backend: KeyedStateBackend) -> AggregatingState[float, float]:
    state: AggregatingState[float, float] = backend.get_or_create_keyed_state(
        AggregatingStateDescriptor("a", Average(), Declared(list))
    )
    return state


def test_there_is_nothing_before_the_first_value(state: AggregatingState[float, float]) -> None:
    assert state.get() is None


def test_the_result_is_that_of_all_values_of_the_key(
    backend: KeyedStateBackend, state: AggregatingState[float, float]
) -> None:
    for value in (1, 2, 6):
        state.add(value)
    backend.set_current_key(2)
    state.add(10)
    assert state.get() == 10
    backend.set_current_key(1)
    assert state.get() == 3


def test_adding_none_and_clear_remove_all(state: AggregatingState[float, float]) -> None:
    state.add(1)
    state.add(None)  # type: ignore[arg-type]
    assert state.get() is None
    state.add(5)
    assert state.get() == 5
    state.clear()
    assert state.get() is None


def test_the_state_holds_accumulators(
    backend: KeyedStateBackend, state: AggregatingState[float, float]
) -> None:
    state.add(4)
    state.add(6)
    assert list(backend.snapshot()["a"].entries()) == [(1, None, [10, 2])]


def test_an_accumulator_of_another_type_is_refused(backend: KeyedStateBackend) -> None:
    state = backend.get_or_create_keyed_state(AggregatingStateDescriptor("typed", Average(), Declared(tuple)))
    with pytest.raises(SchemaError, match="accumulators of the state 'typed' are TUPLE, but"):
        state.add(1)
    assert state.get() is None


def test_what_is_no_aggregate_function_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="the aggregating state 'a' takes an AggregateFunction, not"):
        AggregatingStateDescriptor("a", max)  # type: ignore[arg-type]


def test_use_without_a_current_key_is_an_error(
    backend: KeyedStateBackend, state: AggregatingState[float, float]
) -> None:
    backend.key_context.clear_current_key()
    for use in (state.get, lambda: state.add(1), state.clear):
        with pytest.raises(LifecycleError, match="'a' was used without a current key"):
            use()


def test_merged_namespaces_are_merged_as_accumulators(backend: KeyedStateBackend) -> None:
    descriptor = AggregatingStateDescriptor("a", Average())
    for namespace, value in {"x": 1, "y": 2, "target": 6}.items():
        backend.get_partitioned_state(namespace, descriptor).add(value)
    state = backend.get_partitioned_state("target", descriptor)
    state.merge_namespaces("target", ["x", "y"])
    assert state.get() == 3
    assert list(backend.snapshot()["a"].entries()) == [(1, "target", [9, 3])]
