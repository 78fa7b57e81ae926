"""KeyedStateBackend and DefaultKeyedStateStore: states by name, snapshots, restoring, forgetting."""

from dataclasses import replace
from typing import Any

import pytest
from equipment.declared_types import Declared
from equipment.keyed_backends import KEY_GROUPS, Average, key_group_of, new_backend

from flinkcore.common import Time
from flinkcore.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from flinkcore.errors import ConfigurationError, DataError, LifecycleError
from flinkcore.operators.keys.key_context import KeyContext
from flinkcore.operators.state import DefaultKeyedStateStore, KeyedStateBackend
from flinkcore.operators.timers.processing_time import DrivenProcessingTimeService

TTL = StateTtlConfig.new_builder(Time.milliseconds(10))


def with_ttl(descriptor: StateDescriptor, config: StateTtlConfig) -> StateDescriptor:
    descriptor.enable_time_to_live(config)
    return descriptor


def filled(descriptor: StateDescriptor | None = None, n_keys: int = 12) -> KeyedStateBackend:
    backend = new_backend()
    state = backend.get_or_create_keyed_state(descriptor or ValueStateDescriptor("v"))
    for key in range(n_keys):
        backend.set_current_key(key)
        state.update(key)
    return backend


def entries(backend: KeyedStateBackend, name: str = "v") -> list[tuple[Any, ...]]:
    return sorted(backend.snapshot()[name].entries(), key=repr)


def test_the_same_name_gives_the_same_state() -> None:
    backend = new_backend()
    state = backend.get_or_create_keyed_state(ValueStateDescriptor("v", Declared(int)))
    assert backend.get_or_create_keyed_state(ValueStateDescriptor("v", Declared(int))) is state


@pytest.mark.parametrize(
    "other",
    [
        ListStateDescriptor("v"),
        ValueStateDescriptor("v", Declared(int)),
        with_ttl(ValueStateDescriptor("v"), TTL.build()),
        MapStateDescriptor("v"),
    ],
)
def test_the_same_name_with_another_descriptor_is_an_error(other: StateDescriptor) -> None:
    backend = new_backend()
    backend.get_or_create_keyed_state(ValueStateDescriptor("v"))
    with pytest.raises(ConfigurationError, match="state 'v' was declared as ValueStateDescriptor"):
        backend.get_or_create_keyed_state(other)


def test_a_function_may_be_another_object_each_time() -> None:
    backend = new_backend()
    state = backend.get_or_create_keyed_state(ReducingStateDescriptor("r", lambda a, b: a))
    assert backend.get_or_create_keyed_state(ReducingStateDescriptor("r", lambda a, b: a)) is state


@pytest.mark.parametrize("wrong", ["v", None, ValueStateDescriptor])
def test_a_state_is_asked_for_by_a_descriptor(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="a state is asked for by its descriptor"):
        new_backend().get_or_create_keyed_state(wrong)


@pytest.mark.parametrize("name", ["", None, 5])
def test_a_state_has_a_name(name: Any) -> None:
    with pytest.raises(ConfigurationError, match="the name of a state is a text"):
        ValueStateDescriptor(name)


@pytest.mark.parametrize("wrong", [int, "LONG", Declared])
def test_a_type_is_a_type_information(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="the type of the state 'v' is a TypeInformation"):
        ValueStateDescriptor("v", wrong)


def test_a_store_gives_every_kind_of_state_in_the_void_namespace() -> None:
    backend = new_backend()
    store = DefaultKeyedStateStore(backend)
    backend.set_current_key(1)
    store.get_state(ValueStateDescriptor("v")).update(1)
    store.get_list_state(ListStateDescriptor("l")).add(2)
    store.get_map_state(MapStateDescriptor("m")).put("a", 3)
    store.get_reducing_state(ReducingStateDescriptor("r", max)).add(4)
    store.get_aggregating_state(AggregatingStateDescriptor("a", Average())).add(5)
    assert {name: list(snapshot.entries()) for name, snapshot in backend.snapshot().items()} == {
        "v": [(1, None, 1)],
        "l": [(1, None, [2])],
        "m": [(1, None, {"a": 3})],
        "r": [(1, None, 4)],
        "a": [(1, None, [5, 1])],
    }
    assert backend.state_names == ["v", "l", "m", "r", "a"]


def test_a_store_refuses_a_descriptor_of_another_kind() -> None:
    with pytest.raises(ConfigurationError, match="asked for by a ValueStateDescriptor, not by ListState"):
        DefaultKeyedStateStore(new_backend()).get_state(ListStateDescriptor("l"))  # type: ignore[arg-type]


def test_a_snapshot_has_every_entry_with_its_key_group() -> None:
    snapshot = filled().snapshot()["v"]
    assert snapshot.type is StateDescriptor.Type.VALUE
    assert snapshot.ttl_time is None
    assert list(snapshot.entries()) == [(key, None, key) for key in range(12)]
    assert snapshot.key_groups.tolist() == [key_group_of(key) for key in range(12)]
    assert len(snapshot) == 12


