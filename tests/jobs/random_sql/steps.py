"""Steps from one relation: projections, aggregates, ranks, OVER, patterns, UNNEST."""

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
from jobs.random_sql.expressions import condition, expression
from jobs.random_sql.relations import SCALARS, Draw, Impossible, Relation, seconds


def select(draw: Draw) -> None:
    of = draw.relation()
    kept = draw.some(list(of.columns), 1, 6)
    shown, columns = list(kept), {name: of.columns[name] for name in kept}
    for _ in range(draw.random.randint(0, 3)):
        kind, name = draw.one(list(SCALARS)), draw.name("e")
        shown.append(f"{expression(draw, of, kind, 2)} AS {name}")
        columns[name] = kind
    rowtime = of.rowtime if of.rowtime and draw.chance(0.9) else None
    windows = of.windows if draw.chance(0.9) else None
    shown += [rowtime] if rowtime else []
    shown += ["window_start", "window_end"] if windows else []
    where = f" WHERE {condition(draw, of, 2)}" if draw.chance(0.6) else ""
    draw.add(
        f"SELECT {', '.join(shown)} FROM {of.name}{where}",
        replace(of, columns=columns, rowtime=rowtime, windows=windows),
    )


def group_by(draw: Draw) -> None:
    of = draw.relation()
    draw_phases(draw)
    keys = draw.some(list(of.columns), 0, 2)
    if any(of.columns[key] == "other" for key in keys):
        raise Impossible
    group, marks = grouped(draw, keys)
    found = aggregates(draw, of)
    found |= {draw.name("g"): (mark, "long") for mark in marks}
    having = f" HAVING {condition_of_aggregates(draw, found)}" if group and draw.chance(0.25) else ""
    where = f" WHERE {condition(draw, of)}" if draw.chance(0.2) else ""
    grouping = f" GROUP BY {group}" if group else ""
    draw.add(
        f"SELECT {', '.join([*keys, *shown_aggregates(found)])} FROM {of.name}{where}{grouping}{having}",
        Relation(
            "",
            {key: of.columns[key] for key in keys} | kinds_of(found),
            updates=True,
            is_open=of.is_open or bool(marks) or "(" in group or (of.updates and not keys),
            exact=of.exact and not of.is_open,
        ),
    )


def distinct(draw: Draw) -> None:
    of = draw.relation()
    kept = draw.some([each for each in of.columns if of.columns[each] != "other"], 1, 2)
    draw.add(
        f"SELECT DISTINCT {', '.join(kept)} FROM {of.name}",
        Relation(
            "",
            {name: of.columns[name] for name in kept},
            updates=of.updates,
            is_open=of.is_open,
            exact=of.exact and not (of.updates and of.is_open),
        ),
    )


def top(draw: Draw) -> None:
    of = draw.relation()
    keys = draw.some([each for each in of.columns if of.columns[each] != "other"], 0, 1)
    order = total_order(draw, of)
    last = draw.random.randint(1, 4)
    partition = f"PARTITION BY {', '.join(keys)} " if keys else ""
    rank = draw.name("rn")
    ranked = f"SELECT *, ROW_NUMBER() OVER ({partition}ORDER BY {order}) AS {rank} FROM {of.name}"
    is_shown = draw.chance(0.4)
    kept = list(of.columns)
    result = Relation(
        "",
        {name: of.columns[name] for name in kept} | ({rank: "long"} if is_shown else {}),
        updates=True,
        is_open=True,
        exact=of.exact and not of.is_open,
    )
    shown = [*kept, *([rank] if is_shown else [])]
    draw.add(f"SELECT {', '.join(shown)} FROM ({ranked}) WHERE {rank} <= {last}", result)


def limit(draw: Draw) -> None:
    of = draw.relation()
    order = total_order(draw, of)
    offset = f" OFFSET {draw.random.randint(1, 2)}" if draw.chance(0.2) else ""
    draw.add(
        f"SELECT {', '.join(of.columns)} FROM {of.name} ORDER BY {order} LIMIT {draw.random.randint(1, 4)}{offset}",
        Relation("", dict(of.columns), updates=True, is_open=True, exact=of.exact and not of.is_open),
    )


def deduplicate(draw: Draw) -> None:
    of = draw.relation(rowtime=True, inserts=True, ordered=True)
    keys = draw.some([each for each in of.columns if of.columns[each] != "other"], 1, 2)
    way = draw.one(["ASC", "DESC"])
    order = f"PARTITION BY {', '.join(keys)} ORDER BY {of.rowtime} {way}"
    ranked = f"SELECT *, ROW_NUMBER() OVER ({order}) AS nth FROM {of.name}"
    draw.add(
        f"SELECT {', '.join([*of.columns, str(of.rowtime)])} FROM ({ranked}) WHERE nth = 1",
        Relation(
            "", dict(of.columns), of.rowtime, updates=way == "DESC", is_open=way == "ASC", exact=of.exact
        ),
    )


