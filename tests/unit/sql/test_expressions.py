"""Expressions of SQL over Arrow columns: what Flink's generated code returns, and what it leaves out."""

import pickle
import random
import re
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from flinkcore._internal.arrow.column_ops import Filter, Select, WithColumns, apply_ops
from flinkcore._internal.arrow.expressions import RowFailure
from flinkcore.sql.expressions import sql_expression
from flinkcore.sql.expressions.evaluation import Evaluation
from flinkcore.sql.expressions.functions import FUNCTIONS, refusal_of
from flinkcore.sql.expressions.sql_expression import SqlExpression
from flinkcore.sql.plan.rex import InputRef, Literal, Rex, RexCall, UserCall
from flinkcore.sql.types.logical_types import LogicalType, type_of


def ref(number: int, kind: str) -> InputRef:
    return InputRef(number, type_of(kind))


def constant(value: Any, kind: str) -> Literal:
    return Literal(value, type_of(kind))


def call(name: str, kind: str, *operands: Rex) -> RexCall:
    return RexCall(name, operands, type_of(kind))


def values(rex: Rex, *columns: pa.Array, zone: str = "UTC") -> list[Any]:
    names = tuple(f"c{number}" for number in range(len(columns)))
    batch = pa.RecordBatch.from_arrays(list(columns), names=list(names))
    expression = pickle.loads(pickle.dumps(SqlExpression(rex, names, zone)))
    found = expression.evaluate(batch)
    assert found.type == rex.type.arrow
    none = expression.evaluate(batch.slice(0, 0))
    assert (len(none), none.type) == (0, found.type)
    return list(found.to_pylist())


INTS = pa.array([7, -7, None, 2**31 - 1], pa.int32())


def test_integers_wrap_in_their_type() -> None:
    assert values(call("+", "INT", ref(0, "INT"), constant(1, "INT")), INTS) == [8, -6, None, -(2**31)]
    small = pa.array([100, -128], pa.int8())
    assert values(call("*", "TINYINT", ref(0, "TINYINT"), ref(0, "TINYINT")), small) == [16, 0]


def test_division_of_integers_is_toward_zero() -> None:
    assert values(call("/", "INT", ref(0, "INT"), constant(2, "INT")), INTS) == [3, -3, None, 2**30 - 1]
    assert values(call("MOD", "INT", ref(0, "INT"), constant(4, "INT")), INTS) == [3, -3, None, 3]


@pytest.mark.parametrize("divisor", [1, -1, 3, -3, 2**63 - 1, -(2**63)])
def test_the_remainder_of_a_constant_has_the_sign_of_the_dividend(divisor: int) -> None:
    dividends = [0, 1, -1, 5, -5, 6, -6, 2**63 - 1, -(2**63), None]
    found = values(
        call("MOD", "BIGINT", ref(0, "BIGINT"), constant(divisor, "BIGINT")), pa.array(dividends, pa.int64())
    )
    assert found == [
        None if each is None else abs(each) % abs(divisor) * (-1 if each < 0 else 1) for each in dividends
    ]


def test_a_case_of_quick_operands_takes_the_first_true_condition_and_no_null() -> None:
    less = call("<", "BOOLEAN", ref(0, "INT"), constant(0, "INT"))
    more = call(">", "BOOLEAN", ref(0, "INT"), constant(-10, "INT"))
    texts = [constant(text, "STRING") for text in ("less", "more", "other")]
    case = call("CASE", "STRING", less, texts[0], more, texts[1], texts[2])
    assert values(case, INTS) == ["more", "less", "other", "more"]
    number = call("CASE", "BIGINT", less, constant(None, "INT"), ref(0, "INT"))
    assert values(number, INTS) == [7, None, None, 2**31 - 1]


def test_an_expression_is_sent_without_its_hash() -> None:
    sent = call("+", "INT", ref(0, "INT"), constant(1, "INT"))
    assert hash(sent) == hash(call("+", "INT", ref(0, "INT"), constant(1, "INT")))
    received = pickle.loads(pickle.dumps(sent))
    assert received == sent
    assert all("_hash" not in part.__dict__ for part in (received, received.type))


