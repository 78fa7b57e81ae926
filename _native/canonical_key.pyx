"""The canonical form of a key: by it keys are admitted, compared and hashed.

Two keys have equal forms exactly if the Java objects that stand for them are equal: every NaN is one key; -0.0 and 0.0,
1, 1.0 and True, and decimals of different scale are several. Python's `==` would join those, and part every NaN from
itself. Most keys are their own form; of others it is a tuple that begins with a class of this module, which no key
has, so that it equals no other key.
"""

from datetime import datetime, timezone
from decimal import Decimal
from numbers import Rational, Real

from libc.math cimport signbit


class Float:
    """Begins the forms of floats."""


class Truth:
    """Begins the forms of bools."""


class BigDecimal:
    """Begins the forms of decimals."""


class OfClass:
    """Begins the forms of what a class has an own form for, such as rows."""


cdef tuple NAN = (Float, "NaN")
cdef tuple NEGATIVE_ZERO = (Float, "-0.0")
cdef tuple FALSE = (Truth, False)
cdef tuple TRUE = (Truth, True)


cpdef object canonical_key(object key):
    """Return the canonical form of a key; hashable if the key is.

    Parameters
    ----------
    key : object
        Where its class has a method `__canonical_key__`, what that returns counts instead; the forms of parts of
        tuples count.

    Notes
    -----
    Objects of other classes are compared as they are, by their own `==` and hash.

    Examples
    --------
    >>> canonical_key(("ada", 36))
    ('ada', 36)
    >>> canonical_key(float("nan")) == canonical_key(-float("nan")), canonical_key(0.0) == canonical_key(-0.0)
    (True, False)
    """
    cdef object kind = type(key)
    if kind is str or kind is int or kind is bytes or key is None:
        return key
    if kind is tuple:
        return _of_tuple(<tuple> key)
    if kind is float:
        return _of_float(key)
    if kind is bool:
        return TRUE if key else FALSE
    return _of_other(key, kind)


cdef object _of_float(double number):
    if number != number:
        return NAN
    if number == 0 and signbit(number):
        return NEGATIVE_ZERO
    return Float, number


cdef object _of_tuple(tuple key):
    cdef object part, form
    cdef list forms = None
    cdef Py_ssize_t i
    for i in range(len(key)):
        part = key[i]
        form = canonical_key(part)
        if form is not part and forms is None:
            forms = list(key)
        if forms is not None:
            forms[i] = form
    return key if forms is None else tuple(forms)


cdef object _of_other(object key, object kind):
    own = getattr(kind, "__canonical_key__", None)
    if own is not None:
        return OfClass, canonical_key(own(key))
    if isinstance(key, tuple):
        return _of_tuple(tuple(key))
    if isinstance(key, str):
        return str.__str__(key)
    if isinstance(key, float):
        return _of_float(float.__float__(key))
    if isinstance(key, int):
        return int.__int__(key)
    if isinstance(key, Decimal):
        # A BigDecimal has digits and a scale, but zero has no sign.
        return BigDecimal, str(key if key else abs(key))
    if isinstance(key, datetime):
        return _of_moment(key)
    if isinstance(key, Real) and not isinstance(key, Rational):
        return _of_real(key, kind)
    return key


cdef object _of_moment(object key):
    # In other zones than UTC, the two moments of an hour that comes twice are equal.
    if key.tzinfo is None:
        return key
    try:
        return key.astimezone(timezone.utc)
    except (OverflowError, ValueError):
        return key


cdef object _of_real(object key, object kind):
    # Such as numpy's float32, which is a Float in Java.
    if key != key:
        return kind, "NaN"
    if key == 0 and signbit(<double> float(key)):
        return kind, "-0.0"
    return kind, key
