"""Steps of windows: table functions, aggregates, ranks and the older windows of GROUP BY."""

from __future__ import annotations

from dataclasses import replace

from jobs.random_sql.aggregates import (
    aggregates,
    condition_of_aggregates,
    draw_phases,
    grouped,
    kinds_of,
    shown_aggregates,
    total_order,
)
from jobs.random_sql.expressions import condition
from jobs.random_sql.relations import SCALARS, Draw, Impossible, Relation, seconds


def _window_function(draw: Draw, of: Relation) -> tuple[str, str, list[str]]:
    """Draw a window function over a relation: its text, what must be equal to join it, and keys of its sessions."""
    rng = draw.random
    kind = rng.choice(["TUMBLE", "HOP", "CUMULATE", "SESSION"])
    source = f"TABLE {of.name}"
    if kind == "SESSION":
        keys = draw.some(of.of("text", "int", "bool", "long"), 0, 2)
        partition = f" PARTITION BY ({', '.join(keys)})" if keys else ""
        gap = seconds(rng.choice([1, 2, 5, 13]))
        return f"TABLE(SESSION({source}{partition}, DESCRIPTOR({of.rowtime}), {gap}))", "", keys
    step = rng.choice([1, 2, 3, 5, 7, 10])
    times = rng.choice([1, 2, 3, 4, 6])
    lengths = {"TUMBLE": [step * times], "HOP": [step, step * times], "CUMULATE": [step, step * times]}[kind]
    arguments = ", ".join(map(seconds, lengths))
    if draw.chance(0.25):
        offsets = [each for each in (-2, -1, 1, 3, 4) if abs(each) < lengths[0]]
        arguments += f", {seconds(rng.choice(offsets or [0]))}"
    return f"TABLE({kind}({source}, DESCRIPTOR({of.rowtime}), {arguments}))", f"{kind} {arguments}", []


def window_aggregate(draw: Draw) -> None:
    of = draw.relation(rowtime=True, inserts=True, windowless=True)
    draw_phases(draw)
    source, windows, session_keys = _window_function(draw, of)
    is_session = "SESSION" in source
    keys = session_keys if is_session else draw.some(of.of(*SCALARS), 0, 2)
    group, marks = (", ".join(keys), []) if is_session else grouped(draw, keys)
    found = aggregates(draw, of, merges=not windows.startswith("TUMBLE"), of_sessions=is_session)
    found |= {draw.name("g"): (mark, "long") for mark in marks}
    has_time = draw.chance(0.5)
    shown = [
        *keys,
        "window_start",
        "window_end",
        *(["window_time AS ts"] if has_time else []),
        *shown_aggregates(found),
    ]
    groups = [
        "window_start",
        "window_end",
        *(["window_time"] if has_time else []),
        *([group] if group else []),
    ]
    where = f" WHERE {condition(draw, of)}" if draw.chance(0.3) else ""
    having = f" HAVING COUNT(*) > {draw.random.randint(1, 2)}" if draw.chance(0.2) else ""
    draw.add(
        f"SELECT {', '.join(shown)} FROM {source}{where} GROUP BY {', '.join(groups)}{having}",
        Relation(
            "",
            {key: of.columns[key] for key in keys} | kinds_of(found),
            "ts" if has_time else None,
            windows or None,
            is_open=True,
            exact=of.exact,
        ),
    )


def windowed(draw: Draw) -> None:
    of = draw.relation(rowtime=True, inserts=True, windowless=True)
    source, windows, _ = _window_function(draw, of)
    if not windows:
        raise Impossible
    kept = draw.some(list(of.columns), 2, 6)
    draw.add(
        f"SELECT {', '.join([*kept, str(of.rowtime), 'window_start', 'window_end'])} FROM {source}",
        replace(of, columns={name: of.columns[name] for name in kept}, windows=windows),
    )


def of_windows(draw: Draw) -> Relation:
    fitting = [each for each in draw.relations if each.windows and not each.updates]
    return draw.one(fitting)  # type: ignore[no-any-return]


def window_again(draw: Draw) -> None:
    """Aggregate, rank or deduplicate rows of windows."""
    of = of_windows(draw)
    keys = draw.some(of.of(*SCALARS), 0, 1)
    if draw.chance(0.5):
        found = aggregates(draw, of, merges=True)
        shown = [*keys, "window_start", "window_end", *shown_aggregates(found)]
        group = ", ".join(["window_start", "window_end", *keys])
        columns = {key: of.columns[key] for key in keys} | kinds_of(found)
        draw.add(
            f"SELECT {', '.join(shown)} FROM {of.name} GROUP BY {group}",
            Relation("", columns, None, of.windows, is_open=True, exact=of.exact),
        )
        return
    partition = ", ".join(["window_start", "window_end", *keys])
    if of.rowtime and not of.is_open and draw.chance(0.4):
        order, last = f"{of.rowtime} {draw.one(['ASC', 'DESC'])}", 1
    else:
        order, last = total_order(draw, of), draw.random.randint(1, 3)
    rank = draw.name("rn")
    ranked = (
        f"SELECT *, ROW_NUMBER() OVER (PARTITION BY {partition} ORDER BY {order}) AS {rank} FROM {of.name}"
    )
    shown = [*of.columns, "window_start", "window_end", *([rank] if draw.chance(0.4) else [])]
    draw.add(
        f"SELECT {', '.join(shown)} FROM ({ranked}) WHERE {rank} <= {last}",
        Relation("", dict(of.columns), None, of.windows, is_open=True, exact=of.exact),
    )


def group_window(draw: Draw) -> None:
    of = draw.relation(rowtime=True, inserts=True)
    rng = draw.random
    kind = rng.choice(["TUMBLE", "HOP", "SESSION"])
    step = rng.choice([1, 2, 3, 5, 10])
    lengths = [step, step * rng.choice([1, 2, 3])] if kind == "HOP" else [step]
    window = f"({of.rowtime}, {', '.join(map(seconds, lengths))})"
    keys = draw.some(of.of(*SCALARS), 0, 2)
    found = aggregates(draw, of, merges=kind != "TUMBLE", of_sessions=kind == "SESSION")
    has_time = draw.chance(0.5)
    shown = [*keys, f"{kind}_START{window} AS ws", f"{kind}_END{window} AS we", *shown_aggregates(found)]
    shown += [f"{kind}_ROWTIME{window} AS ts"] if has_time else []
    having = f" HAVING {condition_of_aggregates(draw, found)}" if draw.chance(0.2) else ""
    draw.add(
        f"SELECT {', '.join(shown)} FROM {of.name} GROUP BY {', '.join([*keys, kind + window])}{having}",
        Relation(
            "",
            {key: of.columns[key] for key in keys} | kinds_of(found),
            "ts" if has_time else None,
            is_open=True,
            exact=of.exact,
        ),
    )