def test_a_snapshot_of_some_key_groups_has_their_entries_only() -> None:
    backend = filled()
    some = backend.snapshot((2, 3))["v"]
    assert list(some.entries()) == [(key, None, key) for key in (2, 3, 8, 9)]
    assert list(backend.snapshot()["v"].of_key_groups(2, 3).entries()) == list(some.entries())


def test_a_snapshot_does_not_change_with_the_state() -> None:
    backend = new_backend()
    backend.set_current_key(1)
    elements = backend.get_or_create_keyed_state(ListStateDescriptor("l"))
    entries = backend.get_or_create_keyed_state(MapStateDescriptor("m"))
    elements.add(1)
    entries.put("a", 1)
    snapshot = backend.snapshot()
    restored = new_backend()
    restored.restore(snapshot)
    for changed in (backend, restored):
        changed.set_current_key(1)
        changed.get_or_create_keyed_state(ListStateDescriptor("l")).add(2)
        changed.get_or_create_keyed_state(MapStateDescriptor("m")).put("b", 2)
    assert list(snapshot["l"].entries()) == [(1, None, [1])]
    assert list(snapshot["m"].entries()) == [(1, None, {"a": 1})]


def test_a_backend_takes_what_a_snapshot_has_for_its_key_groups() -> None:
    snapshot = filled().snapshot()
    parts = [new_backend(key_group_range=range_) for range_ in ((0, 1), (2, KEY_GROUPS - 1))]
    for part in parts:
        part.restore(snapshot)
    assert entries(parts[0]) == sorted(((key, None, key) for key in (0, 1, 6, 7)), key=repr)
    whole = new_backend()
    for part in parts:
        whole.restore(part.snapshot())
    assert entries(whole) == entries(filled())
    state = whole.get_or_create_keyed_state(ValueStateDescriptor("v"))
    whole.set_current_key(7)
    assert state.value() == 7


def test_a_restored_key_in_the_key_group_of_another_is_refused() -> None:
    entries_of_v = filled().snapshot()["v"]
    moved = replace(entries_of_v, key_groups=(entries_of_v.key_groups + 1) % KEY_GROUPS)
    with pytest.raises(
        DataError, match=r"the key .* of the snapshot is in the key group \d+, but belongs to \d+"
    ):
        new_backend().restore({"v": moved})


def test_a_restored_key_that_comes_twice_is_refused() -> None:
    once = filled().snapshot()["v"]
    with pytest.raises(DataError, match="the state 'v' has two entries for one key"):
        new_backend().restore({"v": once.followed_by(once)})


def test_states_nobody_asks_for_are_in_the_next_snapshot() -> None:
    backend = new_backend()
    backend.restore(filled().snapshot())
    assert backend.state_names == ["v"]
    assert entries(backend) == entries(filled())


def test_namespaces_are_restored() -> None:
    backend = new_backend()
    backend.set_current_key(1)
    descriptor: ValueStateDescriptor[str] = ValueStateDescriptor("v")
    for window in (None, (0, 10), (10, 20)):
        backend.get_partitioned_state(window, descriptor).update(str(window))
    restored = new_backend()
    restored.restore(backend.snapshot())
    restored.set_current_key(1)
    for window in (None, (0, 10), (10, 20)):
        assert restored.get_partitioned_state(window, descriptor).value() == str(window)


def test_a_state_in_use_cannot_be_restored() -> None:
    backend = filled()
    with pytest.raises(LifecycleError, match="the state 'v' was in use before it was restored"):
        backend.restore(filled().snapshot())


def test_a_state_is_restored_as_the_kind_it_was() -> None:
    backend = new_backend()
    backend.restore(filled().snapshot())
    with pytest.raises(
        ConfigurationError, match="'v' was restored as a value state, but is declared as List"
    ):
        backend.get_or_create_keyed_state(ListStateDescriptor("v"))


def test_snapshots_that_disagree_on_a_state_are_refused() -> None:
    elements = new_backend()
    elements.get_or_create_keyed_state(ListStateDescriptor("v"))
    backend = new_backend()
    backend.restore(filled().snapshot())
    with pytest.raises(
        DataError, match="two snapshots disagree on the kind or the time to live of the state 'v'"
    ):
        backend.restore(elements.snapshot())


def test_a_snapshot_with_more_key_groups_is_refused() -> None:
    more = KeyedStateBackend(KeyContext(100, key_group_of=lambda key: 99), DrivenProcessingTimeService())
    more.set_current_key(1)
    more.get_or_create_keyed_state(ValueStateDescriptor("v")).update(1)
    with pytest.raises(DataError, match="has the key group 99, but there are only 6"):
        new_backend().restore(more.snapshot())


