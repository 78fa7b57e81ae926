"""Data from other producers: what the Arrow C data interface allows and pyarrow does not do."""

import ctypes
from typing import Any

import pyarrow as pa
import pytest
from equipment.arrow_protocol import ArrowSchema

from flinkcore._native.arrow import ColumnArray, RecordBatch
from flinkcore._native.key_dictionary import KeyDictionary
from flinkcore._native.key_groups import hash_codes
from flinkcore.errors import SchemaError

capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.restype = ctypes.c_void_p
capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Nameless:
    """Exports an array whose last field has no name at all."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def _without_name(self, schema: object) -> object:
        fields = ctypes.cast(capsule_pointer(schema, b"arrow_schema"), ctypes.POINTER(ArrowSchema)).contents
        fields.children[fields.n_children - 1].contents.name = None
        return schema

    def __arrow_c_schema__(self) -> object:
        return self._without_name(self._array.schema.__arrow_c_schema__())

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        schema, array = self._array.__arrow_c_array__(requested_schema)
        return self._without_name(schema), array


def test_a_column_without_a_name_has_the_empty_name() -> None:
    batch = Nameless(pa.record_batch({"a": [1, 1], "b": ["x", "y"]}))
    assert KeyDictionary(batch, ["a"]).ids(batch).tolist() == [0, 0]
    assert KeyDictionary(batch, [""]).ids(batch).tolist() == [0, 1]


def test_a_missing_column_is_told_where_a_column_has_no_name() -> None:
    keys = KeyDictionary(pa.schema([("b", pa.string())]), ["b"])
    with pytest.raises(SchemaError, match="no column 'b'; the columns are a, "):
        keys.ids(Nameless(pa.record_batch({"a": [1], "b": ["x"]})))


def test_a_column_without_a_name_that_is_not_supported_is_told() -> None:
    with pytest.raises(SchemaError, match=r"column '': .* not supported here"):
        RecordBatch(Nameless(pa.record_batch({"a": [1], "b": [[1]]})))


def test_every_row_of_a_null_column_is_null() -> None:
    column = pa.nulls(20)
    assert (
        hash_codes(pa.StructArray.from_arrays([column, column], names=["a", "b"])).tolist() == [31 * 31] * 20
    )
    assert hash_codes(column.slice(3)).tolist() == [0] * 17
    assert len(ColumnArray(column.slice(20))) == 0
