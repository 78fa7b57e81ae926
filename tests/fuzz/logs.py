"""Random logs: keys of every accepted type and layout, awkward values and times, splits of all sizes."""

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import strategies as st

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

Pool = tuple[pa.DataType, Sequence[Any]]


def integers(bits: int, signed: bool) -> Pool:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    kind = getattr(pa, f"{'int' if signed else 'uint'}{bits}")()
    return kind, [0, 1, low, high, high // 2 + 1]


TEXTS = ["", "a", "ä", "b" * 40, "user-5"]
BYTES = [text.encode() for text in TEXTS]
OTHER_NAN = struct.unpack("<d", bytes.fromhex("010000000000f8ff"))[0]
"""A NaN of other bits than `math.nan`."""

FLOATS = [0.0, 1.5, -math.inf, -0.0, math.nan, OTHER_NAN]
TICKS = [0, 1, -1, 86_399, 1_700_000_000]
MICROS = [0, 1_000, -1_000, 1_700_000_000_123_456_000]
NANOS = [1, 999, -1, 1_000, 1_700_000_000_123_456_789]
"""Most have digits below a microsecond, which functions cannot be given, but windows over columns can."""

OF_DAY = [0, 1, 3_599]

KEY_POOLS: dict[str, Pool] = {
    "int64": integers(64, True),
    "string": (pa.string(), TEXTS),
    **{f"int{bits}": integers(bits, True) for bits in (8, 16, 32)},
    **{f"uint{bits}": integers(bits, False) for bits in (8, 16, 32, 64)},
    "float32": (pa.float32(), FLOATS),
    "float64": (pa.float64(), FLOATS),
    "bool": (pa.bool_(), [False, True]),
    "large_string": (pa.large_string(), TEXTS),
    "string_view": (pa.string_view(), TEXTS),
    "binary": (pa.binary(), BYTES),
    "large_binary": (pa.large_binary(), BYTES),
    "binary_view": (pa.binary_view(), BYTES),
    "fixed_size_binary": (pa.binary(2), [b"ab", b"\x00\x00", b"ac"]),
    "date32": (pa.date32(), [date(1970, 1, 1), date(1969, 12, 31), date(2024, 2, 29)]),
    "date64": (pa.date64(), [date(1970, 1, 1), date(1969, 12, 31), date(2024, 2, 29)]),
    "time32[s]": (pa.time32("s"), OF_DAY),
    "time32[ms]": (pa.time32("ms"), OF_DAY),
    "time64[us]": (pa.time64("us"), [time(0), time(23, 59, 59, 999_999), time(1)]),
    "time64[ns]": (pa.time64("ns"), [0, 1_000, 3_599_000]),
    "timestamp[s]": (pa.timestamp("s"), TICKS),
    "timestamp[ms]": (pa.timestamp("ms"), TICKS),
    "timestamp[us]": (pa.timestamp("us"), TICKS),
    "timestamp[ns]": (pa.timestamp("ns"), MICROS),
    "timestamp[s, zone]": (pa.timestamp("s", "Europe/Berlin"), TICKS),
    "timestamp[us, zone]": (pa.timestamp("us", "UTC"), TICKS),
    "timestamp[ns, zone]": (pa.timestamp("ns", "America/New_York"), MICROS),
    "duration[s]": (pa.duration("s"), TICKS),
    "duration[ms]": (pa.duration("ms"), TICKS),
    "duration[us]": (pa.duration("us"), TICKS),
    "duration[ns]": (pa.duration("ns"), MICROS),
    "fine timestamp[ns]": (pa.timestamp("ns"), NANOS),
    "fine timestamp[ns, zone]": (pa.timestamp("ns", "Europe/Berlin"), NANOS),
    "fine duration[ns]": (pa.duration("ns"), NANOS),
    "fine time64[ns]": (pa.time64("ns"), [1, 999, 86_399_999_999_999, 1_000]),
    "decimal128": (
        pa.decimal128(12, 2),
        [Decimal("0.00"), Decimal("1.50"), Decimal("-1.50"), Decimal("1e9")],
    ),
    "decimal256": (pa.decimal256(50, 3), [Decimal("0.000"), Decimal("1.500"), Decimal(10**45)]),
    "struct": (
        pa.struct({"a": pa.int64(), "b": pa.string()}),
        [{"a": 1, "b": "x"}, {"a": 1, "b": None}, {"a": None, "b": "x"}],
    ),
}

VALUE_POOLS: dict[str, Pool] = {
    "int64": (pa.int64(), [None, 0, 1, -7, 2**53 + 1, INT64_MAX, INT64_MIN]),
    "int16": (pa.int16(), [None, 0, 1, -7, 32_767]),
    "float64": (pa.float64(), [None, 0.0, 1.5, -0.0, math.nan, math.inf, -math.inf, 1e300, 0.1]),
    "float32": (pa.float32(), [None, 0.0, 1.5, -0.0, math.nan, math.inf, 0.1]),
    "string": (pa.string(), [None, *TEXTS, "x" * 5000]),
    "decimal128": (pa.decimal128(12, 2), [None, Decimal("0.00"), Decimal("1.50"), Decimal("-99.99")]),
    "wide decimal128": (
        pa.decimal128(38, 2),
        [None, Decimal("0.01"), Decimal("9" * 33 + ".99"), Decimal("-" + "9" * 33 + ".99")],
    ),
    "bool": (pa.bool_(), [None, True, False]),
    "timestamp[ms]": (pa.timestamp("ms"), [None, *TICKS]),
    "nested": (
        pa.list_(pa.struct({"a": pa.int64(), "b": pa.string()})),
        [None, [], [{"a": 1, "b": "x"}, None], [{"a": None, "b": "ä" * 40}]],
    ),
}

SPLIT_POOLS: dict[str, Pool] = {
    "int64": (pa.int64(), [0, -1, 2**40]),
    "string": (pa.string(), ["p-0", "", "ä"]),
    "int8": (pa.int8(), [3, -3, 0]),
    "uint64": (pa.uint64(), [2**63 + 5, 0, 2**64 - 1]),
    "uint16": (pa.uint16(), [65_535, 7, 256]),
    "binary": (pa.binary(), [b"\x00", b"", b"\xff"]),
    "date32": (pa.date32(), [date(1970, 1, 1), date(1969, 12, 31), date(2024, 2, 29)]),
    "bool": (pa.bool_(), [True, False]),
}

BASES = {
    "zero": 0,
    "negative": -1_000_003,
    "now": 1_700_000_000_000,
    "first": INT64_MIN + 60,
    "last": INT64_MAX - 400,
}
"""Where event time begins; arrivals do so at 4, but at the ends of time, too."""


@dataclass(frozen=True)
class KeyColumn:
    """A key column: its type, by name, and how its Arrow arrays lie in memory."""

    kind: str
    layout: str = "plain"
    nullable: bool = False

    @property
    def pool(self) -> list[Any]:
        values = list(KEY_POOLS[self.kind][1])
        return [*values, None] if self.nullable else values

    @property
    def type(self) -> pa.DataType:
        """As results have it."""
        return KEY_POOLS[self.kind][0]


class Event(NamedTuple):
    """An event by numbers: of its keys and its value in their pools, and of ms."""

    keys: tuple[int, ...]
    stride: int
    delay: int | None
    split: int
    value: int
    actions: str
    back: int = 0


@dataclass(frozen=True)
class Log:
    """A log that can be printed, built as a table, and cut.

    Attributes
    ----------
    keys
        Key columns.
    events
        In the order of the total order, but that arrivals of a split may go back.
    value
        Type of the column `value`, by name.
    split
        Type of the split column, by name; None: one split.
    base
        Where event time begins, by name.
    has_arrivals
        Whether there is an arrival column.
    on_bad_row
        What becomes of null timestamps.
    chunk_rows
        Rows of the chunks of the table; each column is cut elsewhere.
    """

    keys: tuple[KeyColumn, ...]
    events: tuple[Event, ...]
    value: str = "int64"
    split: str | None = "int64"
    base: str = "zero"
    has_arrivals: bool = True
    on_bad_row: str = "drop"
    chunk_rows: int = 100

    @property
    def key_names(self) -> list[str]:
        return [f"k{number}" for number in range(len(self.keys))]

    def rows(self) -> list[dict[str, Any]]:
        """The events as dictionaries, in order of arrival."""
        base = BASES[self.base]
        clock, rows = 4, []
        for number, event in enumerate(self.events):
            clock += event.stride
            delay = event.delay
            timestamp = None if delay is None else max(INT64_MIN, min(INT64_MAX, base + clock - delay))
            row: dict[str, Any] = {
                "number": number,
                "value": pick(VALUE_POOLS[self.value][1], event.value),
                "ts": timestamp,
                "at": clock - event.back,
                "split": None if self.split is None else pick(SPLIT_POOLS[self.split][1], event.split),
                "actions": event.actions,
            }
            keys = zip(self.key_names, self.keys, event.keys, strict=True)
            rows.append({name: pick(key.pool, index) for name, key, index in keys} | row)
        return rows

    @property
    def schema(self) -> pa.Schema:
        """Columns, without layouts."""
        return pa.schema(
            [
                *((name, key.type) for name, key in zip(self.key_names, self.keys, strict=True)),
                ("number", pa.int64()),
                ("value", VALUE_POOLS[self.value][0]),
                ("ts", pa.int64()),
                ("at", pa.int64()),
                ("split", pa.int64() if self.split is None else SPLIT_POOLS[self.split][0]),
                ("actions", pa.string()),
            ]
        )

    def table(self, rows_taken: Iterable[int]) -> pa.Table:
        """Build some of the events as a table."""
        all_rows = self.rows()
        rows = [all_rows[row] for row in rows_taken]
        layouts = dict(zip(self.key_names, (key.layout for key in self.keys), strict=True))
        columns = []
        for number, field in enumerate(self.schema):
            array = pa.array([row[field.name] for row in rows], field.type)
            layout = layouts.get(field.name, "plain")
            cuts = range(self.chunk_rows - number % self.chunk_rows, len(rows), self.chunk_rows)
            if layout == "dictionaries":  # one of each chunk
                chunks = [in_layout(chunk, layout) for chunk in cut_at(array, cuts)]
            else:
                chunks = cut_at(in_layout(array, layout), cuts)
            columns.append(pa.chunked_array(chunks))
        return pa.table(columns, names=self.schema.names)


def pick(pool: Sequence[Any], index: int) -> Any:
    return pool[index % len(pool)]


def in_layout(array: pa.Array, layout: str) -> pa.Array:
    """The same values, lying otherwise in memory."""
    if layout in ("dictionary", "dictionaries") and pa.types.is_struct(array.type):
        fields = [in_layout(array.field(at), layout) for at in range(array.type.num_fields)]
        return pa.StructArray.from_arrays(fields, array.type.names, mask=array.is_null())
    if layout == "dictionary":
        return array.dictionary_encode()
    if layout == "dictionaries":
        return array.dictionary_encode("encode")  # of which Arrow makes no common one where there are nulls
    if layout == "sliced":
        around = pa.concat_arrays([array[:1], array, array[:1]])
        return around[min(1, len(array)) :][: len(array)]
    return array


def cut_at(array: pa.Array, cuts: Iterable[int]) -> list[pa.Array]:
    bounds = [0, *cuts, len(array)]
    return [array[start:stop] for start, stop in pairwise(bounds)]


def exact(column: pa.ChunkedArray) -> list[Any]:
    """The values; those with nanoseconds, which Python's types cannot hold, as integers."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if getattr(kind, "unit", None) == "ns":
        column = column.cast(pa.int64())
    return column.to_pylist()  # type: ignore[no-any-return]


STRIDES = [0, 0, 0, 1, 1, 2, 5, 30, 120]
DELAYS = [0, 0, 0, 1, 4, 20, 55, -3]
BACKS = [0] * 12 + [1, 7]

verbs = st.one_of(
    st.builds("event:{}".format, st.sampled_from([0, 1, 3, 9, 10, 40, -30])),
    st.builds("processing:{}".format, st.sampled_from([0, 0, 1, 2, 10, 60, -5, 300])),
    st.builds("delete:{}".format, st.integers(0, 3)),
    st.builds("forget:{}".format, st.sampled_from([1, 2, 10, 60])),
    st.builds("{}:{}".format, st.sampled_from(["list", "map", "unmap", "reduce", "ttl"]), st.integers(0, 3)),
    st.just("clear:0"),
)
scripts = st.lists(verbs, max_size=3).map(" ".join)

layouts = st.sampled_from(["plain", "plain", "dictionary", "dictionaries", "sliced"])
AWKWARD = [
    "float64",
    "float32",
    "timestamp[ns]",
    "timestamp[ns, zone]",
    "duration[ns]",
    "time64[ns]",
    "fine timestamp[ns]",
    "struct",
]
kinds = st.one_of(
    st.sampled_from(["int64", "string"]), st.sampled_from(AWKWARD), st.sampled_from(list(KEY_POOLS))
)
key_columns = st.builds(KeyColumn, kinds, layouts, st.booleans()).filter(
    lambda key: key.layout not in ("dictionary", "dictionaries") or key.kind in DICTIONARIES
)
DICTIONARIES = {"int64", "string", "large_string", "binary", "int32", "date32", "timestamp[us]", "struct"}
"""Kinds of which a dictionary is drawn; of a struct, its fields are dictionaries."""


@st.composite
def logs(
    draw: st.DrawFn,
    keys: tuple[KeyColumn, ...],
    used: list[tuple[int, ...]],
    value: str | None = None,
    most: int = 30,
) -> Log:
    """A log with some keys, by their numbers in the pools of the columns."""
    has_nulls = draw(st.sampled_from([False] * 5 + [True]))
    delays = [*DELAYS, None] if has_nulls else DELAYS
    goes_back = draw(st.sampled_from([False] * 4 + [True]))
    events = st.builds(
        Event,
        st.sampled_from(used),
        st.sampled_from(STRIDES),
        st.sampled_from(delays),
        st.integers(0, 2),
        st.integers(0, 8),
        scripts,
        st.sampled_from(BACKS if goes_back else [0]),
    )
    count = draw(st.integers(0, most))  # spreads evenly, where a list alone is short mostly
    return Log(
        keys,
        tuple(draw(st.lists(events, min_size=count, max_size=count))),
        draw(st.sampled_from(list(VALUE_POOLS))) if value is None else value,
        draw(st.sampled_from([None, "int64", "int64", "string", *SPLIT_POOLS])),
        draw(st.sampled_from(["zero"] * 4 + list(BASES))),
        draw(st.sampled_from([True] * 5 + [False])),
        draw(st.sampled_from(["drop", "drop", "bad", "fail"])),
        draw(st.sampled_from([100, 100, 1, 2, 5])),
    )


def used_keys(keys: tuple[KeyColumn, ...]) -> st.SearchStrategy[list[tuple[int, ...]]]:
    """The few keys that all logs of a job have."""
    return st.lists(st.tuples(*(st.integers(0, len(key.pool) - 1) for key in keys)), min_size=1, max_size=4)
