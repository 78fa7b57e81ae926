"""Rows: values by position, and by name where they have names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from flinkcore._internal.values.row_kind import RowKind


class Row:
    """A row of values, with or without names.

    A named value is read as ``row["user"]`` or ``row.user``, any value as ``row[0]``; it is set as ``row["user"] = x``
    or ``row[0] = x``, but not as an attribute. Calling a row of names makes rows with these names.

    Parameters
    ----------
    *args : object
        Values without names; or
    **kwargs : object
        values with names, in the order of the arguments.

    Raises
    ------
    ValueError
        If values with and without names are given.

    Notes
    -----
    Follows ``pyflink.common.Row``. A name that is also a method's, or begins with an underscore, is read by
    ``row["name"]`` only; of equal names the first counts. Rows with the same values by name are equal, whatever the
    order of the names; their hashes are equal too, which PyFlink's are not.

    Examples
    --------
    >>> Row(user="ada", age=36)
    Row(user='ada', age=36)
    >>> Person = Row("user", "age")
    >>> Person("ada", 36).user
    'ada'
    >>> "user" in Person("ada", 36), "ada" in Person("ada", 36), "ada" in Row("ada", 36)
    (True, False, True)
    """

    __slots__ = ("_fields", "_row_kind", "_values")

    _fields: tuple[str, ...] | None
    _row_kind: RowKind
    _values: tuple[Any, ...]

    def __init__(self, /, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError("a Row takes values or named values, not both")
        self._fields = tuple(kwargs) if kwargs else None
        self._values = tuple(kwargs.values()) if kwargs else args
        self._row_kind = RowKind.INSERT

    def as_dict(self, recursive: bool = False) -> dict[str, Any]:
        """Return the values by their names.

        Parameters
        ----------
        recursive : bool
            Whether to convert also Rows in values, and in lists and dicts of values.

        Raises
        ------
        TypeError
            If the values have no names.
        """
        if self._fields is None:
            raise TypeError(f"the values of {self!r} have no names, which a dict needs")
        values = map(_with_dicts, self._values) if recursive else self._values
        return dict(zip(self._fields, values, strict=False))

    @staticmethod
    def of_kind(row_kind: RowKind, *args: Any, **kwargs: Any) -> Row:
        """Return a row of a kind; values as of the constructor."""
        row = Row(*args, **kwargs)
        row._row_kind = row_kind
        return row

    def copied(self) -> Row:
        """Return an independent copy of this row."""
        copy: Row = object.__new__(self.__class__)
        copy._values = self._values
        if self.__class__ is Row:
            copy._fields, copy._row_kind = self._fields, self._row_kind
        return copy

    def get_row_kind(self) -> RowKind:
        """Return the kind, INSERT by default."""
        return self._row_kind

    def set_row_kind(self, row_kind: RowKind) -> None:
        """Set the kind."""
        self._settle()
        self._row_kind = row_kind

    def set_field_names(self, field_names: Sequence[str]) -> None:
        """Set or replace the names of the values."""
        self._settle()
        self._fields = tuple(field_names)

    def get_fields_by_names(self, names: Sequence[str]) -> list[Any]:
        """Return the values of some names; all values where the row has no names.

        Raises
        ------
        ValueError
            If there is no value of a name.
        """
        if self._fields is None:
            return list(self._values)
        return [self._values[self._place(name)] for name in names]

    def _settle(self) -> None:
        """Move names and kind from the class to the row itself, before they are changed."""
        if self.__class__ is not Row:
            fields, row_kind = self._fields, self._row_kind
            self.__class__ = Row
            self._fields, self._row_kind = fields, row_kind

    def _place(self, name: object) -> int:
        if self._fields is None:
            raise KeyError(name)
        try:
            return self._fields.index(name)
        except ValueError:
            raise ValueError(name) from None

    def __call__(self, *args: Any) -> Row:
        """Return a row of these values, with this row's values as their names."""
        if len(args) > len(self._values):
            raise ValueError(f"{self!r} names {len(self._values)} values, but there are {len(args)}: {args}")
        return _made_row(self._values, args, self._row_kind)

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, int):
            return self._values[item]
        if isinstance(item, slice):
            return list(self._values[item])
        try:
            return self._values[self._place(item)]
        except IndexError:
            raise KeyError(item) from None

    def __setitem__(self, key: Any, value: Any) -> None:
        values = list(self._values)
        try:
            values[key if isinstance(key, int | slice) else self._place(key)] = value
        except IndexError:
            if isinstance(key, int):
                raise
            raise KeyError(key) from None
        self._values = tuple(values)

    def __getattr__(self, item: str) -> Any:
        if item.startswith("_") or self._fields is None:
            raise AttributeError(item)
        try:
            return self._values[self._fields.index(item)]
        except (IndexError, ValueError):
            raise AttributeError(item) from None

    def __contains__(self, item: object) -> bool:
        return item in (self._values if self._fields is None else self._fields)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row) or self._row_kind is not other._row_kind:
            return False
        names, names_of_other = self._fields, other._fields
        if names == names_of_other:
            return self._values == other._values
        if names is None or names_of_other is None or sorted(names) != sorted(names_of_other):
            return False
        return all(self[name] == other[name] for name in names)

    def __hash__(self) -> int:
        return hash(frozenset(self._values))  # the same in every order of the names

    def __canonical_key__(self) -> tuple[Any, ...]:
        # As of Flink's Row.equals, names do not count.
        return self._row_kind.value, self._values

    def __reduce__(self) -> tuple[Any, ...]:
        return _made_row, (self._fields, self._values, self._row_kind)

    def __repr__(self) -> str:
        if self._fields is None:
            return f"<Row({', '.join(map(repr, self._values))})>"
        named = zip(self._fields, self._values, strict=False)
        return f"Row({', '.join(f'{name}={value!r}' for name, value in named)})"


