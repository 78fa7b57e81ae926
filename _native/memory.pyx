"""Memory of the C library, with Python's error where there is none."""

from libc.stdint cimport int64_t
from libc.stdlib cimport realloc


cdef void* grow(void* memory, int64_t size, const char* what) except NULL nogil:
    cdef void* grown = realloc(memory, size)
    if grown == NULL:
        with gil:
            raise MemoryError(f"{size} bytes for {what.decode('ascii')}")
    return grown
