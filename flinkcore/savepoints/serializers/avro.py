"""The serializer of Avro: records of generated classes, generic records, and objects by reflection."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final
from uuid import UUID

from flinkcore._internal.io.avro_files import avro_library, parsed_schema
from flinkcore._internal.io.avro_types import AvroTypes, Conversion
from flinkcore._native.avro_columns import (
    BlockListColumn,
    BlockMapColumn,
    DecimalColumn,
    FixedBytesColumn,
    OptionalColumn,
    UnionColumn,
)
from flinkcore._native.binary_rows import SqlTextColumn
from flinkcore._native.state_columns import (
    BooleanColumn,
    BytesColumn,
    ChoiceColumn,
    FixedColumn,
    NothingColumn,
    StateColumn,
    StructColumn,
    TextColumn,
)
from flinkcore.errors import ConfigurationError
from flinkcore.savepoints.byte_reader import ByteReader
from flinkcore.savepoints.serializers.serializer import StateSerializer

AVRO_CLASS: Final = "org.apache.flink.formats.avro.typeutils.AvroSerializerSnapshot"
AVRO_CLASS_OF_1_6: Final = (
    "org.apache.flink.formats.avro.typeutils.AvroSerializer$AvroSchemaSerializerConfigSnapshot"
)
GENERIC_RECORD: Final = "org.apache.avro.generic.GenericRecord"
_MOST_DIGITS: Final = 76
_UUID_BYTES: Final = 16

_PRIMITIVES: Final[dict[str, Callable[[bool], StateColumn]]] = {
    "null": lambda exact: NothingColumn(0),
    "boolean": lambda exact: BooleanColumn(),
    "int": lambda exact: FixedColumn("i", 4),
    "long": lambda exact: FixedColumn("l", 8),
    "float": lambda exact: FixedColumn("f", 4),
    "double": lambda exact: FixedColumn("g", 8),
    "bytes": lambda exact: BytesColumn(),
    "string": lambda exact: SqlTextColumn(exact),
}
_LOGICAL: Final = {
    ("int", "date"): ("tdD", 4),
    ("long", "timestamp-millis"): ("tsm:UTC", 8),
    ("long", "timestamp-micros"): ("tsu:UTC", 8),
    ("long", "timestamp-nanos"): ("tsn:UTC", 8),
    ("long", "local-timestamp-millis"): ("tsm:", 8),
    ("long", "local-timestamp-micros"): ("tsu:", 8),
    ("long", "local-timestamp-nanos"): ("tsn:", 8),
}
_TIMES_OF_DAY: Final = {
    ("int", "time-millis"): ("ttm", 4, 86_400_000),
    ("long", "time-micros"): ("ttu", 8, 86_400_000_000),
}


@dataclass(frozen=True)
class AvroSerializer(StateSerializer):
    """Values of Avro: structs, lists and maps by their schema, with its logical types.

    A union of null and one type is that type. One of several types is a struct with a field for each, ``member0``,
    ``member1`` and so on, all but one of them null.

    Parameters
    ----------
    class_name : str
        Class of the objects.
    schema : str
        Schema with which they were written, as JSON.

    Notes
    -----
    Flink's ``AvroSerializer`` with its ``DataOutputEncoder``, which writes other bytes than Avro's own encoders.
    """

    class_name: str
    schema: str

    @cached_property
    def name(self) -> str:
        found = json.loads(self.schema)
        if not isinstance(found, dict) or "name" not in found:
            return f"Avro<{self.class_name}>"
        name, space = str(found["name"]), found.get("namespace")
        return f"Avro<{name if not space or '.' in name else f'{space}.{name}'}>"

    @cached_property
    def opaque_name(self) -> str | None:
        avro_library()  # without it, which values can be read is not known
        try:
            self.column(False)
        except ConfigurationError as failure:
            return f"{self.name} ({failure})"
        return None

    @cached_property
    def parsed(self) -> Any:
        """The schema with the full names of types.

        Raises
        ------
        ConfigurationError
            If Arrow has no type for its values, such as those of a type that has itself within it.
        """
        return parsed_schema(json.loads(self.schema))

    @cached_property
    def to_arrow(self) -> Conversion | None:
        """Conversion of Python's values for Arrow; None if they stay as they are."""
        return AvroTypes(self.parsed).to_arrow(self.parsed)

    @cached_property
    def from_arrow(self) -> Conversion | None:
        """Conversion of values from Arrow to those of Python; None if they stay as they are.

        Raises
        ------
        ConfigurationError
            If nothing but its number says of which type of a union a value is.
        """
        return AvroTypes(self.parsed).from_arrow(self.parsed)

    @property
    def is_record(self) -> bool:
        """True if values are records."""
        return isinstance(self.parsed, dict) and self.parsed["type"] in ("record", "error")

    def __getstate__(self) -> dict[str, Any]:
        return {"class_name": self.class_name, "schema": self.schema}

    def column(self, exact: bool) -> StateColumn:
        return _Columns(AvroTypes(self.parsed), exact).of(self.parsed)


