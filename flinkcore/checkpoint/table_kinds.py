"""The kinds of tables in a checkpoint.

To add one: here; a function that makes the table, in ``state_tables.py`` or beside the kernel that has the state; its
attributes in ``checkpoint_manifest.py``; and the operators that have it, by their `tables`.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final


class TableKind(Enum):
    """Kind of a table's content."""

    TIMERS = "timers"
    KEYED_STATE = "keyed_state"
    OPERATOR_STATE = "operator_state"
    SPLITS = "splits"
    TIME_PLANE = "time_plane"
    WINDOWS = "windows"
    WAITING_ROWS = "waiting_rows"
    RELATION = "relation"


SHAPES: Final[Mapping[TableKind, tuple[str, ...]]] = {
    TableKind.TIMERS: ("key", "namespace"),
    TableKind.KEYED_STATE: ("key", "namespace", "value"),
    TableKind.OPERATOR_STATE: ("element",),
    TableKind.SPLITS: ("split", "position", "state"),
    TableKind.TIME_PLANE: ("split",),
    TableKind.WINDOWS: (),
    TableKind.WAITING_ROWS: (),
    TableKind.RELATION: (),
}
"""By kind, the columns whose values are Python's, and which have a shape in the manifest."""

OPTIONAL_SHAPES: Final[Mapping[TableKind, tuple[str, ...]]] = {
    TableKind.TIME_PLANE: ("generator",),
    TableKind.RELATION: ("python.accumulator", "python.frame"),
}
"""Further columns of this kind, which a table may lack."""

NAMED: Final = (
    TableKind.TIMERS,
    TableKind.KEYED_STATE,
    TableKind.OPERATOR_STATE,
    TableKind.WAITING_ROWS,
    TableKind.RELATION,
)
"""Kinds of which an operator may have several tables, each with a name."""

OF_KEYS: Final = (TableKind.TIMERS, TableKind.KEYED_STATE, TableKind.WINDOWS, TableKind.RELATION)
"""Kinds whose rows belong to key groups."""
