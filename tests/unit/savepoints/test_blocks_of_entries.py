"""Rows become blocks of key groups, each in the order of the rows; rows of other key groups are refused."""

import numpy as np
import pyarrow as pa
import pytest

from flinkcore._native.arrow import RecordBatch
from flinkcore._native.state_entries import EntryTable
from flinkcore.savepoints.keyed_types import KeyedTypes
from flinkcore.savepoints.serializers import basic, times

GROUPS = np.array([7, 5, 7, 8], np.int32)


def bound_table() -> EntryTable:
    types = KeyedTypes("VALUE", basic.LONG, times.VOID_NAMESPACE, None, basic.BYTE, False)
    table = types.table(128, False, 1 << 20)
    columns = [pa.array(GROUPS), pa.array([1, 2, 3, 4]), pa.array([10, 20, 30, 40], pa.int8())]
    table.bind(RecordBatch(pa.RecordBatch.from_arrays(columns, ["key_group", "key", "value"]), any_type=True))
    return table


def entry(group: int, key: int, value: int, *, is_last: bool) -> bytes:
    head = bytes([0, 0, 0, 10, group | (0x80 if is_last else 0)])
    return head + key.to_bytes(8, "big") + b"\0" + bytes([0, 0, 0, 1, value])


def test_each_block_has_the_rows_of_its_key_group_in_their_order() -> None:
    assert bound_table().write_blocks(3, GROUPS, 5, 4) == [
        b"\0\3" + entry(5, 2, 20, is_last=True),
        b"",
        b"\0\3" + entry(7, 1, 10, is_last=False) + entry(7, 3, 30, is_last=True),
        b"\0\3" + entry(8, 4, 40, is_last=True),
    ]


def test_rows_of_other_key_groups_and_other_numbers_of_rows_are_refused() -> None:
    table = bound_table()
    with pytest.raises(ValueError, match="row 3 has the key group 8"):
        table.write_blocks(0, GROUPS, 5, 3)
    with pytest.raises(ValueError, match="row 1 has the key group 5"):
        table.write_blocks(0, GROUPS, 6, 3)
    with pytest.raises(ValueError, match="not bound to 3 rows"):
        table.write_blocks(0, GROUPS[:3], 5, 4)
    with pytest.raises(ValueError, match="-1 key groups"):
        table.write_blocks(0, GROUPS, 5, -1)
