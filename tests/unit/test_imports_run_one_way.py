"""Layers import only what lies below them, and pyspark is imported under flinkcore/spark alone."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "flinkcore"
TESTS = PACKAGE.parent / "tests"

# From below to above; layers of one rank do not import each other.
RANKS = {
    "errors": 0,
    "_native": 1,
    "_internal": 2,
    "common": 3,
    "metrics": 3,
    "table": 4,
    "datastream": 5,
    "operators": 6,
    "sql": 6,
    "checkpoint": 7,
    "table_api": 7,
    "log": 8,
    "savepoints": 11,
    "time_plane": 9,
    "columnar": 10,
    "elements": 11,
    "analysis": 12,
    "testing": 13,
    "spark": 13,
    "examples": 14,
    "pyflink": 14,
    "pytest_plugin": 14,
    "cli": 15,
    "__main__": 16,
}
# Folders and modules of a layer, from below to above; whatever else the layer has is above them.
FOLDERS = {
    "_internal": ("python", "values", "java", "io", "show", "arrow"),
    "datastream": (
        *("time_domain", "timerservice", "time_characteristic", "functions", "state", "window", "aggregates"),
        *("connectors", "formats", "timestamps", "graph"),
    ),
    "operators": (
        *("records", "keys", "timers", "metrics", "combined_watermark_status", "late_records", "state"),
        *("streaming_runtime_context", "stream_operator"),
    ),
    "log": ("files", "formats", "schemas", "sources", "order", "decoding", "tables", "topics"),
    "columnar": (
        "operator_plans",
        "plans",
        "relational",
        "batch_functions",
        "stages",
        "checkpoint",
        "replay",
        "outputs",
        "results",
        "local",
    ),
    "elements": ("sources", "tasks", "arrivals"),
    "sql": ("types", "formats", "plan", "planner", "expressions", "nodes"),
    "spark": ("sessions", "shipping", "exchange", "logs", "columns", "columnar", "elements"),
}
# Imports for type checkers alone that go the other way: the context of a function gives states, and the descriptors of
# states take functions.
FOR_TYPES = {
    ("flinkcore.datastream.functions", "flinkcore.datastream.state"),
    ("flinkcore.datastream.functions.runtime_context", "flinkcore.datastream.aggregates"),
    ("flinkcore.datastream.functions", "flinkcore.datastream.aggregates"),
}
SOURCES = sorted(PACKAGE.rglob("*.py")) + sorted(PACKAGE.rglob("*.pyi"))


def imported_modules(source: str, module: str) -> Iterator[tuple[int, str]]:
    """Yield line and full name of every import in a module's source, at any depth of the code."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = module.split(".")[: -node.level]
                base = ".".join([*parents, base] if base else parents)
            # `from package import name` may import the module package.name.
            yield node.lineno, base
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}"


def lines_for_types(source: str) -> set[int]:
    """Return the lines of the blocks that only a type checker reads."""
    blocks = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.If))
    return {
        line
        for block in blocks
        if ast.unparse(block.test) == "TYPE_CHECKING"
        for line in range(block.lineno, (block.body[-1].end_lineno or 0) + 1)
    }


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts)


