"""The keyed window operator over columns, and what every kind of windows has: the timeline, results within limits, late rows, counts.

Results wait in the operator until they are taken. When as many wait as its limits allow, the operator stops, between two rows
or between two of the windows that one watermark fires, and resumes there after they have been taken.
"""

import numpy as np

import cython
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from flinkcore.errors import ConfigurationError, DataError, InternalError, SchemaError

from flinkcore._native.aggregates cimport (
    AccumulatorTable,
    Accumulators,
    accumulators_emit,
    accumulators_emit_range,
    accumulators_merge,
    accumulators_merge_from,
    accumulators_update,
    aggregate_result_bytes,
)
from flinkcore._native.arrow cimport NativeArray, RecordBatch, native_array
from flinkcore._native.call_guard cimport Call, begin_call, begin_reading, check_no_call
from flinkcore._native.keys cimport KEY_BYTES, KeyEncoder, keys_are_alike
from flinkcore._native.memory cimport (
    BitBuffer,
    Buffer,
    bits_append_many,
    buffer_append,
    buffer_append_int64,
    buffer_free,
    buffer_reserve,
    grow,
)
from flinkcore._native.packed_steps cimport (
    CLOCKS,
    WATERMARKS,
    PackedSteps,
    StepColumn,
    steps_below,
    steps_close,
    steps_open,
    steps_value,
    steps_watermark_after,
)


# ---- triggers ----------------------------------------------------------------------------------------------------
# Triggers say when windows fire, and whether a firing empties them.


cdef Trigger window_trigger(str name, int64_t every, bint purges) except *:
    cdef Trigger trigger
    trigger.every = every
    trigger.purges = purges
    if name == "event_time":
        trigger.kind = TriggerKind.ON_EVENT_TIME
    elif name == "count":
        trigger.kind = TriggerKind.ON_COUNT
        trigger.every = max(every, 1)  # with a count below one, Flink's CountTrigger fires at every row
    elif name == "continuous_event_time":
        trigger.kind = TriggerKind.ON_CONTINUOUS_EVENT_TIME
        if not 0 < every <= 2**60:
            raise ConfigurationError(f"a continuous trigger of {every} ms: the interval must be above zero, and at most 2**60")
    elif name == "end_of_stream":
        trigger.kind = TriggerKind.ON_END_OF_STREAM
    else:
        raise ConfigurationError(f"no trigger over columns is named {name!r}")
    return trigger


# ---- rows of results ---------------------------------------------------------------------------------------------


cdef int _reserve(Buffer* buffer, int64_t rows, int64_t expected_rows) except -1 nogil:
    # Makes room for rows of 8 bytes. The first batch reserves as much as the last one needed, which saves growing step by step.
    return buffer_reserve(buffer, 8 * (rows if buffer.size else max(rows, expected_rows)))


cdef int _append_repeated(Buffer* buffer, int64_t value, int64_t count, int64_t expected_rows) except -1 nogil:
    cdef int64_t i
    cdef int64_t* out
    _reserve(buffer, count, expected_rows)
    out = <int64_t*> (buffer.data + buffer.size)
    for i in range(count):
        out[i] = value
    buffer.size += count * 8
    return 0


cdef int _firings_append(
    Firings* firings, int64_t start, int64_t end, bint late, int64_t watermark, int64_t rows
) except -1 nogil:
    _append_repeated(&firings.start, start, rows, firings.expected_rows)
    _append_repeated(&firings.end, end, rows, firings.expected_rows)
    _append_repeated(&firings.watermark, watermark, rows, firings.expected_rows)
    bits_append_many(&firings.late, late, rows)
    firings.rows += rows
    return 0


cdef int firings_append_kind(Firings* firings, RowKind kind, int64_t rows) except -1 nogil:
    buffer_reserve(&firings.kinds, rows)
    memset(firings.kinds.data + firings.kinds.size, <int> kind, rows)
    firings.kinds.size += rows
    return 0


cdef int firings_append_int64_keys(Firings* firings, const int64_t* keys, int64_t rows) except -1 nogil:
    _reserve(&firings.keys, rows, firings.expected_rows)
    memcpy(firings.keys.data + firings.keys.size, keys, rows * 8)
    firings.keys.size += rows * 8
    return 0


