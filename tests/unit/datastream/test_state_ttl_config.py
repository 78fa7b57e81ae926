"""StateTtlConfig and its builder."""

from collections.abc import Callable
from typing import Any

import pytest

from flinkcore.common import Duration, Time
from flinkcore.datastream.state import StateTtlConfig, ValueStateDescriptor
from flinkcore.errors import ConfigurationError

Cleanup = StateTtlConfig.CleanupStrategies


def test_a_builder_starts_from_pyflinks_defaults() -> None:
    config = StateTtlConfig.new_builder(Time.seconds(2)).build()
    assert config.get_update_type() is StateTtlConfig.UpdateType.OnCreateAndWrite
    assert config.get_state_visibility() is StateTtlConfig.StateVisibility.NeverReturnExpired
    assert config.get_ttl_time_characteristic() is StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
    assert config.get_ttl() == Time.seconds(2)
    assert config.is_enabled()
    strategies = config.get_cleanup_strategies()
    assert strategies.is_cleanup_in_background()
    assert not strategies.in_full_snapshot()
    assert strategies.get_incremental_cleanup_strategy() == Cleanup.IncrementalCleanupStrategy(5, False)
    rocksdb = strategies.get_rocksdb_compact_filter_cleanup_strategy()
    assert rocksdb is not None
    assert rocksdb.get_query_time_after_num_entries() == 1000
    assert rocksdb.get_periodic_compaction_time() == Duration.of_days(30)


def test_a_builder_sets_everything() -> None:
    config = (
        StateTtlConfig.new_builder(Time.seconds(2))
        .update_ttl_on_read_and_write()
        .return_expired_if_not_cleaned_up()
        .use_event_time()
        .cleanup_full_snapshot()
        .cleanup_incrementally(7, True)
        .cleanup_in_rocksdb_compact_filter(11)
        .disable_cleanup_in_background()
        .set_ttl(Duration.of_seconds(3))
        .build()
    )
    assert config.get_update_type() is StateTtlConfig.UpdateType.OnReadAndWrite
    assert config.get_state_visibility() is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp
    assert config.get_ttl_time_characteristic() is StateTtlConfig.TtlTimeCharacteristic.EventTime
    assert config.ttl_ms == 3000
    strategies = config.get_cleanup_strategies()
    assert strategies.in_full_snapshot()
    incremental = strategies.get_incremental_cleanup_strategy()
    assert incremental is not None
    assert (incremental.get_cleanup_size(), incremental.run_cleanup_for_every_record()) == (7, True)
    rocksdb = strategies.get_rocksdb_compact_filter_cleanup_strategy()
    assert rocksdb is not None
    assert rocksdb.get_query_time_after_num_entries() == 11


def test_the_other_settings_are_the_inverse_ones() -> None:
    builder = StateTtlConfig.new_builder(Time.seconds(2))
    builder.update_ttl_on_read_and_write().return_expired_if_not_cleaned_up().use_event_time()
    builder.update_ttl_on_create_and_write().never_return_expired().use_processing_time()
    assert builder.build() == StateTtlConfig.new_builder(Time.seconds(2)).build()


def test_without_background_cleanup_there_is_none_unless_it_is_asked_for() -> None:
    strategies = (
        StateTtlConfig.new_builder(Time.seconds(2))
        .disable_cleanup_in_background()
        .build()
        .get_cleanup_strategies()
    )
    assert not strategies.is_cleanup_in_background()
    assert strategies.get_incremental_cleanup_strategy() is None
    assert strategies.get_rocksdb_compact_filter_cleanup_strategy() is None


def test_configurations_are_equal_if_all_their_settings_are() -> None:
    def build() -> StateTtlConfig:
        return StateTtlConfig.new_builder(Time.seconds(2)).cleanup_incrementally(3, False).build()

    assert build() == build()
    assert hash(build()) == hash(build())
    assert build() != StateTtlConfig.new_builder(Time.seconds(2)).cleanup_incrementally(4, False).build()
    assert build() != StateTtlConfig.new_builder(Time.seconds(3)).cleanup_incrementally(3, False).build()


def test_what_is_built_does_not_change_with_the_builder() -> None:
    builder = StateTtlConfig.new_builder(Time.seconds(2))
    config = builder.build()
    builder.cleanup_full_snapshot()
    assert not config.get_cleanup_strategies().in_full_snapshot()


@pytest.mark.parametrize("ttl", [Time.milliseconds(0), Duration.of_seconds(-1), -5, 0.5, None])
def test_a_time_to_live_is_at_least_a_millisecond(ttl: Time) -> None:
    with pytest.raises(ConfigurationError, match="the time to live of a state"):
        StateTtlConfig.new_builder(ttl).build()


@pytest.mark.parametrize("cleanup_size", [0, -1])
def test_incremental_cleanup_takes_at_least_one_key(cleanup_size: int) -> None:
    with pytest.raises(ConfigurationError, match="incremental clean-up takes at least 1 key"):
        StateTtlConfig.new_builder(Time.seconds(1)).cleanup_incrementally(cleanup_size, False)


@pytest.mark.parametrize(
    ("set_up", "message"),
    [
        (lambda builder: builder.set_update_type("OnReadAndWrite"), "UpdateType, not 'OnReadAndWrite'"),
        (lambda builder: builder.set_state_visibility(1), "StateVisibility, not 1"),
        (lambda builder: builder.set_ttl_time_characteristic(True), "TtlTimeCharacteristic, not True"),
        (lambda builder: builder.cleanup_incrementally(2.5, False), "at least 1 key at a time, not 2.5"),
    ],
)
def test_settings_of_another_type_are_refused(set_up: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        set_up(StateTtlConfig.new_builder(Time.seconds(1))).build()


@pytest.mark.parametrize("ttl_config", [Time.seconds(1), StateTtlConfig.new_builder(Time.seconds(1))])
def test_a_state_takes_a_configuration_as_its_time_to_live(ttl_config: Any) -> None:
    descriptor: ValueStateDescriptor[int] = ValueStateDescriptor("seen")
    with pytest.raises(ConfigurationError, match=r"'seen' is a StateTtlConfig, such as .* not "):
        descriptor.enable_time_to_live(ttl_config)


def test_a_disabled_configuration_leaves_a_state_without_a_time_to_live() -> None:
    builder = StateTtlConfig.new_builder(Time.seconds(1))
    config = builder.set_update_type(StateTtlConfig.UpdateType.Disabled).build()
    descriptor: ValueStateDescriptor[int] = ValueStateDescriptor("v")
    descriptor.enable_time_to_live(config)
    assert not config.is_enabled()
    assert descriptor.ttl_config is None
