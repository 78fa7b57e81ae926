# Accumulators of several aggregates over one space of entries (an entry: one key in one window).
from libc.stdint cimport int64_t, uint32_t

from flinkcore._native.arrow cimport RecordBatch


cdef struct AccumulatorTable


# All entries below n_entries exist afterwards; new ones are empty.
cdef int accumulators_reserve(AccumulatorTable* table, uint32_t n_entries) except -1 nogil
# For i in range(n): entry entries[i] takes in row rows[i] of the bound batch, in this order.
cdef int accumulators_update(
    AccumulatorTable* table, const uint32_t* entries, const uint32_t* rows, int64_t n
) except -1 nogil
# `into` takes in all that `other` holds, as if other's elements came after its own; `other` is empty afterwards.
cdef int accumulators_merge(AccumulatorTable* table, uint32_t into, uint32_t other) except -1 nogil
# Appends the current results of the entries to the output columns; the entries keep their content.
cdef int accumulators_emit(AccumulatorTable* table, const uint32_t* entries, int64_t n) except -1 nogil
cdef int accumulators_emit_range(AccumulatorTable* table, uint32_t first, uint32_t n) except -1 nogil
# Empties the entries and frees what they own.
cdef void accumulators_clear(AccumulatorTable* table, const uint32_t* entries, int64_t n) noexcept nogil
cdef void accumulators_clear_range(AccumulatorTable* table, uint32_t first, uint32_t n) noexcept nogil


cdef class Accumulators:
    cdef AccumulatorTable* table
    # The batch that accumulators_update reads from; it must live until the next bind.
    cdef int bind(self, RecordBatch batch) except -1
    # The output columns so far (list of NativeArray, in order of the aggregates), which start anew.
    cdef list take_columns(self)
