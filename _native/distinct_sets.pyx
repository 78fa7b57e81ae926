"""Sets of distinct values, one per entry: of words, or of byte strings."""

from libc.stdint cimport UINT32_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset

from flinkcore._native.byte_values cimport bytes_hash
from flinkcore._native.memory cimport buffer_free, buffer_reserve

cdef enum:
    FIRST_SLOTS = 8
    MAX_SLOTS = 0x80000000


cdef void* _new_slots(uint64_t n_slots, size_t size) except NULL nogil:
    cdef void* slots = NULL
    if n_slots <= <uint64_t> MAX_SLOTS:
        slots = calloc(n_slots + 1, size)
    if slots == NULL:
        with gil:
            raise MemoryError(f"a set of distinct values with {n_slots} places for one key and window")
    return slots


# ---- words -------------------------------------------------------------------------------------------------------


cdef inline uint64_t* _word_slot(const WordSet* words, uint64_t word) noexcept nogil:
    # Where the word (not 0) is, or the empty slot where it belongs.
    cdef uint64_t at = (word ^ (word >> 32)) * <uint64_t> 0x9E3779B97F4A7C15
    at = (at ^ (at >> 32)) & words.mask
    while words.slots[at] != 0 and words.slots[at] != word:
        at = (at + 1) & words.mask
    return &words.slots[at]


cdef uint64_t _more_slots(bint has_slots, uint32_t mask) except 0 nogil:
    # Number of slots of a set that grows; its mask has 32 bits.
    if not has_slots:
        return FIRST_SLOTS
    if mask == UINT32_MAX:
        with gil:
            raise MemoryError("count_distinct holds at most 3,221,225,472 values of one key and window")
    return (<uint64_t> mask + 1) * 2


cdef int _word_set_grow(WordSet* words) except -1 nogil:
    cdef WordSet grown
    cdef uint64_t n_slots = _more_slots(words.slots != NULL, words.mask), at
    grown.slots = <uint64_t*> _new_slots(n_slots, sizeof(uint64_t))
    grown.only = 0
    grown.mask = <uint32_t> (n_slots - 1)
    grown.count = words.count
    if words.slots == NULL:
        if words.only == 0:
            grown.slots[n_slots] = 1
        else:
            _word_slot(&grown, words.only)[0] = words.only
    else:
        for at in range(<uint64_t> words.mask + 1):
            if words.slots[at]:
                _word_slot(&grown, words.slots[at])[0] = words.slots[at]
        grown.slots[n_slots] = words.slots[<uint64_t> words.mask + 1]
        free(words.slots)
    words[0] = grown
    return 0


cdef int _word_set_add(WordSet* words, uint64_t word) except -1 nogil:
    cdef uint64_t* slot
    if words.slots == NULL:
        if words.count == 0:
            words.only = word
            words.count = 1
            return 0
        if words.only == word:
            return 0
        _word_set_grow(words)
    if word == 0:
        slot = &words.slots[<uint64_t> words.mask + 1]
        words.count += slot[0] == 0
        slot[0] = 1
        return 0
    slot = _word_slot(words, word)
    if slot[0] == word:
        return 0
    if (<uint64_t> words.count + 1) * 4 > (<uint64_t> words.mask + 1) * 3:
        _word_set_grow(words)
        slot = _word_slot(words, word)
    slot[0] = word
    words.count += 1
    return 0


cdef int word_sets_add(WordSet* sets, const uint32_t* entries, const uint64_t* words, int64_t n) except -1 nogil:
    cdef int64_t i
    for i in range(n):
        _word_set_add(&sets[entries[i]], words[i])
    return 0


cdef int word_set_merge(WordSet* into, WordSet* other) except -1 nogil:
    cdef WordSet larger
    cdef uint64_t at
    if other.count > into.count:
        larger = other[0]
        other[0] = into[0]
        into[0] = larger
    if other.count == 0:
        return 0
    if other.slots == NULL:
        return _word_set_add(into, other.only)
    for at in range(<uint64_t> other.mask + 1):
        if other.slots[at]:
            _word_set_add(into, other.slots[at])
    if other.slots[<uint64_t> other.mask + 1]:
        _word_set_add(into, 0)
    return 0


cdef void word_set_free(WordSet* words) noexcept nogil:
    free(words.slots)
    memset(words, 0, sizeof(WordSet))


cdef int64_t word_set_memory(const WordSet* words) noexcept nogil:
    return 0 if words.slots == NULL else (<int64_t> words.mask + 2) * <int64_t> sizeof(uint64_t)


