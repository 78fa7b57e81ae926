"""Structs of the Arrow C data interface that contradict themselves: an error that names the column, never a crash."""

import ctypes
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from equipment.arrow_protocol import ArrowArray, ArrowSchema, Liar, Lie

from flinkcore._native.aggregates import Accumulators
from flinkcore._native.arrow import ColumnArray, RecordBatch, checked_batch
from flinkcore._native.key_dictionary import KeyDictionary
from flinkcore._native.key_groups import hash_codes, key_groups
from flinkcore._native.keys import KeyEncoder
from flinkcore._native.timers import TimerHeap
from flinkcore.errors import DataError, FlinkcoreError, SchemaError

ROWS = 5
BATCH = pa.record_batch(
    {
        "number": pa.array([1, None, 3, 4, 5], pa.int64()),
        "text": pa.array(["a", "bc", None, "", "def"], pa.string()),
        "pair": pa.array([{"x": row, "y": str(row)} for row in range(ROWS)]),
        "flag": pa.array([True, False, None, True, True]),
    }
)
NUMBER, TEXT, PAIR, FLAG = range(4)
ENTRIES = np.zeros(ROWS, np.uint32)


def of_array(change: Callable[[ArrowArray], None]) -> Lie:
    return lambda schema, array: change(array)


def of_column(column: int, **values: int | None) -> Lie:
    """The array of a column has other values in its struct."""

    def lie(schema: ArrowSchema, array: ArrowArray) -> None:
        for name, value in values.items():
            setattr(array.children[column].contents, name, value)

    return lie


def without_buffer(column: int, number: int) -> Lie:
    def lie(schema: ArrowSchema, array: ArrowArray) -> None:
        array.children[column].contents.buffers[number] = None

    return lie


def with_offsets(*offsets: int) -> Lie:
    def lie(schema: ArrowSchema, array: ArrowArray) -> None:
        wrong = (ctypes.c_int32 * (ROWS + 1))(*offsets)
        KEPT.append(wrong)
        array.children[TEXT].contents.buffers[1] = ctypes.addressof(wrong)

    return lie


def with_format(column: int, format: bytes | None) -> Lie:
    def lie(schema: ArrowSchema, array: ArrowArray) -> None:
        schema.children[column].contents.format = format

    return lie


def of_schema(column: int, **values: Any) -> Lie:
    def lie(schema: ArrowSchema, array: ArrowArray) -> None:
        for name, value in values.items():
            setattr(schema.children[column].contents, name, value)

    return lie


def without_child(schema: ArrowSchema, array: ArrowArray) -> None:
    array.children[TEXT] = ctypes.POINTER(ArrowArray)()


def without_field(schema: ArrowSchema, array: ArrowArray) -> None:
    schema.children[TEXT] = ctypes.POINTER(ArrowSchema)()


def with_a_short_field(schema: ArrowSchema, array: ArrowArray) -> None:
    array.children[PAIR].contents.children[1].contents.length = ROWS - 1


def within_itself(schema: ArrowSchema, array: ArrowArray) -> None:
    schema.children[PAIR].contents.children[1] = schema.children[PAIR]


def with_a_dictionary(schema: ArrowSchema, array: ArrowArray) -> None:
    array.children[NUMBER].contents.dictionary = array.children[TEXT]


def without_a_dictionary(schema: ArrowSchema, array: ArrowArray) -> None:
    schema.children[NUMBER].contents.dictionary = schema.children[TEXT]


def with_a_broken_release(schema: ArrowSchema, array: ArrowArray) -> None:
    array.release = None


KEPT: list[Any] = []
MOST = 2**63 - 1

