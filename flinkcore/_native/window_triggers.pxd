# When windows fire, and whether that empties them.
from libc.stdint cimport int64_t


cdef enum TriggerKind:
    ON_EVENT_TIME             # EventTimeTrigger: at the window's end, and at every late row
    ON_COUNT                  # CountTrigger: with every `every`-th row of a key
    ON_CONTINUOUS_EVENT_TIME  # ContinuousEventTimeTrigger: also every `every` ms before the end


# How far a key's window has come.
cdef enum Progress:
    FILLED = 1     # it has content: not fired and purged since the last row
    FIRING = 2     # it has fired, and its result is still to be emitted
    GIVEN = 4      # where results are withdrawn: it has given one
    WITHDRAWN = 8  # while it fires: that is done, or there is none


cdef struct Trigger:
    TriggerKind kind
    int64_t every
    bint purges        # PurgingTrigger around it


# Of a name: "event_time", "count", "continuous_event_time". Raises ConfigurationError.
cdef Trigger window_trigger(str name, int64_t every, bint purges) except *


cdef inline int64_t next_firing(int64_t every, int64_t time, int64_t max_timestamp) noexcept nogil:
    # ContinuousEventTimeTrigger.registerNextFireTimestamp
    return time + every if time < max_timestamp - every else max_timestamp


cdef inline int64_t first_firing(int64_t every, int64_t timestamp, int64_t max_timestamp) noexcept nogil:
    # Of a row with this timestamp. The remainder truncates, as Java's does.
    return next_firing(every, timestamp - timestamp % every, max_timestamp)
