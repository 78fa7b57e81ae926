"""`compare` finds what was planted, and explains it."""

from collections import Counter
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore.analysis import Comparison, compare, comparison
from flinkcore.errors import ConfigurationError, DataError, SchemaError

Rows = list[tuple[Any, ...]]

#         user, window_start, n, mean, late_firing
REPLAY: Rows = [
    ("a", 0, 2, 1.5, False),
    ("a", 0, 3, 2.0, True),
    ("b", 0, 5, 0.1, False),
    ("a", 10, 4, 4.0, False),
    ("c", 10, 1, 1.0, True),
    ("d", 10, 7, 7.0, False),
]


def table(rows: Rows, *names: str) -> pa.Table:
    named = names or ("user", "window_start", "n", "mean", "late_firing")
    return pa.table({name: [row[place] for row in rows] for place, name in enumerate(named)})


def compared(expected: Rows, found: Rows | None = None, **parameters: Any) -> Comparison:
    sink = table([row[:4] for row in expected], "user", "window_start", "n", "mean")
    return compare(sink, table(found or REPLAY), **{"keys": ["user", "window_start"], **parameters})


def explained(result: Comparison) -> list[tuple[Any, ...]]:
    """Key, kind, what differs, and what both sides have in the column n."""
    return [
        (
            row["user"],
            row["window_start"],
            row["difference"],
            row["columns"],
            row["expected"] and row["expected"]["n"],
            row["found"] and row["found"]["n"],
        )
        for row in result.to_arrow().to_pylist()
    ]


LAST = [REPLAY[1], *REPLAY[2:]]


def test_a_sink_of_last_rows_that_has_them_is_equal() -> None:
    result = compared(LAST[::-1])
    assert result.is_equal
    assert (result.upserts, result.equal, result.counts) == (True, 5, {})
    assert repr(result) == (
        "5 rows of a sink that keeps the last row of a key, 6 rows of the replay: 5 equal, 0 differences\n"
        "compared by user, window_start: n, mean\n"
        "not compared: late_firing (how a result came)"
    )


def test_what_is_compared_and_what_is_not_is_said() -> None:
    rows = pa.table(
        {"k": [1], "n": [1], "sum": [2], "window_end": [10], "late_firing": [False], "row_kind": ["+I"]}
    )
    sink = pa.table({"k": [1], "n": [1], "total": [2], "batch": [7]})
    with pytest.warns(UserWarning, match="has no column 'total', 'batch', so what the sink has there is not"):
        result = compare(sink, rows, keys="k")
    assert result.is_equal
    assert (result.keys, result.columns) == (("k",), ("n",))
    assert result.left_out == {
        "total": "only in the sink",
        "batch": "only in the sink",
        "sum": "only in the replay",
        "window_end": "only in the replay",
        "late_firing": "how a result came",
        "row_kind": "whether a result is withdrawn",
    }
    assert repr(result).splitlines() == [
        "1 row of a sink that keeps the last row of a key, 1 row of the replay: 1 equal, 0 differences",
        "compared by k: n",
        "not compared: total, batch (only in the sink); sum, window_end (only in the replay); "
        "late_firing (how a result came); row_kind (whether a result is withdrawn)",
    ]
    assert "compared by k: n" in result._repr_html_()
    both = sink.append_column("sum", pa.array([3]))
    assert compare(both, rows, keys="k", columns="n").left_out["sum"] == "not named"  # and no warning


