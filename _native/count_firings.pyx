"""Windows that the elements of keys have fired, by count, and whose results are emitted together."""

from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint32_t

from flinkcore._native.firings cimport (
    RowKind,
    firings_append,
    firings_append_bytes_keys,
    firings_append_int64_keys,
)
from flinkcore._native.window_kernel cimport core_count, core_emit


cdef void count_firing_add(CountFirings* fired, const KeyTable* keys, uint32_t id, uint32_t entry) noexcept nogil:
    cdef int64_t i = fired.n
    cdef const int64_t* offsets = <const int64_t*> keys.offsets.data
    fired.keys[i] = id
    fired.entries[i] = entry
    if keys.bytes_keys:
        fired.key_offsets[i + 1] = fired.key_offsets[i] + offsets[id + 1] - offsets[id]
    fired.n = i + 1


cdef int64_t count_firings_emit(CountFirings* fired, const KeyTable* keys, WindowCore* core) except -1 nogil:
    cdef bint late = core.cursor.watermark == INT64_MAX
    cdef int64_t i, first = fired.n_emitted
    cdef int64_t n = core_emit(
        core,
        fired.entries + first,
        0,
        fired.n - first,
        fired.key_offsets + first if keys.bytes_keys else NULL,
    )
    for i in range(first, first + n):
        append_counted_key(&core.firings, keys, fired.keys[i])
        core_count(core, RowKind.INSERT, late)
    firings_append(&core.firings, INT64_MIN, INT64_MAX, late, core.cursor.watermark, n)
    fired.n_emitted += n
    if fired.n_emitted == fired.n:
        fired.n = fired.n_emitted = 0
    return n


cdef int append_counted_key(Firings* firings, const KeyTable* keys, uint32_t id) except -1 nogil:
    cdef const int64_t* offsets = <const int64_t*> keys.offsets.data
    if keys.bytes_keys:
        return firings_append_bytes_keys(firings, keys.data.data, &offsets[id], 1)
    return firings_append_int64_keys(firings, &(<const int64_t*> keys.values.data)[id], 1)
