"""The process functions of Nexmark's queries, over batches of rows of many keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.datastream import KeyedBatchProcessFunction, RuntimeContext
from flinkcore.examples.nexmark.generator import AUCTION, BID, PERSON, TIME, splitmix64

SOLD_BY_PERSONS = pa.schema(
    [*(PERSON.field(name) for name in ("name", "city", "state")), ("auction", pa.int64())]
)
WINNING_BIDS = pa.schema(
    [
        *(field for field in AUCTION if field.name != "arrival"),
        *(BID.field(name) for name in ("auction", "bidder", "price")),
        ("bid_date_time", TIME),
        ("bid_extra", pa.string()),
    ]
)
HIGHEST_BIDS = pa.schema([BID.field(name) for name in ("auction", "bidder", "price", "date_time", "extra")])
BIDS_WITH_VALUES = pa.schema(
    [*(BID.field(name) for name in ("auction", "bidder", "price", "date_time")), ("value", pa.string())]
)
RANKED_BIDS = pa.schema([*(field for field in BID if field.name != "arrival"), ("rank", pa.int64())])
BIDS_WITH_AUCTIONS = pa.schema(
    [
        *(BID.field(name) for name in ("auction", "bidder", "price", "channel", "url")),
        ("bid_date_time", TIME),
        ("bid_extra", pa.string()),
        *(field for field in AUCTION if field.name not in ("id", "arrival")),
    ]
)

NO_TIMERS = 1 << 60
"""No timer comes so soon after an element, in ms."""

Rows = npt.NDArray[np.intp]


class WinningBids(KeyedBatchProcessFunction):
    """Gives the highest bid for an auction while it was open, the earliest of several, when it expires.

    Bids may come before their auction, and wait for it; after it has expired, none is looked at.
    """

    min_event_time_delay_ms = 1  # an auction lasts at least so long

    OF_AUCTION = WINNING_BIDS.names[:10]
    OF_BID = ("price", "bid_date_time", "bidder", "bid_extra")

    def open(self, runtime_context: RuntimeContext) -> None:
        # Before its auction, a key has no times at which a bid counts; after that, too, but then none waits.
        self.opened = runtime_context.get_column_state("opened", np.int64, MAX_TIMESTAMP)
        self.expires = runtime_context.get_column_state("expires", np.int64, MIN_TIMESTAMP)
        self.is_known = runtime_context.get_column_state("is known", np.bool_, False)
        self.auctions = runtime_context.get_column_state("auction", object, None)
        self.best = runtime_context.get_column_state("best bid", object, None)
        self.waiting = runtime_context.get_column_state("bids before the auction", object, None)

    def process_batch(
        self, elements: KeyedBatchProcessFunction.ElementBatch, ctx: KeyedBatchProcessFunction.Context
    ) -> None:
        is_bid = elements["stream"].to_numpy().astype(np.bool_)
        self._open(elements, np.flatnonzero(~is_bid), ctx)
        key_ids, times = elements.key_ids, elements.timestamps
        counts = (self.opened.array[key_ids] <= times) & (times <= self.expires.array[key_ids])
        self._offer(elements, np.flatnonzero(is_bid & counts))
        waits = np.flatnonzero(is_bid & ~self.is_known.array[key_ids])
        for key_id, *bid in zip(key_ids[waits].tolist(), *_lists(elements, waits, *self.OF_BID), strict=True):
            _append(self.waiting.array, key_id, tuple(bid))

    def _open(
        self,
        elements: KeyedBatchProcessFunction.ElementBatch,
        rows: Rows,
        ctx: KeyedBatchProcessFunction.Context,
    ) -> None:
        """Note auctions, and the best bids that have waited for them."""
        key_ids, opened = elements.key_ids[rows], elements.timestamps[rows]
        expires = elements["expires"].view(pa.int64()).to_numpy(zero_copy_only=False)[rows].astype(np.int64)
        self.is_known.array[key_ids] = True
        self.opened.array[key_ids] = opened
        self.expires.array[key_ids] = expires
        ctx.timer_service().register_event_time_timers(key_ids, expires)
        waiting, best = self.waiting.array, self.best.array
        for key_id, *auction in zip(key_ids.tolist(), *_lists(elements, rows, *self.OF_AUCTION), strict=True):
            self.auctions.array[key_id] = tuple(auction)
            if waiting[key_id]:
                first, last = self.opened.array[key_id], self.expires.array[key_id]
                valid = [bid for bid in waiting[key_id] if first <= bid[1] <= last]
                best[key_id] = min(valid, key=_rank, default=None)
                waiting[key_id] = None

    def _offer(self, elements: KeyedBatchProcessFunction.ElementBatch, rows: Rows) -> None:
        """Take bids that count, if they are better than the ones before."""
        prices = elements["price"].to_numpy(zero_copy_only=False)[rows]
        key_ids = elements.key_ids[rows]
        order = np.lexsort((elements.timestamps[rows], -prices, key_ids))
        first = order[np.flatnonzero(np.diff(key_ids[order], prepend=-1))]
        best = self.best.array
        for key_id, *bid in zip(
            key_ids[first].tolist(), *_lists(elements, rows[first], *self.OF_BID), strict=True
        ):
            if best[key_id] is None or _rank(bid) < _rank(best[key_id]):
                best[key_id] = tuple(bid)

    def on_timers(
        self, timers: KeyedBatchProcessFunction.TimerBatch, ctx: KeyedBatchProcessFunction.Context
    ) -> Iterator[Any]:
        key_ids = timers.key_ids
        pairs = zip(self.auctions.array[key_ids], self.best.array[key_ids], strict=True)
        won, rows = [], []
        for row, (auction, bid) in enumerate(pairs):
            if bid is not None:
                price, bid_date_time, bidder, bid_extra = bid
                won.append((*auction, auction[0], bidder, price, bid_date_time, bid_extra))
                rows.append(row)
        yield timers.results(_table(won, WINNING_BIDS), rows)
        for state in (self.opened, self.expires, self.auctions, self.best):
            state.clear(key_ids)


def _rank(bid: Sequence[Any]) -> tuple[int, int]:
    """The highest price comes first, and then the earliest time."""
    return -bid[0], bid[1]


class HighestBids(KeyedBatchProcessFunction):
    """Gives the bids with the highest price of each window, all of them if there are several, when it ends.

    The key is the start of the window, in ms. Bids that come after its end are dropped.

    Parameters
    ----------
    length_ms : int
    """

    min_event_time_delay_ms = 0  # a window ends with the time of a bid or after it

    OF_BID = HIGHEST_BIDS.names

    def __init__(self, length_ms: int) -> None:
        self.length_ms = length_ms

    def open(self, runtime_context: RuntimeContext) -> None:
        self.highest = runtime_context.get_column_state("highest price", np.int64, -1)
        self.bids = runtime_context.get_column_state("bids of this price", object, None)

    def process_batch(
        self, elements: KeyedBatchProcessFunction.ElementBatch, ctx: KeyedBatchProcessFunction.Context
    ) -> None:
        key_ids = elements.key_ids
        ends = elements["window"].to_numpy() + self.length_ms - 1
        prices = np.where(elements.watermarks < ends, elements["price"].to_numpy(), -1)
        highest, bids = self.highest.array, self.bids.array
        before = highest[key_ids]
        np.maximum.at(highest, key_ids, prices)
        bids[key_ids[before < highest[key_ids]]] = None
        rows = np.flatnonzero((prices == highest[key_ids]) & (prices >= 0))
        for key_id, *bid in zip(key_ids[rows].tolist(), *_lists(elements, rows, *self.OF_BID), strict=True):
            _append(bids, key_id, tuple(bid))
        ctx.timer_service().register_event_time_timers(key_ids[rows], ends[rows])

    def on_timers(
        self, timers: KeyedBatchProcessFunction.TimerBatch, ctx: KeyedBatchProcessFunction.Context
    ) -> Iterator[Any]:
        given = self.bids.array[timers.key_ids]
        rows = np.repeat(np.arange(len(timers)), [len(bids) for bids in given])
        yield timers.results(_table([bid for bids in given for bid in bids], HIGHEST_BIDS), rows)
        for state in (self.highest, self.bids):
            state.clear(timers.key_ids)


class SellersOfAuctions(KeyedBatchProcessFunction):
    """Joins persons of some states with the auctions that they open, whichever come first.

    Parameters
    ----------
    states : sequence of str
    """

    min_event_time_delay_ms = NO_TIMERS

    def __init__(self, states: Sequence[str]) -> None:
        self.states = list(states)

    def open(self, runtime_context: RuntimeContext) -> None:
        self.persons = runtime_context.get_column_state("name, city and state", object, None)
        self.waiting = runtime_context.get_column_state("auctions before the person", object, None)

    def process_batch(
        self, elements: KeyedBatchProcessFunction.ElementBatch, ctx: KeyedBatchProcessFunction.Context
    ) -> Iterator[Any]:
        persons, waiting = self.persons.array, self.waiting.array
        is_auction = elements["stream"].to_numpy().astype(np.bool_)
        sold: list[tuple[Any, ...]] = []
        rows = np.flatnonzero(~is_auction)
        for key_id, *person in zip(
            elements.key_ids[rows].tolist(), *_lists(elements, rows, "name", "city", "state"), strict=True
        ):
            is_wanted = person[2] in self.states
            persons[key_id] = tuple(person) if is_wanted else ()
            if is_wanted and waiting[key_id]:
                sold += [(*person, auction) for auction in waiting[key_id]]
            waiting[key_id] = None
        rows = np.flatnonzero(is_auction)
        for key_id, auction in zip(
            elements.key_ids[rows].tolist(), *_lists(elements, rows, "auction"), strict=True
        ):
            if persons[key_id]:
                sold.append((*persons[key_id], auction))
            elif persons[key_id] is None:
                _append(waiting, key_id, auction)
        yield _table(sold, SOLD_BY_PERSONS)


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


class TopBids(KeyedBatchProcessFunction):
    """Gives the highest bids of each auction when the log ends; of equal ones, those that arrived first.

    Parameters
    ----------
    n : int
    """

    min_event_time_delay_ms = NO_TIMERS  # but for the end of the log

    def __init__(self, n: int) -> None:
        self.n = n

    def open(self, runtime_context: RuntimeContext) -> None:
        self.top = runtime_context.get_column_state("highest bids", object, None)

    def process_batch(
        self, elements: KeyedBatchProcessFunction.ElementBatch, ctx: KeyedBatchProcessFunction.Context
    ) -> None:
        prices = elements["price"].to_numpy()
        # By key, of each key the highest first, and of equal ones the first to arrive.
        order = np.lexsort((-prices, elements.key_ids))
        begins = np.flatnonzero(np.diff(elements.key_ids[order], prepend=-1))
        sizes = np.diff(begins, append=len(order))
        rank = np.arange(len(order)) - np.repeat(begins, sizes)
        rows = order[rank < self.n]
        names = [name for name in RANKED_BIDS.names if name not in ("auction", "rank")]
        bids = list(zip(*_lists(elements, rows, *names), strict=True))
        price = names.index("price")
        ends = np.cumsum(np.minimum(sizes, self.n)).tolist()
        top = self.top.array
        new = []
        for key_id, begin, end in zip(
            elements.key_ids[order[begins]].tolist(), [0, *ends], ends, strict=False
        ):
            held = top[key_id]
            if held is None:
                new.append(key_id)
                top[key_id] = tuple(bids[begin:end])
            else:
                both = sorted((*held, *bids[begin:end]), key=lambda bid: -bid[price])
                top[key_id] = tuple(both[: self.n])
        ctx.timer_service().register_event_time_timers(np.array(new, np.int64), MAX_TIMESTAMP)

    def on_timers(
        self, timers: KeyedBatchProcessFunction.TimerBatch, ctx: KeyedBatchProcessFunction.Context
    ) -> Iterator[Any]:
        auctions = timers.keys["auction"].to_pylist()
        top = self.top.array[timers.key_ids]
        yield _table(
            [
                (auction, *bid, rank)
                for auction, bids in zip(auctions, top, strict=True)
                for rank, bid in enumerate(bids, 1)
            ],
            RANKED_BIDS,
        )


class BidsOfAuctions(KeyedBatchProcessFunction):
    """Joins the auctions of a category with the bids for them, whichever come first.

    Parameters
    ----------
    category : int
    """

    min_event_time_delay_ms = NO_TIMERS

    OF_BID = BIDS_WITH_AUCTIONS.names[:7]
    OF_AUCTION = BIDS_WITH_AUCTIONS.names[7:]
    UNKNOWN, WANTED, OTHER = range(3)

    def __init__(self, category: int) -> None:
        self.category = category

    def open(self, runtime_context: RuntimeContext) -> None:
        self.kinds = runtime_context.get_column_state("kind of auction", np.int8, self.UNKNOWN)
        self.auctions = runtime_context.get_column_state("auction", object, None)
        self.waiting = runtime_context.get_column_state("bids before the auction", object, None)

    def process_batch(
        self, elements: KeyedBatchProcessFunction.ElementBatch, ctx: KeyedBatchProcessFunction.Context
    ) -> Iterator[Any]:
        key_ids, kinds = elements.key_ids, self.kinds.array
        auctions, waiting = self.auctions.array, self.waiting.array
        is_bid = elements["stream"].to_numpy().astype(np.bool_)

        opened = np.flatnonzero(~is_bid)
        is_wanted = elements["category"].to_numpy(zero_copy_only=False)[opened] == self.category
        kinds[key_ids[opened]] = np.where(is_wanted, self.WANTED, self.OTHER)
        wanted = opened[is_wanted]
        joined = []
        for key_id, *auction in zip(
            key_ids[wanted].tolist(), *_lists(elements, wanted, *self.OF_AUCTION), strict=True
        ):
            auctions[key_id] = tuple(auction)
            joined += [(*bid, *auction) for bid in waiting[key_id] or ()]
        waiting[key_ids[opened]] = None
        yield _table(joined, BIDS_WITH_AUCTIONS)

        kind_of_rows = np.where(is_bid, kinds[key_ids], self.OTHER)
        yield self._with_auctions(elements, np.flatnonzero(kind_of_rows == self.WANTED))
        early = np.flatnonzero(kind_of_rows == self.UNKNOWN)
        for key_id, *bid in zip(key_ids[early].tolist(), *_lists(elements, early, *self.OF_BID), strict=True):
            _append(waiting, key_id, tuple(bid))

    def _with_auctions(
        self, elements: KeyedBatchProcessFunction.ElementBatch, rows: Rows
    ) -> dict[str, pa.Array]:
        """Bids for auctions that are known, with these: a Python object for each auction, and none for a bid."""
        bids = elements.batch.select(self.OF_BID).take(pa.array(rows))
        ids, of_bids = np.unique(elements.key_ids[rows], return_inverse=True)
        schema = pa.schema([BIDS_WITH_AUCTIONS.field(name) for name in self.OF_AUCTION])
        auctions = _table(self.auctions.array[ids].tolist(), schema)
        return {
            **dict(zip(self.OF_BID, bids.columns, strict=True)),
            **{name: column.take(pa.array(of_bids)) for name, column in auctions.items()},
        }


def _append(lists: npt.NDArray[Any], key_id: int, value: Any) -> None:
    if lists[key_id] is None:
        lists[key_id] = []
    lists[key_id].append(value)


def _lists(elements: KeyedBatchProcessFunction.ElementBatch, rows: Rows, *names: str) -> list[list[Any]]:
    """Some rows of columns as lists; times as numbers."""
    taken = elements.batch.select(list(names)).take(pa.array(rows))
    return [
        (column.view(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()
        for column in taken.columns
    ]


def _table(rows: list[tuple[Any, ...]], schema: pa.Schema) -> dict[str, pa.Array]:
    """Rows as columns; times are numbers."""
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return {
        field.name: pa.array(column, pa.int64()).view(field.type)
        if pa.types.is_timestamp(field.type)
        else pa.array(column, field.type)
        for field, column in zip(schema, columns, strict=True)
    }
