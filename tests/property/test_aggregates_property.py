"""The native accumulators against a model that keeps all rows: random batches, merges, entries used again."""

import math
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from equipment.example_counts import examples
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from models.aggregates import SPREADS, AggregatesModel, Spec, is_spread

from flinkcore._native.aggregates import Accumulators

# Floats, and integers for means, whose sums are exact as floats, so that merged sums do not depend on the order; text
# short and long.
VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "i64": (pa.int64(), st.sampled_from([0, 1, -1, 7, 2**63 - 1, -(2**63)])),
    "i53": (pa.int64(), st.integers(-(2**40), 2**40)),
    "u53": (pa.uint64(), st.integers(0, 2**40)),
    "i8": (pa.int8(), st.integers(-128, 127)),
    "u64": (pa.uint64(), st.sampled_from([0, 1, 2**63 - 1, 2**63, 2**64 - 1])),
    "u16": (pa.uint16(), st.integers(0, 2**16 - 1)),
    "f64": (pa.float64(), st.sampled_from([0.0, -0.0, 1.5, -2.25, math.nan, math.inf, -math.inf])),
    "f32": (pa.float32(), st.sampled_from([0.0, -0.0, 0.5, -0.75, math.nan])),
    "flag": (pa.bool_(), st.booleans()),
    "day": (pa.date32(), st.dates()),
    "text": (pa.string(), st.sampled_from(["", "a", "ab", "b" * 90, "é", "\U0001f600", "\uffee"])),
    "blob": (pa.large_binary(), st.binary(max_size=3)),
    "fixed": (pa.binary(3), st.binary(min_size=3, max_size=3)),
    "money": (
        pa.decimal128(38, 2),
        st.sampled_from(
            [Decimal(n) for n in ("0.00", "0.01", "-0.01", "9" * 30 + ".00", "-" + "9" * 30 + ".00")]
        ),
    ),
    "items": (
        pa.list_(pa.struct([("n", pa.int8()), ("of", pa.string())])),
        st.lists(
            st.none()
            | st.fixed_dictionaries(
                {"n": st.none() | st.integers(-9, 9), "of": st.none() | st.text(max_size=2)}
            ),
            max_size=3,
        ),
    ),
    "price": (pa.decimal128(7, 3), st.decimals(-9999, 9999, places=3)),
    "share": (pa.decimal128(37, 37), st.sampled_from([Decimal(f"{n}E-37") for n in (-(10**30), 0, 1, 7)])),
}
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in VALUES.items()])
DECIMALS = ("money", "price", "share")
SUMS = ("i64", "i8", "u64", "u16", "f64", "f32", "flag", *DECIMALS)
MEANS = ("i53", "i8", "u53", "u16", "f64", "f32", "flag", *DECIMALS)
SPECS: list[Spec] = [
    ("count", None, None),
    *[("sum", c, None) for c in SUMS],
    *[("mean", c, None) for c in MEANS],
    *[(f, c, None) for c in ("i64", "i8", "u64", "u16", "flag") for f in ("bit_or", "bit_and")],
    *[(f, c, None) for c in ("i53", "u53", "f64", "f32", "flag", "money", "price", "share") for f in SPREADS],
    *[("approx_percentile", c, None, p) for c in MEANS for p in (0, 0.07, 0.5, 1)],
    *[
        (f, c, None)
        for c in VALUES
        for f in (
            "count",
            "min",
            "max",
            "first",
            "last",
            "count_distinct",
            "approx_count_distinct",
            "collect",
        )
        if c != "items" or f in ("count", "first", "last", "collect")
    ],
    *[
        (f, column, by)
        for f in ("min_by", "max_by")
        for column, by in [
            ("i64", "f64"),
            ("text", "i64"),
            ("text", "text"),
            ("flag", "money"),
            ("blob", "u64"),
            ("money", "day"),
            ("price", "money"),
            ("items", "text"),
            ("f32", "blob"),
            ("fixed", "f32"),
        ]
    ],
]


def is_near(found: float | None, expected: float | None) -> bool:
    """Whether it is the number but for the last bit, which a decimal may lose on its way to a float."""
    if found is None or expected is None:
        return found is expected
    return math.isclose(found, expected, rel_tol=2**-51)


