"""Symbolic links in the directories of logs and sources: every file is read once, and every listing ends."""

import os

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from flinkcore._internal.io.stores import stores_of
from flinkcore.common import WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.datastream.connectors.file_system import FileSource, StreamFormat
from flinkcore.errors import SourceError
from flinkcore.log.files.log_files import discover_files


@pytest.fixture
def log(tmp_path):
    """A log of two days, with files elsewhere."""
    for name in (
        "log/day1/a.txt",
        "log/day1/b.txt",
        "log/day2/a.txt",
        "elsewhere/within/c.txt",
        "elsewhere/d.txt",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name}\n")
    return tmp_path / "log"


OWN = ["day1/a.txt", "day1/b.txt", "day2/a.txt"]


def found(log, paths=None, **options):
    return [os.path.relpath(file.name, log) for file in discover_files(paths or str(log), **options)]


LINKS = {
    "an ancestor": [("up", "."), ("day1/top", "..")],
    "two ancestors": [("day1/one", ".."), ("day1/two", ".."), ("day2/one", "../.."), ("day2/two", "../..")],
    "an ancestor of the log": [("up", ".."), ("day1/root", "/")],
    "a directory of the log": [("latest", "day2"), ("a-latest", "day1"), ("day1/next", "../day2")],
    "files of the log": [
        ("copy.txt", "day1/a.txt"),
        ("day1/0.txt", "a.txt"),
        ("day2/b.txt", "../day1/b.txt"),
    ],
    "links": [("third", "second"), ("second", "first"), ("first", "day1")],
    "each other": [("day1/other", "../day2"), ("day2/other", "../day1")],
}


@pytest.mark.parametrize("kind", list(LINKS))
def test_what_links_of_a_log_lead_back_to_is_read_once(log, kind):
    for link, target in LINKS[kind]:
        (log / link).symlink_to(target)
    assert found(log) == OWN
    for pattern in ("**/*.txt", "*/*.txt", "*", "**", "day[12]"):
        assert found(log, f"{log}/{pattern}") == OWN, pattern


def test_many_links_to_ancestors_end(log):
    for number in range(30):
        (log / "day1" / f"up{number}").symlink_to("../..")
        (log / f"top{number}").symlink_to(".")
    assert found(log) == OWN
    assert found(log, f"{log}/**/*.txt") == OWN


def test_a_directory_elsewhere_is_followed_once_by_its_first_link(log):
    (log / "z").symlink_to("../elsewhere")
    (log / "link").symlink_to("../elsewhere")
    (log / "link2").symlink_to("../elsewhere/within")
    assert found(log) == [*OWN, "link/d.txt", "link/within/c.txt"]


def test_links_of_a_directory_elsewhere_are_followed_too(log):
    (log / "link").symlink_to("../elsewhere")
    (log / "../elsewhere/back").symlink_to(log / "day1")
    (log / "../elsewhere/around").symlink_to("..")
    (log / "../elsewhere/within/again").symlink_to("..")
    (log / "../more").mkdir()
    (log / "../more/e.txt").touch()
    (log / "../elsewhere/more").symlink_to("../more")
    assert found(log) == [*OWN, "link/d.txt", "link/more/e.txt", "link/within/c.txt"]


def test_a_file_elsewhere_is_read_once_by_its_first_link(log):
    for name in ("y.txt", "x.txt", "day2/z.txt"):
        (log / name).symlink_to(log / "../elsewhere/d.txt")
    assert found(log) == [*OWN, "day2/z.txt"]
    assert found(log, f"{log}/**/*.txt") == found(log)


def test_a_log_that_is_a_link_is_what_it_leads_to(log, tmp_path):
    (tmp_path / "latest").symlink_to("log/day1")
    assert found(log, str(tmp_path / "latest")) == ["../latest/a.txt", "../latest/b.txt"]
    assert found(log, [str(tmp_path / "latest"), str(log)]) == [
        "../latest/a.txt",
        "../latest/b.txt",
        "day2/a.txt",
    ]


@pytest.mark.parametrize("target", ["nowhere", "broken", "/none/at/all"])
@pytest.mark.parametrize("pattern", ["", "/*", "/**", "/**/*.txt"])
def test_a_link_to_nothing_is_an_error_that_names_it(log, target, pattern):
    (log / "broken").symlink_to(target)
    message = rf"log/broken is a link to {target}, which cannot be reached \(.*\)\. Repair or remove the link"
    if pattern == "/**/*.txt":
        (log / "broken").rename(log / "day1" / "broken.txt")
        message = r"day1/broken\.txt is a link to"
    with pytest.raises(SourceError, match=message):
        found(log, str(log) + pattern)


def test_hidden_links_are_passed_over(log):
    (log / ".#lock").symlink_to("nobody@nowhere")
    (log / "_old").symlink_to("../elsewhere")
    (log / "day1" / "_up").symlink_to("/")
    assert found(log) == OWN
    assert found(log, f"{log}/**/*.txt") == OWN


def test_partitions_are_those_of_the_path_that_is_read(tmp_path):
    (tmp_path / "raw").mkdir()
    pq.write_table(pa.table({"a": [1]}), tmp_path / "raw" / "a.parquet")
    (tmp_path / "log" / "day=2").mkdir(parents=True)
    pq.write_table(pa.table({"a": [2]}), tmp_path / "log" / "day=2" / "a.parquet")
    (tmp_path / "log" / "day=1").symlink_to("../raw")
    (tmp_path / "log" / "day=3").symlink_to("day=2")
    files = discover_files(tmp_path / "log")
    assert [file.partition for file in files] == [(("day", "1"),), (("day", "2"),)]


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda log: fs.SubTreeFileSystem(str(log), fs.LocalFileSystem()),
        lambda log: fsspec.filesystem("dir", path=str(log), fs=fsspec.filesystem("file")),
    ],
)
def test_wrappers_of_the_local_file_system_follow_links_alike(log, wrapped):
    for links in LINKS.values():
        for link, target in links:
            if not (log / link).is_symlink():
                (log / link).symlink_to(target)
    (log / "link").symlink_to("../elsewhere")
    files = discover_files("", stores_of(wrapped(log)))
    assert [file.path.strip("/") for file in files] == [*OWN, "link/d.txt", "link/within/c.txt"]


def test_file_sources_follow_links_alike(log):
    for links in LINKS.values():
        for link, target in links:
            if not (log / link).is_symlink():
                (log / link).symlink_to(target)
    (log / "link").symlink_to("../elsewhere")
    env = StreamExecutionEnvironment.get_execution_environment()
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(log)).build()
    lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "files").execute_and_collect()
    elsewhere = ["elsewhere/d.txt", "elsewhere/within/c.txt"]
    assert sorted(lines) == [*elsewhere, *(f"log/{name}" for name in OWN)]
    (log / "broken").symlink_to("nowhere")
    with pytest.raises(SourceError, match="broken is a link to nowhere"):
        list(env.from_source(source, WatermarkStrategy.no_watermarks(), "files").execute_and_collect())
