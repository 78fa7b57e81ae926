"""Accumulators: each function on each class of types, on nulls, and on columns that do not fit."""

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from models.native_aggregates import Spec, aggregate, numbers, results

from flinkcore._native.aggregates import Accumulators
from flinkcore.datastream.aggregates import approx_percentile
from flinkcore.errors import ConfigurationError, DataError, SchemaError

DAY = dt.date(2001, 3, 1)
NOON = dt.datetime(2001, 3, 1, 12)
UTC = dt.timezone.utc

# Type and three values that rise.
RISING: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int8": (pa.int8(), [-128, 0, 127]),
    "int16": (pa.int16(), [-(2**15), -1, 2**15 - 1]),
    "int32": (pa.int32(), [-(2**31), 5, 2**31 - 1]),
    "int64": (pa.int64(), [-(2**63), 0, 2**63 - 1]),
    "uint8": (pa.uint8(), [0, 127, 255]),
    "uint16": (pa.uint16(), [0, 2**15, 2**16 - 1]),
    "uint32": (pa.uint32(), [0, 2**31, 2**32 - 1]),
    "uint64": (pa.uint64(), [0, 2**63, 2**64 - 1]),
    "float32": (pa.float32(), [-math.inf, -0.5, 1.5]),
    "float64": (pa.float64(), [-1e308, -5e-324, math.inf]),
    "bool": (pa.bool_(), [False, True, True]),
    "date32": (pa.date32(), [dt.date(1969, 12, 31), DAY, dt.date(2100, 1, 1)]),
    "date64": (pa.date64(), [dt.date(1969, 12, 31), DAY, dt.date(2100, 1, 1)]),
    "time32[s]": (pa.time32("s"), [dt.time(0), dt.time(1), dt.time(23, 59)]),
    "time64[us]": (pa.time64("us"), [dt.time(0), dt.time(0, 0, 0, 1), dt.time(23)]),
    "timestamp[ms]": (pa.timestamp("ms"), [dt.datetime(1950, 1, 1), NOON, dt.datetime(2050, 1, 1)]),
    "timestamp[us, UTC]": (
        pa.timestamp("us", "UTC"),
        [dt.datetime(1950, 1, 1, tzinfo=UTC), NOON.replace(tzinfo=UTC), dt.datetime(2050, 1, 1, tzinfo=UTC)],
    ),
    "duration[s]": (pa.duration("s"), [dt.timedelta(seconds=-9), dt.timedelta(0), dt.timedelta(days=1)]),
    "string": (pa.string(), ["", "a", "a" * 100]),
    "large_string": (pa.large_string(), ["A", "é", "\U0001f600"]),
    "binary": (pa.binary(), [b"\x00", b"\x00\x00", b"\xff"]),
    "large_binary": (pa.large_binary(), [b"", b"a", b"b"]),
    "fixed binary": (pa.binary(2), [b"\x00\x01", b"\x7f\x00", b"\x80\x00"]),
    "decimal": (
        pa.decimal128(38, 3),
        [Decimal("-99999999999999999999.001"), Decimal("-0.001"), Decimal("99999999999999999999.999")],
    ),
}


# Type and three values that have no order.
KEPT: dict[str, tuple[pa.DataType, list[Any]]] = {
    "struct": (
        pa.struct([("a", pa.int64()), ("b", pa.string()), ("c", pa.bool_())]),
        [
            {"a": 1, "b": "x", "c": True},
            {"a": None, "b": None, "c": None},
            {"a": 3, "b": "é" * 30, "c": False},
        ],
    ),
    "struct of fields not null": (
        pa.struct([pa.field("a", pa.int8(), nullable=False)]),
        [{"a": 1}, {"a": 0}, {"a": 3}],
    ),
    "struct without fields": (pa.struct([]), [{}, {}, {}]),
    "list": (pa.list_(pa.int16()), [[1, None, 3], [], [7]]),
    "large list": (pa.large_list(pa.large_string()), [["a", None], [], ["xyz" * 20]]),
    "list of two": (pa.list_(pa.date32(), 2), [[DAY, None], [None, None], [DAY, DAY]]),
    "map": (pa.map_(pa.string(), pa.float64()), [[("a", 1.5), ("b", None)], [], [("z", 0.0)]]),
    "nested": (
        pa.list_(pa.struct([("k", pa.list_(pa.map_(pa.int8(), pa.binary(3)))), ("n", pa.null())])),
        [[{"k": [[(1, b"abc")], None], "n": None}, None], [], [{"k": None, "n": None}]],
    ),
    "decimal256": (pa.decimal256(50, 3), [Decimal("1.000"), Decimal("9" * 40 + ".123"), Decimal("0.000")]),
    "interval": (pa.month_day_nano_interval(), [(1, 2, 3), (0, 0, 0), (4, 5, 6)]),
}


@pytest.mark.parametrize("name", KEPT)
def test_values_of_any_type_are_kept(name: str) -> None:
    kind, (one, other, third) = KEPT[name]
    column = pa.array([other, None, one, third, other, None], kind)
    batch = pa.record_batch({"x": column, "i": pa.array([3, 0, 1, 2, 4, 5])})
    specs: list[Spec] = [(f, "x", None) for f in ("first", "last", "collect", "count")]
    specs += [("min_by", "x", "i"), ("max_by", "x", "i")]
    values = column.to_pylist()
    assert aggregate(batch, *specs) == [values[0], None, values, 4, None, None]
    assert aggregate(batch.slice(2, 3), *specs) == [
        values[2],
        values[4],
        values[2:5],
        3,
        values[2],
        values[4],
    ]
    types = [pa.array(column).type for column in Accumulators(batch.schema, specs).take()]
    assert types == [kind, kind, pa.list_(kind), pa.int64(), kind, kind]


def test_values_that_are_kept_have_the_types_of_the_schema_all_through() -> None:
    schema = pa.schema([("x", pa.list_(pa.struct([("a", pa.int32())])))])
    accumulators = Accumulators(schema, [("first", "x", None)])
    other = pa.record_batch({"x": pa.array([[{"a": 1}]], pa.list_(pa.struct([("a", pa.int64())])))})
    accumulators.reserve(1)
    with pytest.raises(SchemaError, match="column 'x' has another type in a batch than in the schema"):
        accumulators.update(other, numbers([0]))


def column_of(kind: pa.DataType, values: list[Any]) -> pa.RecordBatch:
    return pa.record_batch({"x": pa.array(values, kind)})


# ---- types -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RISING)
def test_every_type_is_compared_counted_and_kept(name: str) -> None:
    kind, (low, middle, high) = RISING[name]
    elements = [middle, None, high, low, middle, None]
    batch = pa.record_batch({"x": pa.array(elements, kind), "i": pa.array([3, 0, 1, 2, 4, 5])})
    functions = ("min", "max", "first", "last", "count", "count_distinct", "collect")
    got = aggregate(
        batch,
        *[(f, "x", None) for f in functions],
        ("min_by", "i", "x"),
        ("max_by", "i", "x"),
        ("max_by", "x", "i"),
        ("min_by", "x", "x"),
    )
    greatest_at = 3 if middle == high else 1
    distinct = len({low, middle, high})
    assert got == [low, high, middle, None, 4, distinct, elements, 2, greatest_at, None, low]


@pytest.mark.parametrize("name", RISING)
def test_results_keep_the_type_of_the_column(name: str) -> None:
    kind, _ = RISING[name]
    functions = ("min", "max", "first", "last", "collect", "count", "count_distinct")
    specs = [*[(f, "x", None) for f in functions], ("min_by", "x", "x")]
    accumulators = Accumulators(pa.schema([("x", kind)]), specs)
    types = [pa.array(column).type for column in accumulators.take()]
    assert types == [kind] * 4 + [pa.list_(kind), pa.int64(), pa.int64(), kind]


@pytest.mark.parametrize(
    ("kind", "values", "total", "mean", "sum_type"),
    [
        (pa.int8(), [127, 127, -1], 253, 253 / 3, pa.int64()),
        (pa.int16(), [2**15 - 1] * 2, 2**16 - 2, 2.0**15 - 1, pa.int64()),
        (pa.int32(), [2**31 - 1] * 2, 2**32 - 2, 2.0**31 - 1, pa.int64()),
        (pa.int64(), [-5, 2], -3, -1.5, pa.int64()),
        (pa.uint8(), [255, 255], 510, 255.0, pa.int64()),
        (pa.uint16(), [2**16 - 1, 0], 2**16 - 1, 32767.5, pa.int64()),
        (pa.uint32(), [2**32 - 1] * 2, 2**33 - 2, 2.0**32 - 1, pa.int64()),
        (pa.uint64(), [2**63, 0], 2**63, 2.0**62, pa.uint64()),
        (pa.float32(), [0.5, 0.25], 0.75, 0.375, pa.float64()),
        (pa.float64(), [1.5, -0.5], 1.0, 0.5, pa.float64()),
        (pa.bool_(), [True, False, True, True], 3, 0.75, pa.int64()),
    ],
)
def test_numbers_and_bools_add_up(
    kind: pa.DataType, values: list[Any], total: Any, mean: float, sum_type: pa.DataType
) -> None:
    batch = column_of(kind, [None, *values, None])
    specs: list[Spec] = [("sum", "x", None), ("mean", "x", None)]
    assert aggregate(batch, *specs) == [total, mean]
    types = [pa.array(column).type for column in Accumulators(batch.schema, specs).take()]
    assert types == [sum_type, pa.float64()]


