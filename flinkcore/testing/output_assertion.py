"""Compares the output of an operator with what a test expects, and shows both side by side."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import zip_longest
from typing import Any

from flinkcore._internal.values.row import Row
from flinkcore._internal.values.timestamps import MAX_TIMESTAMP
from flinkcore.common.watermark import Watermark
from flinkcore.operators.records.stream_elements import LatencyMarker, StreamRecord, WatermarkStatus
from flinkcore.testing.abstract_stream_operator_test_harness import ClockedTestHarness

SHOWN_DIFFERENCES = 3


@dataclass(frozen=True)
class AnyTimestamp:
    """Expects a record with a value and any timestamp."""

    value: Any


def expected_element(expected: Any) -> Any:
    """Return an expected element; any other value stands for a record of that value with any timestamp."""
    is_element = isinstance(expected, (StreamRecord, Watermark, WatermarkStatus, LatencyMarker))
    return expected if is_element else AnyTimestamp(expected)


def matches(expected: Any, actual: Any) -> bool:
    """Return whether an element is the expected one."""
    if isinstance(expected, AnyTimestamp):
        return isinstance(actual, StreamRecord) and bool(expected.value == actual.value)
    return type(expected) is type(actual) and bool(expected == actual)


def is_record(element: Any) -> bool:
    """Return whether an element, or an expectation, is a record."""
    return isinstance(element, (StreamRecord, AnyTimestamp))


def shown(element: Any) -> str:
    """Return an element in short, such as ``'a' @ 10`` or ``watermark 10``."""
    if isinstance(element, AnyTimestamp):
        return f"{element.value!r} @ any"
    if isinstance(element, StreamRecord):
        return f"{element.value!r} @ {'none' if element.timestamp is None else element.timestamp}"
    if isinstance(element, Watermark):
        return "watermark MAX" if element.timestamp == MAX_TIMESTAMP else f"watermark {element.timestamp}"
    if isinstance(element, WatermarkStatus):
        return element.value
    return repr(element)


def difference(expected: Any, actual: Any) -> str:
    """Return the difference of an element from the expected one."""
    if is_record(expected) and is_record(actual):
        found = []
        if not bool(expected.value == actual.value):
            found += list(_value_differences(expected.value, actual.value, "value"))
        if isinstance(expected, StreamRecord) and expected.timestamp != actual.timestamp:
            found.append(f"timestamp: {actual.timestamp}, not {expected.timestamp}")
        more = f"; {len(found) - SHOWN_DIFFERENCES} more" if len(found) > SHOWN_DIFFERENCES else ""
        return "; ".join(found[:SHOWN_DIFFERENCES]) + more
    if _kind(actual) != _kind(expected):
        return f"{_kind(actual)}, not {_kind(expected)}"
    return f"{shown(actual)}, not {shown(expected)}"


def _value_differences(expected: Any, actual: Any, path: str) -> Iterator[str]:
    parts, actual_parts = _parts(expected), _parts(actual)
    if parts is not None and actual_parts is not None and parts.keys() == actual_parts.keys():
        different = [name for name, part in parts.items() if not bool(part == actual_parts[name])]
        for name in different:
            yield from _value_differences(parts[name], actual_parts[name], f"{path}{name}")
        if different:
            return
    is_other_type = type(actual) is not type(expected)
    of_type = f" ({type(actual).__name__}, not {type(expected).__name__})" if is_other_type else ""
    yield f"{path}: {actual!r}, not {expected!r}{of_type}"


def _parts(value: Any) -> dict[str, Any] | None:
    """Return the parts of a value by access path, such as ``.name`` or ``[0]``; None if it has none."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f".{field.name}": getattr(value, field.name) for field in fields(value) if field.compare}
    if isinstance(value, Mapping):
        return {f"[{key!r}]": part for key, part in value.items()}
    if isinstance(value, (list, tuple, Row)):
        names = getattr(value, "_fields", None) or ()
        if len(names) == len(value):
            return {f".{name}": part for name, part in zip(names, value, strict=True)}
        return {f"[{i}]": part for i, part in enumerate(value)}
    return None


def _kind(element: Any) -> str:
    if is_record(element):
        return "a record"
    if isinstance(element, Watermark):
        return "a watermark"
    return "a status" if isinstance(element, WatermarkStatus) else f"a {type(element).__name__}"


MAX_COMPARISONS = 250_000
"""If two outputs would need more, elements are compared by position."""

NOTHING: Any = object()
"""Stands for a missing element."""


@dataclass(frozen=True)
class OutputRow:
    """An expected and an actual element; NOTHING for a missing one."""

    expected: Any
    actual: Any
    is_equal: bool


