# Decimals of 128 bits, and sums of them that are exact.
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy


cdef struct DecimalSum:
    # A whole number of 192 bits, two's complement: as many decimals of 38 digits fit as int64 can count.
    uint64_t low
    uint64_t middle
    uint64_t high


cdef inline DecimalSum decimal_read(const uint8_t* value) noexcept nogil:
    # Of 16 bytes, little endian.
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
# Writes total * 10**shift / count, rounded half up (away from zero) to a whole number, as 16 bytes, little endian. False where it
# has more than `precision` digits, at most 38. 0 <= shift <= 4, count > 0.
cdef bint decimal_quotient(
    const DecimalSum* total, int shift, int64_t count, int precision, uint8_t* value
) noexcept nogil
