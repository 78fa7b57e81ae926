"""Values of programs' outputs as JSON, the same for PyFlink's classes and flinkcore's.

Needs neither of the two: it runs in the environment of either.
"""

import json
import math
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


def comparable(outputs: dict[str, list[Any]], ordered: bool) -> dict[str, list[str]]:
    """Return canonical outputs as text, in which 1, 1.0 and True differ; sorted, if the order does not matter."""
    texts = {name: [json.dumps(value) for value in values] for name, values in outputs.items()}
    return texts if ordered else {name: sorted(values) for name, values in texts.items()}
