# Values of columns: gathered from a batch in blocks, kept per entry, and written to result columns.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from flinkcore._native.arrow cimport Column, ColumnType, NativeArray
from flinkcore._native.memory cimport BitBuffer, Buffer
from flinkcore._native.nested_values cimport ValueType


cdef struct ByteView:
    const uint8_t* data
    int64_t length


cdef struct OwnedBytes:
    # Zero-initialise; free with owned_bytes_free.
    uint8_t* data
    int64_t length
    int64_t capacity


# Of all the bytes. Checkpoints of sketches depend on it: the same in all versions and on every machine.
cdef uint64_t bytes_hash(ByteView view) noexcept nogil
cdef int owned_bytes_set(OwnedBytes* owned, ByteView view) except -1 nogil
cdef void owned_bytes_free(OwnedBytes* owned) noexcept nogil


cdef inline ByteView owned_bytes_view(const OwnedBytes* owned) noexcept nogil:
    cdef ByteView view
    view.data = owned.data
    view.length = owned.length
    return view


cdef inline bint is_less(ByteView a, ByteView b, bint decimal) noexcept nogil:
    # Unsigned bytes from the left, a prefix first; decimals are 16-byte little-endian numbers.
    cdef int64_t shorter = a.length if a.length < b.length else b.length, a_high, b_high
    cdef uint64_t a_low, b_low
    cdef int order
    if decimal:
        memcpy(&a_high, a.data + 8, 8)
        memcpy(&b_high, b.data + 8, 8)
        if a_high != b_high:
            return a_high < b_high
        memcpy(&a_low, a.data, 8)
        memcpy(&b_low, b.data, 8)
        return a_low < b_low
    order = memcmp(a.data, b.data, shorter) if shorter else 0
    if order != 0:
        return order < 0
    return a.length < b.length


cdef enum:
    BLOCK_ROWS = 1024


cdef enum ValueState:
    NO_VALUE = 0
    SOME_VALUE = 1
    NULL_VALUE = 2


# A word holds a value of a fixed-width type of at most 8 bytes: integers and temporal types extended to 64 bits, floats
# as the bits of a double, bools as 0 or 1. Ordered words compare as int64 in the order of the values.
cdef enum Representation:
    WORDS
    ORDERED_WORDS
    BYTES
    ENCODED  # bytes that nested_values makes of values


cdef struct Selection:
    # The rows of a block whose value in one column is not null, with their entries.
    int64_t column                    # number among the bound columns; -1: all rows are selected
    int64_t n
    const uint32_t* entries
    const uint32_t* rows
    uint32_t[BLOCK_ROWS] kept_entries
    uint32_t[BLOCK_ROWS] kept_rows


cdef struct ValueBlock:
    # The values of one column at the rows of a selection.
    int64_t selection
    int64_t column
    Representation representation
    bint with_states                  # the values may be null
    uint8_t[BLOCK_ROWS] states        # SOME_VALUE or NULL_VALUE, only with_states
    uint64_t* words                   # (BLOCK_ROWS,), or NULL for BYTES
    ByteView* views                   # (BLOCK_ROWS,), or NULL for words
    const ValueType* type             # ENCODED
    Buffer encoded                    # what the views are of, if ENCODED


cdef inline double double_of_word(uint64_t word) noexcept nogil:
    cdef double value
    memcpy(&value, &word, 8)
    return value


cdef inline uint64_t word_of_double(double value) noexcept nogil:
    cdef uint64_t word
    memcpy(&word, &value, 8)
    return word


cdef bint is_word(ColumnType type) noexcept nogil
cdef bint is_float(ColumnType type) noexcept nogil
# column: NULL selects all rows. n is at most BLOCK_ROWS.
cdef void selection_fill(
    Selection* selection, const Column* column, const uint32_t* entries, const uint32_t* rows, int64_t n
) noexcept nogil
cdef int value_block_allocate(ValueBlock* block) except -1
cdef void value_block_free(ValueBlock* block) noexcept nogil
cdef int value_block_fill(ValueBlock* block, const Column* column, const Selection* selection) except -1 nogil
cdef void from_ordered_words(ColumnType type, uint64_t* words, int64_t n) noexcept nogil


