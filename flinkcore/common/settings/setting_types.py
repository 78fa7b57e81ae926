"""Types of settings: how Flink spells their values."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Generic, TypeVar

from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.common.memory_size import MemorySize
from flinkcore.common.time import Duration, Time, interval_ms
from flinkcore.errors import ArgumentTypeError, ConfigurationError

T = TypeVar("T")

_BOOLEANS: Final = {"true": True, "false": False}

_NANOS: Final = {
    "": 1_000_000,
    **dict.fromkeys(("d", "day", "days"), 86_400_000_000_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000_000_000),
    **dict.fromkeys(("min", "m", "minute", "minutes"), 60_000_000_000),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000_000_000),
    **dict.fromkeys(("ms", "milli", "millis", "millisecond", "milliseconds"), 1_000_000),
    **dict.fromkeys(("µs", "micro", "micros", "microsecond", "microseconds"), 1_000),
    **dict.fromkeys(("ns", "nano", "nanos", "nanosecond", "nanoseconds"), 1),
}

_SHOWN_UNITS: Final = ("d", "h", "min", "s", "ms", "µs", "ns")
"""From the coarsest to the finest: a length of time is a whole number of the first one that divides it."""

_ISO_DURATION: Final = (
    r"([-+]?)P(?:([-+]?\d+)D)?(T(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+)(?:[.,](\d{0,9}))?S)?)?"
)


@dataclass(frozen=True)
class SettingType(Generic[T]):
    """Type of a setting: how its values are spelled.

    Attributes
    ----------
    expected : str
        Description of a value, for messages: ``true or false``.
    read : callable
        Returns the value that is given, or that a text spells; raises ValueError if it is none.
    """

    expected: str
    read: Callable[[Any], T]

    def value(self, key: str, given: object) -> T:
        """Return the value that is given for a setting; ConfigurationError if it is none."""
        try:
            return self.read(given)
        except (ValueError, TypeError, OverflowError) as error:
            reason = str(error) if isinstance(error, ConfigurationError) else ""
            why = f": {reason}" if reason else ""
            raise ConfigurationError(f"{key} must be {self.expected}, not {given!r}{why}") from None

    def argument(self, key: str, given: object) -> T:
        """Return the value that a program gives as an argument, where a text spells nothing; errors as of `value`."""
        if isinstance(given, str):
            raise ArgumentTypeError(f"{key} must be {self.expected}, not the text {given!r}")
        return self.value(key, given)


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in _BOOLEANS:
        return _BOOLEANS[value.lower()]
    raise ValueError(value)


def _whole_number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str) or _has_underscore(value):
        raise ValueError(value)
    return int(value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or _has_underscore(value):
        raise ValueError(value)
    return float(value)


def _has_underscore(value: Any) -> bool:
    return isinstance(value, str) and "_" in value  # Python reads 1_0 as ten, Java does not


def _text(value: Any) -> str:
    return value if isinstance(value, str) else as_text(value)


def _duration(value: Any) -> Duration:
    """Return a duration as ``TimeUtils.parseDuration`` does; a number without a unit is milliseconds."""
    if isinstance(value, str):
        length = _spelled_duration(value.strip())
    else:
        if isinstance(value, Time | timedelta):
            value = interval_ms(value, "a setting")
        length = value if isinstance(value, Duration) else Duration.of_millis(_whole_number(value))
    if not MIN_TIMESTAMP <= length.to_millis() <= MAX_TIMESTAMP:
        raise ValueError(value)
    return length


def _spelled_duration(text: str) -> Duration:
    found = re.fullmatch(r"(\d+)\s*(\D*)", text, re.ASCII)
    if found is not None:
        return Duration(nanos=int(found[1]) * _NANOS[_known_unit(found[2].lower())])
    return _iso_duration(text)


def _known_unit(unit: str) -> str:
    if unit not in _NANOS:
        raise ConfigurationError(f"the units are {', '.join(name for name in _NANOS if name)}")
    return unit


def _iso_duration(text: str) -> Duration:
    found = re.fullmatch(_ISO_DURATION, text, re.IGNORECASE | re.ASCII)
    if found is None or found[3] in ("T", "t") or all(part is None for part in found.groups()[1:]):
        raise ValueError(text)
    sign, days, _, hours, minutes, seconds, fraction = found.groups()
    nanos = ((int(days or 0) * 24 + int(hours or 0)) * 60 + int(minutes or 0)) * 60_000_000_000
    nanos += int(seconds or 0) * 1_000_000_000
    below_second = int((fraction or "").ljust(9, "0"))
    nanos += -below_second if (seconds or "").startswith("-") else below_second
    return Duration(nanos=-nanos if sign == "-" else nanos)


def _memory_size(value: Any) -> MemorySize:
    if isinstance(value, MemorySize):
        return value
    return MemorySize.parse(value) if isinstance(value, str) else MemorySize(value)


def split_values(text: str, separator: str) -> list[str]:
    """Return the parts of a text between separators; those in quotation marks may contain it.

    Raises
    ------
    ConfigurationError
        If a quotation mark is not closed.

    Notes
    -----
    Flink's ``StructuredOptionsSplitter.splitEscaped``: a quotation mark within a quoted part is doubled.
    """
    parts: list[str] = []
    pattern = re.compile(rf"""\s*(?:'((?:[^']|'')*)'|"((?:[^"]|"")*)"|([^{separator}]*))\s*({separator}|$)""")
    at = 0
    while at <= len(text):
        found = pattern.match(text, at)
        if found is None or (found[3] is not None and found[3].lstrip()[:1] in ("'", '"')):
            raise ConfigurationError(f"a quotation mark is not closed in {text!r}")
        single, double, plain, end = found.groups()
        if single is not None:
            parts.append(single.replace("''", "'"))
        elif double is not None:
            parts.append(double.replace('""', '"'))
        elif plain.strip():
            parts.append(plain.strip())
        if not end:
            break
        at = found.end()
    return parts


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'" if re.search(r"[:;,'\"]", text) else text


