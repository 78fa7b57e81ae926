"""The header that serializers of Confluent's schema registry put before a message.

::

    0 | id of the schema, 4 bytes, the most significant one first | message, of Avro
    0 | id of the schema, 4 bytes | number of indexes, indexes    | message, of Protobuf

Numbers and indexes of Protobuf are zigzag varints; they lead from the file to the type of the message, and 0 alone
stands for its first one. Redpanda and AWS MSK with Confluent's serializers write the same.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from flinkcore.errors import DataError

_MAGIC: Final = 0
_HEADER_BYTES: Final = 5
_MOST_INDEXES: Final = 64
_MOST_VARINT_BYTES: Final = 5


class FramedMessage(NamedTuple):
    """A message without its header.

    Attributes
    ----------
    schema_id : int
        Id of its schema in the registry.
    body : bytes
        The message; of Protobuf, the indexes come first.
    """

    schema_id: int
    body: bytes


def unframed(payload: bytes) -> FramedMessage:
    """Return a message without its header.

    Raises
    ------
    DataError
        If there is no such header.
    """
    if len(payload) < _HEADER_BYTES or payload[0] != _MAGIC:
        raise DataError(
            "it does not begin with a zero byte and the 4 bytes of a schema id, as Confluent's serializers write"
        )
    return FramedMessage(int.from_bytes(payload[1:_HEADER_BYTES], "big"), payload[_HEADER_BYTES:])


def message_indexes(body: bytes) -> tuple[tuple[int, ...], bytes]:
    """Return the indexes of the type of a Protobuf message within its file, and the message.

    Raises
    ------
    DataError
        If the indexes are cut off, negative or more than a file can nest.
    """
    count, place = _varint(body, 0)
    if count == 0:
        return (0,), body[place:]
    if not 0 < count <= _MOST_INDEXES:
        raise DataError(f"it has {count} message indexes")
    indexes = []
    for _ in range(count):
        index, place = _varint(body, place)
        indexes.append(index)
    return tuple(indexes), body[place:]


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(_MOST_VARINT_BYTES):
        if place >= len(data):
            break
        byte = data[place]
        place += 1
        value |= (byte & 127) << 7 * shift
        if byte < 128:
            return (value >> 1) ^ -(value & 1), place
    raise DataError("its message indexes are cut off")
