"""Partitioners: a subtask's choice of a channel for each record, and the key groups that keyed channels follow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from flinkcore._native.key_groups import key_group
from flinkcore._native.keys import canonical_key, key_bytes
from flinkcore.errors import DataError, FlinkcoreError, UserCodeError, in_words
from flinkcore.operators.function_calls import KeySelector, selected_key
from flinkcore.operators.records.shown_values import shown
from flinkcore.operators.records.stream_elements import StreamRecord

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

ChannelSelector = Callable[[StreamRecord[Any]], int]
"""Returns the index of the channel that a record goes to."""

SHUFFLE_SEED = 20_010_911
_DRAWN_AT_ONCE = 1_000
_REMEMBERED_KEYS = 100_000


class CountingSelector(ABC):
    """Chooses a channel by how many records it has sent, so that a resumed job deals them out as one run would.

    Parameters
    ----------
    channels : int

    Attributes
    ----------
    channels : int
    sent : int
        Number of records sent, in all runs.

    Notes
    -----
    Deliberate difference: Flink's partitioners hold nothing in checkpoints, and begin again.
    """

    def __init__(self, channels: int) -> None:
        self.channels = channels
        self.sent = 0

    @abstractmethod
    def __call__(self, record: StreamRecord[Any]) -> int:
        """Return the channel of the next record."""


class RoundRobin(CountingSelector):
    """Takes the channels in turn, beginning with `first`.

    Notes
    -----
    Flink's ``RebalancePartitioner`` and ``RescalePartitioner``. Deliberate difference: the first channel is not
    random; that of rebalance is the subtask's number.
    """

    def __init__(self, channels: int, first: int = 0) -> None:
        super().__init__(channels)
        self._first = first

    def __call__(self, record: StreamRecord[Any]) -> int:
        place = self._first + self.sent
        self.sent += 1
        return place % self.channels


class Shuffle(CountingSelector):
    """Draws channels at random, the same in each run of a job.

    Notes
    -----
    Flink's ``ShufflePartitioner``, with a seed.
    """

    def __init__(self, channels: int, subtask: int) -> None:
        super().__init__(channels)
        self._subtask = subtask
        self._drawn: list[int] = []

    def __call__(self, record: StreamRecord[Any]) -> int:
        block, place = divmod(self.sent, _DRAWN_AT_ONCE)
        if place == 0 or not self._drawn:
            from random import Random  # loads hashes

            draw = Random(f"{SHUFFLE_SEED} {self._subtask} {block}")
            self._drawn = draw.choices(range(self.channels), k=_DRAWN_AT_ONCE)
        self.sent += 1
        return self._drawn[place]


def by_key_group(
    key_selector: KeySelector, key_group_of: Callable[[Any], int], max_parallelism: int, channels: int
) -> ChannelSelector:
    """Return a selector of the channel that owns a record's key group.

    Notes
    -----
    Flink's ``KeyGroupStreamPartitioner``.
    """
    known: dict[Hashable, int] = {}

    def select(record: StreamRecord[Any]) -> int:
        key = selected_key(key_selector, record)
        try:
            form = canonical_key(key)
            return known[form]
        except KeyError:
            channel = key_group_of(key) * channels // max_parallelism
            if len(known) >= _REMEMBERED_KEYS:
                known.clear()
            known[form] = channel
            return channel
        except TypeError as failure:
            raise _no_key(key, failure) from failure

    return select


def only_channel_of_key(key_selector: KeySelector) -> ChannelSelector:
    """Return a selector of the only channel, which asks for each key all the same: an error of a selector is seen."""

    def select(record: StreamRecord[Any]) -> int:
        key = selected_key(key_selector, record)
        try:
            canonical_key(key)
        except TypeError as failure:
            raise _no_key(key, failure) from failure
        return 0

    return select


def _no_key(key: Any, failure: TypeError) -> DataError:
    return DataError(f"the key {key!r} cannot be one: {failure}; key by a value such as a tuple")


def custom(
    partition: Callable[[Any, int], int], key_selector: KeySelector, channels: int, name: str
) -> ChannelSelector:
    """Return a selector that calls a user function.

    Notes
    -----
    Flink's ``CustomPartitionerWrapper``.
    """

    def select(record: StreamRecord[Any]) -> int:
        key = selected_key(key_selector, record)
        try:
            channel = partition(key, channels)
        except FlinkcoreError:
            raise
        except Exception as failure:
            raise UserCodeError(
                f"the partitioner {name} failed at the key {shown(key)}: {in_words(failure)}"
            ) from failure
        if not isinstance(channel, int) or not 0 <= channel < channels:
            raise UserCodeError(
                f"the partitioner {name} gave {channel!r} for the key {shown(key)}: there are the subtasks 0 to "
                f"{channels - 1}"
            )
        return channel

    return select


class ElementKeyGroups:
    """Key groups of keys of any type.

    Notes
    -----
    Flink's for keys that have a counterpart in Java; for other keys that of their :func:`key_bytes`, where PyFlink, if
    no key type is declared, takes that of the bytes of pickle.
    """

    def __init__(self, max_parallelism: int) -> None:
        from flinkcore.operators.keys.java_keys import JavaKeys  # loads pyarrow

        self._max_parallelism = max_parallelism
        self._of_java_keys = JavaKeys(max_parallelism)

    def __call__(self, key: Any) -> int:
        """Return the key group of a key."""
        try:
            return self._of_java_keys(key)
        except DataError:
            return key_group(key_bytes(canonical_key(key)), self._max_parallelism)  # type: ignore[return-value]

    def of_all(self, keys: Sequence[Any]) -> npt.NDArray[np.int32]:
        """Return the key groups of keys; shape (n_keys,)."""
        import numpy as np

        return np.fromiter(map(self, keys), np.int32, len(keys))
