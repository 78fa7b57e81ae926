"""Watermark strategies, output tags and execution settings."""

import pickle

import pyarrow.compute as pc
import pytest
from jobs.golden_generators import Punctuated, ValueAsTimestamp

from flinkcore.common import (
    BoundedOutOfOrdernessWatermarks,
    Duration,
    ExecutionConfig,
    NoWatermarksGenerator,
    OutputTag,
    RecordTimestampAssigner,
    Time,
    WatermarkAlignmentParams,
    WatermarkStrategy,
    WatermarksWithIdleness,
)
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
def test_what_is_no_timestamp_assigner_is_refused_with_what_to_use(assigner) -> None:
    with pytest.raises(ConfigurationError, match=r"name of a column or a pyarrow expression, such as 'ts'"):
        WatermarkStrategy.no_watermarks().with_timestamp_assigner(assigner)


def test_an_assigner_replaces_a_column_and_the_reverse() -> None:
    assigner = ValueAsTimestamp()
    by_column = WatermarkStrategy.no_watermarks().with_timestamp_assigner("ts")
    by_assigner = by_column.with_timestamp_assigner(assigner)
    assert (by_assigner.timestamp_column, by_assigner.timestamp_assigner) == (None, assigner)
    assert by_assigner.with_timestamp_assigner("ts") == by_column
    assert by_assigner != by_column
    with pytest.raises(ConfigurationError, match="instance of a subclass of TimestampAssigner"):
        by_column.with_timestamp_assigner(ValueAsTimestamp)  # type: ignore[arg-type]


def test_a_strategy_gives_the_runtime_its_assigner_and_generators() -> None:
    none = WatermarkStrategy.no_watermarks()
    bounded = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(4))
    assert isinstance(none.create_timestamp_assigner(lambda: 0), RecordTimestampAssigner)
    assert isinstance(none.create_watermark_generator(lambda: 0), NoWatermarksGenerator)
    assert isinstance(bounded.create_watermark_generator(lambda: 0), BoundedOutOfOrdernessWatermarks)
    idle = bounded.with_idleness(Time.seconds(1))
    assert isinstance(idle.create_watermark_generator(lambda: 0), WatermarksWithIdleness)
    assigned = idle.with_timestamp_assigner(ValueAsTimestamp())
    assert assigned.create_timestamp_assigner(lambda: 0).extract_timestamp(7, 5) == 7


def test_a_strategy_for_a_generator_keeps_all_else_and_is_not_columnar() -> None:
    strategy = (
        WatermarkStrategy.for_generator(Punctuated)
        .with_idleness(Time.seconds(1))
        .with_timestamp_assigner(ValueAsTimestamp())
    )
    assert (strategy.out_of_orderness_ms, strategy.idleness_ms) == (None, 1000)
    assert strategy.generator_supplier is Punctuated
    assert WatermarkStrategy.for_generator(Punctuated) == WatermarkStrategy.for_generator(Punctuated)
    assert WatermarkStrategy.for_generator(Punctuated) != WatermarkStrategy.no_watermarks()
    assert WatermarkStrategy.for_generator(Punctuated) != WatermarkStrategy.for_generator(
        NoWatermarksGenerator
    )


def test_a_strategy_can_be_aligned_by_default_once_a_second() -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    aligned = strategy.with_watermark_alignment("clicks", Duration.of_seconds(20))
    assert aligned.alignment_parameters == WatermarkAlignmentParams("clicks", 20_000, 1000)
    closely = aligned.with_watermark_alignment("clicks", Time(0), Duration.of_millis(50))
    assert closely.alignment_parameters == WatermarkAlignmentParams("clicks", 0, 50)
    assert strategy.alignment_parameters is None
    assert len({strategy, aligned, closely}) == 3
    assert aligned.with_idleness(Time(5)).alignment_parameters == aligned.alignment_parameters


@pytest.mark.parametrize(
    ("group", "drift", "interval", "message"),
    [
        ("", Time(5), None, "watermark_group must be a name, not ''"),
        (None, Time(5), None, "watermark_group must be a name"),
        ("g", Time(-1), None, "max_allowed_watermark_drift cannot be negative, it is -1 ms"),
        ("g", "5 s", None, "max_allowed_watermark_drift takes a length of time"),
        ("g", Time(5), Time(0), "update_interval must be at least 1 ms, it is 0 ms"),
        ("g", Time(5), Duration.of_millis(-3), "update_interval must be at least 1 ms, it is -3 ms"),
    ],
)
def test_an_alignment_out_of_range_is_refused(group, drift, interval, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        WatermarkStrategy.no_watermarks().with_watermark_alignment(group, drift, interval)


def test_a_strategy_can_be_pickled_when_its_parts_can() -> None:
    percentile = WatermarkStrategy.for_percentile_out_of_orderness(Time.seconds(4), 0.99, 1000)
    aligned = percentile.with_watermark_alignment("g", Time(5)).with_idleness(Time(7))
    for strategy in (percentile, aligned, WatermarkStrategy.for_generator(Punctuated)):
        assert pickle.loads(pickle.dumps(strategy)) == strategy
        assert hash(pickle.loads(pickle.dumps(strategy))) == hash(strategy)


def test_a_percentile_out_of_range_is_refused_where_the_strategy_is_made() -> None:
    with pytest.raises(ConfigurationError, match="percentile must be"):
        WatermarkStrategy.for_percentile_out_of_orderness(Time.seconds(4), 99, 1000)


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
    strategy = WatermarkStrategy.for_generator(Punctuated).with_timestamp_assigner(ValueAsTimestamp())
    assert str(strategy.with_watermark_alignment("g", Time(5))) == (
        "watermarks by Punctuated, event time from ValueAsTimestamp, aligned in group 'g' to 5 ms, "
        "updated each 1000 ms"
    )
    assert str(WatermarkStrategy.for_percentile_out_of_orderness(Time.seconds(4), 0.99, 1000)) == (
        "watermarks by percentile 0.99 of 1000 events, out of order by at most 4000 ms"
    )


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
        ("max_parallelism", -1),
        ("auto_watermark_interval", 0.5),
        ("auto_watermark_interval", 2**63),
        ("latency_tracking_interval", 2**63),
        ("task_cancellation_timeout", -1),
    ],
)
def test_a_setting_out_of_range_is_refused_and_left_as_it_was(setting: str, value: object) -> None:
    config = ExecutionConfig()
    before = getattr(config, f"get_{setting}")()
    with pytest.raises(ConfigurationError, match=r"must be (an integer from 1|a length of time)"):
        getattr(config, f"set_{setting}")(value)
    assert getattr(config, f"get_{setting}")() == before