def test_durations_add_up_to_a_duration() -> None:
    batch = column_of(pa.duration("ms"), [dt.timedelta(hours=1), None, dt.timedelta(milliseconds=-1)])
    assert aggregate(batch, ("sum", "x", None)) == [dt.timedelta(milliseconds=3_599_999)]


@pytest.mark.parametrize(
    ("kind", "values", "any_bits", "all_bits"),
    [
        (pa.int8(), [0b0110, 0b0011], 0b0111, 0b0010),
        (pa.int16(), [-1, 6], -1, 6),
        (pa.uint64(), [2**63 | 1, 2**64 - 2], 2**64 - 1, 2**63),
        (pa.bool_(), [True, False], True, False),
        (pa.int32(), [0], 0, 0),
        (pa.int32(), [], None, None),
    ],
)
def test_bits_that_any_or_all_values_have_skip_nulls(
    kind: pa.DataType, values: list[Any], any_bits: Any, all_bits: Any
) -> None:
    batch = column_of(kind, [None, *values, None])
    specs: list[Spec] = [("bit_or", "x", None), ("bit_and", "x", None)]
    assert aggregate(batch, *specs) == [any_bits, all_bits]
    assert [pa.array(column).type for column in Accumulators(batch.schema, specs).take()] == [kind] * 2


SPREADS = ("stddev", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop")


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int16(), [2, 4, 4, 4, 5, 5, 7, 9]),
        (pa.uint64(), [2**63 + n * 2**57 for n in (2, 4, 4, 4, 5, 5, 7, 9)]),
        (pa.float32(), [-0.5, 0.25, 8.0]),
        (pa.float64(), [1e9 + n / 8 for n in range(100)]),
        (pa.bool_(), [True, False, False]),
        (pa.decimal128(9, 2), [Decimal("1.25"), Decimal("-7.50"), Decimal("0.00")]),
        (pa.decimal128(38, 30), [Decimal("0.5"), Decimal("1.5"), Decimal("2.5")]),
    ],
)
def test_spreads_are_those_of_numpy(kind: pa.DataType, values: list[Any]) -> None:
    found = aggregate(column_of(kind, [None, *values, None]), *[(f, "x", None) for f in SPREADS])
    floats = np.array([float(value) for value in values])
    sample, whole = floats.var(ddof=1), floats.var()
    expected = [np.sqrt(sample)] * 2 + [np.sqrt(whole), sample, sample, whole]
    assert found == pytest.approx(expected, rel=1e-12)


def test_spreads_do_not_lose_their_digits_where_values_are_large() -> None:
    values = [1e9, 1e9 + 1, 1e9 + 2]
    assert aggregate(column_of(pa.float64(), values), ("var_samp", "x", None), ("stddev_pop", "x", None)) == [
        1.0,
        math.sqrt(2 / 3),
    ]


def test_a_sample_of_one_has_no_spread() -> None:
    specs: list[Spec] = [(f, "x", None) for f in SPREADS]
    assert aggregate(column_of(pa.float64(), [3.5, None]), *specs) == [None, None, 0.0, None, None, 0.0]
    assert aggregate(column_of(pa.float64(), [None]), *specs) == [None] * 6


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_spreads_with_a_value_that_is_not_finite_are_nan(value: float) -> None:
    found = aggregate(column_of(pa.float64(), [1.0, value, 2.0]), *[(f, "x", None) for f in SPREADS])
    assert all(map(math.isnan, found))
    (alone,) = aggregate(column_of(pa.float64(), [value]), ("var_pop", "x", None))
    assert math.isnan(alone)


