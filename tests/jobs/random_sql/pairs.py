"""Steps from two relations: joins, unions, subqueries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from jobs.random_sql.expressions import condition
from jobs.random_sql.relations import NUMBERS, SCALARS, TYPES, Draw, Relation, seconds


def _pair(draw: Draw, fits: Callable[[Relation, Relation], bool]) -> tuple[Relation, Relation]:
    pairs = [(a, b) for a in draw.relations for b in draw.relations if fits(a, b)]
    late = [pair for pair in pairs if draw.relations[-1] in pair]
    return draw.one(late if late and draw.chance(0.8) else pairs)  # type: ignore[no-any-return]


def _equal(draw: Draw, left: Relation, right: Relation, least: int = 1) -> str:
    """Draw a condition of equal columns, and perhaps another one."""
    kinds = [kind for kind in ("text", "long", "int", "bool", "date") if left.of(kind) and right.of(kind)]
    parts = []
    for kind in draw.some(kinds, least, 2):
        parts.append(f"L.{draw.one(left.of(kind))} = R.{draw.one(right.of(kind))}")
    if draw.chance(0.25):
        kind = draw.one([kind for kind in NUMBERS if left.of(kind) and right.of(kind)])
        parts.append(
            f"L.{draw.one(left.of(kind))} {draw.one(['<', '<>', '>='])} R.{draw.one(right.of(kind))}"
        )
    return " AND ".join(parts)


def _joined_columns(draw: Draw, left: Relation, right: Relation) -> tuple[list[str], dict[str, str]]:
    shown, columns = [], {}
    for prefix, side in (("L", left), ("R", right)):
        for name in draw.some(list(side.columns), 1, 3):
            joined = draw.name(prefix.lower())
            shown.append(f"{prefix}.{name} AS {joined}")
            columns[joined] = side.columns[name]
    return shown, columns


FORMS = ["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]


def regular_join(draw: Draw) -> None:
    left, right = _pair(draw, lambda a, b: True)
    form = draw.one(FORMS)
    shown, columns = _joined_columns(draw, left, right)
    updates = left.updates or right.updates
    is_open = left.is_open or right.is_open
    draw.add(
        f"SELECT {', '.join(shown)} FROM {left.name} L {form} {right.name} R ON {_equal(draw, left, right)}",
        Relation(
            "",
            columns,
            updates=updates or form != "JOIN",
            is_open=True,
            exact=left.exact and right.exact and not (is_open and (updates or form != "JOIN")),
        ),
    )


def semi_join(draw: Draw) -> None:
    left, right = _pair(draw, lambda a, b: True)
    kept = draw.some(list(left.columns), 1, 3)
    if draw.chance(0.3):
        kind = draw.one([kind for kind in ("text", "long", "int") if left.of(kind) and right.of(kind)])
        word, value = draw.one(["IN", "IN", "NOT IN"]), draw.one(left.of(kind))
        where = f"{value} {word} (SELECT {draw.one(right.of(kind))} FROM {right.name})"
    else:
        where = (
            f"{draw.one(['', 'NOT '])}EXISTS (SELECT 1 FROM {right.name} R WHERE {_equal(draw, left, right)})"
        )
    is_open = left.is_open or right.is_open
    draw.add(
        f"SELECT {', '.join(kept)} FROM {left.name} L WHERE {where}",
        Relation(
            "",
            {name: left.columns[name] for name in kept},
            updates=True,
            is_open=True,
            exact=left.exact and right.exact and not is_open,
        ),
    )


def interval_join(draw: Draw) -> None:
    left, right = _pair(draw, lambda a, b: bool(a.rowtime and b.rowtime and not a.updates and not b.updates))
    rng = draw.random
    before, after = seconds(rng.choice([0, 1, 2, 5, 10])), seconds(rng.choice([0, 1, 3, 8]))
    a, b = f"L.{left.rowtime}", f"R.{right.rowtime}"
    bound = rng.choice(
        [
            f"{a} BETWEEN {b} - {before} AND {b} + {after}",
            f"{b} BETWEEN {a} AND {a} + {after}",
            f"{a} > {b} - {before} AND {a} <= {b} + {after}",
            f"{a} BETWEEN {b} + {seconds(1)} AND {b} + {seconds(6)}",
            f"{a} = {b}",
        ]
    )
    form = draw.one(FORMS)
    shown, columns = _joined_columns(draw, left, right)
    has_time = form == "JOIN" and draw.chance(0.5)
    shown += [f"{a} AS ts"] if has_time else []
    draw.add(
        f"SELECT {', '.join(shown)} FROM {left.name} L {form} {right.name} R "
        f"ON {_equal(draw, left, right)} AND {bound}",
        Relation("", columns, "ts" if has_time else None, is_open=True, exact=left.exact and right.exact),
    )


def window_join(draw: Draw) -> None:
    left, right = _pair(
        draw, lambda a, b: bool(a.windows and a.windows == b.windows and not a.updates and not b.updates)
    )
    same = "L.window_start = R.window_start AND L.window_end = R.window_end"
    if draw.chance(0.25):
        kept = draw.some(list(left.columns), 1, 3)
        word = draw.one(["EXISTS", "NOT EXISTS"])
        draw.add(
            f"SELECT {', '.join([*kept, 'L.window_start', 'L.window_end'])} FROM {left.name} L WHERE {word} "
            f"(SELECT 1 FROM {right.name} R WHERE {_equal(draw, left, right)} AND {same})",
            Relation(
                "",
                {name: left.columns[name] for name in kept},
                is_open=True,
                exact=left.exact and right.exact,
            ),
        )
        return
    form = draw.one(FORMS)
    shown, columns = _joined_columns(draw, left, right)
    of_window = draw.one(["L", "R"]) if form == "JOIN" else None
    shown += [f"{of_window}.window_start", f"{of_window}.window_end"] if of_window else []
    draw.add(
        f"SELECT {', '.join(shown)} FROM {left.name} L {form} {right.name} R ON {_equal(draw, left, right)} AND {same}",
        Relation(
            "",
            columns,
            windows=left.windows if of_window else None,
            is_open=True,
            exact=left.exact and right.exact,
        ),
    )


def temporal_join(draw: Draw) -> None:
    left, right = _pair(
        draw, lambda a, b: bool(a.rowtime and b.rowtime and not a.updates and not b.updates and not b.is_open)
    )
    key = draw.one([kind for kind in ("text", "int") if left.of(kind) and right.of(kind)])
    mine, others = draw.one(left.of(key)), draw.one(right.of(key))
    draw.add(
        f"SELECT {', '.join([*right.columns, str(right.rowtime)])} FROM (SELECT *, ROW_NUMBER() OVER "
        f"(PARTITION BY {others} ORDER BY {right.rowtime} DESC) AS nth FROM {right.name}) WHERE nth = 1",
        replace(right, updates=True, windows=None),
    )
    versions = draw.relations[-1]
    shown, columns = _joined_columns(draw, left, right)
    draw.add(
        f"SELECT {', '.join(shown)}, L.{left.rowtime} AS ts FROM {left.name} L "
        f"{draw.one(['JOIN', 'LEFT JOIN'])} {versions.name} "
        f"FOR SYSTEM_TIME AS OF L.{left.rowtime} AS R ON L.{mine} = R.{others}",
        Relation("", columns, "ts", is_open=True, exact=left.exact and right.exact),
    )


def _cast(name: str, kind: str) -> str:
    return f"CAST({name} AS {TYPES[kind]}) AS "


def union(draw: Draw) -> None:
    left, right = _pair(draw, lambda a, b: True)
    kinds = [kind for kind in SCALARS if left.of(kind) and right.of(kind)]
    chosen = draw.some(kinds, 1, 4)
    both_times = bool(left.rowtime and right.rowtime and draw.chance(0.8))
    word = draw.one(["UNION ALL"] * 5 + ["UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"])
    both_times = both_times and word == "UNION ALL"
    texts = []
    for side in (left, right):
        shown = [f"{_cast(draw.one(side.of(kind)), kind)}{kind}_{n}" for n, kind in enumerate(chosen)]
        shown += [f"{side.rowtime} AS ts"] if both_times else []
        where = f" WHERE {condition(draw, side)}" if draw.chance(0.3) else ""
        texts.append(f"SELECT {', '.join(shown)} FROM {side.name}{where}")
    updates = left.updates or right.updates or word != "UNION ALL"
    is_open = left.is_open or right.is_open
    draw.add(
        f" {word} ".join(texts),
        Relation(
            "",
            {f"{kind}_{n}": kind for n, kind in enumerate(chosen)},
            "ts" if both_times else None,
            updates=updates,
            is_open=is_open or left == right,
            exact=left.exact and right.exact and not (word != "UNION ALL" and is_open),
        ),
    )


def compared_with_one(draw: Draw) -> None:
    """Compare rows with the one row of a subquery."""
    left, right = _pair(draw, lambda a, b: True)
    kind = draw.one([kind for kind in ("long", "double", "int") if left.of(kind) and right.of(kind)])
    one = f"(SELECT {draw.one(['MAX', 'MIN', 'AVG'])}({draw.one(right.of(kind))}) FROM {right.name})"
    kept = draw.some(list(left.columns), 1, 4)
    draw.add(
        f"SELECT {', '.join(kept)} FROM {left.name} WHERE {draw.one(left.of(kind))} {draw.one(['<', '>', '='])} {one}",
        Relation("", {name: left.columns[name] for name in kept}, updates=True, is_open=True, exact=False),
    )
