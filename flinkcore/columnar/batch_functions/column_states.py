"""The state of a function over batches: columns and lists of rows by dense key id."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.arrow.column_values import any_type, same_values
from flinkcore._internal.arrow.schemas import repeated_names
from flinkcore._internal.python.object_sizes import size_of_all
from flinkcore._internal.values.row import Row
from flinkcore._native.key_lists import KeyLists
from flinkcore.checkpoint.table_file import require_plain_type
from flinkcore.columnar.batch_functions.given_columns import GivenColumns
from flinkcore.columnar.relational.numbered_rows import ALL_COPIED, PIECE_BYTES, NumberedRows
from flinkcore.datastream.state import ColumnListState, ColumnState, StateDescriptor
from flinkcore.errors import ConfigurationError, DataError, LifecycleError, SchemaError
from flinkcore.operators.keys.element_rows import exact_rows, value_columns
from flinkcore.operators.records.shown_values import shown

LEAST_KEYS = 1 << 10

LEAST_CLEARED_ROWS = 1 << 14
"""Fewer cleared rows are not worth a copy of the others."""

KEYS_PER_CLEARED_ROW = 8
"""Nor are fewer than one for so many keys, as the lists of all keys are numbered again."""

COPIED_ROWS = 1 << 16
"""So many rows are copied at once."""


class NumpyColumnState(ColumnState):
    """A column that has room for more keys than there are.

    Parameters
    ----------
    name : str
    dtype : numpy.dtype
    default : object
    """

    def __init__(self, name: str, dtype: np.dtype[Any], default: Any) -> None:
        self._name = name
        self._default = default
        self._values = np.full(LEAST_KEYS, default, dtype)
        self._n_keys = 0

    @property
    def name(self) -> str:
        return self._name

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self._values.dtype)

    @property
    def default(self) -> Any:
        return self._default

    @property
    def array(self) -> npt.NDArray[Any]:
        return self._values[: self._n_keys]

    def clear(self, key_ids: Any) -> None:
        self.array[key_ids] = self._default

    def grow(self, n_keys: int) -> None:
        """Have a row for the key ids below `n_keys`; amortised O(1) per key."""
        if n_keys > len(self._values):
            capacity = max(n_keys, 2 * len(self._values))
            grown = np.full(capacity, self._default, self.dtype)
            grown[: self._n_keys] = self.array
            self._values = grown
        self._n_keys = max(n_keys, self._n_keys)

    def memory_bytes(self) -> int:
        """Return about how many bytes the values take."""
        objects = size_of_all(self.array) if self.dtype.hasobject else 0
        return self._values.nbytes + objects

    kind = StateDescriptor.Type.VALUE
    """Kind of its snapshots."""

    def kept(self) -> tuple[Int64s, list[Any]]:
        """Return the keys whose value is not the default, ascending, and their values; of Python objects, all."""
        if self.dtype.hasobject:
            ids = np.arange(self._n_keys)
        else:
            ids = np.flatnonzero(self.array != self._values.dtype.type(self._default)).astype(np.int64)
        return ids, self.array[ids].tolist()

    def restore(self, key_ids: Int64s, values: Sequence[Any]) -> None:
        """Take the values of keys as of `kept`; a SchemaError if they are of another type."""
        restored = np.empty(len(values), self.dtype)
        if self.dtype.hasobject:
            for row, value in enumerate(values):  # an array of lists would become one of their elements
                restored[row] = value
        else:
            try:
                restored[:] = values
            except (TypeError, ValueError, OverflowError) as failure:
                raise SchemaError(
                    f"values of the checkpoint for the state {self.name!r} are not {self.dtype}, such as "
                    f"{shown(values[0])}: {failure}"
                ) from failure
            self._refuse_changed(values, restored.tolist())
        self[key_ids] = restored

    def _refuse_changed(self, values: Sequence[Any], restored: list[Any]) -> None:
        if same_values(values, restored):
            return
        value, found = next(pair for pair in zip(values, restored, strict=True) if not same_values(*pair))
        raise SchemaError(
            f"values of the checkpoint for the state {self.name!r} are not {self.dtype}, such as {shown(value)}, which "
            f"would become {shown(found)}"
        )


class ArrowListState(ColumnListState):
    """Lists of rows of one growing batch; it is copied without the cleared rows when they are more than the others.

    Parameters
    ----------
    name : str
    schema : pyarrow.Schema
    piece_bytes : int
        As of `NumberedRows`.
    """

    def __init__(self, name: str, schema: pa.Schema, piece_bytes: int = PIECE_BYTES) -> None:
        self._name = name
        self._piece_bytes = piece_bytes
        self._schema = schema
        self._lists = KeyLists()
        self._rows = self._no_rows()
        self._n_keys = 0

    @property
    def name(self) -> str:
        return self._name

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def add(self, key_ids: Any, rows: Any) -> None:
        self._append(*self._checked(key_ids, rows))

    def update(self, key_ids: Any, rows: Any) -> None:
        ids, batch = self._checked(key_ids, rows)
        self.clear(ids)
        self._append(ids, batch)

    def _checked(self, key_ids: Any, rows: Any) -> tuple[Int64s, pa.RecordBatch]:
        ids = self._ids(key_ids)
        batch = GivenColumns(rows, f"the state {self._name!r}").batch(self._schema)
        if len(ids) != batch.num_rows:
            raise DataError(f"the state {self._name!r} got {batch.num_rows:,} rows, and {len(ids):,} key ids")
        return ids, batch

    def _append(self, ids: Int64s, batch: pa.RecordBatch) -> None:
        self._rows.add(batch)
        self._lists.add(ids)

    def get(self, key_ids: Any) -> tuple[pa.RecordBatch, Int64s]:
        ids = self._ids(key_ids)
        rows, places = self._lists.rows(ids)
        try:
            return self._rows.take(rows), places
        except DataError as failure:
            raise DataError(
                f"the state {self._name!r} has {len(rows):,} rows of {len(ids):,} keys: {failure}"
            ) from failure

    def lengths(self, key_ids: Any) -> Int64s:
        return self._lists.lengths(self._ids(key_ids))

    def clear(self, key_ids: Any) -> None:
        self._lists.clear(self._ids(key_ids))
        held, cleared = len(self._lists), len(self._rows) - len(self._lists)
        if cleared > max(held, LEAST_CLEARED_ROWS, self._n_keys // KEYS_PER_CLEARED_ROW):
            self._forget_cleared_rows()

    def _forget_cleared_rows(self) -> None:
        rows = self._no_rows()
        for part in self._rows.parts(self._lists.renumber(), COPIED_ROWS):
            rows.add(part)
        self._rows = rows

    def _no_rows(self) -> NumberedRows:
        return NumberedRows(self._schema, ALL_COPIED, self._piece_bytes)

    def grow(self, n_keys: int) -> None:
        """Know the key ids below `n_keys`; amortised O(1) per key."""
        self._lists.grow(n_keys)
        self._n_keys = max(self._n_keys, n_keys)

    def memory_bytes(self) -> int:
        """Return about how many bytes the lists take."""
        return self._lists.memory_bytes() + self._rows.nbytes

    kind = StateDescriptor.Type.LIST
    """Kind of its snapshots."""

    def kept(self) -> tuple[Int64s, list[Any]]:
        """Return the keys that have rows, ascending, and for each a list of its rows."""
        ids = np.flatnonzero(self._lists.lengths(np.arange(self._n_keys)))
        rows, _ = self._lists.rows(ids)
        values: list[Row] = []
        for part in self._rows.parts(rows, COPIED_ROWS):
            values += exact_rows(part)
        ends = np.cumsum(self._lists.lengths(ids)).tolist()
        return ids, [values[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]

    def restore(self, key_ids: Int64s, values: Sequence[Any]) -> None:
        """Take the lists of keys as of `kept`; a SchemaError if rows have other columns or types."""
        what = f"rows of the state {self._name!r} in the checkpoint"
        ids = np.repeat(key_ids, [len(of_key) for of_key in values])
        all_rows = [row for of_key in values for row in of_key]
        for begin in range(0, len(ids), COPIED_ROWS):
            rows = all_rows[begin : begin + COPIED_ROWS]
            self._refuse_other_names(rows, what)
            columns = value_columns(rows, list(self._schema), what)
            for row, found in zip(rows, exact_rows(columns), strict=True):
                if not same_values(tuple(row), tuple(found)):
                    raise SchemaError(
                        f"{what} are not those of this job: {shown(row)} would become {shown(found)}"
                    )
            self.add(ids[begin : begin + COPIED_ROWS], columns)

    def _refuse_other_names(self, rows: Sequence[Any], what: str) -> None:
        names = tuple(self._schema.names)
        for row in rows:
            if not isinstance(row, Row) or row._fields not in (None, names):
                raise SchemaError(
                    f"{what} are not those of this job, which are {', '.join(names)}: {shown(row)}"
                )

    def _ids(self, key_ids: Any) -> Int64s:
        ids = np.asarray(key_ids)
        if ids.size == 0:
            return np.empty(0, np.int64)
        if ids.ndim != 1 or ids.dtype.kind not in "iu" or not 0 <= ids.min() <= ids.max() < self._n_keys:
            raise DataError(
                f"the state {self._name!r} got {shown(key_ids)}, which are not ids of keys; there are "
                f"{self._n_keys:,} keys"
            )
        return np.ascontiguousarray(ids, np.int64)


class KeyedColumns(Protocol):
    """State by dense key id, with what checkpoints and limits of memory need of it."""

    @property
    def name(self) -> str:
        """Name of the state."""
        ...

    @property
    def kind(self) -> StateDescriptor.Type:
        """Kind of its snapshots."""
        ...

    def grow(self, n_keys: int) -> None:
        """Know the key ids below `n_keys`."""
        ...

    def memory_bytes(self) -> int:
        """Return about how many bytes the state takes."""
        ...

    def kept(self) -> tuple[Int64s, list[Any]]:
        """Return the keys that have state, ascending, and the value of each in a checkpoint."""
        ...

    def restore(self, key_ids: Int64s, values: Sequence[Any]) -> None:
        """Take the values of keys as of `kept`; a SchemaError if they are of another type."""
        ...


S = TypeVar("S", bound=KeyedColumns)


class ColumnStates:
    """The states of a function by name; all have as many keys."""

    def __init__(self) -> None:
        self._states: dict[str, KeyedColumns] = {}
        self._is_open = False

    def add_list(self, name: str, schema: Any) -> ArrowListState:
        """Return new lists.

        Raises
        ------
        ConfigurationError
            If the name is taken, or the schema cannot be that of lists.
        LifecycleError
            If the function is open.
        """
        self._check_name(name)
        if not isinstance(schema, pa.Schema) or not len(schema):
            raise ConfigurationError(
                f"the state {name!r} has a pyarrow.Schema with the columns of its rows, not {shown(schema)}"
            )
        repeated = repeated_names(schema.names)
        if repeated:
            raise ConfigurationError(f"the state {name!r}: two columns are named {min(repeated)!r}")
        for field in schema:
            if any_type(field.type, pa.types.is_dictionary):
                raise ConfigurationError(
                    f"the state {name!r}: the column {field.name!r} has the type {field.type}, and a dictionary would "
                    "keep the values of cleared rows. Take the type of its values, which rows with a dictionary fit"
                )
        try:
            for field in schema:
                require_plain_type(field.type, field.name)
        except SchemaError as failure:
            raise ConfigurationError(f"the state {name!r}: {failure}") from failure
        found = self._states[name] = ArrowListState(name, schema)
        return found

    def add_made(self, name: str, make: Callable[[], S]) -> S:
        """Return a new state that a call makes.

        Raises
        ------
        ConfigurationError
            If the name is taken.
        LifecycleError
            If the function is open.
        """
        self._check_name(name)
        found = self._states[name] = make()
        return found

    def _check_name(self, name: str) -> None:
        if self._is_open:
            raise LifecycleError(f"the state {name!r} is to be asked for in open(), not later")
        if not isinstance(name, str) or not name:
            raise ConfigurationError(f"a state is named by a string that is not empty, not {name!r}")
        if name in self._states:
            raise ConfigurationError(f"there are two states named {name!r}. Give each a name of its own")

    def add(self, name: str, dtype: Any, default: Any) -> NumpyColumnState:
        """Return a new column.

        Raises
        ------
        ConfigurationError
            If the name is taken, or the type or the default cannot be those of a column.
        LifecycleError
            If the function is open.
        """
        self._check_name(name)
        try:
            type_ = np.dtype(dtype)
        except TypeError as failure:
            raise ConfigurationError(f"the state {name!r}: {dtype!r} is not a numpy dtype") from failure
        if type_.subdtype is not None or type_.names is not None or type_.itemsize == 0:
            raise ConfigurationError(
                f"the state {name!r}: {type_} is not a type of one value per key; take a column for each part, a "
                "text of fixed length such as 'U20', or object"
            )
        column = self._states[name] = NumpyColumnState(name, type_, _checked_default(name, type_, default))
        return column

    def opened(self) -> None:
        """Refuse more states from now on."""
        self._is_open = True

    def grow(self, n_keys: int) -> None:
        """Have a row for the key ids below `n_keys` in each state."""
        for state in self._states.values():
            state.grow(n_keys)

    def memory_bytes(self) -> int:
        """Return about how many bytes the states take."""
        return sum(state.memory_bytes() for state in self._states.values())

    def all(self) -> list[KeyedColumns]:
        """Return the states as they were asked for."""
        return list(self._states.values())

    def named(self, name: str) -> KeyedColumns | None:
        """Return the state of this name, or None if the function uses none."""
        return self._states.get(name)


def _checked_default(name: str, dtype: np.dtype[Any], default: Any) -> Any:
    if dtype.hasobject:
        if type(default).__hash__ is None:
            raise ConfigurationError(
                f"the state {name!r}: all keys would share the default {default!r}, which can change; take None, and "
                "make one where you find it"
            )
        return default
    try:
        made = np.full(1, default, dtype)[0]
    except (TypeError, ValueError, OverflowError) as failure:
        raise ConfigurationError(
            f"the state {name!r}: the default {default!r} is not {dtype}: {failure}"
        ) from failure
    if dtype.kind in "iub" and made != default:
        raise ConfigurationError(f"the state {name!r}: the default {default!r} is not {dtype}")
    return made
