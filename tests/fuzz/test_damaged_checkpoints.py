"""Checkpoints that were damaged, or forged with checksums that are right, give the same rows or an error that says so.

A checkpoint may be forged into another that a job could have written: another sum, another timer, one window less.
Such changes are in `OTHER_ROWS`, and may give other rows. All else gives the rows of the checkpoint as it was,
or an error of flinkcore. No change ends the process, lets it hang or swell, or raises an error of something inside.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from equipment.forged_checkpoints import (
    read_content,
    read_table,
    with_column,
    write_content,
    write_table,
)
from fuzz.budget import Fuzz
from fuzz.trials import Trials
from hypothesis import strategies as st
from jobs.checkpoint_trials import ALIGNED, ALL_JOBS, run_job
from jobs.stopped_jobs import STOPPED_JOBS

from flinkcore.checkpoint import Checkpoint
from flinkcore.elements.tasks.stream_partitioners import ElementKeyGroups
from flinkcore.errors import CheckpointError

OTHER_ROWS = {
    "keyed_state": {"value", "namespace", "a row less"},
    "operator_state": {"element", "a row less", "a row twice", "rows exchanged"},
    "timers": {"timestamp_ms", "is_event_time", "namespace", "key", "a row less", "rows exchanged"},
    "windows": {
        "window_start",
        "window_end",
        "trigger_state",
        "touched",
        "flags",
        "a row less",
        "rows exchanged",
    },
    "time_plane": {"a row less", "split", "rows exchanged"},
    "splits": set(),
    "waiting_rows": {"a row less", "rows exchanged"},
}
"""Changes by kind of table, by column or in words, after which a job can still have written the checkpoint.

So are what aggregates hold (`0.words`), and what a time plane knows of its splits: watermarks, idleness, rows.
"""

OTHER_ROWS_BY_MEMBER = {"written_ms", "name", "opened_ms", "input_watermark_ms"}
"""Members of a manifest that may be others: a job may name its states in another way, and be opened earlier."""

NUMBERS = [0, 1, -1, 2, 7, 127, 128, 2**31 - 1, 2**31, 2**62, 2**63 - 1, -(2**63), 10**15, 400, 440]
LEAVES: list[Any] = [
    None,
    True,
    -1,
    0,
    1,
    99,
    2**63,
    10**400,
    1.5,
    "",
    "x",
    "int",
    [],
    {},
    ["list", "int"],
    [[[]]],
]


OF_SPLITS_AMID = {"position", "state", "a row less"}
"""Changes of the splits of a job that was stopped amid them: it may have been elsewhere, or have ended one."""


def may_differ(job: str, kind: str, name: str) -> bool:
    if job in STOPPED_JOBS and kind == "splits" and name in OF_SPLITS_AMID:
        return True
    of_aggregate = name.partition(".")[0].isdecimal()
    of_time = kind == "time_plane" and name not in (
        "a row twice",
        "another type",
        "a column less",
        "a column twice",
    )
    of_row = kind == "waiting_rows" and name not in ("a row twice", "another type", "a column less")
    # Rows of a relation are what came, and what is known of keys: any values.
    of_relation = kind == "relation" and name not in (
        "another type",
        "a column less",
        "a column twice",
        "key_group",
    )
    return name in OTHER_ROWS.get(kind, ()) or of_aggregate or of_time or of_row or of_relation


def have_same_key_groups(
    kind: str, name: str, before: pa.RecordBatch, after: pa.RecordBatch, max_parallelism: int
) -> bool:
    """Whether keys of states were changed to others that the job can have had in their place."""
    if (kind, name) != ("keyed_state", "key"):
        return False
    groups = ElementKeyGroups(max_parallelism)
    ours, others = (groups.of_all(batch.column(name).to_pylist()).tolist() for batch in (before, after))
    return bool(ours == others)


class Checkpoints:
    """By job, the checkpoint of its first half, and the rows of the second; made when they are asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._found: dict[str, tuple[Path, Any]] = {}

    def __getitem__(self, job: str) -> tuple[Path, Any]:
        if job not in self._found:
            path = self._folder / job
            run_job(job, 0, stop_with_checkpoint=path)
            self._found[job] = path, run_job(job, 1, restore_from=path)
        return self._found[job]


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Checkpoints:
    return Checkpoints(tmp_path_factory.mktemp("checkpoints"))


