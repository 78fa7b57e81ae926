"""Batches with their times: conversions, splits and positions, bad rows."""

import datetime
import math
import pickle
import re
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from equipment.event_logs import event_log
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore._internal.arrow.column_ops import Filter, WithColumns
from flinkcore._native.event_log import split_positions
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.split_origin import FILE
from flinkcore.errors import ConfigurationError, DataError, SchemaError
from flinkcore.log.event_reader import EventReader
from flinkcore.log.split_rows import SplitCounter
from flinkcore.time_plane.time_warnings import ReadTimes, check_units


def read(log, before=(), columns=None, target=1, batch_rows=1 << 17):
    reader = pickle.loads(pickle.dumps(EventReader(log, before, columns, batch_rows=batch_rows)))
    timed = [batch for chunk in log.chunks(target) for batch in reader.read(chunk)]
    for batch in timed:
        assert batch.batch.schema == reader.schema
        assert batch.rows_read == batch.batch.num_rows + batch.filtered + batch.rejected.total
        assert (
            len(batch.timestamp_ms) == len(batch.split_codes) == len(batch.positions) == batch.batch.num_rows
        )
        assert (batch.timestamp_ms.dtype, batch.split_codes.dtype) == (np.int64, np.int32)
        assert (batch.positions.dtype, batch.split_rows.dtype) == (np.int64, np.int64)
        if batch.rejected.rows is not None:
            assert batch.rejected.rows.schema == reader.rejected_schema
    return timed


def times_of(column, **given):
    (timed,) = read(event_log(pa.table({"ts": column}), timestamp="ts", **given))
    return timed.timestamp_ms.tolist()


# ---- milliseconds


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([-1, 0, 2**62], pa.int64()), [-1, 0, 2**62]),
        (pa.array([-5, 5], pa.int16()), [-5, 5]),
        (pa.array([0, 2**32 - 1], pa.uint32()), [0, 2**32 - 1]),
        (pa.array([0, 2**63 - 1], pa.uint64()), [0, 2**63 - 1]),
        (pa.array([-1, 0, 7], pa.timestamp("ms")), [-1, 0, 7]),
        (pa.array([-2, 0, 7], pa.timestamp("s")), [-2000, 0, 7000]),
        (pa.array([-1001, -1000, -1, 0, 999, 1000], pa.timestamp("us")), [-2, -1, -1, 0, 0, 1]),
        (pa.array([-1_000_001, -1_000_000, -1, 999_999, 1_000_000], pa.timestamp("ns")), [-2, -1, -1, 0, 1]),
        (pa.array([-1, 0, 19], pa.date32()), [-86_400_000, 0, 19 * 86_400_000]),
        (pa.array([-86_400_000, 86_400_000], pa.date64()), [-86_400_000, 86_400_000]),
        (pa.array([1500], pa.timestamp("ms", "Asia/Tokyo")), [1500]),
        (pa.array(["1970-01-01T00:00:01.500Z", "1970-01-01T01:00:00+01:00"]), [1500, 0]),
        (pa.array(["1970-01-01T00:00:01.500", "1969-12-31 23:59:59.9995"]), [1500, -1]),
        (pa.array(["1970-01-01T00:00:01.123456789Z"]), [1123]),
        (pa.array(["1970-01-02", "1970-01-01T00:00:00.001Z"]), [86_400_000, 1]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_every_time_type_becomes_milliseconds_floored(column, expected):
    assert times_of(column) == expected
    padded = pa.concat_arrays([column[:1], column])
    assert times_of(padded[1:]) == expected


def test_integer_and_millisecond_columns_are_not_copied():
    for arrow_type in (pa.int64(), pa.timestamp("ms")):
        column = pa.array([1, 2, 3], arrow_type)
        (timed,) = read(event_log(pa.table({"ts": column}), timestamp="ts"))
        assert timed.timestamp_ms.__array_interface__["data"][0] == column.buffers()[1].address


@pytest.mark.parametrize(
    ("column", "value"),
    [
        (pa.array([0, 2**62, None], pa.timestamp("s")), 2**62),
        (pa.array([0, -(2**62)], pa.timestamp("s")), -(2**62)),
        (pa.array([0, 2**63], pa.uint64()), 2**63),
    ],
    ids=["seconds", "negative seconds", "uint64"],
)
def test_an_instant_beyond_64_bits_is_an_error_that_names_the_row(column, value):
    with pytest.raises(
        DataError, match=rf"row 1 \(from 0\) of the table: time column 'ts' holds {value} .*64 bits"
    ):
        times_of(column)


def test_text_that_is_no_time_is_an_error_that_names_the_row():
    with pytest.raises(
        DataError, match=r"row 2 \(from 0\) of the table: time column 'ts' holds 'soon'.*ISO 8601.*on_bad_row"
    ):
        times_of(pa.array(["2001-01-01", "2001-01-02T12:00", "soon"]))


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("9999-12-31T23:59:59.999999999", 253_402_300_799_999),
        ("2500-01-01T00:00:00.123456789Z", 16_725_225_600_123),
        ("1500-01-01T01:00:00.999999999+01:00", -14_831_769_599_001),
        ("2001-01-01T00:00:00.12345678901", 978_307_200_123),
    ],
)
def test_digits_below_nanoseconds_or_in_years_that_have_none_do_not_make_a_text_no_time(text, expected_ms):
    assert times_of(pa.array([text])) == [expected_ms]
    assert times_of(pa.array(["2001-01-01", text, "2001-01-01T00:00:00.123456789Z"])) == [
        978_307_200_000,
        expected_ms,
        978_307_200_123,
    ]


