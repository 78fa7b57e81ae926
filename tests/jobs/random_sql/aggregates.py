"""Random aggregates, and how rows are grouped and ordered."""

from __future__ import annotations

from jobs.random_sql.expressions import condition, expression
from jobs.random_sql.relations import NUMBERS, Draw, Impossible, Relation


def aggregates(
    draw: Draw, of: Relation, most: int = 4, *, merges: bool = False, of_sessions: bool = False
) -> dict[str, tuple[str, str]]:
    """Draw aggregates: text and kind by the names of their columns."""
    rng, found = draw.random, {}
    is_ordered = (
        not of.is_open and not of_sessions
    )  # sessions that meet are joined in the order of a hash set
    for _ in range(rng.randint(1, most)):
        forms: list[tuple[str, str]] = [("COUNT(*)", "long")]
        for name, kind in of.columns.items():
            forms += [(f"COUNT({name})", "long"), (f"COUNT(DISTINCT {name})", "long")]
            if kind in NUMBERS:
                total = {"int": "int", "long": "long", "double": "double", "decimal": "other"}[kind]
                forms += [(f"SUM({name})", total), (f"AVG({name})", total), (f"SUM(DISTINCT {name})", total)]
                forms += [(f"{each}({name})", kind) for each in ("MIN", "MAX", "MIN", "MAX")]
                if kind != "decimal":  # of integers it is one, and small differences are large ones
                    variance = rng.choice(["STDDEV_POP", "VAR_SAMP", "STDDEV_SAMP"])
                    forms.append((f"{variance}(CAST({name} AS DOUBLE))", "other"))
                forms.append((f"SUM({expression(draw, of, kind, 1)})", total))
            if kind in ("text", "date"):
                forms += [(f"MIN({name})", kind), (f"MAX({name})", kind)]
            if not of.is_open and not merges:
                forms += [(f"{rng.choice(['FIRST_VALUE', 'LAST_VALUE'])}({name})", kind)]
            if is_ordered and kind == "text":
                forms += [(f"LISTAGG({name})", "text"), (f"LISTAGG(DISTINCT {name}, '|')", "text")]
            if is_ordered and kind in ("text", "long", "int"):
                forms += [(f"ARRAY_AGG({name})", "other")]
        text, kind = rng.choice(forms)
        if draw.chance(0.2):
            text += f" FILTER (WHERE {condition(draw, of)})"
        found[draw.name("a")] = (text, kind)
    return found


def shown_aggregates(of: dict[str, tuple[str, str]]) -> list[str]:
    return [f"{text} AS {name}" for name, (text, _) in of.items()]


def kinds_of(of: dict[str, tuple[str, str]]) -> dict[str, str]:
    return {name: kind for name, (_, kind) in of.items()}


def grouped(draw: Draw, keys: list[str]) -> tuple[str, list[str]]:
    """Draw how rows are grouped by keys: the text, and functions that tell the sets apart."""
    if len(keys) > 1 and draw.chance(0.3):
        inner = ", ".join(keys)
        pairs = ", ".join(f"({key})" for key in keys)
        text = draw.one([f"ROLLUP ({inner})", f"CUBE ({inner})", f"GROUPING SETS ({pairs}, ())"])
        return text, [draw.one([f"GROUPING({keys[0]})", f"GROUPING_ID({inner})"])] if draw.chance(0.5) else []
    return ", ".join(keys), []


def draw_phases(draw: Draw) -> None:
    if draw.chance(0.5):
        strategy = draw.one(["ONE_PHASE", "TWO_PHASE"])
        draw.settings.setdefault("table.optimizer.agg-phase-strategy", strategy)
    if draw.chance(0.15):
        draw.settings.setdefault("table.optimizer.distinct-agg.split.enabled", "true")


def condition_of_aggregates(draw: Draw, found: dict[str, tuple[str, str]]) -> str:
    numbers = [text for text, kind in found.values() if kind in NUMBERS] or ["COUNT(*)"]
    return f"{draw.one(numbers)} {draw.one(['>', '<', '<>'])} {draw.random.randint(0, 12)}"


def total_order(draw: Draw, of: Relation) -> str:
    """Draw an order, of all columns where rows of a step come in an open order."""
    if set(of.columns.values()) & {"other"}:
        raise Impossible
    columns = draw.some(list(of.columns), 1, 3)
    if of.is_open:
        columns += [name for name in of.columns if name not in columns]
    ways = ["", " DESC", " ASC NULLS LAST", " DESC NULLS LAST", " NULLS FIRST"]
    return ", ".join(name + draw.one(ways) for name in columns)
