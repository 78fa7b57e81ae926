# Timers as columns: numpy arrays in and out, and the record batch of a snapshot.
from libc.stdint cimport int64_t

from flinkcore._native.arrow cimport NativeArray, RecordBatch


# Four arrays of integers, equally long; namespaces may be one number for all rows, and is an array of one row then.
cdef tuple checked_timer_columns(object timestamps_ms, object keys, object key_groups, object namespaces)
# TimerColumns of n rows, to be written.
cdef object empty_timer_columns(int64_t n)
# TimerColumns as a record batch, and back; the columns are copied both ways.
cdef NativeArray timer_record_batch(object columns)
cdef object timer_columns_of(RecordBatch batch)
