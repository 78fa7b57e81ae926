import json

import pytest

from flinkcore._native.json_lines import JsonKeys


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
    assert JsonKeys().scan(text) == (depth, False)


@pytest.mark.parametrize(
    "text", [b'{"[[[": "{{{"}', rb'{"a": "\"[[["}', rb'{"a": "\\", "b": "[[[\\"}', rb'{"a": "\\\"[[["}']
)
def test_brackets_within_text_do_not_count(text):
    assert JsonKeys().scan(text) == (1, False)


def test_text_that_is_not_closed_ends_with_its_line():
    assert JsonKeys().scan(b'{"a": "[[[\n[[') == (3, False)
    assert JsonKeys().scan(b'{"a": "[[[\\\n[[') == (3, False)


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
    assert JsonKeys().scan(text)[1]


@pytest.mark.parametrize(
    "text", [b'{"a": null, "null": [null]}', b'{"a": "} null"}', b'"null"', b'{"a":\nnull}']
)
def test_a_null_within_an_object_or_text_is_a_value(text):
    assert not JsonKeys().scan(text)[1]


KNOWN = [
    (-1, b"", 1),
    (0, b"ts", 0),
    (0, b"payload", 1),
    (2, b"size", 0),
    (2, "größe".encode(), 0),
    (0, b"items", 2),
    (5, b"", 1),
    (6, b"id", 0),
    (0, b"free", 0),
    (0, b"matrix", 2),
    (9, b"", 2),
    (10, b"", 1),
    (11, b"x", 0),
]


def others(*blocks):
    keys = JsonKeys(KNOWN)
    for block in blocks:
        keys.scan(block)
    assert keys.left_out == 0
    assert keys.line == 1 + sum(block.count(b"\n") for block in blocks)
    return keys.others()


@pytest.mark.parametrize(
    "text",
    [
        b'{"ts": 1, "payload": {"size": 2}, "items": [{"id": 1}, {"id": 2}], "free": {"a": {"b": 1}}}\n',
        b'{"items": [], "payload": null, "ts": "payload\\": {"}\n{"free": [{"z": 1}]}\n',
        '{"payload": {"größe": 1, "gr\\u00f6\\u00dfe": 2, "size": [{"q": 1}]}}'.encode(),
        b'{"matrix": [[{"x": 1}, {"x": 2}], [], [{"x": 3}]], "ts": 1}',
        b'{"\\u0074s": 1, "ts": [{"in a value": 1}], "items": {"no array": 1}, "payload": [{"no object": 1}]}',
        b"",
        b"1 2 3 , , ]]]} , {",
    ],
)
def test_known_keys_and_those_of_values_that_are_not_looked_into_are_no_others(text):
    assert others(text) == []


def test_other_keys_are_counted_with_the_line_of_the_first():
    text = b"""{"ts": 1}
{"ts": 1, "new": {"within": 1}, "payload": {"new": 1, "size": 2}}
{"new": [{"within": 1}], "items": [{"id": 1, "a,b": "}"}, {"a,b": 2}], "matrix": [[], [{"y": 1}]]}
"""
    assert others(text) == [
        (0, b"new", 2, 2),
        (2, b"new", 1, 2),
        (6, b"a,b", 2, 3),
        (11, b"y", 1, 3),
    ]


def test_lines_are_counted_over_blocks_and_blank_ones():
    assert others(b'{"ts": 1}\n\n\r\n', b'\n{"a": 1}\n', b'{"b": 1, "a": 2}') == [
        (0, b"a", 2, 5),
        (0, b"b", 1, 6),
    ]


def test_keys_that_escapes_spell_are_others_as_spelt():
    assert others(rb'{"n\u0065w": 1, "\"": 2, "\u00": 3}') == [
        (0, rb"n\u0065w", 1, 1),
        (0, rb"\"", 1, 1),
        (0, rb"\u00", 1, 1),
    ]


def test_very_many_other_keys_are_counted_without_their_names():
    keys = JsonKeys(KNOWN)
    for number in range(3000):
        keys.scan(
            json.dumps(
                {"ts": 1, f"key{number}": 1, "gr\u00f6\u00dfe": 1, "payload": {"gr\u00f6\u00dfe": 1}}
            ).encode()
        )
    found = keys.others()
    assert len(found) + 1 == 1000  # and the other spelling of a known key
    assert sum(count for _, _, count, _ in found) + keys.left_out == 6000


def test_keys_are_not_looked_at_in_levels_without_measure():
    assert others(b'{"items": ' + b"[" * 300 + b'{"a": 1}' + b"]" * 300 + b', "b": 1}') == [(0, b"b", 1, 1)]


@pytest.mark.parametrize(
    "known", [[(0, b"", 1)], [(-1, b"", 1), (1, b"a", 0)], [(-1, b"", 3)], [(-1, b"", 1), (-1, b"", 0)]]
)
def test_values_that_lie_in_none_before_them_are_refused(known):
    with pytest.raises(ValueError, match="within one before it"):
        JsonKeys(known)
