"""Avro: its schemas, and its files block by block, read with bounds so that a damaged one is only an error."""

from __future__ import annotations

import bz2
import json
import lzma
import zlib
from collections.abc import Callable, Collection, Iterator
from io import BytesIO
from typing import Any, Final, NamedTuple, NoReturn

from flinkcore._internal.io.text_files import MOST_LEVELS, read_block
from flinkcore._internal.python.extras import library
from flinkcore.errors import ConfigurationError, DataError

_MAGIC: Final = b"Obj\x01"
_SYNC_BYTES: Final = 16
_MOST_BLOCK_BYTES: Final = 1 << 28
_MOST_HEADER_BYTES: Final = 1 << 24
_MOST_VARINT_BYTES: Final = 10
_STEP_BYTES: Final = 1 << 20
_ARRAY_END: Final = b"\x00"
_MOST_TYPES: Final = 1 << 14
_PRIMITIVES: Final = {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
_COMPLEX: Final = {"record", "error", "enum", "fixed", "array", "map"}


def avro_library() -> Any:
    """Return the library that encodes and decodes Avro; raise ConfigurationError if it is not installed."""
    return library("fastavro", "avro", "Avro")


# ---- schemas


def parsed_schema(schema: Any) -> Any:
    """Return a schema, with the full names of types, as the library takes it.

    Parameters
    ----------
    schema : object
        As it was read from JSON.

    Raises
    ------
    ConfigurationError
        If it is none, a decimal has no valid precision and scale, a type has itself within it, values of an array take
        no bytes, or types are nested, or refer to others, without measure: data of a few bytes could then fill the
        memory.
    """
    parse = avro_library().parse_schema
    try:
        parsed = parse(_unwrapped(schema))
    except Exception as failure:  # of any kind, as the library does not check all that it takes
        raise ConfigurationError(f"{_shown(schema)} is not a schema of Avro: {failure}") from failure
    _extent(parsed, {}, 0)
    return parsed


def _unwrapped(schema: Any) -> Any:
    """Return a schema without objects that only hold another type, a name or null, which the library does not take."""
    if isinstance(schema, list):
        return [_unwrapped(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    kind = schema.get("type")
    if isinstance(kind, dict | list) or kind == "null":
        return _unwrapped(kind)
    if isinstance(kind, str) and kind not in _PRIMITIVES | _COMPLEX:
        return kind
    inner = {key: _unwrapped(schema[key]) for key in ("items", "values") if key in schema}
    if isinstance(schema.get("fields"), list):
        inner["fields"] = [
            {**field, "type": _unwrapped(field["type"])}
            if isinstance(field, dict) and "type" in field
            else field
            for field in schema["fields"]
        ]
    return {**schema, **inner}


def _shown(schema: Any) -> str:
    return f"{schema!r:.200}"


def _refuse(schema: Any, reason: str) -> NoReturn:
    raise ConfigurationError(f"the schema of Avro is not taken: {reason}: {_shown(schema)}")


class _Extent(NamedTuple):
    """Extent of the values of a type, with the types that it refers to by name in full."""

    is_empty: bool  # values take no bytes
    types: int = 1
    levels: int = 1


def _extent(schema: Any, named: dict[str, _Extent | None], depth: int) -> _Extent:
    """Check a schema, and return its extent; that of a named type is None while it is walked through."""
    if depth > MOST_LEVELS:
        _refuse(schema, f"types are more than {MOST_LEVELS} levels deep")
    if isinstance(schema, str):
        if schema in _PRIMITIVES:
            return _Extent(schema == "null")
        found = named.get(schema)
        if found is None:
            _refuse(schema, "a type has itself within it")
        if depth + found.levels > MOST_LEVELS:
            _refuse(schema, f"types are more than {MOST_LEVELS} levels deep")
        return found
    if isinstance(schema, list):
        return _of_parts(schema, schema, named, depth)._replace(is_empty=False)
    if not isinstance(schema, dict):
        _refuse(schema, "a type is a name, an object or an array")
    kind = schema.get("type")
    if kind in ("bytes", "fixed") and schema.get("logicalType") == "decimal":
        _check_decimal(schema)
    if kind in ("record", "error"):
        named[schema["name"]] = None
        found = _of_parts(schema, [field["type"] for field in schema["fields"]], named, depth)
        named[schema["name"]] = found
        return found
    if kind == "enum":
        named[schema["name"]] = found = _Extent(False)
        return found
    if kind == "fixed":
        size = schema.get("size")
        if type(size) is not int or size < 0:
            _refuse(schema, "the size of a fixed type is a whole number")
        named[schema["name"]] = found = _Extent(size == 0)
        return found
    if kind in ("array", "map"):
        found = _of_parts(schema, [schema["items" if kind == "array" else "values"]], named, depth)
        if found.is_empty and kind == "array":
            _refuse(schema, "the items of an array take no bytes")
        return found._replace(is_empty=False)
    return _extent(kind, named, depth + 1)


def _of_parts(schema: Any, parts: list[Any], named: dict[str, _Extent | None], depth: int) -> _Extent:
    found = [_extent(part, named, depth + 1) for part in parts]
    types = 1 + sum(part.types for part in found)
    if types > _MOST_TYPES:
        _refuse(schema, f"written out, it has more than {_MOST_TYPES:,} types")
    levels = 1 + max((part.levels for part in found), default=0)
    return _Extent(all(part.is_empty for part in found), types, levels)


def _check_decimal(schema: dict[str, Any]) -> None:
    """Check what the library leaves out: a missing precision, 0, and values that are not numbers but pass as such."""
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if type(precision) is not int or precision < 1:
        _refuse(schema, "the precision of a decimal is a whole number from 1")
    if type(scale) is not int:
        _refuse(schema, "the scale of a decimal is a whole number")


_LOGICAL_TYPES: Final = {
    "decimal",
    "date",
    "time-millis",
    "time-micros",
    "timestamp-millis",
    "timestamp-micros",
}


def with_pyflinks_values(schema: Any) -> Any:
    """Return a schema whose values are those of Avro's library for Python, which PyFlink has.

    Logical types that it does not know, such as local timestamps, have the values of their types; UUIDs are texts.
    """
    return _with_logical_types(schema, _LOGICAL_TYPES)


def raw_schema(schema: Any) -> Any:
    """Return a schema without logical types, as which any bytes of its records can be decoded."""
    return _with_logical_types(schema, ())


def _with_logical_types(schema: Any, kept: Collection[str]) -> Any:
    if isinstance(schema, list):
        return [_with_logical_types(branch, kept) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _with_logical_types(value, kept)
        for key, value in schema.items()
        if not (key.startswith("__") or (key == "logicalType" and value not in kept))
    }


# ---- files


class AvroFile:
    """The records of a file of Avro.

    Parameters
    ----------
    stream : pyarrow.NativeFile

    Attributes
    ----------
    schema : object
        Schema of the records, parsed.

    Raises
    ------
    DataError
        If it has no header of Avro, or one with a schema that is refused.
    ConfigurationError
        If the library is not installed.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._held = b""
        self._at = 0
        avro_library()
        if self._bytes(len(_MAGIC), "its header") != _MAGIC:
            raise DataError("it does not begin as a file of Avro")
        metadata = self._metadata()
        self._decompress = _decompressor(metadata.get("avro.codec", b"null"))
        try:
            self.block_bytes = 0
            """Bytes of the records of the last block."""
            self.schema = parsed_schema(json.loads(metadata["avro.schema"]))
        except (KeyError, ValueError, RecursionError) as failure:
            raise DataError(f"its header has no schema that can be read: {failure}") from failure
        if _extent(self.schema, {}, 0).is_empty:
            raise DataError("its records have no bytes")
        self._marker = self._bytes(_SYNC_BYTES, "its header")

    def blocks(self, schema: Any | None = None, raw: Any | None = None) -> Iterator[list[Any]]:
        """Yield the records of each block.

        Parameters
        ----------
        schema : object, optional
            A parsed schema that they are to have instead, by Avro's rules of resolution.
        raw : object, optional
            A parsed schema as which the bytes are decoded, instead of the file's own.

        Raises
        ------
        DataError
            If the file is truncated or damaged, or its records do not fit the schema.
        """
        library = avro_library()
        written_as = _array_of(self.schema if raw is None else raw)
        read_as = None if schema is None else _array_of(schema)
        while self._has_more():
            count = self._long("a block")
            payload = self._decompress(self._bytes(self._long("a block"), "a block"))
            if self._bytes(_SYNC_BYTES, "a block") != self._marker:
                raise DataError("a block does not end with the file's marker")
            if not 0 <= count <= len(payload):
                raise DataError(f"a block of {len(payload)} bytes cannot have {count} records")
            array = BytesIO(b"".join([_encoded(count), payload, _ARRAY_END]))
            try:
                records = library.schemaless_reader(array, written_as, read_as)
            except Exception as failure:  # of any kind, as the library does not check all that it reads
                raise DataError(
                    f"a block cannot be decoded: {type(failure).__name__}: {failure}"
                ) from failure
            if len(records) != count or array.tell() != len(array.getbuffer()):
                raise DataError(f"a block has more than the {count} records that it claims to have")
            self.block_bytes = len(payload)
            yield records

    def _metadata(self) -> dict[str, bytes]:
        metadata: dict[str, bytes] = {}
        size = 0
        while count := self._long("its header"):
            if count < 0:
                self._long("its header")  # the bytes of the entries
                count = -count
            for _ in range(count):
                entry = [self._bytes(self._long("its header"), "its header") for _ in range(2)]
                size += sum(map(len, entry)) + 2
                if size > _MOST_HEADER_BYTES:
                    raise DataError(f"its header has more than {_MOST_HEADER_BYTES:,} bytes")
                metadata[entry[0].decode("utf-8", "replace")] = entry[1]
        return metadata

    def _has_more(self) -> bool:
        if self._at == len(self._held):
            self._held, self._at = read_block(self._stream, _STEP_BYTES), 0
        return bool(self._held)

    def _bytes(self, count: int, place: str) -> bytes:
        """Return so many bytes; memory is taken only for what is there."""
        if not 0 <= count <= _MOST_BLOCK_BYTES:
            raise DataError(f"{place} claims to have {count} bytes")
        parts = []
        while count:
            if not self._has_more():
                raise DataError(f"it ends within {place}")
            part = self._held[self._at : self._at + count]
            self._at += len(part)
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _long(self, place: str) -> int:
        value = 0
        for index in range(_MOST_VARINT_BYTES):
            (byte,) = self._bytes(1, place)
            value |= (byte & 0x7F) << 7 * index
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
        raise DataError(f"{place} has a number without an end")


def _encoded(value: int) -> bytes:
    value = (value << 1) ^ (value >> 63)
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _array_of(schema: Any) -> Any:
    """Return the schema of an array, as which the records of a block are decoded at once."""
    return avro_library().parse_schema({"type": "array", "items": _unparsed(schema)})


def _unparsed(schema: Any) -> Any:
    """Return a schema without what the library adds to it."""
    if isinstance(schema, dict):
        return {key: _unparsed(value) for key, value in schema.items() if not key.startswith("__")}
    return [_unparsed(each) for each in schema] if isinstance(schema, list) else schema


# ---- compression


def _decompressor(codec: bytes) -> Callable[[bytes], bytes]:
    found = _CODECS.get(codec)
    if found is None:
        known = ", ".join(name.decode() for name in _CODECS)
        raise DataError(f"it is compressed by {codec!r:.40}, which is not supported; supported are {known}")
    return found


def _bounded(make: Callable[[], Any], end_is_marked: bool = True) -> Callable[[bytes], bytes]:
    """Return what decompresses a block with one of Python's decompressors, of bounded size."""

    def decompressed(data: bytes) -> bytes:
        decompressor = make()
        try:
            payload: bytes = decompressor.decompress(data, _MOST_BLOCK_BYTES + 1)
        except (zlib.error, lzma.LZMAError, OSError, ValueError, EOFError) as failure:
            raise DataError(f"a block cannot be decompressed: {failure}") from failure
        return _within_bounds(payload, end_is_marked and not decompressor.eof)

    return decompressed


def _within_bounds(payload: bytes, is_truncated: bool = False) -> bytes:
    if len(payload) > _MOST_BLOCK_BYTES:
        raise DataError(f"a block has more than {_MOST_BLOCK_BYTES:,} bytes")
    if is_truncated:
        raise DataError("a compressed block is truncated")
    return payload


def _snappy(data: bytes) -> bytes:
    """Snappy, with a checksum of the payload after it."""
    import pyarrow as pa

    size = 0
    for index, byte in enumerate(data[:5]):
        size |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            break
    if len(data) < 5 or size > _MOST_BLOCK_BYTES:
        raise DataError(f"a block claims to have {size} bytes")
    try:
        payload: bytes = pa.decompress(data[:-4], size, "snappy", asbytes=True)
    except (pa.ArrowException, OSError) as failure:
        raise DataError(f"a block cannot be decompressed: {failure}") from failure
    if zlib.crc32(payload) != int.from_bytes(data[-4:], "big"):
        raise DataError("the checksum of a block is wrong")
    return payload


def _zstandard(data: bytes) -> bytes:
    import pyarrow as pa

    parts, size = [], 0
    try:
        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            while size <= _MOST_BLOCK_BYTES and (part := stream.read(_STEP_BYTES)):
                parts.append(part)
                size += len(part)
    except (pa.ArrowException, OSError) as failure:
        raise DataError(f"a block cannot be decompressed: {failure}") from failure
    return _within_bounds(b"".join(parts))


_CODECS: Final[dict[bytes, Callable[[bytes], bytes]]] = {
    b"null": _within_bounds,
    b"deflate": _bounded(lambda: zlib.decompressobj(-15)),
    b"bzip2": _bounded(bz2.BZ2Decompressor),
    b"xz": _bounded(lzma.LZMADecompressor),
    b"snappy": _snappy,
    b"zstandard": _zstandard,
}
