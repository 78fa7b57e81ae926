"""Three-valued logic and conditional expressions, which leave out what Flink does not evaluate."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore.sql.expressions.comparisons import common
from flinkcore.sql.expressions.evaluation import Evaluation, Mask, function, nulls, truth
from flinkcore.sql.expressions.numeric_casts import cast_number
from flinkcore.sql.plan.rex import Literal, Rex, RexCall, UserCall
from flinkcore.sql.types.logical_types import (
    FLOATS,
    INTEGERS,
    NESTED,
    NUMERIC,
    TEXTS,
    LogicalType,
    Root,
)


@function("AND", "OR", state="pyarrow")
def connect(rows: Evaluation, call: RexCall) -> pa.Array:
    """Connect conditions; one that decides the result leaves the later ones out, as in Java."""
    kernel = pc.and_kleene if call.name == "AND" else pc.or_kleene
    operands = call.operands
    if not any(map(can_fail, operands)):  # the order shows in failures alone
        operands = tuple(sorted(operands, key=_is_costly))
    found = rows(operands[0])
    for operand in operands[1:]:
        decided = truth(pc.invert(found) if call.name == "AND" else found)
        found = kernel(found, _of_rows(rows, operand, ~decided))
    return found


def _of_rows(rows: Evaluation, rex: Rex, mask: Mask) -> pa.Array:
    """Return the values of an expression, evaluated for the rows of a mask only, and null elsewhere."""
    if _is_sooner_for_all(rows, rex, mask):
        return rows(rex)
    kind = rex.type.arrow
    if not mask.any():
        return pa.nulls(rows.num_rows, kind)
    at = np.cumsum(mask) - 1
    return rows.of_some(mask, rex).take(pa.array(at, mask=~mask))


def _is_sooner_for_all(rows: Evaluation, rex: Rex, mask: Mask) -> bool:
    """Return whether values of all rows take less time than the rows of a mask, and cannot fail beside them."""
    if is_quick(rex, rows):
        return True
    n_rows = int(mask.sum())
    return n_rows == len(mask) or (2 * n_rows > len(mask) and not can_fail(rex) and not _is_costly(rex))


_FAILING: Final = frozenset(
    (
        *(
            "/",
            "/INT",
            "MOD",
            "%",
            "CAST",
            "ROUND",
            "TRUNCATE",
            "FROM_BASE64",
            "ELEMENT",
            "MAP",
            "MAP_FROM_ARRAYS",
        ),
        *(
            "JSON_VALUE",
            "JSON_QUERY",
            "JSON_EXISTS",
            "JSON_STRING",
            "JSON_OBJECT",
            "JSON_ARRAY",
            "JSON",
            "PRINTF",
        ),
        *(
            "SHA2",
            "REPEAT",
            "LPAD",
            "RPAD",
            "INSTR",
            "STR_TO_MAP",
            "UNIX_TIMESTAMP",
            "TO_DATE",
            "TO_TIMESTAMP_LTZ",
        ),
    )
)
_FAILING_BY_PATTERN: Final = frozenset(
    (
        *(
            "LIKE",
            "REGEXP",
            "RLIKE",
            "REGEXP_EXTRACT",
            "REGEXP_EXTRACT_ALL",
            "REGEXP_REPLACE",
            "REGEXP_COUNT",
        ),
        *("REGEXP_INSTR", "REGEXP_SUBSTR"),
    )
)
"""Functions that fail for some patterns; constant ones have been checked."""


_QUICK: Final = frozenset(
    (
        *(
            "=",
            "<>",
            "<",
            "<=",
            ">",
            ">=",
            "+",
            "-",
            "*",
            "SEARCH",
            "EXTRACT",
            "CASE",
            "IF",
            "NOT",
            "AND",
            "OR",
        ),
        *("IS NULL", "IS NOT NULL", "IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT FALSE", "CAST"),
    )
)
"""Functions that take a few nanoseconds a row, of most types."""


def is_quick(rex: Rex, rows: Evaluation) -> bool:
    """Return whether an expression cannot fail, and is evaluated at once by kernels for whole columns.

    Calls whose values are known are as quick as columns.
    """
    if not isinstance(rex, RexCall) or rows.recalled(rex) is not None:
        return rex.type.root not in NESTED
    if rex.name == "CAST" and not _is_quick_cast(rex):
        return False
    is_of_kernels = rex.name in _QUICK and rex.type.root not in NESTED
    return is_of_kernels and all(is_quick(operand, rows) for operand in rex.operands)


def _is_quick_cast(call: RexCall) -> bool:
    given, wanted = call.operands[0].type.root, call.type.root
    if wanted is Root.DECIMAL:
        return given in INTEGERS or given is Root.DECIMAL
    if given in TEXTS:
        return wanted in TEXTS
    return given is not Root.DECIMAL and wanted not in TEXTS


def _is_costly(rex: Rex) -> bool:
    """Return whether an expression has a function that takes far longer than a comparison."""
    return isinstance(rex, RexCall) and (rex.name.startswith("REGEXP") or any(map(_is_costly, rex.operands)))


def can_fail(rex: Rex) -> bool:
    """Return whether an expression has a function that fails for some values, or one of the user."""
    if not isinstance(rex, RexCall):
        return False
    if rex.name in _FAILING_BY_PATTERN and not isinstance(rex.operands[1], Literal):
        return True
    if any(map(can_fail, rex.operands)) or isinstance(rex, UserCall):
        return True
    return rex.name in _FAILING and not (rex.name == "CAST" and _is_quick_cast(rex))


@function("NOT", state="pyarrow")
def negate(rows: Evaluation, call: RexCall) -> pa.Array:
    return pc.invert(rows(call.operands[0]))


_TESTS: Final[dict[str, tuple[bool, bool]]] = {
    "IS TRUE": (True, True),
    "IS NOT TRUE": (True, False),
    "IS FALSE": (False, True),
    "IS NOT FALSE": (False, False),
}


@function(*_TESTS, state="pyarrow")
def test(rows: Evaluation, call: RexCall) -> pa.Array:
    value, is_wanted = _TESTS[call.name]
    array = rows(call.operands[0])
    holds = (array if value else pc.invert(array)).fill_null(False)
    return holds if is_wanted else pc.invert(holds)


@function("IS NULL", "IS NOT NULL", "IS UNKNOWN", "IS NOT UNKNOWN", state="pyarrow")
def null_test(rows: Evaluation, call: RexCall) -> pa.Array:
    is_null = nulls(rows(call.operands[0]))
    return pa.array(~is_null if "NOT" in call.name else is_null)


def converted(array: pa.Array, given: LogicalType, wanted: LogicalType) -> pa.Array:
    """Return values of one type as those of a common type that holds them."""
    if array.type.equals(wanted.arrow):
        return array
    if given.root in NUMERIC and wanted.root in NUMERIC:
        return cast_number(array, given, wanted)
    return array.cast(wanted.arrow)


@function("CASE", "IF")
def case(rows: Evaluation, call: RexCall) -> pa.Array:
    """Return the value of the first condition that is true; a branch is evaluated for its own rows only."""
    *branches, last = call.operands
    left = np.ones(rows.num_rows, np.bool_)
    found: list[pa.Array] = []
    places = np.empty(rows.num_rows, np.int64)
    n_found = 0
    for condition, value in (*zip(branches[::2], branches[1::2], strict=True), (None, last)):
        chosen = left if condition is None else left & truth(_of_rows(rows, condition, left))
        if not chosen.any():
            continue
        left = left & ~chosen
        values, numbers = _values_of(rows, value, chosen)
        found.append(converted(values, value.type, call.type))
        places[chosen] = n_found + numbers
        n_found += len(values)
    return pa.concat_arrays(found).take(pa.array(places)) if found else pa.nulls(0, call.type.arrow)


def _values_of(rows: Evaluation, rex: Rex, mask: Mask) -> tuple[pa.Array, Any]:
    """Return values of an expression, and the numbers of those of the rows of a mask among them."""
    if isinstance(rex, Literal):
        return rows(rex).slice(0, 1), 0
    if _is_sooner_for_all(rows, rex, mask):
        return rows(rex), np.flatnonzero(mask)
    values = rows.of_some(mask, rex)
    return values, np.arange(len(values))


@function("COALESCE", "IFNULL")
def coalesce(rows: Evaluation, call: RexCall) -> pa.Array:
    arrays = [converted(rows(operand), operand.type, call.type) for operand in call.operands]
    return pc.coalesce(*arrays)


def _orderable(call: RexCall) -> str | None:
    kinds = [operand.type for operand in call.operands]
    if all(kind.root in NUMERIC for kind in kinds) or all(kind.root in TEXTS for kind in kinds):
        return None
    return (
        None if len({kind.root for kind in kinds}) == 1 else f"{call.name} of several types is not supported"
    )


@function("GREATEST", "LEAST", check=_orderable)
def extreme(rows: Evaluation, call: RexCall) -> pa.Array:
    """Return the largest or smallest value; null where one is null."""
    arrays = common(rows, *call.operands)
    is_null = nulls(arrays[0])
    found = arrays[0]
    better: Any = pc.greater if call.name == "GREATEST" else pc.less
    for array in arrays[1:]:
        is_null |= nulls(array)
        found = pc.if_else(better(array, found), array, found)
    if is_null.any():
        found = pc.if_else(pa.array(is_null), pa.scalar(None, found.type), found)
    kind = call.type
    return found if kind.root in FLOATS and found.type.equals(kind.arrow) else found.cast(kind.arrow)
