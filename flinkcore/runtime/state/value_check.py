"""Whether a value is of the type that its state was declared with."""

from typing import Any

from flinkcore.common.type_information import TypeInformation
from flinkcore.errors import SchemaError


class ValueCheck:
    """Refuses values of another type.

    Parameters
    ----------
    state_name : str
    what : str
        What the values are in the state, in the plural: "elements".
    type_info : TypeInformation
    """

    __slots__ = ("_accepts", "_state_name", "_type_info", "_what")

    def __init__(self, state_name: str, what: str, type_info: TypeInformation) -> None:
        self._state_name = state_name
        self._what = what
        self._type_info = type_info
        self._accepts = type_info.accepts

    def __call__(self, value: Any) -> None:
        """Accept a value.

        Raises
        ------
        SchemaError
            If it is of another type.
        """
        if value is not None and not self._accepts(value):
            raise SchemaError(
                f"the {self._what} of the state {self._state_name!r} are {self._type_info}, "
                f"but {value!r} is {type(value).__qualname__}"
            )


def value_check(state_name: str, what: str, type_info: TypeInformation | None) -> ValueCheck | None:
    """Return what checks the values of a state; None where no type is declared."""
    return None if type_info is None else ValueCheck(state_name, what, type_info)
