"""Jobs of Flink SQL whose savepoints are golden: their scripts, and the rows of their table before and after these."""

from __future__ import annotations

import datetime as dt
import json
import random
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

import flinkcore as fc

GOLDEN: Final = Path(__file__).parents[1] / "golden" / "savepoints" / "plans"
SETTINGS: Final = {"pipeline.auto-watermark-interval": "0 ms"}

TABLE: Final = """CREATE TABLE clicks (u STRING, c CHAR(3), i TINYINT, s SMALLINT, n INT, v BIGINT NOT NULL, f FLOAT,
 d DOUBLE, m DECIMAL(10, 2), big DECIMAL(25, 3), flag BOOLEAN, `day` DATE, `at` TIMESTAMP(6), z TIMESTAMP_LTZ(3),
 ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
 WITH ('connector' = 'lines', 'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601');
"""
_AGGREGATES: Final = (
    "COUNT(*), COUNT(n), SUM(i), SUM(s), SUM(n), SUM(v), SUM(d), SUM(m), SUM(big), AVG(i), AVG(v), AVG(f), AVG(d), "
    "AVG(m), AVG(big), MIN(i), MAX(s), MIN(n), MAX(v), MIN(f), MAX(d), MIN(m), MAX(big), MIN(u), MAX(c), MAX(`day`), "
    "MIN(`at`), MAX(z), MIN(flag), SUM(n) FILTER (WHERE flag), COUNT(*) FILTER (WHERE flag)"
)
_OF_WINDOWS: Final = "COUNT(n), SUM(n), AVG(m), MAX(d), MIN(u), SUM(big)"
_BESIDE_DISTINCT: Final = (
    "COUNT(DISTINCT c) FILTER (WHERE flag), COUNT(DISTINCT u), COUNT(*), COUNT(n), SUM(n), SUM(big), AVG(m), AVG(i), "
    "MIN(u), MAX(c), MIN(big), MAX(v), MAX(z), MIN(flag), SUM(s) FILTER (WHERE flag)"
)
_TUMBLE: Final = "TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '10' SECOND))"
_HOP: Final = "TABLE(HOP(TABLE clicks, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '15' SECOND))"
_CUMULATE: Final = "TABLE(CUMULATE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '4' SECOND, INTERVAL '12' SECOND))"
_SESSION: Final = "TABLE(SESSION(TABLE clicks PARTITION BY u, DESCRIPTOR(ts), INTERVAL '2' SECOND))"
_CLOSE: Final = "a.ts BETWEEN b.ts - INTERVAL '3' SECOND AND b.ts + INTERVAL '2' SECOND"
_BY_WINDOW: Final = "window_start, window_end"

