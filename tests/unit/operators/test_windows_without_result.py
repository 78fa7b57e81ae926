"""Windows that an element fires, and whose aggregate is None: PyFlink keeps them, Java purges them."""

from typing import Any

import pyarrow as pa
import pytest
from jobs.window_programs import Surroundings, record, values, windows_of

from flinkcore.common import Time, TimestampAssigner, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.datastream.functions import AggregateFunction, ProcessWindowFunction
from flinkcore.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    PurgingTrigger,
    TumblingEventTimeWindows,
    WindowOperation,
)
from flinkcore.testing import for_window_operation

PURGING = PurgingTrigger.of(CountTrigger.of(1))


class ByNumber(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        number: int = value[1]
        return number


class PairsOnly(AggregateFunction[Any, list[int], list[int] | None]):
    """The values, if there are two or more of them."""

    def create_accumulator(self) -> list[int]:
        return []

    def add(self, value: Any, accumulator: list[int]) -> list[int]:
        return [*accumulator, value[1]]

    def get_result(self, accumulator: list[int]) -> list[int] | None:
        return accumulator if len(accumulator) > 1 else None

    def merge(self, acc_a: list[int], acc_b: list[int]) -> list[int]:
        return acc_a + acc_b


class Shown(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        for numbers in elements:
            yield key, str(numbers)


ASSIGNERS = [
    GlobalWindows.create(),
    TumblingEventTimeWindows.of(Time.milliseconds(100)),
    EventTimeSessionWindows.with_gap(Time.milliseconds(100)),
]
ELEMENTS = [("a", number) for number in (1, 2, 3, 4)]
KEPT = [("a", "[1, 2]"), ("a", "[3, 4]")]


@pytest.mark.parametrize("assigner", ASSIGNERS, ids=repr)
def test_a_job_of_elements_keeps_the_window_as_pyflink_does(assigner: Any) -> None:
    env = StreamExecutionEnvironment()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ByNumber())
    stream = env.from_collection(ELEMENTS).assign_timestamps_and_watermarks(strategy)
    windows = stream.key_by(lambda value: value[0]).window(assigner).trigger(PURGING)
    assert list(windows.aggregate(PairsOnly(), Shown()).execute_and_collect()) == KEPT


@pytest.mark.parametrize("assigner", ASSIGNERS, ids=repr)
def test_a_function_over_a_log_keeps_the_window_as_pyflink_does(assigner: Any) -> None:
    log = pa.table({"k": ["a"] * 4, "n": [1, 2, 3, 4], "at": [1, 2, 3, 4]})
    stream = StreamExecutionEnvironment().from_event_log(log, timestamp="at", arrival="at")
    assigned = stream.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
    windows = assigned.key_by("k").window(assigner).trigger(PURGING)
    given = windows.aggregate(
        PairsOnly(), Shown(), output_type=pa.schema({"k": pa.string(), "n": pa.string()})
    )
    assert [tuple(row.values()) for row in given.to_arrow().select(["k", "n"]).to_pylist()] == KEPT


@pytest.mark.parametrize("assigner", ASSIGNERS, ids=repr)
def test_a_harness_keeps_the_window_as_a_job_does(assigner: Any) -> None:
    operation = WindowOperation(assigner, PURGING, pre_aggregation=PairsOnly(), window_function=Shown())
    with for_window_operation(operation, lambda value: value[0]) as harness:
        harness.process_element(ELEMENTS[0], 1)
        assert harness.num_event_time_timers() == 0
        for element in ELEMENTS[1:]:
            harness.process_element(element, element[1])
        assert harness.extract_output_values() == KEPT


@pytest.mark.parametrize("assigner", ASSIGNERS, ids=repr)
def test_the_operator_of_java_purges_the_window(assigner: Any) -> None:
    around = Surroundings()
    operator = around.windows(
        windows_of(assigner, trigger=PURGING, pre_aggregation=PairsOnly(), window_function=Shown())
    )
    for number in (1, 2, 3, 4):
        operator.process_element(record("a", number, number))
    assert values(around) == []
