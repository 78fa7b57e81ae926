"""From a function's name and the types of its columns to an empty aggregate."""

from libc.stdint cimport INT64_MAX, int32_t, uint64_t
from libc.string cimport memset

from flinkcore.errors import ConfigurationError, SchemaError

from flinkcore._native.aggregate_functions cimport Function, Part
from flinkcore._native.arrow cimport ArrowSchema, ColumnType, checked_schema, column_type, field_name, native_array
from flinkcore._native.column_blocks cimport is_float, is_word
from flinkcore._native.memory cimport Buffer

_FUNCTIONS = {
    "count": Function.COUNT,
    "sum": Function.SUM,
    "mean": Function.MEAN,
    "min": Function.LEAST,
    "max": Function.LEAST,
    "first": Function.FIRST,
    "last": Function.LAST,
    "min_by": Function.LEAST_BY,
    "max_by": Function.LEAST_BY,
    "count_distinct": Function.COUNT_DISTINCT,
    "collect": Function.COLLECT,
}

_TYPE_NAMES = {
    ColumnType.NULL_TYPE: "null",
    ColumnType.DATE32: "date",
    ColumnType.DATE64: "date",
    ColumnType.TIME32: "time",
    ColumnType.TIME64: "time",
    ColumnType.TIMESTAMP: "timestamp",
    ColumnType.DURATION: "duration",
    ColumnType.STRING: "string",
    ColumnType.LARGE_STRING: "string",
    ColumnType.BINARY: "binary",
    ColumnType.LARGE_BINARY: "binary",
    ColumnType.FIXED_BINARY: "binary",
    ColumnType.DECIMAL128: "decimal",
    ColumnType.STRUCT: "struct",
}


cdef RecordBatch empty_batch(object schema, list columns):
    # No rows, and the types that the schema gives to the columns.
    cdef ArrowSchema* fields
    cdef Buffer second, third
    cdef ColumnType kind
    cdef int32_t byte_width
    cdef bint is_varying
    export = getattr(schema, "__arrow_c_schema__", None)
    if export is None:
        raise TypeError(f"{type(schema).__name__} has no __arrow_c_schema__; pass the pyarrow schema of the batches")
    capsule = export()
    fields = checked_schema(capsule, schema)
    names = [field_name(fields.children[i]) for i in range(fields.n_children)]
    arrays = []
    for name in columns:
        if name not in names:
            raise SchemaError(f"no column {name!r}; the columns are {', '.join(names)}")
        i = names.index(name)
        if fields.children[i].dictionary != NULL:
            raise SchemaError(
                f"column {name!r} is dictionary-encoded; cast it to the type of its values before it is aggregated"
            )
        try:
            column_type(fields.children[i].format, &kind, &byte_width)
        except SchemaError as error:
            raise SchemaError(f"column {name!r}: {error}") from None
        memset(&second, 0, sizeof(Buffer))
        memset(&third, 0, sizeof(Buffer))
        is_varying = ColumnType.STRING <= kind <= ColumnType.LARGE_BINARY
        arrays.append(
            native_array(
                fields.children[i].format.decode(),
                0,
                NULL,
                NULL if kind == ColumnType.NULL_TYPE or kind == ColumnType.STRUCT else &second,
                &third if is_varying else NULL,
            )
        )
    return RecordBatch(native_array("+s", 0, NULL, NULL, NULL, arrays, columns))


cdef int check_spec(str function, object column, object by) except -1:
    if function not in _FUNCTIONS:
        raise ConfigurationError(f"no aggregate {function!r}; there are {', '.join(_FUNCTIONS)}")
    if column is None and function != "count":
        raise ConfigurationError(f"{function} needs a column")
    if function.endswith("_by") != (by is not None):
        raise ConfigurationError(
            f"{function} of column {column!r} "
            + ("takes no `by` column" if by is not None else "needs a `by` column that says which row counts")
        )
    return 0


cdef int _refuse(str function, str name, const Column* column, str advice) except -1:
    raise SchemaError(
        f"{function}: column {name!r} is a {_TYPE_NAMES.get(column.type, 'number')} "
        f"(Arrow format {column.format.decode()!r}), which has no {function}; {advice}"
    )


cdef int _check_values(str function, str name, const Column* column) except -1:
    # Whether values of this type can be kept and compared, or added up for sum and mean.
    cdef ColumnType type = column.type
    if function == "count" or (function == "count_distinct" and type == ColumnType.NULL_TYPE):
        return 0
    if type == ColumnType.NULL_TYPE:
        _refuse(function, name, column, "cast it to the type that its values would have")
    if type == ColumnType.STRUCT:
        _refuse(function, name, column, "aggregate its fields as columns of their own")
    if type == ColumnType.FIXED_BINARY and column.byte_width == 0:
        _refuse(function, name, column, "cast it to binary")
    if function == "sum" or function == "mean":
        if type == ColumnType.DECIMAL128:
            _refuse(function, name, column, "cast it to double or int64 first")
        if not is_word(type):
            _refuse(function, name, column, "cast it to a number first")
        if type >= ColumnType.DATE32 and not (function == "sum" and type == ColumnType.DURATION):
            _refuse(function, name, column, "cast it to int64 first, or use min or max")
    return 0


cdef int _parts(Function function, bint word) noexcept:
    if function == Function.COUNT:
        return Part.WORD_PART
    if function == Function.COUNT_DISTINCT:
        return Part.WORD_SET_PART if word else Part.BYTE_SET_PART
    if function == Function.COLLECT:
        return Part.LIST_PART
    if function == Function.MEAN:
        return Part.WORD_PART | Part.COUNT_PART
    if word and (function == Function.SUM or function == Function.LEAST):
        return Part.WORD_PART
    return Part.STATE_PART | (Part.WORD_PART if word else Part.BYTES_PART)


cdef str start_aggregate(
    Aggregate* aggregate, str function, object name, const Column* values, object by_name, const Column* by
):
    if values != NULL:
        _check_values(function, name, values)
        aggregate.type = values.type
    aggregate.function = _FUNCTIONS[function]
    aggregate.descending = function == "max" or function == "max_by"
    aggregate.parts = _parts(aggregate.function, values != NULL and is_word(values.type))
    if by != NULL:
        _check_values(function, by_name, by)
        aggregate.by_type = by.type
        aggregate.parts |= Part.KEY_PART if is_word(by.type) else Part.KEY_BYTES_PART
    aggregate.result.width = 8
    aggregate.result.type = ColumnType.INT64
    if aggregate.function == Function.COUNT or aggregate.function == Function.COUNT_DISTINCT:
        return "l"
    if aggregate.function == Function.SUM or aggregate.function == Function.MEAN:
        aggregate.whole_numbers = not is_float(values.type)
        if aggregate.function == Function.MEAN or not aggregate.whole_numbers:
            aggregate.empty_word = <uint64_t> 1 << 63  # -0.0: the one start that keeps a sum of -0.0 as it is
            aggregate.result.type = ColumnType.FLOAT64
            return "g"
        if values.type != ColumnType.UINT64 and values.type != ColumnType.DURATION:
            return "l"
    elif aggregate.function == Function.LEAST:
        aggregate.empty_word = <uint64_t> INT64_MAX
    aggregate.result.type = values.type
    aggregate.result.width = values.byte_width
    return values.format.decode()
