# The keyed window operator over columns, and what every kind of windows has.
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free

from flinkcore._native.aggregates cimport AccumulatorTable, Accumulators
from flinkcore._native.call_guard cimport Call, CallGuard
from flinkcore._native.keys cimport KeyBatch, KeyEncoder
from flinkcore._native.memory cimport BitBuffer, Buffer


cdef enum TriggerKind:
    ON_EVENT_TIME             # EventTimeTrigger: at the window's end, and at every late row
    ON_COUNT                  # CountTrigger: with every `every`-th row of a key
    ON_CONTINUOUS_EVENT_TIME  # ContinuousEventTimeTrigger: also every `every` ms before the end
    ON_END_OF_STREAM          # EndOfStreamTrigger: at the window's end alone, which empties it; not at late rows


# How far a key's window has come.
cdef enum Progress:
    FILLED = 1     # it has content: not fired and purged since the last row
    FIRING = 2     # it has fired, and its result is still to be emitted
    GIVEN = 4      # where results are withdrawn: it has given one
    WITHDRAWN = 8  # while it fires: that is done, or there is none


cdef struct Trigger:
    TriggerKind kind
    int64_t every
    bint purges        # PurgingTrigger around it


# Of a name: "event_time", "count", "continuous_event_time", "end_of_stream". Raises ConfigurationError.
cdef Trigger window_trigger(str name, int64_t every, bint purges) except *


cdef inline int64_t next_firing(int64_t every, int64_t time, int64_t max_timestamp) noexcept nogil:
    # ContinuousEventTimeTrigger.registerNextFireTimestamp
    if time < max_timestamp and <uint64_t> max_timestamp - <uint64_t> time > <uint64_t> every:
        return time + every
    return max_timestamp


cdef inline int64_t first_firing(int64_t every, int64_t timestamp, int64_t max_timestamp) noexcept nogil:
    # Of a row with this timestamp. The remainder truncates, as Java's does.
    return next_firing(every, timestamp - timestamp % every, max_timestamp)


cdef enum:
    PENDING_UPDATES = 4096


cdef enum RowKind:
    # Flink's, of the rows of a stream that withdraws results
    INSERT         # the first result of a window
    UPDATE_BEFORE  # it comes again, withdrawn
    UPDATE_AFTER   # what takes its place
    DELETE         # it comes again, withdrawn: the window has merged into another


cdef struct Firings:
    # Result rows, column by column; the aggregates' columns are in the accumulators.
    int64_t rows
    int64_t expected_rows  # as many as were taken last
    Buffer keys         # int64 values, or the keys' bytes
    Buffer key_offsets  # int64 (rows + 1), only for bytes
    Buffer start
    Buffer end
    BitBuffer late
    Buffer watermark
    Buffer kinds        # a byte each, of RowKind; only where results are withdrawn
    Buffer emitted      # int64; only where results say when they were emitted


cdef int firings_append_kind(Firings* firings, RowKind kind, int64_t rows) except -1 nogil
cdef int firings_append_int64_keys(Firings* firings, const int64_t* keys, int64_t rows) except -1 nogil
# offsets: (rows + 1,), relative to data
cdef int firings_append_bytes_keys(
    Firings* firings, const uint8_t* data, const int64_t* offsets, int64_t rows
) except -1 nogil


cdef struct TimelineCursor:
    # The watermark in force, and the step of the timeline that changes it next.
    const int64_t* steps  # numbers, ascending
    const int64_t* watermarks
    const int64_t* clocks  # what the replay clock shows at each; NULL: nobody asks
    int64_t n_steps
    int64_t next
    int64_t watermark
    int64_t clock         # of the step or row at hand, where results say when they were emitted; INT64_MIN: not known


# Number of the first step, from the next one on, whose watermark is at least `due`; INT64_MAX where there is none.
cdef int64_t cursor_step_reaching(const TimelineCursor* cursor, int64_t due) noexcept nogil


# Whether a row with so many steps of the timeline before it, or the end of the timeline, sees a further one.
cdef inline bint cursor_has_step(const TimelineCursor* cursor, int64_t steps_before, bint to_end) noexcept nogil:
    return cursor.next < cursor.n_steps and (to_end or cursor.steps[cursor.next] < steps_before)


