# Values of columns: gathered from a batch in blocks, kept per entry, and written to result columns; decimals, values of any type as
# bytes, sets of values and sketches of these.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from flinkcore._native.arrow cimport ArrowArray, ArrowSchema, Column, ColumnType, Layout, NativeArray
from flinkcore._native.memory cimport BitBuffer, Buffer


cdef extern from *:
    int lowest_bit "__builtin_ctzll"(unsigned long long word) noexcept nogil


cdef struct ByteView:
    const uint8_t* data
    int64_t length


cdef struct OwnedBytes:
    # Zero-initialise; free with owned_bytes_free.
    uint8_t* data
    int64_t length
    int64_t capacity


# Returns the hash of all the bytes. Checkpoints of sketches depend on it: it is the same in all versions and on every machine.
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


# ---- decimals: of 128 bits, and sums of them that are exact, in whatever order they are added up


cdef struct DecimalSum:
    # A whole number of 192 bits, two's complement: as many decimals of 38 digits fit as int64 can count.
    uint64_t low
    uint64_t middle
    uint64_t high


cdef inline DecimalSum decimal_read(const uint8_t* value) noexcept nogil:
    # Reads a number of 16 bytes, little endian.
    cdef DecimalSum number
    memcpy(&number.low, value, 8)
    memcpy(&number.middle, value + 8, 8)
    number.high = <uint64_t> 0 - (number.middle >> 63)
    return number


cdef inline void decimal_sum_add(DecimalSum* total, const DecimalSum* other) noexcept nogil:
    cdef uint64_t low = total.low + other.low, middle = total.middle + other.middle, carry = low < other.low
    total.high += other.high + (middle < other.middle)
    middle += carry
    total.high += middle < carry
    total.middle = middle
    total.low = low


cdef inline void decimal_sum_subtract(DecimalSum* total, const DecimalSum* other) noexcept nogil:
    cdef uint64_t borrow = total.low < other.low, middle = total.middle - other.middle
    total.high -= other.high + (total.middle < other.middle)
    total.low -= other.low
    total.high -= middle < borrow
    total.middle = middle - borrow


cdef inline bint decimal_sum_is_less(const DecimalSum* a, const DecimalSum* b) noexcept nogil:
    if a.high != b.high:
        return <int64_t> a.high < <int64_t> b.high
    if a.middle != b.middle:
        return a.middle < b.middle
    return a.low < b.low


# The decimal of 16 bytes, little endian, without its decimal point.
cdef double decimal_to_double(const uint8_t* value) noexcept nogil
# Writes total * 10**shift / count, rounded half up (away from zero) to a whole number, as 16 bytes, little endian. False if it
# has more than `precision` digits, at most 38. 0 <= shift <= 4, count > 0.
cdef bint decimal_quotient(
    const DecimalSum* total, int shift, int64_t count, int precision, uint8_t* value
) noexcept nogil


# ---- values of any type: as bytes, and columns made of such values again


cdef struct ValueType:
    # A type and the types within it; free with value_type_free.
    const ArrowSchema* field  # borrowed
    Layout layout
    int64_t n_children
    ValueType* children       # (n_children,)


# The type of a field. Raises SchemaError if values of such a type, or of one within it, cannot be kept; nothing is to be freed then.
cdef int value_type_set(ValueType* type, const ArrowSchema* field) except -1
cdef void value_type_free(ValueType* type) noexcept
# Appends the bytes of a value that is not null; `row` counts without the array's own offset.
cdef int value_append(Buffer* out, const ValueType* type, const ArrowArray* array, int64_t row) except -1 nogil
# Returns true if bytes are those of one value, and UTF-8 if it is a text.
cdef bint is_value(const ValueType* type, const uint8_t* data, int64_t length)


cdef struct ValueColumn:
    # Zero-initialise, then set type and name with value_column_set; free with value_column_free.
    const ValueType* type
    const char* name       # of the column that the values came from, for messages
    int64_t length
    BitBuffer validity
    BitBuffer bits         # of bools
    Buffer values          # fixed width, or offsets (length + 1,)
    Buffer data            # of strings
    ValueColumn* children  # as of the type
    int64_t more_rows      # measured
    int64_t more_data


