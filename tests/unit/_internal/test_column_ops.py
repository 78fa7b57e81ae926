"""Filters and computed columns on batches."""

import pickle
from datetime import datetime, timezone
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from flinkcore._internal.arrow.column_ops import (
    HIDDEN_PREFIX,
    Filter,
    Select,
    WithColumns,
    apply_ops,
    expression_columns,
    narrow_ops,
    output_schema,
    shown_column,
)
from flinkcore._internal.arrow.expressions import ColumnExpression, RowFailure
from flinkcore.errors import ConfigurationError, DataError, SchemaError

a, b, s = pc.field("a"), pc.field("b"), pc.field("s")


def batch(**columns: object) -> pa.RecordBatch:
    return pa.record_batch(
        columns or {"a": [1, None, 3, 4], "b": [1.0, 2.0, 3.0, 4.0], "s": ["x", "y", None, "x"]}
    )


class Root(ColumnExpression):
    """The square root of column b, which fails for negative values."""

    required_columns = frozenset(["b"])

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        values = batch.column("b").to_numpy()
        if (values < 0).any():
            raise RowFailure(int((values < 0).argmax()), "it is negative")
        return pa.array(np.sqrt(values))

    def __str__(self) -> str:
        return "root of b"


class HasRoot(Root):
    """A condition: whether column b has a square root above 1."""

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        return pc.greater(super().evaluate(batch), 1)


def test_steps_take_expressions_of_the_engine_beside_those_of_arrow() -> None:
    given = batch(a=[1, 2, 3], b=[1.0, 4.0, 9.0])
    out, kept = Filter(HasRoot()).apply(given)
    assert kept is not None
    assert kept.tolist() == [1, 2]
    out, _ = Select(("a",), (("root", Root()), ("more", b + 1))).apply(out)
    assert out.to_pylist() == [{"a": 2, "root": 2.0, "more": 5.0}, {"a": 3, "root": 3.0, "more": 10.0}]
    step = WithColumns((("b", Root()),))
    assert step.apply(given)[0].column("b").to_pylist() == [1.0, 2.0, 3.0]
    assert expression_columns(Root()) == {"b"}
    ops, wanted = narrow_ops((step, Select(("a", "b"))), frozenset(["a"]))
    assert (len(ops), wanted) == (1, {"a"})
    assert Root().equals(Root())
    assert not Root().equals(HasRoot())
    assert shown_column("b", (step,)) == ("b", False)


def test_a_row_on_which_an_expression_of_the_engine_fails_is_shown() -> None:
    with pytest.raises(
        DataError, match=r"c root of b: it is negative in the row b = -4\.0; columns: b \(double\)"
    ):
        WithColumns((("c", Root()),)).apply(batch(a=[1, 2], b=[1.0, -4.0]))


def test_an_expression_of_the_engine_names_a_missing_column() -> None:
    with pytest.raises(SchemaError, match="there is no column b"):
        Filter(HasRoot()).apply(batch(a=[1]))


def test_a_filter_keeps_rows_where_the_predicate_is_true_and_drops_nulls() -> None:
    out, kept = Filter(a > 1).apply(batch())
    assert out.to_pylist() == [{"a": 3, "b": 3.0, "s": None}, {"a": 4, "b": 4.0, "s": "x"}]
    assert kept is not None
    assert kept.dtype == np.uint32
    assert kept.tolist() == [2, 3]


def test_null_and_false_is_false_and_null_or_true_is_true() -> None:
    assert apply_ops((Filter((a > 1) | (s == "y")),), batch())[0].column("b").to_pylist() == [2.0, 3.0, 4.0]
    assert apply_ops((Filter(~((a > 1) & (s == "q"))),), batch())[0].column("b").to_pylist() == [
        1.0,
        2.0,
        4.0,
    ]


def test_a_filter_that_keeps_all_rows_gives_the_very_batch() -> None:
    given = batch()
    out, kept = Filter(b > 0).apply(given)
    assert out is given
    assert kept is None


def test_a_filter_may_keep_nothing() -> None:
    out, kept = Filter(pc.scalar(False)).apply(batch())
    assert out.num_rows == 0
    assert out.schema == batch().schema
    assert kept is not None
    assert kept.tolist() == []


def test_a_filter_on_no_rows_keeps_its_schema() -> None:
    out, _ = Filter(a > 1).apply(batch().slice(0, 0))
    assert out.schema == batch().schema


def test_a_filter_on_a_slice_counts_rows_of_the_slice() -> None:
    out, kept = Filter(a > 1).apply(batch().slice(1, 2))
    assert out.column("b").to_pylist() == [3.0]
    assert kept is not None
    assert kept.tolist() == [1]


