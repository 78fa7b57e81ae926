"""Values and expressions of Flink SQL's compiled plans, row by row: those that plans of OVER and GROUP BY have."""

import math
import re
from collections.abc import Sequence
from datetime import datetime, timezone
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa

BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}


def type_name(kind: Any) -> str:
    """The type as text, without NOT NULL; of a time attribute, that of its values."""
    if isinstance(kind, dict):
        zone = " WITH LOCAL TIME ZONE" if "LOCAL" in kind["type"] else ""
        return f"TIMESTAMP({kind['precision']}){zone}"
    return str(kind).removesuffix(" NOT NULL")


def arrow_type(kind: str) -> pa.DataType:
    if kind in BITS:
        return pa.int64() if kind == "BIGINT" else getattr(pa, f"int{BITS[kind]}")()
    if kind.startswith("DECIMAL"):
        return pa.decimal128(*digits(kind))
    if kind.startswith("TIMESTAMP"):
        return pa.timestamp("ms", "UTC" if "LOCAL" in kind else None)
    return {"DOUBLE": pa.float64(), "FLOAT": pa.float32(), "BOOLEAN": pa.bool_()}.get(kind, pa.string())


def digits(kind: str) -> tuple[int, int]:
    precision, scale = re.findall(r"\d+", kind)
    return int(precision), int(scale)


def of_json(value: Any, kind: str) -> Any:
    """A value of a scenario as Python has it; times as ms."""
    if value is None:
        return None
    if kind in ("DOUBLE", "FLOAT"):
        return float(value)
    if kind.startswith("DECIMAL"):
        return Decimal(value)
    if kind.startswith("TIMESTAMP"):
        time = datetime.fromisoformat(value.removesuffix("Z")).replace(tzinfo=timezone.utc)
        return (time - datetime.fromtimestamp(0, timezone.utc)) // np.timedelta64(1, "ms").item()
    return value


def to_json(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind in ("DOUBLE", "FLOAT"):
        number = float(np.float32(value)) if kind == "FLOAT" else float(value)
        return repr(number)
    if kind.startswith("DECIMAL"):
        return f"{value:.{digits(kind)[1]}f}"
    if kind.startswith("TIMESTAMP"):
        text = np.datetime64(value, "ms").item().isoformat(timespec="milliseconds")
        return text + ("Z" if "LOCAL" in kind else "")
    return value


def fitted(value: Any, kind: str) -> Any:
    """A result as its type has it: integers wrap, decimals are rounded half up or null."""
    if value is None:
        return None
    if kind in BITS:
        half = 1 << (BITS[kind] - 1)
        return (int(value) + half) % (2 * half) - half
    if kind == "FLOAT":
        return float(np.float32(value))
    if kind == "DOUBLE":
        return float(value)
    if kind.startswith("DECIMAL"):
        precision, scale = digits(kind)
        with localcontext() as context:
            context.prec = 200
            rounded = Decimal(value).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
            return rounded if abs(rounded) < Decimal(10) ** (precision - scale) else None
    return value


def _divided(a: Any, b: Any) -> Any:
    if isinstance(a, float) or isinstance(b, float):
        with np.errstate(all="ignore"):
            return float(np.float64(a) / np.float64(b))
    if isinstance(a, int) and isinstance(b, int):
        return int((Decimal(a) / Decimal(b)).to_integral_value(ROUND_DOWN))
    with localcontext() as context:
        context.prec = 200
        return Decimal(a) / Decimal(b)


def _power(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except ValueError:
        return math.nan


def _exact(call: Any) -> Any:
    def called(a: Any, b: Any) -> Any:
        with localcontext() as context:
            context.prec = 200
            return call(a, b)

    return called


CALLS = {
    "$>$1": lambda a, b: a > b,
    "$=$1": lambda a, b: a == b,
    "$+$1": _exact(lambda a, b: a + b),
    "$-$1": _exact(lambda a, b: a - b),
    "$*$1": _exact(lambda a, b: a * b),
    "$/$1": _divided,
    "$POWER$1": _power,
    "$ABS$1": abs,
    "$MOD$1": lambda a, b: int(math.fmod(a, b)),
}


def evaluated(node: dict[str, Any], row: Sequence[Any]) -> Any:
    """The value of an expression over a row."""
    kind = type_name(node["type"])
    if node["kind"] == "INPUT_REF":
        return row[node["inputIndex"]]
    if node["kind"] == "LITERAL":
        return None if node["value"] is None else fitted(node["value"], kind)
    name = node["internalName"]
    if name == "$CASE$1":
        *branches, last = node["operands"]
        for condition, value in zip(branches[::2], branches[1::2], strict=True):
            if evaluated(condition, row):
                return fitted(evaluated(value, row), kind)
        return fitted(evaluated(last, row), kind)
    operands = [evaluated(operand, row) for operand in node["operands"]]
    if name == "$IS TRUE$1":
        return operands[0] is True
    if name == "$IS NOT NULL$1":
        return operands[0] is not None
    if any(operand is None for operand in operands):
        return None
    if name == "$CAST$1":
        return fitted(operands[0], kind)
    if any(type_name(operand["type"]) in ("DOUBLE", "FLOAT") for operand in node["operands"]):
        operands = [float(operand) for operand in operands]
    return fitted(CALLS[name](*operands), kind)
