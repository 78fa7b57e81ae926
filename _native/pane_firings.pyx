"""Results of the keys of a window, in order of registration."""

from libc.stdint cimport int64_t, uint32_t

from flinkcore._native.aggregates cimport accumulators_clear_range
from flinkcore._native.firings cimport (
    firings_append,
    firings_append_bytes_keys,
    firings_append_int64_keys,
    firings_append_kind,
    pending_flush,
)
from flinkcore._native.panes cimport ENTRY_BLOCK, pane_entry, pane_key
from flinkcore._native.window_kernel cimport NO_ENTRY, LiveWindow, core_emit, core_emit_row, window_rows_add


cdef int append_pane_keys(
    WindowCore* core, const Pane* pane, int64_t first, int64_t n, RowKind kind, bint late
) except -1 nogil:
    if core.retracts:
        firings_append_kind(&core.firings, kind, n)
    if core.bytes_keys:
        firings_append_bytes_keys(&core.firings, pane.data, &pane.offsets[first], n)
    else:
        firings_append_int64_keys(&core.firings, &pane.keys[first], n)
    return firings_append(&core.firings, pane.start, pane.end, late, core.cursor.watermark, n)


cdef int emit_late_key(WindowCore* core, const Pane* pane, int64_t k, RowKind kind) except -1 nogil:
    pending_flush(&core.pending, core.table)
    core_emit_row(
        core, pane_entry(pane, k), pane.offsets[k + 1] - pane.offsets[k] if core.bytes_keys else 0, kind, True
    )
    return append_pane_keys(core, pane, k, 1, kind, True)


cdef int append_live_keys(
    WindowRows* windows, bint bytes_keys, const Pane* pane, int64_t first, int64_t n
) except -1 nogil:
    if bytes_keys:
        return firings_append_bytes_keys(&windows.firings, pane.data, &pane.offsets[first], n)
    return firings_append_int64_keys(&windows.firings, &pane.keys[first], n)


cdef int append_live_panes(WindowRows* windows, bint bytes_keys, const PaneList* live) except -1 nogil:
    cdef const Pane* pane
    cdef LiveWindow window
    cdef int64_t i, k
    window.trigger_state = 0
    for i in range(live.n):
        pane = live.panes[i]
        window.start = pane.start
        window.end = pane.end
        window.flags = pane.fired
        if pane.n_keys:
            append_live_keys(windows, bytes_keys, pane, 0, pane.n_keys)
        for k in range(pane.n_keys):
            window_rows_add(windows, &window, pane_entry(pane, k))
    return 0


cdef int64_t restored_pane_entry(PaneStore* store, Pane* pane, const KeyBatch* keys, int64_t row) except -1 nogil:
    cdef int64_t known = pane.n_keys, k = pane_key(store, pane, keys, row)
    if k < known:
        return NO_ENTRY
    return pane_entry(pane, k)


cdef bint emit_pane(WindowCore* core, const Pane* pane, int64_t* n_emitted, bint purges) except -1 nogil:
    cdef int64_t k = n_emitted[0], n, emitted
    pending_flush(&core.pending, core.table)
    while k < pane.n_keys:
        n = min(<int64_t> ENTRY_BLOCK - k % ENTRY_BLOCK, pane.n_keys - k)
        emitted = core_emit(core, NULL, pane_entry(pane, k), n, &pane.offsets[k] if core.bytes_keys else NULL)
        if purges:
            accumulators_clear_range(core.table, pane_entry(pane, k), <uint32_t> emitted)
        k += emitted
        if emitted < n:
            break
    append_pane_keys(core, pane, n_emitted[0], k - n_emitted[0], RowKind.INSERT, False)
    core.on_time_firings += k - n_emitted[0]
    n_emitted[0] = k if k < pane.n_keys else 0
    return k == pane.n_keys
