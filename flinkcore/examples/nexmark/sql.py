"""Nexmark's queries in SQL, over whole tables: what a stream has given in the end.

The dialect is what Spark and DuckDB have in common. The tables are those of a
:class:`~flinkcore.examples.nexmark.generator.Log`, `persons`, `auctions` and `bids`, with a column `position`, the
order of arrival, and the `side_input` of q13. Where Nexmark leaves open which of several rows counts, the order of
arrival decides. Auctions of a seller that expire at once are in q6 in the order of their ids, and in a stream in
another one.
"""

# DuckDB 2.0.1 has no milliseconds of a TIMESTAMP_MS.
DUCKDB_MACROS = """
    CREATE MACRO unix_millis(t) AS epoch_ms(CAST(t AS TIMESTAMP));
    CREATE MACRO timestamp_millis(ms) AS epoch_ms(ms);
    CREATE MACRO collect_list(x) AS list(x);
    CREATE MACRO date_format(t, format) AS strftime(
        t, CASE format WHEN 'yyyy-MM-dd' THEN '%Y-%m-%d' ELSE '%H:%M' END
    );
"""
"""Functions of Spark that the queries call, for DuckDB."""


def _window(time: str, length_ms: int = 10_000) -> str:
    """Start of the tumbling window of a time, in ms."""
    return f"CAST(floor(unix_millis({time}) / {length_ms}) AS BIGINT) * {length_ms}"


_AUCTION = "id, item_name, description, initial_bid, reserve, a.date_time, expires, seller, category, a.extra"

_WINNING = f"""
    SELECT id, item_name, description, initial_bid, reserve, date_time, expires, seller, category, extra,
        auction, bidder, price, bid_date_time, bid_extra
    FROM (
        SELECT {_AUCTION}, auction, bidder, price, b.date_time AS bid_date_time, b.extra AS bid_extra,
            row_number() OVER (PARTITION BY id ORDER BY price DESC, b.date_time, b.position) AS rank
        FROM auctions a JOIN bids b ON auction = id AND b.date_time BETWEEN a.date_time AND expires
    ) AS ranked
    WHERE rank = 1
"""

_RANKS = {
    "": "true",
    "rank1_": "price < 10000",
    "rank2_": "price >= 10000 AND price < 1000000",
    "rank3_": "price >= 1000000",
}

_STATISTICS = ", ".join(
    f"count({what}) FILTER (WHERE {condition}) AS {rank}{name}"
    for name, what in (("bids", "*"), ("bidders", "DISTINCT bidder"), ("auctions", "DISTINCT auction"))
    for rank, condition in _RANKS.items()
)

_EUROS = "CAST(0.908 AS DOUBLE) * price"

