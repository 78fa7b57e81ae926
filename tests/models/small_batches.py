"""Logs that are read in small batches, where a replay joins short ones otherwise."""

from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

from flinkcore.replay.log.event_reader import EventReader


def reading_batches_of(rows: int) -> AbstractContextManager[Any]:
    """Within this context, batches of a log have so many rows at most."""
    _, *others = EventReader.read.__defaults__ or ()
    return patch.object(EventReader.read, "__defaults__", (rows, *others))
