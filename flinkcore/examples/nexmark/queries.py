"""The queries of Nexmark over the logs of `flinkcore.examples.nexmark.generator`.

Each is a function of the streams of persons, auctions and bids; `QUERIES` has them all. In SQL they are in
`flinkcore.examples.nexmark.sql`. Events are up to four seconds out of order, as the watermarks of Nexmark allow for.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore.common import Duration, Time, WatermarkStrategy
from flinkcore.datastream import (
    EventTimeSessionWindows,
    LogStream,
    SlidingEventTimeWindows,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import collect, count, count_distinct, max_, mean, min_, sum_
from flinkcore.examples.nexmark.generator import AUCTION, BID, Log
from flinkcore.examples.nexmark.side_input import KEYS, side_input

OUT_OF_ORDERNESS = Duration.of_seconds(4)
WATERMARKS = WatermarkStrategy.for_bounded_out_of_orderness(OUT_OF_ORDERNESS)
TEN_SECONDS = TumblingEventTimeWindows.of(Time.seconds(10))
LONGEST_AUCTION = Time.seconds(10)
DAYS = TumblingEventTimeWindows.of(Time.days(1))


class Streams:
    """The streams of a log, with event time and watermarks.

    Parameters
    ----------
    environment : StreamExecutionEnvironment
    log : Log
    longest_auction : Time
        No auction is open for longer. They are so for at most ``Generator.longest_auction_ms``, 332 ms at the rate that
        generators have by themselves.
    """

    def __init__(
        self, environment: StreamExecutionEnvironment, log: Log, longest_auction: Time = LONGEST_AUCTION
    ) -> None:
        self._environment = environment
        self._log = log
        self.longest_auction = longest_auction

    def _of(self, events: object) -> LogStream:
        log = self._environment.from_event_log(events, timestamp="date_time", arrival="arrival")
        return log.assign_timestamps_and_watermarks(WATERMARKS)

    @property
    def persons(self) -> LogStream:
        """Persons who register."""
        return self._of(self._log.persons)

    @property
    def auctions(self) -> LogStream:
        """Auctions that are opened."""
        return self._of(self._log.auctions)

    @property
    def bids(self) -> LogStream:
        """Bids."""
        return self._of(self._log.bids)

    @property
    def bids_by_arrival(self) -> LogStream:
        """Bids whose event time is their arrival: windows over them are those of processing time."""
        log = self._environment.from_event_log(self._log.bids, timestamp="arrival", arrival="arrival")
        return log.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())


_OF_AUCTION = [name for name in AUCTION.names if name != "arrival"]
_BID = [name for name in BID.names if name != "arrival"]


def q0(streams: Streams) -> LogStream:
    """Pass through: all bids."""
    return streams.bids.select("auction", "bidder", "price", "date_time", "extra")


def q1(streams: Streams) -> LogStream:
    """Currency conversion: prices in euros."""
    euros = pc.multiply(pc.field("price"), 0.908)
    return streams.bids.select("auction", "bidder", "date_time", "extra", price=euros)


def q2(streams: Streams) -> LogStream:
    """Selection: the bids for one auction in 123."""
    return streams.bids.filter(_remainder(pc.field("auction"), 123) == 0).select("auction", "price")


def q3(streams: Streams) -> LogStream:
    """Local item suggestion: who sells in category 10 and lives in Oregon, Idaho or California."""
    auctions = streams.auctions.filter(pc.field("category") == 10).select("seller", auction=pc.field("id"))
    persons = streams.persons.filter(pc.field("state").isin(["OR", "ID", "CA"])).select(
        "id", "name", "city", "state"
    )
    sold = persons.key_by("id").join_regular(auctions.key_by("seller"))
    return sold.select("name", "city", "state", "auction")


def winning_bids(streams: Streams, auctions: LogStream, bids: LogStream) -> LogStream:
    """The highest bid of each auction while it was open, the earliest of several, when it expires."""
    while_open = auctions.key_by("id").join_interval(
        bids.key_by("auction"),
        Time.milliseconds(0),
        streams.longest_auction,
        where=pc.field("bid_date_time") <= pc.field("expires"),
    )
    return while_open.key_by("id").top(
        1, by=["price", "bid_date_time"], descending=[True, False], rank_column=None, window_end="expires"
    )


def _prices_won(streams: Streams, column: str) -> LogStream:
    """The price of each winning bid, with a column of its auction."""
    auctions = streams.auctions.select("id", "expires", column)
    bids = streams.bids.select("auction", "price", bid_date_time=pc.field("date_time"))
    return winning_bids(streams, auctions, bids).select(column, "price")


def q4(streams: Streams) -> LogStream:
    """Return the average price of the winning bids of a category, updated with each of them."""
    of_category = _prices_won(streams, "category").key_by("category")
    changes = of_category.aggregate(average=mean("price"), auctions=count(), changes=True)
    return changes.filter(pc.field("row_kind") != "-U")


def q5(streams: Streams) -> LogStream:
    """Hot items: the auctions with most bids in the last ten seconds, every two seconds."""
    windows = SlidingEventTimeWindows.of(Time.seconds(10), Time.seconds(2))
    counts = streams.bids.key_by("auction").window(windows).aggregate(n=count())
    by_window = counts.select("auction", "n", "window_end").key_by("window_end")
    hottest = by_window.top(1, by="n", rank="rank", rank_column=None, window_end="window_end")
    # A result has the last moment of its window as its event time.
    step = TumblingEventTimeWindows.of(Time.seconds(2))
    return hottest.window_all(step).aggregate(auctions=collect("auction"), n=max_("n"))


def q6(streams: Streams) -> LogStream:
    """Average selling price by seller: of the last ten auctions of each; Flink SQL cannot express it."""
    last_ten = _prices_won(streams, "seller").key_by("seller").over(9, by="arrival")
    return last_ten.aggregate(average=mean("price")).select("seller", "average")


def q7(streams: Streams) -> LogStream:
    """Highest bid: of each ten seconds, all bids of the highest price."""
    bids = streams.bids.select("auction", "bidder", "price", "date_time", "extra")
    time_ms = pc.field("date_time").cast(pa.int64())
    by_window = bids.with_columns(window=time_ms - _remainder(time_ms, 10_000)).key_by("window")
    highest = by_window.window(TEN_SECONDS).top(1, by="price", rank="rank", rank_column=None)
    return highest.select("auction", "bidder", "price", "date_time", "extra")


def q8(streams: Streams) -> LogStream:
    """Monitor new users: who opened an auction in the ten seconds in which they registered."""
    persons, auctions = streams.persons.select("id", "name"), streams.auctions.select("seller")
    both = persons.key_by("id").join_window(auctions.key_by("seller"), TEN_SECONDS, how="semi")
    return both.select("name", "window_start", "id")


def q9(streams: Streams) -> LogStream:
    """Winning bids: of each auction."""
    bids = streams.bids.select(
        "auction", "bidder", "price", bid_date_time=pc.field("date_time"), bid_extra=pc.field("extra")
    )
    return winning_bids(streams, streams.auctions.select(*_OF_AUCTION), bids)


def q10(streams: Streams) -> LogStream:
    """Log to file system: all bids, with the day and the minute by which files are partitioned.

    Write them by ``write_delta(path, partition_by=("day", "minute"))``.
    """
    return q0(streams).with_columns(
        day=pc.strftime(pc.field("date_time"), "%Y-%m-%d"), minute=pc.strftime(pc.field("date_time"), "%H:%M")
    )


def q11(streams: Streams) -> LogStream:
    """User sessions: bids of each bidder until ten seconds pass without one."""
    return (
        streams.bids.key_by("bidder")
        .window(EventTimeSessionWindows.with_gap(Time.seconds(10)))
        .aggregate(bids=count())
    )


def q12(streams: Streams) -> LogStream:
    """Processing time windows: bids of each bidder in each ten seconds of arrivals."""
    return streams.bids_by_arrival.key_by("bidder").window(TEN_SECONDS).aggregate(bids=count())


def q13(streams: Streams) -> LogStream:
    """Bounded side input join: each bid with the value of a table for its auction."""
    key = _remainder(pc.field("auction"), KEYS)
    # The join passes on all columns that come to it.
    bids = streams.bids.select("auction", "bidder", "price", "date_time", key=key)
    return bids.join_lookup(side_input(), on="key").select("auction", "bidder", "price", "date_time", "value")


def q14(streams: Streams) -> LogStream:
    """Calculation: bids from a million to 50 million, with the time of the day and a count of letters."""
    euros = pc.multiply(pc.field("price"), 0.908)
    hour = pc.hour(pc.field("date_time"))
    bids = streams.bids.with_columns(price=euros)
    return bids.filter((pc.field("price") > 1_000_000) & (pc.field("price") < 50_000_000)).select(
        "auction",
        "bidder",
        "price",
        "date_time",
        "extra",
        bid_time_type=pc.if_else(
            (hour >= 8) & (hour <= 18),
            "dayTime",
            pc.if_else((hour <= 6) | (hour >= 20), "nightTime", "otherTime"),
        ),
        c_counts=pc.count_substring(pc.field("extra"), "c"),
    )


RANKS = {
    "rank1": pc.field("price") < 10_000,
    "rank2": (pc.field("price") >= 10_000) & (pc.field("price") < 1_000_000),
    "rank3": pc.field("price") >= 1_000_000,
}


def _by_rank(bids: LogStream, *columns: str) -> LogStream:
    """Bids with columns such as ``bidder_rank1``, which are null where the price is of another rank."""
    return bids.with_columns(
        **{
            f"{name}_{rank}": pc.if_else(condition, pc.field(name), pc.scalar(pa.scalar(None, pa.int64())))
            for rank, condition in RANKS.items()
            for name in columns
        }
    )


STATISTICS = {
    "bids": count(),
    **{f"{rank}_bids": count(f"auction_{rank}") for rank in RANKS},
    "bidders": count_distinct("bidder"),
    **{f"{rank}_bidders": count_distinct(f"bidder_{rank}") for rank in RANKS},
    "auctions": count_distinct("auction"),
    **{f"{rank}_auctions": count_distinct(f"auction_{rank}") for rank in RANKS},
}


def q15(streams: Streams) -> LogStream:
    """Bidding statistics: of each day."""
    return _by_rank(streams.bids, "bidder", "auction").window_all(DAYS).aggregate(**STATISTICS)


def q16(streams: Streams) -> LogStream:
    """Channel statistics: of each channel and day, with the last minute."""
    bids = _by_rank(streams.bids, "bidder", "auction").key_by("channel")
    statistics = bids.window(DAYS).aggregate(minute=max_("date_time"), **STATISTICS)
    return statistics.with_columns(minute=pc.strftime(pc.field("minute"), "%H:%M"))


def q17(streams: Streams) -> LogStream:
    """Auction statistics: of each auction and day."""
    return (
        _by_rank(streams.bids, "price")
        .key_by("auction")
        .window(DAYS)
        .aggregate(
            bids=count(),
            **{f"{rank}_bids": count(f"price_{rank}") for rank in RANKS},
            least=min_("price"),
            greatest=max_("price"),
            average=mean("price"),
            total=sum_("price"),
        )
    )


def q18(streams: Streams) -> LogStream:
    """Find last bid: of each bidder for each auction; of several, the last to arrive."""
    return streams.bids.key_by("bidder", "auction").deduplicate(keep="last").select(*_BID)


def q19(streams: Streams) -> LogStream:
    """Auction top 10 price: the highest bids of each auction; of several, those that arrive first."""
    return streams.bids.select(*_BID).key_by("auction").top(10, by="price")


def q20(streams: Streams) -> LogStream:
    """Expand bid with auction: for the auctions of category 10."""
    auctions = streams.auctions.filter(pc.field("category") == 10).select(*_OF_AUCTION)
    bids = streams.bids.select(
        *("auction", "bidder", "price", "channel", "url"),
        bid_date_time=pc.field("date_time"),
        bid_extra=pc.field("extra"),
    )
    both = bids.key_by("auction").join_regular(auctions.key_by("id"))
    of_auction = (name for name in _OF_AUCTION if name != "id")
    return both.select(
        "auction", "bidder", "price", "channel", "url", "bid_date_time", "bid_extra", *of_auction
    )


def q21(streams: Streams) -> LogStream:
    """Add channel id: that of a known channel, or the one in the address."""
    ids = {"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}
    found = pc.struct_field(pc.extract_regex(pc.field("url"), r"(?:&|^)channel_id=(?P<id>[^&]*)"), "id")
    for channel, channel_id in ids.items():
        found = pc.if_else(pc.utf8_lower(pc.field("channel")) == channel, channel_id, found)
    return (
        streams.bids.with_columns(channel_id=found)
        .filter(pc.field("channel_id").is_valid())
        .select("auction", "bidder", "price", "channel", "channel_id")
    )


def q22(streams: Streams) -> LogStream:
    """Get URL directories: of each bid."""
    parts = pc.split_pattern(pc.field("url"), "/")
    directories = {f"dir{number}": pc.list_element(parts, 2 + number) for number in (1, 2, 3)}
    return streams.bids.select("auction", "bidder", "price", "channel", **directories)


def _remainder(expression: pc.Expression, divisor: int) -> pc.Expression:
    """Arrow has no function for it."""
    return expression - pc.divide(expression, divisor) * divisor


QUERIES: dict[str, Callable[[Streams], LogStream]] = {
    query.__name__: query
    for query in (
        *(q0, q1, q2, q3, q4, q5, q6, q7, q8, q9, q10, q11, q12, q13, q14, q15, q16, q17, q18, q19, q20, q21),
        q22,
    )
}
