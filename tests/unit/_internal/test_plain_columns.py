"""Text in all of Arrow's layouts as plain columns, and what does not fit into one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from equipment.arrow_versions import DECODES_RUNS_OF_STRUCTS

from flinkcore._internal.arrow import plain_columns
from flinkcore._internal.arrow.plain_columns import fitting_pieces, plain_column, plain_type
from flinkcore.common import Duration, OutputTag, Time, WatermarkStrategy
from flinkcore.datastream import DataStream, KeyedProcessFunction, StreamExecutionEnvironment
from flinkcore.datastream.aggregates import collect, count, first, max_
from flinkcore.datastream.window import TumblingEventTimeWindows
from flinkcore.errors import ConfigurationError, DataError

LATE = OutputTag("late")
FAR = 2**31 + 7
TEXTS = ["b", None, "", "a", "\N{GRINNING FACE}" * 5, "b", "c" * 30, "a"]


def far_away(texts: list[str | None], arrow_type: pa.DataType) -> pa.Array:
    """A slice whose absolute offsets are beyond 2 GiB; of the bytes before, none is there."""
    plain = pa.array([None if text is None else text.encode() for text in texts], pa.large_binary())
    validity, offsets, data = plain.buffers()
    starts = np.frombuffer(offsets, np.int64)[: len(texts) + 1] + FAR
    # Nothing reads what lies before the first offset.
    shifted = pa.foreign_buffer(data.address - FAR, FAR + data.size, base=data)
    parts = [validity, pa.py_buffer(starts), shifted]
    return pa.Array.from_buffers(arrow_type, len(texts), parts, plain.null_count)


@pytest.mark.parametrize(
    ("large", "plain"), [(pa.large_string(), pa.string()), (pa.large_binary(), pa.binary())]
)
def test_a_slice_of_text_beyond_2_gib_is_taken_where_it_lies(large: pa.DataType, plain: pa.DataType) -> None:
    column = far_away(TEXTS, large)
    expected = pa.array(TEXTS).cast(plain)
    assert plain_column(column, plain).equals(expected)
    for start, length in ((0, 0), (1, 1), (3, 4), (8, 0)):
        piece = plain_column(column.slice(start, length), plain)
        piece.validate(full=True)
        assert piece.equals(expected.slice(start, length))


def with_views(encoded: pa.Array) -> pa.Array:
    """The same, with encoded values that are views."""
    if pa.types.is_dictionary(encoded.type):
        return pa.DictionaryArray.from_arrays(encoded.indices, encoded.dictionary.cast(pa.string_view()))
    return pa.RunEndEncodedArray.from_arrays(encoded.run_ends, encoded.values.cast(pa.string_view()))


LAYOUTS = {
    "large_string": lambda text: text.cast(pa.large_string()),
    "beyond_2_gib": lambda text: far_away(text.to_pylist(), pa.large_string()),
    "string_view": lambda text: text.cast(pa.string_view()),
    "dictionary": lambda text: text.dictionary_encode(),
    "large_dictionary": lambda text: text.cast(pa.large_string()).dictionary_encode(),
    "view_dictionary": lambda text: with_views(text.dictionary_encode()),
    "run_ends": lambda text: pc.run_end_encode(text),
    "view_run_ends": lambda text: with_views(pc.run_end_encode(text)),
    "sliced_view_run_ends": lambda text: with_views(pc.run_end_encode(pa.concat_arrays([text, text]))).slice(
        len(text)
    ),
    "sliced": lambda text: pa.concat_arrays([pa.array(["x", None]), text, pa.array(["y"])]).slice(
        2, len(text)
    ),
    "sliced_view": lambda text: (
        pa.concat_arrays([pa.array(["x", None]), text]).cast(pa.string_view()).slice(2)
    ),
    "chunked": lambda text: pa.chunked_array([text.slice(0, 3), text.slice(3)]),
}


def job(log: DataStream) -> tuple[Any, ...]:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(0))
    windows = (
        log.filter(pc.field("value") != "nothing")
        .assign_timestamps_and_watermarks(strategy)
        .key_by("key")
        .window(TumblingEventTimeWindows.of(Time.milliseconds(50)))
    )
    result = windows.side_output_late_data(LATE).aggregate(
        n=count(), most=max_("value"), first=first("value"), all=collect("value")
    )
    done = result.execute()
    return done.to_arrow(), done.get_side_output(LATE).to_arrow()


def table(text: Any) -> pa.Table:
    times = pa.array([0, 1, 2, 100, 3, 101, 102, 4])
    keys = pa.array(["k", "l", "k", "k", "l", "l", "k", "k"])
    return pa.table({"key": keys, "value": text, "split": text, "ts": times})


def log_of(rows: pa.Table, **columns: str) -> DataStream:
    env = StreamExecutionEnvironment().set_parallelism(1)
    env.get_config().set_auto_watermark_interval(1)
    return env.from_event_log(rows, timestamp="ts", **columns)


NO_NULLS = pa.array([text or "" for text in TEXTS])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_text_of_every_layout_gives_the_results_of_plain_text(layout: str) -> None:
    text = LAYOUTS[layout](NO_NULLS)
    expected = [*job(log_of(table(NO_NULLS))), *job(log_of(table(NO_NULLS), split="split"))]
    assert [*job(log_of(table(text))), *job(log_of(table(text), split="split"))] == expected
    as_keys = [
        job(log_of(table(column)).select("value", "ts", key=pc.field("split"))) for column in (text, NO_NULLS)
    ]
    assert as_keys[0] == as_keys[1]


@pytest.mark.parametrize(
    "made",
    [
        pc.field("value").cast(pa.string_view()),
        pc.field("value").cast(pa.dictionary(pa.int32(), pa.string())),
    ],
    ids=repr,
)
def test_computed_columns_of_every_layout_are_plain_text(made: pc.Expression) -> None:
    rows = table(NO_NULLS)
    assert job(log_of(rows).with_columns(key=made, value=made)) == job(
        log_of(rows).with_columns(key=pc.field("value"))
    )


def test_computed_text_may_be_large() -> None:
    large = pc.field("value").cast(pa.large_string())
    results, late = job(log_of(table(NO_NULLS)).with_columns(key=large, value=large))
    assert {results.schema.field(name).type for name in ("key", "most", "first")} == {pa.large_string()}
    assert results.schema.field("all").type.value_type == pa.large_string()
    assert late.num_rows == job(log_of(table(NO_NULLS)))[1].num_rows > 0


@pytest.mark.parametrize("layout", LAYOUTS)
def test_batches_with_more_text_than_a_column_holds_are_cut(
    layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = job(log_of(table(NO_NULLS), split="key"))
    text = LAYOUTS[layout](NO_NULLS)
    monkeypatch.setattr(plain_columns, "MOST_TEXT", 33)
    found = job(log_of(table(text), split="key"))
    assert found == expected


@pytest.mark.parametrize("layout", sorted(LAYOUTS.keys() - {"sliced", "chunked"}))
def test_a_single_text_that_no_column_holds_is_refused_by_name(
    layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_columns, "MOST_TEXT", 29)
    with pytest.raises(
        DataError, match=r"the table .*: a value of the column 'value' has 30 bytes, more than the 29"
    ):
        job(log_of(table(LAYOUTS[layout](NO_NULLS))))


def test_files_are_cut_likewise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = table(NO_NULLS.cast(pa.large_string()))
    pq.write_table(rows, tmp_path / "log.parquet")
    expected = job(log_of(rows))
    monkeypatch.setattr(plain_columns, "MOST_TEXT", 40)
    assert job(log_of(str(tmp_path / "log.parquet"))) == expected  # type: ignore[arg-type]


def test_pieces_have_all_rows_in_their_order() -> None:
    batch = pa.record_batch({"text": far_away(TEXTS, pa.large_string()), "row": pa.array(range(len(TEXTS)))})
    assert [piece.num_rows for piece in fitting_pieces(batch, ["text"], "here")] == [8]
    assert [piece.num_rows for piece in fitting_pieces(batch.slice(0, 0), ["text"], "here")] == [0]


class Named(pa.ExtensionType):
    """Text by another name, as uuid is binary."""

    def __init__(self, stored: pa.DataType) -> None:
        super().__init__(stored, "tests.named")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> "Named":
        return cls(storage_type)


class Told(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield ctx.get_current_key(), value.ts


@pytest.mark.parametrize(
    "declared",
    [
        pa.string_view(),
        pa.dictionary(pa.int32(), pa.string()),
        pa.run_end_encoded(pa.int32(), pa.string()),
        pa.large_string(),
        Named(pa.string()),
    ],
    ids=str,
)
def test_results_of_every_layout_go_to_further_operators(declared: pa.DataType) -> None:
    def followed(kind: pa.DataType) -> list[pa.Table]:
        columns = pa.schema([("key", kind), ("ts", pa.int64())])
        strategy = WatermarkStrategy.for_monotonous_timestamps()
        log = log_of(table(NO_NULLS)).assign_timestamps_and_watermarks(strategy)
        told = log.key_by("value").process(Told(), columns)
        windows = told.key_by("key").window(TumblingEventTimeWindows.of(Time.milliseconds(50)))
        jobs = [
            told.key_by("key").process(Told(), columns),
            windows.aggregate(n=count(), most=max_("key"), all=collect("key")),
        ]
        return [job.execute().to_arrow() for job in jobs]  # type: ignore[attr-defined]

    found, expected = followed(declared), followed(pa.string())
    assert found[0].schema.field("key").type == declared
    assert [table.to_pylist() for table in found] == [table.to_pylist() for table in expected]


def named(text: pa.Array) -> pa.Array:
    return pa.ExtensionArray.from_storage(Named(text.type), text)


WITHIN = {
    "struct": lambda column: pa.StructArray.from_arrays([column], ["name"]),
    "list": lambda column: pa.ListArray.from_arrays(pa.array(range(len(column) + 1), pa.int32()), column),
    "large_list": lambda column: pa.LargeListArray.from_arrays(
        pa.array(range(len(column) + 1), pa.int64()), column
    ),
    "fixed_size_list": lambda column: pa.FixedSizeListArray.from_arrays(column, 1),
    "list_view": lambda column: pa.ListViewArray.from_arrays(
        pa.array(range(len(column)), pa.int32()), pa.array([1] * len(column), pa.int32()), column
    ),
    "large_list_view": lambda column: pa.LargeListViewArray.from_arrays(
        pa.array(range(len(column)), pa.int64()), pa.array([1] * len(column), pa.int64()), column
    ),
    "map": lambda column: pa.MapArray.from_arrays(
        pa.array(range(len(column) + 1), pa.int32()), pa.array(["k"] * len(column)), column
    ),
    "union": lambda column: pa.UnionArray.from_sparse(
        pa.array([5] * len(column), pa.int8()), [column], ["name"], [5]
    ),
    "dictionary": lambda column: pa.DictionaryArray.from_arrays(
        pa.array(range(len(column)), pa.int32()), column
    ),
    "run_ends": lambda column: pa.RunEndEncodedArray.from_arrays(
        pa.array(range(1, len(column) + 1), pa.int32()), column
    ),
}


ENCODED = {
    "extension": named,
    "string_view": LAYOUTS["string_view"],
    "dictionary": LAYOUTS["dictionary"],
    "view_run_ends": LAYOUTS["view_run_ends"],
    "of_structs": lambda text: pa.DictionaryArray.from_arrays(
        pa.array(range(len(text)), pa.int8()), pa.StructArray.from_arrays([named(text)], ["name"])
    ),
}


@pytest.mark.parametrize("layout", ["string_view", "dictionary", "large_string", "sliced"])
def test_extension_types_are_their_storage(layout: str) -> None:
    text = LAYOUTS[layout](NO_NULLS)
    assert plain_column(named(text), pa.string()).equals(NO_NULLS)
    assert job(log_of(table(named(text)), split="split")) == job(log_of(table(NO_NULLS), split="split"))


@pytest.mark.parametrize(
    ("within", "encoded"),
    [
        pytest.param(
            within,
            encoded,
            marks=DECODES_RUNS_OF_STRUCTS if (within, encoded) == ("run_ends", "of_structs") else (),
        )
        for within in WITHIN
        for encoded in ENCODED
    ],
)
def test_what_is_within_others_is_plain_too(within: str, encoded: str) -> None:
    make = WITHIN[within]
    column = make(ENCODED[encoded](NO_NULLS))
    target = plain_type(column.type)
    values = WITHIN["struct"](NO_NULLS) if encoded == "of_structs" else NO_NULLS
    assert target == plain_type(make(values).type)
    for start, length in ((0, len(column)), (1, 5), (3, 0)):
        piece = column.slice(start, length)
        plain = plain_column(piece, target)
        plain.validate(full=True)
        assert plain.type == target
        assert plain.to_pylist() == piece.to_pylist()


@pytest.mark.parametrize("within", sorted(WITHIN.keys() - {"union", "dictionary", "run_ends"}))
def test_nulls_of_nested_columns_stay(within: str) -> None:
    column = WITHIN[within](NO_NULLS.cast(pa.string_view()))
    rows = [None if number % 3 == 1 else row for number, row in enumerate(column.to_pylist())]
    with_nulls = pa.array(rows, column.type)
    for at in range(len(rows)):
        assert plain_column(with_nulls.slice(at), plain_type(column.type)).to_pylist() == rows[at:]


@pytest.mark.parametrize("within", WITHIN)
def test_views_of_nulls_within_others_may_be_anything(within: str) -> None:
    column = WITHIN[within](with_forged_null(pa.string_view()))
    plain = plain_column(column, plain_type(column.type))
    assert plain.to_pylist() == WITHIN[within](pa.array(["b", None, "c" * 30, None])).to_pylist()


@pytest.mark.parametrize(("views", "lists"), [(pa.list_view, pa.list_), (pa.large_list_view, pa.large_list)])
def test_views_of_lists_are_lists(views: Any, lists: Any) -> None:
    offset = pa.int32() if views is pa.list_view else pa.int64()
    values = pa.array(["a", "b", "c", "d"], pa.string_view())
    bounds = [pa.array(numbers, offset) for numbers in ([2, 0, 9, 1, 0], [2, 3, 7, 0, 1])]
    valid = pa.array([True, True, False, True, True]).buffers()[1]
    buffers = [valid, bounds[0].buffers()[1], bounds[1].buffers()[1]]
    column = pa.Array.from_buffers(views(pa.string_view()), 5, buffers, 1, 0, [values])
    expected = [["c", "d"], ["a", "b", "c"], None, [], ["a"]]
    assert plain_type(column.type) == lists(pa.string())
    for start, length in ((0, 5), (1, 2), (2, 2), (4, 1), (5, 0)):
        plain = plain_column(column.slice(start, length), lists(pa.string()))
        plain.validate(full=True)
        assert plain.to_pylist() == expected[start:][:length]


def in_dense_union(column: pa.Array) -> pa.Array:
    places = pa.array(range(len(column)), pa.int32())
    return pa.UnionArray.from_dense(pa.array([0] * len(column), pa.int8()), places, [column])


TWICE = {
    f"{outer} of {inner}": (lambda text, outer=outer, inner=inner: WITHIN[outer](WITHIN[inner](text)))
    for outer in ("dictionary", "run_ends", "struct")
    for inner in ("dictionary", "run_ends")
}


@pytest.mark.parametrize("within", [*WITHIN, *TWICE, "dense_union"])
def test_text_within_others_is_counted_for_what_a_batch_has_of_it(
    within: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = named(pa.array(["x" * 20] * 6)) if within in TWICE else pa.array(["x" * 20] * 6, pa.string_view())
    column = {**WITHIN, **TWICE, "dense_union": in_dense_union}[within](text)
    monkeypatch.setattr(plain_columns, "MOST_TEXT", 45)
    batch = pa.record_batch({"text": column})
    pieces = list(fitting_pieces(batch, ["text"], "here"))
    assert sum(piece.num_rows for piece in pieces) == 6
    assert max(piece.num_rows for piece in pieces) <= 2
    for piece in pieces:
        plain = plain_column(piece.column("text"), plain_type(column.type))
        plain.validate(full=True)
        assert plain.to_pylist() == piece.column("text").to_pylist()
        if within == "dense_union":
            assert len(plain.field(0)) == piece.num_rows


def test_views_of_lists_that_share_many_values_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = [pa.array(numbers, pa.int32()) for numbers in ([0] * 90, [7] * 90)]
    column = pa.ListViewArray.from_arrays(*bounds, pa.array(range(7)))
    assert plain_column(column, pa.list_(pa.int64())).to_pylist() == [[*range(7)]] * 90
    monkeypatch.setattr(plain_columns, "MOST_SHARED", 600)
    with pytest.raises(DataError, match=r"views of lists share their values: 630 are made of 7; write"):
        plain_column(column, pa.list_(pa.int64()))


def test_empty_unions_may_come_without_buffers() -> None:
    for mode in ("sparse", "dense"):
        kind = pa.union([pa.field("a", pa.string_view())], mode)
        buffers = [None, None, None][: 2 if mode == "sparse" else 3]
        column = pa.Array.from_buffers(kind, 0, buffers, 0, 0, [pa.array([], pa.string_view())])
        assert len(plain_column(column, plain_type(kind))) == 0


def test_dense_unions_keep_their_places() -> None:
    texts = pa.array(["a", "b"], pa.string_view())
    column = pa.UnionArray.from_dense(
        pa.array([1, 0, 1, 1], pa.int8()), pa.array([0, 0, 1, 1], pa.int32()), [pa.array([7]), texts]
    )
    for at in range(4):
        plain = plain_column(column.slice(at), plain_type(column.type))
        plain.validate(full=True)
        assert plain.to_pylist() == ["a", 7, "b", "b"][at:]


def test_large_text_within_others_stays_large() -> None:
    column = pa.array([{"name": "a"}, None], pa.struct({"name": pa.large_string()}))
    assert plain_column(column, plain_type(column.type)) is column


def test_extension_types_of_files_and_of_structs_as_keys_are_their_storage(tmp_path: Path) -> None:
    rows = table(NO_NULLS)
    key = pa.StructArray.from_arrays([named(rows["value"].combine_chunks())], ["name"])
    pq.write_table(rows.set_column(0, "key", key), tmp_path / "1.parquet")
    plain = pa.StructArray.from_arrays([rows["value"].combine_chunks()], ["name"])
    assert job(log_of(tmp_path / "1.parquet")) == job(log_of(rows.set_column(0, "key", plain)))


@pytest.mark.parametrize(
    "declared",
    [
        pa.struct({"name": Named(pa.string())}),
        pa.sparse_union([pa.field("name", pa.string())]),
        pa.dictionary(pa.int8(), pa.list_(pa.int8())),
    ],
    ids=lambda declared: declared.id,
)
def test_columns_that_pyarrow_cannot_make_are_refused_when_they_are_declared(declared: pa.DataType) -> None:
    with pytest.raises(ConfigurationError, match=r"the column 'b' of type .*, which pyarrow cannot make"):
        log_of(table(NO_NULLS)).key_by("key").process(Told(), pa.schema({"a": pa.string(), "b": declared}))


@pytest.mark.parametrize("arrow_type", [pa.string_view(), pa.binary_view()], ids=str)
def test_views_of_nulls_may_be_anything(arrow_type: pa.DataType) -> None:
    texts = ["b", None, "c" * 30, None]
    column = with_forged_null(arrow_type)
    target = plain_type(arrow_type)
    for at in range(4):
        assert plain_column(column.slice(at), target).equals(pa.array(texts, target).slice(at))
    encoded = pa.DictionaryArray.from_arrays(pa.array([3, 2, 1, 0], pa.int8()), column)
    assert plain_column(encoded, target).equals(pa.array([None, "c" * 30, None, "b"], target))


def with_forged_null(arrow_type: pa.DataType) -> pa.Array:
    """Views of b, null, thirty c and null; what the view of a null says is nothing that Arrow could follow."""
    validity, views, *data = pa.array(["b", None, "c" * 30, None], arrow_type).buffers()
    forged = np.frombuffer(views, np.int32).reshape(-1, 4).copy()
    forged[1] = (-(1 << 27), 0, 7, -1)
    return pa.Array.from_buffers(arrow_type, 4, [validity, pa.py_buffer(forged), *data])
