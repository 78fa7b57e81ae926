"""Aggregates that a function in Python computes, with an accumulator for each key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from flinkcore.datastream.aggregates import Aggregate


class AccumulatorFunction(Protocol):
    """Calls of a function on accumulators, which it changes in place; picklable.

    Attributes
    ----------
    name : str
        Name in messages and in the description of a job.
    type : pyarrow.DataType
        Type of the results.

    Notes
    -----
    Follows ``org.apache.flink.table.functions.AggregateFunction``.
    """

    @property
    def name(self) -> str: ...

    @property
    def type(self) -> pa.DataType: ...

    def create(self) -> Any:
        """Return an accumulator without values."""
        ...

    def arguments(self, fields: Sequence[pa.Array]) -> list[tuple[Any, ...]]:
        """Return the arguments of rows, of their columns, of which there is at least one."""
        ...

    def accumulate(self, accumulator: Any, arguments: tuple[Any, ...], now_ms: int) -> None:
        """Take the values of a row into an accumulator, at a processing time if state expires."""
        ...

    def retract(self, accumulator: Any, arguments: tuple[Any, ...], now_ms: int) -> None:
        """Take the values of a row back out of an accumulator, at a processing time if state expires."""
        ...

    def value(self, accumulator: Any) -> Any:
        """Return the result of an accumulator, which does not change with it."""
        ...

    def column(self, values: Sequence[Any]) -> pa.Array:
        """Return results as a column; raise DataError if one is not of the type."""
        ...


@dataclass(frozen=True)
class FunctionAggregate(Aggregate):
    """An aggregate of a function, over rows one after the other.

    Attributes
    ----------
    calls : AccumulatorFunction
        The function. The column has a struct with its arguments after a first field; null where a row is left out.
    """

    calls: AccumulatorFunction = field(kw_only=True)

    def __str__(self) -> str:
        return f"{self.calls.name}({self.column})"
