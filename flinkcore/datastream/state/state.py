"""The kinds of state that functions read and write."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
IN = TypeVar("IN")
OUT = TypeVar("OUT")


class State(ABC):
    """A state of a function; keyed state holds a value per key, and gives access to that of the current key.

    Notes
    -----
    Follows ``pyflink.datastream.state.State``.
    """

    @abstractmethod
    def clear(self) -> None:
        """Remove the content; of keyed state, that of the current key."""


class ValueState(State, Generic[T]):
    """A single value of the current key.

    Notes
    -----
    Follows ``pyflink.datastream.state.ValueState``.
    """

    @abstractmethod
    def value(self) -> T | None:
        """Return the value, or None."""

    @abstractmethod
    def update(self, value: T | None) -> None:
        """Set the value; None removes it."""


class AppendingState(State, Generic[IN, OUT]):
    """A state that values are added to.

    Notes
    -----
    Follows ``pyflink.datastream.state.AppendingState``.
    """

    @abstractmethod
    def get(self) -> OUT:
        """Return the result of the values added so far."""

    @abstractmethod
    def add(self, value: IN) -> None:
        """Add a value."""


class MergingState(AppendingState[IN, OUT]):
    """An appending state of which two can be merged, as for merging windows.

    Notes
    -----
    Follows ``pyflink.datastream.state.MergingState``.
    """


class ListState(MergingState[T, list[T]]):
    """A list of the current key; in operator state, of the operator.

    Notes
    -----
    Follows ``pyflink.datastream.state.ListState``. None cannot be an element, as in Flink.
    """

    @abstractmethod
    def get(self) -> list[T]:
        """Return a copy of the list; empty if nothing was added."""

    @abstractmethod
    def update(self, values: Iterable[T]) -> None:
        """Replace all elements; an empty iterable clears the list.

        If one of the new elements is refused, because it is None or not of the declared type, the list stays as it was.
        """

    @abstractmethod
    def add_all(self, values: Iterable[T]) -> None:
        """Append all elements, or none: if one is refused, as by `update`, the list stays as it was."""

    def __iter__(self) -> Iterator[T]:
        return iter(self.get())


class ReducingState(MergingState[T, T | None]):
    """The reduction of all values added under the current key by a :class:`ReduceFunction`.

    ``get`` returns None before the first ``add``; adding None clears.

    Notes
    -----
    Follows ``pyflink.datastream.state.ReducingState``.
    """


class AggregatingState(MergingState[IN, OUT | None]):
    """The aggregate of all values added under the current key by an :class:`AggregateFunction`.

    ``get`` returns None before the first ``add``; adding None clears.

    Notes
    -----
    Follows ``pyflink.datastream.state.AggregatingState``.
    """


class _ReadableMap(State, Generic[K, V]):
    @abstractmethod
    def get(self, key: K) -> V | None:
        """Return the value of a map key, or None."""

    @abstractmethod
    def contains(self, key: K) -> bool:
        """Return whether there is a map key; in a state with a time to live, one whose value is not None."""

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V]]:
        """Return the current map keys with their values."""

    @abstractmethod
    def keys(self) -> Iterable[K]:
        """Return the current map keys."""

    @abstractmethod
    def values(self) -> Iterable[V]:
        """Return the current values."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Return whether there is no map key."""

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class _WritableMap(_ReadableMap[K, V]):
    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Set the value of a map key; in a `MapState`, it may be None."""

    @abstractmethod
    def put_all(self, dict_value: Mapping[K, V] | Iterable[tuple[K, V]]) -> None:
        """Set the values of all these map keys, or none: if one is not of the declared type, the map stays as it was.

        Parameters
        ----------
        dict_value : mapping, or iterable of pairs
            New entries; of a key that comes twice, the last value counts.
        """

    @abstractmethod
    def remove(self, key: K) -> None:
        """Remove a map key, if it is there."""

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)


class MapState(_WritableMap[K, V | None], Generic[K, V]):
    """A map of the current key.

    Notes
    -----
    Follows ``pyflink.datastream.state.MapState``.
    """


class ReadOnlyBroadcastState(_ReadableMap[K, V]):
    """Broadcast state as the keyed side of a broadcast function sees it; its values must not be changed.

    Notes
    -----
    Follows ``pyflink.datastream.state.ReadOnlyBroadcastState``.
    """


class BroadcastState(ReadOnlyBroadcastState[K, V], _WritableMap[K, V]):
    """A map that every instance of an operator builds from the same broadcast elements.

    It must depend on nothing else: after a change of parallelism a new instance gets the map of one of the old ones.

    Notes
    -----
    Follows ``pyflink.datastream.state.BroadcastState``.
    """


class ColumnState(ABC):
    """A numpy column with a row per key, indexed by dense key id; it grows with the number of keys.

    ``state[key_ids]`` and ``state[key_ids] = values`` are numpy's: reading copies; where an id comes twice, the last
    value stays, and ``state[key_ids] += 1`` counts it once. If a key may come several times in a batch, count with
    ``numpy.add.at(state.array, key_ids, 1)``.

    Notes
    -----
    PyFlink has no counterpart; it replaces a ``ValueState`` of every key.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the state."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""

    @property
    @abstractmethod
    def default(self) -> Any:
        """Value of a key that has none yet."""

    @property
    @abstractmethod
    def array(self) -> npt.NDArray[Any]:
        """The column itself (n_keys,), to be read and written; valid until the call of the function returns."""

    @abstractmethod
    def clear(self, key_ids: Any) -> None:
        """Reset keys to the default."""

    def __getitem__(self, key_ids: Any) -> Any:
        return self.array[key_ids]

    def __setitem__(self, key_ids: Any, values: Any) -> None:
        self.array[key_ids] = values

    def __len__(self) -> int:
        return len(self.array)


