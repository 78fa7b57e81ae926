"""The search for a pattern in the rows of each key: MATCH_RECOGNIZE.

The rows of a key come one after the other. What may become a match is a *run*: rows that follow each other, each taken by a variable. As
the variables of a pattern are a sequence, a run is its first row, the state of the automaton, and how many rows each variable has taken::

    rows of a key   r0 r1 r2 r3 r4 r5          run: from r1 on, counts (1, 3, 0), before r5
    variables          A  B  B  B

A row lets a run end, go on in one way, or in several. The runs of a key, and the matches that wait for runs that began earlier, are heaps
by first row that work as Java's PriorityQueue, since Flink emits the first of several matches that begin with the same row.

A condition that reads other rows than the one to be taken is not evaluated here. Keys that need one wait until all others have been
searched: `run` then returns, and the conditions of all of them are evaluated together.
"""

import numpy as np

import cython
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memmove, memset

from flinkcore.errors import ConfigurationError, SchemaError

from flinkcore._native.call_guard cimport Call, CallGuard, begin_call, check_no_call
from flinkcore._native.memory cimport Buffer, buffer_append, buffer_append_int64, buffer_free, grow
from flinkcore._native.packed_steps cimport (
    WATERMARKS,
    PackedSteps,
    StepColumn,
    StepCursor,
    steps_below,
    steps_close,
    steps_open,
    steps_value,
)
from flinkcore._native.timer_queue cimport Timer, TimerQueue, timer_queue_add, timer_queue_poll_due
from flinkcore._native.timers cimport TimerHeap
from flinkcore._native.window_operator cimport saturating_add


cdef enum:
    ALL_ROWS = -1          # in place of a variable
    START = 0xFFFFFFFF     # in place of a run: the start, which waits for a first row
    NOTHING = -1
    MOST_WORK = 1 << 20    # runs that get a row in one call, so that Ctrl-C ends a long search

cdef enum SkipTo:
    PAST_LAST_ROW
    TO_NEXT_ROW
    TO_FIRST
    TO_LAST

cdef enum Failure:
    NO_FAILURE
    SKIPPED_TO_NO_ROW
    SKIPPED_TO_FIRST_ROW

cdef enum Operation:
    LOOK              # the value of a row
    COUNT             # values of a variable that are not null
    SUM
    LEAST
    GREATEST
    CONSTANT
    NULL_VALUE
    ADD               # integers, up to MODULO
    SUBTRACT
    MULTIPLY
    DIVIDE
    MODULO
    WRAP
    TO_DOUBLE
    ADD_DOUBLES       # doubles, up to DIVIDE_DOUBLES
    SUBTRACT_DOUBLES
    MULTIPLY_DOUBLES
    DIVIDE_DOUBLES
    LESS              # integers
    AT_MOST
    EQUAL
    LESS_DOUBLES
    AT_MOST_DOUBLES
    EQUAL_DOUBLES
    BOTH
    EITHER
    NEGATED
    IS_NULL

OPERATIONS = {
    "look": LOOK, "count": COUNT, "sum": SUM, "min": LEAST, "max": GREATEST, "constant": CONSTANT, "null": NULL_VALUE, "+": ADD,
    "-": SUBTRACT, "*": MULTIPLY, "/": DIVIDE, "%": MODULO, "wrap": WRAP, "double": TO_DOUBLE, "+ doubles": ADD_DOUBLES,
    "- doubles": SUBTRACT_DOUBLES, "* doubles": MULTIPLY_DOUBLES, "/ doubles": DIVIDE_DOUBLES, "<": LESS, "<=": AT_MOST, "=": EQUAL,
    "< doubles": LESS_DOUBLES, "<= doubles": AT_MOST_DOUBLES, "= doubles": EQUAL_DOUBLES, "and": BOTH, "or": EITHER, "not": NEGATED,
    "is null": IS_NULL,
}  # fmt: skip

cdef enum:
    MOST_VALUES = 64  # on the stack of a condition

MOST_STEPS = MOST_VALUES

SKIPS = {"past last row": PAST_LAST_ROW, "to next row": TO_NEXT_ROW, "to first": TO_FIRST, "to last": TO_LAST}
FAILURES = {SKIPPED_TO_NO_ROW: "no row", SKIPPED_TO_FIRST_ROW: "first row"}

cdef const char* WHAT = b"the rows and runs of a pattern"


cdef struct Test:
    int32_t variable
    int32_t wanted


cdef struct Transition:
    int32_t target
    int32_t variable     # that takes the row, or NOTHING
    int32_t first_test
    int32_t n_tests


cdef struct State:
    int32_t first_transition
    int32_t n_transitions


cdef struct Look:
    int32_t variable     # or ALL_ROWS
    int32_t is_first
    int64_t offset


cdef struct Reader:
    # What an expression reads: rows by place, and all rows of variables. With those that wait to be read.
    Look* looks
    int64_t n_looks
    int32_t* groups      # variables, or ALL_ROWS
    int64_t n_groups
    Buffer looked        # int64, n_looks for each
    Buffer members       # int64, row after row of each group
    Buffer member_counts  # int64, n_groups for each
    Buffer asked         # Request; conditions only


cdef union Number:
    int64_t whole
    double real


cdef struct Value:
    Number number
    bint is_null


cdef struct Step:
    int32_t operation
    int32_t bits
    int32_t column
    int32_t is_first
    int32_t variable
    int64_t value        # a constant, or the offset of a row


cdef struct Program:
    # A condition that is evaluated natively; without steps, none.
    Step* steps
    int64_t n


cdef struct Request:
    uint32_t key
    uint32_t run


cdef struct KeyedRow:
    int64_t row
    int64_t time
    uint64_t nulls       # of the values, which follow


cdef struct Run:
    int64_t start        # place of its first row among those of the key
    int64_t start_ms
    uint64_t known       # variables whose condition has been evaluated for the next row
    uint64_t values
    int32_t state
    int32_t n_rows       # counts of the variables follow


cdef struct Runs:
    # A heap by first row.
    uint32_t* slots
    uint32_t n
    uint32_t capacity


cdef struct MatchKey:
    char* rows           # KeyedRow and values, from place `first` on: those that runs and matches still have
    uint32_t rows_begin
    uint32_t rows_end
    uint32_t rows_capacity
    int32_t key_group
    int64_t first
    int64_t next         # place of the next row
    Runs runs            # none: the start alone
    Runs matches         # that wait for earlier runs
    int64_t last_step    # of its last row
    int32_t head         # its next row in the batch, or NOTHING
    int32_t tail
    uint64_t start_known
    uint64_t start_values
    bint in_row          # the conditions of the next row are being evaluated
    bint has_timer


cdef struct MatchRow:
    # A match that is emitted.
    int64_t row          # its first one
    int64_t step
    int64_t fired
    int64_t timestamp
    int64_t order
    uint32_t key_id
    int32_t key_group


