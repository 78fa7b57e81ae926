"""Messages of a log as the table of a connector declares them: formats and fields of keys and values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa


@dataclass(frozen=True)
class DeclaredMessages:
    """Formats of the columns ``value`` and ``key`` of a log of records; a log of rows has the fields as columns.

    Attributes
    ----------
    value_format : str
        Flink's name of the format, such as ``json``.
    value_fields : pyarrow.Schema
        Fields of the values.
    key_format : str or None
        Format of the keys, or None if they have no fields.
    key_fields : pyarrow.Schema
        Fields of the keys.
    key_prefix : str
        Prefix of the columns of the keys' fields.
    options : mapping of str to str
        Options of the table.
    value_schema, key_schema : dict or None
        Schemas of Avro that Flink derives of the fields, for the format ``avro``.
    """

    value_format: str
    value_fields: pa.Schema
    key_format: str | None = None
    key_fields: pa.Schema = field(default_factory=lambda: pa.schema([]))
    key_prefix: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    value_schema: Any = None
    key_schema: Any = None


def format_options(name: str, options: Mapping[str, str], column: str) -> dict[str, str]:
    """Return the options of the format of the column ``key`` or ``value`` of records, without their prefix."""
    prefix = f"{column}.{name}." if column == "key" or "value.format" in options else f"{name}."
    return {key.removeprefix(prefix): value for key, value in options.items() if key.startswith(prefix)}


def ignores_errors(options: Mapping[str, str]) -> bool:
    """Return whether a table has the option ``ignore-parse-errors`` of its format."""
    return any(key.endswith("ignore-parse-errors") and value == "true" for key, value in options.items())