QUERIES: Final[dict[str, str]] = {
    "group_by_text": f"SELECT u, flag, {_AGGREGATES} FROM clicks GROUP BY u, flag",
    "group_by_all_types": (
        "SELECT c, i, s, n, v, f, d, m, big, `day`, `at`, z, COUNT(*) FROM clicks "
        "GROUP BY c, i, s, n, v, f, d, m, big, `day`, `at`, z"
    ),
    "group_by_nothing": "SELECT COUNT(*), SUM(n), MAX(u) FROM clicks",
    "group_by_count": (
        "SELECT k, COUNT(*), SUM(s), AVG(s), COUNT(s), SUM(d), AVG(m) FROM (SELECT u, i, COUNT(*) k, SUM(n) s, SUM(d) "
        "d, SUM(m) m FROM clicks GROUP BY u, i) GROUP BY k"
    ),
    "count_of_distinct": "SELECT u, COUNT(n) FROM (SELECT DISTINCT u, n FROM clicks) GROUP BY u",
    "count_distinct": (
        "SELECT flag, COUNT(DISTINCT u), COUNT(DISTINCT c), COUNT(DISTINCT i), COUNT(DISTINCT s), SUM(n), "
        "COUNT(DISTINCT n) FILTER (WHERE i > 0), COUNT(DISTINCT n), COUNT(DISTINCT v), COUNT(DISTINCT `day`) FROM "
        "clicks GROUP BY flag"
    ),
    "count_distinct_decimals_and_times": (
        "SELECT u, COUNT(DISTINCT m), COUNT(DISTINCT big), COUNT(DISTINCT f), COUNT(DISTINCT d) FILTER (WHERE flag), "
        "COUNT(DISTINCT `at`), COUNT(DISTINCT z) FROM clicks GROUP BY u"
    ),
    "extreme_decimals_and_times_of_changes": (
        "SELECT k, MAX(m), MIN(big), MIN(`at`), MAX(z), COUNT(DISTINCT m), MAX(d), MIN(f) FROM (SELECT u, i, COUNT(*) "
        "k, SUM(m) m, MAX(big) big, MAX(`at`) `at`, MIN(z) z, SUM(d) d, MAX(f) f FROM clicks GROUP BY u, i) GROUP BY k"
    ),
    "count_distinct_of_changes": (
        "SELECT k, COUNT(DISTINCT u), COUNT(DISTINCT i), SUM(n) FROM (SELECT u, i, COUNT(*) k, SUM(n) n FROM clicks "
        "GROUP BY u, i) GROUP BY k"
    ),
    "extremes_of_changes": (
        "SELECT k, MAX(u), MIN(n), MAX(n), AVG(n), MIN(c), MAX(`day`), COUNT(DISTINCT i), MIN(v) FROM (SELECT u, i, "
        "COUNT(*) k, SUM(n) n, MAX(c) c, MIN(`day`) `day`, MAX(v) v FROM clicks GROUP BY u, i) GROUP BY k"
    ),
    "tumble_of_distinct": (
        f"SELECT u, {_BY_WINDOW}, COUNT(DISTINCT i), SUM(n), COUNT(DISTINCT c) FROM {_TUMBLE} GROUP BY u, {_BY_WINDOW}"
    ),
    "hop_of_distinct": f"SELECT {_BY_WINDOW}, COUNT(DISTINCT u), SUM(n) FROM {_HOP} GROUP BY {_BY_WINDOW}",
    "hop_of_distinct_by_key": (
        f"SELECT flag, {_BY_WINDOW}, COUNT(DISTINCT u), COUNT(DISTINCT i) FROM {_HOP} GROUP BY flag, {_BY_WINDOW}"
    ),
    "hop_of_distinct_in_two_phases": (
        f"SELECT flag, {_BY_WINDOW}, COUNT(DISTINCT u), SUM(n) FROM {_HOP} GROUP BY flag, {_BY_WINDOW}"
    ),
    "cumulate_of_distinct_in_two_phases": (
        f"SELECT u, {_BY_WINDOW}, COUNT(DISTINCT i), COUNT(DISTINCT flag) FROM {_CUMULATE} GROUP BY u, {_BY_WINDOW}"
    ),
    "hop_of_distinct_beside_others": (
        f"SELECT u, {_BY_WINDOW}, COUNT(DISTINCT m), {_BESIDE_DISTINCT} FROM {_HOP} GROUP BY u, {_BY_WINDOW}"
    ),
    "cumulate_of_distinct_beside_others": (
        f"SELECT flag, {_BY_WINDOW}, COUNT(DISTINCT m), COUNT(DISTINCT u) FILTER (WHERE i > 0), {_BESIDE_DISTINCT} "
        f"FROM {_CUMULATE} GROUP BY flag, {_BY_WINDOW}"
    ),
    "hop_of_floats": f"SELECT u, {_BY_WINDOW}, SUM(d), MAX(f) FROM {_HOP} GROUP BY u, {_BY_WINDOW}",
    "session_of_distinct": f"SELECT u, {_BY_WINDOW}, COUNT(DISTINCT i) FROM {_SESSION} GROUP BY u, {_BY_WINDOW}",
    "sum_of_sums": "SELECT SUM(s) FROM (SELECT u, i, SUM(n) s FROM clicks GROUP BY u, i)",
    "distinct": "SELECT DISTINCT u, i FROM clicks",
    "tumble": f"SELECT u, {_BY_WINDOW}, {_OF_WINDOWS} FROM {_TUMBLE} GROUP BY u, {_BY_WINDOW}",
    "tumble_in_two_phases": f"SELECT u, {_BY_WINDOW}, {_OF_WINDOWS} FROM {_TUMBLE} GROUP BY u, {_BY_WINDOW}",
    "tumble_of_all": f"SELECT {_BY_WINDOW}, COUNT(*), SUM(m) FROM {_TUMBLE} GROUP BY {_BY_WINDOW}",
    "hop": f"SELECT u, flag, {_BY_WINDOW}, SUM(n), MAX(m) FROM {_HOP} GROUP BY u, flag, {_BY_WINDOW}",
    "hop_in_two_phases": f"SELECT u, {_BY_WINDOW}, COUNT(*), AVG(n) FROM {_HOP} GROUP BY u, {_BY_WINDOW}",
    "first_row": (
        "SELECT u, i, big, `at`, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY u, i ORDER BY ts) rn FROM clicks) "
        "WHERE rn = 1"
    ),
    "last_row": (
        "SELECT u, n, f, z, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY u ORDER BY ts DESC) rn FROM clicks) "
        "WHERE rn = 1"
    ),
    "first_by_arrival": (
        "SELECT u, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY u ORDER BY p) rn FROM (SELECT *, PROCTIME() p "
        "FROM clicks)) WHERE rn = 1"
    ),
    "last_by_arrival": (
        "SELECT u, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY u ORDER BY p DESC) rn FROM (SELECT *, PROCTIME() "
        "p FROM clicks)) WHERE rn = 1"
    ),
    "cumulate": f"SELECT u, {_BY_WINDOW}, SUM(n), COUNT(*), MAX(m) FROM {_CUMULATE} GROUP BY u, {_BY_WINDOW}",
    "cumulate_in_two_phases": f"SELECT {_BY_WINDOW}, AVG(n) FROM {_CUMULATE} GROUP BY {_BY_WINDOW}",
    "session": f"SELECT u, {_BY_WINDOW}, SUM(n), AVG(m) FROM {_SESSION} GROUP BY u, {_BY_WINDOW}",
    "group_tumble": "SELECT u, TUMBLE_START(ts, {0}), SUM(n), AVG(m) FROM clicks GROUP BY u, TUMBLE(ts, {0})".format(
        "INTERVAL '10' SECOND"
    ),
    "group_hop": "SELECT u, HOP_END(ts, {0}), SUM(n), MIN(m) FROM clicks GROUP BY u, HOP(ts, {0})".format(
        "INTERVAL '5' SECOND, INTERVAL '15' SECOND"
    ),
    "group_session": "SELECT u, SESSION_END(ts, {0}), COUNT(*) FROM clicks GROUP BY u, SESSION(ts, {0})".format(
        "INTERVAL '2' SECOND"
    ),
    "rank": (
        "SELECT u, v, rn FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY u ORDER BY v DESC, n) rn FROM clicks) "
        "WHERE rn <= 3"
    ),
    "rank_without_number": (
        "SELECT u, v, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY u ORDER BY flag, c DESC) rn FROM clicks) "
        "WHERE rn <= 3"
    ),
    "second_and_third": (
        "SELECT v, n FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY c, n DESC) rn FROM clicks) WHERE rn BETWEEN 2 AND 9"
    ),
    "highest": (
        "SELECT u, t, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY u ORDER BY t DESC) rn FROM (SELECT *, "
        "CAST(ts AS STRING) t FROM clicks)) WHERE rn = 1"
    ),
    "rank_of_counts": (
        "SELECT u, i, k, rn FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY u ORDER BY k DESC) rn FROM (SELECT u, i, "
        "COUNT(*) k FROM clicks GROUP BY u, i)) WHERE rn <= 3"
    ),
    "rank_of_sums": (
        "SELECT u, i, k FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY u ORDER BY k DESC) rn FROM (SELECT u, i, "
        "SUM(n) k FROM clicks GROUP BY u, i)) WHERE rn <= 3"
    ),
    "rank_of_changes_by_all_types": (
        "SELECT u, i, k, rn FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY u ORDER BY flag DESC, k, c DESC, i, "
        "s DESC, f, `day` DESC, d, `at` DESC, m, z DESC, big DESC, v) rn FROM (SELECT u, i, MIN(flag) flag, SUM(n) / "
        "80 k, MAX(c) c, MIN(s) s, MAX(f) f, MIN(`day`) `day`, MAX(d) d, MAX(`at`) `at`, SUM(m) m, MIN(z) z, MAX(big) "
        "big, MAX(v) v FROM clicks GROUP BY u, i)) WHERE rn <= 4"
    ),
    "limit": "SELECT u, n FROM clicks LIMIT 60",
    "over_all": (
        "SELECT u, v, SUM(n) OVER w, AVG(m) OVER w, COUNT(*) OVER w, MAX(u) OVER w, MIN(f) OVER w, SUM(big) OVER w, "
        "AVG(i) OVER w FROM clicks WINDOW w AS (ORDER BY ts)"
    ),
    "over_range": (
        "SELECT u, n, SUM(n) OVER w, COUNT(*) OVER w, MAX(m) OVER w, COUNT(DISTINCT i) OVER w, MIN(c) OVER w FROM "
        "clicks WINDOW w AS (PARTITION BY u ORDER BY ts RANGE BETWEEN INTERVAL '5' SECOND PRECEDING AND CURRENT ROW)"
    ),
    "over_last_rows": (
        "SELECT u, n, SUM(n) OVER w, AVG(m) OVER w, MIN(d) OVER w FROM clicks WINDOW w AS (PARTITION BY u ORDER BY ts "
        "ROWS BETWEEN 3 PRECEDING AND CURRENT ROW)"
    ),
    "over_range_of_all": (
        "SELECT v, SUM(d) OVER w, AVG(d) OVER w, SUM(big) OVER w, AVG(m) OVER w, MAX(`at`) OVER w, COUNT(n) OVER w "
        "FROM clicks WINDOW w AS (ORDER BY ts RANGE BETWEEN INTERVAL '3' SECOND PRECEDING AND CURRENT ROW)"
    ),
    "over_last_rows_of_distinct": (
        "SELECT u, v, COUNT(DISTINCT u) OVER w, MAX(big) OVER w, SUM(d) OVER w, MIN(z) OVER w FROM clicks WINDOW w AS "
        "(PARTITION BY flag ORDER BY ts ROWS BETWEEN 4 PRECEDING AND CURRENT ROW)"
    ),
    "over_last_rows_of_floats": (
        "SELECT v, CAST(SUM(d * 0.1e0) OVER w AS STRING), CAST(AVG(d * 0.7e0) OVER w AS STRING) FROM clicks WINDOW w "
        "AS (PARTITION BY flag ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW)"
    ),
    "over_last_rows_with_nan": (
        "SELECT v, CAST(MIN(x) OVER w AS STRING), CAST(MAX(x) OVER w AS STRING) FROM (SELECT *, CASE WHEN i < 0 THEN "
        "CAST('NaN' AS DOUBLE) WHEN i < 3 THEN -d * 0 ELSE d END x FROM clicks) WINDOW w AS (PARTITION BY u ORDER BY "
        "ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)"
    ),
    "over_rows": (
        "SELECT u, v, ROW_NUMBER() OVER (PARTITION BY u, flag ORDER BY ts), MAX(d) OVER (PARTITION BY u, flag ORDER BY "
        "ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM clicks"
    ),
    "sort": "SELECT u, n, ts FROM clicks ORDER BY ts, n DESC",
    "window_rank": (
        f"SELECT u, v, window_end, rn FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY u, {_BY_WINDOW} ORDER BY v DESC) "
        f"rn FROM {_TUMBLE}) WHERE rn <= 2"
    ),
    "window_rank_of_hop": (
        f"SELECT u, v, window_time, rn FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY u, {_BY_WINDOW} ORDER BY flag, "
        f"c DESC) rn FROM {_HOP}) WHERE rn <= 2"
    ),
    "window_first_row": (
        f"SELECT u, v, {_BY_WINDOW} FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY u, {_BY_WINDOW} ORDER BY ts) rn "
        f"FROM {_CUMULATE}) WHERE rn = 1"
    ),
    "window_last_row": (
        f"SELECT v, {_BY_WINDOW} FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {_BY_WINDOW} ORDER BY ts DESC) rn "
        f"FROM {_TUMBLE}) WHERE rn = 1"
    ),
    "window_join": (
        f"SELECT a.u, a.n, b.v FROM (SELECT * FROM {_TUMBLE}) a JOIN (SELECT * FROM {_TUMBLE}) b ON a.u = b.u AND a.i "
        "= b.i AND a.window_start = b.window_start AND a.window_end = b.window_end"
    ),
    "window_left_join": (
        f"SELECT a.u, a.n, b.v, a.window_end FROM (SELECT * FROM {_HOP}) a LEFT JOIN (SELECT * FROM {_HOP}) b ON a.u = "
        "b.u AND a.v < b.v AND a.window_start = b.window_start AND a.window_end = b.window_end"
    ),
    "interval_join": f"SELECT a.u, a.n, b.v, a.ts FROM clicks a JOIN clicks b ON a.u = b.u AND {_CLOSE}",
    "left_interval_join": (
        f"SELECT a.u, a.n, b.v FROM clicks a LEFT JOIN clicks b ON a.u = b.u AND a.i < b.i AND {_CLOSE}"
    ),
    "interval_join_without_key": f"SELECT a.n, b.v FROM clicks a JOIN clicks b ON a.v < b.v AND {_CLOSE}",
    "full_interval_join": f"SELECT a.n, b.v FROM clicks a FULL JOIN clicks b ON a.u = b.u AND a.i < b.i AND {_CLOSE}",
    "join": "SELECT a.u, a.n, b.v FROM clicks a JOIN clicks b ON a.u = b.u AND a.i = b.i",
    "join_of_nulls": (
        "SELECT a.u, a.flag, b.i FROM (SELECT u, flag FROM clicks WHERE i > 3) a JOIN (SELECT u, i FROM clicks WHERE "
        "i < 0) b ON a.u IS NOT DISTINCT FROM b.u"
    ),
    "left_join": "SELECT a.u, a.n, b.v FROM clicks a LEFT JOIN clicks b ON a.u = b.u AND a.i = b.i AND a.v < b.v",
    "semi_join": (
        "SELECT u, n FROM clicks a WHERE EXISTS (SELECT 1 FROM clicks b WHERE a.u = b.u AND a.i = b.i AND a.v < b.v)"
    ),
    "anti_join": (
        "SELECT u, n FROM clicks a WHERE NOT EXISTS (SELECT 1 FROM clicks b WHERE a.u = b.u AND a.i = b.i AND a.v < "
        "b.v)"
    ),
    "window_semi_join": (
        f"SELECT u, n FROM (SELECT * FROM {_TUMBLE}) a WHERE EXISTS (SELECT 1 FROM (SELECT * FROM {_TUMBLE}) b WHERE "
        "a.i = b.i AND a.window_start = b.window_start AND a.window_end = b.window_end AND a.v < b.v)"
    ),
    "join_of_counts": (
        "SELECT a.u, a.k, b.k FROM (SELECT u, COUNT(*) k FROM clicks GROUP BY u) a JOIN (SELECT u, c, COUNT(*) k FROM "
        "clicks GROUP BY u, c) b ON a.u = b.u"
    ),
    "join_of_wide_rows": (
        "SELECT a.k, big, `at`, b.n FROM (SELECT COUNT(*) k, MAX(big) big, MAX(`at`) `at` FROM clicks GROUP BY u, i) a "
        "JOIN (SELECT n, COUNT(*) k FROM clicks GROUP BY n) b ON a.k = b.k"
    ),
    "right_join_of_counts": (
        "SELECT a.u, a.i, a.k, b.k FROM (SELECT u, i, COUNT(*) k FROM clicks GROUP BY u, i) a RIGHT JOIN (SELECT i, "
        "COUNT(*) k FROM clicks GROUP BY i) b ON a.i = b.i AND a.k < b.k"
    ),
    "full_join_of_counts": (
        "SELECT a.k, b.k FROM (SELECT i, COUNT(*) k FROM clicks GROUP BY i) a FULL JOIN (SELECT s / 300 i, COUNT(*) k "
        "FROM clicks GROUP BY s / 300) b ON a.k = b.k"
    ),
    "anti_join_of_counts": (
        "SELECT u, i, k FROM (SELECT u, i, COUNT(*) k FROM clicks GROUP BY u, i) a WHERE NOT EXISTS (SELECT 1 FROM "
        "(SELECT i, COUNT(*) k FROM clicks GROUP BY i) b WHERE a.i = b.i AND a.k * 2 < b.k)"
    ),
    "full_join": "SELECT a.n, b.v, b.m FROM clicks a FULL JOIN clicks b ON a.u = b.u AND a.i = b.i AND a.v < b.v",
}
"""Queries whose state is exchanged with Flink."""

