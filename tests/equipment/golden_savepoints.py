"""Rows of savepoints in the form in which Flink's own reading of them is recorded.

Values in `expected.json` are tagged where JSON has no type for them, such as `{"double": "7ff8000000000000"}`; states
are read with `exact=True`, so that nothing of a value is lost.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa

from flinkcore.savepoints import Savepoint, SavepointOperator, SavepointState
from flinkcore.savepoints.keyed_state import KeyedState
from flinkcore.savepoints.serializers.composite import (
    ArraySerializer,
    BufferEntrySerializer,
    EitherSerializer,
    EnumSerializer,
    ListSerializer,
    MapSerializer,
    RowSerializer,
    SetSerializer,
    StreamRecordSerializer,
    TtlSerializer,
    TupleSerializer,
)
from flinkcore.savepoints.serializers.pojo import PojoSerializer
from flinkcore.savepoints.serializers.serializer import StateSerializer


def text(value: bytes) -> str:
    """Return a text of an exact column; halves of surrogate pairs stay."""
    return value.decode("utf-8", "surrogatepass")


def nanos_of_day(value: Any) -> int:
    hour, minute, second = str(value).split(":")
    whole, _, fraction = second.partition(".")
    return ((int(hour) * 60 + int(minute)) * 60 + int(whole)) * 10**9 + int(fraction.ljust(9, "0") or 0)


def decimal(value: str) -> dict[str, Any]:
    sign, digits, exponent = Decimal(value).as_tuple()
    number = int("".join(map(str, digits))) * (-1 if sign else 1)
    return {"decimal": str(number), "scale": -int(exponent)}


def instant(value: str) -> dict[str, Any]:
    day, _, time = value.removesuffix("Z").rpartition("T")
    whole, _, fraction = time.partition(".")
    hour, minute, second = map(int, whole.split(":"))
    year, month, of_month = day.rsplit("-", 2)
    # Days by a calendar of 400 years, which Python's dates have once.
    eras, in_era = divmod(int(year) - 2000, 400)
    days = (date(2000 + in_era, int(month), int(of_month)) - date(1970, 1, 1)).days + eras * 146_097
    return {"instant": [((days * 24 + hour) * 60 + minute) * 60 + second, int(fraction.ljust(9, "0") or 0)]}


def date_time(value: str) -> dict[str, Any]:
    day, _, time = value.rpartition("T")
    return {"datetime": [day, nanos_of_day(time)]}


def bits(tag: str, format: str) -> Callable[[float], dict[str, str]]:
    return lambda value: {tag: struct.pack(format, value).hex()}


def milliseconds(tag: str) -> Callable[[Any], dict[str, int]]:
    return lambda value: {tag: value}


SIMPLE: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("Long", "Integer", "Short", "Byte", "Boolean"), lambda value: value),
    "String": text,
    "Character": lambda value: {"char": text(value)},
    "Double": bits("double", ">d"),
    "Float": bits("float", ">f"),
    "BigInteger": lambda value: {"bigint": value},
    "BigDecimal": decimal,
    "java.sql.Date": milliseconds("sql_date"),
    "java.sql.Time": milliseconds("sql_time"),
    "java.sql.Timestamp": lambda value: {"sql_timestamp": [value["epoch_ms"], value["nanos"]]},
    "LocalDate": lambda value: {"date": value},
    "LocalTime": lambda value: {"time": value},
    "LocalDateTime": date_time,
    "Instant": instant,
    "byte[]": lambda value: {"bytes": value.hex()},
    "long[]": lambda value: {"array": value},
    "double[]": lambda value: {"array": [bits("double", ">d")(each) for each in value]},
    "String[]": lambda value: {"array": [None if each is None else text(each) for each in value]},
    "TimeWindow": lambda value: {"window": [value["start_ms"], value["end_ms"]]},
    "GlobalWindow": lambda value: {"window": "global"},
    "void": lambda value: None,
}


def ordered(values: list[Any]) -> list[Any]:
    return sorted(values, key=lambda value: json.dumps(value, sort_keys=True))


def tagged(value: Any, serializer: StateSerializer) -> Any:
    """Return a value of a column as `expected.json` has it."""
    if value is None and serializer.name != "GlobalWindow":
        return None
    parts = serializer.parts
    if isinstance(serializer, ArraySerializer):
        return {"array": [tagged(each, parts[0]) for each in value]}
    if isinstance(serializer, SetSerializer):
        return {"set": ordered([tagged(each, parts[0]) for each in value])}
    if isinstance(serializer, ListSerializer):
        return [tagged(each, parts[0]) for each in value]
    if isinstance(serializer, MapSerializer):
        return {"map": ordered([[tagged(e["key"], parts[0]), tagged(e["value"], parts[1])] for e in value])}
    if isinstance(serializer, TupleSerializer):
        return {"tuple": [tagged(value[f"f{i}"], each) for i, each in enumerate(parts)]}
    if isinstance(serializer, RowSerializer):
        return {
            "row": [tagged(value[f"f{i}"], each) for i, each in enumerate(parts)],
            "kind": value["row_kind"],
        }
    if isinstance(serializer, EnumSerializer):
        return {"enum": value}
    if isinstance(serializer, PojoSerializer):
        return {
            "pojo": value.get("class", serializer.class_name),
            "fields": {name: tagged(value[name], each) for name, each in serializer.fields},
        }
    if isinstance(serializer, TtlSerializer):
        return {"ttl": value["last_access_ms"], "value": tagged(value["value"], parts[1])}
    if isinstance(serializer, StreamRecordSerializer):
        return {"record": tagged(value["value"], parts[0]), "timestamp": value["timestamp_ms"]}
    if isinstance(serializer, BufferEntrySerializer):
        return {"buffered": tagged(value["value"], parts[0]), "joined": value["joined"]}
    if isinstance(serializer, EitherSerializer):
        side = "left" if value["left"] is not None else "right"
        return {side: tagged(value[side], parts[side == "right"])}
    return SIMPLE[serializer.name](value)


def integral_times(column: Any) -> Any:
    """Return a column with times as integers: Python's have microseconds."""

    def plain(type: pa.DataType) -> pa.DataType:
        if pa.types.is_timestamp(type) or pa.types.is_time64(type):
            return pa.int64()
        if pa.types.is_struct(type):
            return pa.struct([(field.name, plain(field.type)) for field in type])
        if pa.types.is_list(type):
            return pa.list_(plain(type.value_type))
        return type

    return column.cast(plain(column.type))


