"""The operators of all splits, run over the ticks of a log, and the valve that takes in what they emit.

A window of the clock at a time: the operators run up to its end one after the other, their emissions are put in order
of clock and split, and the valve takes them in. What is held at once is bounded by the splits and the results.
"""

import cython
import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport INT64_MAX, int32_t, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from flinkcore._native.call_guard cimport Call, begin_call
from flinkcore._native.memory cimport Buffer, buffer_free, buffer_reserve
from flinkcore._native.split_alignment cimport alignment_end, alignment_start, alignment_update
from flinkcore._native.split_operators cimport (
    Emission,
    SplitOperator,
    SplitOperators,
    operators_end,
    operators_last_tick,
    operators_run,
    operators_start,
    span_append,
)
from flinkcore._native.split_records cimport SplitRecords
from flinkcore._native.valve cimport ElementKind, StatusWatermarkValve, ValveOutput, valve_input

from flinkcore.errors import ConfigurationError


cdef inline int64_t _tick_in_window(SplitMerge merge, const Emission* emission, int64_t start) noexcept nogil:
    return (emission.clock - start) // merge.operators.interval


cdef const Emission* _by_clock_and_split(SplitMerge merge, int64_t start) except NULL nogil:
    # Counted by tick: what is equal there keeps its order.
    cdef const Emission* emissions = <const Emission*> merge.operators.emissions.data
    cdef Emission* in_order
    cdef int64_t i, tick, count, place = 0, n = merge.operators.emissions.size // <int64_t> sizeof(Emission)
    if merge.operators.n == 1 or merge.window_ticks == 1 or merge.operators.interval == 0:
        return emissions
    merge.in_order.size = 0
    buffer_reserve(&merge.in_order, merge.operators.emissions.size)
    in_order = <Emission*> merge.in_order.data
    memset(merge.places, 0, merge.window_ticks * sizeof(int64_t))
    for i in range(n):
        merge.places[_tick_in_window(merge, &emissions[i], start)] += 1
    for tick in range(merge.window_ticks):
        count = merge.places[tick]
        merge.places[tick] = place
        place += count
    for i in range(n):
        tick = _tick_in_window(merge, &emissions[i], start)
        in_order[merge.places[tick]] = emissions[i]
        merge.places[tick] += 1
    return in_order


cdef int _append_status(SplitMerge merge, int64_t clock, bint idle) except -1 nogil:
    cdef Status* status
    buffer_reserve(&merge.status_rows, sizeof(Status))
    status = <Status*> (merge.status_rows.data + merge.status_rows.size)
    status.clock = clock
    status.steps = merge.step_rows.size // <int64_t> sizeof(Step)
    status.idle = idle
    merge.status_rows.size += sizeof(Status)
    return 0