_CACHES: Final = ("IntervalJoinLeftCache", "IntervalJoinRightCache")
_OF_CACHES: Final = (
    *("IntervalJoinLeftTimerState", "IntervalJoinRightTimerState"),
    "_timer_state/event_user-timers",
)

NOT_SHOWN: Final[dict[str, tuple[str, ...]]] = {
    "hop": ("window-aggs",),  # the count that Flink adds says only that a slice is not empty
    # Windows do not say in which of their slices a value is.
    "hop_of_distinct": ("window-aggs", "distinctAcc_0"),
    "hop_of_distinct_by_key": ("window-aggs", "distinctAcc_0", "distinctAcc_1"),
    "hop_of_distinct_in_two_phases": ("window-aggs", "distinctAcc_0"),
    "hop_of_distinct_beside_others": ("window-aggs", "distinctAcc_0", "distinctAcc_1", "distinctAcc_2"),
    "cumulate_of_distinct_in_two_phases": ("window-aggs", "distinctAcc_0", "distinctAcc_1"),
    "cumulate_of_distinct_beside_others": ("window-aggs", "distinctAcc_0", "distinctAcc_1", "distinctAcc_2"),
    "session_of_distinct": ("session-window-mapping", "window-aggs", "distinctAcc_0"),
    "session": (
        "session-window-mapping",
        "window-aggs",
    ),  # accumulators have the name of any window of a session
    "group_session": ("session-window-mapping", "window-aggs"),
    "window_rank_of_hop": ("window_rank",),  # Flink keeps rows of lower ranks that are ordered alike
    "window_join": ("_timer_state/event_window-timers",),
    "window_semi_join": ("_timer_state/event_window-timers",),
    # Flink also marks rows of inner inputs that have matched, and keeps those whose key is null.
    "interval_join": (*_CACHES, *_OF_CACHES),
    "interval_join_without_key": (*_CACHES, *_OF_CACHES),
    "left_interval_join": (_CACHES[1], *_OF_CACHES),
}
"""States in which Flink has something else that makes no difference to results."""

