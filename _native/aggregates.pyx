"""Aggregates over a space of entries, of which each is what one key has in one window.

A block of rows is gathered once per column and then goes through each aggregate's own loop:

    columns ──► selections (rows that are not null) ──► blocks (words or bytes) ──► aggregates (arrays over entries)

Results are written in two steps: first all memory is taken, for all aggregates, then nothing fails any more, so that the columns of a
result never differ in length.
"""

import cython
from libc.math cimport sqrt
from libc.stdint cimport INT32_MAX, INT64_MAX, UINT32_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset, strcmp

from flinkcore.errors import ConfigurationError, DataError, SchemaError

from flinkcore._native.arrow cimport (
    ArrowSchema,
    Column,
    ColumnType,
    NativeArray,
    RecordBatch,
    checked_schema,
    field_name,
    native_array,
)
from flinkcore._native.call_guard cimport Call, begin_call
from flinkcore._native.column_values cimport (
    BLOCK_ROWS,
    ByteSet,
    ByteView,
    DecimalSum,
    OwnedBytes,
    Representation,
    Selection,
    ValueBlock,
    ValueColumn,
    ValueList,
    ValueState,
    ValueType,
    WordSet,
    byte_lists_add,
    byte_set_free,
    byte_set_is_sound,
    byte_set_memory,
    byte_set_merge,
    byte_sets_add,
    bytes_hash,
    decimal_quotient,
    decimal_read,
    decimal_sum_add,
    decimal_sum_is_less,
    decimal_sum_subtract,
    decimal_to_double,
    distribution_add,
    distribution_is_sound,
    distribution_merge,
    distribution_quantile,
    double_of_word,
    from_ordered_words,
    is_float,
    is_less,
    is_word,
    mixed_hash,
    owned_bytes_free,
    owned_bytes_set,
    owned_bytes_view,
    result_append_bytes,
    result_append_states,
    result_append_words,
    result_free,
    result_memory,
    result_reserve,
    result_take,
    selection_fill,
    sketch_add,
    sketch_estimate,
    sketch_is_sound,
    sketch_merge,
    value_block_allocate,
    value_block_fill,
    value_block_free,
    value_column_append,
    value_column_free,
    value_column_measure,
    value_column_memory,
    value_column_reserve,
    value_column_set,
    value_column_take,
    value_list_copy,
    value_list_free,
    value_list_is_sound,
    value_list_memory,
    value_list_merge,
    value_type_free,
    value_type_set,
    word_lists_add,
    word_of_double,
    word_set_copy,
    word_set_free,
    word_set_is_sound,
    word_set_memory,
    word_set_merge,
    word_sets_add,
)
from flinkcore._native.counted_values cimport (
    CountedValues,
    counted_values_are_sound,
    counted_values_free,
    counted_values_memory,
)
from flinkcore._native.memory cimport buffer_free, buffer_reserve, grow


cdef enum:
    ALL_ROWS = -1  # as a selection's column
    NOTHING = -1
    MOST_DIGITS = 38  # of a decimal of 128 bits


cdef enum Values:
    # Kinds of values, by how they are added up.
    NONE = 0
    FLOATS = 1
    DECIMALS = 2
    OTHERS = 4
    ALL = 7


# ---- one aggregate: what it holds per entry ----------------------------------------------------------------------


cdef inline void* _grown(void* memory, int64_t count, size_t size) except NULL nogil:
    return grow(memory, count * <int64_t> size, b"accumulators")


cdef int _aggregate_reserve(Aggregate* aggregate, int64_t capacity) except -1 nogil:
    # Takes memory for so many entries, which `_aggregate_start` makes empty. A part that fails leaves the others usable as they are.
    cdef int parts = aggregate.parts
    if parts & Part.WORD_PART:
        aggregate.words = <uint64_t*> _grown(aggregate.words, capacity, sizeof(uint64_t))
    if parts & Part.COUNT_PART:
        aggregate.counts = <int64_t*> _grown(aggregate.counts, capacity, sizeof(int64_t))
    if parts & Part.KEY_PART:
        aggregate.keys = <uint64_t*> _grown(aggregate.keys, capacity, sizeof(uint64_t))
    if parts & Part.STATE_PART:
        aggregate.states = <uint8_t*> _grown(aggregate.states, capacity, 1)
    if parts & Part.BYTES_PART:
        aggregate.strings = <OwnedBytes*> _grown(aggregate.strings, capacity, sizeof(OwnedBytes))
    if parts & Part.KEY_BYTES_PART:
        aggregate.key_strings = <OwnedBytes*> _grown(aggregate.key_strings, capacity, sizeof(OwnedBytes))
    if parts & Part.WORD_SET_PART:
        aggregate.word_sets = <WordSet*> _grown(aggregate.word_sets, capacity, sizeof(WordSet))
    if parts & Part.BYTE_SET_PART:
        aggregate.byte_sets = <ByteSet*> _grown(aggregate.byte_sets, capacity, sizeof(ByteSet))
    if parts & Part.LIST_PART:
        aggregate.lists = <ValueList*> _grown(aggregate.lists, capacity, sizeof(ValueList))
    if parts & Part.DECIMAL_PART:
        aggregate.decimals = <DecimalSum*> _grown(aggregate.decimals, capacity, sizeof(DecimalSum))
    if parts & Part.DEVIATION_PART:
        aggregate.deviations = <double*> _grown(aggregate.deviations, capacity, sizeof(double))
    if parts & Part.COUNTED_PART:
        aggregate.counted = <CountedValues*> _grown(aggregate.counted, capacity, sizeof(CountedValues))
    return 0


cdef void _aggregate_start(Aggregate* aggregate, int64_t first, int64_t n) noexcept nogil:
    cdef int parts = aggregate.parts
    cdef int64_t i
    cdef uint64_t empty_word = aggregate.empty_word
    cdef uint64_t* words
    if parts & Part.WORD_PART:
        words = aggregate.words + first
        for i in range(n):
            words[i] = empty_word
    if parts & Part.COUNT_PART:
        memset(aggregate.counts + first, 0, n * sizeof(int64_t))
    if parts & Part.STATE_PART:
        memset(aggregate.states + first, ValueState.NO_VALUE, n)
    if parts & Part.BYTES_PART:
        memset(aggregate.strings + first, 0, n * sizeof(OwnedBytes))
    if parts & Part.KEY_BYTES_PART:
        memset(aggregate.key_strings + first, 0, n * sizeof(OwnedBytes))
    if parts & Part.WORD_SET_PART:
        memset(aggregate.word_sets + first, 0, n * sizeof(WordSet))
    if parts & Part.BYTE_SET_PART:
        memset(aggregate.byte_sets + first, 0, n * sizeof(ByteSet))
    if parts & Part.LIST_PART:
        memset(aggregate.lists + first, 0, n * sizeof(ValueList))
    if parts & Part.DECIMAL_PART:
        memset(aggregate.decimals + first, 0, n * sizeof(DecimalSum))
    if parts & Part.DEVIATION_PART:
        memset(aggregate.deviations + first, 0, n * sizeof(double))
    if parts & Part.COUNTED_PART:
        memset(aggregate.counted + first, 0, n * sizeof(CountedValues))


cdef int aggregate_add_states(Aggregate* aggregate, const uint8_t* touched, int64_t n, int64_t capacity) except -1:
    aggregate.states = <uint8_t*> _grown(aggregate.states, capacity if capacity else 1, 1)
    if n:
        memcpy(aggregate.states, touched, n)
    aggregate.parts |= Part.STATE_PART
    return 0


cdef void _free_owned(Aggregate* aggregate, int64_t first, int64_t n) noexcept nogil:
    cdef int parts = aggregate.parts
    cdef int64_t e
    if parts & Part.BYTES_PART:
        for e in range(first, first + n):
            owned_bytes_free(&aggregate.strings[e])
    if parts & Part.KEY_BYTES_PART:
        for e in range(first, first + n):
            owned_bytes_free(&aggregate.key_strings[e])
    if parts & Part.WORD_SET_PART:
        for e in range(first, first + n):
            word_set_free(&aggregate.word_sets[e])
    if parts & Part.BYTE_SET_PART:
        for e in range(first, first + n):
            byte_set_free(&aggregate.byte_sets[e])
    if parts & Part.LIST_PART:
        for e in range(first, first + n):
            value_list_free(&aggregate.lists[e])
    if parts & Part.COUNTED_PART:
        for e in range(first, first + n):
            counted_values_free(&aggregate.counted[e])


cdef void aggregate_clear(Aggregate* aggregate, int64_t first, int64_t n) noexcept nogil:
    if n == 1 and aggregate.parts == Part.WORD_PART:
        aggregate.words[first] = aggregate.empty_word
        return
    _free_owned(aggregate, first, n)
    _aggregate_start(aggregate, first, n)


cdef void _aggregate_free(Aggregate* aggregate, int64_t n) noexcept:
    _free_owned(aggregate, 0, n)
    free(aggregate.words)
    free(aggregate.counts)
    free(aggregate.keys)
    free(aggregate.states)
    free(aggregate.strings)
    free(aggregate.key_strings)
    free(aggregate.word_sets)
    free(aggregate.byte_sets)
    free(aggregate.lists)
    free(aggregate.decimals)
    free(aggregate.deviations)
    free(aggregate.counted)
    result_free(&aggregate.result)
    value_column_free(&aggregate.nested_result)
    if aggregate.nested != NULL:
        value_type_free(aggregate.nested)
        free(aggregate.nested)
    buffer_free(&aggregate.list_ends)


cdef int64_t _aggregate_entry_bytes(const Aggregate* aggregate) noexcept nogil:
    cdef int parts = aggregate.parts
    cdef size_t size = 0
    size += sizeof(uint64_t) if parts & Part.WORD_PART else 0
    size += sizeof(int64_t) if parts & Part.COUNT_PART else 0
    size += sizeof(uint64_t) if parts & Part.KEY_PART else 0
    size += 1 if parts & Part.STATE_PART else 0
    size += sizeof(OwnedBytes) if parts & Part.BYTES_PART else 0
    size += sizeof(OwnedBytes) if parts & Part.KEY_BYTES_PART else 0
    size += sizeof(WordSet) if parts & Part.WORD_SET_PART else 0
    size += sizeof(ByteSet) if parts & Part.BYTE_SET_PART else 0
    size += sizeof(ValueList) if parts & Part.LIST_PART else 0
    size += sizeof(DecimalSum) if parts & Part.DECIMAL_PART else 0
    size += sizeof(double) if parts & Part.DEVIATION_PART else 0
    size += sizeof(CountedValues) if parts & Part.COUNTED_PART else 0
    return <int64_t> size


