"""Bytes of keys that have no counterpart in Java."""

from __future__ import annotations

import pickle
from io import BytesIO
from typing import Any, Final

_PROTOCOL: Final = 4


def key_bytes(key: Any) -> bytes:
    """Return the bytes of a key, which are the same for equal keys of the same types, in every process.

    Parameters
    ----------
    key : object
        Anything that pickle can write.

    Notes
    -----
    Unlike those of pickle they do not depend on which parts of the key are one object, nor on the order of sets; and
    classes count by their names, so that a process need not be able to import them.
    """
    file = BytesIO()
    _KeyPickler(file).dump(key)
    return file.getvalue()


class _KeyPickler(pickle.Pickler):
    def __init__(self, file: BytesIO) -> None:
        super().__init__(file, _PROTOCOL)
        self.fast = True  # no memo

    def persistent_id(self, value: Any) -> Any:
        if isinstance(value, type):
            return value.__module__, value.__qualname__
        if isinstance(value, set | frozenset):
            return "set", sorted(map(key_bytes, value))
        return None
