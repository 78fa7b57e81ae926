"""All functions of SQL that run: importing this module enters them in the table."""

from flinkcore.sql.expressions import (
    arithmetic,
    casts,
    collections,
    comparisons,
    conditions,
    extraction,
    patterns,
    rounding,
    texts,
    times,
)
from flinkcore.sql.expressions.evaluation import FUNCTIONS, SqlFunction, refusal_of

__all__ = [
    "FUNCTIONS",
    "SqlFunction",
    "arithmetic",
    "casts",
    "collections",
    "comparisons",
    "conditions",
    "extraction",
    "patterns",
    "refusal_of",
    "rounding",
    "texts",
    "times",
]
