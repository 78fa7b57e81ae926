"""Random queries as scenarios for the recorder of Flink's answers."""

from __future__ import annotations

import random
from typing import Any

from jobs.random_sql import pairs, steps, windows
from jobs.random_sql.relations import Draw, Impossible, Relation
from jobs.random_sql.tables import BASES, random_arrival, random_table

STEPS = [
    *[steps.select] * 3,
    *[windows.window_aggregate] * 4,
    *[windows.windowed] * 2,
    *[windows.window_again] * 2,
    windows.group_window,
    *[steps.group_by] * 3,
    steps.distinct,
    *[steps.top] * 2,
    steps.limit,
    *[steps.deduplicate] * 2,
    *[steps.over] * 2,
    steps.match,
    *[pairs.regular_join] * 2,
    pairs.semi_join,
    *[pairs.interval_join] * 2,
    *[pairs.window_join] * 2,
    pairs.temporal_join,
    *[pairs.union] * 2,
    pairs.compared_with_one,
    steps.unnest,
]


def scenario(name: str, seed: str) -> dict[str, Any]:
    """Draw a scenario, which is the same for the same seed.

    Returns
    -------
    dict
        A line for the recorder of Flink's answers; `compared` is ``net`` where the changes of a step are open.
    """
    rng = random.Random(seed)
    base, is_local = rng.choice(BASES), rng.random() < 0.15
    rows = rng.choice([8, 16, 24])
    names = rng.choice([["f"], ["f", "g"], ["f", "g"]])
    tables = {each: random_table(rng, rng.randint(4, rows), base, is_local=is_local) for each in names}
    columns = {"k": "text", "v": "long", "x": "double", "d": "decimal", "i": "int", "b": "bool", "dt": "date"}
    relations = [Relation(each, columns, "ts") for each in names]
    draw = Draw(rng, tables, relations)
    if (
        is_local and rng.random() < 0.5
    ):  # in a zone without daylight saving, Flink loses rows of windows: docs/sql.md
        draw.settings["table.local-time-zone"] = "Europe/Berlin"
    wanted = rng.choice([1, 1, 2, 2, 3, 4])
    for _ in range(40):
        before = len(draw.views)
        try:
            rng.choice(STEPS)(draw)
        except Impossible:
            del draw.views[before:], draw.relations[len(names) + before :]
        if len(draw.views) >= wanted:
            break
    *views, last = draw.views
    texts = [f"CREATE VIEW q{number} AS {text}" for number, text in enumerate(views, 1)]
    return {
        "name": name,
        "kind": "random",
        "tables": tables,
        "settings": draw.settings,
        "sql": [*texts, last] if texts else last,
        "arrival": random_arrival(rng, tables),
        "compared": "rows" if draw.relations[-1].exact else "net",
    }