def test_spreads_have_the_same_bits_however_rows_come_in_batches() -> None:
    generator = np.random.default_rng(5)
    column = pa.array(generator.lognormal(3, 2, 5000))
    specs: list[Spec] = [("stddev", "x", None), ("var_pop", "x", None)]
    expected = aggregate(pa.record_batch({"x": column}), *specs)
    for rows in (1, 7, 1023, 1024, 1025):
        accumulators = Accumulators(pa.schema([("x", pa.float64())]), specs)
        accumulators.reserve(1)
        for start in range(0, len(column), rows):
            part = pa.record_batch({"x": column.slice(start, rows)})
            accumulators.update(part, numbers([0] * part.num_rows))
        accumulators.emit_range(0, 1)
        assert [found for (found,) in results(accumulators)] == expected


@pytest.mark.parametrize(
    ("kind", "sum_type", "mean_type"),
    [
        (pa.decimal128(7, 2), pa.decimal128(17, 2), pa.decimal128(11, 6)),
        (pa.decimal128(28, 0), pa.decimal128(38, 0), pa.decimal128(32, 4)),
        (pa.decimal128(36, 10), pa.decimal128(38, 10), pa.decimal128(38, 14)),
        (pa.decimal128(38, 36), pa.decimal128(38, 36), pa.decimal128(38, 38)),
        (pa.decimal128(5, -2), pa.decimal128(15, -2), pa.decimal128(9, 2)),
    ],
)
def test_sums_and_means_of_decimals_have_the_types_of_sparks(
    kind: pa.DataType, sum_type: pa.DataType, mean_type: pa.DataType
) -> None:
    accumulators = Accumulators(pa.schema([("x", kind)]), [("sum", "x", None), ("mean", "x", None)])
    assert [pa.array(column).type for column in accumulators.take()] == [sum_type, mean_type]


def test_sums_of_decimals_are_exact_where_128_bits_overflow_on_the_way() -> None:
    most = Decimal("9" * 36 + ".99")
    least = most.copy_negate()
    values = [most, most, most, Decimal("-0.01"), least, least, None]
    batch = column_of(pa.decimal128(38, 2), values)
    assert aggregate(batch, ("sum", "x", None), ("max", "x", None), ("min", "x", None)) == [
        Decimal("9" * 36 + ".98"),
        most,
        least,
    ]


@pytest.mark.parametrize(
    ("values", "mean"),
    [
        (["0.1", "0.2"], "0.15000"),
        (["0.1", "0.1", "0.0"], "0.06667"),
        (["-0.1", "-0.1", "0.0"], "-0.06667"),
        (["0.1"] + ["0.0"] * 31, "0.00313"),  # 0.003125: half up
        (["-0.1"] + ["0.0"] * 31, "-0.00313"),
        (["0.1"] + ["0.0"] * 32, "0.00303"),
    ],
)
def test_means_of_decimals_are_rounded_half_up(values: list[str], mean: str) -> None:
    batch = column_of(pa.decimal128(5, 1), [Decimal(value) for value in values])
    assert repr(aggregate(batch, ("mean", "x", None))) == repr([Decimal(mean)])


def test_decimals_agree_with_pyarrow() -> None:
    generator = np.random.default_rng(11)
    numbers = [Decimal(int(n)).scaleb(-4) for n in generator.integers(-(10**12), 10**12, 3000)]
    column = pa.array([None if i % 17 == 0 else n for i, n in enumerate(numbers)], pa.decimal128(18, 4))
    found = aggregate(pa.record_batch({"x": column}), *[(f, "x", None) for f in ("sum", "min", "max")])
    assert found == [pc.sum(column).as_py(), pc.min(column).as_py(), pc.max(column).as_py()]


def test_a_decimal_with_too_many_digits_is_an_error_that_names_its_column_and_type() -> None:
    batch = pa.record_batch(
        {
            "price": pa.array([Decimal("9" * 36 + ".00")] * 2, pa.decimal128(38, 2)),
            "rate": pa.array([Decimal("99999.0"), None], pa.decimal128(38, 33)),
        }
    )
    with pytest.raises(
        DataError,
        match=r"sum of column 'price' over .* decimal128\(38, 2\): cast the column to a decimal with",
    ):
        aggregate(batch, ("count", None, None), ("sum", "price", None))
    with pytest.raises(DataError, match=r"mean of column 'rate' over .* decimal128\(38, 37\)"):
        aggregate(batch, ("mean", "rate", None))


def test_sums_of_integers_wrap_around_as_in_java() -> None:
    assert aggregate(column_of(pa.int64(), [2**63 - 1, 1]), ("sum", "x", None)) == [-(2**63)]
    assert aggregate(column_of(pa.int64(), [-(2**63), -1]), ("sum", "x", None)) == [2**63 - 1]
    assert aggregate(column_of(pa.uint64(), [2**64 - 1, 2]), ("sum", "x", None)) == [1]


def test_floats_are_added_in_the_order_of_the_elements() -> None:
    values = [1e16, 1.0, -1e16, 0.1, 0.2, 0.3] * 500
    total = 0.0
    for value in values:
        total += value
    assert total != math.fsum(values)
    expected = [total, total / len(values)]
    assert aggregate(column_of(pa.float64(), values), ("sum", "x", None), ("mean", "x", None)) == expected


def test_a_sum_of_negative_zeros_is_a_negative_zero() -> None:
    (total,) = aggregate(column_of(pa.float64(), [-0.0, -0.0]), ("sum", "x", None))
    assert math.copysign(1, total) == -1
    (total,) = aggregate(column_of(pa.float64(), [-0.0, 0.0]), ("sum", "x", None))
    assert math.copysign(1, total) == 1


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_nan_is_above_all_numbers_and_negative_zero_below_zero(kind: pa.DataType) -> None:
    batch = pa.record_batch(
        {"x": pa.array([0.0, math.inf, -math.nan, -0.0], kind), "i": pa.array([0, 1, 2, 3])}
    )
    low, high, low_at, high_at, distinct = aggregate(
        batch,
        ("min", "x", None),
        ("max", "x", None),
        ("min_by", "i", "x"),
        ("max_by", "i", "x"),
        ("count_distinct", "x", None),
    )
    assert (math.copysign(1, low), low_at, high_at, distinct) == (-1, 3, 2, 4)
    assert math.isnan(high)


def test_all_nans_are_one_distinct_value() -> None:
    bits = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000001], dtype=np.uint64)
    batch = pa.record_batch({"x": pa.array(bits.view(np.float64))})
    assert aggregate(batch, ("count_distinct", "x", None)) == [1]


@pytest.mark.parametrize("name", RISING)
def test_slices_with_offsets_are_read_from_their_own_start(name: str) -> None:
    kind, (low, middle, high) = RISING[name]
    column = pa.array([high, None, high, middle, None, low, high], kind)
    specs: list[Spec] = [(f, "x", None) for f in ("count", "min", "max", "first", "last", "collect")]
    expected = [2, low, middle, middle, low, [middle, None, low]]
    assert aggregate(pa.record_batch({"x": column.slice(3, 3)}), *specs) == expected
    assert aggregate(pa.record_batch({"x": column}).slice(3, 3), *specs) == expected
    assert aggregate(pa.record_batch({"x": column.slice(1, 5)}).slice(2), *specs) == expected


@pytest.mark.parametrize("n", [512, 513, 3000, 50_000, 400_000])
@pytest.mark.parametrize("kind", ["integers", "floats", "text", "decimals"])
def test_sketches_tell_about_how_many_values_there_are(kind: str, n: int) -> None:
    numbers_of = pa.array(range(n))
    columns = {
        "integers": lambda: numbers_of,
        "floats": lambda: pc.divide(numbers_of.cast(pa.float64()), 7.0),
        "text": lambda: pc.binary_join_element_wise("user-", numbers_of.cast(pa.string()), ""),
        "decimals": lambda: numbers_of.cast(pa.decimal128(21, 2)),
    }
    column = pa.concat_arrays([columns[kind](), columns[kind]().slice(0, n // 3)])
    (found,) = aggregate(pa.record_batch({"x": column}), ("approx_count_distinct", "x", None))
    assert abs(found - n) <= (0 if n <= 512 else 4 * 0.01625 * n)  # four standard errors


def test_a_sketch_depends_on_the_set_of_values_alone() -> None:
    schema, generator = pa.schema([("x", pa.int64())]), np.random.default_rng(3)
    values = generator.permutation(np.repeat(np.arange(2000), 2))
    found = set()
    for cuts in ([], [1], [300], [700, 1500], list(range(100, 4000, 100))):
        accumulators = Accumulators(schema, [("approx_count_distinct", "x", None)])
        accumulators.reserve(len(cuts) + 1)
        for entry, part in enumerate(np.split(generator.permutation(values), cuts)):
            accumulators.update(pa.record_batch([part], schema=schema), numbers([entry] * len(part)))
        for entry in range(1, len(cuts) + 1):
            accumulators.merge(0, entry)
            accumulators._check()
        accumulators.emit_range(0, 1)
        found.add(results(accumulators)[0][0])
    assert len(found) == 1


@pytest.mark.parametrize("n", [1, 10, 1024, 1025, 100_000])
@pytest.mark.parametrize("kind", ["normal", "of many sizes", "integers", "decimals"])
def test_percentiles_are_exact_of_few_values_and_else_near(kind: str, n: int) -> None:
    generator = np.random.default_rng(n)
    columns = {
        "normal": lambda: pa.array(generator.normal(0, 5, n)),
        "of many sizes": lambda: pa.array(np.exp(generator.normal(0, 9, n))),
        "integers": lambda: pa.array(generator.integers(-(10**12), 10**12, n)),
        "decimals": lambda: pa.array(generator.integers(0, 10**9, n)).cast(pa.decimal128(19, 0)),
    }
    column = columns[kind]()
    values = np.sort(column.cast(pa.float64()).to_numpy())
    for percentage in (0, 0.01, 0.07, 0.5, 0.999, 1):
        (found,) = aggregate(pa.record_batch({"x": column}), ("approx_percentile", "x", None, percentage))
        expected = values[max(0, math.ceil(Fraction(str(percentage)) * n) - 1)]
        if n <= 1024 or percentage in (0, 1):
            assert found == expected
        assert abs(expected) * (1 - 1 / 256) <= abs(found) <= abs(expected)
        assert found * expected >= 0


def test_short_numbers_are_percentiles_as_they_are_however_many_there_are() -> None:
    values = [*range(-255, 256), *(value / 1000 for value in range(300_000, 310_000)), math.inf, -math.inf]
    batch = pa.record_batch({"x": pa.array(values, pa.float64())})
    for rank in (1, 2, 100, 256, 257, 500, len(values)):
        (found,) = aggregate(batch, ("approx_percentile", "x", None, rank / len(values)))
        assert found == sorted(values)[rank - 1]


def test_a_percentile_counts_nan_as_the_greatest_and_tells_zeros_apart() -> None:
    def of(values: list[float], percentage: float) -> str:
        batch = pa.record_batch({"x": pa.array(values, pa.float64())})
        return repr(aggregate(batch, ("approx_percentile", "x", None, percentage))[0])

    assert of([math.nan, 1.0, -0.0, 0.0], 1) == "nan"
    assert of([math.nan, 1.0, -0.0, 0.0], 0.75) == "1.0"
    assert of([math.nan, 1.0, -0.0, 0.0], 0) == "-0.0"
    assert of([0.0, -0.0], 1) == "0.0"
    many = [value * 1.001 for value in range(1, 9000)]
    assert of([-0.0, *many], 0) == "-0.0"
    assert of([0.0, *many], 0) == "0.0"


def test_a_distribution_depends_on_the_values_alone() -> None:
    schema, generator = pa.schema([("x", pa.float64())]), np.random.default_rng(3)
    values = np.round(np.exp(generator.normal(0, 4, 9000)), 3) * generator.choice([-1, 1], 9000)
    specs = [("approx_percentile", "x", None, percentage / 50) for percentage in range(51)]
    found = set()
    for cuts in ([], [1], [300], [700, 1500], list(range(100, 9000, 100))):
        accumulators = Accumulators(schema, specs)
        accumulators.reserve(len(cuts) + 1)
        for entry, part in enumerate(np.split(generator.permutation(values), cuts)):
            accumulators.update(pa.record_batch([part], schema=schema), numbers([entry] * len(part)))
        for entry in range(1, len(cuts) + 1):
            accumulators.merge(0, entry)
            accumulators._check()
        accumulators.emit_range(0, 1)
        found.add(tuple(column[0] for column in results(accumulators)))
    assert len(found) == 1


@pytest.mark.parametrize("percentage", [np.float32(0.5), Decimal("0.5"), Fraction(1, 2), 1])
def test_a_percentage_may_be_any_real_number(percentage: Any) -> None:
    assert approx_percentile("x", percentage).spec == ("approx_percentile", "x", None, float(percentage))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (("approx_percentile", "x", None, None), "approx_percentile of column 'x' takes a percentage"),
        (("approx_percentile", "x", None, 1.5), "a percentage is from 0 to 1, not 1.5"),
        (("max", "x", None, 0.5), "max of column 'x' takes no percentage"),
    ],
)
def test_only_percentiles_have_a_percentage(spec: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Accumulators(pa.schema([("x", pa.int64())]), [spec])


# ---- nulls -------------------------------------------------------------------------------------------------


def test_only_nulls_give_null_but_counts_and_lists() -> None:
    batch = pa.record_batch(
        {"x": pa.array([None, None], pa.int64()), "s": pa.array([None, None], pa.string())}
    )
    functions = ("sum", "mean", "min", "max", "first", "last", "count", "count_distinct", "collect")
    assert aggregate(batch, *[(f, "x", None) for f in functions]) == [None] * 6 + [0, 0, [None, None]]
    assert aggregate(batch, *[(f, "s", None) for f in functions[2:]]) == [None] * 4 + [0, 0, [None, None]]
    assert aggregate(batch, ("min_by", "s", "x"), ("max_by", "x", "s")) == [None, None]


def test_an_entry_without_rows_gives_null_zero_or_an_empty_list() -> None:
    schema = pa.schema([("x", pa.int64()), ("s", pa.string())])
    functions = ("sum", "mean", "min", "max", "first", "last")
    specs: list[Spec] = [
        *[(f, "x", None) for f in functions],
        *[(f, "s", None) for f in functions[2:]],
        ("count", None, None),
        ("count", "x", None),
        ("count_distinct", "s", None),
        ("collect", "s", None),
    ]
    accumulators = Accumulators(schema, specs)
    accumulators.reserve(3)
    accumulators.update(pa.record_batch([[1, 2], ["a", "b"]], schema=schema), numbers([0, 2]))
    accumulators.emit_range(0, 3)
    assert [column[1] for column in results(accumulators)] == [None] * 10 + [0, 0, 0, []]


def test_nulls_that_come_late_do_not_unset_earlier_sums() -> None:
    schema = pa.schema([("x", pa.int64())])
    accumulators = Accumulators(schema, [("sum", "x", None), ("max", "x", None), ("count", None, None)])
    accumulators.reserve(4)
    accumulators.update(pa.record_batch([[5, 0]], schema=schema), numbers([0, 1]))
    accumulators.update(
        pa.record_batch([pa.array([None, None, 0], pa.int64())], schema=schema), numbers([0, 2, 3])
    )
    accumulators.reserve(6)
    accumulators.update(pa.record_batch([pa.array([None, 7], pa.int64())], schema=schema), numbers([4, 5]))
    accumulators.emit_range(0, 6)
    assert results(accumulators) == [[5, 0, None, 0, None, 7], [5, 0, None, 0, None, 7], [2, 1, 1, 1, 1, 1]]


def test_first_and_last_take_nulls_as_they_are() -> None:
    specs: list[Spec] = [("first", "x", None), ("last", "x", None)]
    assert aggregate(column_of(pa.int32(), [None, 1, None]), *specs) == [None, None]
    assert aggregate(column_of(pa.int32(), [2, None, 3]), *specs) == [2, 3]
    assert aggregate(column_of(pa.string(), [None, "a", None]), *specs) == [None, None]
    assert aggregate(column_of(pa.string(), ["b", None, "c"]), *specs) == ["b", "c"]


def test_among_ties_the_first_row_stays() -> None:
    batch = pa.record_batch({"x": [1, 2, 3, 4], "by": [7, 5, 5, 7], "name": ["b", "a", "a", "b"]})
    assert aggregate(batch, *[(f, "x", by) for by in ("by", "name") for f in ("min_by", "max_by")]) == [
        2,
        1,
        2,
        1,
    ]


def test_the_extreme_of_int64_is_a_value_like_any_other() -> None:
    batch = pa.record_batch({"x": ["first", "second"], "low": [2**63 - 1] * 2, "high": [-(2**63)] * 2})
    specs: list[Spec] = [
        ("min_by", "x", "low"),
        ("max_by", "x", "high"),
        ("min", "low", None),
        ("max", "high", None),
    ]
    assert aggregate(batch, *specs) == ["first", "first", 2**63 - 1, -(2**63)]


def test_min_by_gives_null_where_the_chosen_row_has_none() -> None:
    batch = pa.record_batch(
        {"x": pa.array([1, None, 3]), "by": pa.array([5, 4, None]), "s": ["a", None, "c"]}
    )
    assert aggregate(batch, ("min_by", "x", "by"), ("min_by", "s", "by"), ("max_by", "s", "by")) == [
        None,
        None,
        "a",
    ]


def test_a_column_of_type_null_can_be_counted() -> None:
    batch = column_of(pa.null(), [None, None])
    assert aggregate(batch, ("count", "x", None), ("count_distinct", "x", None), ("count", None, None)) == [
        0,
        0,
        2,
    ]


def test_structs_can_be_counted() -> None:
    batch = column_of(pa.struct([("a", pa.int64())]), [{"a": 1}, None])
    assert aggregate(batch, ("count", "x", None)) == [1]


# ---- bad input ---------------------------------------------------------------------------------------------

SCHEMA = pa.schema(
    [
        ("x", pa.int64()),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("t", pa.timestamp("ms", "UTC")),
        ("u", pa.duration("s")),
        ("w", pa.decimal256(50, 2)),
        ("n", pa.null()),
        ("r", pa.struct([("a", pa.int8())])),
        ("c", pa.dictionary(pa.int8(), pa.string())),
        ("l", pa.list_(pa.int8())),
        ("v", pa.list_view(pa.int8())),
        ("k", pa.list_(pa.dictionary(pa.int8(), pa.string()))),
    ]
)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (("sum", "s", None), "sum: column 's' is a string .* cast it to a number first"),
        (("mean", "s", None), "mean: column 's' is a string"),
        (("sum", "d", None), "sum: column 'd' is a date .* cast it to int64 first, or use min or max"),
        (("sum", "t", None), "sum: column 't' is a timestamp"),
        (("mean", "u", None), "mean: column 'u' is a duration"),
        (("stddev", "s", None), "stddev: column 's' is a string .* cast it to a number first"),
        (("var_pop", "u", None), "var_pop: column 'u' is a duration"),
        (("bit_or", "s", None), "bit_or: column 's' is a string .* cast it to an integer first"),
        (("bit_and", "u", None), "bit_and: column 'u' is a duration .* cast it to an integer first"),
        (("sum", "w", None), "sum: column 'w' is a decimal .*'d:50,2,256'.* cast it to decimal128 first"),
        (("max", "w", None), "max: column 'w' is a decimal .* cast it to decimal128 first"),
        (("max", "n", None), "max: column 'n' is a null .* cast it to the type"),
        (("min", "r", None), "min: column 'r' is a struct .* make plain columns of its parts first"),
        (("count_distinct", "l", None), r"count_distinct: column 'l' is a list \(Arrow format '\+l'\)"),
        (("max_by", "x", "l"), "max_by: column 'l' is a list"),
        (("last", "v", None), r"column 'v': values of Arrow format '\+vl' are not supported here"),
        (("last", "k", None), "column 'k': a dictionary within values is not supported here"),
        (("min_by", "x", "r"), "min_by: column 'r' is a struct"),
        (("count", "c", None), "column 'c' is dictionary-encoded; cast it to the type of its values"),
        (("max", "price", None), "no column 'price'; the columns are x, s, d, t, u, w, n, r, c, l, v, k"),
        (("max_by", "x", "price"), "no column 'price'"),
    ],
)
def test_a_column_that_does_not_fit_is_named(spec: Spec, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        Accumulators(SCHEMA, [("count", None, None), spec])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (("median", "x", None), "no aggregate 'median'; there are count, sum, mean, stddev"),
        (("sum", None, None), "sum needs a column"),
        (("min_by", "x", None), "min_by of column 'x' needs a `by` column"),
        (("min", "x", "s"), "min of column 'x' takes no `by` column"),
    ],
)
def test_an_aggregate_that_does_not_exist_is_named(spec: Spec, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Accumulators(SCHEMA, [spec])


def test_a_batch_of_another_type_is_refused_and_changes_nothing() -> None:
    schema = pa.schema([("t", pa.timestamp("ms")), ("x", pa.int64())])
    accumulators = Accumulators(schema, [("max", "t", None), ("count", None, None), ("last", "x", None)])
    accumulators.reserve(1)
    other = pa.record_batch({"x": [1], "t": pa.array([1], pa.timestamp("us"))})
    with pytest.raises(
        SchemaError, match="column 't' has Arrow format 'tsu:' in a batch, but 'tsm:' in the schema"
    ):
        accumulators.update(other, numbers([0]))
    with pytest.raises(SchemaError, match="no column 't'; the columns are x"):
        accumulators.update(other.select(["x"]), numbers([0]))
    accumulators.emit_range(0, 1)
    assert results(accumulators) == [[None], [0], [None]]


def test_a_schema_without_the_protocol_is_refused() -> None:
    with pytest.raises(TypeError, match="list has no __arrow_c_schema__"):
        Accumulators([("x", "int64")], [("count", None, None)])  # type: ignore[arg-type]
