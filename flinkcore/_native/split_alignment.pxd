# Alignment of splits: those whose watermarks are too far ahead are paused.
from libc.stdint cimport int64_t

from flinkcore._native.split_operators cimport SplitOperators


cdef struct SplitAlignment:
    int64_t max_drift
    int64_t update_interval
    int64_t next_update    # 2**63 - 1: none
    int64_t n_updates
    int64_t quiet_updates  # since something was emitted
    int64_t* samples       # (WATERMARK_BUFFER_SIZE, splits): watermarks at the last updates; NULL: no alignment


cdef int alignment_start(
    SplitAlignment* alignment, SplitOperators operators, int64_t max_drift, int64_t update_interval
) except -1
# The next update: all watermarks are sampled and reported, the maximum is announced, and splits are paused or resumed.
cdef int alignment_update(SplitAlignment* alignment, SplitOperators operators) except -1 nogil
# The log ends: what is paused is read with its last arrival.
cdef int alignment_end(SplitOperators operators) except -1 nogil
