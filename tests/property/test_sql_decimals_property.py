"""Decimals of SQL: digits that fit into 64 bits are computed as those that do not, and as Java's BigDecimal."""

from decimal import ROUND_HALF_UP, Context, Decimal

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from flinkcore.sql.expressions.decimals import combined, fit
from flinkcore.sql.expressions.evaluation import Evaluation
from flinkcore.sql.expressions.functions import FUNCTIONS
from flinkcore.sql.plan.rex import InputRef, Rex, RexCall
from flinkcore.sql.types.logical_types import LogicalType, Root

EXACT = Context(prec=400)


def decimals(digits: int, scale: int) -> st.SearchStrategy[Decimal | None]:
    whole = st.integers(-(10**digits) + 1, 10**digits - 1)
    small = st.integers(-9, 9)
    return st.none() | st.one_of(whole, small).map(lambda number: Decimal(number).scaleb(-scale, EXACT))


@st.composite
def columns(draw: st.DrawFn) -> tuple[pa.Array, list[Decimal | None]]:
    digits = draw(st.integers(1, 38))
    scale = draw(st.integers(0, digits))
    values = draw(st.lists(decimals(digits, scale), min_size=3, max_size=3))
    padded = pa.array([None, *values], pa.decimal128(digits, scale))
    return padded.slice(1), values


def fitted(value: Decimal | None, precision: int, scale: int) -> Decimal | None:
    if value is None:
        return None
    rounded = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, EXACT)
    return rounded if abs(rounded) < Decimal(10) ** (precision - scale) else None


@given(
    columns(),
    columns(),
    st.sampled_from(["add", "subtract", "multiply"]),
    st.integers(1, 38),
    st.integers(0, 38),
)
def test_sums_and_products_are_those_of_exact_numbers(
    left: tuple[pa.Array, list[Decimal | None]],
    right: tuple[pa.Array, list[Decimal | None]],
    kernel: str,
    precision: int,
    scale: int,
) -> None:
    scales = left[0].type.scale, right[0].type.scale
    natural = sum(scales) if kernel == "multiply" else max(scales)
    scale = min(natural if scale % 2 else scale, precision)
    kind = LogicalType(Root.DECIMAL, precision=precision, scale=scale)
    operation = getattr(EXACT, kernel)
    wanted = [
        None if one is None or other is None else fitted(operation(one, other), precision, scale)
        for one, other in zip(left[1], right[1], strict=True)
    ]
    assert combined(kernel, left[0], right[0], kind).to_pylist() == wanted
    of_one = combined(kernel, left[0], right[0][:1], kind).to_pylist()
    assert of_one == combined(kernel, left[0], pa.repeat(right[0][0], 3), kind).to_pylist()


@given(columns(), st.integers(1, 38), st.integers(0, 38))
def test_another_precision_rounds_half_up_and_is_null_beyond_it(
    column: tuple[pa.Array, list[Decimal | None]], precision: int, scale: int
) -> None:
    kind = LogicalType(Root.DECIMAL, precision=precision, scale=min(scale, precision))
    assert fit(column[0], kind).to_pylist() == [fitted(value, precision, kind.scale) for value in column[1]]


@given(columns(), columns())
def test_decimals_of_several_scales_are_compared_by_value(
    left: tuple[pa.Array, list[Decimal | None]], right: tuple[pa.Array, list[Decimal | None]]
) -> None:
    refs: list[Rex] = []
    for number, (array, _) in enumerate((left, right)):
        kind = LogicalType(Root.DECIMAL, precision=array.type.precision, scale=array.type.scale)
        refs.append(InputRef(number, kind))
    evaluation = Evaluation([left[0], right[0]], 3)
    less = RexCall("<", tuple(refs), LogicalType(Root.BOOLEAN))
    wanted = [None if a is None or b is None else a < b for a, b in zip(left[1], right[1], strict=True)]
    assert FUNCTIONS["<"].evaluate(evaluation, less).to_pylist() == wanted
