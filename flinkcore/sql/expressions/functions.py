"""All functions of SQL that run: importing this module enters them in the table."""

from flinkcore.sql.expressions import (
    arithmetic,
    array_functions,
    casts,
    collections,
    comparisons,
    conditions,
    extraction,
    json_functions,
    patterns,
    regular_expressions,
    rounding,
    text_functions,
    texts,
    time_texts,
    times,
)
from flinkcore.sql.expressions.evaluation import FUNCTIONS, SqlFunction, refusal_of

__all__ = [
    "FUNCTIONS",
    "SqlFunction",
    "arithmetic",
    "array_functions",
    "casts",
    "collections",
    "comparisons",
    "conditions",
    "extraction",
    "json_functions",
    "patterns",
    "refusal_of",
    "regular_expressions",
    "rounding",
    "text_functions",
    "texts",
    "time_texts",
    "times",
]
