# From a function's name and the types of its columns to an empty aggregate.
from flinkcore._native.aggregate_functions cimport Aggregate
from flinkcore._native.arrow cimport Column, RecordBatch


# Raises ConfigurationError where there is no such function, or it takes other columns; each is a str or None.
cdef int check_spec(str function, object column, object by) except -1
# A batch without rows of the columns named: their types in the schema. SchemaError where one is missing or unsupported.
cdef RecordBatch empty_batch(object schema, list columns)
# Sets all but what refers to a table: column, selection, values, by and the result's name. The columns are NULL where
# the function has none. Gives the result's Arrow format, of COLLECT that of the elements. SchemaError where the types
# do not fit.
cdef str start_aggregate(
    Aggregate* aggregate, str function, object name, const Column* values, object by_name, const Column* by
)
