"""One table of a checkpoint: the rows of a state, of a timer service or of a source's splits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore.checkpoint.value_decoding import Decode, decode
from flinkcore.checkpoint.value_encoding import Encode, encode
from flinkcore.checkpoint.value_shape import Shape
from flinkcore.errors import SchemaError


@dataclass(frozen=True)
class CheckpointTable:
    """Columns, and how to read them.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
    shapes : mapping of str to Shape
        By name of a column with Python values.
    attributes : mapping of str to object
        Further facts in the manifest; a JSON object.
    """

    batch: pa.RecordBatch
    shapes: Mapping[str, Shape]
    attributes: Mapping[str, Any]

    def values(self, column: str, decode: Decode = decode) -> list[Any]:
        """Return the Python values of a column.

        Raises
        ------
        SchemaError
            If there is no such column, or it is not of its shape.
        """
        if column not in self.shapes:
            raise SchemaError(f"a table of a checkpoint lacks the shape of its column {column!r}")
        return decode(self._array(column), self.shapes[column])

    def indexed_values(self, column: str, decode: Decode = decode) -> tuple[list[Any], npt.NDArray[np.int64]]:
        """Return the distinct values of a dictionary column, and by row the index of its value, `(n_rows,)`."""
        array = self._array(column)
        if column not in self.shapes or not pa.types.is_dictionary(array.type):
            raise SchemaError(
                f"the column {column!r} of a table of a checkpoint is not a dictionary of values"
            )
        if array.type.index_type != pa.int32() or array.indices.null_count:
            raise SchemaError(
                f"the column {column!r} of a table of a checkpoint is {array.type} with "
                f"{array.indices.null_count} nulls; its indexes must be int32 without nulls"
            )
        return decode(array.dictionary, self.shapes[column]), array.indices.to_numpy().astype(np.int64)

    def numbers(self, column: str, type: pa.DataType) -> npt.NDArray[Any]:
        """Return a column of numbers without nulls, `(n_rows,)`."""
        array = self._array(column)
        if array.type != type or array.null_count:
            raise SchemaError(
                f"the column {column!r} of a table of a checkpoint is {array.type} with {array.null_count} nulls; it "
                f"must be {type} without nulls"
            )
        numbers: npt.NDArray[Any] = array.to_numpy(zero_copy_only=False)
        return numbers

    def check_columns(self, *names: str) -> None:
        """Check that the table has exactly these columns.

        Raises
        ------
        SchemaError
            If it has others.
        """
        found = self.batch.schema.names
        if found != list(names):
            raise SchemaError(
                f"a table of a checkpoint has the columns {', '.join(found)}; they must be {', '.join(names)}"
            )

    def check_key_groups(self, first: int, last: int) -> None:
        """Check that all rows are of the key groups first to last, inclusive.

        Raises
        ------
        SchemaError
            If not; it names the first other row.
        """
        groups = self.numbers("key_group", pa.int32())
        if len(groups) and not first <= groups.min() <= groups.max() <= last:
            row = int(np.argmax((groups < first) | (groups > last)))
            raise SchemaError(
                f"row {row} is in the key group {groups[row]}, and the subtask has the key groups {first} to {last}"
            )

    def of_key_groups(self, first: int, last: int) -> "CheckpointTable":
        """Return the rows of the key groups first to last, inclusive."""
        groups = self.numbers("key_group", pa.int32())
        wanted = (groups >= first) & (groups <= last)
        if wanted.all():
            return self
        return CheckpointTable(self.batch.filter(pa.array(wanted)), self.shapes, self.attributes)

    def _array(self, column: str) -> pa.Array:
        if column not in self.batch.schema.names:
            raise SchemaError(f"a table of a checkpoint lacks the column {column!r}")
        return self.batch.column(column)


class TableColumns:
    """Builds a table column by column.

    Parameters
    ----------
    what : str
        The content of the table, for messages.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._arrays: dict[str, pa.Array] = {}
        self._shapes: dict[str, Shape] = {}

    def add_numbers(self, name: str, numbers: npt.NDArray[Any], type: pa.DataType) -> None:
        """Add a column of numbers."""
        self._arrays[name] = pa.array(numbers, type)

    def add_values(self, name: str, values: Sequence[Any], encode: Encode = encode) -> None:
        """Add a column of Python values.

        Parameters
        ----------
        name : str
        values : sequence of object, (n_rows,)
        encode : callable
            `value_encoding.encode`, or one that remembers.

        Raises
        ------
        SchemaError
            If a column cannot hold one of them.
        """
        self._arrays[name], self._shapes[name] = encode(values, f"{name} of {self._what}")

    def add_indexed_values(
        self, name: str, values: Sequence[Any], indexes: npt.NDArray[np.int64], encode: Encode = encode
    ) -> None:
        """Add a dictionary column of distinct Python values and, by row, the index of its value."""
        dictionary, self._shapes[name] = encode(values, f"{name} of {self._what}")
        self._arrays[name] = pa.DictionaryArray.from_arrays(pa.array(indexes.astype(np.int32)), dictionary)

    def table(self, attributes: Mapping[str, Any]) -> CheckpointTable:
        """Return the table."""
        batch = pa.RecordBatch.from_arrays(list(self._arrays.values()), list(self._arrays))
        return CheckpointTable(batch, self._shapes, attributes)
