"""HeapValueState."""

from typing import Any

import pytest
from equipment.declared_types import Declared
from equipment.keyed_backends import new_backend

from flinkcore.common import Time, TypeInformation, Types
from flinkcore.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from flinkcore.errors import LifecycleError, SchemaError


def test_there_is_no_value_before_the_first_update() -> None:
    backend = new_backend()
    state = backend.get_or_create_keyed_state(ValueStateDescriptor("v"))
    backend.set_current_key(1)
    assert state.value() is None


def test_every_key_has_its_own_value() -> None:
    backend = new_backend()
    state = backend.get_or_create_keyed_state(ValueStateDescriptor("v"))
    for key in range(20):
        backend.set_current_key(key)
        state.update(key * 10)
    for key in range(20):
        backend.set_current_key(key)
        assert state.value() == key * 10


def test_false_and_zero_are_values() -> None:
    backend = new_backend()
    state = backend.get_or_create_keyed_state(ValueStateDescriptor("v"))
    backend.set_current_key(1)
    for value in (0, False, "", ()):
        state.update(value)
        assert state.value() == value
        assert state.value() is not None


@pytest.mark.parametrize("how", ["clear", "update"])
def test_clear_and_an_update_with_none_remove_the_value_of_the_current_key_only(how: str) -> None:
    backend = new_backend()
    state = backend.get_or_create_keyed_state(ValueStateDescriptor("v"))
    for key in (1, 2):
        backend.set_current_key(key)
        state.update(key)
    state.clear() if how == "clear" else state.update(None)
    assert state.value() is None
    backend.set_current_key(1)
    assert state.value() == 1


@pytest.mark.parametrize("how", ["value", "update", "remove", "clear"])
def test_use_without_a_current_key_is_an_error_that_names_the_state(how: str) -> None:
    backend = new_backend()
    state = backend.get_or_create_keyed_state(ValueStateDescriptor("total"))
    backend.set_current_key(1)
    state.update(5)
    backend.key_context.clear_current_key()
    with pytest.raises(LifecycleError, match="'total' was used without a current key"):
        {
            "value": state.value,
            "update": lambda: state.update(1),
            "remove": lambda: state.update(None),
            "clear": state.clear,
        }[how]()
    backend.set_current_key(1)
    assert state.value() == 5


def test_a_value_of_another_type_is_refused_and_the_old_one_stays() -> None:
    backend = new_backend()
    state = backend.get_or_create_keyed_state(ValueStateDescriptor("total", Declared(int)))
    backend.set_current_key(1)
    state.update(5)
    with pytest.raises(SchemaError, match="values of the state 'total' are INT, but 'five' is str"):
        state.update("five")
    assert state.value() == 5


def test_every_namespace_has_its_own_value() -> None:
    backend = new_backend()
    descriptor = ValueStateDescriptor("v")
    for namespace in (None, (0, 10), (10, 20)):
        backend.set_current_key(1)
        backend.get_partitioned_state(namespace, descriptor).update(str(namespace))
    for namespace in (None, (0, 10), (10, 20)):
        assert backend.get_partitioned_state(namespace, descriptor).value() == str(namespace)
    backend.set_current_key(2)
    assert backend.get_partitioned_state((0, 10), descriptor).value() is None


@pytest.mark.parametrize(("declared", "bits"), [(Types.BYTE(), 8), (Types.INT(), 32), (Types.LONG(), 64)])
def test_whole_numbers_with_more_bits_than_their_type_are_refused(
    declared: TypeInformation, bits: int
) -> None:
    backend = new_backend()
    state = backend.get_or_create_keyed_state(ValueStateDescriptor("n", declared))
    backend.set_current_key(1)
    largest = 2 ** (bits - 1) - 1
    for value in (largest, -largest - 1, 0, True):
        state.update(value)
        assert state.value() is value
    for value in (largest + 1, -largest - 2):
        message = f"values of the state 'n' are {declared!r}, but {value} has {bits} bits beside its sign"
        with pytest.raises(SchemaError, match=message):
            state.update(value)
    with pytest.raises(SchemaError, match=r"but 1\.5 is float"):
        state.update(1.5)


@pytest.mark.parametrize("ttl", [None, StateTtlConfig.new_builder(Time.days(1)).build()])
def test_what_is_declared_a_list_is_kept_as_a_list_as_in_pyflink(ttl: StateTtlConfig | None) -> None:
    backend = new_backend()
    backend.set_current_key(1)
    numbers = Types.LIST(Types.INT())

    def state_of(descriptor: Any) -> Any:
        if ttl is not None:
            descriptor.enable_time_to_live(ttl)
        return backend.get_or_create_keyed_state(descriptor)

    value = state_of(ValueStateDescriptor("value", numbers))
    elements = state_of(ListStateDescriptor("list", numbers))
    entries = state_of(MapStateDescriptor("map", Types.STRING(), numbers))
    reduced = state_of(ReducingStateDescriptor("reduced", lambda one, other: other, numbers))
    for given in ((1, 2), {1: "a", 2: "b"}.keys(), range(1, 3)):
        value.update(given)
        elements.update([given])
        elements.add(given)
        entries.put("a", given)
        entries.put_all({"b": given})
        reduced.add(given)
        kept = [value.value(), *elements.get(), entries.get("a"), entries.get("b"), reduced.get()]
        assert kept == [[1, 2]] * 6
    value.update(number for number in (3, 4))
    assert value.value() == value.value() == [3, 4]
    with pytest.raises(SchemaError, match="but 'ab' is str"):
        value.update("ab")
    value.update(None)
    assert value.value() is None