@pytest.fixture(scope="module")
def trials() -> Iterator[Trials]:
    with Trials("fuzz.damaged_checkpoints") as program:
        yield program


def check_trial(
    fuzz: Fuzz,
    trials: Trials,
    checkpoint: tuple[Path, Any],
    job: str,
    path: Path,
    change: Callable[[Path], str | None],
    shape: str,
) -> None:
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(checkpoint[0], path)
    differs = change(path)
    if differs is None:
        return
    answer = trials.run([job, str(path)])
    assert answer["outcome"] in ("rows", "refused"), answer
    if answer["outcome"] == "refused":
        fuzz.count(f"{shape}: {answer['error']}")
    elif answer["rows"] == checkpoint[1]:
        fuzz.count(f"{shape}: the same rows")
    else:
        fuzz.count(f"{shape}: other rows")
        assert differs == "may differ", f"{job}, {differs}: other rows"


def test_damaged_bytes_are_noticed(
    fuzz: Fuzz, checkpoints: Checkpoints, trials: Trials, tmp_path: Path
) -> None:
    def check(job: str, file: int, place: float, damage: str, mask: int) -> None:
        def change(path: Path) -> str:
            files = sorted(each for each in path.rglob("*") if each.is_file())
            chosen = files[file % len(files)]
            data = bytearray(chosen.read_bytes())
            at = int(place * (len(data) - 1))
            if damage == "flip":
                data[at] ^= mask
            elif damage == "cut":
                del data[at:]
            elif damage == "zero":
                data[at : at + 64] = bytes(len(data[at : at + 64]))
            else:
                data[at:at] = bytes([mask]) * 8
            chosen.write_bytes(data)
            return f"{damage} at {at} of {chosen.name}"

        check_trial(fuzz, trials, checkpoints[job], job, tmp_path / "c", change, damage)

    fuzz.run(
        check,
        examples=10,
        job=st.sampled_from(ALL_JOBS),
        file=st.integers(0, 30),
        place=st.floats(0, 1),
        damage=st.sampled_from(["flip", "cut", "zero", "more"]),
        mask=st.integers(1, 255),
    )


def places_in(content: Any) -> Iterator[tuple[Any, Any]]:
    """Every container of a JSON value, with each of its keys or indexes."""
    keys = list(content) if isinstance(content, dict) else range(len(content))
    for key in keys:
        yield content, key
        if isinstance(content[key], dict | list):
            yield from places_in(content[key])


def test_forged_manifests_are_noticed(
    fuzz: Fuzz, checkpoints: Checkpoints, trials: Trials, tmp_path: Path
) -> None:
    def check(job: str, place: int, change_of: str, leaf: Any) -> None:
        def change(path: Path) -> str | None:
            content = read_content(path)
            places = [each for each in places_in(content) if each[0] is not content["job"]]
            container, key = places[place % len(places)]
            before = container[key]
            if change_of == "set":
                container[key] = leaf
            elif change_of == "drop":
                del container[key]
            elif isinstance(container, list):
                container.append(before)
            else:
                container[f"{key} "] = before
            write_content(path, content)
            may = key in OTHER_ROWS_BY_MEMBER
            return "may differ" if may else f"{change_of} {key!r} from {before!r:.80} to {leaf!r:.80}"

        check_trial(fuzz, trials, checkpoints[job], job, tmp_path / "c", change, f"manifest, {change_of}")

    fuzz.run(
        check,
        examples=20,
        job=st.sampled_from(ALL_JOBS),
        place=st.integers(0, 2000),
        change_of=st.sampled_from(["set", "set", "set", "drop", "again"]),
        leaf=st.sampled_from(LEAVES) | st.sampled_from(NUMBERS),
    )


def changed_value(column: pa.Array, row: int, number: int, how: str) -> pa.Array | None:
    """A column with another value in a row; None where it is of no type that has one."""
    kind = column.type
    values = column.to_pylist() if not pa.types.is_union(kind) else None
    if values is None:
        return None
    if how == "null":
        values[row] = None
    elif pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        values[row] = number if how == "set" else (values[row] or 0) + number
    elif pa.types.is_dictionary(kind) or pa.types.is_null(kind):
        values[row] = values[number % len(values)]
    elif pa.types.is_large_string(kind) or pa.types.is_string(kind):
        values[row] = "x" * (number % 100)
    elif pa.types.is_large_binary(kind):
        values[row] = b"\xff" * (number % 100)
    elif pa.types.is_large_list(kind):
        values[row] = values[row][:1] * (number % 5)
    elif pa.types.is_struct(kind) and pa.types.is_integer(kind.field(0).type):
        values[row] = {**values[row], kind.field(0).name: number}
    else:
        return None
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, OverflowError, TypeError):
        return None


