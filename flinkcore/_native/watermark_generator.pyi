from typing import Literal, final

from typing_extensions import Self

@final
class WatermarkGenerator:
    def __new__(cls, out_of_orderness_ms: int | None, idleness_ms: int | None = None) -> Self: ...
    def on_event(self, timestamp_ms: int) -> None: ...
    def on_periodic_emit(
        self, clock_ms: int
    ) -> list[tuple[Literal["watermark"], int] | tuple[Literal["status"], Literal["idle"]]]: ...
