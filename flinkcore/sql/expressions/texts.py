"""Functions of texts. Lengths and positions count code points where Flink's ``BinaryStringData`` does, else UTF-16."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any, Final
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._native.arrow import ColumnArray
from flinkcore._native.text_parts import TextParts, count_found
from flinkcore.sql.expressions.evaluation import (
    Evaluation,
    by_row,
    function,
    integer_of,
    strict,
    text_of,
)
from flinkcore.sql.plan.rex import Literal, RexCall
from flinkcore.sql.types.logical_types import INTEGERS, TEXTS


def _all_ascii(texts: pa.Array) -> bool:
    return bool(pc.all(pc.string_is_ascii(texts), min_count=0).as_py() is not False)


@function("UPPER", "LOWER")
def letters(rows: Evaluation, call: RexCall) -> pa.Array:
    texts = rows(call.operands[0])
    if _all_ascii(texts):
        return pc.ascii_upper(texts) if call.name == "UPPER" else pc.ascii_lower(texts)
    return by_row(rows, call, str.upper if call.name == "UPPER" else str.lower, texts)


@function("CHAR_LENGTH", "CHARACTER_LENGTH", state="pyarrow")
def char_length(rows: Evaluation, call: RexCall) -> pa.Array:
    (text,) = call.operands
    if isinstance(text, RexCall) and text.name == "REPLACE":
        search, replacement = map(text_of, text.operands[1:])
        if search and replacement is not None:  # the replaced text itself is not needed
            texts = rows(text.operands[0])
            counts = pa.array(count_found(ColumnArray(texts), search.encode()))
            return pc.add(pc.utf8_length(texts), pc.multiply(counts, len(replacement) - len(search)))
    return pc.utf8_length(rows(text))


@function("||", "CONCAT", state="pyarrow")
def concat(rows: Evaluation, call: RexCall) -> pa.Array:
    return pc.binary_join_element_wise(*map(rows, call.operands), "")


@function("CONCAT_WS")
def concat_ws(rows: Evaluation, call: RexCall) -> pa.Array:
    """Join the texts that are not null. Arrow's own way to skip nulls loses the rows in which all are null."""
    separator, *texts = map(rows, call.operands)
    joined, has_text = pa.repeat(pa.scalar(""), rows.num_rows), pa.repeat(pa.scalar(False), rows.num_rows)
    for text in texts:
        is_text = pc.is_valid(text)
        added = pc.if_else(has_text, pc.binary_join_element_wise(joined, text.fill_null(""), separator), text)
        joined, has_text = pc.if_else(is_text, added, joined), pc.or_(has_text, is_text)
    return pc.if_else(pc.is_valid(separator), joined, pa.scalar(None, pa.string()))


@function("SUBSTRING", "SUBSTR")
def substring(rows: Evaluation, call: RexCall) -> pa.Array:
    texts, starts, *lengths = map(rows, call.operands)
    return by_row(rows, call, _substring, texts, starts, *lengths)


def _substring(text: str, start: int, length: int | None = None) -> str | None:
    """Return Flink's ``substringSQL``: from 1; 0 is like 1, and negative starts count from the end."""
    at = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    if length is not None and length < 0:
        return None
    if at < 0 or length == 0:
        return ""
    return text[at:] if length is None else text[at : at + length]


@strict("LEFT")
def left(text: str, length: int) -> str:
    return text[:length] if length > 0 else ""


@strict("RIGHT")
def right(text: str, length: int) -> str:
    return text[-length:] if length > 0 else ""


@strict("ASCII")
def ascii_(text: str) -> int:
    first = text.encode()[:1]
    return (first[0] ^ 128) - 128 if first else 0  # bytes of Java have a sign


@strict("CHR")
def chr_(code: int) -> str:
    return "" if code < 0 else chr(code & 0xFF)


@strict("REVERSE")
def reverse(text: str) -> str:
    return text[::-1]


_MOST: Final = 2**30


@strict("REPEAT", fails=True)
def repeat(text: str, times: int) -> str:
    _check_length(len(text) * max(times, 0))
    return text * times


def _check_length(length: int) -> None:
    if length > _MOST:
        raise ValueError(f"a text of {length} characters is too long: at most {_MOST} are supported")


@function("REPLACE")
def replace(rows: Evaluation, call: RexCall) -> pa.Array:
    search, replacement = map(text_of, call.operands[1:])
    if search and replacement is not None:  # an empty text is found between all characters
        return pc.replace_substring(rows(call.operands[0]), search, replacement)
    return by_row(rows, call, str.replace, *map(rows, call.operands))