cdef struct MatchState:
    State* states
    Transition* transitions
    Test* tests
    int32_t final
    int32_t n_variables
    SkipTo skip
    int32_t skip_variable
    int64_t within_ms    # 0: none
    uint64_t known       # variables whose condition the batch has for each row, and those without
    uint64_t always      # those without
    Program* programs    # of the conditions by variable
    int64_t n_columns
    int64_t row_bytes    # of a row with its values
    Reader* readers      # of the conditions by variable, then of the measures
    TimerQueue* timers
    StepCursor steps
    int64_t n_steps
    MatchKey* keys
    int64_t n_keys
    int64_t keys_capacity
    char* slots          # of runs
    int64_t slot_bytes
    uint32_t n_slots
    uint32_t slots_capacity
    Buffer free_slots
    int64_t n_live       # rows that keys hold
    Buffer emitted       # MatchRow
    Runs grown           # scratch: runs after a row
    Runs ended           # matches of a row
    int32_t* targets     # scratch: what a run does with a row
    int32_t* takers
    uint8_t* completes
    Failure failure
    int64_t failed_row
    # the batch
    int64_t n
    const uint32_t* key_ids
    const int32_t* key_groups
    const int64_t* rows
    const int64_t* timestamps
    const int64_t* row_steps
    const uint64_t* values
    const int64_t* numbers   # (n, n_columns)
    const uint64_t* nulls
    int64_t work         # runs that have got a row in this call
    int32_t* following   # the next row of the same key
    int64_t following_capacity
    Buffer working       # keys with rows of the batch left


# ---- heaps of runs -----------------------------------------------------------------------------------------------


cdef inline Run* _run(const MatchState* state, uint32_t slot) noexcept nogil:
    return <Run*> (state.slots + <int64_t> slot * state.slot_bytes)


cdef inline int32_t* _counts(Run* run) noexcept nogil:
    return <int32_t*> (run + 1)


cdef inline int64_t _begin(const MatchState* state, uint32_t slot) noexcept nogil:
    # Places are compared as Flink compares first events: the start comes last.
    return INT64_MAX if slot == START else _run(state, slot).start


cdef int _reserve(Runs* runs, uint32_t n) except -1 nogil:
    cdef uint32_t capacity
    if n > runs.capacity:
        capacity = max(n, 2 * runs.capacity + 2)
        runs.slots = <uint32_t*> grow(runs.slots, <int64_t> capacity * 4, WHAT)
        runs.capacity = capacity
    return 0


cdef void _sift_down(const MatchState* state, Runs* runs, uint32_t at, uint32_t slot) noexcept nogil:
    cdef int64_t begin = _begin(state, slot)
    cdef uint32_t half = runs.n >> 1, child
    while at < half:
        child = 2 * at + 1
        if child + 1 < runs.n and _begin(state, runs.slots[child]) > _begin(state, runs.slots[child + 1]):
            child += 1
        if begin <= _begin(state, runs.slots[child]):
            break
        runs.slots[at] = runs.slots[child]
        at = child
    runs.slots[at] = slot


cdef int _add(const MatchState* state, Runs* runs, uint32_t slot) except -1 nogil:
    cdef int64_t begin = _begin(state, slot)
    cdef uint32_t at = runs.n, parent
    _reserve(runs, runs.n + 1)
    runs.n += 1
    while at:
        parent = (at - 1) >> 1
        if begin >= _begin(state, runs.slots[parent]):
            break
        runs.slots[at] = runs.slots[parent]
        at = parent
    runs.slots[at] = slot
    return 0


cdef uint32_t _poll(const MatchState* state, Runs* runs) noexcept nogil:
    cdef uint32_t found = runs.slots[0]
    runs.n -= 1
    if runs.n:
        _sift_down(state, runs, 0, runs.slots[runs.n])
    return found


cdef int _prune(MatchState* state, Runs* runs, int64_t last) except -1 nogil:
    # Removes those that begin up to a place, as PriorityQueue.removeAll does.
    cdef uint32_t i, kept = 0, at
    for i in range(runs.n):
        if _begin(state, runs.slots[i]) <= last:
            _free_run(state, runs.slots[i])
        else:
            runs.slots[kept] = runs.slots[i]
            kept += 1
    if kept < runs.n:
        runs.n = kept
        at = kept >> 1
        while at:
            at -= 1
            _sift_down(state, runs, at, runs.slots[at])
    return 0


cdef uint32_t _new_run(MatchState* state) except? 0xFFFFFFFF nogil:
    cdef uint32_t capacity, slot
    if state.free_slots.size:
        state.free_slots.size -= 4
        slot = (<uint32_t*> (state.free_slots.data + state.free_slots.size))[0]
    else:
        if state.n_slots == state.slots_capacity:
            capacity = state.slots_capacity + (state.slots_capacity >> 1) + 64
            state.slots = <char*> grow(state.slots, <int64_t> capacity * state.slot_bytes, WHAT)
            state.slots_capacity = capacity
        slot = state.n_slots
        state.n_slots += 1
    return slot


cdef int _free_run(MatchState* state, uint32_t slot) except -1 nogil:
    if slot != START:
        (<uint32_t*> buffer_append(&state.free_slots, 4))[0] = slot
    return 0


# ---- rows of a key -----------------------------------------------------------------------------------------------


cdef inline KeyedRow* _kept(const MatchState* state, const MatchKey* key, int64_t place) noexcept nogil:
    return <KeyedRow*> (key.rows + (key.rows_begin + (place - key.first)) * state.row_bytes)


cdef inline int64_t _row_at(const MatchState* state, const MatchKey* key, int64_t place, int64_t current) noexcept nogil:
    # The row to be taken has the next place.
    return current if place == key.next else _kept(state, key, place).row


cdef int _keep_row(
    MatchState* state, MatchKey* key, int64_t row, int64_t time, uint64_t nulls, const int64_t* numbers
) except -1 nogil:
    cdef KeyedRow* kept
    cdef uint32_t n = key.rows_end - key.rows_begin, capacity
    if n == 0:
        key.first = key.next
        key.rows_begin = key.rows_end = 0
    if key.rows_end == key.rows_capacity:
        if key.rows_begin > 8 and 2 * key.rows_begin >= key.rows_capacity:
            memmove(key.rows, key.rows + key.rows_begin * state.row_bytes, n * state.row_bytes)
            key.rows_begin, key.rows_end = 0, n
        else:
            capacity = 2 * key.rows_capacity + 2
            key.rows = <char*> grow(key.rows, <int64_t> capacity * state.row_bytes, WHAT)
            key.rows_capacity = capacity
    kept = <KeyedRow*> (key.rows + <int64_t> key.rows_end * state.row_bytes)
    kept.row, kept.time, kept.nulls = row, time, nulls
    if state.n_columns:
        memcpy(kept + 1, numbers, 8 * state.n_columns)
    key.rows_end += 1
    state.n_live += 1
    return 0


cdef void _drop_rows(MatchState* state, MatchKey* key, int64_t first) noexcept nogil:
    # Drops the rows before a place.
    cdef int64_t n = min(first - key.first, <int64_t> (key.rows_end - key.rows_begin))
    if n > 0:
        key.rows_begin += <uint32_t> n
        key.first += n
        state.n_live -= n


cdef void _free_key(MatchKey* key) noexcept nogil:
    free(key.rows)
    free(key.runs.slots)
    free(key.matches.slots)
    key.rows = NULL
    key.rows_begin = key.rows_end = key.rows_capacity = 0
    memset(&key.runs, 0, sizeof(Runs))
    memset(&key.matches, 0, sizeof(Runs))


