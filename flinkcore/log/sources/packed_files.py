"""Small files of a log as one chunk: the costs of a chunk in reading, planning and merging exceed those of few rows.

A log of hourly or hand-appended files has thousands of a few hundred rows. Files that follow each other in the log are
read one after the other, and their rows come in common batches; the chunk knows which row is of which file.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, TypeGuard

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.arrow.batch_bytes import bytes_of
from flinkcore._internal.io.locations import naming_file
from flinkcore.errors import SourceError
from flinkcore.log.files.log_files import check_unchanged
from flinkcore.log.sources.chunks import Chunk
from flinkcore.log.sources.even_batches import even_batches
from flinkcore.log.sources.file_chunks import FileChunk
from flinkcore.log.sources.read_plan import ReadPlan


class FirstReading:
    """Memory of a process for the rows of small files, which so are read once.

    Parameters
    ----------
    columns
        Columns that all readings of the log together take.
    most_bytes
        Bytes of all rows that are kept; files beyond them are read each time.

    Attributes
    ----------
    is_last
        Whether rows that are read from now on are not read again, as far as that is known.
    """

    def __init__(self, columns: Sequence[str], most_bytes: int) -> None:
        self.columns = list(columns)
        self.is_last = False
        self._room = most_bytes
        self._is_full = False
        self._lock = Lock()

    def keeps(self, columns: Collection[str]) -> bool:
        """Return whether rows of which these columns are asked for are to be kept, or may have been."""
        return not self._is_full and self.has(columns)

    def has(self, columns: Collection[str]) -> bool:
        """Return whether rows that are kept have these columns."""
        return set(columns) <= set(self.columns)

    def take_room(self, n_bytes: int) -> bool:
        """Take room for so many bytes, and return whether there was."""
        with self._lock:
            self._is_full = self._is_full or n_bytes > self._room
            if not self._is_full:
                self._room -= n_bytes
            return not self._is_full

    def release_room(self, n_bytes: int) -> None:
        """Release room that was taken."""
        with self._lock:
            self._room += n_bytes


@dataclass(frozen=True)
class Packing:
    """Limits within which small files share a chunk.

    Attributes
    ----------
    most_bytes
        Size of the files of a chunk at most. The rows of a chunk may wait in memory for those of others.
    first_reading
        Keeps the rows of small files for further readings, or None if files are read each time.
    most_files
        Number of the files of a chunk at most, or None if their size alone counts.
    """

    most_bytes: int
    first_reading: FirstReading | None = None
    most_files: int | None = None


@dataclass
class _Found:
    """Findings of a reading of files.

    Attributes
    ----------
    ends
        Rows up to the end of each file that has been read; rows after these are of the file that is being read.
    batches
        All rows with the columns of `FirstReading`, or None if they are not kept.
    warnings
        Warnings about the files, if the rows are kept.
    """

    ends: list[int] = field(default_factory=list)
    batches: list[pa.RecordBatch] | None = None
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class PackedFiles(Chunk):
    """Whole files that follow each other in a log.

    Attributes
    ----------
    files : tuple of FileChunk
        At least one; if paths name partitions by which the log is split, all of one.
    first_reading : FirstReading or None
        Keeps the rows for further readings, or None if files are read each time.
    """

    files: tuple[FileChunk, ...]
    first_reading: FirstReading | None = None
    _found: _Found = field(init=False, default_factory=_Found, compare=False, repr=False)

    def _read(
        self,
        columns: Sequence[str] | None,
        batch_rows: int,
        encoded: Sequence[str],
        warnings: list[str] | None,
        batch_bytes: int,
    ) -> Iterator[pa.RecordBatch]:
        names = list(self.files[0].log_schema.schema.names if columns is None else columns)
        memory, found = self.first_reading, self._found
        if memory is not None and found.batches is not None and memory.has(names):
            batches = self._kept_rows(memory, found.batches)
            if warnings is not None:
                warnings += found.warnings
        elif memory is not None and not memory.is_last and memory.keeps(names):
            batches = self._keep_rows(memory, batch_rows, warnings, batch_bytes)
        else:
            batches = self._rows(names, batch_rows, warnings, batch_bytes)
        for batch in batches:
            asked = batch if batch.schema.names == names else batch.select(names)
            for start in range(0, batch.num_rows, batch_rows):
                yield asked.slice(start, batch_rows)

    def _kept_rows(self, memory: FirstReading, batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if not memory.is_last:
            yield from batches
            return
        self._found.batches = None
        while batches:
            batch = batches.pop(0)
            memory.release_room(bytes_of(batch))
            yield batch

    def _keep_rows(
        self, memory: FirstReading, batch_rows: int, warnings: list[str] | None, batch_bytes: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield all rows, and keep them if there is room."""
        kept: list[pa.RecordBatch] = []
        found: list[str] = []
        has_room = False
        try:
            for batch in self._rows(memory.columns, batch_rows, found, batch_bytes):
                if memory.take_room(bytes_of(batch)):
                    kept.append(batch)
                yield batch
            has_room = memory.keeps(())
        finally:
            if not has_room:
                memory.release_room(sum(bytes_of(batch) for batch in kept))
        if has_room:
            self._found.batches, self._found.warnings = kept, found
        if warnings is not None:
            warnings += found

    def _rows(
        self, names: Sequence[str], batch_rows: int, warnings: list[str] | None, batch_bytes: int
    ) -> Iterator[pa.RecordBatch]:
        # Dictionaries of many files would have to be united: values are as small.
        plan = self.files[0].plan(names, batch_rows, (), warnings, batch_bytes)
        listed = [each.file for each in self.files]
        check_unchanged(listed)
        for batch in even_batches(self._rows_by(plan), batch_rows, batch_bytes, self.label):
            yield pa.RecordBatch.from_arrays(batch.columns, batch.schema.names)
        check_unchanged(listed)

    def _rows_by(self, plan: ReadPlan) -> Iterator[pa.RecordBatch]:
        ends = self._found.ends
        rows = 0
        for number, each in enumerate(self.files):
            try:
                with naming_file(each.path):
                    for batch in each.rows_by(plan):
                        rows += batch.num_rows
                        yield batch
            except SourceError:
                check_unchanged([each.file])  # which says more than what the reader stumbled over
                raise
            if number == len(ends):
                ends.append(rows)

    @property
    def finds_bad_records(self) -> bool:
        return True

    @property
    def is_columnar(self) -> bool:
        return self.files[0].is_columnar

    @property
    def is_checked(self) -> bool:
        return True

    def constant(self, column: str) -> tuple[bool, Any]:
        first = self.files[0].constant(column)
        return first if all(each.constant(column) == first for each in self.files) else (False, None)

    @property
    def path_partition(self) -> int | str | None:
        return self.files[0].path_partition

    @property
    def parts(self) -> Sequence[Chunk]:
        return self.files

    def part_of(self, row: int) -> tuple[Chunk, int]:
        number = min(bisect_right(self._found.ends, row), len(self.files) - 1)
        return self.files[number], row - (self._found.ends[number - 1] if number else 0)

    def row_name(self, row: int) -> str:
        file, row_of_file = self.part_of(row)
        return file.row_name(row_of_file)

    def place(self, row: int) -> dict[str, Any]:
        file, row_of_file = self.part_of(row)
        return file.place(row_of_file)

    def files_of(self, rows: Int64s) -> tuple[pa.Array, pa.Array]:
        found = [self.part_of(row) for row in rows.tolist()]
        both = [file.files_of(np.array([row], np.int64)) for file, row in found]
        if not both:
            return super().files_of(rows)
        files, numbers = zip(*both, strict=True)
        return pa.concat_arrays(files), pa.concat_arrays(numbers)