@pytest.mark.parametrize("search", ["aa", "ä", "", "."])
def test_constant_texts_are_replaced_as_those_of_columns(search: str) -> None:
    texts = ["aaa", "bä.", "", None, "aäaä"]
    constants = [constant(text, "STRING") for text in (search, "x")]
    found = values(call("REPLACE", "STRING", ref(0, "STRING"), *constants), pa.array(texts))
    assert found == [None if text is None else text.replace(search, "x") for text in texts]


class Counted:
    """A function of the user that counts the rows for which it is evaluated, and returns texts as they are."""

    def __init__(self) -> None:
        self.n_rows = 0

    def evaluate(self, rows: Evaluation, call: RexCall) -> pa.Array:
        self.n_rows += rows.num_rows
        return rows(call.operands[0])


def of_user(function: Counted) -> UserCall:
    return UserCall("f", (ref(0, "STRING"),), type_of("STRING"), function)


def test_what_is_known_of_a_batch_is_taken_along_to_some_of_its_rows() -> None:
    function = Counted()
    known = of_user(function)
    rows = Evaluation([pa.array(["a", "b", "c"])], 3)
    rows(known)
    some = rows.of_some(np.array([False, True, True]), call("UPPER", "STRING", known))
    assert (some.to_pylist(), function.n_rows) == (["B", "C"], 3)


def test_what_is_known_of_some_rows_is_taken_along_to_some_of_them_only() -> None:
    function = Counted()
    rows = Evaluation([pa.array(["a", "b", "c", "d"])], 4)
    text = of_user(function)
    assert rows.of_some(np.array([True, False, True, True]), text).to_pylist() == ["a", "c", "d"]
    upper = call("UPPER", "STRING", text)
    assert rows.of_some(np.array([False, False, True, True]), upper).to_pylist() == ["C", "D"]
    assert function.n_rows == 3
    assert rows.of_some(np.array([True, True, False, False]), upper).to_pylist() == ["A", "B"]
    assert function.n_rows == 5


def test_a_condition_and_a_projection_evaluate_what_they_share_once() -> None:
    function, names = Counted(), ("c0", "c1")
    text = of_user(function)
    is_first = call("=", "BOOLEAN", ref(1, "INT"), constant(0, "INT"))
    condition = call("OR", "BOOLEAN", is_first, call("IS NOT NULL", "BOOLEAN", text))
    value = call("CASE", "STRING", is_first, constant("first", "STRING"), text)
    batch = pa.record_batch({"c0": ["a", None, "b", None, "c"], "c1": pa.array([0, 1, 1, 0, 2], pa.int32())})
    ops = (Filter(SqlExpression(condition, names)), Select((), (("found", SqlExpression(value, names)),)))
    for _ in range(2):
        rows, kept = apply_ops(ops, batch)
        assert rows.column("found").to_pylist() == ["first", "b", "first", "c"]
        assert kept is not None
        assert kept.tolist() == [0, 2, 3, 4]
    assert function.n_rows == 2 * 3


def test_a_filter_by_another_expression_leaves_nothing_of_rows_that_are_gone() -> None:
    names = ("c0",)
    upper = SqlExpression(call("UPPER", "STRING", ref(0, "STRING")), names)
    batch = pa.record_batch({"c0": ["a", "b"]})
    step = WithColumns((("upper", upper),))
    first, _ = apply_ops((step, Filter(pc.field("c0") == "b"), step), batch)
    assert first.column("upper").to_pylist() == ["B"]


