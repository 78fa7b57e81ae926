"""How a subtask chooses, for each record, the subtask of the next operator that gets it."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable
from typing import Any

from flinkcore._native.key_groups import key_group
from flinkcore._native.keys import canonical_key
from flinkcore.errors import DataError, FlinkcoreError, UserCodeError
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.messages import shown
from flinkcore.runtime.operators.function_calls import KeySelector, selected_key

ChannelSelector = Callable[[StreamRecord[Any]], int]
"""Returns the number of the channel that a record goes to, from 0 on."""

SHUFFLE_SEED = 20_010_911
_REMEMBERED_KEYS = 100_000


def round_robin(channels: int, first: int = 0) -> ChannelSelector:
    """Return a selector that takes the channels in turn.

    Notes
    -----
    Flink's ``RebalancePartitioner`` and ``RescalePartitioner``. Deliberate difference: the first channel is not drawn
    at random; subtask n begins at channel n.
    """
    last = (first - 1) % channels

    def select(record: StreamRecord[Any]) -> int:
        nonlocal last
        last += 1
        if last == channels:
            last = 0
        return last

    return select


def shuffled(channels: int, subtask: int) -> ChannelSelector:
    """Return a selector that draws channels at random, in each run of a job the same ones.

    Notes
    -----
    Flink's ``ShufflePartitioner``, with a seed.
    """
    draw = random.Random(f"{SHUFFLE_SEED} {subtask}").randrange
    return lambda record: draw(channels)


def by_key_group(
    key_selector: KeySelector, key_group_of: Callable[[Any], int], max_parallelism: int, channels: int
) -> ChannelSelector:
    """Return a selector of the channel that has a record's key group.

    Notes
    -----
    Flink's ``KeyGroupStreamPartitioner``.
    """
    known: dict[Hashable, int] = {}

    def select(record: StreamRecord[Any]) -> int:
        key = selected_key(key_selector, record)
        form = canonical_key(key)
        try:
            return known[form]
        except KeyError:
            channel = key_group_of(key) * channels // max_parallelism
            if len(known) >= _REMEMBERED_KEYS:
                known.clear()
            known[form] = channel
            return channel
        except TypeError as failure:
            raise DataError(f"the key {key!r} is not hashable; key by a value such as a tuple") from failure

    return select


def custom(
    partition: Callable[[Any, int], int], key_selector: KeySelector, channels: int, name: str
) -> ChannelSelector:
    """Return a selector that asks a function of the user.

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
                f"the partitioner {name} failed at the key {shown(key)}: {type(failure).__name__}: {failure}"
            ) from failure
        if not isinstance(channel, int) or not 0 <= channel < channels:
            raise UserCodeError(
                f"the partitioner {name} gave {channel!r} for the key {shown(key)}: there are the subtasks 0 to "
                f"{channels - 1}"
            )
        return channel

    return select


class ElementKeyGroups:
    """Key groups of any keys.

    Notes
    -----
    For keys that have a Java object of their own those of Flink; for others those of their bytes as `key_bytes` makes
    them, where PyFlink, if no key type is declared, takes those of pickle.
    """

    def __init__(self, max_parallelism: int) -> None:
        from flinkcore.runtime.java_keys import JavaKeys  # loads pyarrow

        self._max_parallelism = max_parallelism
        self._of_java_keys = JavaKeys(max_parallelism)

    def __call__(self, key: Any) -> int:
        """Return the key group of a key."""
        try:
            return self._of_java_keys(key)
        except DataError:
            from flinkcore.runtime.tasks.key_bytes import key_bytes

            return key_group(key_bytes(canonical_key(key)), self._max_parallelism)  # type: ignore[return-value]


def key_group_range(max_parallelism: int, parallelism: int, index: int) -> tuple[int, int]:
    """Return the first and the last key group of a subtask.

    Notes
    -----
    Flink's ``KeyGroupRangeAssignment.computeKeyGroupRangeForOperatorIndex``.
    """
    return (
        (index * max_parallelism + parallelism - 1) // parallelism,
        ((index + 1) * max_parallelism - 1) // parallelism,
    )
