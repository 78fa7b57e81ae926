"""A disk without room, as far as a process can see it."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def most_bytes_of_a_file(limit: int) -> Iterator[None]:
    """Let the system refuse what is written behind so many bytes of a file, as a disk without room does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