@strict("STARTSWITH")
def starts_with(text: Any, prefix: Any) -> bool:
    return bool(text.startswith(prefix))


@strict("ENDSWITH")
def ends_with(text: Any, suffix: Any) -> bool:
    return bool(text.endswith(suffix))


@strict("POSITION", "LOCATE")
def position(search: str, text: str, start: int = 1) -> int:
    start = (start - 1 + 2**31) % 2**32 - 2**31
    return text.find(search, max(start, 0)) + 1 if search else 1


@strict("INSTR", fails=True)
def instr(text: str, search: str, start: int = 1, number: int = 1) -> int:
    """Return where a text is found for the n-th time; a negative start is that of a search from the end."""
    if number <= 0:
        raise ValueError(f"nthAppearance must be positive, and is {number}")
    if start < 0:
        found: int = instr(text[::-1], search[::-1], -start, number)
        return found and len(text) + 2 - found - len(search)
    at = start - 1
    for _ in range(number if start else 0):
        at = text.find(search, at) + 1 if search else 1
        if at == 0:
            return 0
    return at if start else 0


@strict("INITCAP")
def initcap(text: str) -> str:
    """Upper the first letter of each word and lower the others, of ASCII letters only, as Flink does."""
    return re.sub(r"[0-9A-Za-z]+", lambda word: word[0][0].upper() + _lower_ascii(word[0][1:]), text)


def _lower_ascii(text: str) -> str:
    return re.sub("[A-Z]", lambda letter: letter[0].lower(), text)


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")


def _of_utf16(units: bytes) -> str:
    # Half of a surrogate pair becomes a question mark in UTF-8, as Java encodes it.
    return re.sub("[\ud800-\udfff]", "?", units.decode("utf-16-le", "surrogatepass"))


