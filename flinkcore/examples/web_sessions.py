"""Visits to a web site, from the access logs of its servers: sessions that end when a visitor was quiet for a while.

The log is small and made up: two servers behind a load balancer, each writing its own file. The lines of a server are
in order, but those of ``web-2`` are shipped two minutes later, and are not late for that: each file is a split with its
own watermark. Robots, images and errors are left out. Run it with ``python -m flinkcore.examples.web_sessions``.
"""

from __future__ import annotations

import re
import tempfile
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from flinkcore.common import Time, WatermarkStrategy
from flinkcore.datastream import FILE, LogStream, StreamExecutionEnvironment
from flinkcore.datastream.aggregates import count, first, last, sum_
from flinkcore.datastream.window import EventTimeSessionWindows

ACCESS_LOGS = {
    "web-1": """\
10.0.0.7 - - [04/May/2026:12:00:05 +0000] "GET / HTTP/1.1" 200 5120 "-" "Firefox/140"
10.0.0.7 - - [04/May/2026:12:00:06 +0000] "GET /logo.png HTTP/1.1" 200 900 "-" "Firefox/140"
10.0.0.9 - - [04/May/2026:12:01:30 +0000] "GET /shop HTTP/1.1" 200 7300 "-" "Safari/26"
66.0.0.1 - - [04/May/2026:12:02:00 +0000] "GET /robots.txt HTTP/1.1" 200 60 "-" "ExampleBot/2.1"
10.0.0.7 - - [04/May/2026:12:06:10 +0000] "GET /shop/tea HTTP/1.1" 200 4100 "-" "Firefox/140"
10.0.0.9 - - [04/May/2026:12:31:00 +0000] "GET /shop HTTP/1.1" 200 7300 "-" "Safari/26"
10.0.0.7 - - [04/May/2026:12:48:00 +0000] "GET / HTTP/1.1" 200 5120 "-" "Firefox/140"
66.0.0.1 - - [04/May/2026:13:05:00 +0000] "GET / HTTP/1.1" 200 5120 "-" "ExampleBot/2.1"
""",
    "web-2": """\
10.0.0.9 - - [04/May/2026:12:02:10 +0000] "GET /shop/tea HTTP/1.1" 200 4100 "-" "Safari/26"
10.0.0.7 - - [04/May/2026:12:08:20 +0000] "POST /cart HTTP/1.1" 302 10 "-" "Firefox/140"
10.0.0.9 - - [04/May/2026:12:15:00 +0000] "GET /shop/coffee HTTP/1.1" 200 4700 "-" "Safari/26"
10.0.0.7 - - [04/May/2026:12:15:40 +0000] "GET /pay HTTP/1.1" 200 2200 "-" "Firefox/140"
10.0.0.9 - - [04/May/2026:12:32:00 +0000] "GET /nothing HTTP/1.1" 404 300 "-" "Safari/26"
10.0.0.9 - - [04/May/2026:12:50:00 +0000] "GET /shop/mugs HTTP/1.1" 200 3900 "-" "Safari/26"
66.0.0.1 - - [04/May/2026:13:06:00 +0000] "GET /shop HTTP/1.1" 200 7300 "-" "ExampleBot/2.1"
""",
}
SHIPPED_AFTER = {"web-1": timedelta(seconds=1), "web-2": timedelta(minutes=2)}
"""Time from a request until its line reaches the log."""

QUIET = timedelta(minutes=10)
"""After this long without a request the next one begins another visit."""

LINE = (
    r'^(?P<visitor>\S+) \S+ \S+ \[(?P<time>[^\]]+)\] "\S+ (?P<path>\S+) [^"]*" (?P<status>\d+) (?P<bytes>\d+)'
    r' "[^"]*" "(?P<agent>[^"]*)"$'
)
"""A line of the combined log format."""


def write_logs(folder: Path) -> None:
    """Write the lines of each server as columns, into a Parquet file of its own."""
    for server, text in ACCESS_LOGS.items():
        found = [re.match(LINE, line) for line in text.splitlines()]
        lines = pa.Table.from_pylist([line.groupdict() for line in found if line is not None])
        at = pc.strptime(pc.utf8_slice_codeunits(lines["time"], 0, 20), "%d/%b/%Y:%H:%M:%S", "ms")
        shipped_after = pa.scalar(SHIPPED_AFTER[server], pa.duration("ms"))
        columns = {
            "visitor": lines["visitor"],
            "at": at,
            "shipped_at": pc.add(at, shipped_after),
            "path": lines["path"],
            "status": lines["status"].cast("int64"),
            "bytes": lines["bytes"].cast("int64"),
            "agent": lines["agent"],
        }
        pq.write_table(pa.table(columns), folder / f"{server}.parquet")


def visits(environment: StreamExecutionEnvironment, folder: Path) -> LogStream:
    """Return the visits: requests of a visitor that are at most ten minutes apart."""
    is_page = ~pc.match_substring_regex(pc.field("path"), r"\.(png|css|js|ico)$")
    is_robot = pc.match_substring(pc.field("agent"), "bot", ignore_case=True)
    return (
        environment.from_event_log(str(folder), timestamp="at", arrival="shipped_at", split=FILE)
        .assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
        .filter(is_page & ~is_robot & (pc.field("status") < 400))  # after it: robots, too, advance event time
        .key_by("visitor")
        .window(EventTimeSessionWindows.with_gap(Time.minutes(QUIET // timedelta(minutes=1))))
        .aggregate(pages=count(), entered=first("path"), left=last("path"), bytes=sum_("bytes"))
        .with_emitted_at("known_at")
    )


def main() -> None:
    """Replay the logs in this process, and print the visits."""
    with tempfile.TemporaryDirectory() as folder:
        write_logs(Path(folder))
        result = visits(StreamExecutionEnvironment.get_execution_environment(), Path(folder)).execute()
        rows = sorted(result.to_arrow().to_pylist(), key=lambda row: row["window_start"])
    print("visitor    from      to        pages  entered       left          known at")
    for row in rows:
        known = f"{row['known_at']:%H:%M:%S}" if row["known_at"] else "the end of the log"
        last_request = row["window_end"] - QUIET
        print(
            f"{row['visitor']:9}  {row['window_start']:%H:%M:%S}  {last_request:%H:%M:%S}  {row['pages']:5}  "
            f"{row['entered']:12}  {row['left']:12}  {known}"
        )
    print(f"\n{result.report}")


if __name__ == "__main__":
    main()
