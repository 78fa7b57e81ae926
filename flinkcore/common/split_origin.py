"""The origin of an event log's splits, if it is not a column."""

from enum import Enum
from typing import Final


class SplitOrigin(Enum):
    """The origin of splits, if it is not a column."""

    FILE = "each file is a split"

    def __repr__(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.value


FILE: Final = SplitOrigin.FILE
"""``split=FILE``: each file is a split, and its name the split's value."""
