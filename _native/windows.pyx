"""Tumbling and sliding event-time windows over columns, with the default trigger.

One hash table per live window: windows retire, so the tables stay small however long the log is. Rows are taken in blocks:
first every row's window is found and the key's slot prefetched, then the keys are looked up. A block ends where a row needs
more care: it is late, opens a window, falls into a window that has fired, or a watermark before it fires something.
"""

import numpy as np

import cython
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memmove

from flinkcore.errors import ConfigurationError, DataError

from flinkcore._native.aggregates cimport Accumulators, accumulators_emit
from flinkcore._native.arrow cimport RecordBatch
from flinkcore._native.firings cimport (
    cursor_find,
    firings_append,
    firings_append_bytes_keys,
    firings_append_int64_keys,
    firings_free,
    firings_take,
    pending_add,
    pending_flush,
    saturating_add,
)
from flinkcore._native.keys cimport KEY_BYTES, KeyBatch, KeyEncoder
from flinkcore._native.panes cimport (
    ENTRY_BLOCK,
    pane_close,
    pane_emit,
    pane_entry,
    pane_free,
    pane_key,
    pane_open,
    pane_store_free,
    pane_store_reserve,
)

cdef extern from *:
    """
    #define FLINKCORE_PREFETCH(address) __builtin_prefetch((address), 0, 3)
    """
    void prefetch "FLINKCORE_PREFETCH"(const void* address) noexcept nogil

cdef enum:
    LOOK_AHEAD = 128



cdef inline int64_t _window_start(const WindowState* state, int64_t timestamp) noexcept nogil:
    # TimeWindow.getWindowStartWithOffset: the remainder truncates, so negative ones move one slide down.
    cdef int64_t remainder = (timestamp - state.offset) % state.slide
    if remainder < 0:
        remainder += state.slide
    return timestamp - remainder


cdef int64_t _position(const WindowState* state, int64_t start) noexcept nogil:
    # Index of the first live window that starts at or after `start`.
    cdef int64_t low = 0, high = state.n_panes, middle
    while low < high:
        middle = (low + high) >> 1
        if state.panes[middle].start < start:
            low = middle + 1
        else:
            high = middle
    return low


cdef inline Pane* _find(const WindowState* state, int64_t start) noexcept nogil:
    cdef int64_t i
    for i in range(state.n_panes - 1, max(state.n_panes - 5, -1), -1):
        if state.panes[i].start == start:
            return state.panes[i]
    if state.n_panes <= 4:
        return NULL
    i = _position(state, start)
    if i < state.n_panes and state.panes[i].start == start:
        return state.panes[i]
    return NULL


cdef inline int64_t _cleanup_time(const WindowState* state, int64_t start) noexcept nogil:
    return saturating_add(start + state.size - 1, state.lateness)


cdef void _plan_next(WindowState* state) noexcept nogil:
    # Finds the clock of the step that next fires or ends a window.
    cdef int64_t due = INT64_MAX, step
    if state.n_fired:
        due = _cleanup_time(state, state.panes[0].start)
    if state.n_fired < state.n_panes:
        due = min(due, state.panes[state.n_fired].end - 1)
    step = cursor_find(&state.cursor, due)
    state.quiet_until = state.cursor.clocks[step] if step < state.cursor.steps else INT64_MAX


cdef int _reserve_panes(WindowState* state) except -1 nogil:
    cdef Pane** panes
    if state.n_panes == state.panes_capacity:
        panes = <Pane**> realloc(state.panes, (state.panes_capacity * 2 + 8) * sizeof(Pane*))
        if panes == NULL:
            with gil:
                raise MemoryError("the list of live windows")
        state.panes = panes
        state.panes_capacity = state.panes_capacity * 2 + 8
    return 0


cdef Pane* _open(WindowState* state, int64_t start) except NULL nogil:
    cdef Pane* pane
    cdef int64_t i
    _reserve_panes(state)
    pane = pane_open(&state.store, start, start + state.size)
    pane.fired = pane.end - 1 <= state.cursor.watermark
    i = _position(state, start)
    memmove(&state.panes[i + 1], &state.panes[i], (state.n_panes - i) * sizeof(Pane*))
    state.panes[i] = pane
    state.n_panes += 1
    state.n_fired += pane.fired
    _plan_next(state)
    return pane


