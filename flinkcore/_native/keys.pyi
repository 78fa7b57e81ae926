from typing import Protocol, final

from flinkcore._native.arrow import ArrowArrayExportable, RecordBatch

class _ArrowSchemaExportable(Protocol):
    def __arrow_c_schema__(self) -> object: ...

@final
class KeyEncoder:
    def __new__(
        cls, schema: _ArrowSchemaExportable | ArrowArrayExportable | RecordBatch, names: list[str]
    ) -> KeyEncoder: ...
    def encode_batch(self, batch: RecordBatch | ArrowArrayExportable) -> None: ...
