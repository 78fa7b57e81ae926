"""What a test may ask about the keyed state of an operator."""

from collections.abc import Hashable
from typing import Any, Generic, TypeVar

from flinkcore.runtime.copies import copied
from flinkcore.runtime.java_keys import JavaKeys
from flinkcore.runtime.state import KeyedStateBackend
from flinkcore.runtime.state.state_table import VOID_NAMESPACE

K = TypeVar("K", bound=Hashable)


class KeyedTestHarness(Generic[K]):
    """The keyed side of a harness: looks at state, and changes nothing by it.

    Notes
    -----
    What Flink's ``KeyedOneInputStreamOperatorTestHarness`` and its siblings have in common, and what tests there do
    by ``getOperator().setCurrentKey``.
    """

    _keyed_state: KeyedStateBackend | None
    _key_group_of: JavaKeys

    def num_keyed_state_entries(self, namespace: Hashable = ...) -> int:
        """Return how many keys all states together have something for, of one namespace if it is given.

        A key counts once for each state and namespace, however long its list or map is; what has expired counts
        until it is cleaned up, as in Flink.
        """
        return self._backend.num_key_value_state_entries(namespace)

    def get_keyed_state(self, name: str, key: K, namespace: Hashable = VOID_NAMESPACE) -> Any:
        """Return what a state holds for a key and has not expired.

        Parameters
        ----------
        name : str
            Of the state's descriptor.
        key : hashable
        namespace : hashable, optional
            Such as a window; by default that of state that belongs to a key as such.

        Returns
        -------
        object
            A value, a list, a dictionary, or the result of an aggregating state, as it is now; None where there is
            nothing. It is no access by the operator, so the time to live goes on.

        Raises
        ------
        ConfigurationError
            If the operator has not asked for a state of this name.
        DataError
            If the key belongs to another subtask.
        """
        return copied(self._backend.look_up(name, key, namespace))

    def get_keys(self, name: str, namespace: Hashable = ...) -> list[K]:
        """Return the keys for which a state holds something that has not expired, in any or one namespace."""
        return self._backend.get_keys(name, namespace)

    def owns_key(self, key: K) -> bool:
        """Return whether elements of a key come to this subtask.

        Raises
        ------
        DataError
            If it cannot be a key.
        """
        first, last = self._backend.key_context.key_group_range
        return first <= self._key_group_of(key) <= last

    @property
    def _backend(self) -> KeyedStateBackend:
        assert self._keyed_state is not None
        return self._keyed_state
