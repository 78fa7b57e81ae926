"""Parquet directories: encodings, and that files appear in all directories or in none."""

import datetime
import gc
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from equipment.full_disks import most_bytes_of_a_file
from pyarrow import fs

from flinkcore.columnar.outputs import staging_owner
from flinkcore.columnar.outputs.parquet_directory import AppendedRun, ParquetOutput
from flinkcore.columnar.outputs.parquet_outputs import ParquetOutputs
from flinkcore.columnar.outputs.staging_owner import StagingOwner, owner_of
from flinkcore.common import OutputTag, Time, WatermarkStrategy
from flinkcore.datastream import KeyedProcessFunction, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count
from flinkcore.errors import ConfigurationError, DataError, SchemaError, SourceError

DAY = datetime.date(2024, 1, 31)
COLUMNS = {
    "key": pa.array(["a", "b", None]),
    "bool": pa.array([True, None, False]),
    "int8": pa.array([-128, None, 127], pa.int8()),
    "uint8": pa.array([0, None, 255], pa.uint8()),
    "uint32": pa.array([0, None, 2**32 - 1], pa.uint32()),
    "int64": pa.array([-(2**63), None, 2**63 - 1]),
    "uint64": pa.array([0, None, 2**64 - 1], pa.uint64()),
    "half": pa.array([1.5, None, -0.0]).cast(pa.float16()),
    "float": pa.array([1.5, None, -0.0], pa.float32()),
    "double": pa.array([1.5, None, -0.0]),
    "decimal": pa.array([Decimal("1.50"), None, Decimal("-2.25")]),
    "date": pa.array([DAY, None, DAY]),
    "date64": pa.array([DAY, None, DAY], pa.date64()),
    "time": pa.array([0, None, 86_399], pa.time32("s")),
    "time64": pa.array([0, None, 86_399], pa.time64("us")),
    "timestamp": pa.array([-1, None, 2**40], pa.timestamp("us", "Europe/Berlin")),
    "nanoseconds": pa.array([-1000, None, 2**40 * 1000], pa.timestamp("ns")),
    "duration": pa.array([-1, None, 2**40], pa.duration("ms")),
    "large text": pa.array(["é", None, ""], pa.large_string()),
    "binary": pa.array([b"\x00", None, b""]),
    "fixed": pa.array([b"ab", None, b"cd"], pa.binary(2)),
    "null": pa.nulls(3),
    "ints": pa.array([[1, None], None, []]),
    "texts": pa.array([["a", None], None, []]),
    "lists": pa.array([[[1.5]], None, []]),
    "dates": pa.array([[DAY], None, []], pa.large_list(pa.date32())),
    "struct": pa.array([{"x": 1, "y": "a"}, None, {"x": None, "y": None}]),
    "map": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64())),
    "dotted.name": pa.array([1, None, 3]),
}


def written(path: Path, batch: pa.RecordBatch, repeating: tuple[str, ...] = ()) -> Path:
    outputs = ParquetOutputs({None: ParquetOutput.at(path, repeating)})

    def run() -> dict[str | None, list[str]]:
        with outputs.for_tasks.open_parts(0) as parts:
            parts.write(None, [batch])
        return {None: parts.names[None]}

    outputs.write(run)
    return path / "part-00000.parquet"


@pytest.mark.parametrize(
    ("results", "late"),
    [
        ("y", "y"),
        ("y", "y/"),
        ("y", "y/late"),
        ("y/results", "y"),
        ("y", "z/../y/late"),
        ("y", "link/late"),
        ("y", "file://{here}/y/late"),
        ("s3://bucket/y", "s3://bucket/y/late/"),
        ("s3://bucket", "s3://bucket/y"),
    ],
)
def test_an_output_within_the_directory_of_another_is_refused_with_both_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, results: str, late: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://localhost:1")
    (tmp_path / "link").symlink_to("y")
    directories = {None: results, "late": late.format(here=tmp_path)}
    with pytest.raises(
        ConfigurationError, match=r"the (results|side output 'late') would go to .* lies in"
    ) as refusal:
        ParquetOutputs({tag_id: ParquetOutput.at(path) for tag_id, path in directories.items()})
    assert "the results" in str(refusal.value)
    assert "the side output 'late'" in str(refusal.value)
    assert not (tmp_path / "y").exists()


