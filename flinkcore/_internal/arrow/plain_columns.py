"""One plain type per column: what dictionary, view, large, run-end-encoded and extension columns decode to."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.column_values import MOST_DEPTH, depth_of
from flinkcore.errors import DataError, SchemaError

_Int64s = np.ndarray[Any, np.dtype[np.int64]]
_NumberT = TypeVar("_NumberT", bound=np.signedinteger[Any])

MOST_TEXT = 2**31 - 1
"""Bytes of text that the offsets of a plain column can count."""

_PLAIN = frozenset(
    pa.type_for_alias(name).id
    for name in [
        "null",
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float32",
        "float64",
        "string",
        "large_string",
        "binary",
        "large_binary",
        "date32",
        "date64",
        "timestamp[ms]",
        "time32[ms]",
        "time64[us]",
        "duration[ms]",
    ]
)
"""Types that are plain whatever their parameters, by Arrow's numbers: most columns have one, and each batch asks."""

_OF_LARGE = {pa.large_string().id: pa.string(), pa.large_binary().id: pa.binary()}

MOST_SHARED = 1 << 24
"""Values of which views of lists may be made that share them, however few there are."""


def plain_type(arrow_type: pa.DataType) -> pa.DataType:
    """Return the type that a column of this type has once decoded.

    Dictionaries and run-end-encoded columns become their values; large and view strings and binaries become
    string and binary; views of lists become lists; float16 becomes float32; an extension type such as uuid becomes its
    storage type. Within nested types it is the same, but large strings and binaries stay there.
    """
    decoded = decoded_type(arrow_type)
    return _OF_LARGE.get(decoded.id, decoded)


def decoded_type(arrow_type: pa.DataType) -> pa.DataType:
    """Return the plain type, but large for large strings and binaries: as such, computed columns take any text."""
    if arrow_type.id in _PLAIN:
        return arrow_type
    if isinstance(arrow_type, pa.BaseExtensionType):
        return decoded_type(arrow_type.storage_type)
    if pa.types.is_dictionary(arrow_type) or pa.types.is_run_end_encoded(arrow_type):
        return decoded_type(arrow_type.value_type)
    if pa.types.is_string_view(arrow_type):
        return pa.string()
    if pa.types.is_binary_view(arrow_type):
        return pa.binary()
    if pa.types.is_float16(arrow_type):
        return pa.float32()
    fields = fields_of(arrow_type)
    decoded = [field.with_type(decoded_type(field.type)) for field in fields]
    is_plain = decoded == fields and not _is_view_of_lists(arrow_type)
    return arrow_type if is_plain else with_fields(arrow_type, decoded)


def fields_of(arrow_type: pa.DataType) -> list[pa.Field]:
    """Return the fields of a nested type; of a map its entries, and none of any other type."""
    return [arrow_type.field(number) for number in range(arrow_type.num_fields)]


