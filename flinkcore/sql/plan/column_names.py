"""Names of columns in the streams of a plan."""

from __future__ import annotations

import re
from typing import Final

NO_COLUMN: Final = "row#"
"""Column of a constant in rows that have no other: a batch without columns has no number of rows."""

_OF_NODE: Final = re.compile(r"(.+)#\d+_\d+")


def plain_name(column: str) -> str:
    """Return the name in the plan of a column of a stream; any other name as it is."""
    match = _OF_NODE.fullmatch(column)
    return column if match is None else match[1]