def comparable(value: Any) -> Any:
    if isinstance(value, list):
        return [comparable(element) for element in value]
    if isinstance(value, dict):  # whose order Hypothesis changes
        return {name: comparable(element) for name, element in value.items()}
    return repr(value)  # tells -0.0 from 0.0 and True from 1; one NaN


@st.composite
def rows(draw: st.DrawFn) -> dict[str, Any]:
    return {name: draw(st.none() | values) for name, (_, values) in VALUES.items()}


class AggregatesMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.native = Accumulators(SCHEMA, SPECS)
        self.model = AggregatesModel(SPECS, SCHEMA)
        self.expected: list[list[Any]] = []
        self.reserve(3)

    @rule(more=st.integers(1, 5))
    def reserve(self, more: int) -> None:
        self.native.reserve(len(self.native) + more)
        self.model.reserve(len(self.native))

    @rule(drawn=st.lists(rows(), min_size=1, max_size=12), filled=st.booleans(), data=st.data())
    def update(self, drawn: list[dict[str, Any]], filled: bool, data: st.DataObject) -> None:
        if filled:  # a batch without nulls takes other paths
            drawn = [row for row in drawn if None not in row.values()]
        start = data.draw(st.integers(0, len(drawn)))
        batch = pa.RecordBatch.from_pylist(drawn, schema=SCHEMA).slice(start)
        numbers = range(batch.num_rows)
        taken = data.draw(
            st.none() | st.lists(st.sampled_from(numbers), max_size=15) if numbers else st.none()
        )
        entries = [
            data.draw(st.integers(0, len(self.native) - 1)) for _ in (numbers if taken is None else taken)
        ]
        for entry, number in zip(entries, numbers if taken is None else taken, strict=True):
            self.model.update(entry, drawn[start + number])
        self.native.update(
            batch,
            np.array(entries, dtype=np.uint32),
            None if taken is None else np.array(taken, dtype=np.uint32),
        )

    @rule(data=st.data())
    def merge(self, data: st.DataObject) -> None:
        into, other = data.draw(st.permutations(range(len(self.native))))[:2]
        self.native.merge(into, other)
        self.model.merge(into, other)

    @rule(data=st.data())
    def clear(self, data: st.DataObject) -> None:
        entries = data.draw(st.lists(st.integers(0, len(self.native) - 1), max_size=3))
        self.native.clear(np.array(entries, dtype=np.uint32))
        for entry in entries:
            self.model.clear(entry)

    @rule(data=st.data())
    def clear_range(self, data: st.DataObject) -> None:
        first = data.draw(st.integers(0, len(self.native)))
        n = data.draw(st.integers(0, len(self.native) - first))
        self.native.clear_range(first, n)
        for entry in range(first, first + n):
            self.model.clear(entry)

    @rule(data=st.data())
    def emit(self, data: st.DataObject) -> None:
        entries = data.draw(st.lists(st.integers(0, len(self.native) - 1), max_size=8))
        self.native.emit(np.array(entries, dtype=np.uint32))
        self.expected += [self.model.results(entry) for entry in entries]

    @rule(data=st.data())
    def emit_range(self, data: st.DataObject) -> None:
        first = data.draw(st.integers(0, len(self.native)))
        n = data.draw(st.integers(0, len(self.native) - first))
        self.native.emit_range(first, n)
        self.expected += [self.model.results(entry) for entry in range(first, first + n)]

    @rule()
    def take(self) -> None:
        columns = [pa.array(column) for column in self.native.take()]
        for spec, at, column in zip(SPECS, range(len(SPECS)), columns, strict=True):
            column.validate(full=True)
            expected = [results[at] for results in self.expected]
            if spec[0] in SPREADS:
                assert all(map(partial(is_spread, spec[0]), column.to_pylist(), expected)), spec
            elif spec[0] == "approx_percentile" and spec[1] in DECIMALS:
                assert all(map(is_near, column.to_pylist(), expected)), spec
            else:
                assert comparable(column.to_pylist()) == comparable(expected), spec
        self.expected = []

    @invariant()
    def is_sound(self) -> None:
        self.native._check()

    def teardown(self) -> None:
        self.emit_all()
        self.take()

    def emit_all(self) -> None:
        self.native.emit_range(0, len(self.native))
        self.expected += [self.model.results(entry) for entry in range(len(self.native))]


TestAggregates = AggregatesMachine.TestCase
TestAggregates.settings = settings(deadline=None, max_examples=examples(30), stateful_step_count=25)