UNREADABLE = pa.table(
    {
        "ts": ["1970-01-01T00:00:01.5Z", "soon", None, "1970-02-30", "1970-01-01 00:00:02", "", "2500-01-01"],
        "n": range(7),
    }
)


def test_text_that_is_no_time_can_be_dropped_or_collected():
    (timed,) = read(event_log(UNREADABLE, timestamp="ts", on_bad_row="drop"), columns=["n"])
    assert timed.timestamp_ms.tolist() == [1500, 2000, 16_725_225_600_000]
    assert timed.batch.column("n").to_pylist() == [0, 4, 6]
    assert timed.rejected.counts == {"unreadable timestamp": 3, "null timestamp": 1}
    bad = OutputTag("bad")
    (timed,) = read(event_log(UNREADABLE, timestamp="ts", on_bad_row=bad))
    assert timed.rejected.rows.column("ts").to_pylist() == ["soon", None, "1970-02-30", ""]
    assert timed.rejected.rows.column("reason").to_pylist()[0] == "unreadable timestamp"


def test_instants_beyond_64_bits_and_arrivals_that_are_no_times_can_be_dropped():
    table = pa.table({"ts": pa.array([0, 2**62, 7], pa.timestamp("s")), "arrival": ["1970-01-01", "", "x"]})
    (timed,) = read(event_log(table, timestamp="ts", arrival="arrival", on_bad_row="drop"))
    assert timed.rejected.counts == {"unreadable timestamp": 1, "unreadable arrival": 1}
    assert timed.timestamp_ms.tolist() == [0]


@pytest.mark.parametrize(
    ("column", "advice"),
    [
        (
            pa.array([1.5]),
            "is double.*give (timestamp|arrival)_unit='s' if its numbers are seconds",
        ),
        (pa.array([1], pa.decimal128(5, 2)), "is decimal.*(timestamp|arrival)_unit='s'"),
        (pa.array([True]), "is bool.*convert it to a timestamp"),
        (pa.array([1], pa.duration("s")), "is duration"),
        (pa.nulls(1), "is null.*only nulls"),
    ],
    ids=["float", "decimal", "bool", "duration", "null"],
)
def test_a_time_column_of_another_type_is_an_error_with_advice(column, advice):
    table = pa.table({"ts": column, "good": [1]})
    with pytest.raises(SchemaError, match=f"time column 'ts' {advice}"):
        EventReader(event_log(table, timestamp="ts"))
    with pytest.raises(SchemaError, match=f"time column 'ts' {advice}"):
        EventReader(event_log(table, timestamp="good", arrival="ts"))