ONLY_READ: Final[dict[str, str]] = {"hop_of_floats": r"SUM\(d\) of floats is kept by window"}
"""Jobs that begin with a savepoint of Flink, and do not write one, with the reason."""

FEWER: Final = (
    *("data-state-with-append", "data-state-with-update", "window_rank"),
    *("left-records", "right-records"),
)
"""States in which Flink also keeps rows that never come up: of lower ranks, and of keys that match nothing."""

IN_ONE_TASK: Final = (
    *("count_distinct_of_changes", "extremes_of_changes", "extreme_decimals_and_times_of_changes"),
    *("group_by_count", "count_of_distinct", "sum_of_sums", "rank_of_counts", "rank_of_sums"),
    "rank_of_changes_by_all_types",
    *(
        "join_of_counts",
        "join_of_wide_rows",
        "right_join_of_counts",
        "full_join_of_counts",
        "anti_join_of_counts",
    ),
)
"""Jobs whose operators pass rows on to each other by key: in several tasks, their order is chance in Flink."""

OF_CHANCE: Final = (
    *("left_join", "full_join", "anti_join"),
    *(
        "join_of_counts",
        "join_of_wide_rows",
        "right_join_of_counts",
        "full_join_of_counts",
        "anti_join_of_counts",
    ),
)
"""Jobs whose two inputs Flink reads in turns of chance, so that it is chance which changes cancel each other."""

