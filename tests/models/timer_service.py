"""A timer service as two lists, and the clock's one timer: what InternalTimerService is compared with."""

from collections.abc import Callable
from typing import Any

from models.key_groups import key_group_of_hash, long_hash

MIN_TIMESTAMP, MAX_TIMESTAMP = -(2**63), 2**63 - 1

TimerRow = tuple[int, int, Any]  # timestamp_ms, key, namespace
Fire = Callable[["TimerServiceModel", str, TimerRow], None]


class TimerServiceModel:
    """Keys are ints; each list is in order of registration. `fire` is called with the timer that fires."""

    def __init__(self, now: int, fire: Fire) -> None:
        self.timers: dict[str, list[TimerRow]] = {"event": [], "processing": []}
        self.watermark = MIN_TIMESTAMP
        self.now = now
        self.clock_timer: int | None = None
        self.fire = fire

    def start(self) -> None:
        if self.timers["processing"]:
            self.clock_timer = min(self.timers["processing"], key=lambda timer: timer[0])[0]

    def register(self, domain: str, timer: TimerRow) -> None:
        timers = self.timers[domain]
        if timer in timers:
            return
        earliest = min((other[0] for other in timers), default=MAX_TIMESTAMP)
        timers.append(timer)
        if domain == "processing" and timer[0] < earliest:
            self.clock_timer = timer[0]

    def delete(self, domain: str, timer: TimerRow) -> None:
        if timer in self.timers[domain]:
            self.timers[domain].remove(timer)

    def advance_watermark(self, watermark: int) -> None:
        self.watermark = watermark
        self._fire_until("event", watermark)

    def advance_clock(self, now: int) -> None:
        self.now = now
        while self.clock_timer is not None and self.clock_timer <= now:
            time, self.clock_timer = self.clock_timer, None
            self._fire_until("processing", time)
            if self.clock_timer is None:
                self.start()

    def _fire_until(self, domain: str, time: int) -> None:
        timers = self.timers[domain]
        while due := [timer for timer in timers if timer[0] <= time]:
            first = min(due, key=lambda timer: timer[0])  # min keeps the first of equals
            timers.remove(first)
            self.fire(self, domain, first)


def int_key_group(key: int, max_parallelism: int) -> int:
    return key_group_of_hash(long_hash(key), max_parallelism)
