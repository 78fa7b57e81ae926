# The keyed window operator over columns, for any kind of windows.
from libc.stdint cimport int64_t

from flinkcore._native.aggregates cimport Accumulators
from flinkcore._native.call_guard cimport CallGuard
from flinkcore._native.keys cimport KeyEncoder
from flinkcore._native.window_kernel cimport WindowCore, WindowKernel


cdef class WindowOperator:
    cdef CallGuard guard
    cdef WindowKernel _kernel
    cdef WindowCore* core  # of the kernel
    cdef KeyEncoder _keys
    cdef Accumulators _accumulators
    cdef object _clocks
    cdef object _watermarks
    cdef list _key_names
    cdef list _aggregate_names
    cdef str _time_format
    cdef bint _in_call
    cdef int _begin(self) except -1
    cdef bint _advance(self, int64_t arrival, bint to_end) except -1