@pytest.mark.parametrize("kind", ["STRING", "ARRAY<INT>"])
def test_branches_of_constants_columns_and_some_rows_come_together(kind: str) -> None:
    number = ref(0, "INT")
    column = pa.array([["a", "b", "c", "d"], [[1], [], None, [4]]][kind != "STRING"], type_of(kind).arrow)
    first, second = (call("=", "BOOLEAN", number, constant(value, "INT")) for value in (0, 1))
    last: Rex = call("UPPER", kind, ref(1, kind)) if kind == "STRING" else ref(1, kind)
    case = call("CASE", kind, first, Literal(None, type_of(kind)), second, ref(1, kind), last)
    found = values(case, pa.array([1, 0, None, 2], pa.int32()), column)
    assert found == [["a", None, "C", "D"], [[1], None, None, [4]]][kind != "STRING"]


@pytest.mark.parametrize(("search", "replacement"), [("c", ""), ("ab", "ä"), ("ä", "xyz")])
def test_the_length_of_a_text_in_which_others_are_replaced_is_that_of_the_result(
    search: str, replacement: str
) -> None:
    texts = ["abcabc", "", None, "äab", "ccc"]
    replaced = call(
        "REPLACE", "STRING", ref(0, "STRING"), constant(search, "STRING"), constant(replacement, "STRING")
    )
    found = values(call("CHAR_LENGTH", "INT", replaced), pa.array(texts))
    assert found == [None if text is None else len(text.replace(search, replacement)) for text in texts]


@pytest.mark.parametrize(
    ("pattern", "group"),
    [
        ("(&|^)id=([^&]*)", 2),
        (r"id=(\d+)", 1),
        ("(?:x|y)(i+)", 1),
        (r"(a|\^|\||b)i([^x]+)", 2),
        (r"\^(\D*)", 1),
        ("(^|&)(id)=", 2),
    ],
)
def test_groups_after_a_mark_are_those_of_regular_expressions(pattern: str, group: int) -> None:
    chance = random.Random(3)
    texts = ["", None, "id=1", *("".join(chance.choices("abdi=&^|x1ä", k=7)) for _ in range(2000))]
    texts += [f"{text}id={text}" for text in texts[:300]]
    kind = "STRING"
    extract = call("REGEXP_EXTRACT", kind, ref(0, kind), constant(pattern, kind), constant(group, "INT"))
    found = values(extract, pa.array(texts))
    matches = [None if text is None else re.search(pattern, text, re.ASCII) for text in texts]
    assert found == [None if match is None else match[group] for match in matches]
    assert len(set(found)) > 1


def test_division_by_zero_names_the_row() -> None:
    with pytest.raises(RowFailure, match="/ by zero") as failure:
        values(call("/", "INT", constant(1, "INT"), ref(0, "INT")), pa.array([1, None, 0], pa.int32()))
    assert failure.value.row == 2


def test_decimals_round_half_up_and_are_null_beyond_their_precision() -> None:
    column = pa.array([Decimal("1.25"), Decimal("-1.25"), Decimal("99.95")], pa.decimal128(4, 2))
    rounded = call("CAST", "DECIMAL(3, 1)", ref(0, "DECIMAL(4, 2)"))
    assert values(rounded, column) == [Decimal("1.3"), Decimal("-1.3"), None]


def test_products_of_decimals_of_38_digits_are_exact() -> None:
    column = pa.array([Decimal("9" * 38), Decimal(3)], pa.decimal128(38, 0))
    product = call("*", "DECIMAL(38, 0)", ref(0, "DECIMAL(38, 0)"), ref(0, "DECIMAL(38, 0)"))
    assert values(product, column) == [None, Decimal(9)]


def test_texts_and_constants_of_38_digits_are_decimals() -> None:
    most = "9" * 36 + ".99"
    cast = call("TRY_CAST", "DECIMAL(38, 2)", ref(0, "VARCHAR(50)"))
    assert values(cast, pa.array([most, f"-{most}", "9" * 37])) == [Decimal(most), Decimal(f"-{most}"), None]
    column = pa.array([Decimal(most), Decimal(1)], pa.decimal128(38, 2))
    equal = call("=", "BOOLEAN", ref(0, "DECIMAL(38, 2)"), constant(most, "DECIMAL(38, 2)"))
    assert values(equal, column) == [True, False]


