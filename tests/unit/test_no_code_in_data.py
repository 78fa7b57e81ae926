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
from equipment.forged_checkpoints import read_content, read_table, with_column, write_content, write_table
from jobs.checkpoint_trials import ELEMENT_JOBS, JOBS, run_job

import flinkcore
from flinkcore.errors import FlinkcoreError
from flinkcore.log.sources.log_sources import LogFiles

PACKAGE = Path(flinkcore.__file__).parent

MAY_UNPICKLE = {
    "common/serializer.py": "where a job's own descriptor asks for it",
    "operators/records/copies.py": "what this process has pickled",
    "savepoints/beginning.py": "where a job says that it trusts a savepoint of PyFlink",
    "savepoints/pyflink_coders.py": "it only writes pickles",
    "savepoints/restoring/pyflink_values.py": "plain values, and objects where a job says so",
    "sql/expressions/user_functions.py": "a method of functions of the job, which PyFlink names eval",
    "spark/exchange/sent_bytes.py": "bytes of the driver, for Spark's workers",
    "spark/logs/log_input.py": "the chunks that the driver deals to Spark's tasks",
    "spark/logs/ranked_rows.py": "the same chunks, with the ranks of their rows",
    "spark/elements/": "what goes between Spark's tasks and the driver",
    "spark/shipping/": "what Spark brings from the driver, and errors back",
}
"""Modules, and folders of them, that know of pickles or evaluate texts, and why."""

MAY_IMPORT_BY_NAME = {
    "__init__.py": "flinkcore's own modules",
    "cli/": "flinkcore's own modules, and the programs that the command line gives",
    "_internal/python/extras.py": "the packages of flinkcore's extras",
    "_internal/python/lazy_names.py": "flinkcore's own modules",
    "checkpoint/state_origin.py": "flinkcore's own modules",
    "datastream/data_stream.py": "flinkcore's own modules",
    "datastream/graph/pipeline_executor.py": "flinkcore's own modules",
    "pyflink.py": "flinkcore's own modules, by PyFlink's names",
    "columnar/results/progress.py": "tqdm",
    "columnar/stages/kinds.py": "flinkcore's own modules",
    "spark/shipping/worker_environment.py": "flinkcore's own modules, and pyarrow",
    "sql/planner/declared_functions.py": "the functions that a script names, as Flink does",
    "table/__init__.py": "flinkcore's own modules, by PyFlink's names",
}
"""Modules, and folders of them, that import by a name in a variable or a text, and which modules."""

UNPICKLES = {
    *("pickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"),
    *("read_pickle", "allow_pickle", "eval", "exec", "compile", "literal_eval", "__import__"),
}
IMPORTS_BY_NAME = {
    *("import_module", "exec_module", "load_module", "spec_from_file_location", "SourceFileLoader"),
    *("runpy", "run_module", "run_path", "pkgutil", "resolve_name"),
}


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


def names_used(source: str) -> set[str]:
    """The modules and names that a module imports, calls, and passes arguments by."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names]
            found |= {part for name in names for part in name.split(".")}
        elif isinstance(node, ast.Attribute) and node.attr != "compile":  # that of expressions is harmless
            found.add(node.attr)
        elif isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.keyword):
            found.add(node.arg or "")
    return found


@pytest.mark.parametrize(
    ("ways", "source"),
    [
        (UNPICKLES, "import pickle"),
        (UNPICKLES, "from pickle import loads"),
        (UNPICKLES, "from multiprocessing import pickle"),
        (UNPICKLES, "pandas.read_pickle(path)"),
        (UNPICKLES, "from pandas import read_pickle as read"),
        (UNPICKLES, "numpy.load(path, allow_pickle=True)"),
        (UNPICKLES, "eval(text)"),
        (UNPICKLES, "run = exec"),
        (UNPICKLES, "frame.eval(text)"),
        (UNPICKLES, "compile(text, '', 'exec')"),
        (UNPICKLES, "__import__(name)"),
        (IMPORTS_BY_NAME, "importlib.import_module(name)"),
        (IMPORTS_BY_NAME, "from importlib import import_module as load"),
        (IMPORTS_BY_NAME, "spec.loader.exec_module(module)"),
        (IMPORTS_BY_NAME, "import runpy"),
        (IMPORTS_BY_NAME, "from runpy import run_path"),
        (IMPORTS_BY_NAME, "pkgutil.resolve_name(name)"),
    ],
)
def test_each_way_to_run_what_data_tell_is_seen(ways: set[str], source: str) -> None:
    assert names_used(source) & ways


@pytest.mark.parametrize(
    ("ways", "allowed"),
    [(UNPICKLES, MAY_UNPICKLE), (IMPORTS_BY_NAME, MAY_IMPORT_BY_NAME)],
    ids=["unpickles", "imports by name"],
)
def test_pickles_and_names_of_modules_are_read_only_where_they_come_from_the_job_itself(
    ways: set[str], allowed: dict[str, str]
) -> None:
    modules = {
        path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8")
        for path in PACKAGE.rglob("*.py")
    }
    found = {module: names for module, source in modules.items() if (names := names_used(source) & ways)}
    assert {module: names for module, names in found.items() if not module.startswith(tuple(allowed))} == {}
    assert [place for place in allowed if not any(module.startswith(place) for module in found)] == []


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
                forged += batch.num_rows
        write_table(path, entry, batch)
    write_content(path, content)
    assert forged
    with pytest.raises(FlinkcoreError):
        run_job(job, 1, restore_from=path)
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
