"""Aggregates of all rows of a key up to each row: the results after each of some rows, at once.

The first entries of the table are those of the rows. Each holds what its row brings, alone, until one loop of each aggregate adds
it to the entry of the row's key, and puts there what that then holds: the result after the row::

    rows ──► entries of rows ──► [entry of the key] ──► entries of rows ──► results
"""

from libc.stdint cimport int8_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from flinkcore._native.aggregates cimport (
    AccumulatorTable,
    Aggregate,
    Function,
    Part,
    accumulators_gather,
    aggregate_add_distinct,
    aggregate_clear,
    aggregate_copy,
    aggregate_merge,
    aggregate_update,
)
from flinkcore._native.column_values cimport (
    BLOCK_ROWS,
    ByteView,
    DecimalSum,
    OwnedBytes,
    Selection,
    ValueBlock,
    ValueState,
    decimal_sum_add,
    decimal_sum_is_less,
    decimal_sum_subtract,
    double_of_word,
    is_less,
    owned_bytes_free,
    owned_bytes_set,
    owned_bytes_view,
    word_of_double,
)
from flinkcore._native.counted_values cimport (
    CountedSlot,
    CountedValues,
    counted_bytes_add,
    counted_bytes_remove,
    counted_word_add,
    counted_word_remove,
)
from flinkcore._native.memory cimport prefetch


cdef enum:
    SHORT_BYTES = 64  # Texts of rows so short keep their memory for the next rows.
    LOOK_AHEAD = 8    # Rows whose memory is fetched before their turn.


cdef int aggregate_absorb(Aggregate* aggregate, uint32_t into, uint32_t other) except -1 nogil:
    aggregate_copy(aggregate, SPARE, other)
    aggregate_merge(aggregate, into, aggregate, SPARE)
    aggregate_clear(aggregate, SPARE, 1)
    return 0


# ---- values that are added up ------------------------------------------------------------------------------------


cdef void _add_words(Aggregate* aggregate, const uint32_t* entries, const int8_t* signs, int64_t n) noexcept nogil:
    # Counts and sums of whole numbers.
    cdef uint64_t* words = aggregate.words
    cdef int64_t* counts = aggregate.counts
    cdef int64_t i
    for i in range(n):
        words[entries[i]] += words[i] * <uint64_t> <int64_t> signs[i]
        words[i] = words[entries[i]]
    if counts != NULL:
        for i in range(n):
            counts[entries[i]] += counts[i] * signs[i]
            counts[i] = counts[entries[i]]


cdef void _add_doubles(Aggregate* aggregate, const uint32_t* entries, const int8_t* signs, int64_t n) noexcept nogil:
    # As Flink's SumAggFunction: what has left is subtracted. A row without a value changes nothing.
    cdef uint64_t* words = aggregate.words
    cdef int64_t* counts = aggregate.counts
    cdef int64_t i
    cdef double value
    for i in range(n):
        if counts[i] and signs[i]:
            value = double_of_word(words[i])
            words[entries[i]] = word_of_double(double_of_word(words[entries[i]]) + (value if signs[i] > 0 else -value))
            counts[entries[i]] += counts[i] * signs[i]
        words[i] = words[entries[i]]
        counts[i] = counts[entries[i]]


cdef void _add_decimals(Aggregate* aggregate, const uint32_t* entries, const int8_t* signs, int64_t n) noexcept nogil:
    cdef DecimalSum* decimals = aggregate.decimals
    cdef int64_t* counts = aggregate.counts
    cdef int64_t i
    for i in range(n):
        if signs[i] > 0:
            decimal_sum_add(&decimals[entries[i]], &decimals[i])
        elif signs[i] < 0:
            decimal_sum_subtract(&decimals[entries[i]], &decimals[i])
        counts[entries[i]] += counts[i] * signs[i]
        decimals[i] = decimals[entries[i]]
        counts[i] = counts[entries[i]]


# ---- distinct values ---------------------------------------------------------------------------------------------


cdef int _count_values(
    Aggregate* aggregate, const Selection* selection, const ValueBlock* values, const uint32_t* entries, int64_t n
) except -1 nogil:
    # Values that stay: those of the rows go into the sets of the keys at once.
    cdef uint64_t* words = aggregate.words
    cdef uint32_t[BLOCK_ROWS] owners
    cdef uint32_t[BLOCK_ROWS] counts
    cdef int64_t i, m = selection.n
    for i in range(m):
        owners[i] = entries[selection.entries[i]]
    aggregate_add_distinct(aggregate, owners, values, m, counts)
    # A set has a value after each of its rows: 0 marks a row without one.
    for i in range(m):
        words[selection.entries[i]] = counts[i]
    for i in range(n):
        words[entries[i]] = words[i] if words[i] else words[entries[i]]
        words[i] = words[entries[i]]
    return 0


