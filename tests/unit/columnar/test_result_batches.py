"""What a function gives, as batches with declared columns."""

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from flinkcore.columnar.stages import result_batches
from flinkcore.columnar.stages.result_batches import ResultBatches
from flinkcore.common import MIN_TIMESTAMP, Row, RowKind
from flinkcore.errors import UserCodeError

SCHEMA = pa.schema({"user": pa.string(), "n": pa.int64()})


def nothing(batch: pa.RecordBatch) -> None:
    pass


def results(schema: pa.Schema = SCHEMA, batch_bytes: int = 1 << 20) -> ResultBatches:
    return ResultBatches(
        "the output",
        schema,
        schema,
        lambda subject, timestamp: f"{subject!r} at {timestamp}",
        nothing,
        batch_bytes,
    )


def converted(*values: Any, schema: pa.Schema = SCHEMA) -> list[dict[str, Any]]:
    collected = results(schema)
    for value in values:
        collected.add(value, 5, 7)
    return pa.Table.from_batches(collected.take(), schema).to_pylist()


@pytest.mark.parametrize(
    "value",
    [
        ("ada", 1),
        ["ada", 1],
        {"n": 1, "user": "ada"},
        Row("ada", 1),
        Row(n=1, user="ada"),
        Row("user", "n")("ada", 1),
    ],
)
def test_a_row_comes_in_many_forms(value: Any) -> None:
    assert converted(value) == [{"user": "ada", "n": 1}]


@pytest.mark.parametrize(
    ("value", "change"),
    [
        (["ada", 1], lambda value: value.__setitem__(1, 2)),
        ({"n": 1, "user": "ada"}, lambda value: value.update(n=2)),
        (Row("ada", 1), lambda value: value.__setitem__(1, 2)),
        (Row(n=1, user="ada"), lambda value: value.__setitem__("n", 2)),
    ],
)
def test_a_row_is_taken_as_it_was_when_it_was_given(value: Any, change: Callable[[Any], Any]) -> None:
    collected = results()
    collected.add(value, 5, 7)
    change(value)
    collected.add(value, 5, 7)
    assert pa.Table.from_batches(collected.take()).to_pylist() == [
        {"user": "ada", "n": 1},
        {"user": "ada", "n": 2},
    ]


def test_what_is_in_a_row_is_taken_as_it_was_when_it_was_given() -> None:
    schema = pa.schema({"user": pa.string(), "pages": pa.list_(pa.string())})
    pages: list[str] = []
    collected = results(schema)
    for page in ("home", "cart"):
        pages.append(page)
        collected.add(("ada", pages), 5, 7)
    assert pa.Table.from_batches(collected.take())["pages"].to_pylist() == [["home"], ["home", "cart"]]


def test_a_schema_of_one_column_takes_bare_values() -> None:
    one = pa.schema({"n": pa.int64()})
    assert converted(1, (2,), [3], {"n": 4}, Row(5), Row(n=6), None, schema=one) == [
        {"n": n} for n in (1, 2, 3, 4, 5, 6, None)
    ]


