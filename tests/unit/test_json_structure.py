import pytest

from flinkcore._native.event_log import json_structure


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
    assert json_structure(text) == (depth, False)


@pytest.mark.parametrize(
    "text", [b'{"[[[": "{{{"}', rb'{"a": "\"[[["}', rb'{"a": "\\", "b": "[[[\\"}', rb'{"a": "\\\"[[["}']
)
def test_brackets_within_text_do_not_count(text):
    assert json_structure(text) == (1, False)


def test_text_that_is_not_closed_ends_with_its_line():
    assert json_structure(b'{"a": "[[[\n[[') == (3, False)
    assert json_structure(b'{"a": "[[[\\\n[[') == (3, False)


@pytest.mark.parametrize(
    "text",
    [
        b"null",
        b'{"a": null}\nnull\n',
        b'{"a": 1} null {"a": 2}',
        b'{"a": "\\""}\r\n \tnull',
        b"\xef\xbb\xbfnull",
        b"[]null",
    ],
)
def test_a_null_outside_of_objects_is_told(text):
    assert json_structure(text)[1]


@pytest.mark.parametrize(
    "text", [b'{"a": null, "null": [null]}', b'{"a": "} null"}', b'"null"', b'{"a":\nnull}']
)
def test_a_null_within_an_object_or_text_is_a_value(text):
    assert not json_structure(text)[1]
