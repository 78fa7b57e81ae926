"""Tests that a user writes with flinkcore.testing, for mypy --strict: never run."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import assert_type

from flinkcore.common import Duration, OutputTag, Watermark, WatermarkStrategy
from flinkcore.datastream import KeyedBroadcastProcessFunction, KeyedCoProcessFunction, KeyedProcessFunction
from flinkcore.datastream.state import BroadcastState, MapStateDescriptor
from flinkcore.operators.process_operators import KeyedProcessOperator
from flinkcore.operators.records.stream_elements import LatencyMarker
from flinkcore.testing import (
    HarnessMakers,
    KeyedBroadcastOperatorTestHarness,
    KeyedOneInputStreamOperatorTestHarness,
    KeyedTwoInputStreamOperatorTestHarness,
    ManualClock,
    OneInputStreamOperatorTestHarness,
    OperatorSubtaskState,
    StreamRecord,
    TaskInfo,
    WatermarkStatus,
    assert_output,
    for_keyed_broadcast_process_function,
    for_keyed_co_process_function,
    for_keyed_process_function,
    for_watermark_strategy,
)


@dataclass
class Payment:
    account: str
    amount: float


@dataclass
class Alert:
    account: str


class Detector(KeyedProcessFunction):
    def process_element(self, value: Payment, ctx: KeyedProcessFunction.Context) -> Iterator[Alert]:
        yield Alert(value.account)


class Joined(KeyedCoProcessFunction):
    def process_element1(self, value: Payment, ctx: KeyedCoProcessFunction.Context) -> None: ...

    def process_element2(self, value: str, ctx: KeyedCoProcessFunction.Context) -> None: ...


class Ruled(KeyedBroadcastProcessFunction):
    def process_element(self, value: Payment, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> None: ...

    def process_broadcast_element(self, value: int, ctx: KeyedBroadcastProcessFunction.Context) -> None: ...


def account_of(payment: Payment) -> str:
    return payment.account


Detecting = KeyedOneInputStreamOperatorTestHarness[str, Payment, Alert]
RULES: MapStateDescriptor[str, int] = MapStateDescriptor("rules")

# The key selector tells the key; what a function takes and gives is not in its type, so the variable says it.
assert_type(
    for_keyed_process_function(Detector(), account_of),
    KeyedOneInputStreamOperatorTestHarness[str, Any, Any],
)
harness: Detecting = for_keyed_process_function(Detector(), lambda payment: payment.account)
with harness as opened:
    assert_type(opened, Detecting)
harness.process_element(Payment("a", 1.0), timestamp=5)
harness.process_element(StreamRecord(Payment("a", 1.0), 5))
harness.process_watermark(Watermark(5))
harness.advance_time(Duration.of_minutes(1))
assert_type(harness.get_output(), list[StreamRecord[Alert] | Watermark | WatermarkStatus | LatencyMarker])
assert_type(harness.extract_output_values(), list[Alert])
assert_type(harness.extract_output_stream_records()[0].timestamp, int | None)
assert_type(harness.get_side_output(OutputTag("late")), list[StreamRecord[Any]])
assert_type(harness.get_keys("count"), list[str])
assert_type(harness.get_processing_time_service(), ManualClock)
assert_output(harness, [StreamRecord(Alert("a"), 5), Watermark(5), pytest.approx(1)], ignore_order=True)

with for_keyed_process_function(Detector(), lambda payment: payment.account) as anything:
    anything.process_element(Payment("a", 1.0))

state = harness.snapshot()
assert_type(state, OperatorSubtaskState)
assert_type(harness.repackage_state(state, state), OperatorSubtaskState)
for_keyed_process_function(Detector(), account_of, restore_from=Path("checkpoint"))
for_keyed_process_function(Detector(), account_of, task=TaskInfo("fraud", parallelism=2), restore_from=state)

operator_harness = KeyedOneInputStreamOperatorTestHarness[str, Payment, Alert](
    lambda given: KeyedProcessOperator(
        Detector(), given.key_selector, given.output, given.keyed_state_backend, given.processing_time_service
    ),
    account_of,
)
assert_type(operator_harness, Detecting)

two: KeyedTwoInputStreamOperatorTestHarness[str, Payment, str, Any] = for_keyed_co_process_function(
    Joined(), account_of, lambda name: name
)
two.process_element1(Payment("a", 1.0))
two.process_element2("a", 5)
ruled: KeyedBroadcastOperatorTestHarness[str, Payment, int, Any] = for_keyed_broadcast_process_function(
    Ruled(), account_of, RULES
)
ruled.process_broadcast_element(5)
assert_type(ruled.get_broadcast_state(RULES), BroadcastState[str, int])
times: OneInputStreamOperatorTestHarness[str, str] = for_watermark_strategy(WatermarkStrategy.no_watermarks())


def test_with_fixtures(flinkcore_harnesses: HarnessMakers, flinkcore_clock: ManualClock) -> None:
    made = flinkcore_harnesses.for_keyed_process_function(Detector(), account_of)
    assert_type(made, KeyedOneInputStreamOperatorTestHarness[str, Any, Any])
    assert_type(flinkcore_harnesses.close_at_end(harness), Detecting)


# Each of these is a mistake that mypy must see; warn_unused_ignores makes a missed one an error.
harness.process_element(5)  # type: ignore[arg-type]
harness.process_watermark("5")  # type: ignore[arg-type]
harness.process_watermark_status("idle")  # type: ignore[arg-type]
harness.process_watermark1(5)  # type: ignore[attr-defined]
harness.get_keyed_state("count", 5)  # type: ignore[arg-type]
two.process_element1("a")  # type: ignore[arg-type]
ruled.process_element(5)  # type: ignore[arg-type]
for_keyed_process_function(Detector, account_of)  # type: ignore[arg-type]
for_keyed_process_function(Detector())  # type: ignore[call-arg]
for_keyed_process_function(Joined(), account_of)  # type: ignore[arg-type]
