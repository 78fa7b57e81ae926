"""Key groups against Flink's KeyGroupRangeAssignment, key by key, and the arithmetic of key group ranges."""

import json
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from equipment.canonical import canonical
from models.key_groups import hash_code, key_group_of_hash

from flinkcore._native.key_groups import (
    assign_key_to_parallel_operator,
    compute_default_max_parallelism,
    compute_key_group_range_for_operator_index,
    compute_operator_index_for_key_group,
    hash_codes,
    key_groups,
)
from flinkcore.errors import ConfigurationError, DataError
from flinkcore.operators.keys.java_keys import JavaKeys

GOLDEN = Path(__file__).parents[1] / "golden"
Key = dict[str, Any]
KeyAndOutput = tuple[Key, dict[str, Any]]

# Java types that no Arrow type stands for: their keys run through the model only.
WITHOUT_ARROW = {
    "char": "Arrow has no type of single UTF-16 units",
    "big_integer": "Arrow integers have at most 64 bits, and decimals are BigDecimal",
    "list": "a list column is no key",
    "tuple": "a composite key of columns is a Row, not a Tuple",
    "too_large_big_decimal": "Arrow decimals here have at most 38 digits",
    "lone_surrogate": "UTF-8 has no lone surrogates",
    "distant_instant": "Arrow counts nanoseconds in 64 bits, which end in 2262",
}


def nanoseconds(key: Key) -> int:
    seconds, nanos = key["value"]
    return int(seconds * 10**9 + nanos)


def why_not_arrow(key: Key) -> str | None:
    kind, value = key["type"], key.get("value")
    if kind == "big_decimal" and len(Decimal(value).as_tuple().digits) > 38:
        kind = "too_large_big_decimal"
    elif kind == "string" and any(0xD800 <= ord(character) < 0xE000 for character in value):
        kind = "lone_surrogate"
    elif kind == "instant" and abs(nanoseconds(key)) >= 2**63:
        kind = "distant_instant"
    elif kind == "row":
        return next((reason for part in value if (reason := why_not_arrow(part))), None)
    return WITHOUT_ARROW.get(kind)


def ieee(width: str) -> Callable[[list[Key]], pa.Array]:
    def column(keys: list[Key]) -> pa.Array:
        bits = np.array([int(key["bits"], 16) for key in keys], dtype=f"u{width}")
        return pa.array(bits.view(f"f{width}"))

    return column


def plain(arrow_type: pa.DataType) -> Callable[[list[Key]], pa.Array]:
    return lambda keys: pa.array([key["value"] for key in keys], arrow_type)


def decimals(keys: list[Key]) -> pa.Array:
    values = [Decimal(key["value"]) for key in keys]
    return pa.array(values, pa.decimal128(38, -int(values[0].as_tuple().exponent)))


def rows(keys: list[Key]) -> pa.Array:
    fields = [column_of([part]) for part in keys[0]["value"]]
    if not fields:
        return pa.array([{}], pa.struct([]))
    return pa.StructArray.from_arrays(fields, names=[f"f{i}" for i in range(len(fields))])


COLUMNS: dict[str, Callable[[list[Key]], pa.Array]] = {
    "byte": plain(pa.int8()),
    "short": plain(pa.int16()),
    "int": plain(pa.int32()),
    "long": plain(pa.int64()),
    "boolean": plain(pa.bool_()),
    "float": ieee("4"),
    "double": ieee("8"),
    "string": plain(pa.string()),
    "date": lambda keys: pa.array([date.fromisoformat(key["value"]) for key in keys], pa.date32()),
    "instant": lambda keys: pa.array([nanoseconds(key) for key in keys], pa.timestamp("ns", "UTC")),
    "big_decimal": decimals,
    "row": rows,
    "null": lambda keys: pa.nulls(len(keys)),
}
ONE_BY_ONE = ("big_decimal", "row")  # their scales and fields differ from key to key


def column_of(keys: list[Key]) -> pa.Array:
    return COLUMNS[keys[0]["type"]](keys)


def run_column(column: pa.Array, max_parallelism: int, parallelism: int) -> list[dict[str, Any]]:
    batch = pa.record_batch([column], ["key"])
    results: list[dict[str, Any]] = [{"hash": code} for code in hash_codes(batch).tolist()]
    try:
        groups = key_groups(batch, max_parallelism).tolist()
        operators = assign_key_to_parallel_operator(batch, max_parallelism, parallelism).tolist()
    except ConfigurationError:
        return [{**result, "error": True} for result in results]
    except DataError:
        return [{"error": True} for _ in results]
    for result, group, operator in zip(results, groups, operators, strict=True):
        result.update(key_group=group, operator=operator)
    return results


