"""What the kernels of relational operators share: the timeline, events as they come, and results that wait until they are taken.

A kernel knows keys by dense ids and rows by their numbers; whoever calls it keeps the rows themselves. Before each event, the steps
of the timeline that come before it put their watermarks in force one by one, and fire timers. When as many results wait as the limit
allows, the kernel stops between two events or two timers, and goes on from there after they have been taken.
"""

from collections import namedtuple

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport INT64_MIN, int8_t, int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

from flinkcore.errors import ConfigurationError

from flinkcore._native.memory cimport buffer_free
from flinkcore._native.packed_steps cimport PackedSteps
from flinkcore._native.window_operator cimport cursor_close, cursor_open


cdef enum:
    EVENTS_AT_ONCE = 1 << 18  # between two checks of signals


KernelResults = namedtuple(
    "KernelResults", ["left", "right", "kinds", "values", "events", "steps", "fired", "key_ids", "timestamps"], module=__name__
)
KernelResults.__doc__ = "Results of a kernel as equally long columns; `right`, `kinds` and `values` are None where an operator has none."


cdef int core_open(
    RelationalCore* core,
    PackedSteps timeline,
    int64_t steps_done,
    int64_t result_limit,
    bint of_two,
    bint has_kinds,
    bint has_values,
) except -1:
    if result_limit <= 0:
        raise ConfigurationError(f"results are limited to {result_limit} rows: the limit must be positive")
    cursor_open(&core.cursor, timeline, steps_done)
    core.step = steps_done - 1
    core.result_limit = result_limit
    core.of_two = of_two
    core.has_kinds = has_kinds
    core.has_values = has_values
    return 0


cdef void core_free(RelationalCore* core) noexcept nogil:
    cursor_close(&core.cursor)
    buffer_free(&core.results)
    buffer_free(&core.late_events)


cdef bint _are_numbers_of_inputs(const int8_t[::1] inputs) noexcept nogil:
    cdef int64_t i
    cdef uint8_t bits = 0
    for i in range(inputs.shape[0]):
        bits |= <uint8_t> inputs[i]
    return bits <= 1


cdef int core_events(
    RelationalEvents* events,
    const uint32_t[::1] key_ids,
    const int32_t[::1] key_groups,
    const int8_t[::1] inputs,
    const int64_t[::1] rows,
    const int64_t[::1] timestamps,
    const int64_t[::1] steps,
    int64_t first,
) except -1:
    cdef int64_t n = key_ids.shape[0]
    if not n == key_groups.shape[0] == rows.shape[0] == timestamps.shape[0] == steps.shape[0]:
        raise ValueError("keys, key groups, rows, timestamps and steps must have one value per event")
    if inputs is not None and inputs.shape[0] != n:
        raise ValueError("inputs must have one value per event")
    if inputs is not None and not _are_numbers_of_inputs(inputs):
        raise ValueError("inputs must be 0 or 1")
    if not 0 <= first <= n:
        raise IndexError(f"event number {first} of {n}")
    memset(events, 0, sizeof(RelationalEvents))
    events.n = n
    if n:
        events.key_ids = &key_ids[0]
        events.key_groups = &key_groups[0]
        events.inputs = NULL if inputs is None else &inputs[0]
        events.rows = &rows[0]
        events.timestamps = &timestamps[0]
        events.steps = &steps[0]
    return 0


cdef dict core_counts(const RelationalCore* core):
    return {"processed": core.processed, "late": core.late, "event_time_timers": core.timers_fired}


cdef int64_t core_process(
    RelationalCore* core, TakeEvents take_events, RelationalEvents* events, int64_t first
) except -1:
    cdef int64_t n = events.n
    if first == 0:
        core.late_events.size = 0
    while first < n:
        events.n = min(n, first + EVENTS_AT_ONCE)
        with nogil:
            first = take_events(core, events, first)
        if first < events.n:
            break
        PyErr_CheckSignals()
    return first


cdef object core_take_late(RelationalCore* core):
    cdef int64_t n = core.late_events.size // 8
    cdef int64_t[::1] late = np.empty(n, np.int64)
    if n:
        memcpy(&late[0], core.late_events.data, n * 8)
    core.late_events.size = 0
    return late.base


cdef object core_take(RelationalCore* core):
    cdef int64_t n = core.n_results, i
    cdef const ResultRow* row = <const ResultRow*> core.results.data
    cdef int64_t[:, ::1] words = np.empty((7, n), np.int64)
    cdef uint32_t[::1] key_ids = np.empty(n, np.uint32)
    cdef uint8_t[::1] kinds = np.empty(n, np.uint8)
    with nogil:
        for i in range(n):
            words[0, i] = row[i].left
            words[1, i] = row[i].right
            words[2, i] = row[i].event
            words[3, i] = row[i].step
            words[4, i] = row[i].fired
            words[5, i] = row[i].timestamp
            words[6, i] = row[i].value
            key_ids[i] = row[i].key_id
            kinds[i] = row[i].kind
    core.results.size = 0
    core.n_results = 0
    left, right, events, steps, fired, timestamps, values = words.base
    return KernelResults(
        left,
        right if core.of_two else None,
        kinds.base if core.has_kinds else None,
        values if core.has_values else None,
        events,
        steps,
        fired,
        key_ids.base,
        timestamps,
    )
