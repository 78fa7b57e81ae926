"""Rows of one key in order of time, for joins: they are found by binary search, and leave at the front.

The only row of a list is in place; one of few rows is one array. One of many is an index of arrays of at most 256 rows, so that a row
that comes out of order moves few others, whatever the size of the list.
"""

from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memmove, memset

from flinkcore._native.array_pool cimport Pool, pool_give_back, pool_take
from flinkcore._native.memory cimport grow


cdef enum:
    BLOCK_ROWS = 256
    LEAST_ROWS = 4  # of an array

cdef const char* _WHAT = b"the rows of keys"


cdef inline OrderedRow* _rows(const RowBlock* block) noexcept nogil:
    return <OrderedRow*> block.store.span.entries


cdef inline RowBlock* _blocks(const RowBlock* index) noexcept nogil:
    return <RowBlock*> index.store.span.entries


cdef inline uint32_t _n_entries(const RowBlock* block) noexcept nogil:
    # Returns the number of entries of an array.
    return block.store.span.end - block.store.span.begin


cdef inline int _kind(uint32_t capacity) noexcept nogil:
    # Returns the kind of an array of rows in the pool.
    cdef int kind = 0
    while <uint32_t> LEAST_ROWS << kind < capacity:
        kind += 1
    return kind


cdef int _start_array(Pool* pool, RowBlock* block, uint32_t capacity) except -1 nogil:
    # Puts an empty array in place of what a block has.
    block.store.span.entries = pool_take(pool, _kind(capacity))
    block.store.span.begin = block.store.span.end = 0
    block.capacity = capacity
    block.is_index = 0
    return 0


cdef inline bint _has_room(RowBlock* block, int64_t entry_size) noexcept nogil:
    # Returns whether there is room for one more entry at the end. All entries may move to the start of the memory for that.
    cdef RowSpan* span = &block.store.span
    cdef char* entries = <char*> span.entries
    if span.end < block.capacity:
        return True
    if not span.begin or span.begin * 2 < block.capacity:
        return False
    memmove(entries, entries + span.begin * entry_size, (span.end - span.begin) * entry_size)
    span.end -= span.begin
    span.begin = 0
    return True


cdef int _reserve_row(Pool* pool, RowBlock* block) except -1 nogil:
    cdef RowBlock before = block[0]
    if _has_room(block, sizeof(OrderedRow)):
        return 0
    _start_array(pool, block, 2 * before.capacity)
    block.store.span.end = _n_entries(&before)
    memcpy(_rows(block), _rows(&before) + before.store.span.begin, _n_entries(&before) * sizeof(OrderedRow))
    pool_give_back(pool, before.store.span.entries, _kind(before.capacity))
    return 0


cdef int _reserve_block(RowBlock* index) except -1 nogil:
    if _has_room(index, sizeof(RowBlock)):
        return 0
    index.store.span.entries = grow(index.store.span.entries, 2 * index.capacity * sizeof(RowBlock), _WHAT)
    index.capacity *= 2
    return 0


cdef inline void* _open_gap(RowBlock* block, uint32_t number, int64_t entry_size) noexcept nogil:
    # Moves the entries from that number on by one, into reserved room, and returns the place of the new entry.
    cdef RowSpan* span = &block.store.span
    cdef char* gap = <char*> span.entries + (span.begin + number) * entry_size
    memmove(gap + entry_size, gap, (span.end - span.begin - number) * entry_size)
    span.end += 1
    return gap


cdef uint32_t _find_row(const RowBlock* block, int64_t time, bint after) noexcept nogil:
    cdef uint32_t low = block.store.span.begin, high = block.store.span.end, middle
    while low < high:
        middle = low + (high - low) // 2
        if _rows(block)[middle].time < time or (after and _rows(block)[middle].time == time):
            low = middle + 1
        else:
            high = middle
    return low


cdef uint32_t _find_block(const RowBlock* index, int64_t time, bint after) noexcept nogil:
    # Returns the first block with a row that is not before the place, or the last block.
    cdef uint32_t low = index.store.span.begin, high = index.store.span.end - 1, middle
    cdef const RowBlock* block
    cdef int64_t last
    while low < high:
        middle = low + (high - low) // 2
        block = &_blocks(index)[middle]
        last = _rows(block)[block.store.span.end - 1].time
        if last < time or (after and last == time):
            low = middle + 1
        else:
            high = middle
    return low


cdef int _insert_row(Pool* pool, RowBlock* block, int64_t time, int64_t row) except -1 nogil:
    # Adds a row to an array.
    cdef uint32_t number = _n_entries(block)
    cdef OrderedRow* added
    if number and _rows(block)[block.store.span.end - 1].time > time:
        number = _find_row(block, time, True) - block.store.span.begin
    _reserve_row(pool, block)
    added = <OrderedRow*> _open_gap(block, number, sizeof(OrderedRow))
    added.time = time
    added.row = row
    return 0


