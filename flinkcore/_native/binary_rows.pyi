from typing import final

import numpy as np
import numpy.typing as npt
from typing_extensions import disjoint_base

from flinkcore._native.state_columns import BytesColumn, ChoiceColumn, StateColumn, WrappingColumn

@final
class SqlColumn(StateColumn):
    def __init__(self, format: str, size: int, per_ms: int = 1) -> None: ...

@final
class SqlBooleanColumn(StateColumn): ...

@final
class SqlTextColumn(BytesColumn):
    def __init__(self, exact: bool) -> None: ...

@disjoint_base
class SqlValue:
    @property
    def column(self) -> StateColumn: ...
    def __init__(self, kind: int, column: StateColumn, parts: list[SqlValue] | None = None) -> None: ...

@final
class RowsColumn(StateColumn):
    def __init__(
        self, names: list[str], fields: list[SqlValue], kinds: ChoiceColumn, keeps_places: bool = False
    ) -> None: ...

@final
class SizedColumn(WrappingColumn):
    def __init__(self, value: SqlValue) -> None: ...
    def hash_codes(self, n: int) -> npt.NDArray[np.int32]: ...

@final
class SingleColumn(WrappingColumn):
    def __init__(self, value: SqlValue) -> None: ...
