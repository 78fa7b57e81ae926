"""JSON objects that come from outside: a member that is not what is asked for is named by the error."""

from collections.abc import Collection, Mapping
from typing import Any

from flinkcore.common.constants import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.errors import DataError


class JsonObject:
    """An object whose members are known.

    Parameters
    ----------
    content : object
        As `json.loads` gives it.
    where : str
        Names the object in messages.
    members : collection of str
        All that it has.
    optional : collection of str
        What it may have besides.

    Raises
    ------
    DataError
        If it is no object, lacks a member, or has another.
    """

    def __init__(
        self, content: Any, where: str, members: Collection[str], optional: Collection[str] = ()
    ) -> None:
        if type(content) is not dict:
            raise DataError(f"{where} is no JSON object")
        for name in members:
            if name not in content:
                raise DataError(f"{where} lacks {name!r}")
        for name in content:
            if name not in members and name not in optional:
                raise DataError(f"{where} has the unknown member {name!r}")
        self._content: Mapping[str, Any] = content
        self._where = where

    def __getitem__(self, name: str) -> Any:
        """Return a member, whatever it is."""
        return self._content[name]

    def integer(self, name: str, least: int = MIN_TIMESTAMP, greatest: int = MAX_TIMESTAMP) -> int:
        """Return an integer within bounds, both included."""
        value = self._content[name]
        if type(value) is not int or not least <= value <= greatest:
            raise self.refused(name, f"no integer from {least} to {greatest}")
        return value

    def integer_or_none(self, name: str, least: int = MIN_TIMESTAMP) -> int | None:
        """Return an integer from `least` on, or None for null."""
        return None if self._content[name] is None else self.integer(name, least)

    def text(self, name: str) -> str:
        """Return a text."""
        value = self._content[name]
        if type(value) is not str:
            raise self.refused(name, "no text")
        return value

    def items(self, name: str) -> list[Any]:
        """Return an array."""
        value = self._content[name]
        if type(value) is not list:
            raise self.refused(name, "no array")
        return value

    def refused(self, name: str, what: str) -> DataError:
        """Return the error of a member that is not what it must be."""
        shown = repr(self._content[name])
        return DataError(
            f"{name} of {self._where} is {shown if len(shown) <= 80 else f'{shown[:79]}…'}, {what}"
        )
