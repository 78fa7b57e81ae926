"""Keyed states with a time to live of 10 ms, on a clock that is driven.

```
written at 0        read at 9            10
     |--------------------|---------------|
     alive                                expired
```
"""

from typing import Any

import pytest
from equipment.declared_types import Declared
from equipment.keyed_backends import Average, new_backend

from flinkcore.common import MAX_TIMESTAMP, Time
from flinkcore.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from flinkcore.errors import LifecycleError, SchemaError
from flinkcore.operators.state import KeyedStateBackend
from flinkcore.operators.timers.processing_time import DrivenProcessingTimeService


def ttl() -> StateTtlConfig.Builder:
    """Ten ms without clean-up, so that nothing but reading shows an effect."""
    return StateTtlConfig.new_builder(Time.milliseconds(10)).disable_cleanup_in_background()


class Setting:
    """A backend with key 1 set, and its clock."""

    def __init__(self) -> None:
        self.clock = DrivenProcessingTimeService()
        self.backend: KeyedStateBackend = new_backend(self.clock)
        self.backend.set_current_key(1)

    def state(self, descriptor: StateDescriptor, config: StateTtlConfig) -> Any:
        descriptor.enable_time_to_live(config)
        return self.backend.get_or_create_keyed_state(descriptor)

    def held(self, name: str) -> list[Any]:
        return [value for _, _, value in self.backend.snapshot()[name].entries()]


@pytest.fixture
def setting() -> Setting:
    return Setting()


def test_a_value_is_alive_until_its_time_to_live_has_passed(setting: Setting) -> None:
    state = setting.state(ValueStateDescriptor("v"), ttl().build())
    state.update(1)
    setting.clock.advance_to(9)
    assert state.value() == 1
    setting.clock.advance_to(10)
    assert setting.held("v") == [(1, 0)]
    assert state.value() is None
    assert setting.held("v") == []


def test_a_write_prolongs_and_a_read_does_not_unless_asked_to(setting: Setting) -> None:
    on_write = setting.state(ValueStateDescriptor("w"), ttl().build())
    on_read = setting.state(ValueStateDescriptor("r"), ttl().update_ttl_on_read_and_write().build())
    for state in (on_write, on_read):
        state.update(0)
    setting.clock.advance_to(5)
    for state in (on_write, on_read):
        state.update(1)
    setting.clock.advance_to(14)
    assert (on_write.value(), on_read.value()) == (1, 1)
    setting.clock.advance_to(15)
    assert (on_write.value(), on_read.value()) == (None, 1)
    setting.clock.advance_to(24)
    assert on_read.value() == 1
    setting.clock.advance_to(34)
    assert on_read.value() is None


def test_an_expired_value_can_be_seen_once_where_it_may_be(setting: Setting) -> None:
    state = setting.state(ValueStateDescriptor("v"), ttl().return_expired_if_not_cleaned_up().build())
    state.update(1)
    setting.clock.advance_to(100)
    assert state.value() == 1
    assert state.value() is None


def test_reading_an_expired_value_does_not_revive_it(setting: Setting) -> None:
    config = ttl().update_ttl_on_read_and_write().return_expired_if_not_cleaned_up().build()
    state = setting.state(ValueStateDescriptor("v"), config)
    state.update(1)
    setting.clock.advance_to(10)
    assert state.value() == 1
    assert state.value() is None


def test_elements_of_a_list_expire_each_on_their_own(setting: Setting) -> None:
    state = setting.state(ListStateDescriptor("l"), ttl().build())
    state.add(1)
    setting.clock.advance_to(5)
    state.add_all([2, 3])
    setting.clock.advance_to(10)
    assert state.get() == [2, 3]
    assert list(state) == [2, 3]
    assert setting.held("l") == [[(1, 0), (2, 5), (3, 5)]]
    setting.clock.advance_to(15)
    assert state.get() == []
    assert setting.held("l") == []


def test_reading_a_list_prolongs_its_living_elements_and_drops_the_others(setting: Setting) -> None:
    state = setting.state(ListStateDescriptor("l"), ttl().update_ttl_on_read_and_write().build())
    state.add(1)
    setting.clock.advance_to(5)
    state.add(2)
    setting.clock.advance_to(12)
    assert state.get() == [2]
    assert setting.held("l") == [[(2, 12)]]


