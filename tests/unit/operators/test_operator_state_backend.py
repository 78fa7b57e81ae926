"""OperatorStateBackend: list, union and broadcast state, and their way to other instances."""

from typing import Any

import pytest
from equipment.declared_types import Declared

from flinkcore.common import Time
from flinkcore.datastream.state import ListStateDescriptor, MapStateDescriptor, StateTtlConfig
from flinkcore.errors import ConfigurationError, DataError, LifecycleError, SchemaError
from flinkcore.operators.state import (
    DistributionMode,
    OperatorStateBackend,
    OperatorStateSnapshot,
    redistribute,
)


def snapshot_of(mode: DistributionMode, **states: list[Any]) -> dict[str, OperatorStateSnapshot]:
    return {name: OperatorStateSnapshot(mode, elements) for name, elements in states.items()}


def elements(snapshots: list[dict[str, OperatorStateSnapshot]], name: str = "s") -> list[list[Any]]:
    return [list(snapshot[name].elements) for snapshot in snapshots]


def test_a_list_state_needs_no_key() -> None:
    state = OperatorStateBackend().get_list_state(ListStateDescriptor("l"))
    assert state.get() == []
    state.add(1)
    state.add_all([2, 3])
    assert list(state) == [1, 2, 3]
    state.update([4])
    state.get().append(5)
    assert state.get() == [4]
    state.clear()
    assert state.get() == []


def test_elements_are_checked() -> None:
    state = OperatorStateBackend().get_list_state(ListStateDescriptor("l", Declared(int)))
    for refused in (lambda: state.add("x"), lambda: state.add_all([1, None]), lambda: state.update(["x"])):
        with pytest.raises(SchemaError, match="'l'"):
            refused()
    assert state.get() == []


def test_a_broadcast_state_is_a_map() -> None:
    state = OperatorStateBackend().get_broadcast_state(MapStateDescriptor("b"))
    state.put("a", 1)
    state["b"] = 2
    state.put_all({"c": 3})
    state.remove("missing")
    del state["a"]
    assert (state.get("b"), state["c"], state["a"]) == (2, 3, None)
    assert (state.contains("b"), "a" in state) == (True, False)
    assert (state.items(), state.keys(), state.values(), list(state)) == (
        [("b", 2), ("c", 3)],
        ["b", "c"],
        [2, 3],
        ["b", "c"],
    )
    state.clear()
    assert state.is_empty()


def test_entries_are_checked() -> None:
    state = OperatorStateBackend().get_broadcast_state(MapStateDescriptor("b", Declared(str), Declared(int)))
    with pytest.raises(SchemaError, match="map keys of the state 'b'"):
        state.put(1, 1)  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="values of the state 'b'"):
        state.put_all({"a": "x"})


def test_a_read_only_view_shows_every_change_and_makes_none() -> None:
    state = OperatorStateBackend().get_broadcast_state(MapStateDescriptor("rules"))
    view = state.read_only()
    state.put("a", 1)
    assert (view.get("a"), view["a"], "a" in view, list(view), view.is_empty()) == (1, 1, True, ["a"], False)
    assert not hasattr(view, "put")
    with pytest.raises(LifecycleError, match="'rules' can be changed in process_broadcast_element"):
        view.clear()
    assert view.items() == [("a", 1)]


def test_a_broadcast_function_gets_declared_states_only() -> None:
    backend = OperatorStateBackend()
    descriptor: MapStateDescriptor[str, int] = MapStateDescriptor("rules")
    backend.get_list_state(ListStateDescriptor("l"))
    state = backend.get_broadcast_state(descriptor)
    assert backend.declared_broadcast_state(descriptor) is state
    for name in ("rulez", "l"):
        with pytest.raises(ConfigurationError, match=f"no broadcast state '{name}'; there are \\['rules'\\]"):
            backend.declared_broadcast_state(MapStateDescriptor(name))


def test_the_same_name_gives_the_same_state_and_nothing_else() -> None:
    backend = OperatorStateBackend()
    state = backend.get_list_state(ListStateDescriptor("s"))
    assert backend.get_list_state(ListStateDescriptor("s")) is state
    for other in (
        lambda: backend.get_union_list_state(ListStateDescriptor("s")),
        lambda: backend.get_broadcast_state(MapStateDescriptor("s")),
        lambda: backend.get_list_state(ListStateDescriptor("s", Declared(int))),
    ):
        with pytest.raises(ConfigurationError, match="the operator state 's' was declared as"):
            other()


