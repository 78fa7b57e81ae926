"""Lateness of events under every bound of out-of-orderness at once.

The watermark of a bound is that of bound 0 minus the bound: ticks, idleness and valve do not depend on it. So an event that
meets the watermark w of bound 0 is late under all bounds up to w - t, where t is its timestamp, or the last moment of its
window plus the allowed lateness. The number of late events under a bound is the number of these differences that are not below
it.

    bounds       0      10      20      30        w - t = 12: late under the bounds 0 and 10, but not under 20
    counted      │   0   │   1   │   2   │ ...    by how many bounds it is late under
"""

import numpy as np

import cython
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from flinkcore.errors import ConfigurationError, DataError

from flinkcore._native.call_guard cimport Call, begin_call
from flinkcore._native.event_log cimport check_codes, check_offsets
from flinkcore._native.keys cimport mix_int64
from flinkcore._native.memory cimport Buffer, buffer_append, buffer_free
from flinkcore._native.packed_steps cimport (
    ALL_COLUMNS,
    CLOCKS,
    WATERMARKS,
    PackedSteps,
    StepColumn,
    StepCursor,
    steps_around,
    steps_before_place,
    steps_close,
    steps_open,
    steps_value,
    steps_watermark_after,
)
from flinkcore._native.panes cimport AlignedWindows, aligned_start, checked_windows, since_start, wrapping_add
from flinkcore._native.window_calendar cimport CalendarWindow, WindowCalendar, calendar_end, calendar_window


# ---- bounds ------------------------------------------------------------------------------------------------------
# A number's magnitude is its first eight bits and the number of bits after them: few bounds share one, in any list of bounds.


cdef extern from *:
    """
    #define FLINKCORE_BITS(number) (64 - __builtin_clzll(number))
    """
    int _bits "FLINKCORE_BITS"(uint64_t number) noexcept nogil


cdef enum:
    SMALL = 256
    PER_DOUBLING = 128
    MAGNITUDES = SMALL + 55 * PER_DOUBLING  # magnitudes of numbers below 2**63
    LISTED = 1 << 13  # numbers below this, which most differences are, have a table of their own


cdef inline int64_t _magnitude(int64_t number) noexcept nogil:
    cdef int further
    if number < SMALL:
        return number
    further = _bits(<uint64_t> number) - 8
    return SMALL + (further - 1) * PER_DOUBLING + (number >> further) - PER_DOUBLING


