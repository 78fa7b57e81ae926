# Rows of one key in order of time, by number: an array while they are few, a list of arrays when they are many.
from libc.stdint cimport int64_t, uint32_t


cdef struct OrderedRow:
    int64_t time
    int64_t row


cdef struct RowBlock:
    # A list is a block whose entries are rows or, if it is an index, blocks of rows. Zero-initialise; free with rows_free.
    void* entries
    uint32_t begin      # of the entries in use
    uint32_t end
    uint32_t capacity
    uint32_t is_index


cdef struct RowPlace:
    # The place of a row in a list; valid until a row is added or removed.
    uint32_t block
    uint32_t entry


# Adds a row after all rows whose time is not later. O(log n), and at most as many rows move as a block has.
cdef int rows_insert(RowBlock* rows, int64_t time, int64_t row) except -1 nogil
# Finds the first row whose time is at least `time`, or if `after` is set, later. O(log n)
cdef RowPlace rows_find(const RowBlock* rows, int64_t time, bint after) noexcept nogil
# Returns the row before a place, or NULL.
cdef OrderedRow* rows_before(const RowBlock* rows, RowPlace place) noexcept nogil
# Removes the first row; there is one.
cdef void rows_pop(RowBlock* rows) noexcept nogil
cdef void rows_free(RowBlock* rows) noexcept nogil
# Returns the bytes that the list has allocated. O(blocks)
cdef int64_t rows_bytes(const RowBlock* rows) noexcept nogil
# Returns false if the order or the bounds of blocks are broken.
cdef bint rows_are_sound(const RowBlock* rows) noexcept nogil


cdef inline bint rows_are_empty(const RowBlock* rows) noexcept nogil:
    return rows.begin == rows.end


cdef inline const RowBlock* rows_block(const RowBlock* rows, uint32_t block) noexcept nogil:
    return <const RowBlock*> rows.entries + block if rows.is_index else rows


cdef inline RowPlace rows_start(const RowBlock* rows) noexcept nogil:
    cdef RowPlace place
    place.block = rows.begin if rows.is_index else 0
    place.entry = 0 if rows_are_empty(rows) else rows_block(rows, place.block).begin
    return place


cdef inline OrderedRow* rows_at(const RowBlock* rows, RowPlace* place) noexcept nogil:
    # Returns the row at a place, or NULL at the end; moves on to the next block where one ends.
    cdef const RowBlock* block
    if rows_are_empty(rows):
        return NULL
    block = rows_block(rows, place.block)
    if place.entry >= block.end:
        if not rows.is_index or place.block + 1 >= rows.end:
            return NULL
        place.block += 1
        block = rows_block(rows, place.block)
        place.entry = block.begin
    return <OrderedRow*> block.entries + place.entry


cdef inline OrderedRow* rows_first(const RowBlock* rows) noexcept nogil:
    cdef RowPlace place = rows_start(rows)
    return rows_at(rows, &place)
