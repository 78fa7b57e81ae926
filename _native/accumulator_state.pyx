"""Contents of accumulators for some entries as columns, and back.

Every aggregate has parts, each a column over the entries::

    words, counts, keys, states         numbers
    deviations                          floating numbers
    decimals                            numbers, of three words each: low, middle, high
    strings, key_strings                ends, bytes
    word_set                            ends, words
    byte_set                            ends, ends of the elements, bytes
    set_counts                          ends, how often each element of the set is in
    list, of words                      ends, words, nulls
    list, of bytes                      ends, ends of the elements, bytes, nulls

Ends begin with 0, and are one more than there are entries or elements. The words are those that the aggregate computes
with: bits of doubles, ordered or reflected words.
"""

import numpy as np

from libc.stdint cimport INT64_MAX, UINT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from flinkcore.errors import SchemaError

from flinkcore._native.aggregates cimport (
    AccumulatorTable,
    Accumulators,
    Aggregate,
    Function,
    Part,
    aggregate_add_states,
    counts_words,
    distinct_count,
    has_lazy_states,
)
from flinkcore._native.arrow cimport ColumnType
from flinkcore._native.call_guard cimport Call, begin_call
from flinkcore._native.column_values cimport (
    ByteSet,
    ByteView,
    DecimalSum,
    OwnedBytes,
    ValueList,
    ValueState,
    WordPlace,
    WordSet,
    byte_lists_add,
    byte_set_reserve,
    byte_sets_add,
    distribution_is_sound,
    is_value,
    is_word,
    owned_bytes_set,
    owned_bytes_view,
    sketch_is_sound,
    word_lists_add,
    word_set_next,
    word_set_reserve,
    word_sets_add,
)
from flinkcore._native.counted_values cimport CountedValues, counted_bytes_add, counted_word_add
from flinkcore._native.memory cimport Buffer, buffer_append_bytes, buffer_append_int64, buffer_free, buffer_reserve


# ---- out ---------------------------------------------------------------------------------------------------------


cdef struct Parts:
    # For entries that own values: the end of each entry's values, the end of each value's bytes, and the values.
    Buffer ends
    Buffer value_ends
    Buffer values
    Buffer nulls


cdef int _start(Parts* parts, bint of_bytes) except -1:
    memset(parts, 0, sizeof(Parts))
    buffer_append_int64(&parts.ends, 0)
    if of_bytes:
        buffer_append_int64(&parts.value_ends, 0)
    return 0


cdef void _free(Parts* parts) noexcept:
    buffer_free(&parts.ends)
    buffer_free(&parts.value_ends)
    buffer_free(&parts.values)
    buffer_free(&parts.nulls)


cdef int _add_strings(Parts* parts, const OwnedBytes* strings, const uint32_t* entries, int64_t n) except -1 nogil:
    cdef int64_t i
    for i in range(n):
        buffer_append_bytes(&parts.values, strings[entries[i]].data, strings[entries[i]].length)
        buffer_append_int64(&parts.ends, parts.values.size)
    return 0


cdef int _add_word_sets(Parts* parts, const WordSet* sets, const uint32_t* entries, int64_t n) except -1 nogil:
    cdef WordPlace place
    cdef int64_t i
    cdef uint64_t word
    for i in range(n):
        memset(&place, 0, sizeof(WordPlace))
        while word_set_next(&sets[entries[i]], &place, &word):
            buffer_append_int64(&parts.values, <int64_t> word)
        buffer_append_int64(&parts.ends, parts.values.size >> 3)
    return 0