cdef inline int64_t cursor_step(TimelineCursor* cursor) noexcept nogil:
    # Puts the watermark of the next step in force; the step's number.
    cdef int64_t step = cursor.steps[cursor.next]
    cursor.watermark = cursor.watermarks[cursor.next]
    if cursor.clocks != NULL:
        cursor.clock = cursor.clocks[cursor.next]
    cursor.next += 1
    return step


cdef struct PendingUpdates:
    # Rows that belong to entries, not yet taken in by the accumulators.
    int64_t count
    uint32_t[PENDING_UPDATES] entries
    uint32_t[PENDING_UPDATES] rows


cdef int pending_flush(PendingUpdates* pending, AccumulatorTable* table) except -1 nogil


cdef inline int pending_add(
    PendingUpdates* pending, AccumulatorTable* table, uint32_t entry, uint32_t row
) except -1 nogil:
    if pending.count == PENDING_UPDATES:
        pending_flush(pending, table)
    pending.entries[pending.count] = entry
    pending.rows[pending.count] = row
    pending.count += 1
    return 0


cdef inline int64_t saturating_add(int64_t a, int64_t b) noexcept nogil:
    # Flink lets a clean-up time that would overflow be the maximum; b is never negative here.
    if a > INT64_MAX - b:
        return INT64_MAX
    return a + b


cdef struct InputRows:
    # Rows of a batch, in total order; n of them.
    const KeyBatch* keys
    const uint32_t* rows  # NULL: all rows of the batch, as they lie
    int64_t n
    const int64_t* timestamps
    const int64_t* steps_before  # each row, of the timeline
    const int64_t* clocks        # when each row came; NULL: nobody asks
    int64_t n_events             # rows from this number on are partial results: see WindowOperator.process
    AccumulatorTable* partials   # entry by entry; NULL: there are none
    const int64_t* partial_events


cdef inline uint32_t input_row(const InputRows* input, int64_t i) noexcept nogil:
    return input.rows[i] if input.rows != NULL else <uint32_t> i


cdef struct LateRows:
    uint32_t* rows
    int64_t n
    int64_t capacity


cdef enum:
    TWIN_ENTRY = 128  # flag of a further row of a window, after its own: that of its other entry
    NO_ENTRY = -2     # of a row that says what no window of the operator can be


cdef struct LiveWindow:
    # What a window of one key is besides its accumulators; flags and trigger_state mean what the kernel says.
    int64_t start
    int64_t end
    int64_t trigger_state
    uint8_t flags


cdef struct WindowRows:
    Firings firings  # keys, start and end; the trigger's state instead of a watermark
    Buffer flags     # uint8
    Buffer entries   # of the accumulators, uint32


cdef struct WindowCore:
    # The first member of every kernel's state.
    int64_t lateness
    bint bytes_keys
    bint unbounded_windows  # results have no window_start and window_end
    bint retracts           # before a window gives another result, it withdraws the one before
    bint dates_results      # they say when they were emitted
    AccumulatorTable* table
    TimelineCursor cursor
    int64_t turns         # of loops that may be long, see core_turn
    bint due              # results were full before all was fired that the watermark lets fire
    PendingUpdates pending
    Firings firings
    int64_t row_limit     # of results not yet taken
    int64_t byte_limit    # of their keys, strings and lists
    int64_t result_bytes
    LateRows late_rows
    int64_t events
    int64_t windowed
    int64_t in_no_window
    int64_t late
    int64_t on_time_firings
    int64_t late_firings
    int64_t retractions


cdef enum:
    MOST_GATHERED = 1024


cdef struct GatheredFirings:
    # Windows of keys that have fired, and whose results are emitted together: one call per aggregate then serves many windows, and
    # its memory is read in a row. They are emitted before one of them changes, and before watermark or clock move.
    int64_t n
    int64_t n_emitted                       # so many have their results out
    uint32_t[MOST_GATHERED] entries         # of the accumulators
    int64_t[MOST_GATHERED + 1] key_offsets  # KEY_BYTES: where their keys would lie, one after the other


