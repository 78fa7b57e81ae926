# The operators of all splits: what they read and emit, and when each of them is called next.
from libc.stdint cimport int32_t, int64_t

from flinkcore._native.memory cimport Buffer
from flinkcore._native.split_records cimport Move, SplitRecords
from flinkcore._native.watermarks cimport Generator


cdef struct SplitOperator:
    Generator generator
    Move ahead                 # what the generator sees next
    bint ends                  # nothing
    bint unseen                # the generator has seen events since its last periodic call
    bint idle                  # of the operator's emitter
    bint paused                # by alignment
    int64_t current_watermark  # of the operator's emitter
    int64_t idle_since
    int64_t paused_since
    int64_t paused_ms          # in all, before


cdef struct Emission:
    int64_t clock
    int64_t timestamp
    int32_t split
    int32_t kind  # ElementKind of the valve


cdef struct Span:
    int64_t split
    int64_t since
    int64_t until


cdef class SplitOperators:
    cdef int64_t interval
    cdef int64_t opened
    cdef int64_t last_arrival
    cdef int64_t last_tick     # of the records
    cdef int32_t n
    cdef SplitRecords records
    cdef SplitOperator* splits
    cdef int64_t* next_clocks  # (n,): when each split's next call is due; 2**63 - 1: no more
    cdef int64_t next_clock    # the first of these
    cdef Buffer emissions      # not yet taken
    cdef Buffer paused_rows    # spans


# Looks at what comes first; calls up to `last_tick` have been made.
cdef int operators_start(SplitOperators operators, int64_t last_tick) except -1 nogil
# Makes all calls up to a clock; the emissions come by split, and within a split by clock.
cdef int operators_run(SplitOperators operators, int64_t until) except -1 nogil
# The last call of every split, after all ticks and in split order; where the job stops, it is left to another one.
cdef int operators_end(SplitOperators operators, bint stops) except -1 nogil
# Pauses or resumes a split, whose calls up to `last_tick` have been made; next_clock is found anew by operators_find_next.
cdef int operators_pause(SplitOperators operators, int32_t split, int64_t clock, int64_t last_tick) except -1 nogil
cdef int operators_resume(SplitOperators operators, int32_t split, int64_t clock, int64_t last_tick) except -1 nogil
cdef void operators_find_next(SplitOperators operators) noexcept nogil
# The last tick up to a clock.
cdef int64_t operators_last_tick(SplitOperators operators, int64_t clock) noexcept nogil
cdef int span_append(Buffer* spans, int32_t split, int64_t since, int64_t until) except -1 nogil
