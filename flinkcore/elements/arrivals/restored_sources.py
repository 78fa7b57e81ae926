"""Positions from which the sources of a job resume after a checkpoint.

A job that has stopped at the end of its sources gets the new elements: its sources begin with these, and only their
clocks and watermarks are restored. A job that was stopped during its sources gets the same ones, without the elements
that were emitted before.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.common.settings.flink_settings import UPPER_BOUND_MAX_PARALLELISM
from flinkcore.datastream.connectors.base import Source, SourceSplit
from flinkcore.datastream.connectors.collection import CollectionSplit
from flinkcore.datastream.connectors.iterator_source_reader import ResumedSplit
from flinkcore.errors import SchemaError, UserCodeError, in_words

if TYPE_CHECKING:
    from flinkcore.checkpoint import SplitPosition
    from flinkcore.elements.sources.source_watermarks import SourceWatermarks
    from flinkcore.operators.state import OperatorStateSnapshot

WATERMARKS: Final = "flinkcore.source watermarks"
"""State of a source with splits: its `SourceWatermarks`."""

PLACE: Final = "flinkcore.source place"
"""State of a source with splits: its `SourcePlace`."""

ARRIVALS: Final = "flinkcore.arrivals"
"""State of a source function: how many of its emissions had elements, when the last came, how long it has slept, and
whether it has come to its end, which 1 stands for."""

ENDED: Final = -1
"""Stands for the elements of a collection whose end has come."""


class Stop(IntEnum):
    """Way in which a job was stopped."""

    AT_END = 0
    """With the last elements of its sources; the next run has others."""
    AMID = 1
    """During its sources, which are to resume after what they have emitted."""
    DRAINED = 2
    """During its sources, after event time was advanced to its end: watermarks begin again."""


class SourcePlace(NamedTuple):
    """Position of a subtask of a source with splits.

    Attributes
    ----------
    position : int
        Number of polls.
    last_ms : int
        Time of the last one, in ms since the epoch; -2**63 before the first.
    polls : int
        Number of splits that have had their turn in a round of polls that continues if there are more; 0 without one.
    created_for : int
        The number of subtasks that its splits were created for, so that the same ones are created again; 0: the next
        run has others.
    turn : list of str
        The splits that are left of the round.
    """

    position: int
    last_ms: int
    polls: int
    created_for: int
    turn: list[str]

    @classmethod
    def of_elements(cls, elements: Sequence[Any]) -> SourcePlace:
        """Return the place of the elements of a checkpoint.

        Raises
        ------
        SchemaError
            If the elements are not those of a place.
        """
        if len(elements) == len(cls._fields) and isinstance(elements[-1], list | tuple):
            found = cls(*elements)
            least = 0, MIN_TIMESTAMP, 0, 0
            most = MAX_TIMESTAMP, MAX_TIMESTAMP, MAX_TIMESTAMP, UPPER_BOUND_MAX_PARALLELISM
            if all(isinstance(each, str) for each in found.turn) and all(
                type(number) is int and smallest <= number <= greatest
                for number, smallest, greatest in zip(found[:4], least, most, strict=True)
            ):
                return found._replace(turn=list(found.turn))
        raise SchemaError(f"it has {list(elements)!r:.80} in place of the place of a source")

    def with_new(self, split_ids: Iterable[str]) -> SourcePlace:
        """Return the place of a run that has further splits, whose turn comes in a round that continues."""
        return self._replace(turn=[*self.turn, *split_ids]) if self.polls else self

    def not_before(
        self, last: tuple[int, int] | None, arrival_ms: Callable[[int], int], origin: int
    ) -> SourcePlace:
        """Return the place whose next poll, as one of origin `origin`, is not before the last arrival."""
        if last is None or (arrival_ms(self.position + (self.polls == 0)), origin) >= last:
            return self
        position = first_position(self.position, lambda before: (arrival_ms(before + 1), origin) >= last)
        return self._replace(position=position, polls=0, turn=[])


def first_position(start: int, is_reached: Callable[[int], bool]) -> int:
    """Return the first position at or after `start` for which `is_reached` is true; it is true of all later ones."""
    count = 1
    while not is_reached(start + count - 1):
        count *= 2
    return start + bisect_left(range(count), True, key=lambda ahead: is_reached(start + ahead))


FIRST_PLACE: Final = SourcePlace(0, MIN_TIMESTAMP, 0, 0, [])


class RestoredSource(NamedTuple):
    """State from which a subtask of a source with splits resumes.

    Attributes
    ----------
    place : SourcePlace
    watermarks : SourceWatermarks or None
        State of its watermarks, or None if there was no poll or they begin again.
    next_tick_ms : int or None
        Time at which its generators emit next, or None for an interval from now.
    last : (int, int) or None
        Arrival and origin of the job's last element, before which nothing comes, or None without that bound.
    """

    place: SourcePlace
    watermarks: SourceWatermarks | None
    next_tick_ms: int | None
    last: tuple[int, int] | None


class RestoredFunction(NamedTuple):
    """State from which a subtask of a source function resumes.

    Attributes
    ----------
    position : int
        Number of emissions with elements.
    last_ms : int
        Arrival of the last emission; -2**63 before the first.
    slept_ms : int
        Time for which the function has slept in all.
    has_ended : bool
        Whether it has come to its end, so that it is not run again.
    context : tuple or None
        `snapshot_state` of its context, or None if it begins again.
    states : mapping of str to OperatorStateSnapshot
        Its own.
    """

    position: int
    last_ms: int
    slept_ms: int
    has_ended: bool
    context: tuple[int | None, ...] | None
    states: Mapping[str, OperatorStateSnapshot]


@dataclass(frozen=True)
class _NoMore(SourceSplit):
    """A split that was read to its end, which has not come before."""

    split_id: str

    def elements(self) -> Iterator[Any]:
        return iter(())


def without_emitted(split: SourceSplit, emitted: int) -> SourceSplit:
    """Return what is left of a collection: from a position on, or nothing if its end has come."""
    if isinstance(split, CollectionSplit) and emitted:
        return CollectionSplit(split.split_id, () if emitted == ENDED else split.collection[emitted:])
    return split


def splits_that_go_on(
    source: Source,
    parallelism: int,
    places: Sequence[SourcePlace],
    watermarks: Sequence[SourceWatermarks | None],
    positions: Sequence[SplitPosition],
) -> list[list[SourceSplit]]:
    """Return for each subtask what it reads.

    Parameters
    ----------
    source : Source
    parallelism : int
        Number of subtasks that read it.
    places, watermarks : sequence
        Places and watermarks of the subtasks of the previous run.
    positions : sequence of SplitPosition
        Positions of all splits that had not ended.

    Raises
    ------
    SchemaError
        If the source no longer has such splits, or its reader has saved none.
    """
    created_for = max(place.created_for for place in places)
    splits = list(source.create_splits(created_for or parallelism))
    if created_for == 0:
        known = {split.split_id for split in splits}
        by_subtask = [splits[index::parallelism] for index in range(parallelism)]
        if not reads_by_itself(source):
            held_ids = [each[0] for held in watermarks if held is not None for each in held.splits]
            for number, split_id in enumerate(each for each in held_ids if each not in known):
                _insert_as_before(_NoMore(split_id), by_subtask[number % parallelism], held_ids)
        return by_subtask
    place_of = {split.split_id: number for number, split in enumerate(splits)}
    found: list[list[SourceSplit]] = [[] for _ in range(parallelism)]
    by_id, ids = {split.split_id: split for split in splits}, set[str]()
    for number, entry in enumerate(positions):
        split = _split_at(source, by_id, entry)
        if split.split_id in ids:
            raise SchemaError(f"it has the split {split.split_id!r:.80} twice")
        ids.add(split.split_id)
        found[place_of.get(split.split_id, number) % parallelism].append(split)
    for of_subtask in found:
        of_subtask.sort(key=lambda split: place_of.get(split.split_id, len(place_of)))
    return found


def _insert_as_before(split: SourceSplit, splits: list[SourceSplit], held_ids: Sequence[str]) -> None:
    """Insert a restored split at its previous place, before splits that followed it and before new ones."""
    earlier = set(held_ids[: held_ids.index(split.split_id)])
    place = next((n for n, each in enumerate(splits) if each.split_id not in earlier), len(splits))
    splits.insert(place, split)


def _split_at(source: Source, splits: Mapping[str, SourceSplit], entry: SplitPosition) -> SourceSplit:
    position = entry.position
    if not reads_by_itself(source):
        if entry.split in splits and type(position) is int and position >= 0:
            return ResumedSplit(splits[entry.split], position)
        raise SchemaError(
            f"it has read the split {entry.split!r:.80} up to {position!r:.80}, and the source has the splits "
            f"{list(splits)}"
        )
    serializer = source.split_serializer()
    if serializer is None or type(position) is not bytes:
        raise SchemaError(
            f"it has the split {entry.split!r:.80} as {position!r:.80}, which {source} does not read"
        )
    try:
        split = serializer.deserialize(position)
    except Exception as failure:
        raise UserCodeError(
            f"split_serializer() of {source} cannot read the split {entry.split!r:.80}: {in_words(failure)}"
        ) from failure
    if not isinstance(split, SourceSplit) or split.split_id != entry.split:
        raise SchemaError(f"it has {split!r:.80} in place of the split {entry.split!r:.80}")
    return split


def reads_by_itself(source: Source) -> bool:
    """Return whether a source has readers of its own."""
    return type(source).create_reader is not Source.create_reader


def watermarks_that_go_on(
    watermarks: Sequence[SourceWatermarks | None],
    own: SourceWatermarks | None,
    splits: Sequence[SourceSplit],
) -> SourceWatermarks | None:
    """Return the watermarks of a subtask: its own, with those of the splits that it reads, whoever had them.

    Parameters
    ----------
    watermarks : sequence of SourceWatermarks or None
        Watermarks of the subtasks of the previous run.
    own : SourceWatermarks or None
        Watermarks of the subtask from which this one resumes.
    splits : sequence of SourceSplit
    """
    if own is None:
        return None
    by_split = {each[0]: each for held in watermarks if held is not None for each in held.splits}
    of_splits = [by_split[split.split_id] for split in splits if split.split_id in by_split]
    return own._replace(splits=of_splits)
