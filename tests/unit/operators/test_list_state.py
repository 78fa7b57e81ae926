"""HeapListState."""

import pytest
from equipment.declared_types import Declared
from equipment.keyed_backends import new_backend

from flinkcore.datastream.state import ListState, ListStateDescriptor
from flinkcore.errors import LifecycleError, SchemaError
from flinkcore.operators.state import KeyedStateBackend


@pytest.fixture
def backend() -> KeyedStateBackend:
    backend = new_backend()
    backend.set_current_key(1)
    return backend


@pytest.fixture
def state(backend: KeyedStateBackend) -> ListState[int]:
    state: ListState[int] = backend.get_or_create_keyed_state(ListStateDescriptor("l"))
    return state


def test_a_list_is_empty_before_the_first_element(state: ListState[int]) -> None:
    assert state.get() == []
    assert list(state) == []


def test_elements_come_in_the_order_they_were_added(state: ListState[int]) -> None:
    state.add(3)
    state.add_all([1, 2])
    state.add(3)
    assert state.get() == [3, 1, 2, 3]
    assert list(state) == [3, 1, 2, 3]


def test_update_replaces_all_elements(state: ListState[int]) -> None:
    state.add(3)
    state.update([1, 2])
    assert state.get() == [1, 2]


@pytest.mark.parametrize("how", ["clear", "update"])
def test_clear_and_an_update_with_no_elements_empty_the_list(
    backend: KeyedStateBackend, state: ListState[int], how: str
) -> None:
    state.add(3)
    state.clear() if how == "clear" else state.update([])
    assert state.get() == []
    assert len(backend.snapshot()["l"]) == 0


def test_adding_no_elements_leaves_nothing(backend: KeyedStateBackend, state: ListState[int]) -> None:
    state.add_all([])
    assert len(backend.snapshot()["l"]) == 0


def test_lists_given_and_taken_are_the_callers_own(state: ListState[int]) -> None:
    given = [1, 2]
    state.update(given)
    given.append(3)
    state.get().append(4)
    assert state.get() == [1, 2]


def test_elements_may_be_added_while_the_list_is_iterated_over(state: ListState[int]) -> None:
    state.update([1, 2])
    for element in state:
        state.add(element + 10)
    assert state.get() == [1, 2, 11, 12]


def test_a_list_can_be_given_a_generator(state: ListState[int]) -> None:
    state.add_all(i for i in range(3))
    state.update(i + 1 for i in state)
    assert state.get() == [1, 2, 3]


def test_none_is_refused_as_an_element_and_nothing_is_added(state: ListState[int]) -> None:
    state.add(1)
    for refused in (
        lambda: state.add(None),  # type: ignore[arg-type]
        lambda: state.add_all([2, None]),  # type: ignore[list-item]
        lambda: state.update([2, None]),  # type: ignore[list-item]
    ):
        with pytest.raises(SchemaError, match="None cannot be an element of the list state 'l'"):
            refused()
    for refused_list in (state.add_all, state.update):
        with pytest.raises(SchemaError, match="takes several elements, not None"):
            refused_list(None)  # type: ignore[arg-type]
    assert state.get() == [1]


def test_an_element_of_another_type_is_refused_and_nothing_is_added(backend: KeyedStateBackend) -> None:
    state = backend.get_or_create_keyed_state(ListStateDescriptor("ints", Declared(int)))
    state.add(1)
    with pytest.raises(SchemaError, match="elements of the state 'ints' are INT, but 'x' is str"):
        state.add_all([2, "x"])
    assert state.get() == [1]


def test_use_without_a_current_key_is_an_error(backend: KeyedStateBackend, state: ListState[int]) -> None:
    backend.key_context.clear_current_key()
    for use in (state.get, lambda: state.add(1), lambda: state.add_all([1]), lambda: state.update([1])):
        with pytest.raises(LifecycleError, match="'l' was used without a current key"):
            use()


def test_merged_namespaces_are_concatenated_in_the_order_given_after_the_target(
    backend: KeyedStateBackend,
) -> None:
    descriptor: ListStateDescriptor[int] = ListStateDescriptor("l")
    for namespace, elements in {"a": [1], "b": [2, 3], "target": [9]}.items():
        backend.get_partitioned_state(namespace, descriptor).update(elements)
    state = backend.get_partitioned_state("target", descriptor)
    state.merge_namespaces("target", ["b", "a", "unknown"])
    assert state.get() == [9, 2, 3, 1]
    assert list(backend.snapshot()["l"].entries()) == [(1, "target", [9, 2, 3, 1])]