def test_a_predicate_must_be_boolean() -> None:
    with pytest.raises(SchemaError, match=r"filter add_checked\(a, 1\) gives int64 instead of true or false"):
        Filter(a + 1).apply(batch())


def test_rows_stay_in_order_over_many_chunks_of_the_evaluator() -> None:
    n = 200_000
    values = np.random.default_rng(1).integers(0, 100, n)
    out, kept = Filter(pc.field("v") < 30).apply(pa.record_batch({"v": values, "row": np.arange(n)}))
    expected = np.flatnonzero(values < 30)
    np.testing.assert_array_equal(kept, expected)
    np.testing.assert_array_equal(out.column("row").to_numpy(), expected)
    computed, _ = WithColumns((("w", pc.field("v") * 2),)).apply(pa.record_batch({"v": values}))
    np.testing.assert_array_equal(computed.column("w").to_numpy(), values * 2)


def test_with_columns_adds_at_the_end_and_replaces_in_place() -> None:
    out, kept = WithColumns((("a", b + 1), ("c", a * 2), ("k", pc.scalar("z")))).apply(batch())
    assert kept is None
    assert out.schema.names == ["a", "b", "s", "c", "k"]
    assert out.column("a").to_pylist() == [2.0, 3.0, 4.0, 5.0]
    assert out.column("c").to_pylist() == [2, None, 6, 8]  # of the old a
    assert out.column("k").to_pylist() == ["z"] * 4


def test_select_takes_names_then_expressions() -> None:
    out, _ = Select(("s", "a"), (("c", b * 2),)).apply(batch())
    assert out.schema.names == ["s", "a", "c"]
    assert out.column("c").to_pylist() == [2.0, 4.0, 6.0, 8.0]
    assert out.num_rows == 4


def test_hidden_columns_pass_through_select() -> None:
    hidden = f"{HIDDEN_PREFIX}time"
    out, _ = Select(("a",)).apply(batch().append_column(hidden, pa.array([1, 2, 3, 4])))
    assert out.schema.names == [hidden, "a"]


def test_dictionaries_structs_and_timestamps_work_in_expressions() -> None:
    given = batch(
        d=pa.array(["x", "y", "x"]).dictionary_encode(),
        n=[{"v": 1}, {"v": 2}, None],
        t=pa.array([datetime(2001, 1, 1, 5), datetime(2001, 1, 1, 6), None], pa.timestamp("ms")),
    )
    expression = (pc.field("d") == "x") & (pc.field("n", "v") == 1) & (pc.hour(pc.field("t")) == 5)
    assert Filter(expression).apply(given)[1].tolist() == [0]  # type: ignore[union-attr]


def test_a_missing_column_is_named_with_those_that_there_are() -> None:
    with pytest.raises(
        SchemaError, match=r"filter \(zz > 1\): there is no column zz; columns: a \(int64\), b \(double\)"
    ):
        Filter(pc.field("zz") > 1).apply(batch())
    with pytest.raises(SchemaError, match=r"select: there is no column zz; columns: a"):
        Select(("a", "zz")).apply(batch())
    with pytest.raises(SchemaError, match="there is no column y, z"):
        WithColumns((("c", pc.field("z") + pc.field("y")),)).apply(batch())


def test_a_missing_field_of_a_struct_is_a_schema_error() -> None:
    with pytest.raises(SchemaError, match="No match for FieldRef"):
        Filter(pc.field("n", "w") == 1).apply(batch(n=[{"v": 1}]))


def test_a_column_given_twice_is_refused() -> None:
    twice = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(SchemaError, match="several columns are named a"):
        Filter(a > 1).apply(twice)


def test_types_that_do_not_fit_are_a_schema_error_that_names_the_expression() -> None:
    with pytest.raises(SchemaError, match=r"bad \(a > s\): .*no kernel.*columns: a \(int64\), s \(string\)"):
        WithColumns((("good", a + 1), ("bad", a > s))).apply(batch())


def test_a_value_that_does_not_fit_is_a_data_error_that_names_the_expression() -> None:
    with pytest.raises(DataError, match=r"bad divide_checked\(1, subtract_checked\(a, 3\)\): divide by zero"):
        WithColumns((("good", a + 1), ("bad", pc.scalar(1) / (a - 3)))).apply(batch())
    with pytest.raises(DataError, match="overflow"):
        WithColumns((("c", a * pc.scalar(2**62)),)).apply(batch())


