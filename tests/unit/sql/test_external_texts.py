"""Values as the connector ``print`` writes them: texts of Java's objects."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from flinkcore.sql.types.external_texts import external_texts
from flinkcore.sql.types.logical_types import type_of


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("INT", None, "null"),
        ("BOOLEAN", True, "true"),
        ("DOUBLE", 1e10, "1.0E10"),
        ("FLOAT", 0.1, "0.1"),
        ("DECIMAL(10, 2)", Decimal("1.50"), "1.50"),
        ("STRING", "x" * 200, "x" * 200),
        ("BYTES", b"\xff\x01", "[-1, 1]"),
        ("DATE", 0, "1970-01-01"),
        ("TIME(0)", 43_200_000, "12:00"),
        ("TIME(3)", 43_200_001, "12:00:00.001"),
        ("TIMESTAMP(3)", 0, "1970-01-01T00:00"),
        ("TIMESTAMP(6)", 1_500_000, "1970-01-01T00:00:01.500"),
        ("TIMESTAMP(6)", 1_000_001, "1970-01-01T00:00:01.000001"),
        ("TIMESTAMP_LTZ(3)", 0, "1970-01-01T00:00:00Z"),
        ("INTERVAL YEAR", 14, "P1Y2M"),
        ("INTERVAL MONTH", 0, "P0D"),
        ("INTERVAL SECOND", 3_661_500, "PT1H1M1.5S"),
        ("ARRAY<BIGINT>", [1, None], "[1, null]"),
        ("MAP<STRING, DOUBLE>", [("k", 1.0)], "{k=1.0}"),
        ("MULTISET<STRING>", [("k", 2)], "{k=2}"),
        ("ROW<`a` INT, `b` TIMESTAMP(3)>", {"a": 1, "b": 60_000}, "+I[1, 1970-01-01T00:01]"),
    ],
)
def test_a_value_is_written_as_java_writes_it(kind: str, value: Any, text: str) -> None:
    sql = type_of(kind)
    assert external_texts(pa.array([value], sql.arrow), sql) == [text]
