# Memory of the C library, with Python's error where there is none.
from libc.stdint cimport int64_t


# As realloc; the error says what it is for.
cdef void* grow(void* memory, int64_t size, const char* what) except NULL nogil