def test_expired_elements_can_be_seen_beside_living_ones_until_nothing_is_alive(setting: Setting) -> None:
    state = setting.state(ListStateDescriptor("l"), ttl().return_expired_if_not_cleaned_up().build())
    state.add(1)
    setting.clock.advance_to(5)
    state.add(2)
    setting.clock.advance_to(12)
    assert state.get() == [1, 2]
    assert state.get() == [1, 2]
    setting.clock.advance_to(15)
    assert state.get() == [1, 2]
    assert state.get() == []


def test_a_list_that_is_replaced_is_new(setting: Setting) -> None:
    state = setting.state(ListStateDescriptor("l"), ttl().build())
    state.add(1)
    setting.clock.advance_to(8)
    state.update([1])
    setting.clock.advance_to(17)
    assert state.get() == [1]
    state.update([])
    assert setting.held("l") == []


def test_entries_of_a_map_expire_each_on_their_own(setting: Setting) -> None:
    state = setting.state(MapStateDescriptor("m"), ttl().build())
    state.put("a", 1)
    setting.clock.advance_to(5)
    state.put_all({"b": 2, "c": 3})
    setting.clock.advance_to(10)
    assert (state.get("a"), state.get("b"), "a" in state, "c" in state) == (None, 2, False, True)
    assert (state.items(), state.keys(), state.values()) == ([("b", 2), ("c", 3)], ["b", "c"], [2, 3])
    setting.clock.advance_to(15)
    assert not state.is_empty()
    assert state.items() == []
    assert state.is_empty()
    assert setting.held("m") == []


def test_reading_an_entry_prolongs_it_alone(setting: Setting) -> None:
    state = setting.state(MapStateDescriptor("m"), ttl().update_ttl_on_read_and_write().build())
    state.put_all({"a": 1, "b": 2})
    setting.clock.advance_to(8)
    assert state.contains("a")
    setting.clock.advance_to(12)
    assert state.items() == [("a", 1)]
    assert setting.held("m") == [{"a": (1, 12)}]


def test_an_expired_entry_can_be_seen_once_where_it_may_be(setting: Setting) -> None:
    state = setting.state(MapStateDescriptor("m"), ttl().return_expired_if_not_cleaned_up().build())
    state.put_all({"a": 1, "b": 2})
    setting.clock.advance_to(10)
    assert state.get("a") == 1
    assert state.items() == [("b", 2)]
    assert state.items() == []


def test_a_stored_none_does_not_expire_but_is_no_item(setting: Setting) -> None:
    state = setting.state(MapStateDescriptor("m"), ttl().build())
    state.put("a", None)
    setting.clock.advance_to(100)
    assert not state.is_empty()
    assert state.items() == []
    state.remove("a")
    assert state.is_empty()


def test_a_reduced_value_expires_as_a_whole_and_every_value_prolongs_it(setting: Setting) -> None:
    state = setting.state(ReducingStateDescriptor("r", lambda a, b: a + b), ttl().build())
    state.add(1)
    setting.clock.advance_to(9)
    state.add(2)
    setting.clock.advance_to(18)
    assert state.get() == 3
    setting.clock.advance_to(19)
    state.add(4)
    assert state.get() == 4
    setting.clock.advance_to(29)
    assert state.get() is None


def test_an_aggregate_expires_as_a_whole_and_every_value_prolongs_it(setting: Setting) -> None:
    state = setting.state(AggregatingStateDescriptor("a", Average()), ttl().build())
    state.add(1)
    setting.clock.advance_to(9)
    state.add(3)
    setting.clock.advance_to(18)
    assert state.get() == 2
    setting.clock.advance_to(19)
    state.add(4)
    assert state.get() == 4
    setting.clock.advance_to(29)
    assert state.get() is None
    assert setting.held("a") == []


def test_where_expired_values_can_be_seen_reduce_and_aggregate_go_on_from_them(setting: Setting) -> None:
    config = ttl().return_expired_if_not_cleaned_up().build()
    reducing = setting.state(ReducingStateDescriptor("r", lambda a, b: a + b), config)
    aggregating = setting.state(AggregatingStateDescriptor("a", Average()), config)
    for state in (reducing, aggregating):
        state.add(2)
    setting.clock.advance_to(50)
    for state in (reducing, aggregating):
        state.add(4)
    assert (reducing.get(), aggregating.get()) == (6, 3)


