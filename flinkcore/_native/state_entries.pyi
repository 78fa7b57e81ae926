from typing import final

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer

from flinkcore._native.arrow import NativeArray, RecordBatch
from flinkcore._native.state_columns import StateColumn

@final
class EntryTable:
    n_rows: int
    def __init__(
        self,
        kind: int,
        key: StateColumn,
        namespace: StateColumn | None,
        map_key: StateColumn | None,
        value: StateColumn | None,
        last_access: StateColumn | None,
        group_bytes: int,
        has_lengths: bool,
        rest_is_namespace: int,
        max_values_per_entry: int,
        spare_key: StateColumn | None = None,
        spare_namespace: StateColumn | None = None,
    ) -> None: ...
    @property
    def size_bytes(self) -> int: ...
    def read_heap_table(self, data: Buffer, at: int, group: int) -> int: ...
    def bind(self, batch: RecordBatch) -> None: ...
    def write_blocks(
        self, number: int, groups: npt.NDArray[np.int32], first_group: int, n_groups: int
    ) -> list[bytes]: ...
    def take(self) -> NativeArray: ...

@final
class EntryBlocks:
    has_ended: bool
    def __init__(self, tables: list[EntryTable | None], group: int) -> None: ...
    @property
    def state(self) -> int: ...
    @property
    def counts(self) -> list[int]: ...
    def feed(self, data: Buffer, at: int, most_rows: int) -> int: ...
