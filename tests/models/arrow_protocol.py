"""Arrow data of other libraries."""

from typing import Any


class ProtocolOnly:
    """Exports an array through the Arrow PyCapsule protocol, and has nothing else."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        return self._array.__arrow_c_array__(requested_schema)  # type: ignore[no-any-return]
