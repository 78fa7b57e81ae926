"""Runs a query of Nexmark in this process: ``python -m flinkcore.examples.nexmark q5 --events 1000000``."""

from __future__ import annotations

import argparse
import time

from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.examples.nexmark.generator import Generator
from flinkcore.examples.nexmark.queries import QUERIES, Streams


def main() -> None:
    """Make a log, run a query over it, and print its first rows and how long it took."""
    parser = argparse.ArgumentParser(prog="python -m flinkcore.examples.nexmark", description=__doc__)
    parser.add_argument("query", choices=QUERIES, metavar=f"q0 ... q{len(QUERIES) - 1}")
    parser.add_argument("--events", type=int, default=100_000, help="persons, auctions and bids (100,000)")
    parser.add_argument("--rows", type=int, default=10, help="how many are printed (10)")
    given = parser.parse_args()
    query = QUERIES[given.query]
    print(query.__doc__)
    result = query(Streams(StreamExecutionEnvironment(), Generator(given.events).log())).execute()
    begin = time.perf_counter()
    table = result.to_arrow()
    seconds = time.perf_counter() - begin
    result.show(given.rows)
    print(f"{table.num_rows:,} rows of {given.events:,} events in {seconds:.2f} s")


if __name__ == "__main__":
    main()
