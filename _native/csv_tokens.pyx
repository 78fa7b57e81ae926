"""Rows of CSV cut into their values, as Jackson cuts them for Flink."""

from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.unicode cimport (
    PyUnicode_4BYTE_KIND,
    PyUnicode_DATA,
    PyUnicode_FromKindAndData,
    PyUnicode_GET_LENGTH,
    PyUnicode_KIND,
    PyUnicode_READ,
    PyUnicode_Substring,
)
from libc.stdint cimport int64_t

cimport cython

from flinkcore.errors import ConfigurationError, DataError

cdef enum:
    NO_CHARACTER = 0x110000  # beyond Unicode
    MOST_CHARACTERS = 20_000_000  # of a value; Jackson's limit

cdef enum Place:
    LINE_START
    COMMENT
    SKIPPED_LINE
    VALUE_START
    PLAIN
    PLAIN_ESCAPE
    QUOTED
    QUOTED_ESCAPE
    QUOTE  # within a quoted value: its end, or the first of two
    QUOTED_END


cdef struct Value:
    Py_UCS4* characters
    Py_ssize_t length
    Py_ssize_t capacity


cdef int check_length(Py_ssize_t length, int64_t line) except -1:
    if length > MOST_CHARACTERS:
        raise DataError(
            f"line {line}: a value has more than {MOST_CHARACTERS:,} characters: is its quote closed?"
        )
    return 0


cdef int append(Value* value, Py_UCS4 character, int64_t line) except -1:
    cdef Py_UCS4* grown
    cdef Py_ssize_t capacity
    if value.length == value.capacity:
        check_length(value.length + 1, line)
        capacity = min(max(64, 2 * value.capacity), <Py_ssize_t> MOST_CHARACTERS)
        grown = <Py_UCS4*> PyMem_Realloc(value.characters, capacity * sizeof(Py_UCS4))
        if grown is NULL:
            raise MemoryError
        value.characters, value.capacity = grown, capacity
    value.characters[value.length] = character
    value.length += 1
    return 0


cdef inline Py_UCS4 unescaped(Py_UCS4 character) noexcept nogil:
    if character == u"n":
        return u"\n"
    if character == u"r":
        return u"\r"
    if character == u"t":
        return u"\t"
    return u"\0" if character == u"0" else character


cdef Py_UCS4 character_of(str text, str setting) except? NO_CHARACTER:
    if text is None:
        return NO_CHARACTER
    if len(text) != 1:
        raise ConfigurationError(f"{setting} is one character, not {text!r}")
    return text[0]


