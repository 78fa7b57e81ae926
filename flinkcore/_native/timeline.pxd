# The timeline of a log: operators of all its splits, run over the ticks of its clock, and the valve that merges their output.
from libc.stdint cimport int32_t, int64_t

from flinkcore._native.call_guard cimport CallGuard
from flinkcore._native.memory cimport Buffer
from flinkcore._native.packed_steps cimport StepPacker
from flinkcore._native.valve cimport StatusWatermarkValve
from flinkcore._native.watermark_generator cimport Generator


cdef struct Move:
    int64_t tick        # where the split has an event next; not always after the tick before it
    int64_t timestamp   # the maximum there, if it matters; else -2**63
    bint over_gap       # the ticks up to it have no events


cdef struct RecordCursor:
    int64_t part                 # -1 after the last part
    int64_t last_part
    bint entered                 # the part's first move is done
    const int64_t* ticks         # of the next records
    const int64_t* timestamps
    int64_t n_records


cdef class SplitRecords:
    cdef CallGuard guard
    cdef int64_t interval
    cdef int32_t n_splits
    cdef RecordCursor* cursors
    cdef Buffer parts
    cdef list owners


cdef struct SplitOperator:
    Generator generator
    Move ahead                 # what the generator sees next
    bint ends                  # nothing
    Move folded                # moves behind it that are read together, if there are some
    bint folds
    bint unseen                # the generator has seen events since its last periodic call
    bint idle                  # of the operator's emitter
    bint paused                # by alignment
    int64_t current_watermark  # of the operator's emitter
    int64_t idle_since
    int64_t paused_since
    int64_t paused_ms          # in all, before


cdef class SplitOperators:
    cdef int64_t interval
    cdef int64_t opened
    cdef int64_t last_arrival
    cdef int64_t last_tick     # of the records
    cdef int32_t n
    cdef SplitRecords records
    cdef SplitOperator* splits
    cdef int64_t* next_clocks  # (n,): when each split's next call is due; 2**63 - 1: no more
    cdef int64_t* clocks_of_blocks  # the first of each block of splits
    cdef int64_t* clocks_of_groups  # the first of each group of blocks
    cdef int64_t next_clock    # the first of these
    cdef Buffer emissions      # not yet taken
    cdef Buffer paused_rows    # spans


cdef struct SplitAlignment:
    int64_t max_drift
    int64_t update_interval
    int64_t next_update    # 2**63 - 1: none
    int64_t n_updates
    int64_t quiet_updates  # since something was emitted
    int64_t* samples       # (WATERMARK_BUFFER_SIZE, splits): watermarks at the last updates; NULL: no alignment


cdef class SplitMerge:
    cdef CallGuard guard
    cdef SplitOperators operators
    cdef StatusWatermarkValve valve
    cdef SplitAlignment alignment
    cdef bint restored
    cdef bint started
    cdef int64_t last_tick     # calls up to it have been made, if started
    cdef int64_t stopped       # last arrival of the log before, if restored
    cdef int64_t window_ticks
    cdef int64_t* places       # (window_ticks,)
    cdef Buffer in_order       # emissions of one window
    cdef StepPacker packer     # of the steps that the valve emits
    cdef Buffer status_rows    # of the valve
    cdef Buffer idle_rows      # spans
    cdef Buffer holder_rows    # which split holds the watermark, from when on
    cdef int64_t lead_clock    # up to when the lead of the others is in `led`
    cdef double led            # since the last change of the holder, lead times length of time
    cdef double first_led      # the same up to the first change
    cdef int64_t first_clock   # of the first emission, if the merge continues another one

    cdef int _run_up_to(self, int64_t limit) except -1
    cdef int _start(self) except -1
    cdef int _run_updates_up_to(self, int64_t limit) except -1
