"""How deep JSON is nested: Arrow infers types by recursion, which ends the process where they are too deep."""

from __future__ import annotations

import re

MOST_LEVELS = 100
"""As many as Arrow allows in Parquet files."""

_TEXT = re.compile(rb'"(?:[^"\\]+|\\.)*"?', re.DOTALL)
_BRACKET = re.compile(rb"[\[\]{}]")


def is_too_deep(block: bytes) -> bool:
    """Tell whether a line of a block of JSON lines has arrays and objects more than `MOST_LEVELS` deep."""
    # Lines open an object where they begin; all that the block opens besides bounds what one line does.
    if _opened(block) - block.count(b"\n{") - block.startswith(b"{") < MOST_LEVELS:
        return False
    return any(_opened(line) > MOST_LEVELS and _levels(line) > MOST_LEVELS for line in block.split(b"\n"))


def _opened(data: bytes) -> int:
    return data.count(b"{") + data.count(b"[")


def _levels(line: bytes) -> int:
    levels = most = 0
    for bracket in _BRACKET.findall(_TEXT.sub(b"", line)):
        levels += 1 if bracket in b"[{" else -1
        most = max(most, levels)
    return most
