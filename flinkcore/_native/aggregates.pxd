# Aggregates over a space of entries, of which each is what one key has in one window.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from flinkcore._native.arrow cimport Column, ColumnType, RecordBatch
from flinkcore._native.call_guard cimport CallGuard
from flinkcore._native.column_values cimport (
    ByteSet,
    DecimalSum,
    OwnedBytes,
    ResultColumn,
    Selection,
    ValueBlock,
    ValueColumn,
    ValueList,
    ValueType,
    WordSet,
)
from flinkcore._native.counted_values cimport CountedValues
from flinkcore._native.memory cimport Buffer


cdef enum Function:
    COUNT
    SUM
    MEAN
    VARIANCE        # and standard deviations
    LEAST           # min and max: max keeps the least reflected word
    BITS            # bit_or and bit_and: bit_and keeps the bits that a value lacks
    FIRST
    LAST
    LEAST_BY        # min_by and max_by
    COUNT_DISTINCT
    APPROX_DISTINCT # sketches: word_sets and strings, as of column_values
    APPROX_PERCENTILE # distributions: strings, as of column_values
    COLLECT


# The arrays of an aggregate.
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
    DECIMAL_PART = 512
    DEVIATION_PART = 1024
    COUNTED_PART = 2048


cdef struct Aggregate:
    Function function
    ColumnType type      # of the value column
    ColumnType by_type
    bint descending      # max, max_by; bit_and
    bint whole_numbers   # SUM, MEAN, VARIANCE, APPROX_PERCENTILE: words are integers, else the bits of doubles
    bint of_sample       # VARIANCE: of a sample, not of the whole population
    bint is_root         # VARIANCE: a standard deviation
    bint merges_exactly  # its state is the same, bit for bit, however its elements are divided
    double unit          # VARIANCE, APPROX_PERCENTILE of decimals: they are divided by it
    double percentage    # APPROX_PERCENTILE: from 0 to 1
    int precision        # of a result that is a decimal
    int shift            # MEAN of decimals: how many more decimal places it has
    int64_t overflow     # row of the first result so far that has more digits than the precision; -1: none
    int64_t column       # number among the bound columns; -1: none
    int64_t selection    # rows that it takes in
    int64_t values       # block of values; -1: none
    int64_t by           # block of what LEAST_BY compares; -1: none
    int parts            # of Part
    uint64_t empty_word  # what a word is before any value
    # Per entry, each NULL if the aggregate has no such part:
    uint64_t* words      # the result; a count, a sum, a mean (VARIANCE), an ordered word or a value
    int64_t* counts      # MEAN, VARIANCE, SUM of decimals: how many values there were
    uint64_t* keys       # LEAST_BY: ordered word of the best row so far
    uint8_t* states      # ValueState
    OwnedBytes* strings  # the result, if it is not a word
    OwnedBytes* key_strings
    WordSet* word_sets
    ByteSet* byte_sets
    ValueList* lists
    DecimalSum* decimals # SUM, MEAN, LEAST of decimals
    double* deviations   # VARIANCE: the sum of the squares of deviations from the mean
    CountedValues* counted # COUNT_DISTINCT that loses values: all values; `keys` or `strings` have that of an entry of one row. Also
                           # of a LEAST that may lose any value
    # Results so far:
    ResultColumn result  # of COLLECT: the elements
    ValueType* nested    # of values that are encoded; NULL: they are not
    ValueColumn nested_result
    Buffer list_ends     # COLLECT: int32 (rows + 1,)


cdef inline bint counts_words(const Aggregate* aggregate) noexcept nogil:
    # Returns true if the values that are counted are words, and not bytes.
    return aggregate.words != NULL if aggregate.function == Function.LEAST else aggregate.keys != NULL


cdef inline bint has_lazy_states(const Aggregate* aggregate) noexcept nogil:
    # Sums and least words need states only once a null has come: until then every entry with a row has a value.
    return aggregate.parts == Part.WORD_PART and aggregate.function != Function.COUNT


cdef inline uint64_t distinct_count(const Aggregate* aggregate, uint32_t entry) noexcept nogil:
    # How many values the set of a COUNT_DISTINCT has.
    if aggregate.counted != NULL:
        return aggregate.counted[entry].n
    return aggregate.word_sets[entry].count if aggregate.word_sets != NULL else aggregate.byte_sets[entry].count


# For i in range(n): entry entries[i] takes in the i-th value, of at most BLOCK_ROWS.
cdef int aggregate_update(
    Aggregate* aggregate, const uint32_t* entries, int64_t n, const ValueBlock* values, const ValueBlock* by
) except -1 nogil
# The same of a COUNT_DISTINCT whose values stay, but for its words; counts[i] is how many values the entry then has.
cdef int aggregate_add_distinct(
    Aggregate* aggregate, const uint32_t* entries, const ValueBlock* values, int64_t n, uint32_t* counts
) except -1 nogil
# One aggregate of two entries: `into` takes in all that `other` holds, as if other's elements came after its own. What `other` owns
# may have moved afterwards.
cdef int aggregate_merge(Aggregate* aggregate, uint32_t into, Aggregate* source, uint32_t other) except -1 nogil
# Makes an empty entry like another one, which stays. Values that a set of distinct values counts are not copied.
cdef int aggregate_copy(Aggregate* aggregate, uint32_t into, uint32_t other) except -1 nogil
cdef void aggregate_clear(Aggregate* aggregate, int64_t first, int64_t n) noexcept nogil
# Gives every entry a state from now on; so far a value if `touched`.
cdef int aggregate_add_states(Aggregate* aggregate, const uint8_t* touched, int64_t n, int64_t capacity) except -1
# The entries are entries[0..n), or first, first + 1, ... where `entries` is NULL. Bytes that results of strings and lists
# take, those of fixed width not counted:
cdef int64_t aggregate_result_bytes(
    const Aggregate* aggregate, const uint32_t* entries, uint32_t first, int64_t n
) noexcept nogil


