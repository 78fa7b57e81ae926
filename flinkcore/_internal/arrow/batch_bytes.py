"""Batches cut so that none takes more than so many bytes of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import pyarrow as pa

from flinkcore._internal.values.memory_limits import BATCH_BYTES

_SHARED: Final = 1.5
"""Halves that take so many times the bytes of the whole share most of them, such as a dictionary."""


def bytes_of(data: pa.RecordBatch | pa.Table) -> int:
    """Return the bytes of memory that data takes."""
    try:
        return int(data.nbytes)
    except pa.ArrowTypeError:  # an older pyarrow, which does not count what a slice has of views
        return int(data.get_total_buffer_size())


def pieces(start: int, stop: int, too_large: Callable[[int, int], bool]) -> Iterator[tuple[int, int]]:
    """Halve a range of rows until no part is too large; a single row is never too large."""
    if stop - start > 1 and too_large(start, stop):
        middle = (start + stop) // 2
        yield from pieces(start, middle, too_large)
        yield from pieces(middle, stop, too_large)
    elif start < stop:
        yield start, stop


def pieces_of(batch: pa.RecordBatch, most_bytes: int) -> Iterator[tuple[int, int]]:
    """Divide a batch into ranges of rows that take at most so many bytes of memory, or are a single row.

    A range is left whole if dividing it saves no memory, as where a dictionary takes most of it.
    """

    def nbytes(start: int, stop: int) -> int:
        return bytes_of(batch.slice(start, stop - start))

    def too_large(start: int, stop: int) -> bool:
        whole = nbytes(start, stop)
        if whole <= most_bytes:
            return False
        middle = (start + stop) // 2
        return nbytes(start, middle) + nbytes(middle, stop) <= _SHARED * whole

    return pieces(0, batch.num_rows, too_large)


def cut(batch: pa.RecordBatch, most_bytes: int = BATCH_BYTES) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a batch, at least one, in batches of at most so many bytes, without copying.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
    most_bytes : int
        A single row may have more.
    """
    if bytes_of(batch) <= most_bytes:
        yield batch
        return
    for start, stop in pieces_of(batch, most_bytes):
        yield batch.slice(start, stop - start)


def gathered(
    batches: Iterable[pa.RecordBatch], most_bytes: int = BATCH_BYTES
) -> Iterator[list[pa.RecordBatch]]:
    """Yield batches in groups that together take at most so many bytes, in their order; larger ones are cut."""
    group: list[pa.RecordBatch] = []
    held = 0
    for batch in batches:
        for piece in cut(batch, most_bytes):
            if group and held + bytes_of(piece) > most_bytes:
                yield group
                group, held = [], 0
            group.append(piece)
            held += bytes_of(piece)
    if group:
        yield group