def test_a_branch_of_case_is_evaluated_for_its_own_rows_only() -> None:
    quotient = call("/", "INT", constant(10, "INT"), ref(0, "INT"))
    is_zero = call("=", "BOOLEAN", ref(0, "INT"), constant(0, "INT"))
    guarded = call("CASE", "INT", is_zero, constant(-1, "INT"), quotient)
    assert values(guarded, pa.array([5, 0, None], pa.int32())) == [2, -1, None]


def test_a_false_condition_leaves_the_next_one_out() -> None:
    quotient = call(">", "BOOLEAN", call("/", "INT", constant(10, "INT"), ref(0, "INT")), constant(1, "INT"))
    is_not_zero = call("<>", "BOOLEAN", ref(0, "INT"), constant(0, "INT"))
    column = pa.array([5, 0, 20], pa.int32())
    assert values(call("AND", "BOOLEAN", is_not_zero, quotient), column) == [True, False, False]


def test_logic_has_three_values() -> None:
    left = pa.array([True, True, False, None, None])
    right = pa.array([None, True, None, False, True])
    operands = ref(0, "BOOLEAN"), ref(1, "BOOLEAN")
    assert values(call("AND", "BOOLEAN", *operands), left, right) == [None, True, False, False, None]
    assert values(call("OR", "BOOLEAN", *operands), left, right) == [True, True, None, None, True]


def test_nan_equals_nothing_and_minus_zero_is_zero() -> None:
    column = pa.array([float("nan"), -0.0, 1.0])
    assert values(call("=", "BOOLEAN", ref(0, "DOUBLE"), ref(0, "DOUBLE")), column) == [False, True, True]
    assert values(call("=", "BOOLEAN", ref(0, "DOUBLE"), constant(0, "INT")), column) == [False, True, False]


def test_casts_of_doubles_saturate_and_small_integers_then_wrap() -> None:
    column = pa.array([300.7, -1e17, float("nan"), None])
    assert values(call("CAST", "TINYINT", ref(0, "DOUBLE")), column) == [44, 0, 0, None]
    assert values(call("CAST", "INT", ref(0, "DOUBLE")), column) == [300, -(2**31), 0, None]


def test_a_bad_text_fails_in_cast_and_is_null_in_try_cast() -> None:
    column = pa.array(["12", " 7.9 ", "x"])
    assert values(call("TRY_CAST", "INT", ref(0, "VARCHAR(5)")), column) == [12, 7, None]
    with pytest.raises(RowFailure, match="For input string: 'x'") as failure:
        values(call("CAST", "INT", ref(0, "VARCHAR(5)")), column)
    assert failure.value.row == 2


def test_elements_of_a_failed_try_cast_do_not_go_to_the_row_before() -> None:
    texts = pa.array([["1", "2"], ["4", "x"], None, ["3"]], pa.list_(pa.string()))
    to_ints = call("TRY_CAST", "ARRAY<INT>", ref(0, "ARRAY<STRING>"))
    assert values(to_ints, texts) == [[1, 2], None, None, [3]]
    nested = pa.array([[["1"], ["2"]], [["4"], ["x"]], [["3"]]], pa.list_(pa.list_(pa.string())))
    to_nested = call("TRY_CAST", "ARRAY<ARRAY<INT>>", ref(0, "ARRAY<ARRAY<STRING>>"))
    assert values(to_nested, nested) == [[[1], [2]], None, [[3]]]
    map_type = type_of("MAP<STRING, STRING>").arrow
    maps = pa.array([[("a", "1")], [("b", "4"), ("c", "x")], [("d", "3")]], map_type)
    to_maps = call("TRY_CAST", "MAP<STRING, INT>", ref(0, "MAP<STRING, STRING>"))
    assert values(to_maps, maps) == [[("a", 1)], None, [("d", 3)]]


