"""Generators that emit the maximum watermark amid the log."""

from collections.abc import Callable
from functools import partial
from typing import Any

from models.watermarks import Generator, Output

from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP, Watermark, WatermarkGenerator, WatermarkOutput


class EndsEarly(WatermarkGenerator[Any]):
    """Follows the timestamps; once it has seen a multiple of `every`, it emits the maximum.

    Parameters
    ----------
    at
        "event": it emits at events; "tick": periodically.
    every
        Timestamps that are no multiple of it do not end anything.
    """

    def __init__(self, at: str, every: int = 7) -> None:
        self.at = at
        self.every = every
        self.highest = MIN_TIMESTAMP

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        seen = MAX_TIMESTAMP if event_timestamp % self.every == 0 else event_timestamp - 3
        self.highest = max(self.highest, seen)
        if self.at == "event":
            output.emit_watermark(Watermark(self.highest))

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        if self.at == "tick":
            output.emit_watermark(Watermark(self.highest))

    def snapshot_state(self) -> int:
        return self.highest

    def restore_state(self, state: int) -> None:
        self.highest = state


class Emitted(WatermarkOutput):
    """What a generator emits, as models have it."""

    def __init__(self) -> None:
        self.outputs: list[Output] = []

    def emit_watermark(self, watermark: Watermark) -> None:
        self.outputs.append(("watermark", watermark.timestamp))

    def mark_idle(self) -> None:
        self.outputs.append(("status", "idle"))

    def mark_active(self) -> None:
        raise AssertionError("operators do not know this")


class Modelled:
    """A generator where a model wants one."""

    def __init__(self, generator: WatermarkGenerator[Any]) -> None:
        self.generator = generator

    def on_event(self, timestamp_ms: int) -> list[Output]:
        output = Emitted()
        self.generator.on_event(None, timestamp_ms, output)
        return output.outputs

    def on_periodic_emit(self, clock_ms: int) -> list[Output]:
        output = Emitted()
        self.generator.on_periodic_emit(output)
        return output.outputs


def ends_early_model(at: str) -> Callable[[], Generator]:
    """Return what makes the model of `EndsEarly`."""
    return lambda: Modelled(EndsEarly(at))


def ends_early(at: str) -> Callable[[], WatermarkGenerator[Any]]:
    """Return what makes the generator."""
    return partial(EndsEarly, at)
