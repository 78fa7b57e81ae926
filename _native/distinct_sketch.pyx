"""About how many different values there are: a sketch of bounded size, which depends on nothing but the set of values.

HyperLogLog (Flajolet et al. 2007) with the estimator of Ertl (2017), which needs no table of corrections: 4,096 registers, each the
greatest rank of the hashes that chose it, of a standard error of 1.6 %. As long as there are few values their hashes are kept
instead, and counted exactly. Either form follows from the set of hashes alone: the order of values and of merges does not matter.
"""

from libc.math cimport sqrt
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from flinkcore._native.column_values cimport ByteView, OwnedBytes, WordSet, owned_bytes_set, word_set_free, word_sets_add


cdef extern from *:
    int leading_zeros "__builtin_clzll"(unsigned long long word) noexcept nogil

cdef enum:
    MOST_HASHES = 512  # in as much memory as registers take
    CHOOSING_BITS = 12

cdef double ALPHA = 0.7213475204444817  # 1 / (2 ln 2)


cdef inline void _register(OwnedBytes* registers, uint64_t hash) noexcept nogil:
    cdef uint64_t rest = hash << CHOOSING_BITS
    cdef uint8_t rank = <uint8_t> (leading_zeros(rest) + 1) if rest else MOST_RANK
    cdef uint8_t* place = &registers.data[hash >> (64 - CHOOSING_BITS)]
    if rank > place[0]:
        place[0] = rank


cdef void _register_all(OwnedBytes* registers, const WordSet* hashes) noexcept nogil:
    cdef uint64_t at
    if hashes.count == 0:
        return
    if hashes.slots == NULL:
        _register(registers, hashes.only)
        return
    for at in range(<uint64_t> hashes.mask + 1):
        if hashes.slots[at]:
            _register(registers, hashes.slots[at])
    if hashes.slots[<uint64_t> hashes.mask + 1]:
        _register(registers, 0)


cdef int _make_registers(WordSet* hashes, OwnedBytes* registers) except -1 nogil:
    cdef uint8_t[SKETCH_REGISTERS] none
    cdef ByteView view
    memset(none, 0, SKETCH_REGISTERS)
    view.data = none
    view.length = SKETCH_REGISTERS
    owned_bytes_set(registers, view)
    _register_all(registers, hashes)
    word_set_free(hashes)
    return 0


cdef int sketch_add(WordSet* hashes, OwnedBytes* registers, uint64_t hash) except -1 nogil:
    cdef uint32_t only = 0
    if registers.length:
        _register(registers, hash)
        return 0
    word_sets_add(hashes, &only, &hash, 1)
    if hashes.count > MOST_HASHES:
        _make_registers(hashes, registers)
    return 0


cdef int sketch_merge(
    WordSet* into, OwnedBytes* into_registers, WordSet* other, OwnedBytes* other_registers
) except -1 nogil:
    cdef uint64_t at
    cdef int64_t i
    if other_registers.length:
        if into_registers.length == 0:
            _make_registers(into, into_registers)
        for i in range(SKETCH_REGISTERS):
            if other_registers.data[i] > into_registers.data[i]:
                into_registers.data[i] = other_registers.data[i]
        return 0
    if into_registers.length:
        _register_all(into_registers, other)
        return 0
    if other.count and other.slots == NULL:
        return sketch_add(into, into_registers, other.only)
    if other.count:
        for at in range(<uint64_t> other.mask + 1):
            if other.slots[at]:
                sketch_add(into, into_registers, other.slots[at])
        if other.slots[<uint64_t> other.mask + 1]:
            sketch_add(into, into_registers, 0)
    return 0


cdef double _sigma(double x) noexcept nogil:
    # x + the sum of x**(2**k) * 2**(k - 1), k from 1; x < 1.
    cdef double y = 1, z = x, before = -1
    while z != before:
        before = z
        x *= x
        z += x * y
        y += y
    return z


cdef double _tau(double x) noexcept nogil:
    # (1 - x - the sum of (1 - x**(2**-k))**2 * 2**-k, k from 1) / 3; 0 <= x <= 1.
    cdef double y = 1, z = 1 - x, before = -1
    if x == 0 or x == 1:
        return 0
    while z != before:
        before = z
        x = sqrt(x)
        y *= 0.5
        z -= (1 - x) * (1 - x) * y
    return z / 3


cdef int64_t sketch_estimate(const WordSet* hashes, const OwnedBytes* registers) noexcept nogil:
    cdef int64_t[MOST_RANK + 1] counts
    cdef int64_t i
    cdef double z, m = SKETCH_REGISTERS
    if registers.length == 0:
        return hashes.count
    memset(counts, 0, sizeof(counts))
    for i in range(SKETCH_REGISTERS):
        counts[registers.data[i]] += 1
    z = m * _tau(1 - <double> counts[MOST_RANK] / m)
    for i in range(MOST_RANK - 1, 0, -1):
        z = 0.5 * (z + <double> counts[i])
    z += m * _sigma(<double> counts[0] / m)
    return <int64_t> (ALPHA * m * m / z + 0.5)


cdef bint sketch_is_sound(const WordSet* hashes, const OwnedBytes* registers) noexcept nogil:
    cdef int64_t i
    cdef bint is_some = False
    if registers.length == 0:
        return hashes.count <= MOST_HASHES
    if registers.length != SKETCH_REGISTERS or hashes.count:
        return False
    for i in range(SKETCH_REGISTERS):
        if registers.data[i] > MOST_RANK:
            return False
        is_some = is_some or registers.data[i] != 0
    return is_some
