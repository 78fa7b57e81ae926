"""Tests of functions and operators, element by element, without a job and without a JVM: Flink's test harnesses.

A harness runs one subtask of an operator with a clock that stands still, and keeps what it emits::

    from flinkcore.common import Watermark
    from flinkcore.testing import StreamRecord, assert_output, for_keyed_process_function

    def test_a_large_transaction_after_a_small_one_is_an_alert():
        with for_keyed_process_function(FraudDetector(), lambda transaction: transaction.account) as harness:
            harness.process_element(Transaction("a", 0.5), timestamp=1_000)
            harness.process_element(Transaction("a", 900.0), timestamp=2_000)
            harness.process_watermark(2_000)
            assert_output(harness, [StreamRecord(Alert("a"), 2_000), Watermark(2_000)])

Making one
    `for_process_function`, `for_keyed_process_function`, `for_co_process_function`, `for_keyed_co_process_function`,
    `for_broadcast_process_function`, `for_keyed_broadcast_process_function`, `for_window_operation`,
    `for_interval_join`, `for_watermark_strategy`, `for_source` and `for_source_function` make and open one. The classes
    (`OneInputStreamOperatorTestHarness` and so on) take any operator, by a function of `StreamOperatorParameters` that
    makes it.
Input
    `process_element`, `process_watermark`, `process_watermark_status` (with 1 or 2, or `broadcast`, for two inputs),
    `set_processing_time`, `advance_time`; from a source `emit_next`.
Output
    `get_output`, `take_output`, `extract_output_values`, `get_side_output`; `assert_output` compares.
State and timers
    `num_keyed_state_entries`, `get_keyed_state`, `get_keys`, `num_event_time_timers`, `num_processing_time_timers`,
    `refuse_leaks`.
Snapshots
    `snapshot`, then `initialize_state` of another harness, or ``restore_from=`` of a maker; in memory, or through a
    directory (`OperatorSubtaskState.write`). `repackage_state` joins the snapshots of several subtasks for another
    parallelism.

A whole job is replayed under other legal histories of a log by `assert_deterministic` and `find_races`.

With pytest there are the fixtures `flinkcore_harnesses` and `flinkcore_clock`, and the mark `flinkcore_no_leaks`; see
``flinkcore.pytest_plugin``. A README.md is beside this file; ``flinkcore.examples.fraud_detection`` is the job above.
"""

from flinkcore.operators.records.stream_elements import StreamRecord, WatermarkStatus
from flinkcore.operators.streaming_runtime_context import TaskInfo
from flinkcore.testing.abstract_stream_operator_test_harness import (
    AbstractStreamOperatorTestHarness,
    ClockedTestHarness,
    ManualClock,
    StreamOperatorParameters,
)
from flinkcore.testing.determinism import Race, Races, assert_deterministic, find_races
from flinkcore.testing.one_input_stream_operator_test_harness import (
    KeyedOneInputStreamOperatorTestHarness,
    OneInputStreamOperatorTestHarness,
)
from flinkcore.testing.operator_subtask_state import OperatorSubtaskState
from flinkcore.testing.output_assertion import assert_output
from flinkcore.testing.process_function_test_harnesses import (
    HarnessMakers,
    for_broadcast_process_function,
    for_co_process_function,
    for_interval_join,
    for_keyed_broadcast_process_function,
    for_keyed_co_process_function,
    for_keyed_process_function,
    for_process_function,
    for_watermark_strategy,
    for_window_operation,
)
from flinkcore.testing.source_test_harnesses import (
    SourceFunctionTestHarness,
    SourceOperatorTestHarness,
    for_source,
    for_source_function,
)
from flinkcore.testing.two_input_stream_operator_test_harness import (
    BroadcastOperatorTestHarness,
    KeyedBroadcastOperatorTestHarness,
    KeyedTwoInputStreamOperatorTestHarness,
    TwoInputStreamOperatorTestHarness,
)

__all__ = [
    "AbstractStreamOperatorTestHarness",
    "BroadcastOperatorTestHarness",
    "ClockedTestHarness",
    "HarnessMakers",
    "KeyedBroadcastOperatorTestHarness",
    "KeyedOneInputStreamOperatorTestHarness",
    "KeyedTwoInputStreamOperatorTestHarness",
    "ManualClock",
    "OneInputStreamOperatorTestHarness",
    "OperatorSubtaskState",
    "Race",
    "Races",
    "SourceFunctionTestHarness",
    "SourceOperatorTestHarness",
    "StreamOperatorParameters",
    "StreamRecord",
    "TaskInfo",
    "TwoInputStreamOperatorTestHarness",
    "WatermarkStatus",
    "assert_deterministic",
    "assert_output",
    "find_races",
    "for_broadcast_process_function",
    "for_co_process_function",
    "for_interval_join",
    "for_keyed_broadcast_process_function",
    "for_keyed_co_process_function",
    "for_keyed_process_function",
    "for_process_function",
    "for_source",
    "for_source_function",
    "for_watermark_strategy",
    "for_window_operation",
]