def with_fields(arrow_type: pa.DataType, fields: list[pa.Field]) -> pa.DataType:
    """Return a nested type with other fields; views of lists become lists."""
    types = pa.types
    if types.is_struct(arrow_type):
        return pa.struct(fields)
    if types.is_union(arrow_type):
        return pa.union(fields, arrow_type.mode, arrow_type.type_codes)
    (field,) = fields
    if types.is_map(arrow_type):
        return pa.map_(field.type.field(0), field.type.field(1), arrow_type.keys_sorted)
    if types.is_fixed_size_list(arrow_type):
        return pa.list_(field, arrow_type.list_size)
    is_large = types.is_large_list(arrow_type) or types.is_large_list_view(arrow_type)
    return pa.large_list(field) if is_large else pa.list_(field)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with plain types and without metadata."""
    return pa.schema([(field.name, _plain_type_of_any(field.type)) for field in schema])


def _plain_type_of_any(arrow_type: pa.DataType) -> pa.DataType:
    return (
        arrow_type if depth_of(arrow_type) > MOST_DEPTH else plain_type(arrow_type)
    )  # refused where it is read


def narrowest(schema: pa.Schema) -> list[str]:
    """Return the name of the column that takes least to read, for the number of rows alone, if there is a column."""
    columns = [
        field for field in schema if depth_of(field.type) <= MOST_DEPTH and not has_no_arrays(field.type)
    ]
    return [min(columns, key=_width).name] if columns else []


def _width(field: pa.Field) -> tuple[bool, int]:
    kind = field.type
    is_nested = kind.num_fields > 0
    if is_nested or pa.types.is_null(kind):
        return is_nested, 0
    try:
        return False, kind.bit_width
    except ValueError:  # text
        return False, 1 << 16


def require_readable(fields: Iterable[pa.Field]) -> None:
    """Check that pyarrow has arrays of the types of columns that are read.

    Raises
    ------
    SchemaError
        If it only knows a type by name, as it does intervals of months.
    """
    for field in fields:
        if has_no_arrays(field.type):
            raise SchemaError(
                f"column {field.name!r} is {field.type}, whose values pyarrow cannot read. Leave it out by "
                "select(...), or write it as another type, such as month_day_nano_interval, int64 or string"
            )


def has_no_arrays(arrow_type: pa.DataType) -> bool:
    """Return whether pyarrow has no arrays of a plain type, or of one within it."""
    left = [arrow_type]
    while left:
        kind = left.pop()
        left += [field.type for field in fields_of(kind)]
        if kind.num_fields == 0:
            try:
                pa.nulls(0, kind)
            except (KeyError, pa.ArrowNotImplementedError):
                return True
    return False


def plain_column(column: pa.Array, target: pa.DataType) -> pa.Array:
    """Decode a column to a plain type, without copying where it is of that type already.

    Parameters
    ----------
    column : pyarrow.Array
        A column whose plain type is ``target``, or one that Arrow casts to it. Structs are converted field by field:
        a field that the column lacks is null, and one that ``target`` lacks is left out.
    target : pyarrow.DataType
        A plain type.

    Returns
    -------
    pyarrow.Array
        Column of type ``target``.

    Raises
    ------
    DataError
        If ``target`` does not hold a value exactly, or its text does not fit; see `fitting_pieces`.
    """
    try:
        return _plain(column, target)
    except (pa.ArrowInvalid, pa.ArrowCapacityError, pa.ArrowNotImplementedError) as failure:
        raise DataError(f"a column of type {column.type} cannot become {target}: {failure}") from failure


def is_castable(found: pa.DataType, target: pa.DataType) -> bool:
    """Return whether `plain_column` converts columns of a plain type to another, as far as their values allow."""
    try:
        _plain(pa.array([], found), target)
    except (pa.ArrowException, DataError, ValueError):
        return False
    return True


def _plain(column: pa.Array, target: pa.DataType) -> pa.Array:
    kind = column.type
    if kind == target:
        return column
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(column.storage, target)
    if pa.types.is_dictionary(kind):
        # Values first: of views, Arrow does not decode them.
        values = _plain(column.dictionary, decoded_type(kind.value_type))
        return _plain(pa.DictionaryArray.from_arrays(column.indices, values).dictionary_decode(), target)
    if pa.types.is_run_end_encoded(kind):
        return _plain(pc.run_end_decode(_with_plain_runs(column)), target)
    if pa.types.is_null(kind):
        return pa.nulls(len(column), target)
    if pa.types.is_float16(kind):
        # Older pyarrow has no cast from half floats.
        halves = np.frombuffer(column.buffers()[1], np.float16, len(column), column.offset * 2)
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        return pa.array(halves.astype(np.float32), pa.float32(), mask=~valid)
    if _is_large(kind):
        return _with_narrow_offsets(column, target)
    if _is_view_of_lists(kind):
        return _lists(column, target)
    if pa.types.is_nested(kind) and pa.types.is_nested(target):
        return _with_plain_fields(column, target)
    if _is_view(kind) and column.null_count:
        column = _with_blank_nulls(column)
    return column.cast(target)


def _with_plain_fields(column: pa.Array, target: pa.DataType) -> pa.Array:
    """Return a nested column whose fields are plain, without what lies around a slice."""
    layout, fields = _layout(column)
    if pa.types.is_list(target) or pa.types.is_large_list(target):
        layout = [pa.py_buffer(_offsets(column, target))]
    if pa.types.is_struct(target) and decoded_type(column.type) != target:
        plain = _fields_by_name(column, target)
    else:
        plain = [_plain(field, kind.type) for field, kind in zip(fields, fields_of(target), strict=True)]
    nulls = 0 if pa.types.is_union(target) else column.null_count  # unions have none of their own
    validity = pc.is_valid(column).buffers()[1] if nulls else None
    return pa.Array.from_buffers(target, len(column), [validity, *layout], nulls, 0, plain)


def _offsets(column: pa.Array, target: pa.DataType) -> npt.NDArray[np.signedinteger[Any]]:
    """Return the offsets of the values of lists, as integers of the size that the target's list type has."""
    if pa.types.is_fixed_size_list(column.type):
        starts: npt.NDArray[np.signedinteger[Any]] = np.arange(len(column) + 1) * column.type.list_size
    else:
        starts = _starts(column)
        starts = starts - starts[0]
    if pa.types.is_list(target) and starts[-1] > MOST_TEXT:
        raise DataError(
            f"lists of a column of type {column.type} have {starts[-1]:,} values, more than {target} holds"
        )
    return starts.astype(np.int32 if pa.types.is_list(target) else np.int64)


