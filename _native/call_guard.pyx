"""One call at a time: keeps a second thread out of an object while a method of it is without the GIL, or in Python code.

Kernels keep their state in C structs, which two threads at once would corrupt. Threads take turns by the GIL; so a flag that is set
and read with the GIL held is enough, and costs next to nothing.
"""

import cython


@cython.final
@cython.freelist(16)
cdef class Call:
    def __init__(self):
        raise TypeError("calls are begun by native classes only")

    def __dealloc__(self):
        if self._guard == NULL:
            return
        if self._only_reads:
            self._guard.n_readers -= 1
        else:
            self._guard.is_taken = False


cdef Call _new_call(CallGuard* guard, object owner, bint only_reads):
    cdef Call call = Call.__new__(Call)
    call._owner = owner
    call._only_reads = only_reads
    call._guard = guard
    return call


cdef Call begin_call(CallGuard* guard, object owner):
    cdef Call call
    check_no_call(guard, owner)
    call = _new_call(guard, owner, False)
    guard.is_taken = True
    return call


cdef Call begin_reading(CallGuard* guard, object owner):
    cdef Call call
    if guard.is_taken:
        check_no_call(guard, owner)
    call = _new_call(guard, owner, True)
    guard.n_readers += 1
    return call