def in_order(expected: Sequence[Any], actual: Sequence[Any]) -> list[OutputRow]:
    """Return both side by side, with as many equal pairs as possible."""
    start = 0
    while start < min(len(expected), len(actual)) and matches(expected[start], actual[start]):
        start += 1
    end = 0
    while end < min(len(expected), len(actual)) - start and matches(expected[-1 - end], actual[-1 - end]):
        end += 1
    middle = _longest_common(expected[start : len(expected) - end], actual[start : len(actual) - end])
    equal = [OutputRow(e, a, True) for e, a in zip(expected[:start], actual[:start], strict=True)]
    last = [
        OutputRow(e, a, True)
        for e, a in zip(expected[len(expected) - end :], actual[len(actual) - end :], strict=True)
    ]
    return equal + middle + last


def in_any_order(expected: Sequence[Any], actual: Sequence[Any]) -> list[OutputRow]:
    """Return both side by side; records between two watermarks or statuses may be in any order."""
    rows: list[OutputRow] = []
    nothing: list[Any] = []
    for wanted, got in zip_longest(_spans(expected), _spans(actual), fillvalue=nothing):
        records = [element for element in got if is_record(element)]
        unmatched = []
        # Elements with a timestamp are matched first: fewer records match them.
        for element in sorted(filter(is_record, wanted), key=lambda e: isinstance(e, AnyTimestamp)):
            found = next((i for i, record in enumerate(records) if matches(element, record)), None)
            if found is None:
                unmatched.append(element)
            else:
                rows.append(OutputRow(element, records.pop(found), True))
        rows += _by_position(unmatched, records)
        rows += _by_position(_end(wanted), _end(got))
    return rows


def _spans(elements: Sequence[Any]) -> list[list[Any]]:
    """Return runs of records, each with the other element after it."""
    spans: list[list[Any]] = [[]]
    for element in elements:
        spans[-1].append(element)
        if not is_record(element):
            spans.append([])
    return spans


def _end(span: Sequence[Any]) -> Sequence[Any]:
    return [element for element in span[-1:] if not is_record(element)]


def _by_position(expected: Sequence[Any], actual: Sequence[Any]) -> list[OutputRow]:
    pairs = zip_longest(expected, actual, fillvalue=NOTHING)
    return [OutputRow(e, a, e is not NOTHING and a is not NOTHING and matches(e, a)) for e, a in pairs]


def _longest_common(expected: Sequence[Any], actual: Sequence[Any]) -> list[OutputRow]:
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
    rows: list[OutputRow] = []
    i = j = i_seen = j_seen = 0
    while i < n and j < m:
        if equal[i][j]:
            rows += _by_kind(expected[i_seen:i], actual[j_seen:j])
            rows.append(OutputRow(expected[i], actual[j], True))
            i_seen, j_seen = i, j = i + 1, j + 1
        elif lengths[i + 1][j] >= lengths[i][j + 1]:
            i += 1
        else:
            j += 1
    return rows + _by_kind(expected[i_seen:], actual[j_seen:])


def _by_kind(expected: Sequence[Any], actual: Sequence[Any]) -> list[OutputRow]:
    """Return unequal elements side by side, records beside records as far as possible."""
    if len(expected) == len(actual):
        return _by_position(expected, actual)
    rows = []
    i = j = 0
    while i < len(expected) and j < len(actual):
        if is_record(expected[i]) == is_record(actual[j]):
            rows.append(OutputRow(expected[i], actual[j], False))
            i, j = i + 1, j + 1
        elif len(expected) - i > len(actual) - j:
            rows.append(OutputRow(expected[i], NOTHING, False))
            i += 1
        else:
            rows.append(OutputRow(NOTHING, actual[j], False))
            j += 1
    return rows + _by_position(expected[i:], actual[j:])


CONTEXT_ROWS = 2
"""Number of equal rows that are shown around a difference."""

COLUMN_WIDTH = 48
SHOWN_ROWS = 40


