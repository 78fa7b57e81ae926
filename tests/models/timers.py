"""Timers as a sorted list of tuples, and the key group of a string key: what TimerHeap is compared with."""

import numpy as np

from flinkcore._native.timers import TimerColumns

Row = tuple[int, int, int, int]  # timestamp_ms, key, key_group, namespace


def rows(columns: TimerColumns) -> list[tuple[int, ...]]:
    return list(zip(*(column.tolist() for column in columns), strict=True))


def random_timers(n: int, seed: int = 7) -> tuple[np.ndarray, ...]:
    """Distinct timers with many equal timestamps, in random order."""
    rng = np.random.default_rng(seed)
    keys = rng.permutation(n)
    timestamps_ms = rng.integers(-(n // 4), n // 4 + 1, n)
    return timestamps_ms, keys, (keys % 128).astype(np.int32), rng.integers(0, 3, n)


def firing_order(timers: tuple[np.ndarray, ...]) -> list[tuple[int, ...]]:
    return rows(TimerColumns(*(column[np.argsort(timers[0], kind="stable")] for column in timers)))


class TimerModel:
    """A set of timers in order of registration; everything else is a search through it."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def head(self) -> Row | None:
        return min(self.rows, key=lambda row: row[0], default=None)  # min keeps the first of equals

    def add(self, row: Row) -> bool:
        if row in self.rows:
            return False
        self.rows.append(row)
        return self.head() == row

    def remove(self, row: Row) -> bool:
        if row not in self.rows:
            return False
        was_head = self.head() == row
        self.rows.remove(row)
        return was_head

    def poll(self) -> Row | None:
        head = self.head()
        if head is not None:
            self.rows.remove(head)
        return head

    def register(self, rows: list[Row]) -> list[bool]:
        new = []
        for row in rows:
            new.append(row not in self.rows)
            self.add(row)
        return new

    def delete(self, rows: list[Row]) -> list[bool]:
        found = []
        for row in rows:
            found.append(row in self.rows)
            self.remove(row)
        return found

    def advance(self, watermark_ms: int, limit: int | None = None) -> list[Row]:
        fired: list[Row] = []
        while limit is None or len(fired) < limit:
            head = self.head()
            if head is None or head[0] > watermark_ms:
                break
            fired.append(head)
            self.rows.remove(head)
        return fired

    def of_key_groups(self, first: int, last: int) -> list[Row]:
        return [row for row in self.rows if first <= row[2] <= last]


def java_string_hash(text: str) -> int:
    """String.hashCode: over UTF-16 units, in 32 bits."""
    units = text.encode("utf-16-be", "surrogatepass")
    result = 0
    for i in range(0, len(units), 2):
        result = (31 * result + int.from_bytes(units[i : i + 2], "big")) & 0xFFFFFFFF
    return result


def _rotate(value: int, by: int) -> int:
    return ((value << by) | (value >> (32 - by))) & 0xFFFFFFFF


def string_key_group(key: str, max_parallelism: int) -> int:
    """KeyGroupRangeAssignment.assignToKeyGroup of a string key: murmur of its hash code, modulo."""
    code = _rotate(java_string_hash(key) * 0xCC9E2D51 & 0xFFFFFFFF, 15)
    code = _rotate(code * 0x1B873593 & 0xFFFFFFFF, 13)
    code = (code * 5 + 0xE6546B64) & 0xFFFFFFFF
    code ^= 4
    code = (code ^ code >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    code = (code ^ code >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    code ^= code >> 16
    if code >= 1 << 31:  # negative as a Java int
        code = (1 << 32) - code if code != 1 << 31 else 0
    return code % max_parallelism
