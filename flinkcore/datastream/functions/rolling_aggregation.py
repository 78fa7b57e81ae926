"""Rolling aggregations: sums, minima and maxima of a field over all elements of a key so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from flinkcore._internal.values.row import Row
from flinkcore.common.typeinfo import BasicTypeInfo, RowTypeInfo, TupleTypeInfo, TypeInformation
from flinkcore.datastream.functions.reduce_function import ReduceFunction
from flinkcore.errors import ArgumentTypeError, ConfigurationError, DataError, in_words

Reduction = Callable[[Any, Any], Any]


class RollingAggregation(ReduceFunction[Any]):
    """Reduces elements by one of their fields.

    Parameters
    ----------
    kind : RollingAggregation.Kind
    position : int or str
        Position or name of the field; anything else is a ConfigurationError. 0 for elements that are not tuples, lists
        or Rows, but values themselves.

    Notes
    -----
    ``KeyedStream._accumulate`` of PyFlink. SUM, MIN and MAX change the field of the first element and keep its others,
    MIN_BY and MAX_BY keep one of both elements. Elements are not changed in place, as PyFlink changes lists and Rows.
    """

    class Kind(Enum):
        """Operation that combines two values of the field."""

        SUM = "sum"
        MIN = "min"
        MAX = "max"
        MIN_BY = "min_by"
        MAX_BY = "max_by"

    def __init__(self, kind: Kind, position: int | str) -> None:
        if isinstance(position, bool) or not isinstance(position, int | str):
            raise ArgumentTypeError(
                f"{kind.value} takes the position or the name of a field, not {position!r}"
            )
        self._kind = kind
        self._position = position
        self._reduction: Reduction | None = None

    def check_type(self, type_info: TypeInformation) -> None:
        """Raise ConfigurationError if elements of a declared type do not have the field."""
        lack = None
        if isinstance(type_info, TupleTypeInfo):
            lack = self._lack(len(type_info.get_field_types()), None)
        elif isinstance(type_info, RowTypeInfo):
            names = type_info.get_field_names()
            lack = self._lack(len(names), names)
        elif isinstance(type_info, BasicTypeInfo):
            lack = self._lack(None, None)
        if lack is not None:
            raise ConfigurationError(f"{self._called}: an element is {type_info!r}, which has {lack}")

    def begin(self, value: Any) -> None:
        """Raise DataError if the first element of a key does not have the field."""
        if value is None:
            return
        has_fields = isinstance(value, tuple | list | Row)
        names = value._fields if isinstance(value, Row) else None
        lack = self._lack(len(value) if has_fields else None, names)
        if lack is not None:
            raise DataError(f"{self._called}: {value!r} has {lack}")

    def reduce(self, value1: Any, value2: Any) -> Any:
        """Return the reduction of two elements; raise DataError if it is not possible."""
        try:
            if self._reduction is None:
                self.begin(value2)
                self._reduction = self._of(value2)
            return self._reduction(value1, value2)
        except DataError:
            raise
        except Exception as failure:
            self.begin(value1)
            self.begin(value2)
            raise DataError(
                f"{self._called} of {value1!r} and {value2!r} failed: {in_words(failure)}. Let all "
                "elements have values of one kind in the field, and none of them None"
            ) from failure

    @property
    def _called(self) -> str:
        return f"{self._kind.value}({self._position!r})"

    def _lack(self, n_fields: int | None, names: Sequence[str] | None) -> str | None:
        """Return what elements have instead of the field; None if they have it."""
        position = self._position
        if n_fields is None:
            if position == 0:
                return None
            return (
                "no fields; of such elements only the position 0 can be taken, which means the element itself"
            )
        if (
            position in names
            if isinstance(position, str) and names
            else position in range(-n_fields, n_fields)
        ):
            return None
        positions = (
            f"{n_fields} fields, at the positions from 0 to {n_fields - 1}" if n_fields else "no fields"
        )
        return f"{positions}, without names" if names is None else f"{positions}, named {list(names)}"

    def _of(self, element: Any) -> Reduction:
        """Return the reduction of elements of this kind."""
        has_fields = isinstance(element, tuple | list | Row)
        kinds = RollingAggregation.Kind
        if self._kind in (kinds.MIN_BY, kinds.MAX_BY):
            return self._choice(has_fields)
        combine = {kinds.SUM: _sum, kinds.MIN: _lesser, kinds.MAX: _greater}[self._kind]
        if not has_fields:
            return combine
        if isinstance(element, tuple) and isinstance(self._position, int):
            return _of_tuples(combine, self._position)
        return _of_lists(combine, self._position)

    def _choice(self, has_fields: bool) -> Reduction:
        position: Any = self._position
        least = self._kind is RollingAggregation.Kind.MIN_BY
        if not has_fields:
            return _lesser if least else _greater
        if least:
            return lambda first, second: second if second[position] < first[position] else first
        return lambda first, second: second if second[position] > first[position] else first

    def __str__(self) -> str:
        return f"{self._kind.value} of field {self._position!r}"


def _sum(first: Any, second: Any) -> Any:
    return first + second


def _lesser(first: Any, second: Any) -> Any:
    return second if second < first else first


def _greater(first: Any, second: Any) -> Any:
    return second if second > first else first


def _of_tuples(combine: Reduction, position: int) -> Reduction:
    def reduce(first: Any, second: Any) -> Any:
        fields = list(first)
        fields[position] = combine(fields[position], second[position])
        return tuple(fields)

    return reduce


def _of_lists(combine: Reduction, position: Any) -> Reduction:
    def reduce(first: Any, second: Any) -> Any:
        combined = first.copied() if isinstance(first, Row) else list(first)
        combined[position] = combine(first[position], second[position])
        return combined

    return reduce
