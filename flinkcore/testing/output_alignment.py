"""Sets expected and actual elements side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from flinkcore.testing.element_differences import AnyTimestamp, is_record, matches

MAX_COMPARISONS = 250_000
"""Of two outputs that need more, elements are compared by position."""

NOTHING: Any = object()
"""Stands where a side has no element."""


@dataclass(frozen=True)
class Row:
    """An expected element and an actual one; NOTHING where there is none."""

    expected: Any
    actual: Any
    is_equal: bool


def in_order(expected: Sequence[Any], actual: Sequence[Any]) -> list[Row]:
    """Return both side by side, so that as many elements as possible stand by their equals."""
    start = 0
    while start < min(len(expected), len(actual)) and matches(expected[start], actual[start]):
        start += 1
    end = 0
    while end < min(len(expected), len(actual)) - start and matches(expected[-1 - end], actual[-1 - end]):
        end += 1
    middle = _longest_common(expected[start : len(expected) - end], actual[start : len(actual) - end])
    equal = [Row(e, a, True) for e, a in zip(expected[:start], actual[:start], strict=True)]
    last = [
        Row(e, a, True)
        for e, a in zip(expected[len(expected) - end :], actual[len(actual) - end :], strict=True)
    ]
    return equal + middle + last


def in_any_order(expected: Sequence[Any], actual: Sequence[Any]) -> list[Row]:
    """Return both side by side, where the order of records counts only across watermarks and statuses."""
    rows: list[Row] = []
    nothing: list[Any] = []
    for wanted, got in zip_longest(_spans(expected), _spans(actual), fillvalue=nothing):
        records = [element for element in got if is_record(element)]
        unmatched = []
        # Those with a timestamp choose first: they are content with fewer.
        for element in sorted(filter(is_record, wanted), key=lambda e: isinstance(e, AnyTimestamp)):
            found = next((i for i, record in enumerate(records) if matches(element, record)), None)
            if found is None:
                unmatched.append(element)
            else:
                rows.append(Row(element, records.pop(found), True))
        rows += _by_position(unmatched, records)
        rows += _by_position(_end(wanted), _end(got))
    return rows


def _spans(elements: Sequence[Any]) -> list[list[Any]]:
    """Return runs of records, each with the element after it that is none."""
    spans: list[list[Any]] = [[]]
    for element in elements:
        spans[-1].append(element)
        if not is_record(element):
            spans.append([])
    return spans


def _end(span: Sequence[Any]) -> Sequence[Any]:
    return [element for element in span[-1:] if not is_record(element)]


def _by_position(expected: Sequence[Any], actual: Sequence[Any]) -> list[Row]:
    pairs = zip_longest(expected, actual, fillvalue=NOTHING)
    return [Row(e, a, e is not NOTHING and a is not NOTHING and matches(e, a)) for e, a in pairs]


def _longest_common(expected: Sequence[Any], actual: Sequence[Any]) -> list[Row]:
    n, m = len(expected), len(actual)
    if n * m > MAX_COMPARISONS:
        return _by_position(expected, actual)
    equal = [[matches(e, a) for a in actual] for e in expected]
    lengths = [[0] * (m + 1) for _ in range(n + 1)]
    for i in reversed(range(n)):
        for j in reversed(range(m)):
            lengths[i][j] = (
                lengths[i + 1][j + 1] + 1 if equal[i][j] else max(lengths[i + 1][j], lengths[i][j + 1])
            )
    rows: list[Row] = []
    i = j = i_seen = j_seen = 0
    while i < n and j < m:
        if equal[i][j]:
            rows += _by_kind(expected[i_seen:i], actual[j_seen:j])
            rows.append(Row(expected[i], actual[j], True))
            i_seen, j_seen = i, j = i + 1, j + 1
        elif lengths[i + 1][j] >= lengths[i][j + 1]:
            i += 1
        else:
            j += 1
    return rows + _by_kind(expected[i_seen:], actual[j_seen:])


def _by_kind(expected: Sequence[Any], actual: Sequence[Any]) -> list[Row]:
    """Return elements, none of which is the expected one, with records beside records where they are as many."""
    if len(expected) == len(actual):
        return _by_position(expected, actual)
    rows = []
    i = j = 0
    while i < len(expected) and j < len(actual):
        if is_record(expected[i]) == is_record(actual[j]):
            rows.append(Row(expected[i], actual[j], False))
            i, j = i + 1, j + 1
        elif len(expected) - i > len(actual) - j:
            rows.append(Row(expected[i], NOTHING, False))
            i += 1
        else:
            rows.append(Row(NOTHING, actual[j], False))
            j += 1
    return rows + _by_position(expected[i:], actual[j:])
