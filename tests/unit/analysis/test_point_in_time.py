"""`as_of` answers questions with what a live job would have served."""

from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore.analysis import as_of
from flinkcore.common import Duration
from flinkcore.errors import ConfigurationError, DataError, SchemaError

FEATURES = pa.table(
    {
        "user": ["a", "a", "b", "a", "a"],
        "window_end": [10, 20, 20, 10, 30],
        "n": [1, 2, 3, 4, 5],
        "emitted_at": [12, 22, 22, 25, None],
    }
)


def asked(*questions: tuple[Any, Any]) -> pa.Table:
    users, times = zip(*questions, strict=True)
    return pa.table({"user": pa.array(users, pa.string()), "at": pa.array(times, pa.int64())})


def answers(questions: pa.Table, features: Any = FEATURES, **parameters: Any) -> list[Any]:
    answered = as_of(questions, features, **{"at": "at", "keys": "user", **parameters})
    assert answered.select(questions.column_names).equals(questions)
    return list(answered.column("n").to_pylist())


def test_a_question_is_answered_by_what_was_known_then() -> None:
    questions = asked(
        ("a", 11), ("a", 12), ("a", 24), ("b", 24), ("a", 25), ("c", 99), (None, 99), ("a", None)
    )
    assert answers(questions) == [None, 1, 2, 3, 4, None, None, None]
    assert answers(questions, allow_exact_matches=False) == [None, None, 2, 3, 2, None, None, None]


def test_a_correction_of_an_older_window_does_not_take_the_place_of_a_newer_one() -> None:
    assert answers(asked(("a", 12), ("a", 25)), latest_by="window_end") == [1, 2]


def test_what_was_emitted_together_counts_in_its_order() -> None:
    together = pa.table({"user": ["a"] * 3, "n": [3, 1, 2], "emitted_at": [5, 5, 5]})
    assert answers(asked(("a", 5)), together) == [2]


def test_features_are_served_only_so_long() -> None:
    questions = asked(("b", 22), ("b", 32), ("b", 33))
    assert answers(questions, max_age=10) == [3, 3, None]
    assert answers(questions, max_age=Duration.of_millis(0)) == [3, None, None]
    ends = asked(("b", 2**63 - 1), ("b", -(2**63)))
    assert answers(ends, max_age=2**62) == [None, None]
    assert answers(ends, allow_exact_matches=False) == [3, None]
    first = pa.table({"user": ["b"], "n": [9], "emitted_at": [-(2**63)]})
    assert answers(ends, first) == [9, 9]
    assert answers(ends, first, allow_exact_matches=False) == [9, None]
    assert answers(ends, first, max_age=2**63 - 1) == [None, 9]


def test_what_is_withdrawn_is_not_served() -> None:
    rows = [("+I", 1, 10), ("-U", 1, 20), ("+U", 2, 20), ("-D", 2, 30), ("+I", 3, 40)]
    kinds, numbers, times = zip(*rows, strict=True)
    table = pa.table({"user": ["a"] * 5, "n": numbers, "emitted_at": times, "row_kind": kinds})
    questions = asked(*(("a", at) for at in (9, 10, 20, 30, 40)))
    assert answers(questions, table) == [None, 1, 2, None, 3]
    assert "row_kind" not in as_of(questions, table, at="at", keys="user").column_names


def test_further_features_are_joined_by_a_further_call() -> None:
    first = as_of(asked(("a", 23)), FEATURES, at="at", keys=["user"], columns=["n"], prefix="hourly_")
    both = as_of(first, FEATURES, at="at", keys=["user"], columns=["n", "emitted_at"], prefix="daily_")
    assert both.to_pylist() == [{"user": "a", "at": 23, "hourly_n": 2, "daily_n": 2, "daily_emitted_at": 22}]


def test_times_of_any_type_are_instants() -> None:
    moment = datetime(2001, 1, 1, tzinfo=timezone.utc)
    table = pa.table(
        {"user": ["a"], "n": [1], "emitted_at": pa.array([moment.replace(tzinfo=None)], pa.timestamp("ms"))}
    )
    micros = int(moment.timestamp()) * 1_000_000
    for offset, answer in ((-1, None), (0, 1), (1, 1)):
        at = pa.array([micros + offset], pa.timestamp("us", "Asia/Tokyo"))
        questions = pa.table({"user": ["a"], "at": at})
        assert answers(questions, table) == [answer]
        assert answers(questions, table, allow_exact_matches=False) == [answer if offset else None]
    assert answers(pa.table({"user": ["a"], "at": [moment.date()]}), table) == [1]


