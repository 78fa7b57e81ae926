"""The assigners of Flink 1.20: ascending and bounded extractor, ingestion time, adapters."""

import copy
import logging
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from models.golden_generators import LegacyAscending, LegacyBounded, LegacyPunctuated
from models.recorders import WatermarkOutputRecorder

from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP, Duration, Time, Types, Watermark, WatermarkStrategy
from flinkcore.datastream import (
    ProcessFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import count
from flinkcore.datastream.connectors import NumberSequenceSource
from flinkcore.datastream.timestamps import (
    AscendingTimestampExtractor,
    AssignerWithPeriodicWatermarks,
    AssignerWithPeriodicWatermarksAdapter,
    AssignerWithPunctuatedWatermarks,
    AssignerWithPunctuatedWatermarksAdapter,
    BoundedOutOfOrdernessTimestampExtractor,
    FailingHandler,
    IgnoringHandler,
    IngestionTimeExtractor,
    MonotonyViolationHandler,
    as_watermark_strategy,
)
from flinkcore.errors import ConfigurationError, DataError, FlinkcoreError, SchemaError


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


@pytest.mark.parametrize(
    ("base", "method"),
    [
        (BoundedOutOfOrdernessTimestampExtractor, "extract_element_timestamp"),
        (AscendingTimestampExtractor, "extract_ascending_timestamp"),
        (LegacyBounded, "extract_element_timestamp"),
    ],
)
def test_an_extractor_that_overrides_the_wrong_method_says_which_is_right(base: type, method: str) -> None:
    with pytest.raises(
        ConfigurationError, match=rf"Mine overrides extract_timestamp.* Override {method}\(element\)"
    ):
        type("Mine", (base,), {"extract_timestamp": lambda self, element: element, "__module__": "program"})


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
    assert (
        strategy.create_timestamp_assigner(lambda: 0).extract_timestamp(timestamp, MIN_TIMESTAMP) == timestamp
    )
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


# ---- in jobs ----


class Times(ProcessFunction):
    """Gives each value with its timestamp, the watermark that it meets, and the time of the clock."""

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        timers = ctx.timer_service()
        yield value, ctx.timestamp(), timers.current_watermark(), timers.current_processing_time()


def test_ingestion_time_of_a_job_is_that_of_its_clock() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.get_config().set_auto_watermark_interval(2)
    elements = env.from_collection(["a", "b", "c"])
    stream = elements.assign_timestamps_and_watermarks(IngestionTimeExtractor())
    numbers = env.from_source(
        NumberSequenceSource(7, 8), as_watermark_strategy(IngestionTimeExtractor()), "numbers"
    )
    expected = [("a", 1, MIN_TIMESTAMP, 1), ("b", 2, MIN_TIMESTAMP, 2), ("c", 3, 1, 3)]
    assert list(stream.process(Times()).execute_and_collect()) == expected
    given = stream.union(numbers).process(Times()).execute_and_collect()
    assert [found for found in given if isinstance(found[0], int)] == [
        (7, 1, MIN_TIMESTAMP, 1),
        (8, 2, MIN_TIMESTAMP, 2),
    ]


class AtOfRow(BoundedOutOfOrdernessTimestampExtractor):
    def extract_element_timestamp(self, element: Any) -> Any:
        return element["seconds"] * 1000 + element.ms


class AscendingRow(AscendingTimestampExtractor):
    def extract_ascending_timestamp(self, element: Any) -> Any:
        return element["seconds"] * 1000


LOG = pa.table(
    {
        "seconds": [1, 3, 2, 7, 5, 9, 14, 11, 20],
        "ms": [0, 0, 999, 0, 0, 0, 0, 0, 0],
        "key": ["a"] * 9,
        "at": range(9),
    }
)


@pytest.mark.parametrize(
    "extractor",
    [
        AtOfRow(Duration.of_seconds(2)),
        AtOfRow(Duration.of_millis(1)),
        AtOfRow(Duration.of_millis(0)),
        AscendingRow(),
        AscendingRow().with_violation_handler(IgnoringHandler()),
    ],
)
def test_an_extractor_gives_over_columns_what_it_gives_over_rows(
    extractor: AssignerWithPeriodicWatermarks,
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.get_config().set_auto_watermark_interval(1)
    events = env.from_event_log(
        LOG, timestamp="at", integer_times=True, arrival="at"
    ).assign_timestamps_and_watermarks(extractor)
    windows = events.key_by("key").window(TumblingEventTimeWindows.of(Time.seconds(4)))
    rows = windows.aggregate(n=count()).execute()
    found = [(row["window_start"], row["n"], row["watermark"]) for row in rows.to_arrow().to_pylist()]

    class Counted(ProcessWindowFunction[Any, Any, Any, Any]):
        def process(self, key: Any, context: Any, elements: Any) -> Any:
            yield context.window().start, len(list(elements)), context.current_watermark()

    by_row = events.key_by(lambda row: row["key"], key_type=Types.STRING())
    expected = by_row.window(TumblingEventTimeWindows.of(Time.seconds(4))).process(Counted())
    assert found == list(expected.execute_and_collect())
    assert len(found) > 2


def test_a_handler_of_violations_is_called_over_columns(caplog: pytest.LogCaptureFixture) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    events = env.from_event_log(LOG, timestamp="at", integer_times=True, arrival="at")

    def run(extractor: AscendingTimestampExtractor) -> None:
        keyed = events.assign_timestamps_and_watermarks(extractor).key_by("key")
        keyed.window(TumblingEventTimeWindows.of(Time.seconds(4))).aggregate(n=count()).execute().to_arrow()

    with caplog.at_level(logging.WARNING, "flinkcore"):
        run(AscendingRow())
    assert "Timestamp monotony violated: 2000 < 3000" in [record.getMessage() for record in caplog.records]
    with pytest.raises(FlinkcoreError, match="an element with 2000 ms follows one with 3000 ms"):
        run(AscendingRow().with_violation_handler(FailingHandler()))


def test_an_extractor_over_columns_is_stopped_and_resumed(tmp_path: Path) -> None:
    def windows(log: pa.Table) -> Any:
        events = StreamExecutionEnvironment().from_event_log(
            log, timestamp="at", integer_times=True, arrival="at"
        )
        keyed = events.assign_timestamps_and_watermarks(AtOfRow(Duration.of_millis(0))).key_by("key")
        return keyed.window(TumblingEventTimeWindows.of(Time.seconds(4))).aggregate(n=count())

    first = windows(LOG.slice(0, 5)).execute(stop_with_checkpoint=tmp_path / "day").to_arrow().to_pylist()
    second = windows(LOG.slice(5)).execute(restore_from=tmp_path / "day").to_arrow().to_pylist()
    assert first + second == windows(LOG).execute().to_arrow().to_pylist()


class Rising(AssignerWithPunctuatedWatermarks):
    """Gives a watermark for each second element."""

    def __init__(self) -> None:
        self.n = 0

    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value

    def check_and_get_next_watermark(self, last_element: int, extracted_timestamp: int) -> Watermark | None:
        self.n += 1
        return None if self.n % 2 else Watermark(extracted_timestamp)


class Saved(Rising):
    def snapshot_state(self) -> int:
        return self.n

    def restore_state(self, state: int) -> None:
        self.n = state


class Ascends(AscendingTimestampExtractor):
    def extract_ascending_timestamp(self, element: int) -> int:
        return element


class Trails(BoundedOutOfOrdernessTimestampExtractor):
    def extract_element_timestamp(self, element: int) -> int:
        return element


def watermarks_seen(assigner: Any, elements: list[int], **checkpoint: Any) -> list[Any]:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.get_config().set_auto_watermark_interval(1)
    timed = env.from_collection(elements).assign_timestamps_and_watermarks(assigner)
    return list(timed.process(Times()).execute_and_collect(**checkpoint))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Ascends().with_violation_handler(IgnoringHandler()),
        lambda: Trails(Duration.of_millis(3)),
        IngestionTimeExtractor,
        Saved,
    ],
)
def test_an_assigner_of_single_elements_goes_on_from_a_checkpoint(make: Any, tmp_path: Path) -> None:
    elements = [5, 9, 20, 18, 7, 30, 31]
    for cut in range(1, len(elements)):
        path = tmp_path / str(cut)
        seen = watermarks_seen(make(), elements[:cut], stop_with_checkpoint=path)
        seen += watermarks_seen(make(), elements[cut:], restore_from=path)
        assert seen == watermarks_seen(make(), elements)