REFUSED: Final[dict[str, str]] = {
    "concatenation": "SELECT u, LISTAGG(c) FROM clicks GROUP BY u",
    "sum_of_floats": "SELECT u, SUM(f) FROM clicks GROUP BY u",
}
"""Queries whose state is refused by name."""

WITH_LATE_ROWS: Final = (
    *("tumble", "tumble_in_two_phases", "tumble_of_all", "hop", "hop_in_two_phases"),
    *("cumulate", "session", "window_rank"),
)
"""Queries over windows, whose operators keep the watermark by which they know late rows."""


def changes(job: str, rows: Sequence[Sequence[Any]]) -> list[str]:
    """Return the rows of a job as sorted lines; of those in which some cancel each other, the others."""
    if job not in OF_CHANCE:
        return sorted(map(json.dumps, rows))
    found = Counter[str]()
    for kind, *values in rows:
        found[json.dumps(["+I", *values])] += 1 if kind in ("+I", "+U") else -1
    left = {line: count for line, count in found.items() if count}
    return sorted(line for line, count in left.items() for _ in range(abs(count)))


def phases(job: str) -> dict[str, str]:
    """Return the settings by which Flink compiles a job."""
    return {"table.optimizer.agg-phase-strategy": "TWO_PHASE" if "two_phases" in job else "ONE_PHASE"}


