# The operators of all splits, run over the ticks of a log, and the valve that takes in what they emit.
from libc.stdint cimport int64_t

from flinkcore._native.call_guard cimport CallGuard
from flinkcore._native.memory cimport Buffer
from flinkcore._native.split_alignment cimport SplitAlignment
from flinkcore._native.split_operators cimport SplitOperators
from flinkcore._native.valve cimport StatusWatermarkValve


cdef struct Step:
    int64_t clock
    int64_t watermark


cdef struct Status:
    int64_t clock
    int64_t steps  # before it
    int64_t idle


cdef class SplitMerge:
    cdef CallGuard guard
    cdef SplitOperators operators
    cdef StatusWatermarkValve valve
    cdef SplitAlignment alignment
    cdef bint restored
    cdef int64_t stopped       # last arrival of the log before, if restored
    cdef int64_t window_ticks
    cdef int64_t* places       # (window_ticks,)
    cdef Buffer in_order       # emissions of one window
    cdef Buffer step_rows
    cdef Buffer status_rows    # of the valve
    cdef Buffer idle_rows      # spans

    cdef int _run_up_to(self, int64_t limit) except -1
