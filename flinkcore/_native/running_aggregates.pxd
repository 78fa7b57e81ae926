# Aggregates of all rows of a key up to each row: the results after each of some rows, at once.
from libc.stdint cimport int8_t, int64_t, uint32_t

from flinkcore._native.aggregates cimport AccumulatorTable, Aggregate


cdef enum:
    RUNNING_ROWS = 1024  # most rows at once: entries 0 to 1023 of the table are theirs, and empty in between
    SPARE = 1024         # entry that a copy passes through, which is empty in between

# Entry entries[i] takes in row rows[i] of the bound batch (signs[i] is 1), loses it (-1), or stays as it is (0), in this order;
# it is above SPARE. Entry i then holds what entries[i] did after that row, for results; `running_clear` empties it.
cdef int running_update(
    AccumulatorTable* table, const uint32_t* entries, const uint32_t* rows, const int8_t* signs, int64_t n
) except -1 nogil
cdef void running_clear(AccumulatorTable* table, int64_t n) noexcept nogil
# `into` takes in all that `other` holds, which stays; entry SPARE is empty before and afterwards.
cdef int aggregate_absorb(Aggregate* aggregate, uint32_t into, uint32_t other) except -1 nogil
