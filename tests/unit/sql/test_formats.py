"""Formats that functions of SQL read and write: JSON and its paths, Java's patterns of dates, texts and matches."""

from decimal import Decimal

import pytest

from flinkcore.errors import UnsupportedOperationError
from flinkcore.sql.formats.java_regex import java_pattern, java_split
from flinkcore.sql.formats.json_documents import json_quote, json_unquote, read_json, write_json
from flinkcore.sql.formats.json_paths import PathError, json_path
from flinkcore.sql.formats.printf import FormatError, java_format
from flinkcore.sql.formats.simple_dates import check_read, read_date, write_date
from flinkcore.sql.types.logical_types import Root


def test_numbers_of_json_keep_their_digits() -> None:
    assert write_json(read_json('{"b": [1.50, 1e3, -0.0], "a": 12345678901234567890}')) == (
        '{"a":12345678901234567890,"b":[1.50,1E+3,0.0]}'
    )


@pytest.mark.parametrize(
    "text", ["", "abc", "[NaN]", "01", "12abc", "truex", "[1,]", '"\x01"', "[" * 100_000]
)
def test_what_is_not_json_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_json(text)


def test_text_after_a_value_is_ignored_as_in_jackson() -> None:
    assert read_json('{"a": 1} x') == {"a": 1}
    assert read_json('"a"b') == "a"
    assert read_json("12 abc") == 12


def test_json_quote_escapes_slashes_and_letters_beyond_ascii() -> None:
    assert json_quote("a/\N{LATIN SMALL LETTER E WITH ACUTE}") == '"a\\/\\u00e9"'
    assert json_unquote('"a\\/\\u00e9"') == "a/\N{LATIN SMALL LETTER E WITH ACUTE}"
    assert json_unquote('"a\\x"') == '"a\\x"'


DOCUMENT = {"a": [{"b": 1}, {"b": 2}, 3], "c": {"a": {"b": None}}, "d": Decimal("1.5")}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$.d", Decimal("1.5")),
        ("d", Decimal("1.5")),
        ("$.a[0].b", 1),
        ("$.a[-1]", 3),
        ("$['a'][1]['b']", 2),
        ("$.a[*].b", [1, 2]),
        ("$.a[0:2]", [{"b": 1}, {"b": 2}]),
        ("$.a[0,2]", [{"b": 1}, 3]),
        ("$..b", [1, 2, None]),
        ("$['d','x']", {"d": Decimal("1.5")}),
        ("$.a.length()", 3),
        ("lax $.x.y", None),
        ("lax $.c.a.b", None),
    ],
)
def test_a_path_finds_its_values(path: str, found: object) -> None:
    assert json_path(path).read(DOCUMENT) == found


@pytest.mark.parametrize("path", ["$.x", "$.a.b", "$.d[0]", "$.a[7]", "$.c.a.b", "strict $.x.y"])
def test_a_strict_path_without_a_value_is_an_error(path: str) -> None:
    with pytest.raises(PathError):
        json_path(path).read(DOCUMENT)


@pytest.mark.parametrize("path", ["$.a[?(@.b > 1)]", "$.a.sum()", "$.a[", "$..['a','b'].c"])
def test_other_paths_are_refused(path: str) -> None:
    with pytest.raises(UnsupportedOperationError, match="path"):
        json_path(path)


def test_a_date_that_overflows_moves_on() -> None:
    assert write_date(read_date("2024-02-30 25:00:00", "yyyy-MM-dd HH:mm:ss", "UTC"), "dd MMM HH", "UTC") == (
        "02 Mar 01"
    )


def test_days_before_1582_are_of_the_julian_calendar() -> None:
    assert write_date(read_date("1582-10-04", "yyyy-MM-dd", "UTC") + 86_400_000, "yyyy-MM-dd", "UTC") == (
        "1582-10-15"
    )


