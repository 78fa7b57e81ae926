"""Rows of one key in order of time, for joins: they are found by binary search, and leave at the front.

A list of few rows is one array. One of many is an index of arrays of at most 256 rows, so that a row that comes out of order
moves few others, whatever the size of the list.
"""

from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memmove, memset

from flinkcore._native.memory cimport allocated_bytes, grow


cdef enum:
    BLOCK_ROWS = 256

cdef const char* _WHAT = b"the rows of keys"


cdef inline OrderedRow* _rows(const RowBlock* block) noexcept nogil:
    return <OrderedRow*> block.entries


cdef inline RowBlock* _blocks(const RowBlock* index) noexcept nogil:
    return <RowBlock*> index.entries


cdef int _reserve(RowBlock* block, int64_t entry_size, uint32_t least) except -1 nogil:
    # Makes room for one more entry at the end, which may move all entries to the start of the memory.
    cdef char* entries = <char*> block.entries
    cdef uint32_t capacity
    if block.end < block.capacity:
        return 0
    if block.begin and block.begin * 2 >= block.capacity:
        memmove(entries, entries + block.begin * entry_size, (block.end - block.begin) * entry_size)
        block.end -= block.begin
        block.begin = 0
        return 0
    capacity = max(least, (4 if block.capacity == 1 else 2) * block.capacity)
    block.entries = grow(block.entries, capacity * entry_size, _WHAT)
    block.capacity = capacity
    return 0


cdef inline void* _open_gap(RowBlock* block, uint32_t number, int64_t entry_size) noexcept nogil:
    # Moves the entries from that number on by one, into reserved room, and returns the place of the new entry.
    cdef char* gap = <char*> block.entries + (block.begin + number) * entry_size
    memmove(gap + entry_size, gap, (block.end - block.begin - number) * entry_size)
    block.end += 1
    return gap


cdef uint32_t _find_row(const RowBlock* block, int64_t time, bint after) noexcept nogil:
    cdef uint32_t low = block.begin, high = block.end, middle
    while low < high:
        middle = low + (high - low) // 2
        if _rows(block)[middle].time < time or (after and _rows(block)[middle].time == time):
            low = middle + 1
        else:
            high = middle
    return low


cdef uint32_t _find_block(const RowBlock* index, int64_t time, bint after) noexcept nogil:
    # Returns the first block with a row that is not before the place, or the last block.
    cdef uint32_t low = index.begin, high = index.end - 1, middle
    cdef const RowBlock* block
    cdef int64_t last
    while low < high:
        middle = low + (high - low) // 2
        block = &_blocks(index)[middle]
        last = _rows(block)[block.end - 1].time
        if last < time or (after and last == time):
            low = middle + 1
        else:
            high = middle
    return low


cdef int _insert_row(RowBlock* block, int64_t time, int64_t row) except -1 nogil:
    cdef uint32_t number = block.end - block.begin
    cdef OrderedRow* added
    if number and _rows(block)[block.end - 1].time > time:
        number = _find_row(block, time, True) - block.begin
    _reserve(block, sizeof(OrderedRow), 1)
    added = <OrderedRow*> _open_gap(block, number, sizeof(OrderedRow))
    added.time = time
    added.row = row
    return 0


cdef int _make_index(RowBlock* rows) except -1 nogil:
    cdef RowBlock only = rows[0]
    cdef void* entries = grow(NULL, 4 * sizeof(RowBlock), _WHAT)
    rows.entries = entries
    rows.begin = 0
    rows.end = 1
    rows.capacity = 4
    rows.is_index = 1
    _blocks(rows)[0] = only
    return 0


