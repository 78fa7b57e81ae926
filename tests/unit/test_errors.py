"""Texts of errors, and the facts that they carry."""

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flinkcore._native.key_groups import key_groups
from flinkcore.common import Time, WatermarkStrategy
from flinkcore.datastream import KeyedProcessFunction, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count
from flinkcore.errors import CheckpointError, DataError, InternalError, SourceError, UserCodeError, in_words


class Untold(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class Fail(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> None:
        raise Untold


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KeyError("a"), "KeyError: 'a'"),
        (KeyError(), "KeyError"),
        (Untold(), "Untold (whose text cannot be told: its __str__ raises ValueError)"),
    ],
)
def test_an_exception_is_told_by_its_type_and_text(error: Exception, words: str) -> None:
    assert in_words(error) == words


def test_a_function_that_raises_what_has_no_text_is_named() -> None:
    env = StreamExecutionEnvironment().set_parallelism(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    log = env.from_event_log(pa.table({"key": [1], "ts": [1]}), timestamp="ts", arrival="ts")
    stream = (
        log.assign_timestamps_and_watermarks(strategy)
        .key_by("key")
        .process(Fail(), pa.schema({"n": pa.int64()}))
    )
    with pytest.raises(
        UserCodeError, match=r"Fail\.process_element failed at the element .*: Untold \(whose"
    ):
        stream.to_arrow()


def test_a_lambda_that_raises_what_has_no_text_is_named() -> None:
    def fail(value: int) -> int:
        raise Untold

    with pytest.raises(UserCodeError, match=r"fail\.map failed at the element 1 .*: Untold \(whose"):
        list(StreamExecutionEnvironment().from_collection([1]).map(fail).execute_and_collect())


def test_a_defect_of_flinkcore_asks_for_a_report_once_however_far_it_travels() -> None:
    travelled = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(InternalError("2 of 3 events came")))))
    assert isinstance(travelled, InternalError)
    assert str(travelled).startswith("2 of 3 events came. This is a defect of flinkcore, ")
    assert str(travelled).count("please report this text") == 1


def test_an_error_carries_its_place_however_far_it_travels() -> None:
    place = {"file": "a.csv", "split": "eu", "position": 0, "column": "ts", "row": 0}
    for kind in (DataError, SourceError, CheckpointError):
        travelled = pickle.loads(pickle.dumps(kind("no time", **place)))
        assert type(travelled) is kind
        assert str(travelled) == "no time"
        assert travelled.place == place
        assert [getattr(travelled, name) for name in place] == list(place.values())
        unknown = pickle.loads(pickle.dumps(kind("no time")))
        assert unknown.place == {}
        assert [getattr(unknown, name) for name in place] == [None] * len(place)


def counts_of(env: StreamExecutionEnvironment, data: Any, split: str | None = None) -> Any:
    stream = env.from_event_log(data, timestamp="ts", split=split)
    timed = stream.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
    return timed.key_by("key").window(TumblingEventTimeWindows.of(Time.milliseconds(10))).aggregate(n=count())


@pytest.fixture(params=["embedded", "spark"])
def env(request: pytest.FixtureRequest) -> Iterator[StreamExecutionEnvironment]:
    if request.param == "embedded":
        yield StreamExecutionEnvironment().set_parallelism(1)
        return
    pytest.importorskip("pyspark")
    from fuzz.local_spark import local_spark_environment, without_jvm

    with without_jvm():
        yield local_spark_environment(2)


def test_an_error_about_a_bad_value_has_its_file_row_and_column(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"ts": [1, 2, None, 4], "key": [1, 1, 1, 1]}), path, row_group_size=1)
    with pytest.raises(DataError, match=r"^row 2 \(from 0\) of .*: null timestamp") as caught:
        counts_of(env, path).to_arrow()
    assert caught.value.place == {"file": str(path), "column": "ts", "row": 2}


def test_an_error_about_a_row_of_a_table_has_no_file(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(DataError) as caught:
        counts_of(env, pa.table({"ts": [1, None], "key": [1, 1]})).to_arrow()
    assert caught.value.place == {"column": "ts", "row": 1}


def test_an_error_about_a_null_key_has_the_position_in_its_split(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    path = tmp_path / "log.parquet"
    keys, splits = ["a", "a", "a", None], ["eu", "us", "eu", "us"]
    pq.write_table(pa.table({"ts": [1, 2, 3, 4], "key": keys, "at": splits}), path)
    with pytest.raises(DataError, match="key column 'key' is null at position 1 of split 'us'") as caught:
        counts_of(env, path, split="at").to_arrow()
    assert caught.value.place == {"file": str(path), "split": "us", "position": 1, "column": "key"}


def test_an_error_about_a_damaged_file_has_the_file(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    for name in ("1.parquet", "2.parquet"):
        pq.write_table(pa.table({"ts": range(5000), "key": range(5000)}), tmp_path / name, compression=None)
    damaged = tmp_path / "2.parquet"
    damaged.write_bytes(b"PAR1" + bytes(2000) + damaged.read_bytes()[2004:])
    with pytest.raises(SourceError, match=r"2\.parquet cannot be read") as caught:
        counts_of(env, tmp_path).to_arrow()
    assert caught.value.place == {"file": str(damaged)}


def test_an_error_of_a_kernel_has_the_row_of_its_batch() -> None:
    with pytest.raises(DataError, match=r"^row 2: the key is null") as caught:
        key_groups(pa.array(["a", "b", None]), 128)
    assert caught.value.place == {"row": 2}
