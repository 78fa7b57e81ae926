"""Everything that PyFlink's modules, classes and methods are called is there, or refused with what to use instead."""

import inspect
import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from flinkcore.errors import UnsupportedOperationError

NAMES: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "golden" / "pyflink_names.json").read_text(encoding="utf-8")
)
"""The names of PyFlink 2.3, as tests/recorders/names writes them."""

OTHERWISE = {
    "KeyedStream.AccumulateType",
    "TimeWindowSerializer.serialize",
    "TimeWindowSerializer.deserialize",
    "CountWindowSerializer.serialize",
    "CountWindowSerializer.deserialize",
    "GlobalWindowSerializer.serialize",
    "GlobalWindowSerializer.deserialize",
}
"""What programs do not call: of PyFlink's own sums; its serializers write into streams of coders, not bytes."""


def differences(place: str, found: Any, members: dict[str, Any]) -> Iterator[str]:
    """Yield what a class lacks: methods, parameters by their name, classes within it."""
    for name, content in members.items():
        if f"{place}.{name}" in OTHERWISE:
            continue
        try:
            member = getattr(found, name)
        except UnsupportedOperationError:
            continue
        except AttributeError:
            yield f"{place}.{name}"
            continue
        if isinstance(content, dict):
            yield from differences(f"{place}.{name}", member, content)
        elif content:
            yield from (f"{place}.{name}({parameter}=)" for parameter in lacking(member, content))


def lacking(function: Any, parameters: list[str]) -> list[str]:
    try:
        taken = inspect.signature(function).parameters
    except (TypeError, ValueError):  # a property, or a method in C
        return []
    if any(each.kind in (each.VAR_KEYWORD, each.VAR_POSITIONAL) for each in taken.values()):
        return []
    return [name for name in parameters if name not in taken]


@pytest.mark.parametrize("name", NAMES)
def test_what_pyflink_has_is_there_or_refused_with_what_to_use_instead(name: str) -> None:
    place = name.replace("pyflink", "flinkcore", 1)
    try:
        module = import_module(place)
    except UnsupportedOperationError:
        return
    missing = []
    for called, members in NAMES[name].items():
        try:
            found = getattr(module, called)
        except UnsupportedOperationError:
            continue
        except AttributeError:
            missing.append(called)
            continue
        missing += differences(called, found, members or {})
    assert missing == []
