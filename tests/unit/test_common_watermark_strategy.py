"""Watermark strategies, output tags and execution settings."""

import pickle

import pyarrow.compute as pc
import pytest

from flinkcore.common import Duration, ExecutionConfig, OutputTag, Time, WatermarkStrategy
from flinkcore.errors import ConfigurationError


def test_the_bound_is_kept_in_milliseconds() -> None:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(4))
    assert (strategy.out_of_orderness_ms, strategy.idleness_ms, strategy.timestamp_column) == (
        4000,
        None,
        None,
    )


def test_monotonous_timestamps_are_a_bound_of_zero_and_no_watermarks_no_bound() -> None:
    assert WatermarkStrategy.for_monotonous_timestamps().out_of_orderness_ms == 0
    assert WatermarkStrategy.no_watermarks().out_of_orderness_ms is None


def test_a_strategy_keeps_what_was_set_in_any_order_and_is_not_changed() -> None:
    plain = WatermarkStrategy.for_monotonous_timestamps()
    assigned = plain.with_timestamp_assigner("ts")
    assert assigned.with_idleness(Time.minutes(1)) == plain.with_idleness(
        Time.minutes(1)
    ).with_timestamp_assigner("ts")
    assert assigned.with_idleness(Duration.of_minutes(1)).timestamp_column == "ts"
    assert plain.timestamp_column is None
    with pytest.raises(AttributeError):
        plain.idleness_ms = 5  # type: ignore[misc]


def test_event_time_may_be_an_expression() -> None:
    strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(pc.field("seconds") * 1000)
    assert pickle.loads(pickle.dumps(strategy)) == strategy
    assert strategy == WatermarkStrategy.no_watermarks().with_timestamp_assigner(pc.field("seconds") * 1000)
    assert strategy != WatermarkStrategy.no_watermarks().with_timestamp_assigner(pc.field("seconds") * 10)
    assert strategy != WatermarkStrategy.no_watermarks().with_timestamp_assigner("seconds")
    assert len({strategy, strategy.with_idleness(Time.seconds(1))}) == 2


@pytest.mark.parametrize("assigner", [lambda value, timestamp: 0, "", 5, None])
def test_a_timestamp_assigner_in_python_is_refused_with_what_to_use(assigner) -> None:
    with pytest.raises(ConfigurationError, match=r"name of a column or a pyarrow expression, such as 'ts'"):
        WatermarkStrategy.no_watermarks().with_timestamp_assigner(assigner)


def test_a_negative_bound_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="max_out_of_orderness cannot be negative, it is -1 ms"):
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(-1))


@pytest.mark.parametrize("timeout", [Duration.of_millis(0), Duration.of_millis(-5), Duration.of_nanos(999)])
def test_an_idle_timeout_of_no_time_is_refused(timeout: Duration) -> None:
    with pytest.raises(ConfigurationError, match="idle_timeout must be at least 1 ms"):
        WatermarkStrategy.no_watermarks().with_idleness(timeout)


def test_a_strategy_reads_as_a_sentence() -> None:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(4))
    assert str(strategy) == "out of order by at most 4000 ms"
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_idleness(Time.seconds(1))
    assert str(strategy.with_timestamp_assigner("ts")) == (
        "monotonous timestamps, idle after 1000 ms, event time from ts"
    )
    assert str(WatermarkStrategy.no_watermarks()) == "no watermarks"


def test_tags_are_the_same_by_their_id() -> None:
    assert OutputTag("late") == OutputTag("late")
    assert OutputTag("late") != OutputTag("rejected")
    assert {OutputTag("late"): 1}[OutputTag("late")] == 1


@pytest.mark.parametrize("tag_id", ["", None, 5])
def test_a_tag_needs_an_id(tag_id) -> None:
    with pytest.raises(ValueError, match="OutputTag needs a string"):
        OutputTag(tag_id)


def test_settings_have_flinks_defaults_but_for_the_maximum_parallelism() -> None:
    config = ExecutionConfig()
    assert config.get_parallelism() == ExecutionConfig.PARALLELISM_DEFAULT == -1
    assert config.get_max_parallelism() == 128
    assert config.get_auto_watermark_interval() == 200


def test_settings_can_be_chained() -> None:
    config = ExecutionConfig().set_parallelism(4).set_max_parallelism(1).set_auto_watermark_interval(0)
    assert (config.get_parallelism(), config.get_max_parallelism(), config.get_auto_watermark_interval()) == (
        4,
        1,
        0,
    )
    assert config.set_parallelism(-1).get_parallelism() == -1


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("parallelism", 0),
        ("parallelism", -2),
        ("parallelism", 2.0),
        ("max_parallelism", 0),
        ("max_parallelism", 32_769),
        ("max_parallelism", True),
        ("auto_watermark_interval", -1),
        ("auto_watermark_interval", 0.5),
    ],
)
def test_a_setting_out_of_range_is_refused_and_left_as_it_was(setting: str, value: object) -> None:
    config = ExecutionConfig()
    before = getattr(config, f"get_{setting}")()
    with pytest.raises(ConfigurationError, match="must be an integer from"):
        getattr(config, f"set_{setting}")(value)
    assert getattr(config, f"get_{setting}")() == before
