"""Functions of text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from flinkcore.spark.columns.function_calls import (
    FunctionCall,
    Operands,
    SparkFunction,
    has_options,
    made,
)
from flinkcore.spark.columns.spark_values import SparkValue, raised_if


def _is_text(*values: SparkValue) -> bool:
    return all(pa.types.is_string(value.type) for value in values)


def length(call: FunctionCall, operands: Operands) -> SparkValue | None:
    """Return the number of characters of a text."""
    return made(F.length(operands[0].column), pa.int32(), operands[0]) if _is_text(operands[0]) else None


def text_search(search: Callable[[Column, Any], Column]) -> SparkFunction:
    """Return the function that searches a text for a pattern."""

    def of(call: FunctionCall, operands: Operands) -> SparkValue | None:
        (text,) = operands
        if not _is_text(text) or not has_options(call, ignore_case=False):
            return None
        return made(search(text.column, F.lit(call.options["pattern"])), pa.bool_(), text)

    return of


def count_substring(call: FunctionCall, operands: Operands) -> SparkValue | None:
    """Count a pattern in a text."""
    (text,) = operands
    pattern = call.options["pattern"]
    if not _is_text(text) or not pattern or not has_options(call, ignore_case=False):
        return None
    left_out = F.length(text.column) - F.length(F.replace(text.column, F.lit(pattern), F.lit("")))
    count = left_out if len(pattern) == 1 else F.floor(left_out / len(pattern)).cast("int")
    return made(count, pa.int32(), text)


def replace_substring(call: FunctionCall, operands: Operands) -> SparkValue | None:
    """Replace a pattern in a text."""
    (text,) = operands
    pattern, replacement = call.options["pattern"], call.options["replacement"]
    if not _is_text(text) or not pattern or not has_options(call, max_replacements=-1):
        return None
    return made(F.replace(text.column, F.lit(pattern), F.lit(replacement)), pa.string(), text)


def trim(call: FunctionCall, operands: Operands) -> SparkValue | None:
    """Take spaces off the ends of a text."""
    (text,) = operands
    is_of_spaces = _is_text(text) and call.options["characters"] == " "
    return made(F.trim(text.column), pa.string(), text) if is_of_spaces else None


def slice_text(call: FunctionCall, operands: Operands) -> SparkValue | None:
    """Return some characters of a text, counted from its start."""
    (text,) = operands
    start, stop = call.options["start"], call.options["stop"]
    if not _is_text(text) or not has_options(call, step=1) or not 0 <= start <= stop < 1 << 31:
        return None
    return made(F.substring(text.column, start + 1, stop - start), pa.string(), text)


def join_texts(call: FunctionCall, operands: Operands) -> SparkValue | None:
    """Join texts; null where one of them is null."""
    *texts, between = operands
    # 0: a null text makes a null
    if not texts or not _is_text(*operands) or not has_options(call, null_handling=0):
        return None
    parts = [texts[0].column]
    for text in texts[1:]:
        parts += [between.column, text.column]
    joined = F.concat(*parts)
    if len(texts) == 1 and between.constant is None:
        joined = F.when(between.column.isNotNull(), joined)
    return made(joined, pa.string(), *operands)


def part_of_text(call: FunctionCall, text: SparkValue, pattern: str, number: int) -> SparkValue | None:
    """Return an item of a text that is split at a pattern; an error where there are not so many."""
    if not _is_text(text) or not pattern or number < 0:
        return None
    regular = (
        pattern if pattern.isalnum() or pattern in ("/", ",", ";", ":", "-", "&", "=", "_", " ") else None
    )
    if regular is None:
        return None
    item = F.get(F.split(text.column, regular, -1), number)
    missing = raised_if(
        text.column.isNotNull(), f"a text has no part {number} in {call.text}", F.lit(None).cast("string")
    )
    return SparkValue(F.coalesce(item, missing), pa.string(), text.failing | {f"part of {call.text}"})
