"""assert_output: what is equal, and what is said about the rest."""

from dataclasses import dataclass
from typing import Any

import pytest

from flinkcore.common import MAX_TIMESTAMP, Row, Watermark
from flinkcore.testing import StreamRecord, WatermarkStatus, assert_output


def record(value: Any, timestamp: int | None = None) -> StreamRecord[Any]:
    return StreamRecord(value, timestamp)


def lines_of(actual: list[Any], expected: list[Any], **options: Any) -> list[str]:
    with pytest.raises(AssertionError) as error:
        assert_output(actual, expected, **options)
    return str(error.value).splitlines()


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        ([], []),
        (
            [record("a", 1), Watermark(1), WatermarkStatus.IDLE],
            [record("a", 1), Watermark(1), WatermarkStatus.IDLE],
        ),
        ([record("a", 1), record("a")], ["a", "a"]),
        ([record((1, 2), 5)], [(1, 2)]),
        ([record(0.1 + 0.2, 5)], [record(pytest.approx(0.3), 5)]),
        ((record(i, i) for i in range(3)), iter([0, 1, 2])),
    ],
)
def test_equal_outputs_pass(actual: Any, expected: Any) -> None:
    assert_output(actual, expected)


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        ([record("a", 1)], []),
        ([], ["a"]),
        ([record("a")], [record("a", 0)]),
        ([record("a", 1)], ["b"]),
        ([Watermark(1)], [1]),
        ([Watermark(1)], [Watermark(2)]),
        ([WatermarkStatus.IDLE], [WatermarkStatus.ACTIVE]),
        ([record("a"), Watermark(1)], [Watermark(1), "a"]),
        ([record("a"), record("b")], ["b", "a"]),
    ],
)
def test_others_fail(actual: Any, expected: Any) -> None:
    lines_of(actual, expected)


def test_both_sides_are_shown_with_the_difference_of_each_row() -> None:
    actual = [record("a", 10), Watermark(10), record("b", 21), WatermarkStatus.IDLE, Watermark(MAX_TIMESTAMP)]
    expected = [record("a", 10), Watermark(10), record("c", 20), "d", Watermark(MAX_TIMESTAMP)]
    assert lines_of(actual, expected) == [
        "the output differs first at element 2 (5 expected, 5 there)",
        "     expected       actual",
        "  0  'a' @ 10       'a' @ 10",
        "  1  watermark 10   watermark 10",
        "> 2  'c' @ 20       'b' @ 21       value: 'b', not 'c'; timestamp: 21, not 20",
        "> 3  'd' @ any      idle           a status, not a record",
        "  4  watermark MAX  watermark MAX",
    ]


def test_one_element_too_many_or_too_few_does_not_shift_the_others() -> None:
    everything = [record(i, i) for i in range(8)]
    assert lines_of(everything, [e for e in everything if e.value != 2])[1:6] == [
        "     expected  actual",
        "  0  0 @ 0     0 @ 0",
        "  1  1 @ 1     1 @ 1",
        "> 2            2 @ 2   unexpected",
        "  3  3 @ 3     3 @ 3",
    ]
    assert "> 2  2 @ 2             missing" in lines_of([e for e in everything if e.value != 2], everything)


def test_equal_elements_far_from_a_difference_are_left_out() -> None:
    everything = [record(i) for i in range(100)]
    lines = lines_of([*everything[:50], record(-1), *everything[51:]], everything)
    assert lines[0] == "the output differs first at element 50 (100 expected, 100 there)"
    assert lines[2:] == [
        "  ... 48 equal",
        "  48  48 @ none  48 @ none",
        "  49  49 @ none  49 @ none",
        "> 50  50 @ none  -1 @ none  value: -1, not 50",
        "  51  51 @ none  51 @ none",
        "  52  52 @ none  52 @ none",
        "  ... 47 more, equal",
    ]