def test_each_difference_of_a_sink_of_last_rows_is_explained() -> None:
    sink = [REPLAY[0], ("b", 0, 6, 0.3), REPLAY[3], ("e", 0, 9, 9.0)]
    result = compared(sink)
    assert explained(result) == [
        ("a", 0, "fired before", ["n", "mean"], 2, 3),
        ("b", 0, "another value", ["n", "mean"], 6, 5),
        ("e", 0, "only in the sink", None, 9, None),
        ("c", 10, "late", None, None, 1),
        ("d", 10, "only in the replay", None, None, 7),
    ]
    by = [row["by"] for row in result.to_arrow().to_pylist()]
    assert by[0] == {"n": 1.0, "mean": 0.5}
    assert by[1] == {"n": -1.0, "mean": pytest.approx(-0.2)}
    assert by[2:] == [None, None, None]
    assert result.to_arrow().to_pylist()[0]["found"]["late_firing"] is True
    assert result.equal == 1
    assert result.counts == {
        "another value": 1,
        "fired before": 1,
        "late": 1,
        "only in the sink": 1,
        "only in the replay": 1,
    }
    assert repr(result).splitlines()[:5] == [
        "4 rows of a sink that keeps the last row of a key, 6 rows of the replay: 1 equal, 5 differences",
        "compared by user, window_start: n, mean",
        "not compared: late_firing (how a result came)",
        "          1 another value: of a result that both sides have",
        "            user=b, window_start=0: sink n 6, mean 0.3; replay n 5, mean 0.1",
    ]
    assert repr(result).splitlines()[-6:] == [
        "          1 late: only in the replay, fired by late events",
        "            user=c, window_start=10: replay n 1, mean 1.0",
        "          1 only in the sink: the replay gives no such result",
        "            user=e, window_start=0: sink n 9, mean 9.0",
        "          1 only in the replay: the sink has no such result",
        "            user=d, window_start=10: replay n 7, mean 7.0",
    ]


def test_a_sink_that_keeps_all_rows_has_every_firing() -> None:
    assert compared(REPLAY).is_equal
    assert not compared(REPLAY).upserts
    lacks = compared([*REPLAY[1:], ("d", 10, 8, 8.0)], upserts=False)
    assert explained(lacks) == [
        ("a", 0, "fired before", None, None, 2),
        ("d", 10, "fired again", None, 8, None),
    ]
    late = compared([REPLAY[0], *REPLAY[2:]], upserts=False)
    assert explained(late) == [("a", 0, "late", None, None, 3)]
    twice = compared([REPLAY[0], *REPLAY])
    assert explained(twice) == [("a", 0, "fired before", None, 2, None)]
    another = compared([*REPLAY[:5], ("d", 10, 6, 7.0)], upserts=False)
    assert explained(another) == [("d", 10, "another value", ["n"], 6, 7)]


def test_numbers_with_fractions_are_equal_within_a_tolerance() -> None:
    close = [*LAST[:1], ("b", 0, 5, 0.1 + 1e-12), *LAST[2:]]
    assert compared(close).is_equal
    assert explained(compared(close, rel_tol=0)) == [("b", 0, "another value", ["mean"], 5, 5)]
    assert compared([*LAST[:1], ("b", 0, 5, 0.15), *LAST[2:]], abs_tol=0.1).is_equal
    odd = [("a", 0, 1, float("nan"), False), ("b", 0, 1, float("inf"), False), ("c", 0, 1, None, False)]
    assert compared(odd, odd).is_equal
    other = [("a", 0, 1, None), ("b", 0, 1, 1e308), ("c", 0, 1, float("nan"))]
    assert [row[3] for row in explained(compared(other, odd))] == [["mean"]] * 3


def test_numbers_of_any_size_are_subtracted_exactly() -> None:
    of_types = {
        pa.int64(): (2**60, 2**60 + 1, 1.0),
        pa.uint64(): (2**64 - 1, 0, -(2.0**64)),
        pa.decimal128(38, 2): (Decimal(f"{10**35}.01"), Decimal(10**35), -0.01),
        pa.decimal256(76, 2): (Decimal(3), Decimal(5), 2.0),
        pa.float16(): (1.5, 4.0, 2.5),
    }
    for kind, (expected, found, by) in of_types.items():
        sink, replay = (pa.table({"k": [1], "n": pa.array([value], kind)}) for value in (expected, found))
        (row,) = compare(sink, replay, keys="k").to_arrow().to_pylist()
        assert row["by"] == {"n": by}, kind


def test_columns_of_other_types_are_compared_by_value() -> None:
    sink = pa.table(
        {
            "k": pa.array([1], pa.int8()),
            "n": pa.array([2], pa.int32()),
            "t": pa.array([5], pa.timestamp("us")),
        }
    )
    replay = pa.table({"k": [1], "n": [2.0], "t": pa.array([0], pa.timestamp("ms"))})
    (row,) = compare(sink, replay, keys="k").to_arrow().to_pylist()
    assert row["columns"] == ["t"]
    zoned = replay.set_column(2, "t", pa.array([5], pa.timestamp("us", "Asia/Tokyo")))
    assert compare(sink, zoned, keys="k").is_equal
    assert compare(sink, zoned, keys=["k", "t"]).is_equal
    decimals = pa.table({"k": [1], "n": [Decimal("1.50")], "l": [[1, None]]})
    assert compare(decimals, decimals, keys="k").is_equal
    with pytest.raises(SchemaError, match="column 'n' is string in the sink and int64 in the replay"):
        compare(table([("a", "x")], "k", "n"), table([("a", 1)], "k", "n"), keys="k")