# Window, firing and time of results whose keys have been appended: they fire at the watermark and the clock now in force.
cdef int core_append_firings(WindowCore* core, int64_t start, int64_t end, bint late, int64_t rows) except -1 nogil
# Merges a partial result into an entry.
cdef int core_merge_partial(
    WindowCore* core, const InputRows* input, uint32_t entry, uint32_t number
) except -1 nogil
cdef int refuse_partial(const InputRows* input, uint32_t row) except -1 nogil


cdef inline int core_take_in(WindowCore* core, const InputRows* input, uint32_t entry, uint32_t row) except -1 nogil:
    # An entry takes in an event, or a partial result.
    if row < input.n_events:
        return pending_add(&core.pending, core.table, entry, row)
    return core_merge_partial(core, input, entry, <uint32_t> (row - input.n_events))


cdef inline int core_check_unfired(const WindowCore* core, const InputRows* input, uint32_t row, int64_t end) except -1 nogil:
    # Partial results come before the first firing of their window, which ends there.
    if row >= input.n_events and end - 1 <= core.cursor.watermark:
        refuse_partial(input, row)
    return 0


cdef int core_check_signals() except -1 nogil


cdef inline int core_turn(WindowCore* core) except -1 nogil:
    # Within loops that may go on for long without a result: Ctrl-C ends them.
    core.turns += 1
    if core.turns & 0xFFFF == 0:
        core_check_signals()
    return 0


cdef inline bint core_is_full(const WindowCore* core) noexcept nogil:
    return core.table.rows >= core.row_limit or core.result_bytes >= core.byte_limit


cdef inline int64_t cleanup_time(const WindowCore* core, int64_t end) noexcept nogil:
    # WindowOperator.cleanupTime, of the window with this end.
    return saturating_add(end - 1, core.lateness)


cdef inline bint is_over(const WindowCore* core, int64_t end) noexcept nogil:
    # WindowOperator.isWindowLate
    return cleanup_time(core, end) <= core.cursor.watermark


# For a key that has been appended to the rows' firings.
cdef int window_rows_add(WindowRows* windows, const LiveWindow* window, uint32_t entry) except -1 nogil
cdef int core_add_late(WindowCore* core, uint32_t row) except -1 nogil
# A row that no open window takes: it is late, or between windows.
cdef int core_add_unassigned(WindowCore* core, uint32_t row, int64_t timestamp) except -1 nogil
# Appends the aggregates' results of as many of the entries (as of accumulators_emit and _emit_range) as there is room for;
# how many. The first result always has room. key_offsets: (n + 1,) for keys that are bytes, else NULL.
cdef int64_t core_emit(
    WindowCore* core, const uint32_t* entries, uint32_t first, int64_t n, const int64_t* key_offsets
) except -1 nogil
# Appends the result of one entry that a row fires, whether there is room or not: a row may fire several windows, and is taken as a whole.
cdef int core_emit_row(WindowCore* core, uint32_t entry, int64_t key_bytes, RowKind kind, bint late) except -1 nogil
# Where results are withdrawn: emits the next row of the first gathered firing that is not out, which has kind UPDATE_BEFORE as long as
# another row follows; false where there is no room. The firing's entry has the rows since the last result, `given` all before.
cdef bint core_emit_change(
    WindowCore* core, const GatheredFirings* fired, uint8_t* progress, uint32_t given, bint late, RowKind* kind
) except -1 nogil
cdef void core_count(WindowCore* core, RowKind kind, bint late) noexcept nogil


cdef inline int64_t gather_firing(GatheredFirings* fired, uint32_t entry, int64_t key_bytes) noexcept nogil:
    # Adds the window of a key, for which the caller has made sure of room; its number.
    cdef int64_t i = fired.n
    fired.entries[i] = entry
    fired.key_offsets[i + 1] = fired.key_offsets[i] + key_bytes
    fired.n = i + 1
    return i


