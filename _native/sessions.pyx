"""Live sessions by key, and their timers: what a session window operator remembers.

Every key holds a short list of live sessions by start; a key without one is forgotten. Each session has one valid timer.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy, memset

from flinkcore._native.aggregates cimport accumulators_clear_range, accumulators_reserve
from flinkcore._native.keys cimport KeyBatch
from flinkcore._native.memory cimport grow, prefetch_all
from flinkcore._native.session_timers cimport SessionTimer, session_timer_push, session_timers_free

cdef const char* _WHAT = b"session state"  # that memory is for


# ---- keys --------------------------------------------------------------------------------------------------------


cdef int session_keys_resize(SessionStore* store, uint64_t n_slots) except -1 nogil:
    cdef SessionSlot* slots = <SessionSlot*> calloc(n_slots, sizeof(SessionSlot))
    cdef uint64_t at, old
    if slots == NULL:
        with gil:
            raise MemoryError(f"{n_slots * sizeof(SessionSlot)} bytes for the key index of sessions")
    if store.slots != NULL:
        for old in range(store.mask + 1):
            if store.slots[old].number:
                at = store.slots[old].hash & (n_slots - 1)
                while slots[at].number:
                    at = (at + 1) & (n_slots - 1)
                slots[at] = store.slots[old]
    free(store.slots)
    store.slots = slots
    store.mask = n_slots - 1
    return 0


cdef inline bint _same_key(const SessionStore* store, const SessionKey* key, const KeyBatch* keys, int64_t row) noexcept nogil:
    cdef int64_t length
    if key.hash != keys.hashes[row]:
        return False
    if not store.bytes_keys:
        return key.value == keys.values[row]
    length = keys.offsets[row + 1] - keys.offsets[row]
    return key.length == length and (length == 0 or memcmp(key.data, keys.data + keys.offsets[row], length) == 0)


cdef uint32_t session_key_find(const SessionStore* store, const KeyBatch* keys, int64_t row) noexcept nogil:
    cdef uint32_t hash = <uint32_t> keys.hashes[row]
    cdef uint64_t at = hash & store.mask
    cdef const SessionSlot* slot = &store.slots[at]
    while slot.number:
        if slot.hash == hash and _same_key(store, &store.keys[slot.number - 1], keys, row):
            return slot.number - 1
        at = (at + 1) & store.mask
        slot = &store.slots[at]
    return NOTHING


cdef int64_t session_key_add(SessionStore* store, const KeyBatch* keys, int64_t row) except -1 nogil:
    cdef uint32_t number
    cdef SessionKey* key
    cdef uint64_t at
    cdef int64_t length
    cdef uint8_t* data = NULL
    if (<uint64_t> store.live_keys + 1) * 3 > (store.mask + 1) * 2:
        session_keys_resize(store, (store.mask + 1) * 2)
    if store.free_key == NOTHING and store.n_keys == store.keys_capacity:
        store.keys = <SessionKey*> grow(store.keys, (<int64_t> store.keys_capacity * 2 + 64) * sizeof(SessionKey), _WHAT)
        store.keys_capacity = store.keys_capacity * 2 + 64
    if store.bytes_keys:
        length = keys.offsets[row + 1] - keys.offsets[row]
        data = <uint8_t*> malloc(length + 1)
        if data == NULL:
            with gil:
                raise MemoryError(f"{length} bytes for a key")
        if length:
            memcpy(data, keys.data + keys.offsets[row], length)
    if store.free_key != NOTHING:
        number = store.free_key
        store.free_key = store.keys[number].next_free
        if store.free_key != NOTHING:
            prefetch_all(&store.keys[store.free_key], sizeof(SessionKey))
    else:
        number = store.n_keys
        store.n_keys += 1
    key = &store.keys[number]
    memset(key, 0, sizeof(SessionKey))
    key.hash = keys.hashes[row]
    key.first = NOTHING
    if store.bytes_keys:
        key.data = data
        key.length = length
    else:
        key.value = keys.values[row]
    at = <uint32_t> key.hash & store.mask
    while store.slots[at].number:
        at = (at + 1) & store.mask
    store.slots[at].number = number + 1
    store.slots[at].hash = <uint32_t> key.hash
    store.live_keys += 1
    return number


cdef void _remove_key(SessionStore* store, uint32_t number) noexcept nogil:
    # Linear probing without tombstones: later members of the run move up.
    cdef SessionKey* key = &store.keys[number]
    cdef uint64_t at = <uint32_t> key.hash & store.mask, hole, home
    while store.slots[at].number != number + 1:
        at = (at + 1) & store.mask
    hole = at
    while True:
        at = (at + 1) & store.mask
        if store.slots[at].number == 0:
            break
        home = store.slots[at].hash & store.mask
        if ((at - home) & store.mask) >= ((at - hole) & store.mask):
            store.slots[hole] = store.slots[at]
            hole = at
    store.slots[hole].number = 0
    free(key.data)
    key.data = NULL
    key.next_free = store.free_key
    store.free_key = number
    store.live_keys -= 1


# ---- sessions ----------------------------------------------------------------------------------------------------


cdef int64_t session_add(SessionStore* store, uint32_t key, int64_t start, int64_t end) except -1 nogil:
    cdef uint32_t number, capacity
    cdef uint32_t* link = &store.keys[key].first
    if store.free_session == NOTHING:
        if store.n_sessions == store.sessions_capacity:
            capacity = store.sessions_capacity * 2 + 64
            store.sessions = <Session*> grow(store.sessions, <int64_t> capacity * sizeof(Session), _WHAT)
            accumulators_reserve(store.table, capacity << 1 if store.twins else capacity)
            store.sessions_capacity = capacity
        number = store.n_sessions
        store.sessions[number].generation = 0
        store.n_sessions += 1
    else:
        number = store.free_session
        store.free_session = store.sessions[number].next
        if store.free_session != NOTHING:
            prefetch_all(&store.sessions[store.free_session], sizeof(Session))
    store.sessions[number].start = start
    store.sessions[number].end = end
    store.sessions[number].key = key
    while link[0] != NOTHING and store.sessions[link[0]].start < start:
        link = &store.sessions[link[0]].next
    store.sessions[number].next = link[0]
    link[0] = number
    store.live_sessions += 1
    return number


cdef int session_arm(SessionStore* store, uint32_t session, int64_t due) except -1 nogil:
    cdef SessionTimer timer
    store.sessions[session].generation += 1
    store.sessions[session].due = due
    timer.due = due
    timer.session = session
    timer.generation = store.sessions[session].generation
    return session_timer_push(&store.timers, timer)


cdef void session_drop(SessionStore* store, uint32_t number) noexcept nogil:
    # The caller has unlinked it from its key and emptied its accumulators.
    store.sessions[number].generation += 1
    store.sessions[number].next = store.free_session
    store.free_session = number
    store.live_sessions -= 1


cdef int session_retire(SessionStore* store, uint32_t number) except -1 nogil:
    cdef SessionKey* key = &store.keys[store.sessions[number].key]
    cdef uint32_t* link = &key.first
    while link[0] != number:
        link = &store.sessions[link[0]].next
    link[0] = store.sessions[number].next
    accumulators_clear_range(store.table, session_entry(store, number), 2 if store.twins else 1)
    if key.first == NOTHING:
        _remove_key(store, store.sessions[number].key)
    session_drop(store, number)
    return 0


cdef void session_store_free(SessionStore* store) noexcept nogil:
    cdef uint32_t i
    for i in range(store.n_keys):
        free(store.keys[i].data)
    free(store.keys)
    free(store.slots)
    free(store.sessions)
    session_timers_free(&store.timers)