cdef uint32_t _split(RowBlock* index, uint32_t block, bint at_end) except? 0 nogil:
    # Puts a block after one that is full: an empty one at the end, else with half of its rows. Returns the number of the full one.
    cdef RowBlock added
    cdef RowBlock* full
    cdef uint32_t half, number = block - index.begin
    memset(&added, 0, sizeof(RowBlock))
    _reserve(index, sizeof(RowBlock), 4)
    added.entries = grow(NULL, BLOCK_ROWS * sizeof(OrderedRow), _WHAT)
    added.capacity = BLOCK_ROWS
    if not at_end:
        full = &_blocks(index)[index.begin + number]
        half = (full.end - full.begin) // 2
        added.end = half
        memcpy(added.entries, _rows(full) + (full.end - half), half * sizeof(OrderedRow))
        full.end -= half
    (<RowBlock*> _open_gap(index, number + 1, sizeof(RowBlock)))[0] = added
    return index.begin + number


cdef int rows_insert(RowBlock* rows, int64_t time, int64_t row) except -1 nogil:
    cdef uint32_t number
    cdef RowBlock* block
    cdef bint at_end
    if not rows.is_index:
        if rows.end - rows.begin < BLOCK_ROWS:
            return _insert_row(rows, time, row)
        _make_index(rows)
    number = _find_block(rows, time, True)
    block = &_blocks(rows)[number]
    if block.end - block.begin == BLOCK_ROWS:
        at_end = number == rows.end - 1 and _rows(block)[block.end - 1].time <= time
        number = _split(rows, number, at_end)
        block = &_blocks(rows)[number]
        if at_end or _rows(block)[block.end - 1].time <= time:
            block += 1
    return _insert_row(block, time, row)


cdef RowPlace rows_find(const RowBlock* rows, int64_t time, bint after) noexcept nogil:
    cdef RowPlace place
    place.block = place.entry = 0
    if rows_are_empty(rows):
        return place
    if rows.is_index:
        place.block = _find_block(rows, time, after)
    place.entry = _find_row(rows_block(rows, place.block), time, after)
    return place


cdef OrderedRow* rows_before(const RowBlock* rows, RowPlace place) noexcept nogil:
    cdef const RowBlock* block
    if rows_are_empty(rows):
        return NULL
    block = rows_block(rows, place.block)
    if place.entry > block.begin:
        return _rows(block) + place.entry - 1
    if not rows.is_index or place.block == rows.begin:
        return NULL
    block -= 1
    return _rows(block) + block.end - 1


cdef void rows_pop(RowBlock* rows) noexcept nogil:
    cdef RowBlock* block = &_blocks(rows)[rows.begin] if rows.is_index else rows
    block.begin += 1
    if block.begin < block.end:
        return
    free(block.entries)
    if rows.is_index:
        rows.begin += 1
        if rows.begin < rows.end:
            return
        free(rows.entries)
    memset(rows, 0, sizeof(RowBlock))


cdef void rows_free(RowBlock* rows) noexcept nogil:
    cdef uint32_t i
    if rows.is_index:
        for i in range(rows.begin, rows.end):
            free(_blocks(rows)[i].entries)
    free(rows.entries)
    memset(rows, 0, sizeof(RowBlock))


cdef int64_t rows_bytes(const RowBlock* rows) noexcept nogil:
    cdef int64_t total
    cdef uint32_t i
    if rows.entries == NULL:
        return 0
    if not rows.is_index:
        return allocated_bytes(rows.capacity * <int64_t> sizeof(OrderedRow))
    total = allocated_bytes(rows.capacity * <int64_t> sizeof(RowBlock))
    for i in range(rows.begin, rows.end):
        total += allocated_bytes(_blocks(rows)[i].capacity * <int64_t> sizeof(OrderedRow))
    return total


cdef bint rows_are_sound(const RowBlock* rows) noexcept nogil:
    cdef RowPlace place = rows_start(rows)
    cdef const OrderedRow* row
    cdef int64_t last
    cdef bint is_first = True
    cdef uint32_t i
    if rows.is_index:
        for i in range(rows.begin, rows.end):
            if rows_are_empty(&_blocks(rows)[i]) or _blocks(rows)[i].is_index:
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
