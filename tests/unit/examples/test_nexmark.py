"""Nexmark: the generator has Nexmark's distributions, and the queries give what DuckDB gives for the same log."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from jobs.window_programs import Count

from flinkcore.common import Time
from flinkcore.datastream import (
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from flinkcore.datastream.window import TimeWindow, TumblingProcessingTimeWindows
from flinkcore.errors import ConfigurationError
from flinkcore.examples.nexmark.generator import Generator, Log
from flinkcore.examples.nexmark.queries import QUERIES, Streams
from flinkcore.examples.nexmark.side_input import side_input
from flinkcore.examples.nexmark.sql import DUCKDB_MACROS, SQL

# Two minutes, in which no two auctions of a seller expire at once: the order of such is left open in q6.
LOG = Generator(6_000, events_per_second=50)
LONGEST_AUCTION = Time.milliseconds(LOG.longest_auction_ms)


@pytest.fixture(scope="module")
def log() -> Log:
    return LOG.log()


@pytest.fixture(scope="module")
def tables(log: Log) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(DUCKDB_MACROS)
    for name, table in log._asdict().items():
        assert isinstance(table, pa.Table)
        connection.register(name, table.append_column("position", pa.array(range(len(table)))))
    connection.register("side_input", pa.Table.from_batches([side_input()]))
    return connection


def rows(table: pa.Table, names: list[str]) -> Counter[tuple[Any, ...]]:
    """Rows as they compare: times in ms, lists in order, and how often each row comes."""
    columns = []
    for name in names:
        column = table[name]
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("ms")).cast(pa.int64())
        values = column.to_pylist()
        columns.append([tuple(sorted(value)) if isinstance(value, list) else value for value in values])
    return Counter(zip(*columns, strict=True))


def last_of_keys(table: pa.Table, key: str, by: str) -> pa.Table:
    """What a table with updates holds in the end."""
    last = table.group_by(key).aggregate([(by, "max")])
    return table.join(last, [key, by], [key, f"{by}_max"], join_type="inner")


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("query", QUERIES)
def test_a_query_gives_what_it_gives_in_sql(
    log: Log, tables: duckdb.DuckDBPyConnection, query: str, parallelism: int
) -> None:
    environment = StreamExecutionEnvironment().set_parallelism(parallelism)
    found = QUERIES[query](Streams(environment, log, LONGEST_AUCTION)).to_arrow()
    if query == "q4":
        found = last_of_keys(found, "category", "auctions")
    expected = tables.sql(SQL[query]).to_arrow_table()
    assert expected.num_rows > 0
    assert rows(found, expected.column_names) == rows(expected, expected.column_names)


def test_there_is_sql_for_each_query() -> None:
    assert list(SQL) == list(QUERIES) == [f"q{number}" for number in range(23)]


@pytest.mark.parametrize("query", ["q3", "q5", "q9", "q11", "q19", "q20"])
def test_a_query_over_two_halves_of_a_log_gives_what_it_gives_over_all_of_it(
    log: Log, tmp_path: Path, query: str
) -> None:
    environment = StreamExecutionEnvironment().set_parallelism(2)
    cut = LOG.base_ms + 70_000
    halves = [
        Log(*(table.filter(is_in(pc.field("arrival").cast(pa.int64()), cut)) for table in log))  # type: ignore[attr-defined]
        for is_in in (pc.less, pc.greater_equal)
    ]
    first = QUERIES[query](Streams(environment, halves[0], LONGEST_AUCTION)).execute(
        stop_with_checkpoint=tmp_path / "cut"
    )
    early = first.to_arrow()
    later = (
        QUERIES[query](Streams(environment, halves[1], LONGEST_AUCTION))
        .execute(restore_from=tmp_path / "cut")
        .to_arrow()
    )
    whole = QUERIES[query](Streams(environment, log, LONGEST_AUCTION)).to_arrow()
    names = whole.column_names
    assert rows(early, names) + rows(later, names) == rows(whole, names)
    assert later.num_rows > 0


class WithBidder(ProcessWindowFunction[int, Any, int, TimeWindow]):
    def process(self, key: int, context: Any, elements: Iterable[int]) -> Iterator[Any]:
        yield key, context.window().start, next(iter(elements))


def test_windows_over_arrivals_are_those_of_processing_time(log: Log) -> None:
    streams = Streams(StreamExecutionEnvironment(), log, LONGEST_AUCTION)
    schema = pa.schema({"bidder": pa.int64(), "start": pa.timestamp("ms"), "bids": pa.int64()})
    windows = streams.bids.key_by("bidder").window(TumblingProcessingTimeWindows.of(Time.seconds(10)))
    by_clock = windows.aggregate(Count(), WithBidder(), output_type=schema).to_arrow()
    by_arrival = QUERIES["q12"](streams).select("bidder", "bids", start=pc.field("window_start")).to_arrow()
    # Timers of processing time that are due after the last arrival do not fire.
    ended = by_arrival.filter(pc.field("start") < pc.scalar(LOG.base_ms + 110_000).cast(pa.timestamp("ms")))
    assert ended.num_rows > 100
    assert rows(by_clock, schema.names) == rows(ended, schema.names)


# ---- the generator ----


def test_of_fifty_events_one_is_a_person_three_are_auctions_and_the_others_bids(log: Log) -> None:
    sizes = [len(table) for table in log]  # type: ignore[arg-type]
    assert sizes == [120, 360, 5520]


def test_a_log_is_the_same_however_it_is_made() -> None:
    whole = Generator(5_000, disorder_ms=100).log()
    for number, table in enumerate(whole):
        parts = [batches[number] for batches in Generator(5_000, disorder_ms=100).batches(700)]
        assert pa.Table.from_batches(parts) == table
    assert Generator(5_000, seed=43, disorder_ms=100).log().bids != whole.bids


@pytest.mark.parametrize("disorder_ms", [0, 100, 4_000])
def test_events_are_out_of_order_by_at_most_so_much(disorder_ms: int) -> None:
    bids = Generator(100_000, disorder_ms=disorder_ms).log().bids
    assert isinstance(bids, pa.Table)
    times, arrivals = (bids[name].cast(pa.int64()).to_numpy() for name in ("date_time", "arrival"))
    behind = np.maximum.accumulate(times) - times
    assert behind.max() <= disorder_ms
    assert (behind.max() > disorder_ms / 2) == (disorder_ms > 0)
    assert (np.diff(arrivals) >= 0).all()
    assert np.abs(arrivals - times).max() <= disorder_ms


def test_hot_keys_prices_and_lengths_are_those_of_nexmark() -> None:
    events = Generator(200_000)
    persons, auctions, bids = events.log()
    assert isinstance(persons, pa.Table)
    assert isinstance(auctions, pa.Table)
    assert isinstance(bids, pa.Table)
    of_bids = bids["auction"].to_numpy()
    assert np.mean(of_bids % 100 == 0) == pytest.approx(0.5, abs=0.02)
    assert np.mean(bids["bidder"].to_numpy() % 100 == 1) == pytest.approx(0.75, abs=0.02)
    assert np.mean(auctions["seller"].to_numpy() % 100 == 0) == pytest.approx(0.75, abs=0.02)
    assert np.mean(
        pc.is_in(bids["channel"], pa.array(["Google", "Facebook", "Baidu", "Apple"])).to_numpy()
    ) == (pytest.approx(0.5, abs=0.02))
    assert np.mean(np.log10(bids["price"].to_numpy())) == pytest.approx(5, abs=0.02)
    lengths = pc.subtract(auctions["expires"], auctions["date_time"]).cast(pa.int64()).to_numpy()
    assert (lengths.min(), lengths.max()) == (1, events.longest_auction_ms) == (1, 332)
    assert set(auctions["category"].to_pylist()) == {10, 11, 12, 13, 14}
    for table, size, numbers in ((persons, 200, 8), (auctions, 500, 48)):
        texts = [table[name] for name in table.column_names if pa.types.is_string(table[name].type)]
        bytes_of_rows = sum(pc.sum(pc.binary_length(column)).as_py() for column in texts) / len(table)
        assert bytes_of_rows + numbers == pytest.approx(size, rel=0.01)
    assert pc.mean(pc.binary_length(bids["extra"])).as_py() == pytest.approx(68, rel=0.05)
    card, email = persons["credit_card"][0].as_py(), persons["email_address"][0].as_py()
    assert re.fullmatch(r"(\d{4} ){3}\d{4}", card)
    assert re.fullmatch(r"[a-z]{3,6}@[a-z]{3,4}\.com", email)
    assert sorted(auctions["id"].to_pylist()) == list(range(1_000, 1_000 + len(auctions)))
    assert sorted(persons["id"].to_pylist()) == list(range(1_000, 1_000 + len(persons)))


@pytest.mark.parametrize(("before", "active"), [(0, 1_000), (5_000, 5_000)])
def test_bids_are_for_the_last_auctions_and_by_the_last_persons_or_one_of_the_next_ten(
    before: int, active: int
) -> None:
    number = np.arange(100_000)
    events = Generator(people_before=before, active_people=active)
    number = number[number % 50 >= 4]
    behind = 1_000 + number // 50 * 3 + 2 - events.bid_auctions(number)
    assert (behind.min(), behind.max()) == (-10, 100)
    assert behind[number < 50].max() == 2
    behind = 1_000 + before + number // 50 - events.bidders(number)
    assert (behind.min(), behind.max()) == (-10, active - 1)


def test_disorder_is_in_whole_rounds() -> None:
    with pytest.raises(ConfigurationError, match="shuffled in groups of 30; that is to be a multiple of 50"):
        Generator(events_per_second=10, disorder_ms=3_000)
