from typing import final

from flinkcore._native.state_columns import (
    BytesColumn,
    ListColumn,
    MapColumn,
    StateColumn,
    StructColumn,
    WrappingColumn,
)

@final
class BlockListColumn(ListColumn): ...

@final
class BlockMapColumn(MapColumn): ...

@final
class OptionalColumn(WrappingColumn):
    def __init__(self, child: StateColumn, branch: int, null_branch: int) -> None: ...

@final
class UnionColumn(StructColumn):
    def __init__(self, names: list[str], children: list[StateColumn], null_branch: int) -> None: ...

@final
class FixedBytesColumn(BytesColumn):
    def __init__(self, size: int) -> None: ...

@final
class DecimalColumn(StateColumn):
    def __init__(self, precision: int, scale: int, size: int) -> None: ...
