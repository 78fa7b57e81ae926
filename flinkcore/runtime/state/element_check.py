"""Whether a value can be an element of a list state."""

from collections.abc import Iterable
from typing import Any, TypeVar

from flinkcore.common.type_information import TypeInformation
from flinkcore.errors import SchemaError
from flinkcore.runtime.state.value_check import value_check

T = TypeVar("T")


class ElementCheck:
    """Refuses None, as Flink does, and elements of another type than the declared one.

    Parameters
    ----------
    state_name : str
    type_info : TypeInformation, optional
        Type of the elements; without it anything but None is one.
    """

    __slots__ = ("_state_name", "_type_check")

    def __init__(self, state_name: str, type_info: TypeInformation | None = None) -> None:
        self._state_name = state_name
        self._type_check = value_check(state_name, "elements", type_info)

    def __call__(self, value: Any) -> None:
        """Accept an element.

        Raises
        ------
        SchemaError
            If it is None, or of another type.
        """
        if value is None:
            raise SchemaError(f"None cannot be an element of the list state {self._state_name!r}")
        if self._type_check is not None:
            self._type_check(value)

    def all(self, values: Iterable[T]) -> list[T]:
        """Return all elements as a new list.

        Raises
        ------
        SchemaError
            If they are no iterable, or one of them is refused.
        """
        if values is None:
            raise SchemaError(f"the list state {self._state_name!r} takes several elements, not None")
        elements = list(values)
        for element in elements:
            self(element)
        return elements
