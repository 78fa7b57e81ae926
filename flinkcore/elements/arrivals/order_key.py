"""Keys in whose order everything in a job that runs element by element happens, in however many processes.

The embedded run deals with a record, and all that it leads to, before the next one. What a task gets from others is
therefore in a total order: that of their causes, and for one cause that of emission, at each task on the way::

    time      | cause: end, arrival | number of the    | emissions of a task on the way,
    8 bytes   | stop or timer;      | origin or task   | 6 bytes for each
              | 1 byte              |                  |
    ----------+---------------------+------------------+---------------------------------
    the clock | END < ARRIVAL <     | 4 bytes          | 17 | 3 | 240
    in ms     | STOP < TIMER        |                  |

Keys are bytes, compared as such, and no two messages of a job have the same.
"""

from __future__ import annotations

import struct
from enum import IntEnum

_ROOT = struct.Struct(">QBI")
_CAUSE = struct.Struct(">QB")
_BIAS = 1 << 63
_EMISSION_BYTES = 6


class ChainCause(IntEnum):
    """Cause of a chain of events; causes of one time come in this order."""

    END = 0
    ARRIVAL = 1
    STOP = 2
    TIMER = 3


def root_key(time_ms: int, cause: ChainCause, number: int) -> bytes:
    """Return the key of a cause: the end or an arrival of origin `number`, or the stop or timers of task `number`.

    Examples
    --------
    >>> root_key(-1, ChainCause.TIMER, 0) < root_key(0, ChainCause.END, 7) < root_key(0, ChainCause.ARRIVAL, 2)
    True
    """
    return _ROOT.pack(time_ms + _BIAS, cause, number)


def emission_key(position: bytes, emission: int) -> bytes:
    """Return the key of what a task emits as it deals with the message, or the cause, of a key.

    Parameters
    ----------
    position : bytes
    emission : int
        Greater than those before it of the task.
    """
    return position + emission.to_bytes(_EMISSION_BYTES, "big")


def cause_of(key: bytes) -> tuple[int, bool]:
    """Return the time of the cause of a message, and whether it is an end."""
    time, cause = _CAUSE.unpack_from(key)
    return time - _BIAS, not cause  # an end is 0


def timer_task_of(key: bytes) -> int:
    """Return the number of the task whose timers are the cause of a message; 0 if the cause is not a timer."""
    _, cause, number = _ROOT.unpack_from(key)
    return int(number) if cause == ChainCause.TIMER else 0