cdef int _rest(MatchState* state, MatchKey* key) except -1 nogil:
    # Keeps what the runs and matches of a key need, and a timer for the first run that ends in time.
    cdef int64_t first = INT64_MAX
    if key.runs.n:
        first = _begin(state, key.runs.slots[0])
    if key.matches.n:
        first = min(first, _begin(state, key.matches.slots[0]))
    if first == INT64_MAX:
        state.n_live -= key.rows_end - key.rows_begin
        _free_key(key)
        return 0
    _drop_rows(state, key, first)
    return 0


cdef int _set_timer(MatchState* state, MatchKey* key, uint32_t key_id) except -1 nogil:
    cdef uint32_t slot
    if state.within_ms and not key.has_timer and key.runs.n and key.runs.slots[0] != START:
        slot = key.runs.slots[0]
        timer_queue_add(
            state.timers, saturating_add(_run(state, slot).start_ms, state.within_ms), key_id, key.key_group, 0
        )
        key.has_timer = True
    return 0


cdef int _reach(MatchState* state, int64_t n_keys) except -1 nogil:
    cdef int64_t capacity, i
    if n_keys <= state.n_keys:
        return 0
    if n_keys > state.keys_capacity:
        capacity = max(n_keys, state.keys_capacity + (state.keys_capacity >> 1))
        state.keys = <MatchKey*> grow(state.keys, capacity * <int64_t> sizeof(MatchKey), WHAT)
        state.keys_capacity = capacity
    memset(state.keys + state.n_keys, 0, (n_keys - state.n_keys) * sizeof(MatchKey))
    for i in range(state.n_keys, n_keys):
        state.keys[i].head = NOTHING
    state.n_keys = n_keys
    return 0


# ---- what expressions read ---------------------------------------------------------------------------------------


cdef int _read(
    const MatchState* state, Reader* reader, const MatchKey* key, Run* run, int32_t taker, int64_t current
) except -1 nogil:
    # Appends the rows that an expression reads of a run: with the current row as one of the variable `taker`, if that is not NOTHING.
    cdef int64_t i, place, begin, end, count
    cdef int32_t variable
    for i in range(reader.n_looks):
        _range(state, key, run, taker, reader.looks[i].variable, &begin, &end)
        place = begin + reader.looks[i].offset if reader.looks[i].is_first else end - 1 - reader.looks[i].offset
        buffer_append_int64(&reader.looked, _row_at(state, key, place, current) if begin <= place < end else -1)
    for i in range(reader.n_groups):
        _range(state, key, run, taker, reader.groups[i], &begin, &end)
        for place in range(begin, end):
            buffer_append_int64(&reader.members, _row_at(state, key, place, current))
        buffer_append_int64(&reader.member_counts, end - begin)
    return 0


cdef void _range(
    const MatchState* state, const MatchKey* key, Run* run, int32_t taker, int32_t variable, int64_t* begin, int64_t* end
) noexcept nogil:
    # The places of the rows of a variable: they follow each other. A run of NULL is the start.
    cdef int64_t at = key.next if run == NULL else run.start
    cdef int32_t i
    if variable == ALL_ROWS:
        begin[0] = at
        end[0] = at + (0 if run == NULL else run.n_rows) + (taker != NOTHING)
        return
    if run != NULL:
        for i in range(variable):
            at += _counts(run)[i]
    begin[0] = at
    end[0] = at + (0 if run == NULL else _counts(run)[variable])
    if variable == taker:
        if begin[0] == end[0]:
            begin[0] = key.next
        end[0] = key.next + 1


cdef inline bint _value_at(
    const MatchState* state, const MatchKey* key, int64_t place, int64_t i, int32_t column, Number* found
) noexcept nogil:
    # Finds a value of a row of the key, or of row i of the batch, which has the next place. False: it is null.
    cdef const KeyedRow* kept
    if place == key.next:
        found.whole = state.numbers[i * state.n_columns + column]
        return not (state.nulls[i] >> column) & 1
    kept = _kept(state, key, place)
    found.whole = (<const int64_t*> (kept + 1))[column]
    return not (kept.nulls >> column) & 1


cdef inline int64_t _wrapped(int64_t value, int32_t bits) noexcept nogil:
    return value if bits == 64 else (<int64_t> (<uint64_t> value << (64 - bits))) >> (64 - bits)


cdef void _aggregate(
    const MatchState* state, const MatchKey* key, int64_t begin, int64_t end, int64_t i, const Step* step, Value* found
) noexcept nogil:
    cdef int64_t place, total = 0, n = 0
    cdef Number each
    for place in range(begin, end):
        if _value_at(state, key, place, i, step.column, &each):
            if step.operation == Operation.SUM:
                total += each.whole
            elif n == 0 or (each.whole < total if step.operation == Operation.LEAST else each.whole > total):
                total = each.whole
            n += 1
    found.is_null = n == 0 and step.operation != Operation.COUNT
    found.number.whole = n if step.operation == Operation.COUNT else _wrapped(total, step.bits)


cdef bint _compute(const Step* step, Value* left, const Value* right) noexcept nogil:
    # Computes an operation of two values into the first. Returns false where it fails: a division by zero.
    cdef int64_t a = left.number.whole, b = right.number.whole
    cdef double x = left.number.real, y = right.number.real
    cdef int32_t operation = step.operation
    if operation == Operation.BOTH or operation == Operation.EITHER:
        # The value that decides, if one of them is it, and else null if one of them is null.
        if (not left.is_null and (a != 0) == (operation == Operation.EITHER)) or (
            not right.is_null and (b != 0) == (operation == Operation.EITHER)
        ):
            left.number.whole = operation == Operation.EITHER
            left.is_null = False
        else:
            left.is_null |= right.is_null
        return True
    if left.is_null or right.is_null:
        left.is_null = True
        return True
    if operation == Operation.ADD:
        a = _wrapped(a + b, step.bits)
    elif operation == Operation.SUBTRACT:
        a = _wrapped(a - b, step.bits)
    elif operation == Operation.MULTIPLY:
        a = _wrapped(a * b, step.bits)
    elif operation == Operation.DIVIDE or operation == Operation.MODULO:
        if b == 0:
            return False
        if b == -1:
            a = _wrapped(-a, step.bits) if operation == Operation.DIVIDE else 0
        else:
            a = a // b if operation == Operation.DIVIDE else a % b
    elif operation == Operation.LESS:
        a = a < b
    elif operation == Operation.AT_MOST:
        a = a <= b
    elif operation == Operation.EQUAL:
        a = a == b
    elif operation == Operation.LESS_DOUBLES:
        a = x < y
    elif operation == Operation.AT_MOST_DOUBLES:
        a = x <= y
    elif operation == Operation.EQUAL_DOUBLES:
        a = x == y
    else:
        if operation == Operation.ADD_DOUBLES:
            x = x + y
        elif operation == Operation.SUBTRACT_DOUBLES:
            x = x - y
        elif operation == Operation.MULTIPLY_DOUBLES:
            x = x * y
        else:
            x = x / y
        left.number.real = x
        return True
    left.number.whole = a
    return True


