"""Parts of texts and what is found in them, against Python's own functions."""

import random
import re

import pyarrow as pa
import pytest

from flinkcore._native.arrow import ColumnArray
from flinkcore._native.text_parts import TextParts, count_found, text_after


def texts_of(characters: list[str]) -> pa.Array:
    """Return random texts, nulls among them, as a slice of a longer column."""
    chance = random.Random(7)
    made = ["".join(chance.choices(characters, k=chance.randrange(8))) for _ in range(500)]
    return pa.array(["before", "", None, characters[0], *made]).slice(1)


@pytest.mark.parametrize("separator", ["/", "--", "ä", "aa"])
def test_parts_are_those_of_a_split_in_whatever_order_they_are_asked_for(separator: str) -> None:
    texts = texts_of([separator, "a", "-", "ä"])
    parts = TextParts(ColumnArray(texts), separator.encode())
    for number in (1, 2, 2, 5, 0, 3):
        found = pa.array(parts.part(number))
        found.validate(full=True)
        assert found.to_pylist() == [
            None if not text or text.count(separator) < number else text.split(separator)[number]
            for text in texts.to_pylist()
        ]


@pytest.mark.parametrize("wanted", ["/", "aa", "ä"])
def test_texts_are_counted_without_overlaps(wanted: str) -> None:
    texts = texts_of([wanted, "a", "b", "ö"])
    counts = count_found(ColumnArray(texts), wanted.encode())
    assert counts.tolist() == [(text or "").count(wanted) for text in texts.to_pylist()]


@pytest.mark.parametrize("is_filled", [False, True])
@pytest.mark.parametrize("before", ["", "&", "&|^"])
def test_what_follows_a_mark_is_that_of_a_regular_expression(before: str, is_filled: bool) -> None:
    texts = texts_of(["key=", "&", "ä", "x", "k"])
    pattern = re.compile(f"(?:{before})key=([^&]{'+' if is_filled else '*'})")
    of_any = bytes([1]) * 256
    flags = (
        bytes(chr(code) in before.split("|") and code != ord("^") for code in range(256))
        if before
        else of_any
    )
    members = bytes(chr(code) != "&" for code in range(256))
    found = pa.array(text_after(ColumnArray(texts), flags, before != "&", b"key=", members, is_filled))
    found.validate(full=True)
    matches = [pattern.search(text or "") for text in texts.to_pylist()]
    assert found.to_pylist() == [None if match is None else match[1] for match in matches]
    assert 0 < found.null_count < len(found)


def test_what_is_no_text_or_has_no_bytes_is_refused() -> None:
    texts, flags = ColumnArray(pa.array(["a"])), bytes(256)
    numbers = ColumnArray(pa.array([1]))
    for refused in (
        lambda: TextParts(numbers, b"/"),
        lambda: TextParts(texts, b""),
        lambda: TextParts(texts, b"/").part(-1),
        lambda: count_found(numbers, b"/"),
        lambda: count_found(texts, b""),
        lambda: text_after(numbers, flags, True, b"a", flags, False),
        lambda: text_after(texts, flags, True, b"", flags, False),
        lambda: text_after(texts, flags[1:], True, b"a", flags, False),
    ):
        with pytest.raises(ValueError, match=r"text|separator|part|mark"):
            refused()