def test_a_missing_timestamp_column_is_an_error_that_lists_the_columns():
    with pytest.raises(SchemaError, match="timestamp= names column 'ts', which the log does not have: a, b"):
        EventReader(event_log(pa.table({"a": [1], "b": [2]}), timestamp="ts"))


@pytest.mark.parametrize(
    ("values", "unit"),
    [
        ([978_307_200, 1_700_000_000], "s"),
        ([978_307_200_000, 1_700_000_000_000], None),
        ([978_307_200_000_000, 1_700_000_000_000_000], "us"),
        ([978_307_200_000_000_000, 1_700_000_000_000_000_000], "ns"),
        ([0, 1_700_000_000], None),
        ([-5, 20], None),
        ([978_307_200, 1_700_000_000_000], None),
    ],
)
def test_integers_that_look_like_another_unit_are_an_error(values, unit):
    times = ReadTimes("timestamp", pa.int64(), "ts", False, None, min(values), max(values))
    assert times.looks_like() == unit
    check_units([replace(times, kind=pa.timestamp("ms")), replace(times, unit="ms")])
    if unit is None:
        check_units([times])
        return
    with pytest.raises(
        ConfigurationError, match=rf"look like .*\. Give .*timestamp_unit='{unit}', or .*'ms'"
    ):
        check_units([times])
    with pytest.raises(ConfigurationError, match=rf"arrival_unit='{unit}'"):
        check_units([times, replace(times, setting="arrival")])


UNITS = ["s", "ms", "us", "ns"]
PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