def test_outputs_side_by_side_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://localhost:1")
    for paths in (["y", "y2", "x/y"], ["s3://bucket/y", "s3://other/y", "/y", "s3://bucket/yy"]):
        assert ParquetOutputs({path: ParquetOutput.at(path) for path in paths}).directories.keys() == set(
            paths
        )


@pytest.mark.parametrize("repeating", [(), tuple(COLUMNS)], ids=["few repeat", "all repeat"])
def test_columns_of_all_types_come_back(tmp_path: Path, repeating: tuple[str, ...]) -> None:
    back = pq.read_table(written(tmp_path / "out", pa.record_batch(COLUMNS), repeating))
    for name, column in COLUMNS.items():
        assert back.column(name).to_pylist() == column.to_pylist(), name


REQUIRED = {
    "int": pa.array([None, 1], pa.int64()),
    "text": pa.array([None, "a"]),
    "list.item": pa.array([[None], [1]], pa.list_(pa.field("item", pa.int64(), nullable=False))),
    "large.item": pa.array([[1, None], [1]], pa.large_list(pa.field("item", pa.int64(), nullable=False))),
    "fixed.item": pa.array([[None, 1], [1, 1]], pa.list_(pa.field("item", pa.int64(), nullable=False), 2)),
    "struct.x": pa.array([{"x": None}, {"x": 1}], pa.struct([pa.field("x", pa.int64(), nullable=False)])),
    "map.value": pa.array(
        [[("a", None)], []], pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False))
    ),
    "deep.item.x": pa.array(
        [[{"x": None}], None], pa.large_list(pa.struct([pa.field("x", pa.int64(), nullable=False)]))
    ),
}


@pytest.mark.parametrize("place", REQUIRED)
def test_a_null_where_the_type_takes_none_is_named_and_leaves_no_file(tmp_path: Path, place: str) -> None:
    column = REQUIRED[place]
    schema = pa.schema([pa.field(place.partition(".")[0], column.type, nullable="." in place)])
    with pytest.raises(DataError, match=rf"column '{place}' of the results for .*/out has a null"):
        written(tmp_path / "out", pa.record_batch([column], schema))
    assert content(tmp_path) == []
    rest = pa.record_batch([column.slice(1)], schema)
    assert pq.read_table(written(tmp_path / "out", rest)).to_pylist() == rest.to_pylist()


def test_keys_and_texts_get_dictionaries_and_other_integers_their_differences(tmp_path: Path) -> None:
    file = pq.ParquetFile(written(tmp_path / "out", pa.record_batch(COLUMNS), ("key", "int8")))
    group = file.metadata.row_group(0)
    encodings = {
        column.path_in_schema: set(column.encodings) for column in map(group.column, range(group.num_columns))
    }
    for name in ("key", "int8", "large text", "texts.list.element"):
        assert "RLE_DICTIONARY" in encodings[name], name
    for name in ("int64", "uint64", "date", "timestamp", "duration", "ints.list.element", "dotted.name"):
        assert "DELTA_BINARY_PACKED" in encodings[name], name
    for name in ("double", "bool", "decimal"):
        assert not {"RLE_DICTIONARY", "DELTA_BINARY_PACKED"} & encodings[name], name


def two_outputs(folder: Path) -> ParquetOutputs:
    return ParquetOutputs({None: ParquetOutput.at(folder / "out"), "late": ParquetOutput.at(folder / "late")})


