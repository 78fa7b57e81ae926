"""Logs and checkpoints are data: nothing in them is run, and nothing is written elsewhere, whoever has made them."""

import ast
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from models.checkpoint_trials import ELEMENT_JOBS, JOBS, run_job
from models.forged_checkpoints import read_content, read_table, with_column, write_content, write_table

import flinkcore
from flinkcore.errors import FlinkcoreError
from flinkcore.replay.log.log_sources import LogFiles

PACKAGE = Path(flinkcore.__file__).parent

MAY_UNPICKLE = {
    "common/serializer.py": "where a job's own descriptor asks for it",
    "runtime/copies.py": "what this process has pickled",
    "spark/elements/": "what goes between Spark's tasks and the driver",
    "spark/shipping/": "what Spark brings from the driver, and errors back",
}
"""Modules, and folders of them, that know of pickles, and why."""


class Bomb:
    """What leaves a file where it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """The file that a bomb leaves."""
    return tmp_path / "mark"


@pytest.fixture
def bomb(mark: Path) -> bytes:
    made = pickle.dumps(Bomb(mark))
    pickle.loads(made)
    assert mark.exists()
    mark.unlink()
    return made


def runs_code(source: str) -> set[str]:
    """The ways in a module of making objects, or code, of bytes or text."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names]
            found |= {"pickle", "cloudpickle", "marshal", "shelve", "dill"} & set(names)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found |= {"eval", "exec", "compile", "__import__"} & {node.func.id}
    return found


def test_pickles_are_read_only_where_they_come_from_the_job_itself() -> None:
    modules = {
        path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8")
        for path in PACKAGE.rglob("*.py")
    }
    found = {module for module, source in modules.items() if runs_code(source)}
    assert found
    assert [module for module in found if not module.startswith(tuple(MAY_UNPICKLE))] == []


def write_parquet(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path)


def write_arrow(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


def write_stream(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table)


@pytest.mark.parametrize(
    ("name", "write"),
    [("log.parquet", write_parquet), ("log.arrow", write_arrow), ("log.arrows", write_stream)],
)
def test_a_type_that_comes_as_a_pickle_is_not_unpickled(
    tmp_path: Path, mark: Path, bomb: bytes, name: str, write: Callable[[pa.Table, Path], None]
) -> None:
    told = {
        "ARROW:extension:name": "arrow.py_extension_type",
        "ARROW:extension:metadata": bomb,
        "pandas": bomb,
    }
    schema = pa.schema([pa.field("ts", pa.int64()), pa.field("value", pa.binary(), metadata=told)], told)
    write(pa.table([[1, 2], [bomb, b""]], schema=schema), tmp_path / name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some versions of pyarrow tell of such a type
        source = LogFiles.discover(tmp_path / name)
        found = [
            row
            for chunk in source.chunks(1)
            for batch in chunk.read(None, 1 << 17)
            for row in batch.to_pylist()
        ]
    assert found == [{"ts": 1, "value": bomb}, {"ts": 2, "value": b""}]
    assert not mark.exists()


@pytest.mark.parametrize("job", sorted(JOBS | ELEMENT_JOBS))
def test_what_a_checkpoint_calls_a_pickle_is_not_unpickled(
    tmp_path: Path, mark: Path, bomb: bytes, job: str
) -> None:
    path = tmp_path / "checkpoint"
    run_job(job, 0, stop_with_checkpoint=path)
    content = read_content(path)
    forged = 0
    for entry in (each for part in content["parts"] for each in part["tables"]):
        batch = read_table(path, entry)
        for name in entry["shapes"]:
            if name in batch.schema.names:
                pickled = pa.array([{"serializer": "pickle", "data": bomb}] * batch.num_rows, SERIALIZED)
                batch = with_column(batch, name, pickled)
                entry["shapes"][name] = ["serialized", "pickle"]
                forged += 1
        write_table(path, entry, batch)
    write_content(path, content)
    try:
        run_job(job, 1, restore_from=path)
    except FlinkcoreError:
        assert forged
    assert not mark.exists()


SERIALIZED = pa.struct([("serializer", pa.large_string()), ("data", pa.large_binary())])


def test_a_checkpoint_takes_the_place_of_an_older_one_and_of_nothing_that_its_links_lead_to(
    tmp_path: Path,
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").write_text("kept")
    path = tmp_path / "checkpoint"
    job = sorted(JOBS)[0]
    run_job(job, 0, stop_with_checkpoint=path)
    (path / f"data-{'0' * 32}").symlink_to(elsewhere)
    (path / "manifest-000000.json").symlink_to(elsewhere / "kept")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a link cannot be removed as a folder is
        run_job(job, 0, stop_with_checkpoint=path)
    assert (elsewhere / "kept").read_text() == "kept"
    run_job(job, 1, restore_from=path)
