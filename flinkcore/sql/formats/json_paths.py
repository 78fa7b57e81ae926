"""Paths into JSON as Jayway's JsonPath evaluates them, which Flink uses for JSON_VALUE, JSON_QUERY and JSON_EXISTS."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from flinkcore.errors import UnsupportedOperationError


class PathError(ValueError):
    """The reason why a document has no value at a path."""


@dataclass(frozen=True)
class Token:
    """A step of a path.

    Attributes
    ----------
    kind : str
        "names", "indexes", "slice", "all" or "length".
    names : tuple of str
        Names of properties.
    indexes : tuple of int or None
        Indexes, or the start and end of a slice.
    scans : bool
        Whether it is looked for at any depth.
    """

    kind: str
    names: tuple[str, ...] = ()
    indexes: tuple[int | None, ...] = ()
    scans: bool = False

    @property
    def is_definite(self) -> bool:
        return not self.scans and (
            self.kind in ("names", "length") or (self.kind == "indexes" and len(self.indexes) == 1)
        )


@dataclass(frozen=True)
class JsonPath:
    """A path, with the mode in which Flink evaluates it.

    Attributes
    ----------
    tokens : tuple of Token
    is_lax : bool
        Whether a missing value is allowed.
    """

    tokens: tuple[Token, ...]
    is_lax: bool

    def read(self, document: Any) -> Any:
        """Return the value at the path: a list of all that match where the path may match several.

        Raises
        ------
        PathError
            If a strict path that matches at most one value matches none, or null.
        """
        if document is None:
            raise PathError("json object can not be null")
        found = list(self._match(document, 0, True))
        if not all(token.is_definite for token in self.tokens):
            return found
        if found and found[-1] is not None:
            return found[-1]
        if self.is_lax:
            return None
        raise PathError("No results for path")

    def _match(self, value: Any, at: int, upstream: bool) -> Iterator[Any]:
        """Yield the matches of the tokens from one on in a value; `upstream`: all before it are definite."""
        if at == len(self.tokens):
            yield value
            return
        token = self.tokens[at]
        if token.scans:
            yield from self._scan(value, token, at)
        else:
            yield from self._apply(value, token, at, upstream)

    def _apply(self, value: Any, token: Token, at: int, upstream: bool) -> Iterator[Any]:
        definite = upstream and token.is_definite
        if token.kind == "length":
            yield len(value) if isinstance(value, dict | list) else None
        elif token.kind == "all":
            children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
            for child in children:
                try:
                    yield from self._match(child, at + 1, False)
                except PathError:
                    continue
        elif token.kind == "names":
            if not isinstance(value, dict):
                if upstream and not self.is_lax:
                    raise PathError(f"no property {token.names[0]!r}")
            elif len(token.names) > 1:
                merged = {name: value[name] for name in token.names if name in value}
                yield from self._match(merged, at + 1, definite)
            elif token.names[0] in value:
                yield from self._match(value[token.names[0]], at + 1, definite)
            elif at + 1 < len(self.tokens) and definite and not self.is_lax:
                raise PathError(f"no property {token.names[0]!r}")
        elif not isinstance(value, list):
            if upstream and not self.is_lax:
                raise PathError("an index can only be applied to arrays")
        else:
            for index in self._indexes(token, len(value)):
                yield from self._match(value[index], at + 1, definite)

    @staticmethod
    def _indexes(token: Token, length: int) -> Iterator[int]:
        if token.kind == "slice":
            start, end = token.indexes
            yield from range(length)[slice(start, end)]
            return
        for index in token.indexes:
            assert index is not None
            place = index if index >= 0 else length + index
            if 0 <= place < length:
                yield place

    def _scan(self, value: Any, token: Token, at: int) -> Iterator[Any]:
        """Walk a value and all below it, each before its children."""
        is_leaf = at + 1 == len(self.tokens)
        if isinstance(value, dict):
            if token.kind == "all" or (token.kind == "names" and all(name in value for name in token.names)):
                yield from self._apply(value, token, at, False)
            for child in value.values():
                yield from self._scan(child, token, at)
        elif isinstance(value, list):
            if token.kind != "names":
                if is_leaf or token.kind != "all":
                    yield from self._apply(value, token, at, False)
                else:
                    for child in value:
                        yield from self._match(child, at + 1, False)
            for child in value:
                yield from self._scan(child, token, at)


_MODE: Final = re.compile(r"\s*(strict|lax)\s+(.+)", re.IGNORECASE | re.DOTALL)
_NAME: Final = re.compile(r"[^\s.\[\]()*?'\",@$&|!<>=]+")
_BRACKET: Final = re.compile(
    r"\[\s*(?:(?P<all>\*)|(?P<names>(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")(?:\s*,\s*(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"))*)"
    r"|(?P<slice>(?:-?\d+)?\s*:\s*(?:-?\d+)?)|(?P<indexes>-?\d+(?:\s*,\s*-?\d+)*))\s*\]"
)


@lru_cache(maxsize=512)
def json_path(text: str) -> JsonPath:
    """Return a path with its mode, ``strict`` unless the text begins with ``lax``.

    Raises
    ------
    UnsupportedOperationError
        If it has a filter, a script or a function other than ``length()``, or is not a path.
    """
    match = _MODE.fullmatch(text)
    mode, written = ("strict", text) if match is None else (match[1].lower(), match[2])
    written = written.strip()
    if not written.startswith("$"):
        written = f"$.{written}"
    tokens: list[Token] = []
    at = 1
    while at < len(written):
        scans = written.startswith("..", at)
        if scans:
            at += 2
        elif written[at] == ".":
            at += 1
        bracket = _BRACKET.match(written, at)
        if bracket is not None and (scans or written[at - 1] != "."):
            tokens.append(_of_bracket(bracket, scans))
            at = bracket.end()
            continue
        if at > 1 and written[at - 1] == "." and written.startswith("*", at):
            tokens.append(Token("all", scans=scans))
            at += 1
            continue
        name = _NAME.match(written, at) if written[at - 1] == "." else None
        if name is None:
            raise UnsupportedOperationError(
                f"the path {text!r} of JSON is not supported from {written[at:]!r}"
            )
        at = name.end()
        if written.startswith("()", at):
            if name[0] not in ("length", "size") or scans or at + 2 != len(written):
                raise UnsupportedOperationError(
                    f"the function {name[0]}() in the path {text!r} is not supported"
                )
            tokens.append(Token("length"))
            at += 2
        else:
            tokens.append(Token("names", (name[0],), scans=scans))
    several = [token for token in tokens if len(token.names) > 1]
    if any(token is not tokens[-1] for token in several):
        raise UnsupportedOperationError(
            f"several names before the end of the path {text!r} are not supported"
        )
    return JsonPath(tuple(tokens), mode == "lax")


def _of_bracket(match: re.Match[str], scans: bool) -> Token:
    if match["all"]:
        return Token("all", scans=scans)
    if match["names"]:
        quoted = re.findall(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"", match["names"])
        return Token(
            "names", tuple(re.sub(r"\\(.)", r"\1", one or other) for one, other in quoted), scans=scans
        )
    if match["slice"]:
        start, end = (int(part) if part.strip() else None for part in match["slice"].split(":"))
        return Token("slice", indexes=(start, end), scans=scans)
    return Token("indexes", indexes=tuple(map(int, match["indexes"].split(","))), scans=scans)