class ColumnAggregateState(ABC):
    """Aggregates of the rows of each key, by dense key id: native accumulators that take rows a batch at a time.

    Notes
    -----
    PyFlink has no counterpart; it replaces an ``AggregatingState`` of every key.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the state."""

    @abstractmethod
    def add(self, key_ids: Any, rows: pa.RecordBatch) -> None:
        """Take in rows.

        Parameters
        ----------
        key_ids : int array (n_rows,)
            The key of each row; a key may come several times.
        rows : pyarrow.RecordBatch (n_rows,)
            Columns of the elements.
        """

    @abstractmethod
    def running(self, key_ids: Any, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Take in rows, and return the aggregates of the key of each row up to it; parameters as of `add`."""

    @abstractmethod
    def get(self, key_ids: Any) -> pa.RecordBatch:
        """Return the aggregates of keys, a row for each id; those of a key without rows are those of no rows."""

    @abstractmethod
    def clear(self, key_ids: Any) -> None:
        """Forget the rows of keys."""


class ColumnListState(ABC):
    """A list of rows for each key, as Arrow columns, by dense key id.

    Values are added and read a batch at a time, for many keys at once, and none becomes a Python object::

        self.waiting.add(key_ids, bids)  # a row for each id, after those of the key
        bids, places = self.waiting.get(key_ids)  # all rows of these keys, and whose each is
        self.waiting.clear(key_ids)

    Notes
    -----
    PyFlink has no counterpart; it replaces a ``ListState`` of every key.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the state."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """Columns of the rows."""

    @abstractmethod
    def add(self, key_ids: Any, rows: Any) -> None:
        """Put rows at the ends of the lists of keys, in the order given.

        Parameters
        ----------
        key_ids : int array (n_rows,)
            The key of each row; a key may come several times.
        rows
            A ``pyarrow.RecordBatch`` or ``Table``, or a dict from names to Arrow or numpy columns or lists, with the
            columns of the schema. They are copied.

        Raises
        ------
        SchemaError
            If the rows do not fit the schema.
        DataError
            If there is no such key, there are more or fewer ids than rows, or a null is where none may be.
        """

    @abstractmethod
    def get(self, key_ids: Any) -> tuple[pa.RecordBatch, npt.NDArray[np.int64]]:
        """Return the rows of keys, key after key as given, each key's in the order in which they were added.

        Parameters
        ----------
        key_ids : int array (n_keys,)

        Returns
        -------
        rows : pyarrow.RecordBatch (n_rows,)
        places : int64 array (n_rows,)
            For each row the place of its key in `key_ids`. For ``timers.key_ids`` it is what ``timers.results`` takes.

        Raises
        ------
        DataError
            If there is no such key, or a column of these rows has more text, or elements of lists, than its type can
            count: ask for fewer keys at once, or give the column a large type.
        """

    @abstractmethod
    def lengths(self, key_ids: Any) -> npt.NDArray[np.int64]:
        """Return how many rows keys have (n_keys,); DataError if there is no such key."""

    @abstractmethod
    def clear(self, key_ids: Any) -> None:
        """Empty the lists of keys; DataError if there is no such key."""

    @abstractmethod
    def update(self, key_ids: Any, rows: Any) -> None:
        """Replace the lists of the keys of these rows; parameters and errors as of `add`.

        Rows that do not fit change nothing.
        """
