"""Functions in Python as Flink's planner knows them: by name and types."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from flinkcore.errors import ConfigurationError
from flinkcore.sql.planner.statements import Statement
from flinkcore.table.udf import AggregateFunction, DeclaredFunction, udaf

_PART: Final = r"(?:`(?:[^`]|``)+`|[\w$]+)"
_NAME: Final = rf"{_PART}(?:\s*\.\s*{_PART})*"
_STATEMENT: Final = re.compile(
    r"(?:CREATE|ALTER|DROP)\s+(?:TEMPORARY\s+)?(?:SYSTEM\s+)?FUNCTION\s+"
    rf"(?:IF\s+(?:NOT\s+)?EXISTS\s+)?(?P<name>{_NAME})"
    r"(?:\s*AS\s*'(?P<code>(?:[^']|'')*)'(?:\s*LANGUAGE\s+(?P<language>\w+))?)?",
    re.IGNORECASE,
)
_OBJECT: Final = re.compile(
    r"(?P<verb>CREATE|DROP)\s+(?P<temporary>TEMPORARY\s+)?(?P<kind>(?:SYSTEM\s+)?FUNCTION|TABLE|VIEW)\s+"
    rf"(?:IF\s+(?:NOT\s+)?EXISTS\s+)?(?P<name>{_NAME})",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class CreatedFunction:
    """A function in Python that a statement creates.

    Attributes
    ----------
    statement : int or None
        Number of the statement in its script, from 0, or None if `text` comes before the script.
    text : str
        The statement.
    function : DeclaredFunction
    """

    statement: int | None
    text: str
    function: DeclaredFunction

    def declaration(self, number: int) -> dict[str, Any]:
        """Return the types of the function, and its number, for the planner."""
        inputs = self.function.input_types
        return {
            "number": number,
            "statement": self.statement,
            "text": self.text,
            "kind": self.function.kind,
            "result": self.function.result_type,
            "inputs": None if inputs is None else list(inputs),
        }


def functions_of(statements: Sequence[Statement], given: Mapping[str, Any]) -> list[CreatedFunction]:
    """Return the functions that statements create in the language Python, which are imported, and the given ones.

    A given function stands for those of its name, perhaps with catalog and database, that the statements create.
    Otherwise it is there before them.

    Raises
    ------
    ConfigurationError
        If one cannot be imported, or its types are not known.
    """
    left = {_parts(name): (name, declared_function(name, function)) for name, function in given.items()}
    stands_for: dict[tuple[str, ...], DeclaredFunction] = {}
    found = []
    for number, statement in enumerate(statements):
        created = _STATEMENT.match(statement.text)
        if created is None or created["code"] is None:
            continue
        function, parts = statement.function, _parts(created["name"])
        if function is None:
            same = next((each for each in (*left, *stands_for) if _is_same(each, parts)), None)
            if same in left:
                stands_for[same] = left.pop(same)[1]
            if same is not None:
                function = stands_for[same]
            elif (created["language"] or "").upper() == "PYTHON":
                function = declared_function(created["name"], _imported(created["code"].replace("''", "'")))
        if function is not None:
            found.append(CreatedFunction(number, statement.text, function))
    return [*(CreatedFunction(None, _text(name), function) for name, function in left.values()), *found]


def creation(name: str, is_system: bool, function: DeclaredFunction) -> Statement:
    """Return the statement that creates a temporary function in Python."""
    system = "SYSTEM " if is_system else ""
    text = f"CREATE TEMPORARY {system}FUNCTION {name} AS '{function.name}' LANGUAGE PYTHON"
    return Statement(text, function=function)


def has_object(statements: Sequence[Statement], name: str, kind: str, *, is_temporary: bool = True) -> bool:
    """Return whether there is a temporary, or a permanent, object of a name, as it is written, after statements.

    Names of tables and views have a case in Flink, and those of functions none.

    Parameters
    ----------
    statements : sequence of Statement
    name : str
    kind : str
        "FUNCTION", "SYSTEM FUNCTION", "TABLE" or "VIEW".
    is_temporary : bool
    """
    has, parts_of = False, _parts if kind.endswith("FUNCTION") else _cased_parts
    for statement in statements:
        match = _OBJECT.match(statement.text)
        if match is None or " ".join(match["kind"].upper().split()) != kind:
            continue
        if (match["temporary"] is not None) != is_temporary:
            continue
        if parts_of(match["name"]) == parts_of(name):
            has = match["verb"].upper() == "CREATE"
    return has


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


def _text(name: str) -> str:
    """Return the statement that creates a given function: of the system, unless its name has a database."""
    if re.fullmatch(_NAME, name) is None:
        name = f"`{name.replace('`', '``')}`"
    parts = re.findall(_PART, name)
    system = "SYSTEM " if len(parts) == 1 else ""
    quoted = ".".join(each if each.startswith("`") else f"`{each}`" for each in parts)
    return f"CREATE TEMPORARY {system}FUNCTION {quoted} AS 'given'"


def _parts(name: str) -> tuple[str, ...]:
    """Return the parts of a name without their quotes, in lower case: names of functions have no case in Flink."""
    return tuple(each.lower() for each in _cased_parts(name))


def _cased_parts(name: str) -> tuple[str, ...]:
    parts = re.findall(_PART, name) if re.fullmatch(_NAME, name) else [name]
    return tuple(each[1:-1].replace("``", "`") if each.startswith("`") else each for each in parts)


def _is_same(first: tuple[str, ...], second: tuple[str, ...]) -> bool:
    """Return whether names may be of one function, of which one may lack catalog or database."""
    common = min(len(first), len(second))
    return first[-common:] == second[-common:]