@pytest.mark.parametrize("unit", UNITS)
@settings(deadline=None)
@given(data=st.data())
def test_numbers_of_a_unit_become_milliseconds_floored(unit, data):
    whole = [-1, 0, 1, 999, 1000, -(10**6), 10**6 + 1, 1_001_894_400 * PER_SECOND[unit]]
    whole += data.draw(
        st.lists(st.integers(-(2**53), 2**53).map(lambda n: n // PER_SECOND["ns"]), max_size=5)
    )
    expected = [number * 1000 // PER_SECOND[unit] for number in whole]
    for column in (
        pa.array(whole),
        pa.array(whole, pa.decimal128(38, 9)),
        pa.array(list(map(str, whole))),
    ):
        assert times_of(column, timestamp_unit=unit) == expected
    fractions = data.draw(
        st.lists(st.decimals(-(10**12), 10**12, places=9, allow_nan=False), min_size=1, max_size=5)
    )
    expected = [math.floor(Fraction(number) * 1000 / PER_SECOND[unit]) for number in fractions]
    assert times_of(pa.array(fractions, pa.decimal128(38, 9)), timestamp_unit=unit) == expected
    assert times_of(pa.array([f"{number:f}" for number in fractions]), timestamp_unit=unit) == expected


@pytest.mark.parametrize(
    ("values", "unit", "expected"),
    [
        ([1_001_894_400.123, 0.5, -0.0005], "s", [1_001_894_400_123, 500, -1]),
        ([1_001_894_400_123.9996, 1_001_894_400_123.4], "ms", [1_001_894_400_124, 1_001_894_400_123]),
        ([1.001894400123e15, 1500.4], "us", [1_001_894_400_123, 1]),
        ([1_001_894_400_123e6], "ns", [1_001_894_400_123]),
    ],
)
def test_floats_are_rounded_to_microseconds_before_they_are_floored(values, unit, expected):
    assert times_of(pa.array(values), timestamp_unit=unit) == expected
    assert times_of(pa.array([0, *values]).slice(1), timestamp_unit=unit) == expected


@pytest.mark.parametrize(
    ("column", "unit", "expected"),
    [
        (pa.array([1.5, math.nan, math.inf, 1e300, None]), "s", [1500]),
        (pa.array([1, 2**62, None]), "s", [1000]),
        (pa.array([1, 2**64 - 1], pa.uint64()), "us", [0]),
        (pa.array(["1.5", "2001-01-01", "x", "", "9" * 40, "1e99", None, " 2"]), "s", [1500]),
        (pa.array([Decimal(1), Decimal(10**30), None]), "s", [1000]),
    ],
    ids=["floats", "integers", "uint64", "text", "decimals"],
)
def test_what_is_no_number_of_a_unit_within_64_bits_is_a_bad_row(column, unit, expected):
    log = event_log(pa.table({"ts": column}), timestamp="ts", timestamp_unit=unit, on_bad_row="drop")
    (timed,) = read(log)
    assert timed.timestamp_ms.tolist() == expected
    assert set(timed.rejected.counts) <= {"unreadable timestamp", "null timestamp"}
    with pytest.raises(DataError, match="time column 'ts' holds"):
        times_of(column, timestamp_unit=unit)


def test_text_in_a_unit_that_is_iso_8601_is_told_to_need_none():
    with pytest.raises(
        DataError, match=r"'2001-01-01', which is not a number of seconds .*leave timestamp_unit out"
    ):
        times_of(pa.array(["1001894400", "2001-01-01"]), timestamp_unit="s")


@pytest.mark.parametrize(
    ("digits", "unit"),
    [
        ("1001894400", "s"),
        ("1001894400123", "ms"),
        ("1001894400123456", "us"),
        ("9" * 18, "ns"),
        ("7", "ms"),
    ],
)
def test_digits_as_text_without_a_unit_are_told_their_likely_one(digits, unit):
    with pytest.raises(DataError, match=rf"a number as text.* give their unit, timestamp_unit='{unit}'"):
        times_of(pa.array([digits]))
    with pytest.raises(DataError, match=rf"arrival_unit='{unit}'"):
        read(event_log(pa.table({"ts": [1], "at": [digits]}), timestamp="ts", arrival="at"))


@pytest.mark.parametrize("kind", [pa.timestamp("s"), pa.timestamp("us", "UTC"), pa.date32(), pa.date64()])
def test_a_unit_for_a_column_that_has_one_is_refused(kind):
    table = pa.table({"ts": pa.array([0], kind), "at": pa.array([0], kind)})
    refused = rf"timestamp_unit='s' .*'ts' is {re.escape(str(kind))}, .*Leave timestamp_unit out"
    with pytest.raises(ConfigurationError, match=refused):
        read(event_log(table, timestamp="ts", timestamp_unit="s"))
    with pytest.raises(ConfigurationError, match=r"arrival_unit='us' .*'at' is"):
        read(event_log(table, timestamp="ts", arrival="at", arrival_unit="us"))


def test_arrivals_have_a_unit_of_their_own():
    table = pa.table({"ts": [1001894400], "at": [1001894401.25]})
    log = event_log(table, timestamp="ts", timestamp_unit="s", arrival="at", arrival_unit="s")
    (timed,) = read(log)
    assert (timed.timestamp_ms.tolist(), timed.arrival_ms.tolist()) == ([1001894400000], [1001894401250])


# ---- splits and positions

SPLITS = pa.table(
    {"ts": list(range(8)), "origin": ["b", "a", "b", "b", "c", "a", "c", "b"], "n": [9, 1, 9, 9, 5, 1, 5, 9]}
)


def placed(timed):
    """(split, position) of every row."""
    return [
        (batch.split_values[code], position)
        for batch in timed
        for code, position in zip(batch.split_codes.tolist(), batch.positions.tolist(), strict=True)
    ]


EXPECTED = [("b", 0), ("a", 0), ("b", 1), ("b", 2), ("c", 0), ("a", 1), ("c", 1), ("b", 3)]


@pytest.mark.parametrize("batch_rows", [1, 2, 3, 8])
@pytest.mark.parametrize("encoding", ["plain", "dictionary", "parquet"])
def test_positions_count_on_over_batches(tmp_path, batch_rows, encoding):
    data = SPLITS
    if encoding == "dictionary":
        data = SPLITS.set_column(1, "origin", SPLITS["origin"].dictionary_encode())
    elif encoding == "parquet":
        data = tmp_path / "log.parquet"
        pq.write_table(SPLITS, data)
    log = event_log(data, timestamp="ts", split="origin")
    timed = read(log, batch_rows=batch_rows)
    assert placed(timed) == EXPECTED
    assert sum(int(batch.split_rows.sum()) for batch in timed) == 8
    # Splits are numbered in the chunk, in the order in which they appear.
    assert [batch.split_values for batch in timed] == [
        ["b", "a", "c"][: len(batch.split_values)] for batch in timed
    ]
    (origin,) = {
        tuple(c for b in read(log, (), ["origin"], 1, batch_rows) for c in b.batch["origin"].to_pylist())
    }
    assert list(origin) == SPLITS["origin"].to_pylist()


def test_positions_start_anew_in_every_chunk():
    log = event_log(SPLITS, timestamp="ts", split="origin")
    assert placed(read(log, target=2)) == [
        ("b", 0),
        ("a", 0),
        ("b", 1),
        ("b", 2),
        ("c", 0),
        ("a", 0),
        ("c", 1),
        ("b", 0),
    ]


def test_the_whole_log_is_one_split_without_a_split_column():
    (timed,) = read(event_log(SPLITS, timestamp="ts"))
    assert timed.split_values == [None]
    assert placed([timed]) == [(None, i) for i in range(8)]


def test_each_file_is_a_split(tmp_path):
    for i in range(2):
        pq.write_table(SPLITS, tmp_path / f"{i}.parquet", row_group_size=4)
    log = event_log(tmp_path, timestamp="ts", split=FILE)
    assert placed(read(log, target=2)) == [(f"{tmp_path}/{i}.parquet", n) for i in range(2) for n in range(8)]


def test_a_partition_directory_can_name_the_split(tmp_path):
    for part in ("origin=7", "origin=8"):
        (tmp_path / part).mkdir()
        pq.write_table(SPLITS.select(["ts"]), tmp_path / part / "x.parquet")
    timed = read(event_log(tmp_path, timestamp="ts", split="origin"))
    assert [batch.split_values for batch in timed] == [[7], [8]]


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (pa.array([3, 1, 3], pa.uint8()), [3, 1]),
        (pa.array([b"x", b"y", b"x"]), [b"x", b"y"]),
        (pa.array([True, False, True]), [True, False]),
        (pa.array([0, 1, 0], pa.date32()), [datetime.date(1970, 1, 1), datetime.date(1970, 1, 2)]),
    ],
    ids=["int", "binary", "bool", "date"],
)
def test_split_values_are_python_values(tmp_path, column, values):
    pq.write_table(pa.table({"ts": [1, 2, 3], "split": column}), tmp_path / "x.parquet")
    (timed,) = read(event_log(tmp_path, timestamp="ts", split="split"))
    assert timed.split_values == values
    assert timed.split_codes.tolist() == [0, 1, 0]
    assert timed.split_rows.tolist() == [2, 1]


def test_a_split_column_without_an_order_is_an_error():
    table = pa.table({"ts": [1], "split": [1.5]})
    with pytest.raises(SchemaError, match="split column 'split' is double"):
        EventReader(event_log(table, timestamp="ts", split="split"))


def test_dictionary_values_that_no_row_has_are_no_splits():
    codes = pa.array([3, None, 1, 3, 4], pa.uint8())
    column = pa.DictionaryArray.from_arrays(codes, pa.array(["x", "a", "y", "b", None]))
    splits = SplitCounter().number(column)
    assert splits.values == ["a", "b"]
    assert splits.codes.tolist() == [1, -1, 0, 1, -1]
    assert splits.positions.tolist() == [0, -1, 0, 1, -1]
    assert splits.rows.tolist() == [1, 2]


@settings(deadline=None, max_examples=100)
@given(
    dictionary=st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=12),
    batches=st.lists(st.lists(st.integers(-1, 11), max_size=20), min_size=1, max_size=4),
)
def test_splits_of_any_dictionary_are_those_of_its_values(dictionary, batches):
    counter = SplitCounter()
    seen = {}
    for codes in batches:
        rows = [None if code < 0 else code % len(dictionary) for code in codes]
        column = pa.DictionaryArray.from_arrays(pa.array(rows, pa.int8()), pa.array(dictionary, pa.string()))
        values = column.to_pylist()
        for encoded in (column, column.dictionary_decode()):
            splits = SplitCounter().number(encoded)
            assert [None if c < 0 else splits.values[c] for c in splits.codes.tolist()] == values
            assert sorted(splits.values) == sorted(set(values) - {None})
            assert splits.rows.tolist() == [values.count(value) for value in splits.values]
        expected = []
        for value in values:
            expected.append(-1 if value is None else seen.get(value, 0))
            if value is not None:
                seen[value] = seen.get(value, 0) + 1
        splits = counter.number(column)
        assert splits.positions.tolist() == expected
        assert [None if c < 0 else splits.values[c] for c in splits.codes.tolist()] == values
        assert splits.rows.tolist() == [values.count(value) for value in splits.values]
        assert sorted(splits.values) == sorted(seen)


