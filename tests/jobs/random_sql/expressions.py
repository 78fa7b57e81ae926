"""Random expressions over the columns of a relation."""

from __future__ import annotations

from collections.abc import Callable

from jobs.random_sql.relations import NUMBERS, Draw, Relation


def expression(draw: Draw, of: Relation, kind: str, depth: int) -> str:
    rng = draw.random
    columns = of.of(kind)

    def e(kind: str) -> str:
        return expression(draw, of, kind, depth - 1)

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
            lambda: condition(draw, of, depth - 1),
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


def condition(draw: Draw, of: Relation, depth: int = 1) -> str:
    rng = draw.random
    kind = rng.choice(["text", "long", "int", "double", "decimal", "date", "long"])
    negated, pattern = rng.choice(["", "NOT "]), rng.choice(["a%", "%b", "_", "%"])

    def e() -> str:
        return expression(draw, of, kind, depth)

    forms: list[Callable[[], str]] = [
        lambda: f"{e()} {rng.choice(['=', '<>', '<', '<=', '>', '>='])} {e()}",
        lambda: f"{e()} {rng.choice(['<', '>', '>=', '<>'])} {e()}",
        lambda: f"{e()} IS {negated}NULL",
        lambda: f"{e()} {negated}BETWEEN {e()} AND {e()}",
        lambda: f"{e()} IS {negated}DISTINCT FROM {e()}",
        lambda: f"{expression(draw, of, 'text', depth)} {negated}LIKE '{pattern}'",
        lambda: f"{expression(draw, of, 'int', depth)} {negated}IN (0, 1, 2, 5, 17, -4)",
        lambda: f"{expression(draw, of, 'text', depth)} {negated}IN ('a', 'b', 'd,e')",
    ]
    return f"({rng.choice(forms)()})"
