"""Scripts as plans: each query and insertion of a script with its compiled plan and the settings in force."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from flinkcore.errors import SqlError, UnsupportedOperationError
from flinkcore.sql.planner.declared_functions import CreatedFunction, functions_of
from flinkcore.sql.planner.flink_process import PROCESS, SOURCE, FlinkLibraries, required_libraries
from flinkcore.sql.planner.plan_cache import cache_key, cached_answer, keep_answer
from flinkcore.sql.planner.statements import Statement
from flinkcore.table.udf import DeclaredFunction

QUERY_SINK: Final = "select"
"""Name of the sink of a query's plan."""

_PLACE: Final = re.compile(
    r"(?:[Ff]rom |[Aa]t )?line (\d+), column (\d+)(?: to line \d+, column \d+)?(?::\s*)?"
)
_GENERAL: Final = re.compile(r"SQL (?:validation|parse) failed\. ")
_UNSUPPORTED: Final = "java.lang.UnsupportedOperationException"
_MOST_SHOWN: Final = 500


@dataclass(frozen=True, eq=False)
class PlannedStatement:
    """A query, an insertion or a statement set.

    Attributes
    ----------
    statement : Statement
    is_query : bool
        Whether it is a query, whose rows go into the sink `QUERY_SINK`.
    settings : mapping of str to str
        Settings that the script has set before, and those that were given.
    plan : mapping
        Its compiled plan.
    functions : mapping of str to DeclaredFunction
        The functions in Python that are there, by the names that the plan has for them.
    """

    statement: Statement
    is_query: bool
    settings: Mapping[str, str]
    plan: Mapping[str, Any]
    functions: Mapping[str, DeclaredFunction]


@dataclass(frozen=True, eq=False)
class SessionAnswer:
    """The answer of Flink to a question about a session, such as its tables.

    Attributes
    ----------
    columns : sequence of str
    rows : sequence of sequences
        Texts, and values of ``BOOLEAN``.
    printed : str
        As Flink prints it.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str | bool | None]]
    printed: str


def planned(
    statements: Sequence[Statement], settings: Mapping[str, str], functions: Mapping[str, Any] | None = None
) -> list[PlannedStatement]:
    """Return the jobs of a script.

    Parameters
    ----------
    statements : sequence of Statement
    settings : mapping of str to str
        Settings of the session at its start.
    functions : mapping of str to function, optional
        Functions in Python by name, which stand for those of the statements, as of `functions_of`.

    Raises
    ------
    ConfigurationError
        If Flink or Java is not installed, or a function cannot be imported, or its types are not known.
    SqlError
        If Flink refuses a statement.
    UnsupportedOperationError
        If a statement is not supported.
    """
    for each in statements:
        if each.asks:
            raise _unsupported(each)
    created, steps = _answered(statements, settings, functions)
    return [
        PlannedStatement(
            statements[step["statement"]],
            step["is_query"],
            step["settings"],
            step["plan"],
            {name: created[number].function for name, number in step.get("functions", {}).items()},
        )
        for step in steps
    ]


def session_answers(statements: Sequence[Statement], settings: Mapping[str, str]) -> list[SessionAnswer]:
    """Return the answers of Flink to the statements that ask about the session; errors are those of `planned`."""
    _, steps = _answered(statements, settings, None)
    return [SessionAnswer(step["columns"], step["rows"], step["printed"]) for step in steps]


def _answered(
    statements: Sequence[Statement], settings: Mapping[str, str], functions: Mapping[str, Any] | None
) -> tuple[Sequence[CreatedFunction], Sequence[Mapping[str, Any]]]:
    """Return the functions that statements create, and the planner's steps."""
    created = functions_of(statements, functions or {})
    declared = [each.declaration(number) for number, each in enumerate(created)]
    # A view of calls is an object in place of a text.
    texts = [each.padded if each.view is None else list(each.view) for each in statements]
    libraries = FlinkLibraries.found()
    key = cache_key(texts, settings, declared, SOURCE.read_bytes())
    answer = cached_answer(key, None if libraries is None else libraries.version)
    if answer is None:
        libraries = required_libraries()
        answer = PROCESS.answer(libraries, texts, settings, declared)
        if "steps" not in answer:
            raise _failure(statements[answer["statement"]], answer["messages"], answer["failure"])
        for step in answer["steps"]:
            if "plan" in step:
                _renumber(step["plan"])
        keep_answer(key, libraries.version, answer)
    return created, answer["steps"]


def _renumber(plan: Mapping[str, Any]) -> None:
    """Number the nodes from 1; Flink's numbers depend on all plans that the process has made."""
    numbers = {node["id"]: number for number, node in enumerate(plan["nodes"], 1)}
    for node in plan["nodes"]:
        node["id"] = numbers[node["id"]]
    for edge in plan["edges"]:
        edge.update(source=numbers[edge["source"]], target=numbers[edge["target"]])


def _remedy(statement: Statement) -> str:
    if re.match(r"COMPILE\b", statement.shown, re.IGNORECASE):
        return "Write its INSERT INTO alone: the plan is compiled when the script runs, and kept"
    if re.match(r"EXECUTE\s+PLAN\b", statement.shown, re.IGNORECASE):
        return "Give the plan in place of the script, as in flinkcore sql plan.json or from_plan"
    if statement.asks:
        return "Leave it out, or call execute_sql of a StreamTableEnvironment"
    return "Leave it out"


def _unsupported(statement: Statement) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"line {statement.line}: the statement {statement.shown!r} is not supported: scripts create tables, views "
        f"and databases, set settings, query and insert. {_remedy(statement)}"
    )


def _failure(statement: Statement, messages: Sequence[str], failure: str) -> Exception:
    """Return the error for an exception of the planner: a message without Java, with its place in the script."""
    if failure == _UNSUPPORTED and re.fullmatch(r"\w+", messages[0]):
        return _unsupported(statement)
    if statement.view is not None:
        return SqlError(f"Flink refuses {statement.shown}: {_reason(messages)}", statement=statement.text)
    place = next((found for message in messages if (found := _PLACE.search(message))), None)
    line, column = (statement.line, statement.column) if place is None else map(int, place.groups())
    reason = _reason(messages)
    return SqlError(
        f"Flink refuses the statement at line {line}, column {column}: {reason}. It reads {statement.shown!r}",
        line=line,
        column=column,
        statement=statement.text,
    )


def _reason(messages: Sequence[str]) -> str:
    reasons: list[str] = []
    for message in messages:
        reason = _PLACE.sub("", _GENERAL.sub("", message)).partition("\nWas expecting")[0]
        reason = " ".join(reason.split()).rstrip(".")
        if reason and not any(reason in each for each in reasons):
            reasons.append(reason)
    shown = ": ".join(reasons)
    return shown if len(shown) <= _MOST_SHOWN else shown[: _MOST_SHOWN - 3] + "..."
