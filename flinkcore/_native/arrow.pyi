from typing import Any, Protocol, final

class ArrowArrayExportable(Protocol):
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

@final
class RecordBatch:
    num_rows: int
    num_columns: int
    def __init__(self, batch: ArrowArrayExportable) -> None: ...

@final
class ColumnArray:
    def __init__(self, array: ArrowArrayExportable) -> None: ...
    def __len__(self) -> int: ...

@final
class NativeArray:
    def __len__(self) -> int: ...
    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[object, object]: ...