cdef int _fire(WindowState* state, Pane* pane) except -1 nogil:
    # All keys of the window, in order of registration, at the watermark now in force.
    pending_flush(&state.pending, state.store.table)
    pane_emit(&state.store, pane)
    if state.store.bytes_keys:
        firings_append_bytes_keys(&state.firings, pane.data, pane.offsets, pane.n_keys)
    else:
        firings_append_int64_keys(&state.firings, pane.keys, pane.n_keys)
    firings_append(&state.firings, pane.start, pane.end, False, state.cursor.watermark, pane.n_keys)
    state.on_time_firings += pane.n_keys
    pane.fired = True
    state.n_fired += 1
    return 0


cdef int _retire_due(WindowState* state) except -1 nogil:
    # Ends the windows whose time is over: the first of those that have fired.
    cdef int64_t over = 0, closed = 0
    while over < state.n_fired and _cleanup_time(state, state.panes[over].start) <= state.cursor.watermark:
        over += 1
    if over == 0:
        return 0
    pending_flush(&state.pending, state.store.table)
    pane_store_reserve(&state.store)
    for closed in range(over):
        pane_close(&state.store, state.panes[closed])
    state.n_panes -= over
    state.n_fired -= over
    memmove(&state.panes[0], &state.panes[over], state.n_panes * sizeof(Pane*))
    return 0


cdef int _advance_watermark(WindowState* state) except -1 nogil:
    # Fires and ends windows in order of their time, as the event-time timers of Flink's window operator do.
    while state.n_fired < state.n_panes and state.panes[state.n_fired].end - 1 <= state.cursor.watermark:
        _fire(state, state.panes[state.n_fired])
    return _retire_due(state)


cdef int _advance_clock(WindowState* state, int64_t arrival) except -1 nogil:
    # All steps of the timeline before a row that arrives at this time.
    cdef bint fires
    while state.cursor.next < state.cursor.steps and state.cursor.clocks[state.cursor.next] < arrival:
        fires = state.cursor.clocks[state.cursor.next] >= state.quiet_until
        state.cursor.watermark = state.cursor.watermarks[state.cursor.next]
        state.cursor.next += 1
        if fires:
            _advance_watermark(state)
            _plan_next(state)
    return 0


# ---- rows --------------------------------------------------------------------------------------------------------


cdef int _add_late(WindowState* state, uint32_t row) except -1 nogil:
    cdef uint32_t* late_rows
    if state.n_late_rows == state.late_rows_capacity:
        late_rows = <uint32_t*> realloc(state.late_rows, (state.late_rows_capacity * 2 + 64) * sizeof(uint32_t))
        if late_rows == NULL:
            with gil:
                raise MemoryError("the list of late rows")
        state.late_rows = late_rows
        state.late_rows_capacity = state.late_rows_capacity * 2 + 64
    state.late_rows[state.n_late_rows] = row
    state.n_late_rows += 1
    state.late += 1
    return 0


cdef int _fire_late(WindowState* state, Pane* pane, int64_t k) except -1 nogil:
    cdef uint32_t entry = pane_entry(pane, k)
    pending_flush(&state.pending, state.store.table)
    accumulators_emit(state.store.table, &entry, 1)
    if state.store.bytes_keys:
        firings_append_bytes_keys(&state.firings, pane.data, &pane.offsets[k], 1)
    else:
        firings_append_int64_keys(&state.firings, &pane.keys[k], 1)
    firings_append(&state.firings, pane.start, pane.end, True, state.cursor.watermark, 1)
    state.late_firings += 1
    return 0