def test_keys_of_one_kind_are_equal_by_value() -> None:
    table = pa.table({"user": pa.array([1, 300], pa.int16()), "n": [1, 2], "emitted_at": [0, 0]})
    questions = pa.table({"user": pa.array([300, 2, 70_000], pa.int64()), "at": [0] * 3})
    assert answers(questions, table) == [2, None, None]
    assert answers(pa.table({"user": pa.nulls(1), "at": [0]}), table) == [None]
    moment = pa.array([7_000], pa.timestamp("ms", "UTC"))
    elsewhere = moment.cast(pa.timestamp("us", "Asia/Tokyo"))
    hashes, numbers = pa.array([2**64 - 1, 5], pa.uint64()), pa.array([-1, 5])
    for asked_for, known in ((elsewhere, moment), (hashes, numbers), (numbers, hashes)):
        expected = [None] * (len(known) - 1) + [len(known) - 1]
        of_keys = pa.table({"user": known, "n": range(len(known)), "emitted_at": [0] * len(known)})
        assert answers(pa.table({"user": asked_for, "at": [0] * len(known)}), of_keys) == expected
        in_structs = of_keys.set_column(0, "user", pa.StructArray.from_arrays([known], ["of"]))
        questions = pa.StructArray.from_arrays([asked_for], ["of"])
        assert answers(pa.table({"user": questions, "at": [0] * len(known)}), in_structs) == expected


@pytest.mark.parametrize(
    ("question", "feature"),
    [
        (pa.array(["1"]), pa.array([1])),
        (pa.array([1.0]), pa.array([1])),
        (pa.array([True]), pa.array([1])),
        (pa.array(["a"]), pa.array([b"a"])),
        (pa.array([0], pa.timestamp("us")), pa.array([0], pa.timestamp("us", "UTC"))),
        (pa.array([0], pa.date32()), pa.array([0], pa.timestamp("us"))),
        (pa.array([[1]]), pa.array([[1]])),
        (pa.array([{"a": 1}]), pa.array([{"b": 1}])),
        (pa.nulls(1), pa.nulls(1)),
    ],
    ids=lambda array: str(array.type),
)
def test_keys_of_different_kinds_are_refused(question: pa.Array, feature: pa.Array) -> None:
    table = pa.table({"user": feature, "n": [1], "emitted_at": [0]})
    with pytest.raises(SchemaError, match=r"the key 'user' is .* in the questions and .* in the features"):
        answers(pa.table({"user": question, "at": [0]}), table)


def test_columns_of_dictionaries_and_views_are_their_values() -> None:
    table = pa.table({"user": ["a", "a"], "end": ["2", "1"], "n": [1, 2], "emitted_at": [0, 1]})
    coded = table.set_column(0, "user", table["user"].dictionary_encode())
    coded = coded.set_column(1, "end", table["end"].cast(pa.string_view()))
    questions = pa.table({"user": pa.array(["a"]).dictionary_encode(), "at": [1]})
    for features in (table, coded):
        answered = as_of(questions, features, at="at", keys="user", latest_by="end")
        assert answered.to_pylist() == [{"user": "a", "at": 1, "end": "2", "n": 1, "emitted_at": 0}]


