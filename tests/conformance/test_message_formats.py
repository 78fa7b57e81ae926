"""Messages of csv and raw, and maps in json, have the values that the deserialization schemas of Flink give them."""

import math
from base64 import b64decode
from dataclasses import replace
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from flinkcore.errors import ConfigurationError, UnsupportedOperationError
from flinkcore.log.decoding.csv_values import csv_values
from flinkcore.log.decoding.declared_steps import declared_steps
from flinkcore.log.decoding.decoded_values import DecodedValues
from flinkcore.log.decoding.raw_values import raw_values
from flinkcore.sql.nodes.messages import declared_messages
from flinkcore.sql.types.logical_types import type_of

LENIENT = "ignore-parse-errors"


def decoded(case: dict[str, Any]) -> tuple[list[Any], dict[int, str]]:
    """Return the rows of the messages of a case, and the faults."""
    declared = declared_messages(
        type_of(case["type"]).children, {"connector": "kafka", "format": case["format"]}
    )
    assert declared is not None
    fields = declared.value_fields
    if case["format"] == "json":
        (step, *_) = declared_steps(
            pa.schema({"value": pa.binary()}),
            replace(declared, options={f"json.{name}": value for name, value in case["options"].items()}),
            False,
        )
        assert isinstance(step, DecodedValues)
        decoder: Any = step.decoders["value"]
    elif case["format"] == "raw":
        decoder = raw_values(fields, case["options"], True)
    else:
        decoder = csv_values(fields, case["options"])
    found = decoder.decode([None if each is None else b64decode(each) for each in case["messages"]])
    assert found.values.type == decoder.type == pa.struct(list(fields))
    found.values.validate(full=True)
    plain = [field.with_type(_without_nanoseconds(field.type)) for field in fields]
    rows = found.values.cast(pa.struct(plain), safe=False).to_pylist()
    return [None if row is None else list(row.values()) for row in rows], found.faults


def _without_nanoseconds(kind: pa.DataType) -> pa.DataType:
    """Return a type whose values Python has."""
    return pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) and kind.unit == "ns" else kind


def is_same(expected: Any, value: Any) -> bool:
    """Return whether a value is one that Java writes so; of timestamps, up to the digits of their type."""
    if expected is None or value is None:
        return expected is value
    if isinstance(value, tuple):  # an entry of a map
        return is_same(expected, list(value))
    if isinstance(expected, list):
        values = list(value.values()) if isinstance(value, dict) else value
        return len(values) == len(expected) and all(map(is_same, expected, values))
    if isinstance(value, bool):
        return bool(expected == str(value).lower())
    if isinstance(value, bytes):
        return b64decode(expected) == value
    if isinstance(value, float):
        found = [
            pa.array([each], kind).to_pylist()
            for kind in (pa.float32(), pa.float64())
            for each in (float(expected), value)
        ]
        return math.isnan(value) if expected == "NaN" else found[0] == found[1] or found[2] == found[3]
    if isinstance(value, datetime):
        zone = value.tzinfo and timezone.utc
        at = datetime.fromisoformat(expected.rstrip("Z")[:26]).replace(tzinfo=zone)
        return timedelta(0) <= at - value.replace(tzinfo=zone) < timedelta(milliseconds=1)
    if isinstance(value, date | time):
        return type(value).fromisoformat(expected) == value
    return type(value)(expected) == value if isinstance(value, int | Decimal) else bool(expected == value)


def test_messages_have_the_values_of_flink(message_formats_scenario: dict[str, Any]) -> None:
    case = message_formats_scenario
    if "refused" in case:
        with pytest.raises((ConfigurationError, UnsupportedOperationError)):
            decoded(case)
        return
    try:
        rows, faults = decoded(case)
    except UnsupportedOperationError:
        assert case["options"].get("charset") in ("GBK", "Shift_JIS")
        return
    is_lenient = case["options"].get(LENIENT) == "true"
    for row, (message, expected) in enumerate(zip(case["messages"], case["rows"], strict=True)):
        text = None if message is None else b64decode(message)
        if expected == "failed" or (expected is None and is_lenient and message is not None):
            assert row in faults, text
        else:
            assert row not in faults, (text, faults.get(row), expected)
            assert is_same(expected, rows[row]), (text, expected, rows[row])
