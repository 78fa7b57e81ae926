"""Card fraud: an alert for a large transaction that follows a small one within a minute, as Flink's walkthrough has it.

A process function on keyed state and event-time timers. Run it over a small log with
``python -m flinkcore.examples.fraud_detection``; how a user tests it, with ``flinkcore.testing``, is shown by
``tests/unit/test_fraud_detection.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import pyarrow as pa

from flinkcore.common import Duration, Row, WatermarkStrategy
from flinkcore.datastream import KeyedProcessFunction, LogStream, RuntimeContext, StreamExecutionEnvironment
from flinkcore.datastream.state import ValueState, ValueStateDescriptor

SMALL_AMOUNT = 1.0
"""A thief tries a card with less than this,"""

LARGE_AMOUNT = 500.0
"""and then takes more than this,"""

ONE_MINUTE_MS = 60_000
"""at most so much later."""

ALERTS = pa.schema({"account": pa.int64(), "amount": pa.float64()})


class FraudDetector(KeyedProcessFunction):
    """Raises an alert for a large transaction that directly follows a small one, at most a minute later.

    The state of an account is the time of a small transaction. It is cleared at the next transaction, or when the
    watermark is a minute past it.
    """

    def open(self, runtime_context: RuntimeContext) -> None:

        self.small_at: ValueState[int] = runtime_context.get_state(ValueStateDescriptor("small at"))

    def process_element(self, value: Row, ctx: KeyedProcessFunction.Context) -> Iterator[tuple[int, float]]:

        now = ctx.timestamp()
        assert now is not None
        small_at = self.small_at.value()
        if small_at is not None:
            # The watermark trails event time: state that is still there need not be recent.
            if value.amount > LARGE_AMOUNT and 0 <= now - small_at <= ONE_MINUTE_MS:
                yield ctx.get_current_key(), value.amount
            ctx.timer_service().delete_event_time_timer(small_at + ONE_MINUTE_MS)
            self.small_at.clear()
        if value.amount < SMALL_AMOUNT:
            self.small_at.update(now)
            ctx.timer_service().register_event_time_timer(now + ONE_MINUTE_MS)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> None:

        self.small_at.clear()


def transactions() -> pa.Table:
    """Return a small log: account 1 is robbed, 2 spends much a minute too late, 3 spends something in between."""
    noon = datetime(2026, 5, 4, 12)
    rows = [
        (0, 1, 0.34), (3, 2, 0.80), (5, 3, 0.10), (9, 1, 812.50), (20, 3, 25.00), (31, 3, 970.00), (64, 2, 700.00),
    ]  # fmt: skip
    return pa.table(
        {
            "at": pa.array([noon + timedelta(seconds=seconds) for seconds, _, _ in rows], pa.timestamp("ms")),
            "account": pa.array([account for _, account, _ in rows], pa.int64()),
            "amount": pa.array([amount for _, _, amount in rows], pa.float64()),
        }
    )


def suspicious_transactions(environment: StreamExecutionEnvironment, log: pa.Table) -> LogStream:
    """Return alerts, with the time of the large transaction."""
    return (
        environment.from_event_log(log, timestamp="at")
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
        )
        .key_by("account")
        .process(FraudDetector(), ALERTS, timestamp_column="at")
    )


def main() -> None:
    """Replay the log in this process, and print the alerts."""
    environment = StreamExecutionEnvironment.get_execution_environment()
    for alert in suspicious_transactions(environment, transactions()).execute().to_arrow().to_pylist():
        print(f"{alert['at']:%H:%M:%S}  account {alert['account']} spends {alert['amount']:.2f}")


if __name__ == "__main__":
    main()
