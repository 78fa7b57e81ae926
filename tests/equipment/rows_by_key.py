"""Results in the order that replays promise: at every parallelism that of each key, in one partition that of all."""

from collections.abc import Sequence

import pyarrow as pa


def rows_by_key(table: pa.Table, key_columns: Sequence[str]) -> list[str]:
    """Rows as text, those of a key together, in the order in which they came; without key columns, all in theirs."""
    rows = sorted(table.to_pylist(), key=lambda row: repr([row[name] for name in key_columns]))
    return [*map(repr, rows)]
