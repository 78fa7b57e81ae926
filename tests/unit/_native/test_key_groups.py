"""Java hash codes and key groups of Arrow columns. The numbers come from a JDK 17."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from equipment.arrow_protocol import ProtocolOnly
from models.key_groups import bytes_hash, key_group_of_hash, long_hash, row_hash, string_hash

from flinkcore._native.key_groups import (
    assign_key_to_parallel_operator,
    compute_default_max_parallelism,
    compute_key_group_range_for_operator_index,
    compute_operator_index_for_key_group,
    hash_codes,
    key_group,
    key_groups,
)
from flinkcore.errors import ConfigurationError, DataError, SchemaError

TEXTS = [
    "",
    "a",
    "user7",
    "exactly8",
    "seventeen letters",
    "\u0000",
    "\x7f",
    "\u0080",
    "\u07ff",
    "\u0800",
    "\uffff",
    "\U00010000",
    "\U0010ffff",
    "a😀b",
    "twelve chars😀 and then some more",
    "schlüssel",
    "x" * 3000,
    "中文" * 50,
]


def hashes_of(values: Sequence[Any], storage: pa.DataType, arrow_type: pa.DataType) -> list[int]:
    """Hash codes of values that are given as what the type is stored as."""
    return hash_codes(pa.array(values, storage).view(arrow_type)).tolist()


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_small_integers_hash_to_themselves(bits: int) -> None:
    values = [-(2 ** (bits - 1)), -1, 0, 1, 2 ** (bits - 1) - 1]
    assert hash_codes(pa.array(values, f"int{bits}")).tolist() == values


def test_longs_fold_their_halves() -> None:
    values = [0, -1, 2**31, 2**32, -(2**63), 2**63 - 1, -7]
    assert hash_codes(pa.array(values, pa.int64())).tolist() == [0, 0, -(2**31), 1, -(2**31), -(2**31), 6]


def test_unsigned_integers_hash_as_the_next_wider_java_type() -> None:
    assert hash_codes(pa.array([200], pa.uint8())).tolist() == [200]
    assert hash_codes(pa.array([65535], pa.uint16())).tolist() == [65535]
    assert hash_codes(pa.array([7, 2**32 - 1], pa.uint32())).tolist() == [7, long_hash(2**32 - 1)] == [7, -1]


def test_uint64_hashes_as_the_long_of_the_same_bits() -> None:
    assert hash_codes(pa.array([5, 2**64 - 1], pa.uint64())).tolist() == [5, long_hash(-1)]


def test_booleans_hash_as_in_java() -> None:
    assert hash_codes(pa.array([True, False, None, True])).tolist() == [1231, 1237, 0, 1231]


def test_every_nan_hashes_alike_and_signed_zeros_differ() -> None:
    doubles = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000001], np.uint64).view(
        np.float64
    )
    floats = np.array([0x7FC00000, 0xFFC00001, 0x7F800001], np.uint32).view(np.float32)
    assert hash_codes(pa.array(doubles)).tolist() == [0x7FF80000] * 3
    assert hash_codes(pa.array(floats)).tolist() == [0x7FC00000] * 3
    assert hash_codes(pa.array([0.0, -0.0])).tolist() == [0, -(2**31)]
    assert hash_codes(pa.array([0.0, -0.0], pa.float32())).tolist() == [0, -(2**31)]
    assert hash_codes(pa.array([float("inf")])).tolist() == [0x7FF00000]


@pytest.mark.parametrize("arrow_type", [pa.string(), pa.large_string()])
def test_strings_hash_over_utf16_units(arrow_type: pa.DataType) -> None:
    assert hash_codes(pa.array(TEXTS, arrow_type)).tolist() == [string_hash(text) for text in TEXTS]


def test_a_string_does_not_depend_on_its_neighbours() -> None:
    for start in range(len(TEXTS)):
        for stop in range(start, min(start + 4, len(TEXTS) + 1)):
            found = hash_codes(pa.array(TEXTS).slice(start, stop - start)).tolist()
            assert found == [string_hash(text) for text in TEXTS[start:stop]]


def test_bytes_that_are_no_utf8_are_never_read_beyond_their_end() -> None:
    for broken in (b"\xc3", b"\xe4\xb8", b"\xf0\x9f\x98", b"\x80", b"ok\xf0", b"eightletters\xff"):
        offsets = pa.py_buffer(np.array([0, len(broken)], np.int32))
        found = set()
        for beyond in (b"", b"\x80\x80\x80", b"\xbf\xbf\xbf", b"abc"):
            text = pa.py_buffer(broken + beyond)
            found.add(hash_codes(pa.Array.from_buffers(pa.string(), 1, [None, offsets, text])).item())
        assert len(found) == 1


@pytest.mark.parametrize("arrow_type", [pa.binary(), pa.large_binary()])
def test_binary_hashes_signed_bytes(arrow_type: pa.DataType) -> None:
    values = [b"", b"\xff\x00\x7f\x80\x05\x06\x07\x08\x09\xf6\x0b", b"\x80", bytes(range(256))]
    found = hash_codes(pa.array(values, arrow_type)).tolist()
    assert found == [bytes_hash(value) for value in values]
    assert found[:2] == [1, 592197817]


def test_fixed_size_binary_hashes_as_binary() -> None:
    values = [b"\xff\x00\x7f", b"abc", b"\x80\x80\x80"]
    assert hash_codes(pa.array(values, pa.binary(3))).tolist() == [bytes_hash(value) for value in values]


def test_dates_hash_as_local_dates() -> None:
    days = [0, -1, -719468, -719469, 719162, -(2**31), 2**31 - 1, -141428, 59, 60, 11016, -1000000]
    codes = [
        4034625,
        4033311,
        193,
        157,
        8065089,
        -853153385,
        -844178997,
        3240590,
        4034753,
        4034754,
        4096157,
        1570948,
    ]
    assert hashes_of(days, pa.int32(), pa.date32()) == codes
    assert hashes_of([day * 86400000 + 86399999 for day in days], pa.int64(), pa.date64()) == codes
    assert hashes_of([106751991167 * 86400000], pa.int64(), pa.date64()) == [1341997585]


def test_timestamps_hash_as_instants() -> None:
    assert hashes_of([-1, -(2**63)], pa.int64(), pa.timestamp("ms")) == [-590607552, -311842964]
    assert hashes_of([-1], pa.int64(), pa.timestamp("ns", "UTC")) == [-539607603]
    for unit, factor in {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}.items():
        seconds = [-5_000_000_000, -1, 0, 1_700_000_000]
        found = hashes_of(
            [second * factor for second in seconds], pa.int64(), pa.timestamp(unit, "Asia/Tokyo")
        )
        assert found == [long_hash(second) for second in seconds]


def test_durations_hash_as_in_java() -> None:
    assert hashes_of([-1], pa.int64(), pa.duration("ns")) == [-539607603]
    assert hashes_of([-1500], pa.int64(), pa.duration("ms")) == [-269803775]
    assert hashes_of([-(2**63)], pa.int64(), pa.duration("s")) == [-(2**31)]


def test_times_hash_as_local_times() -> None:
    assert hashes_of([43201], pa.int32(), pa.time32("s")) == [-2076021430]
    assert hashes_of([43201000], pa.int32(), pa.time32("ms")) == [-2076021430]
    assert hashes_of([43201000000], pa.int64(), pa.time64("us")) == [-2076021430]
    assert hashes_of([86398999999999], pa.int64(), pa.time64("ns")) == [1437891435]


def test_decimals_hash_as_big_decimals_of_the_columns_scale() -> None:
    assert hash_codes(pa.array([Decimal("-" + "9" * 38)], pa.decimal128(38, 0))).tolist() == [427198386]
    assert hash_codes(pa.array([Decimal(-(2**63)).scaleb(-3)], pa.decimal128(30, 3))).tolist() == [
        -2147483645
    ]
    assert hash_codes(pa.array([Decimal("-1234500")], pa.decimal128(30, -2))).tolist() == [-382697]


def test_null_hashes_to_zero_in_every_type() -> None:
    for arrow_type in (
        pa.int8(),
        pa.int64(),
        pa.bool_(),
        pa.string(),
        pa.float64(),
        pa.decimal128(5, 1),
        pa.null(),
    ):
        assert hash_codes(pa.array([None, None], arrow_type)).tolist() == [0, 0]


def test_several_columns_hash_as_a_row() -> None:
    batch = pa.record_batch({"a": pa.array([1, None], pa.int64()), "b": ["x", None]})
    assert hash_codes(batch).tolist() == [row_hash([1, string_hash("x")]), row_hash([None, None])]


def test_one_column_of_a_batch_is_its_own_key() -> None:
    assert hash_codes(pa.record_batch({"a": ["x", None]})).tolist() == [120, 0]


def test_a_struct_column_is_a_row_even_of_one_field() -> None:
    one = pa.array([{"a": 5}, None], pa.struct({"a": pa.int64()}))
    assert hash_codes(pa.record_batch({"key": one})).tolist() == [row_hash([5]), 0]
    assert hash_codes(pa.record_batch({"key": one, "b": [1, 2]})).tolist() == [
        row_hash([row_hash([5]), 1]),
        row_hash([None, 2]),
    ]


def test_an_untyped_column_of_nulls_is_null_in_a_row() -> None:
    assert hash_codes(pa.record_batch({"a": [1], "b": pa.nulls(1)})).tolist() == [row_hash([1, None])]


@pytest.mark.parametrize("n", [0, 1, 7, 1023, 1024, 1025, 5000])
def test_blocks_of_rows_join_without_a_seam(n: int) -> None:
    numbers = pa.array([None if i % 5 == 3 else i * i - 1000 for i in range(n)], pa.int64())
    texts = pa.array([None if i % 7 == 2 else f"key {i}" for i in range(n)], pa.string())
    flags = pa.array([None if i % 3 == 2 else i % 2 == 0 for i in range(n)], pa.bool_())
    batch = pa.record_batch([numbers, texts, flags], ["n", "t", "f"])
    want = [
        row_hash(
            [
                None if number is None else long_hash(number),
                None if text is None else string_hash(text),
                None if flag is None else 1231 if flag else 1237,
            ]
        )
        for number, text, flag in zip(numbers.to_pylist(), texts.to_pylist(), flags.to_pylist(), strict=True)
    ]
    assert hash_codes(batch).tolist() == want
    groups = [key_group_of_hash(code, 1000) for code in want]
    assert key_groups(batch, 1000).tolist() == groups
    assert key_groups(batch.slice(n // 3), 1000).tolist() == groups[n // 3 :]


def test_slices_of_parents_and_children_add_up() -> None:
    flags = pa.array([True, None, False, True, True, None, False, False, True]).slice(1)
    texts = pa.array(["q", "a", None, "b", "c", "é", "d", "e", "f"]).slice(1)
    whole = pa.StructArray.from_arrays([flags, texts], names=["f", "t"])
    want = [
        row_hash(
            [
                None if row["f"] is None else 1231 if row["f"] else 1237,
                None if row["t"] is None else string_hash(row["t"]),
            ]
        )
        for row in whole.to_pylist()
    ]
    assert hash_codes(ProtocolOnly(whole.slice(3, 4))).tolist() == want[3:7]


@pytest.mark.parametrize("max_parallelism", [1, 2, 3, 127, 128, 1000, 32767, 32768, 32769, 2**31 - 1])
def test_key_groups_are_remainders_of_murmur(max_parallelism: int) -> None:
    codes = [*range(-3000, 3000), 2**31 - 1, -(2**31), *range(10**9, 10**9 + 1000)]
    found = key_groups(pa.array(codes, pa.int32()), max_parallelism)
    assert found.dtype == np.int32
    assert found.tolist() == [key_group_of_hash(code, max_parallelism) for code in codes]


def test_operators_split_the_key_groups() -> None:
    keys = pa.array(range(1000))
    operators = assign_key_to_parallel_operator(keys, 128, 3)
    for group, operator in zip(key_groups(keys, 128).tolist(), operators.tolist(), strict=True):
        first, last = compute_key_group_range_for_operator_index(128, 3, operator)
        assert first <= group <= last
        assert compute_operator_index_for_key_group(128, 3, group) == operator


@pytest.mark.parametrize(
    ("max_parallelism", "parallelism"), [(1, 1), (128, 3), (128, 128), (7, 5), (32768, 300)]
)
def test_ranges_cover_every_key_group_once(max_parallelism: int, parallelism: int) -> None:
    covered: list[int] = []
    for index in range(parallelism):
        first, last = compute_key_group_range_for_operator_index(max_parallelism, parallelism, index)
        covered += range(first, last + 1)
    assert covered == list(range(max_parallelism))


def test_default_max_parallelism_is_a_power_of_two_within_bounds() -> None:
    assert [compute_default_max_parallelism(p) for p in (1, 85, 86, 171, 172, 32768)] == [
        128,
        128,
        256,
        256,
        512,
        32768,
    ]


def test_a_null_key_is_refused_with_its_row() -> None:
    with pytest.raises(DataError, match=r"row 2: the key is null"):
        key_groups(pa.array(["a", "b", None]), 128)
    with pytest.raises(DataError, match=r"row 1"):
        key_groups(pa.record_batch({"a": [1, None]}), 128)
    with pytest.raises(DataError, match=r"row 0"):
        key_groups(pa.nulls(3), 128)


def test_a_null_inside_a_composite_key_is_allowed() -> None:
    batch = pa.record_batch({"a": pa.array([None], pa.int64()), "b": ["x"]})
    assert key_groups(batch, 128).tolist() == [key_group_of_hash(row_hash([None, 120]), 128)]


@pytest.mark.parametrize("max_parallelism", [0, -1, 2**31])
def test_a_maximum_parallelism_without_key_groups_is_refused(max_parallelism: int) -> None:
    with pytest.raises(ConfigurationError, match="max_parallelism must be between 1 and"):
        key_groups(pa.array([1]), max_parallelism)
    with pytest.raises(ConfigurationError, match="max_parallelism"):
        compute_operator_index_for_key_group(max_parallelism, 1, 0)


def test_ranges_check_their_arguments_as_flink_does() -> None:
    for max_parallelism, parallelism in ((128, 0), (0, 1), (32769, 1), (32768, 32769)):
        with pytest.raises(ConfigurationError, match="parallelism must be between 1 and 32,768"):
            compute_key_group_range_for_operator_index(max_parallelism, parallelism, 0)
    with pytest.raises(ConfigurationError, match="must not be smaller"):
        compute_key_group_range_for_operator_index(2, 3, 0)
    with pytest.raises(ConfigurationError, match=r"operator index 3 is not in 0\.\.2"):
        compute_key_group_range_for_operator_index(128, 3, 3)
    with pytest.raises(ConfigurationError, match="parallelism must be between"):
        compute_default_max_parallelism(0)


def test_unsupported_columns_are_schema_errors() -> None:
    with pytest.raises(SchemaError, match="not supported"):
        hash_codes(pa.array([[1]]))
    with pytest.raises(SchemaError, match="dictionary"):
        hash_codes(pa.array(["a"]).dictionary_encode())
    with pytest.raises(SchemaError, match="null rows"):
        hash_codes(pa.array([None], pa.struct({"a": pa.int64()})))
    with pytest.raises(TypeError, match="__arrow_c_array__"):
        hash_codes([1, 2])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("key", "arrow_type"),
    [
        (0, pa.int64()),
        (-(2**63), pa.int64()),
        (True, pa.bool_()),
        (-0.0, pa.float64()),
        (float("inf"), pa.float64()),
        ("", pa.string()),
        ("a\N{GREEK SMALL LETTER ALPHA}\N{GRINNING FACE} and more", pa.string()),
        (b"\x00\xff", pa.binary()),
    ],
)
def test_a_single_value_has_the_key_group_of_a_column_of_it(key: object, arrow_type: pa.DataType) -> None:
    for max_parallelism in (1, 128, 32768):
        assert key_group(key, max_parallelism) == key_groups(pa.array([key], arrow_type), max_parallelism)[0]


@pytest.mark.parametrize("key", [None, 2**63, (1,), object()])
def test_a_single_value_that_needs_a_column_has_no_key_group_of_its_own(key: object) -> None:
    assert key_group(key, 128) is None


def test_a_single_value_that_java_could_not_hash_is_an_error() -> None:
    with pytest.raises(UnicodeEncodeError):
        key_group("\ud800", 128)
    with pytest.raises(ConfigurationError, match="max_parallelism must be between 1"):
        key_group("a", 0)


def test_null_is_a_key_of_one_group_whatever_lies_under_it() -> None:
    hidden = pc.if_else(pa.array([True, False, True]), None, pa.array(["a", "b", "c"]))
    assert key_groups(hidden, 128, null_keys=True).tolist() == [
        key_groups(pa.array([0], pa.int32()), 128)[0],
        key_groups(pa.array(["b"]), 128)[0],
        key_groups(pa.array([0], pa.int32()), 128)[0],
    ]