cdef inline int64_t emit_gathered(WindowCore* core, const GatheredFirings* fired) except -1 nogil:
    # Appends the aggregates' results of as many firings as there is room for, from the first that is not out; how many.
    return core_emit(
        core, fired.entries + fired.n_emitted, 0, fired.n - fired.n_emitted, fired.key_offsets + fired.n_emitted
    )


cdef struct WindowVerbs:
    # Called when keys and table of the core are known, before anything else.
    int (*start)(void* state) except -1
    # Takes in rows from number `first` on; the number to go on with, below n where results are full.
    int64_t (*process)(void* state, const InputRows* input, int64_t first) except -1 nogil
    # Fires what is due at the watermark now in force, from where results were full; false where they are full again.
    bint (*fire_due)(void* state) except -1 nogil
    # Puts the watermark of the timeline's next step in force and fires what it lets fire; false where results are full before.
    bint (*step)(void* state) except -1 nogil
    int64_t (*live_windows)(const void* state) noexcept nogil
    int (*check)(const void* state) except -1
    # Appends all live windows by key; no results wait.
    int (*windows)(const void* state, WindowRows* windows) except -1 nogil
    # Opens the window of a row's key, which was live elsewhere at the watermark now in force; its entry, which is empty, or
    # NO_ENTRY. Rows are trusted in nothing but that twins come only where results are withdrawn.
    int64_t (*restore)(void* state, const KeyBatch* keys, int64_t row, const LiveWindow* window) except -1 nogil
    # What the state owns, and the state.
    void (*free)(void* state) noexcept nogil


cdef inline bint core_advance(WindowCore* core, const WindowVerbs* verbs, int64_t steps_before, bint to_end) except -1 nogil:
    # Walks so many steps of the timeline, or to its end; false where results are full before that.
    if core.due and not verbs.fire_due(core):
        return False
    while cursor_has_step(&core.cursor, steps_before, to_end):
        core_turn(core)
        if not verbs.step(core):
            return False
    return True


cdef inline bint core_reach_row(
    WindowCore* core, const WindowVerbs* verbs, const InputRows* input, uint32_t row
) except -1 nogil:
    # Walks the timeline up to a row, whose clock dates what it fires; false where results are full before.
    if not core_advance(core, verbs, input.steps_before[row], False):
        return False
    if input.clocks != NULL:
        core.cursor.clock = input.clocks[row]
    return True


cdef inline bint core_reach_row_emitted(
    WindowCore* core, const WindowVerbs* verbs, const InputRows* input, uint32_t row
) except -1 nogil:
    # The same for kernels that gather firings: those of an earlier clock are emitted before it changes.
    if not core_advance(core, verbs, input.steps_before[row], False):
        return False
    if input.clocks != NULL and input.clocks[row] != core.cursor.clock:
        if not verbs.fire_due(core):
            return False
        core.cursor.clock = input.clocks[row]
    return True


cdef class WindowKernel:
    cdef void* state
    cdef const WindowVerbs* verbs
    cdef bint in_use
    cdef readonly str name  # of the kind
    cdef readonly bint takes_partials
    cdef readonly int64_t lowest_timestamp
    cdef readonly int64_t highest_timestamp


# A kernel with its zeroed state, of `size` bytes.
cdef WindowKernel window_kernel(
    str name, size_t size, const WindowVerbs* verbs, int64_t allowed_lateness, int64_t lowest_timestamp, int64_t highest_timestamp
)
# Raises ConfigurationError where windows that are emptied should withdraw what they have given.
cdef int check_retracts(const WindowCore* core, bint purges) except -1


cdef class WindowOperator:
    cdef CallGuard guard
    cdef WindowKernel _kernel
    cdef WindowCore* core  # of the kernel
    cdef KeyEncoder _keys
    cdef Accumulators _accumulators
    cdef object _steps
    cdef object _watermarks
    cdef object _clocks
    cdef list _key_names
    cdef list _aggregate_names
    cdef str _time_format
    cdef str _emitted_at
    cdef bint _in_call
    cdef int _begin(self) except -1
    cdef Call _begin_partials(self, Accumulators partials, const int64_t[::1] partial_events)
    cdef bint _advance(self, int64_t steps_before, bint to_end) except -1