# What is wrong, and how the message begins.
LIES_OF_ARRAYS: dict[str, tuple[Lie, str]] = {
    "a batch that was released": (with_a_broken_release, "Arrow data"),
    "a batch of negative length": (of_array(lambda array: setattr(array, "length", -1)), "Arrow data"),
    "a batch of a negative offset": (of_array(lambda array: setattr(array, "offset", -1)), "Arrow data"),
    "a batch longer than its columns": (
        of_array(lambda array: setattr(array, "length", ROWS + 1)),
        "column 'number'",
    ),
    "a batch beyond its columns": (of_array(lambda array: setattr(array, "offset", 1)), "column 'number'"),
    "a batch whose offset overflows": (of_array(lambda array: setattr(array, "offset", MOST)), "Arrow data"),
    "a batch without children": (of_array(lambda array: setattr(array, "n_children", 0)), "Arrow data"),
    "a batch of more children": (of_array(lambda array: setattr(array, "n_children", 5)), "Arrow data"),
    "a batch of negative children": (of_array(lambda array: setattr(array, "n_children", -1)), "Arrow data"),
    "a batch without a list of children": (
        of_array(lambda array: setattr(array, "children", None)),
        "Arrow data",
    ),
    "a batch without buffers": (of_array(lambda array: setattr(array, "n_buffers", 0)), "Arrow data"),
    "a batch without a list of buffers": (
        of_array(lambda array: setattr(array, "buffers", None)),
        "Arrow data",
    ),
    "a child that is not there": (without_child, "Arrow data"),
    "a column that was released": (of_column(TEXT, release=None), "column 'text'"),
    "a column that is too short": (of_column(TEXT, length=ROWS - 1), "column 'text'"),
    "a column of negative length": (of_column(TEXT, length=-1), "column 'text'"),
    "a column of least length": (of_column(TEXT, length=-MOST - 1), "column 'text'"),
    "a column of a negative offset": (of_column(TEXT, offset=-1), "column 'text'"),
    "a column whose offset overflows": (of_column(TEXT, offset=MOST - 2), "column 'text'"),
    "a column of more than memory": (of_column(NUMBER, offset=2**58), "column 'number'"),
    "a column with too few buffers": (of_column(TEXT, n_buffers=2), "column 'text'"),
    "a column with too many buffers": (of_column(NUMBER, n_buffers=3), "column 'number'"),
    "a column with a negative number of buffers": (of_column(TEXT, n_buffers=-1), "column 'text'"),
    "a column without a list of buffers": (of_column(TEXT, buffers=None), "column 'text'"),
    "a column with a child": (of_column(TEXT, n_children=1), "column 'text'"),
    "a null count below -1": (of_column(TEXT, null_count=-2), "column 'text'"),
    "a null count above the length": (of_column(TEXT, null_count=ROWS + 1), "column 'text'"),
    "a null count that is too small": (of_column(TEXT, null_count=0), "column 'text'"),
    "a null count that is too large": (of_column(NUMBER, null_count=2), "column 'number'"),
    "nulls without validity": (without_buffer(NUMBER, 0), "column 'number'"),
    "numbers without values": (without_buffer(NUMBER, 1), "column 'number'"),
    "flags without values": (without_buffer(FLAG, 1), "column 'flag'"),
    "text without offsets": (without_buffer(TEXT, 1), "column 'text'"),
    "text without bytes": (without_buffer(TEXT, 2), "column 'text'"),
    "offsets that go back": (with_offsets(0, 1, 3, 2, 3, 6), "column 'text'"),
    "offsets from below 0": (with_offsets(-1, 1, 3, 3, 3, 6), "column 'text'"),
    "offsets down to the least": (with_offsets(0, 1, 3, 3, 3, -(2**31)), "column 'text'"),
    "offsets from the most down to the least": (
        with_offsets(2**31 - 1, -(2**31), 0, 0, 0, 0),
        "column 'text'",
    ),
    "a struct without its fields": (of_column(PAIR, n_children=1), "column 'pair'"),
    "a struct with a short field": (with_a_short_field, "field 'y' of column 'pair'"),
    "a dictionary that the schema has not": (with_a_dictionary, "column 'number'"),
    "a dictionary that only the schema has": (without_a_dictionary, "column 'number'"),
}
LIES_OF_SCHEMAS: dict[str, tuple[Lie, str]] = {
    "a schema that was released": (lambda schema, array: setattr(schema, "release", None), "Arrow data"),
    "a schema without a format": (lambda schema, array: setattr(schema, "format", None), "Arrow data"),
    "a schema of negative children": (lambda schema, array: setattr(schema, "n_children", -1), "Arrow data"),
    "a schema without a list of children": (
        lambda schema, array: setattr(schema, "children", None),
        "Arrow data",
    ),
    "a field that is not there": (without_field, "column without a schema"),
    "a field that was released": (of_schema(TEXT, release=None), "column 'text'"),
    "a field without a format": (with_format(TEXT, None), "column 'text'"),
    "a field of an empty format": (with_format(TEXT, b""), "column 'text'"),
    "a field of an unknown format": (with_format(TEXT, b"?"), "column 'text'"),
    "a field of a format that is no text": (with_format(TEXT, b"\xff\xfe"), "column 'text'"),
    "a temporal format without a unit": (with_format(NUMBER, b"ts"), "column 'number'"),
    "a temporal format of another unit": (with_format(NUMBER, b"tsx:UTC"), "column 'number'"),
    "a temporal format with more": (with_format(NUMBER, b"tdmm"), "column 'number'"),
    "a width that is no number": (with_format(NUMBER, b"w:x"), "column 'number'"),
    "a width that is negative": (with_format(NUMBER, b"w:-8"), "column 'number'"),
    "a width beyond all numbers": (with_format(NUMBER, b"w:99999999999999999999"), "column 'number'"),
    "a decimal without a scale": (with_format(NUMBER, b"d:38"), "column 'number'"),
    "a decimal of another size": (with_format(NUMBER, b"d:38,2,77"), "column 'number'"),
    "a list without elements": (with_format(TEXT, b"+l"), "column 'text'"),
    "a text with children": (of_schema(TEXT, n_children=2), "column 'text'"),
    "a struct without a list of children": (of_schema(PAIR, children=None), "column 'pair'"),
    "a struct within itself": (within_itself, "field 'x' of ... of column 'pair'"),
    "a name that is not UTF-8": (of_schema(TEXT, name=b"\xff"), "column with a name that is not UTF-8"),
}

