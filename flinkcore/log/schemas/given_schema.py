"""The schema that a user gives for a log, in place of the one that its files have."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import pyarrow as pa

from flinkcore._internal.arrow.plain_columns import plain_type
from flinkcore._internal.arrow.schemas import repeated_names
from flinkcore.errors import ConfigurationError

_EXAMPLE: Final = "such as 'user STRING, price DECIMAL(10, 2)', or {'zip': 'string'} for some columns alone"
_TOKEN: Final = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^\s`<>(),:]+)|([<>(),:]))")
_TYPES: Final[dict[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "varchar": pa.string(),
    "char": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ltz": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
"""Spark's names of types, in DDL and in the JSON of its schemas."""


@dataclass(frozen=True)
class GivenSchema:
    """Types of columns that are given, and not found in the files.

    Attributes
    ----------
    types : mapping of str to pyarrow.DataType
        Plain types by column.
    is_whole : bool
        Whether the log has these columns alone; else it has those of its files, too.
    """

    types: Mapping[str, pa.DataType] = field(default_factory=dict)
    is_whole: bool = False

    @classmethod
    def of(cls, schema: Any) -> "GivenSchema":
        """Take a schema in the forms that users have it in.

        Parameters
        ----------
        schema : pyarrow.Schema, pyspark.sql.types.StructType, str, mapping or None
            A schema of Arrow's or Spark's or a DDL string has all columns of the log. A mapping of columns to types, or
            to their names in Arrow or Spark, leaves the others to the files.

        Raises
        ------
        ConfigurationError
            If it is none of these, names a column twice, or has a type that is not known.
        """
        if schema is None:
            return cls()
        if isinstance(schema, Mapping):
            return cls({_name(name): _type_of(name, kind) for name, kind in schema.items()})
        if isinstance(schema, pa.Schema):
            columns = list(zip(schema.names, schema.types, strict=True))
        elif isinstance(schema, str):
            columns = _Ddl(schema).columns()
        elif callable(getattr(schema, "jsonValue", None)):
            columns = list(_struct(schema.jsonValue()))
        else:
            raise ConfigurationError(f"schema= is a schema of Arrow's or Spark's, {_EXAMPLE}, not {schema!r}")
        names = [name for name, _ in columns]
        if not names:
            raise ConfigurationError(
                "schema= has no columns: name those that the log has, with the timestamp"
            )
        if repeated := repeated_names(names):
            raise ConfigurationError(f"schema= names column {repeated[0]!r} more than once")
        return cls({name: plain_type(kind) for name, kind in columns}, True)


def _name(name: object) -> str:
    if isinstance(name, str):
        return name
    raise ConfigurationError(f"schema= has the column {name!r}: the name of a column is a text")


def _type_of(name: str, kind: Any) -> pa.DataType:
    if isinstance(kind, pa.DataType):
        return plain_type(kind)
    if isinstance(kind, str):
        with suppress(ValueError):
            return plain_type(pa.type_for_alias(kind))
        return _Ddl(kind).only_type()
    if callable(getattr(kind, "jsonValue", None)):
        return _of_spark(kind.jsonValue())
    raise ConfigurationError(f"schema= has {kind!r} as the type of column {name!r}: give a type, {_EXAMPLE}")


def _struct(value: Mapping[str, Any]) -> Iterator[tuple[str, pa.DataType]]:
    if value.get("type") != "struct":
        raise ConfigurationError(
            f"schema= is a StructType with the columns of the log, not {value.get('type')!r}"
        )
    for each in value["fields"]:
        yield each["name"], _of_spark(each["type"])


def _of_spark(value: Any) -> pa.DataType:
    """Return the type that the JSON of a type of Spark's describes."""
    if isinstance(value, str):
        return _Ddl(value).only_type()
    kind = value["type"]
    if kind == "struct":
        return pa.struct(list(_struct(value)))
    if kind == "array":
        return pa.list_(_of_spark(value["elementType"]))
    if kind == "map":
        return pa.map_(_of_spark(value["keyType"]), _of_spark(value["valueType"]))
    raise ConfigurationError(f"schema= has the type {kind!r}, which has no type in Arrow")


