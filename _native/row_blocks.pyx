"""Rows taken in blocks: first every row's windows are found and the key's slots prefetched, then the keys are looked up."""

from libc.stdint cimport int64_t

from flinkcore._native.firings cimport pending_add, pending_flush
from flinkcore._native.keys cimport KeyBatch
from flinkcore._native.panes cimport pane_entry_of
from flinkcore._native.window_kernel cimport core_is_full, input_row


cdef int64_t take_in_blocks(
    WindowCore* core, PaneStore* store, const InputRows* input, int64_t first, int64_t most_windows, const RowVerbs* verbs
) except -1 nogil:
    cdef const KeyBatch* keys = input.keys
    cdef RowBlock block
    cdef int64_t i = first, next, k
    while i < input.n:
        next = verbs.find_windows(core, input, i, &block)
        for k in range(block.n):
            pending_add(
                &core.pending,
                core.table,
                pane_entry_of(store, block.panes[k], keys, block.rows[k]),
                block.rows[k],
            )
        core.windowed += next - i
        i = next
        if i == input.n or block.n + most_windows > BLOCK_PAIRS:
            continue
        if not verbs.take_row(core, input, input_row(input, i)):
            break
        i += 1
        if core_is_full(core):
            break
    pending_flush(&core.pending, core.table)
    return i
