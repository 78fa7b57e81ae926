# The steps of a timeline, packed in blocks.
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint64_t

from flinkcore._native.call_guard cimport CallGuard
from flinkcore._native.memory cimport Buffer


cdef enum:
    N_COLUMNS = 4
    AFTER_ALL = 0x7FFFFFFF  # in place of a split: a tick or the end of the log made the step


cdef enum StepColumn:
    CLOCK
    WATERMARK
    SPLIT
    POSITION


cdef enum:
    CLOCKS = 1 << StepColumn.CLOCK
    WATERMARKS = 1 << StepColumn.WATERMARK
    PLACES = CLOCKS | 1 << StepColumn.SPLIT | 1 << StepColumn.POSITION
    ALL_COLUMNS = PLACES | WATERMARKS


cdef struct StepBlock:
    # The first step of a block, and how the others are packed: a value is `base` plus `scale` times its code, which has `width`
    # bits. Codes of clocks and watermarks are of the differences to the step before.
    int64_t first_step
    int64_t offset                 # of its codes
    int64_t[N_COLUMNS] values      # of the first step
    uint64_t[N_COLUMNS] base
    uint64_t[N_COLUMNS] scale
    uint8_t[8] width               # the last four are 0


cdef struct StepsView:
    # Packed steps in memory that somebody else owns.
    int64_t n
    int64_t n_blocks
    int64_t most             # steps of a block
    const StepBlock* blocks
    const uint8_t* codes


cdef struct StepCursor:
    # One block, unpacked. Zero-initialise; free with steps_close.
    const StepsView* view
    int64_t number                 # of the block; -1: none yet
    int64_t first                  # its first step
    int64_t n                      # its steps
    int64_t* columns[N_COLUMNS]    # (view.most,) each; NULL: not unpacked


# Lets a cursor unpack columns of a block at a time: a sum of CLOCKS, WATERMARKS and PLACES.
cdef int steps_open(StepCursor* cursor, const StepsView* view, int columns) except -1
cdef void steps_close(StepCursor* cursor) noexcept nogil
# Unpacks the block with a step of the timeline; O(1) per step if the steps ascend.
cdef void steps_seek(StepCursor* cursor, int64_t step) noexcept nogil
# Returns how many steps come before a place in the total order; O(log d) blocks and steps if that is d away from `near`, and
# a block to unpack if it is in another one.
cdef int64_t steps_before_place(
    StepCursor* cursor, int64_t near, int64_t arrival, int64_t split, int64_t position
) noexcept nogil
# Finds the clocks of the step before so many steps, and of the one after: arrivals between them have as many steps before them.
# Called after steps_before_place has returned their number; -2**63 and 2**63 - 1 stand for a step that is not there.
cdef void steps_around(const StepCursor* cursor, int64_t n_steps, int64_t* before, int64_t* after) noexcept nogil
# Returns how many steps have a watermark below `watermark`.
cdef int64_t steps_below(StepCursor* cursor, int64_t watermark) noexcept nogil


cdef inline bint steps_has(const StepCursor* cursor, int64_t step) noexcept nogil:
    return <uint64_t> (step - cursor.first) < <uint64_t> cursor.n


cdef inline int64_t steps_value(StepCursor* cursor, StepColumn column, int64_t step) noexcept nogil:
    # Returns a column's value at a step of the timeline.
    if not steps_has(cursor, step):
        steps_seek(cursor, step)
    return cursor.columns[<int> column][step - cursor.first]


cdef inline int64_t steps_watermark_after(StepCursor* cursor, int64_t n_steps) noexcept nogil:
    # Returns the watermark in force after so many steps of the timeline.
    return steps_value(cursor, StepColumn.WATERMARK, n_steps - 1) if n_steps else INT64_MIN


cdef struct StepPacking:
    # Steps that wait until they are as many as a block has, and the blocks before. Zero-initialise.
    int64_t most
    int64_t n                 # packed
    int64_t n_held
    bint by_events            # some of those that wait
    int64_t* held[N_COLUMNS]  # (most,) each
    Buffer packed             # room for the header, and the codes
    Buffer blocks             # their descriptions


cdef int packing_flush(StepPacking* packing) except -1 nogil


cdef inline int packing_add(
    StepPacking* packing, int64_t clock, int64_t watermark, int64_t split, int64_t position
) except -1 nogil:
    # The end of the log is far from all steps: it has a block of its own.
    if packing.n_held == packing.most or (clock == INT64_MAX and packing.n_held):
        packing_flush(packing)
    packing.held[<int> StepColumn.CLOCK][packing.n_held] = clock
    packing.held[<int> StepColumn.WATERMARK][packing.n_held] = watermark
    packing.held[<int> StepColumn.SPLIT][packing.n_held] = split
    packing.held[<int> StepColumn.POSITION][packing.n_held] = position
    packing.by_events |= split != AFTER_ALL
    packing.n_held += 1
    return 0


cdef class StepPacker:
    cdef CallGuard guard
    cdef StepPacking packing


cdef class PackedSteps:
    cdef StepsView view
    cdef const uint8_t[::1] data
    cdef object owner


cdef class StepReader:
    cdef PackedSteps steps
    cdef StepCursor places      # no watermarks
    cdef StepCursor watermarks  # nothing else
