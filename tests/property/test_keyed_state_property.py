"""Keyed states against a dictionary, under random uses, clocks, watermarks, snapshots and parallelisms."""

from itertools import pairwise
from typing import Any

from equipment.example_counts import examples
from equipment.keyed_backends import KEY_GROUPS, key_group_of, new_backend
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from models.keyed_state import MAX_TIMESTAMP, KeyedStateModel, Life, Place

from flinkcore.common import Time
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
from flinkcore.operators.state import KeyedStateBackend
from flinkcore.operators.timers.processing_time import DrivenProcessingTimeService

# Few places, so that a run comes back to each of them.
keys = st.sampled_from([1, 4])
namespaces = st.sampled_from([None, None, ("w", 3)])
numbers = st.integers(0, 2)
steps = st.integers(0, 8)


class Texts(AggregateFunction[int, str, str]):
    """An accumulator that shows the order of all that was added and merged."""

    def create_accumulator(self) -> str:
        return ":"

    def add(self, value: int, accumulator: str) -> str:
        return f"{accumulator}{value}"

    def get_result(self, accumulator: str) -> str:
        return accumulator[::-1]

    def merge(self, acc_a: str, acc_b: str) -> str:
        return f"{acc_a}+{acc_b}"


def descriptors(config: StateTtlConfig | None) -> dict[str, StateDescriptor]:
    found: list[StateDescriptor] = [
        ValueStateDescriptor("value"),
        ListStateDescriptor("list"),
        MapStateDescriptor("map"),
        ReducingStateDescriptor("reducing", lambda a, b: f"{a}{b}"),
        AggregatingStateDescriptor("aggregating", Texts()),
    ]
    for descriptor in found:
        if config is not None:
            descriptor.enable_time_to_live(config)
    return {descriptor.name: descriptor for descriptor in found}


