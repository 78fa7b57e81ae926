"""The dictionary from key to dense id, as a dict."""

import struct
from typing import Any

NOT_FOUND = 0xFFFFFFFF


def canonical_key(value: Any) -> Any:
    """Equal exactly where Java finds two keys equal: every NaN is one key, -0.0 and 0.0 are two."""
    if isinstance(value, float):
        return "nan" if value != value else struct.pack("<d", value)
    if isinstance(value, dict):
        return tuple(canonical_key(value[name]) for name in sorted(value))
    return value


class KeyDictionaryModel:
    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._ids: dict[Any, int] = {}

    def ids(self, rows: list[dict[str, Any]]) -> list[int]:
        found = []
        for row in rows:
            key = canonical_key(row)
            if key not in self._ids:
                self._ids[key] = len(self.rows)
                self.rows.append(row)
            found.append(self._ids[key])
        return found

    def find(self, rows: list[dict[str, Any]]) -> list[int]:
        return [self._ids.get(canonical_key(row), NOT_FOUND) for row in rows]
