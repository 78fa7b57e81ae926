import pytest

from flinkcore._native.event_log import json_depth


@pytest.mark.parametrize(
    ("text", "depth"),
    [
        (b"", 0),
        (b"1", 0),
        (b'{"a": [1, [2], {}]}\n{"a": []}\n', 3),
        (b'{"a":\n[\n[\n]\n]\n}\n', 3),
        (b"[][[]]", 2),
    ],
)
def test_the_depth_is_that_of_the_innermost_array_or_object(text, depth):
    assert json_depth(text) == depth


@pytest.mark.parametrize(
    "text", [b'{"[[[": "{{{"}', rb'{"a": "\"[[["}', rb'{"a": "\\", "b": "[[[\\"}', rb'{"a": "\\\"[[["}']
)
def test_brackets_within_text_do_not_count(text):
    assert json_depth(text) == 1


def test_text_that_is_not_closed_ends_with_its_line():
    assert json_depth(b'{"a": "[[[\n[[') == 3
    assert json_depth(b'{"a": "[[[\\\n[[') == 3
