"""The queries of Nexmark in Flink's SQL, as scripts that Flink plans for itself and for flinkcore.

Tables are the logs of `nexmark_log`, with the names of their columns. A sink takes changes without `-U`, as Flink's
blackhole does. Without q6, which Flink refuses, and q13, whose side input is a table that is looked up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.peers import flink
from flinkcore.examples.nexmark.generator import AUCTION, BID, PERSON

TABLES = {"persons": PERSON, "auctions": AUCTION, "bids": BID}
SINK = "results"

LAST_ROWS = {"q4": "category", "q9": "id"}
"""Queries of two tables whose changes depend on how these are read; compared are the last rows of each key."""

OTHER_ROWS = ("q5", "q7", "q12", "q15", "q16", "q17", "q18", "q19")
"""Queries that return other rows than elsewhere: most of them each update, q12 no window that is open at the end."""

_TYPES = {"int64": "BIGINT", "string": "STRING", "timestamp[ms]": "TIMESTAMP(3)"}
_TIME = "TIMESTAMP(3)"
_BID = f"auction BIGINT, bidder BIGINT, price BIGINT, date_time {_TIME}, extra STRING"
_WHOLE_BID = f"auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, date_time {_TIME}, extra STRING"
_AUCTION = (
    f"id BIGINT, item_name STRING, description STRING, initial_bid BIGINT, reserve BIGINT, date_time {_TIME}, "
    f"expires {_TIME}, seller BIGINT, category BIGINT, extra STRING"
)
_DAY = "DATE_FORMAT(date_time, 'yyyy-MM-dd')"
_WINDOW = "DESCRIPTOR(date_time), INTERVAL '10' SECOND"

_RANKS = {
    "": "",
    "rank1_": " FILTER (WHERE price < 10000)",
    "rank2_": " FILTER (WHERE price >= 10000 AND price < 1000000)",
    "rank3_": " FILTER (WHERE price >= 1000000)",
}
_STATISTICS = {
    f"{rank}{name}": f"COUNT({what}){condition}"
    for name, what in (("bids", "*"), ("bidders", "DISTINCT bidder"), ("auctions", "DISTINCT auction"))
    for rank, condition in _RANKS.items()
}
_COUNTS = {name: count for name, count in _STATISTICS.items() if name.endswith("bids")}
_HOT_ITEMS = """
    SELECT auction, COUNT(*) AS n, window_start, window_end
    FROM TABLE(HOP(TABLE bids, DESCRIPTOR(date_time), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
    GROUP BY auction, window_start, window_end
"""


def _named(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{expression} AS {name}" for name, expression in columns.items())


def _declared(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{name} BIGINT" for name in columns)


QUERIES = {
    "q0": (_BID, "SELECT auction, bidder, price, date_time, extra FROM bids"),
    "q1": (
        f"auction BIGINT, bidder BIGINT, price DECIMAL(23, 3), date_time {_TIME}, extra STRING",
        "SELECT auction, bidder, 0.908 * price, date_time, extra FROM bids",
    ),
    "q2": ("auction BIGINT, price BIGINT", "SELECT auction, price FROM bids WHERE MOD(auction, 123) = 0"),
    "q3": (
        "name STRING, city STRING, state STRING, auction BIGINT",
        """SELECT p.name, p.city, p.state, a.id FROM auctions a JOIN persons p ON a.seller = p.id
        WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')""",
    ),
    "q4": (
        "category BIGINT, average BIGINT",
        """SELECT category, AVG(price) FROM (
            SELECT MAX(b.price) AS price, a.category FROM auctions a JOIN bids b
            ON a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires
            GROUP BY a.id, a.category
        ) GROUP BY category""",
    ),
    "q5": (
        "auction BIGINT, n BIGINT",
        f"""SELECT counts.auction, counts.n FROM ({_HOT_ITEMS}) AS counts
        JOIN (
            SELECT MAX(n) AS most, window_start, window_end FROM ({_HOT_ITEMS}) GROUP BY window_start, window_end
        ) AS hottest
        ON counts.window_start = hottest.window_start AND counts.window_end = hottest.window_end
        AND counts.n >= hottest.most""",
    ),
    "q7": (
        _BID,
        f"""SELECT b.auction, b.bidder, b.price, b.date_time, b.extra FROM bids b JOIN (
            SELECT MAX(price) AS highest, window_end FROM TABLE(TUMBLE(TABLE bids, {_WINDOW}))
            GROUP BY window_start, window_end
        ) AS w ON b.price = w.highest
        WHERE b.date_time BETWEEN w.window_end - INTERVAL '10' SECOND AND w.window_end""",
    ),
    "q8": (
        f"id BIGINT, name STRING, window_start {_TIME}",
        f"""SELECT p.id, p.name, p.window_start FROM (
            SELECT id, name, window_start, window_end FROM TABLE(TUMBLE(TABLE persons, {_WINDOW}))
            GROUP BY id, name, window_start, window_end
        ) AS p JOIN (
            SELECT seller, window_start, window_end FROM TABLE(TUMBLE(TABLE auctions, {_WINDOW}))
            GROUP BY seller, window_start, window_end
        ) AS a ON p.id = a.seller AND p.window_start = a.window_start AND p.window_end = a.window_end""",
    ),
    "q9": (
        f"{_AUCTION}, auction BIGINT, bidder BIGINT, price BIGINT, bid_date_time {_TIME}, bid_extra STRING",
        """SELECT id, item_name, description, initial_bid, reserve, date_time, expires, seller, category, extra,
            auction, bidder, price, bid_date_time, bid_extra
        FROM (
            SELECT a.*, b.auction, b.bidder, b.price, b.date_time AS bid_date_time, b.extra AS bid_extra,
                ROW_NUMBER() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time ASC) AS place
            FROM auctions a JOIN bids b ON a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires
        ) WHERE place <= 1""",
    ),
    "q10": (
        f"{_BID}, `day` STRING, `minute` STRING",
        f"SELECT auction, bidder, price, date_time, extra, {_DAY}, DATE_FORMAT(date_time, 'HH:mm') FROM bids",
    ),
    "q11": (
        f"bidder BIGINT, bids BIGINT, window_start {_TIME}, window_end {_TIME}",
        f"""SELECT bidder, COUNT(*), window_start, window_end
        FROM TABLE(SESSION(TABLE bids PARTITION BY bidder, {_WINDOW})) GROUP BY bidder, window_start, window_end""",
    ),
    "q12": (
        f"bidder BIGINT, bids BIGINT, window_start {_TIME}, window_end {_TIME}",
        """SELECT bidder, COUNT(*), window_start, window_end
        FROM TABLE(TUMBLE(TABLE bids_now, DESCRIPTOR(now), INTERVAL '10' SECOND))
        GROUP BY bidder, window_start, window_end""",
    ),
    "q14": (
        f"auction BIGINT, bidder BIGINT, price DECIMAL(23, 3), bid_time_type STRING, date_time {_TIME}, extra STRING, "
        "c_counts BIGINT",
        """SELECT auction, bidder, 0.908 * price,
            CASE
                WHEN HOUR(date_time) >= 8 AND HOUR(date_time) <= 18 THEN 'dayTime'
                WHEN HOUR(date_time) <= 6 OR HOUR(date_time) >= 20 THEN 'nightTime'
                ELSE 'otherTime'
            END,
            date_time, extra, CAST(CHAR_LENGTH(extra) - CHAR_LENGTH(REPLACE(extra, 'c', '')) AS BIGINT)
        FROM bids WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000""",
    ),
    "q15": (
        f"`day` STRING, {_declared(_STATISTICS)}",
        f"SELECT {_DAY}, {_named(_STATISTICS)} FROM bids GROUP BY {_DAY}",
    ),
    "q16": (
        f"channel STRING, `day` STRING, `minute` STRING, {_declared(_STATISTICS)}",
        f"""SELECT channel, {_DAY}, MAX(DATE_FORMAT(date_time, 'HH:mm')), {_named(_STATISTICS)}
        FROM bids GROUP BY channel, {_DAY}""",
    ),
    "q17": (
        f"auction BIGINT, `day` STRING, {_declared(_COUNTS)}, least BIGINT, greatest BIGINT, average BIGINT, "
        "total BIGINT",
        f"""SELECT auction, {_DAY}, {_named(_COUNTS)}, MIN(price), MAX(price), AVG(price), SUM(price)
        FROM bids GROUP BY auction, {_DAY}""",
    ),
    "q18": (
        _WHOLE_BID,
        """SELECT auction, bidder, price, channel, url, date_time, extra FROM (
            SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC) AS place FROM bids
        ) WHERE place <= 1""",
    ),
    "q19": (
        f"{_WHOLE_BID}, place BIGINT",
        """SELECT auction, bidder, price, channel, url, date_time, extra, place FROM (
            SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS place FROM bids
        ) WHERE place <= 10""",
    ),
    "q20": (
        f"auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, bid_date_time {_TIME}, "
        f"bid_extra STRING, item_name STRING, description STRING, initial_bid BIGINT, reserve BIGINT, "
        f"date_time {_TIME}, expires {_TIME}, seller BIGINT, category BIGINT, extra STRING",
        """SELECT auction, bidder, price, channel, url, b.date_time, b.extra, item_name, description, initial_bid,
            reserve, a.date_time, expires, seller, category, a.extra
        FROM bids b JOIN auctions a ON b.auction = a.id WHERE a.category = 10""",
    ),
    "q21": (
        "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, channel_id STRING",
        r"""SELECT auction, bidder, price, channel, CASE
            WHEN LOWER(channel) = 'apple' THEN '0'
            WHEN LOWER(channel) = 'google' THEN '1'
            WHEN LOWER(channel) = 'facebook' THEN '2'
            WHEN LOWER(channel) = 'baidu' THEN '3'
            ELSE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2)
        END
        FROM bids WHERE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) IS NOT NULL
        OR LOWER(channel) IN ('apple', 'google', 'facebook', 'baidu')""",
    ),
    "q22": (
        "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, dir1 STRING, dir2 STRING, dir3 STRING",
        """SELECT auction, bidder, price, channel,
            SPLIT_INDEX(url, '/', 3), SPLIT_INDEX(url, '/', 4), SPLIT_INDEX(url, '/', 5) FROM bids""",
    ),
}
"""Columns of the sink, whose names are those of `nexmark_log.SUMMED`, and the query."""


