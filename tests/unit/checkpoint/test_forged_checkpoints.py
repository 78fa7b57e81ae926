"""Checkpoints of which every checksum is right, and that no writer has written, are refused."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from equipment.checkpoints import KEY_GROUPS, keyed_state, timers, two_subtasks, write_checkpoint
from equipment.forged_checkpoints import (
    arrow_file,
    forge,
    forge_table,
    manifest_of,
    read_content,
    read_table,
    with_column,
    write_content,
    write_file,
)
from equipment.process_limits import peak_memory_bytes

from flinkcore.checkpoint import Checkpoint, OperatorSnapshot, PendingCheckpoint
from flinkcore.cli import main
from flinkcore.datastream.state import StateDescriptor, StateTtlConfig
from flinkcore.errors import CheckpointError, SchemaError, SourceError
from flinkcore.operators.state import DistributionMode, OperatorStateSnapshot

Content = dict[str, Any]
NO_ROWS = 2**31 - 1


def written(path: Path) -> None:
    """Two subtasks, each with timers and a state; the state of the first is at tables[1]."""
    low, high = two_subtasks({0: "abc", 3: "def"}, {4: "ghi"})
    lists = OperatorStateSnapshot(DistributionMode.UNION, [1, 2])
    write_checkpoint(
        path,
        {
            "op": [
                OperatorSnapshot((0, 3), 5, {"t": timers([(9, 3)], [(8, 0)])}, low.keyed_state, {"l": lists}),
                OperatorSnapshot((4, 7), 5, {"t": timers([(9, 4)])}, high.keyed_state),
            ]
        },
    )


def read_all(path: Path) -> None:
    checkpoint = Checkpoint.open(path)
    checkpoint.restore("op", (0, 7), KEY_GROUPS)
    checkpoint.operator_states("op", 1)


def first_tables(content: Content) -> list[Content]:
    tables: list[Content] = content["parts"][0]["tables"]
    return tables


def test_what_is_forged_into_what_it_was_is_read(tmp_path: Path) -> None:
    written(tmp_path)
    for kind in ("timers", "keyed_state", "operator_state"):
        forge_table(tmp_path, kind, lambda batch: batch)
    read_all(tmp_path)


# ---- the manifest ----


def nested(depth: int) -> Any:
    shape: Any = "int"
    for _ in range(depth):
        shape = ["list", shape]
    return shape


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: first_tables(c).append(first_tables(c)[1]), "has its keyed state 'v' twice"),
        (lambda c: first_tables(c).pop(1), "is not its file number 1: a table is left out"),
        (lambda c: first_tables(c).pop(), r"the table in data-.*/00000-002-.*\.arrow is not listed"),
        (lambda c: first_tables(c).pop(0), "is not its file number 0"),
        (lambda c: first_tables(c)[0].update(file=first_tables(c)[1]["file"]), "is not its file number"),
        (lambda c: first_tables(c).reverse(), "is not its file number 0"),
        (
            lambda c: c["parts"][1].update(tables=[]) or c["parts"][1].update(tables=first_tables(c)),
            "subtask 1 .* has files of another part",
        ),
        (lambda c: c["parts"].append(dict(c["parts"][1], uid="other", subtask=0)), "operator 'other'"),
        (lambda c: c.update(max_parallelism=0), "max_parallelism of the checkpoint is 0"),
        (lambda c: c.update(max_parallelism=8.0), "max_parallelism of the checkpoint is 8.0"),
        (lambda c: c.update(max_parallelism=2**15 + 1), "max_parallelism"),
        (lambda c: c.update(written_ms=10**400), "written_ms of the checkpoint is 1000.*…, no integer"),
        (lambda c: c.update(written_ms=True), "written_ms"),
        (lambda c: c.update(parts={}), "parts of the checkpoint is {}, no array"),
        (lambda c: c.update(more=1), "has the unknown member 'more'"),
        (lambda c: c.update(job={"a": 1}), "job of the checkpoint"),
        (lambda c: c.update(job={"a": ["b", 1]}), "job of the checkpoint"),
        (lambda c: c["parts"].append(7), r"parts\[2\] is not a JSON object"),
        (lambda c: c["parts"][0].update(uid=7), r"uid of parts\[0\] is 7, no text"),
        (lambda c: c["parts"][0].update(uid=""), "no name of an operator"),
        (lambda c: c["parts"][0].update(subtask=-1), r"subtask of parts\[0\] is -1"),
        (lambda c: c["parts"][0].update(watermark_ms=2**63), "watermark_ms"),
        (lambda c: c["parts"][0].update(watermark_ms=None), "watermark_ms"),
        (lambda c: c["parts"][0].update(key_group_range=[3, 0]), "key_group_range"),
        (lambda c: c["parts"][0].update(key_group_range=[-1, 3]), "key_group_range"),
        (lambda c: c["parts"][0].update(key_group_range=[0, "3"]), "key_group_range"),
        (lambda c: c["parts"][0].update(key_group_range=[0]), "key_group_range"),
        (lambda c: [p.update(key_group_range=None) for p in c["parts"]], "has no key groups, but timers 't'"),
        (lambda c: first_tables(c)[0].update(size=-1), "size of .* is -1"),
        (lambda c: first_tables(c)[0].update(n_rows=2**70), "n_rows"),
        (lambda c: first_tables(c)[0].update(sha256="x"), "sha256"),
        (lambda c: first_tables(c)[0].update(kind=["timers"]), "kind of .*no text"),
        (lambda c: first_tables(c)[0].update(file=first_tables(c)[0]["file"] + "/x"), "outside of"),
        (lambda c: first_tables(c)[0].update(file=first_tables(c)[0]["file"][:37]), "outside of"),
        (lambda c: first_tables(c)[0].update(attributes={}), "lacks 'event_time'"),
        (lambda c: first_tables(c)[0]["attributes"].update(event_time={"count": 5}), "earliest_ms"),
        (
            lambda c: first_tables(c)[0]["attributes"]["event_time"].update(count=7),
            "are of 8 timers, and .* 2 rows",
        ),
        (lambda c: first_tables(c)[0]["attributes"]["event_time"].update(earliest_ms="x"), "earliest_ms"),
        (
            lambda c: first_tables(c)[0]["attributes"]["event_time"].update(earliest_ms=99),
            "is after latest_ms",
        ),
        (lambda c: first_tables(c)[0].update(shapes=[]), "shapes of .* is not a JSON object"),
        (lambda c: first_tables(c)[1]["shapes"].update(other="int"), "unknown member 'other'"),
        (lambda c: first_tables(c)[1]["shapes"].update(value=nested(40)), "nested more than 36 deep"),
        (lambda c: first_tables(c)[1]["shapes"].update(value=["tuple"]), "this version does not know"),
        (lambda c: first_tables(c)[1]["shapes"].update(value=["dict", "int"]), "this version does not know"),
        (lambda c: first_tables(c)[1]["shapes"].update(value=[["int"]]), "this version does not know"),
        (lambda c: first_tables(c)[1]["shapes"].update(value={}), "this version does not know"),
        (
            lambda c: first_tables(c)[1]["shapes"].update(value=["row", ["names"], "int"]),
            "names are not those",
        ),
        (lambda c: first_tables(c)[2]["attributes"].update(mode="all"), "no kind known here of an operator"),
    ],
)
def test_a_manifest_that_contradicts_itself_is_refused(
    tmp_path: Path, change: Callable[[Content], Any], message: str
) -> None:
    written(tmp_path)
    forge(tmp_path, change)
    with pytest.raises(
        CheckpointError, match=rf"(?s)manifest-000001\.json describes no complete checkpoint: .*{message}"
    ):
        Checkpoint.open(tmp_path)
    assert main(["checkpoint", "show", str(tmp_path)]) == 1


def lists(*subtasks: list[int]) -> list[OperatorSnapshot]:
    """An operator without keys, some of whose subtasks have a list."""
    states = [{"l": OperatorStateSnapshot(DistributionMode.UNION, own)} if own else {} for own in subtasks]
    return [OperatorSnapshot(operator_state=state) for state in states]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["parts"][1]["tables"].pop(), r"op of n_tables .* is \[0, 1, 1\], and \[0, 0, 1\] are"),
        (lambda c: c["parts"].pop(2), r"op of n_tables .* is \[0, 1, 1\], and \[0, 1\] are"),
        (lambda c: c["parts"].pop(), "n_tables of the checkpoint has the unknown member 'other'"),
        (lambda c: c["n_tables"].pop("other"), "n_tables of the checkpoint lacks 'other'"),
        (lambda c: c["n_tables"]["op"].pop(), r"op of n_tables .* is \[0, 1\], and \[0, 1, 1\] are"),
        (lambda c: c["n_tables"].update(op=3), "op of n_tables .* is 3, no array"),
        (lambda c: c.update(n_tables=[3]), "n_tables of the checkpoint is not a JSON object"),
        (lambda c: c.pop("n_tables"), "the checkpoint lacks 'n_tables'"),
    ],
)
def test_a_table_or_a_subtask_that_is_left_out_is_noticed(
    tmp_path: Path, change: Callable[[Content], Any], message: str
) -> None:
    write_checkpoint(tmp_path, {"op": lists([], [1], [2, 3]), "other": lists([4])})
    content = read_content(tmp_path)
    change(content)
    write_content(tmp_path, content)
    with pytest.raises(CheckpointError, match=message):
        Checkpoint.open(tmp_path)


def test_files_of_a_failed_attempt_may_be_left(tmp_path: Path) -> None:
    written(tmp_path)
    table = first_tables(read_content(tmp_path))[0]
    file = tmp_path / table["file"]
    file.with_name(f"00000-000-{'0' * 32}.arrow").write_bytes(b"half of")
    read_all(tmp_path)


@pytest.mark.parametrize("content", ["[" * 100_000, '{"a":' * 100_000, "[" + "{}," * 2**22])
def test_a_manifest_of_many_or_deep_values_is_refused(tmp_path: Path, content: str) -> None:
    written(tmp_path)
    manifest_of(tmp_path).write_text(content)
    with pytest.raises(CheckpointError, match="is damaged, or no manifest"):
        Checkpoint.open(tmp_path)


def test_a_deep_value_in_the_checkpoint_is_refused(tmp_path: Path) -> None:
    written(tmp_path)
    deep = "[" * 900 + "]" * 900
    document = manifest_of(tmp_path).read_text().replace('"subtask": 0', f'"subtask": {deep}')
    manifest_of(tmp_path).write_text(document)
    with pytest.raises(CheckpointError, match="is damaged"):
        Checkpoint.open(tmp_path)


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def long_file(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**40)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (pipe, "not a regular file"),
        (device, "not a regular file"),
        (Path.mkdir, "not a regular file"),
        (long_file, "1,099,511,627,776 bytes"),
    ],
)
@pytest.mark.parametrize("which", ["manifest", "table"])
def test_what_is_no_file_of_the_expected_size_is_not_opened(
    tmp_path: Path, make: Callable[[Path], None], told: str, which: str
) -> None:
    written(tmp_path)
    table = tmp_path / first_tables(read_content(tmp_path))[0]["file"]
    path = manifest_of(tmp_path) if which == "manifest" else table
    checkpoint = Checkpoint.open(tmp_path)
    path.unlink()
    make(path)
    if make is Path.mkdir and which == "manifest":
        told = "is not a checkpoint|never completed"  # a folder has no number
    with pytest.raises(CheckpointError, match=rf"{re.escape(str(tmp_path))}.*({told})"):
        checkpoint.restore("op", (0, 7), KEY_GROUPS) if which == "table" else Checkpoint.open(tmp_path)
    with pytest.raises(CheckpointError):
        read_all(tmp_path)


# ---- tables ----


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("keyed_state", lambda b: with_column(b, "key_group", [0, -1]), "row 1 is in the key group -1"),
        ("keyed_state", lambda b: with_column(b, "key_group", [99, 3]), "row 0 is in the key group 99"),
        (
            "keyed_state",
            lambda b: with_column(b, "key_group", [0, 4]),
            "row 1 is in the key group 4, and the subtask has",
        ),
        ("keyed_state", lambda b: with_column(b, "key_group", [None, 3]), "int32 with 1 nulls"),
        ("keyed_state", lambda b: with_column(b, "key_group", pa.array([0, 3])), "must be int32"),
        ("keyed_state", lambda b: with_column(b, "key", [0, None]), "with 1 nulls"),
        ("keyed_state", lambda b: with_column(b, "value", ["abc", None]), "with 1 nulls"),
        ("keyed_state", lambda b: with_column(b, "value", pa.array([1, 2])), "should hold 'str' is int64"),
        (
            "keyed_state",
            lambda b: b.append_column("more", b.column(0)),
            "has the columns .*more; they must be",
        ),
        ("keyed_state", lambda b: b.select([1, 0, 2, 3]), "has the columns key, key_group"),
        ("keyed_state", lambda b: b.select([0, 1, 2]), "has the columns"),
        ("timers", lambda b: with_column(b, "key_group", [3, -1]), "row 1 is in the key group -1"),
        ("timers", lambda b: with_column(b, "key", pa.array([3, 0])), "is not a dictionary of values"),
        (
            "timers",
            lambda b: with_column(
                b, "key", pa.DictionaryArray.from_arrays(pa.array([0, None], "int32"), [3])
            ),
            "indexes must be int32 without nulls",
        ),
        (
            "timers",
            lambda b: with_column(b, "key", pa.DictionaryArray.from_arrays(pa.array([0, 0], "int8"), [3])),
            "indexes must be int32 without nulls",
        ),
        ("operator_state", lambda b: with_column(b, "element", [1, None]), "with 1 nulls"),
        ("operator_state", lambda b: b.slice(0, 0).select([]), "has the columns"),
        (
            "operator_state",
            lambda b: with_column(b, "element", pa.array(["a", "b"], pa.string_view())),
            "the type string_view, which no column of a checkpoint has",
        ),
        (
            "operator_state",
            lambda b: with_column(
                b, "element", pa.RunEndEncodedArray.from_arrays(pa.array([2], "int32"), [1])
            ),
            "which no column of a checkpoint has",
        ),
    ],
)
def test_a_table_with_rows_that_no_subtask_wrote_is_refused(
    tmp_path: Path, kind: str, change: Callable[[pa.RecordBatch], pa.RecordBatch], message: str
) -> None:
    written(tmp_path)
    forge_table(tmp_path, kind, change)
    where = rf"{re.escape(str(tmp_path))}/data-.*\.arrow \({kind.replace('_', ' ')} '.'\).*"
    with pytest.raises(CheckpointError, match=rf"(?s){where}{message}.*Restore from another checkpoint"):
        read_all(tmp_path)


def written_state(path: Path, value: Any, **kind: Any) -> None:
    state = keyed_state({0: value}, **kind)
    write_checkpoint(path, {"op": [OperatorSnapshot((0, 7), keyed_state={"v": state})]})


@pytest.mark.parametrize(
    ("value", "kind", "forged", "message"),
    [
        ([1], {"type": StateDescriptor.Type.LIST}, [[]], "entry without a value"),
        (
            5,
            {"ttl_time": StateTtlConfig.TtlTimeCharacteristic.EventTime},
            None,
            "without the time of its last access",
        ),
        (
            [(5, 1)],
            {
                "type": StateDescriptor.Type.LIST,
                "ttl_time": StateTtlConfig.TtlTimeCharacteristic.ProcessingTime,
            },
            [[{"f0": 1, "f1": None}]],
            "with 1 nulls",
        ),
    ],
)
def test_an_entry_without_what_its_state_holds_is_refused(
    tmp_path: Path, value: Any, kind: Any, forged: Any, message: str
) -> None:
    written_state(tmp_path, value, **kind)
    if forged is not None:
        forge_table(tmp_path, "keyed_state", lambda batch: with_column(batch, "value", forged))
    with pytest.raises(CheckpointError, match=message):
        read_all(tmp_path)


def test_a_value_that_no_zone_or_number_is_is_refused(tmp_path: Path) -> None:
    for shape, array in (
        ("decimal", pa.array(["1.5x"], pa.large_string())),
        ("time_window", pa.array([{"start": 3, "end": None}], pa.struct({"start": "int64", "end": "int64"}))),
        (
            "datetime_zone",
            pa.array(
                [{"local": 1, "fold": False, "zone": "9" * 30}],
                pa.struct({"local": pa.timestamp("us"), "fold": pa.bool_(), "zone": pa.large_string()}),
            ),
        ),
        (
            ["rows", ["tuple", "none", "int", "int"]],
            pa.array([{"a": None, "b": 9, "c": 5}], pa.struct({"a": pa.null(), "b": "int64", "c": "int64"})),
        ),
    ):
        written_state(tmp_path, "a")
        forge_table(tmp_path, "keyed_state", lambda batch, array=array: with_column(batch, "value", array))
        forge(tmp_path, lambda c, shape=shape: first_tables(c)[0]["shapes"].update(value=shape))
        with pytest.raises(CheckpointError, match=r"keyed state 'v'"):
            read_all(tmp_path)


# ---- what unpacks to more than there is ----


def nothing(n: int) -> pa.Array:
    return pa.Array.from_buffers(pa.null(), n, [None])


def zeros(n: int) -> pa.Array:
    return pa.array([0], pa.int64()).take(pa.array([0] * n))


def in_structs(array: pa.Array, depth: int) -> pa.Array:
    for _ in range(depth):
        array = pa.StructArray.from_arrays([array], ["f0"])
    return array


@pytest.mark.parametrize(
    ("data", "rows", "shape", "message"),
    [
        (lambda: arrow_file(one_column(zeros(2**20)), "zstd"), 2**20, "int", "are compressed"),
        (lambda: arrow_file(one_column(zeros(2**20)), "lz4"), 2**20, "int", "are compressed"),
        (
            lambda: arrow_file(one_column(zeros(2**20).dictionary_encode()), "zstd"),
            2**20,
            "int",
            "are compressed",
        ),
        (lambda: arrow_file(one_column(nothing(NO_ROWS))), NO_ROWS, "none", "2,147,483,647 times None"),
        (
            lambda: arrow_file(one_column(in_structs(nothing(2**22), 8))),
            2**22,
            "none",
            "33,554,432 tuples and lists",
        ),
        (
            lambda: arrow_file(
                one_column(pa.LargeListArray.from_arrays(pa.array([0, NO_ROWS]), nothing(NO_ROWS)))
            ),
            1,
            ["list", "none"],
            "times None",
        ),
    ],
    ids=["zstd", "lz4", "compressed dictionary", "nulls", "structs", "list of nulls"],
)
def test_a_small_file_does_not_unpack_to_much(
    tmp_path: Path, data: Callable[[], bytes], rows: int, shape: Any, message: str
) -> None:
    written(tmp_path)
    content = read_content(tmp_path)
    table = first_tables(content)[2]
    write_file(tmp_path, table, data())
    table |= {"n_rows": rows, "shapes": {"element": shape}}
    write_content(tmp_path, content)
    before = peak_memory_bytes()
    with pytest.raises(CheckpointError, match=message):
        Checkpoint.open(tmp_path).operator_states("op", 1)
    assert peak_memory_bytes() - before < 100_000 << 10


def one_column(array: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([array], ["element"])


def test_a_column_that_nobody_reads_is_refused(tmp_path: Path) -> None:
    written(tmp_path)
    table = first_tables(read_content(tmp_path))[1]
    batch = read_table(tmp_path, table)
    more = batch.append_column("more", pa.array([b"\0" * 2**20] * 2, pa.large_binary()))
    forge_table(tmp_path, "keyed_state", lambda batch: more)
    with pytest.raises(CheckpointError, match="has the columns"):
        read_all(tmp_path)


def test_what_would_not_be_read_is_not_written(tmp_path: Path) -> None:
    many = OperatorStateSnapshot(DistributionMode.UNION, [None] * (2**24 + 10_000))
    with PendingCheckpoint.begin(tmp_path, KEY_GROUPS) as pending:
        with pytest.raises(SchemaError, match="16,787,216 times None"):
            pending.writer().write("op", 0, OperatorSnapshot(operator_state={"l": many}))
        assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


def test_a_footer_that_tells_otherwise_counts_nothing(tmp_path: Path) -> None:
    written(tmp_path)
    content = read_content(tmp_path)
    table = first_tables(content)[1]
    two = arrow_file(read_table(tmp_path, table))
    one = arrow_file(read_table(tmp_path, table).slice(0, 1))
    ends = [data.rindex(b"\xff\xff\xff\xff\0\0\0\0") for data in (two, one)]
    write_file(tmp_path, table, two[: ends[0]] + one[ends[1] :])
    write_content(tmp_path, content)
    (low, _) = Checkpoint.open(tmp_path).restore("op", (0, 7), KEY_GROUPS)
    assert low.keyed_state["v"].values == ["abc", "def"]


def test_a_directory_that_cannot_be_listed_is_named() -> None:
    with pytest.raises(SourceError, match="nowhere://x cannot be reached"):
        Checkpoint.open("nowhere://x")


def test_a_number_of_many_digits_is_shown_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written_state(tmp_path, 10**5000)
    assert main(["checkpoint", "show", str(tmp_path), "--state", "v"]) == 0
    assert "0: <a value of int with more digits than Python writes>" in capsys.readouterr().out
