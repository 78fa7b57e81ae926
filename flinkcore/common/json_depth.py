"""How deep JSON may be nested: Arrow infers types by recursion, which ends the process where they are too deep."""

from flinkcore._native.json_depth import json_depth

MOST_LEVELS = 100
"""As many as Arrow allows in Parquet files."""


def is_too_deep(block: bytes) -> bool:
    """Tell whether a block that Arrow reads at once has arrays and objects more than `MOST_LEVELS` deep.

    Lines do not matter: Arrow lets an object of JSON lines go over several.
    """
    return json_depth(block) > MOST_LEVELS
