# The keyed window operator over columns, and what every kind of windows has.
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free

from flinkcore._native.aggregates cimport AccumulatorTable, Accumulators
from flinkcore._native.call_guard cimport Call, CallGuard
from flinkcore._native.keys cimport KeyBatch, KeyEncoder
from flinkcore._native.memory cimport BitBuffer, Buffer
from flinkcore._native.packed_steps cimport PackedSteps, StepColumn, StepCursor, steps_value


cdef enum TriggerKind:
    ON_EVENT_TIME             # EventTimeTrigger: at the window's end, and at every late row
    ON_COUNT                  # CountTrigger: with every `every`-th row of a key
    ON_CONTINUOUS_EVENT_TIME  # ContinuousEventTimeTrigger: also every `every` ms before the end
    ON_END_OF_STREAM          # EndOfStreamTrigger: at the window's end alone, which empties it; not at late rows


# Progress of a key's window.
cdef enum Progress:
    FILLED = 1     # it has content: not fired and purged since the last row
    FIRING = 2     # it has fired, and its result is not emitted yet
    GIVEN = 4      # if results are withdrawn: it has emitted one
    WITHDRAWN = 8  # while it fires: the earlier result is withdrawn, or there was none


cdef struct Trigger:
    TriggerKind kind
    int64_t every
    bint purges        # PurgingTrigger around it


# Returns the trigger of a name: "event_time", "count", "continuous_event_time" or "end_of_stream". Raises ConfigurationError.
cdef Trigger window_trigger(str name, int64_t every, bint purges) except *


cdef inline int64_t next_firing(int64_t every, int64_t time, int64_t max_timestamp) noexcept nogil:
    # ContinuousEventTimeTrigger.registerNextFireTimestamp: `every` after `time`, but not after the end. Unsigned, since the
    # difference of two times may pass 2**63; the first comparison has made sure that it is positive.
    if time < max_timestamp and <uint64_t> max_timestamp - <uint64_t> time > <uint64_t> every:
        return time + every
    return max_timestamp


cdef inline int64_t first_firing(int64_t every, int64_t timestamp, int64_t max_timestamp) noexcept nogil:
    # Returns the first firing after a row with this timestamp. The remainder truncates, as Java's does.
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
    Buffer kinds        # a byte each, of RowKind; only if results are withdrawn
    Buffer emitted      # int64; only if results have their time of emission


cdef int firings_append_kind(Firings* firings, RowKind kind, int64_t rows) except -1 nogil
cdef int firings_append_int64_keys(Firings* firings, const int64_t* keys, int64_t rows) except -1 nogil
# offsets: (rows + 1,), relative to data
cdef int firings_append_bytes_keys(
    Firings* firings, const uint8_t* data, const int64_t* offsets, int64_t rows
) except -1 nogil


cdef struct TimelineCursor:
    # The watermark in force, and the step of the timeline that changes it next.
    StepCursor steps      # clocks and watermarks around the next step
    StepCursor ahead      # watermarks around the step that was looked for last
    int64_t n_steps
    int64_t next          # of the steps that raise the watermark, and the end of the log
    int64_t n_dated       # so many steps have a time of emission; the later ones come with the end of the log alone
    int64_t watermark
    int64_t clock         # of the current step or row, if results have their time of emission; INT64_MIN if not known


# Puts the watermark after so many steps in force. Zero-initialise; close with cursor_close. A ConfigurationError if the timeline
# has fewer steps. The timeline must outlive the cursor.
cdef int cursor_open(TimelineCursor* cursor, PackedSteps timeline, int64_t steps_done) except -1
cdef void cursor_close(TimelineCursor* cursor) noexcept nogil
# Moves `next` on to the first step that raises the watermark, or is the end of the log.
cdef void cursor_find_next(TimelineCursor* cursor) noexcept nogil
# Puts a watermark in force until the timeline exceeds it, if it is later than the one that is.
cdef void cursor_raise(TimelineCursor* cursor, int64_t watermark) noexcept nogil
# Returns the number of the first step, from the next one on, whose watermark is at least `due`, or INT64_MAX.
cdef int64_t cursor_step_reaching(TimelineCursor* cursor, int64_t due) noexcept nogil


# Returns true if a row with so many steps before it, or the end of the timeline, sees a further step.
cdef inline bint cursor_has_step(const TimelineCursor* cursor, int64_t steps_before, bint to_end) noexcept nogil:
    return cursor.next < cursor.n_steps and (to_end or cursor.next < steps_before)


cdef inline int64_t cursor_step(TimelineCursor* cursor) noexcept nogil:
    # Puts the watermark of the next step in force. Returns the step's number.
    cdef int64_t step = cursor.next
    cursor.watermark = steps_value(&cursor.steps, StepColumn.WATERMARK, step)
    cursor.clock = steps_value(&cursor.steps, StepColumn.CLOCK, step) if step < cursor.n_dated else INT64_MIN
    cursor.next += 1
    cursor_find_next(cursor)
    return step


