# Blocks of rows gathered from the columns of a batch: nulls left out, values widened to words or borrowed as bytes.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from flinkcore._native.arrow cimport Column, ColumnType
from flinkcore._native.byte_values cimport ByteView


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
cdef void value_block_fill(ValueBlock* block, const Column* column, const Selection* selection) noexcept nogil
# From words to ordered words, or back.
cdef void to_ordered_words(ColumnType type, uint64_t* words, int64_t n) noexcept nogil
cdef void from_ordered_words(ColumnType type, uint64_t* words, int64_t n) noexcept nogil
