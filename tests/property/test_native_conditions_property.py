"""Native steps of conditions against the same expressions over columns: wrapping integers, doubles, nulls."""

from typing import Any

import numpy as np
import pyarrow as pa
from equipment.example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore._internal.arrow.expressions import RowFailure
from flinkcore._native.pattern_matching import PatternMatcher
from flinkcore._native.timers import TimerHeap
from flinkcore.datastream.graph.row_patterns import NativeStep, RowOf
from flinkcore.sql.expressions import functions as _functions  # noqa: F401  enters them in the table
from flinkcore.sql.expressions.evaluation import Evaluation
from flinkcore.sql.nodes.native_conditions import native_steps
from flinkcore.sql.plan.rex import InputRef, Literal, Rex, RexCall
from flinkcore.sql.types.logical_types import LogicalType, Root
from flinkcore.time_plane.timeline import Timeline

INT, BIGINT, TINYINT, DOUBLE, BOOLEAN = map(
    LogicalType, (Root.INT, Root.BIGINT, Root.TINYINT, Root.DOUBLE, Root.BOOLEAN)
)
COLUMNS = {"i": INT, "b": BIGINT, "t": TINYINT, "x": DOUBLE}
LEAVES: list[tuple[InputRef, RowOf, str]] = []
for variable in "AB":
    for name, kind in COLUMNS.items():
        LEAVES.append((InputRef(len(LEAVES), kind), RowOf(variable, False), name))
INTEGER_TYPES = (INT, BIGINT, TINYINT)

leaves = st.sampled_from([leaf for leaf, _, _ in LEAVES])
wholes = st.sampled_from([leaf for leaf, _, _ in LEAVES if leaf.type is not DOUBLE])
constants = st.integers(-3, 3).map(lambda value: Literal(value, INT)) | st.sampled_from(
    [Literal(0.5, DOUBLE), Literal(None, BIGINT), Literal(2**31 - 1, INT)]
)


def _computed(operands: st.SearchStrategy[Rex]) -> st.SearchStrategy[Rex]:
    def call(name: str, left: Rex, right: Rex) -> Rex:
        kinds = {left.type.root, right.type.root}
        if Root.DOUBLE in kinds:
            return RexCall("+" if name == "MOD" else name, (left, right), DOUBLE)
        widest = max((left.type, right.type), key=lambda kind: (TINYINT, INT, BIGINT).index(kind))
        return RexCall(name, (left, right), widest)

    return st.builds(call, st.sampled_from(["+", "-", "*", "/", "MOD"]), operands, operands)


def _cast(operands: st.SearchStrategy[Rex]) -> st.SearchStrategy[Rex]:
    return st.builds(
        lambda operand, kind: RexCall("CAST", (operand,), kind) if operand.type is not DOUBLE else operand,
        operands,
        st.sampled_from([*INTEGER_TYPES, DOUBLE]),
    )


values = st.recursive(leaves | constants, lambda inner: _computed(inner) | _cast(inner), max_leaves=5)
comparisons = st.builds(
    lambda name, left, right: RexCall(name, (left, right), BOOLEAN),
    st.sampled_from(["<", "<=", "=", "<>", ">", ">="]),
    values,
    values,
) | st.builds(
    lambda name, value: RexCall(name, (value,), BOOLEAN), st.sampled_from(["IS NULL", "IS NOT NULL"]), values
)
conditions = st.recursive(
    comparisons,
    lambda inner: (
        st.builds(
            lambda name, operands: RexCall(name, tuple(operands), BOOLEAN),
            st.sampled_from(["AND", "OR"]),
            st.lists(inner, min_size=2, max_size=3),
        )
        | inner.map(lambda operand: RexCall("NOT", (operand,), BOOLEAN))
    ),
    max_leaves=4,
)
rows = st.tuples(
    st.none() | st.sampled_from([-(2**31), -1, 0, 1, 7, 2**31 - 1]),
    st.none() | st.sampled_from([-(2**63), -1, 0, 3, 2**63 - 1]),
    st.none() | st.integers(-128, 127),
    st.none() | st.sampled_from([-0.0, 0.0, 1.5, float("nan"), float("inf"), -2.0]),
)


def found_natively(steps: tuple[NativeStep, ...], pair: list[tuple[Any, ...]]) -> bool | None:
    """Return whether the second row follows the first one in a match, or None if that is asked for."""
    columns = list(COLUMNS)
    program = [
        (
            step.op,
            -1 if step.row is None else "AB".index(step.row.variable),
            False,
            -1 if step.column is None else columns.index(step.column),
            step.bits,
            step.value,
        )
        for step in steps
    ]
    timeline = Timeline.of(np.array([2**63 - 1]), np.array([2**63 - 1]))
    matcher = PatternMatcher(
        TimerHeap(1, (0, 0)),
        timeline.steps,
        steps_done=0,
        states=[[(1, 0, [(0, True)])], [(2, 1, [(1, True)])], []],
        n_variables=2,
        skip="past last row",
        skip_variable=-1,
        within_ms=0,
        known=0,
        always=1,
        readers=[([], []), ([], []), ([], [])],
        programs=[[], program],
        n_columns=4,
    )
    words = np.zeros((2, 4), np.int64)
    nulls = np.zeros(2, np.uint64)
    for row, each in enumerate(pair):
        for number, value in enumerate(each):
            if value is None:
                nulls[row] |= np.uint64(1 << number)
            else:
                words[row, number] = (
                    np.array([value]).view(np.int64)[0] if isinstance(value, float) else value
                )
    numbers = np.arange(2)
    matcher.begin(
        np.zeros(2, np.uint32),
        np.zeros(2, np.int32),
        numbers,
        numbers,
        np.zeros(2, np.int64),
        np.zeros(2, np.uint64),
        words,
        nulls,
    )
    if matcher.run():
        return None
    return matcher.n_emitted == 1


@settings(deadline=None, max_examples=examples(500))
@given(condition=conditions, pair=st.lists(rows, min_size=2, max_size=2))
def test_a_native_condition_is_that_over_columns(condition: RexCall, pair: list[tuple[Any, ...]]) -> None:
    steps = native_steps(
        condition, {leaf.index: NativeStep("look", row, column) for leaf, row, column in LEAVES}
    )
    if steps is None:
        return
    kinds = [kind.arrow for kind in COLUMNS.values()]
    arrays = [pa.array([value], kind) for each in pair for value, kind in zip(each, kinds, strict=True)]
    found = found_natively(steps, pair)
    try:
        expected = Evaluation(arrays, 1)(condition)[0].as_py() is True
    except RowFailure:
        assert found is None
        return
    assert found in (expected, None)
    if found is None:
        assert any(step.op in ("/", "%") for step in steps)
