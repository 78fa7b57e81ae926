"""Values as Java writes and reads them."""

import datetime
import math
import re
import struct
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore._internal.java.parsing import (
    boolean_of,
    date_of,
    decimal_of,
    double_of,
    float_of,
    integer_of,
    local_time_of,
    sql_time_of,
    timestamp_of,
)
from flinkcore._internal.java.texts import (
    double_text,
    float_text,
    local_timestamp_text,
    sql_timestamp_text,
)
from flinkcore.common import Types
from flinkcore.errors import DataError

JAVA_FORM = re.compile(r"-?(\d+\.\d+|\d\.\d+E-?\d+)")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (100.0, "100.0"),
        (0.001, "0.001"),
        (0.0009, "9.0E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (-12345678.9, "-1.23456789E7"),
        (123456789012345680.0, "1.2345678901234568E17"),
        (5e-324, "4.9E-324"),
        (1e-323, "9.9E-324"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
    ],
)
def test_doubles_are_written_as_in_java(value: float, text: str) -> None:
    assert double_text(value) == text
    assert Types.DOUBLE().text(value) == text


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_text_of_a_double_is_in_javas_form_and_is_that_double(value: float) -> None:
    text = double_text(value)
    assert JAVA_FORM.fullmatch(text)
    assert ("E" in text) is not (value == 0 or 1e-3 <= abs(value) < 1e7)
    assert double_of(text) == value


@settings(deadline=None)
@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_the_text_of_a_float_is_no_longer_than_32_bits_need(value: float) -> None:
    text = float_text(value)
    assert JAVA_FORM.fullmatch(text)
    assert struct.pack("f", float_of(text)) == struct.pack("f", value)
    assert len(text.partition("E")[0].replace("-", "").replace(".", "").strip("0")) <= 9


def test_floats_are_written_as_in_java() -> None:
    single = struct.unpack("f", struct.pack("f", 1.1))[0]
    assert float_text(single) == Types.FLOAT().text(single) == "1.1"
    assert float_text(1_000_000.0) == "1000000.0"
    assert float_text(10_000_000.0) == "1.0E7"
    assert [float_text(value) for value in (1e6, -3e6, 9999999.0, 1e-3)] == [
        "1000000.0",
        "-3000000.0",
        "9999999.0",
        "0.001",
    ]
    assert [float_text(value) for value in (16777216.0, 1e-4, math.inf)] == [
        "1.6777216E7",
        "1.0E-4",
        "Infinity",
    ]


def test_whole_numbers_are_digits_with_a_sign_and_control_characters_around_them() -> None:
    assert [
        integer_of(text, 64) for text in ("7", "+7", "-007", "\t 7 \n", "\uff11", "9223372036854775807")
    ] == [
        *(7, 7, -7, 7, 1),
        2**63 - 1,
    ]
    for text in ("", "+", "1_000", "1.0", "0x1", "--1", "\u20031", "²", "9" * 5000):
        with pytest.raises(DataError):
            integer_of(text, None)
    for value, bits in ((128, 8), (-129, 8), (2**31, 32), (2**63, 64)):
        with pytest.raises(DataError, match=f"beyond {bits} bits"):
            integer_of(str(value), bits)


def test_numbers_are_read_as_in_java() -> None:
    texts = ("1", ".5", "5.", "1e2", "1d", "1F", "0x1p3", " -Infinity ", "1e400", "-0x1p2000")
    assert [double_of(text) for text in texts] == [*(1, 0.5, 5, 100, 1, 1, 8), -math.inf, math.inf, -math.inf]
    assert math.isnan(double_of("NaN"))
    for text in ("", "inf", "nan", "1_0", "1e", "0x1", "٣", "1 2"):
        with pytest.raises(DataError, match="is not a number"):
            double_of(text)
    assert float_of("3.4e39") == math.inf
    assert [decimal_of(text) for text in ("1.50", "1E+3", "-.5")] == [
        Decimal("1.50"),
        Decimal("1E+3"),
        Decimal("-0.5"),
    ]
    for text in (" 1", "NaN", "", "1e99999999999999999999"):
        with pytest.raises(DataError):
            decimal_of(text)
    assert [boolean_of(text) for text in (" TRUE ", "true", "1", "yes", "")] == [
        True,
        True,
        False,
        False,
        False,
    ]


def test_dates_and_times_are_read_as_in_java() -> None:
    assert date_of("2020-1-2") == datetime.date(2020, 1, 2)
    assert date_of("2020-02-30") == datetime.date(2020, 3, 1)
    assert sql_time_of("3:4:5") == datetime.time(3, 4, 5)
    assert local_time_of("03:04") == datetime.time(3, 4)
    assert local_time_of("03:04:05.6789999") == datetime.time(3, 4, 5, 678999)
    assert timestamp_of(" 2020-1-2 3:4:5.5 ") == datetime.datetime(2020, 1, 2, 3, 4, 5, 500_000)
    for read, text in (
        (date_of, "2020-02-32"),
        (date_of, "2020-01-02 "),
        (sql_time_of, "03:04"),
        (sql_time_of, "25:00:00"),
        (local_time_of, "3:04:05"),
        (timestamp_of, "2020-01-02T03:04:05"),
        (timestamp_of, "2020-01-02"),
    ):
        with pytest.raises(DataError, match="such as"):
            read(text)


def test_timestamps_have_the_digits_of_the_second_that_they_need() -> None:
    whole = datetime.datetime(2020, 1, 2, 3, 4, 0)
    half = whole.replace(microsecond=500_000)
    assert [local_timestamp_text(value) for value in (whole, half)] == [
        "2020-01-02 03:04:00",
        "2020-01-02 03:04:00.5",
    ]
    assert sql_timestamp_text(whole) == "2020-01-02 03:04:00.0"
    assert local_timestamp_text(datetime.datetime(1, 1, 1)) == "0001-01-01 00:00:00"
