"""Checksums of files that others have written."""

from libc.stdint cimport uint8_t, uint32_t


cdef uint32_t[256] CRC
cdef int _i, _j
cdef uint32_t _n
for _i in range(256):
    _n = _i
    for _j in range(8):
        _n = _n >> 1 ^ (0x82F63B78 if _n & 1 else 0)
    CRC[_i] = _n


def masked_crc32c(const uint8_t[::1] data):
    """Return the CRC-32C of bytes as frames of Snappy have it.

    Parameters
    ----------
    data : bytes

    Returns
    -------
    int
        The checksum, rotated, with a constant added.
    """
    cdef uint32_t crc = 0xFFFFFFFF
    cdef Py_ssize_t i, n = data.shape[0]
    cdef const uint8_t* bytes = &data[0] if n else NULL
    with nogil:
        for i in range(n):
            crc = CRC[(crc ^ bytes[i]) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return (crc >> 15 | crc << 17) + <uint32_t> 0xA282EAD8