def run_ranges(max_parallelism: int, parallelism: int) -> dict[str, Any]:
    def attempt(compute: Callable[..., Any], *arguments: int) -> Any:
        try:
            return compute(*arguments)
        except ConfigurationError:
            return {"error": True}

    result: dict[str, Any] = {
        "ranges": [
            found if isinstance(found, dict) else list(found)
            for index in range(parallelism)
            for found in [
                attempt(compute_key_group_range_for_operator_index, max_parallelism, parallelism, index)
            ]
        ],
        "default_max_parallelism": attempt(compute_default_max_parallelism, parallelism),
    }
    if max_parallelism <= 128:
        result["operator_of_key_group"] = [
            compute_operator_index_for_key_group(max_parallelism, parallelism, group)
            for group in range(max_parallelism)
        ]
    return result


def run_model(key: Key, max_parallelism: int, parallelism: int) -> dict[str, Any]:
    if key["type"] == "null":
        return {"error": True}
    code = hash_code(key)
    if max_parallelism == 0:
        return {"hash": code, "error": True}
    group = key_group_of_hash(code, max_parallelism)
    return {"hash": code, "key_group": group, "operator": group * parallelism // max_parallelism}


def without_text(result: dict[str, Any]) -> dict[str, Any]:
    return {**result, "error": True} if "error" in result else result


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test per Java type, and reason why its keys do not run over columns."""
    if "keys_of_a_type" not in metafunc.fixturenames:
        return
    path = Path(metafunc.config.getoption("--golden") or GOLDEN) / "key_groups.jsonl"
    cases: dict[tuple[str, str | None], list[tuple[str, dict[str, Any], list[KeyAndOutput]]]] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        scenario = json.loads(line)
        pairs = zip(scenario["input"]["keys"], scenario["output"]["keys"], strict=True)
        by_type = sorted(pairs, key=lambda pair: (pair[0]["type"], why_not_arrow(pair[0]) or ""))
        for case, found in groupby(by_type, lambda pair: (pair[0]["type"], why_not_arrow(pair[0]))):
            cases.setdefault(case, []).append((scenario["name"], scenario["input"], list(found)))
    names = [f"{kind}-{'without_arrow_type' if reason else 'columns'}" for kind, reason in cases]
    metafunc.parametrize("keys_of_a_type", cases.items(), ids=names)


def test_columns_fall_into_the_key_groups_of_flink(
    keys_of_a_type: tuple[tuple[str, str | None], list[tuple[str, dict[str, Any], list[KeyAndOutput]]]],
) -> None:
    (kind, reason), scenarios = keys_of_a_type
    if reason:
        pytest.skip(reason)
    for name, item, found in scenarios:
        keys = [key for key, _ in found]
        want = [without_text(output) for _, output in found]
        columns = [column_of([key]) for key in keys] if kind in ONE_BY_ONE else [column_of(keys)]
        got = [
            result
            for column in columns
            for result in run_column(column, item["max_parallelism"], item["parallelism"])
        ]
        assert got == want, name


def test_python_keys_fall_into_the_key_groups_of_flink(key_groups_scenario: dict[str, Any]) -> None:
    item, outputs = key_groups_scenario["input"], key_groups_scenario["output"]["keys"]
    found = [
        (column_of([key]), output)
        for key, output in zip(item["keys"], outputs, strict=True)
        if why_not_arrow(key) is None
    ]
    assert [key_group_of_value(column, item["max_parallelism"]) for column, _ in found] == [
        "error" if "error" in output else output["key_group"] for _, output in found
    ]


def key_group_of_value(column: pa.Array, max_parallelism: int) -> int | str:
    """The key group that functions in Python have for the only value of a column."""
    try:
        return JavaKeys(max_parallelism, column.type)(column[0].as_py())
    except (ConfigurationError, DataError):
        return "error"


def test_ranges_are_those_of_flink(key_groups_scenario: dict[str, Any]) -> None:
    item = key_groups_scenario["input"]
    want = canonical("key_groups", item, key_groups_scenario["output"])
    del want["keys"]
    assert run_ranges(item["max_parallelism"], item["parallelism"]) == want


def test_the_model_agrees_with_flink_for_every_java_type(key_groups_scenario: dict[str, Any]) -> None:
    item = key_groups_scenario["input"]
    want = [without_text(output) for output in key_groups_scenario["output"]["keys"]]
    assert [run_model(key, item["max_parallelism"], item["parallelism"]) for key in item["keys"]] == want
