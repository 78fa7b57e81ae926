"""Decimals of 128 bits, and sums of them that are exact, in whatever order they are added up."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy


cdef extern from *:
    """
    typedef unsigned __int128 flinkcore_uint128;
    typedef __int128 flinkcore_int128;
    """
    ctypedef uint64_t uint128 "flinkcore_uint128"
    ctypedef int64_t int128 "flinkcore_int128"


cdef enum:
    WORDS = 4


cdef double decimal_to_double(const uint8_t* value) noexcept nogil:
    cdef int128 number
    memcpy(&number, value, 16)
    return <double> number


cdef bint decimal_quotient(
    const DecimalSum* total, int shift, int64_t count, int precision, uint8_t* value
) noexcept nogil:
    cdef uint64_t[WORDS] words
    cdef uint64_t factor = 1, remainder, sign = <uint64_t> 0 - (total.high >> 63)
    cdef uint128 carried, limit = 1, found
    cdef int i
    words[0] = total.low ^ sign
    words[1] = total.middle ^ sign
    words[2] = total.high ^ sign
    words[3] = 0
    for i in range(shift):
        factor *= 10
    carried = (sign & 1) * factor  # the magnitude is the complement, and one more
    for i in range(WORDS):
        carried += <uint128> words[i] * factor
        words[i] = <uint64_t> carried
        carried >>= 64
    carried = 0
    for i in range(WORDS - 1, -1, -1):
        carried = (carried << 64) | words[i]
        found = carried / <uint128> count  # a variable: a cast around it would be one of the operands
        words[i] = <uint64_t> found
        carried -= found * <uint128> count
    remainder = <uint64_t> carried
    if words[2] or words[3] or words[1] >> 63:
        return False
    found = (<uint128> words[1] << 64 | words[0]) + (remainder >= <uint64_t> count - remainder)
    for i in range(precision):
        limit *= 10
    if found >= limit:
        return False
    if sign:
        found = 0 - found
    memcpy(value, &found, 16)
    return True
