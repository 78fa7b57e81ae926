"""Key encoding and the key dictionary: types, nulls, slices, offsets and refusals."""

import datetime
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from equipment.arrow_protocol import ProtocolOnly

from flinkcore._native.arrow import RecordBatch
from flinkcore._native.key_dictionary import KeyDictionary
from flinkcore._native.key_groups import key_groups
from flinkcore._native.keys import KeyEncoder
from flinkcore.errors import ConfigurationError, DataError, SchemaError

UNKNOWN = 0xFFFFFFFF
TEXTS = [
    "",
    "a",
    "é",
    "😀",
    "a😀b",
    "\u0000",
    "seven b",
    "eight by",
    "exactly sixteen!",
    "exactly sixteen!!",
    "x" * 5000,
]
NAN = float("nan")


def dictionary_of(batch: pa.RecordBatch, **settings: Any) -> KeyDictionary:
    return KeyDictionary(batch.schema, batch.schema.names, **settings)


def one_column(values: Sequence[Any], arrow_type: pa.DataType) -> pa.RecordBatch:
    return pa.record_batch([pa.array(values, arrow_type)], ["key"])


def keys_of(dictionary: KeyDictionary, start: int = 0, stop: int | None = None) -> pa.RecordBatch:
    batch = pa.record_batch(dictionary.keys(start, stop))
    batch.validate(full=True)
    dictionary._check()
    return batch


ONE_OF_EACH = [
    ([-128, -1, 0, 127], pa.int8()),
    ([0, 128, 255], pa.uint8()),
    ([-32768, -1, 32767], pa.int16()),
    ([0, 32768, 65535], pa.uint16()),
    ([-(2**31), -1, 2**31 - 1], pa.int32()),
    ([0, 2**31, 2**32 - 1], pa.uint32()),
    ([-(2**63), -1, 0, 2**63 - 1], pa.int64()),
    ([0, 2**63, 2**64 - 1], pa.uint64()),
    ([True, False], pa.bool_()),
    ([0.5, -1e300, float("inf")], pa.float64()),
    ([0.5, -2.0, float("-inf")], pa.float32()),
    ([datetime.date(1969, 12, 31), datetime.date(2024, 2, 29)], pa.date32()),
    ([datetime.date(1969, 12, 31), datetime.date(2024, 2, 29)], pa.date64()),
    ([datetime.time(0, 0, 1), datetime.time(23, 59, 59)], pa.time32("s")),
    ([datetime.time(0, 0, 1), datetime.time(23, 59, 59, 999999)], pa.time64("us")),
    ([-1, 0, 1_700_000_000_000], pa.timestamp("ms")),
    ([-1, 0, 1_700_000_000_000_000_000], pa.timestamp("ns", "Asia/Tokyo")),
    ([-1, 0, 5], pa.duration("s")),
    (TEXTS, pa.string()),
    (TEXTS, pa.large_string()),
    ([text.encode() for text in TEXTS] + [b"\xff\xfe"], pa.binary()),
    ([text.encode() for text in TEXTS] + [b"\xff\xfe"], pa.large_binary()),
    ([b"abc", b"\x00\x00\x00", b"\xff\xff\xff"], pa.binary(3)),
    ([Decimal("-1.50"), Decimal("0.00"), Decimal("99999999999999999999.99")], pa.decimal128(30, 2)),
    (
        [{"a": 1, "b": "x"}, {"a": None, "b": "x"}, {"a": 1, "b": None}],
        pa.struct({"a": pa.int16(), "b": pa.string()}),
    ),
]
TYPE_NAMES = [str(arrow_type) for _, arrow_type in ONE_OF_EACH]


@pytest.mark.parametrize(("values", "arrow_type"), ONE_OF_EACH, ids=TYPE_NAMES)
def test_keys_of_every_type_come_back_as_they_were(values: list[Any], arrow_type: pa.DataType) -> None:
    batch = one_column([*values, *reversed(values)], arrow_type)
    dictionary = dictionary_of(batch)
    n = len(values)
    assert dictionary.ids(batch).tolist() == [*range(n), *reversed(range(n))]
    assert keys_of(dictionary).equals(one_column(values, arrow_type))


@pytest.mark.parametrize(("values", "arrow_type"), ONE_OF_EACH, ids=TYPE_NAMES)
def test_fields_of_every_type_come_back_from_a_composite_key(
    values: list[Any], arrow_type: pa.DataType
) -> None:
    cells = [*values, None]
    columns = [pa.array(cells, arrow_type), pa.array(range(len(cells))), pa.array(cells, arrow_type)]
    batch = pa.record_batch(columns, ["a", "n", "b"])
    dictionary = dictionary_of(batch)
    assert dictionary.ids(batch).tolist() == list(range(len(cells)))
    assert dictionary.find(batch).tolist() == list(range(len(cells)))
    assert keys_of(dictionary).equals(batch)


