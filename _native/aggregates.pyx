"""Accumulators of several aggregates over one space of entries (an entry: one key in one window).

A block of rows is gathered once per column and then goes through each aggregate's own loop:

    columns ──► selections (rows that are not null) ──► blocks (words or bytes) ──► aggregates (arrays over entries)
"""

import cython
from libc.stdint cimport UINT32_MAX, int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset, strcmp

from flinkcore.errors import ConfigurationError, SchemaError

from flinkcore._native.aggregate_functions cimport (
    Function,
    aggregate_add_states,
    aggregate_clear,
    aggregate_entry_bytes,
    aggregate_free,
    aggregate_is_sound,
    aggregate_merge,
    aggregate_owned_bytes,
    aggregate_reserve,
    aggregate_start,
    aggregate_update,
    has_lazy_states,
)
from flinkcore._native.aggregate_results cimport aggregate_emit, aggregate_reserve_results, aggregate_take
from flinkcore._native.aggregate_specs cimport check_spec, empty_batch, start_aggregate
from flinkcore._native.arrow cimport ColumnType
from flinkcore._native.call_guard cimport Call, begin_call
from flinkcore._native.column_blocks cimport (
    BLOCK_ROWS,
    Representation,
    is_float,
    is_word,
    selection_fill,
    value_block_allocate,
    value_block_fill,
    value_block_free,
)
from flinkcore._native.result_columns cimport result_reserve

cdef enum:
    ALL_ROWS = -1  # as a selection's column
    NOTHING = -1


# ---- the table ---------------------------------------------------------------------------------------------------


cdef int accumulators_reserve(AccumulatorTable* table, uint32_t n_entries) except -1 nogil:
    cdef int64_t i, capacity, more = <int64_t> n_entries - table.n_entries
    cdef uint8_t* touched
    if more <= 0:
        return 0
    if n_entries > table.capacity:
        capacity = max(<int64_t> n_entries, table.capacity + (table.capacity >> 1))
        for i in range(table.n_aggregates):
            aggregate_reserve(&table.aggregates[i], capacity)
        if table.touched != NULL:
            touched = <uint8_t*> realloc(table.touched, capacity)
            if touched == NULL:
                with gil:
                    raise MemoryError(f"{capacity} bytes for accumulators")
            table.touched = touched
        table.capacity = capacity
    for i in range(table.n_aggregates):
        aggregate_start(&table.aggregates[i], table.n_entries, more)
    if table.touched != NULL:
        memset(table.touched + table.n_entries, 0, more)
    table.n_entries = n_entries
    return 0


cdef int _update_block(
    AccumulatorTable* table, const uint32_t* entries, const uint32_t* rows, int64_t n
) except -1 nogil:
    cdef int64_t i
    cdef Selection* selection
    cdef ValueBlock* block
    cdef Aggregate* aggregate
    cdef uint8_t* touched = table.touched
    for i in range(table.n_selections):
        selection = &table.selections[i]
        if selection.column == ALL_ROWS:
            selection_fill(selection, NULL, entries, rows, n)
        else:
            selection_fill(selection, table.columns[selection.column], entries, rows, n)
    for i in range(table.n_blocks):
        block = &table.blocks[i]
        value_block_fill(block, table.columns[block.column], &table.selections[block.selection])
    if touched != NULL:
        for i in range(n):
            touched[entries[i]] = 1
    for i in range(table.n_aggregates):
        aggregate = &table.aggregates[i]
        aggregate_update(
            aggregate,
            &table.selections[aggregate.selection],
            &table.blocks[aggregate.values] if aggregate.values != NOTHING else NULL,
            &table.blocks[aggregate.by] if aggregate.by != NOTHING else NULL,
        )
    return 0


cdef int accumulators_update(
    AccumulatorTable* table, const uint32_t* entries, const uint32_t* rows, int64_t n
) except -1 nogil:
    cdef int64_t done = 0
    while done < n:
        _update_block(table, entries + done, rows + done, min(n - done, <int64_t> BLOCK_ROWS))
        done += BLOCK_ROWS
    return 0


