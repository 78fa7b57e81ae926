"""A plain model of the timeline of a log whose splits are aligned with each other: clock by clock, event by event."""

import math
from dataclasses import dataclass, field
from typing import Any

from models.valve import MIN_TIMESTAMP, ValveModel
from models.watermarks import MAX_TIMESTAMP, Operator, ReplayModel

SAMPLES = 3


@dataclass
class AlignedReplayModel(ReplayModel):
    """Keeps a queue of unread events per split; `arrivals` are those that the events have when they are read."""

    max_drift_ms: int = 0
    update_interval_ms: int = 1_000
    paused_spans: list[tuple[Any, int, int]] = field(default_factory=list)
    finds_idle_while_paused: bool = False

    def _replay(self, first: int, last: int) -> None:
        self.recorded = list(self.arrivals)
        interval = self.interval_ms
        first_tick = -(-first // interval) * interval if interval else last + 1
        self.opened = first_tick - interval if interval else first
        ticks = set(range(first_tick, last + 1, interval or 1))
        first_update = -(-self.opened // self.update_interval_ms) * self.update_interval_ms
        updates = set(range(first_update, last, self.update_interval_ms))
        self.operators = {split: Operator(self._generator(), 0) for split in self.splits}
        self.valve = ValveModel(len(self.splits))
        self.idle_since: dict[Any, int] = {}
        self.unread = {
            split: [i for i, event in enumerate(self.events) if event.split == split] for split in self.splits
        }
        self.samples: dict[Any, list[int]] = {split: [MIN_TIMESTAMP] * SAMPLES for split in self.splits}
        self.paused_since: dict[Any, int] = {}
        self.resumed_at = dict.fromkeys(self.splits, MIN_TIMESTAMP)
        self.paused_ms = dict.fromkeys(self.splits, 0)
        for clock in sorted(ticks | updates | {last}):
            if clock == last:
                for split in list(self.paused_since):
                    self._resume(split, last - 1, last)
            self._read(clock)
            if clock in ticks:
                self._tick(clock)
            if clock in updates:
                self._update(clock)
        self._tick(last)
        self.idle_spans += [(split, since, last) for split, since in self.idle_since.items()]
        self.idle_spans.sort()
        self.paused_spans.sort()
        self.final_watermarks = {split: self.operators[split].current_watermark for split in self.splits}

    def _read(self, clock: int) -> None:
        for split in self.splits:
            queue = self.unread[split]
            while queue and split not in self.paused_since and self.recorded[queue[0]] <= clock:
                event = queue.pop(0)
                self.arrivals[event] = max(self.recorded[event], self.resumed_at[split] + 1)
                assert self.operators[split].process_element(self.events[event].timestamp_ms) == []

    def _tick(self, clock: int) -> None:
        for split in self.splits:
            now = self.paused_since.get(split, clock) - self.opened - self.paused_ms[split]
            emitted = self.operators[split].periodic_emit(now)
            self.finds_idle_while_paused |= split in self.paused_since and ("status", "idle") in emitted
            self._to_valve(split, (clock, math.inf, math.inf), emitted)

    def _update(self, clock: int) -> None:
        reported = []
        for split, operator in self.operators.items():
            self.samples[split] = [*self.samples[split][1:], operator.current_watermark]
            if operator.current_watermark != MIN_TIMESTAMP:
                reported.append(MAX_TIMESTAMP if operator.idle else operator.current_watermark)
        if not reported:
            return
        most = min(MAX_TIMESTAMP, min(reported) + self.max_drift_ms)
        for split in self.splits:
            ahead = self.samples[split][0] > most
            if ahead and split not in self.paused_since:
                self.paused_since[split] = clock
            elif not ahead and split in self.paused_since:
                self._resume(split, clock, clock)

    def _resume(self, split: Any, read_after: int, clock: int) -> None:
        since = self.paused_since.pop(split)
        self.paused_spans.append((split, since, clock))
        self.paused_ms[split] += clock - since
        self.resumed_at[split] = read_after
