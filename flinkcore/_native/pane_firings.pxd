# Results of the keys of a window, in order of registration.
from libc.stdint cimport int64_t

from flinkcore._native.firings cimport RowKind
from flinkcore._native.keys cimport KeyBatch
from flinkcore._native.panes cimport Pane, PaneList, PaneStore
from flinkcore._native.window_kernel cimport WindowCore, WindowRows


# The result columns, but for the aggregates', of n keys from number `first` on.
cdef int append_pane_keys(
    WindowCore* core, const Pane* pane, int64_t first, int64_t n, RowKind kind, bint late
) except -1 nogil
# The result of a key that a late row fires, as it is now: with that row or without.
cdef int emit_late_key(WindowCore* core, const Pane* pane, int64_t k, RowKind kind) except -1 nogil
# n keys of a window of a checkpoint from number `first` on; n is at least 1.
cdef int append_live_keys(
    WindowRows* windows, bint bytes_keys, const Pane* pane, int64_t first, int64_t n
) except -1 nogil
# All keys of windows, with a flag where a window has fired.
cdef int append_live_panes(WindowRows* windows, bint bytes_keys, const PaneList* live) except -1 nogil
# The entry of a row's key in a window of a checkpoint; NO_ENTRY where the window has the key already.
cdef int64_t restored_pane_entry(PaneStore* store, Pane* pane, const KeyBatch* keys, int64_t row) except -1 nogil
# Emits all keys for the first time, at the watermark now in force, from number n_emitted on; false where results are full before, and n_emitted
# says how far it came, else that is 0.
cdef bint emit_pane(WindowCore* core, const Pane* pane, int64_t* n_emitted, bint purges) except -1 nogil
