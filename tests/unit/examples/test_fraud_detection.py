"""The tests that a user writes for a process function, with flinkcore.testing."""

from pathlib import Path

import pytest

from flinkcore.common import Row, Watermark
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.examples.fraud_detection import FraudDetector, suspicious_transactions, transactions
from flinkcore.testing import (
    HarnessMakers,
    KeyedOneInputStreamOperatorTestHarness,
    OperatorSubtaskState,
    StreamRecord,
    TaskInfo,
    assert_output,
    for_keyed_process_function,
)

MINUTE = 60_000
Transaction = Row("account", "amount")
Harness = KeyedOneInputStreamOperatorTestHarness[int, Row, tuple[int, float]]


def account_of(transaction: Row) -> int:
    account: int = transaction["account"]
    return account


@pytest.fixture
def harness(flinkcore_harnesses: HarnessMakers) -> Harness:
    return flinkcore_harnesses.for_keyed_process_function(FraudDetector(), account_of)


def test_a_large_transaction_after_a_small_one_raises_an_alert(harness: Harness) -> None:
    harness.process_element(Transaction(1, 0.99), timestamp=1_000)
    harness.process_element(Transaction(1, 500.01), timestamp=2_000)
    assert_output(harness, [StreamRecord((1, 500.01), 2_000)])


@pytest.mark.parametrize("amounts", [(1.00, 900.0), (0.50, 500.00), (0.50, 20.0, 900.0), (900.0, 0.50)])
def test_no_other_sequence_of_amounts_raises_one(harness: Harness, amounts: tuple[float, ...]) -> None:
    for i, amount in enumerate(amounts):
        harness.process_element(Transaction(1, amount), timestamp=1_000 * i)
    assert harness.extract_output_values() == []


def test_accounts_do_not_mix(harness: Harness) -> None:
    harness.process_element(Transaction(1, 0.50), timestamp=1_000)
    harness.process_element(Transaction(2, 900.0), timestamp=2_000)
    assert harness.extract_output_values() == []
    assert harness.get_keyed_state("small at", 1) == 1_000
    assert harness.get_keyed_state("small at", 2) is None


@pytest.mark.parametrize(("later", "n_alerts"), [(MINUTE, 1), (MINUTE + 1, 0)])
def test_a_minute_counts_in_event_time_however_late_the_watermark(
    harness: Harness, later: int, n_alerts: int
) -> None:
    harness.process_element(Transaction(1, 0.50), timestamp=1_000)
    harness.process_watermark(1_000 + MINUTE - 1)
    harness.process_element(Transaction(1, 900.0), timestamp=1_000 + later)
    assert len(harness.extract_output_values()) == n_alerts


def test_the_watermark_a_minute_later_clears_the_state(harness: Harness) -> None:
    harness.process_element(Transaction(1, 0.50), timestamp=1_000)
    assert harness.num_event_time_timers() == 1
    harness.process_watermark(1_000 + MINUTE)
    assert_output(harness.take_output(), [Watermark(1_000 + MINUTE)])
    assert harness.num_keyed_state_entries() == 0


@pytest.mark.flinkcore_no_leaks
def test_nothing_is_left_of_an_account_after_an_alert(harness: Harness) -> None:
    harness.process_element(Transaction(1, 0.50), timestamp=1_000)
    harness.process_element(Transaction(1, 900.0), timestamp=2_000)


def test_a_failure_between_the_two_transactions_changes_nothing(harness: Harness, tmp_path: Path) -> None:
    harness.process_element(Transaction(1, 0.50), timestamp=1_000)
    harness.snapshot().write(tmp_path)
    with for_keyed_process_function(FraudDetector(), account_of, restore_from=tmp_path) as restored:
        restored.process_element(Transaction(1, 900.0), timestamp=2_000)
        assert_output(restored, [StreamRecord((1, 900.0), 2_000)])


def test_the_job_may_be_scaled_out_between_the_two_transactions(
    harness: Harness, flinkcore_harnesses: HarnessMakers
) -> None:
    for account in range(20):
        harness.process_element(Transaction(account, 0.50), timestamp=1_000)
    state: OperatorSubtaskState = harness.snapshot()
    subtasks = [
        flinkcore_harnesses.for_keyed_process_function(
            FraudDetector(),
            account_of,
            task=TaskInfo("fraud", parallelism=3, index=index),
            restore_from=state,
        )
        for index in range(3)
    ]
    for account in range(20):
        (owner,) = (subtask for subtask in subtasks if subtask.owns_key(account))
        owner.process_element(Transaction(account, 900.0), timestamp=2_000)
    alerts = [alert for subtask in subtasks for alert in subtask.extract_output_values()]
    assert sorted(alerts) == [(account, 900.0) for account in range(20)]


def test_the_job_finds_the_one_account_that_is_robbed() -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    alerts = suspicious_transactions(environment, transactions()).execute().to_arrow()
    assert alerts.select(["account", "amount"]).to_pylist() == [{"account": 1, "amount": 812.5}]