cdef int value_column_set(ValueColumn* column, const ValueType* type, const char* name) except -1
cdef void value_column_free(ValueColumn* column) noexcept
cdef int64_t value_column_memory(const ValueColumn* column) noexcept nogil
# Counts what a value, or a null where `data` is NULL, will take.
cdef void value_column_measure(ValueColumn* column, const uint8_t* data) noexcept nogil
# Makes room for all that was measured: what is appended then does not fail. Raises DataError if it is more than Arrow's offsets reach.
cdef int value_column_reserve(ValueColumn* column) except -1 nogil
cdef int value_column_append(ValueColumn* column, const uint8_t* data) except -1 nogil
# Returns the column so far, and begins a new one.
cdef NativeArray value_column_take(ValueColumn* column)


# ---- blocks


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
    ENCODED  # bytes of values of any type


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
    const char* name     # name of the column of the values, for messages; NULL unless they are strings
    int64_t length
    BitBuffer validity   # empty until the first null
    BitBuffer bits       # BOOL
    Buffer values        # fixed width; or int32 or int64 offsets (length + 1,)
    Buffer data          # strings


# Room for n more values with so many bytes of strings: what is appended into it does not fail.
cdef int result_reserve(ResultColumn* result, int64_t n, int64_t data_bytes) except -1 nogil
# States mark the values that are null. A column gets the values first, then their states (or none, if nothing is null).
cdef int result_append_states(ResultColumn* result, const uint8_t* states, int64_t n) except -1 nogil
cdef int result_append_words(ResultColumn* result, const uint64_t* words, int64_t n) except -1 nogil
cdef int result_append_bytes(ResultColumn* result, ByteView view) except -1 nogil
# Returns the column so far, and begins a new one.
cdef NativeArray result_take(ResultColumn* result, str format)
cdef void result_free(ResultColumn* result) noexcept nogil
cdef int64_t result_memory(const ResultColumn* result) noexcept nogil


cdef struct ValueList:
    int64_t length
    Buffer values  # words, or the bytes of all strings
    Buffer ends    # int64 (length,): where each string ends in `values`; empty for words
    Buffer nulls   # int64, rising: which elements are null; they hold 0 or no bytes


# For i in range(n): appends the i-th value to the list of entries[i], null if its state is.
cdef int word_lists_add(
    ValueList* lists, const uint32_t* entries, const uint64_t* words, const uint8_t* states, int64_t n
) except -1 nogil
cdef int byte_lists_add(
    ValueList* lists, const uint32_t* entries, const ByteView* views, const uint8_t* states, int64_t n
) except -1 nogil
# other's elements follow into's; `other` may hold anything afterwards and must be freed.
cdef int value_list_merge(ValueList* into, ValueList* other) except -1 nogil
# Makes an empty list like another one, which stays.
cdef int value_list_copy(ValueList* into, const ValueList* other) except -1 nogil
cdef void value_list_free(ValueList* values) noexcept nogil
cdef int64_t value_list_memory(const ValueList* values) noexcept nogil
cdef bint value_list_is_sound(const ValueList* values, bint words) noexcept nogil


cdef struct WordSet:
    # One word needs no table. `slots` has mask + 2 places: open addressing where 0 is empty, and last whether 0 is in. Words that lie
    # close together, as dense ids do, are in pages of 64 instead: `slots` has mask + 1 pairs of a page's number and its bits, of which
    # none: empty. Pages that lie close together are in a range: `slots` has the bits of mask + 1 pages from `only` on.
    uint64_t* slots
    uint64_t only
    uint32_t mask
    uint32_t count
    uint32_t pages  # that are taken, if words are in pages; else 0
    bint is_range


cdef struct WordPlace:
    # How far a walk over a set has come. Zero-initialise.
    uint64_t at
    uint64_t bits


cdef struct ByteSlot:
    uint64_t hash
    uint64_t place  # of the length and bytes in `data`, plus one; 0: empty slot


cdef struct ByteSet:
    ByteSlot* slots  # (mask + 1,)
    Buffer data
    uint32_t mask
    uint32_t count


