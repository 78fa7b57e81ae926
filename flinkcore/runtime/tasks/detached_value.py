"""Values that leave a chain of operators."""

from __future__ import annotations

import copy
import pickle
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from flinkcore.common.instant import Instant
from flinkcore.common.row import Row

_UNCHANGING = frozenset(
    (
        *(str, int, float, bool, bytes, complex, type(None)),
        *(date, datetime, time, timedelta, Decimal, Instant),
    )
)


def detached(value: Any) -> Any:
    """Return a value that later changes of the object do not reach: the object itself if it cannot be changed.

    Functions may change the objects that they gave, such as an accumulator that is a list. In Flink nobody sees it, as
    values are serialized between tasks; operators of one chain share objects. Objects of any class are copied, where
    :func:`flinkcore.runtime.copied_value.copied` copies containers only.
    """
    kind = type(value)
    if kind in _UNCHANGING:
        return value
    if kind is tuple:
        for field in value:
            if type(field) not in _UNCHANGING:
                return _copied(value)
        return value
    if isinstance(value, Row):
        for field in value._values:
            if type(field) not in _UNCHANGING:
                return _copied(value)
        return value.copied()
    return _copied(value)


def _copied(value: Any) -> Any:
    try:
        return pickle.loads(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
    except Exception:
        pass
    try:
        return copy.deepcopy(value)
    except Exception:
        return value  # such as an open file: there is no second one
