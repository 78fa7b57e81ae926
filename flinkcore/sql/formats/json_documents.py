"""JSON as Jackson reads and writes it: numbers with a fraction keep their digits, and text after a value is ignored."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER: Final = json.JSONDecoder(parse_float=Decimal, parse_constant=_no_constant)
_BLANKS: Final = re.compile(r"[ \t\n\r]*")
_AFTER_NUMBER: Final = re.compile(r"[ \t\n\r]|$")
_AFTER_WORD: Final = re.compile(r"[^0-9A-Za-z_$]|$")


def read_json(text: str) -> Any:
    """Return the value at the beginning of a text: Python's of JSON, numbers with a fraction or exponent as Decimal.

    Raises
    ------
    ValueError
        If the text does not begin with a value of JSON.
    """
    start = _BLANKS.match(text)
    assert start is not None
    try:
        value, end = _DECODER.raw_decode(text, start.end())
    except RecursionError:
        raise ValueError("the document is nested too deeply") from None
    is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    after = _AFTER_NUMBER if is_number else _AFTER_WORD if value is None or isinstance(value, bool) else None
    if after is not None and after.match(text, end) is None:
        raise ValueError(f"{text[end]!r} after a value")
    return value


_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_ESCAPED: Final = re.compile(r'["\\\x00-\x1f]')


def quoted(text: str) -> str:
    """Return a text as a string of JSON, as Jackson escapes it."""
    if not _ESCAPED.search(text):
        return f'"{text}"'
    return '"' + _ESCAPED.sub(lambda match: _ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04X}", text) + '"'


def scalar_text(value: Any) -> str:
    """Return a scalar as Java's ``toString`` writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal) and not value:
        return str(value.copy_abs())  # a BigDecimal has no -0
    return str(value)


def write_json(value: Any) -> str:
    """Return a value as JSON without blanks; the keys of objects are sorted, as in Flink's functions."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, Mapping):
        fields = sorted(value.items(), key=lambda item: _utf16_order(item[0]))
        return "{" + ",".join(f"{quoted(key)}:{write_json(each)}" for key, each in fields) + "}"
    if isinstance(value, Sequence):
        return "[" + ",".join(map(write_json, value)) + "]"
    return scalar_text(value)


def _utf16_order(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def without_halves(text: str) -> str:
    """Return a text with a question mark for each half of a surrogate pair, as Java encodes them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").replace("\ufffd", "?")
    return text


_QUOTED: Final = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\b": "\\b", "\f": "\\f", "\n": "\\n"}
_QUOTED.update({"\r": "\\r", "\t": "\\t"})


def json_quote(text: str) -> str:
    """Return Flink's JSON_QUOTE, which also escapes slashes, and writes a supplementary character in its own way."""
    parts = ['"']
    for mark in text:
        code = ord(mark)
        if code > 0xFFFF:  # the code point, and then the lower half once more
            parts.append(f"\\u{code:04x}\\u{0xDC00 + (code & 0x3FF):04x}")
        elif code > 0x7F:
            parts.append(f"\\u{code:04x}")
        else:
            parts.append(_QUOTED.get(mark, mark))
    parts.append('"')
    return "".join(parts)


_UNQUOTED: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def json_unquote(text: str) -> str:
    """Return Flink's JSON_UNQUOTE: a string of JSON without its quotes and escapes, any other text as it is."""
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        return text
    try:
        read_json(text)
        units: list[str] = []
        at, end = 1, len(text) - 1
        while at < end:
            mark = text[at]
            if mark == "\\" and at + 1 < end:
                mark = text[at + 1]
                if mark == "u":
                    units.append(chr(int(text[at + 2 : at + 6], 16)))
                    at += 6
                    continue
                mark = _UNQUOTED.get(mark, mark)
                at += 1
            units.append(mark)
            at += 1
    except ValueError:
        return text
    joined = "".join(units).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return without_halves(joined)