cdef int firings_append_bytes_keys(
    Firings* firings, const uint8_t* data, const int64_t* offsets, int64_t rows
) except -1 nogil:
    cdef int64_t shift, length = offsets[rows] - offsets[0], i
    cdef int64_t* out
    if firings.key_offsets.size == 0:
        buffer_append_int64(&firings.key_offsets, 0)
    shift = firings.keys.size - offsets[0]
    buffer_reserve(&firings.keys, length)
    if length:
        memcpy(firings.keys.data + firings.keys.size, data + offsets[0], length)
    firings.keys.size += length
    buffer_reserve(&firings.key_offsets, rows * 8)
    out = <int64_t*> (firings.key_offsets.data + firings.key_offsets.size)
    for i in range(rows):
        out[i] = offsets[i + 1] + shift
    firings.key_offsets.size += rows * 8
    return 0


cdef void _firings_free(Firings* firings) noexcept nogil:
    buffer_free(&firings.keys)
    buffer_free(&firings.key_offsets)
    buffer_free(&firings.start)
    buffer_free(&firings.end)
    buffer_free(&firings.late.bytes)
    buffer_free(&firings.watermark)
    buffer_free(&firings.kinds)
    buffer_free(&firings.emitted)
    memset(firings, 0, sizeof(Firings))


cdef NativeArray _kind_names(const Buffer* kinds, int64_t rows):
    # Returns the column of RowKind.shortString.
    cdef const char* names = b"+I-U+U-D"
    cdef Buffer offsets, text
    cdef int64_t i
    memset(&offsets, 0, sizeof(Buffer))
    memset(&text, 0, sizeof(Buffer))
    buffer_reserve(&offsets, (rows + 1) * 4)
    buffer_reserve(&text, rows * 2 + 1)
    for i in range(rows + 1):
        (<int32_t*> offsets.data)[i] = <int32_t> (2 * i)
    for i in range(rows):
        memcpy(text.data + 2 * i, names + 2 * kinds.data[i], 2)
    offsets.size = (rows + 1) * 4
    text.size = rows * 2
    return native_array("u", rows, NULL, &offsets, &text)


cdef NativeArray _emission_times(Buffer* emitted, int64_t rows, str time_format):
    cdef BitBuffer known
    cdef int64_t i
    memset(&known, 0, sizeof(known))
    for i in range(rows):
        bits_append_many(&known, (<const int64_t*> emitted.data)[i] != INT64_MIN, 1)
    return native_array(time_format, rows, &known, emitted, NULL)


cdef NativeArray _firings_take(
    Firings* firings,
    KeyEncoder keys,
    list key_names,
    str time_format,
    bint unbounded,
    bint with_kinds,
    str emitted_at,
    Accumulators accumulators,
    list aggregate_names,
):
    # Returns the result rows so far and begins new ones. The bounds of `unbounded` windows are null; `with_kinds` adds the
    # kinds of rows.
    cdef int64_t rows = firings.rows, unfit = accumulators.unfit_result()
    cdef BitBuffer[2] bounds
    cdef int i
    if unfit >= 0:
        accumulators.refuse_result(
            unfit,
            "a window without bounds" if unbounded else
            f"the window [{(<const int64_t*> firings.start.data)[unfit]}, {(<const int64_t*> firings.end.data)[unfit]}) ms",
        )
    memset(bounds, 0, sizeof(bounds))
    if unbounded:
        for i in range(2):
            bits_append_many(&bounds[i], False, rows)
    cdef list columns = keys.decode(&firings.keys, &firings.key_offsets, rows)
    columns.append(native_array(time_format, rows, &bounds[0], &firings.start, NULL))
    columns.append(native_array(time_format, rows, &bounds[1], &firings.end, NULL))
    columns.extend(accumulators.take_columns())
    columns.append(native_array("b", rows, NULL, &firings.late.bytes, NULL))
    columns.append(native_array("l", rows, NULL, &firings.watermark, NULL))
    names = [*key_names, "window_start", "window_end", *aggregate_names, "late_firing", "watermark"]
    if with_kinds:
        columns.append(_kind_names(&firings.kinds, rows))
        names.append("row_kind")
    if emitted_at is not None:
        columns.append(_emission_times(&firings.emitted, rows, time_format))
        names.append(emitted_at)
    _firings_free(firings)
    firings.expected_rows = rows
    return native_array("+s", rows, NULL, NULL, NULL, columns, names)


# ---- the walk along the timeline, and updates that wait for the accumulators -------------------------------------


cdef int cursor_open(TimelineCursor* cursor, PackedSteps timeline, int64_t steps_done) except -1:
    if not 0 <= steps_done <= timeline.view.n:
        raise ConfigurationError(f"{steps_done} of {timeline.view.n} steps of the timeline cannot be done")
    steps_open(&cursor.steps, &timeline.view, CLOCKS | WATERMARKS)
    steps_open(&cursor.ahead, &timeline.view, WATERMARKS)
    cursor.n_steps = timeline.view.n
    cursor.watermark = steps_watermark_after(&cursor.steps, steps_done)
    cursor.clock = INT64_MIN
    cursor.next = steps_done
    cursor_find_next(cursor)
    return 0


