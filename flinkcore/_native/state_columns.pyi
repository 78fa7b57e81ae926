from collections.abc import Callable
from typing import Any, final

from typing_extensions import Buffer, disjoint_base

from flinkcore._native.arrow import NativeArray, RecordBatch

class EntryError(ValueError):
    at: int
    is_damage: bool
    def __init__(self, message: str, at: int, is_damage: bool) -> None: ...

@disjoint_base
class StateColumn:
    def array(self) -> NativeArray: ...
    def read_value(self, data: Buffer, at: int, max_values: int) -> int: ...
    def read_values(self, batch: RecordBatch, number: int, max_values: int) -> None: ...
    def bind_batch(self, batch: RecordBatch, number: int) -> None: ...
    def write_value(self, row: int) -> bytes: ...

@final
class FixedColumn(StateColumn):
    def __init__(self, format: str, size: int, least_is_null: bool = False, end: int = 0) -> None: ...

@final
class BooleanColumn(StateColumn): ...

@disjoint_base
class BytesColumn(StateColumn):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

@final
class RestColumn(BytesColumn): ...

@final
class StringColumn(BytesColumn):
    def __init__(self, exact: bool = False, is_char: bool = False) -> None: ...

@final
class ChoiceColumn(BytesColumn):
    def __init__(self, texts: list[bytes]) -> None: ...

@final
class TextColumn(BytesColumn):
    def __init__(
        self,
        read: Callable[[memoryview], tuple[bytes | None, int]],
        write: Callable[[bytes | None], bytes],
    ) -> None: ...

@final
class TimeColumn(StateColumn):
    def __init__(self, kind: int) -> None: ...

@disjoint_base
class ListColumn(StateColumn):
    def __init__(self, child: StateColumn, flags: int = 0) -> None: ...

@disjoint_base
class MapColumn(StateColumn):
    def __init__(self, key: StateColumn, value: StateColumn, exact: bool = False) -> None: ...

@disjoint_base
class StructColumn(StateColumn):
    def __init__(self, names: list[str], children: list[StateColumn]) -> None: ...

@final
class RowColumn(StructColumn):
    def __init__(self, names: list[str], children: list[StateColumn], has_kind: bool = True) -> None: ...

@final
class PojoColumn(StructColumn):
    def __init__(
        self,
        names: list[str],
        children: list[StateColumn],
        fields: list[list[int]],
        classes: list[str],
        registered: list[int],
    ) -> None: ...

@final
class EitherColumn(StructColumn):
    def __init__(self, names: list[str], children: list[StateColumn], second: int) -> None: ...

@final
class RecordColumn(StructColumn): ...

@disjoint_base
class WrappingColumn(StateColumn):
    def __init__(self, child: StateColumn) -> None: ...

@final
class NullableColumn(WrappingColumn):
    def __init__(self, child: StateColumn, padding: int) -> None: ...

@final
class NothingColumn(StateColumn):
    def __init__(self, size: int = 1, byte: int = 0) -> None: ...
