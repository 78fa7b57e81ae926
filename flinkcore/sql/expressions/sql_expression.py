"""Expressions of a plan as computed columns of a stream."""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from flinkcore._internal.arrow.arrays import RowNumbers
from flinkcore._internal.arrow.expressions import SharingExpression
from flinkcore.sql.expressions.evaluation import Evaluation
from flinkcore.sql.plan.rex import InputRef, Rex, RexCall, input_refs
from flinkcore.sql.types.logical_types import FLOATS, INTEGERS


class _LastEvaluation(threading.local):
    """The evaluation of the last batch of a thread, so that the columns of a node share what they compute."""

    batch: weakref.ref[pa.RecordBatch] | None = None
    names: tuple[str, ...] = ()
    zone: str = ""
    columns: list[pa.Array | None] | None = None
    evaluation: Evaluation | None = None

    def of(
        self, batch: pa.RecordBatch, names: tuple[str, ...], zone: str
    ) -> tuple[Evaluation, list[pa.Array | None]]:
        """Return the evaluation of a batch and its columns, of which those that were not read yet are None."""
        is_last = (
            self.batch is not None and self.batch() is batch and self.names == names and self.zone == zone
        )
        evaluation, columns = self.evaluation, self.columns
        if not is_last or evaluation is None or columns is None:
            columns = [None] * len(names)
            evaluation = Evaluation(columns, batch.num_rows, zone)
            # The batch before may be collected in any of these lines, and must not take those of this one with it.
            self.batch, self.names, self.zone = weakref.ref(batch, self._forget), names, zone
            self.evaluation, self.columns = evaluation, columns
        return evaluation, columns

    def keep(self, batch: pa.RecordBatch, kept: pa.RecordBatch, numbers: RowNumbers) -> None:
        """Let the evaluation of some rows of a batch know what has been computed for all of them."""
        before, columns = self.evaluation, [None] * len(self.names)
        if self.batch is None or self.batch() is not batch or before is None:
            return
        evaluation = Evaluation(columns, kept.num_rows, self.zone, before=(before, numbers))
        self.batch = weakref.ref(kept, self._forget)
        self.evaluation, self.columns = evaluation, columns

    def _forget(self, batch: weakref.ref[pa.RecordBatch]) -> None:
        if self.batch is batch:
            self.batch = self.columns = self.evaluation = None


_LAST = _LastEvaluation()


_DEFAULT: Final = -1
"""Value of numbers in code that Flink generates, before they are computed."""


def _hides_nulls(rex: Rex) -> bool:
    """Return whether an expression only declares that a nullable number is not null: Flink then writes no null.

    So is VAR_SAMP of one row whose column is NOT NULL, which is -1 in Flink.
    """
    if not isinstance(rex, RexCall) or rex.name != "CAST" or rex.type.nullable:
        return False
    given = rex.operands[0].type
    return given.nullable and {given.root, rex.type.root} <= {*INTEGERS, *FLOATS}


@dataclass(frozen=True, eq=False)
class SqlExpression(SharingExpression):
    """An expression over the columns of a node's input; picklable.

    Attributes
    ----------
    rex : Rex
    names : tuple of str
        Names of the input columns, by number.
    zone : str
        Time zone of the session.
    """

    rex: Rex
    names: tuple[str, ...]
    zone: str = "UTC"

    @property
    def required_columns(self) -> frozenset[str]:
        return frozenset(self.names[number] for number in input_refs(self.rex))

    @property
    def copied_column(self) -> str | None:
        return self.names[self.rex.index] if isinstance(self.rex, InputRef) else None

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        from flinkcore.sql.expressions import functions as _functions  # noqa: F401  enters them in the table

        evaluation, columns = _LAST.of(batch, self.names, self.zone)
        for number in input_refs(self.rex):
            if columns[number] is None:
                columns[number] = batch.column(self.names[number])
        found = evaluation(self.rex)
        if found.null_count and _hides_nulls(self.rex):
            return found.fill_null(_DEFAULT)
        return found

    def keep(self, batch: pa.RecordBatch, kept: pa.RecordBatch, numbers: RowNumbers) -> None:
        _LAST.keep(batch, kept, numbers)

    def __str__(self) -> str:
        used = ", ".join(f"${number} = {self.names[number]}" for number in sorted(set(input_refs(self.rex))))
        return (
            f"{self.rex}{f' with {used}' if used else ''}{f' in {self.zone}' if self.zone != 'UTC' else ''}"
        )