def layer(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if parts[0] == "flinkcore" and len(parts) > 1 else None


def folder_rank(module: str) -> int | None:
    """Return the place of a module's folder among those of its layer; None: they have no order, or it is the layer."""
    parts = module.split(".")
    folders = FOLDERS.get(layer(module) or "")
    if folders is None or len(parts) < 3:
        return None
    return folders.index(parts[2]) if parts[2] in folders else len(folders)


def reverse_arrows(source: str, module: str) -> list[str]:
    """Return what a module imports against the order, one line of text each."""
    own = layer(module)
    found = []
    for line, name in imported_modules(source, module):
        if name.split(".")[0] in ("pyspark", "py4j") and own != "spark":
            found.append(f"{module}:{line} imports {name} outside flinkcore/spark")
        other = layer(name)
        if own is None or own == "__init__" or other is None or other not in RANKS:
            continue
        if other == own:
            folder, other_folder = folder_rank(module), folder_rank(name)
            arrow = (module.rpartition(".")[0], ".".join(name.split(".")[:3]))
            if arrow in FOR_TYPES and line in lines_for_types(source):
                continue
            if folder is not None and other_folder is not None and other_folder > folder:
                found.append(f"{module}:{line} imports {name} from above its folder")
        elif RANKS[other] >= RANKS[own]:
            found.append(f"{module}:{line} ({own}) imports {name} ({other})")
    return found


def test_modules_import_only_from_below() -> None:
    assert SOURCES
    read = ((path.read_text(encoding="utf-8"), module_name(path)) for path in SOURCES)
    assert [arrow for source, module in read for arrow in reverse_arrows(source, module)] == []


def test_every_part_of_the_package_has_a_rank() -> None:
    parts = {layer(module_name(path)) for path in SOURCES} - {"__init__"}
    assert parts <= set(RANKS)


@pytest.mark.parametrize("name", ["_internal", "log", "columnar", "elements", "sql", "spark"])
def test_every_folder_of_a_layer_has_a_rank(name: str) -> None:
    folders = {path.name for path in (PACKAGE / name).iterdir() if (path / "__init__.py").exists()}
    assert folders == set(FOLDERS[name])


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("from flinkcore.columnar.plans.job_plan import make_plan", "flinkcore.datastream.data_stream"),
        ("from flinkcore.columnar.plans.uids import operator_uid", "flinkcore.time_plane.time_pass"),
        ("from flinkcore.columnar import local", "flinkcore.log.sources.chunks"),
        ("from flinkcore.columnar.local.log_merge import LogMerge", "flinkcore.columnar.replay.chunk_reader"),
        ("def f():\n    import flinkcore.spark.sessions.session", "flinkcore.columnar.local"),
        ("from flinkcore import cli", "flinkcore.common.time"),
        ("from ..columnar import plans", "flinkcore.datastream.data_stream"),
        (
            "from flinkcore.spark import SparkExecutionEnvironment",
            "flinkcore.testing.abstract_stream_operator_test_harness",
        ),
        ("from flinkcore.testing import ManualClock", "flinkcore.operators.metrics.latency"),
        ("import pyspark.sql", "flinkcore.columnar.plans.job_plan"),
        ("from flinkcore.spark.exchange import blocks", "flinkcore.spark.shipping.tasks"),
        ("from flinkcore.datastream.state import State", "flinkcore.datastream.functions.function"),
        ("from flinkcore.datastream.window import Trigger", "flinkcore.datastream.state.state"),
        (
            "if TYPE_CHECKING:\n    from flinkcore.datastream.window import Trigger",
            "flinkcore.datastream.state.state",
        ),
        ("from flinkcore.datastream import DataStream", "flinkcore.datastream.connectors.base"),
        (
            "from flinkcore.datastream.graph.transformations import StreamGraph",
            "flinkcore.datastream.window.triggers",
        ),
        ("from flinkcore.spark.elements import element_run", "flinkcore.spark.columnar.replay"),
        ("if TYPE_CHECKING:\n    from pyspark.sql import SparkSession", "flinkcore.cli"),
        ("from flinkcore.operators import ProcessOperator", "flinkcore.operators.state.heap_states"),
        ("from flinkcore.operators.timers import InternalTimer", "flinkcore.operators.keys.key_context"),
    ],
)
def test_a_reverse_arrow_is_seen(source: str, module: str) -> None:
    assert reverse_arrows(source, module) != []


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("from flinkcore.common import Time", "flinkcore.datastream.window"),
        ("from . import window", "flinkcore.datastream.data_stream"),
        ("from flinkcore.datastream.functions import Function", "flinkcore.datastream.state.state"),
        (
            "if TYPE_CHECKING:\n    from flinkcore.datastream.state import State",
            "flinkcore.datastream.functions.function",
        ),
        ("from flinkcore.log.sources.chunks import Chunk", "flinkcore.time_plane.time_pass"),
        (
            "from flinkcore.time_plane.timeline import Timeline",
            "flinkcore.time_plane.time_pass",
        ),
        (
            "from flinkcore.columnar.replay.chunk_reader import ChunkReader",
            "flinkcore.columnar.local.log_merge",
        ),
        ("from pyspark.sql import SparkSession", "flinkcore.spark.sessions.session"),
        ("from flinkcore.errors import DataError", "flinkcore.common.time"),
        (
            "from flinkcore.columnar.plans.job_plan import make_plan",
            "flinkcore.testing.abstract_stream_operator_test_harness",
        ),
        ("from flinkcore.spark.shipping.tasks import portable", "flinkcore.spark.exchange.blocks"),
        ("from flinkcore.spark.elements.element_run import SparkElementRun", "flinkcore.spark.environment"),
        ("import numpy", "flinkcore.common.time"),
        (
            "from flinkcore.operators.records.stream_elements import StreamRecord",
            "flinkcore.elements.tasks.task_output",
        ),
    ],
)
def test_an_arrow_in_order_is_not_complained_of(source: str, module: str) -> None:
    assert reverse_arrows(source, module) == []


@cache
def loads_spark(path: Path) -> bool:
    """Return whether a module of tests imports pyspark as it is loaded, and is not skipped where there is none."""
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Expr) and ast.unparse(statement) == "pytest.importorskip('pyspark')":
            return False
        if isinstance(statement, ast.Import | ast.ImportFrom):
            names = [name for _, name in imported_modules(ast.unparse(statement), path.stem)]
            if any(name == "pyspark" or name.startswith(("pyspark.", "flinkcore.spark")) for name in names):
                return True
            files = (TESTS / f"{name.replace('.', '/')}.py" for name in names)
            if any(loads_spark(file) for file in files if file.exists()):
                return True
    return False


@pytest.mark.parametrize("folder", ["unit", "conformance", "property"])
def test_tests_of_wheels_run_without_spark(folder: str) -> None:
    assert [path.name for path in (TESTS / folder).rglob("*.py") if loads_spark(path)] == []