def parts_of(outputs: ParquetOutputs) -> dict[str | None, list[str]]:
    batch = pa.record_batch({"a": [1]})
    with outputs.for_tasks.open_parts(0) as parts:
        for tag_id in (None, "late", "unwanted"):
            parts.write(tag_id, [batch])
    return parts.names


def content(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_files_appear_in_all_directories(tmp_path: Path) -> None:
    outputs = two_outputs(tmp_path)
    outputs.write(lambda: parts_of(outputs))
    assert content(tmp_path) == ["late", "late/part-00000.parquet", "out", "out/part-00000.parquet"]


def test_a_directory_that_cannot_be_published_takes_back_those_that_were(tmp_path: Path) -> None:
    outputs = two_outputs(tmp_path)
    with pytest.raises(SourceError, match=rf"results cannot be written to {tmp_path}/late: .*No such file"):
        outputs.write(lambda: parts_of(outputs) | {"late": ["part-00001-gone.parquet"]})
    assert content(tmp_path) == []
    outputs.write(lambda: parts_of(outputs))


def test_a_directory_that_is_not_empty_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "late").mkdir()
    (tmp_path / "late" / "old").write_text("")
    outputs = two_outputs(tmp_path)
    with pytest.raises(ConfigurationError, match="not empty"):
        outputs.write(lambda: parts_of(outputs))
    assert content(tmp_path) == ["late", "late/old"]


