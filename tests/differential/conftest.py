"""A cluster for all tests that need one."""

from collections.abc import Iterator

import pytest
from models.standalone_cluster import StandaloneCluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    """Two workers of one core each; sessions come and go."""
    with StandaloneCluster.started(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster
