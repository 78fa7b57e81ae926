"""One aggregate over a space of entries: what it holds per entry, and how that takes in values and merges."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from flinkcore._native.byte_values cimport ByteView, is_less, owned_bytes_free, owned_bytes_set, owned_bytes_view
from flinkcore._native.column_blocks cimport ValueState, double_of_word, is_word, word_of_double
from flinkcore._native.distinct_sets cimport (
    byte_set_free,
    byte_set_is_sound,
    byte_set_memory,
    byte_set_merge,
    byte_sets_add,
    word_set_free,
    word_set_is_sound,
    word_set_memory,
    word_set_merge,
    word_sets_add,
)
from flinkcore._native.memory cimport buffer_free
from flinkcore._native.result_columns cimport result_free, result_memory
from flinkcore._native.value_lists cimport (
    byte_lists_add,
    value_list_free,
    value_list_is_sound,
    value_list_memory,
    value_list_merge,
    word_lists_add,
)


# ---- memory ------------------------------------------------------------------------------------------------------


cdef void* _grown(void* memory, int64_t count, size_t size) except NULL nogil:
    cdef void* grown = realloc(memory, <size_t> count * size)
    if grown == NULL:
        with gil:
            raise MemoryError(f"{<size_t> count * size} bytes for accumulators")
    return grown


cdef int aggregate_reserve(Aggregate* aggregate, int64_t capacity) except -1 nogil:
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
    return 0


cdef void aggregate_start(Aggregate* aggregate, int64_t first, int64_t n) noexcept nogil:
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


cdef void aggregate_clear(Aggregate* aggregate, int64_t first, int64_t n) noexcept nogil:
    if n == 1 and aggregate.parts == Part.WORD_PART:
        aggregate.words[first] = aggregate.empty_word
        return
    _free_owned(aggregate, first, n)
    aggregate_start(aggregate, first, n)


cdef void aggregate_free(Aggregate* aggregate, int64_t n) noexcept nogil:
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
    result_free(&aggregate.result)
    buffer_free(&aggregate.list_ends)


cdef int64_t aggregate_entry_bytes(const Aggregate* aggregate) noexcept nogil:
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
    return <int64_t> size


cdef int64_t aggregate_owned_bytes(const Aggregate* aggregate, int64_t n) noexcept nogil:
    cdef int parts = aggregate.parts
    cdef int64_t e, size = result_memory(&aggregate.result) + aggregate.list_ends.capacity
    for e in range(n if parts >= Part.BYTES_PART else 0):
        size += aggregate.strings[e].capacity if parts & Part.BYTES_PART else 0
        size += aggregate.key_strings[e].capacity if parts & Part.KEY_BYTES_PART else 0
        size += word_set_memory(&aggregate.word_sets[e]) if parts & Part.WORD_SET_PART else 0
        size += byte_set_memory(&aggregate.byte_sets[e]) if parts & Part.BYTE_SET_PART else 0
        size += value_list_memory(&aggregate.lists[e]) if parts & Part.LIST_PART else 0
    return size


# ---- values in ---------------------------------------------------------------------------------------------------


cdef void _sum(Aggregate* aggregate, const uint32_t* entries, const uint64_t* values, int64_t n) noexcept nogil:
    # Integers wrap around as Java's do.
    cdef uint64_t* words = aggregate.words
    cdef int64_t i
    if aggregate.whole_numbers:
        for i in range(n):
            words[entries[i]] += values[i]
    else:
        for i in range(n):
            words[entries[i]] = word_of_double(double_of_word(words[entries[i]]) + double_of_word(values[i]))


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


cdef void _least_words(Aggregate* aggregate, const uint32_t* entries, const uint64_t* values, int64_t n) noexcept nogil:
    cdef int64_t* words = <int64_t*> aggregate.words
    cdef int64_t i, value, reflect = -1 if aggregate.descending else 0
    for i in range(n):
        value = <int64_t> values[i] ^ reflect
        words[entries[i]] = value if value < words[entries[i]] else words[entries[i]]


cdef int _put(Aggregate* aggregate, uint32_t entry, const ValueBlock* values, int64_t i) except -1 nogil:
    cdef uint8_t state = values.states[i] if values.with_states else <uint8_t> ValueState.SOME_VALUE
    if values.words != NULL:
        aggregate.words[entry] = values.words[i]
    elif state == ValueState.SOME_VALUE:
        owned_bytes_set(&aggregate.strings[entry], values.views[i])
    aggregate.states[entry] = state
    return 0


cdef inline bint _is_better(const Aggregate* aggregate, bint decimal, ByteView view, ByteView best) noexcept nogil:
    return is_less(best, view, decimal) if aggregate.descending else is_less(view, best, decimal)


cdef int _least_bytes(
    Aggregate* aggregate, const uint32_t* entries, const ValueBlock* values, int64_t n
) except -1 nogil:
    cdef bint decimal = aggregate.type == ColumnType.DECIMAL128
    cdef int64_t i
    cdef uint32_t e
    for i in range(n):
        e = entries[i]
        if aggregate.states[e] == ValueState.NO_VALUE or _is_better(
            aggregate, decimal, values.views[i], owned_bytes_view(&aggregate.strings[e])
        ):
            _put(aggregate, e, values, i)
    return 0


cdef int _first(Aggregate* aggregate, const uint32_t* entries, const ValueBlock* values, int64_t n) except -1 nogil:
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


cdef int aggregate_update(
    Aggregate* aggregate, const Selection* selection, const ValueBlock* values, const ValueBlock* by
) except -1 nogil:
    cdef const uint32_t* entries = selection.entries
    cdef uint64_t* words = aggregate.words
    cdef int64_t i, n = selection.n
    cdef Function function = aggregate.function
    if function == Function.COUNT:
        for i in range(n):
            words[entries[i]] += 1
    elif function == Function.SUM:
        _sum(aggregate, entries, values.words, n)
    elif function == Function.MEAN:
        _mean(aggregate, entries, values.words, n)
    elif function == Function.LEAST:
        if words == NULL:
            return _least_bytes(aggregate, entries, values, n)
        _least_words(aggregate, entries, values.words, n)
    elif function == Function.FIRST:
        return _first(aggregate, entries, values, n)
    elif function == Function.LAST:
        return _last(aggregate, entries, values, n)
    elif function == Function.LEAST_BY:
        return _least_by(aggregate, entries, values, by, n)
    elif function == Function.COUNT_DISTINCT:
        if aggregate.word_sets != NULL:
            return word_sets_add(aggregate.word_sets, entries, values.words, n)
        return byte_sets_add(aggregate.byte_sets, entries, values.views, n)
    elif values.words != NULL:
        return word_lists_add(aggregate.lists, entries, values.words, values.states, n)
    else:
        return byte_lists_add(aggregate.lists, entries, values.views, values.states, n)
    if aggregate.parts & Part.STATE_PART:  # of a sum, least or greatest word, once nulls have come
        for i in range(n):
            aggregate.states[entries[i]] = ValueState.SOME_VALUE
    return 0


# ---- merging -----------------------------------------------------------------------------------------------------


cdef void _take_over(Aggregate* aggregate, uint32_t into, uint32_t other) noexcept nogil:
    # other's value instead of into's; what into owned is other's to free.
    cdef OwnedBytes strings
    if aggregate.words != NULL:
        aggregate.words[into] = aggregate.words[other]
    else:
        strings = aggregate.strings[into]
        aggregate.strings[into] = aggregate.strings[other]
        aggregate.strings[other] = strings
    aggregate.states[into] = aggregate.states[other]


cdef void _merge_least_bytes(Aggregate* aggregate, uint32_t into, uint32_t other) noexcept nogil:
    if aggregate.states[other] != ValueState.NO_VALUE and (
        aggregate.states[into] == ValueState.NO_VALUE
        or _is_better(
            aggregate,
            aggregate.type == ColumnType.DECIMAL128,
            owned_bytes_view(&aggregate.strings[other]),
            owned_bytes_view(&aggregate.strings[into]),
        )
    ):
        _take_over(aggregate, into, other)


cdef void _merge_least_by(Aggregate* aggregate, uint32_t into, uint32_t other) noexcept nogil:
    cdef OwnedBytes key
    if aggregate.states[other] == ValueState.NO_VALUE:
        return
    if aggregate.states[into] != ValueState.NO_VALUE:
        if aggregate.keys != NULL:
            if <int64_t> aggregate.keys[other] >= <int64_t> aggregate.keys[into]:
                return
        elif not _is_better(
            aggregate,
            aggregate.by_type == ColumnType.DECIMAL128,
            owned_bytes_view(&aggregate.key_strings[other]),
            owned_bytes_view(&aggregate.key_strings[into]),
        ):
            return
    if aggregate.keys != NULL:
        aggregate.keys[into] = aggregate.keys[other]
    else:
        key = aggregate.key_strings[into]
        aggregate.key_strings[into] = aggregate.key_strings[other]
        aggregate.key_strings[other] = key
    _take_over(aggregate, into, other)


cdef int aggregate_merge(Aggregate* aggregate, uint32_t into, uint32_t other) except -1 nogil:
    cdef uint64_t* words = aggregate.words
    cdef uint8_t* states = aggregate.states
    cdef Function function = aggregate.function
    if function == Function.COUNT or (function == Function.SUM and aggregate.whole_numbers):
        words[into] += words[other]
    elif function == Function.SUM or function == Function.MEAN:
        words[into] = word_of_double(double_of_word(words[into]) + double_of_word(words[other]))
        if aggregate.counts != NULL:
            aggregate.counts[into] += aggregate.counts[other]
    elif function == Function.LEAST and words != NULL:
        if <int64_t> words[other] < <int64_t> words[into]:
            words[into] = words[other]
    elif function == Function.LEAST:
        _merge_least_bytes(aggregate, into, other)
    elif function == Function.FIRST:
        if states[into] == ValueState.NO_VALUE:
            _take_over(aggregate, into, other)
    elif function == Function.LAST:
        if states[other] != ValueState.NO_VALUE:
            _take_over(aggregate, into, other)
    elif function == Function.LEAST_BY:
        _merge_least_by(aggregate, into, other)
    elif function == Function.COLLECT:
        return value_list_merge(&aggregate.lists[into], &aggregate.lists[other])
    elif aggregate.word_sets != NULL:
        return word_set_merge(&aggregate.word_sets[into], &aggregate.word_sets[other])
    else:
        return byte_set_merge(&aggregate.byte_sets[into], &aggregate.byte_sets[other])
    if states != NULL and states[into] == ValueState.NO_VALUE:  # of a sum, least or greatest word
        states[into] = states[other]
    return 0


# ---- invariants --------------------------------------------------------------------------------------------------


cdef bint aggregate_is_sound(const Aggregate* aggregate, int64_t n) noexcept nogil:
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
        if parts & Part.BYTE_SET_PART and not byte_set_is_sound(&aggregate.byte_sets[e]):
            return False
        if parts & Part.LIST_PART and not value_list_is_sound(&aggregate.lists[e], is_word(aggregate.type)):
            return False
    return True
