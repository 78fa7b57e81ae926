# The operators of all splits, run over the ticks of a log, and the valve that takes in what they emit.
from libc.stdint cimport int32_t, int64_t

from flinkcore._native.arrow cimport Buffer
from flinkcore._native.split_records cimport Move, SplitRecords
from flinkcore._native.valve cimport StatusWatermarkValve
from flinkcore._native.watermarks cimport Generator


cdef enum:
    WATERMARK_BUFFER_SIZE = 3  # Flink's default of pipeline.watermark-alignment.buffer-size


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


cdef struct Step:
    int64_t clock
    int64_t watermark


cdef struct Status:
    int64_t clock
    int64_t steps  # before it
    int64_t idle


cdef struct Span:
    int64_t split
    int64_t since
    int64_t until


cdef class SplitMerge:
    cdef int64_t interval
    cdef int64_t opened
    cdef bint restored
    cdef int64_t stopped       # last arrival of the log before, if restored
    cdef int64_t last_arrival
    cdef int64_t last_tick     # of the records
    cdef int32_t n_splits
    cdef SplitRecords records
    cdef StatusWatermarkValve valve
    cdef SplitOperator* splits
    cdef int64_t* next_clocks  # (n_splits,): when each split's next call is due; 2**63 - 1: no more
    cdef int64_t start         # when the first of these is due
    cdef int64_t window_ticks
    cdef int64_t* places       # (window_ticks,)
    cdef Buffer emissions      # of one window
    cdef Buffer in_order
    cdef Buffer step_rows
    cdef Buffer status_rows    # of the valve
    cdef Buffer idle_rows
    cdef Buffer paused_rows
    cdef int64_t max_drift     # of the alignment, if any
    cdef int64_t update_interval
    cdef int64_t next_update   # 2**63 - 1: none
    cdef int64_t n_updates
    cdef int64_t quiet_updates # since something was emitted
    cdef int64_t* samples      # (WATERMARK_BUFFER_SIZE, n_splits): watermarks at the last updates; NULL: no alignment

    cdef int _align(self, int64_t max_drift, int64_t update_interval) except -1
    cdef int _run_up_to(self, int64_t limit) except -1
