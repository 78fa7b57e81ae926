"""Lists of values in order of arrival, one per entry."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from flinkcore._native.column_blocks cimport ValueState
from flinkcore._native.memory cimport buffer_append_int64, buffer_free, buffer_reserve


cdef int word_lists_add(
    ValueList* lists, const uint32_t* entries, const uint64_t* words, const uint8_t* states, int64_t n
) except -1 nogil:
    cdef int64_t i
    cdef ValueList* values
    for i in range(n):
        values = &lists[entries[i]]
        buffer_reserve(&values.values, 8)
        if states[i] == ValueState.NULL_VALUE:
            buffer_append_int64(&values.nulls, values.length)
            buffer_append_int64(&values.values, 0)
        else:
            buffer_append_int64(&values.values, <int64_t> words[i])
        values.length += 1
    return 0


cdef int byte_lists_add(
    ValueList* lists, const uint32_t* entries, const ByteView* views, const uint8_t* states, int64_t n
) except -1 nogil:
    cdef int64_t i
    cdef ValueList* values
    for i in range(n):
        values = &lists[entries[i]]
        buffer_reserve(&values.ends, 8)
        if states[i] == ValueState.NULL_VALUE:
            buffer_append_int64(&values.nulls, values.length)
        elif views[i].length:
            buffer_reserve(&values.values, views[i].length)
            memcpy(values.values.data + values.values.size, views[i].data, views[i].length)
            values.values.size += views[i].length
        buffer_append_int64(&values.ends, values.values.size)
        values.length += 1
    return 0


cdef void _append_shifted(Buffer* into, const Buffer* other, int64_t shift) noexcept nogil:
    # The room is there.
    cdef int64_t i
    cdef int64_t* out = <int64_t*> (into.data + into.size)
    for i in range(other.size >> 3):
        out[i] = (<const int64_t*> other.data)[i] + shift
    into.size += other.size


cdef int value_list_merge(ValueList* into, ValueList* other) except -1 nogil:
    cdef ValueList taken
    if into.length == 0:
        taken = other[0]
        other[0] = into[0]
        into[0] = taken
    if other.length == 0:
        return 0
    buffer_reserve(&into.values, other.values.size)
    buffer_reserve(&into.ends, other.ends.size)
    buffer_reserve(&into.nulls, other.nulls.size)
    _append_shifted(&into.ends, &other.ends, into.values.size)
    _append_shifted(&into.nulls, &other.nulls, into.length)
    if other.values.size:
        memcpy(into.values.data + into.values.size, other.values.data, other.values.size)
    into.values.size += other.values.size
    into.length += other.length
    return 0


cdef void value_list_free(ValueList* values) noexcept nogil:
    buffer_free(&values.values)
    buffer_free(&values.ends)
    buffer_free(&values.nulls)
    memset(values, 0, sizeof(ValueList))


cdef int64_t value_list_memory(const ValueList* values) noexcept nogil:
    return values.values.capacity + values.ends.capacity + values.nulls.capacity


cdef bint value_list_is_sound(const ValueList* values, bint words) noexcept nogil:
    cdef int64_t i, previous = 0
    cdef const int64_t* numbers = <const int64_t*> values.ends.data
    if words:
        if values.values.size != values.length * 8 or values.ends.size:
            return False
    else:
        if values.ends.size != values.length * 8:
            return False
        for i in range(values.length):
            if numbers[i] < previous:
                return False
            previous = numbers[i]
        if previous != values.values.size:
            return False
    previous = -1
    numbers = <const int64_t*> values.nulls.data
    for i in range(values.nulls.size >> 3):
        if numbers[i] <= previous or numbers[i] >= values.length:
            return False
        previous = numbers[i]
    return True