cdef bint word_set_is_sound(const WordSet* words) noexcept nogil:
    cdef uint64_t at, count = 0
    if words.slots == NULL:
        return words.count <= 1 and words.mask == 0
    for at in range(<uint64_t> words.mask + 1):
        if words.slots[at]:
            count += 1
            if _word_slot(words, words.slots[at]) != &words.slots[at]:
                return False
    count += words.slots[<uint64_t> words.mask + 1] != 0
    return count == words.count


# ---- byte strings ------------------------------------------------------------------------------------------------


cdef inline ByteView _stored(const ByteSet* strings, const ByteSlot* slot) noexcept nogil:
    cdef const uint8_t* place = strings.data.data + (slot.place - 1)
    cdef ByteView view
    memcpy(&view.length, place, sizeof(int64_t))
    view.data = place + sizeof(int64_t)
    return view


cdef ByteSlot* _byte_slot(const ByteSet* strings, uint64_t hash, ByteView view) noexcept nogil:
    # Where the byte string is, or the empty slot where it belongs.
    cdef uint64_t at = hash & strings.mask
    cdef ByteSlot* slot
    cdef ByteView stored
    while True:
        slot = &strings.slots[at]
        if slot.place == 0:
            return slot
        if slot.hash == hash:
            stored = _stored(strings, slot)
            if stored.length == view.length and (
                view.length == 0 or memcmp(stored.data, view.data, view.length) == 0
            ):
                return slot
        at = (at + 1) & strings.mask


cdef int _byte_set_grow(ByteSet* strings) except -1 nogil:
    cdef uint64_t n_slots = _more_slots(strings.slots != NULL, strings.mask), old, at
    cdef ByteSlot* slots = <ByteSlot*> _new_slots(n_slots, sizeof(ByteSlot))
    if strings.slots != NULL:
        for old in range(<uint64_t> strings.mask + 1):
            if strings.slots[old].place:
                at = strings.slots[old].hash & (n_slots - 1)
                while slots[at].place:
                    at = (at + 1) & (n_slots - 1)
                slots[at] = strings.slots[old]
        free(strings.slots)
    strings.slots = slots
    strings.mask = <uint32_t> (n_slots - 1)
    return 0


cdef int _byte_set_add(ByteSet* strings, uint64_t hash, ByteView view) except -1 nogil:
    cdef ByteSlot* slot
    if strings.slots == NULL or (<uint64_t> strings.count + 1) * 4 > (<uint64_t> strings.mask + 1) * 3:
        _byte_set_grow(strings)
    slot = _byte_slot(strings, hash, view)
    if slot.place:
        return 0
    buffer_reserve(&strings.data, <int64_t> sizeof(int64_t) + view.length)
    memcpy(strings.data.data + strings.data.size, &view.length, sizeof(int64_t))
    if view.length:
        memcpy(strings.data.data + strings.data.size + sizeof(int64_t), view.data, view.length)
    slot.hash = hash
    slot.place = <uint64_t> strings.data.size + 1
    strings.data.size += <int64_t> sizeof(int64_t) + view.length
    strings.count += 1
    return 0


cdef int byte_sets_add(ByteSet* sets, const uint32_t* entries, const ByteView* views, int64_t n) except -1 nogil:
    cdef int64_t i
    for i in range(n):
        _byte_set_add(&sets[entries[i]], bytes_hash(views[i]), views[i])
    return 0


cdef int byte_set_merge(ByteSet* into, ByteSet* other) except -1 nogil:
    cdef ByteSet larger
    cdef uint64_t at
    if other.count > into.count:
        larger = other[0]
        other[0] = into[0]
        into[0] = larger
    if other.count == 0:
        return 0
    for at in range(<uint64_t> other.mask + 1):
        if other.slots[at].place:
            _byte_set_add(into, other.slots[at].hash, _stored(other, &other.slots[at]))
    return 0


cdef void byte_set_free(ByteSet* strings) noexcept nogil:
    free(strings.slots)
    buffer_free(&strings.data)
    memset(strings, 0, sizeof(ByteSet))


cdef int64_t byte_set_memory(const ByteSet* strings) noexcept nogil:
    if strings.slots == NULL:
        return 0
    return (<int64_t> strings.mask + 2) * <int64_t> sizeof(ByteSlot) + strings.data.capacity


cdef bint byte_set_is_sound(const ByteSet* strings) noexcept nogil:
    cdef uint64_t at, count = 0
    cdef const ByteSlot* slot
    if strings.slots == NULL:
        return strings.count == 0
    for at in range(<uint64_t> strings.mask + 1):
        slot = &strings.slots[at]
        if slot.place:
            count += 1
            if _byte_slot(strings, slot.hash, _stored(strings, slot)) != slot:
                return False
    return count == strings.count
