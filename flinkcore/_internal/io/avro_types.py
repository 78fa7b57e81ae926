"""Types and values of Avro in Arrow."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable
from decimal import Context, Decimal
from functools import partial
from itertools import combinations
from typing import Any, Final

from flinkcore.errors import ConfigurationError, DataError

Conversion = Callable[[Any], Any]
"""Function from a value, which is not None, to another; no function if the value stays unchanged."""

_PRIMITIVES: Final = {
    "null": "null",
    "boolean": "bool",
    "int": "int32",
    "long": "int64",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
}
_LOGICAL: Final = {
    ("int", "date"): ("date32",),
    ("int", "time-millis"): ("time32", "ms"),
    ("long", "time-micros"): ("time64", "us"),
    ("long", "timestamp-millis"): ("timestamp", "ms", "UTC"),
    ("long", "timestamp-micros"): ("timestamp", "us", "UTC"),
    ("long", "local-timestamp-millis"): ("timestamp", "ms"),
    ("long", "local-timestamp-micros"): ("timestamp", "us"),
    ("long", "timestamp-nanos"): ("timestamp", "ns", "UTC"),
    ("long", "local-timestamp-nanos"): ("timestamp", "ns"),
}
_MOST_DIGITS: Final = 76
_MOST_BITS: Final = 256
_EXACT: Final = Context(prec=100)
_CLASSES: Final[dict[str, tuple[type, ...]]] = {
    "boolean": (bool,),
    "int": (int, datetime.date, datetime.time),
    "long": (int, datetime.datetime, datetime.time),
    "float": (float,),
    "double": (float,),
    "bytes": (bytes, bytearray, Decimal),
    "fixed": (bytes, bytearray, Decimal),
    "string": (str, uuid.UUID),
    "enum": (str,),
    "array": (list,),
    "map": (dict,),
    "record": (dict,),
    "error": (dict,),
}
"""The classes of values of a type, of any logical type of it."""


class AvroTypes:
    """The types of a parsed schema, which holds those that it refers to by name.

    Parameters
    ----------
    schema : object
        Schema as returned by :func:`~flinkcore._internal.io.avro_files.parsed_schema`.
    takes_unions : bool
        Whether a union of several types is a struct with the fields member0, member1, ..., all but one null, as in
        Parquet; otherwise it is a ConfigurationError. One with types whose values have a Python class in common, such
        as two records, always is: nothing says of which of them a value is.
    """

    def __init__(self, schema: Any, takes_unions: bool = True) -> None:
        self.schema = schema
        self._takes_unions = takes_unions
        self._named: dict[str, Any] = {}
        self._collect(schema)

    def _collect(self, schema: Any) -> None:
        if isinstance(schema, list):
            for branch in schema:
                self._collect(branch)
        elif isinstance(schema, dict):
            if schema["type"] in ("record", "error", "enum", "fixed"):
                self._named[schema["name"]] = schema
            for inner in (
                *(field["type"] for field in schema.get("fields", ())),
                *(schema[key] for key in ("items", "values") if key in schema),
                schema["type"],
            ):
                if not isinstance(inner, str):
                    self._collect(inner)

    def _resolved(self, schema: Any) -> tuple[Any, bool]:
        """Return a type that is neither a name nor a union with null, and whether its values may be null."""
        if isinstance(schema, list):
            branches = [branch for branch in schema if branch != "null"]
            if len(branches) != 1:
                if not branches or not self._takes_unions:
                    raise ConfigurationError(
                        f"a field has one type beside null, not those of the union of {_listed(schema)}. "
                        "Write another one"
                    )
                self._classes_of_union(branches)
                return branches, len(branches) != len(schema)
            return self._resolved(branches[0])[0], len(branches) != len(schema)
        schema = self.named(schema)
        if isinstance(schema, dict) and isinstance(schema["type"], list | dict):
            return self._resolved(schema["type"])
        return schema, schema == "null"

    def named(self, schema: Any) -> Any:
        """Return the type that a name in the schema refers to, and any other type as it is."""
        return self._named.get(schema, schema) if isinstance(schema, str) else schema

    def _classes(self, schema: Any) -> set[type]:
        schema, _ = self._resolved(schema)
        if isinstance(schema, list):
            return set().union(*self._classes_of_union(schema))
        return set(_CLASSES[schema if isinstance(schema, str) else schema["type"]])

    def _classes_of_union(self, branches: list[Any]) -> list[set[type]]:
        """Return the classes of each branch; raise ConfigurationError if two branches have one in common."""
        classes = [self._classes(branch) for branch in branches]
        for (first, ours), (second, theirs) in combinations(zip(branches, classes, strict=True), 2):
            if ours & theirs:
                raise ConfigurationError(
                    f"the union of {_listed(branches)} is not taken: values of {_listed([first])} and of "
                    f"{_listed([second])} cannot be told apart; write a record with a field for each, null but for one"
                )
        return classes

    def fields(self) -> list[tuple[str, Any]]:
        """Return names and types of the fields of the records; raise ConfigurationError if there are no records."""
        schema, _ = self._resolved(self.schema)
        if not isinstance(schema, dict) or schema["type"] not in ("record", "error"):
            raise ConfigurationError(f"rows need a schema of records, not {self.schema!r:.200}")
        return [(field["name"], field["type"]) for field in schema["fields"]]

    def arrow_schema(self) -> Any:
        """Return the ``pyarrow.Schema`` of the records; raise ConfigurationError if a field has no one type."""
        import pyarrow as pa

        return pa.schema([self._arrow_field(name, field) for name, field in self.fields()])

    def _arrow_field(self, name: str, schema: Any) -> Any:
        import pyarrow as pa

        try:
            resolved, is_nullable = self._resolved(schema)
            return pa.field(name, self.arrow_type(resolved), is_nullable)
        except ConfigurationError as failure:
            raise ConfigurationError(f"field {name!r}: {failure}") from failure

    def arrow_type(self, schema: Any) -> Any:
        """Return the ``pyarrow.DataType`` of a type; ConfigurationError if it is a union of several."""
        import pyarrow as pa

        schema, _ = self._resolved(schema)
        if isinstance(schema, list):
            return pa.struct([(f"member{index}", self.arrow_type(each)) for index, each in enumerate(schema)])
        if isinstance(schema, str):
            return pa.type_for_alias(_PRIMITIVES[schema])
        kind, logical = schema["type"], schema.get("logicalType")
        if kind in ("record", "error"):
            return pa.struct([self._arrow_field(field["name"], field["type"]) for field in schema["fields"]])
        if kind == "array":
            return pa.list_(self.arrow_type(schema["items"]))
        if kind == "map":
            return pa.map_(pa.string(), self.arrow_type(schema["values"]))
        if kind == "enum":
            return pa.string()
        if logical == "decimal" and kind in ("bytes", "fixed"):
            if schema["precision"] > _MOST_DIGITS:
                raise ConfigurationError(
                    f"a decimal has up to {_MOST_DIGITS} digits in Arrow, not {schema['precision']}. Write it as a text"
                )
            make = pa.decimal128 if schema["precision"] <= 38 else pa.decimal256
            return make(schema["precision"], schema.get("scale", 0))
        if kind == "fixed":
            return pa.string() if _is_uuid(schema) else pa.binary()
        made = _LOGICAL.get((kind, logical))
        if made is not None:
            return getattr(pa, made[0])(*made[1:])
        return pa.type_for_alias(_PRIMITIVES[kind])

    def to_arrow(self, schema: Any) -> Conversion | None:
        """Return the conversion of a value for Arrow: maps to pairs, UUIDs to texts, values of unions to structs."""
        return self._conversion(
            schema,
            lambda map_: list(map_.items()),
            lambda leaf: str if _is_uuid(leaf) else None,
            partial(self._to_union, self.to_arrow),
        )

    def raw_to_arrow(self, schema: Any) -> Conversion | None:
        """Return what `to_arrow` does, for values that were decoded without logical types: times are numbers."""
        return self._conversion(
            schema, lambda map_: list(map_.items()), _of_raw, partial(self._to_union, self.raw_to_arrow)
        )

    def from_arrow(self, schema: Any) -> Conversion | None:
        """Return the conversion of a value from Arrow: pairs to maps, structs to values of unions."""
        return self._conversion(schema, dict, lambda leaf: None, self._from_union)

    def _to_union(self, of_branch: Callable[[Any], Conversion | None], branches: list[Any]) -> Conversion:
        classes = self._classes_of_union(branches)
        if not any(int in each for each in classes):  # an integer is a fraction then
            classes = [each | {int} if float in each else each for each in classes]
        members = [
            (f"member{index}", tuple(each), bool in each, of_branch(branch))
            for index, (branch, each) in enumerate(zip(branches, classes, strict=True))
        ]

        def convert(value: Any) -> Any:
            for name, taken, takes_booleans, inner in members:
                if isinstance(value, taken) and (takes_booleans or not isinstance(value, bool)):
                    return {name: value if inner is None else inner(value)}
            raise DataError(f"{value!r:.80} is of no type of the union of {_listed(branches)}")

        return convert

    def _from_union(self, branches: list[Any]) -> Conversion:
        members = [(f"member{index}", self.from_arrow(branch)) for index, branch in enumerate(branches)]

        def convert(struct: dict[str, Any]) -> Any:
            for name, inner in members:
                value = struct.get(name)
                if value is not None:
                    return value if inner is None else inner(value)
            return None

        return convert

    def _conversion(
        self,
        schema: Any,
        of_map: Conversion,
        of_leaf: Callable[[dict[str, Any]], Conversion | None],
        of_union: Callable[[list[Any]], Conversion],
    ) -> Conversion | None:
        schema, _ = self._resolved(schema)
        if isinstance(schema, list):
            return of_union(schema)
        if isinstance(schema, str):
            return None
        kind = schema["type"]
        if kind in ("record", "error"):
            fields = {
                field["name"]: convert
                for field in schema["fields"]
                if (convert := self._conversion(field["type"], of_map, of_leaf, of_union)) is not None
            }
            return None if not fields else lambda record: _with_fields(record, fields)
        if kind == "array":
            item = self._conversion(schema["items"], of_map, of_leaf, of_union)
            if item is None:
                return None
            return lambda values: [None if value is None else item(value) for value in values]
        if kind == "map":
            value = self._conversion(schema["values"], of_map, of_leaf, of_union)
            if value is None:
                return of_map
            return lambda pairs: _with_values(of_map(pairs), value)
        return of_leaf(schema)


def _is_uuid(schema: dict[str, Any]) -> bool:
    is_known = schema["type"] == "string" or (schema["type"] == "fixed" and schema["size"] == 16)
    return is_known and schema.get("logicalType") == "uuid"


def _of_raw(schema: dict[str, Any]) -> Conversion | None:
    """Return the conversion of a value that was decoded without its logical type."""
    if _is_uuid(schema):
        return _uuid_text if schema["type"] == "string" else lambda raw: str(uuid.UUID(bytes=raw))
    if schema["type"] in ("bytes", "fixed") and schema.get("logicalType") == "decimal":
        return partial(_decimal, schema.get("scale", 0))
    return None


def _uuid_text(text: str) -> str:
    return str(uuid.UUID(text))


def _decimal(scale: int, raw: bytes) -> Decimal:
    number = int.from_bytes(raw, "big", signed=True)
    if number.bit_length() > _MOST_BITS:
        raise ValueError(f"a decimal of {len(raw)} bytes has more than {_MOST_DIGITS} digits")
    return Decimal(number).scaleb(-scale, _EXACT)


def _listed(schemas: list[Any]) -> str:
    return ", ".join(map(_name, schemas))


def _name(schema: Any) -> str:
    if not isinstance(schema, dict):
        return str(schema)
    kind = schema.get("name") or schema["type"]
    return f"{schema['logicalType']} ({kind})" if "logicalType" in schema else _name(kind)


def _with_fields(record: dict[str, Any], fields: dict[str, Conversion]) -> dict[str, Any]:
    converted = dict(record)
    for name, convert in fields.items():
        value = converted.get(name)
        if value is not None:
            converted[name] = convert(value)
    return converted


def _with_values(pairs: Any, convert: Conversion) -> Any:
    if isinstance(pairs, dict):
        return {key: None if value is None else convert(value) for key, value in pairs.items()}
    return [(key, None if value is None else convert(value)) for key, value in pairs]