def _list(value: Any) -> list[str]:
    if isinstance(value, str):
        text = value.strip()
        if text.startswith("[") and text.endswith("]"):
            return split_values(text[1:-1], ",")
        lines = text.splitlines()
        if lines and all(line.startswith("- ") for line in lines):
            return [part for line in lines for part in split_values(line[2:], "\n")]
        return split_values(text, ";")
    if not isinstance(value, Sequence):
        raise ValueError(value)
    return [_text(each) for each in value]


def _map(value: Any) -> dict[str, str]:
    if isinstance(value, Mapping):
        return {_text(name): _text(each) for name, each in value.items()}
    if not isinstance(value, str):
        raise ValueError(value)
    text = value.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1]
    values = {}
    for pair in _split_pairs(text):
        parts = split_values(pair, ":")
        if len(parts) != 2:
            raise ConfigurationError(
                f"{pair!r} is not a pair of a name and a value with one colon. Put a value that contains a "
                "colon in quotation marks"
            )
        values[parts[0]] = parts[1]
    return values


def _split_pairs(text: str) -> list[str]:
    """Return the parts between commas that are not within quotation marks, with these marks."""
    pairs = re.findall(r"""(?:'(?:[^']|'')*'|"(?:[^"]|"")*"|[^,'"])+""", text)
    return [pair for pair in pairs if pair.strip()]


def as_text(value: Any) -> str:
    """Return a value as Flink's configuration spells it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Duration):
        unit = next(unit for unit in _SHOWN_UNITS if value.nanos % _NANOS[unit] == 0) if value.nanos else "ms"
        return f"{value.nanos // _NANOS[unit]} {unit}"
    if isinstance(value, bytes | bytearray):
        return f"!!binary |-\n  {b64encode(value).decode()}"
    if isinstance(value, Mapping):
        return ",".join(f"{_quoted(as_text(name))}:{_quoted(as_text(each))}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return ";".join(_quoted(as_text(each)) for each in value)
    return str(value)


BOOLEAN: Final = SettingType("true or false", _boolean)
DOUBLE: Final = SettingType("a number", _number)
STRING: Final = SettingType("a text", _text)
SIGNED_DURATION: Final = SettingType("a length of time such as '200 ms', '1 s' or '-PT1S'", _duration)
MEMORY_SIZE: Final = SettingType("a memory size such as '64 mb'", _memory_size)
LIST: Final = SettingType("a list such as 'a;b'", _list)
MAP: Final = SettingType("pairs such as 'a:1,b:2'", _map)


def integer(lowest: int = -(1 << 63), highest: int = (1 << 63) - 1) -> SettingType[int]:
    """Return the type of whole numbers from the lowest to the highest."""

    def read(value: Any) -> int:
        number = _whole_number(value)
        if not lowest <= number <= highest:
            raise ValueError(value)
        return number

    is_any = lowest == -(1 << 63) and highest == (1 << 63) - 1
    return SettingType("an integer" if is_any else f"an integer from {lowest} to {highest}", read)


def number(lowest: float, highest: float) -> SettingType[float]:
    """Return the type of floating point numbers from the lowest to the highest."""

    def read(value: Any) -> float:
        found = _number(value)
        if not lowest <= found <= highest:
            raise ValueError(value)
        return found

    return SettingType(f"a number from {lowest:g} to {highest:g}", read)


def duration(least_ms: int) -> SettingType[Duration]:
    """Return the type of lengths of time from a number of ms on."""

    def read(value: Any) -> Duration:
        length = _duration(value)
        if length < Duration.of_millis(least_ms):
            raise ValueError(value)
        return length

    least = f" of at least {least_ms} ms" if least_ms else ""
    return SettingType(f"a length of time{least} such as '200 ms', '1 s' or 'PT1S'", read)


DURATION: Final = duration(0)


def one_of(*values: str) -> SettingType[str]:
    """Return the type of some texts, which are matched in any case."""

    def read(value: Any) -> str:
        for each in values:
            if each.lower() == str(value).strip().lower():
                return each
        raise ValueError(value)

    return SettingType(f"one of {', '.join(values)}", read)
