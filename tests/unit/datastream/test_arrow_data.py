"""Arrow data of a log is imported once, whatever is done with its stream."""

import gc
import weakref
from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from flinkcore.common import Types, WatermarkStrategy
from flinkcore.datastream import DataStream, StreamExecutionEnvironment
from flinkcore.datastream.graph.arrow_data import ArrowData
from flinkcore.errors import DataError

TABLE = pa.table({"k": ["a", "b"], "ts": [1, 2]})


class OnceOnly:
    """Gives its rows when they are asked for first, and then none, as a result of a database."""

    def __init__(self) -> None:
        self.times_asked = 0

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        self.times_asked += 1
        rows = TABLE if self.times_asked == 1 else TABLE.schema.empty_table()
        return rows.__arrow_c_stream__(requested_schema)


def reader() -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches())


def stream_of(data: Any) -> DataStream:
    stream = StreamExecutionEnvironment().from_event_log(data, timestamp="ts")
    return stream.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())


def elements(stream: DataStream) -> list[Any]:
    with stream.map(lambda row: row.k, Types.STRING()).execute_and_collect() as results:
        return list(results)


def rows(stream: DataStream) -> list[Any]:
    return stream.to_arrow().column("k").to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("data", [reader, OnceOnly, lambda: duckdb.from_arrow(reader())])
@pytest.mark.parametrize("run", [elements, rows])
def test_what_can_be_read_once_gives_its_rows_to_every_job_over_the_stream(
    data: Callable[[], Any], run: Callable[[DataStream], list[Any]]
) -> None:
    stream = stream_of(data())
    stream.explain()
    assert [run(stream), run(stream), rows(stream.filter(pc.field("k") == "b"))] == [
        ["a", "b"],
        ["a", "b"],
        ["b"],
    ]
    assert stream.execute().report.events_read == 2


def test_arrow_data_is_asked_for_its_rows_once() -> None:
    data = OnceOnly()
    stream = stream_of(data)
    assert data.times_asked == 0
    for run in (elements, rows, DataStream.explain, rows):
        run(stream)
    assert data.times_asked == 1


def test_two_logs_of_one_reader_have_its_rows_in_common() -> None:
    read = reader()
    assert rows(stream_of(read)) == rows(stream_of(read)) == ["a", "b"]


def test_a_reader_that_nobody_has_any_more_is_not_held() -> None:
    read = reader()
    assert rows(stream_of(read)) == ["a", "b"]
    stream_of(read)
    held = weakref.ref(read)
    del read
    gc.collect()
    assert held() is None


def test_another_log_of_a_frame_has_what_the_frame_has_by_then() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"k": ["a", "b"], "ts": [1, 2]})
    first = stream_of(frame)
    assert rows(first) == ["a", "b"]
    frame["k"] = ["c", "d"]
    assert (rows(first), rows(stream_of(frame))) == (["a", "b"], ["c", "d"])


@pytest.mark.parametrize("failure", [OSError("the network is down"), KeyboardInterrupt()])
def test_an_iterator_whose_reading_failed_amid_its_rows_is_not_read_on(failure: BaseException) -> None:
    parts = iter([1, failure, 2])

    def take(_: Any) -> None:
        for part in parts:
            if isinstance(part, BaseException):
                raise part

    data = ArrowData(reader())
    with pytest.raises(type(failure)):
        data.imported(take)
    with pytest.raises(
        (OSError, DataError),
        match=r"the network is down|the RecordBatchReader that is the log was interrupted",
    ):
        data.imported(take)
    assert next(parts) == 2


@pytest.mark.parametrize("failure", [OSError("the network is down"), KeyboardInterrupt()])
def test_data_that_gives_its_rows_anew_is_read_by_the_next_job_after_a_failure(
    failure: BaseException,
) -> None:
    failures = [failure]

    def take(table: pa.Table) -> pa.Table:
        if failures:
            raise failures.pop()
        return table

    data = ArrowData(TABLE)
    with pytest.raises(type(failure)):
        data.imported(take)
    assert data.imported(take) is TABLE