cdef int _deliver(SplitMerge merge, const Emission* emissions) except -1 nogil:
    cdef const Emission* emission
    cdef Step* step
    cdef int64_t i, watermark = 0
    cdef int output
    for i in range(merge.operators.emissions.size // <int64_t> sizeof(Emission)):
        emission = &emissions[i]
        if emission.kind == ElementKind.IDLE:
            merge.operators.splits[emission.split].idle_since = emission.clock
        elif emission.kind == ElementKind.ACTIVE:
            span_append(&merge.idle_rows, emission.split, merge.operators.splits[emission.split].idle_since, emission.clock)
        output = valve_input(&merge.valve.valve, emission.split, emission.kind, emission.timestamp, &watermark)
        if output & ValveOutput.EMITS_WATERMARK:
            buffer_reserve(&merge.step_rows, sizeof(Step))
            step = <Step*> (merge.step_rows.data + merge.step_rows.size)
            step.clock = emission.clock
            step.watermark = watermark
            merge.step_rows.size += sizeof(Step)
        if output & (ValveOutput.EMITS_IDLE | ValveOutput.EMITS_ACTIVE):
            _append_status(merge, emission.clock, (output & ValveOutput.EMITS_IDLE) != 0)
    merge.operators.emissions.size = 0
    return 0


cdef bint _run_window(SplitMerge merge, int64_t limit) except -1 nogil:
    # False: no split has a call up to the limit any more.
    cdef int64_t start = merge.operators.next_clock, until = limit, interval = merge.operators.interval
    if start > limit:
        return False
    if (until - start) // interval >= merge.window_ticks:
        until = start + (merge.window_ticks - 1) * interval
    operators_run(merge.operators, until)
    if merge.operators.emissions.size:
        merge.alignment.quiet_updates = 0
        _deliver(merge, _by_clock_and_split(merge, start))
    return True


cdef int _end_log(SplitMerge merge, bint stops) except -1 nogil:
    cdef const SplitOperator* state
    cdef int32_t split
    operators_end(merge.operators, stops)
    _deliver(merge, <const Emission*> merge.operators.emissions.data)
    for split in range(merge.operators.n):
        state = &merge.operators.splits[split]
        if state.idle:
            span_append(&merge.idle_rows, split, state.idle_since, merge.operators.last_arrival)
    return 0


cdef tuple _columns(const Buffer* rows, int64_t width):
    # Steps are rows of two integers, statuses and spans of three.
    cdef int64_t i, column, n = rows.size // (width * <int64_t> sizeof(int64_t))
    cdef const int64_t* values = <const int64_t*> rows.data
    cdef int64_t[:, ::1] columns = np.empty((width, n), np.int64)
    for i in range(n):
        for column in range(width):
            columns[column, i] = values[i * width + column]
    return tuple(columns.base)


cdef int _check_grid(int64_t interval, int64_t records_interval, object updates) except -1:
    # Whether events are read before or after a tick, and before or after an update, is all that a record tells.
    intervals = [interval] if updates is None or interval == 0 else [interval, updates]
    if any(each % records_interval if records_interval else each for each in intervals):
        raise ConfigurationError(f"intervals of {intervals} ms are no multiples of that of records, {records_interval} ms")
    return 0


@cython.final
cdef class SplitMerge:
    """The operators of all splits and the valve behind them, run over the clock of a log.

    Every split has an operator of its own, that assigns timestamps and emits watermarks at the ticks and at the end
    of the log. All are opened one interval before the first tick that sees an event of the log. The emissions of a tick
    come to the valve in the order of the splits, as do those of the end of the log, which come after all ticks.

    O((records + idle spans) · log splits) time, and O(splits) for each update of an alignment unless nothing has changed;
    memory for splits, timeline steps, spans, and one window.

    Follows TimestampsAndWatermarksOperator and StatusWatermarkValve of Flink 2.3, but that ticks lie on multiples of
    the interval.

    Parameters
    ----------
    records : SplitRecords
        Of all chunks; they are read by `run`. At least one split has an event.
    interval_ms : int
        The auto-watermark interval: that of the records, or a multiple of it.
    out_of_orderness_ms, idleness_ms : int or None
        As of WatermarkGenerator.
    first_arrival_ms, last_arrival_ms : int
        The earliest and the last arrival of the log, within ±MAX_ARRIVAL_MS.
    max_drift_ms, update_interval_ms : int or None
        How closely the splits are aligned, and how often, a multiple of the interval of the records; None: not at all.
    window_emissions : int
        About how many emissions are made before the valve takes them in; results do not depend on it.

    Raises
    ------
    ConfigurationError
        If a parameter is out of its range.
    """

    def __cinit__(
        self,
        SplitRecords records not None,
        *,
        object interval_ms,
        object out_of_orderness_ms,
        object idleness_ms,
        int64_t first_arrival_ms,
        int64_t last_arrival_ms,
        object max_drift_ms=None,
        object update_interval_ms=None,
        int64_t window_emissions=1 << 18,
    ):
        self.operators = SplitOperators(
            records, interval_ms, out_of_orderness_ms, idleness_ms, first_arrival_ms, last_arrival_ms
        )
        _check_grid(self.operators.interval, records.interval, update_interval_ms)
        self.valve = StatusWatermarkValve(self.operators.n)
        self.window_ticks = max(1, window_emissions // self.operators.n)
        self.places = <int64_t*> malloc(self.window_ticks * sizeof(int64_t))
        if self.places == NULL:
            raise MemoryError(f"windows of {self.window_ticks} ticks")
        self.alignment.next_update = INT64_MAX
        if max_drift_ms is not None and self.operators.interval:
            alignment_start(&self.alignment, self.operators, min(max_drift_ms, INT64_MAX), update_interval_ms)

    def __dealloc__(self):
        free(self.places)
        free(self.alignment.samples)
        buffer_free(&self.in_order)
        buffer_free(&self.step_rows)
        buffer_free(&self.status_rows)
        buffer_free(&self.idle_rows)

    def run(self, *, bint stops=False):
        """Run to the end of the log; once.

        Parameters
        ----------
        stops : bool
            True: what the end of the log would emit, and a tick at its last arrival, are left to another log.

        Raises
        ------
        SourceError
            If the file of the records cannot be read.
        DataError
            If a record lies after the last arrival.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef Call of_records = begin_call(&self.operators.records.guard, self.operators.records)
        cdef int64_t last_arrival = self.operators.last_arrival, last_tick = self.operators.opened
        if self.restored and self.operators.interval:
            last_tick = operators_last_tick(self.operators, self.stopped - 1)
        with nogil:
            operators_start(self.operators, last_tick)
        while self.alignment.next_update < last_arrival:
            self._run_up_to(self.alignment.next_update)
            with nogil:
                alignment_update(&self.alignment, self.operators)
        if self.alignment.samples != NULL:
            self._run_up_to(last_arrival - 1)
            with nogil:
                alignment_end(self.operators)
        self._run_up_to(last_arrival - 1 if stops else last_arrival)
        with nogil:
            _end_log(self, stops)

    cdef int _run_up_to(self, int64_t limit) except -1:
        cdef bint runs = True
        while runs:
            with nogil:
                runs = _run_window(self, limit)
            PyErr_CheckSignals()
        return 0

    def steps(self):
        """The steps of the timeline.

        Returns
        -------
        tuple of numpy.ndarray of int64, each of shape (n_steps,)
            `(clocks_ms, watermarks_ms)`: the watermarks that the valve put out, and when.
        """
        cdef Call call = begin_call(&self.guard, self)
        return _columns(&self.step_rows, 2)

    def statuses(self):
        """The statuses that the valve put out: all splits idle, or one active again.

        Returns
        -------
        tuple of numpy.ndarray of int64, each of shape (n_statuses,)
            `(clocks_ms, steps, idle)`: when, after how many steps of the timeline, and 1 for idle or 0 for active.
        """
        cdef Call call = begin_call(&self.guard, self)
        return _columns(&self.status_rows, 3)

    def idle_spans(self):
        """When which split was idle, by clock within each split; one that is idle at the end is so to the last arrival.

        Returns
        -------
        tuple of numpy.ndarray of int64, each of shape (n_spans,)
            `(splits, from_ms, to_ms)`
        """
        cdef Call call = begin_call(&self.guard, self)
        return _columns(&self.idle_rows, 3)

    def paused_spans(self):
        """When which split was paused by alignment, by clock within each; one paused at the end is so to the last arrival.

        Returns
        -------
        tuple of numpy.ndarray of int64, each of shape (n_spans,)
            `(splits, from_ms, to_ms)`
        """
        cdef Call call = begin_call(&self.guard, self)
        return _columns(&self.operators.paused_rows, 3)

    def final_watermarks(self):
        """The last watermark that each split emitted, -2**63 if none: numpy.ndarray of int64, shape (splits,)."""
        cdef Call call = begin_call(&self.guard, self)
        return np.array([self.operators.splits[split].current_watermark for split in range(self.operators.n)], np.int64)