def script(query: str) -> list[str]:
    """Return the statements of a query: its tables, its sink, and the insertion."""
    statements = []
    for name, schema in TABLES.items():
        columns = ", ".join(f"{column.name} {_TYPES[str(column.type)]}" for column in schema)
        statements.append(
            f"CREATE TABLE {name} ({columns}, WATERMARK FOR date_time AS date_time - INTERVAL '4' SECOND) "
            f"WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = 'file:///{name}')"
        )
    columns, select = QUERIES[query]
    if query == "q12":
        statements.append("CREATE TEMPORARY VIEW bids_now AS SELECT bidder, PROCTIME() AS now FROM bids")
    statements.append(f"CREATE TABLE {SINK} ({columns}) WITH ('connector' = 'blackhole')")
    return [*statements, f"INSERT INTO {SINK} {select}"]


def plan(query: str) -> Mapping[str, Any]:
    """Return the plan that Flink makes of a query; FlinkUnavailable without Java or Flink's jars."""
    from flinkcore.sql.planner.planned_script import planned
    from flinkcore.sql.planner.statements import statements_of

    flink.set_home()
    (job,) = planned(statements_of(";\n".join(script(query))), {"table.local-time-zone": "UTC"})
    return job.plan


def nodes(compiled: Mapping[str, Any]) -> list[str]:
    """Return the kinds of nodes of a plan, in its order."""
    return [node["type"] for node in compiled["nodes"]]