def test_integer_times_of_a_sink_are_told_how_a_replay_gives_such() -> None:
    sink = pa.table({"at": [0], "n": [1]})
    replay = pa.table({"at": pa.array([0], pa.timestamp("ms", "UTC")), "n": [1]})
    with pytest.raises(
        SchemaError, match=r"cannot be compared\. If the sink has milliseconds, give .*integer_times"
    ):
        compare(sink, replay, keys=["at"])


def test_structs_are_keys() -> None:
    keys = pa.array([{"a": 1, "b": "x"}, {"a": 1, "b": None}, None, {"a": 1, "b": "x"}])
    replay = pa.table({"k": keys, "window_start": [0, 0, 0, 1], "n": [1, 2, 3, 4]})
    sink = replay.set_column(2, "n", pa.array([1, 9, 3, 4])).slice(0, 3)
    assert compare(replay, replay, keys=["k", "window_start"]).is_equal
    result = compare(sink, replay, keys=["k", "window_start"])
    assert result.upserts
    assert [(row["k"], row["difference"]) for row in result.to_arrow().to_pylist()] == [
        ({"a": 1, "b": None}, "another value"),
        ({"a": 1, "b": "x"}, "only in the replay"),
    ]
    assert not compare(pa.concat_tables([sink, sink]), replay, keys=["k", "window_start"]).upserts
    assert not compare(pa.concat_tables([sink.slice(2), sink]), replay, keys="k").upserts


@pytest.mark.parametrize(
    "values",
    [pa.nulls(2), pa.array([(1, 2, 3), None], pa.month_day_nano_interval())],
    ids=lambda values: str(values.type),
)
def test_values_that_arrow_does_not_compare_are_compared(values: pa.Array) -> None:
    rows = pa.table({"k": [1, 2], "n": values})
    assert compare(rows, rows, keys="k").is_equal
    other = pa.table({"k": [1, 2], "n": pa.nulls(2, values.type)})
    assert compare(rows, other, keys="k").counts == ({"another value": 1} if values.null_count == 1 else {})
    with pytest.raises(SchemaError, match=r"key column 'n': .* cannot be a key"):
        compare(rows, rows, keys="n")


def test_a_value_without_room_in_the_type_of_both_sides_is_an_error_with_its_column() -> None:
    sink = pa.table({"k": [1], "n": [2**60 + 1]})
    with pytest.raises(
        DataError, match=r"column 'n' of the rows of the sink \(expected\) cannot be compared"
    ):
        compare(sink, pa.table({"k": [1], "n": [-1.0]}), keys="k")


@pytest.mark.parametrize("wrap", [lambda numbers: numbers, lambda numbers: wrapped(numbers, "struct")])
def test_unsigned_numbers_of_64_bits_are_keys_and_values_beside_signed_ones(wrap: Any) -> None:
    unsigned, signed = pa.array([2**64 - 1, 5], pa.uint64()), pa.array([-1, 5])
    sink, replay = (pa.table({"k": wrap(side), "n": [1, 2]}) for side in (unsigned, signed))
    for first, second, kinds in (
        (sink, replay, {"only in the sink": 1, "only in the replay": 1}),
        (replay, sink, {"only in the sink": 1, "only in the replay": 1}),
        (sink, sink, {}),
    ):
        assert compare(first, second, keys="k").counts == kinds
    values = (pa.table({"k": [1, 2], "n": wrap(side)}) for side in (unsigned, signed))
    result = compare(*values, keys="k")
    assert result.counts == {"another value": 1}
    assert result.to_arrow()["k"].to_pylist() == [1]


def wrapped(numbers: pa.Array, how: str) -> pa.Array:
    """Numbers as the only one of a nested value."""
    if how == "struct":
        return pa.StructArray.from_arrays([numbers], ["x"])
    offsets = pa.array(range(len(numbers) + 1), pa.int32())
    if how == "map":
        return pa.MapArray.from_arrays(offsets, pa.array(["a"] * len(numbers)), numbers)
    return pa.ListArray.from_arrays(offsets, numbers)