ENTRY_POINTS: dict[str, Callable[[Any], Any]] = {
    "RecordBatch": lambda data: RecordBatch(data).num_rows,
    "ColumnArray": lambda data: len(ColumnArray(data)),
    "hash_codes": lambda data: hash_codes(data).tolist(),
    "key_groups": lambda data: key_groups(data, 128).tolist(),
    "KeyDictionary.ids": lambda data: KeyDictionary(BATCH.schema, ["number", "text"]).ids(data).tolist(),
    "KeyDictionary.find": lambda data: KeyDictionary(BATCH.schema, ["number", "text"]).find(data).tolist(),
    "KeyEncoder.encode_batch": lambda data: KeyEncoder(BATCH.schema, ["number", "pair"]).encode_batch(data),
    "Accumulators.update": lambda data: sum_and_last(BATCH.schema, data),
}
SCHEMA_ENTRY_POINTS: dict[str, Callable[[Any], Any]] = {
    "KeyEncoder": lambda data: KeyEncoder(data, ["text"]).encode_batch(BATCH),
    "KeyDictionary": lambda data: KeyDictionary(data, ["text"]).ids(BATCH.slice(0, 2)).tolist(),
    "Accumulators": lambda data: sum_and_last(data, BATCH),
}


def sum_and_last(schema: Any, data: Any) -> list[Any]:
    accumulators = Accumulators(schema, [("sum", "number", None), ("last", "text", None)])
    accumulators.reserve(1)
    accumulators.update(data, ENTRIES)
    accumulators.emit(ENTRIES[:1])
    return [pa.array(column).to_pylist() for column in accumulators.take()]


@pytest.mark.parametrize("entry", [*ENTRY_POINTS, *SCHEMA_ENTRY_POINTS])
def test_who_does_not_lie_is_believed(entry: str) -> None:
    reading = (ENTRY_POINTS | SCHEMA_ENTRY_POINTS)[entry]
    assert reading(Liar(BATCH)) == reading(BATCH if entry in ENTRY_POINTS else BATCH.schema)


@pytest.mark.parametrize("entry", ENTRY_POINTS)
@pytest.mark.parametrize("lie", LIES_OF_ARRAYS)
def test_an_array_that_lies_is_refused_with_its_column(lie: str, entry: str) -> None:
    change, where = LIES_OF_ARRAYS[lie]
    with pytest.raises(DataError, match=f"^{re.escape(where)} from .*Liar is broken: "):
        ENTRY_POINTS[entry](Liar(BATCH, change))


@pytest.mark.parametrize("entry", [*ENTRY_POINTS, *SCHEMA_ENTRY_POINTS])
@pytest.mark.parametrize("lie", LIES_OF_SCHEMAS)
def test_a_schema_that_lies_is_refused_with_its_column(lie: str, entry: str) -> None:
    change, where = LIES_OF_SCHEMAS[lie]
    with pytest.raises(SchemaError, match=f"^{re.escape(where)} from .*Liar has a broken schema: "):
        (ENTRY_POINTS | SCHEMA_ENTRY_POINTS)[entry](Liar(BATCH, change))