def changed_table(
    batch: pa.RecordBatch, of: str, column: int, row: int, number: int
) -> tuple[pa.RecordBatch, str] | None:
    """Another table, and what was changed; None where that is not possible."""
    name = batch.schema.names[column % batch.num_columns]
    if of == "a column less":
        return batch.drop_columns([name]), of
    if of == "a column twice":
        return batch.append_column(name, batch.column(name)), of
    if of == "another type":
        other = pa.array([number] * batch.num_rows, pa.int64())
        return None if batch.column(name).type == pa.int64() else (with_column(batch, name, other), of)
    if not batch.num_rows:
        return None
    row %= batch.num_rows
    rows = list(range(batch.num_rows))
    if of == "a row less":
        rows.remove(row)
    elif of == "a row twice":
        rows.append(row)
    elif of == "rows exchanged":
        rows[0], rows[row] = rows[row], rows[0]
    else:
        changed = changed_value(batch.column(name), row, number, of)
        return None if changed is None else (with_column(batch, name, changed), name)
    try:
        return batch.take(pa.array(rows)), of
    except pa.ArrowNotImplementedError:  # of columns without a type, and of unions in lists
        return None


@pytest.mark.fuzz_share(3)
def test_forged_tables_are_noticed(
    fuzz: Fuzz, checkpoints: Checkpoints, trials: Trials, tmp_path: Path
) -> None:
    def check(job: str, table: int, of: str, column: int, row: int, number: int) -> None:
        kind = ""

        def change(path: Path) -> str | None:
            nonlocal kind
            content = read_content(path)
            tables = [each for part in content["parts"] for each in part["tables"]]
            entry = tables[table % len(tables)]
            kind = entry["kind"]
            changed = changed_table(read_table(path, entry), of, column, row, number)
            if changed is None:
                return None
            batch, name = changed
            may = may_differ(job, kind, name) or have_same_key_groups(
                kind, name, read_table(path, entry), batch, content["max_parallelism"]
            )
            write_table(path, entry, batch)
            write_content(path, content)
            return "may differ" if may else f"{of} in {name} of {kind}, to {number}"

        check_trial(fuzz, trials, checkpoints[job], job, tmp_path / "c", change, f"table, {of}")

    fuzz.run(
        check,
        examples=30,
        job=st.sampled_from(ALL_JOBS),
        table=st.integers(0, 30),
        of=st.sampled_from(
            [
                *("set", "set", "set", "add", "null", "a row less", "a row twice", "rows exchanged"),
                *("a column less", "a column twice", "another type"),
            ]
        ),
        column=st.integers(0, 20),
        row=st.integers(0, 30),
        number=st.sampled_from(NUMBERS),
    )


@pytest.mark.parametrize("job", [ALIGNED, "connected_by_key", "elements_windows", "stopped_splits"])
def test_each_table_and_part_that_is_left_out_is_noticed(
    checkpoints: Checkpoints, job: str, tmp_path: Path
) -> None:
    path = tmp_path / "c"
    shutil.copytree(checkpoints[job][0], path)
    parts = read_content(path)["parts"]
    tables = [(number, at) for number, part in enumerate(parts) for at in range(len(part["tables"]))]
    for number, at in [*tables, *((number, -1) for number in range(len(parts)))]:
        content = read_content(checkpoints[job][0])
        if at < 0:
            del content["parts"][number]
        else:
            del content["parts"][number]["tables"][at]
        write_content(path, content)
        with pytest.raises(CheckpointError):
            Checkpoint.open(path)


@pytest.mark.parametrize("job", ["windows_alone", "connected_by_key", "stopped_splits"])
def test_the_checkpoint_that_nobody_changed_gives_its_rows(
    checkpoints: Checkpoints, trials: Trials, job: str
) -> None:
    path, rows = checkpoints[job]
    assert trials.run([job, str(path)]) == {"outcome": "rows", "rows": rows}
