"""Expressions of a plan: Flink's serialized ``RexNode``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, TypeAlias

from flinkcore.errors import UnsupportedOperationError
from flinkcore.sql.types.logical_types import LogicalType, Root, type_of, without_hash

_BUILT_IN: Final = re.compile(r"\$(.*)\$\d+")

FIELD: Final = "FIELD"
"""Name of the call that returns a field of a row."""


@dataclass(frozen=True)
class InputRef:
    """A column of the input, by its number."""

    index: int
    type: LogicalType

    def __str__(self) -> str:
        return f"${self.index}"


@dataclass(frozen=True)
class Bound:
    """An end of a range of values.

    Attributes
    ----------
    value : object
        As the plan writes it.
    is_closed : bool
        Whether the value itself belongs to the range.
    """

    value: Any
    is_closed: bool


@dataclass(frozen=True)
class Sarg:
    """A set of values to search (Calcite's ``Sarg``).

    Attributes
    ----------
    ranges : tuple of (Bound or None, Bound or None)
        Lower and upper bounds; None where the range has no end.
    null_as : bool or None
        The result for a null value.
    """

    ranges: tuple[tuple[Bound | None, Bound | None], ...]
    null_as: bool | None


@dataclass(frozen=True)
class Literal:
    """A constant, as the plan writes it; intervals are months or milliseconds as text."""

    value: Any
    type: LogicalType
    sarg: Sarg | None = None

    def __str__(self) -> str:
        value = self.value if self.sarg is None else self.sarg
        return f"{value!r}:{self.type}"


@dataclass(frozen=True)
class RexCall:
    """A call of a function.

    Attributes
    ----------
    name : str
        Name without the marks around it, such as ``CAST`` of ``$CAST$1``.
    operands : tuple of Rex
    type : LogicalType
        Type of the result.
    """

    name: str
    operands: tuple[Rex, ...]
    type: LogicalType

    @cached_property
    def _hash(self) -> int:
        return hash((self.name, self.operands, self.type))

    def __hash__(self) -> int:
        return self._hash  # a tree is looked up for each batch

    def __getstate__(self) -> dict[str, Any]:
        return without_hash(self.__dict__)

    @property
    def is_of_catalog(self) -> bool:
        """Return whether it is a function of a catalog, and not a built-in one."""
        return self.name.startswith("`")

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.operands))}):{self.type}"


@dataclass(frozen=True)
class UserCall(RexCall):
    """A call of a function of the user.

    Attributes
    ----------
    function : object
        The function, whose ``evaluate`` takes the rows and the call.
    """

    function: Any = field(compare=False)

    def __hash__(self) -> int:
        return self._hash


Rex: TypeAlias = InputRef | Literal | RexCall


def rex_of(written: Mapping[str, Any]) -> Rex:
    """Return an expression as a plan writes it.

    Raises
    ------
    UnsupportedOperationError
        If it is of another kind, such as a variable of a pattern or a field of a correlated row.
    """
    kind = written["kind"]
    if kind == "INPUT_REF":
        return InputRef(written["inputIndex"], type_of(written["type"]))
    if kind == "LITERAL":
        return _literal(written)
    if kind == "CALL":
        name, operands = function_name(written), tuple(map(rex_of, written.get("operands", ())))
        # The Table API leaves names in: the columns of the node have them.
        return operands[0] if name == "AS" else RexCall(name, operands, type_of(written["type"]))
    if kind == "FIELD_ACCESS":
        row = rex_of(written["expr"])
        name = written["name"]
        return RexCall(
            FIELD, (row, Literal(name, LogicalType(Root.SYMBOL, False))), _field_type(row.type, name)
        )
    raise UnsupportedOperationError(f"expressions of the kind {kind} are not supported")


def _field_type(row: LogicalType, name: str) -> LogicalType:
    kind = dict(row.children)[name]
    return kind.with_nullable(kind.nullable or row.nullable)


def input_refs(rex: Rex) -> Iterator[int]:
    """Yield the numbers of the columns that an expression reads."""
    if isinstance(rex, InputRef):
        yield rex.index
    elif isinstance(rex, RexCall):
        for operand in rex.operands:
            yield from input_refs(operand)


def shifted(rex: Rex, by: int) -> Rex:
    """Return an expression over columns of which so many others come before."""
    if isinstance(rex, InputRef):
        return InputRef(rex.index + by, rex.type)
    if isinstance(rex, RexCall):
        return RexCall(rex.name, tuple(shifted(each, by) for each in rex.operands), rex.type)
    return rex


def function_name(written: Mapping[str, Any]) -> str:
    """Return the name of the function of a call: that of one of a catalog has its quotes."""
    internal = written.get("internalName")
    if internal is None:
        name = written.get("catalogName") or f"`{written.get('systemName') or written.get('class')}`"
        return str(name)
    return built_in_name(internal)


def built_in_name(internal: str) -> str:
    """Return the name of a built-in function without the marks and the version around it: CAST of ``$CAST$1``."""
    match = _BUILT_IN.fullmatch(internal)
    return internal if match is None else match[1]


def _literal(written: Mapping[str, Any]) -> Literal:
    if "symbol" in written:
        return Literal(written["value"], LogicalType(Root.SYMBOL, False))
    kind = type_of(written["type"])
    sarg = written.get("sarg")
    if sarg is None:
        return Literal(written.get("value"), kind)
    ranges = tuple((_bound(each.get("lower")), _bound(each.get("upper"))) for each in sarg["ranges"])
    null_as = {"TRUE": True, "FALSE": False}.get(sarg.get("nullAs", "UNKNOWN"))
    return Literal(None, kind, Sarg(ranges, null_as))


def _bound(written: Mapping[str, Any] | None) -> Bound | None:
    return None if written is None else Bound(written["value"], written["boundType"] == "CLOSED")
