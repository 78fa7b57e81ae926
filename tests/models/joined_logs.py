"""Joins of two streams, by lists of all that came so far."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from models.process_replay import Emitted
from models.valve import ValveModel
from models.watermarks import MAX_TIMESTAMP, MIN_TIMESTAMP

from flinkcore.common import Row
from flinkcore.operators.combined_watermark_status import IndexedCombinedWatermarkStatus


class _CombinedByOperator:
    """The lesser watermark of two inputs."""

    def __init__(self) -> None:
        self._status = IndexedCombinedWatermarkStatus(2)

    def watermarks(self, log: int, kind: str, value: Any) -> list[int]:
        if kind == "watermark":
            advanced = self._status.update_watermark(log, value)
        else:
            advanced = self._status.update_status(log, value == "idle")
        return [self._status.combined_watermark] if advanced else []


class _CombinedByValve:
    """The watermark of a union of two streams."""

    def __init__(self) -> None:
        self._valve = ValveModel(2)

    def watermarks(self, log: int, kind: str, value: Any) -> list[int]:
        if kind == "watermark":
            put_out = self._valve.input_watermark(log, value)
        else:
            put_out = self._valve.input_watermark_status(log, value)
        return [int(watermark) for what, watermark in put_out if what == "watermark"]


def seen(
    happened: Iterable[tuple[str, int, int, Any]], combined: Any
) -> Iterator[tuple[int, Row, int] | int]:
    """Yield (stream, row, timestamp) for an element, and each watermark of both streams."""
    for what, _, log, value in happened:
        if what == "element":
            yield log, *value
        elif what == "end":
            yield MAX_TIMESTAMP
        elif what != "due":
            yield from combined.watermarks(log, what, value)


def key_of(log: int, row: Row) -> Any:
    return row.who if log else row.user


def interval_join(happened: Iterable[tuple[str, int, int, Any]], least: int, greatest: int) -> list[Emitted]:
    """Pairs and late rows; where several rows wait for one, they are met by timestamp."""
    emitted: list[Emitted] = []
    waiting: tuple[list[Any], list[Any]] = ([], [])
    kept = max(greatest, 0), max(-least, 0)
    watermark = MIN_TIMESTAMP
    for each in seen(happened, _CombinedByOperator()):
        if isinstance(each, int):
            watermark = each
            for log in (0, 1):
                waiting[log][:] = [other for other in waiting[log] if other[1] + kept[log] > watermark]
            continue
        log, row, timestamp = each
        if timestamp < watermark:
            emitted.append((("left", "right")[log], (key_of(log, row), row.number), timestamp))
            continue
        waiting[log].append((row, timestamp))
        for other, other_timestamp in sorted(waiting[1 - log], key=lambda waits: waits[1]):
            difference = timestamp - other_timestamp if log else other_timestamp - timestamp
            if key_of(1 - log, other) == key_of(log, row) and least <= difference <= greatest:
                left, right = (other, row) if log else (row, other)
                pair = (left.user, left.number, right.number)
                emitted.append((None, pair, max(timestamp, other_timestamp)))
    return emitted


def co_group(
    happened: Iterable[tuple[str, int, int, Any]], size: int, slide: int, lateness: int
) -> tuple[list[Emitted], int]:
    """Groups of sliding windows, and how many rows were late; windows that fire together come by their ends."""
    emitted: list[Emitted] = []
    windows: dict[tuple[Any, int], tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    watermark, late = MIN_TIMESTAMP, 0

    def fire(key: Any, start: int) -> None:
        first, second = windows[key, start]
        emitted.append((None, (key, list(first), list(second)), start + size - 1))

    for each in seen(happened, _CombinedByValve()):
        if isinstance(each, int):
            for key, start in sorted(windows, key=lambda window: window[1]):
                last = start + size - 1
                if watermark < last <= each:
                    fire(key, start)
                if last + lateness <= each:
                    del windows[key, start]
            watermark = each
            continue
        log, row, timestamp = each
        key = key_of(log, row)
        starts = range(timestamp // slide * slide, timestamp - size, -slide)
        live = [start for start in starts if start + size - 1 + lateness > watermark]
        late += not live and timestamp + lateness <= watermark
        for start in live:
            windows[key, start][log].append(row.number)
            if start + size - 1 <= watermark:
                fire(key, start)
    return emitted, late