cdef int _make_index(RowBlock* rows) except -1 nogil:
    cdef RowBlock only = rows[0]
    rows.store.span.entries = grow(NULL, LEAST_ROWS * sizeof(RowBlock), _WHAT)
    rows.store.span.begin = 0
    rows.store.span.end = 1
    rows.capacity = LEAST_ROWS
    rows.is_index = 1
    _blocks(rows)[0] = only
    return 0


cdef uint32_t _split(Pool* pool, RowBlock* index, uint32_t block, bint at_end) except? 0 nogil:
    # Puts a block after one that is full: an empty one at the end, else with half of its rows. Returns the number of the full one.
    cdef RowBlock added
    cdef RowBlock* full
    cdef uint32_t half, number = block - index.store.span.begin
    _reserve_block(index)
    _start_array(pool, &added, BLOCK_ROWS)
    if not at_end:
        full = &_blocks(index)[index.store.span.begin + number]
        half = _n_entries(full) // 2
        added.store.span.end = half
        memcpy(_rows(&added), _rows(full) + (full.store.span.end - half), half * sizeof(OrderedRow))
        full.store.span.end -= half
    (<RowBlock*> _open_gap(index, number + 1, sizeof(RowBlock)))[0] = added
    return index.store.span.begin + number


cdef int rows_insert(Pool* pool, RowBlock* rows, int64_t time, int64_t row) except -1 nogil:
    cdef uint32_t number
    cdef RowBlock* block
    cdef OrderedRow only
    cdef bint at_end
    if rows.capacity == 0:
        rows.store.only.time = time
        rows.store.only.row = row
        rows.capacity = 1
        return 0
    if rows.capacity == 1:
        only = rows.store.only
        _start_array(pool, rows, LEAST_ROWS)
        _rows(rows)[0] = only
        rows.store.span.end = 1
    if not rows.is_index:
        if _n_entries(rows) < BLOCK_ROWS:
            return _insert_row(pool, rows, time, row)
        _make_index(rows)
    number = _find_block(rows, time, True)
    block = &_blocks(rows)[number]
    if _n_entries(block) == BLOCK_ROWS:
        at_end = number == rows.store.span.end - 1 and _rows(block)[block.store.span.end - 1].time <= time
        number = _split(pool, rows, number, at_end)
        block = &_blocks(rows)[number]
        if at_end or _rows(block)[block.store.span.end - 1].time <= time:
            block += 1
    return _insert_row(pool, block, time, row)


cdef RowPlace rows_find(const RowBlock* rows, int64_t time, bint after) noexcept nogil:
    cdef RowPlace place
    place.block = place.entry = 0
    if rows.capacity <= 1:
        if rows.capacity and (rows.store.only.time < time or (after and rows.store.only.time == time)):
            place.entry = 1
        return place
    if rows.is_index:
        place.block = _find_block(rows, time, after)
    place.entry = _find_row(rows_block(rows, place.block), time, after)
    return place


cdef OrderedRow* rows_before(const RowBlock* rows, RowPlace place) noexcept nogil:
    cdef const RowBlock* block
    if rows.capacity <= 1:
        return <OrderedRow*> &rows.store.only if rows.capacity and place.entry else NULL
    block = rows_block(rows, place.block)
    if place.entry > block.store.span.begin:
        return _rows(block) + place.entry - 1
    if not rows.is_index or place.block == rows.store.span.begin:
        return NULL
    block -= 1
    return _rows(block) + block.store.span.end - 1


cdef void rows_pop(Pool* pool, RowBlock* rows) noexcept nogil:
    cdef RowBlock* block
    if rows.capacity == 1:
        rows.capacity = 0
        return
    block = &_blocks(rows)[rows.store.span.begin] if rows.is_index else rows
    block.store.span.begin += 1
    if block.store.span.begin < block.store.span.end:
        return
    pool_give_back(pool, _rows(block), _kind(block.capacity))
    if rows.is_index:
        rows.store.span.begin += 1
        if rows.store.span.begin < rows.store.span.end:
            return
        free(rows.store.span.entries)
    memset(rows, 0, sizeof(RowBlock))


cdef void rows_free(RowBlock* rows) noexcept nogil:
    if rows.is_index:
        free(rows.store.span.entries)
    memset(rows, 0, sizeof(RowBlock))


cdef bint rows_are_sound(const RowBlock* rows) noexcept nogil:
    cdef RowPlace place = rows_start(rows)
    cdef const OrderedRow* row
    cdef int64_t last
    cdef bint is_first = True
    cdef uint32_t i
    if rows.capacity > 1 and _n_entries(rows) == 0:
        return False
    if rows.is_index:
        for i in range(rows.store.span.begin, rows.store.span.end):
            if _n_entries(&_blocks(rows)[i]) == 0 or _blocks(rows)[i].is_index:
                return False
    while True:
        row = rows_at(rows, &place)
        if row == NULL:
            return True
        if not is_first and row.time < last:
            return False
        last = row.time
        is_first = False
        place.entry += 1