SQL = {
    "q0": "SELECT auction, bidder, price, date_time, extra FROM bids",
    "q1": f"SELECT auction, bidder, {_EUROS} AS price, date_time, extra FROM bids",
    "q2": "SELECT auction, price FROM bids WHERE auction % 123 = 0",
    "q3": """
        SELECT name, city, state, a.id AS auction
        FROM auctions a JOIN persons p ON a.seller = p.id
        WHERE category = 10 AND state IN ('OR', 'ID', 'CA')
    """,
    "q4": f"""
        SELECT category, avg(price) AS average, count(*) AS auctions
        FROM ({_WINNING}) AS won GROUP BY category
    """,
    "q5": """
        WITH counts AS (
            SELECT auction, timestamp_millis((CAST(floor(unix_millis(date_time) / 2000) AS BIGINT) + step) * 2000)
                AS window_end, count(*) AS n
            FROM bids, (VALUES (1), (2), (3), (4), (5)) AS steps(step)
            GROUP BY 1, 2
        ), ranked AS (SELECT *, max(n) OVER (PARTITION BY window_end) AS most FROM counts)
        SELECT collect_list(auction) AS auctions, n, window_end FROM ranked WHERE n = most GROUP BY n, window_end
    """,
    "q6": f"""
        SELECT seller, avg(price) OVER (
            PARTITION BY seller ORDER BY expires, id ROWS BETWEEN 9 PRECEDING AND CURRENT ROW
        ) AS average
        FROM ({_WINNING}) AS won
    """,
    "q7": f"""
        SELECT auction, bidder, price, date_time, extra
        FROM bids JOIN (
            SELECT {_window("date_time")} AS window_start, max(price) AS highest FROM bids GROUP BY 1
        ) AS windows ON price = highest AND {_window("date_time")} = window_start
    """,
    "q8": f"""
        SELECT DISTINCT p.id, p.name, timestamp_millis({_window("p.date_time")}) AS window_start
        FROM persons p JOIN auctions a
            ON a.seller = p.id AND {_window("a.date_time")} = {_window("p.date_time")}
    """,
    "q9": _WINNING,
    "q10": """
        SELECT auction, bidder, price, date_time, extra,
            date_format(date_time, 'yyyy-MM-dd') AS day, date_format(date_time, 'HH:mm') AS minute
        FROM bids
    """,
    "q11": """
        WITH gaps AS (
            SELECT bidder, date_time, lag(date_time) OVER (PARTITION BY bidder ORDER BY date_time) AS earlier
            FROM bids
        ), sessions AS (
            SELECT bidder, date_time,
                sum(CASE WHEN unix_millis(date_time) - unix_millis(earlier) > 10000 THEN 1 ELSE 0 END)
                    OVER (PARTITION BY bidder ORDER BY date_time) AS session
            FROM gaps
        )
        SELECT bidder, min(date_time) AS window_start, max(date_time) + INTERVAL 10 SECONDS AS window_end,
            count(*) AS bids
        FROM sessions GROUP BY bidder, session
    """,
    "q12": f"""
        SELECT bidder, timestamp_millis({_window("arrival")}) AS window_start, count(*) AS bids
        FROM bids GROUP BY 1, 2
    """,
    "q13": """
        SELECT auction, bidder, price, date_time, value FROM bids JOIN side_input ON auction % 10000 = key
    """,
    "q14": f"""
        SELECT auction, bidder, {_EUROS} AS price,
            CASE
                WHEN hour(date_time) BETWEEN 8 AND 18 THEN 'dayTime'
                WHEN hour(date_time) <= 6 OR hour(date_time) >= 20 THEN 'nightTime'
                ELSE 'otherTime'
            END AS bid_time_type,
            date_time, extra, length(extra) - length(replace(extra, 'c', '')) AS c_counts
        FROM bids WHERE {_EUROS} > 1000000 AND {_EUROS} < 50000000
    """,
    "q15": f"""
        SELECT date_trunc('day', date_time) AS window_start, {_STATISTICS} FROM bids GROUP BY 1
    """,
    "q16": f"""
        SELECT channel, date_trunc('day', date_time) AS window_start,
            date_format(max(date_time), 'HH:mm') AS minute, {_STATISTICS}
        FROM bids GROUP BY 1, 2
    """,
    "q17": """
        SELECT auction, date_trunc('day', date_time) AS window_start, count(*) AS bids,
            count(*) FILTER (WHERE price < 10000) AS rank1_bids,
            count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
            count(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
            min(price) AS least, max(price) AS greatest, avg(price) AS average,
            CAST(sum(price) AS BIGINT) AS total
        FROM bids GROUP BY 1, 2
    """,
    "q18": """
        SELECT bidder, auction, date_time, price, channel, url, extra
        FROM (
            SELECT *, row_number() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC, position DESC) AS rank
            FROM bids
        ) AS ranked
        WHERE rank = 1
    """,
    "q19": """
        SELECT auction, bidder, price, channel, url, date_time, extra, rank
        FROM (
            SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC, position) AS rank FROM bids
        ) AS ranked
        WHERE rank <= 10
    """,
    "q20": """
        SELECT auction, bidder, price, channel, url, b.date_time AS bid_date_time, b.extra AS bid_extra,
            item_name, description, initial_bid, reserve, a.date_time, expires, seller, category, a.extra
        FROM bids b JOIN auctions a ON auction = id WHERE category = 10
    """,
    "q21": """
        SELECT auction, bidder, price, channel, channel_id
        FROM (
            SELECT *,
                CASE lower(channel)
                    WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
                    ELSE nullif(regexp_extract(url, '(&|^)channel_id=([^&]*)', 2), '')
                END AS channel_id
            FROM bids
        ) AS found
        WHERE channel_id IS NOT NULL
    """,
    "q22": """
        SELECT auction, bidder, price, channel, split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2,
            split_part(url, '/', 6) AS dir3
        FROM bids
    """,
}
