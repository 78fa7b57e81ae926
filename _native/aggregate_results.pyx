"""Results of one aggregate: from what it holds per entry to a result column.

Results are written in two steps: first all memory is taken, for all aggregates, then nothing fails any more, so that
the columns of a result never differ in length.
"""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from flinkcore.errors import DataError

from flinkcore._native.aggregate_functions cimport Function
from flinkcore._native.arrow cimport native_array
from flinkcore._native.byte_values cimport ByteView, owned_bytes_view
from flinkcore._native.column_blocks cimport BLOCK_ROWS, ValueState, double_of_word, from_ordered_words, word_of_double
from flinkcore._native.memory cimport buffer_reserve
from flinkcore._native.result_columns cimport (
    result_append_bytes,
    result_append_states,
    result_append_words,
    result_reserve,
    result_take,
)
from flinkcore._native.value_lists cimport ValueList


cdef inline int64_t _entry(const uint32_t* entries, int64_t first, int64_t i) noexcept nogil:
    return entries[i] if entries != NULL else first + i


cdef int64_t _elements(const Aggregate* aggregate, const uint32_t* entries, uint32_t first, int64_t n) noexcept nogil:
    cdef int64_t i, elements = 0
    for i in range(n):
        elements += aggregate.lists[_entry(entries, first, i)].length
    return elements


cdef int64_t _data_bytes(const Aggregate* aggregate, const uint32_t* entries, uint32_t first, int64_t n) noexcept nogil:
    # Of strings, be they elements of lists or not.
    cdef int64_t i, e, data = 0
    for i in range(n):
        e = _entry(entries, first, i)
        if aggregate.lists != NULL:
            data += aggregate.lists[e].values.size if aggregate.lists[e].ends.size else 0
        elif aggregate.states[e] == ValueState.SOME_VALUE:
            data += aggregate.strings[e].length
    return data


cdef int64_t aggregate_result_bytes(
    const Aggregate* aggregate, const uint32_t* entries, uint32_t first, int64_t n
) noexcept nogil:
    if aggregate.lists != NULL:
        return _data_bytes(aggregate, entries, first, n) + 8 * _elements(aggregate, entries, first, n)
    return _data_bytes(aggregate, entries, first, n) if aggregate.strings != NULL else 0


cdef int aggregate_reserve_results(
    Aggregate* aggregate, const uint32_t* entries, uint32_t first, int64_t n
) except -1 nogil:
    cdef int64_t elements
    if aggregate.lists == NULL:
        return result_reserve(
            &aggregate.result, n, _data_bytes(aggregate, entries, first, n) if aggregate.strings != NULL else 0
        )
    elements = _elements(aggregate, entries, first, n)
    if aggregate.result.length + elements > INT32_MAX:
        with gil:
            name = aggregate.result.name.decode()
            raise DataError(
                f"collect of column {name!r}: one batch of results would hold more than 2,147,483,647 elements; "
                "collect fewer rows per key and window"
            )
    buffer_reserve(&aggregate.list_ends, (n + 1) * 4)
    if aggregate.list_ends.size == 0:  # where the first list begins
        (<int32_t*> aggregate.list_ends.data)[0] = 0
        aggregate.list_ends.size = 4
    return result_reserve(&aggregate.result, elements, _data_bytes(aggregate, entries, first, n))


cdef int _emit_words(
    Aggregate* aggregate, const uint8_t* touched, const uint32_t* entries, int64_t first, int64_t n
) except -1 nogil:
    # Results of at most BLOCK_ROWS entries, as words.
    cdef uint64_t[BLOCK_ROWS] words
    cdef uint8_t[BLOCK_ROWS] states
    cdef const uint8_t* known = touched
    cdef Function function = aggregate.function
    cdef int64_t i, count, nulls = 0
    if function == Function.COUNT_DISTINCT:
        for i in range(n):
            if aggregate.word_sets != NULL:
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
    elif entries == NULL:
        memcpy(states, known + first, n)
    else:
        for i in range(n):
            states[i] = known[entries[i]]
    if function == Function.LEAST:
        if aggregate.descending:
            for i in range(n):
                words[i] = ~words[i]
        from_ordered_words(aggregate.type, words, n)
    for i in range(n):
        nulls += states[i] != ValueState.SOME_VALUE
    if nulls:
        for i in range(n):
            words[i] = words[i] if states[i] == ValueState.SOME_VALUE else 0
    result_append_words(&aggregate.result, words, n)
    return result_append_states(&aggregate.result, states, n)


cdef int _emit_strings(
    Aggregate* aggregate, const uint32_t* entries, int64_t first, int64_t n
) except -1 nogil:
    cdef uint8_t[BLOCK_ROWS] states
    cdef ByteView nothing
    cdef int64_t i, e
    nothing.data = NULL
    nothing.length = 0
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
        ends[i] = <int32_t> aggregate.result.length
    aggregate.list_ends.size += n * 4
    return 0


cdef int aggregate_emit(
    Aggregate* aggregate, const uint8_t* touched, const uint32_t* entries, uint32_t first, int64_t n
) except -1 nogil:
    cdef int64_t done = 0, part
    cdef const uint32_t* chosen = NULL
    while done < n:
        part = min(n - done, <int64_t> BLOCK_ROWS)
        if entries != NULL:
            chosen = entries + done
        if aggregate.lists != NULL:
            _emit_lists(aggregate, chosen, first + done, part)
        elif aggregate.strings != NULL:
            _emit_strings(aggregate, chosen, first + done, part)
        else:
            _emit_words(aggregate, touched, chosen, first + done, part)
        done += part
    return 0


cdef NativeArray aggregate_take(Aggregate* aggregate, str format, int64_t rows):
    cdef NativeArray values = result_take(&aggregate.result, format)
    if aggregate.function != Function.COLLECT:
        return values
    return native_array("+l", rows, NULL, &aggregate.list_ends, NULL, [values], ["item"])