def test_nothing_is_known_of_no_features_and_nothing_is_asked_by_no_questions() -> None:
    assert answers(asked(("a", 12)), FEATURES.slice(0, 0)) == [None]
    assert answers(asked(("a", 12)).slice(1)) == []
    assert answers(asked(("a", 12)).slice(1), FEATURES.slice(0, 0), latest_by="window_end") == []


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"at": "time"}, ConfigurationError, "the questions have no column 'time'"),
        ({"keys": "id"}, ConfigurationError, "the questions have no column 'id'"),
        ({"keys": []}, ConfigurationError, "keys names one column or several"),
        ({"emitted_at": "known"}, ConfigurationError, r"no column 'known'.*\.with_emitted_at\(\)"),
        ({"latest_by": "end"}, ConfigurationError, "the features have no column 'end'"),
        ({"max_age": -1}, ConfigurationError, "max_age cannot be negative"),
        ({"features": 3}, ConfigurationError, "features are a pyarrow.Table.*flinkcore.spark"),
        (
            {"features": FEATURES.append_column("at", FEATURES.column("n"))},
            ConfigurationError,
            "Give a prefix",
        ),
        ({"emitted_at": "user"}, SchemaError, "time column 'user' is string: a time is a timestamp, a date"),
        ({"columns": ["n", "n"]}, ConfigurationError, "columns names one column or several, each once"),
        ({"columns": "number"}, ConfigurationError, "the features have no column 'number'"),
        (
            {"features": FEATURES.append_column("n", FEATURES.column("n"))},
            ConfigurationError,
            "the features have two columns 'n'",
        ),
        (
            {
                "features": FEATURES.append_column("pair", pa.array([{"x": 1}] * len(FEATURES))),
                "latest_by": "pair",
            },
            SchemaError,
            "latest_by column 'pair' is struct<x: int64>",
        ),
    ],
)
def test_what_cannot_be_answered_is_refused(
    parameters: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        answers(asked(("a", 12)), **{"features": FEATURES, **parameters})


def test_a_table_of_questions_with_a_column_twice_is_refused() -> None:
    questions = asked(("a", 12))
    with pytest.raises(ConfigurationError, match="the questions have two columns 'at'"):
        as_of(questions.append_column("at", questions["at"]), FEATURES, at="at", keys="user")


def test_times_that_do_not_fit_are_refused() -> None:
    far = FEATURES.set_column(3, "emitted_at", pa.array([2**62] * 5, pa.timestamp("s")))
    with pytest.raises(DataError, match="does not fit into 64 bits of milliseconds"):
        answers(asked(("a", 12)), far)


def test_texts_are_no_times() -> None:
    questions = pa.table({"user": ["a"], "at": ["2001-01-01"]})
    with pytest.raises(SchemaError, match="time column 'at' is string: a time is"):
        answers(questions)


def served(question: Any, features: list[Any], latest: bool, strict: bool, max_age: int | None) -> Any:
    """What a store serves that takes the rows in as they are emitted."""
    user, at = question
    found = None
    for number, (key, end, kind, emitted) in sorted(
        enumerate(features), key=lambda row: (row[1][3] or 0, row[0])
    ):
        if key != user or emitted is None or emitted > at or (emitted == at and strict):
            continue
        if not latest or found is None or end >= found[1]:
            found = number, end, kind, emitted
    if found is None or found[2] in ("-U", "-D") or (max_age is not None and at - found[3] > max_age):
        return None
    return found[0]


users = st.sampled_from(["a", "b"])
times = st.integers(0, 6)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(users, times), max_size=6),
    st.lists(
        st.tuples(users, times, st.sampled_from(["+I", "+U", "-U", "-D"]), st.one_of(times, st.none())),
        max_size=12,
    ),
    st.booleans(),
    st.booleans(),
    st.one_of(st.none(), st.integers(0, 4)),
)
def test_answers_are_those_of_a_store_that_is_written_row_by_row(
    questions: list[Any], features: list[Any], latest: bool, strict: bool, max_age: int | None
) -> None:
    schema = {"user": pa.string(), "end": pa.int64(), "row_kind": pa.string(), "emitted_at": pa.int64()}
    columns = [list(column) for column in zip(*features, strict=True)] or [[]] * 4
    table = pa.table(
        {name: pa.array(column, kind) for (name, kind), column in zip(schema.items(), columns, strict=True)}
    )
    table = table.append_column("n", pa.array(range(len(features)), pa.int64()))
    users, at = ([question[part] for question in questions] for part in (0, 1))
    found = answers(
        pa.table({"user": pa.array(users, pa.string()), "at": pa.array(at, pa.int64())}),
        table,
        columns=["n"],
        latest_by="end" if latest else None,
        allow_exact_matches=not strict,
        max_age=max_age,
    )
    assert found == [served(question, features, latest, strict, max_age) for question in questions]


NS = {"ms": 1_000_000, "us": 1_000, "ns": 1}
units = st.sampled_from(sorted(NS))
moments = st.one_of(st.integers(-2, 2), st.integers(-2_002, 2_002), st.integers(-1_000_001, 1_000_001))


@settings(max_examples=150, deadline=None)
@given(
    st.tuples(units, st.lists(moments, min_size=1, max_size=6)),
    st.tuples(units, st.lists(moments, max_size=8)),
    st.booleans(),
    st.one_of(st.none(), st.integers(0, 2)),
)
def test_times_of_any_unit_are_compared_to_the_nanosecond(
    questions: tuple[str, list[int]], features: tuple[str, list[int]], strict: bool, max_age: int | None
) -> None:
    (unit, at), (feature_unit, emitted) = questions, features
    table = pa.table(
        {
            "user": pa.array(["a"] * len(emitted), pa.string()),
            "n": pa.array(range(len(emitted)), pa.int64()),
            "emitted_at": pa.array(emitted, pa.timestamp(feature_unit)),
        }
    )
    found = answers(
        pa.table({"user": ["a"] * len(at), "at": pa.array(at, pa.timestamp(unit))}),
        table,
        allow_exact_matches=not strict,
        max_age=max_age,
    )
    rows = [("a", 0, "+I", time * NS[feature_unit]) for time in emitted]
    age = None if max_age is None else max_age * NS["ms"]
    assert found == [served(("a", time * NS[unit]), rows, False, strict, age) for time in at]