@pytest.mark.parametrize(
    ("expression", "columns"),
    [
        (a > 1, {"a"}),
        ((a > 1) & (pc.field("b c") < 0.5) | (s == "it's (a) b"), {"a", "b c", "s"}),
        (pc.field("n", "a", "q") + pc.field("n", "b") + b, {"n", "b"}),
        (pc.if_else(a.is_null(), pc.scalar("z"), pc.strftime(pc.field("t"), format="%Y")) == "q", {"a", "t"}),
        (a.isin([1, 2]), {"a"}),
        (a.cast("int32"), {"a"}),
        (pc.struct_field(pc.field("n"), "v"), {"n"}),
        (pc.field("it's") == "field_ref: 'no'", {"it's"}),
        (pc.scalar(True), set()),
    ],
)
def test_an_expression_tells_the_columns_that_it_reads(expression, columns) -> None:
    assert expression_columns(expression) == columns


def test_an_expression_that_does_not_tell_its_columns_reads_all() -> None:
    odd = pc.field("first\nsecond")
    assert expression_columns(odd == 1) is None
    assert Filter(odd == 1).apply(batch(**{"first\nsecond": [1, 2]}))[1].tolist() == [0]  # type: ignore[union-attr]
    assert narrow_ops((Filter(odd == 1),), frozenset({"x"}))[1] is None


def test_a_column_by_number_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="must refer to columns by name"):
        Filter(pc.field(0) > 1)


def test_ops_travel_by_pickle() -> None:
    ops = (Filter(a > 1), WithColumns((("c", a + 1),)), Select(("c",), (("d", b),)))
    out, kept = apply_ops(pickle.loads(pickle.dumps(ops)), batch())
    assert out.to_pylist() == [{"c": 4, "d": 3.0}, {"c": 5, "d": 4.0}]
    assert kept is not None
    assert kept.tolist() == [2, 3]


def test_kept_rows_of_a_chain_count_in_the_first_batch() -> None:
    out, kept = apply_ops(
        (Filter(a.is_valid()), WithColumns((("c", a * 2),)), Filter(pc.field("c") != 6)), batch()
    )
    assert kept is not None
    assert kept.tolist() == [0, 3]
    assert out.column("c").to_pylist() == [2, 8]


def test_narrowed_ops_read_and_compute_only_what_is_wanted() -> None:
    ops = (
        WithColumns((("c", pc.field("x") + 1), ("d", pc.field("y") + 1))),
        Filter(pc.field("c") > 0),
        Select(("d", "k", "m"), (("e", pc.field("c") + pc.field("z")),)),
    )
    narrow, columns = narrow_ops(ops, frozenset({"d"}))
    assert columns == {"x", "y"}
    assert [str(op.required_columns) for op in narrow] == [
        str(frozenset(c)) for c in ({"x", "y"}, {"c"}, {"d"})
    ]
    assert narrow_ops(ops, frozenset())[1] == {"x"}
    assert len(narrow_ops(ops, frozenset())[0]) == 2
    assert narrow_ops(ops, frozenset({"e", "k"}))[1] == {"x", "z", "k"}
    assert narrow_ops(ops, None)[1] == {"x", "y", "z", "k", "m"}
    assert narrow_ops((), frozenset({"q"})) == ((), {"q"})


def test_narrowed_ops_give_the_same_wanted_columns_and_rows() -> None:
    ops = (
        WithColumns((("c", a + 1), ("a", b * 2))),
        Filter(pc.field("c") > 2),
        Select(("a", "s"), (("e", pc.field("c") * 10),)),
        WithColumns((("f", pc.field("a") + pc.field("e")),)),
    )
    whole, kept = apply_ops(ops, batch())
    for wanted in ({"a"}, {"e"}, {"f"}, {"s", "f"}, set(), {"a", "s", "e", "f"}):
        narrow, columns = narrow_ops(ops, frozenset(wanted))
        assert columns is not None
        out, kept_now = apply_ops(narrow, batch().select(sorted(columns)))
        np.testing.assert_array_equal(kept_now, kept)
        assert out.select(sorted(wanted)).to_pylist() == whole.select(sorted(wanted)).to_pylist()


def test_of_several_expressions_the_one_with_the_missing_column_is_shown() -> None:
    computed = (("c", pc.scalar(1)), ("d", a + 1), ("e", pc.field("zz") + 1))
    with pytest.raises(SchemaError, match=r"^e add_checked\(zz, 1\): there is no column zz"):
        WithColumns(computed).apply(batch())


def test_the_schema_after_ops_is_known_without_rows() -> None:
    schema = batch().schema
    assert output_schema((WithColumns((("c", a / b),)), Select(("c", "s"))), schema) == pa.schema(
        [("c", pa.float64()), ("s", pa.string())]
    )
    with pytest.raises(SchemaError, match="there is no column b"):
        output_schema((Select(("a",)), Filter(b > 1)), schema)