def test_a_directory_that_was_there_before_outlasts_a_failure(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    outputs = two_outputs(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        outputs.write(lambda: (_ for _ in ()).throw(KeyboardInterrupt))
    assert content(tmp_path) == ["out"]


def replacing(folder: Path) -> ParquetOutputs:
    return ParquetOutputs(
        {
            None: ParquetOutput.at(folder / "out", replaces=True),
            "late": ParquetOutput.at(folder / "late", replaces=True),
        }
    )


def old_results(folder: Path) -> dict[str, bytes]:
    """Older results of two tasks, and marks as Spark leaves them."""
    for name in ("out", "late"):
        (folder / name).mkdir()
        for file in ("part-00000.parquet", "part-00001.parquet", "_SUCCESS", "._SUCCESS.crc"):
            (folder / name / file).write_text(f"old {name}/{file}")
    return files_of(folder)


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_older_results_are_replaced_where_that_is_wanted(tmp_path: Path) -> None:
    old = old_results(tmp_path)
    outputs = replacing(tmp_path)

    def run() -> dict[str | None, list[str]]:
        parts = parts_of(outputs)
        assert {name: found for name, found in files_of(tmp_path).items() if "_temporary" not in name} == old
        return parts

    outputs.write(run)
    assert content(tmp_path) == ["late", "late/part-00000.parquet", "out", "out/part-00000.parquet"]
    assert pq.read_table(tmp_path / "out").num_rows == pq.read_table(tmp_path / "late").num_rows == 1


@pytest.mark.parametrize("place", ["run", "old files", "new files", "commit"])
def test_older_results_stay_whatever_fails(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = old_results(tmp_path)
    outputs = replacing(tmp_path)

    def fail() -> None:
        raise SourceError("unlucky")

    def run() -> dict[str | None, list[str]]:
        parts = parts_of(outputs)
        if place == "run":
            fail()
        if place == "old files":  # those of the first directory have been replaced by then
            (tmp_path / "late" / "part-00001.parquet").unlink()
        return parts | ({"late": [*parts["late"], "part-00001-gone.parquet"]} if place == "new files" else {})

    with pytest.raises(SourceError):
        outputs.write(run, fail if place == "commit" else lambda: None)
    if place == "old files":
        del old["late/part-00001.parquet"]
    assert files_of(tmp_path) == old
    assert not list(tmp_path.rglob("_temporary"))


@pytest.mark.parametrize(
    "other", ["_metadata/0.json", "day=1/part-0.parquet", "notes.txt", "_temporary/part"]
)
def test_a_directory_of_other_things_is_not_replaced(tmp_path: Path, other: str) -> None:
    old_results(tmp_path)
    (tmp_path / "late" / other).parent.mkdir(exist_ok=True)
    (tmp_path / "late" / other).write_text("other")
    before = files_of(tmp_path)
    message = (
        "has a folder _temporary: another program"
        if "_temp" in other
        else f"also has '{other.split('/')[0]}'"
    )
    with pytest.raises(ConfigurationError, match=message):
        replacing(tmp_path).write(dict)
    assert files_of(tmp_path) == before


def test_what_a_killed_replay_has_left_is_named(tmp_path: Path) -> None:
    (tmp_path / "_temporary").mkdir()
    with pytest.raises(
        ConfigurationError, match=r"and does not say which\. If none is running, remove that folder$"
    ):
        ParquetOutput.at(tmp_path).prepare(StagingOwner.of_this_process())


@pytest.mark.parametrize(("silent_s", "has_ended"), [(0, False), (3_500, False), (3_700, True)])
@pytest.mark.parametrize("name", ["", "part-00000-0.parquet", "0/_temporary/attempt_0/part-0.parquet"])
def test_a_folder_that_names_no_owner_is_removed_an_hour_after_its_last_change(
    tmp_path: Path, name: str, silent_s: int, has_ended: bool
) -> None:
    staging = tmp_path / "out" / "_temporary"
    (staging / name).parent.mkdir(parents=True)
    staging.mkdir(exist_ok=True)
    if name:
        (staging / name).write_text("half")
    for path in (*sorted(staging.rglob("*"), reverse=True), staging):
        os.utime(path, (time.time() - silent_s,) * 2)
    outputs = replacing(tmp_path)
    for _ in range(2):  # to ask does not count as a change
        if not has_ended:
            with pytest.raises(ConfigurationError, match="counts as ended 60 minutes after the last change"):
                outputs.write(dict)
    if has_ended:
        outputs.write(lambda: parts_of(outputs))
        assert not list(tmp_path.rglob("_temporary"))


def test_a_killed_process_that_nobody_has_waited_for_has_ended(tmp_path: Path) -> None:
    program = (
        "import sys, time; from flinkcore.columnar.outputs.parquet_directory import ParquetOutput; "
        "from flinkcore.columnar.outputs.staging_owner import StagingOwner; "
        "ParquetOutput.at(sys.argv[1]).prepare(StagingOwner.of_this_process()); print(flush=True); time.sleep(600)"
    )
    outputs = replacing(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "out")], stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        with pytest.raises(
            ConfigurationError, match=rf"process {writer.pid} of .* writes its results there, since 20\d\d-"
        ):
            outputs.write(dict)
        writer.kill()
        os.waitid(
            os.P_PID, writer.pid, os.WEXITED | os.WNOWAIT
        )  # it has ended, and stays in the list of processes
        outputs.write(lambda: parts_of(outputs))
    assert not list(tmp_path.rglob("_temporary"))


def test_of_two_writes_that_begin_at_once_the_second_leaves_the_work_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = StagingOwner.of_this_process(), StagingOwner.of_this_process()
    output = ParquetOutput.at(tmp_path / "out", replaces=True)
    output.prepare(first)
    assert not second.claim(*output.staging)
    assert owner_of(*output.staging) == first


class Killed(BaseException):
    """Ends a write as the death of its process does: nothing is cleaned up."""


def killed_write(folder: Path, monkeypatch: pytest.MonkeyPatch, at: str, owner: StagingOwner) -> None:
    """Write into the directories of `replacing`, and be killed at a step."""
    moves = iter(range(100))

    def run() -> dict[str | None, list[str]]:
        parts = parts_of(outputs)
        if at == "run":
            raise Killed
        return parts

    def kill() -> None:
        if at == "commit":
            raise Killed

    def move(self: Any, *paths: str) -> None:
        if at == f"move {next(moves)}":
            raise Killed
        Path(paths[0]).rename(paths[1])

    class Killing(fs.LocalFileSystem):  # type: ignore[misc]
        pass

    Killing.move = move
    outputs = ParquetOutputs(
        {
            tag_id: replace(output, place=replace(output.place, filesystem=Killing()))
            for tag_id, output in replacing(folder).directories.items()
        }
    )
    with monkeypatch.context() as patched:
        patched.setattr(StagingOwner, "of_this_process", lambda: owner)
        patched.setattr(ParquetOutput, "withdraw", lambda *arguments: None)
        with pytest.raises(Killed):
            outputs.write(run, kill)


def ended_process() -> StagingOwner:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    return replace(StagingOwner.of_this_process(), process=process.pid, started="1")


STEPS = ["run", *(f"move {number}" for number in range(10)), "commit"]


@pytest.mark.parametrize(
    ("had_results", "at"),
    [*((True, at) for at in STEPS), *((False, at) for at in ("run", "move 0", "move 1", "commit"))],
)
def test_what_a_killed_replay_has_left_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, had_results: bool, at: str
) -> None:
    if had_results:
        old_results(tmp_path)
    killed_write(tmp_path, monkeypatch, at, ended_process())
    assert list(tmp_path.rglob("_temporary"))
    outputs = replacing(tmp_path)
    outputs.write(lambda: parts_of(outputs))
    assert content(tmp_path) == ["late", "late/part-00000.parquet", "out", "out/part-00000.parquet"]


@pytest.mark.parametrize("at", STEPS)
def test_older_results_are_back_if_the_next_replay_fails_after_one_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    old = old_results(tmp_path)
    killed_write(tmp_path, monkeypatch, at, ended_process())

    def fail() -> Any:
        raise SourceError("unlucky")

    with pytest.raises(SourceError, match="unlucky"):
        replacing(tmp_path).write(fail)
    found = files_of(tmp_path)
    for name in ("out", "late"):
        # A directory in which all new files were in place keeps them: a checkpoint may name them.
        files = {path: data for path, data in found.items() if path.startswith(f"{name}/")}
        assert files == {path: data for path, data in old.items() if path.startswith(f"{name}/")} or list(
            files
        ) == [f"{name}/part-00000.parquet"]
    assert not list(tmp_path.rglob("_temporary"))


def test_results_that_another_process_writes_are_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        owner = StagingOwner.of_this_process()
        running = replace(owner, process=process.pid, started=staging_owner._started(process.pid))
        killed_write(tmp_path, monkeypatch, "run", running)
        with pytest.raises(
            ConfigurationError, match=f"process {process.pid} of .* writes its results there, since .*Z. Wait"
        ):
            replacing(tmp_path).write(dict)
        assert process.stdin is not None
        process.stdin.close()
        process.wait()
    outputs = replacing(tmp_path)
    outputs.write(lambda: parts_of(outputs))
    assert not list(tmp_path.rglob("_temporary"))


def test_a_process_with_the_number_of_an_ended_one_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_write(tmp_path, monkeypatch, "run", replace(StagingOwner.of_this_process(), started="1"))
    outputs = replacing(tmp_path)
    outputs.write(lambda: parts_of(outputs))
    assert not list(tmp_path.rglob("_temporary"))


def test_two_writes_of_one_process_do_not_replace_each_other(tmp_path: Path) -> None:
    first, second = replacing(tmp_path), replacing(tmp_path)

    def run() -> dict[str | None, list[str]]:
        with pytest.raises(
            ConfigurationError, match=r"writes its results there, since 20.*Z\. Wait for its end"
        ):
            second.write(dict)
        return parts_of(first)

    first.write(run)
    second.write(lambda: parts_of(second))


@pytest.mark.parametrize(("silent_s", "has_ended"), [(0, False), (300, False), (900, True)])
def test_a_process_of_another_machine_has_ended_when_it_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, silent_s: int, has_ended: bool
) -> None:
    owner = replace(StagingOwner.of_this_process(), machine="another", host="another")
    killed_write(tmp_path, monkeypatch, "run", owner)
    for path in tmp_path.rglob("_owner"):
        os.utime(path, (time.time() - silent_s,) * 2)
    outputs = replacing(tmp_path)
    if has_ended:
        outputs.write(lambda: parts_of(outputs))
        assert not list(tmp_path.rglob("_temporary"))
        return
    with pytest.raises(
        ConfigurationError, match=r"of another writes .* ended 10 minutes after its last sign of life"
    ):
        outputs.write(dict)