def rows_of_columns(names: Sequence[str], columns: Sequence[Iterable[Any]]) -> Iterator[Row]:
    """Return the rows of columns one by one, in a fraction of the constructor's time.

    Parameters
    ----------
    names : sequence of str
        In the order that the rows have.
    columns : sequence of iterable
        At least one; of equal lengths.

    Examples
    --------
    >>> list(rows_of_columns(["user", "age"], [["ada", "bob"], [36, 41]]))
    [Row(user='ada', age=36), Row(user='bob', age=41)]
    """
    return map(_row_class(tuple(names)), zip(*columns, strict=True))


def row_maker(names: Sequence[str]) -> Callable[[tuple[Any, ...]], Row]:
    """Return a callable from a tuple of values to a row with these names, in a fraction of the constructor's time.

    Examples
    --------
    >>> row_maker(["user", "age"])(("ada", 36))
    Row(user='ada', age=36)
    """
    return _row_class(tuple(names))


@lru_cache(maxsize=256)
def _row_class(names: tuple[str, ...]) -> type[Row]:
    """Return a subclass for rows with these names: the class holds the names, and reads a value without a search."""

    def __init__(self: Row, values: tuple[Any, ...]) -> None:
        self._values = values

    members: dict[str, Any] = {
        name: _named_value(place)
        for place, name in reversed(list(enumerate(names)))
        if not name.startswith("_") and not hasattr(Row, name)
    }
    members |= {"__slots__": (), "__init__": __init__, "_fields": names, "_row_kind": RowKind.INSERT}
    return type("Row", (Row,), members)


def _named_value(place: int) -> property:
    return property(lambda row: row._values[place])


def _made_row(fields: Sequence[str] | None, values: Sequence[Any], row_kind: RowKind) -> Row:
    row = Row(*values)
    row._fields = None if fields is None else tuple(fields)
    row._row_kind = row_kind
    return row


def _with_dicts(value: Any) -> Any:
    if isinstance(value, Row):
        return value.as_dict(True)
    if isinstance(value, list):
        return [_with_dicts(item) for item in value]
    if isinstance(value, dict):
        return {key: _with_dicts(item) for key, item in value.items()}
    return value