cdef int64_t _aggregate_owned_bytes(const Aggregate* aggregate, int64_t n) noexcept nogil:
    cdef int parts = aggregate.parts
    cdef int64_t e, size = result_memory(&aggregate.result) + aggregate.list_ends.capacity
    if aggregate.nested != NULL:
        size += value_column_memory(&aggregate.nested_result)
    for e in range(n if parts >= Part.BYTES_PART else 0):
        size += aggregate.strings[e].capacity if parts & Part.BYTES_PART else 0
        size += aggregate.key_strings[e].capacity if parts & Part.KEY_BYTES_PART else 0
        size += word_set_memory(&aggregate.word_sets[e]) if parts & Part.WORD_SET_PART else 0
        size += byte_set_memory(&aggregate.byte_sets[e]) if parts & Part.BYTE_SET_PART else 0
        size += value_list_memory(&aggregate.lists[e]) if parts & Part.LIST_PART else 0
        size += counted_values_memory(&aggregate.counted[e]) if parts & Part.COUNTED_PART else 0
    return size


# ---- one aggregate: how it takes in values -----------------------------------------------------------------------


cdef void _sum(Aggregate* aggregate, const uint32_t* entries, const uint64_t* values, int64_t n) noexcept nogil:
    # Integers wrap around as Java's do. Floats are added in the order of the rows, as their sum depends on it.
    cdef uint64_t* words = aggregate.words
    cdef int64_t i
    if aggregate.whole_numbers:
        for i in range(n):
            words[entries[i]] += values[i]
    else:
        for i in range(n):
            words[entries[i]] = word_of_double(double_of_word(words[entries[i]]) + double_of_word(values[i]))
    if aggregate.counts != NULL:
        for i in range(n):
            aggregate.counts[entries[i]] += 1


cdef void _mean(Aggregate* aggregate, const uint32_t* entries, const uint64_t* values, int64_t n) noexcept nogil:
    # The words are sums in float64; the counts go with them.
    cdef uint64_t* words = aggregate.words
    cdef int64_t* counts = aggregate.counts
    cdef int64_t i
    if not aggregate.whole_numbers:
        for i in range(n):
            words[entries[i]] = word_of_double(double_of_word(words[entries[i]]) + double_of_word(values[i]))
    elif aggregate.type == ColumnType.UINT64:
        for i in range(n):
            words[entries[i]] = word_of_double(double_of_word(words[entries[i]]) + <double> values[i])
    else:
        for i in range(n):
            words[entries[i]] = word_of_double(double_of_word(words[entries[i]]) + <double> <int64_t> values[i])
    for i in range(n):
        counts[entries[i]] += 1


cdef inline void _add_deviation(Aggregate* aggregate, uint32_t entry, double value) noexcept nogil:
    # Welford's step: the mean and the deviations from it, without the cancellation that sums of squares have.
    cdef double mean = double_of_word(aggregate.words[entry]), step, part
    aggregate.counts[entry] += 1
    step = value - mean
    part = step / <double> aggregate.counts[entry]
    aggregate.words[entry] = word_of_double(mean + part)
    aggregate.deviations[entry] += step * (step - part)


cdef inline double _number(const Aggregate* aggregate, const ValueBlock* values, int64_t i) noexcept nogil:
    if values.words == NULL:
        return decimal_to_double(values.views[i].data) / aggregate.unit
    if not aggregate.whole_numbers:
        return double_of_word(values.words[i])
    if aggregate.type == ColumnType.UINT64:
        return <double> values.words[i]
    return <double> <int64_t> values.words[i]