@cython.final
cdef class CsvTokens:
    """The values of CSV text that comes block by block.

    Parameters
    ----------
    separator : str
        One character.
    quote, escape : str or None
        One character, or None without one.
    allow_comments : bool
        Skip lines that begin with "#", empty lines, and spaces before the first value of a line.
    skip_after : int
        Number of rows before a line that is skipped unread, or -1.

    Raises
    ------
    ConfigurationError
        If a character is not one.

    Notes
    -----
    Follows ``CsvDecoder`` of Jackson's CSV format. A line ends with a line feed, a carriage return or both. Only a value that
    begins with a quote is quoted, and only spaces follow its end. An escaped n, r, t or 0 is a control character.
    """

    cdef Py_UCS4 _separator
    cdef Py_UCS4 _quote
    cdef Py_UCS4 _escape
    cdef Py_UCS4 _last
    cdef bint _allow_comments
    cdef int64_t _skip_after
    cdef int64_t _rows
    cdef int64_t _line
    cdef Place _place
    cdef Value _value
    cdef list _row

    def __cinit__(self):
        self._value.characters = NULL
        self._value.length = self._value.capacity = 0

    def __init__(self, str separator not None, str quote, str escape, bint allow_comments, int64_t skip_after):
        self._separator = character_of(separator, "the separator of columns")
        self._quote = character_of(quote, "a quote")
        self._escape = character_of(escape, "an escape")
        self._allow_comments = allow_comments
        self._skip_after = skip_after
        self._rows = 0
        self._line = 1
        self._last = 0
        self._place = LINE_START
        self._row = []

    def __dealloc__(self):
        PyMem_Free(self._value.characters)

    @property
    def line(self):
        """The number of the line that is read, from 1."""
        return self._line

    def feed(self, str text not None):
        """Return the rows that end in a block of text, each as the list of its values. O(n).

        Raises
        ------
        DataError
            If something follows the end of a quoted value, or a value is longer than Jackson takes.
        """
        cdef Py_ssize_t i = 0, end, n = PyUnicode_GET_LENGTH(text)
        cdef int kind = PyUnicode_KIND(text)
        cdef void* data = PyUnicode_DATA(text)
        cdef Py_UCS4 c, following = 0
        cdef list rows = []
        while i < n:
            c = PyUnicode_READ(kind, data, i)
            if c == u"\n" or c == u"\r":
                if c == u"\n" and self._last == u"\r":
                    if self._place == LINE_START:  # of a line that has ended with it
                        self._last = c
                        i += 1
                        continue
                else:
                    self._line += 1
            if self._place == LINE_START:
                if self._allow_comments and (c == u" " or c == u"\n" or c == u"\r"):
                    pass
                elif self._allow_comments and c == u"#":
                    self._place = COMMENT
                elif self._rows == self._skip_after:
                    self._skip_after = -1
                    self._place = LINE_START if c == u"\n" or c == u"\r" else SKIPPED_LINE
                else:
                    self._begin_value(c, rows)
            elif self._place == VALUE_START:
                if c == self._separator or c == self._quote or c == self._escape or c == u"\n" or c == u"\r":
                    self._begin_value(c, rows)
                else:
                    # A plain value within the block is cut out of it.
                    end = i + 1
                    while end < n:
                        following = PyUnicode_READ(kind, data, end)
                        if (
                            following == self._separator
                            or following == u"\n"
                            or following == u"\r"
                            or following == self._escape
                        ):
                            break
                        end += 1
                    check_length(end - i, self._line)
                    if end < n and following == self._separator:
                        self._row.append(PyUnicode_Substring(text, i, end))
                        i = end
                        c = following
                    elif end < n and following != self._escape:
                        self._row.append(PyUnicode_Substring(text, i, end))
                        self._end_row(rows)
                        self._line += 1
                        i = end
                        c = following
                    else:
                        self._place = PLAIN
                        append(&self._value, c, self._line)
            elif self._place == PLAIN:
                if c == self._separator:
                    self._end_value()
                elif c == u"\n" or c == u"\r":
                    self._end_value()
                    self._end_row(rows)
                elif c == self._escape:
                    self._place = PLAIN_ESCAPE
                else:
                    append(&self._value, c, self._line)
            elif self._place == QUOTED:
                if c == self._quote:
                    self._place = QUOTE
                elif c == self._escape:
                    self._place = QUOTED_ESCAPE
                else:
                    append(&self._value, c, self._line)
            elif self._place == QUOTE and c == self._quote:
                append(&self._value, c, self._line)
                self._place = QUOTED
            elif self._place == QUOTE or self._place == QUOTED_END:
                if c == self._separator:
                    self._end_value()
                elif c == u"\n" or c == u"\r":
                    self._end_value()
                    self._end_row(rows)
                elif c <= u" ":
                    self._place = QUOTED_END
                else:
                    raise DataError(
                        f"line {self._line}: {chr(c)!r} follows the end of a quoted value; a quote in it is written twice"
                    )
            elif self._place == PLAIN_ESCAPE or self._place == QUOTED_ESCAPE:
                append(&self._value, unescaped(c), self._line)
                self._place = PLAIN if self._place == PLAIN_ESCAPE else QUOTED
            elif c == u"\n" or c == u"\r":  # of a comment, or a line that is skipped
                self._place = LINE_START
            self._last = c
            i += 1
        return rows

    def finish(self):
        """Return the row that ends with the text, in a list, or an empty list if its last line has ended.

        Raises
        ------
        DataError
            If the text ends within a quoted value, or after an escape.
        """
        cdef list rows = []
        if self._place == QUOTED or self._place == QUOTED_ESCAPE:
            raise DataError("it ends within a quoted value")
        if self._place == PLAIN_ESCAPE:
            raise DataError("it ends with an escape")
        if self._place > SKIPPED_LINE:
            self._end_value()
            self._end_row(rows)
        return rows

    cdef int _begin_value(self, Py_UCS4 c, list rows) except -1:
        self._place = VALUE_START
        if c == u"\n" or c == u"\r":
            self._end_value()
            self._end_row(rows)
        elif c == self._quote:
            self._place = QUOTED
        elif c == self._separator:
            self._end_value()
        elif c == self._escape:
            self._place = PLAIN_ESCAPE
        else:
            self._place = PLAIN
            append(&self._value, c, self._line)
        return 0

    cdef int _end_value(self) except -1:
        self._row.append(
            PyUnicode_FromKindAndData(PyUnicode_4BYTE_KIND, self._value.characters, self._value.length)
        )
        self._value.length = 0
        self._place = VALUE_START
        return 0

    cdef int _end_row(self, list rows) except -1:
        rows.append(self._row)
        self._row = []
        self._rows += 1
        self._place = LINE_START
        return 0