cdef int _take_row(
    WindowState* state, const KeyBatch* keys, uint32_t row, int64_t timestamp, int64_t arrival
) except -1 nogil:
    # WindowOperator.processElement, for one row.
    cdef int64_t start, k
    cdef Pane* pane
    cdef bint skipped = True
    _advance_clock(state, arrival)
    start = _window_start(state, timestamp)
    while start > timestamp - state.size:
        if _cleanup_time(state, start) > state.cursor.watermark:
            skipped = False
            pane = _find(state, start)
            if pane == NULL:
                pane = _open(state, start)
            k = pane_key(&state.store, pane, keys, row)
            pending_add(&state.pending, state.store.table, pane_entry(pane, k), row)
            if pane.fired:
                _fire_late(state, pane, k)
        start -= state.slide
    if not skipped:
        state.windowed += 1
    elif saturating_add(timestamp, state.lateness) <= state.cursor.watermark:
        _add_late(state, row)
    else:
        state.in_no_window += 1
    return 0


cdef int64_t _process(
    WindowState* state,
    const KeyBatch* keys,
    const uint32_t* rows,
    int64_t n,
    const int64_t* timestamps,
    const int64_t* arrivals,
    int64_t lowest,
    int64_t highest,
) except -1 nogil:
    # Number of rows taken; fewer than n where the next row's timestamp is out of bounds.
    cdef int64_t i = 0, j, pairs, previous, stop, timestamp, start, k
    cdef int64_t width = (state.size + state.slide - 1) // state.slide  # windows per row, at most
    cdef Pane* pane = NULL
    cdef Pane* panes[LOOK_AHEAD]
    cdef uint32_t taken[LOOK_AHEAD]
    cdef uint32_t row
    while i < n:
        stop = n
        j = i
        pairs = 0
        pane = NULL
        while j < n and pairs + width <= LOOK_AHEAD:
            row = rows[j] if rows != NULL else <uint32_t> j
            timestamp = timestamps[row]
            if arrivals[row] > state.quiet_until or timestamp < lowest or timestamp > highest:
                break
            previous = pairs
            if pane == NULL or timestamp < pane.start or timestamp >= pane.start + state.slide:
                start = _window_start(state, timestamp)
                pane = _find(state, start)
            else:
                start = pane.start
            if pane == NULL or pane.fired or start <= timestamp - state.size:
                break
            panes[pairs] = pane
            taken[pairs] = row
            prefetch(&pane.slots[keys.hashes[row] & pane.mask])
            pairs += 1
            if width > 1:
                start -= state.slide
                while start > timestamp - state.size:
                    panes[pairs] = _find(state, start)
                    if panes[pairs] == NULL or panes[pairs].fired:
                        pairs = previous
                        break
                    taken[pairs] = row
                    prefetch(&panes[pairs].slots[keys.hashes[row] & panes[pairs].mask])
                    pairs += 1
                    start -= state.slide
                if pairs == previous:
                    break
            j += 1
        for k in range(pairs):
            pending_add(
                &state.pending,
                state.store.table,
                pane_entry(panes[k], pane_key(&state.store, panes[k], keys, taken[k])),
                taken[k],
            )
        state.windowed += j - i
        i = j
        if i < n and pairs + width <= LOOK_AHEAD:
            row = rows[i] if rows != NULL else <uint32_t> i
            timestamp = timestamps[row]
            if timestamp < lowest or timestamp > highest:
                break
            _take_row(state, keys, row, timestamp, arrivals[row])
            i += 1
    state.events += i
    pending_flush(&state.pending, state.store.table)
    return i


# ---- Python's face -----------------------------------------------------------------------------------------------


