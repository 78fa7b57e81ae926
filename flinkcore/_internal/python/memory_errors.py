"""A process that has no more memory: what it was doing, its limit, and what helps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import pyarrow as pa

from flinkcore._internal.python.process_memory import memory_limit
from flinkcore.errors import FlinkcoreError, OutOfMemoryError

WHAT_HELPS: Final = (
    "fewer columns by select(), state that ends (a time to live, shorter windows), and write_parquet() or to_batches() "
    "in place of to_arrow()"
)
"""Advice for any process."""


@contextmanager
def memory_errors_named(doing: Callable[[], str], remedy: str) -> Iterator[None]:
    """Raise an OutOfMemoryError in place of a MemoryError of Python's or Arrow's.

    Parameters
    ----------
    doing : callable
        Returns what the process was doing, as a clause.
    remedy : str
        What to do, as a sentence.
    """
    try:
        yield
    except FlinkcoreError:
        raise
    except MemoryError as error:
        asked = f" ({error})" if str(error) else ""
        raise OutOfMemoryError(
            f"there is no more memory{asked}: {doing()}. {memory_now()}. {remedy}"
        ) from error


def memory_now() -> str:
    """Return how much memory Arrow holds, and how much the process may have, in words."""
    held = f"Arrow holds {pa.total_allocated_bytes() >> 20:,} MiB"
    limit = memory_limit()
    return f"{held}, and the process may have {limit >> 20:,} MiB" if limit is not None else held
