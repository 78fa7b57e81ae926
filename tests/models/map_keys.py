"""Keys of map states: values of every type, and which of them Java finds equal."""

import math
import struct
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np

from flinkcore.common import Instant, Row, Types
from flinkcore.common.typeinfo import TypeInformation

NAN = math.nan
OTHER_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000123))[0]

_DOUBLES = [0.0, -0.0, 1, 1.0, np.float64(1), np.float64("nan"), NAN, OTHER_NAN, -1.5, math.inf]
_ZONE = timezone(timedelta(hours=2))

KEYS: dict[str, tuple[TypeInformation | None, list[Any]]] = {
    "none declared": (
        None,
        [
            *(0.0, -0.0, NAN, OTHER_NAN, 0, False, "0", None, b"", (), 1, 1.0, True, np.float64(1)),
            *((0.0,), (-0.0,), (NAN,), (OTHER_NAN,), [0.0], [-0.0], {"a": NAN}, {"a": OTHER_NAN}),
            *(Decimal("1.0"), Decimal("1.00"), Row(1.0), Row(1), Row(a=1.0), bytearray(b"x"), b"x"),
            *(
                np.array([1, 2]),
                np.array([1, 2]),
                np.datetime64("NaT", "s"),
                np.datetime64("NaT", "s"),
                np.int64(1),
            ),
            *(
                datetime(2026, 1, 1),
                datetime(2026, 1, 1, tzinfo=timezone.utc),
                datetime(2026, 1, 1, 2, tzinfo=_ZONE),
            ),
        ],
    ),
    "STRING": (Types.STRING(), ["", "a", np.str_("a"), "b"]),
    "BYTE": (Types.BYTE(), [0, 1, True, np.int8(1), -1]),
    "BOOLEAN": (Types.BOOLEAN(), [True, False]),
    "SHORT": (Types.SHORT(), [0, 1, np.int64(1)]),
    "INT": (Types.INT(), [0, 1, True, np.int64(1)]),
    "LONG": (Types.LONG(), [0, 1, True, np.int64(1), 2**62]),
    "FLOAT": (Types.FLOAT(), [*_DOUBLES, 0.1, np.float32(0.1)]),
    "DOUBLE": (Types.DOUBLE(), [*_DOUBLES, 0.1, np.float32(0.1), np.float32("nan")]),
    "CHAR": (Types.CHAR(), ["a", "b"]),
    "BIG_INT": (Types.BIG_INT(), [0, 1, 2**70, 2**70 + 1]),
    "BIG_DEC": (Types.BIG_DEC(), [Decimal(text) for text in ("1", "1.0", "1.00", "1.0", "0", "-0", "0.0")]),
    "INSTANT": (Types.INSTANT(), [Instant(0, 0), Instant(0, 1), Instant(0, 1)]),
    "SQL_DATE": (Types.SQL_DATE(), [date(2026, 1, 1), date(2026, 1, 2), datetime(2026, 1, 1, 5)]),
    "SQL_TIME": (Types.SQL_TIME(), [time(1), time(2), time(1)]),
    "SQL_TIMESTAMP": (Types.SQL_TIMESTAMP(), [datetime(2026, 1, 1), datetime(2026, 1, 2)]),
    "PICKLED": (
        Types.PICKLED_BYTE_ARRAY(),
        [0.0, -0.0, NAN, OTHER_NAN, [1], [1], datetime(2026, 1, 1, tzinfo=_ZONE)],
    ),
    "ROW": (
        Types.ROW([Types.DOUBLE(), Types.STRING()]),
        [Row(0.0, "a"), Row(-0.0, "a"), Row(0, "a"), (0.0, "a"), Row(NAN, "a"), Row(OTHER_NAN, "a")],
    ),
    "ROW_NAMED": (
        Types.ROW_NAMED(["x"], [Types.BIG_DEC()]),
        [Row(x=Decimal("1.0")), Row(x=Decimal("1.00")), Row(x=Decimal("1.0")), Row(Decimal("1.0"))],
    ),
    "TUPLE": (
        Types.TUPLE([Types.DOUBLE(), Types.LONG()]),
        [(0.0, 1), (-0.0, 1), (0, 1), (NAN, 2), (OTHER_NAN, 2), (0.0, True)],
    ),
    "PRIMITIVE_ARRAY": (Types.PRIMITIVE_ARRAY(Types.DOUBLE()), [[0.0], [-0.0], [NAN], [OTHER_NAN], [0], []]),
    "BYTES": (Types.PRIMITIVE_ARRAY(Types.BYTE()), [b"", b"a", b"a", bytearray(b"a")]),
    "BASIC_ARRAY": (Types.BASIC_ARRAY(Types.STRING()), [["a"], ["a"], ["b"], []]),
    "OBJECT_ARRAY": (
        Types.OBJECT_ARRAY(Types.TUPLE([Types.DOUBLE()])),
        [[(0.0,)], [(-0.0,)], [(NAN,)], [(OTHER_NAN,)]],
    ),
    "MAP": (Types.MAP(Types.STRING(), Types.DOUBLE()), [{"a": 0.0}, {"a": -0.0}, {"a": NAN}, {"a": 0}, {}]),
    "LIST": (Types.LIST(Types.DOUBLE()), [[0.0], [-0.0], [NAN], [OTHER_NAN], [0], (0.0,), []]),
}
"""By name of a type the type, and keys that a map of it takes; some are one key in Java."""


