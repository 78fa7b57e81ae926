"""Values of programs' outputs as JSON, the same for PyFlink's classes and flinkcore's.

Needs neither of the two: it runs in the environment of either.
"""

import json
import math
from collections.abc import Iterable
from typing import Any


def canonical(value: Any) -> Any:
    """Return a value as JSON that tells tuples from lists, and rows with their names and kinds from both."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, list):
        return [canonical(each) for each in value]
    if isinstance(value, tuple):
        return {"tuple": [canonical(each) for each in value]}
    if isinstance(value, dict):
        pairs = [[canonical(key), canonical(each)] for key, each in value.items()]
        return {"dict": sorted(pairs, key=json.dumps)}
    if type(value).__name__ == "Row":
        names = getattr(value, "_fields", None)
        fields = [canonical(each) for each in value]
        return {"row": fields, "names": list(names) if names else None, "kind": value.get_row_kind().name}
    return {type(value).__name__: str(value)}


def canonical_outputs(results: Any) -> dict[str, list[Any]]:
    """Return what a program's `run` returned as outputs by name; a list alone is the output `results`."""
    outputs = results if isinstance(results, dict) else {"results": results}
    return {name: [canonical(each) for each in values] for name, values in outputs.items()}


def in_any_order(values: Iterable[Any]) -> list[Any]:
    """Return the multiset of canonical values as a sorted list."""
    return sorted(values, key=lambda value: json.dumps(value, sort_keys=True))


def same(outputs: dict[str, list[Any]], others: dict[str, list[Any]], ordered: bool) -> bool:
    """Return whether two programs put out the same, in the same order if that is asked for."""
    if ordered:
        return json.dumps(outputs, sort_keys=True) == json.dumps(others, sort_keys=True)
    return same(
        {name: in_any_order(values) for name, values in outputs.items()},
        {name: in_any_order(values) for name, values in others.items()},
        ordered=True,
    )
