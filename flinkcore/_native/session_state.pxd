# Live sessions as rows of a checkpoint, and back: verbs of the kernel of session windows.
from libc.stdint cimport int64_t

from flinkcore._native.keys cimport KeyBatch
from flinkcore._native.window_kernel cimport LiveWindow, WindowRows


cdef int session_rows(const void* windows, WindowRows* rows) except -1 nogil
cdef int64_t session_restore(void* windows, const KeyBatch* keys, int64_t row, const LiveWindow* window) except -1 nogil