@pytest.mark.parametrize(("values", "arrow_type"), ONE_OF_EACH, ids=TYPE_NAMES)
def test_slices_hold_the_keys_that_they_show(values: list[Any], arrow_type: pa.DataType) -> None:
    column = pa.array([values[0], values[1], *values], arrow_type).slice(1)
    parent = pa.StructArray.from_arrays([column, column], names=["key", "again"]).slice(1)
    dictionary = KeyDictionary(pa.schema([("key", arrow_type)]), ["key"])
    assert dictionary.ids(ProtocolOnly(parent)).tolist() == list(range(len(values)))
    assert keys_of(dictionary).equals(one_column(values, arrow_type))
    both = KeyDictionary(ProtocolOnly(parent), ["again", "key"])
    assert both.ids(ProtocolOnly(parent)).tolist() == list(range(len(values)))
    assert keys_of(both).column("again").equals(column.slice(1))


@pytest.mark.parametrize(("values", "arrow_type"), ONE_OF_EACH, ids=TYPE_NAMES)
def test_key_groups_of_ids_are_those_of_the_keys(values: list[Any], arrow_type: pa.DataType) -> None:
    batch = one_column(values, arrow_type)
    dictionary = dictionary_of(batch, max_parallelism=100)
    first = dictionary.key_group(dictionary.ids(batch.slice(0, 1)))
    ids = dictionary.ids(batch)
    want = key_groups(batch, 100)
    assert first.tolist() == want[:1].tolist()
    assert dictionary.key_group(ids[::-1].copy()).tolist() == want[::-1].tolist()


@pytest.mark.parametrize(("values", "arrow_type"), ONE_OF_EACH, ids=TYPE_NAMES)
def test_empty_batches_have_no_keys(values: list[Any], arrow_type: pa.DataType) -> None:
    empty = one_column([], arrow_type)
    for batch in (empty, pa.record_batch([empty["key"], empty["key"]], ["a", "b"])):
        dictionary = dictionary_of(batch)
        assert dictionary.ids(batch).tolist() == []
        assert dictionary.find(batch).tolist() == []
        assert dictionary.key_group(np.array([], np.uint32)).tolist() == []
        assert keys_of(dictionary).equals(batch)
        assert len(dictionary) == 0


def test_every_nan_is_one_key_and_signed_zeros_are_two() -> None:
    other_nan = np.array([0xFFF8000000000001], np.uint64).view(np.float64)[0]
    for arrow_type in (pa.float64(), pa.float32()):
        values = pa.array(np.array([NAN, 0.0, -0.0, other_nan, 1.0])).cast(arrow_type)
        single = pa.record_batch([values], ["key"])
        several = pa.record_batch([values, pa.array([7] * 5)], ["key", "n"])
        for batch in (single, several):
            dictionary = dictionary_of(batch)
            assert dictionary.ids(batch).tolist() == [0, 1, 2, 0, 3]
            back = keys_of(dictionary)["key"].to_numpy(zero_copy_only=False)
            assert np.isnan(back[0])
            assert np.signbit(back).tolist()[1:] == [False, True, False]


def test_composite_keys_do_not_run_into_each_other() -> None:
    batch = pa.record_batch({"a": ["ab", "a", "", "abc", None, ""], "b": ["c", "bc", "abc", "", "abc", None]})
    dictionary = dictionary_of(batch)
    assert dictionary.ids(batch).tolist() == [0, 1, 2, 3, 4, 5]
    assert keys_of(dictionary).equals(batch)


def test_bytes_below_a_null_do_not_matter() -> None:
    mask = np.array([False, True, True, False])
    numbers = pa.array(np.array([1, 2, 3, 1]), mask=mask)
    validity = pa.py_buffer(np.packbits(~mask, bitorder="little"))
    offsets = pa.py_buffer(np.array([0, 1, 3, 6, 7], np.int32))
    texts = pa.Array.from_buffers(pa.string(), 4, [validity, offsets, pa.py_buffer(b"xabcdex")])
    batch = pa.record_batch([numbers, texts, texts], ["n", "t", "last"])
    dictionary = dictionary_of(batch)
    assert dictionary.ids(batch).tolist() == [0, 1, 1, 0]
    assert keys_of(dictionary).to_pylist() == [
        {"n": 1, "t": "x", "last": "x"},
        {"n": None, "t": None, "last": None},
    ]


