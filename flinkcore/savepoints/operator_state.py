"""Operator states: lists that are split or united when the job is rescaled, and broadcast state."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from flinkcore._native.state_columns import EntryError, RestColumn, StateColumn
from flinkcore.errors import UnsupportedSavepointError
from flinkcore.savepoints.byte_reader import damage
from flinkcore.savepoints.entry_errors import entry_error
from flinkcore.savepoints.handles import OperatorStateHandle
from flinkcore.savepoints.serializers.serializer import StateSerializer
from flinkcore.savepoints.state import SavepointState
from flinkcore.savepoints.state_headers import OperatorHeader
from flinkcore.savepoints.state_streams import StateStream


@dataclass(frozen=True)
class OperatorStateFile:
    """Operator states of a subtask, with the header of their stream.

    Attributes
    ----------
    subtask : int
    handle : OperatorStateHandle
    header : OperatorHeader
    """

    subtask: int
    handle: OperatorStateHandle
    header: OperatorHeader


@dataclass(frozen=True)
class OperatorState(SavepointState):
    """An operator state; a row is an element of a list, or an entry of the broadcast state."""

    key: StateSerializer | None
    value: StateSerializer
    files: tuple[OperatorStateFile, ...]

    @property
    def types(self) -> dict[str, StateSerializer]:
        return {"value": self.value} if self.key is None else {"key": self.key, "value": self.value}

    @property
    def schema(self) -> pa.Schema:
        return self._batch([], *self._columns()).schema

    def count(self) -> int:
        if self.key is None:
            return sum(len(file.handle.offsets.get(self.name, ("", ()))[1]) for file in self.files)
        return sum(batch.num_rows for batch in self.batches())

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches.

        Raises
        ------
        SavepointError
            If a file is damaged or missing, or a value has no place in its column.
        UnsupportedSavepointError
            If it is a broadcast state whose entries only Java can read.
        """
        if self.key is not None and self.undecodable:
            raise UnsupportedSavepointError(
                f"state {self.name!r} cannot be read: only Java can read its entries: {self.undecodable}"
            )
        # Every subtask has the whole broadcast state.
        files = self.files if self.key is None else self.files[:1]
        subtasks: list[int] = []
        columns = self._columns()
        for file in files:
            with self.directory.open(file.handle.stream, self.settings.block_bytes) as stream:
                for begin, data in self._elements(stream, file):
                    for _ in self._read(stream, file, begin, data, *columns):
                        subtasks.append(file.subtask)
                        if len(subtasks) >= self.settings.batch_rows:
                            yield self._batch(subtasks, *columns)
                            subtasks = []
        if subtasks:
            yield self._batch(subtasks, *columns)

    def _columns(self) -> tuple[StateColumn | None, StateColumn]:
        exact = self.settings.exact
        return (
            None if self.key is None else self.key.column(exact),
            RestColumn() if self.value.unknown else self.value.column(exact),
        )

    def _batch(self, subtasks: list[int], key: StateColumn | None, value: StateColumn) -> pa.RecordBatch:
        first = pa.array(subtasks, pa.int32()) if key is None else pa.array(key.array())
        return pa.record_batch(
            [first, pa.array(value.array())], ["subtask" if key is None else "key", "value"]
        )

    def _elements(self, stream: StateStream, file: OperatorStateFile) -> Iterator[tuple[int, bytes]]:
        """Yield the positions of elements with their bytes, which end where another element of any state begins."""
        _, offsets = file.handle.offsets.get(self.name, ("", ()))
        every = sorted({each for _, some in file.handle.offsets.values() for each in some})
        for begin in offsets:
            if not file.header.end <= begin <= stream.size:
                raise damage(
                    stream.name, stream.base, f"an element of state {self.name!r} begins at byte {begin:,}"
                )
            after = bisect_right(every, begin)
            end = every[after] if after < len(every) else stream.size
            blocks = stream.decompressed_blocks if file.header.is_compressed else stream.blocks
            yield begin, b"".join(blocks(begin, end))

    def _read(
        self,
        stream: StateStream,
        file: OperatorStateFile,
        begin: int,
        data: bytes,
        key: StateColumn | None,
        value: StateColumn,
    ) -> Iterator[None]:
        most, at = self.settings.max_values_per_entry, 0
        try:
            if key is None:
                at = value.read_value(data, 0, most)
                yield
            else:
                number = int.from_bytes(data[:4], "big", signed=True)
                if not 0 <= number <= len(data):
                    raise EntryError(f"{number:,} entries cannot be in {len(data):,} bytes", 0, True)
                at = 4
                for _ in range(number):
                    at = value.read_value(data, key.read_value(data, at, most), most)
                    yield
            if at != len(data):
                raise EntryError(f"{len(data) - at:,} bytes are left over", at, True)
        except EntryError as failure:
            raise entry_error(failure, stream, None, begin, 0, file.header.is_compressed, self.name) from None