def test_a_write_shows_that_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging_owner, "_BEAT_SECONDS", 0.01)
    outputs = replacing(tmp_path)

    def run() -> dict[str | None, list[str]]:
        mark = tmp_path / "out" / "_temporary" / "_owner"
        os.utime(mark, (0, 0))
        while mark.stat().st_mtime == 0:
            time.sleep(0.01)
        return parts_of(outputs)

    outputs.write(run)


def test_only_what_is_to_be_replaced_is_cleaned_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed_write(tmp_path, monkeypatch, "commit", ended_process())
    before = files_of(tmp_path)
    with pytest.raises(
        ConfigurationError,
        match=r"or was killed as it did\. If it is no longer running, give the mode= that it had",
    ):
        two_outputs(tmp_path).write(dict)
    assert files_of(tmp_path) == before


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SourceError, match=f"results cannot be written to {tmp_path}/file/out: "):
        ParquetOutput.at(tmp_path / "file" / "out").prepare(StagingOwner.of_this_process())


@pytest.mark.parametrize("room", [0, 4, 5, 1_000, 100_000, 150_000])
def test_a_disk_that_is_full_is_an_error_that_names_the_directory_and_leaves_nothing(
    tmp_path: Path, room: int
) -> None:
    batch = pa.record_batch({"value": [math.sin(n) for n in range(10_000)]})
    outputs = two_outputs(tmp_path)

    def run() -> dict[str | None, list[str]]:
        with most_bytes_of_a_file(room), outputs.for_tasks.open_parts(0) as parts:
            parts.write("late", [batch, batch])
            parts.write(None, [pa.record_batch({"a": [1]})])
        raise AssertionError

    with pytest.raises(
        SourceError,
        match=rf"results cannot be written to {tmp_path}/(late|out): .*File too large.*"
        r"Nothing of them stays\. Give a directory on a disk with more room \([0-9,]+ bytes are free in",
    ):
        outputs.write(run)
    gc.collect()  # a writer that is forgotten does not try again
    assert content(tmp_path) == []


