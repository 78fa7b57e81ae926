"""What the operator states of an instance hold at one moment, and how it goes to other instances."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from flinkcore.errors import ConfigurationError, DataError


class DistributionMode(Enum):
    """How an operator state is shared out among the instances of an operator.

    Notes
    -----
    Flink's ``OperatorStateHandle.Mode``.
    """

    SPLIT_DISTRIBUTE = "split"
    """Every element goes to one instance."""

    UNION = "union"
    """Every instance gets the elements of all."""

    BROADCAST = "broadcast"
    """Every instance gets what one instance had; all had the same."""


@dataclass(frozen=True, slots=True)
class OperatorStateSnapshot:
    """One operator state of one instance.

    Parameters
    ----------
    mode : DistributionMode
    elements : sequence of object
        Of a list state its elements; of a broadcast state its pairs of key and value.
    """

    mode: DistributionMode
    elements: Sequence[Any]


def redistribute(
    snapshots: Sequence[dict[str, OperatorStateSnapshot]], parallelism: int
) -> list[dict[str, OperatorStateSnapshot]]:
    """Return what the instances get after a restore, by their index.

    Elements of a split state stay where they are if the parallelism stays. Otherwise they are dealt out in
    order, in runs of equal length; those left over go one each to the next instances, where the state before
    has stopped with its own.

    Parameters
    ----------
    snapshots : sequence of dict of str to OperatorStateSnapshot
        By the index of the instance that they were taken of, each by state name.
    parallelism : int
        The number of instances from now on.

    Raises
    ------
    ConfigurationError
        If there is to be no instance.
    DataError
        If instances disagree on the mode of a state.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.checkpoint.RoundRobinOperatorStateRepartitioner``; the states take their
    turns in the order of their names.
    """
    if parallelism < 1:
        raise ConfigurationError(f"an operator has at least 1 instance, not {parallelism}")
    result: list[dict[str, OperatorStateSnapshot]] = [{} for _ in range(parallelism)]
    start = 0
    for name in sorted({name for snapshot in snapshots for name in snapshot}):
        parts = [snapshot[name] for snapshot in snapshots if name in snapshot]
        mode = parts[0].mode
        if any(part.mode is not mode for part in parts):
            raise DataError(f"the instances of an operator disagree on how its state {name!r} is shared out")
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
