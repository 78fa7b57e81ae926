"""What a state is declared by."""

from abc import ABC
from enum import Enum
from typing import ClassVar

from flinkcore.common.type_information import TypeInformation
from flinkcore.datastream.state.state_ttl_config import StateTtlConfig
from flinkcore.errors import ConfigurationError


class StateDescriptor(ABC):
    """The name of a state, the type of what it holds, and how long that lives.

    Parameters
    ----------
    name : str
        Not empty; once per operator.
    type_info : TypeInformation, optional
        Type of the values, of the elements of a list, or of the values in a map; without it they are not checked.

    Raises
    ------
    ConfigurationError
        If the name is no text or empty, or the type is no TypeInformation.

    Notes
    -----
    Follows ``pyflink.datastream.state.StateDescriptor``, where the type cannot be left out.
    """

    class Type(Enum):
        """The kinds of state, as snapshots name them.

        Notes
        -----
        Flink's ``StateDescriptor.Type``.
        """

        VALUE = "value"
        LIST = "list"
        REDUCING = "reducing"
        AGGREGATING = "aggregating"
        MAP = "map"

    type: ClassVar[Type]

    def __init__(self, name: str, type_info: TypeInformation | None = None) -> None:
        if not isinstance(name, str) or not name:
            raise ConfigurationError(f"the name of a state is a text that is not empty, not {name!r}")
        self.name = name
        self.type_info = checked_type(type_info, name)
        self._ttl_config: StateTtlConfig | None = None

    def get_name(self) -> str:
        """Return the name of the state."""
        return self.name

    def enable_time_to_live(self, ttl_config: StateTtlConfig) -> None:
        """Let what the state holds expire; to be called before the state is asked for."""
        self._ttl_config = ttl_config

    @property
    def ttl_config(self) -> StateTtlConfig | None:
        """How values expire; None where they do not."""
        return self._ttl_config if self._ttl_config is not None and self._ttl_config.is_enabled() else None

    def describes_same_state(self, other: "StateDescriptor") -> bool:
        """Return whether kind, name, types and time to live are equal; functions are not compared."""
        return self.signature() == other.signature()

    def signature(self) -> tuple[object, ...]:
        """Return all that two descriptors of one state must have in common."""
        return self.type, self.name, self.type_info, self.ttl_config

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


def checked_type(type_info: TypeInformation | None, name: str) -> TypeInformation | None:
    """Return a declared type, or fail where it is none (ConfigurationError)."""
    if type_info is None or (isinstance(type_info, TypeInformation) and not isinstance(type_info, type)):
        return type_info
    raise ConfigurationError(f"the type of the state {name!r} is a TypeInformation, not {type_info!r}")
