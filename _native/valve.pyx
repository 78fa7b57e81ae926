"""The valve: merges the watermarks and statuses of several channels into one watermark and one status."""

import cython
from libc.stdint cimport INT64_MIN, int8_t, int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free, malloc

from flinkcore.errors import ConfigurationError, DataError

from flinkcore._native.call_guard cimport Call, begin_call, check_no_call
from flinkcore._native.entry_heap cimport (
    HeapEntry,
    entry_time,
    heap_put,
    heap_remove,
    heap_sift_down,
    heap_sift_up,
    make_entry,
)
from flinkcore._native.memory cimport Buffer, buffer_append, buffer_free


WATERMARK_KIND = int(ElementKind.WATERMARK)
IDLE_KIND = int(ElementKind.IDLE)
ACTIVE_KIND = int(ElementKind.ACTIVE)

cdef uint32_t UNALIGNED = 0xFFFFFFFF  # position of a channel that is not in the heap


# Only aligned channels can hold the watermark back: they are in a heap of (watermark, channel), whose root is the minimum over
# them. A channel that is idle, or that has come back from idleness below the last watermark emitted, is not in it.
#
# The verbs follow StatusWatermarkValve: inputWatermark, inputWatermarkStatus, markWatermarkAligned, markWatermarkUnaligned,
# findAndOutputNewMinWatermarkAcrossAlignedSubpartitions.


cdef void _align(Valve* valve, int32_t channel) noexcept nogil:
    if valve.positions[channel] == UNALIGNED:
        heap_sift_up(valve.aligned, valve.n_aligned, make_entry(valve.watermarks[channel], 0, channel), valve.positions)
        valve.n_aligned += 1


cdef void _unalign(Valve* valve, int32_t channel) noexcept nogil:
    cdef uint32_t position = valve.positions[channel]
    if position != UNALIGNED:
        heap_remove(valve.aligned, valve.n_aligned, position, valve.positions)
        valve.n_aligned -= 1
        valve.positions[channel] = UNALIGNED


cdef inline int _emit(Valve* valve, int64_t watermark, int64_t* emitted) noexcept nogil:
    # The valve's watermark never goes back, and is never emitted twice.
    if watermark <= valve.last_output:
        return 0
    valve.last_output = watermark
    emitted[0] = watermark
    return ValveOutput.EMITS_WATERMARK


cdef inline int _emit_minimum(Valve* valve, int64_t* emitted) noexcept nogil:
    return _emit(valve, entry_time(valve.aligned[0]), emitted) if valve.n_aligned else 0


cdef inline int _input_watermark(Valve* valve, int32_t channel, int64_t timestamp, int64_t* emitted) noexcept nogil:
    # As in Flink, an idle channel must turn active before its watermarks count, and a channel's watermark never goes back.
    if valve.idle_channels[channel] or timestamp <= valve.watermarks[channel]:
        return 0
    valve.watermarks[channel] = timestamp
    if timestamp > valve.maximum:
        valve.maximum = timestamp
    if valve.positions[channel] != UNALIGNED:  # its watermark has grown, so that it can only sift down
        heap_sift_down(
            valve.aligned, valve.n_aligned, valve.positions[channel], make_entry(timestamp, 0, channel), valve.positions
        )
    # markWatermarkAligned: the channel has caught up after idleness. Only from here on can it hold the watermark back.
    elif timestamp >= valve.last_output:
        _align(valve, channel)
    return _emit_minimum(valve, emitted)


cdef int _input_idle(Valve* valve, int32_t channel, int64_t* emitted) noexcept nogil:
    cdef int output = 0
    if valve.idle_channels[channel]:
        return 0
    valve.idle_channels[channel] = 1
    valve.n_active -= 1
    _unalign(valve, channel)
    if valve.n_active == 0:
        # Only if this channel held the watermark back does its idleness flush: the others turned idle before it, and Flink then
        # lets the furthest of all channels count. Idleness comes after that watermark.
        if valve.watermarks[channel] == valve.last_output:
            output = _emit(valve, valve.maximum, emitted)
        valve.idle = True
        return output | ValveOutput.EMITS_IDLE
    # A channel ahead of the last watermark was not the least one, so the minimum over the others is still the same.
    if valve.watermarks[channel] == valve.last_output:
        return _emit_minimum(valve, emitted)
    return 0


