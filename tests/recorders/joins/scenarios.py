"""Writes scenarios for JoinRecorder: `scenarios.py KIND --seed N --count N [--large] > in.jsonl`; see README.md."""

import argparse
import json
import random
from collections.abc import Iterator
from typing import Any

MIN = -(2**63)
MAX = 2**63 - 1


def elements(rng: random.Random, now: int, spread: int, number: int, keys: int) -> list[Any]:
    timestamp = now + rng.randint(-spread, spread // 3)
    return [rng.choice("lr"), timestamp, f"k{rng.randrange(keys)}", number]


def interval_join(rng: random.Random, is_large: bool) -> dict[str, Any]:
    reach = rng.choice((0, 1, 3, 10, 40))
    lower = rng.randint(-reach, reach)
    upper = lower + rng.choice((0, 0, 1, 2, rng.randint(0, 2 * reach + 1)))
    if rng.random() < 0.04:
        upper = lower - rng.randint(1, 3)
    now = rng.choice((0, 0, -25, 1_700_000_000_000))
    watermarks = {"w1": MIN, "w2": MIN}
    events: list[list[Any]] = []
    for number in range(rng.randint(120, 200) if is_large else rng.randint(6, 40)):
        now += rng.choice((0, 0, 1, 2, 5))
        draw = rng.random()
        if draw < 0.75:
            events.append(elements(rng, now, 3 + reach, number, rng.choice((1, 3))))
        elif draw < 0.97:
            verb = rng.choice(("w1", "w2"))
            watermarks[verb] = max(watermarks[verb], now - rng.randint(-1, reach + 3))
            events.append([verb, watermarks[verb]])
        else:
            events.append([rng.choice(("s1", "s2")), rng.choice(("idle", "active"))])
    if rng.random() < 0.05:
        events.append([rng.choice("lr"), rng.choice((None, MIN)), "k0", 1000])
    if rng.random() < 0.5:
        events += [["w1", MAX], ["w2", MAX]]
    return {
        "lower": lower,
        "upper": upper,
        "lower_exclusive": rng.random() < 0.3,
        "upper_exclusive": rng.random() < 0.3,
        "left_late": rng.random() < 0.5,
        "right_late": rng.random() < 0.5,
        "processing_time": rng.random() < 0.02,
        "events": events,
    }


def window_join(rng: random.Random, is_large: bool) -> dict[str, Any]:
    size = rng.choice((1, 4, 10))
    assigner = rng.choice((["tumbling", size], ["sliding", size, rng.randint(1, size)], ["session", size]))
    trigger: dict[str, Any] = {}
    if rng.random() < 0.25:
        trigger = {"count": rng.randint(1, 4), "purging": rng.random() < 0.5}
    now = rng.choice((0, 0, -25, 1_700_000_000_000))
    watermark = MIN
    events: list[list[Any]] = []
    for number in range(rng.randint(120, 200) if is_large else rng.randint(6, 40)):
        now += rng.choice((0, 0, 1, 2, 5))
        if rng.random() < 0.8:
            events.append(elements(rng, now, 4, number, rng.choice((1, 3))))
        else:
            watermark = max(watermark, now - rng.randint(-1, 6))
            events.append(["w", watermark])
    if rng.random() < 0.9:
        events.append(["w", MAX])
    return {
        "function": rng.choice(("co_group", "co_group", "join", "flat_join")),
        "assigner": assigner,
        "trigger": trigger,
        # What is evicted of merged sessions depends on the order of a hash table.
        "evictor": rng.randint(1, 4) if rng.random() < 0.2 and assigner[0] != "session" else None,
        "allowed_lateness": rng.choice((0, 0, 3)),
        "events": events,
    }


def scenarios(kind: str, seed: int, count: int, is_large: bool) -> Iterator[dict[str, Any]]:
    make = {"interval_join": interval_join, "window_join": window_join}[kind]
    for number in range(count):
        rng = random.Random(f"{kind} {seed} {number}")
        yield {
            "kind": kind,
            "name": f"{kind}-{seed}-{number}",
            "flink": "2.3.0",
            "input": make(rng, is_large),
        }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("interval_join", "window_join"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--large", action="store_true")
    given = parser.parse_args()
    for scenario in scenarios(given.kind, given.seed, given.count, given.large):
        print(json.dumps(scenario, separators=(",", ":")))
