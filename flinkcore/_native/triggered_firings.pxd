# Results of windows that fire by the trigger of each key, emitted together, and those that are withdrawn.
from libc.stdint cimport uint32_t

from flinkcore._native.panes cimport Pane
from flinkcore._native.triggered_windows cimport TriggeredWindows


# A window of a key fires: its result comes with the next triggered_emit_firing. There is room for it.
cdef void triggered_add_firing(
    TriggeredWindows* state, Pane* pane, uint32_t key, uint32_t entry, bint late
) noexcept nogil
# Emits what has fired; false where results are full before all are out.
cdef bint triggered_emit_firing(TriggeredWindows* state) except -1 nogil