@cython.final
cdef class WindowOperator:
    """Aggregates rows in tumbling or sliding event-time windows per key; fires as Flink's WindowOperator does.

    Follows `WindowOperator.processElement` and `onEventTime` with `EventTimeTrigger` and no evictor: a row goes into all
    its windows that are not late, a row that is late for all goes to the late rows, a row in a window that has fired
    fires it again at once.

    Parameters
    ----------
    size, slide, offset, allowed_lateness : int
        Milliseconds; `slide` equals `size` for tumbling windows.
    keys : KeyEncoder
        Knows the key columns; encodes nothing here.
    accumulators : Accumulators
        The aggregates, owned by this operator from now on.
    key_names, aggregate_names : list of str
        Names of the result's columns.
    clocks, watermarks : numpy.ndarray of int64, shape (n_steps,)
        The timeline; clocks never go back, watermarks rise.
    time_format : str
        Arrow format of window_start and window_end: "l" or "tsm:ZONE".

    Raises
    ------
    ConfigurationError
        If a size is not positive or the lateness is negative.
    """

    def __cinit__(
        self,
        *,
        int64_t size,
        int64_t slide,
        int64_t offset,
        int64_t allowed_lateness,
        KeyEncoder keys not None,
        Accumulators accumulators not None,
        list key_names not None,
        list aggregate_names not None,
        clocks,
        watermarks,
        str time_format="l",
    ):
        cdef const int64_t[::1] clock_view, watermark_view
        if size <= 0 or slide <= 0 or allowed_lateness < 0:
            raise ConfigurationError(
                f"window size {size} ms and slide {slide} ms must be positive, allowed lateness {allowed_lateness} ms not negative"
            )
        if max(size, slide, abs(offset)) > 2**60:  # the sums of two such times do not overflow
            raise ConfigurationError(f"window size {size} ms, slide {slide} ms and offset {offset} ms must be below 2**60")
        if (size + slide - 1) // slide > LOOK_AHEAD:
            raise ConfigurationError(
                f"a slide of {slide} ms puts every row into {(size + slide - 1) // slide} windows of {size} ms; "
                f"at most {LOOK_AHEAD} are supported: choose a longer slide"
            )
        self._clocks = np.ascontiguousarray(clocks, dtype=np.int64)
        self._watermarks = np.ascontiguousarray(watermarks, dtype=np.int64)
        if len(self._clocks) != len(self._watermarks):
            raise ConfigurationError("the timeline needs as many clocks as watermarks")
        self._keys = keys
        self._accumulators = accumulators
        self._key_names = key_names
        self._aggregate_names = aggregate_names
        self._time_format = time_format
        self.state = <WindowState*> calloc(1, sizeof(WindowState))
        if self.state == NULL:
            raise MemoryError("window state")
        self.state.size = size
        self.state.slide = slide
        self.state.offset = offset
        self.state.lateness = allowed_lateness
        self.state.store.bytes_keys = keys.batch.kind == KEY_BYTES
        self.state.store.table = accumulators.table
        clock_view = self._clocks
        watermark_view = self._watermarks
        self.state.cursor.steps = clock_view.shape[0]
        if clock_view.shape[0]:
            self.state.cursor.clocks = &clock_view[0]
            self.state.cursor.watermarks = &watermark_view[0]
        self.state.cursor.watermark = INT64_MIN
        self.state.quiet_until = INT64_MAX
        _plan_next(self.state)

    def __dealloc__(self):
        cdef int64_t i
        if self.state == NULL:
            return
        for i in range(self.state.n_panes):
            pane_free(self.state.panes[i])
        pane_store_free(&self.state.store)
        free(self.state.panes)
        free(self.state.late_rows)
        firings_free(&self.state.firings)
        free(self.state)

    def process(
        self,
        RecordBatch batch not None,
        KeyEncoder keys not None,
        rows,
        const int64_t[::1] timestamps not None,
        const int64_t[::1] arrivals not None,
    ):
        """Take in rows of a batch, in total order.

        Parameters
        ----------
        batch : RecordBatch
            The columns that the aggregates read.
        keys : KeyEncoder
            Has encoded the keys of this batch.
        rows : numpy.ndarray of uint32 or None
            The rows to take, in total order; None: all, as they lie.
        timestamps, arrivals : numpy.ndarray of int64, shape (n_rows of the batch,)
            Milliseconds since the epoch; arrivals never go back along `rows`.

        Returns
        -------
        numpy.ndarray of uint32
            Rows that are late for all their windows, in order.

        Raises
        ------
        DataError
            If a timestamp is so close to an end of the int64 range that its window would overflow.
        """
        cdef const uint32_t[::1] chosen
        cdef const uint32_t* row_pointer = NULL
        cdef WindowState* state = self.state
        cdef int64_t n = batch.num_rows, taken, lowest, highest
        if timestamps.shape[0] != n or arrivals.shape[0] != n or keys.batch.length != n:
            raise ValueError("timestamps, arrivals and keys must have one value per row of the batch")
        if rows is not None:
            chosen = rows
            n = chosen.shape[0]
            if n:
                if np.max(rows) >= batch.num_rows:
                    raise IndexError("a row index is beyond the batch")
                row_pointer = &chosen[0]
        state.n_late_rows = 0
        if n:
            self._accumulators.bind(batch)
            lowest = INT64_MIN + max(state.size, state.slide) * 2
            highest = INT64_MAX - state.size * 2 - abs(state.offset)
            with nogil:
                taken = _process(
                    state, &keys.batch, row_pointer, n, &timestamps[0], &arrivals[0], lowest, highest
                )
            if taken < n:
                taken = rows[taken] if rows is not None else taken
                raise DataError(
                    f"row {taken}: the window of timestamp {timestamps[taken]} ms would overflow the int64 range; "
                    "correct the timestamp or drop the row"
                )
        late = np.empty(state.n_late_rows, dtype=np.uint32)
        cdef uint32_t[::1] late_view = late
        if state.n_late_rows:
            memcpy(&late_view[0], state.late_rows, state.n_late_rows * sizeof(uint32_t))
        return late

    def advance(self, int64_t arrival):
        """Walk the timeline up to what a row that arrives at this time (ms) would see; what is due fires."""
        with nogil:
            _advance_clock(self.state, arrival)

    def finish(self):
        """Walk the rest of the timeline: everything that is due fires."""
        with nogil:
            _advance_clock(self.state, INT64_MAX)
            while self.state.cursor.next < self.state.cursor.steps:  # steps at the end of the log
                self.state.cursor.watermark = self.state.cursor.watermarks[self.state.cursor.next]
                self.state.cursor.next += 1
                _advance_watermark(self.state)
            _plan_next(self.state)

    @property
    def rows_ready(self):
        """Number of result rows that `take` would give."""
        return self.state.firings.rows

    def take(self):
        """Give the results so far as one record batch (NativeArray), and start a new one.

        Columns: the keys, window_start, window_end, the aggregates, late_firing (bool), watermark (int64 ms).
        """
        return firings_take(
            &self.state.firings,
            self._keys,
            self._key_names,
            self._time_format,
            self._accumulators,
            self._aggregate_names,
        )

    def counts(self):
        """Counts so far: events = windowed + late + in_no_window; firings by kind; live windows."""
        return {
            "events": self.state.events,
            "windowed": self.state.windowed,
            "late": self.state.late,
            "in_no_window": self.state.in_no_window,
            "on_time_firings": self.state.on_time_firings,
            "late_firings": self.state.late_firings,
        }

    @property
    def live_windows(self):
        """Number of windows that hold state now."""
        return self.state.n_panes

    @property
    def current_watermark(self):
        """Watermark in force, ms since the epoch; the minimum of int64 before the first."""
        return self.state.cursor.watermark

    def _check(self):
        """Assert every invariant of the state; for tests."""
        cdef WindowState* state = self.state
        cdef Pane* pane
        cdef int64_t i, blocks = state.store.n_free_blocks
        cdef uint32_t k
        cdef uint64_t at, numbers
        for i in range(state.n_panes):
            pane = state.panes[i]
            assert i == 0 or state.panes[i - 1].start < pane.start, "windows out of order"
            assert pane.end == pane.start + state.size
            assert pane.fired == (pane.end - 1 <= state.cursor.watermark), "fired exactly below the watermark"
            assert pane.fired == (i < state.n_fired)
            assert _cleanup_time(state, pane.start) > state.cursor.watermark, "a window outlived its time"
            assert pane.n_blocks == (pane.n_keys + ENTRY_BLOCK - 1) // ENTRY_BLOCK
            numbers = 0
            for at in range(pane.mask + 1):
                numbers += pane.slots[at].number != 0
            assert numbers == pane.n_keys, "index and keys differ"
            blocks += pane.n_blocks
        assert blocks == state.store.n_blocks, "an entry block was lost"
        assert state.pending.count == 0
        assert state.events == state.windowed + state.late + state.in_no_window, "an event was lost"
