# Tumbling and sliding event-time windows over columns, with the default trigger.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from flinkcore._native.aggregates cimport Accumulators, AccumulatorTable
from flinkcore._native.firings cimport Firings, PendingUpdates, TimelineCursor
from flinkcore._native.keys cimport KeyBatch, KeyEncoder


cdef struct KeySlot:
    # `code` is the key itself (KEY_INT64) or its whole hash (KEY_BYTES).
    uint64_t code
    uint32_t number  # the key's number in its pane, plus one; 0: empty slot


cdef struct Pane:
    # One live window: its keys in order of registration, and an open-addressing index over them.
    int64_t start
    int64_t end
    bint fired
    uint32_t n_keys
    uint32_t keys_capacity
    int64_t* keys        # KEY_INT64: (n_keys,)
    uint64_t* hashes     # KEY_BYTES: (n_keys,)
    int64_t* offsets     # KEY_BYTES: (n_keys + 1,) into data
    uint8_t* data
    int64_t data_capacity
    KeySlot* slots
    uint64_t mask
    uint32_t* blocks     # block numbers; key k has the entry blocks[k // ENTRY_BLOCK] * ENTRY_BLOCK + k % ENTRY_BLOCK
    uint32_t n_blocks
    uint32_t blocks_capacity


cdef struct WindowState:
    int64_t size
    int64_t slide
    int64_t offset
    int64_t lateness
    bint bytes_keys
    TimelineCursor cursor
    int64_t quiet_until  # no window fires or ends for rows that arrive up to this clock
    Pane** panes         # live windows by start
    int64_t n_panes
    int64_t n_fired      # the first of them, kept for late rows
    int64_t panes_capacity
    Pane** spare         # emptied windows whose memory is used again
    int64_t n_spare
    int64_t spare_capacity
    uint64_t expected_keys
    uint32_t* free_blocks
    int64_t n_free_blocks
    int64_t free_blocks_capacity
    uint32_t n_blocks
    AccumulatorTable* table
    PendingUpdates pending
    Firings firings
    uint32_t* late_rows
    int64_t n_late_rows
    int64_t late_rows_capacity
    int64_t events
    int64_t windowed
    int64_t late
    int64_t in_no_window
    int64_t on_time_firings
    int64_t late_firings


cdef class WindowOperator:
    cdef WindowState* state
    cdef KeyEncoder _keys
    cdef Accumulators _accumulators
    cdef object _clocks
    cdef object _watermarks
    cdef list _key_names
    cdef list _aggregate_names
    cdef str _time_format