cdef int _recount_values(
    Aggregate* aggregate, const uint32_t* entries, const int8_t* signs, int64_t n
) except -1 nogil:
    # Values that may be taken back.
    cdef CountedValues* counted
    cdef int64_t i
    for i in range(n):
        counted = &aggregate.counted[entries[i]]
        if aggregate.states[i] != ValueState.SOME_VALUE or signs[i] == 0:
            pass
        elif aggregate.keys != NULL:
            if signs[i] > 0:
                counted_word_add(counted, aggregate.keys[i], 1)
            else:
                counted_word_remove(counted, aggregate.keys[i])
        elif signs[i] > 0:
            counted_bytes_add(counted, owned_bytes_view(&aggregate.strings[i]), 1)
        else:
            counted_bytes_remove(counted, owned_bytes_view(&aggregate.strings[i]))
        aggregate.words[entries[i]] = aggregate.words[i] = counted.n
    return 0


# ---- least and greatest values -----------------------------------------------------------------------------------


cdef void _least_words(Aggregate* aggregate, const uint32_t* entries, int64_t n) noexcept nogil:
    cdef int64_t* words = <int64_t*> aggregate.words
    cdef uint8_t* states = aggregate.states
    cdef int64_t i
    for i in range(n):
        words[i] = words[entries[i]] = min(words[entries[i]], words[i])
    for i in range(n):
        states[i] = states[entries[i]] = states[entries[i]] | states[i]


cdef int _least_bytes(
    Aggregate* aggregate, const Selection* selection, const ValueBlock* values, const uint32_t* entries, int64_t n
) except -1 nogil:
    cdef OwnedBytes* strings = aggregate.strings
    cdef uint8_t* states = aggregate.states
    cdef int64_t i, j = 0
    cdef uint32_t e
    cdef ByteView view, best
    for i in range(n):
        if i + 2 * LOOK_AHEAD < n:
            prefetch(&strings[entries[i + 2 * LOOK_AHEAD]])
            prefetch(strings[entries[i + LOOK_AHEAD]].data)
        e = entries[i]
        if j < selection.n and selection.entries[j] == i:
            view, best = values.views[j], owned_bytes_view(&strings[e])
            if states[e] == ValueState.NO_VALUE or (
                is_less(best, view, False) if aggregate.descending else is_less(view, best, False)
            ):
                owned_bytes_set(&strings[e], view)
                states[e] = ValueState.SOME_VALUE
            j += 1
        if states[e] == ValueState.SOME_VALUE:
            owned_bytes_set(&strings[i], owned_bytes_view(&strings[e]))
        states[i] = states[e]
    return 0


cdef inline ByteView _bytes(const Aggregate* aggregate, uint32_t entry) noexcept nogil:
    # The value of an entry that is not a word.
    cdef ByteView view
    if aggregate.decimals == NULL:
        return owned_bytes_view(&aggregate.strings[entry])
    view.data = <const uint8_t*> &aggregate.decimals[entry]
    view.length = sizeof(DecimalSum)
    return view


cdef inline bint _is_better(const Aggregate* aggregate, const CountedSlot* slot, const CountedSlot* best) noexcept nogil:
    cdef ByteView own, other
    if aggregate.words != NULL:
        return <int64_t> slot.code < <int64_t> best.code
    if aggregate.decimals != NULL:
        if aggregate.descending:
            slot, best = best, slot
        return decimal_sum_is_less(<const DecimalSum*> slot.data, <const DecimalSum*> best.data)
    own.data, own.length = slot.data, slot.length
    other.data, other.length = best.data, best.length
    return is_less(other, own, False) if aggregate.descending else is_less(own, other, False)


cdef int _find_least(Aggregate* aggregate, uint32_t entry) except -1 nogil:
    # Looks through all values, as Flink's MinWithRetractAggFunction does when the least one has gone.
    cdef const CountedValues* counted = &aggregate.counted[entry]
    cdef const CountedSlot* best = NULL
    cdef uint64_t i
    cdef ByteView view
    for i in range(<uint64_t> counted.mask + 1):
        if counted.slots[i].count and (best == NULL or _is_better(aggregate, &counted.slots[i], best)):
            best = &counted.slots[i]
    if best == NULL:
        aggregate.states[entry] = ValueState.NO_VALUE
        if aggregate.words != NULL:
            aggregate.words[entry] = aggregate.empty_word
    elif aggregate.words != NULL:
        aggregate.words[entry] = best.code
    elif aggregate.decimals != NULL:
        memcpy(&aggregate.decimals[entry], best.data, sizeof(DecimalSum))
    else:
        view.data, view.length = best.data, best.length
        owned_bytes_set(&aggregate.strings[entry], view)
    return 0


