"""The steps of a timeline: packed, and searched and read without unpacking more than a block."""

import cython
from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from flinkcore.errors import ConfigurationError, DataError

from flinkcore._native.call_guard cimport Call, begin_call
from flinkcore._native.memory cimport Buffer, buffer_free, buffer_reserve


BLOCK_STEPS = 1024
"""Steps of a block: few to unpack for one of them, and enough for the block's description to take little of the memory."""

cdef enum:
    WHOLE_WORDS = 57  # from this width on, codes are words: a shifted load has so many bits less one
    MOST_STEPS = 1 << 24


# ---- format ------------------------------------------------------------------------------------------------------
# A header, the codes of all blocks, bytes of zero up to the next multiple of 8 with at least 8 of them, so that a code can be
# loaded as a word, and the descriptions of the blocks. All numbers are little-endian.


cdef struct Header:
    char[8] magic
    int64_t n
    int64_t n_blocks
    int64_t most
    int64_t blocks_offset
    int64_t size


cdef bytes MAGIC = b"FC steps"


cdef inline uint64_t _load(const uint8_t* at) noexcept nogil:
    cdef uint64_t word
    memcpy(&word, at, 8)
    return word


cdef inline int64_t _codes_bytes(int64_t n, uint8_t width) noexcept nogil:
    # The first step of a block has no codes.
    return ((n - 1) * width + 7) >> 3


cdef inline int64_t _block_steps(const StepsView* view, int64_t number) noexcept nogil:
    cdef int64_t following = view.blocks[number + 1].first_step if number + 1 < view.n_blocks else view.n
    return following - view.blocks[number].first_step


cdef inline bint _is_cumulative(int column) noexcept nogil:
    return column == <int> StepColumn.CLOCK or column == <int> StepColumn.WATERMARK


# ---- packing -----------------------------------------------------------------------------------------------------


cdef inline uint64_t _divisor(uint64_t a, uint64_t b) noexcept nogil:
    cdef uint64_t rest
    while b:
        rest = a % b
        a = b
        b = rest
    return a


cdef bint _divide(uint64_t* numbers, int64_t n, uint64_t scale, int64_t* wrong) noexcept nogil:
    # Divides numbers below 2**51, all multiples of the scale, by it: multiplications with its inverse, which vectorise. Returns
    # false and the number of the first other one.
    cdef double inverse = 1.0 / <double> scale
    cdef uint64_t quotient
    cdef int64_t i
    for i in range(n):
        quotient = <uint64_t> <int64_t> (<double> <int64_t> numbers[i] * inverse + 0.5)
        if quotient * scale != numbers[i]:
            wrong[0] = i
            return False
        numbers[i] = quotient
    return True


cdef uint64_t _scale_down(uint64_t* numbers, int64_t n, uint64_t all_bits) noexcept nogil:
    # Divides numbers, which are not all 0, by their greatest common divisor, and returns that. Ticks are multiples of the interval.
    cdef uint64_t scale = 0
    cdef int64_t i, wrong = 0
    if all_bits >> 51:
        for i in range(n):
            scale = _divisor(numbers[i], scale)
            if scale == 1:
                return 1
        for i in range(n):
            numbers[i] //= scale
        return scale
    for i in range(n):
        scale = _divisor(numbers[i], scale)
        if i >= 8 and scale:
            break  # most likely that of all
    while scale != 1 and not _divide(numbers, n, scale, &wrong):
        for i in range(wrong):
            numbers[i] *= scale
        scale = _divisor(numbers[wrong], scale)
    return scale


cdef void _pack_codes(uint8_t* place, const uint64_t* codes, int64_t n, int width) noexcept nogil:
    # Writes up to 8 bytes more than the codes take.
    cdef uint64_t word = 0
    cdef int64_t i
    cdef int filled = 0
    for i in range(n):
        word |= codes[i] << filled
        filled += width
        if filled >= 64:
            memcpy(place, &word, 8)
            place += 8
            filled -= 64
            word = codes[i] >> (width - filled) if filled else 0
    memcpy(place, &word, 8)


