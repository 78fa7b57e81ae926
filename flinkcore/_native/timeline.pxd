# The operators of all splits, run over the ticks of a log, and the valve that takes in what they emit.
from libc.stdint cimport int32_t, int64_t, uint64_t

from flinkcore._native.arrow cimport Buffer
from flinkcore._native.split_records cimport SplitRecords
from flinkcore._native.valve cimport StatusWatermarkValve
from flinkcore._native.watermarks cimport Generator


cdef enum PeriodicCall:
    # Those calls of an operator that can change something; see the implementation.
    AT_TICK = 0
    STARTS_COUNT = 1
    FINDS_IDLE = 2


cdef struct SplitOperator:
    Generator generator
    int64_t tick               # the last one with activity; before the first event, when the operator was opened
    bint ends                  # there is no later one
    int64_t to_tick            # the next one with activity, and the greatest timestamp known there
    int64_t to_timestamp
    int64_t horizon            # up to here the calls after `tick` can change something
    int64_t current_watermark  # of the operator's emitter
    int64_t idle_since
    bint idle                  # of the operator's emitter
    int32_t call               # PeriodicCall that is due next


cdef struct Emission:
    int64_t clock
    int64_t timestamp
    int32_t split
    int32_t kind  # ElementKind of the valve


cdef struct Step:
    int64_t clock
    int64_t watermark


cdef struct IdleSpan:
    int64_t split
    int64_t since
    int64_t until


cdef class SplitMerge:
    cdef int64_t interval
    cdef uint64_t idle_wait
    cdef int64_t opened
    cdef int64_t last_arrival
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
    cdef Buffer span_rows
