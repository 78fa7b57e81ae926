"""The server of the tests of object stores."""

from collections.abc import Iterator
from itertools import count

import pytest
from equipment.s3_server import S3Server

_NUMBERS = count()


@pytest.fixture(scope="session")
def server() -> Iterator[S3Server]:
    """A server that all tests of the process share."""
    with S3Server.started() as server:
        yield server


@pytest.fixture
def store(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """The server, which the environment names."""
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    return server


@pytest.fixture
def bucket(store: S3Server) -> str:
    """URI of an empty bucket of the test's own."""
    return store.bucket(f"bucket-{next(_NUMBERS)}")
