"""What a keyed state holds at one moment, apart from the state and its key ids."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Any

from flinkcore.datastream.state import StateDescriptor, StateTtlConfig
from flinkcore.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class KeyedStateSnapshot:
    """The entries of one state in some key groups, in columns.

    Lists and dictionaries are the snapshot's own; the user's values in them are not copied, so it is to be
    written before the user's code runs again.

    Parameters
    ----------
    type : StateDescriptor.Type
        What the values are: a value, a list, a dictionary, a reduced value or an accumulator.
    ttl_time : StateTtlConfig.TtlTimeCharacteristic, optional
        With it every value, element of a list and value of a dictionary that is not None is a pair: the user's
        value, and the time of its last access in ms of this kind of time. The minimum timestamp as an event
        time is that before the first watermark.
    keys, namespaces, values : sequence of object
        By entry; a namespace of None is the void namespace.
    key_groups : int array (n_entries,)
        By entry.
    is_serialized : bool
        Whether user's values, or map keys, are SerializedValues.
    """

    type: StateDescriptor.Type
    ttl_time: StateTtlConfig.TtlTimeCharacteristic | None
    keys: Sequence[Hashable]
    key_groups: npt.NDArray[np.int64]
    namespaces: Sequence[Hashable]
    values: Sequence[Any]
    is_serialized: bool = False

    def of_key_groups(self, first: int, last: int) -> KeyedStateSnapshot:
        """Return the entries of the key groups first to last, inclusive."""
        wanted = (self.key_groups >= first) & (self.key_groups <= last)
        if wanted.all():
            return self
        chosen = wanted.tolist()
        return KeyedStateSnapshot(
            self.type,
            self.ttl_time,
            list(compress(self.keys, chosen)),
            self.key_groups[wanted],
            list(compress(self.namespaces, chosen)),
            list(compress(self.values, chosen)),
            self.is_serialized,
        )

    def followed_by(self, other: KeyedStateSnapshot) -> KeyedStateSnapshot:
        """Return the entries of this one and then those of another one, of other key groups of the same state.

        Raises
        ------
        DataError
            If they are of another kind.
        """
        import numpy as np

        if (self.type, self.ttl_time) != (other.type, other.ttl_time):
            raise DataError("two snapshots of a state disagree on its kind or its time to live")
        return KeyedStateSnapshot(
            self.type,
            self.ttl_time,
            [*self.keys, *other.keys],
            np.concatenate((self.key_groups, other.key_groups)),
            [*self.namespaces, *other.namespaces],
            [*self.values, *other.values],
            self.is_serialized or other.is_serialized,
        )

    def entries(self) -> Iterator[tuple[Hashable, Hashable, Any]]:
        """Yield key, namespace and value of every entry."""
        return zip(self.keys, self.namespaces, self.values, strict=True)

    def __len__(self) -> int:
        return len(self.keys)