def read_avro(reader: ByteReader, version: int, depth: int) -> StateSerializer:
    """Read the content of the snapshot of the serializer: the class of the objects, and their schema.

    Notes
    -----
    Flink's ``AvroSerializerSnapshot``.
    """
    class_name = None
    if version == 1:
        schema = reader.utf()
    elif version == 2:
        class_name, schema = reader.utf(), reader.utf()
    elif version == 3:
        class_name, schema = reader.string(), reader.string()
    else:
        reader.fail(f"a snapshot of Avro's serializer has version {version}")
    try:
        json.loads(schema)
    except (ValueError, RecursionError):
        reader.fail("the schema of a serializer of Avro is not JSON")
    return AvroSerializer(class_name or GENERIC_RECORD, schema)


@dataclass(frozen=True)
class _Columns:
    """Makes the columns of a schema."""

    types: AvroTypes
    exact: bool

    def of(self, schema: Any) -> StateColumn:
        schema = self.types.named(schema)
        if isinstance(schema, list):
            return self._union(schema)
        if isinstance(schema, str):
            return _PRIMITIVES[schema](self.exact)
        kind, logical = schema["type"], schema.get("logicalType")
        if isinstance(kind, list | dict):
            return self.of(kind)
        if kind in ("record", "error"):
            names = [field["name"] for field in schema["fields"]]
            return StructColumn(names, [self.of(field["type"]) for field in schema["fields"]])
        if kind == "enum":
            return ChoiceColumn([symbol.encode() for symbol in schema["symbols"]])
        if kind == "array":
            return BlockListColumn(self.of(schema["items"]))
        if kind == "map":
            return BlockMapColumn(SqlTextColumn(self.exact), self.of(schema["values"]), self.exact)
        if logical == "decimal" and kind in ("bytes", "fixed"):
            return _decimal(schema, schema["size"] if kind == "fixed" else -1)
        if kind == "fixed":
            is_uuid = logical == "uuid" and schema["size"] == _UUID_BYTES
            return TextColumn(_read_uuid, _written_uuid) if is_uuid else FixedBytesColumn(schema["size"])
        if (kind, logical) in _TIMES_OF_DAY and not self.exact:  # a generic record may have any number
            format, size, end = _TIMES_OF_DAY[kind, logical]
            return FixedColumn(format, size, False, end)
        if (kind, logical) in _LOGICAL:
            return FixedColumn(*_LOGICAL[kind, logical])
        return _PRIMITIVES[kind](self.exact)

    def _union(self, branches: list[Any]) -> StateColumn:
        null_branch = branches.index("null") if "null" in branches else -1
        others = [number for number in range(len(branches)) if number != null_branch]
        columns = [self.of(branches[number]) for number in others]
        if not columns:
            raise ConfigurationError("a union of null alone has no type in Arrow")
        if len(columns) == 1:
            return OptionalColumn(columns[0], others[0], null_branch)
        return UnionColumn([f"member{index}" for index in range(len(columns))], columns, null_branch)


def _decimal(schema: dict[str, Any], size: int) -> StateColumn:
    precision = schema["precision"]
    if precision > _MOST_DIGITS:
        raise ConfigurationError(
            f"a decimal has up to {_MOST_DIGITS} digits in Arrow, not {precision} as in the schema"
        )
    return DecimalColumn(precision, schema.get("scale", 0), size)


def _read_uuid(data: memoryview) -> tuple[bytes | None, int]:
    if len(data) < _UUID_BYTES:
        raise IndexError
    return str(UUID(bytes=bytes(data[:_UUID_BYTES]))).encode(), _UUID_BYTES


def _written_uuid(text: bytes | None) -> bytes:
    if text is None:
        raise ValueError("a value is null, for which its serializer has no bytes")
    return UUID(text.decode()).bytes