cdef void cursor_close(TimelineCursor* cursor) noexcept nogil:
    steps_close(&cursor.steps)
    steps_close(&cursor.ahead)


cdef void cursor_find_next(TimelineCursor* cursor) noexcept nogil:
    while (
        cursor.next < cursor.n_steps
        and steps_value(&cursor.steps, StepColumn.WATERMARK, cursor.next) <= cursor.watermark
        and steps_value(&cursor.steps, StepColumn.CLOCK, cursor.next) != INT64_MAX
    ):
        cursor.next += 1


cdef void cursor_raise(TimelineCursor* cursor, int64_t watermark) noexcept nogil:
    if cursor.watermark < watermark:
        cursor.watermark = watermark
        cursor_find_next(cursor)


cdef int64_t cursor_step_reaching(TimelineCursor* cursor, int64_t due) noexcept nogil:
    cdef int64_t step
    if cursor.next == cursor.n_steps:
        return INT64_MAX
    if steps_value(&cursor.steps, StepColumn.WATERMARK, cursor.next) >= due:
        return cursor.next
    step = steps_below(&cursor.ahead, due)
    return step if step < cursor.n_steps else INT64_MAX


cdef int pending_flush(PendingUpdates* pending, AccumulatorTable* table) except -1 nogil:
    if pending.count:
        accumulators_update(table, pending.entries, pending.rows, pending.count)
        pending.count = 0
    return 0


# ---- the core of every kind of windows ---------------------------------------------------------------------------


cdef int core_check_signals() except -1 nogil:
    with gil:
        PyErr_CheckSignals()
    return 0


cdef int window_rows_add(WindowRows* windows, const LiveWindow* window, uint32_t entry) except -1 nogil:
    _firings_append(&windows.firings, window.start, window.end, False, window.trigger_state, 1)
    (<uint32_t*> buffer_append(&windows.entries, sizeof(uint32_t)))[0] = entry
    (<uint8_t*> buffer_append(&windows.flags, 1))[0] = window.flags
    return 0


cdef void _window_rows_free(WindowRows* windows) noexcept nogil:
    _firings_free(&windows.firings)
    buffer_free(&windows.flags)
    buffer_free(&windows.entries)


cdef int core_append_firings(WindowCore* core, int64_t start, int64_t end, bint late, int64_t rows) except -1 nogil:
    _firings_append(&core.firings, start, end, late, core.cursor.watermark, rows)
    if core.dates_results:
        _append_repeated(&core.firings.emitted, core.cursor.clock, rows, core.firings.expected_rows)
    return 0


cdef int core_merge_partial(
    WindowCore* core, const InputRows* input, uint32_t entry, uint32_t number
) except -1 nogil:
    cdef int64_t more = input.partial_events[number] - 1  # the row itself is counted where rows are
    pending_flush(&core.pending, core.table)
    accumulators_merge_from(core.table, entry, input.partials, number)
    core.windowed += more
    core.events += more
    return 0


cdef int refuse_partial(const InputRows* input, uint32_t row) except -1 nogil:
    with gil:
        raise InternalError(
            f"a partial result of {input.partial_events[row - input.n_events]} events, the last timestamp of whose window is "
            f"{input.timestamps[row]} ms, came after the window had fired"
        )


cdef int core_add_late(WindowCore* core, uint32_t row) except -1 nogil:
    cdef LateRows* late = &core.late_rows
    if late.n == late.capacity:
        late.rows = <uint32_t*> grow(late.rows, (late.capacity * 2 + 64) * sizeof(uint32_t), b"the list of late rows")
        late.capacity = late.capacity * 2 + 64
    late.rows[late.n] = row
    late.n += 1
    core.late += 1
    return 0


cdef int core_add_unassigned(WindowCore* core, uint32_t row, int64_t timestamp) except -1 nogil:
    # WindowOperator.isElementLate: a row that no window takes is late by its own timestamp, or else only between windows.
    if saturating_add(timestamp, core.lateness) <= core.cursor.watermark:
        return core_add_late(core, row)
    core.in_no_window += 1
    return 0