cdef int _add_byte_sets(Parts* parts, const ByteSet* sets, const uint32_t* entries, int64_t n) except -1 nogil:
    cdef const ByteSet* strings
    cdef const uint8_t* place
    cdef int64_t i, length
    cdef uint64_t at
    for i in range(n):
        strings = &sets[entries[i]]
        if strings.slots != NULL:
            for at in range(<uint64_t> strings.mask + 1):
                if strings.slots[at].place:
                    place = strings.data.data + (strings.slots[at].place - 1)
                    memcpy(&length, place, sizeof(int64_t))
                    buffer_append_bytes(&parts.values, place + sizeof(int64_t), length)
                    buffer_append_int64(&parts.value_ends, parts.values.size)
        buffer_append_int64(&parts.ends, (parts.value_ends.size >> 3) - 1)
    return 0


cdef int _add_counted(
    Parts* parts, Buffer* counts, const CountedValues* counted, const uint32_t* entries, int64_t n, bint of_words
) except -1 nogil:
    cdef const CountedValues* values
    cdef int64_t i
    cdef uint64_t at
    for i in range(n):
        values = &counted[entries[i]]
        for at in range(<uint64_t> values.mask + 1 if values.slots != NULL else 0):
            if values.slots[at].count == 0:
                continue
            if of_words:
                buffer_append_int64(&parts.values, <int64_t> values.slots[at].code)
            else:
                buffer_append_bytes(&parts.values, values.slots[at].data, values.slots[at].length)
                buffer_append_int64(&parts.value_ends, parts.values.size)
            buffer_append_int64(counts, values.slots[at].count)
        buffer_append_int64(&parts.ends, counts.size >> 3)
    return 0


cdef int _add_lists(
    Parts* parts, const ValueList* lists, const uint32_t* entries, int64_t n, bint of_words
) except -1 nogil:
    cdef const ValueList* values
    cdef int64_t i, j, base, total = 0
    for i in range(n):
        values = &lists[entries[i]]
        base = parts.values.size
        buffer_append_bytes(&parts.values, values.values.data, values.values.size)
        if not of_words:
            for j in range(values.length):
                buffer_append_int64(&parts.value_ends, base + (<const int64_t*> values.ends.data)[j])
        buffer_reserve(&parts.nulls, values.length)
        if values.length:
            memset(parts.nulls.data + total, 0, values.length)
        for j in range(values.nulls.size >> 3):
            parts.nulls.data[total + (<const int64_t*> values.nulls.data)[j]] = 1
        total += values.length
        parts.nulls.size = total
        buffer_append_int64(&parts.ends, total)
    return 0


cdef object _array(const Buffer* buffer, object dtype):
    cdef uint8_t[::1] out = np.empty(buffer.size, np.uint8)
    if buffer.size:
        memcpy(&out[0], buffer.data, buffer.size)
    return out.base.view(dtype)


cdef tuple _string_part(const OwnedBytes* strings, const uint32_t* entries, int64_t n):
    cdef Parts parts
    _start(&parts, False)
    try:
        _add_strings(&parts, strings, entries, n)
        return _array(&parts.ends, np.int64), _array(&parts.values, np.uint8)
    finally:
        _free(&parts)


cdef dict _counted_parts(Aggregate* aggregate, const uint32_t* entries, int64_t n):
    cdef Parts parts
    cdef Buffer counts
    cdef bint of_words = counts_words(aggregate)
    _start(&parts, not of_words)
    memset(&counts, 0, sizeof(Buffer))
    try:
        _add_counted(&parts, &counts, aggregate.counted, entries, n, of_words)
        ends = _array(&parts.ends, np.int64)
        if of_words:
            values = {"word_set": (ends, _array(&parts.values, np.uint64))}
        else:
            values = {"byte_set": (ends, _array(&parts.value_ends, np.int64), _array(&parts.values, np.uint8))}
        return {**values, "set_counts": (ends, _array(&counts, np.int64))}
    finally:
        _free(&parts)
        buffer_free(&counts)