cdef inline int64_t _least_of(int64_t magnitude) noexcept nogil:
    cdef int64_t beyond = magnitude - SMALL
    if beyond < 0:
        return magnitude
    return (PER_DOUBLING + beyond % PER_DOUBLING) << (beyond // PER_DOUBLING + 1)


cdef int _bounds_set_up(Bounds* bounds, const int64_t[::1] values) except -1:
    cdef int64_t i, magnitude
    cdef int32_t below = 0
    bounds.n = values.shape[0]
    if bounds.n == 0 or bounds.n > 1 << 30 or values[0] < 0:
        raise ConfigurationError("bounds are from 0 to 2**63 - 1 ms, one at least")
    bounds.values = <int64_t*> malloc(bounds.n * sizeof(int64_t))
    bounds.below = <int32_t*> malloc((MAGNITUDES + 1) * sizeof(int32_t))
    bounds.listed = <int32_t*> malloc((LISTED + 1) * sizeof(int32_t))
    if bounds.values == NULL or bounds.below == NULL or bounds.listed == NULL:
        raise MemoryError(f"{bounds.n} bounds")
    for i in range(bounds.n):
        if i and values[i] <= values[i - 1]:
            raise ConfigurationError(f"bounds ascend, but {values[i]} ms follows {values[i - 1]} ms")
        bounds.values[i] = values[i]
    for magnitude in range(MAGNITUDES):
        while below < bounds.n and bounds.values[below] < _least_of(magnitude):
            below += 1
        bounds.below[magnitude] = below
    bounds.below[MAGNITUDES] = <int32_t> bounds.n
    below = bounds.listed[LISTED] = 0
    for i in range(LISTED):
        while below < bounds.n and bounds.values[below] <= i:
            below += 1
        bounds.listed[i] = below
    return 0


cdef inline int64_t _bounds_up_to(const Bounds* bounds, int64_t number) noexcept nogil:
    # Returns how many bounds are not above the number, which is not negative.
    cdef int64_t magnitude, low, high, middle
    if number < LISTED:
        return bounds.listed[number]
    magnitude = _magnitude(number)
    low, high = bounds.below[magnitude], bounds.below[magnitude + 1]
    while low < high:
        middle = (low + high) >> 1
        if bounds.values[middle] <= number:
            low = middle + 1
        else:
            high = middle
    return low


cdef inline int64_t _behind(int64_t watermark, int64_t time, int64_t lateness) noexcept nogil:
    # Returns the distance of a watermark from a time that it has reached plus the allowed lateness, or -1 if it has not reached
    # the end of that. At most 2**63 - 1, as bounds go no further; unsigned, since the difference may pass that.
    cdef uint64_t behind = <uint64_t> watermark - <uint64_t> time
    if behind < <uint64_t> lateness:
        return -1
    behind -= <uint64_t> lateness
    return INT64_MAX if behind > <uint64_t> INT64_MAX else <int64_t> behind


# ---- slices of event time ----------------------------------------------------------------------------------------
# The windows of an event depend on its slice alone. Slices are numbered by their slide, which has one slice, or two if windows
# end within a slide. Only slices with events take memory.


cdef enum:
    PAGE = 256  # slices


cdef int64_t _find_page(const SliceTable* table, int64_t key) noexcept nogil:
    cdef uint64_t at = mix_int64(<uint64_t> key) & table.mask
    while table.pages[at] != NULL and table.keys[at] != key:
        at = (at + 1) & table.mask
    return <int64_t> at


cdef int _grow_pages(SliceTable* table) except -1 nogil:
    cdef SliceTable grown
    cdef uint64_t i, slots = 2 * (table.mask + 1) if table.pages != NULL else 64
    cdef int64_t at
    grown.n_pages = table.n_pages
    grown.mask = slots - 1
    grown.keys = <int64_t*> malloc(slots * sizeof(int64_t))
    grown.pages = <Slice**> calloc(slots, sizeof(Slice*))
    if grown.keys == NULL or grown.pages == NULL:
        free(grown.keys)
        free(grown.pages)
        with gil:
            raise MemoryError(f"{slots} pages of slices of event time")
    if table.pages != NULL:
        for i in range(table.mask + 1):
            if table.pages[i] != NULL:
                at = _find_page(&grown, table.keys[i])
                grown.keys[at] = table.keys[i]
                grown.pages[at] = table.pages[i]
    free(table.keys)
    free(table.pages)
    table[0] = grown
    return 0


cdef Slice* _slice(SliceTable* table, int64_t number) except NULL nogil:
    # Returns the slice with this number, created if necessary.
    cdef int64_t key = number >> 8, at, i
    cdef Slice* page
    if table.pages == NULL or 2 * table.n_pages > <int64_t> table.mask:
        _grow_pages(table)
    at = _find_page(table, key)
    page = table.pages[at]
    if page == NULL:
        page = <Slice*> malloc(PAGE * sizeof(Slice))
        if page == NULL:
            with gil:
                raise MemoryError("a page of slices of event time")
        for i in range(PAGE):
            page[i].least = INT64_MAX
            page[i].greatest = INT64_MIN
        table.keys[at] = key
        table.pages[at] = page
        table.n_pages += 1
    return page + (number & (PAGE - 1))


cdef void _slices_free(SliceTable* table) noexcept nogil:
    cdef uint64_t at
    if table.pages != NULL:
        for at in range(table.mask + 1):
            free(table.pages[at])
    free(table.keys)
    free(table.pages)


cdef inline int64_t _floor(int64_t number, int64_t width) noexcept nogil:
    return number // width - (number % width < 0)


cdef inline int64_t _slide_start(const AlignedWindows* windows, int64_t number) noexcept nogil:
    return wrapping_add(windows.slice_offset, <int64_t> (<uint64_t> number * <uint64_t> windows.slide))


cdef inline int64_t _window_end(const AlignedWindows* windows, int64_t number) noexcept nogil:
    # Returns the end of the window that starts with a slide.
    if windows.calendar != NULL:
        return calendar_end(windows.calendar, number)
    return wrapping_add(_slide_start(windows, number), windows.size)


cdef int64_t _cut_of(const AlignedWindows* windows) noexcept nogil:
    # Returns the distance from the start of a slide to the end of a window.
    cdef int64_t cut = 0 if windows.cumulative else windows.size % windows.slide
    return cut if cut else windows.slide


# ---- counting ----------------------------------------------------------------------------------------------------
# Events that arrive between two steps of the timeline meet the same watermark. So they are counted in runs, and those of a run
# that are in the same slice, and therefore equally late for its windows, are counted at once.


cdef void _count_silence(SplitCounts* split, const int64_t* arrivals, int64_t n) noexcept nogil:
    cdef int64_t i, silence = split.longest_silence
    if split.last_arrival != INT64_MIN:
        silence = max(silence, arrivals[0] - split.last_arrival)
    for i in range(1, n):
        silence = max(silence, arrivals[i] - arrivals[i - 1])
    split.longest_silence = silence
    split.last_arrival = arrivals[n - 1]


cdef void _count_run(
    LatenessCounter counter, SplitCounts* split, const int64_t* timestamps, int64_t n, int64_t watermark, bint leapt
) noexcept nogil:
    # Counts events of one split that meet the same watermark. Events that are not late are counted under no bound, which saves
    # a branch.
    cdef const int32_t* listed = counter.bounds.listed
    cdef const int32_t* groups = counter.groups
    cdef int64_t* late = counter.late
    cdef int64_t* late_of_split = split.late
    cdef int64_t i, timestamp, n_bounds, least = INT64_MAX, worst, beyond_own = 0, own = counter.own
    cdef uint64_t behind
    cdef bint is_late
    for i in range(n):
        timestamp = timestamps[i]
        least = min(least, timestamp)
        is_late = timestamp <= watermark
        behind = <uint64_t> watermark - <uint64_t> timestamp if is_late else <uint64_t> LISTED
        # `&` instead of `and`: one branch, which is nearly never taken, instead of one on lateness, which cannot be predicted.
        if is_late & (behind >= LISTED):
            n_bounds = _bounds_up_to(&counter.bounds, _behind(watermark, timestamp, 0))
        else:
            n_bounds = listed[behind]
        late[n_bounds] += 1
        late_of_split[groups[n_bounds]] += 1
        beyond_own += n_bounds > own
    split.events += n
    if least <= watermark:
        worst = _behind(watermark, least, 0)
        split.loses_none = max(split.loses_none, worst if worst == INT64_MAX else worst + 1)
    if leapt:
        split.after_leaps += beyond_own


cdef inline void _count_late(
    WindowCounts* counts, const Bounds* bounds, int64_t last, int64_t watermark, int64_t events
) noexcept nogil:
    cdef int64_t k, behind
    if watermark < last:
        return
    for k in range(counts.n_lateness):
        behind = _behind(watermark, last, counts.lateness[k])
        if behind >= 0:
            counts.late[k * (bounds.n + 1) + _bounds_up_to(bounds, behind)] += events


cdef void _count_waiting(WindowCounts* counts, const Bounds* bounds, RecentSlice* recent, int64_t watermark) noexcept nogil:
    recent.slice.least = min(recent.slice.least, watermark)
    recent.slice.greatest = max(recent.slice.greatest, watermark)
    _count_late(counts, bounds, recent.last, watermark, recent.waiting)
    recent.waiting = 0


cdef RecentSlice* _recent_slice(
    WindowCounts* counts, const Bounds* bounds, int64_t timestamp, int64_t watermark
) except NULL nogil:
    # Returns the slice of a timestamp, which replaces another recent one if it is not recent itself.
    cdef const AlignedWindows* windows = &counts.windows
    cdef int64_t per_slide = 1 if counts.cut == windows.slide else 2, since, start, number
    cdef RecentSlice* recent
    cdef CalendarWindow window
    cdef int32_t i
    for i in range(RECENT_SLICES):
        recent = &counts.recent[i]
        if recent.from_ms <= timestamp < recent.until_ms:
            return recent
    recent = &counts.recent[counts.next_recent]
    counts.next_recent = (counts.next_recent + 1) % RECENT_SLICES
    if recent.waiting:
        _count_waiting(counts, bounds, recent, watermark)
    if windows.calendar != NULL:
        window = calendar_window(windows.calendar, timestamp)
        recent.from_ms, recent.until_ms, recent.last = window.start, window.end, window.end - 1
        recent.slice = _slice(&counts.slices, window.number)
        return recent
    since = since_start(timestamp, windows.slice_offset, windows.slide)
    start = wrapping_add(timestamp, -since)
    number = _floor(start, windows.slide) * per_slide
    recent.from_ms, recent.until_ms = start, wrapping_add(start, counts.cut)
    if since >= counts.cut:
        number += 1
        recent.from_ms, recent.until_ms = recent.until_ms, wrapping_add(start, windows.slide)
    # A slice that is in no window may reach beyond 64 bits.
    if recent.from_ms > timestamp:
        recent.from_ms = INT64_MIN
    if recent.until_ms <= timestamp:
        recent.until_ms = INT64_MAX
    recent.last = wrapping_add(
        aligned_start(timestamp, windows.offset, windows.size) if windows.cumulative else start, windows.size - 1
    )
    recent.slice = _slice(&counts.slices, number) if since < windows.size else NULL
    return recent


cdef bint _count_recent(WindowCounts* counts, const int64_t* timestamps, int64_t n) noexcept nogil:
    # Returns true if all of these events are in recent slices, and in windows: they wait there then, otherwise none does.
    cdef int64_t[RECENT_SLICES] waiting
    cdef RecentSlice* recent
    cdef int64_t i, met, left = n
    cdef uint64_t start, length
    cdef int32_t k, number = counts.next_recent
    for k in range(RECENT_SLICES):
        number = (number + RECENT_SLICES - 1) % RECENT_SLICES  # the last one met is first
        recent = &counts.recent[number]
        waiting[number] = met = 0
        if left and recent.slice != NULL:
            start, length = <uint64_t> recent.from_ms, <uint64_t> recent.until_ms - <uint64_t> recent.from_ms
            for i in range(n):
                met += <uint64_t> timestamps[i] - start < length  # unsigned: one comparison checks both bounds
            waiting[number] = met
            left -= met
    if left:
        return False
    for k in range(RECENT_SLICES):
        counts.recent[k].waiting = waiting[k]
    return True


cdef int _count_windows(
    WindowCounts* counts, const Bounds* bounds, const int64_t* timestamps, int64_t n, int64_t watermark
) except -1 nogil:
    # Counts events that meet the same watermark.
    cdef RecentSlice* recent = &counts.recent[0]
    cdef int64_t i
    if not _count_recent(counts, timestamps, n):
        for i in range(n):
            if not recent.from_ms <= timestamps[i] < recent.until_ms:
                recent = _recent_slice(counts, bounds, timestamps[i], watermark)
            if recent.slice != NULL:
                recent.waiting += 1
            else:
                _count_late(counts, bounds, timestamps[i], watermark, 1)  # an event in no window is late by itself
    for i in range(RECENT_SLICES):
        if counts.recent[i].waiting:
            _count_waiting(counts, bounds, &counts.recent[i], watermark)
    return 0


cdef int _count_split(
    LatenessCounter counter, SplitCounts* split, const int64_t* timestamps, const int64_t* arrivals, int64_t n
) except -1 nogil:
    cdef StepCursor* cursor = &counter.steps
    cdef int64_t steps, after = INT64_MIN, until = INT64_MAX, watermark, first = 0, begin
    cdef uint64_t advance
    cdef WindowCounts* windows = <WindowCounts*> counter.windows.data
    cdef bint leapt
    cdef int64_t i
    if split.late == NULL:
        split.late = <int64_t*> calloc(counter.n_groups, sizeof(int64_t))
        if split.late == NULL:
            with gil:
                raise MemoryError("the late events of a split")
    while first < n:
        # Ticks of the same time come after the event.
        steps = steps_before_place(cursor, counter.n_steps, arrivals[first], -1, 0) if cursor.view.n else 0
        counter.n_steps = steps
        steps_around(cursor, steps, &after, &until)
        watermark = steps_watermark_after(cursor, steps)
        advance = <uint64_t> watermark - <uint64_t> steps_watermark_after(cursor, steps - 1) if steps > 1 else 0
        if steps:
            watermark = wrapping_add(watermark, counter.bounds.values[counter.own])
        leapt = advance > <uint64_t> counter.bounds.values[counter.own]
        begin = first
        first += 1
        while first < n and after < arrivals[first] <= until:
            first += 1
        _count_run(counter, split, timestamps + begin, first - begin, watermark, leapt)
        for i in range(_n_windows(counter)):
            _count_windows(&windows[i], &counter.bounds, timestamps + begin, first - begin, watermark)
    return 0


_SPLIT_COLUMNS = ("split_events", "split_loses_none_ms", "split_after_leaps", "split_silence_ms")


cdef const int64_t* _column(const int64_t[::1] column, int64_t n, str name) except? NULL:
    if column.shape[0] != n:
        raise DataError(f"{name} has {column.shape[0]} values, not {n}")
    return &column[0] if n else NULL


cdef inline int64_t _n_windows(LatenessCounter counter) noexcept nogil:
    return counter.windows.size // <int64_t> sizeof(WindowCounts)


@cython.final
cdef class LatenessCounter:
    """Counts how many events are late under which bound of out-of-orderness: for their watermark, and for windows.

    O(log bounds of a magnitude) per event and kind of windows; memory for bounds, splits and slices of event time, however
    many events there are.

    Parameters
    ----------
    timeline : PackedSteps
        The timeline under the bound of number `own`, made by ticks alone. The watermark of a bound is that of another bound, less
        the difference of both.
    bounds_ms : numpy.ndarray of int64, shape (n_bounds,)
        Ascending, from 0 to 2**63 - 1.
    groups : numpy.ndarray of int32, shape (n_bounds + 1,)
        Index by which late events of a split are counted, for each number of bounds under which an event is late; ascending
        from 0 on.
    own : int
        Number of the bound for counting events that are late after leaps: while a watermark is in force that advanced by more
        than this bound.
    splits : int
        Number of splits.

    Raises
    ------
    ConfigurationError
        If the bounds or the groups are not so.
    """

    def __cinit__(
        self,
        PackedSteps timeline not None,
        const int64_t[::1] bounds_ms not None,
        const int32_t[::1] groups not None,
        int64_t own,
        int32_t splits,
    ):
        cdef int64_t i
        self.timeline = timeline
        steps_open(&self.steps, &timeline.view, ALL_COLUMNS)
        _bounds_set_up(&self.bounds, bounds_ms)
        if not 0 <= own < self.bounds.n:
            raise ConfigurationError(f"bound number {own} of {self.bounds.n}")
        self.own = own
        if groups.shape[0] != self.bounds.n + 1 or groups[0] != 0:
            raise ConfigurationError(f"{groups.shape[0]} groups for {self.bounds.n} bounds; one more, from 0 on")
        for i in range(self.bounds.n):
            if not 0 <= groups[i + 1] - groups[i] <= 1:
                raise ConfigurationError(f"group {groups[i + 1]} follows group {groups[i]}")
        self.calendars = []
        self.n_splits = splits
        self.n_groups = groups[self.bounds.n] + 1
        self.groups = <int32_t*> malloc((self.bounds.n + 1) * sizeof(int32_t))
        self.late = <int64_t*> calloc(self.bounds.n + 1, sizeof(int64_t))
        self.splits = <SplitCounts*> calloc(splits + 1, sizeof(SplitCounts))
        if self.groups == NULL or self.late == NULL or self.splits == NULL:
            raise MemoryError(f"{self.bounds.n} bounds and {splits} splits")
        for i in range(self.bounds.n + 1):
            self.groups[i] = groups[i]
        for i in range(splits):
            self.splits[i].last_arrival = INT64_MIN

    def __dealloc__(self):
        cdef int64_t i
        cdef WindowCounts* counts = <WindowCounts*> self.windows.data
        steps_close(&self.steps)
        free(self.bounds.values)
        free(self.bounds.below)
        free(self.bounds.listed)
        free(self.groups)
        free(self.late)
        if self.splits != NULL:
            for i in range(self.n_splits):
                free(self.splits[i].late)
        free(self.splits)
        for i in range(_n_windows(self)):
            free(counts[i].lateness)
            free(counts[i].late)
            _slices_free(&counts[i].slices)
        buffer_free(&self.windows)

    def add_windows(
        self,
        *,
        const int64_t[::1] allowed_lateness_ms not None,
        int64_t size=0,
        int64_t slide=0,
        int64_t offset=0,
        bint cumulative=False,
        WindowCalendar calendar=None,
    ):
        """Count for windows, too; before the first event.

        Parameters
        ----------
        allowed_lateness_ms : numpy.ndarray of int64, shape (n_lateness,)
            Not negative: what is late is counted for each of them.
        size, slide, offset, cumulative, calendar
            As of `time_windows`.

        Raises
        ------
        ConfigurationError
            If windows cannot have this size, or an allowed lateness is negative.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t i, n = allowed_lateness_ms.shape[0]
        cdef WindowCounts* counts
        cdef AlignedWindows windows = checked_windows(size, slide, offset, cumulative, calendar, 0, INT64_MAX)
        for i in range(n):
            if allowed_lateness_ms[i] < 0:
                raise ConfigurationError(f"the allowed lateness must not be negative, it is {allowed_lateness_ms[i]} ms")
        self.calendars.append(calendar)
        counts = <WindowCounts*> buffer_append(&self.windows, sizeof(WindowCounts))
        counts.windows = windows
        counts.cut = _cut_of(&windows)
        counts.n_lateness = n
        counts.slices.n_pages = 0
        counts.slices.mask = 0
        counts.slices.keys = NULL
        counts.slices.pages = NULL
        counts.next_recent = 0
        for i in range(RECENT_SLICES):
            counts.recent[i].from_ms = INT64_MAX
            counts.recent[i].until_ms = INT64_MIN
            counts.recent[i].waiting = 0
            counts.recent[i].slice = NULL
        counts.lateness = <int64_t*> malloc((n + 1) * sizeof(int64_t))
        counts.late = <int64_t*> calloc(n * (self.bounds.n + 1) + 1, sizeof(int64_t))
        if counts.lateness == NULL or counts.late == NULL:
            raise MemoryError(f"{self.bounds.n} bounds with {n} allowed latenesses")
        for i in range(n):
            counts.lateness[i] = allowed_lateness_ms[i]

    def begin(self, const int32_t[::1] splits not None, const int64_t[::1] arrivals_ms not None):
        """Set the last arrivals of splits, before the first call of `arrived`.

        Parameters
        ----------
        splits : numpy.ndarray of int32, shape (n,)
        arrivals_ms : numpy.ndarray of int64, shape (n,)
            -2**63: there was none.

        Raises
        ------
        DataError
            If there is not one arrival for each split, or no such split.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t i
        check_codes(splits, self.n_splits)
        _column(arrivals_ms, splits.shape[0], "arrivals_ms")
        for i in range(splits.shape[0]):
            self.splits[splits[i]].last_arrival = arrivals_ms[i]

    def arrived(
        self, const int32_t[::1] splits not None, const int64_t[::1] offsets not None, const int64_t[::1] arrivals_ms not None
    ):
        """Take in when events of splits arrived, those of each in the order of the log: also those that are not counted.

        Parameters
        ----------
        splits : numpy.ndarray of int32, shape (n_codes,)
        offsets : numpy.ndarray of int64, shape (n_codes + 1,)
            Start of each split's events, followed by the end of the last ones: see `rows_by_split`.
        arrivals_ms : numpy.ndarray of int64, shape (n_rows,)

        Raises
        ------
        DataError
            If the columns do not fit together.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t code, first
        check_codes(splits, self.n_splits)
        check_offsets(offsets, splits.shape[0], arrivals_ms.shape[0])
        with nogil:
            for code in range(splits.shape[0]):
                first = offsets[code]
                if first < offsets[code + 1]:
                    _count_silence(&self.splits[splits[code]], &arrivals_ms[first], offsets[code + 1] - first)

    def update(
        self,
        const int32_t[::1] splits not None,
        const int64_t[::1] offsets not None,
        const int64_t[::1] arrivals_ms not None,
        const int64_t[::1] timestamps_ms not None,
    ):
        """Count events, those of each split together, in any order.

        Parameters
        ----------
        splits : numpy.ndarray of int32, shape (n_codes,)
        offsets : numpy.ndarray of int64, shape (n_codes + 1,)
            Start of each split's events, followed by the end of the last ones: see `rows_by_split`.
        arrivals_ms : numpy.ndarray of int64, shape (n_rows,)
        timestamps_ms : numpy.ndarray of int64, shape (n_rows,)
            Timestamps whose windows do not overflow.

        Raises
        ------
        DataError
            If the columns do not fit together.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t code, first, n = timestamps_ms.shape[0]
        _column(arrivals_ms, n, "arrivals_ms")
        check_codes(splits, self.n_splits)
        check_offsets(offsets, splits.shape[0], n)
        with nogil:
            for code in range(splits.shape[0]):
                first = offsets[code]
                n = offsets[code + 1] - first
                if n:
                    _count_split(self, &self.splits[splits[code]], &timestamps_ms[first], &arrivals_ms[first], n)

    def counts(self):
        """Return the counts, as columns that `add` takes.

        Returns
        -------
        dict of str to numpy.ndarray of int64
            "late", shape (n_bounds + 1,): events by the number of bounds under which they are late; of those under
            none only some. By split "split", "split_events", "split_loses_none_ms" (the least bound under which no
            event of it is late), "split_after_leaps" (events late under the own bound after a leap),
            "split_silence_ms" (the longest between two arrivals) and "split_late", shape (n, n_groups), flat. For the windows added first "0.late",
            shape (n_lateness, n_bounds + 1), flat, and their slices with events: "0.slice", and as "0.least_ms" and
            "0.greatest_ms" the extremes of the watermark in force at their arrivals; "1.late", ... for those after them.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t i, j, at, n = self.bounds.n + 1, n_found
        cdef uint64_t slot
        cdef WindowCounts* counts = <WindowCounts*> self.windows.data
        cdef const Slice* page
        cdef int64_t[::1] late = np.empty(n, np.int64), found
        cdef int64_t[:, ::1] columns
        for i in range(n):
            late[i] = self.late[i]
        result = {"late": late.base}
        found = np.array(
            [i for i in range(self.n_splits) if self.splits[i].events or self.splits[i].longest_silence], np.int64
        )
        n_found = found.shape[0]
        columns = np.empty((4, n_found), np.int64)
        split_late = np.zeros((n_found, self.n_groups), np.int64)
        cdef int64_t[:, ::1] by_group = split_late
        for i in range(n_found):
            columns[0, i] = self.splits[found[i]].events
            columns[1, i] = self.splits[found[i]].loses_none
            columns[2, i] = self.splits[found[i]].after_leaps
            columns[3, i] = self.splits[found[i]].longest_silence
            if self.splits[found[i]].late != NULL:
                for j in range(self.n_groups):
                    by_group[i, j] = self.splits[found[i]].late[j]
        result["split"] = found.base
        for i, name in enumerate(_SPLIT_COLUMNS):
            result[name] = columns.base[i]
        result["split_late"] = split_late.ravel()
        for i in range(_n_windows(self)):
            late = np.empty(counts[i].n_lateness * n, np.int64)
            for j in range(late.shape[0]):
                late[j] = counts[i].late[j]
            result[f"{i}.late"] = late.base
            columns = np.empty((3, counts[i].slices.n_pages * PAGE), np.int64)
            at = 0
            if counts[i].slices.pages != NULL:
                for slot in range(counts[i].slices.mask + 1):
                    page = counts[i].slices.pages[slot]
                    if page == NULL:
                        continue
                    for j in range(PAGE):
                        if page[j].least != INT64_MAX:
                            columns[0, at] = counts[i].slices.keys[slot] * PAGE + j
                            columns[1, at] = page[j].least
                            columns[2, at] = page[j].greatest
                            at += 1
            for name, column in zip(("slice", "least_ms", "greatest_ms"), columns.base, strict=True):
                result[f"{i}.{name}"] = column[:at].copy()
        return result

    def add(self, dict counts not None):
        """Add what a counter of the same bounds, groups, splits and windows has counted.

        Parameters
        ----------
        counts : dict of str to numpy.ndarray of int64
            Counts as `counts` returns them.

        Raises
        ------
        DataError
            If the columns do not fit.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t i, j, n = self.bounds.n + 1, n_found
        cdef WindowCounts* windows = <WindowCounts*> self.windows.data
        cdef const int64_t* column = _column(counts["late"], n, "late")
        cdef const int64_t* found
        cdef const int64_t* greatest
        cdef const int64_t* of_splits[4]
        cdef SplitCounts* split
        cdef Slice* of_window
        for i in range(n):
            self.late[i] += column[i]
        n_found = len(counts["split"])
        found = _column(counts["split"], n_found, "split")
        for i, name in enumerate(_SPLIT_COLUMNS):
            of_splits[i] = _column(counts[name], n_found, name)
        column = _column(counts["split_late"], n_found * self.n_groups, "split_late")
        for i in range(n_found):
            if not 0 <= found[i] < self.n_splits:
                raise DataError(f"split {found[i]} of {self.n_splits}")
            split = &self.splits[found[i]]
            split.events += of_splits[0][i]
            split.loses_none = max(split.loses_none, of_splits[1][i])
            split.after_leaps += of_splits[2][i]
            split.longest_silence = max(split.longest_silence, of_splits[3][i])
            if split.late == NULL:
                split.late = <int64_t*> calloc(self.n_groups, sizeof(int64_t))
                if split.late == NULL:
                    raise MemoryError("the late events of a split")
            for j in range(self.n_groups):
                split.late[j] += column[i * self.n_groups + j]
        for i in range(_n_windows(self)):
            column = _column(counts[f"{i}.late"], windows[i].n_lateness * n, f"{i}.late")
            for j in range(windows[i].n_lateness * n):
                windows[i].late[j] += column[j]
            n_found = len(counts[f"{i}.slice"])
            found = _column(counts[f"{i}.slice"], n_found, f"{i}.slice")
            column = _column(counts[f"{i}.least_ms"], n_found, f"{i}.least_ms")
            greatest = _column(counts[f"{i}.greatest_ms"], n_found, f"{i}.greatest_ms")
            for j in range(n_found):
                of_window = _slice(&windows[i].slices, found[j])
                of_window.least = min(of_window.least, column[j])
                of_window.greatest = max(of_window.greatest, greatest[j])


# ---- windows -----------------------------------------------------------------------------------------------------


cdef struct WindowExtremes:
    int64_t max_timestamp
    int64_t least
    int64_t greatest


cdef inline int _append_window(Buffer* found, int64_t max_timestamp, int64_t least, int64_t greatest) except -1 nogil:
    cdef WindowExtremes* window = <WindowExtremes*> buffer_append(found, sizeof(WindowExtremes))
    window.max_timestamp = max_timestamp
    window.least = least
    window.greatest = greatest
    return 0


cdef int _growing_windows(
    Buffer* found, const AlignedWindows* windows, const int64_t* slices, const int64_t* least, const int64_t* greatest, int64_t n
) except -1 nogil:
    # Each step from the first slice with an event on is the end of a window.
    cdef int64_t steps = windows.size // windows.slide, i = 0, first, step, of_least, of_greatest
    while i < n:
        first = aligned_start(slices[i], windows.offset // windows.slide, steps)
        of_least, of_greatest = INT64_MAX, INT64_MIN
        for step in range(slices[i], first + steps):
            if i < n and slices[i] == step:
                of_least = min(of_least, least[i])
                of_greatest = max(of_greatest, greatest[i])
                i += 1
            _append_window(found, wrapping_add(_slide_start(windows, step), windows.slide - 1), of_least, of_greatest)
    return 0


cdef int _sliding_windows(
    Buffer* found,
    const AlignedWindows* windows,
    const int64_t* slices,
    const int64_t* least,
    const int64_t* greatest,
    int64_t n,
    int64_t* lows,
    int64_t* highs,
) except -1 nogil:
    # `lows` and `highs` (n,) take the slices that can still be extreme in a window that ends later, the present extreme first.
    cdef int64_t cut = _cut_of(windows), per_slide = 1 if cut == windows.slide else 2
    cdef int64_t per_window = windows.size // windows.slide * per_slide + (per_slide - 1)
    cdef int64_t slide = _floor(slices[0] - (per_window - per_slide), per_slide)  # the first one whose window has the slice
    cdef int64_t first = 0, behind = 0, low = 0, low_end = 0, high = 0, high_end = 0
    while True:
        while behind < n and slices[behind] < slide * per_slide + per_window:
            while low < low_end and least[lows[low_end - 1]] >= least[behind]:
                low_end -= 1
            lows[low_end] = behind
            low_end += 1
            while high < high_end and greatest[highs[high_end - 1]] <= greatest[behind]:
                high_end -= 1
            highs[high_end] = behind
            high_end += 1
            behind += 1
        while first < behind and _floor(slices[first], per_slide) < slide:
            first += 1
        if first == n:
            return 0
        if first == behind:
            slide = _floor(slices[first] - (per_window - per_slide), per_slide)
            continue
        while lows[low] < first:
            low += 1
        while highs[high] < first:
            high += 1
        _append_window(
            found, wrapping_add(_window_end(windows, slide), -1), least[lows[low]], greatest[highs[high]]
        )
        slide += 1


def windows_of_slices(
    const int64_t[::1] slices not None,
    const int64_t[::1] least_ms not None,
    const int64_t[::1] greatest_ms not None,
    *,
    int64_t size=0,
    int64_t slide=0,
    int64_t offset=0,
    bint cumulative=False,
    WindowCalendar calendar=None,
):
    """The windows that have events, by their ends.

    Parameters
    ----------
    slices, least_ms, greatest_ms : numpy.ndarray of int64, shape (n_slices,)
        Columns as in `LatenessCounter.counts`, the slices ascending.
    size, slide, offset, cumulative, calendar
        Parameters of the windows.

    Returns
    -------
    tuple of numpy.ndarray of int64, each of shape (n_windows,)
        `(max_timestamps_ms, least_ms, greatest_ms)`: the last moments of the windows, and the extremes of the
        watermark in force when their events arrive.

    Raises
    ------
    DataError
        If the columns do not fit together.
    """
    cdef AlignedWindows windows = checked_windows(size, slide, offset, cumulative, calendar, 0, INT64_MAX)
    cdef int64_t i, n = slices.shape[0], n_windows
    cdef const int64_t* least = _column(least_ms, n, "least_ms")
    cdef const int64_t* greatest = _column(greatest_ms, n, "greatest_ms")
    cdef int64_t[::1] lows = np.empty(n + 1, np.int64), highs = np.empty(n + 1, np.int64)
    cdef int64_t[:, ::1] columns
    cdef const WindowExtremes* window
    cdef Buffer found = Buffer(NULL, 0, 0)
    for i in range(1, n):
        if slices[i] <= slices[i - 1]:
            raise DataError(f"slice {slices[i]} follows slice {slices[i - 1]}")
    try:
        if n:
            with nogil:
                if windows.cumulative:
                    _growing_windows(&found, &windows, &slices[0], least, greatest, n)
                else:
                    _sliding_windows(&found, &windows, &slices[0], least, greatest, n, &lows[0], &highs[0])
        n_windows = found.size // <int64_t> sizeof(WindowExtremes)
        columns = np.empty((3, n_windows), np.int64)
        window = <const WindowExtremes*> found.data
        for i in range(n_windows):
            columns[0, i] = window[i].max_timestamp
            columns[1, i] = window[i].least
            columns[2, i] = window[i].greatest
    finally:
        buffer_free(&found)
    return tuple(columns.base)


def first_clocks(
    PackedSteps timeline not None,
    int64_t own_bound_ms,
    const int64_t[::1] reached_ms not None,
    int64_t bound_ms,
):
    """Return the times at which the watermark of a bound reaches points of event time. O(n_steps + n_points).

    Parameters
    ----------
    timeline : PackedSteps
        The timeline under another bound. Its end of the log reaches nothing.
    own_bound_ms : int
        That bound, which is not negative.
    reached_ms : numpy.ndarray of int64, shape (n_points,)
        Ascending.
    bound_ms : int
        Not negative.

    Returns
    -------
    numpy.ndarray of int64, shape (n,)
        The clocks at which the first n points are reached; the others never are.
    """
    cdef StepCursor cursor
    cdef int64_t i, step = 0, n_steps = timeline.view.n, n = reached_ms.shape[0], reached = n, wanted
    cdef int64_t[::1] found = np.empty(n, np.int64)
    memset(&cursor, 0, sizeof(StepCursor))
    try:
        steps_open(&cursor, &timeline.view, CLOCKS | WATERMARKS)
        if n_steps and steps_value(&cursor, StepColumn.CLOCK, n_steps - 1) == INT64_MAX:
            n_steps -= 1
        with nogil:
            for i in range(n):
                wanted = INT64_MAX if reached_ms[i] > INT64_MAX - bound_ms else reached_ms[i] + bound_ms
                while step < n_steps and wrapping_add(
                    steps_value(&cursor, StepColumn.WATERMARK, step), own_bound_ms
                ) < wanted:
                    step += 1
                if step == n_steps:
                    reached = i
                    break
                found[i] = steps_value(&cursor, StepColumn.CLOCK, step)
    finally:
        steps_close(&cursor)
    return found.base[:reached]
