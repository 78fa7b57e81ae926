"""Errors of entries, with the file and the position of the entry."""

from __future__ import annotations

from flinkcore._native.state_columns import EntryError
from flinkcore.errors import SavepointError
from flinkcore.savepoints.byte_reader import damage
from flinkcore.savepoints.state_streams import StateStream


def entry_error(
    failure: EntryError,
    stream: StateStream,
    group: int | None,
    begin: int,
    before: int,
    is_compressed: bool,
    state: str,
) -> SavepointError:
    """Return the error of an entry.

    Parameters
    ----------
    failure : EntryError
    stream : StateStream
    group : int or None
        Key group, or None for operator state.
    begin : int
        Position of the key group or the element in the stream.
    before : int
        Bytes of it before those that the failure's position counts from.
    is_compressed : bool
        Whether positions count decompressed bytes.
    state : str
        Name of the state that is read.
    """
    at = before + failure.at
    of_group = "" if group is None else f", key group {group}"
    if is_compressed:
        offset, place = stream.base + begin, f"{of_group}, byte {at:,} once it is decompressed"
    else:
        offset, place = stream.base + begin + at, of_group
    message = f"state {state!r}{place}: {failure}"
    if failure.is_damage:
        return damage(stream.name, offset, message)
    return SavepointError(f"{stream.name}, byte {offset:,}, {message}", file=stream.name, offset=offset)
