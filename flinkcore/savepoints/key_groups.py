"""Key groups of a subtask's stream: entries of the canonical format, and tables of the heap backend's checkpoints."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from flinkcore._native.state_columns import EntryError
from flinkcore._native.state_entries import EntryBlocks, EntryTable
from flinkcore.errors import UnsupportedSavepointError
from flinkcore.savepoints.byte_reader import damage
from flinkcore.savepoints.entry_errors import entry_error
from flinkcore.savepoints.handles import KeyGroupsHandle
from flinkcore.savepoints.state_headers import KeyedHeader
from flinkcore.savepoints.state_streams import StateStream


@dataclass(frozen=True)
class KeyGroupsFile:
    """Key groups of a subtask, with the header of their stream.

    Attributes
    ----------
    handle : KeyGroupsHandle
    header : KeyedHeader
    """

    handle: KeyGroupsHandle
    header: KeyedHeader

    @property
    def ranges(self) -> list[tuple[int, int, int]]:
        """Key groups with the begin and the end of each in the stream, in the order of the stream."""
        ends = sorted({*(offset for offset in self.handle.offsets if offset), self.handle.stream.size})
        found = []
        for i, begin in enumerate(self.handle.offsets):
            if begin:
                after = bisect_right(ends, begin)
                found.append(
                    (self.handle.first_group + i, begin, ends[after] if after < len(ends) else begin)
                )
        return sorted(found, key=lambda each: each[1])


def read_entries(
    stream: StateStream,
    header: KeyedHeader,
    group: int,
    begin: int,
    end: int,
    entries: EntryBlocks,
    most_rows: int,
    name: str,
) -> Iterator[None]:
    """Read the entries of a key group, and yield whenever a table may have become full.

    Errors between the entries of two states name the state `name`.

    Raises
    ------
    SavepointError
        If they are damaged, or a value has no place in its column.
    """
    blocks = iter((stream.decompressed_blocks if header.is_compressed else stream.blocks)(begin, end))
    rest, before = b"", 0
    while True:
        # An entry that is longer than a block is read once twice as much of it is there, and not for each block again.
        parts, size = [rest], 0
        for block in blocks:
            parts.append(block)
            size += len(block)
            if size >= len(rest):
                break
        if not size:
            break
        data = b"".join(parts) if rest else parts[1] if len(parts) == 2 else b"".join(parts)
        at = 0
        while True:
            try:
                after = entries.feed(data, at, most_rows)
            except EntryError as failure:
                state = header.states[entries.state].name if 0 <= entries.state < len(header.states) else name
                raise entry_error(
                    failure, stream, group, begin, before, header.is_compressed, state
                ) from None
            yield
            if after == at or entries.has_ended:
                at = after
                break
            at = after
        before += at
        rest = data[at:]
        if entries.has_ended and rest:
            break
    if not entries.has_ended:
        raise damage(
            stream.name,
            stream.base + begin,
            f"key group {group} does not end: its last {len(rest):,} bytes are not an entry",
        )
    if rest or next(blocks, None):
        raise damage(stream.name, stream.base + begin, f"bytes follow the last entry of key group {group}")


def read_heap_group(
    stream: StateStream,
    header: KeyedHeader,
    group: tuple[int, int, int],
    tables: list[EntryTable],
    wanted: int,
    name: str,
) -> None:
    """Read a key group of a checkpoint of the heap backend up to the end of one state.

    Parameters
    ----------
    stream : StateStream
    header : KeyedHeader
    group : tuple
        The key group, its begin and its end in the stream.
    tables : list of EntryTable
        Tables of the states up to the first one whose entries only Java can read; all but that of the wanted one are
        emptied.
    wanted : int
        Number of the state.
    name : str
        Name of the state.

    Raises
    ------
    SavepointError
        If it is damaged, or a value has no place in its column.
    UnsupportedSavepointError
        If entries that only Java can read come first: the format has no sizes.

    Notes
    -----
    Flink's ``HeapSnapshotStrategy`` and ``CopyOnWriteStateMapSnapshot``.
    """
    number, begin, end = group
    written = int.from_bytes(stream.read(begin, 4), "big", signed=True)
    if written != number:
        raise damage(stream.name, stream.base + begin, f"key group {written} is in place of {number}")
    blocks = stream.decompressed_blocks if header.is_compressed else stream.blocks
    data = b"".join(blocks(min(begin + 4, end), end))
    at = 0
    while at < len(data):
        state = int.from_bytes(data[at : at + 2], "big", signed=True)
        if not 0 <= state < header.n_states:
            raise damage(stream.name, stream.base + begin, f"there is no state with number {state}")
        if state >= len(tables):
            raise UnsupportedSavepointError(
                f"state {name!r} cannot be read from this checkpoint: it has entries that only Java can read, or lies "
                "after some. Take a savepoint in the canonical format: `flink savepoint --type canonical JOB_ID DIR`",
                file=stream.name,
            )
        try:
            at = tables[state].read_heap_table(data, at + 2, number)
        except EntryError as failure:
            raise entry_error(failure, stream, number, begin + 4, 0, header.is_compressed, name) from None
        if state == wanted:
            return
        tables[state].take()