@pytest.mark.parametrize("lie", [*LIES_OF_ARRAYS, *LIES_OF_SCHEMAS])
def test_a_snapshot_of_timers_that_lies_is_refused(lie: str) -> None:
    change, _ = (LIES_OF_ARRAYS | LIES_OF_SCHEMAS)[lie]
    with pytest.raises(FlinkcoreError, match="broken"):
        TimerHeap().restore(Liar(BATCH, change))


def test_nulls_may_have_a_validity_as_of_old_arrow_and_polars() -> None:
    nothing = (ctypes.c_void_p * 1)()

    def change(schema: ArrowSchema, array: ArrowArray) -> None:
        array.children[0].contents.n_buffers = 1
        array.children[0].contents.buffers = nothing

    nulls = pa.record_batch({"nothing": pa.nulls(ROWS)})
    assert pa.record_batch(checked_batch(Liar(nulls, change))).equals(nulls)


def test_more_rows_than_a_kernel_can_number_are_refused() -> None:
    def lie(schema: ArrowSchema, array: ArrowArray) -> None:
        array.length = array.children[0].contents.length = 2**32

    with pytest.raises(DataError, match="4,294,967,296 rows at once; give at most 4,294,967,295"):
        RecordBatch(Liar(pa.record_batch({"nothing": pa.nulls(1)}), lie))


@pytest.mark.parametrize("given", [None, (), (1, 2, 3), (1, 2)])
def test_what_is_no_pair_of_capsules_is_refused(given: object) -> None:
    class Giving:
        def __arrow_c_array__(self, requested_schema: object | None = None) -> Any:
            return given

    with pytest.raises(TypeError, match=r"Giving.* (pair of Arrow capsules|capsule was asked for)"):
        RecordBatch(Giving())


SOUND = pa.record_batch(
    {
        "null": pa.nulls(ROWS),
        "list": pa.array([[1], [], None, [2, 3], [4]]),
        "large_list": pa.array([[1], [], None, [2, 3], [4]], pa.large_list(pa.int8())),
        "list_view": pa.array([[1], [], None, [2, 3], [4]], pa.list_view(pa.int8())),
        "fixed_list": pa.array([[1, 2]] * ROWS, pa.list_(pa.int8(), 2)),
        "map": pa.array([[("a", 1)]] * ROWS, pa.map_(pa.string(), pa.int8())),
        "view": pa.array(["a" * 20, "b", None, "", "c"], pa.string_view()),
        "binary_view": pa.array([b"a" * 20, b"b", None, b"", b"c"], pa.binary_view()),
        "dictionary": pa.array(["a", "b", None, "a", "b"]).dictionary_encode(),
        "dense": pa.UnionArray.from_dense(
            pa.array([0, 1, 0, 1, 0], pa.int8()),
            pa.array([0, 0, 1, 1, 2], pa.int32()),
            [pa.array([1, 2, 3]), pa.array(["a", "b"])],
        ),
        "sparse": pa.UnionArray.from_sparse(
            pa.array([0, 1, 0, 1, 0], pa.int8()), [pa.array([1] * ROWS), pa.array(["a"] * ROWS)]
        ),
        "runs": pa.RunEndEncodedArray.from_arrays(pa.array([2, 5], pa.int32()), pa.array(["a", "b"])),
        "decimal": pa.array([1, 2, 3, 4, None], pa.decimal128(38, 2)),
        "large_decimal": pa.array([1, 2, 3, 4, None], pa.decimal256(50, 2)),
        "interval": pa.array([(1, 2, 3)] * ROWS, pa.month_day_nano_interval()),
        "half": pa.array(np.zeros(ROWS, np.float16)),
        "fixed": pa.array([b"ab"] * ROWS, pa.binary(2)),
        "nothing": pa.array([b""] * ROWS, pa.binary(0)),
        "zoned": pa.array([1] * ROWS, pa.timestamp("ns", "Europe/Zurich")),
        "time": pa.array([1] * ROWS, pa.time64("ns")),
        "duration": pa.array([1] * ROWS, pa.duration("us")),
    }
)


@pytest.mark.parametrize("name", SOUND.schema.names)
@pytest.mark.parametrize("rows", [slice(0, ROWS), slice(1, 4), slice(2, 2)])
def test_every_type_of_arrow_is_sound_whole_sliced_and_empty(name: str, rows: slice) -> None:
    taken = SOUND.select([name]).slice(rows.start, rows.stop - rows.start)
    array = checked_batch(taken)
    assert len(array) == taken.num_rows
    assert pa.record_batch(array).equals(taken)