cdef struct ResultColumn:
    # Zero-initialise, then set type, width and name.
    ColumnType type
    int32_t width        # bytes per value of fixed-width types, else 0
    const char* name     # of the column that the values came from, for messages; NULL where there is none: not of strings
    int64_t length
    BitBuffer validity   # empty until the first null
    BitBuffer bits       # BOOL
    Buffer values        # fixed width; or int32 or int64 offsets (length + 1,)
    Buffer data          # strings


# Room for n more values with so many bytes of strings: what is appended into it does not fail.
cdef int result_reserve(ResultColumn* result, int64_t n, int64_t data_bytes) except -1 nogil
# States say which values are null; a column gets the values first, then their states (or none, where nothing is null).
cdef int result_append_states(ResultColumn* result, const uint8_t* states, int64_t n) except -1 nogil
cdef int result_append_words(ResultColumn* result, const uint64_t* words, int64_t n) except -1 nogil
cdef int result_append_bytes(ResultColumn* result, ByteView view) except -1 nogil
# The column so far; it starts anew.
cdef NativeArray result_take(ResultColumn* result, str format)
cdef void result_free(ResultColumn* result) noexcept nogil
cdef int64_t result_memory(const ResultColumn* result) noexcept nogil


cdef struct ValueList:
    int64_t length
    Buffer values  # words, or the bytes of all strings
    Buffer ends    # int64 (length,): where each string ends in `values`; empty for words
    Buffer nulls   # int64, rising: which elements are null; they hold 0 or no bytes


# For i in range(n): the list of entries[i] takes in the i-th value, null where its state says so.
cdef int word_lists_add(
    ValueList* lists, const uint32_t* entries, const uint64_t* words, const uint8_t* states, int64_t n
) except -1 nogil
cdef int byte_lists_add(
    ValueList* lists, const uint32_t* entries, const ByteView* views, const uint8_t* states, int64_t n
) except -1 nogil
# other's elements follow into's; `other` may hold anything afterwards and must be freed.
cdef int value_list_merge(ValueList* into, ValueList* other) except -1 nogil
cdef void value_list_free(ValueList* values) noexcept nogil
cdef int64_t value_list_memory(const ValueList* values) noexcept nogil
cdef bint value_list_is_sound(const ValueList* values, bint words) noexcept nogil


cdef struct WordSet:
    # One word needs no table. `slots` has mask + 2 places: open addressing where 0 is empty, and last whether 0 is in.
    uint64_t* slots
    uint64_t only
    uint32_t mask
    uint32_t count


cdef struct ByteSlot:
    uint64_t hash
    uint64_t place  # of the length and bytes in `data`, plus one; 0: empty slot


cdef struct ByteSet:
    ByteSlot* slots  # (mask + 1,)
    Buffer data
    uint32_t mask
    uint32_t count


# For i in range(n): the set of entries[i] takes in the i-th value.
cdef int word_sets_add(WordSet* sets, const uint32_t* entries, const uint64_t* words, int64_t n) except -1 nogil
cdef int byte_sets_add(ByteSet* sets, const uint32_t* entries, const ByteView* views, int64_t n) except -1 nogil
# `into` becomes the union; `other` may hold anything afterwards and must be freed.
cdef int word_set_merge(WordSet* into, WordSet* other) except -1 nogil
cdef int byte_set_merge(ByteSet* into, ByteSet* other) except -1 nogil
cdef void word_set_free(WordSet* words) noexcept nogil
cdef void byte_set_free(ByteSet* strings) noexcept nogil
# Bytes taken from the heap.
cdef int64_t word_set_memory(const WordSet* words) noexcept nogil
cdef int64_t byte_set_memory(const ByteSet* strings) noexcept nogil
# Every element is where a look-up finds it, and the count is right.
cdef bint word_set_is_sound(const WordSet* words) noexcept nogil
cdef bint byte_set_is_sound(const ByteSet* strings) noexcept nogil
