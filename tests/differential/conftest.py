"""Spark for all tests that need it: a local session for each file, one cluster, and its tasks in this process."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from equipment.spark_sessions import spark_session
from equipment.standalone_cluster import StandaloneCluster


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "spark_session(master, **settings): of the file's fixture `spark`, as equipment.spark_sessions has it",
    )


@pytest.fixture(scope="module")
def spark(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A session of this process: with two cores, unless the file has another mark."""
    marker = request.node.get_closest_marker("spark_session")
    asked = pytest.mark.spark_session("local[2]").mark if marker is None else marker
    with spark_session(*asked.args, **asked.kwargs) as session:
        yield session


@pytest.fixture
def tasks_here() -> Iterator[Callable[[int], Any]]:
    """Return environments of a parallelism whose jobs run as Spark's tasks, with its exchange, but without a JVM."""
    pytest.importorskip("pyspark")
    from fuzz.local_spark import local_spark_environment, without_jvm

    with without_jvm():
        yield lambda parallelism: local_spark_environment(2).set_parallelism(parallelism)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    """Two workers of one core each; sessions come and go."""
    with StandaloneCluster.started(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster
