"""The current key of an operator, which its timers and its keyed state belong to."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from flinkcore._internal.python.object_sizes import size_of_all
from flinkcore._native.keys import canonical_key
from flinkcore._native.timers import MAX_KEY_GROUPS, CurrentKey
from flinkcore.errors import ConfigurationError, DataError
from flinkcore.operators.keys.dense_ids import FIRST_SWEEP, DenseIds, HeldIds
from flinkcore.operators.records.copies import detached

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

NO_KEY = -1

KEY_BYTES: Final = 120
"""Memory of a key beyond its object, about: its place in the dictionary, its id and its key group."""

KeyGroupsOf: TypeAlias = "Callable[[Sequence[Hashable]], npt.NDArray[np.int32]]"


class KeyContext(CurrentKey):
    """The current key of an operator, its dense id and its key group.

    Timers and state are held by the id: one hash look-up per element finds it, and none is needed when a timer fires.
    **Whoever holds ids must register** with :meth:`add_holder`: an id that nobody holds may be given to another key.
    The current key's id is always held.

    Parameters
    ----------
    max_parallelism : int
        Number of key groups, 1 to 32,768.
    key_group_range : (int, int), optional
        First and last key group of this operator, inclusive; by default all.
    key_group_of : callable, optional
        From a key to its key group; by default Flink's of the Java object that stands for the key.
    first_sweep : int
        The number of keys from which on unused ones are forgotten.
    key_groups_of : callable, optional
        As `key_group_of`, from a sequence of keys to an int32 array of their key groups `(n_keys,)`.

    Raises
    ------
    ConfigurationError
        If max_parallelism or the range is not possible.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.KeyContext`` with the ``InternalKeyContext`` of its state
    backends. Keys of equal canonical form are one key: every NaN is the same key, -0.0 and 0.0 are two.
    """

    __slots__ = (
        "_dense_ids",
        "_ids",
        "_key_group_of",
        "_key_groups",
        "_key_groups_of",
        "_keys",
        "key_group_range",
        "max_parallelism",
    )

    def __init__(
        self,
        max_parallelism: int = 128,
        key_group_range: tuple[int, int] | None = None,
        key_group_of: Callable[[Any], int] | None = None,
        first_sweep: int = FIRST_SWEEP,
        key_groups_of: KeyGroupsOf | None = None,
    ) -> None:
        if not 1 <= max_parallelism <= MAX_KEY_GROUPS:
            raise ConfigurationError(
                f"max_parallelism is {max_parallelism}; it must be from 1 to {MAX_KEY_GROUPS}"
            )
        first, last = (0, max_parallelism - 1) if key_group_range is None else key_group_range
        if not 0 <= first <= last < max_parallelism:
            raise ConfigurationError(
                f"key_group_range is ({first}, {last}); it must lie within 0 and {max_parallelism - 1} "
                "(max_parallelism - 1), both ends included"
            )
        self.max_parallelism = max_parallelism
        self.key_group_range = (first, last)
        if key_group_of is None:
            from flinkcore.operators.keys.java_keys import JavaKeys  # loads pyarrow

            key_group_of = JavaKeys(max_parallelism)
            key_groups_of = key_group_of.of_all
        self._key_group_of = key_group_of
        self._key_groups_of = key_groups_of
        self._dense_ids = DenseIds(first_sweep, canonical_key)
        self._dense_ids.add_holder(lambda: [self.current_key_id])
        self._ids = self._dense_ids.ids
        self._keys = self._dense_ids.objects
        self._key_groups: list[int] = []
        super().__init__(self._ids, self._keys, self._key_groups, self.key_id_of)

    def memory(self) -> tuple[int, int]:
        """Return how many keys have an id, and about how many bytes they take."""
        n_keys = len(self._keys)
        return n_keys, size_of_all(self._keys) + n_keys * KEY_BYTES

    def key_id_of(self, key: Hashable) -> int:
        """Return the id of a key, current or not; it must be held before another key comes.

        Raises
        ------
        DataError
            If the key has no key group, or one outside of the range.
        """
        form = canonical_key(key)
        known = self._ids.get(form)
        if known is not None:
            return known
        if form is not key:
            key = detached(key, "the key selector")  # it may change, such as a list
        key_group = self._key_group_of(key)
        first, last = self.key_group_range
        if not first <= key_group <= last:
            raise DataError(
                f"the key {key!r} is in key group {key_group}, outside of this operator's key groups {first} to {last}"
            )
        key_id = self._dense_ids.id_of(key)
        self._note_key_groups([key_id], [key_group])
        return key_id

    def restored_key_ids(self, keys: Sequence[Hashable], key_groups: Sequence[int]) -> npt.NDArray[np.int64]:
        """Return the ids of the keys of a snapshot; they must be held before another key comes.

        Parameters
        ----------
        keys : sequence of object
        key_groups : sequence of int
            By key, all within the operator's range.

        Returns
        -------
        int64 array (n_keys,)

        Raises
        ------
        DataError
            If a key group is not that of its key.
        """
        import numpy as np

        self._refuse_other_key_groups(keys, key_groups)
        key_ids = self._dense_ids.ids_of(keys)
        if np.array_equal(key_ids, np.arange(len(self._key_groups), len(self._keys))):
            self._key_groups += key_groups
        else:
            self._note_key_groups(key_ids.tolist(), key_groups)
        return key_ids

    def _refuse_other_key_groups(self, keys: Sequence[Hashable], key_groups: Sequence[int]) -> None:
        """Raise a DataError if a key is not in the key group given for it."""
        if self._key_groups_of is not None:
            expected = self._key_groups_of(keys).tolist()
        else:
            known = map(self._ids.get, map(canonical_key, keys))
            expected = [
                self._key_group_of(key) if key_id is None else self._key_groups[key_id]
                for key, key_id in zip(keys, known, strict=True)
            ]
        if expected != key_groups:
            key, found, own = next(
                row for row in zip(keys, key_groups, expected, strict=True) if row[1] != row[2]
            )
            raise DataError(
                f"the key {key!r} of the snapshot is in the key group {found}, but belongs to {own}"
            )

    def _note_key_groups(self, key_ids: list[int], key_groups: Iterable[int]) -> None:
        self._key_groups += [NO_KEY] * (len(self._keys) - len(self._key_groups))
        for key_id, key_group in zip(key_ids, key_groups, strict=True):
            self._key_groups[key_id] = key_group

    @property
    def keys_by_id(self) -> list[Any]:
        """The keys by id, None where an id is free; always the same list, to be read only."""
        return self._keys

    def key_of(self, key_id: int) -> Any:
        """Return the key of a held id."""
        return self._keys[key_id]

    def key_group_of_id(self, key_id: int) -> int:
        """Return the key group of a held id."""
        return self._key_groups[key_id]

    def key_groups_of_ids(self, key_ids: Iterable[int]) -> npt.NDArray[np.int64]:
        """Return the key groups of held ids, `(n_ids,)`."""
        import numpy as np

        key_groups = self._key_groups
        return np.array([key_groups[key_id] for key_id in key_ids], np.int64)

    def add_holder(self, held_key_ids: HeldIds) -> None:
        """Keep the ids that a function returns for their keys.

        Parameters
        ----------
        held_key_ids : callable
            Returns an array or list of int, in any order and with repetitions: the ids of all keys that have timers,
            or state. Called occasionally when a new key comes.
        """
        self._dense_ids.add_holder(held_key_ids)

    def __len__(self) -> int:
        """Return the number of known keys; a key that nothing holds counts until it is forgotten."""
        return len(self._ids)

    def _check(self) -> None:
        """Assert every invariant."""
        self._dense_ids._check()
        assert len(self._key_groups) == len(self._keys)
        assert all(
            self._key_groups[key_id] == self._key_group_of(self._keys[key_id])
            for key_id in self._ids.values()
        )