def test_a_directory_in_which_no_file_can_be_made_is_not_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flinkcore.columnar.outputs.parquet_directory._NEW", "missing/file")
    with pytest.raises(SourceError, match=f"results cannot be written to {tmp_path}/out: "):
        ParquetOutput.at(tmp_path / "out").prepare(StagingOwner.of_this_process())
    assert content(tmp_path) == []


def test_a_failed_clean_up_does_not_hide_the_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(output: ParquetOutput, *names: Any) -> None:
        raise PermissionError("read-only")

    def fail() -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(ParquetOutput, "withdraw", refuse)
    with (
        pytest.warns(RuntimeWarning, match=r"failed replay: empty it \(read-only\)"),
        pytest.raises(ZeroDivisionError),
    ):
        two_outputs(tmp_path).write(fail)


@pytest.mark.parametrize("is_writer_known", [False, True])
def test_nobody_is_advised_to_delete_the_files_to_which_a_run_would_append(
    tmp_path: Path, is_writer_known: bool
) -> None:
    owner = StagingOwner.of_this_process()
    output = ParquetOutput.at(tmp_path, run=AppendedRun.of(None))
    (tmp_path / "_temporary").mkdir()
    (tmp_path / "part-00000-other.parquet").write_text("")
    if is_writer_known:
        owner.write(*output.staging)
    with owner.live(), pytest.raises(ConfigurationError) as failure:
        output.prepare(StagingOwner.of_this_process())
    advice = "Wait for its end" if is_writer_known else "remove that folder"
    assert advice in str(failure.value)
    assert "empty the directory" not in str(failure.value)
    assert "overwrite" not in str(failure.value)


