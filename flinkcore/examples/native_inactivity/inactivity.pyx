# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""How many elements each key had until it was quiet for a while, one count per period of activity.

The process function, in Python:

    def process_element(self, value, ctx):
        held = self.state.value()
        if held is not None:
            ctx.timer_service().delete_event_time_timer(held.timer_ms)
        timer_ms = ctx.timestamp() + self.gap_ms
        ctx.timer_service().register_event_time_timer(timer_ms)
        self.state.update(KeyState(held.count + 1 if held else 1, timer_ms))

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), self.state.value().count
        self.state.clear()

Here it takes a batch of elements at a time, and the loops over their rows run without the GIL.
"""

import numpy as np

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint32_t
from libc.string cimport memset

from flinkcore._native.arrow cimport Column, RecordBatch, integer_value
from flinkcore._native.key_dictionary cimport KeyDictionary
from flinkcore._native.memory cimport Buffer, buffer_free, buffer_reserve
from flinkcore._native.timer_queue cimport (
    TimerQueue,
    timer_queue_add,
    timer_queue_due,
    timer_queue_move,
    timer_queue_take,
)
from flinkcore._native.timers cimport TimerHeap

from flinkcore.errors import ConfigurationError, SchemaError


cdef struct KeyState:
    int64_t count     # 0: the key has no state
    int64_t timer_ms  # when the key's timer is due, if it has state


cdef int process_rows(
    TimerQueue* timers,
    KeyState* states,
    const uint32_t* key_ids,
    const int32_t* key_groups,
    const Column* timestamps,
    int64_t gap_ms,
) except -1 nogil:
    cdef int64_t row, timestamp_ms, timer_ms
    cdef int32_t key_group
    cdef KeyState* state
    for row in range(timestamps.length):
        state = &states[key_ids[row]]
        key_group = key_groups[key_ids[row]]
        timestamp_ms = integer_value(timestamps, row)
        timer_ms = timestamp_ms + gap_ms if timestamp_ms <= INT64_MAX - gap_ms else INT64_MAX
        if state.count:
            timer_queue_move(timers, state.timer_ms, timer_ms, key_ids[row], key_group, 0)
        else:
            timer_queue_add(timers, timer_ms, key_ids[row], key_group, 0)
        state.timer_ms = timer_ms
        state.count += 1
    return 0


cdef class InactivityCounts:
    """Counts of elements by key, each given out and forgotten when the key was quiet.

    Parameters
    ----------
    schema
        Of the batches; anything with `__arrow_c_schema__`.
    keys : list of str
        Columns of the key.
    timestamp : str
        Column of the elements' timestamps in ms: int64, or an Arrow timestamp of this unit; without nulls.
    gap_ms : int
        How long a key must have been quiet, at least 1.

    Raises
    ------
    ConfigurationError
        If gap_ms is not positive, or a key column is missing.
    """

    cdef KeyDictionary keys
    cdef TimerHeap timers
    cdef Buffer states   # KeyState by key id
    cdef Buffer key_ids  # uint32, of the batch
    cdef str timestamp
    cdef int64_t gap_ms

    def __cinit__(self, object schema, list keys, str timestamp, int64_t gap_ms):
        if gap_ms < 1:
            raise ConfigurationError(f"gap_ms is {gap_ms}; it must be at least 1")
        self.keys = KeyDictionary(schema, keys)
        self.timers = TimerHeap(self.keys.max_parallelism)
        self.timestamp = timestamp
        self.gap_ms = gap_ms

    def __dealloc__(self):
        buffer_free(&self.states)
        buffer_free(&self.key_ids)

    def process(self, batch):
        """Count the elements of a batch, in their order; all of them between two watermarks.

        Parameters
        ----------
        batch
            Record batch: anything with `__arrow_c_array__`.

        Raises
        ------
        SchemaError
            If a column is missing or of another type, or a timestamp is null. Nothing is counted.
        DataError
            If a key is null. Nothing is counted.
        """
        cdef RecordBatch rows = RecordBatch(batch)
        cdef const Column* timestamps = &rows.columns[rows.index_of(self.timestamp)]
        cdef bytes format = timestamps.format
        if format != b"l" and not format.startswith(b"tsm"):  # Arrow's names of the two types
            raise SchemaError(f"column {self.timestamp!r} must be int64 or timestamp('ms')")
        if timestamps.null_count:
            raise SchemaError(f"column {self.timestamp!r} has {timestamps.null_count} nulls")
        self.key_ids.size = 0
        buffer_reserve(&self.key_ids, rows.num_rows * sizeof(uint32_t))
        cdef uint32_t* key_ids = <uint32_t*> self.key_ids.data
        self.keys.add_all(rows, key_ids)
        cdef const int32_t* key_groups = self.keys.key_groups()
        cdef int64_t missing = self.keys.table.n_keys * sizeof(KeyState) - self.states.size
        buffer_reserve(&self.states, missing)
        memset(self.states.data + self.states.size, 0, missing)
        self.states.size += missing
        with nogil:
            process_rows(
                &self.timers.queue, <KeyState*> self.states.data, key_ids, key_groups, timestamps, self.gap_ms
            )

    def advance(self, int64_t watermark_ms):
        """Fire the timers that a watermark reaches.

        Parameters
        ----------
        watermark_ms : int

        Returns
        -------
        key_ids, timestamps_ms, counts : numpy arrays of int64
            One row per timer in firing order: by timestamp, equal ones as they were registered.
        """
        cdef int64_t n, i
        with nogil:
            n = timer_queue_due(&self.timers.queue, watermark_ms, INT64_MAX)
        columns = np.empty((4, n), np.int64)
        cdef int64_t[:, ::1] fired = columns
        cdef int32_t[::1] key_groups = np.empty(n, np.int32)
        cdef KeyState* states = <KeyState*> self.states.data
        if n:
            with nogil:
                timer_queue_take(&self.timers.queue, &fired[1, 0], &fired[0, 0], &key_groups[0], &fired[3, 0])
                for i in range(n):
                    fired[2, i] = states[fired[0, i]].count
                    states[fired[0, i]].count = 0
        return columns[0], columns[1], columns[2]

    def key_columns(self):
        """Return the keys by id: `pyarrow.record_batch(counts.key_columns())`."""
        return self.keys.keys()