def _fields_by_name(column: pa.Array, target: pa.DataType) -> list[pa.Array]:
    # Values of rows that are null may be anything: flattened, they are null, too.
    fields = dict(zip((field.name for field in column.type), column.flatten(), strict=True))
    return [
        _plain(fields[field.name], field.type) if field.name in fields else pa.nulls(len(column), field.type)
        for field in target
    ]


def _layout(column: pa.Array) -> tuple[list[pa.Buffer], list[pa.Array]]:
    """Return the buffers of a nested column after its validity, and its fields."""
    types, kind, rows = pa.types, column.type, len(column)
    if types.is_union(kind):
        return _layout_of_union(column)
    if types.is_struct(kind):
        return [], [column.field(number) for number in range(kind.num_fields)]
    if types.is_fixed_size_list(kind):
        return [], [column.values.slice(column.offset * kind.list_size, rows * kind.list_size)]
    starts = _starts(column)
    first = starts[0]
    return [pa.py_buffer(starts - first)], [column.values.slice(first, starts[-1] - first)]


def _layout_of_union(column: pa.Array) -> tuple[list[pa.Buffer], list[pa.Array]]:
    kind = column.type
    fields = [column.field(number) for number in range(kind.num_fields)]
    codes = _of_buffer(column, 1, np.int8)
    if kind.mode == "sparse":
        return [pa.py_buffer(codes)], fields
    places = _of_buffer(column, 2, np.int32).copy()
    for number, code in enumerate(kind.type_codes):
        there = codes == code
        first = int(places[there].min(initial=len(fields[number])))
        last = int(places[there].max(initial=first - 1)) + 1
        places[there] -= first
        fields[number] = fields[number].slice(first, last - first)
    return [pa.py_buffer(codes), pa.py_buffer(places)], fields