@pytest.mark.parametrize("mode", ["error", "append", "overwrite"])
def test_an_error_says_whether_parts_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    run = AppendedRun.of(None) if mode == "append" else None
    outputs = ParquetOutputs(
        {
            tag_id: ParquetOutput.at(tmp_path / name, run=run, replaces=mode == "overwrite")
            for tag_id, name in ((None, "out"), ("late", "late"))
        }
    )
    withdraw = ParquetOutput.withdraw

    def refuse(output: ParquetOutput, *names: Any) -> None:
        if output.path.endswith("late"):
            raise PermissionError("denied")
        withdraw(output, *names)

    def fail() -> Any:
        with outputs.directories[None].writing():
            raise PermissionError("denied")

    with pytest.raises(SourceError, match=r"denied\. Nothing of them stays\. Give"):
        outputs.write(fail)
    monkeypatch.setattr(ParquetOutput, "withdraw", refuse)
    remedy = "empty it" if mode == "error" else "once they can be removed, the next write with the same mode="
    with (
        pytest.warns(RuntimeWarning, match=f"late has parts of a failed replay: {remedy}"),
        pytest.raises(SourceError, match=rf"denied\. Parts of them stay in {tmp_path}/late\. Give"),
    ):
        outputs.write(fail)


def test_a_result_whose_staging_folder_stays_is_a_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(output: ParquetOutput, names: Any = ()) -> None:
        raise PermissionError("read-only")

    monkeypatch.setattr(ParquetOutput, "finish", refuse)
    outputs = two_outputs(tmp_path)
    with pytest.warns(RuntimeWarning, match="is complete; its folder _temporary can be removed"):
        outputs.write(lambda: parts_of(outputs))
    assert pq.read_table(tmp_path / "late" / "part-00000.parquet").num_rows == 1


