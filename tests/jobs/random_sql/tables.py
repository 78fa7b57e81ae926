"""Random tables: nulls, late rows, ties of time, and an order of arrival over all of them."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

from jobs.random_sql.relations import TYPES, seconds

TEXTS = ["a", "a", "b", "b", "c", "d,e", "", "ä", "Ab%_c", " x "]
BASES = [0, 1_000, 3_000, 1_700_000_000_000, 1_700_000_000_000, -20_000, 951_782_390_000]


def iso(ms: int) -> str:
    moment = datetime(1970, 1, 1) + timedelta(milliseconds=ms)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}"


def times(rng: random.Random, count: int, base: int) -> list[int]:
    """Return event times in the order of arrival, with ties, late ones and jumps."""
    at, found, style = base, [], rng.random()
    for _ in range(count):
        at += rng.choice([0, 0, 1, 250, 500, 1000, 1000, 1500, 2000, 3700])
        if rng.random() < 0.06:
            at += rng.choice([8_000, 15_000, 40_000])
        is_back = style > 0.25 and rng.random() < 0.3
        found.append(at - (rng.choice([1, 300, 1000, 2000, 5000, 9000, 25_000]) if is_back else 0))
    return [each // 1000 * 1000 for each in found] if style > 0.7 else found


def value_of(rng: random.Random, kind: str, nulls: float) -> Any:
    if rng.random() < nulls:
        return None
    if kind == "text":
        return rng.choice(TEXTS)
    if kind == "double":
        return rng.choice([-0.0, 0.0]) if rng.random() < 0.08 else rng.randint(-40, 80) / 4
    if kind == "decimal":
        return f"{rng.randint(-9_999, 9_999) / 100:.2f}"
    if kind == "bool":
        return rng.random() < 0.5
    if kind == "date":
        return rng.choice(["1969-12-31", "1970-01-01", "2024-02-29", "2023-11-14"])
    return rng.choice([rng.randint(-20, 40), rng.randint(0, 5)])


def random_table(rng: random.Random, rows: int, base: int, *, is_local: bool) -> dict[str, Any]:
    kinds = {"k": "text", "v": "long", "x": "double", "d": "decimal", "i": "int", "b": "bool", "dt": "date"}
    nulls = rng.choice([0.0, 0.1, 0.1, 0.3])
    keys = rng.sample(TEXTS, 2) if rng.random() < 0.4 else TEXTS
    local = "Z" if is_local else ""
    values = []
    for at in times(rng, rows, base):
        row = [value_of(rng, kind, nulls) for kind in kinds.values()]
        row[0] = row[0] if row[0] is None else rng.choice(keys)
        values.append([*row, iso(at) + local])
    delay = rng.choice([0, 0, 1, 2, 5])
    return {
        "columns": [
            *([name, TYPES[kind]] for name, kind in kinds.items()),
            ["ts", "TIMESTAMP_LTZ(3)" if is_local else "TIMESTAMP(3)"],
        ],
        "watermark": f"ts - {seconds(delay)}"
        if delay
        else rng.choice(["ts", "ts - INTERVAL '0.001' SECOND"]),
        "rows": values,
    }


def random_arrival(rng: random.Random, tables: dict[str, dict[str, Any]]) -> list[str]:
    left = {name: len(table["rows"]) for name, table in tables.items()}
    found: list[str] = []
    most = rng.choice([1, 1, 6])
    while any(left.values()):
        name = rng.choice([each for each in left if left[each]])
        for _ in range(min(left[name], rng.randint(1, most))):
            found.append(name)
            left[name] -= 1
    return found