def test_an_assigner_of_the_users_without_snapshots_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=r"snapshots \(Rising does not define snapshot_state\): define"
    ):
        watermarks_seen(Rising(), [5], stop_with_checkpoint=tmp_path / "c")


@pytest.mark.parametrize("state", [None, "5", 5.0, True, MAX_TIMESTAMP + 1, [5]])
def test_what_an_assigner_cannot_hold_is_not_restored(state: Any) -> None:
    for assigner in (Ascends(), Trails(Duration.of_millis(3)), IngestionTimeExtractor()):
        with pytest.raises(SchemaError, match=rf"is not what {type(assigner).__name__} holds"):
            assigner.restore_state(state)


class Halves(BoundedOutOfOrdernessTimestampExtractor):
    def extract_element_timestamp(self, element: Any) -> int:
        return int(element["seconds"]) * 500


class Constant(BoundedOutOfOrdernessTimestampExtractor):
    def extract_element_timestamp(self, element: Any) -> int:
        return 7


@pytest.mark.parametrize(
    ("extractor", "reason"), [(Halves, r"cannot be one \(TypeError: int"), (Constant, "it gave 7")]
)
def test_an_extractor_that_is_no_column_is_refused_by_a_replay(
    extractor: type[BoundedOutOfOrdernessTimestampExtractor], reason: str
) -> None:
    events = StreamExecutionEnvironment().from_event_log(LOG, timestamp="at", integer_times=True)
    keyed = events.assign_timestamps_and_watermarks(extractor(Duration.of_millis(0))).key_by("key")
    with pytest.raises(ConfigurationError, match=rf"{extractor.__name__}.*{reason}"):
        keyed.window(TumblingEventTimeWindows.of(Time.seconds(4))).aggregate(n=count()).execute().to_arrow()
