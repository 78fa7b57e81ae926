"""The moves of each split over the ticks, told by the summaries of its chunks in log order.

Records lie in memory or in a file. Of those in a file each split holds a small stretch, read with `pread`: mapped pages
would count as memory of the process, in which a resource manager may see a reason to end it.
"""

import os

import cython

from libc.errno cimport EINTR, errno
from libc.stdint cimport INT64_MIN, int32_t, int64_t
from libc.stdlib cimport calloc, free, malloc

from flinkcore._native.call_guard cimport Call, begin_call
from flinkcore._native.memory cimport Buffer, buffer_free, buffer_reserve
from flinkcore._native.watermarks cimport PackedRecord, RecordKind, check_codes, checked_interval, tick_of

from flinkcore.errors import DataError, SourceError

cdef extern from "<unistd.h>" nogil:
    ssize_t pread(int file, void* buffer, size_t size, int64_t offset)

cdef enum:
    _MOST_BUFFER_RECORDS = 1 << 16


cdef int _read(int file, char* buffer, int64_t size, int64_t offset) except -1 nogil:
    cdef ssize_t n
    cdef int error
    while size:
        n = pread(file, buffer, size, offset)
        error = errno
        if n < 0 and error == EINTR:
            continue
        if n <= 0:
            with gil:
                reason = os.strerror(error) if n < 0 else "it has been cut short"
                raise SourceError(f"the temporary file of watermark steps cannot be read: {reason}")
        buffer += n
        size -= n
        offset += n
    return 0


cdef int _fill(SplitRecords records, int32_t split) except -1 nogil:
    # The next records of the part, from the file into the split's buffer.
    cdef RecordCursor* cursor = &records.cursors[split]
    cdef PackedRecord* buffer = records.buffers + split * records.buffer_records
    cursor.n_records = min(cursor.n_unread, records.buffer_records)
    _read(records.file, <char*> buffer, cursor.n_records * sizeof(PackedRecord), cursor.file_offset)
    cursor.records = buffer
    cursor.n_unread -= cursor.n_records
    cursor.file_offset += cursor.n_records * sizeof(PackedRecord)
    return 0


cdef inline void _enter(RecordCursor* cursor, const SplitPart* part) noexcept nogil:
    cursor.entered = True
    if part.records != NULL:
        cursor.records = part.records
        cursor.n_records = part.n_records
    else:
        cursor.n_unread = part.n_records
        cursor.file_offset = part.file_offset


cdef inline void _move_by_record(RecordCursor* cursor, Move* move) noexcept nogil:
    # A gap is two moves: to its first tick, then over it.
    cdef int64_t first = cursor.records.place >> 1
    move.over_gap = cursor.in_gap
    move.tick = first
    move.timestamp = INT64_MIN
    if not cursor.records.place & 1:
        move.timestamp = cursor.records.value
    elif not cursor.in_gap:
        cursor.in_gap = True
        return
    else:
        cursor.in_gap = False
        move.tick = cursor.records.value
    cursor.records += 1
    cursor.n_records -= 1


cdef int _append_part(SplitRecords records, int32_t split, const SplitPart* part) except -1:
    cdef RecordCursor* cursor = &records.cursors[split]
    cdef int64_t number = records.parts.size // <int64_t> sizeof(SplitPart)
    buffer_reserve(&records.parts, sizeof(SplitPart))
    (<SplitPart*> records.parts.data)[number] = part[0]
    records.parts.size += sizeof(SplitPart)
    if cursor.part < 0:
        cursor.part = number
    else:
        (<SplitPart*> records.parts.data)[cursor.last_part].following = number
    cursor.last_part = number
    return 0


cdef int next_move(SplitRecords records, int32_t split, Move* move) except -1 nogil:
    cdef RecordCursor* cursor = &records.cursors[split]
    cdef SplitPart* part
    if cursor.n_records:
        _move_by_record(cursor, move)
        return 1
    if cursor.n_unread:
        _fill(records, split)
        _move_by_record(cursor, move)
        return 1
    if cursor.part < 0:
        return 0
    part = <SplitPart*> records.parts.data + cursor.part
    if not cursor.entered:
        _enter(cursor, part)
        move.tick = part.first_tick
        move.timestamp = INT64_MIN
        move.over_gap = True
        return 1
    cursor.entered = False
    cursor.part = part.following
    move.tick = part.last_tick
    move.timestamp = part.max_timestamp
    move.over_gap = False
    return 1


