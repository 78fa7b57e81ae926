# Accumulators of several aggregates over one space of entries (an entry: one key in one window).
from libc.stdint cimport int64_t, uint8_t, uint32_t

from flinkcore._native.aggregate_functions cimport Aggregate
from flinkcore._native.arrow cimport Column, RecordBatch
from flinkcore._native.call_guard cimport CallGuard
from flinkcore._native.column_blocks cimport Selection, ValueBlock


cdef struct AccumulatorTable:
    # Every aggregate keeps arrays over the entries; selections and blocks of values are shared between aggregates.
    int64_t n_entries
    int64_t capacity
    uint8_t* touched        # per entry: a row has come; NULL where all aggregates can tell themselves
    const Column** columns  # of the bound batch
    Selection* selections
    int64_t n_selections
    ValueBlock* blocks
    int64_t n_blocks
    Aggregate* aggregates
    int64_t n_aggregates
    int64_t rows            # results so far
    int64_t expected_rows   # as many as were taken last


# All entries below n_entries exist afterwards; new ones are empty.
cdef int accumulators_reserve(AccumulatorTable* table, uint32_t n_entries) except -1 nogil
# A failure (MemoryError, or results beyond Arrow's limits) leaves a table that can be read, cleared and freed; rows of
# the failed update may be in some aggregates only.
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
    cdef CallGuard guard
    cdef AccumulatorTable* table
    cdef list _specs
    cdef list _columns       # names of the columns read, in the order of table.columns
    cdef list _names         # the same, encoded, for messages of native code
    cdef RecordBatch _empty  # a batch without rows of the columns read: their types
    cdef RecordBatch _bound
    cdef dict _selections
    cdef dict _blocks
    cdef list _formats
    cdef bint in_use         # an operator has them
    cdef int64_t _selection(self, int64_t column) except -1
    cdef int64_t _block(self, int64_t selection, int64_t column, bint ordered) except -1
    cdef int _add(self, str function, str column, str by) except -1
    # The batch that accumulators_update reads from; it is kept until the next bind.
    cdef int bind(self, RecordBatch batch) except -1
    # The output columns so far (list of NativeArray, in order of the aggregates), which start anew.
    cdef list take_columns(self)