cdef int _pack_column(Buffer* codes, StepBlock* block, int column, int64_t* values, int64_t n) except -1 nogil:
    # Overwrites the values. Arithmetic is modulo 2**64, so that any values come back.
    cdef uint64_t* numbers = <uint64_t*> values
    cdef uint64_t base, scale, all_bits = 0
    cdef int64_t i, least, size
    cdef uint8_t width = 0
    block.values[column] = values[0]
    if n == 1:
        return 0
    if _is_cumulative(column):
        for i in range(n - 1, 0, -1):
            numbers[i] -= numbers[i - 1]
        base = numbers[1]
        for i in range(2, n):
            base = min(base, numbers[i])
    else:
        least = values[1]
        for i in range(2, n):
            least = min(least, values[i])
        base = <uint64_t> least
    for i in range(1, n):
        numbers[i] -= base
        all_bits |= numbers[i]
    block.base[column] = base
    if all_bits == 0:
        return 0
    block.scale[column] = scale = _scale_down(numbers + 1, n - 1, all_bits)
    if scale > 1:
        all_bits = 0
        for i in range(1, n):
            all_bits |= numbers[i]
    while width < 64 and all_bits >> width:
        width += 1
    if width >= WHOLE_WORDS:
        width = 64
    block.width[column] = width
    size = _codes_bytes(n, width)
    buffer_reserve(codes, size + 8)
    _pack_codes(codes.data + codes.size, numbers + 1, n - 1, width)
    codes.size += size
    return 0


cdef int _begin(Buffer* packed) except -1 nogil:
    # Leaves room for the header, which is written last.
    if packed.size == 0:
        buffer_reserve(packed, sizeof(Header))
        packed.size = sizeof(Header)
    return 0


cdef int packing_flush(StepPacking* packing) except -1 nogil:
    cdef StepBlock* block
    cdef int64_t i, n = packing.n_held
    cdef int64_t* splits = packing.held[<int> StepColumn.SPLIT]
    cdef int column, packed = N_COLUMNS
    if n == 0:
        return 0
    _begin(&packing.packed)
    buffer_reserve(&packing.blocks, sizeof(StepBlock))
    block = <StepBlock*> (packing.blocks.data + packing.blocks.size)
    memset(block, 0, sizeof(StepBlock))
    block.first_step = packing.n
    block.offset = packing.packed.size - <int64_t> sizeof(Header)
    if packing.by_events:
        for i in range(n):
            if splits[i] == AFTER_ALL:
                splits[i] = -1  # close to the numbers of splits, and none of them
    else:
        block.values[<int> StepColumn.SPLIT] = block.base[<int> StepColumn.SPLIT] = AFTER_ALL
        packed = <int> StepColumn.SPLIT
    for column in range(packed):
        _pack_column(&packing.packed, block, column, packing.held[column], n)
    packing.blocks.size += sizeof(StepBlock)
    packing.n += n
    packing.n_held = 0
    packing.by_events = False
    return 0


@cython.final
@cython.internal
cdef class PackedBytes:
    # The bytes that a packer has made.
    cdef Buffer packed

    def __dealloc__(self):
        buffer_free(&self.packed)

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.packed.data, self.packed.size, True, flags)