cdef int32_t _evaluate(
    const MatchState* state, const Program* program, const MatchKey* key, Run* run, int32_t taker, int64_t i
) noexcept nogil:
    # Returns the value of a condition for row i of the batch, 0 or 1; -1 where it fails.
    cdef Value[MOST_VALUES] stack
    cdef Value* top = stack - 1
    cdef const Step* step
    cdef int64_t begin, end, place, at
    for at in range(program.n):
        step = &program.steps[at]
        if step.operation <= Operation.GREATEST:
            _range(state, key, run, taker, step.variable, &begin, &end)
            top += 1
            if step.operation == Operation.LOOK:
                place = begin + step.value if step.is_first else end - 1 - step.value
                top.is_null = not (begin <= place < end and _value_at(state, key, place, i, step.column, &top.number))
            else:
                _aggregate(state, key, begin, end, i, step, top)
        elif step.operation == Operation.CONSTANT or step.operation == Operation.NULL_VALUE:
            top += 1
            top.number.whole = step.value
            top.is_null = step.operation == Operation.NULL_VALUE
        elif step.operation == Operation.WRAP:
            top.number.whole = _wrapped(top.number.whole, step.bits)
        elif step.operation == Operation.TO_DOUBLE:
            top.number.real = <double> top.number.whole
        elif step.operation == Operation.NEGATED:
            top.number.whole = not top.number.whole
        elif step.operation == Operation.IS_NULL:
            top.number.whole = top.is_null
            top.is_null = False
        else:
            top -= 1
            if not _compute(step, top, top + 1):
                return -1
    return not top.is_null and top.number.whole != 0


# ---- what a row does ---------------------------------------------------------------------------------------------


cdef inline int32_t _passes(
    const MatchState* state, const Transition* way, uint64_t known, uint64_t values, int32_t* needed
) noexcept nogil:
    # Returns whether all tests of a transition hold; -1 if a condition is needed that has not been evaluated.
    cdef int32_t i
    cdef const Test* test
    for i in range(way.n_tests):
        test = &state.tests[way.first_test + i]
        if not (known >> test.variable) & 1:
            needed[0] = test.variable
            return -1
        if <int32_t> ((values >> test.variable) & 1) != test.wanted:
            return 0
    return 1


cdef int32_t _decide(
    const MatchState* state, int32_t at, uint64_t known, uint64_t values, int32_t* needed
) noexcept nogil:
    # Finds what a run does with a row: target, variable and whether a match ends there, in Flink's order. Returns how many ways there
    # are, or -1 if a condition is needed. A state has at most one transition that takes no row.
    cdef int32_t n = 0, i, j, passes, without, ahead
    cdef const Transition* way
    cdef const State* here
    while at != NOTHING:
        here = &state.states[at]
        without = NOTHING
        for i in range(here.n_transitions):
            way = &state.transitions[here.first_transition + i]
            passes = _passes(state, way, known, values, needed)
            if passes < 0:
                return -1
            if not passes:
                continue
            if way.variable == NOTHING:
                without = way.target
            else:
                state.targets[n] = way.target
                state.takers[n] = way.variable
                n += 1
        at = without
    for i in range(n):
        ahead = state.targets[i]
        state.completes[i] = False
        while ahead != NOTHING and ahead != state.final:
            here = &state.states[ahead]
            ahead = NOTHING
            for j in range(here.n_transitions):
                way = &state.transitions[here.first_transition + j]
                if way.variable == NOTHING:
                    passes = _passes(state, way, known, values, needed)
                    if passes < 0:
                        return -1
                    if passes:
                        ahead = way.target
        state.completes[i] = ahead == state.final
    return n


cdef uint32_t _grown(
    MatchState* state, MatchKey* key, uint32_t slot, int32_t taker, int32_t target, int64_t time
) except? 0xFFFFFFFF nogil:
    # Returns a new run: one that has taken the row, too.
    cdef uint32_t new = _new_run(state)
    cdef Run* run = _run(state, new)
    if slot == START:
        memset(run, 0, state.slot_bytes)
        run.start = key.next
        run.start_ms = time
    else:
        memcpy(run, _run(state, slot), state.slot_bytes)
    run.state = target
    run.n_rows += 1
    _counts(run)[taker] += 1
    return new


cdef int _emit(
    MatchState* state, MatchKey* key, uint32_t key_id, Run* run, int64_t current, int64_t timestamp, int64_t step, int64_t fired, int64_t order
) except -1 nogil:
    cdef MatchRow* row = <MatchRow*> buffer_append(&state.emitted, sizeof(MatchRow))
    row.row = _row_at(state, key, run.start, current)
    row.step = step
    row.fired = fired
    row.timestamp = timestamp
    row.order = order
    row.key_id = key_id
    row.key_group = key.key_group
    _read(state, &state.readers[state.n_variables], key, run, NOTHING, current)
    return 0


cdef int64_t _last_skipped(MatchState* state, const MatchKey* key, Run* run, int64_t current) noexcept nogil:
    # Returns the last place at which no further match may begin after this one.
    cdef int64_t begin, end, place
    if state.skip == SkipTo.PAST_LAST_ROW:
        return run.start + run.n_rows - 1
    if state.skip == SkipTo.TO_NEXT_ROW:
        return run.start
    _range(state, key, run, NOTHING, state.skip_variable, &begin, &end)
    place = begin if state.skip == SkipTo.TO_FIRST else end - 1
    if begin == end or place == run.start:
        state.failure = Failure.SKIPPED_TO_NO_ROW if begin == end else Failure.SKIPPED_TO_FIRST_ROW
        state.failed_row = _row_at(state, key, run.start, current)
    return place - 1


cdef int _emit_matches(
    MatchState* state,
    MatchKey* key,
    uint32_t key_id,
    Runs* runs,
    int64_t current,
    int64_t timestamp,
    int64_t step,
    int64_t fired,
    int64_t order,
) except -1 nogil:
    # Emits the matches before which no run has begun, as NFA.processMatchesAccordingToSkipStrategy.
    cdef uint32_t match
    cdef int64_t last
    while key.matches.n and not state.failure and (
        runs.n == 0 or _begin(state, key.matches.slots[0]) <= _begin(state, runs.slots[0])
    ):
        match = _poll(state, &key.matches)
        last = _last_skipped(state, key, _run(state, match), current)
        if not state.failure:
            _prune(state, runs, last)
            _prune(state, &key.matches, last)
            _emit(state, key, key_id, _run(state, match), current, timestamp, step, fired, order)
        _free_run(state, match)
    return 0


cdef int _pass_time(
    MatchState* state, MatchKey* key, uint32_t key_id, int64_t now, int64_t step, int64_t fired, int64_t order
) except -1 nogil:
    # Ends runs that can no longer become a match in time, as NFA.advanceTime.
    cdef uint32_t i, slot
    cdef bint any = False
    for i in range(key.runs.n):
        slot = key.runs.slots[i]
        if slot != START and now - _run(state, slot).start_ms >= state.within_ms:
            any = True
            break
    if not any:
        return 0
    state.grown.n = 0
    for i in range(key.runs.n):
        slot = key.runs.slots[i]
        if slot != START and now - _run(state, slot).start_ms >= state.within_ms:
            _free_run(state, slot)
        else:
            _add(state, &state.grown, slot)
    _emit_matches(state, key, key_id, &state.grown, -1, now, step, fired, order)
    _put_runs(state, key)
    _rest(state, key)
    return 0