def packed(chunks: Sequence[Chunk], target: int, packing: Packing) -> list[Chunk]:
    """Join the chunks of small files of a log that follow each other.

    Parameters
    ----------
    chunks : sequence of Chunk
        Chunks of the log, in its order.
    target : int
        About how many chunks the log is to have at least, if its files are small.
    packing : Packing
    """
    most = min(packing.most_bytes, sum(chunk.size_bytes or 0 for chunk in chunks) // target)
    packs: list[list[Chunk]] = []
    held = 0
    for chunk in chunks:
        size = chunk.size_bytes or 0
        has_room = bool(packs) and held + size <= most and len(packs[-1]) != packing.most_files
        if has_room and _can_follow(packs[-1][-1], chunk):
            packs[-1].append(chunk)
            held += size
        else:
            packs.append([chunk])
            held = size
    return [_joined(index, pack, packing) for index, pack in enumerate(packs)]


def _can_follow(before: Chunk, chunk: Chunk) -> bool:
    return _is_whole(before) and _is_whole(chunk) and before.path_partition == chunk.path_partition


def _is_whole(chunk: Chunk) -> TypeGuard[FileChunk]:
    return isinstance(chunk, FileChunk) and chunk.pieces is None and chunk.size_bytes is not None


def _joined(index: int, pack: Sequence[Chunk], packing: Packing) -> Chunk:
    files = tuple(chunk for chunk in pack if _is_whole(chunk))
    size = sum(each.size_bytes or 0 for each in files)
    if not files or size > packing.most_bytes:
        (chunk,) = pack
        return replace(chunk, index=index)
    label, others = files[0].label, len(files) - 1
    rows = [each.rows for each in files if each.rows is not None]
    return PackedFiles(
        index,
        label=f"{label} and {others:,} files after it" if others else label,
        rows=sum(rows) if len(rows) == len(files) else None,
        size_bytes=size,
        first_row=None,
        files=files,
        first_reading=packing.first_reading,
    )