def _lists(column: pa.Array, target: pa.DataType) -> pa.Array:
    """Views of lists as lists, which have values of their own, in order."""
    starts, sizes, values = _viewed(column)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    if ends[-1] > max(MOST_SHARED, 4 * len(values)):
        raise DataError(
            f"views of lists share their values: {ends[-1]:,} are made of {len(values):,}; write the column as lists"
        )
    there = sizes > 0
    plain = _plain(values, target.value_type)
    if ends[-1] != len(values) or not np.array_equal(starts[there], ends[:-1][there]):
        plain = plain.take(pa.array(np.repeat(starts - ends[:-1], sizes) + np.arange(ends[-1])))
    offsets = ends if pa.types.is_large_list(target) else ends.astype(np.int32)
    validity = pc.is_valid(column).buffers()[1] if column.null_count else None
    buffers = [validity, pa.py_buffer(offsets)]
    return pa.Array.from_buffers(target, len(column), buffers, column.null_count, 0, [plain])


def _viewed(column: pa.Array) -> tuple[_Int64s, _Int64s, pa.Array]:
    """Return where views of lists begin, how many values each has, and the values from the first to the last."""
    kind = np.int64 if pa.types.is_large_list_view(column.type) else np.int32
    starts, sizes = (_of_buffer(column, number, kind).astype(np.int64) for number in (1, 2))
    # Starts and sizes of nulls may be anything.
    sizes[column.is_null().to_numpy(zero_copy_only=False)] = 0
    there = sizes > 0
    first = int(starts[there].min(initial=len(column.values)))
    last = int((starts + sizes)[there].max(initial=first))
    return starts - first, sizes, column.values.slice(first, last - first)


def _of_buffer(column: pa.Array, number: int, kind: type[_NumberT]) -> np.ndarray[Any, np.dtype[_NumberT]]:
    """Return the numbers in a buffer that has one for each row."""
    buffer = column.buffers()[number]
    if buffer is None or not len(column):  # so an empty column may come
        return np.zeros(0, kind)
    return np.frombuffer(buffer, kind, len(column), column.offset * np.dtype(kind).itemsize)


def _with_blank_nulls(column: pa.Array) -> pa.Array:
    """Return a column of views where those of nulls are empty: Arrow's cast follows them, and they may be anything."""
    valid = pc.is_valid(column)
    _, views, *data = column.buffers()
    blank = np.frombuffer(views, np.int64, 2 * len(column), 16 * column.offset).reshape(-1, 2).copy()
    blank[~valid.to_numpy(zero_copy_only=False)] = 0
    buffers = [valid.buffers()[1], pa.py_buffer(blank), *data]
    return pa.Array.from_buffers(column.type, len(column), buffers, column.null_count)


def _with_plain_runs(column: pa.Array) -> pa.Array:
    values = _plain(column.values, decoded_type(column.type.value_type))
    runs = pa.run_end_encoded(column.type.run_end_type, values.type)
    return pa.RunEndEncodedArray.from_buffers(
        runs, len(column), [None], 0, column.offset, [column.run_ends, values]
    )


def fitting_pieces(
    batch: pa.RecordBatch, names: Collection[str], label: str, most_bytes: int = MOST_TEXT
) -> Iterator[pa.RecordBatch]:
    """Cut a batch into pieces whose text fits into plain columns; mostly it is one piece.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
    names : collection of str
        The columns that are to be plain.
    label : str
        Where the batch is from, for messages.
    most_bytes : int
        Most bytes of text that a column has once decoded, unless it has only one row.

    Raises
    ------
    DataError
        If a single value does not fit.
    """
    for name in names:
        most = MOST_TEXT if batch.num_rows == 1 else min(most_bytes, MOST_TEXT)
        size = _text_size(batch.column(name), most)
        if size <= most:
            continue
        if batch.num_rows == 1:
            raise DataError(
                f"{label}: a value of the column {name!r} has {size:,} bytes, more than the {MOST_TEXT:,} of a text "
                "column: shorten it where the log is written, or leave the column out by select(...)",
                column=name,
            )
        half = batch.num_rows // 2
        yield from fitting_pieces(batch.slice(0, half), names, label, most_bytes)
        yield from fitting_pieces(batch.slice(half), names, label, most_bytes)
        return
    yield batch


