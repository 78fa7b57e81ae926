# One call at a time: keeps a second thread out of an object while a method of it is without the GIL, or in Python code.
cdef struct CallGuard:
    bint is_taken   # by a call that changes the object
    int n_readers   # calls that only read it, of which there may be many


# The token of a call that is in progress. Releasing it, even when an error ends the method, leaves the object.
cdef class Call:
    cdef CallGuard* _guard
    cdef object _owner
    cdef bint _only_reads


# Begins a call, in the first line of a method that may release the GIL: `cdef Call call = begin_call(&self.guard, self)`.
# Raises RuntimeError if another call is in progress.
cdef Call begin_call(CallGuard* guard, object owner)
# The same for a method that only reads the object: others may read it at the same time.
cdef Call begin_reading(CallGuard* guard, object owner)


# The check of a method that never releases the GIL, so that no other call can begin during it.
cdef inline int check_no_call(const CallGuard* guard, object owner) except -1:
    if guard.is_taken or guard.n_readers:
        raise RuntimeError(f"this {type(owner).__name__} is in another call; let one thread at a time use it")
    return 0
