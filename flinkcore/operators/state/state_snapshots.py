"""Snapshots of keyed and operator states, and how operator state is redistributed to other instances."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import compress
from typing import TYPE_CHECKING, Any

from flinkcore.datastream.state import StateDescriptor, StateTtlConfig
from flinkcore.errors import ConfigurationError, DataError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class KeyedStateSnapshot:
    """The entries of one state in some key groups, in columns.

    Lists and dictionaries are the snapshot's own. The user's values in them are not copied: the snapshot must be
    written before the user's code runs again.

    Parameters
    ----------
    type : StateDescriptor.Type
        Says whether `values` are values, lists, dictionaries, reduced values or accumulators.
    ttl_time : StateTtlConfig.TtlTimeCharacteristic, optional
        If it is given, every value, element of a list and value of a dictionary that is not None is a pair of the
        user's value and the time of its last access, in ms since the epoch of this kind of time. As an event time,
        -2**63 is an access before the first watermark.
    keys, namespaces, values : sequence of object
        By entry, each ``(n_entries,)``; a namespace of None is the void namespace. Dictionaries of a map state have
        what :func:`dictionary_key` returns for map keys.
    key_groups : int array (n_entries,)
        By entry.
    is_serialized : bool
        Whether the user's values, or map keys, are SerializedValues.
    descriptor : StateDescriptor, optional
        Descriptor by which the function has asked for the state, or None if it has not, or not yet.
    """

    type: StateDescriptor.Type
    ttl_time: StateTtlConfig.TtlTimeCharacteristic | None
    keys: Sequence[Hashable]
    key_groups: npt.NDArray[np.int64]
    namespaces: Sequence[Hashable]
    values: Sequence[Any]
    is_serialized: bool = False
    descriptor: StateDescriptor | None = field(default=None, compare=False)

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
            self.descriptor,
        )

    def followed_by(self, other: KeyedStateSnapshot) -> KeyedStateSnapshot:
        """Return these entries followed by those of another snapshot, of other key groups of the same state.

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
            self.descriptor or other.descriptor,
        )

    def entries(self) -> Iterator[tuple[Hashable, Hashable, Any]]:
        """Yield key, namespace and value of every entry."""
        return zip(self.keys, self.namespaces, self.values, strict=True)

    def __len__(self) -> int:
        return len(self.keys)


class DistributionMode(Enum):
    """Distribution of an operator state to the instances of an operator.

    Notes
    -----
    Flink's ``OperatorStateHandle.Mode``.
    """

    SPLIT_DISTRIBUTE = "split"
    """Every element goes to one instance."""

    UNION = "union"
    """Every instance gets the elements of all."""

    BROADCAST = "broadcast"
    """Every instance gets the elements of one instance; all instances had the same."""


@dataclass(frozen=True, slots=True)
class OperatorStateSnapshot:
    """One operator state of one instance.

    Parameters
    ----------
    mode : DistributionMode
    elements : sequence of object
        Elements of a list state, or pairs of key and value of a broadcast state.
    descriptor : StateDescriptor, optional
        Descriptor by which the function has asked for the state, or None if it has not, or not yet.
    """

    mode: DistributionMode
    elements: Sequence[Any]
    descriptor: StateDescriptor | None = field(default=None, compare=False)


def redistribute(
    snapshots: Sequence[dict[str, OperatorStateSnapshot]], parallelism: int
) -> list[dict[str, OperatorStateSnapshot]]:
    """Return the operator states of each instance after a restore, by index.

    Elements of a split state stay with their instance if the parallelism is unchanged. Otherwise they are dealt out in
    order, in runs of equal length. The remaining elements go to one instance each, beginning after the instance that
    got the last remaining element of the state before.

    Parameters
    ----------
    snapshots : sequence of dict of str to OperatorStateSnapshot
        By the index of the instance that the snapshot was taken of, each by state name.
    parallelism : int
        The number of instances after the restore.

    Raises
    ------
    ConfigurationError
        If the parallelism is below 1.
    DataError
        If instances disagree on the mode of a state.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.checkpoint.RoundRobinOperatorStateRepartitioner``; states are
    distributed in the order of their names.
    """
    if parallelism < 1:
        raise ConfigurationError(f"an operator has at least 1 instance, not {parallelism}")
    result: list[dict[str, OperatorStateSnapshot]] = [{} for _ in range(parallelism)]
    start = 0
    for name in sorted({name for snapshot in snapshots for name in snapshot}):
        parts = [snapshot[name] for snapshot in snapshots if name in snapshot]
        mode = parts[0].mode
        if any(part.mode is not mode for part in parts):
            raise DataError(f"the instances of an operator disagree on how its state {name!r} is distributed")
        if mode is DistributionMode.BROADCAST:
            shares = [parts[i % len(parts)].elements for i in range(parallelism)]
        elif mode is DistributionMode.UNION:
            shares = [[element for part in parts for element in part.elements]] * parallelism
        elif len(snapshots) == parallelism:
            shares = [snapshot[name].elements if name in snapshot else [] for snapshot in snapshots]
        else:
            shares = _split([element for part in parts for element in part.elements], parallelism, start)
            start = (start + sum(len(part.elements) for part in parts)) % parallelism
        for instance, elements in zip(result, shares, strict=True):
            instance[name] = OperatorStateSnapshot(mode, list(elements))
    return result


def _split(elements: list[Any], parallelism: int, start: int) -> list[Sequence[Any]]:
    length, left_over = divmod(len(elements), parallelism)
    shares: list[Sequence[Any]] = [[]] * parallelism
    begin = 0
    for i in range(parallelism):
        end = begin + length + (i < left_over)
        shares[(start + i) % parallelism] = elements[begin:end]
        begin = end
    return shares