cdef int64_t _result_bytes(const WindowCore* core, const uint32_t* entries, uint32_t first, int64_t n) noexcept nogil:
    cdef int64_t i, size = 0
    for i in range(core.table.n_aggregates):
        size += aggregate_result_bytes(&core.table.aggregates[i], entries, first, n)
    return size


cdef int64_t core_emit(
    WindowCore* core, const uint32_t* entries, uint32_t first, int64_t n, const int64_t* key_offsets
) except -1 nogil:
    cdef int64_t size = 0
    n = min(n, core.row_limit - core.table.rows)
    while n > 0:
        size = _result_bytes(core, entries, first, n)
        if key_offsets != NULL:
            size += key_offsets[n] - key_offsets[0]
        # A single result that is larger than the limit is emitted alone, or the operator would never go on.
        if core.result_bytes + size <= core.byte_limit or (n == 1 and core.table.rows == 0):
            break
        n >>= 1
    if n <= 0:
        return 0
    if entries != NULL:
        accumulators_emit(core.table, entries, n)
    else:
        accumulators_emit_range(core.table, first, <uint32_t> n)
    core.result_bytes += size
    return n


cdef void core_count(WindowCore* core, RowKind kind, bint late) noexcept nogil:
    if kind == RowKind.UPDATE_BEFORE or kind == RowKind.DELETE:
        core.retractions += 1
    elif late:
        core.late_firings += 1
    else:
        core.on_time_firings += 1


cdef int core_emit_row(WindowCore* core, uint32_t entry, int64_t key_bytes, RowKind kind, bint late) except -1 nogil:
    accumulators_emit(core.table, &entry, 1)
    core.result_bytes += key_bytes + _result_bytes(core, &entry, 0, 1)
    core_count(core, kind, late)
    return 0


cdef bint core_emit_change(
    WindowCore* core, const GatheredFirings* fired, uint8_t* progress, uint32_t given, bint late, RowKind* kind
) except -1 nogil:
    cdef uint32_t entry = fired.entries[fired.n_emitted]
    cdef bint known = (progress[0] & Progress.GIVEN) != 0
    cdef bint withdraws = known and not progress[0] & Progress.WITHDRAWN
    # The first result of a window: there is nothing to withdraw, so its rows can join `given` at once. Otherwise they join it
    # only after the withdrawal has been emitted, which must show the result before them. The flag keeps them from being merged
    # twice if results are full in between.
    if not progress[0] & (Progress.GIVEN | Progress.WITHDRAWN):
        accumulators_merge(core.table, given, entry)
        progress[0] |= Progress.WITHDRAWN
    if core_emit(core, &given, 0, 1, fired.key_offsets + fired.n_emitted) == 0:
        return False
    if withdraws:
        accumulators_merge(core.table, given, entry)
        progress[0] |= Progress.WITHDRAWN
    kind[0] = RowKind.UPDATE_BEFORE if withdraws else RowKind.UPDATE_AFTER if known else RowKind.INSERT
    core_count(core, kind[0], late)
    return True


# ---- kernels -----------------------------------------------------------------------------------------------------


@cython.final
cdef class WindowKernel:
    """One kind of windows and its state, made by the modules of windows for one operator.

    Attributes
    ----------
    name : str
        Name of the kind: a checkpoint fits the kind that wrote it.
    takes_partials : bool
        True if operators of this kind take in partial results, each of one key and one pane: a tumbling window, or a slide of
        windows that share slices.
    lowest_timestamp, highest_timestamp : int
        The timestamps, ms since the epoch, whose windows have both ends within the int64 range.
    """

    def __dealloc__(self):
        cdef WindowCore* core = <WindowCore*> self.state
        if core == NULL:
            return
        # First the core's own buffers: `free` releases the state, whose first member is the core.
        cursor_close(&core.cursor)
        free(core.late_rows.rows)
        _firings_free(&core.firings)
        self.verbs.free(self.state)


cdef WindowKernel window_kernel(
    str name, size_t size, const WindowVerbs* verbs, int64_t allowed_lateness, int64_t lowest_timestamp, int64_t highest_timestamp
):
    cdef WindowKernel kernel = WindowKernel.__new__(WindowKernel)
    kernel.name = name
    kernel.verbs = verbs
    kernel.lowest_timestamp = lowest_timestamp
    kernel.highest_timestamp = highest_timestamp
    kernel.state = calloc(1, size)
    if kernel.state == NULL:
        raise MemoryError("the state of windows")
    (<WindowCore*> kernel.state).lateness = allowed_lateness
    return kernel


cdef int check_retracts(const WindowCore* core, bint purges) except -1:
    if core.retracts and purges:
        raise ConfigurationError("windows that a purging trigger empties cannot withdraw results: they forget them")
    return 0