def test_a_code_out_of_range_is_refused():
    for code in (2, -2):
        with pytest.raises(ValueError, match=f"row 1: split code {code} is out of range, there are 2 splits"):
            split_positions(np.array([0, code], np.int32), np.zeros(2, np.int64))
    assert split_positions(np.empty(0, np.int32), np.empty(0, np.int64)).tolist() == []


# ---- operations before the timestamps


def test_filters_move_neither_positions_nor_rows_of_splits():
    log = event_log(SPLITS, timestamp="ts", split="origin", arrival="n")
    for batch_rows in (1, 3, 8):
        timed = read(
            log, (Filter(pc.field("n") > 4), Filter(pc.field("ts") != 3)), ["ts", "origin"], 1, batch_rows
        )
        kept = [0, 2, 4, 6, 7]
        assert placed(timed) == [EXPECTED[row] for row in kept]
        assert [n for batch in timed for n in batch.batch["ts"].to_pylist()] == kept
        assert [n for batch in timed for n in batch.arrival_ms.tolist()] == [9, 9, 5, 5, 9]
        assert sum(batch.filtered for batch in timed) == 3
        assert sum(int(batch.split_rows.sum()) for batch in timed) == 8


def test_the_timestamp_may_be_computed_before_it_is_assigned():
    log = event_log(SPLITS, timestamp="event_time", split="origin")
    op = WithColumns((("event_time", pc.field("ts") * 1000), ("other", pc.field("n") + 1)))
    (timed,) = read(log, (op,))
    assert timed.timestamp_ms.tolist() == [n * 1000 for n in range(8)]
    (timed,) = read(log, (op,), ["other", "origin"])
    assert timed.batch.to_pydict() == {
        "other": [10, 2, 10, 10, 6, 2, 6, 10],
        "origin": SPLITS["origin"].to_pylist(),
    }
    (timed,) = read(log, (op,), "all")
    assert timed.batch.schema.names == ["ts", "origin", "n", "event_time", "other"]


