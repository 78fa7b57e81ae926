# The moves of each split over the ticks, told by the summaries of its chunks in log order.
from libc.stdint cimport int32_t, int64_t

from flinkcore._native.call_guard cimport CallGuard
from flinkcore._native.memory cimport Buffer
from flinkcore._native.watermarks cimport PackedRecord


cdef struct SplitPart:
    # What one chunk tells of one split.
    int64_t first_tick
    int64_t last_tick
    int64_t max_timestamp
    int64_t n_records
    const PackedRecord* records  # NULL: they are in the file
    int64_t file_offset
    int64_t following            # the split's part in its next chunk; -1: there is none


cdef struct Move:
    int64_t tick        # where the split has an event next; not always after the tick before it
    int64_t timestamp   # the maximum there, if it matters; else -2**63
    bint over_gap       # the ticks on the way are without events


cdef struct RecordCursor:
    int64_t part                 # -1: there are no more
    int64_t last_part
    bint entered                 # the part's first move is done
    bint in_gap                  # and so is the first move of a gap
    const PackedRecord* records  # the next ones, in memory
    int64_t n_records
    int64_t n_unread             # those after them, in the file
    int64_t file_offset


cdef class SplitRecords:
    cdef CallGuard guard
    cdef int64_t interval
    cdef int32_t n_splits
    cdef RecordCursor* cursors
    cdef Buffer parts
    cdef int file
    cdef int64_t buffer_records   # room for each split
    cdef PackedRecord* buffers
    cdef list owners


# The next move of a split in *move: 1, or 0 if there is none.
cdef int next_move(SplitRecords records, int32_t split, Move* move) except -1 nogil
