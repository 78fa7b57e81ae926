# What the kernels of relational operators share: events as they come, the watermark in force, results that wait.
from libc.stdint cimport INT64_MAX, INT64_MIN, int8_t, int32_t, int64_t, uint8_t, uint32_t

from flinkcore._native.memory cimport Buffer, buffer_append, buffer_append_int64
from flinkcore._native.packed_steps cimport PackedSteps
from flinkcore._native.timer_queue cimport Timer, TimerQueue, timer_queue_is_due, timer_queue_poll_due
from flinkcore._native.window_operator cimport RowKind, TimelineCursor, cursor_has_step, cursor_step


cdef enum:
    NO_ROW = -1    # in place of the number of a row: its columns are null
    NO_EVENT = -1  # in place of the number of an event: a watermark has the result


cdef struct RelationalEvents:
    # Events in total order; n of them.
    int64_t n
    const uint32_t* key_ids
    const int32_t* key_groups
    const int8_t* inputs       # 0 or 1 for each event; NULL: all of the one input
    const int64_t* rows        # numbers of the rows that are kept
    const int64_t* timestamps
    const int64_t* steps       # of the timeline, before each event


cdef struct ResultRow:
    int64_t left       # number of the row of the first input, or NO_ROW
    int64_t right      # of the second input
    int64_t event      # index of the event that has the result, or NO_EVENT
    int64_t step       # in force: that of the watermark that has the result
    int64_t fired      # time of the timer that has the result; INT64_MIN: none
    int64_t timestamp  # event time of the result; INT64_MIN: none
    int64_t value      # a number that the kernel adds, such as a rank
    uint32_t key_id
    uint8_t kind       # RowKind


cdef struct RelationalCore:
    # The first member of every kernel's state. Zero-initialise; open with core_open, free with core_free.
    TimelineCursor cursor
    int64_t step          # number of the step in force, or -1
    bint due              # results were full before all had fired that the watermark in force fires
    bint of_two           # results have rows of two inputs
    bint has_kinds        # results are changes
    bint has_values       # results have numbers of the kernel's
    Buffer results        # ResultRow
    int64_t n_results
    int64_t result_limit  # of results that wait; an event or a timer may have some on top
    int64_t processed     # events that are not late
    int64_t late
    Buffer late_events    # int64, indexes of those of the call whose kernel gives them: see core_late
    int64_t timers_fired


# Lets a kernel go on from the watermark after so many steps. Raises ConfigurationError for limits out of range.
cdef int core_open(
    RelationalCore* core,
    PackedSteps timeline,
    int64_t steps_done,
    int64_t result_limit,
    bint of_two,
    bint has_kinds,
    bint has_values,
) except -1
cdef void core_free(RelationalCore* core) noexcept nogil


# What a kernel does with its state, of which the core is the first member. Fires what the watermark in force makes due; returns false if
# results are full before, and leaves `due` true then.
ctypedef bint (*FireDue)(RelationalCore* core) except -1 nogil
# Takes in events from number `first` on; returns the number of the next one, below n if results are full.
ctypedef int64_t (*TakeEvents)(RelationalCore* core, const RelationalEvents* events, int64_t first) except -1 nogil


# Takes in the events of a call, with signals checked in between. Returns as `take_events` does. From the first event on, the late ones of
# an earlier call are forgotten.
cdef int64_t core_process(
    RelationalCore* core, TakeEvents take_events, RelationalEvents* events, int64_t first
) except -1
# Fills in the events of a call, whose columns the caller owns: (n,) each. Raises ValueError if one is not as long as the others, or if an
# input is neither 0 nor 1.
cdef int core_events(
    RelationalEvents* events,
    const uint32_t[::1] key_ids,
    const int32_t[::1] key_groups,
    const int8_t[::1] inputs,
    const int64_t[::1] rows,
    const int64_t[::1] timestamps,
    const int64_t[::1] steps,
    int64_t first,
) except -1
# Returns the results that wait as KernelResults, and forgets them.
cdef object core_take(RelationalCore* core)
# Returns the indexes of the events of the last call that were late, as int64 array, and forgets them.
cdef object core_take_late(RelationalCore* core)
# Returns the counts of events and timers by their names in the report.
cdef dict core_counts(const RelationalCore* core)


cdef inline bint core_is_full(const RelationalCore* core) noexcept nogil:
    return core.n_results >= core.result_limit


cdef inline ResultRow* core_add(
    RelationalCore* core, int64_t left, int64_t event, uint32_t key_id, int64_t timestamp, RowKind kind
) except NULL nogil:
    # Appends a result; of a watermark if event is NO_EVENT, whose `fired` the caller sets. The pointer is valid until the next one.
    cdef ResultRow* row = <ResultRow*> buffer_append(&core.results, sizeof(ResultRow))
    row.left = left
    row.right = NO_ROW
    row.event = event
    row.step = core.step
    row.fired = INT64_MIN
    row.timestamp = timestamp
    row.value = 0
    row.key_id = key_id
    row.kind = <uint8_t> kind
    core.n_results += 1
    return row


cdef inline int core_late(RelationalCore* core, int64_t event) except -1 nogil:
    # Counts an event that is late, and keeps its index until it is asked for.
    buffer_append_int64(&core.late_events, event)
    core.late += 1
    return 0


cdef inline bint core_next_step(RelationalCore* core, int64_t steps_before, bint to_end) noexcept nogil:
    # Puts the watermark of the next step in force, if an event with so many steps before it, or the end of the timeline, sees one.
    if not cursor_has_step(&core.cursor, steps_before, to_end):
        return False
    core.step = cursor_step(&core.cursor)
    return True


cdef inline bint core_poll_due(RelationalCore* core, TimerQueue* timers, int64_t n_keys, Timer* timer) noexcept nogil:
    # Takes the first timer that the watermark in force fires, while there is room for results. False: none, or no room (`due`).
    # The kernel knows n_keys keys; those of restored timers may be forged.
    if core_is_full(core):
        core.due = timer_queue_is_due(timers, core.cursor.watermark)
        return False
    core.due = timer_queue_poll_due(timers, core.cursor.watermark, n_keys, timer)
    core.timers_fired += core.due
    return core.due


cdef inline bint core_advance(RelationalCore* core, FireDue fire_due, int64_t steps_before, bint to_end) except -1 nogil:
    # Puts the watermarks of steps in force, one after the other, and fires what is due. Returns false if results are full before.
    if core.due and not fire_due(core):
        return False
    while core_next_step(core, steps_before, to_end):
        if not fire_due(core):
            return False
    return True


cdef inline int64_t core_n_keys(const RelationalEvents* events, int64_t first) noexcept nogil:
    # Returns the number of keys that a kernel must know for the events from `first` on.
    cdef uint32_t most = 0
    cdef int64_t i
    for i in range(first, events.n):
        most = max(most, events.key_ids[i])
    return <int64_t> most + 1