cdef int _put_runs(MatchState* state, MatchKey* key) except -1 nogil:
    # Replaces the runs of a key by those that have grown.
    cdef uint32_t n = state.grown.n
    if n == 1 and state.grown.slots[0] == START:
        key.runs.n = 0
        return 0
    _reserve(&key.runs, n)
    memcpy(key.runs.slots, state.grown.slots, n * 4)
    key.runs.n = n
    return 0


cdef int _expire(MatchState* state, MatchKey* key, uint32_t key_id, int64_t steps_before) except -1 nogil:
    # Lets the watermarks of steps end runs of a key, and emit matches that have waited for them.
    cdef int64_t due, step, watermark
    cdef uint32_t n
    while key.runs.n and key.runs.slots[0] != START:
        due = saturating_add(_run(state, key.runs.slots[0]).start_ms, state.within_ms)
        step = max(steps_below(&state.steps, due), key.last_step)
        if step >= steps_before:
            return 0
        watermark = steps_value(&state.steps, StepColumn.WATERMARK, step)
        n = key.runs.n
        _pass_time(state, key, key_id, watermark, step, saturating_add(watermark, 1), key_id)
        if key.runs.n == n:  # before 1970 at the end of the log, where Flink's difference of times overflows
            return 0
    return 0


cdef inline uint32_t _slot(const MatchKey* key, uint32_t i) noexcept nogil:
    # A key without runs has the start.
    return key.runs.slots[i] if key.runs.n else <uint32_t> START


cdef bint _knows(MatchState* state, MatchKey* key, uint32_t slot, int64_t i) except -1 nogil:
    # Evaluates the conditions on which it depends what a run does with a row, natively where it can. Returns false, and asks for the
    # first other one, if there are others.
    cdef Run* run = NULL if slot == START else _run(state, slot)
    cdef uint64_t* known = &key.start_known if run == NULL else &run.known
    cdef uint64_t* values = &key.start_values if run == NULL else &run.values
    cdef int32_t needed = 0, found
    cdef Request* request
    while _decide(state, 0 if run == NULL else run.state, known[0], values[0], &needed) < 0:
        found = -1
        if state.programs[needed].n:
            found = _evaluate(state, &state.programs[needed], key, run, needed, i)
        if found < 0:
            request = <Request*> buffer_append(&state.readers[needed].asked, sizeof(Request))
            request.key, request.run = <uint32_t> (key - state.keys), slot
            _read(state, &state.readers[needed], key, run, needed, state.rows[i])
            return False
        known[0] |= <uint64_t> 1 << needed
        values[0] |= <uint64_t> found << needed
    return True


cdef bint _take_row(MatchState* state, uint32_t key_id, int64_t i) except -1 nogil:
    # Gives a row to all runs of its key. Returns false if conditions must be evaluated first.
    cdef MatchKey* key = &state.keys[key_id]
    cdef int64_t time = state.timestamps[i], row = state.rows[i]
    cdef uint64_t values = state.values[i] | state.always
    cdef uint32_t j, slot
    cdef int32_t k, ways, needed = 0
    cdef Run* run
    cdef bint waits = False
    cdef uint64_t known
    if not key.in_row:
        key.key_group = state.key_groups[i]
        if state.within_ms and key.runs.n:
            if key.matches.n:
                _expire(state, key, key_id, state.row_steps[i])
            _pass_time(state, key, key_id, time, state.row_steps[i], time, i)
            if state.failure:
                return False
        key.start_known, key.start_values = state.known, values
        for j in range(key.runs.n):
            if key.runs.slots[j] != START:
                run = _run(state, key.runs.slots[j])
                run.known, run.values = state.known, values
        key.in_row = True
    if state.known != <uint64_t> -1:
        for j in range(max(key.runs.n, <uint32_t> 1)):
            waits |= not _knows(state, key, _slot(key, j), i)
        if waits:
            return False
    state.grown.n = state.ended.n = 0
    state.work += key.runs.n + 1
    for j in range(max(key.runs.n, <uint32_t> 1)):
        slot = _slot(key, j)
        if slot == START:
            k, known, values = 0, key.start_known, key.start_values
        else:
            run = _run(state, slot)
            k, known, values = run.state, run.known, run.values
        ways = _decide(state, k, known, values, &needed)
        for k in range(ways):
            if state.targets[k] != state.final:
                _add(state, &state.grown, _grown(state, key, slot, state.takers[k], state.targets[k], time))
            if state.completes[k]:
                _add(state, &state.ended, _grown(state, key, slot, state.takers[k], state.final, time))
        if slot == START:
            _add(state, &state.grown, START)
        else:
            _free_run(state, slot)
    for j in range(state.ended.n):
        _add(state, &key.matches, state.ended.slots[j])
    _emit_matches(state, key, key_id, &state.grown, row, time, state.row_steps[i], time, i)
    _put_runs(state, key)
    if key.runs.n or key.matches.n:
        _keep_row(state, key, row, time, state.nulls[i], state.numbers + i * state.n_columns)
    key.next += 1
    _rest(state, key)
    _set_timer(state, key, key_id)
    key.in_row = False
    key.last_step = state.row_steps[i]
    return True


cdef int _run_keys(MatchState* state) except -1 nogil:
    # Searches the rows of each key until none is left, its conditions must be evaluated, or the search has taken long.
    cdef uint32_t* keys = <uint32_t*> state.working.data
    cdef int64_t n = state.working.size // 4, i, left = 0
    cdef MatchKey* key
    state.work = 0
    for i in range(n):
        key = &state.keys[keys[i]]
        while key.head != NOTHING and state.work < MOST_WORK and _take_row(state, keys[i], key.head):
            key.head = state.following[key.head]
            if state.failure:
                return 0
        if state.failure:
            return 0
        if key.head != NOTHING:
            keys[left] = keys[i]
            left += 1
    state.working.size = 4 * left
    return 0


cdef int _begin_batch(MatchState* state) except -1 nogil:
    # Links the rows of each key in the batch.
    cdef int64_t i
    cdef uint32_t most = 0
    cdef MatchKey* key
    for i in range(state.n):
        most = max(most, state.key_ids[i])
    _reach(state, <int64_t> most + 1)
    if state.n > state.following_capacity:
        state.following = <int32_t*> grow(state.following, 4 * state.n, WHAT)
        state.following_capacity = state.n
    state.working.size = 0
    for i in range(state.n):
        key = &state.keys[state.key_ids[i]]
        state.following[i] = NOTHING
        if key.head == NOTHING:
            key.head = <int32_t> i
            (<uint32_t*> buffer_append(&state.working, 4))[0] = state.key_ids[i]
        else:
            state.following[key.tail] = <int32_t> i
        key.tail = <int32_t> i
    return 0


