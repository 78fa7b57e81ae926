"""The positions in a source's splits as a table."""

from collections.abc import Sequence

from flinkcore.runtime.checkpoint.checkpoint_table import CheckpointTable, TableColumns
from flinkcore.runtime.checkpoint.operator_snapshot import SplitPosition


def splits_to_table(splits: Sequence[SplitPosition]) -> CheckpointTable:
    """Return the table of positions.

    Raises
    ------
    SchemaError
        If a column cannot hold one of their values.
    """
    columns = TableColumns("the splits")
    columns.add_values("split", [split.split for split in splits])
    columns.add_values("position", [split.position for split in splits])
    columns.add_values("state", [split.state for split in splits])
    return columns.table({})


def splits_of_table(table: CheckpointTable) -> list[SplitPosition]:
    """Return the positions of a table.

    Raises
    ------
    SchemaError
        If it is no table of positions.
    """
    table.check_columns("split", "position", "state")
    columns = table.values("split"), table.values("position"), table.values("state")
    return [SplitPosition(*row) for row in zip(*columns, strict=True)]
