"""Sources of tasks, pickled for them: elements of the program's collections one by one."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import Any, Final

from pyspark import cloudpickle

from flinkcore.datastream.connectors.base import SourceSplit
from flinkcore.datastream.connectors.collection import CollectionSplit
from flinkcore.elements.arrivals.task_sources import TaskElements, TaskSource, TaskSplits
from flinkcore.errors import UserCodeError, in_words
from flinkcore.operators.records.shown_values import shown
from flinkcore.spark.shipping.tasks import unsendable

_UNREAD: Final = re.compile(r"element (\d+) of the collection of task (\d+)")


@dataclass(frozen=True)
class ShippedElements(SourceSplit):
    """A collection whose elements are unpickled one by one, so that an error can name the element.

    Attributes
    ----------
    split_id : str
    task : int
        Number of the task that reads it.
    n_elements : int
    pickled : bytes
        The elements, written by one pickler, so that an object that several of them refer to stays one object.
    """

    split_id: str
    task: int
    n_elements: int
    pickled: bytes = field(repr=False)

    @classmethod
    def of(cls, split: CollectionSplit, task: int) -> ShippedElements:
        """Return the elements of a collection.

        Raises
        ------
        UserCodeError
            If one of them cannot be pickled.
        """
        target = BytesIO()
        dump = cloudpickle.CloudPickler(target, pickle.HIGHEST_PROTOCOL).dump
        for number, element in enumerate(split.collection):
            try:
                dump(element)
            except Exception as failure:
                raise unsendable(
                    f"element {number} of the collection, {shown(element)},",
                    failure,
                    "Let elements be values that pickle can write, and let a function make what cannot be pickled "
                    "(connections, locks, generators) from them",
                ) from failure
        return cls(split.split_id, task, len(split.collection), target.getvalue())

    def elements(self) -> Iterator[Any]:
        """Yield the elements.

        Raises
        ------
        UserCodeError
            If one of them cannot be unpickled here.
        """
        load = pickle.Unpickler(BytesIO(self.pickled)).load
        for number in range(self.n_elements):
            try:
                element = load()
            except Exception as failure:
                raise UserCodeError(
                    f"element {number} of the collection of task {self.task} cannot be unpickled on a Spark worker: "
                    f"{in_words(failure)}. Workers need the modules of its classes (send them by "
                    "spark.addArtifact('my_module.py', pyfile=True)), and __reduce__ or __setstate__ must work there"
                ) from failure
            yield element


@dataclass(frozen=True)
class ShippedSources:
    """Sources of a job's tasks, by the numbers of the tasks.

    Attributes
    ----------
    pickled : dict of int to bytes
        Pickled `TaskSource` objects.
    collections : dict of int to sequence
        The collections of tasks that read one, for messages.
    """

    pickled: dict[int, bytes]
    collections: dict[int, Sequence[Any]]

    @classmethod
    def of(cls, sources: Mapping[int, TaskSource]) -> ShippedSources:
        """Pickle what source tasks read.

        Raises
        ------
        UserCodeError
            If an element, split or watermark strategy cannot be pickled.
        """
        collections = {
            task: split.collection
            for task, source in sources.items()
            for split in _splits(source)
            if isinstance(split, CollectionSplit)
        }
        return cls({task: _pickled(source, task) for task, source in sources.items()}, collections)

    @contextmanager
    def shows_unread_elements(self) -> Iterator[None]:
        """Show the element that a worker's error names by its number; only the driver has it."""
        try:
            yield
        except UserCodeError as error:
            found = _UNREAD.match(str(error))
            if found is None:
                raise
            number, task = map(int, found.groups())
            element, rest = self.collections[task][number], str(error)[found.end() :]
            raise UserCodeError(
                f"element {number} of the collection, {shown(element)},{rest}"
            ) from error.__cause__


def _splits(source: TaskSource) -> Sequence[SourceSplit]:
    if isinstance(source, TaskSplits):
        return source.splits
    return [source.split] if isinstance(source, TaskElements) else []


def _pickled(source: TaskSource, task: int) -> bytes:
    splits = [
        ShippedElements.of(split, task) if isinstance(split, CollectionSplit) else split
        for split in _splits(source)
    ]
    if isinstance(source, TaskSplits):
        source = replace(source, splits=tuple(splits))
    elif isinstance(source, TaskElements):
        source = replace(source, split=splits[0])
    try:
        pickled: bytes = cloudpickle.dumps(source)
    except Exception as failure:
        raise unsendable(
            "what a source reads, or its watermark strategy,",
            failure,
            "Let splits, timestamp assigners and watermark generators make what cannot be pickled (connections, "
            "locks, the Spark session) when they are called",
        ) from failure
    return pickled
