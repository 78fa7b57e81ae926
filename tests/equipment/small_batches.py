"""Logs that are read in small batches, where a replay joins short ones otherwise."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from flinkcore.log.event_reader import EventReader, read_together


@contextmanager
def reading_batches_of(rows: int) -> Iterator[None]:
    """Within this context, batches of a log have so many rows at most."""
    with ExitStack() as patched:
        for reading in (EventReader.read, read_together):
            _, *others = reading.__defaults__ or ()
            patched.enter_context(patch.object(reading, "__defaults__", (rows, *others)))
        yield
