"""A small writer of savepoints in Flink's canonical format, for states that tests make up."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from flinkcore._native.checksums import masked_crc32c
from flinkcore.savepoints.operator_ids import operator_id

BASE = "org.apache.flink.api.common.typeutils.base."
RUNTIME = "org.apache.flink.api.java.typeutils.runtime."
Entry = tuple[int, bytes, bytes]
"""Number of the state, bytes of the key with its key group and namespace, bytes of the value."""


def i32(number: int) -> bytes:
    return struct.pack(">i", number)


def i64(number: int) -> bytes:
    return struct.pack(">q", number)


def utf(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">H", len(data)) + data


def string(text: str | None) -> bytes:
    """Return a text as StringValue writes it, of characters below 128 alone."""
    if text is None:
        return b"\0"
    length, varint = len(text) + 1, b""
    while length >= 0x80:
        varint += bytes([length & 0x7F | 0x80])
        length >>= 7
    return varint + bytes([length]) + text.encode("ascii")


def simple(name: str) -> bytes:
    """Return the snapshot of a serializer without content, such as ``Long``."""
    return utf(f"{BASE}{name}Serializer${name}SerializerSnapshot") + i32(3)


VOID = utf("org.apache.flink.runtime.state.VoidNamespaceSerializer$VoidNamespaceSerializerSnapshot") + i32(3)
LONG, STRING = simple("Long"), simple("String")


def composite(name: str, *nested: bytes, outer: bytes = b"", version: int = 1) -> bytes:
    """Return a composite snapshot of the class `name`."""
    return b"".join(
        [
            *(utf(name), i32(3), i32(911108), i32(version), outer),
            *(i32(1333245), i32(1), i32(len(nested)), *nested),
        ]
    )


def list_of(element: bytes) -> bytes:
    return composite(f"{BASE}ListSerializerSnapshot", element)


def map_of(key: bytes, value: bytes) -> bytes:
    return composite(f"{BASE}MapSerializerSnapshot", key, value)


def tuple_of(*fields: bytes) -> bytes:
    name = f"org.apache.flink.api.java.tuple.Tuple{len(fields)}"
    return composite(f"{RUNTIME}TupleSerializerSnapshot", *fields, outer=utf(name), version=2)


def state(name: str, kind: str, value: bytes, namespace: bytes = VOID) -> bytes:
    """Return the description of a keyed state."""
    return b"".join(
        [
            *(utf(name), i32(0), i32(1), utf("KEYED_STATE_TYPE"), utf(kind), i32(2)),
            *(utf("VALUE_SERIALIZER"), i32(2), value, utf("NAMESPACE_SERIALIZER"), i32(2), namespace),
        ]
    )


def key_group(entries: Sequence[Entry]) -> bytes:
    """Return the blocks of a key group; entries of one state lie together."""
    parts: list[bytes] = []
    for i, (number, key, value) in enumerate(entries):
        if i == 0 or entries[i - 1][0] != number:
            parts.append(struct.pack(">h", number))
        is_last = i + 1 == len(entries) or entries[i + 1][0] != number
        parts += [i32(len(key)), bytes([key[0] | is_last << 7]) + key[1:], i32(len(value)), value]
    return b"".join(parts) + struct.pack(">h", -1)


def framed(data: bytes, chunk: int = 65_536) -> bytes:
    """Return bytes as a framed stream of Snappy."""
    codec, parts = pa.Codec("snappy"), [b"\xff\x06\x00\x00sNaPpY"]
    for begin in range(0, len(data), chunk):
        plain = data[begin : begin + chunk]
        body = struct.pack("<I", masked_crc32c(plain)) + codec.compress(plain, asbytes=True)
        parts.append(b"\0" + len(body).to_bytes(3, "little") + body)
    return b"".join(parts)


def write_savepoint(
    folder: Path,
    states: Sequence[bytes],
    groups: dict[int, Sequence[Entry]],
    key: bytes = STRING,
    *,
    is_compressed: bool = False,
    max_parallelism: int = 128,
    uid: str = "op",
    file: str | None = None,
) -> Path:
    """Write a savepoint with one operator of one subtask, and return its directory.

    Parameters
    ----------
    folder : Path
    states : list of bytes
        Descriptions.
    groups : dict of int to list of Entry
        Entries by key group.
    key : bytes
        Snapshot of the keys' serializer.
    file : str or None
        Name of a file for the states, to which the metadata refers by an absolute path; else they are in the metadata.
    """
    stream = (
        i32(6) + bytes([is_compressed]) + i32(2) + key + struct.pack(">h", len(states)) + b"".join(states)
    )
    offsets = [0] * max_parallelism
    for group, entries in groups.items():
        offsets[group] = len(stream)
        data = key_group(entries)
        stream += framed(data) if is_compressed else data
    folder.mkdir(parents=True, exist_ok=True)
    if file is None:
        handle = b"\x01" + utf("inline") + i32(len(stream)) + stream
    else:
        (folder / file).write_bytes(stream)
        handle = b"\x02" + i64(len(stream)) + utf(f"file:{folder / file}")
    keyed = b"\x07" + i32(0) + i32(max_parallelism) + b"".join(map(i64, offsets)) + handle
    subtask = i32(0) + i32(0) + i32(0) + keyed + b"\0" + i32(0) + i32(0)
    operator = b"".join(
        [bytes.fromhex(operator_id(uid)), i32(1), i32(max_parallelism), b"\0", i32(1), subtask]
    )
    (folder / "_metadata").write_bytes(i32(0x4960672D) + i32(3) + i64(1) + i32(0) + i32(1) + operator)
    return folder