cdef inline bint _has_least(const Aggregate* aggregate, uint32_t entry, uint32_t other) noexcept nogil:
    # Returns true if the value of `other` is the least one of `entry`.
    cdef ByteView own, least
    if aggregate.words != NULL:
        return aggregate.words[entry] == aggregate.words[other]
    own, least = _bytes(aggregate, other), _bytes(aggregate, entry)
    return own.length == least.length and (own.length == 0 or memcmp(own.data, least.data, own.length) == 0)


cdef int _least_of_all(Aggregate* aggregate, const uint32_t* entries, const int8_t* signs, int64_t n) except -1 nogil:
    # Least and greatest values that may lose any value.
    cdef CountedValues* counted
    cdef uint32_t e, i
    for i in range(<uint32_t> n):
        e = entries[i]
        if signs[i] and aggregate.states[i] == ValueState.SOME_VALUE:
            counted = &aggregate.counted[e]
            if signs[i] > 0:
                if aggregate.words != NULL:
                    counted_word_add(counted, aggregate.words[i], 1)
                else:
                    counted_bytes_add(counted, _bytes(aggregate, i), 1)
                aggregate_absorb(aggregate, e, i)
            else:
                if aggregate.words != NULL:
                    counted_word_remove(counted, aggregate.words[i])
                else:
                    counted_bytes_remove(counted, _bytes(aggregate, i))
                if counted.slots != NULL and _has_least(aggregate, e, i):
                    _find_least(aggregate, e)
        aggregate_clear(aggregate, i, 1)
        aggregate_copy(aggregate, i, e)
    return 0


# ---- all aggregates ----------------------------------------------------------------------------------------------


cdef int _add_any(Aggregate* aggregate, const uint32_t* entries, int64_t n) except -1 nogil:
    cdef uint32_t i
    for i in range(<uint32_t> n):
        aggregate_absorb(aggregate, entries[i], i)
        aggregate_clear(aggregate, i, 1)
        aggregate_copy(aggregate, i, entries[i])
    return 0


cdef inline bint _adds_up(const Aggregate* aggregate) noexcept nogil:
    return aggregate.function in (Function.COUNT, Function.SUM, Function.MEAN)


cdef int running_update(
    AccumulatorTable* table, const uint32_t* entries, const uint32_t* rows, const int8_t* signs, int64_t n
) except -1 nogil:
    cdef uint32_t[RUNNING_ROWS] own
    cdef Aggregate* aggregate
    cdef const Selection* selection
    cdef const ValueBlock* values
    cdef int64_t i
    for i in range(n):
        own[i] = <uint32_t> i
    accumulators_gather(table, own, rows, n)
    for i in range(table.n_aggregates):
        aggregate = &table.aggregates[i]
        selection = &table.selections[aggregate.selection]
        values = &table.blocks[aggregate.values] if aggregate.values >= 0 else NULL
        if aggregate.function == Function.COUNT_DISTINCT and aggregate.counted == NULL:
            _count_values(aggregate, selection, values, entries, n)
            continue
        if aggregate.function == Function.LEAST and aggregate.parts == (Part.STATE_PART | Part.BYTES_PART):
            _least_bytes(aggregate, selection, values, entries, n)
            continue
        aggregate_update(
            aggregate, selection.entries, selection.n, values, &table.blocks[aggregate.by] if aggregate.by >= 0 else NULL
        )
        if aggregate.function == Function.COUNT_DISTINCT:
            _recount_values(aggregate, entries, signs, n)
        elif aggregate.counted != NULL:
            _least_of_all(aggregate, entries, signs, n)
        elif _adds_up(aggregate) and aggregate.decimals != NULL:
            _add_decimals(aggregate, entries, signs, n)
        elif aggregate.function == Function.COUNT or (aggregate.function == Function.SUM and aggregate.whole_numbers):
            _add_words(aggregate, entries, signs, n)
        elif _adds_up(aggregate):
            _add_doubles(aggregate, entries, signs, n)
        elif aggregate.function == Function.LEAST and aggregate.words != NULL:
            _least_words(aggregate, entries, n)
        else:
            _add_any(aggregate, entries, n)
    return 0


cdef void running_clear(AccumulatorTable* table, int64_t n) noexcept nogil:
    cdef Aggregate* aggregate
    cdef int64_t i, row
    for i in range(table.n_aggregates):
        aggregate = &table.aggregates[i]
        if aggregate.function == Function.COUNT_DISTINCT and aggregate.counted == NULL:
            memset(aggregate.words, 0, n * sizeof(uint64_t))
        elif aggregate.parts == (Part.STATE_PART | Part.BYTES_PART):
            # Texts are taken back with their memory, unless they are long.
            memset(aggregate.states, ValueState.NO_VALUE, n)
            for row in range(n):
                if aggregate.strings[row].capacity > SHORT_BYTES:
                    owned_bytes_free(&aggregate.strings[row])
        else:
            aggregate_clear(aggregate, 0, n)