def _pad(text: str, length: int, padding: str, on_left: bool) -> str | None:
    units, pad = _utf16(text), _utf16(padding)
    if length < 0 or not pad:
        return None
    _check_length(length)
    if len(units) >= 2 * length:
        return _of_utf16(units[: 2 * length])
    missing = 2 * length - len(units)
    fill = (pad * (missing // len(pad) + 1))[:missing]
    return _of_utf16(fill + units if on_left else units + fill)


@strict("LPAD", fails=True)
def lpad(text: str, length: int, padding: str) -> str | None:
    return _pad(text, length, padding, True)


@strict("RPAD", fails=True)
def rpad(text: str, length: int, padding: str) -> str | None:
    return _pad(text, length, padding, False)


@strict("OVERLAY")
def overlay(text: str, replacement: str, start: int, length: int | None = None) -> str:
    """Return Flink's ``SqlFunctionUtils.overlay``: the text as it is where the start lies outside of it."""
    units, new = _utf16(text), _utf16(replacement)
    count, given = len(units) // 2, len(new) // 2 if length is None else length
    if start <= 0 or start > count:
        return text
    head = units[: 2 * (start - 1)]
    if (start + given > count and given > 0) or given < 0:
        return _of_utf16(head + new)
    return _of_utf16(head + new + units[2 * (start + given - 1) :])


_TRIMS: Final = {"BOTH": (True, True), "LEADING": (True, False), "TRAILING": (False, True)}


@function("TRIM")
def trim(rows: Evaluation, call: RexCall) -> pa.Array:
    symbol = call.operands[0]
    assert isinstance(symbol, Literal)
    leading, trailing = _TRIMS[symbol.value]

    def of_row(characters: str, text: str) -> str:
        text = text.lstrip(characters) if leading else text
        return text.rstrip(characters) if trailing else text

    return by_row(rows, call, of_row, *map(rows, call.operands[1:]))


@strict("LTRIM")
def ltrim(text: str, characters: str = " ") -> str:
    return text.lstrip(characters)


@strict("RTRIM")
def rtrim(text: str, characters: str = " ") -> str:
    return text.rstrip(characters)


@strict("BTRIM")
def btrim(text: str, characters: str = " ") -> str:
    return text.strip(characters)


@function("SPLIT_INDEX")
def split_index(rows: Evaluation, call: RexCall) -> pa.Array:
    separator, number = text_of(call.operands[1]), integer_of(call.operands[2])
    texts = rows(call.operands[0])
    if not separator or number is None or number < 0:
        return by_row(rows, call, _part_at, texts, *map(rows, call.operands[1:]))
    parts = rows.parts.get((call.operands[0], separator))
    if parts is None:
        parts = rows.parts[call.operands[0], separator] = TextParts(ColumnArray(texts), separator.encode())
    return pa.array(parts.part(number))


_BLANK: Final = re.compile("[\t-\r\x1c- \u1680\u2000-\u2006\u2008-\u200a\u2028\u2029\u205f\u3000]")


def _part_at(text: str, separator: str | int, index: int) -> str | None:
    if isinstance(separator, int):
        if not 0 < separator <= 255:
            return None
        separator = chr(separator)
    parts = text.split(separator) if separator else _BLANK.split(text)
    return parts[index] if text and 0 <= index < len(parts) else None


def _hexable(call: RexCall) -> str | None:
    root = call.operands[0].type.root
    return None if root in TEXTS or root in INTEGERS else f"HEX of {call.operands[0].type} is not supported"


@strict("HEX", check=_hexable)
def hex_(value: Any) -> str:
    return value.encode().hex().upper() if isinstance(value, str) else f"{value % 2**64:X}"


@strict("TO_BASE64")
def to_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@strict("FROM_BASE64", fails=True)
def from_base64(text: str) -> str | None:
    """Return decoded bytes as text; Java reads texts without ``=`` at the end, too."""
    missing = -len(text) % 4 if "=" not in text else 0
    return base64.b64decode(text + "=" * missing, validate=True).decode("utf-8", "replace")


_DIGESTS: Final = {"MD5": "md5", "SHA1": "sha1", "SHA224": "sha224", "SHA256": "sha256", "SHA384": "sha384"}


@function(*_DIGESTS, "SHA512")
def digest(rows: Evaluation, call: RexCall) -> pa.Array:
    of_bytes = getattr(hashlib, _DIGESTS.get(call.name, "sha512"))
    return by_row(rows, call, lambda text: of_bytes(text.encode()).hexdigest(), rows(call.operands[0]))


_CHARSETS: Final = {
    "UTF-8": "utf-8",
    "US-ASCII": "ascii",
    "ISO-8859-1": "latin-1",
    "UTF-16": "utf-16",
    "UTF-16BE": "utf-16-be",
    "UTF-16LE": "utf-16-le",
}


def _charset(call: RexCall) -> str | None:
    charset = text_of(call.operands[1])
    if charset is not None and charset.upper() in _CHARSETS:
        return None
    return f"{call.name} takes one of {', '.join(_CHARSETS)}, not {charset!r}"


@function("ENCODE", check=_charset)
def encode(rows: Evaluation, call: RexCall) -> pa.Array:
    charset = _CHARSETS[(text_of(call.operands[1]) or "").upper()]

    def of_row(text: str) -> bytes:
        if charset != "utf-16":
            return text.encode(charset, "replace")
        return b"\xfe\xff" + text.encode("utf-16-be") if text else b""

    return by_row(rows, call, of_row, rows(call.operands[0]))


@function("DECODE", check=_charset)
def decode(rows: Evaluation, call: RexCall) -> pa.Array:
    charset = _CHARSETS[(text_of(call.operands[1]) or "").upper()]

    def of_row(data: bytes) -> str:
        of_data = charset
        if charset == "utf-16" and data[:2] not in (b"\xfe\xff", b"\xff\xfe"):
            of_data = "utf-16-be"
        return data.decode(of_data, "replace")

    return by_row(rows, call, of_row, rows(call.operands[0]))


@function("PARSE_URL")
def parse_url(rows: Evaluation, call: RexCall) -> pa.Array:
    return by_row(rows, call, _url_part, *map(rows, call.operands))


def _url_part(text: str, part: str, key: str | None = None) -> str | None:
    url = urlsplit(text.strip())
    if url.scheme not in ("http", "https", "ftp", "file"):
        return None  # java.net.URL knows no other protocol
    user, _, host = url.netloc.rpartition("@")
    query = url.query if "?" in text.partition("#")[0] else None
    if key is not None:
        match = (
            None if part != "QUERY" or query is None else re.search(f"(?:&|^){re.escape(key)}=([^&]*)", query)
        )
        return None if match is None else match[1]
    found = {
        "PROTOCOL": url.scheme,
        "HOST": re.sub(r":\d*$", "", host),
        "PATH": url.path,
        "QUERY": query,
        "REF": url.fragment if "#" in text else None,
        "FILE": url.path if query is None else f"{url.path}?{query}",
        "AUTHORITY": url.netloc if "://" in text else None,
        "USERINFO": user or None,
    }
    return found.get(part)
