"""A job over single elements that drops many of them as late warns of it, with the line that mends it."""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from jobs.timed_elements import BY_VALUE, ValueIsTime

from flinkcore.common import Configuration, Duration, OutputTag, Time, Types, WatermarkStrategy
from flinkcore.datastream import (
    DataStream,
    EventTimeSessionWindows,
    ProcessJoinFunction,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.errors import LateEventsWarning

VALUES = [1, 12, 25, 3, 26, 14]
"""In windows of 10 ms, 3 and 14 are late: 3 comes when the watermark is 24, and needs one that is 22 ms lower."""


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.get_config().set_auto_watermark_interval(1)
    return environment


def _elements(
    env: StreamExecutionEnvironment, values: Sequence[int] = VALUES, strategy: WatermarkStrategy = BY_VALUE
) -> DataStream:
    return env.from_collection(list(values), Types.INT()).assign_timestamps_and_watermarks(strategy)


def _windows(elements: DataStream, assigner: Any = None) -> Any:
    tumbling = TumblingEventTimeWindows.of(Time.milliseconds(10))
    return elements.key_by(lambda value: 0).window(assigner or tumbling)


def _sums(windows: Any) -> DataStream:
    summed: DataStream = windows.reduce(lambda left, right: left + right).name("sums")
    return summed


def _run(stream: DataStream) -> None:
    list(stream.execute_and_collect())


def _warnings(run: Callable[[], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    found = [each for each in caught if each.category is LateEventsWarning]
    assert [each.filename for each in found] == [__file__] * len(found)
    return [str(each.message) for each in found]


def test_windows_that_drop_late_elements_warn_with_the_bound_that_loses_none(
    env: StreamExecutionEnvironment,
) -> None:
    (warning,) = _warnings(lambda: _run(_sums(_windows(_elements(env)))))
    assert warning.startswith(
        "33 % of the events of 'sums' are late and are dropped: 2 of 6. The watermark was ahead of them by up to 22 "
        "ms: for_bounded_out_of_orderness(Duration.of_millis(22)) loses none, where the bound is 0 ms now."
    )
    mended = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(22))
    elements = _elements(env, strategy=mended.with_timestamp_assigner(ValueIsTime()))
    assert _warnings(lambda: _run(_sums(_windows(elements)))) == []


def test_the_bound_in_the_warning_counts_the_allowed_lateness(env: StreamExecutionEnvironment) -> None:
    windows = _windows(_elements(env)).allowed_lateness(10)
    (warning,) = _warnings(lambda: _run(_sums(windows)))
    assert "are dropped: 1 of 6. " in warning
    assert "for_bounded_out_of_orderness(Duration.of_millis(12)) loses none" in warning


def test_elements_of_windows_that_merge_are_counted_once(env: StreamExecutionEnvironment) -> None:
    sessions = EventTimeSessionWindows.with_gap(Time.milliseconds(2))
    (warning,) = _warnings(lambda: _run(_sums(_windows(_elements(env), sessions))))
    assert "are dropped: 2 of 6. " in warning


def test_many_elements_of_open_windows_are_counted_once(env: StreamExecutionEnvironment) -> None:
    elements = _elements(env, [*range(1000), *range(500)])
    (warning,) = _warnings(lambda: _run(_sums(_windows(elements))))
    assert "are dropped: 500 of 1,500. " in warning


def test_late_elements_of_all_subtasks_are_added(env: StreamExecutionEnvironment) -> None:
    env.set_parallelism(2)
    elements = _elements(env, [*range(100), *range(50)])
    keyed = elements.key_by(lambda value: value % 7)
    summed = _sums(keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(10))))
    (warning,) = _warnings(lambda: _run(summed))
    assert " of 150. " in warning


def test_late_elements_of_a_side_output_are_not_lost(env: StreamExecutionEnvironment) -> None:
    windows = _windows(_elements(env)).side_output_late_data(OutputTag("late", Types.INT()))
    assert _warnings(lambda: _run(_sums(windows))) == []


def test_a_few_late_elements_are_accepted_up_to_the_share_that_is_set(
    env: StreamExecutionEnvironment,
) -> None:
    def run() -> None:
        _run(_sums(_windows(_elements(env, [*range(300), 0]))))

    assert _warnings(run) == []
    env.configure(Configuration().set_string("flinkcore.late-share-warning", "0"))
    (warning,) = _warnings(run)
    assert "are dropped: 1 of 301. " in warning


class Pairs(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: Any) -> Any:
        yield left, right


def _joined(env: StreamExecutionEnvironment) -> Any:
    left, right = (_elements(env, values).key_by(lambda value: 0) for values in (VALUES, range(30, 130)))
    return left.interval_join(right).between(-2, 2)


def test_an_interval_join_that_drops_late_elements_warns(env: StreamExecutionEnvironment) -> None:
    (warning,) = _warnings(lambda: _run(_joined(env).process(Pairs()).name("pairs")))
    assert "of the events of 'pairs' are late and are dropped: " in warning
    assert " of 106. The watermark was ahead of them by up to " in warning
    assert "for_bounded_out_of_orderness(Duration.of_millis(" in warning


def test_side_outputs_of_an_interval_join_take_its_late_elements(env: StreamExecutionEnvironment) -> None:
    tag = OutputTag("late", Types.INT())
    joined = _joined(env).side_output_left_late_data(tag).side_output_right_late_data(tag)
    assert _warnings(lambda: _run(joined.process(Pairs()))) == []


def test_a_generator_of_ones_own_has_no_bound_to_change(env: StreamExecutionEnvironment) -> None:
    strategies = [
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(ms)).with_timestamp_assigner(
            ValueIsTime()
        )
        for ms in (0, 1)
    ]
    first, second = (_elements(env, VALUES, strategy) for strategy in strategies)
    (warning,) = _warnings(lambda: _run(_sums(_windows(first.union(second)))))
    assert "watermark strategies that trail the elements by " in warning
    assert "Duration.of_millis" not in warning


@pytest.mark.parametrize("action", ["execute", "execute_async"])
def test_every_way_to_run_a_job_warns(env: StreamExecutionEnvironment, action: str, tmp_path: Path) -> None:
    def run() -> None:
        _sums(_windows(_elements(env))).print()
        if action == "execute":
            env.execute()
        else:
            env.execute_async().get_job_execution_result().result()

    assert len(_warnings(run)) == 1


def test_a_job_that_stops_with_a_checkpoint_warns_of_its_own_late_elements(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    def run() -> None:
        _sums(_windows(_elements(env))).print()
        env.execute(stop_with_checkpoint=tmp_path / "checkpoint")

    (warning,) = _warnings(run)
    assert "are dropped: 2 of 6. " in warning
