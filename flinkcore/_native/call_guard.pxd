# One call at a time: keeps a second thread out of an object while a method of it is without the GIL, or in Python code.
cdef struct CallGuard:
    bint is_taken   # by a call that changes the object
    int n_readers   # calls that only read it, of which there may be many


# Whoever has it is in the object; letting go of it leaves the object, also where an error ends the method.
cdef class Call:
    cdef CallGuard* _guard
    cdef object _owner
    cdef bint _only_reads


# The first line of a method that may let go of the GIL: `cdef Call call = begin_call(&self.guard, self)`.
# RuntimeError where another one has begun.
cdef Call begin_call(CallGuard* guard, object owner)
# The same of a method that only reads the object: others may read it at the same time.
cdef Call begin_reading(CallGuard* guard, object owner)


# That of a method that never lets go of the GIL: nobody else can come in between.
cdef inline int check_no_call(const CallGuard* guard, object owner) except -1:
    if guard.is_taken or guard.n_readers:
        raise RuntimeError(f"this {type(owner).__name__} is in another call; let one thread at a time use it")
    return 0
