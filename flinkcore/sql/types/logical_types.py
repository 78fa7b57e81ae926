"""Types of SQL as plans write them, and the Arrow types of their values."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from flinkcore.errors import UnsupportedOperationError


class Root(Enum):
    """Families of types: Flink's ``LogicalTypeRoot``."""

    BOOLEAN = "BOOLEAN"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INT = "INT"
    BIGINT = "BIGINT"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    DECIMAL = "DECIMAL"
    CHAR = "CHAR"
    VARCHAR = "VARCHAR"
    BINARY = "BINARY"
    VARBINARY = "VARBINARY"
    DATE = "DATE"
    TIME = "TIME"
    TIMESTAMP = "TIMESTAMP"
    TIMESTAMP_LTZ = "TIMESTAMP_LTZ"
    INTERVAL_MONTHS = "INTERVAL YEAR TO MONTH"
    INTERVAL_MS = "INTERVAL DAY TO SECOND"
    ARRAY = "ARRAY"
    MAP = "MAP"
    MULTISET = "MULTISET"
    ROW = "ROW"
    NULL = "NULL"
    SYMBOL = "SYMBOL"


INTEGERS: Final = {Root.TINYINT: 8, Root.SMALLINT: 16, Root.INT: 32, Root.BIGINT: 64}
"""Bits of the integers."""

FLOATS: Final = frozenset((Root.FLOAT, Root.DOUBLE))
TEXTS: Final = frozenset((Root.CHAR, Root.VARCHAR))
BINARIES: Final = frozenset((Root.BINARY, Root.VARBINARY))
TIMESTAMPS: Final = frozenset((Root.TIMESTAMP, Root.TIMESTAMP_LTZ))
INTERVALS: Final = frozenset((Root.INTERVAL_MONTHS, Root.INTERVAL_MS))
NESTED: Final = frozenset((Root.ARRAY, Root.MAP, Root.MULTISET, Root.ROW))
NUMERIC: Final = frozenset((*INTEGERS, *FLOATS, Root.DECIMAL))

MAX_LENGTH: Final = 2**31 - 1
"""Length of STRING and BYTES."""


