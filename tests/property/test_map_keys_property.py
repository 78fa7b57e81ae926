"""Map and broadcast states with keys of every type, against a model of Java's HashMap, also through checkpoints."""

from typing import Any

import numpy as np
from equipment.example_counts import examples
from equipment.keyed_backends import new_backend
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from models.map_keys import KEYS, MapModel

from flinkcore.checkpoint.state_tables import (
    keyed_state_of_table,
    keyed_state_to_table,
    operator_state_of_table,
    operator_state_to_table,
)
from flinkcore.common import Time
from flinkcore.datastream.state import MapStateDescriptor, StateTtlConfig
from flinkcore.operators.state import OperatorStateBackend

values = st.integers(0, 3)
picks = st.integers(0, 63)


class MapKeysMachine(RuleBasedStateMachine):
    @initialize(
        name=st.sampled_from(list(KEYS)),
        kind=st.sampled_from(["keyed", "ttl", "broadcast"]),
        has_checkpoints=st.booleans(),
    )
    def set_up(self, name: str, kind: str, has_checkpoints: bool) -> None:
        self.kind = kind
        self.key_type, self.keys = KEYS[name]
        self.has_checkpoints = has_checkpoints and name != "INSTANT"
        if self.has_checkpoints:  # which have no column for these
            self.keys = [key for key in self.keys if not isinstance(key, bytearray | np.generic | np.ndarray)]
        self.model = MapModel(name)
        self.start()

    def start(self) -> None:
        self.descriptor: MapStateDescriptor[Any, Any] = MapStateDescriptor("m", self.key_type)
        if self.kind == "ttl":
            self.descriptor.enable_time_to_live(
                StateTtlConfig.new_builder(Time.days(1)).update_ttl_on_read_and_write().build()
            )
        self.operator_backend = OperatorStateBackend()
        self.backend = new_backend()

    def state(self) -> Any:
        if self.kind == "broadcast":
            return self.operator_backend.get_broadcast_state(self.descriptor)
        self.backend.set_current_key(1)
        return self.backend.get_or_create_keyed_state(self.descriptor)

    def key(self, pick: int) -> Any:
        return self.keys[pick % len(self.keys)]

    @rule(pick=picks, value=values)
    def put(self, pick: int, value: int) -> None:
        self.state().put(self.key(pick), value)
        self.model.put(self.key(pick), value)

    @rule(entries=st.lists(st.tuples(picks, values), max_size=4))
    def put_all(self, entries: list[tuple[int, int]]) -> None:
        self.state().put_all([(self.key(pick), value) for pick, value in entries])
        for pick, value in entries:
            self.model.put(self.key(pick), value)

    @rule(pick=picks)
    def remove(self, pick: int) -> None:
        self.state().remove(self.key(pick))
        self.model.remove(self.key(pick))

    @rule(pick=picks)
    def read(self, pick: int) -> None:
        assert self.state().get(self.key(pick)) == self.model.get(self.key(pick))
        assert self.state().contains(self.key(pick)) == self.model.contains(self.key(pick))
        assert (self.key(pick) in self.state()) == self.model.contains(self.key(pick))

    @rule()
    def read_all(self) -> None:
        state = self.state()
        assert list(map(repr, state.items())) == self.model.items()
        assert [repr(entry) for entry in zip(state.keys(), state.values(), strict=True)] == self.model.items()
        assert state.is_empty() == (not self.model.entries)
        for key in state:
            assert state.contains(key)

    @rule(ask=st.booleans())
    def restore_a_snapshot(self, ask: bool) -> None:
        backend, operator_backend = self.backend, self.operator_backend
        self.start()
        self.backend.restore(backend.snapshot())
        self.operator_backend.restore(operator_backend.snapshot())
        if ask:
            self.state()

    @precondition(lambda self: self.has_checkpoints)
    @rule(ask=st.booleans())
    def restore_a_checkpoint(self, ask: bool) -> None:
        keyed, of_operator = self.backend.snapshot(), self.operator_backend.snapshot()
        self.start()
        for name, snapshot in keyed.items():
            self.backend.restore({name: keyed_state_of_table(keyed_state_to_table(name, snapshot))})
        for name, elements in of_operator.items():
            table = operator_state_to_table(name, elements)
            self.operator_backend.restore({name: operator_state_of_table(table)})
        if ask:
            self.state()


MapKeysMachine.TestCase.settings = settings(deadline=None, max_examples=examples(150), stateful_step_count=30)
TestMapKeys = MapKeysMachine.TestCase
