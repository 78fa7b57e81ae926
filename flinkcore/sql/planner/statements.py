"""The statements of a script of Flink SQL, with their places; Flink parses them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from flinkcore.table.udf import DeclaredFunction

_TOKEN: Final = re.compile(
    r"(?P<text>'(?:[^']|'')*'|`(?:[^`]|``)*`|/\*\+.*?\*/)|(?P<comment>--[^\n]*|/\*.*?\*/)|(?P<end>;)",
    re.DOTALL,
)
_SET_OF_INSERTS: Final = re.compile(
    r"\s*(?:EXECUTE|EXPLAIN\b[\w\s,]*?)\s+STATEMENT\s+SET\s+BEGIN\b", re.IGNORECASE
)
_BEGIN_OF_CLIENT: Final = re.compile(r"(\s*)BEGIN\s+STATEMENT\s+SET\s*", re.IGNORECASE)
_END: Final = re.compile(r"(?:.*;)?\s*END\s*", re.IGNORECASE | re.DOTALL)
_WORD: Final = re.compile(r"[A-Za-z]+")
_PLANNED: Final = frozenset(("SELECT", "WITH", "VALUES", "TABLE", "INSERT", "EXECUTE", "REPLACE", "UPSERT"))
_KEPT: Final = frozenset(("CREATE", "DROP", "ALTER", "USE", "LOAD", "UNLOAD", "SET", "RESET", "ADD"))
_ASKING: Final = frozenset(("SHOW", "DESC", "DESCRIBE", "EXPLAIN"))
_GROUP: Final = re.compile(r"\([^()]*\)")
_TABLE_OF_QUERY: Final = re.compile(
    r"CREATE\s+(?:OR\s+REPLACE\s+)?(?:TEMPORARY\s+|MATERIALIZED\s+)?TABLE\b.*\bAS\b",
    re.IGNORECASE | re.DOTALL,
)
_QUERIES: Final = frozenset(("SELECT", "WITH", "VALUES", "TABLE"))


@dataclass(frozen=True)
class Statement:
    """A statement of a script.

    Attributes
    ----------
    text : str
        Its text without comments.
    line, column : int
        Place of its first character in the script, counted from 1.
    function : DeclaredFunction or None
        The function in Python that it creates, if a program gives it.
    view : tuple of (str, object) or None
        Name of the view that it makes, and the calls of the Table API that return the table, or None if it is text.
    """

    text: str
    line: int = 1
    column: int = 1
    function: DeclaredFunction | None = None
    view: tuple[str, Any] | None = None

    @property
    def padded(self) -> str:
        """The text after as many line breaks and spaces that its places are those of the script."""
        return "\n" * (self.line - 1) + " " * (self.column - 1) + self.text

    @property
    def first_word(self) -> str:
        """Its first word in upper case, or an empty text if it begins with another character, such as a parenthesis."""
        found = _WORD.match(self.text)
        return found.group().upper() if found else ""

    @property
    def is_planned(self) -> bool:
        """Return whether it is a query or an insertion, for which Flink plans a job."""
        return self.first_word in _PLANNED or self.text.startswith("(")

    @property
    def is_query(self) -> bool:
        """Return whether it is a query, whose rows are the result."""
        return self.first_word in _QUERIES or self.text.startswith("(")

    @property
    def is_kept(self) -> bool:
        """Return whether it changes the catalog or the session, without rows of its own."""
        return self.first_word in _KEPT and not self.creates_from_query

    @property
    def asks(self) -> bool:
        """Return whether it asks about the catalog or a plan, such as ``SHOW TABLES``."""
        return self.first_word in _ASKING

    @property
    def creates_from_query(self) -> bool:
        """Return whether it creates a table with the rows of a query (``CREATE TABLE ... AS``)."""
        outside, count = _TOKEN.sub(" ", self.text), 1
        while count:
            outside, count = _GROUP.subn(" ", outside)
        return _TABLE_OF_QUERY.match(outside) is not None

    @property
    def shown(self) -> str:
        """Its text in one line, cut for messages."""
        line = " ".join(self.text.split())
        return line if len(line) <= 120 else line[:117] + "..."


def statements_of(script: str) -> list[Statement]:
    """Return the statements of a script.

    Semicolons in texts, names, comments and statement sets do not end a statement. Comments become spaces; hints stay.
    """
    found: list[Statement] = []
    start, is_set, parts = 0, False, []
    position = 0
    for token in _TOKEN.finditer(script):
        parts.append(script[position : token.start()])
        position = token.end()
        if token["comment"] is not None:
            parts.append(re.sub(r"[^\n]", " ", token[0]))
        elif token["text"] is not None:
            parts.append(token[0])
        else:
            text = "".join(parts)
            if not is_set and _BEGIN_OF_CLIENT.fullmatch(text):
                parts, is_set = [_BEGIN_OF_CLIENT.sub(r"\1EXECUTE STATEMENT SET BEGIN ", text)], True
                continue
            is_set = is_set or _SET_OF_INSERTS.match(text) is not None
            if is_set and not _END.fullmatch(text):
                parts.append(";")
                continue
            found += _statement(script, start, text)
            start, is_set, parts = position, False, []
    parts.append(script[position:])
    return found + _statement(script, start, "".join(parts))


def _statement(script: str, start: int, text: str) -> list[Statement]:
    stripped = text.strip()
    if not stripped:
        return []
    first = start + len(text) - len(text.lstrip())
    before = script[:first]
    return [Statement(stripped, before.count("\n") + 1, first - before.rfind("\n"))]
