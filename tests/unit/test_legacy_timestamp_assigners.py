"""The assigners of Flink 1.20: ascending and bounded extractor, ingestion time, adapters."""

import copy
import logging
import pickle
from typing import Any

import pytest
from models.golden_generators import LegacyAscending, LegacyBounded, LegacyPunctuated
from models.recorders import WatermarkOutputRecorder

from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP, Duration, Time, Watermark, WatermarkStrategy
from flinkcore.datastream.timestamps import (
    AssignerWithPeriodicWatermarks,
    AssignerWithPeriodicWatermarksAdapter,
    AssignerWithPunctuatedWatermarksAdapter,
    FailingHandler,
    IgnoringHandler,
    IngestionTimeExtractor,
    MonotonyViolationHandler,
    as_watermark_strategy,
)
from flinkcore.errors import ConfigurationError, DataError


def extract(assigner: AssignerWithPeriodicWatermarks, *timestamps: int) -> list[int]:
    return [assigner.extract_timestamp(timestamp, MIN_TIMESTAMP) for timestamp in timestamps]


def watermark(assigner: AssignerWithPeriodicWatermarks) -> int | None:
    current = assigner.get_current_watermark()
    return None if current is None else current.timestamp


def test_ascending_timestamps_are_extracted_and_trailed_by_one() -> None:
    extractor = LegacyAscending()
    assert watermark(extractor) == MIN_TIMESTAMP
    assert extract(extractor, 5, 5, 7) == [5, 5, 7]
    assert watermark(extractor) == 6


def test_a_timestamp_that_goes_back_is_kept_and_does_not_move_the_watermark() -> None:
    extractor = LegacyAscending().with_violation_handler(IgnoringHandler())
    assert extract(extractor, 7, 5) == [7, 5]
    assert watermark(extractor) == 6


def test_a_violation_is_logged_unless_set_otherwise(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "flinkcore"):
        extract(LegacyAscending(), 7, 5)
        extract(LegacyAscending().with_violation_handler(IgnoringHandler()), 7, 5)
    assert [record.getMessage() for record in caplog.records] == ["Timestamp monotony violated: 5 < 7"]


def test_a_violation_may_fail_the_job() -> None:
    extractor = LegacyAscending().with_violation_handler(FailingHandler())
    with pytest.raises(DataError, match="an element with 5 ms follows one with 7 ms"):
        extract(extractor, 7, 5)


def test_a_handler_of_the_users_gets_both_timestamps() -> None:
    seen = []

    class Noting(MonotonyViolationHandler):
        def handle_violation(self, element_timestamp: int, last_timestamp: int) -> None:
            seen.append((element_timestamp, last_timestamp))

    extract(LegacyAscending().with_violation_handler(Noting()), 7, 5, 6, 8)
    assert seen == [(5, 7), (6, 7)]


def test_the_ascending_watermark_never_wraps_around() -> None:
    extractor = LegacyAscending()
    extract(extractor, MIN_TIMESTAMP)
    assert watermark(extractor) == MIN_TIMESTAMP
    extract(extractor, MAX_TIMESTAMP)
    assert watermark(extractor) == MAX_TIMESTAMP - 1


def test_the_legacy_bound_is_one_ms_tighter_than_the_new_one() -> None:
    extractor = LegacyBounded(Time.milliseconds(10))
    assert watermark(extractor) == MIN_TIMESTAMP
    assert extract(extractor, 50, 40) == [50, 40]
    assert watermark(extractor) == 40
    assert extractor.get_max_out_of_orderness_in_millis() == 10


@pytest.mark.parametrize("delay", [0, 10, MAX_TIMESTAMP])
def test_the_legacy_bound_never_wraps_around(delay: int) -> None:
    extractor = LegacyBounded(Time(delay))
    for timestamp in (MIN_TIMESTAMP, -1, MAX_TIMESTAMP):
        extract(extractor, timestamp)
        assert watermark(extractor) == max(timestamp - delay, MIN_TIMESTAMP)


def test_a_negative_legacy_bound_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="max_out_of_orderness cannot be negative"):
        LegacyBounded(Duration.of_millis(-1))


def test_ingestion_time_is_the_clock_and_never_goes_back() -> None:
    now = [1000]
    extractor = IngestionTimeExtractor(lambda: now[0])
    assert extract(extractor, 5) == [1000]
    assert watermark(extractor) == 999
    now[0] = 990
    assert extract(extractor, 5) == [1000]
    now[0] = 1200
    assert watermark(extractor) == 1199


def test_ingestion_time_is_by_default_that_of_the_system() -> None:
    assert extract(IngestionTimeExtractor(), 5)[0] > 1_700_000_000_000


def test_a_copied_ingestion_time_keeps_the_clock_itself() -> None:
    class Clock:
        now = 5

        def current(self) -> int:
            return self.now

    clock = Clock()
    copied = copy.deepcopy(IngestionTimeExtractor(clock.current))
    clock.now = 77
    assert watermark(copied) == 76


def test_adapters_emit_what_the_assigner_has_and_nothing_for_none() -> None:
    class Sometimes(LegacyAscending):
        current: Watermark | None = None

        def get_current_watermark(self) -> Watermark | None:  # type: ignore[override,misc]
            return self.current

    output = WatermarkOutputRecorder()
    assigner = Sometimes()
    periodic = AssignerWithPeriodicWatermarksAdapter(assigner)
    periodic.on_event(6, 6, output)
    periodic.on_periodic_emit(output)
    assert output.take() == []
    assigner.current = Watermark(3)
    periodic.on_periodic_emit(output)
    assert output.take() == [("watermark", 3)]
    punctuated = AssignerWithPunctuatedWatermarksAdapter(LegacyPunctuated())
    for timestamp in (5, 6):
        punctuated.on_event(timestamp, timestamp, output)
        punctuated.on_periodic_emit(output)
    assert output.take() == [("watermark", 6)]


def drive(strategy: WatermarkStrategy, timestamp: int) -> list[tuple[Any, ...]]:
    output = WatermarkOutputRecorder()
    generator = strategy.create_watermark_generator(lambda: 0)
    assert strategy.create_timestamp_assigner().extract_timestamp(timestamp, MIN_TIMESTAMP) == timestamp
    generator.on_event(timestamp, timestamp, output)
    generator.on_periodic_emit(output)
    return output.take()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda strategy: pickle.loads(pickle.dumps(strategy))])
def test_an_assigner_is_a_strategy_and_its_copies_share_no_state(copied: Any) -> None:
    strategy = as_watermark_strategy(LegacyBounded(Time.milliseconds(10)))
    assert str(strategy) == "watermarks by LegacyBounded, event time from LegacyBounded"
    assert drive(copied(strategy), 500) == [("watermark", 490)]
    assert drive(copied(strategy), 50) == [("watermark", 40)]
    assert drive(copied(as_watermark_strategy(LegacyPunctuated())), 50) == [("watermark", 50)]


def test_what_is_neither_assigner_nor_strategy_is_refused() -> None:
    strategy = WatermarkStrategy.no_watermarks()
    assert as_watermark_strategy(strategy) is strategy
    with pytest.raises(ConfigurationError, match="takes a strategy such as WatermarkStrategy"):
        as_watermark_strategy(LegacyBounded)  # type: ignore[arg-type]
