"""CSV text cut into rows as Jackson cuts it."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore._native.csv_tokens import CsvTokens
from flinkcore.errors import ConfigurationError, DataError

SETTINGS = [
    (None, False, -1),
    ("\\", False, -1),
    (None, True, -1),
    (None, True, 0),
    ("\\", True, 1),
    ('"', False, 0),
]


def rows_of(
    blocks: list[str], escape: str | None = None, allow_comments: bool = False, skip_after: int = -1
) -> list[list[str]]:
    tokens = CsvTokens(",", '"', escape, allow_comments, skip_after)
    rows = [row for block in blocks for row in tokens.feed(block)]
    return rows + tokens.finish()


def outcome_of(blocks: list[str], *settings: Any) -> list[list[str]] | str:
    try:
        return rows_of(blocks, *settings)
    except DataError as failure:
        return str(failure)


def test_quotes_hold_separators_and_line_breaks_and_stand_for_themselves_when_doubled() -> None:
    assert rows_of(['a,"b,""c""\nd" ,e\r\n"",f"g\r,\n\nh']) == [
        ["a", 'b,"c"\nd', "e"],
        ["", 'f"g'],
        ["", ""],
        [""],
        ["h"],
    ]


def test_escapes_stand_for_control_characters_or_for_what_follows() -> None:
    assert rows_of(['a\\,b,"\\"\\n\\r\\t\\0",\\\nc'], "\\") == [["a,b", '"\n\r\t\0', "\nc"]]


def test_comments_empty_lines_and_spaces_before_a_line_are_skipped_only_if_they_may_be() -> None:
    text = '#a\n\n  b,c\n #d\n"#e",f\n'
    assert rows_of([text], allow_comments=True) == [["b", "c"], ["#e", "f"]]
    assert rows_of([text]) == [["#a"], [""], ["  b", "c"], [" #d"], ["#e", "f"]]


def test_a_line_is_skipped_as_it_is_whatever_quotes_are_open() -> None:
    assert rows_of(['"a\nb",c\n'], skip_after=0) == [['b"', "c"]]
    assert rows_of(['a\n\n#x\n"b\r\nc\n'], allow_comments=True, skip_after=1) == [["a"], ["c"]]


@settings(deadline=None)
@given(
    text=st.text(st.sampled_from('a1,"\n\r #\\é😀'), max_size=30),
    cuts=st.lists(st.integers(0, 30), max_size=4),
    dialect=st.sampled_from(SETTINGS),
)
def test_rows_do_not_depend_on_where_blocks_end(
    text: str, cuts: list[int], dialect: tuple[str | None, bool, int]
) -> None:
    bounds = [0, *sorted(cuts), len(text)]
    blocks = [text[start:end] for start, end in pairwise(bounds)]
    assert outcome_of(blocks, *dialect) == outcome_of([text], *dialect)


@settings(deadline=None)
@given(rows=st.lists(st.lists(st.text(st.sampled_from('a,"\n\ré')), min_size=1, max_size=3), max_size=4))
def test_values_in_quotes_are_read_as_they_were(rows: list[list[str]]) -> None:
    lines = [",".join('"' + value.replace('"', '""') + '"' for value in row) + "\n" for row in rows]
    assert rows_of(["".join(lines)]) == rows


@pytest.mark.parametrize(
    ("text", "escape", "message"),
    [
        ('a\n"b"c', None, "line 2: 'c' follows the end of a quoted value"),
        ('a,"b\n', None, "ends within a quoted value"),
        ('a,"b\\', "\\", "ends within a quoted value"),
        ("a,b\\", "\\", "ends with an escape"),
    ],
)
def test_what_is_no_csv_is_an_error(text: str, escape: str | None, message: str) -> None:
    with pytest.raises(DataError, match=message):
        rows_of([text], escape)


def test_a_value_without_an_end_is_an_error_before_it_fills_the_memory() -> None:
    with pytest.raises(DataError, match="more than 20,000,000 characters"):
        rows_of(['"', *["x" * (1 << 20)] * 40])


@pytest.mark.parametrize("form", ["{0}\n", "{0},a\n", '"{0}"\n', "{0}"])
def test_a_value_has_up_to_the_characters_that_jackson_takes(form: str) -> None:
    most = "x" * 20_000_000
    assert [len(row[0]) for row in rows_of([form.format(most)])] == [len(most)]
    with pytest.raises(DataError, match="line 1: a value has more than 20,000,000 characters"):
        rows_of([form.format(most + "x")])


def test_separators_quotes_and_escapes_are_single_characters() -> None:
    for characters in (("", '"', None), (",", "''", None), (",", None, "ab")):
        with pytest.raises(ConfigurationError, match="is one character"):
            CsvTokens(*characters, False, -1)
