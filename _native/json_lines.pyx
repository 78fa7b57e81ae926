"""Blocks of JSON lines before a parser takes them: how deep they are nested, and which keys no column takes."""

import json

import cython

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memchr, memcmp, memcpy

from flinkcore._native.call_guard cimport Call, CallGuard, begin_call, check_no_call
from flinkcore._native.keys cimport hash_bytes
from flinkcore._native.memory cimport Buffer, buffer_append, buffer_append_bytes, buffer_free


cdef enum:
    VALUE = 0   # of which no key is looked at
    OBJECT = 1  # whose known keys are its children
    ARRAY = 2   # whose items are its only child


cdef enum:
    MOST_FRAMES = 128   # levels whose keys are looked at
    MOST_OTHERS = 1000  # spellings of keys that are remembered beside the known ones


cdef struct Node:
    int32_t parent
    int32_t first_child
    int32_t next         # the next child of the parent, or -1
    int32_t meant        # the known node of which this key is another spelling; -1: it is itself
    int32_t kind
    bint is_known
    int64_t key_start    # in `text` of the tree
    int64_t key_bytes
    int64_t count        # of keys that are not known
    int64_t first_line


cdef struct KeyTree:
    # Node 0 is the object of a line. `slots` is an open-addressing index of nodes by parent and key, with number + 1.
    Buffer nodes
    Buffer text
    int32_t* slots
    uint64_t mask
    int64_t others
    int64_t left_out
    int64_t line  # that is being scanned


cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    static const uint8_t flinkcore_json_marks[256] = {
        ['"'] = 1, ['{'] = 1, ['}'] = 1, ['['] = 1, [']'] = 1, [','] = 1, ['\\n'] = 1, ['n'] = 1
    };
    /* How many of eight bytes are before the first that may end a string: a quote, a backslash or a line break. */
    static inline int flinkcore_plain_bytes(const uint8_t* at) {
        const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
        uint64_t word, quote, slash, line, found;
        memcpy(&word, at, 8);
    #if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        word = __builtin_bswap64(word);
    #endif
        quote = word ^ (ones * '"');
        slash = word ^ (ones * '\\\\');
        line = word ^ (ones * '\\n');
        found = (((quote - ones) & ~quote) | ((slash - ones) & ~slash) | ((line - ones) & ~line)) & tops;
        return found ? __builtin_ctzll(found) >> 3 : 8;
    }
    """
    const uint8_t _marks "flinkcore_json_marks"[256]
    int _plain_bytes "flinkcore_plain_bytes"(const uint8_t* at) noexcept nogil


cdef inline Node* _node(const KeyTree* tree, int32_t number) noexcept nogil:
    return <Node*> tree.nodes.data + number


cdef inline bint _is_key(const KeyTree* tree, int32_t number, const uint8_t* key, int64_t length) noexcept nogil:
    cdef const Node* node = _node(tree, number)
    return node.key_bytes == length and (
        length == 0 or memcmp(tree.text.data + node.key_start, key, length) == 0
    )


cdef inline uint64_t _slot(const KeyTree* tree, int32_t parent, const uint8_t* key, int64_t length) noexcept nogil:
    # Slot of a key, or the empty one where it would go. There always is an empty one.
    cdef uint64_t at = (hash_bytes(key, length) + <uint64_t> parent * 0x9E3779B97F4A7C15u) & tree.mask
    while tree.slots[at] and not (
        _node(tree, tree.slots[at] - 1).parent == parent and _is_key(tree, tree.slots[at] - 1, key, length)
    ):
        at = (at + 1) & tree.mask
    return at


cdef int32_t _add(
    KeyTree* tree, int32_t parent, const uint8_t* key, int64_t length, int32_t kind, bint is_known
) except -1 nogil:
    cdef int32_t number = <int32_t> (tree.nodes.size // <int64_t> sizeof(Node))
    cdef Node* node = <Node*> buffer_append(&tree.nodes, sizeof(Node))
    node.parent, node.first_child, node.next, node.meant = parent, -1, -1, -1
    node.kind, node.is_known, node.count, node.first_line = kind, is_known, 0, 0
    node.key_start, node.key_bytes = tree.text.size, length
    buffer_append_bytes(&tree.text, key, length)
    tree.slots[_slot(tree, parent, key, length)] = number + 1
    return number


cdef int32_t _spelt_otherwise(const KeyTree* tree, int32_t parent, bytes spelling) except -2:
    # The known node that a key with escapes names; -1: none.
    cdef bytes key
    try:
        key = json.loads(b'"' + spelling + b'"', strict=False).encode("utf-8", "surrogatepass")
    except ValueError:
        return -1
    return tree.slots[_slot(tree, parent, <const uint8_t*> <const char*> key, len(key))] - 1


cdef int32_t _find(KeyTree* tree, int32_t parent, const uint8_t* key, int64_t length) except -2 nogil:
    # The node of a key that is not where it was expected; -1: it is not known, and has been counted.
    cdef int32_t number = tree.slots[_slot(tree, parent, key, length)] - 1, meant = -1
    cdef Node* node
    if number < 0:
        if length and memchr(key, b"\\", length) != NULL:
            with gil:
                meant = _spelt_otherwise(tree, parent, (<const char*> key)[:length])
                if meant >= 0 and not _node(tree, meant).is_known:
                    meant = -1
        if tree.others == MOST_OTHERS:
            tree.left_out += meant < 0
            return meant
        tree.others += 1
        number = _add(tree, parent, key, length, VALUE, False)
        _node(tree, number).meant = meant
        _node(tree, number).first_line = tree.line
    node = _node(tree, number)
    if node.is_known:
        return number
    if node.meant < 0:
        node.count += 1
    return node.meant


cdef inline int64_t _end_of_string(const uint8_t* text, int64_t at, int64_t n) noexcept nogil:
    # Returns the end of a string that begins before `at`: its quote, a line break that cuts it off, or the end of the text.
    cdef int plain
    while at < n:
        if at + 8 <= n:
            plain = _plain_bytes(text + at)
            at += plain
            if plain == 8:
                continue
        if text[at] == b'"' or text[at] == b"\n":
            return at
        at += 2 if text[at] == b"\\" and at + 1 < n and text[at + 1] != b"\n" else 1
    return n


cdef int64_t _scan(KeyTree* tree, const uint8_t* text, int64_t n, bint* has_null) except -1 nogil:
    # Returns how deep arrays and objects are nested.
    cdef int64_t at = 0, end, depth = 0, most = 0
    cdef int32_t frames[MOST_FRAMES]  # of each level the node of its object or array, or -1
    cdef int32_t before[MOST_FRAMES]  # of each level the child whose key came last, or -1
    cdef int32_t value = 0, node, expected  # `value`: the node of the value that comes next
    cdef bint is_key_next = False
    cdef uint8_t c
    while at < n:
        c = text[at]
        if not _marks[c]:
            at += 1
            continue
        if c == b'"':
            end = _end_of_string(text, at + 1, n)
            if is_key_next:
                is_key_next = False
                node = before[depth]
                expected = _node(tree, frames[depth]).first_child if node < 0 else _node(tree, node).next
                if expected < 0 or not _is_key(tree, expected, text + at + 1, end - at - 1):
                    expected = _find(tree, frames[depth], text + at + 1, end - at - 1)
                value = expected
                if expected >= 0:
                    before[depth] = expected
            at = end
            if at < n and text[at] == b"\n":
                continue
        elif c == b"{" or c == b"[":
            depth += 1
            most = max(most, depth)
            if 0 < depth < MOST_FRAMES:
                node = value if value >= 0 and _node(tree, value).kind == (OBJECT if c == b"{" else ARRAY) else -1
                frames[depth], before[depth] = node, -1
                is_key_next = node >= 0 and c == b"{"
                value = _node(tree, node).first_child if node >= 0 and c == b"[" else -1
            else:
                is_key_next, value = False, -1
        elif c == b"}" or c == b"]":
            depth -= 1
            is_key_next = False
            value = 0 if depth == 0 else -1
        elif c == b",":
            if 0 < depth < MOST_FRAMES and frames[depth] >= 0:
                is_key_next = _node(tree, frames[depth]).kind == OBJECT
                if not is_key_next:
                    value = _node(tree, frames[depth]).first_child
        elif c == b"\n":
            tree.line += 1
        elif c == b"n" and depth == 0 and at + 1 < n and text[at + 1] == b"u":
            has_null[0] = True
        at += 1
    return most


@cython.final
cdef class JsonKeys:
    """Looks through the blocks of a file of JSON lines, and counts the keys that are not among the known ones.

    Parameters
    ----------
    known : list of tuple of (int, bytes, int)
        For each value within the lines: the number of its enclosing value, which comes before it; its key in UTF-8 (empty for
        items); and 0 if the keys within it are ignored, 1 for an object, 2 for an array. The first stands for the object of a
        line. An empty list: all keys are ignored.
    """

    cdef KeyTree tree
    cdef CallGuard guard

    def __cinit__(self, list known = None):
        cdef int64_t slots = 1
        cdef int32_t number
        cdef int parent, kind
        cdef bytes key
        cdef dict last = {}
        known = known or [(-1, b"", VALUE)]
        while slots < 2 * (len(known) + MOST_OTHERS):
            slots *= 2
        self.tree.slots = <int32_t*> calloc(slots, sizeof(int32_t))
        if self.tree.slots == NULL:
            raise MemoryError(f"{slots * sizeof(int32_t)} bytes for the keys of JSON")
        self.tree.mask = slots - 1
        self.tree.line = 1
        for parent, key, kind in known:
            if not -1 <= parent < len(last) or (parent < 0) != (len(last) == 0) or not VALUE <= kind <= ARRAY:
                raise ValueError("a value is within one before it")
            number = _add(&self.tree, parent, key, len(key), kind, True)
            if parent >= 0:
                if last[parent] < 0:
                    _node(&self.tree, parent).first_child = number
                else:
                    _node(&self.tree, last[parent]).next = number
                last[parent] = number
            last[number] = -1

    def __dealloc__(self):
        buffer_free(&self.tree.nodes)
        buffer_free(&self.tree.text)
        free(self.tree.slots)

    def scan(self, const uint8_t[::1] text not None):
        """Look through the next block of whole lines. O(n).

        Parameters
        ----------
        text : bytes
            Need not be JSON: a string that a line break cuts off ends there, as no string goes over lines.

        Returns
        -------
        levels : int
            Depth to which arrays and objects are nested.
        has_null : bool
            True if there is a null outside of them.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef bint has_null = False
        cdef int64_t levels = 0
        if text.shape[0]:
            with nogil:
                levels = _scan(&self.tree, &text[0], text.shape[0], &has_null)
        return levels, has_null

    def others(self):
        """Return the keys so far that are not known: (number of the value that has it, key as spelt, count, first line).

        Lines count from 1. Keys within such a key are ignored.
        """
        cdef int32_t number
        cdef list found = []
        check_no_call(&self.guard, self)
        for number in range(<int32_t> (self.tree.nodes.size // <int64_t> sizeof(Node))):
            node = _node(&self.tree, number)[0]
            if node.count:
                key = (<const char*> self.tree.text.data)[node.key_start : node.key_start + node.key_bytes]
                found.append((node.parent, key, node.count, node.first_line))
        return found

    @property
    def line(self):
        """The number of the line that comes next, from 1."""
        return self.tree.line

    @property
    def left_out(self):
        """Number of further ones, after many different ones were known."""
        return self.tree.left_out