def test_years_beyond_a_long_of_milliseconds_wrap_as_in_java() -> None:
    years = ("999999999999", "300000000", "99999999999999999999", "4294969320")
    texts = pa.array([f"{year}-01-01 00:00:00" for year in years])
    assert values(call("UNIX_TIMESTAMP", "BIGINT", ref(0, "STRING")), texts) == [
        *(-4507684203375248, -8979720640928751, -6019000092841406),
        1704067200,
    ]


def test_a_value_that_is_not_of_the_type_of_a_call_names_its_row() -> None:
    texts = pa.array(["1970-01-01 00:00:01", "2024-01-01 00:00:00"])
    with pytest.raises(RowFailure, match=r"returned 1704067200, which is not int8") as failure:
        values(call("UNIX_TIMESTAMP", "TINYINT", ref(0, "STRING")), texts)
    assert failure.value.row == 1


def test_doubles_are_texts_as_in_java() -> None:
    column = pa.array([1e7, 0.001, 1e-5, -0.0, float("inf")])
    texts = values(call("CAST", "VARCHAR(2147483647)", ref(0, "DOUBLE")), column)
    assert texts == ["1.0E7", "0.001", "1.0E-5", "-0.0", "Infinity"]


def test_local_times_in_a_gap_move_on_and_doubled_hours_are_the_first() -> None:
    column = pa.array(["2024-03-31 02:30:00", "2024-10-27 02:30:00", None])
    instants = call(
        "CAST", "TIMESTAMP(3) WITH LOCAL TIME ZONE", call("CAST", "TIMESTAMP(3)", ref(0, "VARCHAR(30)"))
    )
    found = values(instants, column, zone="Europe/Berlin")
    assert [each and each.isoformat() for each in found] == [
        "2024-03-31T01:30:00+00:00",
        "2024-10-27T00:30:00+00:00",
        None,
    ]


def test_padding_counts_utf_16_and_length_counts_code_points() -> None:
    column = pa.array(["a\N{GRINNING FACE}"])
    assert values(call("CHAR_LENGTH", "INT", ref(0, "VARCHAR(9)")), column) == [2]
    padded = call("RPAD", "VARCHAR(9)", ref(0, "VARCHAR(9)"), constant(5, "INT"), constant("xy", "CHAR(2)"))
    assert values(padded, column) == ["a\N{GRINNING FACE}xy"]


@pytest.mark.parametrize(
    ("rex", "reason"),
    [
        (call("UUID", "CHAR(36)"), "the function UUID"),
        (call("UNIX_TIMESTAMP", "BIGINT"), "time of the machine"),
        (call("REGEXP", "BOOLEAN", ref(0, "VARCHAR(4)"), constant("(?x)a", "CHAR(5)")), "another meaning"),
        (call("CAST", "TIME(0)", ref(0, "DATE")), "CAST of DATE to TIME"),
        (
            call("DATE_FORMAT", "VARCHAR(9)", ref(0, "TIMESTAMP(3)"), constant("VV", "CHAR(2)")),
            "the pattern 'VV'",
        ),
        (call("TO_DATE", "DATE", ref(0, "VARCHAR(9)"), constant("d.M.yy", "CHAR(6)")), "depend on the clock"),
        (call("=", "BOOLEAN", ref(0, "INT"), ref(1, "VARCHAR(3)")), "cast one of them"),
        (ref(0, "INT"), None),
        (call("JSON_STRING", "STRING", ref(0, "MULTISET<STRING>")), "in the order of a hash map in Flink"),
    ],
)
def test_what_does_not_run_is_refused_with_a_reason(rex: Rex, reason: str | None) -> None:
    found = refusal_of(rex)
    assert found is None if reason is None else found is not None and reason in found


def test_every_function_states_who_computes_it() -> None:
    assert {function.state for function in FUNCTIONS.values()} == {"pyarrow", "own"}


def test_a_column_of_nulls_stays_null_in_every_type() -> None:
    nulls = pa.nulls(2, pa.int32())
    for kind in ("DOUBLE", "DECIMAL(5, 1)", "VARCHAR(4)", "BOOLEAN", "BIGINT"):
        assert values(call("CAST", kind, ref(0, "INT")), nulls) == [None, None]


