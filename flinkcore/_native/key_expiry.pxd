# When a timer of processing time clears the state of a key that has a time to live, as of Flink's KeyedProcessFunctionWithCleanupState and
# BaseTwoInputStreamOperatorWithStateRetention.
from libc.stdint cimport INT64_MIN, int64_t

from flinkcore._native.window_operator cimport saturating_add


# Returns after how long the timer is due: TableConfigUtils.getMaxIdleStateRetentionTime.
cdef inline int64_t cleanup_period(int64_t ttl_ms) noexcept nogil:
    return ttl_ms + ttl_ms // 2


# Returns the first processing time at which the timer has fired if a row comes now; `due` is that of before, INT64_MIN if none is set.
cdef inline int64_t cleanup_due(int64_t due, int64_t ttl_ms, int64_t now) noexcept nogil:
    # What is due at a time comes after the rows that arrive with it.
    if due == INT64_MIN or saturating_add(now, ttl_ms) > due - 1:
        return saturating_add(now, cleanup_period(ttl_ms) + 1)
    return due
