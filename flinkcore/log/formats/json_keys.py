"""Keys of JSON lines that the columns of a log do not have: counted, located, and reported with the types to give."""

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass

import pyarrow as pa

from flinkcore._internal.arrow.unified_types import unified_schema
from flinkcore._native.json_lines import JsonKeys

_VALUE, _OBJECT, _ARRAY = range(3)
_MOST_SHOWN = 5
_MOST_CHARACTERS = 2000


@dataclass(frozen=True)
class _Other:
    """A key that no column has.

    Attributes
    ----------
    name : str
        With the keys around it: ``payload.commits[].size``.
    column : str
        The outermost of these.
    count : int
    first_line : int
        Counted from 1.
    """

    name: str
    column: str
    count: int
    first_line: int


class OtherKeys:
    """Counts the keys of one file that the columns of its log do not have, at any depth.

    Parameters
    ----------
    columns : pyarrow.Schema
        All columns of the log, of plain types.
    given : collection of str
        Columns whose types the user has given: keys within their values are not looked at.
    infer : callable
        Returns the schema of a line, or raises pyarrow.ArrowInvalid.

    Attributes
    ----------
    scanner : JsonKeys
        Takes the blocks of the file.
    """

    def __init__(
        self, columns: pa.Schema, given: Collection[str], infer: Callable[[bytes], pa.Schema]
    ) -> None:
        self._infer = infer
        self._found = columns
        self._given = frozenset(given)
        self._known: list[tuple[int, bytes, int]] = []
        self._names: list[str] = []
        self._add(-1, "", "", pa.struct(list(columns)))
        self.scanner = JsonKeys(self._known)
        self._first_line = 1
        self._inferred = 0

    def _add(self, parent: int, key: str, name: str, kind: pa.DataType) -> None:
        number = len(self._known)
        is_object, is_array = pa.types.is_struct(kind), pa.types.is_list(kind)
        if parent == 0 and name in self._given:
            is_object = is_array = False
        looked_into = _OBJECT if is_object else _ARRAY if is_array else _VALUE
        self._known.append((parent, key.encode(), looked_into))
        self._names.append(name)
        if is_object:
            for field in kind:
                self._add(number, field.name, _within(name, field.name), field.type)
        elif is_array:
            self._add(number, "", f"{name}[]", kind.value_type)

    def end_block(self, block: bytes) -> None:
        """Infer the types of keys that came first in the block that has been scanned."""
        found = self.scanner.others()
        if len(found) > self._inferred:
            lines = block.split(b"\n")
            for _, _, _, line in found[self._inferred : _MOST_SHOWN]:
                try:
                    inferred = self._infer(lines[line - self._first_line])
                except (pa.ArrowInvalid, IndexError):  # an object that goes over lines
                    continue
                self._found = unified_schema(self._found, inferred)
            self._inferred = len(found)
        self._first_line = self.scanner.line

    def look_into(self, block: bytes) -> None:
        """Count the keys of a block, and infer the types of those that came first in it."""
        self.scanner.scan(block)
        self.end_block(block)

    def skip(self, block: bytes) -> None:
        """Take a block of blank lines."""
        self.scanner.scan(block)
        self._first_line = self.scanner.line

    def warning(self, file: str) -> str | None:
        """Return what to warn of once the whole file has been read; None if all keys are known."""
        others = self._others()
        if not others:
            return None
        shown = [
            f"{other.name!r} ({other.count:,} times, first in line {other.first_line})"
            for other in others[:_MOST_SHOWN]
        ]
        left = self.scanner.left_out + sum(other.count for other in others[_MOST_SHOWN:])
        more = f", and {left:,} times others" if left else ""
        return (
            f"{file} has keys that are not in the columns of the log, which come from the beginnings of its files, so "
            f"their values are left out: {', '.join(shown)}{more}. Give the types of these columns to read them: "
            f"schema={{{self._types_to_give(others[:_MOST_SHOWN])}}}"
        )

    def _others(self) -> list[_Other]:
        """Return the keys, in the order of their first lines; one that is spelt in several ways is one."""
        others: dict[str, _Other] = {}
        for parent, spelling, count, line in self.scanner.others():
            key = _unescaped(spelling)
            name = _within(self._names[parent], key)
            known = others.get(name)
            column = self._column(parent) or key
            first_line = line if known is None else known.first_line
            others[name] = _Other(name, column, count + (known.count if known else 0), first_line)
        return list(others.values())

    def _column(self, number: int) -> str:
        """Return the column that a value is in."""
        while number > 0 and self._known[number][0] > 0:
            number = self._known[number][0]
        return self._known[number][1].decode()

    def _types_to_give(self, others: list[_Other]) -> str:
        types = []
        for column in dict.fromkeys(other.column for other in others):
            at = self._found.get_field_index(column)
            code = "type" if at < 0 else type_code(self._found.field(at).type)
            if len(code) > _MOST_CHARACTERS:
                within = ", ".join(repr(other.name) for other in others if other.column == column)
                code = f"type with {within}"
            types.append(f"{column!r}: {code}")
        return ", ".join(types)


def _within(name: str, key: str) -> str:
    return f"{name}.{key}" if name else key


def _unescaped(spelling: bytes) -> str:
    try:
        return str(json.loads(b'"' + spelling + b'"', strict=False))
    except ValueError:
        return spelling.decode(errors="replace")


def type_code(kind: pa.DataType) -> str:
    """Return Python code that makes a type which was inferred from JSON; of nulls alone, that of text."""
    types = pa.types
    if types.is_null(kind):
        return "pyarrow.string()"
    if types.is_struct(kind):
        return (
            f"pyarrow.struct({{{', '.join(f'{field.name!r}: {type_code(field.type)}' for field in kind)}}})"
        )
    if types.is_list(kind):
        return f"pyarrow.list_({type_code(kind.value_type)})"
    if types.is_timestamp(kind):
        return "pyarrow.timestamp('us')"  # fractions of a second may come later
    return f"pyarrow.{_FACTORIES.get(str(kind), str(kind))}()"


_FACTORIES = {"double": "float64", "bool": "bool_"}
