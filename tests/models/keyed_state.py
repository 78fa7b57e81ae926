"""A plain model of keyed state: one dictionary by state, namespace and key, of values with stamps."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

MIN_TIMESTAMP = -(2**63)
MAX_TIMESTAMP = 2**63 - 1
Place = tuple[str, Hashable, Hashable]
"""State, namespace and key."""


@dataclass(frozen=True)
class Life:
    """What a time to live is set to; None lives for ever."""

    ttl_ms: int | None = None
    update_on_read: bool = False
    return_expired: bool = False
    event_time: bool = False


@dataclass
class KeyedStateModel:
    """Values are pairs of value and stamp; lists and dictionaries hold such pairs, or None in a dictionary."""

    life: Life
    clock_ms: int = 0
    watermark_ms: int = MIN_TIMESTAMP
    held: dict[Place, Any] = field(default_factory=dict)

    @property
    def now_ms(self) -> int:
        return self.watermark_ms if self.life.event_time else self.clock_ms

    def advance_watermark(self, watermark_ms: int) -> None:
        if watermark_ms == MAX_TIMESTAMP or watermark_ms <= self.watermark_ms:
            return
        first = self.watermark_ms == MIN_TIMESTAMP
        self.watermark_ms = watermark_ms
        if first and self.life.event_time:

            def settled(pair: Any) -> Any:
                return None if pair is None else (pair[0], max(pair[1], watermark_ms))

            for place, held in self.held.items():
                if all(stamp != MIN_TIMESTAMP for stamp in stamps(held)):
                    continue
                if isinstance(held, list):
                    self.held[place] = [settled(p) if p[1] == MIN_TIMESTAMP else p for p in held]
                elif isinstance(held, dict):
                    self.held[place] = {
                        k: settled(p) if p is not None and p[1] == MIN_TIMESTAMP else p
                        for k, p in held.items()
                    }
                else:
                    self.held[place] = settled(held)

    def alive(self, pair: Any) -> bool:
        return pair is None or self.life.ttl_ms is None or pair[1] + self.life.ttl_ms > self.now_ms

    def visible(self, pair: Any) -> bool:
        return self.alive(pair) or self.life.return_expired

    def stamped(self, value: Any) -> Any:
        return None if value is None else (value, self.now_ms)

    def living(self) -> dict[Place, Any]:
        """All that is alive."""
        found: dict[Place, Any] = {}
        for place, held in self.held.items():
            if isinstance(held, list):
                found[place] = [pair for pair in held if self.alive(pair)]
            elif isinstance(held, dict):
                found[place] = {key: pair for key, pair in held.items() if self.alive(pair)}
            elif self.alive(held):
                found[place] = held
        return {place: held for place, held in found.items() if held}

    # Values, reduced values and accumulators.

    def read(self, place: Place) -> Any:
        pair = self.held.get(place)
        if pair is None:
            return None
        if not self.alive(pair):
            del self.held[place]
            return pair[0] if self.life.return_expired else None
        if self.life.update_on_read:
            self.held[place] = self.stamped(pair[0])
        return pair[0]

    def write(self, place: Place, value: Any) -> None:
        if value is None:
            self.held.pop(place, None)
        else:
            self.held[place] = self.stamped(value)

    def base(self, place: Place) -> Any:
        """What a further value is added to."""
        pair = self.held.get(place)
        return pair[0] if pair is not None and self.visible(pair) else None

    def merge(self, target: Place, sources: list[Place], combine: Any) -> None:
        merged = None
        for source in sources:
            merged = self._combined(merged, self.held.pop(source, None), combine)
        if merged is not None:
            merged = self._combined(self.held.pop(target, None), merged, combine)
            if merged is not None:
                self.held[target] = merged

    def _combined(self, first: Any, second: Any, combine: Any) -> Any:
        if first is None or second is None:
            return second if first is None else first
        values = [pair[0] for pair in (first, second) if self.visible(pair)]
        return self.stamped(combine(*values) if len(values) == 2 else values[0]) if values else None

    # Lists.

    def elements(self, place: Place) -> list[Any]:
        held = self.held.get(place, [])
        living = [pair for pair in held if self.alive(pair)]
        if not living:
            self.held.pop(place, None)
        elif self.life.update_on_read:
            self.held[place] = [self.stamped(value) for value, _ in living]
        return [value for value, _ in (held if self.life.return_expired else living)]

    def append(self, place: Place, values: list[Any]) -> None:
        if values:
            self.held[place] = self.held.get(place, []) + [self.stamped(value) for value in values]

    def replace(self, place: Place, values: list[Any]) -> None:
        self.held.pop(place, None)
        self.append(place, values)

    def merge_lists(self, target: Place, sources: list[Place]) -> None:
        merged = self.held.pop(target, [])
        for source in sources:
            merged = merged + self.held.pop(source, [])
        if merged:
            self.held[target] = merged

    # Maps.

    def get(self, place: Place, key: Any) -> Any:
        held = self.held.get(place, {})
        pair = held.get(key)
        if pair is None:
            return None
        if not self.alive(pair):
            self.remove(place, key)
            return pair[0] if self.life.return_expired else None
        if self.life.update_on_read:
            held[key] = self.stamped(pair[0])
        return pair[0]

    def contains(self, place: Place, key: Any) -> bool:
        is_stored_none = self.life.ttl_ms is None and key in self.held.get(place, {})
        return self.get(place, key) is not None or is_stored_none

    def put(self, place: Place, key: Any, value: Any) -> None:
        self.held.setdefault(place, {})[key] = self.stamped(value)

    def remove(self, place: Place, key: Any) -> None:
        held = self.held.get(place, {})
        held.pop(key, None)
        if not held:
            self.held.pop(place, None)

    def items(self, place: Place) -> list[tuple[Any, Any]]:
        keys = list(self.held.get(place, {}))
        unstamped = {key for key in keys if self.held[place][key] is None}
        read = [(key, self.get(place, key)) for key in keys]
        kept_none = set() if self.life.ttl_ms is not None else unstamped
        return [(key, value) for key, value in read if value is not None or key in kept_none]


def stamps(held: Any) -> list[int]:
    if isinstance(held, list):
        return [stamp for _, stamp in held]
    if isinstance(held, dict):
        return [pair[1] for pair in held.values() if pair is not None]
    return [held[1]]
