# Sort keys of rows: a fixed number of words that compare as unsigned numbers, and maybe a tail of bytes, which compares after them.
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy, memset

from flinkcore._native.memory cimport allocated_bytes, grow


cdef struct KeyShape:
    int64_t n_words
    bint has_tails


cdef struct SortKeys:
    # Of the rows of a call.
    const uint64_t* words      # (n, n_words)
    const int64_t* tail_ends   # (n + 1,) into tails
    const uint8_t* tails


cdef struct SortKey:
    const uint64_t* words
    const uint8_t* tail
    int64_t tail_size


# A key that is kept is `stored_words` words: where there are tails, the address of a block with the size of its tail and the tail;
# then its own words.


cdef inline int64_t stored_words(const KeyShape* shape) noexcept nogil:
    return shape.n_words + shape.has_tails


cdef inline int sort_keys_of(
    SortKeys* keys,
    const KeyShape* shape,
    const uint64_t[:, ::1] words,
    const int64_t[::1] tail_ends,
    const uint8_t[::1] tails,
    int64_t n,
) except -1:
    # Fills in the keys of n rows, whose columns the caller owns. Raises ValueError if they are not one for each.
    if words.shape[0] != n or words.shape[1] != shape.n_words:
        raise ValueError(f"sort keys must have {shape.n_words} words for each row")
    if shape.has_tails and (tail_ends is None or tails is None or tail_ends.shape[0] != n + 1):
        raise ValueError("sort keys must have a tail for each row")
    memset(keys, 0, sizeof(SortKeys))
    if n and shape.n_words:
        keys.words = &words[0, 0]
    if shape.has_tails:
        keys.tail_ends = &tail_ends[0]
        keys.tails = &tails[0] if tails.shape[0] else NULL
    return 0


cdef inline SortKey sort_key_at(const SortKeys* keys, const KeyShape* shape, int64_t i) noexcept nogil:
    cdef SortKey key
    key.words = keys.words + i * shape.n_words
    key.tail = NULL
    key.tail_size = 0
    if shape.has_tails:
        key.tail = keys.tails + keys.tail_ends[i]
        key.tail_size = keys.tail_ends[i + 1] - keys.tail_ends[i]
    return key


cdef inline SortKey stored_key(const KeyShape* shape, const uint64_t* stored) noexcept nogil:
    cdef SortKey key
    cdef const uint64_t* block
    key.words = stored + shape.has_tails
    key.tail = NULL
    key.tail_size = 0
    if shape.has_tails:
        block = <const uint64_t*> stored[0]
        key.tail = <const uint8_t*> (block + 1)
        key.tail_size = <int64_t> block[0]
    return key


cdef inline int sort_key_compare(const KeyShape* shape, const SortKey* a, const SortKey* b) noexcept nogil:
    # Negative if the first key comes first.
    cdef int64_t i
    cdef int order = 0
    for i in range(shape.n_words):
        if a.words[i] != b.words[i]:
            return 1 if a.words[i] > b.words[i] else -1
    if a.tail_size and b.tail_size:
        order = memcmp(a.tail, b.tail, min(a.tail_size, b.tail_size))
    return order if order else (a.tail_size > b.tail_size) - (a.tail_size < b.tail_size)


cdef inline uint64_t* tail_block(
    const KeyShape* shape, const SortKey* key, const char* what, int64_t* bytes
) except? NULL nogil:
    # Returns a copy of a key's tail, to be owned by a stored key, or NULL where there are none; adds its bytes.
    cdef uint64_t* block
    if not shape.has_tails:
        return NULL
    block = <uint64_t*> grow(NULL, 8 + key.tail_size, what)
    block[0] = <uint64_t> key.tail_size
    if key.tail_size:
        memcpy(block + 1, key.tail, key.tail_size)
    bytes[0] += allocated_bytes(8 + key.tail_size)
    return block


cdef inline void sort_key_write(
    const KeyShape* shape, uint64_t* stored, const SortKey* key, uint64_t* block
) noexcept nogil:
    if shape.has_tails:
        stored[0] = <uint64_t> block
    if shape.n_words:
        memcpy(stored + shape.has_tails, key.words, shape.n_words * 8)


cdef inline void sort_key_drop(const KeyShape* shape, uint64_t* stored, int64_t* bytes) noexcept nogil:
    cdef uint64_t* block
    if shape.has_tails:
        block = <uint64_t*> stored[0]
        bytes[0] -= allocated_bytes(8 + <int64_t> block[0])
        free(block)
