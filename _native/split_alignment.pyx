"""Alignment of splits: those whose watermarks are too far ahead are paused.

When nothing was emitted for as many updates as there are samples, those up to the next call are left out.
"""

from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t
from libc.stdlib cimport malloc

from flinkcore._native.split_operators cimport (
    SplitOperator,
    operators_find_next,
    operators_last_tick,
    operators_pause,
    operators_resume,
)
from flinkcore._native.watermarks cimport tick_of


cdef enum:
    WATERMARK_BUFFER_SIZE = 3  # Flink's default of pipeline.watermark-alignment.buffer-size


cdef int alignment_start(
    SplitAlignment* alignment, SplitOperators operators, int64_t max_drift, int64_t update_interval
) except -1:
    cdef int64_t i
    alignment.max_drift = max_drift
    alignment.update_interval = update_interval
    alignment.next_update = tick_of(operators.opened, update_interval)
    alignment.samples = <int64_t*> malloc(WATERMARK_BUFFER_SIZE * operators.n * sizeof(int64_t))
    if alignment.samples == NULL:
        raise MemoryError(f"{operators.n} splits")
    for i in range(WATERMARK_BUFFER_SIZE * operators.n):
        alignment.samples[i] = INT64_MIN
    return 0


cdef int64_t _max_allowed_watermark(const SplitAlignment* alignment, SplitOperators operators) noexcept nogil:
    # An idle split holds nobody back, nor does one that has not reported a watermark yet.
    cdef const SplitOperator* state
    cdef int64_t least = INT64_MAX
    cdef int32_t split
    for split in range(operators.n):
        state = &operators.splits[split]
        if not state.idle and state.current_watermark != INT64_MIN:
            least = min(least, state.current_watermark)
    return INT64_MAX if least > INT64_MAX - alignment.max_drift else least + alignment.max_drift


cdef int alignment_update(SplitAlignment* alignment, SplitOperators operators) except -1 nogil:
    cdef int64_t clock = alignment.next_update, max_allowed = _max_allowed_watermark(alignment, operators)
    cdef int64_t last_tick = operators_last_tick(operators, clock)
    cdef int64_t* newest = alignment.samples + (alignment.n_updates % WATERMARK_BUFFER_SIZE) * operators.n
    cdef int64_t* oldest = alignment.samples + ((alignment.n_updates + 1) % WATERMARK_BUFFER_SIZE) * operators.n
    cdef bint changed = False
    cdef int32_t split
    for split in range(operators.n):
        newest[split] = operators.splits[split].current_watermark
    for split in range(operators.n):
        if (oldest[split] > max_allowed) == operators.splits[split].paused:
            continue
        changed = True
        if operators.splits[split].paused:
            operators_resume(operators, split, clock, last_tick)
        else:
            operators_pause(operators, split, clock, last_tick)
    operators_find_next(operators)
    alignment.n_updates += 1
    alignment.quiet_updates += 1
    alignment.next_update = clock + alignment.update_interval
    if (
        alignment.quiet_updates >= WATERMARK_BUFFER_SIZE
        and not changed
        and operators.next_clock > alignment.next_update
    ):
        alignment.next_update = (
            INT64_MAX
            if operators.next_clock == INT64_MAX
            else tick_of(operators.next_clock, alignment.update_interval)
        )
    return 0


cdef int alignment_end(SplitOperators operators) except -1 nogil:
    cdef int32_t split
    for split in range(operators.n):
        if operators.splits[split].paused:
            operators_resume(
                operators, split, operators.last_arrival, operators_last_tick(operators, operators.last_arrival - 1)
            )
    operators_find_next(operators)
    return 0