cdef struct PendingUpdates:
    # Rows that belong to entries and wait for the accumulators: thousands of rows per call spread the cost of a loop per
    # aggregate.
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
    # Flink sets a clean-up time that would overflow to the maximum. b is never negative here.
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
    const int64_t* clocks        # arrival of each row; NULL if results have no time of emission
    int64_t n_events             # rows from this number on are partial results: see WindowOperator.process
    AccumulatorTable* partials   # entry by entry; NULL if there are none
    const int64_t* partial_events


cdef inline uint32_t input_row(const InputRows* input, int64_t i) noexcept nogil:
    return input.rows[i] if input.rows != NULL else <uint32_t> i


cdef struct LateRows:
    uint32_t* rows
    int64_t n
    int64_t capacity


cdef enum:
    TWIN_ENTRY = 128  # flag of a further row of a window, after its own: that of its other entry
    NO_ENTRY = -2     # returned for a row that cannot be a window of the operator


cdef struct LiveWindow:
    # A window of one key, without its accumulators. Each kernel defines flags and trigger_state.
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
    bint unbounded_windows  # window_start and window_end of results are null
    bint retracts           # a window withdraws its result before it emits another one
    bint dates_results      # results have their time of emission
    AccumulatorTable* table
    TimelineCursor cursor
    int64_t turns         # of loops that may be long: see core_turn
    bint due              # results were full before all had fired that the watermark fires
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


# Appends window, firing and time of results whose keys have been appended: they fire at the watermark and the clock in force.
cdef int core_append_firings(WindowCore* core, int64_t start, int64_t end, bint late, int64_t rows) except -1 nogil
# Merges a partial result into an entry.
cdef int core_merge_partial(
    WindowCore* core, const InputRows* input, uint32_t entry, uint32_t number
) except -1 nogil
cdef int refuse_partial(const InputRows* input, uint32_t row) except -1 nogil


cdef inline int core_take_in(WindowCore* core, const InputRows* input, uint32_t entry, uint32_t row) except -1 nogil:
    # Adds an event, or merges a partial result, into an entry.
    if row < input.n_events:
        return pending_add(&core.pending, core.table, entry, row)
    return core_merge_partial(core, input, entry, <uint32_t> (row - input.n_events))


cdef inline int core_check_unfired(const WindowCore* core, const InputRows* input, uint32_t row, int64_t end) except -1 nogil:
    # Checks that a partial result comes before the first firing of its window, which ends at `end`.
    if row >= input.n_events and end - 1 <= core.cursor.watermark:
        refuse_partial(input, row)
    return 0


cdef int core_check_signals() except -1 nogil


cdef inline int core_turn(WindowCore* core) except -1 nogil:
    # Lets Ctrl-C end loops that may run for long without a result.
    core.turns += 1
    if core.turns & 0xFFFF == 0:
        core_check_signals()
    return 0


cdef inline bint core_is_full(const WindowCore* core) noexcept nogil:
    return core.table.rows >= core.row_limit or core.result_bytes >= core.byte_limit


cdef inline int64_t cleanup_time(const WindowCore* core, int64_t end) noexcept nogil:
    # WindowOperator.cleanupTime of the window with this end.
    return saturating_add(end - 1, core.lateness)


cdef inline bint is_over(const WindowCore* core, int64_t end) noexcept nogil:
    # WindowOperator.isWindowLate
    return cleanup_time(core, end) <= core.cursor.watermark


# Appends a window whose key has been appended to the rows' firings.
cdef int window_rows_add(WindowRows* windows, const LiveWindow* window, uint32_t entry) except -1 nogil
cdef int core_add_late(WindowCore* core, uint32_t row) except -1 nogil
# Counts a row that no open window takes: it is late, or between windows.
cdef int core_add_unassigned(WindowCore* core, uint32_t row, int64_t timestamp) except -1 nogil
# Appends the aggregates' results of as many entries (as in accumulators_emit and _emit_range) as there is room for; returns how
# many. The first result always has room. key_offsets: (n + 1,) if the keys are bytes, else NULL.
cdef int64_t core_emit(
    WindowCore* core, const uint32_t* entries, uint32_t first, int64_t n, const int64_t* key_offsets
) except -1 nogil
# Appends the result of one entry that a row fires, even if there is no room: a row may fire several windows, and is taken as a
# whole.
cdef int core_emit_row(WindowCore* core, uint32_t entry, int64_t key_bytes, RowKind kind, bint late) except -1 nogil
# If results are withdrawn: emits the next row of the first gathered firing that is not out, which has kind UPDATE_BEFORE as
# long as another row follows. Returns false without room. The firing's entry has the rows since the last result, `given` all
# before.
cdef bint core_emit_change(
    WindowCore* core, const GatheredFirings* fired, uint8_t* progress, uint32_t given, bint late, RowKind* kind
) except -1 nogil
cdef void core_count(WindowCore* core, RowKind kind, bint late) noexcept nogil