@pytest.mark.parametrize(
    ("descriptor", "add", "read"),
    [
        (ReducingStateDescriptor("s", lambda a, b: a + b), "add", "get"),
        (AggregatingStateDescriptor("s", Average()), "add", "get"),
        (ValueStateDescriptor("s"), "update", "value"),
    ],
)
def test_none_clears_and_so_does_clear(
    setting: Setting, descriptor: StateDescriptor, add: str, read: str
) -> None:
    state = setting.state(descriptor, ttl().build())
    getattr(state, add)(1)
    getattr(state, add)(None)
    assert getattr(state, read)() is None
    getattr(state, add)(1)
    state.clear()
    assert getattr(state, read)() is None


def test_merging_windows_leaves_out_what_has_expired(setting: Setting) -> None:
    descriptors: list[Any] = [
        ReducingStateDescriptor("r", lambda a, b: a + b),
        AggregatingStateDescriptor("a", Average()),
    ]
    for descriptor in descriptors:
        setting.state(descriptor, ttl().build())
    for now, window in ((0, "old"), (5, "young"), (6, "target")):
        setting.clock.advance_to(now)
        for descriptor in descriptors:
            setting.backend.get_partitioned_state(window, descriptor).add(now)
    setting.clock.advance_to(12)
    for descriptor, merged in zip(descriptors, (11, 5.5), strict=True):
        state = setting.backend.get_partitioned_state("target", descriptor)
        state.merge_namespaces("target", ["old", "young"])
        assert state.get() == merged
        state.merge_namespaces("target", ["old"])
        assert state.get() == merged
    assert setting.held("r") == [(11, 12)]


def test_merging_windows_of_lists_keeps_the_stamps(setting: Setting) -> None:
    descriptor: ListStateDescriptor[str] = ListStateDescriptor("l")
    setting.state(descriptor, ttl().build())
    for now, window in ((0, "old"), (5, "target")):
        setting.clock.advance_to(now)
        setting.backend.get_partitioned_state(window, descriptor).add(window)
    setting.clock.advance_to(10)
    state = setting.backend.get_partitioned_state("target", descriptor)
    state.merge_namespaces("target", ["old"])
    assert setting.held("l") == [[("target", 5), ("old", 0)]]
    assert state.get() == ["target"]


def test_values_are_checked_without_their_stamps(setting: Setting) -> None:
    config = ttl().build()
    value = setting.state(ValueStateDescriptor("v", Declared(int)), config)
    elements = setting.state(ListStateDescriptor("l", Declared(int)), config)
    entries = setting.state(MapStateDescriptor("m", Declared(str), Declared(int)), config)
    reducing = setting.state(ReducingStateDescriptor("r", lambda a, b: a / b, Declared(int)), config)
    aggregating = setting.state(AggregatingStateDescriptor("a", Average(), Declared(list)), config)
    value.update(1)
    elements.add(1)
    entries.put("a", 1)
    reducing.add(1)
    aggregating.add(1)
    for refused in (
        lambda: value.update("x"),
        lambda: elements.add("x"),
        lambda: elements.add(None),
        lambda: entries.put(1, 1),
        lambda: entries.put_all({"b": "x"}),
        lambda: reducing.add("x"),
        lambda: reducing.add(2),
    ):
        with pytest.raises(SchemaError):
            refused()
    assert (value.value(), elements.get(), entries.items(), reducing.get(), aggregating.get()) == (
        1,
        [1],
        [("a", 1)],
        1,
        1,
    )


def test_use_without_a_current_key_is_an_error(setting: Setting) -> None:
    state = setting.state(ValueStateDescriptor("v"), ttl().build())
    setting.backend.key_context.clear_current_key()
    for use in (state.value, lambda: state.update(1), state.clear):
        with pytest.raises(LifecycleError, match="'v' was used without a current key"):
            use()


def test_every_use_cleans_up_some_keys(setting: Setting) -> None:
    state = setting.state(
        ValueStateDescriptor("v"),
        StateTtlConfig.new_builder(Time.milliseconds(10)).cleanup_incrementally(2, False).build(),
    )
    for key in range(6):
        setting.backend.set_current_key(key)
        state.update(key)
    setting.clock.advance_to(10)
    setting.backend.set_current_key(100)
    left = []
    for _ in range(8):
        state.value()
        left.append(len(setting.held("v")))
    assert left[-1] == 0
    assert all(before - after <= 2 for before, after in zip([6, *left], left, strict=False))


