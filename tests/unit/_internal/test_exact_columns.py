"""Columns of Python values, which hold them exactly or not at all."""

from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from flinkcore._internal.arrow.exact_columns import exact_cast, exact_column
from flinkcore.common import Row

LONG = pa.int64()
FINE = datetime(2024, 1, 1, 0, 0, 0, 5)
FRACTIONS = pytest.mark.skipif(
    not hasattr(Fraction, "__int__"),
    reason="pyarrow takes no fractions of Python 3.10, which have no int(...)",
)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (LONG, 19.99),
        (LONG, Decimal("19.99")),
        pytest.param(LONG, Fraction(3, 2), marks=FRACTIONS),
        (LONG, np.float32(1.5)),
        (LONG, float("nan")),
        (LONG, Decimal("Infinity")),
        (pa.uint64(), 1.5),
        (pa.dictionary(pa.int8(), LONG), 1.5),
        (pa.run_end_encoded(pa.int32(), LONG), Decimal("1.5")),
        (pa.list_(LONG), [1, 1.5]),
        (pa.list_view(LONG), [None, Decimal("1.5")]),
        (pa.struct({"a": LONG}), {"a": Decimal("1.5")}),
        (pa.struct({"a": LONG}), Row(1.5)),
        (pa.map_(pa.string(), LONG), {"a": Decimal("1.5")}),
        (pa.map_(LONG, pa.string()), [(1.5, "a")]),
        (pa.struct({"a": LONG, "b": LONG}), (1, Decimal("1.5"))),
        (pa.struct({"a": LONG, "b": LONG}), [("b", Decimal("1.5")), ("a", 1)]),
        (pa.timestamp("s"), FINE),
        (pa.timestamp("ms"), FINE),
        (pa.timestamp("us"), 1.5),
        (pa.timestamp("us"), Decimal("1.5")),
        (pa.timestamp("us"), pd.Timestamp("2024-01-01 00:00:00.000000001")),
        (pa.timestamp("ms"), pd.Timestamp("2024-01-01 00:00:00.000000001")),
        (pa.duration("s"), pd.Timedelta(999, "ns")),
        (pa.date32(), pd.Timestamp("2024-01-01 00:00:00.000000001")),
        (pa.list_(pa.timestamp("s")), [FINE]),
        (pa.duration("s"), timedelta(seconds=1.5)),
        (pa.duration("s"), 1.5),
        (pa.time32("s"), time(1, 2, 3, 4)),
        (pa.time32("ms"), time(1, 2, 3, 4)),
        (pa.date32(), datetime(2024, 1, 1, 3)),
        (pa.date32(), 1.5),
    ],
    ids=str,
)
def test_what_a_column_would_cut_is_refused(kind: pa.DataType, value: Any) -> None:
    with pytest.raises(ValueError, match=r"it cannot hold .* exactly"):
        exact_column([None, value], kind)