cdef dict _owned_parts(Aggregate* aggregate, const uint32_t* entries, int64_t n):
    cdef Parts parts
    cdef bint of_words = is_word(aggregate.type)
    cdef dict found = {}
    if aggregate.parts & Part.BYTES_PART:
        found["strings"] = _string_part(aggregate.strings, entries, n)
    if aggregate.parts & Part.KEY_BYTES_PART:
        found["key_strings"] = _string_part(aggregate.key_strings, entries, n)
    if aggregate.parts & Part.WORD_SET_PART:
        _start(&parts, False)
        try:
            _add_word_sets(&parts, aggregate.word_sets, entries, n)
            found["word_set"] = _array(&parts.ends, np.int64), _array(&parts.values, np.uint64)
        finally:
            _free(&parts)
    if aggregate.parts & Part.BYTE_SET_PART:
        _start(&parts, True)
        try:
            _add_byte_sets(&parts, aggregate.byte_sets, entries, n)
            found["byte_set"] = (
                _array(&parts.ends, np.int64), _array(&parts.value_ends, np.int64), _array(&parts.values, np.uint8)
            )
        finally:
            _free(&parts)
    if aggregate.parts & Part.COUNTED_PART:
        found.update(_counted_parts(aggregate, entries, n))
    if aggregate.parts & Part.LIST_PART:
        _start(&parts, not of_words)
        try:
            _add_lists(&parts, aggregate.lists, entries, n, of_words)
            values = (_array(&parts.values, np.uint64),) if of_words else (
                _array(&parts.value_ends, np.int64), _array(&parts.values, np.uint8)
            )
            found["list"] = (_array(&parts.ends, np.int64), *values, _array(&parts.nulls, np.uint8))
        finally:
            _free(&parts)
    return found


cdef int _check_entries(const AccumulatorTable* table, const uint32_t[::1] entries) except -1:
    cdef int64_t i
    for i in range(entries.shape[0]):
        if entries[i] >= table.n_entries:
            raise IndexError(f"entry {entries[i]} does not exist; {table.n_entries} are reserved")
    return 0


def accumulator_parts(Accumulators accumulators not None, const uint32_t[::1] entries not None):
    """Return the contents of the aggregates for entries.

    Parameters
    ----------
    accumulators : Accumulators
    entries : numpy.ndarray of uint32, shape (n,)

    Returns
    -------
    list of dict of str to numpy.ndarray, or tuple of these
        The parts of each aggregate, as above.

    Raises
    ------
    IndexError
        If an entry does not exist.
    """
    cdef Call call = begin_call(&accumulators.guard, accumulators)
    cdef AccumulatorTable* table = accumulators.table
    cdef Aggregate* aggregate
    cdef int64_t i, j, n = entries.shape[0]
    cdef uint32_t[::1] places = np.array(entries, np.uint32)
    cdef const uint32_t* at = &places[0] if n else NULL
    cdef const uint8_t* known
    cdef uint64_t[::1] words
    cdef int64_t[::1] counts
    cdef uint8_t[::1] states
    cdef uint64_t[:, ::1] wide
    cdef double[::1] deviations
    cdef list found = []
    _check_entries(table, entries)
    for i in range(table.n_aggregates):
        aggregate = &table.aggregates[i]
        parts = {}
        if aggregate.parts & Part.WORD_PART:
            words = parts["words"] = np.empty(n, np.uint64)
            for j in range(n):
                words[j] = aggregate.words[at[j]]
        if aggregate.parts & Part.COUNT_PART:
            counts = parts["counts"] = np.empty(n, np.int64)
            for j in range(n):
                counts[j] = aggregate.counts[at[j]]
        if aggregate.parts & Part.KEY_PART:
            words = parts["keys"] = np.empty(n, np.uint64)
            for j in range(n):
                words[j] = aggregate.keys[at[j]]
        if aggregate.parts & Part.DECIMAL_PART:
            sums = np.empty((n, 3), np.uint64)
            wide = sums
            for j in range(n):
                memcpy(&wide[j, 0], &aggregate.decimals[at[j]], sizeof(DecimalSum))
            parts["decimals"] = sums
        if aggregate.parts & Part.DEVIATION_PART:
            deviations = parts["deviations"] = np.empty(n, np.float64)
            for j in range(n):
                deviations[j] = aggregate.deviations[at[j]]
        known = table.touched if has_lazy_states(aggregate) else aggregate.states
        if has_lazy_states(aggregate) or aggregate.parts & Part.STATE_PART:
            states = parts["states"] = np.empty(n, np.uint8)
            for j in range(n):
                states[j] = known[at[j]]
        parts.update(_owned_parts(aggregate, at, n))
        found.append(parts)
    return found