@pytest.mark.parametrize(
    "how", [["list"], ["struct"], ["map"], ["struct", "list"], ["list", "map", "struct"]]
)
def test_floats_within_other_values_are_compared_as_others_are(how: list[str]) -> None:
    nan, other_nan = float("nan"), -float("nan")

    def rows(*numbers: float | None) -> pa.Table:
        values = pa.array(numbers, pa.float64())
        for kind in how:
            values = wrapped(values, kind)
        return pa.table({"k": range(len(numbers)), "v": values})

    odd = rows(nan, float("inf"), None, 0.1, -0.0)
    assert compare(odd, odd, keys="k").is_equal
    assert compare(odd, rows(other_nan, float("inf"), None, 0.1 + 1e-12, 0.0), keys="k").is_equal
    assert compare(odd, rows(nan, float("inf"), None, 0.1 + 1e-12, -0.0), keys="k", rel_tol=0).counts == {
        "another value": 1
    }
    assert compare(odd, rows(nan, 1e308, nan, 0.2, 0.05), keys="k", abs_tol=0.1).counts == {
        "another value": 2
    }
    assert compare(odd, rows(0.0, nan, 0.0, nan, None), keys="k").counts == {"another value": 5}


def test_null_is_a_key_like_any_other() -> None:
    rows = [(None, 1), ("a", 2)]
    assert compare(table(rows, "k", "n"), table(rows, "k", "n"), keys="k").is_equal
    assert compare(table(rows[1:], "k", "n"), table(rows, "k", "n"), keys="k").counts == {
        "only in the replay": 1
    }


def test_what_windows_have_withdrawn_does_not_count() -> None:
    rows = [("a", 1, "+I"), ("a", 1, "-U"), ("a", 2, "+U"), ("b", 1, "+I"), ("b", 1, "-D")]
    found = table(rows, "k", "n", "row_kind")
    assert compare(table([("a", 2)], "k", "n"), found, keys="k").is_equal
    assert compare(table([("a", 1)], "k", "n"), found, keys="k").counts == {"fired before": 1}
    assert compare(table([("b", 1), ("a", 2)], "k", "n"), found, keys="k").counts == {"only in the sink": 1}
    all_rows = table([("a", 1), ("a", 2), ("b", 1)], "k", "n")
    assert compare(all_rows, found, keys="k").is_equal
    assert compare(found, found, keys="k").equal == 5
    assert compare(found.slice(0, 4), found, keys="k").counts == {"fired again": 1}