def test_a_null_struct_differs_from_a_struct_of_nulls() -> None:
    inner = pa.struct({"t": pa.string(), "u": pa.struct({"n": pa.int32()})})
    rows = [None, {"t": None, "u": None}, {"t": None, "u": {"n": None}}, {"t": "", "u": {"n": 5}}]
    batch = pa.record_batch([pa.array(rows, inner), pa.array([1] * 4)], ["s", "n"])
    dictionary = dictionary_of(batch)
    assert dictionary.ids(batch).tolist() == [0, 1, 2, 3]
    assert keys_of(dictionary)["s"].to_pylist() == rows


def test_more_than_eight_fields_have_flags_of_their_own() -> None:
    columns = [
        pa.array([None if row == column else 1 for row in range(11)], pa.int8()) for column in range(10)
    ]
    batch = pa.record_batch(columns, [f"k{i}" for i in range(10)])
    dictionary = dictionary_of(batch)
    assert dictionary.ids(batch).tolist() == list(range(11))
    assert keys_of(dictionary).equals(batch)


def test_ids_go_on_from_batch_to_batch_and_the_index_grows() -> None:
    dictionary = KeyDictionary(pa.schema([("key", pa.string())]), ["key"])
    for start in range(0, 5000, 500):
        batch = one_column([f"user {i}" for i in range(start, start + 1000)], pa.string())
        assert dictionary.ids(batch).tolist() == list(range(start, start + 1000))
    assert len(dictionary) == 5500
    assert keys_of(dictionary, 5498).to_pydict() == {"key": ["user 5498", "user 5499"]}
    assert keys_of(dictionary, 7, 9).to_pydict() == {"key": ["user 7", "user 8"]}
    assert keys_of(dictionary, 5500).num_rows == 0


def test_find_adds_nothing() -> None:
    batch = one_column([5, 6, 5], pa.int64())
    dictionary = dictionary_of(batch)
    assert dictionary.find(batch).tolist() == [UNKNOWN] * 3
    assert len(dictionary) == 0
    dictionary.ids(batch.slice(1, 1))
    assert dictionary.find(batch).tolist() == [UNKNOWN, 0, UNKNOWN]
    assert len(dictionary) == 1


def test_key_columns_are_found_by_name_in_every_batch() -> None:
    dictionary = KeyDictionary(pa.schema([("x", pa.int64()), ("key", pa.string())]), ["key"])
    assert dictionary.ids(pa.record_batch({"x": [1, 2], "key": ["a", "b"]})).tolist() == [0, 1]
    assert dictionary.ids(pa.record_batch({"key": ["b", "c"], "y": [True, False]})).tolist() == [1, 2]


def test_a_native_batch_and_a_foreign_one_have_the_same_keys() -> None:
    batch = one_column(["a", "b"], pa.string())
    dictionary = KeyDictionary(RecordBatch(batch), ["key"])
    assert dictionary.ids(RecordBatch(batch)).tolist() == [0, 1]
    assert dictionary.ids(ProtocolOnly(batch)).tolist() == [0, 1]


TIMES_OF_NO_DAY = [
    (pa.time32("s"), 0, 86_399, 86_400),
    (pa.time32("ms"), 0, 86_399_999, -1),
    (pa.time64("us"), 0, 86_399_999_999, 86_400_000_000),
    (pa.time64("ns"), 0, 86_399_999_999_999, -(2**63)),
    (pa.date64(), -9_223_372_036_828_800_000, 9_223_372_036_828_800_000, -9_223_372_036_828_800_001),
]


@pytest.mark.parametrize("composite", [False, True])
@pytest.mark.parametrize(("arrow_type", "least", "last", "beyond"), TIMES_OF_NO_DAY)
def test_times_of_no_day_are_refused_as_keys_but_below_a_null(
    arrow_type: pa.DataType, least: int, last: int, beyond: int, composite: bool
) -> None:
    width = arrow_type.bit_width // 8

    def batch_of(*values: int, validity: pa.Buffer | None = None) -> pa.RecordBatch:
        numbers = pa.py_buffer(np.array([0, *values], f"i{width}"))
        key = pa.Array.from_buffers(arrow_type, len(values) + 1, [validity, numbers]).slice(1)
        return pa.record_batch({"user": ["a"] * len(values), "key": key} if composite else {"key": key})

    dictionary = dictionary_of(batch_of(least, last))
    dictionary.ids(batch_of(least, last))
    with pytest.raises(DataError, match=f"key column 'key': {beyond} in row 1 of a batch"):
        dictionary.ids(batch_of(least, beyond))
    assert len(dictionary) == 2
    assert keys_of(dictionary).column("key").view(f"int{8 * width}").to_pylist() == [least, last]
    if composite:
        dictionary.ids(batch_of(least, beyond, validity=pa.py_buffer(bytes([0b011]))))
    else:
        with pytest.raises(DataError, match="row 1: the key is null"):
            dictionary.ids(batch_of(least, beyond, validity=pa.py_buffer(bytes([0b011]))))