cdef int _fire(MatchState* state, uint32_t key_id, int64_t watermark, int64_t steps) except -1 nogil:
    # Lets the timer of a key fire.
    cdef MatchKey* key = &state.keys[key_id]
    key.has_timer = False
    _expire(state, key, key_id, steps)
    if key.runs.n and key.runs.slots[0] != START and (
        saturating_add(_run(state, key.runs.slots[0]).start_ms, state.within_ms) > watermark
    ):
        _set_timer(state, key, key_id)
    return 0


cdef int _settle(MatchState* state, int64_t steps) except -1 nogil:
    # Fires the timers that so many steps make due.
    cdef Timer timer
    cdef int64_t watermark
    if steps == 0 or state.timers.size == 0:
        return 0
    watermark = steps_value(&state.steps, StepColumn.WATERMARK, steps - 1)
    while not state.failure and timer_queue_poll_due(state.timers, watermark, state.n_keys, &timer):
        _fire(state, <uint32_t> timer.key, watermark, steps)
    return 0


# ---- for Python --------------------------------------------------------------------------------------------------


cdef object _array(Buffer* buffer):
    # The content of a buffer of int64, which is empty afterwards.
    cdef int64_t[::1] out = np.empty(buffer.size // 8, np.int64)
    if buffer.size:
        memcpy(&out[0], buffer.data, buffer.size)
    buffer.size = 0
    return out.base


cdef object _taken(Reader* reader):
    looked = _array(&reader.looked).reshape(-1, reader.n_looks) if reader.n_looks else None
    counts = _array(&reader.member_counts).reshape(-1, reader.n_groups) if reader.n_groups else None
    return looked, _array(&reader.members), counts


@cython.final
cdef class PatternMatcher:
    """The runs and matches of keys, whose rows come in the order of their key.

    Follows Flink's NFA and CepOperator for the patterns of MATCH_RECOGNIZE. Deliberate difference: runs are counts of rows, not versions
    in a shared buffer.

    Parameters
    ----------
    timers : TimerHeap
        Timers of the keys whose runs end in time.
    timeline : PackedSteps
        Steps of the timeline.
    steps_done : int
        Number of steps before the first row.
    states : list of list of tuple
        For each state its transitions, as `(target, variable or -1, [(variable, wanted), ...])`; the first state is the start, the last
        one the final one.
    n_variables : int
    skip : str
        A key of `SKIPS`.
    skip_variable : int
        -1: none.
    within_ms : int
        0: none.
    known : int
        Bits of the variables whose conditions `begin` gets for each row.
    always : int
        Bits of the variables that take every row.
    readers : list of (list, list)
        What the conditions of the variables, and last the measures, read: rows as `(variable or -1, is_first, offset)`, and variables, or
        -1, of which all rows are read.
    programs : list of list of tuple
        For each variable its condition as `(operation, variable or -1, is_first, column, bits, value)`; empty if it is to be asked for.
    n_columns : int
        Columns of numbers that the programs read.

    Raises
    ------
    ConfigurationError
        If there are too many variables or columns, or a condition takes too much room.
    """

    cdef CallGuard guard
    cdef TimerHeap _timers
    cdef PackedSteps _timeline
    cdef MatchState state
    cdef object batch

    def __cinit__(
        self,
        TimerHeap timers not None,
        PackedSteps timeline not None,
        *,
        int64_t steps_done,
        list states not None,
        int n_variables,
        str skip not None,
        int skip_variable,
        int64_t within_ms,
        uint64_t known,
        uint64_t always,
        list readers not None,
        list programs not None,
        int n_columns,
    ):
        cdef MatchState* state = &self.state
        cdef int64_t n_ways = 0, n_tests = 0, i
        cdef Reader* reader
        cdef Program* program
        if not 0 <= n_columns <= 64:
            raise ConfigurationError(f"conditions read {n_columns} columns of numbers: at most 64 are possible")
        if any(len(each) > MOST_VALUES for each in programs):
            raise ConfigurationError(f"a condition has more than {MOST_STEPS} steps")
        if not 0 < n_variables <= 64 or len(readers) != n_variables + 1:
            raise ConfigurationError(f"a pattern of {n_variables} variables: it has 1 to 64")
        self._timers, self._timeline = timers, timeline
        state.timers = &timers.queue
        steps_open(&state.steps, &timeline.view, WATERMARKS)
        state.n_steps = timeline.view.n
        state.n_variables = n_variables
        state.skip = SKIPS[skip]
        state.skip_variable = skip_variable
        state.within_ms = within_ms
        state.always = always
        state.known = known | always
        if n_variables < 64:
            state.known |= ~<uint64_t> 0 << n_variables
        state.slot_bytes = (<int64_t> sizeof(Run) + 4 * n_variables + 7) & ~<int64_t> 7
        state.final = <int32_t> (len(states) - 1)
        state.states = <State*> grow(NULL, len(states) * sizeof(State), WHAT)
        state.transitions = <Transition*> grow(NULL, (sum(map(len, states)) + 1) * sizeof(Transition), WHAT)
        state.tests = <Test*> grow(NULL, (sum(len(way[2]) for ways in states for way in ways) + 1) * sizeof(Test), WHAT)
        state.targets = <int32_t*> grow(NULL, 4 * len(states), WHAT)
        state.takers = <int32_t*> grow(NULL, 4 * len(states), WHAT)
        state.completes = <uint8_t*> grow(NULL, len(states), WHAT)
        for number, ways in enumerate(states):
            state.states[<int64_t> number] = State(<int32_t> n_ways, <int32_t> len(ways))
            for target, variable, tests in ways:
                state.transitions[n_ways] = Transition(target, variable, <int32_t> n_tests, <int32_t> len(tests))
                n_ways += 1
                for tested, wanted in tests:
                    state.tests[n_tests] = Test(tested, wanted)
                    n_tests += 1
        state.readers = <Reader*> grow(NULL, (n_variables + 1) * sizeof(Reader), WHAT)
        memset(state.readers, 0, (n_variables + 1) * sizeof(Reader))
        state.n_columns = n_columns
        state.row_bytes = <int64_t> sizeof(KeyedRow) + 8 * n_columns
        state.programs = <Program*> grow(NULL, n_variables * sizeof(Program), WHAT)
        memset(state.programs, 0, n_variables * sizeof(Program))
        for number, steps in enumerate(programs):
            program = &state.programs[<int64_t> number]
            program.steps = <Step*> grow(NULL, (len(steps) + 1) * sizeof(Step), WHAT)
            for operation, variable, is_first, column, bits, value in steps:
                program.steps[program.n] = Step(OPERATIONS[operation], bits, column, is_first, variable, value)
                program.n += 1
        for number, (looks, groups) in enumerate(readers):
            reader = &state.readers[<int64_t> number]
            reader.looks = <Look*> grow(NULL, (len(looks) + 1) * sizeof(Look), WHAT)
            for variable, is_first, offset in looks:
                reader.looks[reader.n_looks] = Look(variable, is_first, offset)
                reader.n_looks += 1
            reader.groups = <int32_t*> grow(NULL, (len(groups) + 1) * 4, WHAT)
            for variable in groups:
                reader.groups[reader.n_groups] = variable
                reader.n_groups += 1

    def __dealloc__(self):
        cdef MatchState* state = &self.state
        cdef int64_t i
        cdef Reader* reader
        for i in range(state.n_keys):
            _free_key(&state.keys[i])
        if state.readers != NULL:
            for i in range(state.n_variables + 1):
                reader = &state.readers[i]
                free(reader.looks)
                free(reader.groups)
                buffer_free(&reader.looked)
                buffer_free(&reader.members)
                buffer_free(&reader.member_counts)
                buffer_free(&reader.asked)
        if state.programs != NULL:
            for i in range(state.n_variables):
                free(state.programs[i].steps)
        free(state.programs)
        free(state.readers)
        free(state.keys)
        free(state.slots)
        free(state.states)
        free(state.transitions)
        free(state.tests)
        free(state.targets)
        free(state.takers)
        free(state.completes)
        free(state.following)
        free(state.grown.slots)
        free(state.ended.slots)
        buffer_free(&state.free_slots)
        buffer_free(&state.emitted)
        buffer_free(&state.working)
        steps_close(&state.steps)

    def begin(
        self,
        const uint32_t[::1] key_ids not None,
        const int32_t[::1] key_groups not None,
        const int64_t[::1] rows not None,
        const int64_t[::1] timestamps not None,
        const int64_t[::1] steps not None,
        const uint64_t[::1] values not None,
        const int64_t[:, ::1] numbers not None,
        const uint64_t[::1] nulls not None,
    ):
        """Take rows in order of time; `run` then searches them.

        Parameters
        ----------
        key_ids, key_groups, rows, timestamps : arrays (n,)
        steps : int64 array (n,)
            Numbers of the steps that let the rows come.
        values : uint64 array (n,)
            Bits of the conditions of the variables in `known`.
        numbers : int64 array (n, n_columns)
            What programs read; doubles as they are in memory.
        nulls : uint64 array (n,)
            Bits of the numbers that are null.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t n = key_ids.shape[0]
        if numbers.shape[0] != n or numbers.shape[1] != self.state.n_columns or nulls.shape[0] != n:
            raise ValueError("numbers and nulls must have one row per row")
        if not n == key_groups.shape[0] == rows.shape[0] == timestamps.shape[0] == steps.shape[0] == values.shape[0]:
            raise ValueError("keys, key groups, rows, timestamps, steps and conditions must have one value per row")
        if self.state.working.size:
            raise ValueError("rows of the batch before have not been searched")
        self.batch = key_ids, key_groups, rows, timestamps, steps, values, numbers, nulls
        self.state.n = n
        if n:
            self.state.key_ids = &key_ids[0]
            self.state.key_groups = &key_groups[0]
            self.state.rows = &rows[0]
            self.state.timestamps = &timestamps[0]
            self.state.row_steps = &steps[0]
            self.state.values = &values[0]
            self.state.numbers = &numbers[0, 0] if self.state.n_columns else NULL
            self.state.nulls = &nulls[0]
            with nogil:
                _begin_batch(&self.state)

    def run(self):
        """Search the rows of the batch. Returns true if rows are left: evaluate the conditions of `asked`, if there are any, and go on."""
        cdef Call call = begin_call(&self.guard, self)
        with nogil:
            _run_keys(&self.state)
        if not self.state.working.size or self.state.failure:
            self.state.working.size = 0
            self.batch = None
            return False
        return True

    def asked(self, int variable):
        """Return how many rows wait for the condition of a variable, and what it reads, as `take_read` does; None if no row waits."""
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t n = self.state.readers[variable].asked.size // <int64_t> sizeof(Request)
        return (n, *_taken(&self.state.readers[variable])) if n else None

    def answer(self, int variable, const uint8_t[::1] values not None):
        """Give the values of a condition, 0 or 1, in the order of `asked`."""
        cdef Call call = begin_call(&self.guard, self)
        cdef Buffer* asked = &self.state.readers[variable].asked
        cdef const Request* request = <const Request*> asked.data
        cdef int64_t n = asked.size // <int64_t> sizeof(Request), i
        cdef Run* run
        cdef uint64_t bit = <uint64_t> 1 << variable
        if values.shape[0] != n:
            raise ValueError(f"{values.shape[0]} values for {n} conditions")
        for i in range(n):
            if request[i].run == START:
                self.state.keys[request[i].key].start_known |= bit
                if values[i]:
                    self.state.keys[request[i].key].start_values |= bit
            else:
                run = _run(&self.state, request[i].run)
                run.known |= bit
                if values[i]:
                    run.values |= bit
        asked.size = 0

    def settle(self, int64_t steps):
        """Let the watermarks of so many steps end runs. Their rows have all been searched."""
        cdef Call call = begin_call(&self.guard, self)
        cdef Call of_timers = begin_call(&self._timers.guard, self._timers)
        with nogil:
            _settle(&self.state, min(steps, self.state.n_steps))

    @property
    def failure(self):
        """Return (a value of `FAILURES`, number of the first row of the match) if a match skips to no row or its first one, else None."""
        return (FAILURES[self.state.failure], self.state.failed_row) if self.state.failure else None

    @property
    def n_emitted(self):
        """Number of the matches that wait to be taken."""
        return self.state.emitted.size // <int64_t> sizeof(MatchRow)

    def take(self):
        """Return the matches found: number of the first row, step, time of the timer, timestamp, order in it, key and key group.

        Returns
        -------
        tuple of numpy.ndarray (n,)
            In no order; the measures read rows in this one.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t n = self.n_emitted, i
        cdef const MatchRow* row = <const MatchRow*> self.state.emitted.data
        cdef int64_t[:, ::1] words = np.empty((5, n), np.int64)
        cdef uint32_t[::1] key_ids = np.empty(n, np.uint32)
        cdef int32_t[::1] groups = np.empty(n, np.int32)
        for i in range(n):
            words[0, i] = row[i].row
            words[1, i] = row[i].step
            words[2, i] = row[i].fired
            words[3, i] = row[i].timestamp
            words[4, i] = row[i].order
            key_ids[i] = row[i].key_id
            groups[i] = row[i].key_group
        self.state.emitted.size = 0
        return (*words.base, key_ids.base, groups.base)

    def take_read(self):
        """Return what the measures of the matches read: numbers of rows.

        Returns
        -------
        looked : int64 array (n, number of places) or None
            -1: there is no such row.
        members : int64 array
            The rows of the first variable for the first match, then those of the second variable, and so on.
        counts : int64 array (n, number of variables) or None
        """
        cdef Call call = begin_call(&self.guard, self)
        return _taken(&self.state.readers[self.state.n_variables])

    def memory_bytes(self):
        """Bytes that its state takes, without rows, keys and timers."""
        check_no_call(&self.guard, self)
        return (
            self.state.keys_capacity * <int64_t> sizeof(MatchKey)
            + self.state.slots_capacity * self.state.slot_bytes
            + 2 * self.state.n_live * self.state.row_bytes
        )

    @property
    def live_count(self):
        """Number of rows of runs and matches."""
        return self.state.n_live

    def live_rows(self):
        """Return the numbers of the rows of runs and matches, as an int64 array, key by key."""
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t[::1] rows = np.empty(self.state.n_live, np.int64)
        cdef int64_t key_id, i, at = 0
        cdef const MatchKey* key
        for key_id in range(self.state.n_keys):
            key = &self.state.keys[key_id]
            for i in range(key.rows_begin, key.rows_end):
                rows[at] = (<const KeyedRow*> (key.rows + i * self.state.row_bytes)).row
                at += 1
        return rows.base

    def renumber(self, const int64_t[::1] rows not None):
        """Hold other numbers, in the order of `live_rows`."""
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t key_id, i, at = 0
        cdef MatchKey* key
        if rows.shape[0] != self.state.n_live or self.state.working.size:
            raise ValueError(f"{rows.shape[0]} numbers for {self.state.n_live} rows, or rows have not been searched")
        for key_id in range(self.state.n_keys):
            key = &self.state.keys[key_id]
            for i in range(key.rows_begin, key.rows_end):
                (<KeyedRow*> (key.rows + i * self.state.row_bytes)).row = rows[at]
                at += 1

    def snapshot(self):
        """Return its state as columns by table, when no rows are left to be searched.

        `matching` has the rows of runs and matches of each key in their order: `key`, `row` and `timestamp`. `runs` has `key`, `place`
        (of its first row among those of `matching`; -1: the start), `state`, `is_match` and `rows_N`, the number of rows of variable N;
        heaps as arrays.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t key_id, i, n = 0, at = 0, of_run = 0
        cdef int32_t variable
        cdef const MatchKey* key
        cdef Run* run
        cdef uint32_t slot
        for key_id in range(self.state.n_keys):
            n += self.state.keys[key_id].runs.n + self.state.keys[key_id].matches.n
        cdef int64_t[:, ::1] rows = np.empty((3, self.state.n_live), np.int64)
        cdef int64_t[:, ::1] runs = np.empty((4 + self.state.n_variables, n), np.int64)
        for key_id in range(self.state.n_keys):
            key = &self.state.keys[key_id]
            for i in range(key.rows_begin, key.rows_end):
                rows[0, at] = key_id
                rows[1, at] = (<const KeyedRow*> (key.rows + i * self.state.row_bytes)).row
                rows[2, at] = (<const KeyedRow*> (key.rows + i * self.state.row_bytes)).time
                at += 1
            for i in range(key.runs.n + key.matches.n):
                slot = key.runs.slots[i] if i < key.runs.n else key.matches.slots[i - key.runs.n]
                runs[0, of_run] = key_id
                runs[1, of_run] = -1 if slot == START else _run(&self.state, slot).start - key.first
                runs[2, of_run] = 0 if slot == START else _run(&self.state, slot).state
                runs[3, of_run] = i >= key.runs.n
                for variable in range(self.state.n_variables):
                    runs[4 + variable, of_run] = 0 if slot == START else _counts(_run(&self.state, slot))[variable]
                of_run += 1
        names = ["key", "place", "state", "is_match", *(f"rows_{number}" for number in range(self.state.n_variables))]
        return {
            "matching": dict(zip(["key", "row", "timestamp"], rows.base)),
            "runs": dict(zip(names, runs.base)),
        }

    def restore(self, str table not None, const int64_t[::1] keys not None, const int32_t[::1] key_groups not None, rows, columns not None):
        """Take part of a state that `snapshot` has given, with keys and rows of now; before the first row.

        Raises
        ------
        SchemaError
            If it is no state of such a pattern.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t i, place, n_rows
        cdef int32_t variable, state
        cdef const int64_t[::1] numbers
        cdef const int64_t[::1] times
        cdef const int64_t[:, ::1] values
        cdef const uint64_t[::1] nulls
        cdef const int64_t[:, ::1] runs
        cdef MatchKey* key
        cdef uint32_t slot
        cdef Run* run
        cdef Runs* heap
        if keys.shape[0]:
            _reach(&self.state, np.max(keys) + 1)
        if table == "matching":
            numbers = rows["row"]
            values, nulls = rows["numbers"], rows["nulls"]
            times = columns.column("timestamp").to_numpy()
            for i in range(keys.shape[0]):
                key = &self.state.keys[keys[i]]
                key.key_group = key_groups[i]
                _keep_row(
                    &self.state, key, numbers[i], times[i], nulls[i], &values[i, 0] if self.state.n_columns else NULL
                )
                key.next += 1
            return
        names = ["place", "state", "is_match", *(f"rows_{number}" for number in range(self.state.n_variables))]
        runs = np.stack([columns.column(name).to_numpy() for name in names]).astype(np.int64, order="C")
        for i in range(keys.shape[0]):
            key = &self.state.keys[keys[i]]
            if not 0 <= runs[2, i] <= 1 or (runs[0, i] < 0 and runs[2, i]):
                raise SchemaError(f"row {i} of the runs is a match without rows")
            heap = &key.matches if runs[2, i] else &key.runs
            place, state = runs[0, i], <int32_t> runs[1, i]
            slot = START
            if place >= 0:
                slot = _new_run(&self.state)
                run = _run(&self.state, slot)
                memset(run, 0, self.state.slot_bytes)
                run.start = key.first + place
                run.state = state
                n_rows = 0
                for variable in range(self.state.n_variables):
                    if not 0 <= runs[3 + variable, i] <= INT64_MAX >> 33:
                        raise SchemaError(f"row {i} of the runs has {runs[3 + variable, i]} rows of a variable")
                    n_rows += runs[3 + variable, i]
                    _counts(run)[variable] = <int32_t> runs[3 + variable, i]
                run.n_rows = <int32_t> n_rows
                if not 0 <= state <= self.state.final or not 0 < n_rows <= key.next - run.start:
                    raise SchemaError(f"row {i} of the runs is none of this pattern, or its rows are missing")
                run.start_ms = _kept(&self.state, key, run.start).time
            _reserve(heap, heap.n + 1)
            heap.slots[heap.n] = slot
            heap.n += 1
            # The table of timers, which comes last, has one for each key with runs.
            key.has_timer = self.state.within_ms != 0

    def _check(self):
        """Assert its invariants."""
        cdef int64_t key_id, i, n_runs = 0, n_rows = 0
        cdef const MatchKey* key
        for key_id in range(self.state.n_keys):
            key = &self.state.keys[key_id]
            assert not key.in_row and key.head == NOTHING, "a row has not been searched"
            n_rows += key.rows_end - key.rows_begin
            for i in range(key.runs.n):
                n_runs += key.runs.slots[i] != START
                assert _begin(&self.state, key.runs.slots[i]) >= _begin(&self.state, key.runs.slots[(max(i, 1) - 1) >> 1]), "runs are no heap"
            for i in range(key.matches.n):
                assert _begin(&self.state, key.matches.slots[i]) >= _begin(&self.state, key.matches.slots[(max(i, 1) - 1) >> 1]), "no heap"
            n_runs += key.matches.n
            assert not key.runs.n or key.rows_end - key.rows_begin == key.next - key.first, "rows are missing"
        assert n_rows == self.state.n_live, "rows are counted wrongly"
        assert n_runs == self.state.n_slots - self.state.free_slots.size // 4, "runs are lost"
