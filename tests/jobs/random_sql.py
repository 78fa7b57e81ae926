"""Random queries of Flink SQL over random tables, as scenarios for real Flink: each view is drawn over earlier ones.

A relation knows what may follow it: whether it has a rowtime, whether it changes rows, and whether Flink leaves open in
which order its rows of a step come. What depends on this order is drawn over relations of a known order only, or is
compared by its net effect.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

TYPES = {
    "text": "VARCHAR",
    "long": "BIGINT",
    "int": "INT",
    "double": "DOUBLE",
    "decimal": "DECIMAL(10, 2)",
    "bool": "BOOLEAN",
    "date": "DATE",
    "time": "TIMESTAMP(3)",
}
NUMBERS = ("long", "int", "double", "decimal")
SCALARS = (*NUMBERS, "text", "bool", "date")
TEXTS = ["a", "a", "b", "b", "c", "d,e", "", "ä", "Ab%_c", " x "]
BASES = [0, 1_000, 3_000, 1_700_000_000_000, 1_700_000_000_000, -20_000, 951_782_390_000]


@dataclass(frozen=True)
class Relation:
    """A table or view.

    Attributes
    ----------
    name : str
    columns : dict of str to str
        Kind of each column, a key of `TYPES`, without rowtime and windows.
    rowtime : str or None
    windows : str or None
        Window function over which rows have `window_start` and `window_end`; equal ones can be joined.
    updates : bool
        Whether rows change.
    is_open : bool
        Whether Flink leaves open in which order rows of a step come.
    exact : bool
        Whether the changes of each step are known, and not their net effect alone.
    """

    name: str
    columns: dict[str, str]
    rowtime: str | None = None
    windows: str | None = None
    updates: bool = False
    is_open: bool = False
    exact: bool = True

    @property
    def keys(self) -> list[str]:
        return [*self.columns, *(["window_start", "window_end"] if self.windows else [])]

    def of(self, *kinds: str) -> list[str]:
        """Return the columns of some kinds."""
        return [name for name, kind in self.columns.items() if kind in kinds]


class Impossible(Exception):
    """A step does not fit the relations that there are."""


@dataclass
class Draw:
    """A query that is being drawn."""

    random: random.Random
    tables: dict[str, dict[str, Any]]
    relations: list[Relation]
    settings: dict[str, str] = field(default_factory=dict)
    views: list[str] = field(default_factory=list)
    names: int = 0

    def add(self, select: str, relation: Relation) -> None:
        self.views.append(select)
        self.relations.append(replace(relation, name=f"q{len(self.views)}"))

    def name(self, prefix: str) -> str:
        """Return a new name of a column."""
        self.names += 1
        return f"{prefix}{self.names}"

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def some(self, values: list[str], least: int, most: int) -> list[str]:
        if len(values) < least:
            raise Impossible
        return self.random.sample(values, self.random.randint(least, min(most, len(values))))

    def one(self, values: list[Any]) -> Any:
        if not values:
            raise Impossible
        return self.random.choice(values)

    def relation(self, *, rowtime: bool = False, inserts: bool = False, ordered: bool = False) -> Relation:
        """Draw a relation, mostly the last one."""
        fitting = [
            each
            for each in self.relations
            if (each.rowtime or not rowtime)
            and not (inserts and each.updates)
            and not (ordered and each.is_open)
        ]
        if not fitting:
            raise Impossible
        return fitting[-1] if self.chance(0.8) else self.one(fitting)


# ---- tables


def _seconds(seconds: int) -> str:
    sign = "-" if seconds < 0 else ""
    if seconds and seconds % 60 == 0:
        return f"INTERVAL '{sign}{abs(seconds) // 60}' MINUTE"
    return f"INTERVAL '{sign}{abs(seconds)}' SECOND"


def _iso(ms: int) -> str:
    moment = datetime(1970, 1, 1) + timedelta(milliseconds=ms)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}"


def _times(rng: random.Random, count: int, base: int) -> list[int]:
    """Return event times in the order of arrival, with ties, late ones and jumps."""
    at, found, style = base, [], rng.random()
    for _ in range(count):
        at += rng.choice([0, 0, 1, 250, 500, 1000, 1000, 1500, 2000, 3700])
        if rng.random() < 0.06:
            at += rng.choice([8_000, 15_000, 40_000])
        is_back = style > 0.25 and rng.random() < 0.3
        found.append(at - (rng.choice([1, 300, 1000, 2000, 5000, 9000, 25_000]) if is_back else 0))
    return [each // 1000 * 1000 for each in found] if style > 0.7 else found


def _value(rng: random.Random, kind: str, nulls: float) -> Any:
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


def _table(rng: random.Random, rows: int, base: int, *, is_local: bool) -> dict[str, Any]:
    kinds = {"k": "text", "v": "long", "x": "double", "d": "decimal", "i": "int", "b": "bool", "dt": "date"}
    nulls = rng.choice([0.0, 0.1, 0.1, 0.3])
    if rng.random() < 0.4:  # many equal keys
        keys = rng.sample(TEXTS, 2)
    else:
        keys = TEXTS
    local = "Z" if is_local else ""
    values = []
    for at in _times(rng, rows, base):
        row = [_value(rng, kind, nulls) for kind in kinds.values()]
        row[0] = row[0] if row[0] is None else rng.choice(keys)
        values.append([*row, _iso(at) + local])
    delay = rng.choice([0, 0, 1, 2, 5])
    return {
        "columns": [
            *([name, TYPES[kind]] for name, kind in kinds.items()),
            ["ts", "TIMESTAMP_LTZ(3)" if is_local else "TIMESTAMP(3)"],
        ],
        "watermark": f"ts - {_seconds(delay)}"
        if delay
        else rng.choice(["ts", "ts - INTERVAL '0.001' SECOND"]),
        "rows": values,
    }


def _arrival(rng: random.Random, tables: dict[str, dict[str, Any]]) -> list[str]:
    left = {name: len(table["rows"]) for name, table in tables.items()}
    found: list[str] = []
    most = rng.choice([1, 1, 6])
    while any(left.values()):
        name = rng.choice([each for each in left if left[each]])
        for _ in range(min(left[name], rng.randint(1, most))):
            found.append(name)
            left[name] -= 1
    return found


# ---- expressions


def _expression(draw: Draw, of: Relation, kind: str, depth: int) -> str:
    rng = draw.random
    columns = of.of(kind)

    def e(kind: str) -> str:
        return _expression(draw, of, kind, depth - 1)

    if depth <= 0 or draw.chance(0.25):
        literals = {
            "text": ["'a'", "'b'", "'x_y'", "CAST(NULL AS VARCHAR)"],
            "long": ["CAST(7 AS BIGINT)", "CAST(-3 AS BIGINT)", "CAST(NULL AS BIGINT)"],
            "int": ["0", "2", "-5"],
            "double": ["CAST(0.5 AS DOUBLE)", "1.5E0"],
            "decimal": ["CAST(1.25 AS DECIMAL(10, 2))"],
            "bool": ["TRUE", "FALSE", "CAST(NULL AS BOOLEAN)"],
            "date": ["DATE '2024-02-29'"],
        }
        return str(rng.choice(columns)) if columns and draw.chance(0.9) else str(rng.choice(literals[kind]))
    n = rng.randint(1, 4)
    forms: dict[str, list[Callable[[], str]]] = {
        "text": [
            lambda: f"UPPER({e('text')})",
            lambda: f"({e('text')} || {e('text')})",
            lambda: f"SUBSTRING({e('text')}, {n}, 2)",
            lambda: f"TRIM({e('text')})",
            lambda: f"REPLACE({e('text')}, 'a', 'bb')",
            lambda: f"CAST({e(rng.choice(['long', 'int', 'decimal', 'bool', 'date']))} AS VARCHAR)",
            lambda: f"LPAD({e('text')}, {n}, '*')",
            lambda: f"CONCAT_WS('-', {e('text')}, {e('text')})",
            lambda: f"SPLIT_INDEX({e('text')}, ',', {n - 1})",
            lambda: f"REGEXP_EXTRACT({e('text')}, '([a-c])(.*)', {n % 3})",
            lambda: f"DATE_FORMAT(CAST({e('date')} AS TIMESTAMP(3)), 'yyyy-MM')",
        ],
        "long": [
            lambda: f"({e('long')} {rng.choice('+-*')} {e(rng.choice(['long', 'int']))})",
            lambda: f"MOD({e('long')}, {n})",
            lambda: f"({e('long')} / {n})",
            lambda: f"ABS({e('long')})",
            lambda: f"CAST({e(rng.choice(['double', 'decimal', 'int']))} AS BIGINT)",
            lambda: f"TRY_CAST({e('text')} AS BIGINT)",
            lambda: f"EXTRACT({rng.choice(['YEAR', 'DOY', 'WEEK', 'MONTH'])} FROM {e('date')})",
            lambda: f"TIMESTAMPDIFF(DAY, {e('date')}, {e('date')}) + CAST(0 AS BIGINT)",
        ],
        "int": [
            lambda: f"({e('int')} {rng.choice('+-*')} {e('int')})",
            lambda: f"CHAR_LENGTH({e('text')})",
            lambda: f"MOD({e('int')}, {n})",
            lambda: f"CAST({e('bool')} AS INT)",
            lambda: f"POSITION('b' IN {e('text')})",
            lambda: f"SIGN({e('int')})",
        ],
        "double": [
            lambda: f"({e('double')} {rng.choice('+-*')} {e(rng.choice(NUMBERS))})",
            lambda: f"CAST({e(rng.choice(['long', 'decimal', 'int']))} AS DOUBLE)",
            lambda: f"FLOOR({e('double')})",
            lambda: f"ROUND({e('double')}, {n - 2})",
            lambda: f"ABS({e('double')})",
        ],
        "decimal": [
            lambda: (
                f"CAST({e('decimal')} {rng.choice('+-*')} {e(rng.choice(['decimal', 'int']))} AS DECIMAL(10, 2))"
            ),
            lambda: f"CAST({e(rng.choice(['int', 'long', 'double']))} AS DECIMAL(10, 2))",
            lambda: f"ABS({e('decimal')})",
            lambda: f"CAST(ROUND({e('decimal')}, 1) AS DECIMAL(10, 2))",
        ],
        "bool": [
            lambda: _condition(draw, of, depth - 1),
            lambda: f"({e('bool')} {rng.choice(['AND', 'OR'])} {e('bool')})",
            lambda: f"(NOT {e('bool')})",
            lambda: (
                f"({e('bool')} IS {rng.choice(['', 'NOT '])}{rng.choice(['TRUE', 'FALSE', 'NULL', 'UNKNOWN'])})"
            ),
        ],
        "date": [
            lambda: f"({e('date')} + INTERVAL '{n}' {rng.choice(['DAY', 'MONTH', 'YEAR'])})",
            lambda: f"FLOOR({e('date')} TO {rng.choice(['MONTH', 'YEAR', 'WEEK'])})",
        ],
    }
    of_any = [
        lambda: f"CASE WHEN {e('bool')} THEN {e(kind)} ELSE {e(kind)} END",
        lambda: f"COALESCE({e(kind)}, {e(kind)})",
        lambda: f"NULLIF({e(kind)}, {e(kind)})",
        lambda: f"IF({e('bool')}, {e(kind)}, {e(kind)})",
    ]
    return rng.choice([*forms[kind], *forms[kind], *of_any])()


def _condition(draw: Draw, of: Relation, depth: int = 1) -> str:
    rng = draw.random
    kind = rng.choice(["text", "long", "int", "double", "decimal", "date", "long"])

    def e() -> str:
        return _expression(draw, of, kind, depth)

    forms: list[Callable[[], str]] = [
        lambda: f"{e()} {rng.choice(['=', '<>', '<', '<=', '>', '>='])} {e()}",
        lambda: f"{e()} {rng.choice(['<', '>', '>=', '<>'])} {e()}",
        lambda: f"{e()} IS {rng.choice(['NOT ', ''])}NULL",
        lambda: f"{e()} {rng.choice(['NOT ', ''])}BETWEEN {e()} AND {e()}",
        lambda: f"{e()} IS {rng.choice(['NOT ', ''])}DISTINCT FROM {e()}",
        lambda: (
            f"{_expression(draw, of, 'text', depth)} {rng.choice(['', 'NOT '])}LIKE '{rng.choice(['a%', '%b', '_', '%'])}'"
        ),
        lambda: f"{_expression(draw, of, 'int', depth)} {rng.choice(['', 'NOT '])}IN (0, 1, 2, 5, 17, -4)",
        lambda: f"{_expression(draw, of, 'text', depth)} {rng.choice(['', 'NOT '])}IN ('a', 'b', 'd,e')",
    ]
    return f"({rng.choice(forms)()})"


def _aggregates(
    draw: Draw, of: Relation, most: int = 4, *, merges: bool = False
) -> dict[str, tuple[str, str]]:
    """Draw aggregates: text and kind by the names of their columns."""
    rng, found = draw.random, {}
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
                forms.append((f"SUM({_expression(draw, of, kind, 1)})", total))
            if kind in ("text", "date"):
                forms += [(f"MIN({name})", kind), (f"MAX({name})", kind)]
            if not of.is_open and not merges:
                forms += [(f"{rng.choice(['FIRST_VALUE', 'LAST_VALUE'])}({name})", kind)]
            if not of.is_open and kind == "text":
                forms += [(f"LISTAGG({name})", "text"), (f"LISTAGG(DISTINCT {name}, '|')", "text")]
            if not of.is_open and kind in ("text", "long", "int"):
                forms += [(f"ARRAY_AGG({name})", "other")]
        text, kind = rng.choice(forms)
        if draw.chance(0.2):
            text += f" FILTER (WHERE {_condition(draw, of)})"
        found[draw.name("a")] = (text, kind)
    return found


def _shown(of: dict[str, tuple[str, str]]) -> list[str]:
    return [f"{text} AS {name}" for name, (text, _) in of.items()]


def _kinds(of: dict[str, tuple[str, str]]) -> dict[str, str]:
    return {name: kind for name, (_, kind) in of.items()}


# ---- steps


def select(draw: Draw) -> None:
    of = draw.relation()
    kept = draw.some(list(of.columns), 1, 6)
    shown, columns = list(kept), {name: of.columns[name] for name in kept}
    for _ in range(draw.random.randint(0, 3)):
        kind, name = draw.one(list(SCALARS)), draw.name("e")
        shown.append(f"{_expression(draw, of, kind, 2)} AS {name}")
        columns[name] = kind
    rowtime = of.rowtime if of.rowtime and draw.chance(0.9) else None
    windows = of.windows if draw.chance(0.9) else None
    shown += [rowtime] if rowtime else []
    shown += ["window_start", "window_end"] if windows else []
    where = f" WHERE {_condition(draw, of, 2)}" if draw.chance(0.6) else ""
    draw.add(
        f"SELECT {', '.join(shown)} FROM {of.name}{where}",
        replace(of, columns=columns, rowtime=rowtime, windows=windows),
    )


def _window_function(draw: Draw, of: Relation) -> tuple[str, str, list[str]]:
    """Draw a window function over a relation: its text, what must be equal to join it, and keys of its sessions."""
    rng = draw.random
    kind = rng.choice(["TUMBLE", "HOP", "CUMULATE", "SESSION"])
    source = f"TABLE {of.name}"
    if kind == "SESSION":
        keys = draw.some(of.of("text", "int", "bool", "long"), 0, 2)
        partition = f" PARTITION BY ({', '.join(keys)})" if keys else ""
        gap = _seconds(rng.choice([1, 2, 5, 13]))
        return f"TABLE(SESSION({source}{partition}, DESCRIPTOR({of.rowtime}), {gap}))", "", keys
    step = rng.choice([1, 2, 3, 5, 7, 10])
    times = rng.choice([1, 2, 3, 4, 6])
    lengths = {"TUMBLE": [step * times], "HOP": [step, step * times], "CUMULATE": [step, step * times]}[kind]
    arguments = ", ".join(map(_seconds, lengths))
    if draw.chance(0.25):
        offsets = [each for each in (-2, -1, 1, 3, 4) if abs(each) < lengths[0]]
        arguments += f", {_seconds(rng.choice(offsets or [0]))}"
    return f"TABLE({kind}({source}, DESCRIPTOR({of.rowtime}), {arguments}))", f"{kind} {arguments}", []


def _grouped(draw: Draw, keys: list[str]) -> tuple[str, list[str]]:
    """Draw how rows are grouped by keys: the text, and functions that tell the sets apart."""
    if len(keys) > 1 and draw.chance(0.3):
        inner = ", ".join(keys)
        pairs = ", ".join(f"({key})" for key in keys)
        text = draw.one([f"ROLLUP ({inner})", f"CUBE ({inner})", f"GROUPING SETS ({pairs}, ())"])
        return text, [draw.one([f"GROUPING({keys[0]})", f"GROUPING_ID({inner})"])] if draw.chance(0.5) else []
    return ", ".join(keys), []


def _phases(draw: Draw) -> None:
    if draw.chance(0.5):
        strategy = draw.one(["ONE_PHASE", "TWO_PHASE"])
        draw.settings.setdefault("table.optimizer.agg-phase-strategy", strategy)
    if draw.chance(0.15):
        draw.settings.setdefault("table.optimizer.distinct-agg.split.enabled", "true")


def window_aggregate(draw: Draw) -> None:
    of = draw.relation(rowtime=True, inserts=True)
    _phases(draw)
    source, windows, session_keys = _window_function(draw, of)
    is_session = "SESSION" in source
    keys = session_keys if is_session else draw.some(list(of.columns), 0, 2)
    group, marks = (", ".join(keys), []) if is_session else _grouped(draw, keys)
    found = _aggregates(draw, of, merges=not windows.startswith("TUMBLE"))
    found |= {draw.name("g"): (mark, "long") for mark in marks}
    has_time = draw.chance(0.5)
    shown = [
        *keys,
        "window_start",
        "window_end",
        *(["window_time AS ts"] if has_time else []),
        *_shown(found),
    ]
    groups = [
        "window_start",
        "window_end",
        *(["window_time"] if has_time else []),
        *([group] if group else []),
    ]
    where = f" WHERE {_condition(draw, of)}" if draw.chance(0.3) else ""
    having = f" HAVING COUNT(*) > {draw.random.randint(1, 2)}" if draw.chance(0.2) else ""
    draw.add(
        f"SELECT {', '.join(shown)} FROM {source}{where} GROUP BY {', '.join(groups)}{having}",
        Relation(
            "",
            {key: of.columns[key] for key in keys} | _kinds(found),
            "ts" if has_time else None,
            windows or None,
            is_open=True,
            exact=of.exact,
        ),
    )


def windowed(draw: Draw) -> None:
    of = draw.relation(rowtime=True, inserts=True)
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
    keys = draw.some(list(of.columns), 0, 1)
    if draw.chance(0.5):
        found = _aggregates(draw, of, merges=True)
        shown = [*keys, "window_start", "window_end", *_shown(found)]
        group = ", ".join(["window_start", "window_end", *keys])
        columns = {key: of.columns[key] for key in keys} | _kinds(found)
        draw.add(
            f"SELECT {', '.join(shown)} FROM {of.name} GROUP BY {group}",
            Relation("", columns, None, of.windows, is_open=True, exact=of.exact),
        )
        return
    partition = ", ".join(["window_start", "window_end", *keys])
    if of.rowtime and not of.is_open and draw.chance(0.4):
        order, last = f"{of.rowtime} {draw.one(['ASC', 'DESC'])}", 1
    else:
        order, last = _total_order(draw, of), draw.random.randint(1, 3)
    rank = draw.name("rn")
    ranked = (
        f"SELECT *, ROW_NUMBER() OVER (PARTITION BY {partition} ORDER BY {order}) AS {rank} FROM {of.name}"
    )
    shown = [*of.columns, "window_start", "window_end", *([rank] if draw.chance(0.4) else [])]
    draw.add(
        f"SELECT {', '.join(shown)} FROM ({ranked}) WHERE {rank} <= {last}",
        Relation("", dict(of.columns), None, of.windows, is_open=True, exact=of.exact),
    )


def _total_order(draw: Draw, of: Relation) -> str:
    """Draw an order, of all columns where rows of a step come in an open order."""
    if set(of.columns.values()) & {"other"}:
        raise Impossible
    columns = draw.some(list(of.columns), 1, 3)
    if of.is_open:
        columns += [name for name in of.columns if name not in columns]
    ways = ["", " DESC", " ASC NULLS LAST", " DESC NULLS LAST", " NULLS FIRST"]
    return ", ".join(name + draw.one(ways) for name in columns)


def group_window(draw: Draw) -> None:
    of = draw.relation(rowtime=True, inserts=True)
    rng = draw.random
    kind = rng.choice(["TUMBLE", "HOP", "SESSION"])
    step = rng.choice([1, 2, 3, 5, 10])
    lengths = [step, step * rng.choice([1, 2, 3])] if kind == "HOP" else [step]
    window = f"({of.rowtime}, {', '.join(map(_seconds, lengths))})"
    keys = draw.some(list(of.columns), 0, 2)
    found = _aggregates(draw, of, merges=kind != "TUMBLE")
    has_time = draw.chance(0.5)
    shown = [*keys, f"{kind}_START{window} AS ws", f"{kind}_END{window} AS we", *_shown(found)]
    shown += [f"{kind}_ROWTIME{window} AS ts"] if has_time else []
    having = f" HAVING {_condition_of_aggregates(draw, found)}" if draw.chance(0.2) else ""
    draw.add(
        f"SELECT {', '.join(shown)} FROM {of.name} GROUP BY {', '.join([*keys, kind + window])}{having}",
        Relation(
            "",
            {key: of.columns[key] for key in keys} | _kinds(found),
            "ts" if has_time else None,
            is_open=True,
            exact=of.exact,
        ),
    )


def _condition_of_aggregates(draw: Draw, found: dict[str, tuple[str, str]]) -> str:
    numbers = [text for text, kind in found.values() if kind in NUMBERS] or ["COUNT(*)"]
    return f"{draw.one(numbers)} {draw.one(['>', '<', '<>'])} {draw.random.randint(0, 12)}"


def group_by(draw: Draw) -> None:
    of = draw.relation()
    _phases(draw)
    keys = draw.some(list(of.columns), 0, 2)
    if any(of.columns[key] == "other" for key in keys):
        raise Impossible
    group, marks = _grouped(draw, keys)
    found = _aggregates(draw, of)
    found |= {draw.name("g"): (mark, "long") for mark in marks}
    having = f" HAVING {_condition_of_aggregates(draw, found)}" if group and draw.chance(0.25) else ""
    where = f" WHERE {_condition(draw, of)}" if draw.chance(0.2) else ""
    draw.add(
        f"SELECT {', '.join([*keys, *_shown(found)])} FROM {of.name}{where}{f' GROUP BY {group}' if group else ''}{having}",
        Relation(
            "",
            {key: of.columns[key] for key in keys} | _kinds(found),
            updates=True,
            is_open=of.is_open or bool(marks) or "(" in group,
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
    order = _total_order(draw, of)
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
    order = _total_order(draw, of)
    offset = f" OFFSET {draw.random.randint(1, 2)}" if draw.chance(0.2) else ""
    draw.add(
        f"SELECT {', '.join(of.columns)} FROM {of.name} ORDER BY {order} LIMIT {draw.random.randint(1, 4)}{offset}",
        Relation("", dict(of.columns), updates=True, is_open=True, exact=of.exact and not of.is_open),
    )


def deduplicate(draw: Draw) -> None:
    of = draw.relation(rowtime=True, inserts=True, ordered=True)
    keys = draw.some([each for each in of.columns if of.columns[each] != "other"], 1, 2)
    way = draw.one(["ASC", "DESC"])
    ranked = f"SELECT *, ROW_NUMBER() OVER (PARTITION BY {', '.join(keys)} ORDER BY {of.rowtime} {way}) AS nth FROM {of.name}"
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
            f"RANGE BETWEEN {_seconds(rng.choice([1, 2, 5, 10]))} PRECEDING AND CURRENT ROW",
        ]
    )
    keys = draw.some([each for each in of.columns if of.columns[each] != "other"], 0, 2)
    partition = f"PARTITION BY {', '.join(keys)} " if keys else ""
    found = {
        name: (f"{text} OVER w", kind)
        for name, (text, kind) in _aggregates(draw, of).items()
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
    columns = {name: of.columns[name] for name in kept} | _kinds(found)
    shown = [*kept, str(of.rowtime), *_shown(found)]
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
    within = f" WITHIN {_seconds(draw.random.choice([2, 5, 20]))}" if draw.chance(0.4) else ""
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
        f"SELECT {', '.join([*keys, *measures])} FROM {of.name} MATCH_RECOGNIZE ({partition}ORDER BY {of.rowtime} MEASURES {shown} "
        f"ONE ROW PER MATCH AFTER MATCH SKIP {skip} PATTERN ({pattern}){within} DEFINE {define})",
        Relation(
            "",
            {key: of.columns[key] for key in keys} | dict.fromkeys(measures, "long"),
            is_open=True,
            exact=of.exact,
        ),
    )


# ---- several relations


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
        condition = f"{draw.one(left.of(kind))} {draw.one(['IN', 'IN', 'NOT IN'])} (SELECT {draw.one(right.of(kind))} FROM {right.name})"
    else:
        condition = (
            f"{draw.one(['', 'NOT '])}EXISTS (SELECT 1 FROM {right.name} R WHERE {_equal(draw, left, right)})"
        )
    is_open = left.is_open or right.is_open
    draw.add(
        f"SELECT {', '.join(kept)} FROM {left.name} L WHERE {condition}",
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
    before, after = _seconds(rng.choice([0, 1, 2, 5, 10])), _seconds(rng.choice([0, 1, 3, 8]))
    a, b = f"L.{left.rowtime}", f"R.{right.rowtime}"
    bound = rng.choice(
        [
            f"{a} BETWEEN {b} - {before} AND {b} + {after}",
            f"{b} BETWEEN {a} AND {a} + {after}",
            f"{a} > {b} - {before} AND {a} <= {b} + {after}",
            f"{a} BETWEEN {b} + {_seconds(1)} AND {b} + {_seconds(6)}",
            f"{a} = {b}",
        ]
    )
    form = draw.one(FORMS)
    shown, columns = _joined_columns(draw, left, right)
    has_time = form == "JOIN" and draw.chance(0.5)
    shown += [f"{a} AS ts"] if has_time else []
    draw.add(
        f"SELECT {', '.join(shown)} FROM {left.name} L {form} {right.name} R ON {_equal(draw, left, right)} AND {bound}",
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
        f"SELECT {', '.join([*right.columns, str(right.rowtime)])} FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {others} "
        f"ORDER BY {right.rowtime} DESC) AS nth FROM {right.name}) WHERE nth = 1",
        replace(right, updates=True, windows=None),
    )
    versions = draw.relations[-1]
    shown, columns = _joined_columns(draw, left, right)
    draw.add(
        f"SELECT {', '.join(shown)}, L.{left.rowtime} AS ts FROM {left.name} L {draw.one(['JOIN', 'LEFT JOIN'])} {versions.name} "
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
        where = f" WHERE {_condition(draw, side)}" if draw.chance(0.3) else ""
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


def unnest(draw: Draw) -> None:
    of = draw.relation()
    kind = draw.one([kind for kind in ("long", "int", "text", "double") if of.of(kind)])
    items = [draw.one(of.of(kind)), _expression(draw, of, kind, 1), draw.one(of.of(kind))][
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


STEPS = [
    *[select] * 3,
    *[window_aggregate] * 4,
    *[windowed] * 2,
    *[window_again] * 2,
    group_window,
    *[group_by] * 3,
    distinct,
    *[top] * 2,
    limit,
    *[deduplicate] * 2,
    *[over] * 2,
    match,
    *[regular_join] * 2,
    semi_join,
    *[interval_join] * 2,
    *[window_join] * 2,
    temporal_join,
    *[union] * 2,
    compared_with_one,
    unnest,
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
    tables = {each: _table(rng, rng.randint(4, rows), base, is_local=is_local) for each in names}
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
        "arrival": _arrival(rng, tables),
        "compared": "rows" if draw.relations[-1].exact else "net",
    }