def test_a_null_key_of_one_column_is_refused_with_its_row_and_nothing_is_added() -> None:
    batch = one_column([1, 2, None], pa.int64())
    dictionary = dictionary_of(batch)
    with pytest.raises(DataError, match=r"row 2: the key is null; filter"):
        dictionary.ids(batch)
    assert len(dictionary) == 0
    dictionary.ids(one_column([0, 1], pa.int64()))
    assert dictionary.find(batch).tolist() == [1, UNKNOWN, UNKNOWN]
    structs = one_column([{"a": 1}, None], pa.struct({"a": pa.int64()}))
    with pytest.raises(DataError, match="row 1"):
        dictionary_of(structs).ids(structs)


def test_a_key_whose_type_changes_is_a_schema_error() -> None:
    encoder = KeyEncoder(pa.schema([("key", pa.int64())]), ["key"])
    encoder.encode_batch(one_column([1], pa.int64()))
    with pytest.raises(SchemaError, match="key column 'key' was of Arrow format 'l' and is of 'i'"):
        encoder.encode_batch(one_column([1], pa.int32()))
    zoned = KeyEncoder(pa.schema([("key", pa.timestamp("ms", "UTC"))]), ["key"])
    with pytest.raises(SchemaError, match="'tsm:UTC' and is of 'tsm:'"):
        zoned.encode_batch(one_column([1], pa.timestamp("ms")))
    nested = KeyEncoder(pa.schema([("key", pa.struct({"a": pa.int64()}))]), ["key"])
    with pytest.raises(SchemaError, match="key column 'key'"):
        nested.encode_batch(one_column([{"a": "x"}], pa.struct({"a": pa.string()})))
    with pytest.raises(SchemaError, match="key column 'key'"):
        nested.encode_batch(one_column([{"a": 1, "b": 1}], pa.struct({"a": pa.int64(), "b": pa.int64()})))
    nested.encode_batch(one_column([{"a": 1}], pa.struct({"a": pa.int64()})))


def test_a_dictionary_survives_a_batch_that_it_refuses() -> None:
    dictionary = KeyDictionary(pa.schema([("a", pa.int64()), ("b", pa.string())]), ["a", "b"])
    good = pa.record_batch({"a": [1], "b": ["x"]})
    assert dictionary.ids(good).tolist() == [0]
    with pytest.raises(SchemaError):
        dictionary.ids(pa.record_batch({"a": [1], "b": [2]}))
    with pytest.raises(SchemaError, match="no column 'b'"):
        dictionary.ids(pa.record_batch({"a": [1]}))
    assert dictionary.ids(good).tolist() == [0]
    assert keys_of(dictionary).equals(good)


@pytest.mark.parametrize(
    "arrow_type",
    [
        pa.list_(pa.int64()),
        pa.null(),
        pa.string_view(),
        pa.decimal256(50),
        pa.float16(),
        pa.month_day_nano_interval(),
    ],
)
def test_types_that_cannot_be_keys_are_refused_by_name(arrow_type: pa.DataType) -> None:
    with pytest.raises(SchemaError, match=r"key column 'key'.*cannot be a key"):
        KeyEncoder(pa.schema([("key", arrow_type)]), ["key"])
    with pytest.raises(SchemaError, match=r"key column 'key'.*cannot be a key"):
        KeyEncoder(pa.schema([("s", pa.struct({"key": arrow_type}))]), ["s"])


def test_a_dictionary_column_is_refused() -> None:
    with pytest.raises(SchemaError, match="dictionary column cannot be a key"):
        KeyEncoder(pa.schema([("key", pa.dictionary(pa.int32(), pa.string()))]), ["key"])


def test_key_columns_must_exist() -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    with pytest.raises(SchemaError, match="no key column 'c'; the columns are a, b"):
        KeyEncoder(schema, ["a", "c"])
    with pytest.raises(TypeError, match="__arrow_c_schema__"):
        KeyEncoder({"a": 1}, ["a"])  # type: ignore[arg-type]


def test_ids_and_ranges_must_be_the_dictionarys() -> None:
    dictionary = KeyDictionary(pa.schema([("key", pa.int64())]), ["key"])
    dictionary.ids(one_column([1, 2], pa.int64()))
    with pytest.raises(ConfigurationError, match="id 2 is not one of the dictionary's 2 keys"):
        dictionary.key_group(np.array([0, 2], np.uint32))
    for start, stop in ((-1, 1), (1, 0), (0, 3)):
        with pytest.raises(ConfigurationError, match="not within the dictionary's 2 keys"):
            dictionary.keys(start, stop)
    with pytest.raises(ConfigurationError, match="max_parallelism"):
        KeyDictionary(pa.schema([("key", pa.int64())]), ["key"], max_parallelism=0)
