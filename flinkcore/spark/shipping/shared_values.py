"""Values that the tasks of a job share: a worker unpickles each of them once."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from functools import cached_property
from typing import Any, Final, Generic, TypeVar

from flinkcore.spark.shipping.tasks import pickled_for_tasks, unpickled

T = TypeVar("T")

MOST_VALUES: Final = 4
"""A worker holds so many values, those that it used last."""

_VALUES: Final[OrderedDict[bytes, Any]] = OrderedDict()
"""Values of this worker by their tokens."""


class Shared(Generic[T]):
    """A value in a task; picklable. Tasks must not change it.

    Parameters
    ----------
    value
        The value; nothing of the user's that may keep a state.
    """

    def __init__(self, value: T) -> None:
        self.value = value
        self._token = secrets.token_bytes(16)

    @cached_property
    def _pickled(self) -> bytes:
        return pickled_for_tasks(self.value)

    def __reduce__(self) -> tuple[Any, ...]:
        return _shared, (self._token, self._pickled)


def _shared(token: bytes, pickled: bytes) -> Shared[Any]:
    if token not in _VALUES:
        _VALUES[token] = Shared(unpickled(pickled))
    _VALUES.move_to_end(token)
    while len(_VALUES) > MOST_VALUES:
        _VALUES.popitem(last=False)
    shared: Shared[Any] = _VALUES[token]
    return shared
