"""Queries of Nexmark give in tasks of Spark the rows that they give embedded: over columns, batches and rows."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from flinkcore.common import Time
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.examples.nexmark.generator import Generator, Log
from flinkcore.examples.nexmark.queries import QUERIES, Streams

LOG = Generator(6_000, events_per_second=50)
LONGEST_AUCTION = Time.milliseconds(LOG.longest_auction_ms)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Log:
    """Of each kind of events two files."""
    folder = tmp_path_factory.mktemp("nexmark")
    found = LOG.log()
    for kind, table in found._asdict().items():
        assert isinstance(table, pa.Table)
        (folder / kind).mkdir()
        half = table.num_rows // 2
        for part, start in enumerate((0, half)):
            pq.write_table(table.slice(start, None if part else half), folder / kind / f"{part}.parquet")
    return Log(*(folder / kind for kind in Log._fields))


@pytest.mark.parametrize("query", ["q3", "q5", "q6", "q7", "q14", "q18", "q19"])
def test_a_query_gives_on_spark_what_it_gives_embedded(
    tasks_here: Callable[[int], Any], log: Log, query: str
) -> None:
    embedded = QUERIES[query](Streams(StreamExecutionEnvironment(), log, LONGEST_AUCTION)).to_arrow()
    on_spark = QUERIES[query](Streams(tasks_here(2), log, LONGEST_AUCTION)).to_arrow()
    assert embedded.num_rows > 5
    assert sorted(on_spark.to_pylist(), key=repr) == sorted(embedded.to_pylist(), key=repr)
