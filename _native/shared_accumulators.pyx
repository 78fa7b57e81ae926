"""Accumulators that several windows share: each window adds up the slices of time that it is made of."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from flinkcore.errors import ConfigurationError

from flinkcore._native.aggregate_functions cimport Aggregate, Function, Part
from flinkcore._native.aggregates cimport Accumulators
from flinkcore._native.column_blocks cimport ValueState


cdef bint _are_shareable(const AccumulatorTable* table) noexcept nogil:
    cdef const Aggregate* aggregate
    cdef int64_t i
    for i in range(table.n_aggregates):
        aggregate = &table.aggregates[i]
        if not aggregate.parts & Part.WORD_PART:
            return False
        if not (
            aggregate.function == Function.COUNT
            or aggregate.function == Function.LEAST
            or (aggregate.function == Function.SUM and aggregate.whole_numbers)
        ):
            return False
    return True


cdef void _add(Aggregate* aggregate, const uint32_t* into, const uint32_t* others, int64_t n) noexcept nogil:
    cdef uint64_t* words = aggregate.words
    cdef int64_t* ordered = <int64_t*> aggregate.words
    cdef uint8_t* states = aggregate.states
    cdef int64_t i, value
    if aggregate.function == Function.LEAST:
        for i in range(n):
            value = ordered[others[i]]
            ordered[into[i]] = value if value < ordered[into[i]] else ordered[into[i]]
    else:
        for i in range(n):
            words[into[i]] += words[others[i]]
    if states != NULL:
        for i in range(n):
            if states[into[i]] == ValueState.NO_VALUE:
                states[into[i]] = states[others[i]]


cdef void accumulators_add(
    AccumulatorTable* table, const uint32_t* into, const uint32_t* others, int64_t n
) noexcept nogil:
    cdef uint8_t* touched = table.touched
    cdef int64_t i
    for i in range(table.n_aggregates):
        _add(&table.aggregates[i], into, others, n)
    if touched != NULL:
        for i in range(n):
            touched[into[i]] |= touched[others[i]]


cdef void _copy(Aggregate* aggregate, const uint32_t* into, const uint32_t* others, int64_t n) noexcept nogil:
    cdef uint64_t* words = aggregate.words
    cdef uint8_t* states = aggregate.states
    cdef int64_t i
    for i in range(n):
        words[into[i]] = words[others[i]]
    if states != NULL:
        for i in range(n):
            states[into[i]] = states[others[i]]


cdef void accumulators_copy(
    AccumulatorTable* table, const uint32_t* into, const uint32_t* others, int64_t n
) noexcept nogil:
    cdef uint8_t* touched = table.touched
    cdef int64_t i
    for i in range(table.n_aggregates):
        _copy(&table.aggregates[i], into, others, n)
    if touched != NULL:
        for i in range(n):
            touched[into[i]] = touched[others[i]]


cdef void _subtract(
    Aggregate* aggregate, const uint32_t* into, const uint32_t* others, int64_t n, uint8_t* doubtful
) noexcept nogil:
    cdef uint64_t* words = aggregate.words
    cdef const int64_t* ordered = <const int64_t*> aggregate.words
    cdef const uint8_t* states = aggregate.states
    cdef int64_t i
    if aggregate.function == Function.LEAST:
        for i in range(n):
            doubtful[i] |= ordered[others[i]] <= ordered[into[i]]
        return
    for i in range(n):
        words[into[i]] -= words[others[i]]
    if states != NULL:  # a sum of 0 may have values or none
        for i in range(n):
            doubtful[i] |= words[into[i]] == 0


cdef void accumulators_subtract(
    AccumulatorTable* table, const uint32_t* into, const uint32_t* others, int64_t n, uint8_t* doubtful
) noexcept nogil:
    cdef int64_t i
    memset(doubtful, False, n)
    for i in range(table.n_aggregates):
        _subtract(&table.aggregates[i], into, others, n, doubtful)


cdef int require_shareable(const AccumulatorTable* table) except -1:
    if not _are_shareable(table):
        raise ConfigurationError(
            "windows share slices only where results do not depend on the order of rows: of counts, sums of whole numbers, "
            "least and greatest values of fixed width"
        )
    return 0


def are_shareable(Accumulators accumulators not None):
    """Whether overlapping windows can share the accumulators of slices of time.

    They can where results are the same in whatever order elements are added up: of counts, sums of whole numbers, least and
    greatest values of fixed width.
    """
    return _are_shareable(accumulators.table)