# ---- the operator ------------------------------------------------------------------------------------------------


cdef int64_t ROWS_AT_ONCE = 1 << 14  # between two checks of signals: at most a second, even with as many windows per row as are allowed
cdef int64_t MOST_BYTES = 1 << 30  # half of the range of 32-bit offsets: a result of any size below the other half still fits


cdef int64_t _first_outside(const InputRows* input, int64_t first, int64_t lowest, int64_t highest) noexcept nogil:
    # Returns the number of the first row whose timestamp is out of bounds, or n.
    cdef int64_t i, timestamp
    for i in range(first, input.n):
        timestamp = input.timestamps[input.rows[i] if input.rows != NULL else i]
        if timestamp < lowest or timestamp > highest:
            return i
    return input.n


@cython.final
cdef class WindowOperator:
    """Aggregates rows in windows per key; fires as Flink's WindowOperator does.

    Follows `WindowOperator.processElement` and `onEventTime` without an evictor: a row goes into all its windows that are
    not late, a row that is late for all goes to the late rows. The kernel has the trigger; with `EventTimeTrigger`, a row in
    a window that has fired fires it again at once.

    Parameters
    ----------
    kernel : WindowKernel
        The kind of windows, made for this operator.
    keys : KeyEncoder
        Encoder of the key columns, for their types and to decode results.
    accumulators : Accumulators
        The aggregates, made for this operator.
    key_names, aggregate_names : list of str
        Names of the result's columns.
    timeline : PackedSteps
        Steps of the timeline. The operator gets a watermark at those that raise it, and at the end of the log.
    row_limit : int
        Most result rows that may wait; one late row may fire some on top.
    byte_limit : int
        Most bytes of their keys, strings and lists, up to 2**30. A larger row waits alone.
    time_format : str
        Arrow format of window_start and window_end: "l" or "tsm:ZONE".
    retracting : bool
        True if a window withdraws its result before it emits another one.
    steps_done : int
        Number of steps before the first row, if the operator resumes from a checkpoint.
    least_watermark : int
        Watermark that is in force until the timeline exceeds it, as that of an operator of Flink in a savepoint.
    emitted_at : str or None
        Name of a last column of results with the time at which they were emitted, or None without such a column.
    steps_dated : int
        If there is such a column: so many steps emit at the replay clock. For what later steps emit, the column is null.

    Raises
    ------
    ConfigurationError
        If a limit or the steps done are out of their range.
    ValueError
        If the kernel or the accumulators have been used.
    """

    def __cinit__(
        self,
        WindowKernel kernel not None,
        *,
        KeyEncoder keys not None,
        Accumulators accumulators not None,
        list key_names not None,
        list aggregate_names not None,
        PackedSteps timeline not None,
        int64_t row_limit,
        int64_t byte_limit,
        str time_format="l",
        bint retracting=False,
        int64_t steps_done=0,
        int64_t least_watermark=INT64_MIN,
        str emitted_at=None,
        int64_t steps_dated=0,
    ):
        if kernel.state == NULL or kernel.in_use:
            raise ValueError("each operator needs a kernel of its own, made by time_windows or session_windows")
        if accumulators.in_use or accumulators.table.n_entries:
            raise ValueError("each operator needs accumulators of its own, which hold nothing yet")
        if row_limit <= 0 or not 0 < byte_limit <= MOST_BYTES:
            raise ConfigurationError(
                f"results are limited to {row_limit} rows and {byte_limit} bytes: both must be positive, and the bytes at "
                f"most {MOST_BYTES}"
            )
        self._timeline = timeline
        self._keys = keys
        self._accumulators = accumulators
        self._key_names = key_names
        self._aggregate_names = aggregate_names
        self._time_format = time_format
        self._emitted_at = emitted_at
        self._kernel = kernel
        self.core = <WindowCore*> kernel.state
        self.core.bytes_keys = keys.batch.kind == KEY_BYTES
        self.core.table = accumulators.table
        self.core.retracts = retracting
        self.core.dates_results = emitted_at is not None
        self.core.row_limit = row_limit
        self.core.byte_limit = byte_limit
        cursor_open(&self.core.cursor, timeline, steps_done)
        cursor_raise(&self.core.cursor, least_watermark)
        self.core.cursor.n_dated = 0 if emitted_at is None else steps_dated
        kernel.in_use = True
        accumulators.in_use = True
        kernel.verbs.start(kernel.state)

    def process(
        self,
        RecordBatch batch not None,
        KeyEncoder keys not None,
        rows,
        const int64_t[::1] timestamps not None,
        const int64_t[::1] steps_before not None,
        int64_t first=0,
        Accumulators partials=None,
        const int64_t[::1] partial_events=None,
        const int64_t[::1] clocks=None,
    ):
        """Take in rows of a batch, in total order, until results are full.

        Partial results are rows after those of the batch: aggregates of events of one key that come before their pane fires and
        were added up elsewhere. Each has the place of the first of its events.

        Parameters
        ----------
        batch : RecordBatch
            The columns that the aggregates read.
        keys : KeyEncoder
            Encoder that has encoded the keys of this batch and of the partial results, of the same types as the operator's own
            keys.
        rows : numpy.ndarray of uint32, shape (n,), or None
            The rows to take, in total order, or None for all in the order of the batch.
        timestamps : numpy.ndarray of int64, shape (n_rows of the batch + n_partials,)
            Milliseconds since the epoch. A partial result has any timestamp within its pane.
        steps_before : numpy.ndarray of int64, shape (n_rows of the batch + n_partials,)
            Number of steps of the timeline before each row, non-decreasing along `rows`.
        first : int
            Number of rows that an earlier call has taken in.
        partials : Accumulators, optional
            Accumulators of the same aggregates, with one entry per partial result. Those taken in are empty afterwards.
        partial_events : numpy.ndarray of int64, shape (n_partials,), optional
            Number of events of each partial result.
        clocks : numpy.ndarray of int64, shape (n_rows of the batch + n_partials,), optional
            Arrival of each row, ms since the epoch, if results have the time of emission; -2**63 makes the column null in what
            the row fires. Non-decreasing along `rows`, except for these.

        Returns
        -------
        int
            Number of rows taken in so far. Below n, results are full: take them, and continue with this number as `first`.

        Raises
        ------
        SchemaError
            If the keys are of other types than the operator's, or partial results of other aggregates.
        ConfigurationError
            If windows of this kind take no partial results.
        DataError
            If a timestamp is so close to an end of the int64 range that its window would overflow; no row is taken.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef Call of_accumulators = begin_call(&self._accumulators.guard, self._accumulators)
        cdef Call of_keys = begin_reading(&keys.guard, keys)
        cdef Call of_partials
        cdef const uint32_t[::1] chosen
        cdef InputRows input
        cdef WindowKernel kernel = self._kernel
        cdef int64_t bad, n, taken = first
        if not keys_are_alike(keys, self._keys):
            raise SchemaError(
                f"keys of Arrow formats {', '.join(keys._formats)} come to an operator whose keys have "
                f"{', '.join(self._keys._formats)}; encode them with an encoder of the operator's schema"
            )
        input.rows = NULL
        input.n_events = batch.num_rows
        input.n = input.n_events + (0 if partial_events is None else partial_events.shape[0])
        input.keys = &keys.batch
        input.partials = NULL
        input.clocks = NULL
        if timestamps.shape[0] != input.n or steps_before.shape[0] != input.n or keys.batch.length != input.n:
            raise ValueError("timestamps, steps and keys must have one value per row of the batch")
        if self.core.dates_results and (clocks is None or clocks.shape[0] != input.n):
            raise ValueError("where results say when they were emitted, clocks must have one value per row of the batch")
        if rows is not None:
            chosen = rows
            input.n = chosen.shape[0]
            if input.n:
                if np.max(rows) >= keys.batch.length:
                    raise IndexError("a row index is beyond the batch")
                input.rows = &chosen[0]
        if not 0 <= first <= input.n:
            raise IndexError(f"row number {first} of {input.n}")
        if first == input.n:
            return first
        input.timestamps = &timestamps[0]
        input.steps_before = &steps_before[0]
        if self.core.dates_results:
            input.clocks = &clocks[0]
        self._accumulators.bind(batch)
        if input.n_events < keys.batch.length:
            of_partials = self._begin_partials(partials, partial_events)
            input.partials = partials.table
            input.partial_events = &partial_events[0]
        with nogil:
            bad = _first_outside(&input, first, kernel.lowest_timestamp, kernel.highest_timestamp)
        if bad < input.n:
            bad = rows[bad] if rows is not None else bad
            raise DataError(
                f"row {bad}: the window of timestamp {timestamps[bad]} ms would overflow the int64 range; "
                "correct the timestamp or drop the row",
                row=bad,
            )
        self._begin()
        n = input.n
        while True:
            input.n = min(n, taken + ROWS_AT_ONCE)
            first = taken
            with nogil:
                taken = kernel.verbs.process(kernel.state, &input, first)
            self.core.events += taken - first
            if taken < input.n or taken == n or self.core.due or core_is_full(self.core):
                break
            PyErr_CheckSignals()
        self._in_call = False
        return taken

    cdef Call _begin_partials(self, Accumulators partials, const int64_t[::1] partial_events):
        if not self._kernel.takes_partials:
            raise ConfigurationError(f"operators of {self._kernel.name} take no partial results")
        if partials is None or partials is self._accumulators or partials.table.n_entries < partial_events.shape[0]:
            raise ValueError("partial results need accumulators of their own, with an entry for each")
        call = begin_call(&partials.guard, partials)
        self._accumulators.liken(partials)
        return call

    cdef bint _advance(self, int64_t steps_before, bint to_end) except -1:
        cdef Call call = begin_call(&self.guard, self)
        cdef Call of_accumulators = begin_call(&self._accumulators.guard, self._accumulators)
        cdef WindowKernel kernel = self._kernel
        cdef bint done
        self._begin()
        with nogil:
            done = core_advance(self.core, kernel.verbs, steps_before, to_end)
        self._in_call = False
        return done

    cdef int _begin(self) except -1:
        # A call that fails does not come to its end: rows may then be in some windows and not in others.
        if self._in_call:
            raise RuntimeError("an earlier call of this operator has failed; make another one")
        self._in_call = True
        return 0

    def advance(self, int64_t steps_before):
        """Advance until so many steps of the timeline are done; windows that are due fire.

        Returns
        -------
        bool
            False if results are full before that: take them, and call again.
        """
        return self._advance(steps_before, False)

    def finish(self):
        """Advance to the end of the timeline; windows that are due fire.

        Returns
        -------
        bool
            False if results are full before that: take them, and call again.
        """
        return self._advance(INT64_MAX, True)

    def windows(self):
        """Return all live windows by key; no results may be waiting.

        Returns
        -------
        (NativeArray, numpy.ndarray of uint32, shape (n,))
            The columns: the keys, then the start and the end of the window (int64 ms), the state of its trigger (int64) and
            flags (uint8), which the kernel defines; and the entries of the windows' accumulators.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef Call of_accumulators = begin_call(&self._accumulators.guard, self._accumulators)
        cdef WindowRows windows
        cdef Firings* firings = &windows.firings
        cdef uint32_t[::1] entries
        memset(&windows, 0, sizeof(WindowRows))
        try:
            with nogil:
                self._kernel.verbs.windows(self._kernel.state, &windows)
            n = firings.rows
            columns = self._keys.decode(&firings.keys, &firings.key_offsets, n)
            columns.append(native_array("l", n, NULL, &firings.start, NULL))
            columns.append(native_array("l", n, NULL, &firings.end, NULL))
            columns.append(native_array("l", n, NULL, &firings.watermark, NULL))
            columns.append(native_array("C", n, NULL, &windows.flags, NULL))
            entries = np.empty(n, np.uint32)
            if n:
                memcpy(&entries[0], windows.entries.data, n * sizeof(uint32_t))
            names = [*self._key_names, "window_start", "window_end", "trigger_state", "flags"]
            return native_array("+s", n, NULL, NULL, NULL, columns, names), entries.base
        finally:
            _window_rows_free(&windows)

    def restore(
        self,
        KeyEncoder keys not None,
        const int64_t[::1] starts not None,
        const int64_t[::1] ends not None,
        const int64_t[::1] trigger_states not None,
        const uint8_t[::1] flags not None,
    ):
        """Restore, before any row, the windows that were live in an operator after the same steps of the timeline.

        Parameters
        ----------
        keys : KeyEncoder
            Encoder that has encoded the keys of the windows, of the same types as the operator's own keys.
        starts, ends, trigger_states : numpy.ndarray of int64, shape (n,)
        flags : numpy.ndarray of uint8, shape (n,)
            Flags of the windows, as `windows` returns them.

        Returns
        -------
        numpy.ndarray of uint32, shape (n,)
            The entries of the windows' accumulators, which are empty.

        Raises
        ------
        SchemaError
            If the keys are of other types than the operator's, or a row cannot be a window of this operator.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef Call of_accumulators = begin_call(&self._accumulators.guard, self._accumulators)
        cdef Call of_keys = begin_reading(&keys.guard, keys)
        cdef int64_t i, entry, n = starts.shape[0], refused = -1
        cdef LiveWindow window
        cdef uint32_t[::1] entries = np.empty(n, np.uint32)
        if not keys_are_alike(keys, self._keys):
            raise SchemaError(
                f"keys of Arrow formats {', '.join(keys._formats)} come from a checkpoint to an operator whose keys have "
                f"{', '.join(self._keys._formats)}"
            )
        if not n == ends.shape[0] == trigger_states.shape[0] == flags.shape[0] or keys.batch.length != n:
            raise ValueError("the columns of windows must have one value per window")
        with nogil:
            for i in range(n):
                window.start = starts[i]
                window.end = ends[i]
                window.trigger_state = trigger_states[i]
                window.flags = flags[i]
                if window.start >= window.end or (window.flags & TWIN_ENTRY and not self.core.retracts):
                    refused = i
                    break
                entry = self._kernel.verbs.restore(self._kernel.state, &keys.batch, i, &window)
                if entry == NO_ENTRY:
                    refused = i
                    break
                entries[i] = <uint32_t> entry
        if refused >= 0:
            raise SchemaError(
                f"row {refused} of the windows of a checkpoint, [{starts[refused]}, {ends[refused]}) ms with flags "
                f"{flags[refused]} and trigger state {trigger_states[refused]}, is no window of this operator; "
                "restore from another checkpoint"
            )
        return entries.base

    @property
    def kind(self):
        """Name of the kernel: windows are restored by the kind that wrote them."""
        return self._kernel.name

    @property
    def is_full(self):
        """True if results must be taken before more can come."""
        return self.core.due or core_is_full(self.core)

    @property
    def rows_ready(self):
        """Number of result rows that `take` would return."""
        return self.core.firings.rows

    def take(self):
        """Return the results so far as one record batch (NativeArray), and begin a new one.

        Columns: the keys, window_start, window_end (null of global windows), the aggregates, late_firing (bool), watermark
        (int64 ms); where results are withdrawn, row_kind (string): "+I" a window's first result, "-U" one withdrawn and "+U"
        its successor, "-D" one withdrawn as the window has merged into another; where the operator has a name for it, when the
        result was emitted (null: that is not known).

        Raises
        ------
        DataError
            If a decimal has more digits than its type; names the aggregate and the window.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef Call of_accumulators = begin_call(&self._accumulators.guard, self._accumulators)
        self.core.result_bytes = 0
        return _firings_take(
            &self.core.firings,
            self._keys,
            self._key_names,
            self._time_format,
            self.core.unbounded_windows,
            self.core.retracts,
            self._emitted_at,
            self._accumulators,
            self._aggregate_names,
        )

    def take_late(self):
        """Return the rows (numpy.ndarray of uint32) that were late for all their windows so far, in order, and begin a new list.

        They are numbers in the batches that they came with: ask after each batch.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef uint32_t[::1] view
        late = np.empty(self.core.late_rows.n, dtype=np.uint32)
        view = late
        if view.shape[0]:
            memcpy(&view[0], self.core.late_rows.rows, view.shape[0] * sizeof(uint32_t))
        self.core.late_rows.n = 0
        return late

    def counts(self):
        """Counts so far: events = windowed + late + in_no_window; firings by kind."""
        check_no_call(&self.guard, self)
        return {
            "events": self.core.events,
            "windowed": self.core.windowed,
            "late": self.core.late,
            "in_no_window": self.core.in_no_window,
            "on_time_firings": self.core.on_time_firings,
            "late_firings": self.core.late_firings,
            "retractions": self.core.retractions,
        }

    @property
    def live_windows(self):
        """Number of windows that hold state now."""
        check_no_call(&self.guard, self)
        return self._kernel.verbs.live_windows(self._kernel.state)

    def memory_bytes(self):
        """Bytes held of keys, windows and timers, as malloc hands them out. O(1)

        Accumulators are not counted, which have a `memory_bytes` of their own, nor are results that have not been taken.
        """
        check_no_call(&self.guard, self)
        return self._kernel.verbs.memory(self._kernel.state)

    @property
    def current_watermark(self):
        """Watermark in force, ms since the epoch; the minimum of int64 before the first."""
        return self.core.cursor.watermark

    def _check(self):
        """Assert every invariant of the state; for tests."""
        cdef Call call = begin_call(&self.guard, self)
        cdef Call of_accumulators = begin_call(&self._accumulators.guard, self._accumulators)
        assert self.core.pending.count == 0
        assert self.core.events == self.core.windowed + self.core.late + self.core.in_no_window, "an event was lost"
        assert self.core.firings.rows == self.core.table.rows, "results differ in length"
        self._kernel.verbs.check(self._kernel.state)
