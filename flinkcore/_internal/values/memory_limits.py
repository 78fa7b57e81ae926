"""Limits of the memory of a process that replays logs. Results do not depend on them."""

from dataclasses import dataclass
from typing import Final

BATCH_ROWS: Final = 1 << 17
"""Rows of a batch that is read from a log, at most."""

BATCH_BYTES: Final = 32 << 20
"""Most bytes of a batch that is read, joined, sorted, sent or written, unless it has only one row."""

OPEN_CHUNKS: Final = 16
"""Files of a log, or parts of files, that one process reads at the same time, at most."""

HELD_BYTES: Final = 64 << 20
"""Bytes of events that wait in memory for earlier ones of other files; more wait in a temporary file."""

PACKED_BYTES: Final = 1 << 20
"""Bytes of small files that one process reads together, at most."""

KEPT_BYTES: Final = 64 << 20
"""Bytes of the rows of such files that the first pass keeps in memory for the second one, at most."""

RECORD_BYTES: Final = 32 << 20
"""Bytes of packed watermark steps of splits that a process keeps in memory; more are in a temporary file."""


@dataclass(frozen=True)
class MemoryLimits:
    """The limits of a job, of which each has its default above."""

    batch_rows: int = BATCH_ROWS
    batch_bytes: int = BATCH_BYTES
    open_chunks: int = OPEN_CHUNKS
    held_bytes: int = HELD_BYTES
    packed_bytes: int = PACKED_BYTES
    kept_bytes: int = KEPT_BYTES
    record_bytes: int = RECORD_BYTES