def over(draw: Draw) -> None:
    of = draw.relation(rowtime=True, inserts=True, ordered=True)
    rng = draw.random
    frame = rng.choice(
        [
            "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
            "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
            f"ROWS BETWEEN {rng.randint(0, 5)} PRECEDING AND CURRENT ROW",
            f"RANGE BETWEEN {seconds(rng.choice([1, 2, 5, 10]))} PRECEDING AND CURRENT ROW",
        ]
    )
    keys = draw.some([each for each in of.columns if of.columns[each] != "other"], 0, 2)
    partition = f"PARTITION BY {', '.join(keys)} " if keys else ""
    found = {
        name: (f"{text} OVER w", kind)
        for name, (text, kind) in aggregates(draw, of).items()
        if "FILTER" not in text and not text.startswith(("LISTAGG", "ARRAY_AGG"))
    }
    window = f"({partition}ORDER BY {of.rowtime} {frame})"
    if draw.chance(0.2):
        window = f"({partition}ORDER BY {of.rowtime})"
        number = f"LAG({draw.one(list(of.columns))}, {rng.randint(1, 2)}) OVER w"
        found = {draw.name("a"): draw.one([("ROW_NUMBER() OVER w", "long"), (number, "other")])}
    if not found:
        raise Impossible
    kept = draw.some(list(of.columns), 1, 4)
    columns = {name: of.columns[name] for name in kept} | kinds_of(found)
    shown = [*kept, str(of.rowtime), *shown_aggregates(found)]
    draw.add(
        f"SELECT {', '.join(shown)} FROM {of.name} WINDOW w AS {window}",
        Relation("", columns, of.rowtime, is_open=True, exact=of.exact),
    )


def match(draw: Draw) -> None:
    of = draw.relation(rowtime=True, inserts=True, ordered=True)
    value = draw.one(of.of("long", "int"))
    keys = draw.some(of.of("text", "bool", "int"), 0, 1)
    partition = f"PARTITION BY {keys[0]} " if keys else ""
    pattern = draw.one(["A B", "A B+ C", "A B* C", "A B? C", "A B{1,3} C", "A+? C", "A B+? C"])
    skip = draw.one(["PAST LAST ROW", "TO NEXT ROW"])
    within = f" WITHIN {seconds(draw.random.choice([2, 5, 20]))}" if draw.chance(0.4) else ""
    symbols = [each for each in "ABC" if each in pattern]
    conditions = {
        "A": [f"A.{value} > {draw.random.randint(-3, 6)}", f"A.{value} IS NOT NULL"],
        "B": [
            f"B.{value} < 20",
            f"SUM(B.{value}) < 40",
            f"B.{value} > LAST(B.{value}, 1) OR LAST(B.{value}, 1) IS NULL",
        ],
        "C": [f"C.{value} > 3", f"C.{value} < AVG(A.{value})", f"C.{value} > FIRST(A.{value})"],
    }
    define = ", ".join(f"{each} AS {draw.one(conditions[each])}" for each in symbols)
    of_measures = {
        each: [f"FIRST({each}.{value})", f"COUNT({each}.{value})", f"SUM({each}.{value})"] for each in symbols
    }
    measures = {draw.name("m"): draw.one(of_measures[each]) for each in symbols}
    shown = ", ".join(f"{text} AS {name}" for name, text in measures.items())
    draw.add(
        f"SELECT {', '.join([*keys, *measures])} FROM {of.name} MATCH_RECOGNIZE "
        f"({partition}ORDER BY {of.rowtime} MEASURES {shown} ONE ROW PER MATCH AFTER MATCH SKIP {skip} "
        f"PATTERN ({pattern}){within} DEFINE {define})",
        Relation(
            "",
            {key: of.columns[key] for key in keys} | dict.fromkeys(measures, "long"),
            is_open=True,
            exact=of.exact,
        ),
    )


def unnest(draw: Draw) -> None:
    of = draw.relation()
    kind = draw.one([kind for kind in ("long", "int", "text", "double") if of.of(kind)])
    items = [draw.one(of.of(kind)), expression(draw, of, kind, 1), draw.one(of.of(kind))][
        : draw.random.randint(1, 3)
    ]
    kept = draw.some(list(of.columns), 1, 3)
    item = draw.name("w")
    join = draw.one(
        [f"CROSS JOIN UNNEST({{}}) AS u ({item})", f"LEFT JOIN UNNEST({{}}) AS u ({item}) ON TRUE"]
    )
    shown = [*kept, item, *([of.rowtime] if of.rowtime else [])]
    draw.add(
        f"SELECT {', '.join(map(str, shown))} FROM {of.name} {join.format('ARRAY[' + ', '.join(items) + ']')}",
        replace(of, columns={name: of.columns[name] for name in kept} | {item: kind}, windows=None),
    )