@pytest.mark.parametrize("characteristic", list(StateTtlConfig.TtlTimeCharacteristic))
def test_stamps_are_restored(characteristic: StateTtlConfig.TtlTimeCharacteristic) -> None:
    config = TTL.set_ttl_time_characteristic(characteristic).build()
    clock = DrivenProcessingTimeService(100)
    backend = new_backend(clock)
    backend.advance_watermark(100)
    backend.set_current_key(1)
    backend.get_or_create_keyed_state(with_ttl(ValueStateDescriptor("v"), config)).update("x")
    snapshot = backend.snapshot()
    assert snapshot["v"].ttl_time is characteristic
    assert list(snapshot["v"].entries()) == [(1, None, ("x", 100))]
    for now, expected in ((109, "x"), (110, None)):
        restored = new_backend(DrivenProcessingTimeService(now))
        restored.restore(snapshot)
        state = restored.get_or_create_keyed_state(with_ttl(ValueStateDescriptor("v"), config))
        restored.set_current_key(1)
        restored.advance_watermark(now)
        assert state.value() == expected


def test_restored_values_live_from_now_on_where_the_time_to_live_is_new() -> None:
    clock = DrivenProcessingTimeService(500)
    backend = new_backend(clock)
    backend.restore(filled().snapshot())
    state = backend.get_or_create_keyed_state(
        with_ttl(ValueStateDescriptor("v"), TTL.use_processing_time().build())
    )
    backend.set_current_key(3)
    clock.advance_to(509)
    assert state.value() == 3
    clock.advance_to(510)
    assert state.value() is None


def test_restored_values_stay_where_the_time_to_live_is_gone() -> None:
    config = TTL.use_processing_time().build()
    clock = DrivenProcessingTimeService(1000)
    backend = new_backend(clock)
    backend.restore(filled(with_ttl(ValueStateDescriptor("v"), config)).snapshot())
    state = backend.get_or_create_keyed_state(ValueStateDescriptor("v"))
    backend.set_current_key(3)
    assert state.value() == 3
    assert backend.snapshot()["v"].ttl_time is None


def test_keys_are_forgotten_with_their_last_value() -> None:
    backend = new_backend(first_sweep=4)
    descriptor: ValueStateDescriptor[int] = ValueStateDescriptor("v")
    for key in range(1000):
        backend.set_current_key(key)
        state = backend.get_partitioned_state("w" if key % 2 else None, descriptor)
        state.update(key)
        if key >= 10:
            state.clear()
    assert len(backend.key_context) < 60
    assert entries(backend) == sorted(((key, "w" if key % 2 else None, key) for key in range(10)), key=repr)
    backend._check()


def test_windows_that_are_cleared_leave_nothing() -> None:
    backend = new_backend()
    backend.set_current_key(1)
    descriptor: ValueStateDescriptor[int] = ValueStateDescriptor("v")
    for window in range(100):
        state = backend.get_partitioned_state(window, descriptor)
        state.update(window)
        state.clear()
    for window in range(100, 200):
        backend.get_partitioned_state(window, descriptor).value()
    assert len(backend._tables["v"]._by_namespace) <= 1
    backend._check()


# ---- what is held, whatever the current key ----


def test_what_is_held_is_looked_up_and_counted_by_namespace() -> None:
    backend = new_backend()
    for namespace, keys in (("w1", (1, 2)), ("w2", (2,)), (None, (3,))):
        for key in keys:
            backend.set_current_key(key)
            backend.get_partitioned_state(namespace, ListStateDescriptor("l")).add(key * 10)
    backend.set_current_key(5)
    assert backend.look_up("l", 2, "w1") == [20]
    assert backend.look_up("l", 2) is None
    assert backend.look_up("l", 4, "no window") is None
    assert (sorted(backend.get_keys("l")), backend.get_keys("l", "w2"), backend.get_keys("l", None)) == (
        [1, 2, 3],
        [2],
        [3],
    )
    assert [backend.num_key_value_state_entries(n) for n in (..., "w1", "w2", None, "w3")] == [4, 2, 1, 1, 0]
    assert backend.key_context.current_key == 5


def test_restored_state_is_looked_up_before_it_is_asked_for() -> None:
    clock = DrivenProcessingTimeService(100)
    before = new_backend(clock)
    descriptor = with_ttl(MapStateDescriptor("m"), TTL.build())
    before.set_current_key(1)
    before.get_or_create_keyed_state(descriptor).put("a", 5)
    backend = new_backend(clock)
    backend.restore(before.snapshot())
    assert (backend.look_up("m", 1), backend.has_time_to_live("m")) == ({"a": 5}, True)
    clock.advance_to(110)
    assert (before.look_up("m", 1), before.get_keys("m")) == (None, [])


def test_a_key_of_another_operator_cannot_be_looked_up() -> None:
    backend = new_backend(key_group_range=(0, 2))
    backend.get_or_create_keyed_state(ValueStateDescriptor("v"))
    with pytest.raises(DataError, match="the key 5 is in key group 5, outside"):
        backend.look_up("v", 5)
