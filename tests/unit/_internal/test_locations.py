"""Paths that are no text."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from flinkcore._internal.io.locations import absolute_location
from flinkcore.common import WatermarkStrategy
from flinkcore.datastream import DataStream, StreamExecutionEnvironment
from flinkcore.datastream.connectors.file_system import FileSource, StreamFormat
from flinkcore.errors import SourceError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="names of files are UTF-8")


@pytest.fixture
def odd(tmp_path: Path) -> str:
    """A folder with a file, neither of which has a name that is UTF-8."""
    folder = os.fsencode(tmp_path / "logs") + b"/caf\xe9"
    os.makedirs(folder)
    with open(folder + b"/log\xff.csv", "w") as file:
        file.write("ts\n1\n")
    return os.fsdecode(folder)


def log_of(path: Any) -> DataStream:
    return StreamExecutionEnvironment().from_event_log(path, timestamp="ts", format="csv")


LOGS: dict[str, Callable[[str], Any]] = {
    "a file that is missing": lambda odd: f"{odd}/log.csv",
    "a file": lambda odd: os.fsdecode(os.fsencode(odd) + b"/log\xff.csv"),
    "a folder": lambda odd: odd,
    "the folder above": os.path.dirname,
    "a list": lambda odd: [odd],
    "a pattern in it": lambda odd: f"{odd}/*.csv",
    "a pattern of it": lambda odd: f"{os.path.dirname(odd)}/*",
    "a pattern of all below": lambda odd: f"{os.path.dirname(odd)}/**/*.csv",
    "a URI": lambda odd: f"file://{os.path.dirname(odd)}",
    "a URI of it": lambda odd: f"file://{odd}",
}


@pytest.mark.parametrize("where", LOGS)
def test_a_path_of_a_log_that_is_not_utf_8_is_told(odd: str, where: str) -> None:
    with pytest.raises(SourceError, match=r"the path \S*/logs/caf\\udce9\S* is not UTF-8.*: rename") as told:
        log_of(LOGS[where](odd)).to_arrow()
    str(told.value).encode()


@pytest.mark.parametrize("path", [lambda odd: odd, os.path.dirname])
def test_a_path_of_a_file_source_that_is_not_utf_8_is_told(odd: str, path: Callable[[str], str]) -> None:
    def read() -> None:
        source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), path(odd)).build()
        env = StreamExecutionEnvironment()
        list(env.from_source(source, WatermarkStrategy.no_watermarks(), "files").execute_and_collect())

    with pytest.raises(SourceError, match=r"/logs/caf\S* is not UTF-8"):
        read()


def test_a_path_of_results_or_a_checkpoint_that_is_not_utf_8_is_told(odd: str) -> None:
    stream = StreamExecutionEnvironment().from_event_log(pa.table({"ts": [1]}), timestamp="ts")
    for write in (
        lambda: stream.write_parquet(odd),
        lambda: stream.write_parquet(os.path.dirname(odd), mode="overwrite"),
        lambda: stream.execute(stop_with_checkpoint=odd).to_arrow(),
        lambda: stream.execute(restore_from=odd).to_arrow(),
        lambda: absolute_location(odd),
    ):
        with pytest.raises(SourceError, match=r"/logs/caf\S* is not UTF-8|the path caf\S* is not UTF-8"):
            write()