# ---- in ----------------------------------------------------------------------------------------------------------


cdef object _repeated(const uint32_t[::1] entries, object ends):
    # The entry of each value.
    return np.repeat(np.asarray(entries), np.diff(ends))


cdef int _check_ends(object ends, int64_t n, int64_t n_values) except -1:
    if len(ends) != n + 1 or ends[0] != 0 or ends[n] != n_values or (np.diff(ends) < 0).any():
        raise SchemaError("the values of an aggregate in a checkpoint do not fit its rows")
    return 0


cdef int _check_numbers(str name, object numbers, int64_t n, uint64_t most) except -1:
    # One for each entry, from 0 to `most`.
    values = np.asarray(numbers)
    if values.shape != (n,):
        raise SchemaError(f"{name} of an aggregate in a checkpoint: {len(values)} for {n} windows")
    wrong = (values < 0) | (values > most)
    if wrong.any():
        row = int(wrong.argmax())
        raise SchemaError(
            f"row {row} of the windows of a checkpoint has {values[row]} among the {name} of an aggregate, which are from 0 to {most}"
        )
    return 0


cdef int _set_strings(OwnedBytes* strings, const uint32_t[::1] entries, tuple part) except -1:
    cdef const int64_t[::1] ends = part[0]
    cdef const uint8_t[::1] data = part[1]
    cdef ByteView view
    cdef int64_t i
    _check_ends(part[0], entries.shape[0], len(part[1]))
    for i in range(entries.shape[0]):
        view.length = ends[i + 1] - ends[i]
        view.data = &data[ends[i]] if view.length else NULL
        owned_bytes_set(&strings[entries[i]], view)
    return 0


cdef ByteView* _views(object value_ends, object values) except NULL:
    cdef const int64_t[::1] ends = value_ends
    cdef const uint8_t[::1] data = values
    cdef int64_t i, n = ends.shape[0] - 1
    cdef ByteView* views
    _check_ends(value_ends, n, len(values))
    views = <ByteView*> malloc((n + 1) * sizeof(ByteView))
    if views == NULL:
        raise MemoryError(f"{n} values of a checkpoint")
    for i in range(n):
        views[i].length = ends[i + 1] - ends[i]
        views[i].data = &data[ends[i]] if views[i].length else NULL
    return views


cdef int _add_word_sets_back(Aggregate* aggregate, const uint32_t[::1] entries, tuple part) except -1:
    cdef const int64_t[::1] ends = part[0]
    cdef const uint64_t[::1] words = part[1]
    cdef const uint32_t[::1] places
    cdef int64_t i
    _check_ends(part[0], entries.shape[0], len(part[1]))
    for i in range(entries.shape[0]):
        word_set_reserve(&aggregate.word_sets[entries[i]], ends[i + 1] - ends[i])
    places = _repeated(entries, part[0])
    if places.shape[0]:
        word_sets_add(aggregate.word_sets, &places[0], &words[0], places.shape[0], NULL)
    return 0


cdef int _add_byte_sets_back(Aggregate* aggregate, const uint32_t[::1] entries, tuple part) except -1:
    cdef const int64_t[::1] ends = part[0]
    cdef const uint32_t[::1] places
    cdef ByteView* views
    cdef int64_t i
    _check_ends(part[0], entries.shape[0], len(part[1]) - 1)
    for i in range(entries.shape[0]):
        byte_set_reserve(&aggregate.byte_sets[entries[i]], ends[i + 1] - ends[i])
    views = _views(part[1], part[2])
    places = _repeated(entries, part[0])
    try:
        if places.shape[0]:
            byte_sets_add(aggregate.byte_sets, &places[0], views, places.shape[0], NULL)
    finally:
        free(views)
    return 0


