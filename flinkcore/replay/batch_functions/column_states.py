"""The state of a function over batches: numpy columns by dense key id."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from flinkcore.datastream.state import ColumnState
from flinkcore.errors import ConfigurationError, LifecycleError

LEAST_KEYS = 1 << 10


class NumpyColumnState(ColumnState):
    """A column that has room for more keys than there are.

    Parameters
    ----------
    name : str
    dtype : numpy.dtype
    default : object
    """

    def __init__(self, name: str, dtype: np.dtype[Any], default: Any) -> None:
        self._name = name
        self._default = default
        self._values = np.full(LEAST_KEYS, default, dtype)
        self._n_keys = 0

    @property
    def name(self) -> str:
        return self._name

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self._values.dtype)

    @property
    def default(self) -> Any:
        return self._default

    @property
    def array(self) -> npt.NDArray[Any]:
        return self._values[: self._n_keys]

    def clear(self, key_ids: Any) -> None:
        self.array[key_ids] = self._default

    def grow(self, n_keys: int) -> None:
        """Have a row for the key ids below `n_keys`; amortised O(1) per key."""
        if n_keys > len(self._values):
            capacity = max(n_keys, 2 * len(self._values))
            grown = np.full(capacity, self._default, self.dtype)
            grown[: self._n_keys] = self.array
            self._values = grown
        self._n_keys = max(n_keys, self._n_keys)

    def kept_ids(self) -> npt.NDArray[np.int64]:
        """Return the ids of the keys whose value is not the default, ascending; of Python objects, all."""
        if self.dtype.hasobject:
            return np.arange(self._n_keys)
        return np.flatnonzero(self.array != self._values.dtype.type(self._default)).astype(np.int64)


class ColumnStates:
    """The columns of a function by name; all have as many keys."""

    def __init__(self) -> None:
        self._states: dict[str, NumpyColumnState] = {}
        self._is_open = False

    def add(self, name: str, dtype: Any, default: Any) -> NumpyColumnState:
        """Return a new column.

        Raises
        ------
        ConfigurationError
            If the name is taken, or the type or the default cannot be those of a column.
        LifecycleError
            If the function is open.
        """
        if self._is_open:
            raise LifecycleError(f"the state {name!r} is to be asked for in open(), not later")
        if not isinstance(name, str) or not name:
            raise ConfigurationError(f"a state is named by a string that is not empty, not {name!r}")
        if name in self._states:
            raise ConfigurationError(f"there are two states named {name!r}: give each a name of its own")
        try:
            type_ = np.dtype(dtype)
        except TypeError as failure:
            raise ConfigurationError(f"the state {name!r}: {dtype!r} is no numpy dtype") from failure
        if type_.subdtype is not None or type_.names is not None or type_.itemsize == 0:
            raise ConfigurationError(
                f"the state {name!r}: {type_} is no type of one value per key; take a column for each part, a text of "
                "fixed length such as 'U20', or object"
            )
        self._states[name] = NumpyColumnState(name, type_, _checked_default(name, type_, default))
        return self._states[name]

    def opened(self) -> None:
        """Refuse more columns from now on."""
        self._is_open = True

    def grow(self, n_keys: int) -> None:
        """Have a row for the key ids below `n_keys` in each column."""
        for state in self._states.values():
            state.grow(n_keys)

    def all(self) -> list[NumpyColumnState]:
        """The columns as they were asked for."""
        return list(self._states.values())

    def named(self, name: str) -> NumpyColumnState | None:
        """The column of this name; None: the function asks for none."""
        return self._states.get(name)


def _checked_default(name: str, dtype: np.dtype[Any], default: Any) -> Any:
    if dtype.hasobject:
        if type(default).__hash__ is None:
            raise ConfigurationError(
                f"the state {name!r}: all keys would share the default {default!r}, which can change; take None, and "
                "make one where you find it"
            )
        return default
    try:
        made = np.full(1, default, dtype)[0]
    except (TypeError, ValueError, OverflowError) as failure:
        raise ConfigurationError(
            f"the state {name!r}: the default {default!r} is no {dtype}: {failure}"
        ) from failure
    if dtype.kind in "iub" and made != default:
        raise ConfigurationError(f"the state {name!r}: the default {default!r} is no {dtype}")
    return made