def rows_of(state: SavepointState) -> list[dict[str, Any]]:
    """Return the entries of a state in the form of `expected.json`."""
    table = state.to_arrow()
    columns = {name: integral_times(table[name]).to_pylist() for name in table.column_names}
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    types = state.types
    if not isinstance(state, KeyedState):
        if "key" in types:
            return [{name: tagged(row[name], types[name]) for name in ("key", "value")} for row in rows]
        return [{"value": tagged(row["value"], types["value"])} for row in rows]
    found = []
    maps: dict[str, dict[str, Any]] = {}
    has_ttl = state.keyed_types.has_ttl
    for row in rows:
        entry = {
            "key_group": row["key_group"],
            "key": tagged(row["key"], types["key"]),
            "namespace": tagged(row.get("namespace"), types["namespace"]),
        }
        if state.kind == "TIMERS":
            found.append({**entry, "time": row["timestamp_ms"]})
        elif state.kind == "MAP":
            value = tagged(row["value"], types["value"])
            if has_ttl:
                value = {"ttl": row["last_access_ms"], "value": value}
            name = json.dumps(entry, sort_keys=True)
            if name not in maps:
                maps[name] = {**entry, "value": {"map": []}}
                found.append(maps[name])
            maps[name]["value"]["map"].append([tagged(row["map_key"], types["map_key"]), value])
        elif state.kind == "LIST":
            values = [tagged(each, types["value"]) for each in row["value"]]
            if has_ttl:
                values = [
                    {"ttl": at, "value": each} for at, each in zip(row["last_access_ms"], values, strict=True)
                ]
            found.append({**entry, "value": values})
        else:
            value = tagged(row["value"], types["value"])
            found.append(
                {**entry, "value": {"ttl": row["last_access_ms"], "value": value} if has_ttl else value}
            )
    return found


def facts_of(savepoint: Savepoint) -> list[str]:
    """Return a line for each operator, state and entry, sorted."""
    lines = []
    for operator in savepoint.operators:
        lines.append(_head(operator.metadata.__dict__))
        for state in operator.states.values():
            lines += _lines(operator, state)
    return sorted(lines)


def _lines(operator: SavepointOperator, state: SavepointState) -> list[str]:
    if isinstance(state, KeyedState):
        section, kind, mode = "keyed", state.kind, None
    else:
        section, kind, mode = "broadcast" if state.kind == "BROADCAST" else "operator", None, state.kind
    place = [operator.operator_id, section, state.name]
    return [json.dumps([*place, kind, mode]), *(_fact([*place, row]) for row in rows_of(state))]


def expected_facts(expected: dict[str, Any]) -> list[str]:
    """Return the same lines of an `expected.json`."""
    lines = []
    for operator in expected["operators"]:
        lines.append(_head(operator))
        for section in ("keyed", "operator", "broadcast"):
            for state in operator[section]:
                place = [operator["operator_id"], section, state["name"]]
                lines.append(json.dumps([*place, state["kind"], state.get("mode")]))
                lines += [_fact([*place, canonical(entry)]) for entry in state["entries"]]
    return sorted(lines)


def _head(operator: dict[str, Any]) -> str:
    names = ("uid", "name", "operator_id", "parallelism", "max_parallelism")
    return json.dumps({name: operator[name] for name in names}, sort_keys=True)


def _fact(fact: list[Any]) -> str:
    return json.dumps(canonical(fact), sort_keys=True)


def canonical(value: Any) -> Any:
    """Return a value with maps and sets in one order."""
    if isinstance(value, dict):
        return {k: ordered(canonical(v)) if k in ("map", "set") else canonical(v) for k, v in value.items()}
    return [canonical(each) for each in value] if isinstance(value, list) else value