def test_many_differences_are_cut_off() -> None:
    lines = lines_of([record(i) for i in range(100)], [record(-1) for i in range(100)])
    assert len(lines) == 43
    assert lines[-1] == "  ... 60 more, 60 of them different"


def test_large_outputs_are_compared_by_position() -> None:
    lines = lines_of([record(i) for i in range(1, 1001)], [record(i) for i in reversed(range(1000))])
    assert lines[0] == "the output differs first at element 0 (1000 expected, 1000 there)"


@dataclass
class Alert:
    account: str
    amounts: tuple[float, ...]


@pytest.mark.parametrize(
    ("actual", "expected", "note"),
    [
        (Alert("a", (1.0, 2.0)), Alert("a", (1.0, 3.0)), "value.amounts[1]: 2.0, not 3.0"),
        ({"a": 1, "b": [1]}, {"a": 2, "b": [2]}, "value['a']: 1, not 2; value['b'][0]: 1, not 2"),
        (Row(user="ada", age=36), Row(user="ada", age=35), "value.age: 36, not 35"),
        (Row("ada", 36), Row("ada", 35), "value[1]: 36, not 35"),
        (["a"], ["a", "b"], "value: ['a'], not ['a', 'b']"),
        ("1", 1, "value: '1', not 1 (str, not int)"),
        (tuple(range(5)), (9,) * 5, "value[0]: 0, not 9; value[1]: 1, not 9; value[2]: 2, not 9; 2 more"),
    ],
)
def test_the_part_of_a_value_that_differs_is_named(actual: Any, expected: Any, note: str) -> None:
    assert lines_of([record(actual)], [record(expected)])[2].endswith(f"  {note}")


def test_what_is_too_long_for_a_column_is_shown_in_full_below() -> None:
    lines = lines_of([record("x" * 100, 5)], [record("x" * 99 + "y", 5)])
    assert lines[2].startswith(
        f"> 0  '{'x' * 26} ... {'x' * 10}y' @ 5  '{'x' * 26} ... {'x' * 11}' @ 5  value: "
    )
    assert lines[3:] == [
        "first difference in full:",
        f"  expected  '{'x' * 99}y' @ 5",
        f"  actual    '{'x' * 100}' @ 5",
        f"  differs   value: '{'x' * 100}', not '{'x' * 99}y'",
    ]


# ---- in any order ----


def test_records_may_come_in_any_order_between_watermarks() -> None:
    actual = [record("a", 1), record("b", 2), Watermark(2), record("c", 3)]
    assert_output(actual, [record("b", 2), record("a", 1), Watermark(2), record("c", 3)], ignore_order=True)
    assert_output(actual, ["b", record("a", 1), Watermark(2), "c"], ignore_order=True)


def test_a_record_that_needs_a_timestamp_is_served_before_one_that_takes_any() -> None:
    assert_output([record("a", 1), record("a", 2)], ["a", record("a", 1)], ignore_order=True)


def test_records_do_not_change_places_with_watermarks() -> None:
    actual = [record("a", 1), Watermark(2), record("b", 2)]
    assert lines_of(actual, ["b", "a", Watermark(2)], ignore_order=True) == [
        "the output differs first at element 1 (3 expected, 3 there)",
        "     expected     actual",
        "  0  'a' @ any    'a' @ 1",
        "> 1  'b' @ any                 missing",
        "  2  watermark 2  watermark 2",
        "> 3               'b' @ 2      unexpected",
    ]


def test_the_same_record_counts_as_often_as_it_comes() -> None:
    lines_of([record("a"), record("a"), record("b")], ["a", "b", "b"], ignore_order=True)


def test_another_watermark_is_seen_in_any_order() -> None:
    lines_of([record("a"), Watermark(1)], ["a", Watermark(2)], ignore_order=True)
    lines_of([record("a"), Watermark(1)], ["a"], ignore_order=True)
    lines_of([record("a")], ["a", Watermark(1)], ignore_order=True)
