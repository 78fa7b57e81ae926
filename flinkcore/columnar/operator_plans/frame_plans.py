"""Checks and types that all plans of aggregates without windows share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from flinkcore._native.aggregates import Accumulators
from flinkcore.columnar.operator_plans.aggregate_contents import AggregateContents
from flinkcore.columnar.operator_plans.operator_plan import require_column
from flinkcore.datastream.aggregates import Aggregate
from flinkcore.datastream.graph.function_aggregates import FunctionAggregate
from flinkcore.errors import SchemaError

NamedAggregates = tuple[tuple[str, Aggregate], ...]


def columns_of(aggregates: NamedAggregates) -> frozenset[str]:
    """Return the columns that aggregates read."""
    return frozenset().union(*(aggregate.columns for _, aggregate in aggregates))


def require_columns(aggregates: NamedAggregates, events: pa.Schema) -> None:
    """Check that the columns of aggregates exist.

    Raises
    ------
    SchemaError
        If one does not; names the aggregate that reads it.
    """
    for name, aggregate in aggregates:
        for column in (aggregate.column, aggregate.by):
            if column is not None:
                require_column(column, events, f"{name} = {aggregate}")


def require_new_names(aggregates: NamedAggregates, taken: Sequence[str]) -> None:
    """Check that results have no column twice.

    Raises
    ------
    SchemaError
        If an aggregate has the name of another column.
    """
    for name, _ in aggregates:
        if name in taken:
            raise SchemaError(
                f"an aggregate cannot be named {name!r}: results already have the columns {', '.join(taken)}"
            )


def described(aggregates: NamedAggregates, events: pa.Schema) -> str:
    """Return aggregates with the types of their columns, on which their state depends."""
    return ", ".join(
        f"{name} = {aggregate}"
        + "".join(
            f", {column}: {events.field(column).type}"
            for column in (aggregate.column, aggregate.by)
            if column
        )
        for name, aggregate in aggregates
    )


def contents_of(aggregates: NamedAggregates, events: pa.Schema) -> AggregateContents:
    """Return the description of aggregates in a checkpoint."""
    specs = tuple((name, *aggregate.spec) for name, aggregate in aggregates)
    read = columns_of(aggregates)
    return AggregateContents(specs, pa.schema([field for field in events if field.name in read]))


def native_specs(aggregates: NamedAggregates) -> list[Any]:
    """Return the aggregates that are not functions in Python, as native accumulators take them."""
    return [aggregate.spec for _, aggregate in aggregates if not isinstance(aggregate, FunctionAggregate)]


def result_types(aggregates: NamedAggregates, events: pa.Schema) -> list[pa.DataType]:
    """Return the types of aggregates.

    Raises
    ------
    SchemaError
        If an aggregate does not support the type of its column.
    """
    accumulators = Accumulators(events, native_specs(aggregates), slides=True)
    native = (pa.array(column).type for column in accumulators.take())
    return [
        aggregate.calls.type if isinstance(aggregate, FunctionAggregate) else next(native)
        for _, aggregate in aggregates
    ]
