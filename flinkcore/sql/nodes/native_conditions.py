"""Conditions of MATCH_RECOGNIZE over integers, doubles and times as native steps; others are evaluated over columns."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from flinkcore._native.pattern_matching import MOST_STEPS
from flinkcore.datastream.graph.row_patterns import NativeStep
from flinkcore.errors import UnsupportedOperationError
from flinkcore.sql.expressions.evaluation import scalar_of
from flinkcore.sql.plan.rex import InputRef, Literal, Rex, RexCall
from flinkcore.sql.types.logical_types import INTEGERS, TIMESTAMPS, LogicalType, Root

Leaves = Mapping[int, NativeStep]
"""The step that takes the value of each column of an expression which is one of a row, or an aggregate."""

_ARITHMETIC: Final = {"+": "+", "-": "-", "*": "*", "/": "/", "/INT": "/", "MOD": "%", "%": "%"}
_COMPARISONS: Final = {
    "<": ("<", False, False),
    "<=": ("<=", False, False),
    "=": ("=", False, False),
    ">": ("<", True, False),
    ">=": ("<=", True, False),
    "<>": ("=", False, True),
}
"""Operation, whether its operands change places, and whether it is negated."""


class _NotNative(Exception):
    """An expression has no native steps."""


def native_steps(rex: Rex, leaves: Leaves) -> tuple[NativeStep, ...] | None:
    """Return the steps of a condition, or None if it has other types or functions."""
    try:
        steps = _steps(rex, leaves)
    except (_NotNative, UnsupportedOperationError):
        return None
    return tuple(steps) if len(steps) <= MOST_STEPS else None


def is_native(kind: LogicalType) -> bool:
    """Return whether values of a type are numbers of 64 bits."""
    return kind.root in (*INTEGERS, Root.DOUBLE, Root.DATE, *TIMESTAMPS)


def _steps(rex: Rex, leaves: Leaves) -> list[NativeStep]:
    if isinstance(rex, InputRef):
        if rex.index not in leaves:
            raise _NotNative
        return [leaves[rex.index]]
    if isinstance(rex, Literal):
        return [_constant(rex)]
    name = rex.name
    if name in ("AND", "OR"):
        return _connected(rex, leaves)
    if name == "NOT":
        return [*_steps(rex.operands[0], leaves), NativeStep("not")]
    if name in ("IS NULL", "IS NOT NULL"):
        is_null = [*_steps(rex.operands[0], leaves), NativeStep("is null")]
        return is_null if name == "IS NULL" else [*is_null, NativeStep("not")]
    if name in _COMPARISONS:
        return _compared(rex, leaves)
    if name in _ARITHMETIC and len(rex.operands) == 2:
        return _computed(rex, leaves)
    if name == "CAST":
        return _cast(rex, leaves)
    raise _NotNative


def _constant(literal: Literal) -> NativeStep:
    kind = literal.type
    if literal.sarg is not None:
        raise _NotNative
    if literal.value is None:
        return NativeStep("null")
    if kind.root is Root.BOOLEAN:
        return NativeStep("constant", value=int(bool(literal.value)))
    if kind.root is Root.DOUBLE:
        return NativeStep("constant", value=struct.unpack("<q", struct.pack("<d", float(literal.value)))[0])
    if kind.root in INTEGERS:
        return NativeStep("constant", value=int(literal.value))
    if kind.root is Root.DATE or kind.root in TIMESTAMPS:
        return NativeStep("constant", value=int(scalar_of(literal).value))
    raise _NotNative


def _connected(call: RexCall, leaves: Leaves) -> list[NativeStep]:
    steps = _steps(call.operands[0], leaves)
    for operand in call.operands[1:]:
        steps += [*_steps(operand, leaves), NativeStep(call.name.lower())]
    return steps


def _compared(call: RexCall, leaves: Leaves) -> list[NativeStep]:
    operation, is_swapped, is_negated = _COMPARISONS[call.name]
    left, right = (operand.type for operand in call.operands)
    roots = {left.root, right.root}
    as_doubles = Root.DOUBLE in roots
    if as_doubles:
        if not roots <= {Root.DOUBLE, *INTEGERS}:
            raise _NotNative
    elif not roots <= set(INTEGERS) and (len(roots) > 1 or not is_native(left) or left.unit != right.unit):
        raise _NotNative
    parts = [_converted(operand, leaves, as_doubles) for operand in call.operands]
    first, second = reversed(parts) if is_swapped else parts
    steps = [*first, *second, NativeStep(f"{operation} doubles" if as_doubles else operation)]
    return [*steps, NativeStep("not")] if is_negated else steps


def _converted(rex: Rex, leaves: Leaves, as_double: bool) -> list[NativeStep]:
    steps = _steps(rex, leaves)
    return [*steps, NativeStep("double")] if as_double and rex.type.root in INTEGERS else steps


def _computed(call: RexCall, leaves: Leaves) -> list[NativeStep]:
    operation = _ARITHMETIC[call.name]
    roots = {operand.type.root for operand in call.operands}
    left, right = call.operands
    if call.type.root is Root.DOUBLE and roots <= {Root.DOUBLE, *INTEGERS} and operation != "%":
        parts = [step for operand in call.operands for step in _converted(operand, leaves, True)]
        return [*parts, NativeStep(f"{operation} doubles")]
    if call.type.root in INTEGERS and roots <= set(INTEGERS):
        bits = INTEGERS[call.type.root]
        return [*_steps(left, leaves), *_steps(right, leaves), NativeStep(operation, bits=bits)]
    if (
        operation in ("+", "-")
        and left.type.root in TIMESTAMPS
        and right.type.root is Root.INTERVAL_MS
        and left.type.unit == call.type.unit == "ms"
        and call.type.root is left.type.root
        and isinstance(right, Literal)
        and right.value is not None
    ):
        constant = NativeStep("constant", value=int(right.value))
        return [*_steps(left, leaves), constant, NativeStep(operation)]
    raise _NotNative


def _cast(call: RexCall, leaves: Leaves) -> list[NativeStep]:
    (operand,) = call.operands
    given, wanted = operand.type, call.type
    if given.root in INTEGERS and wanted.root in INTEGERS:
        return [*_steps(operand, leaves), NativeStep("wrap", bits=INTEGERS[wanted.root])]
    if given.root in INTEGERS and wanted.root is Root.DOUBLE:
        return _converted(operand, leaves, True)
    is_same = given.root is wanted.root and is_native(given) and given.unit == wanted.unit
    if is_same and given.precision == wanted.precision:
        return _steps(operand, leaves)
    raise _NotNative
