# Rows of one key in order of time, by number: one in place, an array while they are few, a list of arrays when they are many.
from libc.stdint cimport int64_t, uint32_t

from flinkcore._native.array_pool cimport Pool


cdef struct OrderedRow:
    int64_t time
    int64_t row


cdef struct RowSpan:
    void* entries  # OrderedRow or, of an index, RowBlock
    uint32_t begin  # of the entries in use
    uint32_t end


cdef union RowStore:
    OrderedRow only
    RowSpan span


cdef struct RowBlock:
    # A list is a block whose entries are rows or, if it is an index, blocks of rows. Zero-initialise; free with rows_free. Arrays of rows
    # are of the pool of the kernel.
    RowStore store
    uint32_t capacity  # entries; 0: no row, 1: the only row is in place
    uint32_t is_index


cdef struct RowPlace:
    # The place of a row in a list; valid until a row is added or removed.
    uint32_t block
    uint32_t entry


# Adds a row after all rows whose time is not later. O(log n), and at most as many rows move as a block has.
cdef int rows_insert(Pool* pool, RowBlock* rows, int64_t time, int64_t row) except -1 nogil
# Finds the first row whose time is at least `time`, or if `after` is set, later. O(log n)
cdef RowPlace rows_find(const RowBlock* rows, int64_t time, bint after) noexcept nogil
# Returns the row before a place, or NULL.
cdef OrderedRow* rows_before(const RowBlock* rows, RowPlace place) noexcept nogil
# Removes the first row; there is one.
cdef void rows_pop(Pool* pool, RowBlock* rows) noexcept nogil
# Frees what is not of the pool.
cdef void rows_free(RowBlock* rows) noexcept nogil
# Returns false if the order or the bounds of blocks are broken.
cdef bint rows_are_sound(const RowBlock* rows) noexcept nogil


cdef inline bint rows_are_empty(const RowBlock* rows) noexcept nogil:
    return rows.capacity == 0


cdef inline const RowBlock* rows_block(const RowBlock* rows, uint32_t block) noexcept nogil:
    return <const RowBlock*> rows.store.span.entries + block if rows.is_index else rows


cdef inline RowPlace rows_start(const RowBlock* rows) noexcept nogil:
    cdef RowPlace place
    place.block = place.entry = 0
    if rows.capacity > 1:
        place.block = rows.store.span.begin if rows.is_index else 0
        place.entry = rows_block(rows, place.block).store.span.begin
    return place


cdef inline OrderedRow* rows_at(const RowBlock* rows, RowPlace* place) noexcept nogil:
    # Returns the row at a place, or NULL at the end; moves on to the next block where one ends.
    cdef const RowBlock* block
    if rows.capacity <= 1:
        return <OrderedRow*> &rows.store.only if place.entry < rows.capacity else NULL
    block = rows_block(rows, place.block)
    if place.entry >= block.store.span.end:
        if not rows.is_index or place.block + 1 >= rows.store.span.end:
            return NULL
        place.block += 1
        block = rows_block(rows, place.block)
        place.entry = block.store.span.begin
    return <OrderedRow*> block.store.span.entries + place.entry


cdef inline OrderedRow* rows_first(const RowBlock* rows) noexcept nogil:
    cdef RowPlace place = rows_start(rows)
    return rows_at(rows, &place)
