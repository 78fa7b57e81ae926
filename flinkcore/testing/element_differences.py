"""Whether an element is the expected one, and in what it is not."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from flinkcore.common.constants import MAX_TIMESTAMP
from flinkcore.common.row import Row
from flinkcore.common.watermark import Watermark
from flinkcore.runtime.elements import LatencyMarker, StreamRecord, WatermarkStatus

SHOWN_DIFFERENCES = 3


@dataclass(frozen=True)
class AnyTimestamp:
    """Expects a record of a value, whatever its timestamp."""

    value: Any


def expected_element(expected: Any) -> Any:
    """Return what an expectation means: a value that is no element is a record's, of any timestamp."""
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
    """Return in what an element is not the expected one."""
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
    """Return what a value consists of, by how it is reached; None for a value without parts."""
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
