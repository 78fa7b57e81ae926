"""AsyncFunctions whose calls overlap, and whose results say how."""

import asyncio
from typing import Any

from flinkcore.common import Time
from flinkcore.datastream import AsyncDataStream, AsyncFunction, DataStream


class Doubled(AsyncFunction[Any, Any]):
    """Gives each element as often as its last field says, modulo 3; later calls are often done before earlier ones."""

    def open(self, runtime_context: Any) -> None:
        self.calls = 0

    async def async_invoke(self, value: Any) -> list[Any]:
        self.calls += 1
        for _ in range(self.calls * 7 % 5):
            await asyncio.sleep(0)
        return several(value)


def several(value: Any) -> list[Any]:
    return [value] * (value[-1] % 3)


def awaited(stream: DataStream, capacity: int = 3) -> DataStream:
    return AsyncDataStream.ordered_wait(stream, Doubled(), Time.seconds(60), capacity)
