"""Partitions that the sender of a row chooses, and not a hash of Spark's."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

SPARK_HASH_SEED = 42


def partition_slots(partitions: int, by_id: bool) -> Sequence[int]:
    """Return for each partition the slot, an integer, with which `to_partitions` sends a row to it.

    Parameters
    ----------
    partitions : int
        Number of partitions.
    by_id : bool
        Whether Spark partitions by number (`chooses_partitions`); otherwise by a hash of the slot.
    """
    return range(partitions) if by_id else _hash_slots(partitions)


def chooses_partitions(dataframe: Any) -> bool:
    """Return whether Spark (4.1 and later) partitions by number."""
    return hasattr(dataframe, "repartitionById")


def to_partitions(dataframe: Any, partitions: int, column: str) -> Any:
    """Send each row to the partition of its slot; adaptive execution does not merge them."""
    if chooses_partitions(dataframe):
        return dataframe.repartitionById(partitions, column)
    return dataframe.repartition(partitions, column)


@cache
def _hash_slots(partitions: int) -> tuple[int, ...]:
    slots: dict[int, int] = {}
    value = 0
    while len(slots) < partitions:
        slots.setdefault(spark_hash(value) % partitions, value)
        value += 1
    return tuple(slots[partition] for partition in range(partitions))


def spark_hash(value: int) -> int:
    """Return `hash(value)` of Spark SQL for an INT, signed 32 bits.

    Follows `org.apache.spark.unsafe.hash.Murmur3_x86_32.hashInt` with the seed of `Murmur3Hash`.

    Examples
    --------
    >>> spark_hash(0)
    933211791
    """
    mask = 0xFFFFFFFF
    k = value * 0xCC9E2D51 & mask
    k = (k << 15 | k >> 17) & mask
    k = k * 0x1B873593 & mask
    h = SPARK_HASH_SEED ^ k
    h = (h << 13 | h >> 19) & mask
    h = (h * 5 + 0xE6546B64) & mask
    h ^= 4
    h = (h ^ h >> 16) * 0x85EBCA6B & mask
    h = (h ^ h >> 13) * 0xC2B2AE35 & mask
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h
