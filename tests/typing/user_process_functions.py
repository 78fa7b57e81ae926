"""Process functions as a user writes them; mypy reads them, nobody runs them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from typing_extensions import assert_type

from flinkcore.common import OutputTag
from flinkcore.datastream import (
    BatchTimerService,
    CoalescingTimerService,
    KeyedBatchProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
    RuntimeContext,
    TimeDomain,
    TimerService,
)
from flinkcore.datastream.state import ColumnListState, ColumnState, ValueState, ValueStateDescriptor

quiet = OutputTag("quiet")


class Inactivity(KeyedProcessFunction):
    """Reports keys of which nothing was heard for a minute."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.due: ValueState[int] = runtime_context.get_state(ValueStateDescriptor("due"))

    def process_element(self, value: dict[str, Any], ctx: KeyedProcessFunction.Context) -> None:
        assert_type(ctx.timer_service(), TimerService)
        assert_type(ctx.timestamp(), int)
        timers = CoalescingTimerService(ctx.timer_service(), 1000)
        due = self.due.value()
        if due is not None:
            timers.delete_event_time_timer(due)
        due = (ctx.timestamp() or 0) + 60_000
        timers.register_event_time_timer(due)
        self.due.update(due)
        ctx.time_domain()  # type: ignore[attr-defined]

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        assert_type(ctx.time_domain(), TimeDomain)
        self.due.clear()
        yield quiet, ctx.get_current_key()


class InactivityOfBatches(KeyedBatchProcessFunction):
    """The same over batches."""

    min_event_time_delay_ms = 60_000

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_column_state("seen", np.int64)
        assert_type(self.seen, ColumnState)
        self.held = runtime_context.get_column_list_state("held", pa.schema({"number": pa.int64()}))
        assert_type(self.held, ColumnListState)

    def process_batch(
        self, elements: KeyedBatchProcessFunction.ElementBatch, ctx: KeyedBatchProcessFunction.Context
    ) -> None:
        assert_type(elements.timestamps, npt.NDArray[np.int64])
        assert_type(ctx.timer_service(), BatchTimerService)
        last = elements.last_of_keys()
        key_ids = elements.key_ids[last]
        self.seen[key_ids] += 1
        ctx.timer_service().delete_event_time_timers(key_ids)
        ctx.timer_service().register_event_time_timers(key_ids, elements.timestamps[last] + 60_000)

    def on_timers(
        self, timers: KeyedBatchProcessFunction.TimerBatch, ctx: KeyedBatchProcessFunction.Context
    ) -> Iterator[Any]:
        assert_type(timers.time_domain, TimeDomain)
        yield quiet, timers.keys
        yield {"seen": self.seen[timers.key_ids]}


class Split(ProcessFunction):
    def process_element(self, value: str, ctx: ProcessFunction.Context) -> list[str]:
        return value.split()


class Wrong(ProcessFunction):
    def process_element(self, value: str, ctx: ProcessFunction.Context) -> int:  # type: ignore[override]
        return len(value)


class Join(KeyedCoProcessFunction):
    def process_element1(self, value: int, ctx: KeyedCoProcessFunction.Context) -> Iterator[int]:
        yield value

    def process_element2(self, value: str, ctx: KeyedCoProcessFunction.Context) -> Iterator[int]:
        yield len(value)