def test_a_local_time_in_a_gap_has_the_offset_before_and_a_doubled_hour_is_the_second() -> None:
    def instant(text: str) -> str:
        return write_date(read_date(text, "yyyy-MM-dd HH:mm", "Europe/Berlin"), "HH:mm", "UTC")

    assert instant("2024-03-31 02:30") == "01:30"
    assert instant("2024-10-27 02:30") == "01:30"


def test_years_beyond_those_of_python_have_offsets() -> None:
    assert write_date(1_700_000_000_000_000, "yyyy-MM-dd HH", "Europe/Berlin") == "55840-11-08 23"


def test_years_of_two_digits_are_not_read_since_they_depend_on_the_clock() -> None:
    assert "clock" in (check_read("dd.MM.yy") or "")


@pytest.mark.parametrize(
    ("pattern", "value", "kind", "text"),
    [
        ("%05d|%x", -7, Root.INT, None),
        ("%05d", -7, Root.INT, "-0007"),
        ("%x", -1, Root.TINYINT, "ff"),
        ("%,.1f", 1234.25, Root.DOUBLE, "1,234.3"),
        ("%.3e", 4.9e-324, Root.DOUBLE, "4.900e-324"),
        ("%g", 0.0001, Root.DOUBLE, "0.000100000"),
        ("%(d", -7, Root.INT, "(7)"),
        ("%-4s|", None, Root.VARCHAR, "null|"),
        ("%S %<s", "a", Root.VARCHAR, "A a"),
        ("%d", 1.5, Root.DOUBLE, None),
        ("%", 1, Root.INT, None),
    ],
)
def test_a_text_is_formatted_as_in_java(pattern: str, value: object, kind: Root, text: str | None) -> None:
    if text is None:
        with pytest.raises(FormatError):
            java_format(pattern, [value], [kind])
    else:
        assert java_format(pattern, [value], [kind]) == text


@pytest.mark.parametrize("pattern", ["%99999999999d", "%2147483648d", "%.99999999999s", "%99999999999$d"])
def test_a_number_of_a_format_that_is_no_int_is_an_error_as_in_java(pattern: str) -> None:
    with pytest.raises(FormatError, match="is not an int of Java"):
        java_format(pattern, [5], [Root.INT])


@pytest.mark.parametrize("pattern", ["%2147483647d", "%1000001s", "%.801f"])
def test_a_width_that_takes_much_memory_is_refused(pattern: str) -> None:
    with pytest.raises(UnsupportedOperationError, match="widths up to 1000000, and 800 decimal places"):
        java_format(pattern, [1e308], [Root.DOUBLE])


def test_a_text_is_cut_at_any_precision_and_a_double_has_all_its_places() -> None:
    assert java_format("%.2147483647s", ["ab"], [Root.VARCHAR]) == "ab"
    assert java_format("%.800f", [1e308], [Root.DOUBLE]) == f"1{'0' * 308}.{'0' * 800}"


def test_regular_expressions_of_java_are_translated() -> None:
    def found(pattern: str, text: str) -> list[str]:
        compiled = java_pattern(pattern)
        assert compiled is not None
        return [match[0] for match in compiled.finditer(text)]

    assert found(r"(?i)a\p{Upper}", "aB Ab ab") == ["aB", "Ab", "ab"]
    assert found(r"\p{L}+", "a\N{LATIN SMALL LETTER E WITH ACUTE}1") == [
        "a\N{LATIN SMALL LETTER E WITH ACUTE}"
    ]
    assert found(r"(?<x>a)\k<x>|\Q.\E", "aa.") == ["aa", "."]
    assert java_pattern("(") is None
    with pytest.raises(UnsupportedOperationError, match="lookbehind"):
        java_pattern("(?<=a+)b")


def test_a_split_leaves_out_empty_texts_at_the_end() -> None:
    comma = java_pattern(",")
    assert comma is not None
    assert java_split(",a,,b,,", comma) == ["", "a", "", "b"]
