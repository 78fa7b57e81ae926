# The summaries of chunks, in log order, made into what the operators of all splits emit.
from libc.stdint cimport int32_t, int64_t, uint64_t

from flinkcore._native.arrow cimport Buffer
from flinkcore._native.watermarks cimport Generator


cdef struct SplitOperator:
    Generator generator
    int64_t tick               # the last one with activity; before the first event, when the operator was opened
    int64_t current_watermark  # of the operator's emitter
    bint idle                  # of the operator's emitter


cdef struct Emission:
    int64_t clock
    int64_t timestamp
    int32_t split
    int32_t kind  # ElementKind of the valve


cdef class SplitMerge:
    cdef int64_t interval
    cdef uint64_t idle_wait
    cdef int64_t opened
    cdef int32_t n_splits
    cdef SplitOperator* splits
    cdef Buffer emissions