cdef int _add_counted_back(Aggregate* aggregate, const uint32_t[::1] entries, dict part) except -1:
    cdef const int64_t[::1] ends = part["set_counts"][0]
    cdef const int64_t[::1] counts = part["set_counts"][1]
    cdef const uint64_t[::1] words
    cdef ByteView* views = NULL
    cdef int64_t i, j
    cdef bint of_words = counts_words(aggregate)
    values = part["word_set" if of_words else "byte_set"]
    _check_ends(part["set_counts"][0], entries.shape[0], counts.shape[0])
    if of_words:
        words = values[1]
    is_wrong = counts.shape[0] != len(values[1]) - (not of_words) or not np.array_equal(values[0], part["set_counts"][0])
    if is_wrong or (counts.shape[0] and not 1 <= np.min(part["set_counts"][1]) <= np.max(part["set_counts"][1]) < 2**62):
        raise SchemaError("the distinct values of a frame in a checkpoint do not fit their counts")
    if not of_words:
        views = _views(values[1], values[2])
    try:
        for i in range(entries.shape[0]):
            for j in range(ends[i], ends[i + 1]):
                if of_words:
                    counted_word_add(&aggregate.counted[entries[i]], words[j], counts[j])
                elif aggregate.decimals != NULL and views[j].length != sizeof(DecimalSum):
                    _refuse_value(j)
                else:
                    counted_bytes_add(&aggregate.counted[entries[i]], views[j], counts[j])
    finally:
        free(views)
    return 0


cdef int _add_lists_back(Aggregate* aggregate, const uint32_t[::1] entries, tuple part) except -1:
    cdef const uint32_t[::1] places
    cdef const uint64_t[::1] words
    cdef uint8_t[::1] states
    cdef ByteView* views = NULL
    cdef int64_t n_values = len(part[len(part) - 1])
    _check_ends(part[0], entries.shape[0], n_values)
    places = _repeated(entries, part[0])
    states = np.where(np.asarray(part[len(part) - 1]) != 0, ValueState.NULL_VALUE, ValueState.SOME_VALUE).astype(np.uint8)
    if is_word(aggregate.type):
        words = part[1]
        if words.shape[0] != n_values:
            raise SchemaError("the values of a list in a checkpoint do not fit its nulls")
        if n_values:
            word_lists_add(aggregate.lists, &places[0], &words[0], &states[0], n_values)
        return 0
    if len(part[1]) != n_values + 1:
        raise SchemaError("the values of a list in a checkpoint do not fit its nulls")
    views = _views(part[1], part[2])
    try:
        if n_values:
            byte_lists_add(aggregate.lists, &places[0], views, &states[0], n_values)
    finally:
        free(views)
    return 0


cdef int _refuse_value(int64_t row) except -1:
    raise SchemaError(f"value {row} of an aggregate in a checkpoint is none of the type of its column")


cdef inline bint _has_any_bytes(const Aggregate* aggregate) noexcept:
    # Returns true if any bytes are a value of its column: those of text, whose encoding others check, and those that are only counted.
    return aggregate.function == Function.COUNT_DISTINCT or (aggregate.nested == NULL and aggregate.result.width == 0)


cdef inline bint _is_own_value(const Aggregate* aggregate, ByteView view):
    # Returns true if bytes are a value of its column: values of one width are read without a check of their length.
    if aggregate.nested != NULL:
        return is_value(aggregate.nested, view.data, view.length)
    return aggregate.result.width == 0 or view.length == aggregate.result.width