def test_a_descriptor_of_another_kind_or_with_a_time_to_live_is_refused() -> None:
    backend = OperatorStateBackend()
    with pytest.raises(ConfigurationError, match="asked for by a ListStateDescriptor, not by MapState"):
        backend.get_list_state(MapStateDescriptor("m"))  # type: ignore[arg-type]
    descriptor: ListStateDescriptor[int] = ListStateDescriptor("l")
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(1)).build())
    with pytest.raises(ConfigurationError, match="operator state 'l' cannot have a time to live"):
        backend.get_list_state(descriptor)


def test_what_was_snapshot_is_restored() -> None:
    backend = OperatorStateBackend()
    backend.get_list_state(ListStateDescriptor("l")).update([1, 2])
    backend.get_union_list_state(ListStateDescriptor("u")).update([3])
    backend.get_broadcast_state(MapStateDescriptor("b")).put("a", 4)
    snapshot = backend.snapshot()
    backend.get_list_state(ListStateDescriptor("l")).add(9)
    restored = OperatorStateBackend()
    restored.restore(snapshot)
    assert restored.snapshot() == snapshot
    assert restored.get_list_state(ListStateDescriptor("l")).get() == [1, 2]
    assert restored.get_union_list_state(ListStateDescriptor("u")).get() == [3]
    assert restored.get_broadcast_state(MapStateDescriptor("b")).items() == [("a", 4)]
    assert restored.snapshot() == snapshot


def test_restoring_comes_first_and_once_and_into_the_same_mode() -> None:
    snapshot = snapshot_of(DistributionMode.UNION, s=[1])
    backend = OperatorStateBackend()
    backend.restore(snapshot)
    with pytest.raises(DataError, match="'s' was restored twice"):
        backend.restore(snapshot)
    with pytest.raises(
        ConfigurationError, match="'s' was restored as union state, but is asked for as split"
    ):
        backend.get_list_state(ListStateDescriptor("s"))
    backend.get_union_list_state(ListStateDescriptor("s"))
    with pytest.raises(LifecycleError, match="'s' was in use before it was restored"):
        backend.restore(snapshot)


def test_a_split_state_stays_where_it_is_if_the_parallelism_stays() -> None:
    snapshots = [snapshot_of(DistributionMode.SPLIT_DISTRIBUTE, s=part) for part in ([1, 2, 3], [], [4])]
    assert elements(redistribute(snapshots, 3)) == [[1, 2, 3], [], [4]]


@pytest.mark.parametrize(
    ("parallelism", "expected"),
    [
        (1, [[1, 2, 3, 4, 5]]),
        (2, [[1, 2, 3], [4, 5]]),
        (4, [[1, 2], [3], [4], [5]]),
        (6, [[1], [2], [3], [4], [5], []]),
    ],
)
def test_a_split_state_is_dealt_out_in_runs(parallelism: int, expected: list[list[int]]) -> None:
    snapshots = [snapshot_of(DistributionMode.SPLIT_DISTRIBUTE, s=part) for part in ([1, 2, 3], [], [4, 5])]
    assert elements(redistribute(snapshots, parallelism)) == expected


def test_left_over_elements_of_the_next_state_go_to_the_next_instances() -> None:
    snapshots = [snapshot_of(DistributionMode.SPLIT_DISTRIBUTE, a=[1], b=[2, 3], c=[4, 5, 6, 7])]
    dealt = redistribute(snapshots, 3)
    assert elements(dealt, "a") == [[1], [], []]
    assert elements(dealt, "b") == [[], [2], [3]]
    assert elements(dealt, "c") == [[4, 5], [6], [7]]


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_every_instance_gets_the_whole_of_a_union_state(parallelism: int) -> None:
    snapshots = [snapshot_of(DistributionMode.UNION, s=part) for part in ([1, 2], [3])]
    assert elements(redistribute(snapshots, parallelism)) == [[1, 2, 3]] * parallelism


def test_every_instance_gets_one_of_the_broadcast_states() -> None:
    snapshots = [snapshot_of(DistributionMode.BROADCAST, s=[("a", i)]) for i in range(2)]
    assert elements(redistribute(snapshots, 3)) == [[("a", 0)], [("a", 1)], [("a", 0)]]
    assert elements(redistribute(snapshots, 1)) == [[("a", 0)]]


def test_instances_that_disagree_and_no_instances_are_refused() -> None:
    snapshots = [
        snapshot_of(mode, s=[1]) for mode in (DistributionMode.UNION, DistributionMode.SPLIT_DISTRIBUTE)
    ]
    with pytest.raises(DataError, match="disagree on how its state 's' is distributed"):
        redistribute(snapshots, 2)
    with pytest.raises(ConfigurationError, match="at least 1 instance, not 0"):
        redistribute([], 0)
