"""Sets of distinct values that can lose values again, as a count of distinct values in a frame that moves needs them."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy, memset

from flinkcore._native.column_values cimport ByteView, bytes_hash, mixed_hash


cdef enum:
    FIRST_SLOTS = 8
    MOST_SLOTS = 0x80000000
    WORD = -1  # as the length of a value


cdef inline uint32_t _home(const CountedValues* values, uint64_t code) noexcept nogil:
    return <uint32_t> (mixed_hash(code) & values.mask)


cdef inline bint _is_value(const CountedSlot* slot, uint64_t code, const uint8_t* data, int64_t length) noexcept nogil:
    return (
        slot.code == code
        and slot.length == length
        and (length <= 0 or memcmp(slot.data, data, length) == 0)
    )


cdef inline uint32_t _find(const CountedValues* values, uint64_t code, const uint8_t* data, int64_t length) noexcept nogil:
    # Returns the value's slot, or the empty one where it would go. There is a table.
    cdef uint32_t at = _home(values, code)
    while values.slots[at].count and not _is_value(&values.slots[at], code, data, length):
        at = (at + 1) & values.mask
    return at


cdef int _grow(CountedValues* values) except -1 nogil:
    cdef uint64_t n_slots = (<uint64_t> values.mask + 1) * 2 if values.slots != NULL else <uint64_t> FIRST_SLOTS, i
    cdef CountedValues grown
    cdef CountedSlot* slot
    cdef uint32_t at
    grown.slots = NULL
    if n_slots <= <uint64_t> MOST_SLOTS:
        grown.slots = <CountedSlot*> calloc(n_slots, sizeof(CountedSlot))
    if grown.slots == NULL:
        with gil:
            raise MemoryError(f"a set of distinct values with {n_slots} places for the frame of one key")
    grown.mask = <uint32_t> (n_slots - 1)
    grown.n = values.n
    for i in range(n_slots >> 1 if values.slots != NULL else 0):
        slot = &values.slots[i]
        if slot.count:
            at = _home(&grown, slot.code)
            while grown.slots[at].count:
                at = (at + 1) & grown.mask
            grown.slots[at] = slot[0]
    free(values.slots)
    values[0] = grown
    return 0


cdef int _add(CountedValues* values, uint64_t code, const uint8_t* data, int64_t length, int64_t times) except -1 nogil:
    cdef CountedSlot* slot
    cdef uint8_t* copy = NULL
    if values.slots == NULL or (<uint64_t> values.n + 1) * 2 > <uint64_t> values.mask + 1:
        _grow(values)
    slot = &values.slots[_find(values, code, data, length)]
    if slot.count == 0:
        if length > 0:
            copy = <uint8_t*> malloc(length)
            if copy == NULL:
                with gil:
                    raise MemoryError("a distinct value")
            memcpy(copy, data, length)
        slot.code = code
        slot.data = copy
        slot.length = length
        values.n += 1
    slot.count += times
    return 0


cdef void _remove(CountedValues* values, uint64_t code, const uint8_t* data, int64_t length) noexcept nogil:
    cdef uint32_t at, next, home
    if values.slots == NULL:
        return
    at = _find(values, code, data, length)
    if values.slots[at].count == 0:
        return
    values.slots[at].count -= 1
    if values.slots[at].count:
        return
    free(values.slots[at].data)
    values.n -= 1
    # Values behind the gap move into it, unless they are nearer to their home than the gap is.
    next = at
    while True:
        next = (next + 1) & values.mask
        if values.slots[next].count == 0:
            break
        home = _home(values, values.slots[next].code)
        if ((next - home) & values.mask) >= ((next - at) & values.mask):
            values.slots[at] = values.slots[next]
            at = next
    memset(&values.slots[at], 0, sizeof(CountedSlot))


cdef int counted_word_add(CountedValues* values, uint64_t word, int64_t times) except -1 nogil:
    return _add(values, word, NULL, WORD, times)


cdef int counted_bytes_add(CountedValues* values, ByteView view, int64_t times) except -1 nogil:
    return _add(values, bytes_hash(view), view.data, view.length, times)


cdef void counted_word_remove(CountedValues* values, uint64_t word) noexcept nogil:
    _remove(values, word, NULL, WORD)


cdef void counted_bytes_remove(CountedValues* values, ByteView view) noexcept nogil:
    _remove(values, bytes_hash(view), view.data, view.length)


cdef void counted_values_free(CountedValues* values) noexcept nogil:
    cdef uint64_t i
    if values.slots != NULL:
        for i in range(<uint64_t> values.mask + 1):
            free(values.slots[i].data)
        free(values.slots)
    memset(values, 0, sizeof(CountedValues))


cdef int64_t counted_values_memory(const CountedValues* values) noexcept nogil:
    cdef int64_t size = 0
    cdef uint64_t i
    if values.slots != NULL:
        size = (<int64_t> values.mask + 1) * <int64_t> sizeof(CountedSlot)
        for i in range(<uint64_t> values.mask + 1):
            size += values.slots[i].length if values.slots[i].length > 0 else 0
    return size


cdef bint counted_values_are_sound(const CountedValues* values) noexcept nogil:
    cdef uint64_t i
    cdef uint32_t found = 0
    cdef const CountedSlot* slot
    if values.slots == NULL:
        return values.n == 0
    for i in range(<uint64_t> values.mask + 1):
        slot = &values.slots[i]
        if slot.count < 0:
            return False
        if slot.count:
            found += 1
            if _find(values, slot.code, slot.data, slot.length) != i:
                return False
    return found == values.n and <uint64_t> found * 2 <= <uint64_t> values.mask + 1
