"""Java's ``String.format`` for values of SQL, as PRINTF calls it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache
from typing import Any, Final

from flinkcore._internal.java.texts import double_text, float_text
from flinkcore.errors import UnsupportedOperationError
from flinkcore.sql.types.logical_types import INTEGERS, Root

_SPECIFIER: Final = re.compile(r"%(?:(\d+)\$|(<))?([-#+ 0,(]*)(\d+)?(?:\.(\d+))?([a-zA-Z%])")
_MOST_WIDE: Final = 1_000_000
_MOST_PLACES: Final = 800
"""Decimal places for which `_EXACT` has all digits of any double."""

_EXACT: Final = Context(prec=1200, rounding=ROUND_HALF_UP, Emin=-999_999, Emax=999_999)


class FormatError(ValueError):
    """The reason why Java throws an ``IllegalFormatException``, for which PRINTF is null."""


class Float(float):
    """A float of 32 bits, which Java writes with fewer digits than the double that it is here."""


@lru_cache(maxsize=256)
def _parts(pattern: str) -> tuple[str | re.Match[str], ...]:
    parts: list[str | re.Match[str]] = []
    at = 0
    while at < len(pattern):
        percent = pattern.find("%", at)
        if percent < 0:
            parts.append(pattern[at:])
            break
        parts.append(pattern[at:percent])
        match = _SPECIFIER.match(pattern, percent)
        if match is None:
            if re.match(r"%[-#+ 0,(<\d$.]*[tT]", pattern[percent:]):
                raise UnsupportedOperationError(f"dates in the format {pattern!r} are not supported")
            raise FormatError(f"no format at {pattern[percent:]!r}")
        if match[6] in "hHtT":
            raise UnsupportedOperationError(f"{match[0]} in the format {pattern!r} is not supported")
        _check_numbers(match)
        parts.append(match)
        at = match.end()
    return tuple(parts)


def _check_numbers(match: re.Match[str]) -> None:
    index, _, _, width, precision, letter = match.groups()
    for number in (index, width, precision):
        if number and (len(number.lstrip("0")) > 10 or int(number) >= 2**31):
            raise FormatError(f"{number} in {match[0]} is not an int of Java")
    if int(width or 0) > _MOST_WIDE or (letter in "eEfgG" and int(precision or 0) > _MOST_PLACES):
        raise UnsupportedOperationError(
            f"the format {match[0]} is not supported: widths up to {_MOST_WIDE}, and {_MOST_PLACES} decimal places, "
            "are. Write a smaller one, or RPAD and LPAD"
        )


def java_format(pattern: str, values: Sequence[Any], kinds: Sequence[Root]) -> str:
    """Return a text with the values at the places that a pattern gives them.

    Parameters
    ----------
    pattern : str
    values : sequence of objects
        Texts of times are those of ``LocalDateTime``; dates and times of day are numbers, as in Flink.
    kinds : sequence of Root

    Raises
    ------
    FormatError
        If Java throws an exception.
    UnsupportedOperationError
        If the pattern has hash codes or dates, or a width or decimal places beyond those that are written here.
    """
    found: list[str] = []
    ordinary, last = 0, -1
    for part in _parts(pattern):
        if isinstance(part, str):
            found.append(part)
            continue
        index, again, flags, width, precision, letter = part.groups()
        if letter in "%n":
            found.append(_literal(letter, flags, width))
            continue
        if index is not None:
            last = int(index) - 1
        elif again is None:
            last, ordinary = ordinary, ordinary + 1
        if not 0 <= last < len(values):
            raise FormatError(f"no argument for {part[0]}")
        digits = None if precision is None else int(precision)
        found.append(
            _formatted(values[last], kinds[last], flags, int(width) if width else None, digits, letter)
        )
    return "".join(found)


def _literal(letter: str, flags: str, width: str | None) -> str:
    if letter == "n":
        if flags or width:
            raise FormatError("%n has no width")
        return "\n"
    return _padded("%", flags, int(width) if width else None)


def _padded(text: str, flags: str, width: int | None) -> str:
    if width is None:
        if "-" in flags:
            raise FormatError("a flag needs a width")
        return text
    missing = width - len(text.encode("utf-16-le")) // 2
    return text + " " * missing if "-" in flags else " " * missing + text


def _formatted(
    value: Any, kind: Root, flags: str, width: int | None, precision: int | None, letter: str
) -> str:
    upper = letter.isupper()
    lower = letter.lower()
    if len(set(flags)) != len(flags) or (upper and lower not in "bsxegac"):
        raise FormatError(f"the format {flags}{letter}")
    if lower in "bsc":
        if set(flags) - {"-"}:
            raise FormatError(f"the flags {flags} of {letter}")
        text = _general(value, kind, precision, lower)
    elif lower in "dxo":
        if precision is not None:
            raise FormatError("an integer has no precision")
        text = _integer(value, kind, flags, width, lower)
    elif lower in "efg":
        text = _float(value, kind, flags, width, precision, lower)
    else:
        raise FormatError(f"the format {letter}")
    return _padded(text.upper() if upper else text, flags, width)


def _general(value: Any, kind: Root, precision: int | None, letter: str) -> str:
    if letter == "c":
        if precision is not None:
            raise FormatError("a character has no precision")
        if value is None:
            return "null"
        if kind not in INTEGERS or kind is Root.BIGINT or not 0 <= value <= 0x10FFFF:
            raise FormatError(f"{value} is not a character")
        return chr(value)
    if letter == "b":
        text = "false" if value is None or value is False else "true"
    elif value is None:
        text = "null"
    elif isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, Float):
        text = float_text(value)
    elif isinstance(value, float):
        text = double_text(value)
    else:
        text = str(value)
    return text if precision is None else _cut(text, precision)


def _cut(text: str, units: int) -> str:
    return text.encode("utf-16-le")[: 2 * units].decode("utf-16-le", "replace").replace("\ufffd", "?")


def _integer(value: Any, kind: Root, flags: str, width: int | None, letter: str) -> str:
    _check_zeros(flags, width)
    if value is None:
        return "null"
    bits = INTEGERS.get(kind, 32 if kind in (Root.DATE, Root.TIME) else 0)
    if not bits:
        raise FormatError(f"{kind.value} as an integer")
    if letter == "d":
        if "#" in flags:
            raise FormatError("the flag # of d")
        return _signed(str(abs(value)), value < 0, flags, width)
    if set(flags) - set("-#0"):
        raise FormatError(f"the flags {flags} of {letter}")
    digits = f"{value % 2**bits:{letter}}"
    prefix = {"x": "0x", "o": "0"}[letter] if "#" in flags else ""
    if "0" in flags and width is not None:
        digits = digits.rjust(width - len(prefix), "0")
    return prefix + digits


def _check_zeros(flags: str, width: int | None) -> None:
    if ("-" in flags and "0" in flags) or ("+" in flags and " " in flags) or ("0" in flags and width is None):
        raise FormatError(f"the flags {flags}")


def _signed(digits: str, negative: bool, flags: str, width: int | None) -> str:
    whole, point, fraction = digits.partition(".")
    if "," in flags:
        whole = f"{int(whole):,}"
    digits = f"{whole}{point}{fraction}"
    sign, end = "", ""
    if negative:
        sign, end = ("(", ")") if "(" in flags else ("-", "")
    elif "+" in flags:
        sign = "+"
    elif " " in flags:
        sign = " "
    if "0" in flags and width is not None:
        digits = digits.rjust(width - len(sign) - len(end), "0")
    return f"{sign}{digits}{end}"


def _float(value: Any, kind: Root, flags: str, width: int | None, precision: int | None, letter: str) -> str:
    _check_zeros(flags, width)
    if ("," in flags and letter == "e") or ("#" in flags and letter == "g"):
        raise FormatError(f"the flags {flags} of {letter}")
    if value is None:
        return _cut("null", precision) if precision is not None else "null"
    if kind not in (Root.FLOAT, Root.DOUBLE):
        raise FormatError(f"{kind.value} as a float")
    if value != value:
        return "NaN"
    negative = value < 0 or str(value).startswith("-")
    if value - value != 0:
        return _signed_word("Infinity", negative, flags)
    exact = Decimal(double_text(abs(value)))  # Java formats the shortest digits of a double
    places = 6 if precision is None else precision
    if letter == "g":
        places = max(places, 1)
        rounded = _rounded_to(exact, places)
        if not rounded or Decimal("0.0001") <= rounded < Decimal(10) ** places:
            letter, places = "f", places - (rounded.adjusted() + 1 if rounded else 1)
        else:
            letter, places = "e", places - 1
    digits = _scientific(exact, places) if letter == "e" else _fixed(exact, places)
    if letter == "e":
        mantissa, _, exponent = digits.partition("e")
        end = f"e{exponent}"
        return _signed(f"{mantissa}", negative, flags, None if width is None else width - len(end)) + end
    return _signed(digits, negative, flags, width)


def _signed_word(word: str, negative: bool, flags: str) -> str:
    if negative:
        return f"({word})" if "(" in flags else f"-{word}"
    return f"+{word}" if "+" in flags else f" {word}" if " " in flags else word


def _rounded_to(value: Decimal, digits: int) -> Decimal:
    if not value:
        return Decimal(0)
    return value.quantize(Decimal(1).scaleb(value.adjusted() - digits + 1), ROUND_HALF_UP, _EXACT)


def _fixed(value: Decimal, places: int) -> str:
    return f"{value.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, _EXACT):f}"


def _scientific(value: Decimal, places: int) -> str:
    rounded = _rounded_to(value, places + 1)
    exponent = rounded.adjusted() if rounded else 0
    mantissa = _fixed(rounded.scaleb(-exponent, _EXACT), places)
    return f"{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
