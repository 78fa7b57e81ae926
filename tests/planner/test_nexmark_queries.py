"""Nexmark's queries in Flink's SQL, which the benchmarks run, have the answers of the same in the API."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

EVENTS = 5_000


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[2])
        imported = {
            name: importlib.import_module(f"benchmarks.{name}")
            for name in ("nexmark_sql", "nexmark_log", "flinkcore_query")
        }
        patch.setattr("benchmarks.cached_log.CACHE", tmp_path_factory.mktemp("logs"))
        yield imported
    for name in [name for name in sys.modules if name.partition(".")[0] == "benchmarks"]:
        del sys.modules[name]


def test_the_answers_are_those_of_the_api(modules: Any) -> None:
    sql, engine = modules["nexmark_sql"], modules["flinkcore_query"]
    for name in sql.QUERIES:
        query = modules["nexmark_log"].Query(name, EVENTS)
        found = query.checksum(engine.open_sql(query, 1)())
        if name not in (*sql.OTHER_ROWS, "q4"):  # in the API, q4 returns each update
            assert found == query.checksum(engine.open_arrow(query, 1)()), name
        assert bool(found.rows) is (name != "q12"), name  # whose only window is open when the log ends