cdef int accumulators_merge(AccumulatorTable* table, uint32_t into, uint32_t other) except -1 nogil:
    cdef int64_t i
    for i in range(table.n_aggregates):
        aggregate_merge(&table.aggregates[i], into, other)
    if table.touched != NULL:
        table.touched[into] |= table.touched[other]
    accumulators_clear_range(table, other, 1)
    return 0


cdef int _emit(AccumulatorTable* table, const uint32_t* entries, uint32_t first, int64_t n) except -1 nogil:
    cdef int64_t i
    for i in range(table.n_aggregates):
        if table.rows == 0 and table.aggregates[i].lists == NULL:
            result_reserve(&table.aggregates[i].result, table.expected_rows, 0)
        aggregate_reserve_results(&table.aggregates[i], entries, first, n)
    for i in range(table.n_aggregates):
        aggregate_emit(&table.aggregates[i], table.touched, entries, first, n)
    table.rows += n
    return 0


cdef int accumulators_emit(AccumulatorTable* table, const uint32_t* entries, int64_t n) except -1 nogil:
    return _emit(table, entries, 0, n)


cdef int accumulators_emit_range(AccumulatorTable* table, uint32_t first, uint32_t n) except -1 nogil:
    return _emit(table, NULL, first, n)


cdef void accumulators_clear(AccumulatorTable* table, const uint32_t* entries, int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        accumulators_clear_range(table, entries[i], 1)


cdef void accumulators_clear_range(AccumulatorTable* table, uint32_t first, uint32_t n) noexcept nogil:
    cdef int64_t i
    for i in range(table.n_aggregates):
        aggregate_clear(&table.aggregates[i], first, n)
    if table.touched != NULL:
        memset(table.touched + first, 0, n)


# ---- Python's face -----------------------------------------------------------------------------------------------


cdef void* _zeros(int64_t count, size_t size) except NULL:
    cdef void* zeros = calloc(count, size)
    if zeros == NULL:
        raise MemoryError("accumulators")
    return zeros


cdef int _check_range(AccumulatorTable* table, int64_t first, int64_t n) except -1:
    if first + n > table.n_entries:
        raise IndexError(f"entries {first} to {first + n - 1}; {table.n_entries} are reserved")
    return 0


@cython.final
cdef class Accumulators:
    """Accumulators of several aggregates over one space of entries: an entry is what one key has in one window.

    All aggregates skip nulls as SQL does, but first, last and collect: they take the elements as they are. The result
    over no value is null; that of count and count_distinct is 0, that of collect an empty list.

    ==============  =====================================  =========================================================
    function        columns                                result
    ==============  =====================================  =========================================================
    count           any, or none: rows                     int64
    sum             numbers, bool, duration                int64 of integers and bools, which wraps around as Java's
                                                           long does; uint64 of uint64; float64 of floats, added in
                                                           the order of the elements; duration of durations
    mean            numbers, bool                          float64; the values are added as float64
    min, max        any but null and struct                as the column
    first, last     the same                               as the column; the first or last element's value or null
    min_by, max_by  the same                               the value, or null, where `by` is least or greatest; rows
                                                           with a null `by` do not count; among ties the first stays
    count_distinct  the same                               int64, exact
    collect         the same                               list of the values and nulls, in the order of the elements
    ==============  =====================================  =========================================================

    Values are compared as Java's `compare` does: NaN, of which there is one, is greater than all numbers, and -0.0 less
    than 0.0. Strings and binary values are compared byte by byte (Java compares UTF-16 units, which differs only where
    characters beyond U+FFFF meet U+E000 to U+FFFF).

    Follows Flink's `SumAggregator` and `ComparableAggregator` (`minBy` and `maxBy` with `first = true`).

    Parameters
    ----------
    schema : object with `__arrow_c_schema__`
        Columns of the batches.
    specs : sequence of (function, column, by)
        The aggregates: function as above; column and by are names or None.

    Raises
    ------
    ConfigurationError
        If a function does not exist, or its columns are missing or too many.
    SchemaError
        If a column is missing or its type has no such aggregate.
    """

    def __cinit__(self, schema, specs):
        self._specs = [tuple(spec) for spec in specs]
        for function, column, by in self._specs:
            check_spec(function, column, by)
        self._columns = list(
            dict.fromkeys(name for _, column, by in self._specs for name in (column, by) if name is not None)
        )
        self._names = [name.encode() for name in self._columns]
        self._empty = empty_batch(schema, self._columns)
        self._selections = {}
        self._blocks = {}
        self._formats = []
        self.table = <AccumulatorTable*> _zeros(1, sizeof(AccumulatorTable))
        self.table.columns = <const Column**> _zeros(len(self._columns) + 1, sizeof(Column*))
        self.table.selections = <Selection*> _zeros(len(self._columns) + 1, sizeof(Selection))
        self.table.blocks = <ValueBlock*> _zeros(2 * len(self._specs) + 1, sizeof(ValueBlock))
        self.table.aggregates = <Aggregate*> _zeros(len(self._specs) + 1, sizeof(Aggregate))
        for function, column, by in self._specs:
            self._add(function, column, by)

    def __dealloc__(self):
        cdef int64_t i
        if self.table == NULL:
            return
        for i in range(self.table.n_aggregates):
            aggregate_free(&self.table.aggregates[i], self.table.n_entries)
        for i in range(self.table.n_blocks):
            value_block_free(&self.table.blocks[i])
        free(self.table.touched)
        free(self.table.columns)
        free(self.table.selections)
        free(self.table.blocks)
        free(self.table.aggregates)
        free(self.table)

    cdef int64_t _selection(self, int64_t column) except -1:
        # Number of the selection of rows where the column is not null, or of all rows.
        cdef int64_t number = self._selections.setdefault(column, len(self._selections))
        self.table.selections[number].column = column
        self.table.n_selections = len(self._selections)
        return number

    cdef int64_t _block(self, int64_t selection, int64_t column, bint ordered) except -1:
        # Number of the block of the column's values at the rows of the selection.
        cdef ColumnType type = self._empty.columns[column].type
        cdef Representation representation
        cdef ValueBlock* block
        if not is_word(type):
            representation = Representation.BYTES
        elif ordered and (is_float(type) or type == ColumnType.UINT64):
            representation = Representation.ORDERED_WORDS
        else:
            representation = Representation.WORDS
        key = (selection, column, <int> representation)
        if key in self._blocks:
            return self._blocks[key]
        block = &self.table.blocks[self.table.n_blocks]
        block.selection = selection
        block.column = column
        block.representation = representation
        block.with_states = self.table.selections[selection].column != column
        value_block_allocate(block)
        self._blocks[key] = self.table.n_blocks
        self.table.n_blocks += 1
        return self._blocks[key]

    cdef int _add(self, str function, str column, str by) except -1:
        cdef AccumulatorTable* table = self.table
        cdef Aggregate* aggregate = &table.aggregates[table.n_aggregates]
        cdef int64_t value_column = NOTHING, by_column = NOTHING
        if column is not None:
            value_column = self._columns.index(column)
        if by is not None:
            by_column = self._columns.index(by)
        self._formats.append(
            start_aggregate(
                aggregate,
                function,
                column,
                &self._empty.columns[value_column] if column is not None else NULL,
                by,
                &self._empty.columns[by_column] if by is not None else NULL,
            )
        )
        if column is not None:
            aggregate.result.name = <const char*> <bytes> self._names[value_column]
        aggregate.column = value_column
        aggregate.values = aggregate.by = NOTHING
        if aggregate.function in (Function.FIRST, Function.LAST, Function.COLLECT):
            aggregate.selection = self._selection(ALL_ROWS)
        else:
            aggregate.selection = self._selection(value_column if by is None else by_column)
        if by is not None:
            aggregate.by = self._block(aggregate.selection, by_column, True)
        if aggregate.function != Function.COUNT:
            ordered = aggregate.function in (Function.LEAST, Function.COUNT_DISTINCT)
            aggregate.values = self._block(aggregate.selection, value_column, ordered)
        if has_lazy_states(aggregate) and table.touched == NULL:
            table.touched = <uint8_t*> _zeros(1, 1)
        table.n_aggregates += 1
        return 0

    cdef int bind(self, RecordBatch batch) except -1:
        cdef int64_t i, found
        cdef const Column* column
        cdef const Column* expected
        cdef Aggregate* aggregate
        cdef AccumulatorTable* table = self.table
        if batch is self._bound:
            return 0
        places = [batch.index_of(name) for name in self._columns]
        for i, found in enumerate(places):
            column = &batch.columns[found]
            expected = &self._empty.columns[i]
            if strcmp(column.format, expected.format) != 0:
                raise SchemaError(
                    f"column {self._columns[i]!r} has Arrow format {column.format.decode()!r} in a batch, but "
                    f"{expected.format.decode()!r} in the schema; cast it to one type in all files"
                )
        for i in range(table.n_aggregates):
            aggregate = &table.aggregates[i]
            if has_lazy_states(aggregate) and batch.columns[<int64_t> places[aggregate.column]].null_count:
                aggregate_add_states(aggregate, table.touched, table.n_entries, table.capacity)
        for i, found in enumerate(places):
            table.columns[i] = &batch.columns[found]
        self._bound = batch
        return 0

    cdef list take_columns(self):
        cdef int64_t i, rows = self.table.rows
        self.table.rows = 0
        self.table.expected_rows = rows
        return [
            aggregate_take(&self.table.aggregates[i], self._formats[i], rows)
            for i in range(self.table.n_aggregates)
        ]

    def _checked(self, entries):
        cdef const uint32_t[::1] view = entries
        cdef int64_t i
        for i in range(view.shape[0]):
            if view[i] >= self.table.n_entries:
                raise IndexError(f"entry {view[i]} does not exist; {self.table.n_entries} are reserved")
        return entries

    def __len__(self):
        return self.table.n_entries

    def reserve(self, n_entries):
        """Let all entries below `n_entries` exist; new ones are empty.

        Raises
        ------
        MemoryError
            If there is no room; nothing has changed then.
        """
        cdef Call call = begin_call(&self.guard, self)
        if not 0 <= n_entries <= UINT32_MAX:
            raise ValueError(f"{n_entries} entries: 0 to {UINT32_MAX} are possible")
        cdef uint32_t n = n_entries
        with nogil:
            accumulators_reserve(self.table, n)

    def update(self, batch, entries, rows=None):
        """Let entries take in rows of a batch, in this order.

        Parameters
        ----------
        batch : RecordBatch or object with `__arrow_c_array__`
            With the columns of the schema that the aggregates read.
        entries : numpy.ndarray of uint32, shape (n,)
            The entry of each row.
        rows : numpy.ndarray of uint32, shape (n,), or None
            The rows to take in, any number of times; None: all, as they lie.

        Raises
        ------
        SchemaError
            If a column is missing or differs from the schema's.
        IndexError
            If an entry does not exist, or a row.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef RecordBatch native = batch if isinstance(batch, RecordBatch) else RecordBatch(batch)
        cdef const uint32_t[::1] entry_view = self._checked(entries)
        cdef const uint32_t[::1] row_view
        cdef uint32_t[BLOCK_ROWS] numbers
        cdef int64_t i, done = 0, part, n = entry_view.shape[0]
        self.bind(native)
        if rows is not None:
            row_view = rows
            if row_view.shape[0] != n:
                raise ValueError(f"{n} entries but {row_view.shape[0]} rows")
            for i in range(n):
                if row_view[i] >= native.num_rows:
                    raise IndexError(f"row {row_view[i]} does not exist; the batch has {native.num_rows}")
            if n:
                with nogil:
                    accumulators_update(self.table, &entry_view[0], &row_view[0], n)
            return
        if n != native.num_rows:
            raise ValueError(f"{n} entries for the {native.num_rows} rows of the batch")
        with nogil:
            while done < n:
                part = min(n - done, <int64_t> BLOCK_ROWS)
                for i in range(part):
                    numbers[i] = <uint32_t> (done + i)
                accumulators_update(self.table, &entry_view[done], numbers, part)
                done += part

    def merge(self, uint32_t into, uint32_t other):
        """Let `into` take in all that `other` holds, which is empty afterwards.

        other's elements count as coming after into's: collect joins the lists in this order, and first, last and the
        ties of min_by and max_by follow it.
        """
        cdef Call call = begin_call(&self.guard, self)
        if into >= self.table.n_entries or other >= self.table.n_entries:
            raise IndexError(f"entries {into} and {other}; {self.table.n_entries} are reserved")
        if into == other:
            raise ValueError(f"entry {into} cannot be merged into itself")
        with nogil:
            accumulators_merge(self.table, into, other)

    def emit(self, entries):
        """Append the current results of entries (numpy.ndarray of uint32) to the result columns; the entries stay.

        Raises
        ------
        DataError
            If strings or lists would pass the 2 GiB, or 2**31 elements, that an Arrow array takes; no row is appended.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef const uint32_t[::1] view = self._checked(entries)
        if view.shape[0]:
            with nogil:
                accumulators_emit(self.table, &view[0], view.shape[0])

    def emit_range(self, uint32_t first, uint32_t n):
        """Append the current results of the entries first to first + n - 1 to the result columns."""
        cdef Call call = begin_call(&self.guard, self)
        _check_range(self.table, first, n)
        with nogil:
            accumulators_emit_range(self.table, first, n)

    def clear(self, entries):
        """Empty entries (numpy.ndarray of uint32) and free what they own."""
        cdef Call call = begin_call(&self.guard, self)
        cdef const uint32_t[::1] view = self._checked(entries)
        if view.shape[0]:
            with nogil:
                accumulators_clear(self.table, &view[0], view.shape[0])

    def clear_range(self, uint32_t first, uint32_t n):
        """Empty the entries first to first + n - 1 and free what they own."""
        cdef Call call = begin_call(&self.guard, self)
        _check_range(self.table, first, n)
        with nogil:
            accumulators_clear_range(self.table, first, n)

    def take(self):
        """Give the result columns so far, one NativeArray per aggregate; they start anew."""
        cdef Call call = begin_call(&self.guard, self)
        return self.take_columns()

    def memory_bytes(self):
        """Bytes held: arrays over the entries, what entries own, and results not yet taken.

        Complexity: O(entries) for aggregates that own strings, sets or lists.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef AccumulatorTable* table = self.table
        cdef int64_t i, size = table.capacity if table.touched != NULL else 0
        for i in range(table.n_aggregates):
            size += table.capacity * aggregate_entry_bytes(&table.aggregates[i])
            size += aggregate_owned_bytes(&table.aggregates[i], table.n_entries)
        return size

    def _check(self):
        """Assert every invariant of the table; for tests."""
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t i
        cdef AccumulatorTable* table = self.table
        assert table.n_entries <= table.capacity
        for i in range(table.n_aggregates):
            assert aggregate_is_sound(&table.aggregates[i], table.n_entries), f"{self._specs[i]} is not sound"
            if table.aggregates[i].lists == NULL:
                assert table.aggregates[i].result.length == table.rows, f"results of {self._specs[i]} are lost"