@pytest.mark.parametrize(
    "file", ["out/a.parquet", "out/day=1/a.parquet", "link/a.parquet", "links/a.parquet", "late/a.parquet"]
)
@pytest.mark.parametrize("out", ["out", "link", "."])
def test_a_log_that_the_job_reads_is_not_replaced(
    tmp_path: Path, file: str, out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("out/day=1", "late", "links"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("out/a.parquet", "out/day=1/a.parquet", "late/a.parquet"):
        (tmp_path / name).write_text("")
    (tmp_path / "link").symlink_to("out")
    (tmp_path / "links/a.parquet").symlink_to("../out/a.parquet")
    monkeypatch.chdir(tmp_path)
    outputs = ParquetOutputs({None: ParquetOutput.at(out, replaces=True)})
    files = [str(tmp_path.parent / "elsewhere.parquet"), str(tmp_path / file)]
    if file.startswith("late") and out != ".":
        outputs.require_apart_from(files)
        return
    with pytest.raises(
        ConfigurationError, match=rf"would delete a log that the job reads: {files[1]} lies in "
    ):
        outputs.require_apart_from(files)
    ParquetOutputs({None: ParquetOutput.at(out)}).require_apart_from(files)


def test_a_log_in_a_store_is_not_replaced_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://localhost:1")
    outputs = ParquetOutputs({None: ParquetOutput.at("s3://logs/clicks", replaces=True)})
    outputs.require_apart_from(["s3://logs/clicks2/a.parquet", "/logs/clicks/a.parquet"])
    for file in ("s3://logs/clicks/day=1/a.parquet", "s3a://logs/clicks/a.parquet"):
        with pytest.raises(ConfigurationError, match="would delete a log"):
            outputs.require_apart_from([file])
    outputs = ParquetOutputs({None: ParquetOutput.at("gs://logs/clicks", replaces=True)})
    with pytest.raises(ConfigurationError, match="would delete a log"):
        outputs.require_apart_from(["gcs://logs/clicks/a.parquet"])


def test_a_job_does_not_replace_its_log(tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": ["a"], "ts": [1]}), tmp_path / "part-00000.parquet")
    before = files_of(tmp_path)
    log = StreamExecutionEnvironment().from_event_log(str(tmp_path), timestamp="ts")
    counts = (
        log.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
        .key_by("k")
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .aggregate(n=count())
    )
    with pytest.raises(ConfigurationError, match="would delete a log that the job reads"):
        counts.write_parquet(tmp_path, mode="overwrite")
    assert files_of(tmp_path) == before


def fsspec_files(_: str) -> Any:
    return pytest.importorskip("fsspec").filesystem("file")


def fsspec_folder(folder: str) -> Any:
    return pytest.importorskip("fsspec").filesystem("dir", path=folder, fs=fsspec_files(folder))


def subtree_of_fsspec(folder: str) -> fs.FileSystem:
    return fs.SubTreeFileSystem(folder, fs.PyFileSystem(fs.FSSpecHandler(fsspec_files(folder))))


@pytest.mark.parametrize(
    ("log", "filesystem"),
    [
        ("log", lambda folder: fs.SubTreeFileSystem(folder, fs.LocalFileSystem())),
        ("log", subtree_of_fsspec),
        ("log", fsspec_folder),
        ("{folder}/log", fsspec_files),
        ("{folder}/log", lambda folder: fs.PyFileSystem(fs.FSSpecHandler(fsspec_files(folder)))),
        ("{folder}/log", lambda _: fs.LocalFileSystem()),
    ],
)
def test_a_log_that_a_given_filesystem_wraps_is_not_replaced(
    tmp_path: Path, log: str, filesystem: Callable[[str], Any]
) -> None:
    (tmp_path / "log").mkdir()
    pq.write_table(pa.table({"k": ["a"], "ts": [1]}), tmp_path / "log" / "part-00000.parquet")
    before = files_of(tmp_path)
    stream = StreamExecutionEnvironment().from_event_log(
        log.format(folder=tmp_path), timestamp="ts", filesystem=filesystem(str(tmp_path))
    )
    rows = stream.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
    counts = rows.key_by("k").window(TumblingEventTimeWindows.of(Time.seconds(1))).aggregate(n=count())
    with pytest.raises(ConfigurationError, match="would delete a log that the job reads"):
        counts.write_parquet(tmp_path / "log", mode="overwrite")
    assert files_of(tmp_path) == before
    counts.write_parquet(tmp_path / "results", mode="overwrite")


class Nothing(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> None:
        raise AssertionError("the job runs")


@pytest.mark.parametrize(
    "kind",
    [
        pa.decimal128(5, -2),
        pa.decimal256(5, -2),
        pa.month_day_nano_interval(),
        pa.list_(pa.month_day_nano_interval()),
        pa.run_end_encoded(pa.int32(), pa.int64()),
    ],
    ids=str,
)
@pytest.mark.parametrize("is_side_output", [False, True])
def test_a_column_that_parquet_has_no_type_for_is_refused_before_the_job_runs(
    tmp_path: Path, kind: pa.DataType, is_side_output: bool
) -> None:
    side = OutputTag("side", pa.schema({"x": kind}))
    log = StreamExecutionEnvironment().from_event_log(pa.table({"k": ["a"], "ts": [1]}), timestamp="ts")
    schema = pa.schema({"n": pa.int64() if is_side_output else kind})
    stream = log.key_by("k").process(Nothing(), schema, side_outputs=[side])
    with pytest.raises(
        SchemaError, match=f"column '{'x' if is_side_output else 'n'}' of the results is .*Parquet has no"
    ):
        stream.write_parquet(
            tmp_path / "out", side_outputs={side: tmp_path / "side"} if is_side_output else {}
        )
    assert content(tmp_path) == []