@pytest.mark.parametrize("name", ["a", "and so on...", "add(a, b)"])
def test_a_hidden_column_that_holds_another_is_called_as_that(name: str) -> None:
    hidden = HIDDEN_PREFIX + "t"
    assert shown_column(hidden, [WithColumns(((hidden, pc.field(name)),))]) == (name, False)
    text, is_computed = shown_column(hidden, [WithColumns(((hidden, pc.field(name) + 1),))])
    assert is_computed
    assert text.startswith(f"add_checked({name}, 1)")


def test_an_expression_that_fails_names_the_first_row_for_which_it_does() -> None:
    numbers = pa.RecordBatch.from_pydict({"a": [1, 2, 2**62, 3, 2**62 + 1], "b": ["x"] * 5})
    with pytest.raises(
        DataError, match=rf"x multiply_checked\(a, 1000\): overflow in the row a = {2**62}; columns: a"
    ):
        WithColumns((("x", pc.field("a") * 1000),)).apply(numbers)
    texts = pa.RecordBatch.from_pydict({"a": ["1", "y" * 1000]})
    with pytest.raises(DataError, match=r" in the row a = 'y{195}\.\.\.; columns: a \(string\)$"):
        WithColumns((("x", pc.field("a").cast("int64")),)).apply(texts)


def test_a_row_whose_values_python_does_not_have_is_named() -> None:
    far = pa.array([0, 2**60], pa.timestamp("s"))
    with pytest.raises(DataError, match=rf"in the row a = {2**60} \(timestamp\[s\]\); columns: a"):
        WithColumns((("x", pc.field("a").cast(pa.timestamp("ns"))),)).apply(
            pa.RecordBatch.from_pydict({"a": far})
        )
    words = pa.RecordBatch.from_pydict({"a": ["Dispatch for a MetaFunction"]})
    with pytest.raises(DataError, match="in the row a = 'Dispatch"):
        WithColumns((("x", pc.field("a").cast("int64")),)).apply(words)


@pytest.mark.parametrize("function", [pc.cumulative_sum, pc.rank, pc.sum])
def test_an_expression_that_takes_other_rows_says_so(function: Any) -> None:
    with pytest.raises(SchemaError, match=r"x \w+\(a\): .* takes other rows, too: aggregate in windows"):
        WithColumns((("x", function(pc.field("a"))),)).apply(pa.RecordBatch.from_pydict({"a": [1, 2]}))


ZONED, PLAIN = pc.field("zoned"), pc.field("plain")
UTC = datetime(2001, 1, 1, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    "expression",
    [
        datetime(2001, 1, 1) < ZONED,
        datetime(2001, 1, 1) == ZONED,
        pc.scalar(datetime(2001, 1, 1)) <= ZONED,
        PLAIN < UTC,
        pc.scalar(UTC) != PLAIN,
        ZONED > PLAIN,
        PLAIN > ZONED,
        ZONED.isin([datetime(2001, 1, 1)]),
        (ZONED - pc.scalar(datetime(2001, 1, 1))) > pa.scalar(1, pa.duration("ms")),
    ],
    ids=str,
)
def test_a_time_with_a_zone_against_one_without_says_what_to_write(expression: pc.Expression) -> None:
    times = batch(zoned=pa.array([0], pa.timestamp("ms", "UTC")), plain=pa.array([0], pa.timestamp("us")))
    with pytest.raises(
        (SchemaError, DataError), match=r"Give the other one a zone, such as datetime\(2001, 12, 31, tzinfo="
    ):
        Filter(expression).apply(times)


@pytest.mark.parametrize(
    "expression",
    [ZONED > "2001-01-01", pc.scalar("2001-01-01") == PLAIN, pc.field("day") >= "2001-01-01"],
    ids=str,
)
def test_a_time_against_text_says_what_to_write(expression: pc.Expression) -> None:
    times = batch(
        zoned=pa.array([0], pa.timestamp("ms", "UTC")),
        plain=pa.array([0], pa.timestamp("us")),
        day=pa.array([0], pa.date32()),
    )
    with pytest.raises(SchemaError, match=r"A time is not text\. Write datetime\(2001, 12, 31, tzinfo="):
        Filter(expression).apply(times)


def test_other_types_that_do_not_fit_get_no_advice_about_times() -> None:
    times = batch(zoned=pa.array([0], pa.timestamp("ms", "UTC")))
    with pytest.raises(SchemaError, match=r"columns: zoned \(timestamp\[ms, tz=UTC\]\)$"):
        Filter(ZONED > 5).apply(times)
