"""Expressions of a plan as computed columns of a stream."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from flinkcore._internal.arrow.expressions import ColumnExpression
from flinkcore.sql.expressions.evaluation import Evaluation
from flinkcore.sql.plan.rex import Rex, input_refs


@dataclass(frozen=True, eq=False)
class SqlExpression(ColumnExpression):
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

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        from flinkcore.sql.expressions import functions as _functions  # noqa: F401  enters them in the table

        columns: list[pa.Array | None] = [None] * len(self.names)
        for number in input_refs(self.rex):
            columns[number] = batch.column(self.names[number])
        return Evaluation(columns, batch.num_rows, self.zone)(self.rex)

    def __str__(self) -> str:
        used = ", ".join(f"${number} = {self.names[number]}" for number in sorted(set(input_refs(self.rex))))
        return (
            f"{self.rex}{f' with {used}' if used else ''}{f' in {self.zone}' if self.zone != 'UTC' else ''}"
        )
