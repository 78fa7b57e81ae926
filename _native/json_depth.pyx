"""How deep JSON is nested."""

from libc.stdint cimport int64_t, uint8_t


def json_depth(const uint8_t[::1] text not None):
    """Return how many arrays and objects lie in each other at most. O(n).

    Parameters
    ----------
    text : bytes
        Need not be JSON: a string that a line break cuts off ends there, as no string goes over lines.
    """
    cdef int64_t i, n = text.shape[0], depth = 0, most = 0
    cdef bint in_string = False, is_escaped = False
    cdef uint8_t c
    with nogil:
        for i in range(n):
            c = text[i]
            if in_string:
                if c == b"\n" or (c == b'"' and not is_escaped):
                    in_string = False
                is_escaped = c == b"\\" and not is_escaped
            elif c == b'"':
                in_string, is_escaped = True, False
            elif c == b"{" or c == b"[":
                depth += 1
                most = max(most, depth)
            elif c == b"}" or c == b"]":
                depth -= 1
    return most