cdef struct AccumulatorTable:
    # Every aggregate keeps arrays over the entries; selections and blocks of values are shared between aggregates.
    int64_t n_entries
    int64_t capacity
    uint8_t* touched        # per entry: a row has come; NULL if all aggregates know that themselves
    const Column** columns  # of the bound batch
    Selection* selections
    int64_t n_selections
    ValueBlock* blocks
    int64_t n_blocks
    Aggregate* aggregates
    int64_t n_aggregates
    int64_t rows            # results so far
    int64_t expected_rows   # as many as were taken last


# All entries below n_entries exist afterwards; new ones are empty.
cdef int accumulators_reserve(AccumulatorTable* table, uint32_t n_entries) except -1 nogil
# A failure (MemoryError, or results beyond Arrow's limits) leaves a table that can be read, cleared and freed; rows of
# the failed update may be in some aggregates only.
# Fills selections and blocks with the values of rows of the bound batch, at most BLOCK_ROWS.
cdef int accumulators_gather(
    AccumulatorTable* table, const uint32_t* entries, const uint32_t* rows, int64_t n
) except -1 nogil
# For i in range(n): entry entries[i] takes in row rows[i] of the bound batch, in this order.
cdef int accumulators_update(
    AccumulatorTable* table, const uint32_t* entries, const uint32_t* rows, int64_t n
) except -1 nogil
# `into` takes in all that `other` holds, as if other's elements came after its own; `other` is empty afterwards.
cdef int accumulators_merge(AccumulatorTable* table, uint32_t into, uint32_t other) except -1 nogil
# Likewise of an entry of another table, of accumulators that are alike: see Accumulators.liken.
cdef int accumulators_merge_from(
    AccumulatorTable* table, uint32_t into, AccumulatorTable* source, uint32_t other
) except -1 nogil
# Appends the current results of the entries to the output columns; the entries keep their content.
cdef int accumulators_emit(AccumulatorTable* table, const uint32_t* entries, int64_t n) except -1 nogil
cdef int accumulators_emit_range(AccumulatorTable* table, uint32_t first, uint32_t n) except -1 nogil
# Empties the entries and frees what they own.
cdef void accumulators_clear(AccumulatorTable* table, const uint32_t* entries, int64_t n) noexcept nogil
cdef void accumulators_clear_range(AccumulatorTable* table, uint32_t first, uint32_t n) noexcept nogil
# Raises ConfigurationError unless results are the same in whatever order elements are added up: counts, sums of whole
# numbers and decimals, means of decimals, bits, least and greatest values of fixed width. The others need their elements in the order
# in which they came, or own what a slice would share.
cdef int require_shareable(const AccumulatorTable* table) except -1
# For i in range(n): adds the contents of others[i], which stay, to entry into[i]. For shareable accumulators only.
cdef void accumulators_add(
    AccumulatorTable* table, const uint32_t* into, const uint32_t* others, int64_t n
) noexcept nogil
# Likewise, entry into[i] then holds what others[i] does; one after the other.
cdef void accumulators_copy(
    AccumulatorTable* table, const uint32_t* into, const uint32_t* others, int64_t n
) noexcept nogil
# Subtracts from entry into[i] the contents of others[i], which were added to it before. If that is impossible, since the
# remaining values are not known any more, sets doubtful[i], else 0; a doubtful entry must be added up again before use.
cdef void accumulators_subtract(
    AccumulatorTable* table, const uint32_t* into, const uint32_t* others, int64_t n, uint8_t* doubtful
) noexcept nogil


cdef class Accumulators:
    cdef CallGuard guard
    cdef AccumulatorTable* table
    cdef list _specs
    cdef list _columns       # names of the columns read, in the order of table.columns
    cdef list _names         # the same, encoded, for messages of native code
    cdef RecordBatch _empty  # a batch without rows of the columns read: their types
    cdef RecordBatch _bound
    cdef dict _selections
    cdef dict _blocks
    cdef list _formats
    cdef bint in_use         # an operator has them
    cdef readonly bint slides
    cdef readonly bint runs
    cdef readonly bint retracts
    cdef int64_t _selection(self, int64_t column) except -1
    cdef int64_t _block(self, int64_t selection, int64_t column, bint ordered, const ValueType* nested) except -1
    cdef int _add(self, str function, str column, str by, object percentage) except -1
    # The batch that accumulators_update reads from; it is kept until the next bind.
    cdef int bind(self, RecordBatch batch) except -1
    # Makes entries of the other one mergeable into entries of this one; raises SchemaError if the aggregates differ.
    cdef int liken(self, Accumulators other) except -1
    # Row of a result so far that does not fit its type; -1: none.
    cdef int64_t unfit_result(self) noexcept
    # Raises DataError for that row of the object that `where` names.
    cdef int refuse_result(self, int64_t row, str where) except -1
    # Returns the output columns so far (list of NativeArray, in order of the aggregates), and begins new ones.
    cdef list take_columns(self)