@pytest.mark.parametrize(
    ("kind", "value"),
    [(LONG, datetime(2024, 1, 1)), (LONG, timedelta(seconds=1)), (LONG, "5"), (LONG, True), (LONG, [1])],
    ids=str,
)
def test_what_is_no_integer_is_refused(kind: pa.DataType, value: Any) -> None:
    with pytest.raises(pa.ArrowException):
        exact_column([value], kind)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (LONG, 2.0, 2),
        (LONG, Decimal("19.00"), 19),
        pytest.param(LONG, Fraction(4, 2), 2, marks=FRACTIONS),
        (LONG, np.int32(5), 5),
        (pa.uint64(), 2**64 - 1, 2**64 - 1),
        (pa.float32(), 1.1, np.float32(1.1)),
        (pa.timestamp("ms"), FINE.replace(microsecond=5000), FINE.replace(microsecond=5000)),
        (pa.timestamp("us"), FINE, FINE),
        (pa.timestamp("us"), np.datetime64("2024-01-01T00:00:00.000005"), FINE),
        (pa.timestamp("us"), 1, datetime(1970, 1, 1, 0, 0, 0, 1)),
        (pa.timestamp("us"), pd.Timestamp(FINE), FINE),
        (pa.duration("s"), timedelta(days=10**8), timedelta(days=10**8)),
        (pa.date32(), datetime(2024, 1, 1), date(2024, 1, 1)),
        (pa.time64("us"), time(1, 2, 3, 4), time(1, 2, 3, 4)),
        (pa.run_end_encoded(pa.int32(), LONG), 1, 1),
        (pa.struct({"a": LONG}), Row(1), {"a": 1}),
        (pa.struct({"a": LONG, "b": LONG}), (1, 2), {"a": 1, "b": 2}),
        (pa.struct({"a": LONG, "b": LONG}), [("b", 2), ("a", 1)], {"a": 1, "b": 2}),
        (
            pa.list_(pa.timestamp("ms")),
            np.array(["1970-01-01T00:00:01"], "M8[us]"),
            [datetime(1970, 1, 1, 0, 0, 1)],
        ),
    ],
    ids=str,
)
def test_what_a_column_holds_exactly_is_taken(kind: pa.DataType, value: Any, expected: Any) -> None:
    assert exact_column([value, None], kind).to_pylist() == [expected, None]


MIDNIGHT = datetime(2019, 12, 31, 23, tzinfo=timezone.utc)  # in Berlin
BERLIN = pa.timestamp("us", "Europe/Berlin")


@pytest.mark.parametrize(
    ("column", "kind", "fault"),
    [
        (pa.array([datetime(2024, 1, 1, 3)]), pa.date32(), r"\(2024, 1, 1, 3, 0\) would become"),
        (pa.array([MIDNIGHT.replace(hour=0)], BERLIN), pa.date32(), "would become"),
        (pa.array([datetime(1970, 1, 1, 3)]), pa.time64("us"), "loses the day"),
        (pa.array([FINE]), pa.timestamp("s"), "would lose data"),
        (pa.array([1.5]), LONG, "truncated"),
        (pa.array([2]), pa.bool_(), "2 would become True"),
    ],
    ids=str,
)
def test_a_cast_that_would_cut_is_refused(column: pa.Array, kind: pa.DataType, fault: str) -> None:
    with pytest.raises(pa.ArrowInvalid, match=fault):
        exact_cast(column, kind)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array([datetime(2024, 1, 1), None]), pa.date32()),
        (pa.array([MIDNIGHT, None], BERLIN), pa.date32()),
        (pa.array([0.1 + 0.2, None]), pa.decimal128(5, 2)),
        (pa.array([1, 0, None]), pa.bool_()),
        (pa.array(["1.50", None]), pa.decimal128(5, 3)),
        (pa.array([0.1, None]), pa.float32()),
    ],
    ids=str,
)
def test_a_cast_that_loses_nothing_or_rounds_floats_gives_the_column(
    column: pa.Array, kind: pa.DataType
) -> None:
    assert exact_cast(column, kind).equals(column.cast(kind))


def test_rows_become_structs_wherever_a_type_has_them() -> None:
    inner = pa.struct([("a", pa.int64()), ("b", pa.string())])
    for kind, value, expected in (
        (inner, Row(1, "x"), {"a": 1, "b": "x"}),
        (inner, Row(b="x", a=1), {"a": 1, "b": "x"}),
        (pa.struct([("in", inner)]), Row(Row(1, None)), {"in": {"a": 1, "b": None}}),
        (pa.list_(inner), [Row(1, "x"), None], [{"a": 1, "b": "x"}, None]),
        (pa.map_(pa.string(), inner), {"k": Row(1, "x")}, [("k", {"a": 1, "b": "x"})]),
    ):
        assert exact_column([value, None], kind).to_pylist() == [expected, None]


def test_a_row_of_another_width_is_no_value_of_a_struct() -> None:
    with pytest.raises(ValueError, match="shorter"):
        exact_column([Row(1)], pa.struct([("a", pa.int64()), ("b", pa.string())]))