cdef int _check_values(Aggregate* aggregate, const uint32_t[::1] entries, const uint8_t[::1] states) except -1:
    cdef int64_t i
    if _has_any_bytes(aggregate):
        return 0
    for i in range(min(states.shape[0], entries.shape[0])):
        if states[i] == ValueState.SOME_VALUE and not _is_own_value(
            aggregate, owned_bytes_view(&aggregate.strings[entries[i]])
        ):
            _refuse_value(i)
    return 0


cdef int _check_keys(Aggregate* aggregate, const uint32_t[::1] entries, const uint8_t[::1] states) except -1:
    # The bytes to compare: any bytes, or the 16 of a decimal.
    cdef int64_t i
    if aggregate.by_type != ColumnType.DECIMAL128:
        return 0
    for i in range(min(states.shape[0], entries.shape[0])):
        if states[i] != ValueState.NO_VALUE and aggregate.key_strings[entries[i]].length != 16:
            _refuse_value(i)
    return 0


cdef int _check_elements(Aggregate* aggregate, tuple part) except -1:
    cdef const uint8_t[::1] nulls
    cdef ByteView* views
    cdef int64_t i
    if is_word(aggregate.type) or _has_any_bytes(aggregate):
        return 0
    nulls = part[3]
    views = _views(part[1], part[2])
    try:
        for i in range(min(nulls.shape[0], len(part[1]) - 1)):
            if not nulls[i] and not _is_own_value(aggregate, views[i]):
                _refuse_value(i)
    finally:
        free(views)
    return 0


cdef int _restore_states(
    AccumulatorTable* table, Aggregate* aggregate, const uint32_t[::1] entries, const uint8_t[::1] states
) except -1:
    # A sum or least word has states only once a null has come: then its rows with no value differ from those without rows.
    cdef int64_t j
    cdef bint plain = True
    if has_lazy_states(aggregate):
        for j in range(entries.shape[0]):
            plain = plain and states[j] == table.touched[entries[j]]
        if plain:
            return 0
        aggregate_add_states(aggregate, table.touched, table.n_entries, table.capacity)
    for j in range(entries.shape[0]):
        aggregate.states[entries[j]] = states[j]
    return 0