@dataclass(frozen=True)
class LogicalType:
    """A type of SQL: Flink's ``LogicalType``.

    Attributes
    ----------
    root : Root
    nullable : bool
    precision : int
        Digits of a decimal, of the fraction of a second, or the length of a text; otherwise 0.
    scale : int
        Digits of a decimal after the point.
    children : tuple of (str, LogicalType)
        Fields of a row, the element of an array or multiset, key and value of a map.
    time_attribute : str or None
        "ROWTIME" or "PROCTIME" for a time attribute.
    """

    root: Root
    nullable: bool = True
    precision: int = 0
    scale: int = 0
    children: tuple[tuple[str, LogicalType], ...] = ()
    time_attribute: str | None = None

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type of columns of this type.

        Intervals are integers: of months, or of milliseconds.
        """
        return arrow_type(self)

    @property
    def unit(self) -> str:
        """The Arrow unit of a timestamp of this precision."""
        return "ms" if self.precision <= 3 else "us" if self.precision <= 6 else "ns"

    def with_nullable(self, nullable: bool) -> LogicalType:
        """Return this type, nullable or not."""
        return replace(self, nullable=nullable)

    def contains(self, root: Root) -> bool:
        """Return whether values of this type are of a root, or have such values in them."""
        return self.root is root or any(child.contains(root) for _, child in self.children)

    def __str__(self) -> str:
        text = self.root.value
        if self.root is Root.DECIMAL:
            text = f"DECIMAL({self.precision}, {self.scale})"
        elif self.root is Root.TIMESTAMP_LTZ:
            text = f"TIMESTAMP({self.precision}) WITH LOCAL TIME ZONE"
        elif self.root in (Root.CHAR, Root.VARCHAR, Root.BINARY, Root.VARBINARY, Root.TIME, Root.TIMESTAMP):
            text = f"{text}({self.precision})"
        elif self.root is Root.ROW:
            text = f"ROW<{', '.join(f'`{name}` {child}' for name, child in self.children)}>"
        elif self.children:
            text = f"{text}<{', '.join(str(child) for _, child in self.children)}>"
        return text if self.nullable else f"{text} NOT NULL"


_ARROW: Final = {
    Root.BOOLEAN: pa.bool_(),
    Root.TINYINT: pa.int8(),
    Root.SMALLINT: pa.int16(),
    Root.INT: pa.int32(),
    Root.BIGINT: pa.int64(),
    Root.FLOAT: pa.float32(),
    Root.DOUBLE: pa.float64(),
    Root.CHAR: pa.string(),
    Root.VARCHAR: pa.string(),
    Root.BINARY: pa.binary(),
    Root.VARBINARY: pa.binary(),
    Root.DATE: pa.date32(),
    Root.TIME: pa.time32("ms"),
    Root.INTERVAL_MONTHS: pa.int32(),
    Root.INTERVAL_MS: pa.int64(),
    Root.NULL: pa.null(),
}


@lru_cache(maxsize=1024)
def arrow_type(sql: LogicalType) -> pa.DataType:
    """Return the Arrow type of columns of a type."""
    known = _ARROW.get(sql.root)
    if known is not None:
        return known
    if sql.root is Root.DECIMAL:
        return pa.decimal128(sql.precision, sql.scale)
    if sql.root is Root.TIMESTAMP:
        return pa.timestamp(sql.unit)
    if sql.root is Root.TIMESTAMP_LTZ:
        return pa.timestamp(sql.unit, "UTC")
    if sql.root is Root.ARRAY:
        return pa.list_(arrow_type(sql.children[0][1]))
    if sql.root is Root.MAP:
        return pa.map_(*(arrow_type(child) for _, child in sql.children))
    if sql.root is Root.MULTISET:
        return pa.map_(arrow_type(sql.children[0][1]), pa.int32())
    if sql.root is Root.ROW:
        return pa.struct([pa.field(name, arrow_type(child)) for name, child in sql.children])
    raise UnsupportedOperationError(f"the type {sql} has no columns")


_TOKEN = re.compile(r"\s*(`(?:[^`]|``)*`|'(?:[^']|'')*'|\w+|[<>(),])")

_SYNONYMS: Final = {
    "INTEGER": Root.INT,
    "STRING": Root.VARCHAR,
    "BYTES": Root.VARBINARY,
    "DEC": Root.DECIMAL,
    "NUMERIC": Root.DECIMAL,
    "CHARACTER": Root.CHAR,
}
_LENGTHS: Final = {"STRING": MAX_LENGTH, "BYTES": MAX_LENGTH}
_PRECISIONS: Final = {Root.DECIMAL: 10, Root.TIMESTAMP: 6, Root.CHAR: 1, Root.VARCHAR: 1, Root.BINARY: 1}
_PRECISIONS[Root.VARBINARY] = 1


class _Text:
    """Reads a type from its text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _TOKEN.findall(text)
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def next(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def takes(self, *words: str) -> bool:
        if tuple(self.tokens[self.at : self.at + len(words)]) == words:
            self.at += len(words)
            return True
        return False

    def numbers(self) -> list[int]:
        if not self.takes("("):
            return []
        found = [int(self.next())]
        while self.takes(","):
            found.append(int(self.next()))
        self.takes(")")
        return found

    def type(self) -> LogicalType:
        found = self._bare()
        if self.takes("NOT", "NULL"):
            return found.with_nullable(False)
        self.takes("NULL")
        return found

    def _bare(self) -> LogicalType:
        word = self.next()
        if word == "INTERVAL":
            unit = self.next()
            self.numbers()
            if self.takes("TO"):
                unit = f"{unit} {self.next()}"
                self.numbers()
            months = unit.startswith(("YEAR", "MONTH"))
            return LogicalType(Root.INTERVAL_MONTHS if months else Root.INTERVAL_MS)
        if word == "DOUBLE":
            self.takes("PRECISION")
        if word in ("ARRAY", "MULTISET", "MAP"):
            return LogicalType(Root(word), children=tuple(("", child) for child in self._children()))
        if word == "ROW":
            return LogicalType(Root.ROW, children=self._fields())
        root = _SYNONYMS.get(word) or (Root(word) if word in Root.__members__ else None)
        if root is None:
            raise UnsupportedOperationError(f"the type {self.text} is not supported: {word} is not known")
        precision = self.numbers()
        if root is Root.TIMESTAMP:
            if self.takes("WITH", "LOCAL", "TIME", "ZONE"):
                root = Root.TIMESTAMP_LTZ
            elif self.takes("WITH", "TIME", "ZONE"):
                raise UnsupportedOperationError("the type TIMESTAMP WITH TIME ZONE is not supported")
            self.takes("WITHOUT", "TIME", "ZONE")
        default = _LENGTHS.get(word, _PRECISIONS.get(root, 6 if root is Root.TIMESTAMP_LTZ else 0))
        return LogicalType(
            root,
            precision=precision[0] if precision else default,
            scale=precision[1] if len(precision) > 1 else 0,
        )

    def _children(self) -> list[LogicalType]:
        self.takes("<")
        found = [self.type()]
        while self.takes(","):
            found.append(self.type())
        self.takes(">")
        return found

    def _fields(self) -> tuple[tuple[str, LogicalType], ...]:
        self.takes("<")
        found: list[tuple[str, LogicalType]] = []
        while not self.takes(">"):
            name = self.next()
            name = name[1:-1].replace("``", "`") if name.startswith("`") else name
            found.append((name, self.type()))
            if self.peek().startswith("'"):
                self.next()  # a comment
            self.takes(",")
        return tuple(found)


@lru_cache(maxsize=4096)
def _type_of_text(text: str) -> LogicalType:
    return _Text(text).type()


_JSON_ROOTS: Final = {
    "TIMESTAMP_WITHOUT_TIME_ZONE": Root.TIMESTAMP,
    "TIMESTAMP_WITH_LOCAL_TIME_ZONE": Root.TIMESTAMP_LTZ,
    "TIME_WITHOUT_TIME_ZONE": Root.TIME,
    "INTEGER": Root.INT,
}


def type_of(written: Any) -> LogicalType:
    """Return a type as a plan writes it: as text, or as an object where text does not say all.

    Raises
    ------
    UnsupportedOperationError
        If there is no such type here, such as a structured or RAW one.
    """
    if isinstance(written, str):
        return _type_of_text(written)
    name = written["type"]
    nullable = bool(written.get("nullable", True))
    if name == "ROW":
        fields = tuple((field["name"], type_of(field["fieldType"])) for field in written["fields"])
        return LogicalType(Root.ROW, nullable, children=fields)
    if name in ("ARRAY", "MULTISET"):
        return LogicalType(Root(name), nullable, children=(("", type_of(written["elementType"])),))
    if name == "MAP":
        children = (("", type_of(written["keyType"])), ("", type_of(written["valueType"])))
        return LogicalType(Root.MAP, nullable, children=children)
    root = _JSON_ROOTS.get(name) or (Root(name) if name in Root.__members__ else None)
    if root is None:
        raise UnsupportedOperationError(f"the type {name} is not supported")
    return LogicalType(
        root,
        nullable,
        precision=int(written.get("precision", written.get("length", 0))),
        scale=int(written.get("scale", 0)),
        time_attribute=written.get("kind") if written.get("kind") in ("ROWTIME", "PROCTIME") else None,
    )