# Gives the next word of a set that does not change, in the order of the table; returns false at the end.
cdef inline bint word_set_next(const WordSet* words, WordPlace* place, uint64_t* word) noexcept nogil:
    cdef uint64_t page
    if words.slots == NULL:
        word[0] = words.only
        place.at += 1
        return place.at <= words.count
    if words.pages:
        while place.bits == 0:
            if place.at > words.mask:
                return False
            place.bits = words.slots[place.at if words.is_range else 2 * place.at + 1]
            place.at += 1
        page = words.only + place.at - 1 if words.is_range else words.slots[2 * (place.at - 1)]
        word[0] = page << 6 | lowest_bit(place.bits)
        place.bits &= place.bits - 1
        return True
    while place.at <= <uint64_t> words.mask + 1:
        place.at += 1
        word[0] = words.slots[place.at - 1]
        if word[0]:
            if place.at == <uint64_t> words.mask + 2:
                word[0] = 0
            return True
    return False


# For i in range(n): adds the i-th value to the set of entries[i]; counts[i], unless NULL, is how many values that then has.
cdef int word_sets_add(
    WordSet* sets, const uint32_t* entries, const uint64_t* words, int64_t n, uint32_t* counts
) except -1 nogil
cdef int byte_sets_add(
    ByteSet* sets, const uint32_t* entries, const ByteView* views, int64_t n, uint32_t* counts
) except -1 nogil
# Room for so many values in all. Values that come in the order of the slots of another table need it: where the table that they
# come to is too small for all of them, they crowd its first slots, and each takes as long as all before it.
cdef int word_set_reserve(WordSet* words, uint64_t count) except -1 nogil
cdef int byte_set_reserve(ByteSet* strings, uint64_t count) except -1 nogil
# `into` becomes the union; `other` may hold anything afterwards and must be freed.
cdef int word_set_merge(WordSet* into, WordSet* other) except -1 nogil
cdef int byte_set_merge(ByteSet* into, ByteSet* other) except -1 nogil
# Makes an empty set like another one, which stays.
cdef int word_set_copy(WordSet* into, const WordSet* other) except -1 nogil
cdef void word_set_free(WordSet* words) noexcept nogil
cdef void byte_set_free(ByteSet* strings) noexcept nogil
# Bytes taken from the heap.
cdef int64_t word_set_memory(const WordSet* words) noexcept nogil
cdef int64_t byte_set_memory(const ByteSet* strings) noexcept nogil
# Every element is where a look-up finds it, and the count is right.
cdef bint word_set_is_sound(const WordSet* words) noexcept nogil
cdef bint byte_set_is_sound(const ByteSet* strings) noexcept nogil


# ---- sketches: about how many different values there are, in bounded size, which depends on nothing but the set of values


cdef enum:
    SKETCH_REGISTERS = 4096
    MOST_RANK = 53  # of a register: 52 bits of a hash do not choose it


cdef inline uint64_t mixed_hash(uint64_t word) noexcept nogil:
    # Every bit of the word changes about half of the bits of the hash: the finalizer of MurmurHash3.
    word = (word ^ (word >> 33)) * <uint64_t> 0xFF51AFD7ED558CCD
    word = (word ^ (word >> 33)) * <uint64_t> 0xC4CEB9FE1A85EC53
    return word ^ (word >> 33)


# A sketch is the set of the values' hashes while these are few, and then registers (SKETCH_REGISTERS bytes), with the set empty.
cdef int sketch_add(WordSet* hashes, OwnedBytes* registers, uint64_t hash) except -1 nogil
# `into` becomes the sketch of the values of both; `other` may hold anything afterwards and must be freed.
cdef int sketch_merge(
    WordSet* into, OwnedBytes* into_registers, WordSet* other, OwnedBytes* other_registers
) except -1 nogil
cdef int64_t sketch_estimate(const WordSet* hashes, const OwnedBytes* registers) noexcept nogil
cdef bint sketch_is_sound(const WordSet* hashes, const OwnedBytes* registers) noexcept nogil


# ---- distributions: how often numbers come, from which quantiles are read; exact while there are few different ones, then to
# 0.4 %. They depend on nothing but the numbers and how often each comes.


# Empty bytes are a distribution without numbers.
cdef int distribution_add(OwnedBytes* distribution, double number) except -1 nogil
# `into` becomes the distribution of the numbers of both; `other` may hold anything afterwards and must be freed.
cdef int distribution_merge(OwnedBytes* into, OwnedBytes* other) except -1 nogil
# The least number that is not below so great a fraction, from 0 to 1, of all; of one with numbers.
cdef double distribution_quantile(const OwnedBytes* distribution, double fraction) noexcept nogil
cdef bint distribution_is_sound(const OwnedBytes* distribution) noexcept nogil