def test_a_column_that_neither_log_nor_expressions_have_is_an_error():
    log = event_log(SPLITS, timestamp="ts")
    with pytest.raises(
        SchemaError, match="the job names column 'price', which the log does not have: ts, origin, n"
    ):
        EventReader(log, (), ["price"])
    with pytest.raises(SchemaError, match="'price'"):
        EventReader(log, (WithColumns((("x", pc.field("n") + 1),)),), ["x", "price"])


def test_only_the_columns_in_use_are_read(tmp_path):
    pq.write_table(SPLITS, tmp_path / "1.parquet")
    pq.write_table(SPLITS.set_column(2, "n", [["x"] * len(SPLITS)]), tmp_path / "2.parquet")
    log = event_log(tmp_path, timestamp="ts", split="origin")
    op = WithColumns((("twice", pc.field("n") * 2),))
    assert len(read(log, (op,))) == 2
    with pytest.raises(SchemaError, match=r"'n' is int64 .* but string in .*2\.parquet"):
        read(log, (op,), ["twice"])


# ---- bad rows

BAD = pa.table(
    {
        "ts": pa.array([0, None, 2, 3, None, 5], pa.int64()),
        "at": pa.array([10, 11, None, 13, None, 15], pa.timestamp("us")),
        "origin": ["a", "b", "a", None, "a", "a"],
        "n": list(range(6)),
    }
)