@cython.final
cdef class StepPacker:
    """Packs the steps of a timeline as they come.

    Takes memory for the packed steps and one block. A step of ticks, in steady state, takes two to four bytes.

    Parameters
    ----------
    block_steps : int
        Steps of a block, from 1 to 2**24. Only time and memory depend on it.

    Raises
    ------
    ConfigurationError
        If it is out of this range.
    """

    def __cinit__(self, *, int64_t block_steps=BLOCK_STEPS):
        cdef int column
        if not 1 <= block_steps <= MOST_STEPS:
            raise ConfigurationError(f"blocks have 1 to {MOST_STEPS} steps, not {block_steps}")
        self.packing.most = block_steps
        for column in range(N_COLUMNS):
            self.packing.held[column] = <int64_t*> malloc(block_steps * sizeof(int64_t))
            if self.packing.held[column] == NULL:
                raise MemoryError(f"a block of {block_steps} steps")

    def __dealloc__(self):
        cdef int column
        for column in range(N_COLUMNS):
            free(self.packing.held[column])
        buffer_free(&self.packing.packed)
        buffer_free(&self.packing.blocks)

    def __len__(self):
        return self.packing.n + self.packing.n_held

    def add(
        self,
        const int64_t[::1] clocks_ms not None,
        const int64_t[::1] watermarks_ms not None,
        const int64_t[::1] splits=None,
        const int64_t[::1] positions=None,
    ):
        """Add the next steps.

        Parameters
        ----------
        clocks_ms, watermarks_ms : numpy.ndarray of int64, shape (n,)
            Non-decreasing.
        splits, positions : numpy.ndarray of int64, shape (n,), or None
            The events that made the steps; split 2**31 - 1 and position 0 for a tick. None if ticks made all of them.

        Raises
        ------
        DataError
            If the columns differ in length.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t i, n = clocks_ms.shape[0]
        cdef bint by_events = splits is not None
        if (
            watermarks_ms.shape[0] != n
            or by_events != (positions is not None)
            or (by_events and (splits.shape[0] != n or positions.shape[0] != n))
        ):
            raise DataError(f"{n} clocks of steps, but other numbers of watermarks, splits or positions: not one each")
        with nogil:
            for i in range(n):
                packing_add(
                    &self.packing,
                    clocks_ms[i],
                    watermarks_ms[i],
                    splits[i] if by_events else AFTER_ALL,
                    positions[i] if by_events else 0,
                )

    def finish(self):
        """Return the packed steps, and begin again with none."""
        cdef Call call = begin_call(&self.guard, self)
        cdef StepPacking* packing = &self.packing
        cdef Buffer* packed = &packing.packed
        cdef Header header
        cdef PackedBytes owner = PackedBytes.__new__(PackedBytes)
        packing_flush(packing)
        _begin(packed)
        memcpy(header.magic, <const char*> MAGIC, 8)
        header.n = packing.n
        header.n_blocks = packing.blocks.size // <int64_t> sizeof(StepBlock)
        header.most = packing.most
        header.blocks_offset = ((packed.size + 7) >> 3 << 3) + 8
        header.size = header.blocks_offset + packing.blocks.size
        buffer_reserve(packed, header.size - packed.size)
        memset(packed.data + packed.size, 0, header.blocks_offset - packed.size)
        if header.n_blocks:
            memcpy(packed.data + header.blocks_offset, packing.blocks.data, packing.blocks.size)
        memcpy(packed.data, &header, sizeof(Header))
        packed.size = header.size
        # The bytes are handed over, not copied: steps of years are tens of megabytes.
        owner.packed = packed[0]
        memset(packed, 0, sizeof(Buffer))
        buffer_free(&packing.blocks)
        packing.n = 0
        return PackedSteps(owner)


# ---- unpacking a block -------------------------------------------------------------------------------------------


cdef void _unpack_column(const StepsView* view, int64_t number, int column, int64_t* values) noexcept nogil:
    cdef const StepBlock* block = &view.blocks[number]
    cdef const uint8_t* codes = view.codes + block.offset
    cdef int64_t i, bit, n = _block_steps(view, number)
    cdef uint64_t value = <uint64_t> block.values[column], base = block.base[column], scale = block.scale[column]
    cdef uint8_t width = block.width[column]
    cdef uint64_t mask = (<uint64_t> 1 << width) - 1 if width < 64 else <uint64_t> -1
    cdef int before
    for before in range(column):
        codes += _codes_bytes(n, block.width[before])
    values[0] = block.values[column]
    if width == 0:
        if _is_cumulative(column):
            for i in range(1, n):
                values[i] = <int64_t> (value + base * <uint64_t> i)
        else:
            for i in range(1, n):
                values[i] = <int64_t> base
    elif width == 64:
        for i in range(1, n):
            values[i] = <int64_t> (base + scale * _load(codes + 8 * (i - 1)))
    else:
        for i in range(1, n):
            bit = (i - 1) * width
            values[i] = <int64_t> (base + scale * (_load(codes + (bit >> 3)) >> (bit & 7) & mask))
    if width and _is_cumulative(column):
        for i in range(1, n):
            value += <uint64_t> values[i]
            values[i] = <int64_t> value
    if column == <int> StepColumn.SPLIT:
        for i in range(n):
            if values[i] == -1:
                values[i] = AFTER_ALL


cdef void _unpack(StepCursor* cursor, int64_t number) noexcept nogil:
    cdef int column
    if number == cursor.number:
        return
    for column in range(N_COLUMNS):
        if cursor.columns[column] != NULL:
            _unpack_column(cursor.view, number, column, cursor.columns[column])
    cursor.number = number
    cursor.first = cursor.view.blocks[number].first_step
    cursor.n = _block_steps(cursor.view, number)


cdef int steps_open(StepCursor* cursor, const StepsView* view, int columns) except -1:
    cdef int column
    cursor.view = view
    cursor.number = -1
    cursor.first = cursor.n = 0
    for column in range(N_COLUMNS):
        if columns >> column & 1:
            cursor.columns[column] = <int64_t*> malloc(max(1, view.most) * sizeof(int64_t))
            if cursor.columns[column] == NULL:
                raise MemoryError(f"a block of {view.most} steps of the timeline")
    return 0


cdef void steps_close(StepCursor* cursor) noexcept nogil:
    cdef int column
    for column in range(N_COLUMNS):
        free(cursor.columns[column])
        cursor.columns[column] = NULL


cdef void steps_seek(StepCursor* cursor, int64_t step) noexcept nogil:
    cdef const StepsView* view = cursor.view
    cdef int64_t low = 0, high = view.n_blocks, middle
    if steps_has(cursor, step):
        return
    if cursor.number + 1 < view.n_blocks and view.blocks[cursor.number + 1].first_step <= step:
        low = cursor.number + 1
        if step - view.blocks[low].first_step < _block_steps(view, low):
            high = low + 1
    while high - low > 1:
        middle = (low + high) >> 1
        if view.blocks[middle].first_step <= step:
            low = middle
        else:
            high = middle
    _unpack(cursor, low)


# ---- searching ---------------------------------------------------------------------------------------------------


cdef struct Place:
    int64_t arrival
    int64_t split
    int64_t position


cdef inline bint _is_before(int64_t clock, int64_t split, int64_t position, const Place* place) noexcept nogil:
    if clock != place.arrival:
        return clock < place.arrival
    if split != place.split:
        return split < place.split
    return position < place.position


cdef inline bint _block_is_before(const StepsView* view, int64_t number, const Place* place) noexcept nogil:
    # Of its first step.
    cdef const int64_t* values = view.blocks[number].values
    cdef int64_t split = values[<int> StepColumn.SPLIT]
    return _is_before(
        values[<int> StepColumn.CLOCK], AFTER_ALL if split == -1 else split, values[<int> StepColumn.POSITION], place
    )


cdef inline bint _step_is_before(const StepCursor* cursor, int64_t step, const Place* place) noexcept nogil:
    cdef int64_t at = step - cursor.first
    return _is_before(
        cursor.columns[<int> StepColumn.CLOCK][at],
        cursor.columns[<int> StepColumn.SPLIT][at],
        cursor.columns[<int> StepColumn.POSITION][at],
        place,
    )


cdef int64_t _blocks_before(const StepsView* view, int64_t near, const Place* place) noexcept nogil:
    # Returns how many blocks begin before a place. Searches from `near` on in reaches that double.
    cdef int64_t low = 0, high = view.n_blocks, middle, reach = 1
    if 0 <= near < high:
        if _block_is_before(view, near, place):
            low = near + 1
            while low + reach < high and _block_is_before(view, low + reach, place):
                low += reach + 1
                reach *= 2
            high = min(low + reach, high)
        else:
            high = near
    while low < high:
        middle = (low + high) >> 1
        if _block_is_before(view, middle, place):
            low = middle + 1
        else:
            high = middle
    return low


cdef inline int64_t _search_block(const StepCursor* cursor, int64_t near, const Place* place) noexcept nogil:
    # Returns the first step of the block, from the one after its first, that is not before a place; or that after the block.
    cdef int64_t low = cursor.first + 1, high = cursor.first + cursor.n, middle, reach = 1
    if low <= near < high:
        # Events come mostly in total order: the answer is `near` or a few steps after it.
        if _step_is_before(cursor, near, place):
            low = near + 1
            while low + reach < high and _step_is_before(cursor, low + reach, place):
                low += reach + 1
                reach *= 2
            high = min(low + reach, high)
        else:
            high = near
    while low < high:
        middle = (low + high) >> 1
        if _step_is_before(cursor, middle, place):
            low = middle + 1
        else:
            high = middle
    return low


cdef int64_t steps_before_place(
    StepCursor* cursor, int64_t near, int64_t arrival, int64_t split, int64_t position
) noexcept nogil:
    cdef Place place
    cdef int64_t number, found
    place.arrival, place.split, place.position = arrival, split, position
    if cursor.n:
        found = _search_block(cursor, near, &place)
        if cursor.first + 1 < found < cursor.first + cursor.n:
            return found
    number = _blocks_before(cursor.view, cursor.number, &place) - 1
    if number < 0:
        return 0
    _unpack(cursor, number)
    return _search_block(cursor, near, &place)


cdef void steps_around(const StepCursor* cursor, int64_t n_steps, int64_t* before, int64_t* after) noexcept nogil:
    # The cursor has the step before, or else there is none.
    cdef const StepsView* view = cursor.view
    cdef const int64_t* clocks = cursor.columns[<int> StepColumn.CLOCK]
    before[0] = clocks[n_steps - 1 - cursor.first] if n_steps else INT64_MIN
    if steps_has(cursor, n_steps):
        after[0] = clocks[n_steps - cursor.first]
    elif n_steps < view.n:
        after[0] = view.blocks[cursor.number + 1 if n_steps else 0].values[<int> StepColumn.CLOCK]
    else:
        after[0] = INT64_MAX


cdef int64_t steps_below(StepCursor* cursor, int64_t watermark) noexcept nogil:
    cdef const StepsView* view = cursor.view
    cdef const int64_t* watermarks
    cdef int64_t low = 0, high = view.n_blocks, middle, near = cursor.number
    if near >= 0 and view.blocks[near].values[<int> StepColumn.WATERMARK] < watermark:
        low = near + 1
        if low < high and view.blocks[low].values[<int> StepColumn.WATERMARK] >= watermark:
            high = low
    while low < high:
        middle = (low + high) >> 1
        if view.blocks[middle].values[<int> StepColumn.WATERMARK] < watermark:
            low = middle + 1
        else:
            high = middle
    if low == 0:
        return 0
    _unpack(cursor, low - 1)
    watermarks = cursor.columns[<int> StepColumn.WATERMARK]
    low, high = 1, cursor.n
    while low < high:
        middle = (low + high) >> 1
        if watermarks[middle] < watermark:
            low = middle + 1
        else:
            high = middle
    return cursor.first + low


# ---- packed steps ------------------------------------------------------------------------------------------------


cdef str _damage(const StepsView* view, int64_t codes_bytes):
    # Returns what is wrong with the descriptions of the blocks, or None.
    cdef int64_t number, n, end, before = 0
    cdef int column
    if view.n_blocks == 0:
        return None if view.n == 0 else "steps without blocks"
    if view.blocks[0].first_step != 0 or view.blocks[view.n_blocks - 1].first_step >= view.n:
        return "blocks of other steps"
    for number in range(view.n_blocks):
        n = _block_steps(view, number)
        end = view.blocks[number].offset
        if not 1 <= n <= view.most or end != before:
            return f"block {number} has a wrong place"
        for column in range(N_COLUMNS):
            if WHOLE_WORDS <= view.blocks[number].width[column] != 64:
                return f"block {number} has codes of {view.blocks[number].width[column]} bits"
            end += _codes_bytes(n, view.blocks[number].width[column])
        if end > codes_bytes:
            return f"block {number} ends after all codes"
        before = end
    return None


cdef struct Chosen:
    const uint32_t* rows  # NULL: all
    int64_t n


cdef Chosen _chosen(const uint32_t[::1] rows, int64_t n) except *:
    cdef Chosen chosen
    cdef int64_t i
    chosen.rows = NULL
    chosen.n = n
    if rows is not None:
        chosen.n = rows.shape[0]
        for i in range(chosen.n):
            if rows[i] >= n:
                raise DataError(f"row {rows[i]} of {n}", row=rows[i])
        if chosen.n:
            chosen.rows = &rows[0]
    return chosen


cdef inline bint _is_after_next(const StepCursor* cursor, int64_t step, int64_t arrival) noexcept nogil:
    # Returns true if an arrival lies between the clocks of the next step and of the one after it, in the block that is unpacked.
    cdef const int64_t* clocks = cursor.columns[<int> StepColumn.CLOCK]
    cdef int64_t at = step - cursor.first
    return 0 <= at < cursor.n - 1 and clocks[at] < arrival < clocks[at + 1]


cdef inline int64_t _row(const Chosen* chosen, int64_t i) noexcept nogil:
    return chosen.rows[i] if chosen.rows != NULL else i


@cython.final
cdef class PackedSteps:
    """The steps of a timeline, packed; immutable, picklable, and safe in several threads.

    Nothing here unpacks more than a block at a time, so the memory may be that of a mapped file.

    Parameters
    ----------
    data : object with the buffer protocol
        As `StepPacker` has made it; is kept, not copied, and must not change.

    Raises
    ------
    DataError
        If the bytes are something else, or damaged.
    """

    def __cinit__(self, data):
        cdef Header header
        cdef int64_t size
        self.owner = data
        self.data = memoryview(data).cast("B")
        size = self.data.shape[0]
        if size < <int64_t> sizeof(Header) or bytes(self.data[:8]) != MAGIC:
            raise DataError(f"these {size} bytes are not steps of a timeline of this version of flinkcore")
        memcpy(&header, &self.data[0], sizeof(Header))
        # Blocks are read in place.
        if <size_t> &self.data[0] & 7:
            raise DataError("the steps of a timeline begin at an odd address; copy them into memory of their own")
        if (
            header.size != size
            or header.n < 0
            or not 0 <= header.n_blocks <= header.n
            or not 1 <= header.most <= MOST_STEPS
            or header.blocks_offset & 7
            or not <int64_t> sizeof(Header) + 8 <= header.blocks_offset <= size
            or (size - header.blocks_offset) // <int64_t> sizeof(StepBlock) != header.n_blocks
        ):
            raise DataError(f"these {size} bytes are steps of a timeline that have been cut or changed")
        self.view.n = header.n
        self.view.n_blocks = header.n_blocks
        self.view.most = header.most
        self.view.codes = &self.data[0] + sizeof(Header)
        self.view.blocks = <const StepBlock*> (&self.data[0] + header.blocks_offset)
        damage = _damage(&self.view, header.blocks_offset - <int64_t> sizeof(Header) - 8)
        if damage is not None:
            raise DataError(f"these {size} bytes are steps of a timeline that have been changed: {damage}")

    def __len__(self):
        return self.view.n

    def __reduce__(self):
        return PackedSteps, (bytes(self.data),)

    @property
    def buffer(self):
        """The packed bytes: a memoryview."""
        return memoryview(self.owner)

    @property
    def n_blocks(self):
        """Number of blocks."""
        return self.view.n_blocks

    @property
    def has_steps_of_events(self):
        """Whether events made some of the steps."""
        cdef int64_t number
        for number in range(self.view.n_blocks):
            # Where events made some of a block's steps, -1 stands for the others.
            if self.view.blocks[number].values[<int> StepColumn.SPLIT] != AFTER_ALL:
                return True
        return False

    def block(self, int64_t number):
        """Unpack a block.

        Returns
        -------
        tuple of numpy.ndarray of int64, each of shape (n,)
            `(clocks_ms, watermarks_ms, splits, positions)`, as for `StepPacker.add`.

        Raises
        ------
        IndexError
            If there is no such block.
        """
        import numpy as np

        cdef int64_t[:, ::1] columns
        cdef int column
        if not 0 <= number < self.view.n_blocks:
            raise IndexError(f"block {number} of {self.view.n_blocks}")
        columns = np.empty((N_COLUMNS, _block_steps(&self.view, number)), np.int64)
        for column in range(N_COLUMNS):
            _unpack_column(&self.view, number, column, &columns[column, 0])
        return tuple(columns.base)

    def steps_before(
        self,
        const int64_t[::1] arrivals_ms not None,
        const int32_t[::1] splits not None,
        const int64_t[::1] positions not None,
        const uint32_t[::1] rows=None,
    ):
        """Return the number of steps before each event in the total order (arrival, split, position).

        O(1) per event between two steps where events come in total order, O(log n_steps) else. A block is unpacked each time
        that an event is in another one than the event before.

        Parameters
        ----------
        arrivals_ms, splits, positions : numpy.ndarray of int64, int32 and int64, shape (n_rows,)
            Places of the events.
        rows : numpy.ndarray of uint32, shape (n,), or None
            The events, preferably in total order, or None for all in the order of the columns.

        Returns
        -------
        numpy.ndarray of int64, shape (n_rows,)
            0 for the other events.

        Raises
        ------
        DataError
            If the columns do not fit together.
        """
        import numpy as np

        cdef StepCursor cursor
        cdef Chosen chosen
        cdef int64_t i, at, n = arrivals_ms.shape[0], step = 0, arrival
        cdef int64_t after = INT64_MAX, until = INT64_MIN  # between these clocks, exclusive, `step` is the answer
        if splits.shape[0] != n or positions.shape[0] != n:
            raise DataError(f"{n} arrivals, {splits.shape[0]} splits and {positions.shape[0]} positions: not one each")
        chosen = _chosen(rows, n)
        counts = np.zeros(n, np.int64) if chosen.n < n or self.view.n == 0 else np.empty(n, np.int64)
        cdef int64_t[::1] before = counts
        if self.view.n == 0 or n == 0:
            return counts
        memset(&cursor, 0, sizeof(StepCursor))
        try:
            steps_open(&cursor, &self.view, PLACES)
            with nogil:
                for i in range(chosen.n):
                    at = _row(&chosen, i)
                    arrival = arrivals_ms[at]
                    if after < arrival < until:
                        pass
                    elif _is_after_next(&cursor, step, arrival):
                        step += 1
                        after, until = until, cursor.columns[<int> StepColumn.CLOCK][step - cursor.first]
                    else:
                        step = steps_before_place(&cursor, step, arrival, splits[at], positions[at])
                        steps_around(&cursor, step, &after, &until)
                    before[at] = step
        finally:
            steps_close(&cursor)
        return counts

    def watermarks_after(self, const int64_t[::1] steps not None):
        """Return the watermark in force after so many steps; -2**63 before the first.

        Parameters
        ----------
        steps : numpy.ndarray of int64, shape (n,)
            From 0 to the number of steps; best ascending.

        Returns
        -------
        numpy.ndarray of int64, shape (n,)

        Raises
        ------
        IndexError
            If a number is out of this range.
        """
        return self._gathered(StepColumn.WATERMARK, steps, 1)

    def clocks_at(self, const int64_t[::1] steps not None):
        """Return the replay clock at steps.

        Parameters
        ----------
        steps : numpy.ndarray of int64, shape (n,)
            Numbers of steps, from 0 on; best ascending.

        Returns
        -------
        numpy.ndarray of int64, shape (n,)

        Raises
        ------
        IndexError
            If there is no such step.
        """
        return self._gathered(StepColumn.CLOCK, steps, 0)

    def steps_up_to(self, const int64_t[::1] watermarks_ms not None, const uint32_t[::1] rows=None):
        """Return how many steps have a watermark that is not above each of these.

        Parameters
        ----------
        watermarks_ms : numpy.ndarray of int64, shape (n,)
        rows : numpy.ndarray of uint32, shape (n,), or None
            All their numbers, best so that the watermarks ascend, or None for their own order.

        Returns
        -------
        numpy.ndarray of int64, shape (n,)
        """
        import numpy as np

        cdef StepCursor cursor
        cdef Chosen chosen = _chosen(rows, watermarks_ms.shape[0])
        cdef int64_t i, at
        cdef int64_t[::1] counts = np.zeros(watermarks_ms.shape[0], np.int64)
        if self.view.n == 0:
            return counts.base
        memset(&cursor, 0, sizeof(StepCursor))
        try:
            steps_open(&cursor, &self.view, WATERMARKS)
            with nogil:
                for i in range(chosen.n):
                    at = _row(&chosen, i)
                    if watermarks_ms[at] == INT64_MAX:
                        counts[at] = self.view.n
                    else:
                        counts[at] = steps_below(&cursor, watermarks_ms[at] + 1)
        finally:
            steps_close(&cursor)
        return counts.base

    def _gathered(self, int column, const int64_t[::1] steps, int64_t back):
        # Returns the values of a column so many steps before each number; -2**63 before the first.
        import numpy as np

        cdef StepCursor cursor
        cdef int64_t i, step, wrong = -1, n = steps.shape[0]
        cdef int64_t[::1] values = np.empty(n, np.int64)
        memset(&cursor, 0, sizeof(StepCursor))
        try:
            steps_open(&cursor, &self.view, 1 << column)
            with nogil:
                for i in range(n):
                    step = steps[i] - back
                    if step < -back or step >= self.view.n:
                        wrong = i
                        break
                    values[i] = steps_value(&cursor, <StepColumn> column, step) if step >= 0 else INT64_MIN
        finally:
            steps_close(&cursor)
        if wrong >= 0:
            raise IndexError(f"number {steps[wrong]} at {wrong}: the timeline has {self.view.n} steps")
        return values.base

    def _check(self):
        """Assert what searches rely on: steps in total order, and watermarks that do not fall."""
        import numpy as np

        last_place, last_ms = None, None
        for number in range(self.view.n_blocks):
            clocks, watermarks, splits, positions = self.block(number)
            places = list(zip(clocks.tolist(), splits.tolist(), positions.tolist(), strict=True))
            assert places == sorted(places) and (last_place is None or last_place <= places[0]), "in total order"
            assert (np.diff(watermarks.astype(object)) >= 0).all(), "watermarks do not fall"
            assert last_ms is None or last_ms <= watermarks[0], "watermarks do not fall between blocks"
            last_place, last_ms = places[len(places) - 1], int(watermarks[len(places) - 1])


# ---- reading step by step ----------------------------------------------------------------------------------------


@cython.final
cdef class StepReader:
    """Reads single steps, mostly in ascending order; for one thread.

    Unpacks a block when it is asked for a step of another one.

    Parameters
    ----------
    steps : PackedSteps
    """

    def __cinit__(self, PackedSteps steps not None):
        self.steps = steps
        steps_open(&self.places, &steps.view, PLACES)
        steps_open(&self.watermarks, &steps.view, WATERMARKS)

    def __dealloc__(self):
        steps_close(&self.places)
        steps_close(&self.watermarks)

    def clock(self, int64_t step):
        """Return the replay clock at a step; an IndexError if there is none."""
        if not 0 <= step < self.steps.view.n:
            raise IndexError(f"step {step} of {self.steps.view.n}")
        return steps_value(&self.places, StepColumn.CLOCK, step)

    def watermark_after(self, int64_t n_steps):
        """Return the watermark in force after so many steps; -2**63 before the first. An IndexError if there are fewer."""
        if not 0 <= n_steps <= self.steps.view.n:
            raise IndexError(f"{n_steps} of {self.steps.view.n} steps")
        return steps_watermark_after(&self.watermarks, n_steps)

    def steps_before(self, int64_t arrival_ms, int64_t split, int64_t position):
        """Return how many steps come before a place in the total order."""
        return steps_before_place(&self.places, self.places.first, arrival_ms, split, position) if self.steps.view.n else 0

    def steps_below(self, int64_t watermark_ms):
        """Return how many steps have a lower watermark than this; it is reached with the next one."""
        return steps_below(&self.watermarks, watermark_ms) if self.steps.view.n else 0
