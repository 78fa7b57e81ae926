"""Where the operators of all splits stand, and the valve behind them, at the end of a log; and to go on from there.

Per split: `generator_ms`, the maximum timestamp that its generator has seen; `unseen`, whether there were events since its last
call; `inactive_since_ms` on its clock, which counts from the opening, 0: not; `generator_idle`; `watermark_ms` and
`operator_idle`, as emitted; `idle_since_ms`; `channel_ms` and `channel_idle`, as the valve knows. For all: `opened_ms`, when they
were opened, and `output_ms`, the watermark that the valve has put out last.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t

from flinkcore._native.call_guard cimport Call, begin_call
from flinkcore._native.split_operators cimport SplitOperator
from flinkcore._native.timeline cimport SplitMerge

from flinkcore.errors import ConfigurationError, DataError

_COLUMNS = (
    "generator_ms",
    "unseen",
    "inactive_since_ms",
    "generator_idle",
    "watermark_ms",
    "operator_idle",
    "idle_since_ms",
)


def split_merge_state(SplitMerge merge not None):
    """What `restore_split_merge` takes, after a run that has stopped.

    Parameters
    ----------
    merge : SplitMerge

    Returns
    -------
    dict of str to numpy.ndarray of int64, shape (splits,), and int
        As above.
    """
    cdef Call call = begin_call(&merge.guard, merge)
    cdef int32_t split
    cdef const SplitOperator* operator
    cdef int64_t[:, ::1] columns = np.empty((len(_COLUMNS), merge.operators.n), np.int64)
    for split in range(merge.operators.n):
        operator = &merge.operators.splits[split]
        columns[0, split] = operator.generator.max_timestamp
        columns[1, split] = operator.unseen
        columns[2, split] = operator.generator.inactive_since
        columns[3, split] = operator.generator.is_idle_now
        columns[4, split] = operator.current_watermark
        columns[5, split] = operator.idle
        columns[6, split] = operator.idle_since
    channels, idle, output = merge.valve.state()
    return {
        **dict(zip(_COLUMNS, columns.base)),
        "channel_ms": channels,
        "channel_idle": idle.astype(np.int64),
        "opened_ms": merge.operators.opened,
        "output_ms": output,
    }


def restore_split_merge(SplitMerge merge not None, dict state not None, int64_t stopped_ms):
    """Let a merge go on from where that of another log stood; before it runs.

    Parameters
    ----------
    merge : SplitMerge
    state : dict of str to numpy.ndarray of int64, shape (splits,), and int
        As of `split_merge_state`, for the splits of this log.
    stopped_ms : int
        The last arrival of that log: ticks before it have been done.

    Raises
    ------
    ConfigurationError
        If the splits are aligned.
    DataError
        If a column has not a value for each split.
    """
    cdef Call call = begin_call(&merge.guard, merge)
    cdef int32_t split
    cdef SplitOperator* operator
    if merge.alignment.samples != NULL:
        raise ConfigurationError("the state of splits that are aligned with each other is not carried on")
    cdef const int64_t[:, ::1] columns = np.stack([state[name] for name in _COLUMNS])
    if columns.shape[1] != merge.operators.n:
        raise DataError(f"the state of {columns.shape[1]} splits for {merge.operators.n} splits")
    merge.operators.opened = state["opened_ms"]
    merge.stopped = stopped_ms
    merge.restored = True
    for split in range(merge.operators.n):
        operator = &merge.operators.splits[split]
        operator.generator.max_timestamp = max(columns[0, split], operator.generator.max_timestamp)
        operator.unseen = operator.generator.activity = columns[1, split] != 0
        operator.generator.inactive_since = columns[2, split]
        operator.generator.is_idle_now = columns[3, split] != 0
        operator.current_watermark = columns[4, split]
        operator.idle = columns[5, split] != 0
        operator.idle_since = columns[6, split]
    merge.valve.restore(state["channel_ms"], state["channel_idle"].astype(np.uint8), state["output_ms"])
