"""The process function of a query of Nexmark, over batches of rows of many keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from flinkcore.datastream import KeyedBatchProcessFunction, RuntimeContext
from flinkcore.examples.nexmark.generator import BID, splitmix64

BIDS_WITH_VALUES = pa.schema(
    [*(BID.field(name) for name in ("auction", "bidder", "price", "date_time")), ("value", pa.string())]
)

NO_TIMERS = 1 << 60
"""No timer comes so soon after an element, in ms."""


class SideInput(KeyedBatchProcessFunction):
    """Adds the value that a table has for the key."""

    KEYS = 10_000
    min_event_time_delay_ms = NO_TIMERS

    def open(self, runtime_context: RuntimeContext) -> None:
        self.values = side_input()["value"]

    def process_batch(
        self, elements: KeyedBatchProcessFunction.ElementBatch, ctx: KeyedBatchProcessFunction.Context
    ) -> Iterator[Any]:
        names = "auction", "bidder", "price", "date_time"
        yield {**{name: elements[name] for name in names}, "value": self.values.take(elements["key"])}


def side_input() -> pa.RecordBatch:
    """Return the table of q13: a value for each key."""
    keys = np.arange(SideInput.KEYS)
    values = [f"{value:016x}" for value in splitmix64(0, 0, keys).tolist()]
    return pa.record_batch({"key": keys, "value": values})