@cython.final
cdef class SplitRecords:
    """What the summaries of all chunks tell of each split, read once, each split at its own pace.

    Parameters
    ----------
    splits : int
        Number of splits.
    interval_ms : int
        As of TimeSummary.
    file : int or None
        Descriptor of the file with the records that are not in memory.
    buffer_bytes : int
        About how much of the file is held in memory at once.

    Raises
    ------
    ConfigurationError
        If the interval is out of its range.
    """

    def __cinit__(self, *, int32_t splits, object interval_ms, object file=None, int64_t buffer_bytes=64 << 20):
        cdef int32_t split
        self.interval = checked_interval(interval_ms)
        self.n_splits = splits
        self.owners = []
        self.file = -1 if file is None else file
        self.cursors = <RecordCursor*> calloc(splits + 1, sizeof(RecordCursor))
        if self.cursors == NULL:
            raise MemoryError(f"{splits} splits")
        for split in range(splits):
            self.cursors[split].part = self.cursors[split].last_part = -1
        if file is not None:
            self.buffer_records = buffer_bytes // <int64_t> (sizeof(PackedRecord) * (splits + 1))
            self.buffer_records = min(max(self.buffer_records, 1), _MOST_BUFFER_RECORDS)
            self.buffers = <PackedRecord*> malloc(self.buffer_records * (splits + 1) * sizeof(PackedRecord))
            if self.buffers == NULL:
                raise MemoryError(f"{self.buffer_records} records of {splits} splits")

    def __dealloc__(self):
        free(self.cursors)
        free(self.buffers)
        buffer_free(&self.parts)

    def add_chunk(
        self,
        const int32_t[::1] splits not None,
        const int64_t[::1] events not None,
        const int64_t[::1] first_arrivals_ms not None,
        const int64_t[::1] last_arrivals_ms not None,
        const int64_t[::1] max_timestamps_ms not None,
        const int64_t[::1] n_records not None,
        object records not None,
    ):
        """Take in the summary of the next chunk.

        Parameters
        ----------
        splits : numpy.ndarray of int32, shape (n_splits,)
            Number among all splits of each split of the chunk.
        events, first_arrivals_ms, last_arrivals_ms, max_timestamps_ms : numpy.ndarray of int64, shape (n_splits,)
            As of TimeSummary.
        n_records : numpy.ndarray of int64, shape (n_splits,)
            As of TimeSummary.
        records : numpy.ndarray of int64, shape (2 * n_records,), or int
            As of TimeSummary; it is kept, not copied. An integer: where they begin in the file, in bytes.

        Raises
        ------
        DataError
            If the columns do not fit together.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t i, n = splits.shape[0], total = 0
        cdef const int64_t[::1] in_memory
        cdef SplitPart part
        if not (
            n == events.shape[0] == first_arrivals_ms.shape[0] == last_arrivals_ms.shape[0]
            and n == max_timestamps_ms.shape[0] == n_records.shape[0]
        ):
            raise DataError("the columns of a chunk's summary differ in length")
        check_codes(splits, self.n_splits)
        for i in range(n):
            if n_records[i] < 0 or (n_records[i] and not events[i]):
                raise DataError(f"{n_records[i]} records of {events[i]} events in a chunk's summary")
            total += n_records[i]
        part.records = NULL
        part.file_offset = 0
        part.following = -1
        if isinstance(records, int):
            part.file_offset = records
            if self.file < 0:
                raise DataError("records in a file, but there is no file")
        else:
            in_memory = records
            if in_memory.shape[0] != 2 * total:
                raise DataError(f"{in_memory.shape[0]} numbers for {total} records: not two each")
            if total:
                part.records = <const PackedRecord*> &in_memory[0]
                self.owners.append(records)
        for i in range(n):
            if events[i]:
                part.first_tick = tick_of(first_arrivals_ms[i], self.interval)
                part.last_tick = tick_of(last_arrivals_ms[i], self.interval)
                part.max_timestamp = max_timestamps_ms[i]
                part.n_records = n_records[i]
                _append_part(self, splits[i], &part)
                part.file_offset += n_records[i] * <int64_t> sizeof(PackedRecord)
                if part.records != NULL:
                    part.records += n_records[i]