cdef int _input_active(Valve* valve, int32_t channel) noexcept nogil:
    if not valve.idle_channels[channel]:
        return 0
    valve.idle_channels[channel] = 0
    valve.n_active += 1
    # A channel that is behind stays unaligned until its watermarks catch up: it must not pull the valve back. An active channel
    # emits no watermark by itself.
    if valve.watermarks[channel] >= valve.last_output:
        _align(valve, channel)
    if valve.idle:
        valve.idle = False
        return ValveOutput.EMITS_ACTIVE
    return 0


cdef int valve_input(Valve* valve, int32_t channel, int kind, int64_t timestamp, int64_t* emitted) noexcept nogil:
    if kind == ElementKind.WATERMARK:
        return _input_watermark(valve, channel, timestamp, emitted)
    if kind == ElementKind.IDLE:
        return _input_idle(valve, channel, emitted)
    return _input_active(valve, channel)


cdef list _input_one(Valve* valve, object channel, int kind, object timestamp):
    cdef int64_t emitted = 0
    cdef int output
    if not 0 <= channel < valve.n_channels:
        raise DataError(f"no channel {channel} in a valve of {valve.n_channels} channels, counted from 0")
    output = valve_input(valve, channel, kind, timestamp, &emitted)
    outputs = []
    if output & ValveOutput.EMITS_WATERMARK:
        outputs.append(("watermark", emitted))
    if output & ValveOutput.EMITS_IDLE:
        outputs.append(("status", "idle"))
    elif output & ValveOutput.EMITS_ACTIVE:
        outputs.append(("status", "active"))
    return outputs


cdef struct BatchOutput:
    int64_t at
    int64_t timestamp
    int64_t kind


cdef inline int _append(Buffer* outputs, int64_t at, int64_t kind, int64_t timestamp) except -1 nogil:
    cdef BatchOutput* output = <BatchOutput*> buffer_append(outputs, sizeof(BatchOutput))
    output.at = at
    output.kind = kind
    output.timestamp = timestamp
    return 0


cdef int _input_batch(
    Valve* valve, const int32_t* channels, const int8_t* kinds, const int64_t* timestamps, int64_t n, Buffer* outputs
) except -1 nogil:
    cdef int64_t i, emitted = 0
    cdef int output
    for i in range(n):
        output = valve_input(valve, channels[i], kinds[i], timestamps[i], &emitted)
        if output & ValveOutput.EMITS_WATERMARK:
            _append(outputs, i, ElementKind.WATERMARK, emitted)
        if output & ValveOutput.EMITS_IDLE:
            _append(outputs, i, ElementKind.IDLE, 0)
        elif output & ValveOutput.EMITS_ACTIVE:
            _append(outputs, i, ElementKind.ACTIVE, 0)
    return 0


cdef int64_t _first_bad_row(int32_t n_channels, const int32_t* channels, const int8_t* kinds, int64_t n) noexcept nogil:
    # Return the first row whose channel or kind does not exist, or n.
    cdef int64_t i
    for i in range(n):
        if channels[i] < 0 or channels[i] >= n_channels or kinds[i] < 0 or kinds[i] > ElementKind.ACTIVE:
            return i
    return n


