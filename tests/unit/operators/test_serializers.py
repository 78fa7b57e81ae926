"""Values of types that no column holds: written by a serializer that the descriptor names, and read by it only."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from equipment.checkpoints import write_checkpoint
from equipment.declared_types import Declared
from equipment.keyed_backends import new_backend

from flinkcore.checkpoint import Checkpoint, OperatorSnapshot
from flinkcore.common import PickleSerializer, Serializer, Time
from flinkcore.datastream.functions import AggregateFunction
from flinkcore.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from flinkcore.errors import ConfigurationError, SchemaError, SourceError, UserCodeError
from flinkcore.operators.state import KeyedStateBackend, OperatorStateBackend, SerializedValue

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)


class FractionSerializer(Serializer):
    """Fractions as text."""

    name = "fraction"

    def serialize(self, value: Fraction) -> bytes:
        return str(value).encode()

    def deserialize(self, data: bytes) -> Fraction:
        return Fraction(data.decode())


class Total(AggregateFunction[Fraction, Fraction, Fraction]):
    def create_accumulator(self) -> Fraction:
        return Fraction(0)

    def add(self, value: Fraction, accumulator: Fraction) -> Fraction:
        return value + accumulator

    def get_result(self, accumulator: Fraction) -> Fraction:
        return accumulator

    def merge(self, acc_a: Fraction, acc_b: Fraction) -> Fraction:
        return acc_a + acc_b


def descriptors(type_info: Any) -> list[StateDescriptor]:
    return [
        ValueStateDescriptor("value", type_info),
        ListStateDescriptor("list", type_info),
        MapStateDescriptor("map", type_info, type_info),
        ReducingStateDescriptor("reducing", lambda a, b: a + b, type_info),
        AggregatingStateDescriptor("aggregating", Total(), type_info),
    ]


def fill(backend: KeyedStateBackend, found: list[StateDescriptor], namespace: Any) -> None:
    backend.set_current_key(2)
    value, list_, map_, reducing, aggregating = (backend.get_partitioned_state(namespace, d) for d in found)
    value.update(HALF)
    list_.update([HALF, THIRD])
    map_.put_all({HALF: THIRD, THIRD: None})
    for summing in (reducing, aggregating):
        summing.add(HALF)
        summing.add(THIRD)


def held(backend: KeyedStateBackend, found: list[StateDescriptor], namespace: Any) -> list[Any]:
    backend.set_current_key(2)
    value, list_, map_, reducing, aggregating = (backend.get_partitioned_state(namespace, d) for d in found)
    return [value.value(), list_.get(), dict(map_.items()), reducing.get(), aggregating.get()]


def checkpointed(backend: KeyedStateBackend, path: Path) -> dict[str, Any]:
    """The keyed state of a backend, through a file."""
    checkpoint = write_checkpoint(path, {"op": [OperatorSnapshot((0, 7), keyed_state=backend.snapshot())]})
    (snapshot,) = checkpoint.restore("op", (0, 7), checkpoint.max_parallelism)
    return dict(snapshot.keyed_state)


@pytest.mark.parametrize("serializer", [PickleSerializer(), FractionSerializer()], ids=lambda s: s.name)
@pytest.mark.parametrize("namespace", [None, "w"])
@pytest.mark.parametrize("ttl", [False, True])
def test_every_kind_of_state_goes_through_a_serializer(
    tmp_path: Path, serializer: Serializer, namespace: Any, ttl: bool
) -> None:
    def declared() -> list[StateDescriptor]:
        found = descriptors(serializer)
        for descriptor in found:
            if ttl:
                descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(5)).build())
        return found

    backend = new_backend()
    fill(backend, declared(), namespace)
    expected = held(backend, declared(), namespace)
    assert expected[:2] == [HALF, [HALF, THIRD]]
    snapshot = checkpointed(backend, tmp_path)
    assert all(state.is_serialized for state in snapshot.values())
    restored = new_backend()
    restored.restore(snapshot)
    assert held(restored, declared(), namespace) == expected


def test_states_nobody_asks_for_stay_as_they_were_written(tmp_path: Path) -> None:
    backend = new_backend()
    fill(backend, descriptors(PickleSerializer()), None)
    passing = new_backend()
    passing.restore(checkpointed(backend, tmp_path / "1"))
    last = new_backend()
    last.restore(checkpointed(passing, tmp_path / "2"))
    found = descriptors(PickleSerializer())
    assert held(last, found, None) == held(backend, found, None)


class Alarm:
    """Tells when it is read from a pickle."""

    def __reduce__(self) -> Any:
        return (_ring, ())


def _ring() -> None:
    raise AssertionError("a pickle was read that nobody asked for")


@pytest.mark.parametrize("type_info", [None, Declared(int), FractionSerializer()])
@pytest.mark.parametrize("kind", [ValueStateDescriptor, ListStateDescriptor])
def test_a_pickle_is_read_only_where_the_descriptor_names_it(
    tmp_path: Path, type_info: Any, kind: Any
) -> None:
    backend = new_backend()
    backend.set_current_key(2)
    state = backend.get_or_create_keyed_state(kind("v", PickleSerializer()))
    state.update(Alarm() if kind is ValueStateDescriptor else [Alarm()])
    restored = new_backend()
    restored.restore(checkpointed(backend, tmp_path))
    with pytest.raises(
        ConfigurationError, match="written by the serializer 'pickle', but its descriptor names"
    ):
        restored.get_or_create_keyed_state(kind("v", type_info))
    with pytest.raises(UserCodeError, match="cannot read what it wrote: a pickle was read"):
        restored.get_or_create_keyed_state(kind("v", PickleSerializer()))


def test_values_that_columns_hold_need_no_serializer_but_may_get_one(tmp_path: Path) -> None:
    backend = new_backend()
    backend.set_current_key(2)
    backend.get_or_create_keyed_state(ValueStateDescriptor("v")).update(5)
    restored = new_backend()
    restored.restore(checkpointed(backend, tmp_path))
    restored.set_current_key(2)
    assert restored.get_or_create_keyed_state(ValueStateDescriptor("v", PickleSerializer())).value() == 5
    assert restored.snapshot()["v"].is_serialized


def test_without_a_serializer_the_error_names_state_and_remedy(tmp_path: Path) -> None:
    backend = new_backend()
    backend.set_current_key(2)
    backend.get_or_create_keyed_state(ValueStateDescriptor("v")).update(HALF)
    with pytest.raises(
        SchemaError, match=r"value of the state 'v': Fraction\(1, 2\) is fractions.Fraction, .*PickleSer"
    ):
        checkpointed(backend, tmp_path)
    with pytest.raises(SourceError, match="is not a checkpoint"):
        Checkpoint.open(tmp_path)


def test_restored_values_of_another_type_than_the_declared_one_are_refused(tmp_path: Path) -> None:
    backend = new_backend()
    backend.set_current_key(2)
    backend.get_or_create_keyed_state(ValueStateDescriptor("v")).update("text")
    backend.get_or_create_keyed_state(MapStateDescriptor("m")).put("text", 1)
    restored = new_backend()
    restored.restore(checkpointed(backend, tmp_path))
    with pytest.raises(SchemaError, match="the values of the state 'v' are INT, but 'text' is str"):
        restored.get_or_create_keyed_state(ValueStateDescriptor("v", Declared(int)))
    with pytest.raises(SchemaError, match="the map keys of the state 'm' are INT, but 'text' is str"):
        restored.get_or_create_keyed_state(MapStateDescriptor("m", Declared(int)))
    restored.set_current_key(2)
    assert restored.get_or_create_keyed_state(ValueStateDescriptor("v", Declared(str))).value() == "text"


class Broken(Serializer):
    name = "broken"

    def serialize(self, value: Any) -> bytes:
        if value == HALF:
            raise KeyError("no such fraction")
        return str(value)  # type: ignore[return-value]

    def deserialize(self, data: bytes) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("value", "message"),
    [(HALF, r"'broken' of the state 'v' failed on Fraction\(1, 2\)"), (THIRD, "gave str for Fraction")],
)
def test_a_serializer_that_fails_is_told_with_the_value(value: Any, message: str) -> None:
    backend = new_backend()
    backend.set_current_key(2)
    backend.get_or_create_keyed_state(ValueStateDescriptor("v", Broken())).update(value)
    with pytest.raises(UserCodeError, match=message):
        backend.snapshot()


class Unnamed(PickleSerializer):
    name = ""


def test_a_serializer_without_a_name_is_told() -> None:
    backend = new_backend()
    backend.set_current_key(2)
    backend.get_or_create_keyed_state(ValueStateDescriptor("v", Unnamed())).update(1)
    with pytest.raises(ConfigurationError, match=r"Unnamed\(\) of the state 'v' has no name"):
        backend.snapshot()


def test_serializers_of_one_class_are_one_type() -> None:
    backend = new_backend()
    state = backend.get_or_create_keyed_state(ValueStateDescriptor("v", FractionSerializer()))
    assert backend.get_or_create_keyed_state(ValueStateDescriptor("v", FractionSerializer())) is state
    assert hash(FractionSerializer()) == hash(FractionSerializer())
    with pytest.raises(ConfigurationError, match="another kind, type"):
        backend.get_or_create_keyed_state(ValueStateDescriptor("v", PickleSerializer()))


def test_operator_states_go_through_a_serializer(tmp_path: Path) -> None:
    def declared(type_info: Any) -> tuple[Any, Any]:
        return ListStateDescriptor("list", type_info), MapStateDescriptor("map", type_info, type_info)

    backend = OperatorStateBackend()
    list_, map_ = declared(PickleSerializer())
    backend.get_list_state(list_).update([HALF, THIRD])
    backend.get_broadcast_state(map_).put_all({HALF: THIRD})
    checkpoint = write_checkpoint(tmp_path, {"op": [OperatorSnapshot(operator_state=backend.snapshot())]})
    (state,) = checkpoint.operator_states("op", 1)
    assert isinstance(state["list"].elements[0], SerializedValue)
    restored = OperatorStateBackend()
    restored.restore(state)
    with pytest.raises(ConfigurationError, match="written by the serializer 'pickle'"):
        restored.get_list_state(declared(None)[0])
    with pytest.raises(ConfigurationError, match="map keys of the restored state 'map'"):
        restored.get_broadcast_state(MapStateDescriptor("map", None, PickleSerializer()))
    assert restored.get_list_state(list_).get() == [HALF, THIRD]
    assert dict(restored.get_broadcast_state(map_).items()) == {HALF: THIRD}


def test_restored_elements_of_another_type_than_the_declared_one_are_refused() -> None:
    backend = OperatorStateBackend()
    backend.get_list_state(ListStateDescriptor("list")).update(["text"])
    restored = OperatorStateBackend()
    restored.restore(backend.snapshot())
    with pytest.raises(SchemaError, match="INT, but 'text' is str"):
        restored.get_list_state(ListStateDescriptor("list", Declared(int)))
