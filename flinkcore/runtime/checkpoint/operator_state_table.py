"""The elements of an operator state as a table."""

from flinkcore.errors import SchemaError
from flinkcore.runtime.checkpoint.checkpoint_table import CheckpointTable, TableColumns
from flinkcore.runtime.state import DistributionMode, OperatorStateSnapshot


def operator_state_to_table(name: str, snapshot: OperatorStateSnapshot) -> CheckpointTable:
    """Return the table of a state's elements, in order; those of a broadcast state are pairs.

    Raises
    ------
    SchemaError
        If a column cannot hold one of them.
    """
    columns = TableColumns(f"the operator state {name!r}")
    columns.add_values("element", snapshot.elements)
    return columns.table({"mode": snapshot.mode.value})


def operator_state_of_table(table: CheckpointTable) -> OperatorStateSnapshot:
    """Return the elements of a table.

    Raises
    ------
    SchemaError
        If it is no table of an operator state.
    """
    table.check_columns("element")
    mode = DistributionMode(table.attributes["mode"])
    elements = table.values("element")
    if mode is DistributionMode.BROADCAST and any(type(e) is not tuple or len(e) != 2 for e in elements):
        raise SchemaError("a broadcast state of a checkpoint has an element that is no pair of key and value")
    return OperatorStateSnapshot(mode, elements)
