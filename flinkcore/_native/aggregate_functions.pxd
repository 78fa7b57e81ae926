# One aggregate over a space of entries: what it holds per entry, and how that takes in values and merges.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from flinkcore._native.arrow cimport ColumnType
from flinkcore._native.byte_values cimport OwnedBytes
from flinkcore._native.column_blocks cimport Selection, ValueBlock
from flinkcore._native.distinct_sets cimport ByteSet, WordSet
from flinkcore._native.memory cimport Buffer
from flinkcore._native.result_columns cimport ResultColumn
from flinkcore._native.value_lists cimport ValueList


cdef enum Function:
    COUNT
    SUM
    MEAN
    LEAST           # min and max: max keeps the least reflected word
    FIRST
    LAST
    LEAST_BY        # min_by and max_by
    COUNT_DISTINCT
    COLLECT


# Which arrays an aggregate has.
cdef enum Part:
    WORD_PART = 1
    COUNT_PART = 2
    KEY_PART = 4
    STATE_PART = 8
    BYTES_PART = 16
    KEY_BYTES_PART = 32
    WORD_SET_PART = 64
    BYTE_SET_PART = 128
    LIST_PART = 256


cdef struct Aggregate:
    Function function
    ColumnType type      # of the value column
    ColumnType by_type
    bint descending      # max, max_by
    bint whole_numbers   # SUM, MEAN: words are integers, else the bits of doubles
    int64_t column       # number among the bound columns; -1: none
    int64_t selection    # rows that it takes in
    int64_t values       # block of values; -1: none
    int64_t by           # block of what LEAST_BY compares; -1: none
    int parts            # of Part
    uint64_t empty_word  # what a word is before any value
    # Per entry, each NULL where there is no such part:
    uint64_t* words      # the result; a count, a sum, an ordered word or a value
    int64_t* counts      # MEAN
    uint64_t* keys       # LEAST_BY: ordered word of the best row so far
    uint8_t* states      # ValueState
    OwnedBytes* strings  # the result, where it is no word
    OwnedBytes* key_strings
    WordSet* word_sets
    ByteSet* byte_sets
    ValueList* lists
    # Results so far:
    ResultColumn result  # of COLLECT: the elements
    Buffer list_ends     # COLLECT: int32 (rows + 1,)


cdef inline bint has_lazy_states(const Aggregate* aggregate) noexcept nogil:
    # Sums and least words need states only once a null has come: until then every entry with a row has a value.
    return aggregate.parts == Part.WORD_PART and aggregate.function != Function.COUNT


# Room for so many entries; those from `first` on are made empty.
cdef int aggregate_reserve(Aggregate* aggregate, int64_t capacity) except -1 nogil
cdef void aggregate_start(Aggregate* aggregate, int64_t first, int64_t n) noexcept nogil
# From now on every entry has a state; what it is so far: some value where `touched`.
cdef int aggregate_add_states(Aggregate* aggregate, const uint8_t* touched, int64_t n, int64_t capacity) except -1
cdef int aggregate_update(
    Aggregate* aggregate, const Selection* selection, const ValueBlock* values, const ValueBlock* by
) except -1 nogil
cdef int aggregate_merge(Aggregate* aggregate, uint32_t into, uint32_t other) except -1 nogil
cdef void aggregate_clear(Aggregate* aggregate, int64_t first, int64_t n) noexcept nogil
cdef void aggregate_free(Aggregate* aggregate, int64_t n) noexcept nogil
cdef int64_t aggregate_entry_bytes(const Aggregate* aggregate) noexcept nogil
cdef int64_t aggregate_owned_bytes(const Aggregate* aggregate, int64_t n) noexcept nogil
cdef bint aggregate_is_sound(const Aggregate* aggregate, int64_t n) noexcept nogil
