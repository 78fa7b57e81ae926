"""The source of elements in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from flinkcore.common.typeinfo import TypeInformation
from flinkcore.datastream.connectors.base import Source, SourceSplit
from flinkcore.errors import ArgumentTypeError, ConfigurationError, DataError

MOST_OF_ITERATOR = 10_000_000
"""Most elements of an iterator, which may have no end."""


@dataclass(frozen=True)
class CollectionSplit(SourceSplit):
    """The whole collection."""

    split_id: str
    collection: Sequence[Any] = field(repr=False)

    def elements(self) -> Iterator[Any]:
        return iter(self.collection)


class CollectionSource(Source):
    """The elements of a collection, as they are now, in one split.

    Parameters
    ----------
    collection : iterable
    type_info : TypeInformation
        Type that the elements are converted to.

    Raises
    ------
    ConfigurationError
        If it is not a collection.
    DataError
        If an element is of another type.
    """

    def __init__(self, collection: Any, type_info: TypeInformation) -> None:
        if not hasattr(collection, "__iter__") or isinstance(collection, str | bytes):
            raise ArgumentTypeError(f"from_collection takes a list of elements, not {collection!r}")
        self._elements = _checked(collection, type_info)
        self._type_info = type_info

    def create_splits(self, parallelism: int) -> Sequence[CollectionSplit]:
        return [CollectionSplit("collection", self._elements)]

    def produced_type(self) -> TypeInformation:
        return self._type_info

    def is_parallel(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"of a collection of {len(self._elements)} elements: {self._type_info!r}"


def _checked(collection: Iterable[Any], type_info: TypeInformation) -> list[Any]:
    conversion = type_info.conversion()
    elements: list[Any] = []
    for element in collection:
        try:
            converted = element if conversion is None else conversion(element)
        except DataError as failure:
            raise DataError(f"element {len(elements)} of the collection: {failure}") from failure
        elements.append(converted)
        if len(elements) > MOST_OF_ITERATOR and not hasattr(collection, "__len__"):
            raise ConfigurationError(
                f"from_collection holds all elements, and {type(collection).__name__!r} has more than "
                f"{MOST_OF_ITERATOR:,}, maybe without end. Cut it with itertools.islice, give a list, or read a source "
                "with from_source"
            )
    return elements