def assert_output(
    actual: ClockedTestHarness[Any] | Iterable[Any],
    expected: Iterable[Any],
    *,
    ignore_order: bool = False,
) -> None:
    """Fail unless an output equals the expected one, element by element.

    Parameters
    ----------
    actual : harness or iterable of StreamElement
        A harness stands for its `get_output()`.
    expected : iterable
        `StreamRecord`, `Watermark`, `WatermarkStatus`; any other object is the value of a record with any timestamp.
        Values are compared by ``==``, the expected one on the left, so that it may be a ``pytest.approx``.
    ignore_order : bool, default False
        Records between two watermarks or statuses may come in any order.

    Raises
    ------
    AssertionError
        If the outputs differ. The message shows both side by side, the first difference marked.

    Notes
    -----
    Flink's ``TestHarnessUtil.assertOutputEquals`` and ``assertOutputEqualsSorted``, which ignores the order of
    watermarks, too.

    Examples
    --------
    >>> from flinkcore.common import Watermark
    >>> from flinkcore.operators.records.stream_elements import StreamRecord
    >>> assert_output([StreamRecord("a", 10), Watermark(10)], [StreamRecord("a", 11), Watermark(10)])
    Traceback (most recent call last):
    ...
    AssertionError: the output differs first at element 0 (2 expected, 2 there)
         expected      actual
    > 0  'a' @ 11      'a' @ 10      timestamp: 10, not 11
      1  watermark 10  watermark 10
    """
    __tracebackhide__ = True
    elements = list(actual.get_output() if isinstance(actual, ClockedTestHarness) else actual)
    wanted = [expected_element(element) for element in expected]
    rows = (in_any_order if ignore_order else in_order)(wanted, elements)
    if not all(row.is_equal for row in rows):
        raise AssertionError(_message(rows, len(wanted), len(elements)))


def explained(left: object, right: object) -> list[str] | None:
    """Return the lines that pytest shows for a failed ``assert output == expected``; None for other values."""
    if not (isinstance(left, list) and isinstance(right, list) and any(map(_is_element, left + right))):
        return None
    return ["outputs are equal", "", *_message(in_order(right, left), len(right), len(left)).splitlines()]


def _is_element(value: object) -> bool:
    return isinstance(value, (StreamRecord, Watermark, WatermarkStatus))


def _message(rows: Sequence[OutputRow], n_expected: int, n_actual: int) -> str:
    first = next(i for i, row in enumerate(rows) if not row.is_equal)
    head = f"the output differs first at element {first} ({n_expected} expected, {n_actual} there)"
    return "\n".join([head, *_table(rows), *_in_full(rows[first])])


def _table(rows: Sequence[OutputRow]) -> list[str]:
    chosen = _rows_to_show(rows)
    cells = {i: (_cell(rows[i].expected), _cell(rows[i].actual)) for i in chosen}
    left = max(len("expected"), *(len(expected) for expected, _ in cells.values()))
    right = max(len("actual"), *(len(actual) for _, actual in cells.values()))
    digits = len(str(len(rows) - 1))
    lines = [f"  {'':{digits}}  {'expected':{left}}  actual"]
    shown_before = -1
    for i in chosen:
        if i > shown_before + 1:
            lines.append(f"  ... {i - shown_before - 1} equal")
        mark, (expected, actual) = " " if rows[i].is_equal else ">", cells[i]
        line = f"{mark} {i:{digits}}  {expected:{left}}  {actual:{right}}  {_note(rows[i])}"
        lines.append(line.rstrip())
        shown_before = i
    rest = rows[shown_before + 1 :]
    if rest:
        n_different = sum(not row.is_equal for row in rest)
        lines.append(
            f"  ... {len(rest)} more, " + (f"{n_different} of them different" if n_different else "equal")
        )
    return lines


def _rows_to_show(rows: Sequence[OutputRow]) -> list[int]:
    different = [i for i, row in enumerate(rows) if not row.is_equal]
    near = {j for i in different for j in range(i - CONTEXT_ROWS, i + CONTEXT_ROWS + 1) if 0 <= j < len(rows)}
    return sorted(near)[:SHOWN_ROWS]


def _cell(element: Any) -> str:
    text = "" if element is NOTHING else shown(element).replace("\n", "\\n")
    # The end is kept: it is the timestamp.
    return text if len(text) <= COLUMN_WIDTH else f"{text[: COLUMN_WIDTH - 21]} ... {text[-16:]}"


def _note(row: OutputRow) -> str:
    if row.is_equal:
        return ""
    if row.actual is NOTHING:
        return "missing"
    return "unexpected" if row.expected is NOTHING else _cut(difference(row.expected, row.actual))


def _cut(note: str) -> str:
    return note if len(note) <= 2 * COLUMN_WIDTH else f"{note[: 2 * COLUMN_WIDTH]} ..."


def _in_full(row: OutputRow) -> list[str]:
    """Return the lines that show a row in full, if its cells are cut off."""
    if all(
        element is NOTHING or len(shown(element)) <= COLUMN_WIDTH for element in (row.expected, row.actual)
    ):
        return []
    lines = ["first difference in full:"]
    if row.expected is not NOTHING:
        lines.append(f"  expected  {shown(row.expected)}")
    if row.actual is not NOTHING:
        lines.append(f"  actual    {shown(row.actual)}")
    if NOTHING not in (row.expected, row.actual):
        lines.append(f"  differs   {difference(row.expected, row.actual)}")
    return lines