class _Ddl:
    """Reads columns and types as Spark's ``StructType.fromDDL`` takes them."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, bool]] = []
        place = 0
        while place < len(text.rstrip()):
            found = _TOKEN.match(text, place)
            if found is None:
                raise self._fault(f"cannot be read from character {place + 1}")
            quoted, word, mark = found.groups()
            self._tokens.append((quoted.replace("``", "`"), True) if quoted else (word or mark, bool(word)))
            place = found.end()
        self._next = 0

    def columns(self) -> list[tuple[str, pa.DataType]]:
        """Return the columns with their types."""
        columns = self._listed(self._column) if self._tokens else []
        self._end()
        return columns

    def only_type(self) -> pa.DataType:
        """Return the type that the whole text names."""
        kind = self._type()
        self._end()
        return plain_type(kind)

    def _column(self) -> tuple[str, pa.DataType]:
        name = self._word("the name of a column")
        self._takes(":")
        kind = self._type()
        if self._takes("not"):
            if not self._takes("null"):
                raise self._fault("has NOT without NULL")
        elif self._takes("comment"):
            raise self._fault("has a comment: leave it out")
        return name, kind

    def _type(self) -> pa.DataType:
        name = self._word("a type").lower()
        if name == "array":
            return self._within(lambda: pa.list_(self._type()))
        if name == "map":
            return self._within(self._map)
        if name == "struct":
            return self._within(lambda: pa.struct(self._listed(self._column)))
        numbers = [int(text) for text in self._arguments()]
        if name in ("decimal", "dec", "numeric"):
            precision, scale = (*numbers, *(10, 0)[len(numbers) :])[:2]
            try:
                return pa.decimal128(precision, scale)
            except ValueError as error:
                raise self._fault(f"has a decimal of {precision} digits: {error}") from error
        if name not in _TYPES:
            raise self._fault(
                f"has the type {name!r}, which is not known: known are {', '.join(_TYPES)}, decimal, "
                "array, map and struct"
            )
        return _TYPES[name]

    def _map(self) -> pa.DataType:
        key = self._type()
        self._need(",")
        return pa.map_(key, self._type())

    def _within(self, read: Callable[[], pa.DataType]) -> pa.DataType:
        self._need("<")
        kind = read()
        self._need(">")
        return kind

    def _listed(self, read: Callable[[], Any]) -> list[Any]:
        read_all = [read()]
        while self._takes(","):
            read_all.append(read())
        return read_all

    def _arguments(self) -> list[str]:
        if not self._takes("("):
            return []
        numbers: list[str] = self._listed(partial(self._word, "a number"))
        self._need(")")
        if not all(text.isdecimal() for text in numbers):
            raise self._fault(f"has {', '.join(numbers)} where a number belongs")
        return numbers

    def _word(self, what: str) -> str:
        text, is_word = self._tokens[self._next] if self._next < len(self._tokens) else ("", False)
        if not is_word:
            raise self._fault_at(what)
        self._next += 1
        return text

    def _takes(self, text: str) -> bool:
        is_next = self._next < len(self._tokens) and self._tokens[self._next][0].lower() == text
        self._next += is_next
        return is_next

    def _need(self, mark: str) -> None:
        if not self._takes(mark):
            raise self._fault_at(mark)

    def _end(self) -> None:
        if self._next < len(self._tokens):
            raise self._fault_at("a comma or its end")

    def _fault_at(self, what: str) -> ConfigurationError:
        found = repr(self._tokens[self._next][0]) if self._next < len(self._tokens) else "its end"
        return self._fault(f"has {found} where {what} belongs")

    def _fault(self, fault: str) -> ConfigurationError:
        return ConfigurationError(f"schema= {self._text!r} {fault}. Write it as Spark's DDL, {_EXAMPLE}")