def test_nothing_equals_nothing() -> None:
    assert compared(REPLAY[:0] or [REPLAY[0]], REPLAY[:1]).is_equal
    empty = table(REPLAY).slice(0, 0)
    assert compare(empty, empty, keys="user").is_equal
    assert compare(empty, table(REPLAY), keys=["user", "window_start"]).counts == {
        "late": 1,
        "only in the replay": 4,
    }
    assert compare(table(REPLAY), empty, keys=["user", "window_start"]).counts == {"only in the sink": 6}


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"keys": "id"}, ConfigurationError, r"the rows of the sink \(expected\) have no column 'id'"),
        (
            {"columns": ["late_firing"]},
            ConfigurationError,
            r"the rows of the sink \(expected\) have no column 'late_firing'",
        ),
        ({"columns": []}, ConfigurationError, "columns names one column or several"),
        ({"columns": ["n", "n"]}, ConfigurationError, "columns names one column or several, each once"),
        (
            {"columns": "number"},
            ConfigurationError,
            r"the rows of the sink \(expected\) have no column 'number'",
        ),
        ({"keys": ["user", "window_start", "n", "mean"]}, ConfigurationError, "there is nothing to compare"),
        ({"rel_tol": -1.0}, ConfigurationError, "tolerances cannot be negative"),
        ({"rel_tol": float("nan")}, ConfigurationError, "tolerances cannot be negative"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    parameters: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        compared(REPLAY, **parameters)


def test_late_firings_may_be_compared_themselves() -> None:
    found = table([("a", 1, True)], "k", "n", "late_firing")
    parameters: dict[str, Any] = {"keys": "k", "columns": ["n", "late_firing"]}
    assert compare(found, found, **parameters).is_equal
    assert compare(found.slice(1), found, **parameters).counts == {"late": 1}


def test_keys_that_name_no_result_are_refused() -> None:
    rows = table([("a", number) for number in range(100)], "k", "n")
    with (
        patch.object(comparison, "MOST_PAIRS", 9_999),
        pytest.raises(
            DataError,
            match=r"100 rows of the sink and 100 of the replay have the key \{'k': 'a'\}\. Name columns as keys",
        ),
    ):
        compare(rows, rows, keys="k")
    with patch.object(comparison, "MOST_PAIRS", 10_000):
        assert compare(rows, rows, keys="k").is_equal


def model(expected: Rows, found: Rows, upserts: bool) -> Counter[tuple[Any, ...]]:
    """Kinds of differences by key, one key after the other."""
    kinds: Counter[tuple[Any, ...]] = Counter()
    for key in {row[0] for row in [*expected, *found]}:
        sink = [row[1] for row in expected if row[0] == key]
        firings = [(row[1], row[2]) for row in found if row[0] == key]
        values = [value for value, _ in firings]
        if upserts:
            if not firings:
                kinds[key, "only in the sink"] += 1
            elif not sink:
                kinds[key, "late" if all(late for _, late in firings) else "only in the replay"] += 1
            elif sink[0] != values[-1]:
                kinds[key, "fired before" if sink[0] in values else "another value"] += 1
            continue
        rest = list(firings)
        unmatched = []
        for value in sink:
            same = next((firing for firing in rest if firing[0] == value), None)
            if same is None:
                unmatched.append(value)
            else:
                rest.remove(same)
        pairs = min(len(unmatched), len(rest))
        kinds[key, "another value"] += pairs
        if len(unmatched) > pairs:
            kinds[key, "only in the sink" if not firings else "further expected"] += len(unmatched) - pairs
        for _, late in rest[pairs:]:
            kinds[key, "late" if late else "only in the replay" if not sink else "further found"] += 1
    return +kinds


keys = st.sampled_from(["a", "b", None])
numbers = st.integers(0, 2)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(keys, numbers), max_size=6),
    st.lists(st.tuples(keys, numbers, st.booleans()), max_size=6),
    st.booleans(),
)
def test_kinds_are_those_of_a_comparison_key_by_key(expected: Rows, found: Rows, upserts: bool) -> None:
    if upserts:
        expected = list(dict(expected).items())
    sink = pa.table(
        {
            "k": pa.array([row[0] for row in expected], pa.string()),
            "n": pa.array([row[1] for row in expected], pa.int64()),
        }
    )
    replay = pa.table(
        {
            "k": pa.array([row[0] for row in found], pa.string()),
            "n": pa.array([row[1] for row in found], pa.int64()),
            "late_firing": pa.array([row[2] for row in found], pa.bool_()),
        }
    )
    result = compare(sink, replay, keys="k", upserts=upserts)
    rows = result.to_arrow().to_pylist()
    further = {True: "further found", False: "further expected"}
    kinds = Counter(
        (
            row["k"],
            further[row["expected"] is None]
            if row["difference"] in ("fired before", "fired again") and not upserts
            else row["difference"],
        )
        for row in rows
    )
    assert kinds == model(expected, found, upserts)
    assert result.equal == len(expected) - sum(row["expected"] is not None for row in rows)
    assert sum(result.counts.values()) == len(rows)


@pytest.mark.parametrize("name", ["difference", "expected", "found", "columns", "by", "By"])
def test_a_key_with_the_name_of_a_column_of_differences_is_refused(name: str) -> None:
    rows = pa.table({name: [1], "n": [1]})
    with pytest.raises(ConfigurationError, match=f"Rename the key '{name}' on both sides"):
        compare(rows, rows, keys=name)


def test_a_column_that_comes_twice_is_refused() -> None:
    rows = pa.table({"k": [1], "n": [1]})
    twice = rows.append_column("n", rows["n"])
    with pytest.raises(ConfigurationError, match=r"the rows of the replay \(found\) have two columns 'n'"):
        compare(rows, twice, keys="k", upserts=True)


def test_columns_of_dictionaries_are_compared_by_their_values() -> None:
    rows = pa.table({"k": ["a", "b"], "n": ["x", "y"], "row_kind": ["+I", "-D"]})
    coded = pa.table({name: rows[name].dictionary_encode() for name in rows.column_names})
    sink = rows.select(["k", "n"]).slice(0, 1)
    for one, other in ((sink, coded), (coded.select(["k", "n"]).slice(0, 1), rows)):
        assert compare(one, other, keys="k").is_equal
