"""Maps in messages of JSON, which are objects there."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from flinkcore.log.decoding.value_decoder import DecodedColumn, ValueDecoder

_TOKEN: Final = re.compile(rb'\s*("(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+)', re.DOTALL)
_KEY, _VALUE = b'{"key":', b',"value":'


def with_lists(kind: pa.DataType) -> pa.DataType:
    """Return a type with lists of entries in place of maps: Arrow reads these from JSON, and they lie as maps do."""
    if pa.types.is_map(kind):
        entry = pa.struct([("key", kind.key_type), ("value", with_lists(kind.item_type))])
        return pa.list_(entry)
    if pa.types.is_list(kind):
        return pa.list_(with_lists(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, with_lists(field.type)) for field in kind])
    return kind


@dataclass(frozen=True)
class MapFields:
    """A decoder of JSON whose maps are objects: of a key that comes several times, the last value counts.

    Attributes
    ----------
    messages : ValueDecoder
        Decoder of the type `with_lists`.
    type : pyarrow.DataType
        With maps.

    Notes
    -----
    Follows Flink's ``JsonParserToRowDataConverters``.
    """

    messages: ValueDecoder
    type: pa.DataType

    def prepared(self) -> MapFields:
        return replace(self, messages=self.messages.prepared())

    def decode(self, messages: Sequence[bytes | None]) -> DecodedColumn:
        found = self.messages.decode([each and _with_entries(each, self.type) for each in messages])
        return DecodedColumn(found.values.view(self.type), found.faults)


def _with_entries(message: bytes, kind: pa.DataType) -> bytes:
    """Return a message with lists of entries in place of maps; one that is not JSON, or is too deep, stays as it is."""
    tokens: list[bytes] = []
    end = 0
    while (match := _TOKEN.match(message, end)) is not None:
        tokens.append(match[1])
        end = match.end()
    try:
        written, at = _written(tokens, 0, kind)
    except (IndexError, ValueError, RecursionError):
        return message
    return message if at < len(tokens) or message[end:].strip() else written


def _written(tokens: Sequence[bytes], at: int, kind: pa.DataType | None) -> tuple[bytes, int]:
    """Return the value at a token as it is to be read as a type, or as it is, and where the next one begins."""
    is_map = kind is not None and pa.types.is_map(kind)
    if tokens[at] == b"[":
        element = kind.value_type if kind is not None and pa.types.is_list(kind) else None
        parts: list[bytes] = []
        at += 1
        while tokens[at] != b"]":
            part, at = _written(tokens, _after(tokens, at, b",") if parts else at, element)
            parts.append(part)
        return b"{}" if is_map else b"[" + b",".join(parts) + b"]", at + 1  # a list is not a map
    if tokens[at] != b"{":
        if tokens[at] in (b"}", b"]", b",", b":"):
            raise ValueError(tokens[at])
        return tokens[at], at + 1
    of_fields = (
        {} if kind is None or not pa.types.is_struct(kind) else {field.name: field.type for field in kind}
    )
    entries: list[tuple[bytes, bytes]] = []
    by_key: dict[str, tuple[bytes, bytes]] = {}
    at += 1
    while tokens[at] != b"}":
        at = _after(tokens, at, b",") if entries else at
        name = json.loads(tokens[at])
        if not isinstance(name, str):
            raise ValueError(name)
        value_type = kind.item_type if is_map and kind is not None else of_fields.get(name)
        value, end = _written(tokens, _after(tokens, at + 1, b":"), value_type)
        by_key[name] = (tokens[at], value)
        entries.append(by_key[name])
        at = end
    if is_map:
        written = (_KEY + key + _VALUE + value + b"}" for key, value in by_key.values())
        return b"[" + b",".join(written) + b"]", at + 1
    return b"{" + b",".join(key + b":" + value for key, value in entries) + b"}", at + 1


def _after(tokens: Sequence[bytes], at: int, token: bytes) -> int:
    if tokens[at] != token:
        raise ValueError(tokens[at])
    return at + 1