def java_key(key: Any, type_name: str = "none declared") -> Any:
    """Return what is equal for two keys where Java's objects of the type are equal."""
    if type_name == "FLOAT":
        return "Float", _bits(float(np.float32(key)))
    if type_name == "DOUBLE":
        return "Double", _bits(float(key))
    if type_name in ("BYTE", "SHORT", "INT", "LONG"):
        return "Long", int(key)
    if type_name == "SQL_DATE":
        return date(key.year, key.month, key.day)
    if type_name == "BYTES":
        return bytes(key)
    if type_name in ("ROW", "TUPLE"):
        return _bits(float(key[0])), key[1] if type_name == "ROW" else int(key[1])
    if type_name == "ROW_NAMED":
        return str(key[0])
    if type_name in ("PRIMITIVE_ARRAY", "LIST"):
        return tuple(_bits(float(number)) for number in key)
    if type_name == "MAP":
        return tuple((name, _bits(float(number))) for name, number in key.items())
    return _of_object(key)


def _bits(number: float) -> bytes:
    return b"NaN" if number != number else struct.pack("<d", number)


def _of_object(key: Any) -> Any:
    kind = type(key).__name__
    if isinstance(key, str):
        return "String", str(key)
    if isinstance(key, float):
        return "Double", _bits(key)
    if isinstance(key, bool):
        return "Boolean", key
    if isinstance(key, int | np.int64):
        return "Long", int(key)
    if isinstance(key, Decimal):
        return "BigDecimal", str(abs(key)) if key == 0 else str(key)
    if isinstance(key, Row | tuple | list):
        return "Row" if isinstance(key, Row) else kind, tuple(_of_object(part) for part in key)
    if isinstance(key, dict):
        return kind, tuple((_of_object(name), _of_object(value)) for name, value in key.items())
    if isinstance(key, np.ndarray):
        return kind, tuple(key.tolist())
    if isinstance(key, bytes | bytearray | np.datetime64):
        return kind, bytes(key)
    return kind, key


@dataclass
class MapModel:
    """The entries of a map by what is equal for equal keys; the key that came first stays."""

    type_name: str
    entries: dict[Any, tuple[Any, Any]] = field(default_factory=dict)

    def put(self, key: Any, value: Any) -> None:
        found = java_key(key, self.type_name)
        first, _ = self.entries.get(found, (key, None))
        self.entries[found] = first, value

    def get(self, key: Any) -> Any:
        return self.entries.get(java_key(key, self.type_name), (None, None))[1]

    def contains(self, key: Any) -> bool:
        return java_key(key, self.type_name) in self.entries

    def remove(self, key: Any) -> None:
        self.entries.pop(java_key(key, self.type_name), None)

    def items(self) -> list[str]:
        return [repr(entry) for entry in self.entries.values()]