def drawn_rows(n: int, seed: int, start: int) -> list[dict[str, Any]]:
    """Return rows of the table as JSON has them, out of order by less than the delay of the watermark."""
    draw = random.Random(seed)

    def maybe(value: Any) -> Any:
        return None if draw.random() < 0.2 else value

    rows = []
    for i in range(start, start + n):
        time = dt.datetime(2026, 1, 1) + dt.timedelta(milliseconds=i * 700 - draw.randrange(4000) + 4000)
        cents = draw.randrange(-(10**9), 10**9)
        moment = dt.datetime(2026, 1, 1) + dt.timedelta(microseconds=draw.randrange(10**12))
        rows.append(
            {
                "u": maybe(draw.choice(["ada", "bob", "a longer name"])),
                "c": maybe(draw.choice(["abc", "xyz"])),
                "i": maybe(draw.randrange(-9, 9)),
                "s": maybe(draw.randrange(-3000, 3000)),
                "n": maybe(draw.randrange(-100, 100)),
                "v": draw.randrange(-(10**12), 10**12),
                "f": maybe(draw.randrange(-64, 64) / 8),
                "d": maybe(draw.randrange(-640, 640) / 8),
                "m": maybe(f"{cents // 100}.{cents % 100:02d}"),
                "big": maybe(f"{draw.randrange(-(10**21), 10**21)}.125"),
                "flag": draw.random() < 0.5,
                "day": maybe(f"2026-01-{draw.randrange(1, 28):02d}"),
                "at": maybe(moment.isoformat(timespec="microseconds")),
                "z": maybe(moment.isoformat(timespec="milliseconds") + "Z"),
                "ts": time.isoformat(timespec="milliseconds"),
            }
        )
    return rows


