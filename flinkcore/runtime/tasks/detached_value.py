"""Values that leave a chain of operators."""

from __future__ import annotations

import copy
import pickle
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from flinkcore.common.row import Row
from flinkcore.common.time import Instant
from flinkcore.errors import UserCodeError
from flinkcore.runtime.messages import shown

_UNCHANGING = frozenset(
    (
        *(str, int, float, bool, bytes, complex, type(None)),
        *(date, datetime, time, timedelta, Decimal, Instant),
    )
)


def detached(value: Any, giver: str) -> Any:
    """Return a value that later changes of the object do not reach: the object itself if it cannot be changed.

    Functions may change the objects that they gave, such as an accumulator that is a list. In Flink nobody sees it, as
    values are serialized between tasks; operators of one chain share objects. Objects of any class are copied, where
    :func:`flinkcore.runtime.copied_value.copied` copies containers only.

    Parameters
    ----------
    value : object
    giver : str
        How messages name the function that gave it.

    Raises
    ------
    UserCodeError
        If the object can be neither pickled nor copied, such as an open file, a lock or a generator: tasks would share
        it, and what they do would depend on how many there are and where they run.
    """
    kind = type(value)
    if kind in _UNCHANGING:
        return value
    if kind is tuple:
        for field in value:
            if type(field) not in _UNCHANGING:
                return _copied(value, giver)
        return value
    if isinstance(value, Row):
        for field in value._values:
            if type(field) not in _UNCHANGING:
                return _copied(value, giver)
        return value.copied()
    return _copied(value, giver)


def _copied(value: Any, giver: str) -> Any:
    try:
        return pickle.loads(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
    except Exception:
        pass
    try:
        return copy.deepcopy(value)
    except Exception as failure:
        raise UserCodeError(
            f"{giver} gave {shown(value)}, of which the next task needs a copy, but it can be neither pickled nor "
            f"copied: {type(failure).__name__}: {failure}. Give values that pickle can write, such as what is read "
            "from the object, or give its class a __reduce__ or __deepcopy__"
        ) from failure