def _text_size(column: pa.Array, enough: int, is_within: bool = False) -> int:
    """Return how many bytes of text a column, or one within another, has once decoded; 0 where it stays.

    It may be more than there are, up to `enough`.
    """
    if pa.types.is_primitive(column.type):
        return 0
    if isinstance(column.type, pa.BaseExtensionType):
        return _text_size(column.storage, enough, is_within)
    if _is_large(column.type):
        starts = _starts(column)
        return 0 if is_within else int(starts[-1] - starts[0])
    if _is_view(column.type):
        return int(_lengths(column).sum())
    if pa.types.is_dictionary(column.type) and _is_text(column.type.value_type):
        lengths = _lengths(column.dictionary)
        most = int(lengths.max(initial=0)) * len(column)
        return most if most <= enough else int(lengths[column.indices.drop_null().to_numpy()].sum())
    if pa.types.is_run_end_encoded(column.type) and _is_text(column.type.value_type):
        values = column.values if len(column) > 1 else column.values.slice(column.find_physical_offset(), 1)
        return int(_lengths(values).max(initial=0)) * len(column)
    if _is_view_of_lists(column.type):
        return _text_size(_viewed(column)[2], enough, is_within=True)
    if pa.types.is_nested(column.type) and column.type != decoded_type(column.type):
        return max(_text_size(field, enough, is_within=True) for field in _layout(column)[1])
    return 0


def _lengths(column: pa.Array) -> _Int64s:
    """Return how many bytes each value has; 0 for null."""
    lengths: _Int64s
    if not _is_view(column.type):
        column = _plain(column, decoded_type(column.type))
    if _is_view(column.type):
        # A view has 16 bytes, and begins with the length.
        words = np.frombuffer(column.buffers()[1], np.int32, 4 * len(column), 16 * column.offset)
        lengths = words[::4].astype(np.int64)
        lengths[column.is_null().to_numpy(zero_copy_only=False)] = 0
    else:
        lengths = pc.binary_length(column).fill_null(0).to_numpy().astype(np.int64)
    return lengths


def _with_narrow_offsets(column: pa.Array, target: pa.DataType) -> pa.Array:
    """Make a large column plain of the same bytes, wherever they are; a cast takes only those below 2 GiB."""
    starts = _starts(column)
    first, last = int(starts[0]), int(starts[-1])
    if last - first > MOST_TEXT:
        raise DataError(
            f"a column of type {column.type} has {last - first:,} bytes of text, more than the {MOST_TEXT:,} that "
            f"{target} holds: let fewer values come together"
        )
    validity = pc.is_valid(column).buffers()[1] if column.null_count else None
    data = column.buffers()[2]
    return pa.Array.from_buffers(
        target,
        len(column),
        [
            validity,
            pa.py_buffer((starts - first).astype(np.int32)),
            None if data is None else data.slice(first, last - first),
        ],
        column.null_count,
    )


def _starts(column: pa.Array) -> np.ndarray[Any, np.dtype[np.signedinteger[Any]]]:
    """Return where the values of text, lists or maps begin, and where the last ends."""
    is_wide = _is_large(column.type) or pa.types.is_large_list(column.type)
    offsets, kind = column.buffers()[1], np.int64 if is_wide else np.int32
    if offsets is None or offsets.size == 0:  # so an empty column may come
        return np.zeros(1, kind)
    return np.frombuffer(offsets, kind, len(column) + 1, column.offset * kind().itemsize)


def _is_text(arrow_type: pa.DataType) -> bool:
    return plain_type(arrow_type) in (pa.string(), pa.binary())


def _is_view(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(arrow_type) or pa.types.is_binary_view(arrow_type))


def _is_view_of_lists(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_list_view(arrow_type) or pa.types.is_large_list_view(arrow_type))


def _is_large(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_large_string(arrow_type) or pa.types.is_large_binary(arrow_type))
