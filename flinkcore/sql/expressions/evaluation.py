"""Evaluation of expressions over the rows of a batch, and the table of functions.

A function gets the whole call and evaluates its operands itself, so that one like CASE leaves out those that Flink
does not evaluate for a row: an error in them must not fail the job.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._internal.arrow.arrays import RowNumbers
from flinkcore._internal.arrow.expressions import RowFailure
from flinkcore._native.text_parts import TextParts
from flinkcore.errors import UnsupportedOperationError
from flinkcore.sql.expressions.decimals import EXACT
from flinkcore.sql.expressions.refused_functions import REFUSED_FUNCTIONS
from flinkcore.sql.plan.rex import InputRef, Literal, Rex, RexCall, UserCall
from flinkcore.sql.types.logical_types import FLOATS, INTEGERS, TIMESTAMPS, LogicalType, Root
from flinkcore.sql.types.times import day_of_text, millis_of_day, timestamp_of_text

Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Evaluation:
    """The rows of a batch for which an expression is evaluated.

    Attributes
    ----------
    columns : sequence of pyarrow.Array
        Input columns by number; None for those that the expression does not read.
    num_rows : int
    zone : str
        Time zone of the session.
    rows : numpy.ndarray of int64 or None
        Numbers of the rows in the batch, or None if they are all of its rows.
    known : dict
        Values of calls that have been evaluated.
    constants : dict
        Columns of constants.
    parts : dict
        Parts of texts by expression and separator.
    partly : dict
        Values of calls that have been evaluated for some rows: which, and theirs.
    before : tuple of (Evaluation, numpy.ndarray of uint32) or None
        Evaluation of more rows, such as those of a condition, and the numbers of these rows there.
    """

    columns: Sequence[pa.Array | None]
    num_rows: int
    zone: str = "UTC"
    rows: npt.NDArray[np.int64] | None = None
    known: dict[RexCall, pa.Array] = field(default_factory=dict)
    constants: dict[Literal, pa.Array] = field(default_factory=dict)
    parts: dict[tuple[Rex, str], TextParts] = field(default_factory=dict)
    partly: dict[RexCall, tuple[Mask, pa.Array]] = field(default_factory=dict)
    before: tuple[Evaluation, RowNumbers] | None = None

    def __call__(self, rex: Rex) -> pa.Array:
        """Return the values of an expression, of the Arrow type of its SQL type."""
        if isinstance(rex, InputRef):
            column = self.columns[rex.index]
            assert column is not None, "a column that the expression reads"
            return column
        if isinstance(rex, Literal):
            return self._constant(rex)
        found = self.recalled(rex)
        if found is None:
            evaluate = rex.function.evaluate if isinstance(rex, UserCall) else FUNCTIONS[rex.name].evaluate
            found = evaluate(self, rex)
            wanted = rex.type.arrow
            found = found if found.type.equals(wanted) else found.cast(wanted)
            self.known[rex] = found
        return found

    def _constant(self, literal: Literal) -> pa.Array:
        found = self.constants.get(literal)
        if found is None:
            found = self.constants[literal] = _repeated(literal, self.num_rows)
        return found

    def brief(self, *operands: Rex) -> list[pa.Array]:
        """Return the values of expressions, of which constants beside others have only one: NumPy repeats it."""
        arrays = [self(operand) for operand in operands]
        if all(isinstance(operand, Literal) for operand in operands):
            return arrays
        return [
            array.slice(0, min(1, self.num_rows)) if isinstance(operand, Literal) else array
            for array, operand in zip(arrays, operands, strict=True)
        ]

    def is_constant(self, array: pa.Array) -> bool:
        """Return whether a column is that of a constant."""
        return any(array is constant for constant in self.constants.values())

    def recalled(self, call: RexCall) -> pa.Array | None:
        """Return the values of a call that has been evaluated for all rows, otherwise None."""
        found = self.known.get(call)
        if found is None and self.before is not None:
            rows, numbers = self.before
            found = rows.recalled(call)
            if found is not None:
                found = self.known[call] = found.take(pa.array(numbers))
        return found

    def of_some(self, mask: Mask, rex: Rex) -> pa.Array:
        """Return the values of an expression for some of the rows, which are evaluated once."""
        found = self._recalled_of_some(rex, mask) if isinstance(rex, RexCall) else None
        if found is None:
            rows = self._taken(mask, rex)
            found = rows(rex)
            self.partly.update(
                (call, (mask, values)) for call, values in rows.known.items() if call not in self.known
            )
        return found

    def _recalled_of_some(self, call: RexCall, mask: Mask) -> pa.Array | None:
        """Return the values of a call for some of the rows, if they have been evaluated among others."""
        known = self._partly_known(call)
        if known is None or (mask & ~known[0]).any():
            return None
        return known[1].take(pa.array((np.cumsum(known[0]) - 1)[mask]))

    def _partly_known(self, call: RexCall) -> tuple[Mask, pa.Array] | None:
        found = self.partly.get(call)
        if found is None and self.before is not None:
            rows, numbers = self.before
            known = rows._partly_known(call)
            if known is not None:
                mask = known[0][numbers]
                values = known[1].take(pa.array((np.cumsum(known[0]) - 1)[numbers[mask]]))
                found = self.partly[call] = mask, values
        return found

    def _taken(self, mask: Mask, rex: Rex) -> Evaluation:
        """Return the evaluation of an expression for some of the rows, with what is known of it."""
        kept = np.flatnonzero(mask)
        rows = kept if self.rows is None else self.rows[kept]
        indices = pa.array(kept)
        columns: list[pa.Array | None] = [None] * len(self.columns)
        known: dict[RexCall, pa.Array] = {}
        left = [rex]
        while left:
            part = left.pop()
            if isinstance(part, InputRef):
                if columns[part.index] is None:
                    columns[part.index] = self(part).take(indices)
            elif isinstance(part, RexCall) and part not in known:
                found = self.recalled(part)
                found = self._recalled_of_some(part, mask) if found is None else found.take(indices)
                if found is None:
                    left += part.operands
                else:
                    known[part] = found
        return Evaluation(columns, len(kept), self.zone, rows, known)

    def fail(self, row: int | np.integer[Any], message: str) -> NoReturn:
        """Raise the failure of a row."""
        raise RowFailure(int(row if self.rows is None else self.rows[row]), message)

    def fail_where(self, mask: Mask, message: str) -> None:
        """Raise the failure of the first row of a mask, if there is one."""
        if mask.any():
            self.fail(int(mask.argmax()), message)


Implementation: TypeAlias = Callable[[Evaluation, RexCall], pa.Array]
Check: TypeAlias = Callable[[RexCall], str | None]


@dataclass(frozen=True)
class SqlFunction:
    """A function of SQL.

    Attributes
    ----------
    name : str
        Name in plans.
    state : str
        "pyarrow" if kernels of Arrow give Flink's results, "own" if code of the package does.
    evaluate : callable
        Takes the rows and the call, returns its values.
    check : callable
        Returns why a call of it is not supported, or None.
    """

    name: str
    state: str
    evaluate: Implementation
    check: Check


FUNCTIONS: Final[dict[str, SqlFunction]] = {}
"""The functions that run, by their names in plans."""


def function(
    *names: str, state: str = "own", check: Check = lambda call: None
) -> Callable[[Implementation], Implementation]:
    """Return a decorator that enters an implementation in the table of functions."""

    def enter(implementation: Implementation) -> Implementation:
        for name in names:
            FUNCTIONS[name] = SqlFunction(name, state, implementation, check)
        return implementation

    return enter


def missing_function(name: str) -> str:
    """Return why a function of a catalog does not run, with the remedy."""
    last = name.replace("`", "").rpartition(".")[2]
    return f"the code of the function {name} is not in the plan: give it in Python, as functions={{{last!r}: ...}}"


def refusal_of(rex: Rex) -> str | None:
    """Return why an expression does not run, as a clause of a message; None if it does."""
    if isinstance(rex, Literal) and rex.type.root is not Root.SYMBOL:
        try:
            if rex.sarg is None:
                scalar_of(rex)
        except (UnsupportedOperationError, ValueError, pa.ArrowException) as error:
            return f"the constant {rex} has no value here ({error})"
    if rex.type.time_attribute == "PROCTIME":
        return "processing time is not supported: declare the time of the events with WATERMARK FOR"
    if not isinstance(rex, RexCall):
        return None
    for operand in rex.operands:
        reason = refusal_of(operand)
        if reason is not None:
            return reason
    if isinstance(rex, UserCall):
        return None
    found = FUNCTIONS.get(rex.name)
    if found is None:
        reason = REFUSED_FUNCTIONS.get(rex.name)
        if rex.is_of_catalog:
            return missing_function(rex.name)
        return f"the function {rex.name} is not supported{'' if reason is None else f': {reason}'}"
    return found.check(rex)


# ---- constants


_FEWEST_REPEATED: Final = 1024
_LONGEST_REPEATED: Final = 64


def _repeated(literal: Literal, num_rows: int) -> pa.Array:
    """Return a column of a constant; columns of all batches share the values of short ones."""
    if isinstance(literal.value, str) and len(literal.value) > _LONGEST_REPEATED:
        return pa.repeat(scalar_of(literal), num_rows)
    return _shared(literal, max(_FEWEST_REPEATED, 1 << (num_rows - 1).bit_length())).slice(0, num_rows)


@lru_cache(maxsize=64)
def _shared(literal: Literal, num_rows: int) -> pa.Array:
    return pa.repeat(scalar_of(literal), num_rows)


def all_true(num_rows: int) -> pa.Array:
    """Return a column of true."""
    return _repeated(Literal(True, LogicalType(Root.BOOLEAN)), num_rows)


def scalar_of(literal: Literal) -> pa.Scalar:
    """Return the value of a constant as a scalar of its Arrow type."""
    return scalar(literal.value, literal.type)


def scalar(value: Any, kind: LogicalType) -> pa.Scalar:
    """Return a value that a plan writes as a scalar of the Arrow type of its SQL type."""
    wanted = kind.arrow
    if value is None:
        return pa.scalar(None, wanted)
    if kind.root is Root.DECIMAL:
        exact = Decimal(str(value)).quantize(Decimal(1).scaleb(-kind.scale), context=EXACT)
        return pa.scalar(exact, wanted)
    if kind.root in FLOATS:
        return pa.scalar(float(value), wanted)
    if kind.root in INTEGERS or kind.root in (Root.INTERVAL_MONTHS, Root.INTERVAL_MS):
        return pa.scalar(int(value), wanted)
    if kind.root is Root.DATE:
        return pa.scalar(day_of_text(str(value)), pa.int32()).cast(wanted)
    if kind.root is Root.TIME:
        return pa.scalar(millis_of_day(str(value)), pa.int32()).cast(wanted)
    if kind.root in TIMESTAMPS:
        nanos = timestamp_of_text(str(value).replace("T", " ").removesuffix("Z"))
        per_unit = {"ms": 10**6, "us": 10**3, "ns": 1}[kind.unit]
        return pa.scalar(nanos // per_unit, pa.int64()).cast(wanted)
    if kind.root in (Root.BINARY, Root.VARBINARY):
        return pa.scalar(base64.b64decode(value), wanted)
    return pa.scalar(value, wanted)


def text_of(rex: Rex) -> str | None:
    """Return the text of a constant, or None if the expression is not a constant text."""
    return rex.value if isinstance(rex, Literal) and isinstance(rex.value, str) else None


def integer_of(rex: Rex) -> int | None:
    """Return the value of a constant integer, or None if the expression is not one."""
    if isinstance(rex, Literal) and rex.type.root in INTEGERS and rex.value is not None:
        return int(rex.value)
    return None


# ---- values of rows


def nulls(array: pa.Array) -> Mask:
    """Return which values are null."""
    if array.null_count == 0:
        return np.zeros(len(array), np.bool_)
    mask: Mask = array.is_null().to_numpy(zero_copy_only=False)
    return mask


def valid(*arrays: pa.Array) -> Mask:
    """Return in which rows no value is null."""
    mask = ~nulls(arrays[0])
    for array in arrays[1:]:
        mask &= ~nulls(array)
    return mask


def truth(array: pa.Array) -> Mask:
    """Return which values of a column of booleans are true; null is not."""
    mask: Mask = (array.fill_null(False) if array.null_count else array).to_numpy(zero_copy_only=False)
    return mask


def numbers(array: pa.Array) -> npt.NDArray[Any]:
    """Return the values of a numeric column, with anything where they are null."""
    filled = array.fill_null(0) if array.null_count else array
    return np.asarray(filled.to_numpy(zero_copy_only=False))


def integers(array: pa.Array) -> npt.NDArray[np.int64]:
    """Return a column of integers, dates or times as 64-bit integers, with anything where it is null."""
    if pa.types.is_date32(array.type) or pa.types.is_time32(array.type):
        array = array.view(pa.int32())
    elif pa.types.is_timestamp(array.type):
        array = array.view(pa.int64())
    return numbers(array).astype(np.int64, copy=False)


def column(values: npt.NDArray[Any], is_valid: Mask, kind: pa.DataType) -> pa.Array:
    """Return a column of numbers, dates or times, null in the rows of a mask."""
    mask = None if is_valid.all() else ~is_valid
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return pa.array(values.astype(np.int32), mask=mask).view(kind)
    if pa.types.is_timestamp(kind):
        return pa.array(values.astype(np.int64), mask=mask).view(kind)
    return pa.array(values, kind, mask=mask)


def require_times_of_day(array: pa.Array, kind: LogicalType) -> None:
    """Raise RowFailure for a value that is or has a TIME outside the day, as Flink's ``LocalTime`` does.

    Such a TIME is a number for most functions: casts of timestamps before 1970 have negative ones.
    """
    if not kind.contains(Root.TIME) or _is_of_days(array):
        return
    for row in range(len(array)):
        if not _is_of_days(array.take([row])):  # a slice of structs has all values of their fields
            raise RowFailure(
                row,
                "a TIME is not of a day, as CAST(... AS TIME) of a timestamp before 1970 is. Write CAST(... AS STRING) "
                "around it, which is the time of its day",
            )


def _is_of_days(array: pa.Array) -> bool:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def by_row(
    rows: Evaluation, call: RexCall, of_row: Callable[..., Any], *arrays: pa.Array, fails: bool = False
) -> pa.Array:
    """Return the values that a function of Python has for the values of each row; null where one of them is null.

    Parameters
    ----------
    rows : Evaluation
    call : RexCall
    of_row : callable
        From values of Python to a value, or to None.
    *arrays : pyarrow.Array
    fails : bool
        Whether a ValueError or ArithmeticError of it is the failure of a row, and not a null.
    """
    varying = [number for number, array in enumerate(arrays) if not rows.is_constant(array)]
    if not rows.num_rows:
        return pa.nulls(0, call.type.arrow)
    if not varying:
        constants = [array.slice(0, 1) for array in arrays]
        return pa.repeat(_of_values(rows, of_row, constants, call.type.arrow, fails)[0], rows.num_rows)
    encoded = _encoded(arrays[varying[0]]) if len(varying) == 1 else None
    if encoded is None:
        return _of_values(rows, of_row, arrays, call.type.arrow, fails)
    distinct = list(arrays)
    distinct[varying[0]] = encoded.dictionary
    for number, array in enumerate(arrays):
        if number != varying[0]:
            distinct[number] = array.slice(0, len(encoded.dictionary))
    try:
        found = _of_values(Evaluation((), len(encoded.dictionary)), of_row, distinct, call.type.arrow, fails)
    except RowFailure as failure:  # the dictionary has its values in the order in which they come
        first = np.argmax(encoded.indices.fill_null(-1).to_numpy() == failure.row)
        rows.fail(first, str(failure))
    return found.take(encoded.indices)


_FEWEST_ROWS: Final = 64
_SAMPLE: Final = 1024


def _encoded(array: pa.Array) -> pa.DictionaryArray | None:
    """Return a column as a dictionary, or None if most of its values differ or cannot be encoded."""
    kind = array.type
    if len(array) < _FEWEST_ROWS or pa.types.is_nested(kind) or pa.types.is_floating(kind):
        return None  # a dictionary would take -0.0 for 0.0
    sample = array.slice(0, _SAMPLE).dictionary_encode()
    if 2 * len(sample.dictionary) > len(sample):
        return None
    encoded = array.dictionary_encode()
    return encoded if 2 * len(encoded.dictionary) <= len(array) else None


def _of_values(
    rows: Evaluation, of_row: Callable[..., Any], arrays: Sequence[pa.Array], kind: pa.DataType, fails: bool
) -> pa.Array:
    found: list[Any] = []
    for row, values in enumerate(zip(*(array.to_pylist() for array in arrays), strict=True)):
        if any(value is None for value in values):
            found.append(None)
            continue
        try:
            found.append(of_row(*values))
        except (ValueError, ArithmeticError) as error:
            if fails:
                rows.fail(row, str(error))
            found.append(None)
    return column_of(rows, found, kind, "the function")


def column_of(
    rows: Evaluation,
    found: Sequence[Any],
    kind: pa.DataType,
    function: str,
    converted: Callable[[Sequence[Any]], Sequence[Any]] = lambda values: values,
) -> pa.Array:
    """Return what a function returned as a column; a value that is not of its type is the failure of its row."""
    try:
        return pa.array(converted(found), kind)
    except NOT_OF_TYPE:
        for row, value in enumerate(found):
            try:
                pa.array(converted([value]), kind)
            except NOT_OF_TYPE as error:
                rows.fail(row, f"{function} returned {value!r}, which is not {kind} ({error})")
        raise


NOT_OF_TYPE: Final = (pa.ArrowException, TypeError, ValueError, OverflowError)


def strict(
    *names: str, state: str = "own", check: Check = lambda call: None, fails: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that enters a function of the values of a row, null if one of them is null."""

    def enter(of_row: Callable[..., Any]) -> Callable[..., Any]:
        def evaluate(rows: Evaluation, call: RexCall) -> pa.Array:
            return by_row(rows, call, of_row, *map(rows, call.operands), fails=fails)

        function(*names, state=state, check=check)(evaluate)
        return of_row

    return enter
