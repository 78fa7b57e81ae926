"""Tables as people see them: text for a terminal, HTML for a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

import pyarrow as pa

from flinkcore._internal.show.html import html_table

LONGEST_CELL = 80
"""Characters of a value; a longer one ends with an ellipsis."""


def shown_value(value: pa.Scalar) -> str:
    """Return a value on one line."""
    if not value.is_valid:
        return "null"
    text = _text(value, str)
    if not text.isprintable():
        text = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)
    return text if len(text) <= LONGEST_CELL else f"{text[: LONGEST_CELL - 1]}…"


def _text(value: pa.Scalar, text_of: Callable[[object], str]) -> str:
    """Return the text of a value as Python has it, else of its parts, or the number in it."""
    with suppress(Exception):
        return text_of(value.as_py())
    with suppress(Exception):
        return _text_without_python(value, text_of)
    return f"<{value.type}>"


def _text_without_python(value: pa.Scalar, text_of: Callable[[object], str]) -> str:
    if isinstance(value, pa.StructScalar):
        parts = (f"{field.name!r}: {_text(value[n], repr)}" for n, field in enumerate(value.type))
        return f"{{{', '.join(parts)}}}"
    if isinstance(value, pa.ListScalar):
        return f"[{', '.join(_text(part, repr) for part in value.values[:LONGEST_CELL])}]"
    if isinstance(value, pa.StringScalar | pa.LargeStringScalar):
        return repr(value.as_buffer().to_pybytes())
    if isinstance(value, pa.TimestampScalar) and value.type.tz not in (None, "UTC"):  # of an unknown zone
        return _text(value.cast(pa.timestamp(value.type.unit, "UTC")), text_of)
    inner = value.value  # a number, or what a dictionary or an extension type holds
    return _text(inner, text_of) if isinstance(inner, pa.Scalar) else str(inner)


def shown_table(table: pa.Table, rows: int) -> str:
    """Return the names and the first rows of a table as aligned columns, and how many more rows it has."""
    cells = [[name, *column] for name, column in zip(table.schema.names, _columns(table, rows), strict=True)]
    aligned = [
        [
            text.rjust(width) if _is_number(field.type) else text.ljust(width)
            for text in column
            for width in [max(map(len, column))]
        ]
        for field, column in zip(table.schema, cells, strict=True)
    ]
    lines = ["  ".join(line).rstrip() for line in zip(*aligned, strict=True)]
    if table.num_rows > rows:
        lines.append(f"… {table.num_rows - rows:,} more rows")
    return "\n".join(lines)


def html_of_table(table: pa.Table, rows: int) -> str:
    """Return the names, types and first rows of a table as an HTML table."""
    return html_table(
        [(field.name, str(field.type)) for field in table.schema],
        zip(*_columns(table, rows), strict=True),
        [_is_number(field.type) for field in table.schema],
    )


def shown_fields(fields: Iterable[pa.Field]) -> str:
    """Return the names and types of columns."""
    return ", ".join(f"{field.name}: {field.type}" for field in fields)


def shown_schema(schema: pa.Schema) -> str:
    """Return the names and types of columns on one line, as Spark shows those of a DataFrame."""
    return f"[{shown_fields(schema)}]"


def _columns(table: pa.Table, rows: int) -> list[list[str]]:
    return [list(map(shown_value, column)) for column in table.slice(0, rows).columns]


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))
