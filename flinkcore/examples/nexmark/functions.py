"""The process functions of Nexmark's queries, over batches of rows of many keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.datastream import KeyedBatchProcessFunction, RuntimeContext
from flinkcore.examples.nexmark.generator import AUCTION, BID, TIME, splitmix64

WINNING_BIDS = pa.schema(
    [
        *(field for field in AUCTION if field.name != "arrival"),
        *(BID.field(name) for name in ("auction", "bidder", "price")),
        ("bid_date_time", TIME),
        ("bid_extra", pa.string()),
    ]
)
BIDS_WITH_VALUES = pa.schema(
    [*(BID.field(name) for name in ("auction", "bidder", "price", "date_time")), ("value", pa.string())]
)

NO_TIMERS = 1 << 60
"""No timer comes so soon after an element, in ms."""

Ids = npt.NDArray[np.int64]


def _schema(schema: pa.Schema, *names: str) -> pa.Schema:
    """Some columns of a schema."""
    return pa.schema([schema.field(name) for name in names])


class WinningBids(KeyedBatchProcessFunction):
    """Function that emits the highest bid for an auction while it was open, the earliest of several, when it expires.

    Bids may come before their auction, and wait for it; after it has expired, none is looked at.
    """

    min_event_time_delay_ms = 1  # an auction lasts at least so long

    OF_AUCTION = _schema(WINNING_BIDS, *WINNING_BIDS.names[:10])
    OF_BID = _schema(WINNING_BIDS, "bidder", "price", "bid_date_time", "bid_extra")

    def open(self, runtime_context: RuntimeContext) -> None:
        # Before its auction, a key has no times at which a bid counts; after that, too, but then none waits.
        self.opened = runtime_context.get_column_state("opened", np.int64, MAX_TIMESTAMP)
        self.expires = runtime_context.get_column_state("expires", np.int64, MIN_TIMESTAMP)
        self.is_known = runtime_context.get_column_state("is known", np.bool_, False)
        self.auction = runtime_context.get_column_list_state("auction", self.OF_AUCTION)
        self.waiting = runtime_context.get_column_list_state("bids before the auction", self.OF_BID)
        self.best = runtime_context.get_column_list_state("best bid", self.OF_BID)
        self.best_price = runtime_context.get_column_state("price of the best bid", np.int64, -1)
        self.best_time = runtime_context.get_column_state("time of the best bid", np.int64)

    def process_batch(
        self, elements: KeyedBatchProcessFunction.ElementBatch, ctx: KeyedBatchProcessFunction.Context
    ) -> None:
        is_bid = elements["stream"].to_numpy().astype(np.bool_)
        auctions = np.flatnonzero(~is_bid)
        opened = elements.key_ids[auctions]
        expires = _times(elements["expires"])[auctions]
        self.is_known[opened] = True
        self.opened[opened] = elements.timestamps[auctions]
        self.expires[opened] = expires
        self.auction.add(opened, _taken(elements, self.OF_AUCTION, auctions))
        ctx.timer_service().register_event_time_timers(opened, expires)

        waited, places = self.waiting.get(opened)
        self._offer(opened[places], waited)
        self.waiting.clear(opened)

        bids = np.flatnonzero(is_bid)
        is_known = self.is_known[elements.key_ids[bids]]
        now, early = bids[is_known], bids[~is_known]
        self._offer(elements.key_ids[now], _taken(elements, self.OF_BID, now))
        self.waiting.add(elements.key_ids[early], _taken(elements, self.OF_BID, early))

    def _offer(self, key_ids: Ids, bids: pa.RecordBatch) -> None:
        """Keep the best of bids that count, where it is better than the one before."""
        times, prices = _times(bids["bid_date_time"]), bids["price"].to_numpy()
        counts = (self.opened[key_ids] <= times) & (times <= self.expires[key_ids])
        rows = np.flatnonzero(counts & (prices >= self.best_price[key_ids]))
        rows = rows[np.lexsort((times[rows], -prices[rows], key_ids[rows]))]
        rows = rows[np.diff(key_ids[rows], prepend=-1) != 0]
        best, price, time = key_ids[rows], prices[rows], times[rows]
        is_better = (price > self.best_price[best]) | (time < self.best_time[best])
        best, rows = best[is_better], rows[is_better]
        self.best_price[best] = prices[rows]
        self.best_time[best] = times[rows]
        self.best.update(best, bids.take(pa.array(rows)))

    def on_timers(
        self, timers: KeyedBatchProcessFunction.TimerBatch, ctx: KeyedBatchProcessFunction.Context
    ) -> Iterator[Any]:
        bids, places = self.best.get(timers.key_ids)
        auctions, _ = self.auction.get(timers.key_ids[places])
        won = dict(zip(WINNING_BIDS.names, [*auctions.columns, auctions["id"]], strict=False))
        yield timers.results({**won, **_columns(bids)}, places)
        for state in (self.opened, self.expires, self.auction, self.best, self.best_price):
            state.clear(timers.key_ids)


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


def _taken(elements: KeyedBatchProcessFunction.ElementBatch, schema: pa.Schema, rows: Ids) -> pa.RecordBatch:
    """Some rows of the columns of a schema."""
    return elements.batch.select(schema.names).take(pa.array(rows))


def _columns(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    return dict(zip(batch.schema.names, batch.columns, strict=True))


def _times(column: pa.Array) -> Ids:
    """Return the times in ms, with 0 for nulls."""
    times: Ids = column.view(pa.int64()).fill_null(0).to_numpy()
    return times