def restore_accumulator_parts(
    Accumulators accumulators not None,
    const uint32_t[::1] entries not None,
    const uint8_t[::1] touched not None,
    list parts not None,
):
    """Restore empty entries from what `accumulator_parts` returned.

    Parameters
    ----------
    accumulators : Accumulators
        Accumulators of the same aggregates over the same types.
    entries : numpy.ndarray of uint32, shape (n,)
        Distinct entries.
    touched : numpy.ndarray of uint8, shape (n,)
        As from `touched_entries`.
    parts : list of dict of str to numpy.ndarray, or tuple of these

    Raises
    ------
    SchemaError
        If the parts are not those of the aggregates.
    IndexError
        If an entry does not exist.
    """
    cdef Call call = begin_call(&accumulators.guard, accumulators)
    cdef AccumulatorTable* table = accumulators.table
    cdef Aggregate* aggregate
    cdef int64_t i, j, n = entries.shape[0]
    cdef const uint64_t[::1] words
    cdef const int64_t[::1] counts
    cdef const uint64_t[:, ::1] wide
    cdef const double[::1] deviations
    _check_entries(table, entries)
    if len(parts) != table.n_aggregates:
        raise SchemaError(f"{len(parts)} aggregates of a checkpoint for {table.n_aggregates}")
    _check_numbers("touched", touched, n, 1)
    if table.touched != NULL:
        for j in range(n):
            table.touched[entries[j]] = touched[j]
    for i in range(table.n_aggregates):
        aggregate = &table.aggregates[i]
        part = parts[i]
        try:
            if aggregate.parts & Part.WORD_PART:
                words = part["words"]
                _check_numbers("words", part["words"], n, INT64_MAX if aggregate.function == Function.COUNT else UINT64_MAX)
                for j in range(n):
                    aggregate.words[entries[j]] = words[j]
            if aggregate.parts & Part.COUNT_PART:
                counts = part["counts"]
                _check_numbers("counts", part["counts"], n, INT64_MAX)
                for j in range(n):
                    aggregate.counts[entries[j]] = counts[j]
            if aggregate.parts & Part.KEY_PART:
                words = part["keys"]
                _check_numbers("keys", part["keys"], n, UINT64_MAX)
                for j in range(n):
                    aggregate.keys[entries[j]] = words[j]
            if aggregate.parts & Part.DECIMAL_PART:
                wide = part["decimals"]
                if wide.shape[0] != n or wide.shape[1] != 3:
                    raise SchemaError(f"decimals of an aggregate in a checkpoint: {wide.shape[0]} for {n} windows")
                for j in range(n):
                    memcpy(&aggregate.decimals[entries[j]], &wide[j, 0], sizeof(DecimalSum))
            if aggregate.parts & Part.DEVIATION_PART:
                deviations = part["deviations"]
                if deviations.shape[0] != n:
                    raise SchemaError(f"deviations of an aggregate in a checkpoint: {deviations.shape[0]} for {n} windows")
                for j in range(n):
                    aggregate.deviations[entries[j]] = deviations[j]
            if aggregate.parts & Part.BYTES_PART:
                _set_strings(aggregate.strings, entries, part["strings"])
                if aggregate.parts & Part.STATE_PART:  # otherwise they are not values
                    _check_values(aggregate, entries, part["states"])
            if aggregate.parts & Part.KEY_BYTES_PART:
                _set_strings(aggregate.key_strings, entries, part["key_strings"])
                _check_keys(aggregate, entries, part["states"])
            if aggregate.parts & Part.WORD_SET_PART:
                _add_word_sets_back(aggregate, entries, part["word_set"])
            if aggregate.parts & Part.BYTE_SET_PART:
                _add_byte_sets_back(aggregate, entries, part["byte_set"])
            if aggregate.parts & Part.COUNTED_PART:
                _add_counted_back(aggregate, entries, part)
            if aggregate.function == Function.COUNT_DISTINCT and aggregate.parts & Part.WORD_PART:
                for j in range(n):
                    if distinct_count(aggregate, entries[j]) != aggregate.words[entries[j]]:
                        raise SchemaError("the number of distinct values of a frame in a checkpoint is wrong")
            if aggregate.parts & Part.LIST_PART:
                _check_elements(aggregate, part["list"])
                _add_lists_back(aggregate, entries, part["list"])
            if aggregate.function == Function.APPROX_DISTINCT:
                for j in range(n):
                    if not sketch_is_sound(&aggregate.word_sets[entries[j]], &aggregate.strings[entries[j]]):
                        raise SchemaError(f"row {j} of the windows of a checkpoint has a sketch that no values make")
            if aggregate.function == Function.APPROX_PERCENTILE:
                for j in range(n):
                    if not distribution_is_sound(&aggregate.strings[entries[j]]):
                        raise SchemaError(f"row {j} of the windows of a checkpoint has a distribution that no values make")
            if has_lazy_states(aggregate) or aggregate.parts & Part.STATE_PART:
                _check_numbers("states", part["states"], n, ValueState.NULL_VALUE)
                _restore_states(table, aggregate, entries, part["states"])
        except KeyError as missing:
            raise SchemaError(f"aggregate {i} of a checkpoint lacks its {missing}") from missing


def touched_entries(Accumulators accumulators not None, const uint32_t[::1] entries not None):
    """Return which entries have a row (numpy.ndarray of uint8); 0 for all if no aggregate needs it."""
    cdef Call call = begin_call(&accumulators.guard, accumulators)
    cdef uint8_t[::1] touched = np.zeros(entries.shape[0], np.uint8)
    cdef int64_t j
    _check_entries(accumulators.table, entries)
    if accumulators.table.touched != NULL:
        for j in range(entries.shape[0]):
            touched[j] = accumulators.table.touched[entries[j]]
    return touched.base
