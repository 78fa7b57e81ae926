# Windows that fire by the trigger of each key: a kernel of window operators.
from libc.stdint cimport int64_t, uint8_t, uint32_t

from flinkcore._native.aligned_windows cimport AlignedWindows
from flinkcore._native.pane_timers cimport PaneTimers
from flinkcore._native.panes cimport Pane, PaneList, PaneStore
from flinkcore._native.window_kernel cimport WindowCore
from flinkcore._native.window_triggers cimport Trigger


cdef enum:
    MOST_FIRINGS = 1024


cdef struct Firing:
    Pane* pane
    uint32_t key  # its number in the pane
    bint late


cdef struct TriggeredWindows:
    WindowCore core
    AlignedWindows windows  # size 0: one global window
    Trigger trigger
    PaneList live
    PaneStore store
    int64_t* trigger_states  # per entry of the accumulators: rows counted, or when it fires next; INT64_MIN: not at all
    uint8_t* flags           # per entry, of Progress
    int64_t entries_capacity
    PaneTimers timers
    bint advancing           # a watermark has come, and not all of its timers have fired yet
    int64_t bucket_done      # timers of the first bucket that have fired
    int64_t n_firing
    int64_t n_emitted        # of them, so many have their results out
    Firing[MOST_FIRINGS] firing          # emitted together: before a further row of one of them, or a watermark
    uint32_t[MOST_FIRINGS] entries       # theirs
    int64_t[MOST_FIRINGS + 1] key_offsets  # KEY_BYTES: where their keys would lie, one after the other