@pytest.mark.parametrize(
    ("kind", "value"),
    [(pa.list_(pa.int64()), [1, 2]), (pa.struct({"a": pa.int64()}), {"a": 1}), (pa.list_(pa.int64()), [3])],
)
def test_one_nested_column_takes_the_value_itself(kind: pa.DataType, value: Any) -> None:
    schema = pa.schema({"x": kind})
    assert converted(value, Row(value), schema=schema) == [{"x": value}, {"x": value}]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (("ada",), "1 values for the 2 columns user, n"),
        (Row("ada", 1, 2), "3 values for the 2 columns"),
        (7, r"neither a Row nor a tuple, list or dict \(.*: return a list of results, or yield\);"),
        ({"user": "ada"}, "without the columns n;"),
        (
            {"user": "ada", "n": 1, "m": 2},
            "with the unknown columns m;",
        ),
        (Row(user="ada", m=2), "without the columns n; with the unknown columns m"),
        (("ada", "x"), r"'x' \(str\) in the column 'n', which is int64: "),
        (("ada", 1.5), r"1.5 \(float\) in the column 'n', which is int64: "),
        (("ada", 2**63), r"\(int\) in the column 'n', which is int64: "),
        ((5, 1), r"5 \(int\) in the column 'user', which is string: "),
    ],
)
def test_what_does_not_fit_is_named_with_its_subject(value: Any, message: str) -> None:
    with pytest.raises(UserCodeError, match=message) as failure:
        converted(("good", 1), value)
    assert str(failure.value).startswith("the output got ")
    assert " from 7 at 5: " in str(failure.value)
    assert str(failure.value).endswith(
        "; let the function give the declared columns (user: string, n: int64), or declare others"
    )


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.int64(), Decimal("19.99")),
        (pa.list_(pa.list_(pa.int8())), [[1], None, [2.5]]),
        (pa.timestamp("s"), datetime(2024, 1, 1, 0, 0, 0, 5)),
    ],
    ids=str,
)
def test_a_value_that_its_column_would_cut_is_refused_with_its_subject(kind: pa.DataType, value: Any) -> None:
    with pytest.raises(
        UserCodeError, match=r"from 7 at 5: .* in the column 'x', .*: it cannot hold .* exactly; let"
    ):
        converted(None, value, schema=pa.schema({"x": kind}))


def test_a_value_that_nests_too_much_is_refused_with_its_subject() -> None:
    value: Any = 1
    for _ in range(5_000):
        value = [value]
    with pytest.raises(
        UserCodeError, match="got a value from 7 at 5 that nests too many values within values; let"
    ):
        converted(value, schema=pa.schema({"x": pa.list_(pa.int64())}))


def test_encoded_runs_take_bare_values() -> None:
    kind = pa.run_end_encoded(pa.int32(), pa.int64())
    assert converted(1, 1, schema=pa.schema({"x": kind})) == [{"x": 1}, {"x": 1}]


def test_rows_other_than_insertions_are_refused() -> None:
    row = Row("ada", 1)
    row.set_row_kind(RowKind.UPDATE_BEFORE)
    with pytest.raises(UserCodeError, match="a row of the kind -U, but results are insertions only"):
        converted(row)


def test_none_is_refused_where_a_column_cannot_be_null() -> None:
    schema = pa.schema([pa.field("n", pa.int64(), nullable=False)])
    with pytest.raises(
        UserCodeError, match=r"None in the column 'n', which cannot be null; .* \(n: int64 not null\)"
    ):
        converted(1, None, schema=schema)


@pytest.mark.parametrize("kind", [pa.int64(), pa.timestamp("ms", "UTC")])
def test_timestamps_come_after_the_other_columns(kind: pa.DataType) -> None:
    collected = ResultBatches(
        "the output", SCHEMA, SCHEMA.append(pa.field("time", kind)), lambda *_: "", nothing, 1 << 20
    )
    for timestamp in (5, None, MIN_TIMESTAMP):
        collected.add(("ada", 1), timestamp, 7)
    (batch,) = collected.take()
    assert batch.column("time").cast(pa.int64()).to_pylist() == [5, None, None]
    assert collected.rows == 3


@pytest.mark.parametrize("value", [("u" * 1000, 1), {"user": "u" * 1000, "n": 1}, Row("u" * 1000, 1)])
def test_large_values_become_batches_of_few(value: Any) -> None:
    collected = results(batch_bytes=16_000)
    for _ in range(40):
        collected.add(value, 5, 7)
    batches = collected.take()
    assert max(batch.nbytes for batch in batches) <= 16_000
    assert sum(batch.num_rows for batch in batches) == 40
    assert len(batches) <= 5


def test_a_value_that_is_larger_than_a_batch_comes_alone() -> None:
    collected = results(batch_bytes=1)
    for n in range(3):
        collected.add(("ada", n), 5, 7)
    assert [batch.num_rows for batch in collected.take()] == [1, 1, 1]


def test_many_rows_become_batches_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_batches, "BATCH_ROWS", 3)
    collected = results()
    for n in range(8):
        collected.add(("ada", n), 5, 7)
    batches = collected.take()
    assert [batch.num_rows for batch in batches] == [3, 3, 2]
    assert [n for batch in batches for n in batch.column("n").to_pylist()] == list(range(8))
    assert collected.take() == []
