"""Functions in Python as Flink's planner knows them: by name and types."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from flinkcore.errors import ConfigurationError
from flinkcore.sql.planner.statements import Statement
from flinkcore.table.udf import AggregateFunction, DeclaredFunction, udaf

_CREATE: Final = re.compile(
    r"CREATE\s+(?:TEMPORARY\s+)?(?:SYSTEM\s+)?FUNCTION\s+(?:IF\s+NOT\s+EXISTS\s+)?(?P<name>[\w.`$]+)\s+AS\s+"
    r"'(?P<code>[^']*)'(?:\s+LANGUAGE\s+(?P<language>\w+))?",
    re.IGNORECASE,
)


def functions_of(statements: Sequence[Statement], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given functions, and those that a script creates in the language Python, which are imported.

    Raises
    ------
    ConfigurationError
        If one cannot be imported.
    """
    found = dict(given)
    for statement in statements:
        created = _CREATE.match(statement.text)
        if created is not None and (created["language"] or "").upper() == "PYTHON":
            name = _last_part(created["name"])
            if name not in map(_last_part, found):
                found[name] = _imported(created["code"])
    return found


def without_created(statements: Sequence[Statement], functions: Mapping[str, Any]) -> list[Statement]:
    """Return statements without those that create functions of these names."""
    known = set(map(_last_part, functions))
    return [
        each
        for each in statements
        if (created := _CREATE.match(each.text)) is None or _last_part(created["name"]) not in known
    ]


def declarations(functions: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the names and types of functions, for the planner.

    Raises
    ------
    ConfigurationError
        If the types of one are not known.
    """
    found = []
    for name, function in functions.items():
        declared = declared_function(name, function)
        result = declared.result_types[0]
        if declared.kind == "table":
            fields = (f"f{number} {each}" for number, each in enumerate(declared.result_types))
            result = f"ROW<{', '.join(fields)}> NOT NULL"
        found.append(
            {
                "name": name.replace("`", ""),
                "kind": declared.kind,
                "result": result,
                "inputs": None if declared.input_types is None else list(declared.input_types),
            }
        )
    return found


def declared_function(name: str, function: Any) -> DeclaredFunction:
    """Return a function with its types; raise ConfigurationError if they are not known."""
    if isinstance(function, type) and issubclass(function, AggregateFunction):
        function = function()
    if isinstance(function, AggregateFunction) and (
        type(function).get_result_type is not AggregateFunction.get_result_type
    ):
        function = udaf(function)
    if not isinstance(function, DeclaredFunction):
        raise ConfigurationError(
            f"Flink's planner needs the types of the function {name}, which is {function!r}. Write "
            f"functions={{{name!r}: udf({getattr(function, '__name__', 'function')}, result_type='BIGINT')}}, with its "
            "type, or udaf or udtf, of flinkcore.table.udf"
        )
    return function


def _imported(code: str) -> Any:
    module, _, attribute = code.rpartition(".")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(
            f"the function {code!r} cannot be imported ({error}). Name a module on the path and an attribute of it"
        ) from error


def _last_part(name: str) -> str:
    return name.replace("`", "").rpartition(".")[2].lower()