def bad_log(**given):
    return event_log(BAD, **{"timestamp": "ts", "arrival": "at", "split": "origin", **given})


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({}, r"row 1 \(from 0\) of the table: null timestamp \(column 'ts'\)"),
        ({"timestamp": "n"}, r"row 2 \(from 0\) of the table: null arrival \(column 'at'\)"),
        (
            {"timestamp": "n", "arrival": None},
            r"row 3 \(from 0\) of the table: null split \(column 'origin'\)",
        ),
    ],
)
@pytest.mark.parametrize("batch_rows", [1, 2, 6])
def test_a_null_time_fails_with_its_row_and_what_to_do(columns, message, batch_rows):
    with pytest.raises(DataError, match=message + r'; repair the log.*on_bad_row="drop"'):
        read(bad_log(**columns), batch_rows=batch_rows)


@pytest.mark.parametrize("target", [1, 2, 6])
@pytest.mark.parametrize("batch_rows", [1, 2, 6])
def test_dropped_rows_are_counted_by_reason(batch_rows, target):
    timed = read(bad_log(on_bad_row="drop"), (), ["n"], target, batch_rows)
    counts = {}
    for batch in timed:
        assert batch.rejected.rows is None
        for reason, rows in batch.rejected.counts.items():
            counts[reason] = counts.get(reason, 0) + rows
    assert counts == {"null timestamp": 2, "null arrival": 1, "null split": 1}
    assert [n for batch in timed for n in batch.batch["n"].to_pylist()] == [0, 5]
    assert [n for batch in timed for n in batch.timestamp_ms.tolist()] == [0, 5]
    assert [n for batch in timed for n in batch.arrival_ms.tolist()] == [0, 0]
    if target == 1:
        # Rejected rows keep their positions: nobody else's arrival by rate moves.
        assert placed(timed) == [("a", 0), ("a", 3)]


@pytest.mark.parametrize("batch_rows", [1, 2, 6])
def test_a_side_output_collects_the_rows_with_their_reason(batch_rows):
    timed = read(bad_log(on_bad_row=OutputTag("bad")), (), ["n"], 1, batch_rows)
    rows = [
        row for batch in timed if batch.rejected.rows is not None for row in batch.rejected.rows.to_pylist()
    ]
    expected = {1: "null timestamp", 2: "null arrival", 3: "null split", 4: "null timestamp"}
    assert rows == [
        {**BAD.slice(n, 1).to_pylist()[0], "reason": reason, "record": None} for n, reason in expected.items()
    ]


def test_both_planes_reject_the_same_rows():
    log = bad_log(on_bad_row="drop")
    (narrow,), (wide,) = read(log), read(log, (), "all")
    assert narrow.rejected.counts == wide.rejected.counts
    assert placed([narrow]) == placed([wide])


def test_a_bad_row_that_a_filter_takes_out_is_no_fault():
    log = bad_log()
    op = Filter(pc.field("ts").is_valid() & pc.field("at").is_valid() & pc.field("origin").is_valid())
    (timed,) = read(log, (op,), ["n"])
    assert timed.batch["n"].to_pylist() == [0, 5]
    assert (timed.filtered, timed.rejected.total) == (4, 0)
    log = bad_log(on_bad_row=OutputTag("bad"))
    (timed,) = read(log, (Filter(pc.field("n") > 2),), ["n"])
    assert timed.rejected.rows["n"].to_pylist() == [3, 4]
    with pytest.raises(DataError, match=r"row 3 \(from 0\) of the table: null split"):
        read(bad_log(), (Filter(pc.field("n") > 2),), ["n"])


def test_the_row_number_in_a_message_is_that_in_the_file(tmp_path):
    table = pa.table({"ts": pa.array([*range(25), None, 26], pa.int64())})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=10)
    log = event_log(tmp_path, timestamp="ts")
    with pytest.raises(DataError, match=rf"row 25 \(from 0\) of {tmp_path}/x\.parquet: null timestamp"):
        read(log, target=3, batch_rows=4)