def test_equal_types_are_not_copied() -> None:
    kind: LogicalType = type_of("INT")
    column = pa.array([1, 2], pa.int32())
    batch = pa.RecordBatch.from_arrays([column], names=["c0"])
    assert SqlExpression(InputRef(0, kind), ("c0",)).evaluate(batch).equals(column)


def test_a_text_that_comes_often_is_computed_once_and_its_failure_shows_the_first_row() -> None:
    column = pa.array(["ab", None, "cd", "ab"] * 50 + ["!", "cd", "!"])
    decoded = call("FROM_BASE64", "VARCHAR(9)", ref(0, "VARCHAR(9)"))
    with pytest.raises(RowFailure) as failure:
        values(decoded, column)
    assert failure.value.row == 200
    assert values(call("REVERSE", "VARCHAR(9)", ref(0, "VARCHAR(9)")), column)[:5] == [
        "ba",
        None,
        "dc",
        "ba",
        "ba",
    ]


def test_texts_that_are_all_null_are_joined_to_an_empty_text() -> None:
    nothing = pa.array([None, "a", None], pa.string())
    joined = call(
        "CONCAT_WS", "VARCHAR(9)", constant(",", "CHAR(1)"), ref(0, "VARCHAR(9)"), ref(0, "VARCHAR(9)")
    )
    assert values(joined, nothing) == ["", "a,a", ""]


def test_a_costly_condition_is_evaluated_where_a_cheap_one_does_not_decide() -> None:
    found = call("REGEXP", "BOOLEAN", ref(0, "VARCHAR(9)"), constant("^a.*z$", "CHAR(6)"))
    cheap = call("=", "BOOLEAN", ref(0, "VARCHAR(9)"), constant("b", "CHAR(1)"))
    column = pa.array(["abz", "b", "c", None])
    assert values(call("OR", "BOOLEAN", found, cheap), column) == [True, True, False, None]


def test_a_guard_keeps_its_place_before_a_condition_that_fails() -> None:
    is_number = call("REGEXP", "BOOLEAN", ref(0, "VARCHAR(9)"), constant("^[0-9]+$", "CHAR(8)"))
    number = call("CAST", "INT", ref(0, "VARCHAR(9)"))
    large = call(">", "BOOLEAN", number, constant(5, "INT"))
    assert values(call("AND", "BOOLEAN", is_number, large), pa.array(["7", "x", "3"])) == [True, False, False]


def test_columns_of_a_batch_share_what_they_compute_and_forget_it_with_the_batch() -> None:
    names = ("c0",)
    parts = [
        SqlExpression(
            call(
                "SPLIT_INDEX",
                "VARCHAR(9)",
                ref(0, "VARCHAR(9)"),
                constant("/", "CHAR(1)"),
                constant(number, "INT"),
            ),
            names,
        )
        for number in range(4)
    ]
    for text in ("a/b/c", "d/e/f/g"):
        batch = pa.RecordBatch.from_arrays([pa.array([text])], names=list(names))
        found = [part.evaluate(batch)[0].as_py() for part in parts]
        assert found == [*text.split("/"), None][:4]
        of_others = SqlExpression(ref(0, "VARCHAR(9)"), ("other", "c0")[1:])
        assert of_others.evaluate(batch)[0].as_py() == text


def test_a_batch_that_is_collected_meanwhile_does_not_take_those_of_the_next_one_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expression = SqlExpression(call("+", "INT", ref(0, "INT"), constant(1, "INT")), ("c0",))
    batches = [pa.record_batch({"c0": pa.array([number], pa.int32())}) for number in range(2)]
    expression.evaluate(batches[0])

    class Collects(Evaluation):
        def __init__(self, *arguments: Any) -> None:
            del batches[0]
            super().__init__(*arguments)

    monkeypatch.setattr(sql_expression, "Evaluation", Collects)
    assert expression.evaluate(batches[1]).to_pylist() == [2]