def test_cleaning_up_goes_through_windows_lists_and_maps(setting: Setting) -> None:
    config = StateTtlConfig.new_builder(Time.milliseconds(10)).cleanup_incrementally(3, False).build()
    descriptors = [ListStateDescriptor("l"), MapStateDescriptor("m")]
    for descriptor in descriptors:
        setting.state(descriptor, config)
    for now, element in ((0, "old"), (5, "young")):
        setting.clock.advance_to(now)
        for window in (None, "w1", "w2"):
            setting.backend.get_partitioned_state(window, descriptors[0]).add(element)
            setting.backend.get_partitioned_state(window, descriptors[1]).put(element, now)
    setting.clock.advance_to(12)
    for _ in range(6):
        setting.backend.get_partitioned_state("w3", descriptors[0]).get()
        setting.backend.get_partitioned_state("w3", descriptors[1]).is_empty()
    assert setting.held("l") == [[("young", 5)]] * 3
    assert setting.held("m") == [{"young": (5, 5)}] * 3
    setting.clock.advance_to(15)
    for _ in range(6):
        setting.backend.get_partitioned_state("w3", descriptors[0]).get()
        setting.backend.get_partitioned_state("w3", descriptors[1]).is_empty()
    assert setting.held("l") == []
    assert setting.held("m") == []


def test_cleaning_up_for_every_record_takes_no_use_of_the_state(setting: Setting) -> None:
    config = StateTtlConfig.new_builder(Time.milliseconds(10)).cleanup_incrementally(1, True).build()
    state = setting.state(ValueStateDescriptor("v"), config)
    state.update(1)
    setting.clock.advance_to(10)
    for _ in range(4):
        setting.backend.set_current_key(2)
    assert setting.held("v") == []


def test_a_full_snapshot_leaves_out_what_has_expired_and_the_state_keeps_it(setting: Setting) -> None:
    config = ttl().cleanup_full_snapshot().return_expired_if_not_cleaned_up().build()
    value = setting.state(ValueStateDescriptor("v"), config)
    elements = setting.state(ListStateDescriptor("l"), config)
    value.update(1)
    elements.add(1)
    setting.clock.advance_to(5)
    elements.add(2)
    setting.clock.advance_to(10)
    assert setting.held("v") == []
    assert setting.held("l") == [[(2, 5)]]
    assert value.value() == 1
    assert elements.get() == [1, 2]


def test_on_event_time_values_live_by_the_watermark(setting: Setting) -> None:
    state = setting.state(ValueStateDescriptor("v"), ttl().use_event_time().build())
    setting.backend.advance_watermark(100)
    state.update(1)
    setting.clock.advance_to(1_000_000)
    setting.backend.advance_watermark(109)
    assert state.value() == 1
    setting.backend.advance_watermark(110)
    assert state.value() is None


def test_what_is_written_before_the_first_watermark_lives_from_it_on(setting: Setting) -> None:
    config = ttl().use_event_time().build()
    value = setting.state(ValueStateDescriptor("v"), config)
    elements = setting.state(ListStateDescriptor("l"), config)
    entries = setting.state(MapStateDescriptor("m"), config)
    value.update(1)
    elements.add(1)
    entries.put_all({"a": 1, "b": None})
    setting.backend.advance_watermark(5000)
    assert (value.value(), elements.get(), entries.items()) == (1, [1], [("a", 1)])
    setting.backend.advance_watermark(5009)
    assert (value.value(), elements.get(), entries.items()) == (1, [1], [("a", 1)])
    setting.backend.advance_watermark(5010)
    assert (value.value(), elements.get(), entries.items()) == (None, [], [])


def test_the_end_of_the_input_lets_nothing_expire_on_event_time(setting: Setting) -> None:
    state = setting.state(ValueStateDescriptor("v"), ttl().use_event_time().build())
    setting.backend.advance_watermark(100)
    state.update(1)
    setting.backend.advance_watermark(MAX_TIMESTAMP)
    assert state.value() == 1


def test_a_watermark_that_goes_back_revives_nothing(setting: Setting) -> None:
    state = setting.state(ValueStateDescriptor("v"), ttl().use_event_time().build())
    setting.backend.advance_watermark(100)
    state.update(1)
    setting.backend.advance_watermark(110)
    setting.backend.advance_watermark(100)
    assert state.value() is None