@cython.final
cdef class StatusWatermarkValve:
    """The watermark and status of several channels taken together.

    The watermark is the minimum over the channels that are active and *aligned*: a channel that resumes after idleness counts
    only once it has caught up with the last watermark emitted. When the last active channel turns idle and it was the one that
    held the watermark back, the maximum over all channels is emitted.

    O(log channels) for each watermark and each status: aligned channels are an indexed heap. The maximum over
    all channels is kept as they advance (a channel's watermark never goes back), so that the flush is O(1).

    Follows StatusWatermarkValve of Flink 2.3, one subpartition per channel.

    Parameters
    ----------
    channels : int
        Number of channels, at least 1; all are active at first, without a watermark (-2**63).

    Raises
    ------
    ConfigurationError
        If the number of channels is below 1 or above 2**31 - 1.
    """

    def __cinit__(self, object channels):
        cdef int32_t i
        if not 1 <= channels < 2**31:
            raise ConfigurationError(f"a valve needs between 1 and 2**31 - 1 channels, not {channels}")
        self.valve.n_channels = channels
        self.valve.n_active = self.valve.n_aligned = self.valve.n_channels
        self.valve.last_output = self.valve.maximum = INT64_MIN
        self.valve.watermarks = <int64_t*> malloc(self.valve.n_channels * sizeof(int64_t))
        self.valve.idle_channels = <uint8_t*> calloc(self.valve.n_channels, 1)
        self.valve.positions = <uint32_t*> malloc(self.valve.n_channels * sizeof(uint32_t))
        self.valve.aligned = <HeapEntry*> malloc(self.valve.n_channels * sizeof(HeapEntry))
        if (
            self.valve.watermarks == NULL
            or self.valve.idle_channels == NULL
            or self.valve.positions == NULL
            or self.valve.aligned == NULL
        ):
            raise MemoryError(f"a valve of {channels} channels")
        for i in range(self.valve.n_channels):
            self.valve.watermarks[i] = INT64_MIN
            heap_put(self.valve.aligned, i, make_entry(INT64_MIN, 0, i), self.valve.positions)  # ascending, hence a heap

    def __dealloc__(self):
        free(self.valve.watermarks)
        free(self.valve.idle_channels)
        free(self.valve.positions)
        free(self.valve.aligned)

    def input_watermark(self, channel, timestamp_ms):
        """Take in a watermark on a channel. O(log channels).

        Parameters
        ----------
        channel : int
            0 ≤ channel < channels.
        timestamp_ms : int
            64 bits. A watermark that is not greater than the channel's last one, or that comes on an idle channel, has no
            effect.

        Returns
        -------
        list of tuple
            The emitted elements: none, or `[("watermark", timestamp_ms)]`.

        Raises
        ------
        DataError
            If the channel does not exist.
        """
        check_no_call(&self.guard, self)
        return _input_one(&self.valve, channel, ElementKind.WATERMARK, timestamp_ms)

    def input_watermark_status(self, channel, status):
        """Take in a watermark status on a channel. O(log channels).

        Parameters
        ----------
        channel : int
            0 ≤ channel < channels.
        status : str
            "idle" or "active". The status that the channel already has is without effect.

        Returns
        -------
        list of tuple
            The emitted elements in order: `("watermark", timestamp_ms)`, then `("status", "idle" | "active")`; each may be
            missing.

        Raises
        ------
        DataError
            If the channel or the status does not exist.
        """
        check_no_call(&self.guard, self)
        if status not in ("idle", "active"):
            raise DataError(f"a watermark status is 'idle' or 'active', not {status!r}")
        return _input_one(&self.valve, channel, ElementKind.IDLE if status == "idle" else ElementKind.ACTIVE, 0)

    def input_batch(
        self,
        const int32_t[::1] channels not None,
        const int8_t[::1] kinds not None,
        const int64_t[::1] timestamps_ms not None,
    ):
        """Take in watermarks and statuses in the order of the rows. O(rows · log channels), without the GIL.

        Parameters
        ----------
        channels : numpy.ndarray of int32, shape (n_rows,)
        kinds : numpy.ndarray of int8, shape (n_rows,)
            WATERMARK_KIND, IDLE_KIND or ACTIVE_KIND.
        timestamps_ms : numpy.ndarray of int64, shape (n_rows,)
            Read for watermarks only.

        Returns
        -------
        tuple of numpy.ndarray
            The emitted elements in order: `(rows int64, kinds int8, timestamps_ms int64)`, each of shape (n_outputs,). `rows`
            is the input that caused the element. The timestamp of a status is 0.

        Raises
        ------
        DataError
            If the columns differ in length, or a channel or kind does not exist. The valve is then unchanged.
        """
        cdef Call call = begin_call(&self.guard, self)
        import numpy as np

        cdef int64_t n = channels.shape[0], bad, i, n_outputs
        cdef Buffer outputs
        cdef BatchOutput* output
        cdef int64_t[::1] rows, emitted
        cdef int8_t[::1] emitted_kinds
        if kinds.shape[0] != n or timestamps_ms.shape[0] != n:
            raise DataError(
                f"{n} channels, {kinds.shape[0]} kinds and {timestamps_ms.shape[0]} timestamps: not one each"
            )
        if n == 0:
            return np.empty(0, np.int64), np.empty(0, np.int8), np.empty(0, np.int64)
        # Checked before anything is taken in, so that a bad row leaves the valve unchanged.
        bad = _first_bad_row(self.valve.n_channels, &channels[0], &kinds[0], n)
        if bad < n:
            raise DataError(
                f"row {bad}: channel {channels[bad]}, kind {kinds[bad]}; there are {self.valve.n_channels} channels, "
                "counted from 0, and the kinds 0 (watermark), 1 (idle) and 2 (active)"
            )
        outputs.data = NULL
        outputs.size = outputs.capacity = 0
        try:
            with nogil:
                _input_batch(&self.valve, &channels[0], &kinds[0], &timestamps_ms[0], n, &outputs)
            n_outputs = outputs.size // <int64_t> sizeof(BatchOutput)
            at, kind, timestamp = (
                np.empty(n_outputs, np.int64), np.empty(n_outputs, np.int8), np.empty(n_outputs, np.int64)
            )
            rows, emitted_kinds, emitted = at, kind, timestamp
            output = <BatchOutput*> outputs.data
            for i in range(n_outputs):
                rows[i] = output[i].at
                emitted_kinds[i] = <int8_t> output[i].kind
                emitted[i] = output[i].timestamp
        finally:
            buffer_free(&outputs)
        return at, kind, timestamp

    def restore(self, const int64_t[::1] watermarks_ms not None, const uint8_t[::1] idle not None, int64_t watermark_ms):
        """Restore the `state` of another valve, before any input. O(channels · log channels).

        Parameters
        ----------
        watermarks_ms : numpy.ndarray of int64, shape (channels,)
            The last watermark of each channel. To let a new channel hold the valve back, pass the valve's watermark for it.
        idle : numpy.ndarray of uint8, shape (channels,)
            1 for an idle channel.
        watermark_ms : int
            The last watermark emitted.

        Raises
        ------
        DataError
            If a column does not have one value per channel.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int32_t i
        cdef Valve* valve = &self.valve
        if watermarks_ms.shape[0] != valve.n_channels or idle.shape[0] != valve.n_channels:
            raise DataError(
                f"{watermarks_ms.shape[0]} watermarks and {idle.shape[0]} statuses for {valve.n_channels} channels"
            )
        valve.n_active = valve.n_aligned = 0
        valve.last_output = watermark_ms
        valve.maximum = INT64_MIN
        for i in range(valve.n_channels):
            valve.watermarks[i] = watermarks_ms[i]
            valve.maximum = max(valve.maximum, watermarks_ms[i])
            valve.idle_channels[i] = idle[i] != 0
            valve.n_active += idle[i] == 0
            valve.positions[i] = UNALIGNED
        for i in range(valve.n_channels):
            if not valve.idle_channels[i] and valve.watermarks[i] >= watermark_ms:
                _align(valve, i)
        # The status was emitted before the checkpoint; restoring emits nothing.
        valve.idle = valve.n_active == 0

    def state(self):
        """Return the arguments of `restore`: `(watermarks_ms int64, idle uint8, watermark_ms int)`."""
        cdef Call call = begin_call(&self.guard, self)
        import numpy as np

        cdef int32_t i
        cdef int64_t[::1] watermarks = np.empty(self.valve.n_channels, np.int64)
        cdef uint8_t[::1] idle = np.empty(self.valve.n_channels, np.uint8)
        for i in range(self.valve.n_channels):
            watermarks[i] = self.valve.watermarks[i]
            idle[i] = self.valve.idle_channels[i]
        return watermarks.base, idle.base, self.valve.last_output

    @property
    def channels(self):
        """Number of channels."""
        return self.valve.n_channels

    @property
    def current_watermark(self):
        """The last watermark emitted, in ms; -2**63 before the first."""
        return self.valve.last_output

    @property
    def is_idle(self):
        """True if the last status emitted is idle; a new valve is active."""
        return bool(self.valve.idle)

    def _check(self):
        cdef Call call = begin_call(&self.guard, self)
        cdef int32_t i, n_active = 0, n_aligned = 0
        cdef int64_t maximum = INT64_MIN
        cdef Valve* valve = &self.valve
        for i in range(valve.n_channels):
            n_active += not valve.idle_channels[i]
            maximum = max(maximum, valve.watermarks[i])
            if valve.positions[i] == UNALIGNED:
                assert valve.idle_channels[i] or valve.watermarks[i] < valve.last_output, f"channel {i} should be aligned"
                continue
            n_aligned += 1
            assert not valve.idle_channels[i], f"channel {i} is idle and aligned"
            assert valve.positions[i] < <uint32_t> valve.n_aligned, f"channel {i} lies outside of the heap"
            assert valve.aligned[valve.positions[i]] == make_entry(valve.watermarks[i], 0, i), f"channel {i} is not at its place"
            assert valve.watermarks[i] >= valve.last_output, f"channel {i} is aligned below the watermark"
        assert (n_active, n_aligned, maximum) == (valve.n_active, valve.n_aligned, valve.maximum)
        assert bool(valve.idle) == (n_active == 0)
        for i in range(1, valve.n_aligned):
            assert valve.aligned[(i - 1) >> 2] < valve.aligned[i], f"the heap is broken at {i}"