_COLUMNS: Final = {
    "u": pa.string(),
    "c": pa.string(),
    "i": pa.int8(),
    "s": pa.int16(),
    "n": pa.int32(),
    "v": pa.int64(),
    "f": pa.float32(),
    "d": pa.float64(),
    "m": pa.decimal128(10, 2),
    "big": pa.decimal128(25, 3),
    "flag": pa.bool_(),
    "day": pa.date32(),
    "at": pa.timestamp("us"),
    "z": pa.timestamp("ms", "UTC"),
    "ts": pa.timestamp("ms"),
    "arrival": pa.int64(),
}


def table(part: str) -> pa.Table:
    """Return the rows of a part with their arrivals: `first`, `rest`, or `late`, which is late rows and the rest."""
    rows = [json.loads(line) for line in (GOLDEN / f"{part}.jsonl").read_text().splitlines()]
    for arrival, row in enumerate(rows):
        row["arrival"] = arrival
        for name, read in (("m", Decimal), ("big", Decimal), ("day", dt.date.fromisoformat)):
            row[name] = None if row[name] is None else read(row[name])
        for name in ("at", "z", "ts"):
            row[name] = (
                None if row[name] is None else dt.datetime.fromisoformat(row[name].replace("Z", "+00:00"))
            )
    return pa.Table.from_pylist(rows, pa.schema(_COLUMNS))


def replay(
    job: str, part: str, parallelism: int = 2, rows: slice = slice(None), env: Any = None
) -> fc.LogStream:
    """Return the rows of a job's sink over a part of the table, or some of its rows; embedded by default."""
    env = fc.StreamExecutionEnvironment.get_execution_environment() if env is None else env
    env.set_max_parallelism(128)
    env.set_parallelism(parallelism)
    log = env.from_event_log(table(part)[rows], timestamp="ts", arrival="arrival", split=None)
    return env.from_plan(GOLDEN / job / "plan.json", {"clicks": log}, settings=SETTINGS)


def rows_as_flink_shows_them(stream: Any) -> list[list[Any]]:
    """Return the rows of a result in the form of `SqlJob.java`: kind, then the values as JSON."""
    found = []
    for row in stream.to_arrow().to_pylist():
        kind = row.pop("row_kind", "+I")
        found.append([kind, *map(_json_value, row.values())])
    return found


def _json_value(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        micros = value.microsecond
        second = f":{value.second:02d}" if value.second or micros else ""
        fraction = "" if not micros else f".{micros // 1000:03d}" if micros % 1000 == 0 else f".{micros:06d}"
        zone = "" if value.tzinfo is None else "Z"
        if zone and not second:
            second = ":00"
        return f"{value:%Y-%m-%dT%H:%M}{second}{fraction}{zone}"
    return str(value) if isinstance(value, Decimal | dt.date) else value
