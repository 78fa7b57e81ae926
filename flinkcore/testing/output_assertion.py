"""Compares what an operator emitted with what a test expects, and shows both side by side."""

from collections.abc import Iterable, Sequence
from typing import Any

from flinkcore.common.watermark import Watermark
from flinkcore.runtime.elements import StreamRecord, WatermarkStatus
from flinkcore.testing.abstract_stream_operator_test_harness import AbstractStreamOperatorTestHarness
from flinkcore.testing.element_differences import difference, expected_element, shown
from flinkcore.testing.output_alignment import NOTHING, Row, in_any_order, in_order

CONTEXT_ROWS = 2
"""Rows around a difference that are shown though they are equal."""

COLUMN_WIDTH = 48
SHOWN_ROWS = 40


def assert_output(
    actual: AbstractStreamOperatorTestHarness[Any] | Iterable[Any],
    expected: Iterable[Any],
    *,
    ignore_order: bool = False,
) -> None:
    """Fail unless an output is what is expected, element by element.

    Parameters
    ----------
    actual : harness or iterable of StreamElement
        A harness stands for its `get_output()`.
    expected : iterable
        `StreamRecord`, `Watermark`, `WatermarkStatus`; anything else is the value of a record of any timestamp. Values
        are compared by ``==``, the expected one on the left, so that it may be a ``pytest.approx``.
    ignore_order : bool, default False
        Records between two watermarks or statuses may come in any order.

    Raises
    ------
    AssertionError
        If the output is another. The message shows both side by side, which element differs first, and in what.

    Notes
    -----
    Flink's ``TestHarnessUtil.assertOutputEquals`` and ``assertOutputEqualsSorted``, which lets records change places
    with watermarks, too.

    Examples
    --------
    >>> from flinkcore.common import Watermark
    >>> from flinkcore.runtime.elements import StreamRecord
    >>> assert_output([StreamRecord("a", 10), Watermark(10)], [StreamRecord("a", 11), Watermark(10)])
    Traceback (most recent call last):
    ...
    AssertionError: the output differs first at element 0 (2 expected, 2 there)
         expected      actual
    > 0  'a' @ 11      'a' @ 10      timestamp: 10, not 11
      1  watermark 10  watermark 10
    """
    __tracebackhide__ = True
    elements = list(actual.get_output() if isinstance(actual, AbstractStreamOperatorTestHarness) else actual)
    wanted = [expected_element(element) for element in expected]
    rows = (in_any_order if ignore_order else in_order)(wanted, elements)
    if not all(row.is_equal for row in rows):
        raise AssertionError(_message(rows, len(wanted), len(elements)))


def explained(left: object, right: object) -> list[str] | None:
    """Return the lines that pytest shows for a failed ``assert output == expected``; None if these are no outputs."""
    if not (isinstance(left, list) and isinstance(right, list) and any(map(_is_element, left + right))):
        return None
    return ["outputs are equal", "", *_message(in_order(right, left), len(right), len(left)).splitlines()]


def _is_element(value: object) -> bool:
    return isinstance(value, (StreamRecord, Watermark, WatermarkStatus))


def _message(rows: Sequence[Row], n_expected: int, n_actual: int) -> str:
    first = next(i for i, row in enumerate(rows) if not row.is_equal)
    head = f"the output differs first at element {first} ({n_expected} expected, {n_actual} there)"
    return "\n".join([head, *_table(rows), *_in_full(rows[first])])


def _table(rows: Sequence[Row]) -> list[str]:
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


def _rows_to_show(rows: Sequence[Row]) -> list[int]:
    different = [i for i, row in enumerate(rows) if not row.is_equal]
    near = {j for i in different for j in range(i - CONTEXT_ROWS, i + CONTEXT_ROWS + 1) if 0 <= j < len(rows)}
    return sorted(near)[:SHOWN_ROWS]


def _cell(element: Any) -> str:
    text = "" if element is NOTHING else shown(element).replace("\n", "\\n")
    # The end is kept: it is the timestamp.
    return text if len(text) <= COLUMN_WIDTH else f"{text[: COLUMN_WIDTH - 21]} ... {text[-16:]}"


def _note(row: Row) -> str:
    if row.is_equal:
        return ""
    if row.actual is NOTHING:
        return "missing"
    return "unexpected" if row.expected is NOTHING else _cut(difference(row.expected, row.actual))


def _cut(note: str) -> str:
    return note if len(note) <= 2 * COLUMN_WIDTH else f"{note[: 2 * COLUMN_WIDTH]} ..."


def _in_full(row: Row) -> list[str]:
    """Return the lines on a row whose cells are cut off."""
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
