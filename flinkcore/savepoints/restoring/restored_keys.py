"""Keys of a savepoint as those of a job of flinkcore, with the key groups that this gives them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as kinds

from flinkcore.checkpoint.state_origin import JobOperator
from flinkcore.errors import ConfigurationError, DataError
from flinkcore.operators.keys.element_rows import element_keys, event_key_groups, groups_of_keys
from flinkcore.savepoints.restoring.python_values import python_values
from flinkcore.savepoints.serializers import basic
from flinkcore.savepoints.serializers.composite import RowSerializer, TupleSerializer
from flinkcore.savepoints.serializers.pojo import PojoSerializer
from flinkcore.savepoints.serializers.serializer import StateSerializer

Groups = npt.NDArray[np.int32]

_SAME_GROUPS: Final = {
    basic.STRING.name: ("string", "large_string"),
    basic.LONG.name: ("int64",),
    basic.INT.name: ("int32",),
    basic.SHORT.name: ("int16",),
    basic.BYTE.name: ("int8",),
    basic.DOUBLE.name: ("double",),
    basic.FLOAT.name: ("float",),
    basic.BOOLEAN.name: ("bool",),
}
"""Types of key columns by those of Flink's keys, where both have the same key groups."""


@dataclass(frozen=True)
class RestoredKeys:
    """Converts the keys of an operator.

    Parameters
    ----------
    operator : JobOperator
    serializer : StateSerializer
        Serializer of Flink's keys.
    """

    operator: JobOperator
    serializer: StateSerializer

    def check(self, what: str) -> None:
        """Check that the job has keys of the savepoint's type.

        Raises
        ------
        ConfigurationError
            If it has others; names both.
        """
        fields = self.operator.key_fields
        if fields is None or any(pa.types.is_null(field.type) for field in fields):
            return
        parts = _parts(self.serializer) if len(fields) != 1 else [self.serializer]
        if not fields and self.serializer == basic.BYTE:  # as windowAll has it
            return
        if len(fields) == 1 and isinstance(self.serializer, TupleSerializer | RowSerializer | PojoSerializer):
            parts = _parts(self.serializer)
        if len(parts) != len(fields) or not all(map(_fits, parts, (field.type for field in fields))):
            shown = ", ".join(f"{field.name}: {field.type}" for field in fields) or "none"
            raise ConfigurationError(
                f"the keys of {what} are {self.serializer.name} in the savepoint, and the job has the key columns "
                f"{shown}. Key the stream by columns of these types, such as with Types.cast in with_columns"
            )

    def has_groups_of_flink(self, max_parallelism: int) -> bool:
        """Return whether all keys have the key groups that Flink gives them."""
        fields = self.operator.key_fields
        if self.operator.max_parallelism != max_parallelism or fields is None or len(fields) != 1:
            return False
        return str(fields[0].type) in _SAME_GROUPS.get(self.serializer.name, ())

    def groups(self, keys: pa.Array) -> tuple[Groups, Callable[[npt.NDArray[np.int64]], list[Any]]]:
        """Return the key groups of keys, and a function from their indexes to the keys themselves.

        Parameters
        ----------
        keys : pyarrow.Array
            In the type in which the serializer's values are read.

        Raises
        ------
        DataError
            If a key is not one of the job's.
        """
        fields, max_parallelism = self.operator.key_fields, self.operator.max_parallelism
        if fields and not any(pa.types.is_null(field.type) for field in fields):
            columns = self.columns(keys)
            names = columns.schema.names
            groups = event_key_groups(columns, names, max_parallelism)
            return groups, lambda rows: element_keys(columns.take(pa.array(rows)), names)
        found = python_values(keys, self.serializer)
        if fields is not None:
            groups = groups_of_keys(found, fields, max_parallelism)
        else:
            assert self.operator.key_groups_of is not None
            groups = self.operator.key_groups_of(found)
        return groups, lambda rows: [found[row] for row in rows.tolist()]

    def columns(self, keys: pa.Array) -> pa.RecordBatch:
        """Return keys as the key columns of the job.

        Raises
        ------
        DataError
            If a key is not one of the job's.
        """
        fields = self.operator.key_fields or ()
        parts = [keys]
        if isinstance(self.serializer, TupleSerializer | RowSerializer | PojoSerializer):
            parts = [keys.field(number) for number in range(len(_parts(self.serializer)))]
        try:
            arrays = [part.cast(field.type) for part, field in zip(parts[: len(fields)], fields, strict=True)]
        except (pa.ArrowException, ValueError) as failure:
            raise DataError(
                f"a key of operator {self.operator.uid!r} is not one of the key columns of the job: {failure}"
            ) from None
        if not arrays:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * len(keys), pa.struct([])))
        return pa.RecordBatch.from_arrays(arrays, [field.name for field in fields])


def _parts(serializer: StateSerializer) -> list[StateSerializer]:
    if isinstance(serializer, PojoSerializer):
        return [part for _, part in serializer.fields]
    return list(serializer.parts)


def _fits(serializer: StateSerializer, wanted: pa.DataType) -> bool:
    """Return whether values of a serializer are converted into a column of a type without a change of meaning."""
    if kinds.is_dictionary(wanted):
        return _fits(serializer, wanted.value_type)
    found = pa.array(serializer.column(False).array()).type
    if serializer in (basic.BIG_DECIMAL, basic.BIG_INTEGER):
        return kinds.is_decimal(wanted) or (kinds.is_integer(wanted) and serializer == basic.BIG_INTEGER)
    return any(
        is_kind(found) and is_kind(wanted)
        for is_kind in (
            kinds.is_integer,
            kinds.is_floating,
            kinds.is_boolean,
            lambda each: kinds.is_string(each) or kinds.is_large_string(each) or kinds.is_string_view(each),
            lambda each: kinds.is_binary(each) or kinds.is_large_binary(each),
            kinds.is_date,
            kinds.is_time,
            kinds.is_timestamp,
        )
    )