cdef inline int64_t gather_firing(GatheredFirings* fired, uint32_t entry, int64_t key_bytes) noexcept nogil:
    # Adds the window of a key, for which the caller has made room. Returns its number.
    cdef int64_t i = fired.n
    fired.entries[i] = entry
    fired.key_offsets[i + 1] = fired.key_offsets[i] + key_bytes
    fired.n = i + 1
    return i


cdef inline int64_t emit_gathered(WindowCore* core, const GatheredFirings* fired) except -1 nogil:
    # Appends the aggregates' results of as many firings as there is room for, from the first that is not out. Returns how many.
    return core_emit(
        core, fired.entries + fired.n_emitted, 0, fired.n - fired.n_emitted, fired.key_offsets + fired.n_emitted
    )


cdef struct WindowVerbs:
    # Prepares the kernel; called first, when keys and table of the core are known.
    int (*start)(void* state) except -1
    # Takes in rows from number `first` on. Returns the number of the next row, below n if results are full.
    int64_t (*process)(void* state, const InputRows* input, int64_t first) except -1 nogil
    # Fires what is due at the watermark in force, from where results were full. Returns false if they are full again.
    bint (*fire_due)(void* state) except -1 nogil
    # Puts the watermark of the timeline's next step in force and fires what is due. Returns false if results are full before.
    bint (*step)(void* state) except -1 nogil
    int64_t (*live_windows)(const void* state) noexcept nogil
    # Returns the bytes of keys, windows and timers; accumulators and results not counted. O(1)
    int64_t (*memory)(const void* state) noexcept nogil
    int (*check)(const void* state) except -1
    # Appends all live windows by key. No results wait.
    int (*windows)(const void* state, WindowRows* windows) except -1 nogil
    # Opens the window of a row's key, which was live in the operator of the checkpoint at the watermark in force. Returns its
    # entry, which is empty, or NO_ENTRY. The rows may be forged: only that twins come with withdrawn results has been checked.
    int64_t (*restore)(void* state, const KeyBatch* keys, int64_t row, const LiveWindow* window) except -1 nogil
    # Frees the state and everything that it owns.
    void (*free)(void* state) noexcept nogil


cdef inline bint core_advance(WindowCore* core, const WindowVerbs* verbs, int64_t steps_before, bint to_end) except -1 nogil:
    # Walks so many steps of the timeline, or to its end. Returns false if results are full before that.
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
    # Walks the timeline up to a row, whose clock dates the results that it fires. Returns false if results are full before.
    if not core_advance(core, verbs, input.steps_before[row], False):
        return False
    if input.clocks != NULL:
        core.cursor.clock = input.clocks[row]
    return True


cdef inline bint core_reach_row_emitted(
    WindowCore* core, const WindowVerbs* verbs, const InputRows* input, uint32_t row, bint gathered
) except -1 nogil:
    # The same for kernels that gather firings: if there are any, those of an earlier clock are emitted before it changes.
    if not core_advance(core, verbs, input.steps_before[row], False):
        return False
    if input.clocks != NULL and input.clocks[row] != core.cursor.clock:
        if gathered and not verbs.fire_due(core):
            return False
        core.cursor.clock = input.clocks[row]
    return True


cdef class WindowKernel:
    cdef void* state
    cdef const WindowVerbs* verbs
    cdef object calendar  # that the state borrows, or None
    cdef bint in_use
    cdef readonly str name  # of the kind
    cdef readonly bint takes_partials
    cdef readonly int64_t lowest_timestamp
    cdef readonly int64_t highest_timestamp


# Makes a kernel with a zeroed state of `size` bytes.
cdef WindowKernel window_kernel(
    str name, size_t size, const WindowVerbs* verbs, int64_t allowed_lateness, int64_t lowest_timestamp, int64_t highest_timestamp
)
# Raises ConfigurationError if windows that a firing empties should withdraw results.
cdef int check_retracts(const WindowCore* core, bint purges) except -1


cdef class WindowOperator:
    cdef CallGuard guard
    cdef WindowKernel _kernel
    cdef WindowCore* core  # of the kernel
    cdef KeyEncoder _keys
    cdef Accumulators _accumulators
    cdef PackedSteps _timeline
    cdef list _key_names
    cdef list _aggregate_names
    cdef str _time_format
    cdef str _emitted_at
    cdef bint _in_call
    cdef int _begin(self) except -1
    cdef Call _begin_partials(self, Accumulators partials, const int64_t[::1] partial_events)
    cdef bint _advance(self, int64_t steps_before, bint to_end) except -1