cdef void _variance(Aggregate* aggregate, const uint32_t* entries, const ValueBlock* values, int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        _add_deviation(aggregate, entries[i], _number(aggregate, values, i))


cdef int _distribute(
    Aggregate* aggregate, const uint32_t* entries, const ValueBlock* values, int64_t n
) except -1 nogil:
    cdef int64_t i
    for i in range(n):
        distribution_add(&aggregate.strings[entries[i]], _number(aggregate, values, i))
    return 0


cdef void _least_words(Aggregate* aggregate, const uint32_t* entries, const uint64_t* values, int64_t n) noexcept nogil:
    cdef int64_t* words = <int64_t*> aggregate.words
    # The greatest is the least of the complements: unlike a negation, a complement does not overflow.
    cdef int64_t i, value, reflect = -1 if aggregate.descending else 0
    for i in range(n):
        value = <int64_t> values[i] ^ reflect
        words[entries[i]] = value if value < words[entries[i]] else words[entries[i]]


cdef int _put(Aggregate* aggregate, uint32_t entry, const ValueBlock* values, int64_t i) except -1 nogil:
    # A null is a value here: the first row of a window may well hold one.
    cdef uint8_t state = values.states[i] if values.with_states else <uint8_t> ValueState.SOME_VALUE
    if values.words != NULL:
        aggregate.words[entry] = values.words[i]
    elif state == ValueState.SOME_VALUE:
        owned_bytes_set(&aggregate.strings[entry], values.views[i])
    aggregate.states[entry] = state
    return 0


cdef void _sum_decimals(
    Aggregate* aggregate, const uint32_t* entries, const ByteView* views, int64_t n
) noexcept nogil:
    # Also of a mean: the sum is divided by the count when it is emitted.
    cdef int64_t i
    cdef DecimalSum value
    for i in range(n):
        value = decimal_read(views[i].data)
        decimal_sum_add(&aggregate.decimals[entries[i]], &value)
        aggregate.counts[entries[i]] += 1


cdef inline void _put_better_decimal(
    Aggregate* aggregate, uint32_t entry, const DecimalSum* value
) noexcept nogil:
    # If it is less, or greater where these count.
    cdef DecimalSum* best = &aggregate.decimals[entry]
    if aggregate.states[entry] == ValueState.NO_VALUE or (
        decimal_sum_is_less(best, value) if aggregate.descending else decimal_sum_is_less(value, best)
    ):
        best[0] = value[0]
        aggregate.states[entry] = ValueState.SOME_VALUE


cdef void _least_decimals(
    Aggregate* aggregate, const uint32_t* entries, const ByteView* views, int64_t n
) noexcept nogil:
    cdef int64_t i
    cdef DecimalSum value
    for i in range(n):
        value = decimal_read(views[i].data)
        _put_better_decimal(aggregate, entries[i], &value)


cdef inline bint _is_better(const Aggregate* aggregate, bint decimal, ByteView view, ByteView best) noexcept nogil:
    return is_less(best, view, decimal) if aggregate.descending else is_less(view, best, decimal)


cdef int _least_bytes(
    Aggregate* aggregate, const uint32_t* entries, const ValueBlock* values, int64_t n
) except -1 nogil:
    cdef int64_t i
    cdef uint32_t e
    for i in range(n):
        e = entries[i]
        if aggregate.states[e] == ValueState.NO_VALUE or _is_better(
            aggregate, False, values.views[i], owned_bytes_view(&aggregate.strings[e])
        ):
            _put(aggregate, e, values, i)
    return 0


cdef int _first(Aggregate* aggregate, const uint32_t* entries, const ValueBlock* values, int64_t n) except -1 nogil:
    # Rows come in order of arrival: the first one that finds the entry empty stays, and among ties `_least_by` keeps the first, too.
    cdef const uint8_t* states = aggregate.states
    cdef int64_t i
    for i in range(n):
        if states[entries[i]] == ValueState.NO_VALUE:
            _put(aggregate, entries[i], values, i)
    return 0


cdef int _last(Aggregate* aggregate, const uint32_t* entries, const ValueBlock* values, int64_t n) except -1 nogil:
    cdef uint64_t* words = aggregate.words
    cdef uint8_t* states = aggregate.states
    cdef int64_t i
    if words != NULL:
        for i in range(n):
            words[entries[i]] = values.words[i]
        for i in range(n):
            states[entries[i]] = values.states[i]
        return 0
    for i in range(n):
        _put(aggregate, entries[i], values, i)
    return 0


cdef int _least_by(
    Aggregate* aggregate, const uint32_t* entries, const ValueBlock* values, const ValueBlock* by, int64_t n
) except -1 nogil:
    # Strictly better only: among ties the first row stays.
    cdef uint64_t* keys = aggregate.keys
    cdef uint8_t* states = aggregate.states
    cdef int64_t i, key, reflect = -1 if aggregate.descending else 0
    cdef bint decimal = aggregate.by_type == ColumnType.DECIMAL128
    cdef uint32_t e
    if keys != NULL:
        for i in range(n):
            e = entries[i]
            key = <int64_t> by.words[i] ^ reflect
            if states[e] == ValueState.NO_VALUE or key < <int64_t> keys[e]:
                keys[e] = <uint64_t> key
                _put(aggregate, e, values, i)
        return 0
    for i in range(n):
        e = entries[i]
        if states[e] == ValueState.NO_VALUE or _is_better(
            aggregate, decimal, by.views[i], owned_bytes_view(&aggregate.key_strings[e])
        ):
            owned_bytes_set(&aggregate.key_strings[e], by.views[i])
            _put(aggregate, e, values, i)
    return 0


cdef int _hold(Aggregate* aggregate, const uint32_t* entries, const ValueBlock* values, int64_t n) except -1 nogil:
    # The one value of an entry that a sliding count of distinct values takes in.
    cdef int64_t i
    for i in range(n):
        if values.words != NULL:
            aggregate.keys[entries[i]] = values.words[i]
        else:
            owned_bytes_set(&aggregate.strings[entries[i]], values.views[i])
        aggregate.states[entries[i]] = ValueState.SOME_VALUE
    return 0


cdef int _add_distinct(
    Aggregate* aggregate, const uint32_t* entries, const ValueBlock* values, int64_t n
) except -1 nogil:
    cdef uint32_t[BLOCK_ROWS] counts
    cdef int64_t i
    aggregate_add_distinct(aggregate, entries, values, n, counts)
    if aggregate.words != NULL:
        for i in range(n):
            aggregate.words[entries[i]] = counts[i]
    return 0


cdef int aggregate_add_distinct(
    Aggregate* aggregate, const uint32_t* entries, const ValueBlock* values, int64_t n, uint32_t* counts
) except -1 nogil:
    if aggregate.word_sets != NULL:
        return word_sets_add(aggregate.word_sets, entries, values.words, n, counts)
    return byte_sets_add(aggregate.byte_sets, entries, values.views, n, counts)


cdef int _sketch(Aggregate* aggregate, const uint32_t* entries, const ValueBlock* values, int64_t n) except -1 nogil:
    cdef uint64_t word
    cdef int64_t i
    for i in range(n):
        word = values.words[i] if values.words != NULL else bytes_hash(values.views[i])
        sketch_add(&aggregate.word_sets[entries[i]], &aggregate.strings[entries[i]], mixed_hash(word))
    return 0


cdef void _set_bits(Aggregate* aggregate, const uint32_t* entries, const uint64_t* values, int64_t n) noexcept nogil:
    cdef uint64_t reflect = <uint64_t> -1 if aggregate.descending else 0
    cdef int64_t i
    for i in range(n):
        aggregate.words[entries[i]] |= values[i] ^ reflect


cdef int aggregate_update(
    Aggregate* aggregate, const uint32_t* entries, int64_t n, const ValueBlock* values, const ValueBlock* by
) except -1 nogil:
    cdef uint64_t* words = aggregate.words
    cdef int64_t i
    cdef Function function = aggregate.function
    if function == Function.COUNT:
        for i in range(n):
            words[entries[i]] += 1
    elif aggregate.decimals != NULL:
        if function == Function.LEAST:
            _least_decimals(aggregate, entries, values.views, n)
        else:
            _sum_decimals(aggregate, entries, values.views, n)
        return 0
    elif function == Function.SUM:
        _sum(aggregate, entries, values.words, n)
    elif function == Function.MEAN:
        _mean(aggregate, entries, values.words, n)
    elif function == Function.VARIANCE:
        _variance(aggregate, entries, values, n)
    elif function == Function.LEAST:
        if words == NULL:
            return _least_bytes(aggregate, entries, values, n)
        _least_words(aggregate, entries, values.words, n)
    elif function == Function.BITS:
        _set_bits(aggregate, entries, values.words, n)
    elif function == Function.FIRST:
        return _first(aggregate, entries, values, n)
    elif function == Function.LAST:
        return _last(aggregate, entries, values, n)
    elif function == Function.LEAST_BY:
        return _least_by(aggregate, entries, values, by, n)
    elif function == Function.APPROX_DISTINCT:
        return _sketch(aggregate, entries, values, n)
    elif function == Function.APPROX_PERCENTILE:
        return _distribute(aggregate, entries, values, n)
    elif function == Function.COUNT_DISTINCT:
        if aggregate.counted != NULL:
            return _hold(aggregate, entries, values, n)
        return _add_distinct(aggregate, entries, values, n)
    elif values.words != NULL:
        return word_lists_add(aggregate.lists, entries, values.words, values.states, n)
    else:
        return byte_lists_add(aggregate.lists, entries, values.views, values.states, n)
    if aggregate.parts & Part.STATE_PART:  # of a sum, of bits, of a least or greatest word, once nulls have come
        for i in range(n):
            aggregate.states[entries[i]] = ValueState.SOME_VALUE
    return 0


# ---- one aggregate: how entries are merged -----------------------------------------------------------------------


cdef void _take_over(Aggregate* aggregate, uint32_t into, Aggregate* source, uint32_t other) noexcept nogil:
    # other's value instead of into's; what into owned is other's to free.
    cdef OwnedBytes strings
    if aggregate.words != NULL:
        aggregate.words[into] = source.words[other]
    else:
        strings = aggregate.strings[into]
        aggregate.strings[into] = source.strings[other]
        source.strings[other] = strings
    aggregate.states[into] = source.states[other]


cdef void _merge_least_bytes(Aggregate* aggregate, uint32_t into, Aggregate* source, uint32_t other) noexcept nogil:
    if source.states[other] != ValueState.NO_VALUE and (
        aggregate.states[into] == ValueState.NO_VALUE
        or _is_better(
            aggregate, False, owned_bytes_view(&source.strings[other]), owned_bytes_view(&aggregate.strings[into])
        )
    ):
        _take_over(aggregate, into, source, other)


cdef void _merge_least_by(Aggregate* aggregate, uint32_t into, Aggregate* source, uint32_t other) noexcept nogil:
    cdef OwnedBytes key
    if source.states[other] == ValueState.NO_VALUE:
        return
    if aggregate.states[into] != ValueState.NO_VALUE:
        if aggregate.keys != NULL:
            if <int64_t> source.keys[other] >= <int64_t> aggregate.keys[into]:
                return
        # A tie stays with `into`, as `FIRST` does.
        elif not _is_better(
            aggregate,
            aggregate.by_type == ColumnType.DECIMAL128,
            owned_bytes_view(&source.key_strings[other]),
            owned_bytes_view(&aggregate.key_strings[into]),
        ):
            return
    if aggregate.keys != NULL:
        aggregate.keys[into] = source.keys[other]
    else:
        key = aggregate.key_strings[into]
        aggregate.key_strings[into] = source.key_strings[other]
        source.key_strings[other] = key
    _take_over(aggregate, into, source, other)


cdef void _merge_decimals(Aggregate* aggregate, uint32_t into, const Aggregate* source, uint32_t other) noexcept nogil:
    if aggregate.function != Function.LEAST:
        decimal_sum_add(&aggregate.decimals[into], &source.decimals[other])
        aggregate.counts[into] += source.counts[other]
    elif source.states[other] != ValueState.NO_VALUE:
        _put_better_decimal(aggregate, into, &source.decimals[other])


cdef void _merge_variances(Aggregate* aggregate, uint32_t into, const Aggregate* source, uint32_t other) noexcept nogil:
    # Chan's, Golub's and LeVeque's update.
    cdef double count = <double> aggregate.counts[into], others = <double> source.counts[other], step, part
    if others == 0:
        return
    if count == 0:
        aggregate.words[into] = source.words[other]
        aggregate.deviations[into] = source.deviations[other]
    else:
        step = double_of_word(source.words[other]) - double_of_word(aggregate.words[into])
        part = step / (count + others)
        aggregate.words[into] = word_of_double(double_of_word(aggregate.words[into]) + part * others)
        aggregate.deviations[into] += source.deviations[other] + step * part * count * others
    aggregate.counts[into] += source.counts[other]


cdef int aggregate_merge(Aggregate* aggregate, uint32_t into, Aggregate* source, uint32_t other) except -1 nogil:
    # `source` is the same aggregate, or that of another table, and has states where this one has.
    cdef uint64_t* words = aggregate.words
    cdef uint8_t* states = aggregate.states
    cdef Function function = aggregate.function
    if function == Function.COUNT or (function == Function.SUM and aggregate.whole_numbers):
        words[into] += source.words[other]
        if aggregate.counts != NULL:
            aggregate.counts[into] += source.counts[other]
    elif aggregate.decimals != NULL:
        _merge_decimals(aggregate, into, source, other)
    elif function == Function.VARIANCE:
        _merge_variances(aggregate, into, source, other)
    elif function == Function.SUM or function == Function.MEAN:
        words[into] = word_of_double(double_of_word(words[into]) + double_of_word(source.words[other]))
        if aggregate.counts != NULL:
            aggregate.counts[into] += source.counts[other]
    elif function == Function.BITS:
        words[into] |= source.words[other]
    elif function == Function.LEAST and words != NULL:
        if <int64_t> source.words[other] < <int64_t> words[into]:
            words[into] = source.words[other]
    elif function == Function.LEAST:
        _merge_least_bytes(aggregate, into, source, other)
    elif function == Function.FIRST:
        if states[into] == ValueState.NO_VALUE:
            _take_over(aggregate, into, source, other)
    elif function == Function.LAST:
        if source.states[other] != ValueState.NO_VALUE:
            _take_over(aggregate, into, source, other)
    elif function == Function.LEAST_BY:
        _merge_least_by(aggregate, into, source, other)
    elif function == Function.COLLECT:
        return value_list_merge(&aggregate.lists[into], &source.lists[other])
    elif function == Function.APPROX_DISTINCT:
        return sketch_merge(
            &aggregate.word_sets[into],
            &aggregate.strings[into],
            &source.word_sets[other],
            &source.strings[other],
        )
    elif function == Function.APPROX_PERCENTILE:
        return distribution_merge(&aggregate.strings[into], &source.strings[other])
    elif aggregate.word_sets != NULL:
        return word_set_merge(&aggregate.word_sets[into], &source.word_sets[other])
    else:
        return byte_set_merge(&aggregate.byte_sets[into], &source.byte_sets[other])
    if states != NULL and states[into] == ValueState.NO_VALUE:  # of a sum, of bits, of a least or greatest word
        states[into] = source.states[other]
    return 0


cdef int aggregate_copy(Aggregate* aggregate, uint32_t into, uint32_t other) except -1 nogil:
    cdef int parts = aggregate.parts
    if parts & Part.WORD_PART:
        aggregate.words[into] = aggregate.words[other]
    if parts & Part.COUNT_PART:
        aggregate.counts[into] = aggregate.counts[other]
    if parts & Part.KEY_PART:
        aggregate.keys[into] = aggregate.keys[other]
    if parts & Part.STATE_PART:
        aggregate.states[into] = aggregate.states[other]
    if parts & Part.DECIMAL_PART:
        aggregate.decimals[into] = aggregate.decimals[other]
    if parts & Part.DEVIATION_PART:
        aggregate.deviations[into] = aggregate.deviations[other]
    if parts & Part.BYTES_PART:
        owned_bytes_set(&aggregate.strings[into], owned_bytes_view(&aggregate.strings[other]))
    if parts & Part.KEY_BYTES_PART:
        owned_bytes_set(&aggregate.key_strings[into], owned_bytes_view(&aggregate.key_strings[other]))
    if parts & Part.WORD_SET_PART:
        word_set_copy(&aggregate.word_sets[into], &aggregate.word_sets[other])
    if parts & Part.LIST_PART:
        value_list_copy(&aggregate.lists[into], &aggregate.lists[other])
    return 0


cdef bint _aggregate_is_sound(const Aggregate* aggregate, int64_t n) noexcept nogil:
    cdef int parts = aggregate.parts
    cdef int64_t e
    for e in range(n):
        if parts & Part.STATE_PART and aggregate.states[e] > ValueState.NULL_VALUE:
            return False
        if parts & Part.COUNT_PART and aggregate.counts[e] < 0:
            return False
        if parts & Part.BYTES_PART and aggregate.strings[e].length > aggregate.strings[e].capacity:
            return False
        if parts & Part.KEY_BYTES_PART and aggregate.key_strings[e].length > aggregate.key_strings[e].capacity:
            return False
        if parts & Part.WORD_SET_PART and not word_set_is_sound(&aggregate.word_sets[e]):
            return False
        if aggregate.function == Function.APPROX_DISTINCT and not sketch_is_sound(
            &aggregate.word_sets[e], &aggregate.strings[e]
        ):
            return False
        if aggregate.function == Function.APPROX_PERCENTILE and not distribution_is_sound(&aggregate.strings[e]):
            return False
        if parts & Part.BYTE_SET_PART and not byte_set_is_sound(&aggregate.byte_sets[e]):
            return False
        if parts & Part.LIST_PART and not value_list_is_sound(&aggregate.lists[e], is_word(aggregate.type)):
            return False
        if parts & Part.COUNTED_PART and not counted_values_are_sound(&aggregate.counted[e]):
            return False
        if aggregate.function == Function.COUNT_DISTINCT and parts & Part.WORD_PART:
            if aggregate.words[e] != distinct_count(aggregate, e):
                return False
    return True


# ---- one aggregate: its results ----------------------------------------------------------------------------------


cdef inline int64_t _entry(const uint32_t* entries, int64_t first, int64_t i) noexcept nogil:
    return entries[i] if entries != NULL else first + i


cdef int64_t _elements(const Aggregate* aggregate, const uint32_t* entries, uint32_t first, int64_t n) noexcept nogil:
    cdef int64_t i, elements = 0
    for i in range(n):
        elements += aggregate.lists[_entry(entries, first, i)].length
    return elements


cdef int64_t _data_bytes(const Aggregate* aggregate, const uint32_t* entries, uint32_t first, int64_t n) noexcept nogil:
    # Returns the bytes of strings, including elements of lists.
    cdef int64_t i, e, data = 0
    for i in range(n):
        e = _entry(entries, first, i)
        if aggregate.lists != NULL:
            data += aggregate.lists[e].values.size if aggregate.lists[e].ends.size else 0
        elif aggregate.states[e] == ValueState.SOME_VALUE:
            data += aggregate.strings[e].length
    return data


cdef inline bint _has_strings(const Aggregate* aggregate) noexcept nogil:
    # Returns true if results are strings, and not the byte strings of sketches, distributions and distinct values.
    return (
        aggregate.strings != NULL
        and aggregate.function != Function.COUNT_DISTINCT
        and aggregate.function != Function.APPROX_DISTINCT
        and aggregate.function != Function.APPROX_PERCENTILE
    )


cdef int64_t aggregate_result_bytes(
    const Aggregate* aggregate, const uint32_t* entries, uint32_t first, int64_t n
) noexcept nogil:
    if aggregate.lists != NULL:
        return _data_bytes(aggregate, entries, first, n) + 8 * _elements(aggregate, entries, first, n)
    return _data_bytes(aggregate, entries, first, n) if _has_strings(aggregate) else 0


cdef int64_t _result_length(const Aggregate* aggregate) noexcept nogil:
    # Returns the number of results so far, or of elements for COLLECT.
    return aggregate.nested_result.length if aggregate.nested != NULL else aggregate.result.length


cdef int _reserve_nested(
    Aggregate* aggregate, const uint32_t* entries, uint32_t first, int64_t n
) except -1 nogil:
    cdef const ValueList* values
    cdef int64_t i, e, j, begin, next_null
    for i in range(n):
        e = _entry(entries, first, i)
        if aggregate.lists == NULL:
            value_column_measure(&aggregate.nested_result, _nested_value(aggregate, e))
            continue
        values = &aggregate.lists[e]
        begin = next_null = 0
        for j in range(values.length):
            value_column_measure(&aggregate.nested_result, _nested_element(values, j, &next_null))
    return value_column_reserve(&aggregate.nested_result)


cdef uint8_t _no_bytes = 0  # of a struct without fields


cdef inline const uint8_t* _nested_value(const Aggregate* aggregate, int64_t entry) noexcept nogil:
    # NULL for null.
    if aggregate.states[entry] != ValueState.SOME_VALUE:
        return NULL
    return aggregate.strings[entry].data if aggregate.strings[entry].length else &_no_bytes


cdef inline const uint8_t* _nested_element(const ValueList* values, int64_t i, int64_t* next_null) noexcept nogil:
    # NULL for null; next_null walks through the null positions.
    cdef const int64_t* ends = <const int64_t*> values.ends.data
    cdef const int64_t* nulls = <const int64_t*> values.nulls.data
    if next_null[0] < values.nulls.size >> 3 and nulls[next_null[0]] == i:
        next_null[0] += 1
        return NULL
    return values.values.data + (ends[i - 1] if i else 0) if values.values.size else &_no_bytes


cdef int _aggregate_reserve_results(
    Aggregate* aggregate, const uint32_t* entries, uint32_t first, int64_t n
) except -1 nogil:
    # Room for their results:
    cdef int64_t elements
    if aggregate.lists == NULL:
        if aggregate.nested != NULL:
            return _reserve_nested(aggregate, entries, first, n)
        return result_reserve(
            &aggregate.result, n, _data_bytes(aggregate, entries, first, n) if _has_strings(aggregate) else 0
        )
    elements = _elements(aggregate, entries, first, n)
    if _result_length(aggregate) + elements > INT32_MAX:
        with gil:
            name = aggregate.result.name.decode()
            raise DataError(
                f"collect of column {name!r}: one batch of results would hold more than 2,147,483,647 elements; "
                "collect fewer rows per key and window",
                column=name,
            )
    buffer_reserve(&aggregate.list_ends, (n + 1) * 4)
    if aggregate.list_ends.size == 0:  # where the first list begins
        (<int32_t*> aggregate.list_ends.data)[0] = 0
        aggregate.list_ends.size = 4
    if aggregate.nested != NULL:
        return _reserve_nested(aggregate, entries, first, n)
    return result_reserve(&aggregate.result, elements, _data_bytes(aggregate, entries, first, n))


cdef int _emit_words(
    Aggregate* aggregate, const uint8_t* touched, const uint32_t* entries, int64_t first, int64_t n
) except -1 nogil:
    # Results of at most BLOCK_ROWS entries, as words.
    cdef uint64_t[BLOCK_ROWS] words
    cdef uint8_t[BLOCK_ROWS] states
    cdef const uint8_t* known = touched
    cdef Function function = aggregate.function
    cdef int64_t i, e, count, nulls = 0
    if function == Function.APPROX_DISTINCT:
        for i in range(n):
            e = _entry(entries, first, i)
            words[i] = sketch_estimate(&aggregate.word_sets[e], &aggregate.strings[e])
        return result_append_words(&aggregate.result, words, n)
    if function == Function.COUNT_DISTINCT:
        for i in range(n):
            if aggregate.words != NULL:
                words[i] = aggregate.words[_entry(entries, first, i)]
            elif aggregate.word_sets != NULL:
                words[i] = aggregate.word_sets[_entry(entries, first, i)].count
            else:
                words[i] = aggregate.byte_sets[_entry(entries, first, i)].count
        return result_append_words(&aggregate.result, words, n)
    if aggregate.states != NULL:
        known = aggregate.states
    if entries == NULL:
        memcpy(words, aggregate.words + first, n * sizeof(uint64_t))
    else:
        for i in range(n):
            words[i] = aggregate.words[entries[i]]
    if function == Function.COUNT:
        return result_append_words(&aggregate.result, words, n)
    if function == Function.MEAN:
        for i in range(n):
            count = aggregate.counts[_entry(entries, first, i)]
            states[i] = ValueState.SOME_VALUE if count else ValueState.NO_VALUE
            words[i] = word_of_double(double_of_word(words[i]) / <double> (count if count else 1))
    elif aggregate.counts != NULL:
        for i in range(n):
            states[i] = ValueState.SOME_VALUE if aggregate.counts[_entry(entries, first, i)] else ValueState.NO_VALUE
    elif entries == NULL:
        memcpy(states, known + first, n)
    else:
        for i in range(n):
            states[i] = known[entries[i]]
    if aggregate.descending and (function == Function.LEAST or function == Function.BITS):
        for i in range(n):
            words[i] = ~words[i]
    if function == Function.LEAST:
        from_ordered_words(aggregate.type, words, n)
    for i in range(n):
        nulls += states[i] != ValueState.SOME_VALUE
    if nulls:  # zeros under nulls, so that equal results have equal bytes
        for i in range(n):
            words[i] = words[i] if states[i] == ValueState.SOME_VALUE else 0
    result_append_words(&aggregate.result, words, n)
    return result_append_states(&aggregate.result, states, n)


cdef int _emit_variances(Aggregate* aggregate, const uint32_t* entries, int64_t first, int64_t n) except -1 nogil:
    # The variance of a sample of one is null, as in Spark.
    cdef uint64_t[BLOCK_ROWS] words
    cdef uint8_t[BLOCK_ROWS] states
    cdef int64_t i, e, freedom
    cdef double variance
    for i in range(n):
        e = _entry(entries, first, i)
        freedom = aggregate.counts[e] - aggregate.of_sample
        states[i] = ValueState.SOME_VALUE if freedom > 0 else ValueState.NO_VALUE
        variance = aggregate.deviations[e] / <double> freedom if freedom > 0 else 0
        words[i] = word_of_double(sqrt(variance) if aggregate.is_root else variance)
    result_append_words(&aggregate.result, words, n)
    return result_append_states(&aggregate.result, states, n)


cdef int _emit_percentiles(Aggregate* aggregate, const uint32_t* entries, int64_t first, int64_t n) except -1 nogil:
    cdef uint64_t[BLOCK_ROWS] words
    cdef uint8_t[BLOCK_ROWS] states
    cdef const OwnedBytes* distribution
    cdef int64_t i
    for i in range(n):
        distribution = &aggregate.strings[_entry(entries, first, i)]
        states[i] = ValueState.SOME_VALUE if distribution.length else ValueState.NO_VALUE
        words[i] = 0
        if distribution.length:
            words[i] = word_of_double(distribution_quantile(distribution, aggregate.percentage))
    result_append_words(&aggregate.result, words, n)
    return result_append_states(&aggregate.result, states, n)


cdef int _emit_decimals(Aggregate* aggregate, const uint32_t* entries, int64_t first, int64_t n) except -1 nogil:
    # A result with too many digits is null here: `unfit_result` finds it, and the caller refuses it.
    cdef uint8_t[BLOCK_ROWS] states
    cdef uint8_t[16] value
    cdef ByteView view
    cdef int64_t i, e, count = 1
    for i in range(n):
        e = _entry(entries, first, i)
        if aggregate.counts != NULL:
            count = aggregate.counts[e]
            states[i] = ValueState.SOME_VALUE if count else ValueState.NO_VALUE
        else:
            states[i] = aggregate.states[e]
        if states[i] == ValueState.SOME_VALUE and not decimal_quotient(
            &aggregate.decimals[e],
            aggregate.shift,
            count if aggregate.function == Function.MEAN else 1,
            aggregate.precision,
            value,
        ):
            states[i] = ValueState.NULL_VALUE
            if aggregate.overflow < 0:
                aggregate.overflow = aggregate.result.length
        view.data = value
        view.length = 16 if states[i] == ValueState.SOME_VALUE else 0
        result_append_bytes(&aggregate.result, view)
    return result_append_states(&aggregate.result, states, n)


cdef int _emit_strings(
    Aggregate* aggregate, const uint32_t* entries, int64_t first, int64_t n
) except -1 nogil:
    cdef uint8_t[BLOCK_ROWS] states
    cdef ByteView nothing
    cdef int64_t i, e
    nothing.data = NULL
    nothing.length = 0
    if aggregate.nested != NULL:
        for i in range(n):
            e = _entry(entries, first, i)
            value_column_append(&aggregate.nested_result, _nested_value(aggregate, e))
        return 0
    for i in range(n):
        e = _entry(entries, first, i)
        states[i] = aggregate.states[e]
        result_append_bytes(
            &aggregate.result,
            owned_bytes_view(&aggregate.strings[e]) if states[i] == ValueState.SOME_VALUE else nothing,
        )
    return result_append_states(&aggregate.result, states, n)


cdef int _emit_elements(
    Aggregate* aggregate, const ValueList* values, int64_t start, int64_t n, int64_t* next_null
) except -1 nogil:
    # At most BLOCK_ROWS elements of a list; next_null walks through its null positions.
    cdef uint8_t[BLOCK_ROWS] states
    cdef const int64_t* ends = <const int64_t*> values.ends.data
    cdef const int64_t* nulls = <const int64_t*> values.nulls.data
    cdef ByteView view
    cdef int64_t i, begin
    if aggregate.nested != NULL:
        for i in range(start, start + n):
            value_column_append(&aggregate.nested_result, _nested_element(values, i, next_null))
        return 0
    if ends == NULL:
        result_append_words(&aggregate.result, <const uint64_t*> values.values.data + start, n)
    else:
        for i in range(start, start + n):
            begin = ends[i - 1] if i else 0
            view.data = values.values.data + begin
            view.length = ends[i] - begin
            result_append_bytes(&aggregate.result, view)
    memset(states, ValueState.SOME_VALUE, n)
    while next_null[0] < values.nulls.size >> 3 and nulls[next_null[0]] < start + n:
        states[nulls[next_null[0]] - start] = ValueState.NULL_VALUE
        next_null[0] += 1
    return result_append_states(&aggregate.result, states, n)


cdef int _emit_lists(Aggregate* aggregate, const uint32_t* entries, int64_t first, int64_t n) except -1 nogil:
    cdef const ValueList* values
    cdef int64_t i, done, next_null
    cdef int32_t* ends
    ends = <int32_t*> (aggregate.list_ends.data + aggregate.list_ends.size)
    for i in range(n):
        values = &aggregate.lists[_entry(entries, first, i)]
        done = next_null = 0
        while done < values.length:
            _emit_elements(aggregate, values, done, min(values.length - done, <int64_t> BLOCK_ROWS), &next_null)
            done += BLOCK_ROWS
        ends[i] = <int32_t> _result_length(aggregate)
    aggregate.list_ends.size += n * 4
    return 0


cdef int _aggregate_emit(
    Aggregate* aggregate, const uint8_t* touched, const uint32_t* entries, uint32_t first, int64_t n
) except -1 nogil:
    # Appends the results; `touched` marks the entries that have a value if the aggregate has no states.
    cdef int64_t done = 0, part
    cdef const uint32_t* chosen = NULL
    while done < n:
        part = min(n - done, <int64_t> BLOCK_ROWS)
        if entries != NULL:
            chosen = entries + done
        if aggregate.lists != NULL:
            _emit_lists(aggregate, chosen, first + done, part)
        elif _has_strings(aggregate):
            _emit_strings(aggregate, chosen, first + done, part)
        elif aggregate.decimals != NULL:
            _emit_decimals(aggregate, chosen, first + done, part)
        elif aggregate.deviations != NULL:
            _emit_variances(aggregate, chosen, first + done, part)
        elif aggregate.function == Function.APPROX_PERCENTILE:
            _emit_percentiles(aggregate, chosen, first + done, part)
        else:
            _emit_words(aggregate, touched, chosen, first + done, part)
        done += part
    return 0


cdef str _decimal_name(str format):
    return f"decimal128({format[2:].replace(',', ', ')})"


cdef NativeArray _aggregate_take(Aggregate* aggregate, str format, int64_t rows):
    # Returns the results so far, `rows` of them, and begins new ones. `format` is that of the elements for COLLECT.
    cdef NativeArray values
    if aggregate.nested != NULL:
        values = value_column_take(&aggregate.nested_result)
        values.schema.flags |= 2  # results may be null, even of a column without nulls
    else:
        values = result_take(&aggregate.result, format)
    if aggregate.function != Function.COLLECT:
        return values
    return native_array("+l", rows, NULL, &aggregate.list_ends, NULL, [values], ["item"])


# ---- from a function's name and the types of its columns to an empty aggregate -----------------------------------


_FUNCTIONS = {
    "count": Function.COUNT,
    "sum": Function.SUM,
    "mean": Function.MEAN,
    "stddev": Function.VARIANCE,
    "stddev_samp": Function.VARIANCE,
    "stddev_pop": Function.VARIANCE,
    "variance": Function.VARIANCE,
    "var_samp": Function.VARIANCE,
    "var_pop": Function.VARIANCE,
    "min": Function.LEAST,
    "max": Function.LEAST,
    "bit_or": Function.BITS,
    "bit_and": Function.BITS,
    "first": Function.FIRST,
    "last": Function.LAST,
    "min_by": Function.LEAST_BY,
    "max_by": Function.LEAST_BY,
    "count_distinct": Function.COUNT_DISTINCT,
    "approx_count_distinct": Function.APPROX_DISTINCT,
    "approx_percentile": Function.APPROX_PERCENTILE,
    "collect": Function.COLLECT,
}

# For which values the state of a function is the same, bit for bit, however its elements are divided, if parts are merged in the order of
# their first elements (for LAST, of their last ones). Every function needs an entry: Spark merges before the shuffle what is exact.
_EXACT_FOR = {
    Function.COUNT: Values.ALL,
    Function.SUM: Values.DECIMALS | Values.OTHERS,
    Function.MEAN: Values.DECIMALS,
    Function.VARIANCE: Values.NONE,
    Function.LEAST: Values.ALL,
    Function.BITS: Values.ALL,
    Function.FIRST: Values.ALL,
    Function.LAST: Values.ALL,
    Function.LEAST_BY: Values.NONE,
    Function.COUNT_DISTINCT: Values.ALL,
    Function.APPROX_DISTINCT: Values.ALL,
    Function.APPROX_PERCENTILE: Values.ALL,
    Function.COLLECT: Values.NONE,
}

_TYPE_NAMES = {
    ColumnType.NULL_TYPE: "null",
    ColumnType.DATE32: "date",
    ColumnType.DATE64: "date",
    ColumnType.TIME32: "time",
    ColumnType.TIME64: "time",
    ColumnType.TIMESTAMP: "timestamp",
    ColumnType.DURATION: "duration",
    ColumnType.STRING: "string",
    ColumnType.LARGE_STRING: "string",
    ColumnType.BINARY: "binary",
    ColumnType.LARGE_BINARY: "binary",
    ColumnType.FIXED_BINARY: "binary",
    ColumnType.DECIMAL128: "decimal",
    ColumnType.STRUCT: "struct",
}


cdef bint _are_alike(const ArrowSchema* field, const ArrowSchema* other) noexcept:
    # But for names.
    cdef int64_t i
    if strcmp(field.format, other.format) != 0 or field.n_children != other.n_children:
        return False
    for i in range(field.n_children):
        if not _are_alike(field.children[i], other.children[i]):
            return False
    return True


cdef RecordBatch _empty_batch(object schema, list columns):
    # A batch without rows of the columns named, with their types in the schema. Raises SchemaError if one is missing or unsupported.
    cdef ArrowSchema* fields
    export = getattr(schema, "__arrow_c_schema__", None)
    if export is None:
        raise TypeError(f"{type(schema).__name__} has no __arrow_c_schema__; pass the pyarrow schema of the batches")
    capsule = export()
    fields = checked_schema(capsule, schema)
    names = [field_name(fields.children[i]) for i in range(fields.n_children)]
    arrays = []
    for name in columns:
        if name not in names:
            raise SchemaError(f"no column {name!r}; the columns are {', '.join(names)}")
        i = names.index(name)
        if fields.children[i].dictionary != NULL:
            raise SchemaError(
                f"column {name!r} is dictionary-encoded; cast it to the type of its values before it is aggregated"
            )
        try:
            arrays.append(_empty_array(fields.children[i]))
        except SchemaError as error:
            raise SchemaError(f"column {name!r}: {error}") from None
    return RecordBatch(native_array("+s", 0, NULL, NULL, NULL, arrays, columns), any_type=True)


cdef NativeArray _empty_array(const ArrowSchema* field):
    # Raises SchemaError if values of this type cannot be kept in an array.
    cdef ValueType type
    cdef ValueColumn values
    value_type_set(&type, field)
    memset(&values, 0, sizeof(ValueColumn))
    try:
        value_column_set(&values, &type, NULL)
        return value_column_take(&values)
    finally:
        value_column_free(&values)
        value_type_free(&type)


cdef int _check_spec(str function, object column, object by, object percentage) except -1:
    # Raises ConfigurationError if the function does not exist, or takes other columns; each is a str or None.
    if function not in _FUNCTIONS:
        raise ConfigurationError(f"no aggregate {function!r}; there are {', '.join(_FUNCTIONS)}")
    if column is None and function != "count":
        raise ConfigurationError(f"{function} needs a column")
    if function.endswith("_by") != (by is not None):
        raise ConfigurationError(
            f"{function} of column {column!r} "
            + ("takes no `by` column" if by is not None else "needs a `by` column that says which row counts")
        )
    if (function == "approx_percentile") != (percentage is not None):
        raise ConfigurationError(
            f"{function} of column {column!r} takes " + ("no" if percentage is not None else "a") + " percentage"
        )
    if percentage is not None and not 0 <= percentage <= 1:
        raise ConfigurationError(f"{function} of column {column!r}: a percentage is from 0 to 1, not {percentage!r}")
    return 0


cdef inline bint _is_nested(ColumnType type) noexcept nogil:
    # Returns true if values are encoded, to be kept unread.
    return type == ColumnType.STRUCT or type == ColumnType.OTHER_TYPE


cdef str _type_name(const Column* column):
    cdef bytes format = column.format
    if column.type != ColumnType.OTHER_TYPE:
        return _TYPE_NAMES.get(column.type, "number")
    if format.startswith(b"d:"):
        return "decimal"
    if format == b"+m":
        return "map"
    return "list" if format.startswith(b"+") else "value"


cdef int _refuse(str function, str name, const Column* column, str advice) except -1:
    raise SchemaError(
        f"{function}: column {name!r} is a {_type_name(column)} "
        f"(Arrow format {column.format.decode()!r}), which has no {function}; {advice}"
    )


cdef int _check_values(str function, str name, const Column* column, bint compares) except -1:
    # Returns true if values of this type can be kept, and compared or, for sum and mean, added up.
    cdef ColumnType type = column.type
    if function == "count" or (function.endswith("count_distinct") and type == ColumnType.NULL_TYPE):
        return 0
    if type == ColumnType.NULL_TYPE:
        _refuse(function, name, column, "cast it to the type that its values would have")
    if compares and type == ColumnType.OTHER_TYPE and column.format[0] == b"d":
        _refuse(function, name, column, "cast it to decimal128 first")
    if compares and _is_nested(type):
        _refuse(function, name, column, "make plain columns of its parts first: with_columns(name=expression)")
    if type == ColumnType.FIXED_BINARY and column.byte_width == 0:
        _refuse(function, name, column, "cast it to binary")
    if _FUNCTIONS[function] in (Function.SUM, Function.MEAN, Function.VARIANCE, Function.APPROX_PERCENTILE):
        if type == ColumnType.DECIMAL128:
            return 0
        if not is_word(type):
            _refuse(function, name, column, "cast it to a number first")
        if type >= ColumnType.DATE32 and not (function == "sum" and type == ColumnType.DURATION):
            _refuse(function, name, column, "cast it to int64 first, or use min or max")
    if _FUNCTIONS[function] == Function.BITS and (not is_word(type) or is_float(type) or type >= ColumnType.DATE32):
        _refuse(function, name, column, "cast it to an integer first")
    return 0


cdef int _parts(Function function, ColumnType type) noexcept:
    cdef bint word = is_word(type)
    if function == Function.COUNT:
        return Part.WORD_PART
    if function == Function.COUNT_DISTINCT:
        return Part.WORD_SET_PART if word else Part.BYTE_SET_PART
    if function == Function.COLLECT:
        return Part.LIST_PART
    if function == Function.APPROX_DISTINCT:
        return Part.WORD_SET_PART | Part.BYTES_PART
    if function == Function.APPROX_PERCENTILE:
        return Part.BYTES_PART
    if function == Function.VARIANCE:
        return Part.WORD_PART | Part.COUNT_PART | Part.DEVIATION_PART
    if type == ColumnType.DECIMAL128 and function == Function.LEAST:
        return Part.DECIMAL_PART | Part.STATE_PART
    if type == ColumnType.DECIMAL128 and (function == Function.SUM or function == Function.MEAN):
        return Part.DECIMAL_PART | Part.COUNT_PART
    if function == Function.MEAN:
        return Part.WORD_PART | Part.COUNT_PART
    if word and (function == Function.SUM or function == Function.LEAST or function == Function.BITS):
        return Part.WORD_PART
    return Part.STATE_PART | (Part.WORD_PART if word else Part.BYTES_PART)


cdef int _frame_parts(Function function, int parts, bint slides, bint retracts) noexcept:
    # A sum that loses values must count them to know when it is null, and least values know it from the start; if any value may go,
    # they have to know all of them.
    if retracts and function == Function.LEAST:
        return _frame_parts(function, parts, slides, False) | Part.COUNTED_PART
    if function == Function.COUNT_DISTINCT and not slides and not retracts:
        return parts | Part.WORD_PART
    if function == Function.COUNT_DISTINCT:
        held = Part.KEY_PART if parts & Part.WORD_SET_PART else Part.BYTES_PART
        return Part.WORD_PART | Part.STATE_PART | Part.COUNTED_PART | held
    if parts == Part.WORD_PART and function == Function.SUM:
        return parts | Part.COUNT_PART
    if parts == Part.WORD_PART and (function == Function.LEAST or function == Function.BITS):
        return parts | Part.STATE_PART
    return parts


cdef Values _kind_of(ColumnType type) noexcept:
    if type == ColumnType.DECIMAL128:
        return Values.DECIMALS
    return Values.FLOATS if is_float(type) else Values.OTHERS


cdef str _start_decimals(Aggregate* aggregate, const Column* values):
    # The result's type is Spark's.
    cdef str digits = values.format.decode()[2:]
    cdef int scale
    aggregate.precision, scale = map(int, digits.split(",")[:2])
    if aggregate.function == Function.SUM:
        aggregate.precision = min(aggregate.precision + 10, MOST_DIGITS)
    elif aggregate.function == Function.MEAN:
        aggregate.precision = min(aggregate.precision + 4, MOST_DIGITS)
        aggregate.shift = min(scale + 4, MOST_DIGITS) - scale
    aggregate.result.type = ColumnType.DECIMAL128
    aggregate.result.width = 16
    return f"d:{aggregate.precision},{scale + aggregate.shift}"


cdef str _start_aggregate(
    Aggregate* aggregate, str function, object name, const Column* values, object by_name, const Column* by
):
    # Sets all fields except those that refer to a table: column, selection, values, by; the result has its name. The columns
    # are NULL if the function has none. Returns the result's Arrow format (for COLLECT that of the elements). Raises
    # SchemaError if the types do not fit.
    if values != NULL:
        _check_values(function, name, values, by == NULL and function not in ("first", "last", "collect"))
        aggregate.type = values.type
    aggregate.function = _FUNCTIONS[function]
    aggregate.merges_exactly = (_EXACT_FOR[aggregate.function] & _kind_of(aggregate.type)) != 0
    aggregate.descending = function in ("max", "max_by", "bit_and")
    aggregate.parts = _parts(aggregate.function, aggregate.type)
    aggregate.overflow = NOTHING
    if by != NULL:
        _check_values(function, by_name, by, True)
        aggregate.by_type = by.type
        aggregate.parts |= Part.KEY_PART if is_word(by.type) else Part.KEY_BYTES_PART
    aggregate.result.width = 8
    aggregate.result.type = ColumnType.INT64
    if aggregate.function in (Function.COUNT, Function.COUNT_DISTINCT, Function.APPROX_DISTINCT):
        return "l"
    if aggregate.parts & Part.DECIMAL_PART:
        return _start_decimals(aggregate, values)
    if aggregate.function == Function.VARIANCE or aggregate.function == Function.APPROX_PERCENTILE:
        aggregate.whole_numbers = not is_float(values.type)
        aggregate.of_sample = not function.endswith("_pop")
        aggregate.is_root = function.startswith("stddev")
        if values.type == ColumnType.DECIMAL128:
            aggregate.unit = float(f"1e{values.format.decode()[2:].split(',')[1]}")
        aggregate.result.type = ColumnType.FLOAT64
        return "g"
    if aggregate.function == Function.SUM or aggregate.function == Function.MEAN:
        aggregate.whole_numbers = not is_float(values.type)
        if aggregate.function == Function.MEAN or not aggregate.whole_numbers:
            aggregate.empty_word = <uint64_t> 1 << 63  # -0.0: the one start that keeps a sum of -0.0 as it is
            aggregate.result.type = ColumnType.FLOAT64
            return "g"
        if values.type != ColumnType.UINT64 and values.type != ColumnType.DURATION:
            return "l"
    elif aggregate.function == Function.LEAST:
        aggregate.empty_word = <uint64_t> INT64_MAX
    if _is_nested(values.type):
        aggregate.nested = <ValueType*> _zeros(1, sizeof(ValueType))
        value_type_set(aggregate.nested, values.field)
        value_column_set(&aggregate.nested_result, aggregate.nested, aggregate.result.name)
    aggregate.result.type = values.type
    aggregate.result.width = values.byte_width
    return values.format.decode()


# ---- the accumulators of all aggregates --------------------------------------------------------------------------


cdef int accumulators_reserve(AccumulatorTable* table, uint32_t n_entries) except -1 nogil:
    cdef int64_t i, capacity, more = <int64_t> n_entries - table.n_entries
    if more <= 0:
        return 0
    if n_entries > table.capacity:
        capacity = max(<int64_t> n_entries, table.capacity + (table.capacity >> 1))
        for i in range(table.n_aggregates):
            _aggregate_reserve(&table.aggregates[i], capacity)
        if table.touched != NULL:
            table.touched = <uint8_t*> _grown(table.touched, capacity, 1)
        table.capacity = capacity
    for i in range(table.n_aggregates):
        _aggregate_start(&table.aggregates[i], table.n_entries, more)
    if table.touched != NULL:
        memset(table.touched + table.n_entries, 0, more)
    table.n_entries = n_entries
    return 0


cdef int accumulators_gather(
    AccumulatorTable* table, const uint32_t* entries, const uint32_t* rows, int64_t n
) except -1 nogil:
    cdef int64_t i
    cdef Selection* selection
    cdef ValueBlock* block
    for i in range(table.n_selections):
        selection = &table.selections[i]
        if selection.column == ALL_ROWS:
            selection_fill(selection, NULL, entries, rows, n)
        else:
            selection_fill(selection, table.columns[selection.column], entries, rows, n)
    for i in range(table.n_blocks):
        block = &table.blocks[i]
        value_block_fill(block, table.columns[block.column], &table.selections[block.selection])
    return 0


cdef int _update_block(
    AccumulatorTable* table, const uint32_t* entries, const uint32_t* rows, int64_t n
) except -1 nogil:
    cdef int64_t i
    cdef const Selection* selection
    cdef Aggregate* aggregate
    cdef uint8_t* touched = table.touched
    accumulators_gather(table, entries, rows, n)
    if touched != NULL:
        for i in range(n):
            touched[entries[i]] = 1
    for i in range(table.n_aggregates):
        aggregate = &table.aggregates[i]
        selection = &table.selections[aggregate.selection]
        aggregate_update(
            aggregate,
            selection.entries,
            selection.n,
            &table.blocks[aggregate.values] if aggregate.values != NOTHING else NULL,
            &table.blocks[aggregate.by] if aggregate.by != NOTHING else NULL,
        )
    return 0


cdef int accumulators_update(
    AccumulatorTable* table, const uint32_t* entries, const uint32_t* rows, int64_t n
) except -1 nogil:
    cdef int64_t done = 0
    while done < n:
        _update_block(table, entries + done, rows + done, min(n - done, <int64_t> BLOCK_ROWS))
        done += BLOCK_ROWS
    return 0


cdef int accumulators_merge(AccumulatorTable* table, uint32_t into, uint32_t other) except -1 nogil:
    return accumulators_merge_from(table, into, table, other)


cdef int accumulators_merge_from(
    AccumulatorTable* table, uint32_t into, AccumulatorTable* source, uint32_t other
) except -1 nogil:
    cdef int64_t i
    for i in range(table.n_aggregates):
        aggregate_merge(&table.aggregates[i], into, &source.aggregates[i], other)
    if table.touched != NULL:
        table.touched[into] |= source.touched[other]
    accumulators_clear_range(source, other, 1)
    return 0


cdef int _emit(AccumulatorTable* table, const uint32_t* entries, uint32_t first, int64_t n) except -1 nogil:
    cdef int64_t i
    for i in range(table.n_aggregates):
        if table.rows == 0 and table.aggregates[i].lists == NULL and table.aggregates[i].nested == NULL:
            result_reserve(&table.aggregates[i].result, table.expected_rows, 0)
        _aggregate_reserve_results(&table.aggregates[i], entries, first, n)
    for i in range(table.n_aggregates):
        _aggregate_emit(&table.aggregates[i], table.touched, entries, first, n)
    table.rows += n
    return 0


cdef int accumulators_emit(AccumulatorTable* table, const uint32_t* entries, int64_t n) except -1 nogil:
    return _emit(table, entries, 0, n)


cdef int accumulators_emit_range(AccumulatorTable* table, uint32_t first, uint32_t n) except -1 nogil:
    return _emit(table, NULL, first, n)


cdef void accumulators_clear(AccumulatorTable* table, const uint32_t* entries, int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        accumulators_clear_range(table, entries[i], 1)


cdef void accumulators_clear_range(AccumulatorTable* table, uint32_t first, uint32_t n) noexcept nogil:
    cdef int64_t i
    for i in range(table.n_aggregates):
        aggregate_clear(&table.aggregates[i], first, n)
    if table.touched != NULL:
        memset(table.touched + first, 0, n)


# ---- windows that share entries ----------------------------------------------------------------------------------
# Each window adds up the slices of time that it is made of.


cdef bint _are_shareable(const AccumulatorTable* table) noexcept nogil:
    cdef const Aggregate* aggregate
    cdef int64_t i
    for i in range(table.n_aggregates):
        aggregate = &table.aggregates[i]
        if aggregate.parts & Part.DECIMAL_PART:
            continue
        if not aggregate.parts & Part.WORD_PART:
            return False
        if not (
            aggregate.function == Function.COUNT
            or aggregate.function == Function.LEAST
            or aggregate.function == Function.BITS
            or (aggregate.function == Function.SUM and aggregate.whole_numbers)
        ):
            return False
    return True


cdef void _add_slices(Aggregate* aggregate, const uint32_t* into, const uint32_t* others, int64_t n) noexcept nogil:
    cdef uint64_t* words = aggregate.words
    cdef int64_t* ordered = <int64_t*> aggregate.words
    cdef uint8_t* states = aggregate.states
    cdef int64_t i, value
    if aggregate.decimals != NULL:
        for i in range(n):
            _merge_decimals(aggregate, into[i], aggregate, others[i])
        return
    if aggregate.function == Function.LEAST:
        for i in range(n):
            value = ordered[others[i]]
            ordered[into[i]] = value if value < ordered[into[i]] else ordered[into[i]]
    elif aggregate.function == Function.BITS:
        for i in range(n):
            words[into[i]] |= words[others[i]]
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
        _add_slices(&table.aggregates[i], into, others, n)
    if touched != NULL:
        for i in range(n):
            touched[into[i]] |= touched[others[i]]


cdef void _copy_slices(Aggregate* aggregate, const uint32_t* into, const uint32_t* others, int64_t n) noexcept nogil:
    cdef uint64_t* words = aggregate.words
    cdef uint8_t* states = aggregate.states
    cdef int64_t i
    if aggregate.decimals != NULL:
        for i in range(n):
            aggregate.decimals[into[i]] = aggregate.decimals[others[i]]
    else:
        for i in range(n):
            words[into[i]] = words[others[i]]
    if aggregate.counts != NULL:
        for i in range(n):
            aggregate.counts[into[i]] = aggregate.counts[others[i]]
    if states != NULL:
        for i in range(n):
            states[into[i]] = states[others[i]]


cdef void accumulators_copy(
    AccumulatorTable* table, const uint32_t* into, const uint32_t* others, int64_t n
) noexcept nogil:
    cdef uint8_t* touched = table.touched
    cdef int64_t i
    for i in range(table.n_aggregates):
        _copy_slices(&table.aggregates[i], into, others, n)
    if touched != NULL:
        for i in range(n):
            touched[into[i]] = touched[others[i]]


cdef void _subtract_decimals(
    Aggregate* aggregate, const uint32_t* into, const uint32_t* others, int64_t n, uint8_t* doubtful
) noexcept nogil:
    cdef int64_t i
    if aggregate.function == Function.LEAST:
        for i in range(n):  # it is not better than what has taken it in: either as good, or worse
            doubtful[i] |= aggregate.states[others[i]] != ValueState.NO_VALUE and not (
                decimal_sum_is_less(&aggregate.decimals[into[i]], &aggregate.decimals[others[i]])
                or decimal_sum_is_less(&aggregate.decimals[others[i]], &aggregate.decimals[into[i]])
            )
        return
    for i in range(n):
        decimal_sum_subtract(&aggregate.decimals[into[i]], &aggregate.decimals[others[i]])
        aggregate.counts[into[i]] -= aggregate.counts[others[i]]


cdef void _subtract_slices(
    Aggregate* aggregate, const uint32_t* into, const uint32_t* others, int64_t n, uint8_t* doubtful
) noexcept nogil:
    cdef uint64_t* words = aggregate.words
    cdef const int64_t* ordered = <const int64_t*> aggregate.words
    cdef const uint8_t* states = aggregate.states
    cdef int64_t i
    if aggregate.decimals != NULL:
        _subtract_decimals(aggregate, into, others, n, doubtful)
        return
    if aggregate.function == Function.LEAST:
        for i in range(n):
            doubtful[i] |= ordered[others[i]] <= ordered[into[i]]
        return
    if aggregate.function == Function.BITS:  # others may have set the same bits
        for i in range(n):
            doubtful[i] |= words[others[i]] != 0
    else:
        for i in range(n):
            words[into[i]] -= words[others[i]]
    if states != NULL:  # 0 may have values or none
        for i in range(n):
            doubtful[i] |= words[into[i]] == 0


cdef void accumulators_subtract(
    AccumulatorTable* table, const uint32_t* into, const uint32_t* others, int64_t n, uint8_t* doubtful
) noexcept nogil:
    cdef int64_t i
    memset(doubtful, False, n)
    for i in range(table.n_aggregates):
        _subtract_slices(&table.aggregates[i], into, others, n, doubtful)


cdef int require_shareable(const AccumulatorTable* table) except -1:
    if not _are_shareable(table):
        raise ConfigurationError(
            "windows share slices only where results do not depend on the order of rows: of counts, sums of whole numbers and "
            "decimals, means of decimals, bits, least and greatest values of fixed width"
        )
    return 0


# ---- accumulators for Python -------------------------------------------------------------------------------------


cdef void* _zeros(int64_t count, size_t size) except NULL:
    cdef void* zeros = calloc(count, size)
    if zeros == NULL:
        raise MemoryError("accumulators")
    return zeros


cdef int _check_range(AccumulatorTable* table, int64_t first, int64_t n) except -1:
    if first + n > table.n_entries:
        raise IndexError(f"entries {first} to {first + n - 1}; {table.n_entries} are reserved")
    return 0


@cython.final
cdef class Accumulators:
    """Accumulators of several aggregates over one space of entries: an entry is what one key has in one window.

    All aggregates skip nulls as SQL does, but first, last and collect: they take the elements as they are. The result
    over no value is null; that of count and count_distinct is 0, that of collect an empty list.

    ==============  =====================================  =========================================================
    function        columns                                result
    ==============  =====================================  =========================================================
    count           any, or none: rows                     int64
    sum             numbers, bool, duration, decimal       int64 of integers and bools, which wraps around as Java's
                                                           long does; uint64 of uint64; float64 of floats, added in
                                                           the order of the elements; duration of durations; of
                                                           decimal128(p, s), exactly, decimal128(min(p + 10, 38), s)
    mean            numbers, bool, decimal                 float64; the values are added as float64. Of
                                                           decimal128(p, s), from the exact sum and rounded half up:
                                                           decimal128(min(p + 4, 38), min(s + 4, 38))
    stddev_samp,    numbers, bool, decimal                 float64; null of a sample of one. Each value is cast to
    stddev_pop,                                            float64 first. `stddev` and `variance` are those of a
    var_samp,                                              sample, as in Spark
    var_pop
    bit_or, bit_and integers, bool                         as the column
    min, max        plain: none of null, struct, list,     as the column
                    map, or decimal of other widths
    first, last     any but null                           as the column; the first or last element's value or null
    min_by, max_by  any but null; `by` is plain            the value, or null, where `by` is least or greatest; rows
                                                           with a null `by` do not count; among ties the first stays
    count_distinct  plain                                  int64, exact
    approx_count_   plain                                  int64; exact up to 512, then with a standard error of
    distinct                                               1.6 %, in 4 KiB
    approx_         numbers, bool, decimal                 float64; of values cast to float64 the least that is not
    percentile                                             below the percentage of all, from 0 to 1; exact up to
                                                           1,024 different values, then to 0.4 %, towards zero
    collect         any but null                           list of the values and nulls, in the order of the elements
    ==============  =====================================  =========================================================

    Values are compared as Java's `compare` does: NaN, of which there is one, is greater than all numbers, and -0.0 less
    than 0.0. Strings and binary values are compared byte by byte (Java compares UTF-16 units, which differs only where
    characters beyond U+FFFF meet U+E000 to U+FFFF).

    Follows Flink's `SumAggregator` and `ComparableAggregator` (`minBy` and `maxBy` with `first = true`).

    Parameters
    ----------
    schema : object with `__arrow_c_schema__`
        Columns of the batches.
    specs : sequence of (function, column, by) or (function, column, by, percentage)
        The aggregates: function as above; column and by are names or None; only `approx_percentile` has a percentage.
    slides : bool
        True if `Frames` of the last rows have them: entries lose their oldest values again.
    runs : bool
        True if `Frames` of all rows have them.
    retracts : bool
        True if those may lose any value, which is taken back.

    Raises
    ------
    ConfigurationError
        If a function does not exist, or its columns are missing or too many.
    SchemaError
        If a column is missing, or the aggregate does not support its type.
    """

    def __cinit__(self, schema, specs, *, bint slides=False, bint runs=False, bint retracts=False):
        if (slides and runs) or (retracts and not runs):
            raise ValueError("frames slide or run, and rows are taken back only from those that run")
        self.slides = slides
        self.runs = runs
        self.retracts = retracts
        self._specs = [(*spec, None)[:4] for spec in specs]
        for function, column, by, percentage in self._specs:
            _check_spec(function, column, by, percentage)
        self._columns = list(dict.fromkeys(name for spec in self._specs for name in spec[1:3] if name is not None))
        self._names = [name.encode() for name in self._columns]
        self._empty = _empty_batch(schema, self._columns)
        self._selections = {}
        self._blocks = {}
        self._formats = []
        self.table = <AccumulatorTable*> _zeros(1, sizeof(AccumulatorTable))
        self.table.columns = <const Column**> _zeros(len(self._columns) + 1, sizeof(Column*))
        self.table.selections = <Selection*> _zeros(len(self._columns) + 1, sizeof(Selection))
        self.table.blocks = <ValueBlock*> _zeros(2 * len(self._specs) + 1, sizeof(ValueBlock))
        self.table.aggregates = <Aggregate*> _zeros(len(self._specs) + 1, sizeof(Aggregate))
        for function, column, by, percentage in self._specs:
            self._add(function, column, by, percentage)

    def __dealloc__(self):
        cdef int64_t i
        if self.table == NULL:
            return
        for i in range(self.table.n_aggregates):
            _aggregate_free(&self.table.aggregates[i], self.table.n_entries)
        for i in range(self.table.n_blocks):
            value_block_free(&self.table.blocks[i])
        free(self.table.touched)
        free(self.table.columns)
        free(self.table.selections)
        free(self.table.blocks)
        free(self.table.aggregates)
        free(self.table)

    cdef int64_t _selection(self, int64_t column) except -1:
        # Number of the selection of rows where the column is not null, or of all rows.
        cdef int64_t number = self._selections.setdefault(column, len(self._selections))
        self.table.selections[number].column = column
        self.table.n_selections = len(self._selections)
        return number

    cdef int64_t _block(self, int64_t selection, int64_t column, bint ordered, const ValueType* nested) except -1:
        # Number of the block of the column's values at the rows of the selection.
        cdef ColumnType type = self._empty.columns[column].type
        cdef Representation representation
        cdef ValueBlock* block
        if _is_nested(type):
            representation = Representation.ENCODED
        elif not is_word(type):
            representation = Representation.BYTES
        elif ordered and (is_float(type) or type == ColumnType.UINT64):
            representation = Representation.ORDERED_WORDS
        else:
            representation = Representation.WORDS
        key = (selection, column, <int> representation)
        if key in self._blocks:
            return self._blocks[key]
        block = &self.table.blocks[self.table.n_blocks]
        block.selection = selection
        block.column = column
        block.representation = representation
        block.with_states = self.table.selections[selection].column != column
        block.type = nested
        value_block_allocate(block)
        self._blocks[key] = self.table.n_blocks
        self.table.n_blocks += 1
        return self._blocks[key]

    cdef int _add(self, str function, str column, str by, object percentage) except -1:
        cdef AccumulatorTable* table = self.table
        cdef Aggregate* aggregate = &table.aggregates[table.n_aggregates]
        cdef int64_t value_column = NOTHING, by_column = NOTHING
        if column is not None:
            value_column = self._columns.index(column)
            aggregate.result.name = <const char*> <bytes> self._names[value_column]
        if by is not None:
            by_column = self._columns.index(by)
        self._formats.append(
            _start_aggregate(
                aggregate,
                function,
                column,
                &self._empty.columns[value_column] if column is not None else NULL,
                by,
                &self._empty.columns[by_column] if by is not None else NULL,
            )
        )
        if percentage is not None:
            aggregate.percentage = percentage
        if self.slides or self.runs:
            aggregate.parts = _frame_parts(aggregate.function, aggregate.parts, self.slides, self.retracts)
        aggregate.column = value_column
        aggregate.values = aggregate.by = NOTHING
        if aggregate.function in (Function.FIRST, Function.LAST, Function.COLLECT):
            aggregate.selection = self._selection(ALL_ROWS)
        else:
            aggregate.selection = self._selection(value_column if by is None else by_column)
        if by is not None:
            aggregate.by = self._block(aggregate.selection, by_column, True, NULL)
        if aggregate.function != Function.COUNT:
            ordered = aggregate.function in (Function.LEAST, Function.COUNT_DISTINCT, Function.APPROX_DISTINCT)
            aggregate.values = self._block(aggregate.selection, value_column, ordered, aggregate.nested)
        if has_lazy_states(aggregate) and table.touched == NULL:
            table.touched = <uint8_t*> _zeros(1, 1)
        table.n_aggregates += 1
        return 0

    cdef int bind(self, RecordBatch batch) except -1:
        cdef int64_t i, found
        cdef const Column* column
        cdef const Column* expected
        cdef Aggregate* aggregate
        cdef AccumulatorTable* table = self.table
        if batch is self._bound:
            return 0
        places = [batch.index_of(name) for name in self._columns]
        for i, found in enumerate(places):
            column = &batch.columns[found]
            expected = &self._empty.columns[i]
            if not _are_alike(column.field, expected.field):
                if strcmp(column.format, expected.format) == 0:
                    raise SchemaError(
                        f"column {self._columns[i]!r} has another type in a batch than in the schema, somewhere within its "
                        "values; cast it to one type in all files"
                    )
                raise SchemaError(
                    f"column {self._columns[i]!r} has Arrow format {column.format.decode()!r} in a batch, but "
                    f"{expected.format.decode()!r} in the schema; cast it to one type in all files"
                )
        for i in range(table.n_aggregates):
            aggregate = &table.aggregates[i]
            if has_lazy_states(aggregate) and batch.columns[<int64_t> places[aggregate.column]].null_count:
                aggregate_add_states(aggregate, table.touched, table.n_entries, table.capacity)
        for i, found in enumerate(places):
            table.columns[i] = &batch.columns[found]
        self._bound = batch
        return 0

    cdef int liken(self, Accumulators other) except -1:
        cdef int64_t i
        cdef Aggregate* aggregate
        cdef Aggregate* others
        if self._specs != other._specs or self._formats != other._formats:
            raise SchemaError(f"accumulators of {other._specs} cannot be merged into those of {self._specs}")
        for i in range(self.table.n_aggregates):
            aggregate = &self.table.aggregates[i]
            others = &other.table.aggregates[i]
            if has_lazy_states(aggregate) and not has_lazy_states(others):
                aggregate_add_states(aggregate, self.table.touched, self.table.n_entries, self.table.capacity)
            elif has_lazy_states(others) and not has_lazy_states(aggregate):
                aggregate_add_states(others, other.table.touched, other.table.n_entries, other.table.capacity)
        return 0

    cdef int64_t unfit_result(self) noexcept:
        cdef int64_t i
        for i in range(self.table.n_aggregates):
            if self.table.aggregates[i].overflow != NOTHING:
                return self.table.aggregates[i].overflow
        return NOTHING

    cdef int refuse_result(self, int64_t row, str where) except -1:
        cdef int64_t i = 0
        while self.table.aggregates[i].overflow != row:
            i += 1
        function, column, *_ = self._specs[i]
        raise DataError(
            f"{function} of column {column!r} over {where} does not fit into its type, {_decimal_name(self._formats[i])}: "
            "cast the column to a decimal with fewer decimal places, or to float64",
            column=column,
        )

    cdef list take_columns(self):
        cdef int64_t i, rows = self.table.rows
        self.table.rows = 0
        self.table.expected_rows = rows
        return [
            _aggregate_take(&self.table.aggregates[i], self._formats[i], rows)
            for i in range(self.table.n_aggregates)
        ]

    def _checked(self, entries):
        cdef const uint32_t[::1] view = entries
        cdef int64_t i
        for i in range(view.shape[0]):
            if view[i] >= self.table.n_entries:
                raise IndexError(f"entry {view[i]} does not exist; {self.table.n_entries} are reserved")
        return entries

    def __len__(self):
        return self.table.n_entries

    def reserve(self, n_entries):
        """Make all entries below `n_entries`; new ones are empty.

        Raises
        ------
        MemoryError
            If memory runs out. Nothing has changed then.
        """
        cdef Call call = begin_call(&self.guard, self)
        if not 0 <= n_entries <= UINT32_MAX:
            raise ValueError(f"{n_entries} entries: 0 to {UINT32_MAX} are possible")
        cdef uint32_t n = n_entries
        with nogil:
            accumulators_reserve(self.table, n)

    def update(self, batch, entries, rows=None):
        """Add rows of a batch to entries, in this order.

        Parameters
        ----------
        batch : RecordBatch or object with `__arrow_c_array__`
            Batch with the columns of the schema that the aggregates read.
        entries : numpy.ndarray of uint32, shape (n,)
            The entry of each row.
        rows : numpy.ndarray of uint32, shape (n,), or None
            The rows to take in, any number of times each, or None for all in the order of the batch.

        Raises
        ------
        SchemaError
            If a column is missing or differs from the schema's.
        IndexError
            If an entry does not exist, or a row.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef RecordBatch native = batch if isinstance(batch, RecordBatch) else RecordBatch(batch, any_type=True)
        cdef const uint32_t[::1] entry_view = self._checked(entries)
        cdef const uint32_t[::1] row_view
        cdef uint32_t[BLOCK_ROWS] numbers
        cdef int64_t i, done = 0, part, n = entry_view.shape[0]
        self.bind(native)
        if rows is not None:
            row_view = rows
            if row_view.shape[0] != n:
                raise ValueError(f"{n} entries but {row_view.shape[0]} rows")
            for i in range(n):
                if row_view[i] >= native.num_rows:
                    raise IndexError(f"row {row_view[i]} does not exist; the batch has {native.num_rows}")
            if n:
                with nogil:
                    accumulators_update(self.table, &entry_view[0], &row_view[0], n)
            return
        if n != native.num_rows:
            raise ValueError(f"{n} entries for the {native.num_rows} rows of the batch")
        with nogil:
            while done < n:
                part = min(n - done, <int64_t> BLOCK_ROWS)
                for i in range(part):
                    numbers[i] = <uint32_t> (done + i)
                accumulators_update(self.table, &entry_view[done], numbers, part)
                done += part

    def merge(self, uint32_t into, uint32_t other):
        """Merge the entry `other` into the entry `into`; `other` is empty afterwards.

        other's elements count as coming after into's: collect joins the lists in this order, and first, last and the
        ties of min_by and max_by follow it.
        """
        cdef Call call = begin_call(&self.guard, self)
        if into >= self.table.n_entries or other >= self.table.n_entries:
            raise IndexError(f"entries {into} and {other}; {self.table.n_entries} are reserved")
        if into == other:
            raise ValueError(f"entry {into} cannot be merged into itself")
        with nogil:
            accumulators_merge(self.table, into, other)

    def emit(self, entries):
        """Append the current results of entries (numpy.ndarray of uint32) to the result columns; the entries stay.

        Raises
        ------
        DataError
            If strings or lists would pass the 2 GiB, or 2**31 elements, that an Arrow array takes; no row is appended.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef const uint32_t[::1] view = self._checked(entries)
        if view.shape[0]:
            with nogil:
                accumulators_emit(self.table, &view[0], view.shape[0])

    def emit_range(self, uint32_t first, uint32_t n):
        """Append the current results of the entries first to first + n - 1 to the result columns."""
        cdef Call call = begin_call(&self.guard, self)
        _check_range(self.table, first, n)
        with nogil:
            accumulators_emit_range(self.table, first, n)

    def clear(self, entries):
        """Empty entries (numpy.ndarray of uint32) and free what they own."""
        cdef Call call = begin_call(&self.guard, self)
        cdef const uint32_t[::1] view = self._checked(entries)
        if view.shape[0]:
            with nogil:
                accumulators_clear(self.table, &view[0], view.shape[0])

    def clear_range(self, uint32_t first, uint32_t n):
        """Empty the entries first to first + n - 1 and free what they own."""
        cdef Call call = begin_call(&self.guard, self)
        _check_range(self.table, first, n)
        with nogil:
            accumulators_clear_range(self.table, first, n)

    def take(self, str over=None):
        """Return the result columns so far, one NativeArray per aggregate, and begin new ones.

        Parameters
        ----------
        over : str, optional
            What a result is the aggregate of, for messages.

        Raises
        ------
        DataError
            If a decimal has more digits than its type.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t unfit = self.unfit_result()
        if unfit != NOTHING:
            self.refuse_result(unfit, f"the entry of result row {unfit}" if over is None else over)
        return self.take_columns()

    def memory_bytes(self):
        """Bytes held: arrays over the entries, what entries own, and results not yet taken.

        Complexity: O(entries) for aggregates that own strings, sets or lists.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef AccumulatorTable* table = self.table
        cdef int64_t i, size = table.capacity if table.touched != NULL else 0
        for i in range(table.n_aggregates):
            size += table.capacity * _aggregate_entry_bytes(&table.aggregates[i])
            size += _aggregate_owned_bytes(&table.aggregates[i], table.n_entries)
        return size

    def _check(self):
        """Assert every invariant of the table; for tests."""
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t i
        cdef AccumulatorTable* table = self.table
        assert table.n_entries <= table.capacity
        for i in range(table.n_aggregates):
            assert _aggregate_is_sound(&table.aggregates[i], table.n_entries), f"{self._specs[i]} is not sound"
            if table.aggregates[i].lists == NULL:
                assert _result_length(&table.aggregates[i]) == table.rows, f"results of {self._specs[i]} are lost"


def are_shareable(Accumulators accumulators not None):
    """True if overlapping windows can share the accumulators of slices of time.

    They can if results do not depend on the order in which elements are added up: counts, sums of whole numbers and decimals, means
    of decimals, bits, least and greatest values of fixed width.
    """
    return _are_shareable(accumulators.table)


def inexact_merges(Accumulators accumulators not None):
    """Return the numbers of the aggregates that may differ, in a bit or more, if parts of an entry are added up apart and merged.

    Sums of floating-point numbers may, since they round after each element; and aggregates whose ties or order count: min_by,
    max_by, collect.
    """
    return [i for i in range(accumulators.table.n_aggregates) if not accumulators.table.aggregates[i].merges_exactly]