@pytest.mark.parametrize("target", [1, 3])
def test_timestamps_out_of_the_range_are_bad_rows(target):
    table = pa.table({"ts": pa.array([5, 10, None, 11, 4, 7], pa.int64()), "n": list(range(6))})
    log = event_log(table, timestamp="ts", on_bad_row="drop")
    timed = [
        batch for chunk in log.chunks(target) for batch in EventReader(log, (), ["n"], (5, 10)).read(chunk)
    ]
    assert [n for batch in timed for n in batch.batch["n"].to_pylist()] == [0, 1, 5]
    counts = Counter()
    for batch in timed:
        counts.update(batch.rejected.counts)
    assert counts == {"null timestamp": 1, "timestamp out of range": 2}
    log = event_log(table.drop_null(), timestamp="ts")
    with pytest.raises(
        DataError,
        match=r"row 2 \(from 0\) of the table: timestamp out of range \(column 'ts'\): 11 ms, for which",
    ):
        list(EventReader(log, (), None, (5, 10)).read(log.chunks(1)[0]))


def test_flinks_missing_timestamp_is_a_bad_row_that_is_told_from_null():
    table = pa.table({"ts": pa.array([-(2**63), 5, None, -(2**63) + 1], pa.int64())})
    (timed,) = read(event_log(table, timestamp="ts", on_bad_row="drop"))
    assert timed.timestamp_ms.tolist() == [5, -(2**63) + 1]
    assert timed.rejected.counts == {"null timestamp": 1, "timestamp out of range": 1}
    with pytest.raises(
        DataError,
        match=r"row 0 \(from 0\) of the table: timestamp out of range \(column 'ts'\): -9223372036854775808 ms, by "
        "which Flink means that there is no timestamp; repair",
    ):
        read(event_log(table, timestamp="ts"))


def test_a_log_with_a_column_named_reason_keeps_it():
    table = pa.table({"ts": pa.array([None], pa.int64()), "reason": ["why not"]})
    (timed,) = read(event_log(table, timestamp="ts", on_bad_row=OutputTag("bad")), (), "all")
    assert timed.rejected.rows.to_pylist() == [
        {"ts": None, "reason": "why not", "reason_": "null timestamp", "record": None}
    ]


@settings(deadline=None, max_examples=60)
@given(
    rows=st.lists(
        st.tuples(
            st.none() | st.integers(-5, 5), st.none() | st.integers(-5, 5), st.none() | st.integers(0, 2)
        ),
        max_size=30,
    ),
    least=st.integers(0, 30),
    batch_rows=st.integers(1, 31),
)
def test_any_rows_are_kept_filtered_or_rejected_as_a_loop_would(rows, least, batch_rows):
    table = pa.table(
        {
            "ts": pa.array([row[0] for row in rows], pa.timestamp("us")),
            "at": pa.array([row[1] for row in rows], pa.int64()),
            "split": pa.array([row[2] for row in rows], pa.int8()),
            "n": pa.array(range(len(rows)), pa.int64()),
        }
    )
    log = event_log(table, timestamp="ts", arrival="at", split="split", on_bad_row="drop")
    expected, counts, position = [], {}, {}
    for n, (ts, at, split) in enumerate(rows):
        here = position.get(split, 0)
        position[split] = here + 1
        if n < least:
            continue
        reason = next(
            (r for r, v in (("timestamp", ts), ("arrival", at), ("split", split)) if v is None), None
        )
        if reason is None:
            expected.append((n, ts // 1000, at, split, here))
        else:
            counts[f"null {reason}"] = counts.get(f"null {reason}", 0) + 1
    actual, rejected = [], {}
    for batch in read(log, (Filter(pc.field("n") >= least),), ["n"], 1, batch_rows):
        splits = [batch.split_values[code] for code in batch.split_codes.tolist()]
        columns = (
            batch.batch["n"].to_pylist(),
            batch.timestamp_ms.tolist(),
            batch.arrival_ms.tolist(),
            splits,
        )
        actual += zip(*columns, batch.positions.tolist(), strict=True)
        for reason, count in batch.rejected.counts.items():
            rejected[reason] = rejected.get(reason, 0) + count
    assert actual == expected
    assert rejected == counts
