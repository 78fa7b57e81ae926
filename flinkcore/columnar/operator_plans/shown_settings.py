"""Settings of an operator as text, the same in every process."""

from __future__ import annotations

import re
from dataclasses import is_dataclass
from enum import Enum


def shown_settings(of: object, names: tuple[str, ...]) -> dict[str, str]:
    """Return attributes of a step, in words by their names."""
    return {name.replace("_", " "): _shown(getattr(of, name)) for name in names}


def _shown(value: object) -> str:
    # An object of a user's class is shown by that class: its repr may differ in another process.
    if value is None or isinstance(value, int | str | Enum):
        return str(value)
    if not is_dataclass(value):
        return f"{type(value).__module__}.{type(value).__qualname__}"
    return re.sub(" at 0x[0-9a-f]+", "", repr(value))  # functions within it lie elsewhere in another process