class KeyedStateMachine(RuleBasedStateMachine):
    """Backends that share the key groups out; every use goes to that of the key."""

    @initialize(
        ttl_ms=st.sampled_from([None, 5, 5, 12]),
        update_on_read=st.booleans(),
        return_expired=st.booleans(),
        event_time=st.booleans(),
        full_snapshot=st.booleans(),
        cleanup=st.sampled_from([None, (1, False), (3, True)]),
    )
    def set_up(
        self,
        ttl_ms: int | None,
        update_on_read: bool,
        return_expired: bool,
        event_time: bool,
        full_snapshot: bool,
        cleanup: tuple[int, bool] | None,
    ) -> None:
        self.config: StateTtlConfig | None = None
        self.clock = DrivenProcessingTimeService()
        # When expired values go is chance with a clean-up, so they must not be seen then.
        self.cleans_up = ttl_ms is not None and cleanup is not None
        return_expired = return_expired and not self.cleans_up
        self.model = KeyedStateModel(Life(ttl_ms, update_on_read, return_expired, event_time))
        self.full_snapshot = full_snapshot and ttl_ms is not None
        if ttl_ms is None:
            self.model.life = Life()
        else:
            builder = StateTtlConfig.new_builder(Time.milliseconds(ttl_ms)).disable_cleanup_in_background()
            if update_on_read:
                builder.update_ttl_on_read_and_write()
            if return_expired:
                builder.return_expired_if_not_cleaned_up()
            if event_time:
                builder.use_event_time()
            if full_snapshot:
                builder.cleanup_full_snapshot()
            if cleanup is not None:
                builder.cleanup_incrementally(*cleanup)
            self.config = builder.build()
        self.start([(0, KEY_GROUPS - 1)])

    def start(self, ranges: list[tuple[int, int]]) -> None:
        self.backends = [new_backend(self.clock, range_) for range_ in ranges]
        self.descriptors = descriptors(self.config)

    def ask_for_all(self) -> None:
        for backend in self.backends:
            for descriptor in self.descriptors.values():
                backend.get_or_create_keyed_state(descriptor)

    def use(self, name: str, namespace: Any, key: int) -> tuple[Any, Place]:
        """The state that shows namespace and key, and its place in the model."""
        backend = self.backend_of(key)
        backend.set_current_key(key)
        return backend.get_partitioned_state(namespace, self.descriptors[name]), (name, namespace, key)

    def backend_of(self, key: int) -> KeyedStateBackend:
        group = key_group_of(key)
        ranges = [backend.key_context.key_group_range for backend in self.backends]
        return self.backends[next(i for i, (first, last) in enumerate(ranges) if first <= group <= last)]

    @rule(key=keys, namespace=namespaces, value=st.one_of(st.none(), numbers, numbers))
    def update_value(self, key: int, namespace: Any, value: int | None) -> None:
        state, place = self.use("value", namespace, key)
        state.update(value)
        self.model.write(place, value)

    @rule(key=keys, namespace=namespaces)
    def read_value(self, key: int, namespace: Any) -> None:
        state, place = self.use("value", namespace, key)
        assert state.value() == self.model.read(place)

    @rule(key=keys, namespace=namespaces, values=st.lists(numbers, max_size=3), replace=st.booleans())
    def write_list(self, key: int, namespace: Any, values: list[int], replace: bool) -> None:
        state, place = self.use("list", namespace, key)
        if replace:
            state.update(values)
            self.model.replace(place, values)
        else:
            state.add_all(values)
            self.model.append(place, values)

    @rule(key=keys, namespace=namespaces, value=numbers)
    def add_to_list(self, key: int, namespace: Any, value: int) -> None:
        state, place = self.use("list", namespace, key)
        state.add(value)
        self.model.append(place, [value])

    @rule(key=keys, namespace=namespaces)
    def read_list(self, key: int, namespace: Any) -> None:
        state, place = self.use("list", namespace, key)
        assert state.get() == self.model.elements(place)

    @rule(
        key=keys,
        namespace=namespaces,
        entries=st.dictionaries(numbers, st.one_of(st.none(), numbers), max_size=3),
    )
    def put_all(self, key: int, namespace: Any, entries: dict[int, int | None]) -> None:
        state, place = self.use("map", namespace, key)
        state.put_all(entries)
        for map_key, value in entries.items():
            self.model.put(place, map_key, value)

    @rule(key=keys, namespace=namespaces, map_key=numbers, value=numbers, remove=st.booleans())
    def put_or_remove(self, key: int, namespace: Any, map_key: int, value: int, remove: bool) -> None:
        state, place = self.use("map", namespace, key)
        if remove:
            state.remove(map_key)
            self.model.remove(place, map_key)
        else:
            state.put(map_key, value)
            self.model.put(place, map_key, value)

    @rule(key=keys, namespace=namespaces, map_key=numbers, contains=st.booleans())
    def read_entry(self, key: int, namespace: Any, map_key: int, contains: bool) -> None:
        state, place = self.use("map", namespace, key)
        if contains:
            assert state.contains(map_key) == self.model.contains(place, map_key)
        else:
            assert state.get(map_key) == self.model.get(place, map_key)

    @rule(key=keys, namespace=namespaces)
    def read_map(self, key: int, namespace: Any) -> None:
        state, place = self.use("map", namespace, key)
        if not self.cleans_up:
            assert state.is_empty() == (place not in self.model.held)
        assert sorted(state.items(), key=repr) == sorted(self.model.items(place), key=repr)

    @rule(key=keys, namespace=namespaces, value=st.one_of(st.none(), numbers, numbers))
    def reduce(self, key: int, namespace: Any, value: int | None) -> None:
        state, place = self.use("reducing", namespace, key)
        state.add(None if value is None else str(value))
        base = self.model.base(place)
        self.model.write(place, None if value is None else f"{'' if base is None else base}{value}")

    @rule(key=keys, namespace=namespaces, value=st.one_of(st.none(), numbers, numbers))
    def aggregate(self, key: int, namespace: Any, value: int | None) -> None:
        state, place = self.use("aggregating", namespace, key)
        state.add(value)
        base = self.model.base(place)
        self.model.write(place, None if value is None else f"{':' if base is None else base}{value}")

    @rule(key=keys, namespace=namespaces)
    def read_reduced_and_aggregated(self, key: int, namespace: Any) -> None:
        state, place = self.use("reducing", namespace, key)
        assert state.get() == self.model.read(place)
        state, place = self.use("aggregating", namespace, key)
        accumulator = self.model.read(place)
        assert state.get() == (None if accumulator is None else accumulator[::-1])

    @rule(key=keys, into=namespaces, sources=st.lists(namespaces, min_size=1, max_size=3, unique=True))
    def merge_namespaces(self, key: int, into: Any, sources: list[Any]) -> None:
        sources = [source for source in sources if source != into]
        state, place = self.use("list", into, key)
        state.merge_namespaces(into, sources)
        self.model.merge_lists(place, [("list", source, key) for source in sources])
        # With a clean-up it is chance whether an expired source is still there and renews the stamp.
        if self.cleans_up:
            return
        for name, combine in (("reducing", "{}{}".format), ("aggregating", "{}+{}".format)):
            state, place = self.use(name, into, key)
            state.merge_namespaces(into, sources)
            self.model.merge(place, [(name, source, key) for source in sources], combine)

    @rule(key=keys, namespace=namespaces, name=st.sampled_from(list(descriptors(None))))
    def clear(self, key: int, namespace: Any, name: str) -> None:
        state, place = self.use(name, namespace, key)
        state.clear()
        self.model.held.pop(place, None)

    @rule(step=steps)
    def advance_clock(self, step: int) -> None:
        self.model.clock_ms += step
        self.clock.advance_to(self.model.clock_ms)

    @rule(step=steps, last=st.sampled_from([False, False, False, True]))
    def advance_watermark(self, step: int, last: bool) -> None:
        watermark = MAX_TIMESTAMP if last else max(self.model.watermark_ms, 0) + step
        for backend in self.backends:
            backend.advance_watermark(watermark)
        self.model.advance_watermark(watermark)

    @rule(cuts=st.sets(st.integers(1, KEY_GROUPS - 1), max_size=2), ask=st.booleans())
    def restart_in_another_parallelism(self, cuts: set[int], ask: bool) -> None:
        bounds = [0, *sorted(cuts), KEY_GROUPS]
        if self.full_snapshot:
            self.ask_for_all()
            self.model.held = self.model.living()
        snapshots = [backend.snapshot() for backend in self.backends]
        self.start([(first, end - 1) for first, end in pairwise(bounds)])
        for backend in self.backends:
            for snapshot in snapshots:
                backend.restore(snapshot)
            backend.advance_watermark(self.model.watermark_ms)
        if ask:
            self.ask_for_all()

    @precondition(lambda self: self.model.life.ttl_ms is None or not self.full_snapshot)
    @rule()
    def a_snapshot_has_all_there_is(self) -> None:
        if self.cleans_up:
            return
        held = {}
        for backend in self.backends:
            for name, snapshot in backend.snapshot().items():
                for key, namespace, value in snapshot.entries():
                    held[name, namespace, key] = value
        assert held == {place: self.without_stamps(value) for place, value in self.model.held.items()}

    def without_stamps(self, held: Any) -> Any:
        if self.model.life.ttl_ms is not None:
            return held
        if isinstance(held, list):
            return [value for value, _ in held]
        if isinstance(held, dict):
            return {key: None if pair is None else pair[0] for key, pair in held.items()}
        return held[0]

    @invariant()
    def is_sound(self) -> None:
        for backend in getattr(self, "backends", ()):
            backend._check()


KeyedStateMachine.TestCase.settings = settings(
    deadline=None, max_examples=examples(75), stateful_step_count=60
)
TestKeyedState = KeyedStateMachine.TestCase
