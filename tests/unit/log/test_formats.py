"""File discovery, formats, schemas and chunks."""

import gzip
import json
import pickle
import re
import sys
from datetime import datetime

import duckdb
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from equipment.arrow_versions import READS_NULL_FIXED_LISTS
from pyarrow import fs

from flinkcore._internal.io.stores import stores_of
from flinkcore.errors import ConfigurationError, DataError, SchemaError, SourceError
from flinkcore.log.files.log_files import discover_files
from flinkcore.log.formats.columnar_formats import check_statistics
from flinkcore.log.sources.log_sources import LogFiles, TableSource

ROWS = 1000


def events(start=0, rows=ROWS):
    numbers = range(start, start + rows)
    return pa.table(
        {
            "ts": pa.array(list(numbers), pa.int64()),
            "user": pa.array([f"u{n % 7}" for n in numbers]),
            "price": pa.array([n / 4 for n in numbers], pa.float64()),
        }
    )


def write_json(table, path):
    data = "".join(json.dumps(row) + "\n" for row in table.to_pylist()).encode()
    path.write_bytes(gzip.compress(data) if path.name.endswith(".gz") else data)


def write_csv(table, path):
    if path.name.endswith(".gz"):
        with pa.CompressedOutputStream(str(path), "gzip") as sink:
            pacsv.write_csv(table, sink)
    else:
        pacsv.write_csv(table, str(path))


def write_ipc(table, path, opener=pa.ipc.new_file):
    with pa.OSFile(str(path), "wb") as sink, opener(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=100)


WRITERS = {
    "log.parquet": lambda table, path: pq.write_table(table, path, row_group_size=100),
    "log.pq": pq.write_table,
    "log.arrow": write_ipc,
    "log.arrows": lambda table, path: write_ipc(table, path, pa.ipc.new_stream),
    "log.ipc": lambda table, path: write_ipc(table, path, pa.ipc.new_stream),
    "log.feather": lambda table, path: pyarrow.feather.write_feather(table, str(path), compression="lz4"),
    "log.orc": lambda table, path: pa.orc.write_table(table, str(path)),
    "log.csv": write_csv,
    "log.csv.gz": write_csv,
    "log.json": write_json,
    "log.jsonl": write_json,
    "log.ndjson.gz": write_json,
}


def read_all(source, target=1, columns=None, batch_rows=1 << 17):
    batches = [batch for chunk in source.chunks(target) for batch in chunk.read(columns, batch_rows)]
    names = source.schema.names if columns is None else columns
    return pa.Table.from_batches(batches, pa.schema([source.schema.field(name) for name in names]))


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_rows(tmp_path, name):
    table = events()
    WRITERS[name](table, tmp_path / name)
    source = LogFiles.discover(tmp_path / name)
    assert source.schema == table.schema
    assert read_all(source) == table


@pytest.mark.parametrize("name", WRITERS)
def test_columns_come_in_the_order_asked_for_and_no_others(tmp_path, name):
    table = events()
    WRITERS[name](table, tmp_path / name)
    assert read_all(LogFiles.discover(tmp_path / name), columns=["price", "ts"]) == table.select(
        ["price", "ts"]
    )


@pytest.mark.parametrize("name", ["log.parquet", "log.arrow"])
@pytest.mark.parametrize("target", [1, 2, 3, 7, 10, 64])
def test_chunks_cut_by_pieces_give_the_rows_of_the_whole(tmp_path, name, target):
    table = events()
    WRITERS[name](table, tmp_path / name)
    source = LogFiles.discover(tmp_path / name)
    chunks = source.chunks(target)
    assert len(chunks) == min(target, 10)
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    assert read_all(source, target).combine_chunks() == table


def test_parquet_chunks_know_their_rows_and_where_they_start(tmp_path):
    WRITERS["log.parquet"](events(), tmp_path / "log.parquet")
    chunks = LogFiles.discover(tmp_path / "log.parquet").chunks(3)
    assert [(chunk.first_row, chunk.rows) for chunk in chunks] == [(0, 400), (400, 300), (700, 300)]
    assert chunks[1].label == f"{tmp_path}/log.parquet (row groups 4-6)"
    assert chunks[1].row_name(5) == f"row 405 (from 0) of {tmp_path}/log.parquet"


def write_stripes(table, path, rows):
    """Write a file with a stripe for about so many rows: the writer looks at the size after each batch."""
    with pa.orc.ORCWriter(str(path), stripe_size=1, batch_size=rows, compression="zstd") as writer:
        writer.write(table)


def test_orc_is_cut_into_stripes_that_give_the_rows_of_the_whole(tmp_path):
    write_stripes(events(rows=40_000), tmp_path / "log.orc", 1_000)
    source = LogFiles.discover(tmp_path / "log.orc")
    chunks = source.chunks(3)
    assert [chunk.label.partition(" (")[2].split()[0] for chunk in chunks] == ["stripes"] * 3
    assert [chunk.first_row for chunk in chunks] == [None] * 3
    assert read_all(source, 3).combine_chunks() == events(rows=40_000)
    assert (
        read_all(source, 3, columns=["user"])["user"].to_pylist() == events(rows=40_000)["user"].to_pylist()
    )


def test_orc_files_whose_columns_differ_are_one_log(tmp_path):
    pa.orc.write_table(pa.table({"ts": [1], "n": pa.array([1], pa.int32())}), str(tmp_path / "1.orc"))
    pa.orc.write_table(pa.table({"n": [2.5], "ts": [2], "new": ["x"]}), str(tmp_path / "2.orc"))
    source = LogFiles.discover(tmp_path)
    assert source.schema == pa.schema({"ts": pa.int64(), "n": pa.float64(), "new": pa.string()})
    assert read_all(source).to_pylist() == [
        {"ts": 1, "n": 1.0, "new": None},
        {"ts": 2, "n": 2.5, "new": "x"},
    ]
    assert read_all(source, columns=["new"])["new"].to_pylist() == [None, "x"]


def test_times_of_orc_are_local_or_instants(tmp_path):
    at = [datetime(2024, 1, 31, 12, 0, 0, 5_000), None, datetime(1969, 12, 31, 23, 59, 59)]
    table = pa.table(
        {"local": pa.array(at, pa.timestamp("us")), "utc": pa.array(at, pa.timestamp("us", "UTC"))}
    )
    pa.orc.write_table(table, str(tmp_path / "a.orc"))
    source = LogFiles.discover(tmp_path / "a.orc")
    assert source.schema.types == [pa.timestamp("ns"), pa.timestamp("ns", "UTC")]
    assert read_all(source).cast(table.schema) == table


def test_a_time_that_arrow_does_not_read_from_orc_says_what_to_do(tmp_path):
    table = pa.table({"ts": [1], "until": pa.array([datetime(9999, 12, 31)], pa.timestamp("ms"))})
    pa.orc.write_table(table, str(tmp_path / "a.orc"))
    source = LogFiles.discover(tmp_path / "a.orc")
    with pytest.raises(SourceError, match=r"a\.orc cannot be read: .*1677 to 2262.*leave the column out"):
        read_all(source)
    assert read_all(source, columns=["ts"])["ts"].to_pylist() == [1]


@pytest.mark.parametrize("left", [0, 3, 60, -1])
def test_a_cut_file_of_orc_is_an_error_that_names_it(tmp_path, left):
    pa.orc.write_table(events(), str(tmp_path / "a.orc"))
    whole = (tmp_path / "a.orc").read_bytes()
    (tmp_path / "a.orc").write_bytes(whole[:left])
    with pytest.raises(SourceError, match=r"a\.orc cannot be read: .*truncated, damaged or not ORC"):
        read_all(LogFiles.discover(tmp_path / "a.orc"))


def test_uneven_row_groups_are_cut_by_rows(tmp_path):
    with pq.ParquetWriter(tmp_path / "a.parquet", events().schema) as writer:
        for rows in (900, 20, 30, 50):
            writer.write_table(events(rows=rows), row_group_size=rows)
    source = LogFiles.discover(tmp_path / "a.parquet")
    assert [chunk.rows for chunk in source.chunks(2)] == [900, 100]
    assert [chunk.rows for chunk in source.chunks(9)] == [900, 20, 30, 50]


def test_small_files_are_not_cut(tmp_path):
    for i in range(6):
        pq.write_table(events(i * 10, 10), tmp_path / f"{i}.parquet")
    assert [chunk.rows for chunk in LogFiles.discover(tmp_path).chunks(4)] == [None] * 6


def test_a_damaged_file_is_an_error_where_it_is_read(tmp_path):
    for i in range(3):
        pq.write_table(events(i * 10, 10), tmp_path / f"{i}.parquet")
    (tmp_path / "1.parquet").write_bytes(bytes(100))
    source = LogFiles.discover(tmp_path)
    assert source.schema == events(0, 1).schema
    with pytest.raises(SourceError, match=r"1\.parquet cannot be read"):
        read_all(source)


def test_a_large_file_among_small_ones_is_cut_alone(tmp_path):
    pq.write_table(events(rows=10), tmp_path / "a.parquet")
    pq.write_table(events(10, 100_000), tmp_path / "b.parquet", row_group_size=1000)
    pq.write_table(events(100_010, 10), tmp_path / "c.parquet")
    source = LogFiles.discover(tmp_path)
    chunks = source.chunks(4)
    assert [chunk.rows for chunk in chunks] == [None, 25_000, 25_000, 25_000, 25_000, None]
    assert read_all(source, 4)["ts"].to_pylist() == list(range(100_020))


@pytest.mark.parametrize("batch_rows", [1, 7, 64, 100, 500, 1000, 4096])
@pytest.mark.parametrize("name", ["log.parquet", "log.arrow", "log.csv", "log.json"])
def test_batches_are_no_longer_than_asked_for_and_not_much_shorter(tmp_path, name, batch_rows):
    table = events()
    WRITERS[name](table, tmp_path / name)
    (chunk,) = LogFiles.discover(tmp_path / name).chunks(1)
    batches = list(chunk.read(None, batch_rows))
    assert max(batch.num_rows for batch in batches) <= batch_rows
    assert len(batches) <= max(2 * ROWS // batch_rows + 1, 2)
    assert pa.Table.from_batches(batches).combine_chunks() == table


def test_chunks_survive_pickling(tmp_path):
    WRITERS["log.parquet"](events(), tmp_path / "log.parquet")
    chunks = pickle.loads(pickle.dumps(LogFiles.discover(tmp_path).chunks(3)))
    rows = [n for chunk in chunks for batch in chunk.read(["ts"], 100) for n in batch["ts"].to_pylist()]
    assert rows == list(range(ROWS))


def test_table_chunks_are_slices_without_a_copy():
    table = events()
    chunks = TableSource.of(table).chunks(3)
    assert [chunk.rows for chunk in chunks] == [333, 333, 334]
    (batch,) = chunks[1].read(["ts"], 1000)
    assert batch["ts"].to_pylist() == list(range(333, 666))
    assert batch["ts"].buffers()[1].address == table["ts"].chunk(0).buffers()[1].address


def test_a_pickled_table_chunk_holds_its_rows_only():
    table = pa.table({"ts": pa.array(range(100_000), pa.int64())})
    data = pickle.dumps(TableSource.of(table).chunks(100)[7])
    assert len(data) < 20_000
    (batch,) = pickle.loads(data).read(None, 5000)
    assert batch["ts"].to_pylist() == list(range(7000, 8000))


def test_a_table_without_rows_is_one_chunk_without_batches():
    (chunk,) = TableSource.of(events(rows=0)).chunks(4)
    assert list(chunk.read(None, 10)) == []


def test_many_tiny_pieces_of_a_table_become_large_batches():
    table = pa.concat_tables([events(i, 1) for i in range(ROWS)])
    (chunk,) = TableSource.of(table).chunks(1)
    assert len(list(chunk.read(None, 1 << 17))) == 1


def encoded(values, index_type="int8"):
    codes = values.dictionary_encode("encode")
    return pa.DictionaryArray.from_arrays(codes.indices.cast(index_type), codes.dictionary)


def day(number, rows):
    return pa.array([f"user {number}.{row % 100}" for row in range(rows)])


def of_lists(*values):
    return pa.DictionaryArray.from_arrays([0, 1, None], pa.array([[1], list(values)]))


WITHOUT_A_COMMON_DICTIONARY = {
    "wider codes": lambda rows: [encoded(day(0, rows)), encoded(day(1, rows))],
    "nulls among the values": lambda rows: [encoded(pa.array(["a", None])), encoded(pa.array(["b", None]))],
    "values that are lists": lambda rows: [of_lists(2), of_lists(3, None)],
    "within a struct": lambda rows: [
        pa.StructArray.from_arrays([encoded(day(number, rows))], ["x"]) for number in (0, 1)
    ],
    "within a list": lambda rows: [
        pa.ListArray.from_arrays(pa.array(range(rows + 1), pa.int32()), encoded(day(number, rows)))
        for number in (0, 1)
    ],
}


@pytest.mark.parametrize("kind", WITHOUT_A_COMMON_DICTIONARY)
@pytest.mark.parametrize("rows", [100, 9000])
def test_each_chunk_may_have_a_dictionary_of_its_own(tmp_path, kind, rows):
    chunks = WITHOUT_A_COMMON_DICTIONARY[kind](rows)
    numbers = pa.chunked_array([range(len(chunk)) for chunk in chunks])
    table = pa.table({"x": pa.chunked_array(chunks), "n": numbers})
    source = TableSource.of(table)
    write_ipc(table, tmp_path / "log.arrows", pa.ipc.new_stream)
    for each in (source, LogFiles.discover(tmp_path / "log.arrows")):
        for chunk in pickle.loads(pickle.dumps(each.chunks(3))):
            first = chunk.first_row or 0
            for columns, kept in ((None, []), (["n"], []), (["x"], []), (["n", "x"], ["x"])):
                read = pa.Table.from_batches(chunk.read(columns, 1 << 17, kept))
                expected = table.slice(first, chunk.rows).select(columns or table.column_names)
                assert read.to_pylist() == expected.to_pylist()
    assert rows == 9000 or source.table["n"].num_chunks == 1


def test_arrow_data_of_other_libraries_is_taken():
    table = events()
    for data in (
        polars.from_arrow(table),
        duckdb.from_arrow(table),
        pa.RecordBatchReader.from_batches(table.schema, table.to_batches()),
        table.to_batches()[0],
    ):
        source = TableSource.of(data)
        assert source.schema == table.schema
        # Two passes, also over what can be read only once.
        assert read_all(source, 3).combine_chunks() == table
        assert read_all(source, 2).combine_chunks() == table


INSTANTS = pa.timestamp("us", "UTC")


def test_timestamps_in_96_bits_are_in_microseconds_also_beyond_what_nanoseconds_hold(tmp_path):
    far = [-62135596800_000000, 0, 253402300799_999999, 32503680000_000000, None]
    times = pa.array(far, pa.timestamp("us"))
    table = pa.table({"ts": times, "nested": pa.StructArray.from_arrays([times], ["at"])})
    pq.write_table(table, tmp_path / "log.parquet", use_deprecated_int96_timestamps=True, row_group_size=1)
    (chunk,) = LogFiles.discover(tmp_path).chunks(1)
    instants = table.cast(pa.schema([("ts", INSTANTS), ("nested", pa.struct([("at", INSTANTS)]))]))
    assert pa.Table.from_batches(chunk.read(None, 100)) == instants
    late = chunk.rows_where([pc.field("ts") > pa.scalar(0, INSTANTS)])
    assert pa.Table.from_batches(late.read(["ts"], 100)) == instants.select(["ts"]).slice(2, 2)


@pytest.mark.parametrize(
    ("nested", "value"),
    [
        (pa.list_, [5, None]),
        pytest.param(lambda time: pa.list_(time, 2), [5, None], marks=READS_NULL_FIXED_LISTS),
        (lambda time: pa.large_list(pa.list_(time)), [[5, None], None, []]),
        (lambda time: pa.map_(pa.string(), time), [("a", 5), ("b", None)]),
        (lambda time: pa.map_(time, pa.int64()), [(5, 1)]),
        (
            lambda time: pa.map_(pa.string(), pa.struct({"n": pa.int64(), "at": time})),
            [("a", {"n": 1, "at": 5})],
        ),
        (
            lambda time: pa.struct({"n": pa.int64(), "in": pa.list_(pa.struct({"at": time}))}),
            {"n": 1, "in": [{"at": 5}, None]},
        ),
    ],
)
def test_timestamps_in_96_bits_are_instants_wherever_they_are_nested(tmp_path, nested, value):
    def table(zone):
        column = pa.array([value, None], nested(pa.timestamp("us", zone)))
        return pa.table({"before": [7, 8], "x": column, "after": ["a", "b"]})

    pq.write_table(table(None), tmp_path / "log.parquet", use_deprecated_int96_timestamps=True)
    source = LogFiles.discover(tmp_path)
    assert source.schema == table("UTC").schema
    assert read_all(source) == table("UTC")


NANOS = pa.timestamp("ns")


@pytest.mark.parametrize(
    ("arrow_type", "value"),
    [
        (NANOS, lambda ns: ns),
        (pa.struct([("x", pa.float64()), ("at", NANOS)]), lambda ns: {"x": float("nan"), "at": ns}),
        (pa.list_(NANOS), lambda ns: [0, ns]),
        (pa.list_view(NANOS), lambda ns: [0, ns]),
        (pa.map_(pa.string(), pa.struct([("at", NANOS)])), lambda ns: [("a", {"at": ns})]),
    ],
)
def test_timestamps_in_96_bits_that_their_unit_does_not_hold_are_errors(tmp_path, arrow_type, value):
    def written(name, times, **metadata):
        column = pa.array([None if time is None else value(time) for time in times], arrow_type)
        table = pa.table(
            {"n": range(len(times)), "at.of": column, "at": range(len(times))}
        ).replace_schema_metadata(metadata or None)
        path = tmp_path / name
        pq.write_table(table, path, use_deprecated_int96_timestamps=True, row_group_size=3)
        return path, table

    def read(path, columns=None, **options):
        (chunk,) = LogFiles.discover(path, format_options=options).chunks(1)
        return pa.Table.from_batches(chunk.read(columns, 2))

    path, table = written("fine.parquet", [1_000, 0, None, -86_400_000_000_000, 5_000, 2**62 - 1])
    with pytest.raises(
        DataError,
        match=r"INT96\) in row 5 of column 'at.of' of .*fine.parquet has nanoseconds.*'int96_unit': 'ns'",
    ):
        read(path)
    assert read(path, ["n", "at"]) == table.select(["n", "at"])
    found = read(path, int96_unit="ns")
    # A float that is no number equals none.
    assert str(found.to_pylist()).replace("+0000", "").replace(", tz='UTC'", "") == str(table.to_pylist())
    path, _ = written("spark.parquet", [1_001], **{"org.apache.spark.version": "3.5.0"})
    with pytest.raises(DataError, match="row 0 of"):  # another has written it anew
        read(path)
    path.write_bytes(path.read_bytes().replace(b"parquet-cpp-arrow", b"parquet-mr versio"))
    assert read(path).num_rows == 1

    far, _ = written("far.parquet", [1_000])
    in_us = pa.table({"at": pa.array([0, None, 2**53, 253402300799_999999], pa.timestamp("us"))})
    pq.write_table(in_us, far, use_deprecated_int96_timestamps=True)
    assert read(far) == in_us.cast(pa.schema({"at": INSTANTS}))
    with pytest.raises(DataError, match=r"in row 3 of column 'at' .* lies outside of 1677 to 2262.*'us'"):
        read(far, int96_unit="ns")


def test_columns_of_nulls_of_polars_are_taken():
    frame = polars.DataFrame({"k": ["a"], "c": [None], "list": [[None]], "struct": [{"x": None}]})
    assert read_all(TableSource.of(frame)).to_pylist() == frame.to_dicts()


class OnlyAnArray:
    """Exports ``__arrow_c_array__`` and nothing else."""

    def __init__(self, batch):
        self._batch = batch

    def __arrow_c_array__(self, requested_schema=None):
        return self._batch.__arrow_c_array__(requested_schema)


def test_data_with_only_the_array_protocol_is_taken():
    assert read_all(TableSource.of(OnlyAnArray(events().to_batches()[0]))) == events()


def test_encoded_columns_are_decoded_to_plain_types():
    text = pa.array(["a", None, "b", "a"])
    table = pa.table(
        {
            "dictionary": text.dictionary_encode(),
            "large": text.cast(pa.large_string()),
            "view": text.cast(pa.string_view()),
            "binary_view": text.cast(pa.binary()).cast(pa.binary_view()),
            "runs": pa.RunEndEncodedArray.from_arrays([1, 4], pa.array([7, 8], pa.int64())),
            "half": pa.array([1.5, None, -2.0, 0.0], pa.float16()),
        }
    )
    source = TableSource.of(table.slice(0, 4))
    assert source.schema.types == [pa.string()] * 3 + [pa.binary(), pa.int64(), pa.float32()]
    assert read_all(source).to_pydict() == {
        "dictionary": ["a", None, "b", "a"],
        "large": ["a", None, "b", "a"],
        "view": ["a", None, "b", "a"],
        "binary_view": [b"a", None, b"b", b"a"],
        "runs": [7, 8, 8, 8],
        "half": [1.5, None, -2.0, 0.0],
    }
    assert read_all(TableSource.of(table.slice(1, 2)))["half"].to_pylist() == [None, -2.0]


# ---- discovery


def names(paths, **given):
    return [file.name for file in discover_files(paths, stores_of(given.get("filesystem")))]


def test_numbers_in_paths_count_by_their_value(tmp_path):
    in_order = [
        "9.csv",
        "10.csv",
        "day=9/1.csv",
        "day=10/0.csv",
        "part-2.csv",
        "part-010.csv",
        "part-10.csv",
        "part-a.csv",
    ]
    for name in reversed(in_order):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x\n1\n")
    assert names(tmp_path) == [str(tmp_path / name) for name in in_order]
    assert names(f"{tmp_path}/part-*.csv") == [str(tmp_path / name) for name in in_order[4:]]


@pytest.fixture
def tree(tmp_path):
    for name in ("b.parquet", "a.parquet", "x/9.parquet", "x/10.parquet", "x/y/c.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    for name in ("_SUCCESS", ".b.parquet.crc", "_temporary/0/part.parquet", "x/.hidden/d.parquet"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def test_a_directory_is_read_recursively_in_path_order(tree):
    expected = ["a.parquet", "b.parquet", "x/9.parquet", "x/10.parquet", "x/y/c.parquet"]
    assert names(tree) == [f"{tree}/{name}" for name in expected]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.parquet", ["a.parquet", "b.parquet"]),
        ("?.parquet", ["a.parquet", "b.parquet"]),
        ("[b-z].parquet", ["b.parquet"]),
        ("[!b-z].parquet", ["a.parquet"]),
        ("*/*.parquet", ["x/9.parquet", "x/10.parquet"]),
        ("x*", ["x/9.parquet", "x/10.parquet", "x/y/c.parquet"]),
        ("**/*.parquet", ["a.parquet", "b.parquet", "x/9.parquet", "x/10.parquet", "x/y/c.parquet"]),
        ("x/**", ["x/9.parquet", "x/10.parquet", "x/y/c.parquet"]),
        ("**/y/*", ["x/y/c.parquet"]),
        ("_temporary/0/*", ["_temporary/0/part.parquet"]),
    ],
)
def test_globs_match_within_names_and_across_directories(tree, pattern, expected):
    assert names(f"{tree}/{pattern}") == [f"{tree}/{name}" for name in expected]
    assert names(f"file://{tree}/{pattern.replace('?', '*')}") == [f"{tree}/{name}" for name in expected]


def test_a_list_keeps_its_order_and_names_a_file_once(tree):
    assert names([tree / "b.parquet", f"{tree}/*.parquet"]) == [f"{tree}/b.parquet", f"{tree}/a.parquet"]


def test_a_uri_and_a_filesystem_and_a_relative_path_lead_to_the_same_file(tree, monkeypatch):
    monkeypatch.chdir(tree)
    assert names("x/9.parquet") == [f"{tree}/x/9.parquet"]
    assert names(f"file://{tree}/x/9.parquet") == [f"{tree}/x/9.parquet"]
    inside = fs.SubTreeFileSystem(str(tree), fs.LocalFileSystem())
    assert names("x/9.parquet", filesystem=inside) == ["x/9.parquet"]
    assert names("x", filesystem=inside) == ["x/9.parquet", "x/10.parquet", "x/y/c.parquet"]
    assert names("x/*.parquet", filesystem=inside) == ["x/9.parquet", "x/10.parquet"]
    assert names("*.parquet", filesystem=inside) == ["a.parquet", "b.parquet"]
    local = fs.LocalFileSystem()
    assert names("*.parquet", filesystem=local) == [f"{tree}/a.parquet", f"{tree}/b.parquet"]
    assert names("./x/9.parquet", filesystem=local) == [f"{tree}/x/9.parquet"]


def test_a_file_whose_name_looks_like_a_glob_is_found_by_its_name(tmp_path):
    (tmp_path / "a[1].parquet").touch()
    assert names(tmp_path / "a[1].parquet") == [f"{tmp_path}/a[1].parquet"]


def test_files_are_read_through_a_given_filesystem(tmp_path):
    pq.write_table(events(), tmp_path / "a.parquet", row_group_size=100)
    inside = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    source = LogFiles.discover("a.parquet", stores=stores_of(inside))
    assert read_all(source, 2).combine_chunks() == events()
    assert [chunk.label for chunk in source.chunks(2)] == [
        "a.parquet (row groups 0-4)",
        "a.parquet (row groups 5-9)",
    ]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nothing.parquet", "'nothing.parquet' does not exist"),
        ("nothing/*.parquet", r"no file matches 'nothing/\*.parquet'"),
        ("http://host/a.parquet", "http://host/a.parquet cannot be reached.*filesystem="),
    ],
)
def test_a_path_without_files_is_an_error_that_names_it(tmp_path, monkeypatch, path, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SourceError, match=message):
        discover_files(path)


def test_an_empty_directory_is_an_error(tmp_path):
    (tmp_path / "_SUCCESS").touch()
    with pytest.raises(SourceError, match="holds no file to read"):
        discover_files(tmp_path)


def test_what_is_no_path_is_an_error():
    with pytest.raises(ConfigurationError, match="not int"):
        discover_files([1])
    with pytest.raises(ConfigurationError, match="at least one path"):
        discover_files([])
    with pytest.raises(ConfigurationError, match=r"filesystem is a pyarrow.fs.FileSystem"):
        stores_of("s3")


# ---- formats


def test_mixed_formats_are_an_error_that_names_two_files(tmp_path):
    pq.write_table(events(), tmp_path / "a.parquet")
    write_csv(events(), tmp_path / "b.csv")
    with pytest.raises(SourceError, match=r"a\.parquet is parquet, .*b\.csv is csv"):
        LogFiles.discover(tmp_path)


def test_an_unknown_extension_asks_for_the_format(tmp_path):
    pq.write_table(events(), tmp_path / "a.data")
    with pytest.raises(
        SourceError, match=r"a\.data is not that of a format\..*\.gz, \.bz2, \.zst, \.lz4: give format="
    ):
        LogFiles.discover(tmp_path)
    assert read_all(LogFiles.discover(tmp_path, format="parquet")) == events()


def test_unknown_formats_and_options_are_errors(tmp_path):
    pq.write_table(events(), tmp_path / "a.parquet")
    for given, message in [
        ({"format": "xml"}, "format 'xml' is unknown; known are parquet"),
        (
            {"format_options": {"delimiter": ";"}},
            "'delimiter' is not an option of parquet, which takes int96_unit",
        ),
        (
            {"format": "avro", "format_options": {"delimiter": ";"}},
            "'delimiter' is not an option of avro, which takes none",
        ),
        ({"format_options": {"int96_unit": "ms"}}, "int96_unit is 'us' or 'ns', not 'ms'"),
        (
            {"format": "csv", "format_options": {"quote": "'"}},
            "'quote' is not an option of csv, which takes delimiter, ",
        ),
        ({"format": ["csv"]}, r"format \['csv'\] is unknown"),
        ({"format_options": 5}, "format_options is a mapping of options to values, .* not 5"),
        ({"format": "csv", "format_options": {"null_values": "NA"}}, "null_values is a sequence"),
        (
            {"format": "csv", "format_options": {"null_values": [5]}},
            r"null_values is a sequence .* not \[5\]",
        ),
        ({"format": "csv", "format_options": {"newlines_in_values": "yes"}}, "is True or False, not 'yes'"),
        ({"format": "csv", "schema": ["a"]}, r"schema= is a schema of Arrow's or Spark's, .* not \['a'\]"),
        ({"format": "json", "schema": {"a": "integr"}}, "has the type 'integr', which is not known"),
    ]:
        with pytest.raises(ConfigurationError, match=message):
            LogFiles.discover(tmp_path, **given)


@pytest.mark.parametrize("delimiter", ["::", "", "\n", "\r", '"', "\0", "é"])
def test_a_delimiter_that_csv_cannot_have_is_refused(tmp_path, delimiter):
    pacsv.write_csv(events(), tmp_path / "a.csv")
    with pytest.raises(
        ConfigurationError, match="delimiter is one character of ASCII, no quote or line break, not"
    ):
        LogFiles.discover(tmp_path, format_options={"delimiter": delimiter})


@pytest.mark.parametrize(
    ("format", "arrow_type"),
    [("csv", pa.list_(pa.int64())), ("csv", pa.map_(pa.string(), pa.int64())), ("json", pa.duration("s"))],
)
def test_a_type_that_is_not_read_from_a_format_is_refused(tmp_path, format, arrow_type):
    (tmp_path / "log").write_text("a\n")
    told = rf"column 'a' cannot be read from {format} as {re.escape(str(arrow_type))}\. Give another"
    with pytest.raises(ConfigurationError, match=told):
        LogFiles.discover(tmp_path, format, schema={"a": arrow_type})


@pytest.mark.parametrize("arrow_type", [pa.string_view(), pa.dictionary(pa.int8(), pa.string())])
@pytest.mark.parametrize(("format", "text"), [("csv", "a\nx\n"), ("json", '{"a": "x"}\n')])
def test_given_types_that_encode_values_are_read_as_the_values(tmp_path, format, text, arrow_type):
    (tmp_path / "log").write_text(text)
    source = LogFiles.discover(tmp_path, format, schema={"a": arrow_type})
    assert read_all(source) == pa.table({"a": ["x"]})


def test_a_value_that_has_not_the_type_that_was_given_is_told_as_such(tmp_path):
    (tmp_path / "a.csv").write_text("id\nx\n")
    source = LogFiles.discover(tmp_path, schema={"id": "int64"})
    with pytest.raises(
        SchemaError, match=r"another type than schema= says: .*int64: invalid value 'x'\. Give"
    ):
        source.schema  # noqa: B018


def test_csv_options_are_followed(tmp_path):
    (tmp_path / "a.csv").write_text('id;note\n1;x\n-;-\n3;"a\nb"\n')
    options = {
        "delimiter": ";",
        "null_values": ["-"],
        "newlines_in_values": True,
    }
    source = LogFiles.discover(tmp_path, format_options=options, schema={"id": "int32"})
    assert source.schema == pa.schema([("id", pa.int32()), ("note", pa.string())])
    assert read_all(source).to_pydict() == {"id": [1, None, 3], "note": ["x", None, "a\nb"]}


def test_text_that_is_not_utf8_is_an_error_of_csv_where_its_column_is_read(tmp_path):
    (tmp_path / "a.csv").write_bytes("id,name\n1,Müller\n".encode("latin-1"))
    source = LogFiles.discover(tmp_path)
    assert source.schema == pa.schema([("id", pa.int64()), ("name", pa.string())])
    with pytest.raises(SchemaError, match=r"a\.csv has text that is not UTF-8: .*UTF8.*'binary' of bytes"):
        read_all(source)
    assert read_all(source, columns=["id"]).to_pydict() == {"id": [1]}
    named = LogFiles.discover(tmp_path, schema={"name": "binary"})
    assert read_all(named).to_pydict() == {"id": [1], "name": [b"M\xfcller"]}


def test_a_column_type_for_a_column_that_is_not_there_is_an_error(tmp_path):
    (tmp_path / "a.csv").write_text("id\n1\n")
    source = LogFiles.discover(tmp_path, schema={"ID": "int32"})
    with pytest.raises(
        ConfigurationError, match=r"no file of the log has the column 'ID', whose type is given: id"
    ):
        source.chunks(1)


@pytest.mark.parametrize("name", ["a.csv", "a.json"])
def test_fractions_of_seconds_may_come_after_whole_seconds(tmp_path, name):
    times = ["2001-01-01T00:00:00", "2001-01-01T00:00:00.250"]
    if name == "a.csv":
        (tmp_path / "1.csv").write_text(f"at\n{times[0]}\n")
        (tmp_path / "2.csv").write_text(f"at\n{times[1]}\n")
    else:
        (tmp_path / "1.json").write_text(json.dumps({"at": times[0]}) + "\n")
        (tmp_path / "2.json").write_text(json.dumps({"at": times[1]}) + "\n")
    assert read_all(LogFiles.discover(tmp_path))["at"].to_pylist() == [
        datetime(2001, 1, 1),
        datetime(2001, 1, 1, 0, 0, 0, 250_000),
    ]


def test_keys_that_json_lines_lack_are_null_and_others_are_passed_over(tmp_path):
    (tmp_path / "a.json").write_text('{"a": 1}\n\n{"a": null, "z": [1]}\n')
    (tmp_path / "b.json").write_text('{"b": 1}\n{"a": 4}')
    assert read_all(LogFiles.discover(tmp_path), columns=["a"])["a"].to_pylist() == [1, None, None, 4]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"null", 1),
        (b"\n \t null\n{}\n", 2),
        (b'null\r\n{"a": 1}\n', 1),
        (b"\xef\xbb\xbfnull\n", 1),
        (b'{"a":1}\nnull\n', 2),
        (b"{}\n{} null {}\n", 2),
    ],
)
@pytest.mark.parametrize("block_bytes", [8, 1 << 20])
def test_null_in_place_of_an_object_is_refused(tmp_path, monkeypatch, text, line, block_bytes):
    monkeypatch.setattr("flinkcore.log.formats.text_formats.BLOCK_BYTES", block_bytes)
    (tmp_path / "1.json").write_bytes(b'{"a":1}\n')
    (tmp_path / "2.json").write_bytes(text)
    source = LogFiles.discover(tmp_path)
    with pytest.raises(
        SourceError, match=rf"2\.json cannot be read: null where an object belongs in line {line}"
    ):
        read_all(source)


def test_a_log_whose_types_a_null_would_tell_is_refused(tmp_path):
    (tmp_path / "1.json").write_bytes(b'null\n{"a": 1}\n')
    source = LogFiles.discover(tmp_path)
    with pytest.raises(SourceError, match=r"1\.json cannot be read: null where an object belongs in line 1"):
        read_all(source)


def test_blocks_of_json_lines_are_cut_at_line_ends(tmp_path, monkeypatch):
    monkeypatch.setattr("flinkcore.log.formats.text_formats.BLOCK_BYTES", 64)
    table = events()
    write_json(table, tmp_path / "a.json")
    assert read_all(LogFiles.discover(tmp_path)).combine_chunks() == table


# ---- schemas


def test_hive_partitions_become_columns_of_every_format(tmp_path):
    for writer, name in ((pq.write_table, "a.parquet"), (write_csv, "a.csv"), (write_json, "a.json")):
        base = tmp_path / name.replace(".", "-")
        for i, part in enumerate(
            ["date=2001-01-01/hour=09", "date=2001-01-02/hour=__HIVE_DEFAULT_PARTITION__"]
        ):
            (base / part).mkdir(parents=True)
            writer(events(i * 10, 10), base / part / name)
        source = LogFiles.discover(base)
        assert source.schema == events().schema.append(pa.field("date", pa.string())).append(
            pa.field("hour", pa.int64())
        )
        table = read_all(source)
        assert table["date"].to_pylist() == ["2001-01-01"] * 10 + ["2001-01-02"] * 10
        assert table["hour"].to_pylist() == [9] * 10 + [None] * 10
        assert table["ts"].to_pylist() == list(range(20))
        only = read_all(source, columns=["hour", "date"])
        assert only.to_pydict() == table.select(["hour", "date"]).to_pydict()


def test_a_partition_value_that_is_no_number_makes_all_strings(tmp_path):
    for part in ("p=1", "p=x%20y"):
        (tmp_path / part).mkdir()
        pq.write_table(events(rows=1), tmp_path / part / "a.parquet")
    assert read_all(LogFiles.discover(tmp_path), columns=["p"])["p"].to_pylist() == ["1", "x y"]


def test_a_partition_directory_takes_the_place_of_the_files_own_column(tmp_path):
    (tmp_path / "user=9").mkdir()
    pq.write_table(events(rows=2), tmp_path / "user=9" / "a.parquet")
    source = LogFiles.discover(tmp_path)
    assert source.schema.names == ["ts", "price", "user"]
    assert read_all(source)["user"].to_pylist() == [9, 9]


@pytest.mark.parametrize(
    ("given", "partitions"),
    [
        (".", ["day", "hour"]),
        ("./", ["day", "hour"]),
        ("*", ["day", "hour"]),
        ("day=*", ["day", "hour"]),
        ("day=*/hour=5/a.parquet", ["day", "hour"]),
        ("**/a.parquet", ["day", "hour"]),
        ("day=3", ["hour"]),
        ("day=3/", ["hour"]),
        ("day=3/*", ["hour"]),
        ("day=3/hour=[5]", ["hour"]),
        ("day=3/hour=5", []),
        ("day=3/hour=5/*.parquet", []),
        ("day=3/hour=5/a.parquet", []),
    ],
)
def test_partition_directories_count_below_the_given_path_only(tmp_path, given, partitions):
    root = tmp_path / "user=nobody" / "log"
    folder = root / "day=3" / "hour=5"
    folder.mkdir(parents=True)
    pq.write_table(events(rows=2), folder / "a.parquet")
    inside = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    for path, filesystem in (
        (f"{root}/{given}", None),
        (f"file://{root}/{given}".replace("/./", "/").replace("/.", ""), None),
        (f"user=nobody/log/{given}".replace("/./", "/").replace("/.", ""), inside),
    ):
        source = LogFiles.discover(path, stores=stores_of(filesystem))
        assert [name for name, _ in source.files[0].partition] == partitions
        assert source.schema.names == [*events().schema.names, *partitions]
        assert read_all(source)["user"].to_pylist() == events(rows=2)["user"].to_pylist()


def test_partition_directories_that_differ_are_an_error(tmp_path):
    for part in ("a=1", "b=1"):
        (tmp_path / part).mkdir()
        pq.write_table(events(rows=1), tmp_path / part / "x.parquet")
    with pytest.raises(SchemaError, match=r"a=1/x\.parquet has \['a'\], .*b=1/x\.parquet has \['b'\]"):
        LogFiles.discover(tmp_path).chunks(1)


def test_a_text_value_of_another_type_is_an_error_that_names_the_file(tmp_path):
    name = "json"
    WRITERS[f"log.{name}"](events(), tmp_path / f"1.{name}")
    WRITERS[f"log.{name}"](events().set_column(0, "ts", pa.array(["soon"] * ROWS)), tmp_path / f"2.{name}")
    with pytest.raises(
        SchemaError, match=rf"2\.{name} has a value of another type.*ts int64 \(from .*1\.{name}\)"
    ):
        read_all(LogFiles.discover(tmp_path))


def test_encodings_may_differ_between_files(tmp_path):
    pq.write_table(events(), tmp_path / "1.parquet")
    for i, user in enumerate(
        (events()["user"].dictionary_encode(), events()["user"].cast(pa.large_string()))
    ):
        pq.write_table(events().set_column(1, "user", user), tmp_path / f"{i + 2}.parquet")
    assert read_all(LogFiles.discover(tmp_path)).num_rows == 3 * ROWS


@pytest.mark.parametrize("name", ["csv", "json", "parquet"])
def test_a_column_of_nulls_takes_the_type_of_another_file(tmp_path, name):
    empty = events(rows=5).set_column(2, "price", pa.nulls(5))
    WRITERS[f"log.{name}"](empty, tmp_path / f"1.{name}")
    WRITERS[f"log.{name}"](events(rows=5), tmp_path / f"2.{name}")
    source = LogFiles.discover(tmp_path)
    assert source.schema.field("price").type == pa.float64()
    assert read_all(source)["price"].to_pylist() == [None] * 5 + [0.0, 0.25, 0.5, 0.75, 1.0]


def test_a_name_that_occurs_twice_is_an_error(tmp_path):
    (tmp_path / "a.csv").write_text("a,a\n1,2\n")
    with pytest.raises(SchemaError, match=r"'a' occurs more than once in .*a\.csv"):
        LogFiles.discover(tmp_path).chunks(1)
    with pytest.raises(SchemaError, match="'a' occurs more than once in the table"):
        TableSource.of(pa.Table.from_arrays([pa.array([1])] * 2, ["a", "a"]))


# ---- damage


@pytest.mark.parametrize(
    "name", ["log.parquet", "log.arrow", "log.arrows", "log.feather", "log.csv.gz", "log.ndjson.gz"]
)
@pytest.mark.parametrize("part", [0.3, 0.9, 0.99])
def test_a_truncated_file_is_an_error_that_names_it(tmp_path, name, part):
    extension = name.split(".", 1)[1]
    WRITERS[name](events(rows=10), tmp_path / f"1.{extension}")
    WRITERS[name](events(rows=5000), tmp_path / f"2.{extension}")
    data = (tmp_path / f"2.{extension}").read_bytes()
    (tmp_path / f"2.{extension}").write_bytes(data[: int(len(data) * part)])
    source = LogFiles.discover(tmp_path)
    with pytest.raises(
        SourceError, match=rf"2\.{extension} cannot be read: .*The file is truncated, damaged or not"
    ) as caught:
        read_all(source)
    assert caught.value.place == {"file": str(tmp_path / f"2.{extension}")}


@pytest.mark.parametrize("text", ['{"ts": 1}\n{"ts": ', "[1, 2]\n", "{"])
def test_json_that_is_not_lines_of_objects_is_an_error(tmp_path, text):
    write_json(events(), tmp_path / "1.json")
    (tmp_path / "2.json").write_text(text)
    with pytest.raises((SourceError, SchemaError), match=r"2\.json"):
        read_all(LogFiles.discover(tmp_path), columns=["ts"])


@pytest.mark.parametrize("block", [16, 8 << 20])
@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ('{"ts": 1}\n\n{"ts": 2}\n{"ts": ', SourceError, r"Invalid value in line 4\. The file is truncated"),
        ('{"ts": 1}\n{"ts": 2}\n{"ts": "x"}\n', SchemaError, "'ts' changed from number to string in line 3"),
        ('{"ts": 1}\n[1]\n', SourceError, "line 2 is an array, and not an object"),
    ],
    ids=["truncated", "number, then text", "array"],
)
def test_a_fault_in_json_lines_names_the_line(tmp_path, monkeypatch, block, text, error, message):
    monkeypatch.setattr("flinkcore.log.formats.text_formats.BLOCK_BYTES", block)
    write_json(pa.table({"ts": [1]}), tmp_path / "1.json")
    (tmp_path / "2.json").write_text(text)
    with pytest.raises(error, match=rf"2\.json .*{message}"):
        read_all(LogFiles.discover(tmp_path), columns=["ts"])


@pytest.mark.parametrize("columns", [None, ["ts"]])
def test_json_that_is_nested_without_measure_is_an_error_that_names_the_line(tmp_path, columns):
    deep = {
        "lists": "[" * 30_000 + "]" * 30_000,
        "objects": '{"a":' * 101 + "1" + "}" * 101,
        "over_lines": '\n{"a":' * 30_000 + "1" + "}" * 30_000,
    }
    for name, text in deep.items():
        (tmp_path / name).mkdir()
        lines = f'{{"ts": 1, "a": "{{[["}}\n{{"ts": 2, "b": {text}}}\n' + "\n" * 4_000
        (tmp_path / name / "1.json").write_text(lines)
        with pytest.raises(
            SourceError, match=r"1\.json cannot be read: .* more than 100 levels deep in line 2"
        ):
            read_all(LogFiles.discover(tmp_path / name), columns=columns)


def test_json_may_have_many_lists_and_brackets_within_text(tmp_path):
    rows = [{"ts": 1, "lists": [[]] * 200, "text": "[" * 200 + '\\"]{'}, {"ts": 2, "lists": [], "text": "}"}]
    (tmp_path / "a.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read_all(LogFiles.discover(tmp_path)).to_pylist() == rows


def forged_statistics(path):
    """A Parquet file whose footer counts two repetition levels of a column that has none; Arrow's accessor aborts."""
    from fuzz.damaged_files import Damage, damaged, whole

    damage = Damage(operation="forge", place=-1749, length=2, value=2147483647)
    path.write_bytes(damaged(whole("parquet-lz4"), [damage]))


def test_forged_statistics_of_a_footer_are_refused_and_do_not_end_the_process(tmp_path):
    path = tmp_path / "forged.parquet"
    forged_statistics(path)
    with pytest.raises(SourceError, match=r"forged\.parquet cannot be read: .*histogram size mismatch"):
        read_all(LogFiles.discover(path))
    (file,) = discover_files(path)
    metadata = pq.read_metadata(path)
    with pytest.raises(OSError, match="histogram size mismatch"):
        check_statistics(file, range(metadata.num_row_groups), pq.read_schema(path).names)


def write_ids(path, texts):
    """A log of CSV or JSON lines with a column of numbers."""
    if path.suffix == ".csv":
        path.write_text("id\n" + "".join(f"{text}\n" for text in texts))
    else:
        path.write_text("".join(f'{{"id": {text}}}\n' for text in texts))
    return path


@pytest.mark.parametrize("format", ["csv", "json"])
@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["1", str(2**63 - 1)], pa.int64()),
        (["1", str(2**63)], pa.uint64()),
        ([str(2**64 - 1), str(2**64 - 2)], pa.uint64()),
        (["-1", str(2**63)], pa.float64()),
        (["1.5", str(2**63)], pa.float64()),
        (["1", str(2**64)], pa.float64()),
    ],
)
def test_whole_numbers_beyond_int64_are_told_apart(tmp_path, format, texts, expected):
    source = LogFiles.discover(write_ids(tmp_path / f"log.{format}", texts))
    assert source.schema.field("id").type == expected
    number = float if expected == pa.float64() else int
    assert read_all(source)["id"].to_pylist() == [number(text) for text in texts]


@pytest.mark.parametrize("format", ["csv", "json"])
@pytest.mark.parametrize(
    ("texts", "rounded"),
    [
        (["1", str(2**64 + 1)], str(2**64 + 1)),
        (["1.5", str(2**53), str(2**53 + 1)], str(2**53 + 1)),
        (["0." + "5" * 200] * 45_000 + ["-12345678901234567890123"], "-12345678901234567890123"),
        (["1" * 5_000, "1.0"], "1" * 57 + r"\.\.\."),
    ],
)
def test_whole_numbers_that_a_float_does_not_tell_apart_are_refused(tmp_path, format, texts, rounded):
    source = LogFiles.discover(write_ids(tmp_path / f"log.{format}", texts))
    exact = {"csv": "'string'", "json": r"pyarrow\.decimal128\(38, 0\)"}[format]
    with pytest.raises(
        SchemaError,
        match=rf"log\.{format} has a number in column 'id' .*: {rounded}\. .*'id': type}}: {exact} keeps",
    ):
        read_all(source)


@pytest.mark.parametrize(
    "wrapped", ['{{"id": {}, "n": {}}}', "[{}]", '[null, {{"a": [1, {}]}}]', '{{"a": {{"id": {}}}}}']
)
def test_whole_numbers_within_json_values_that_a_float_does_not_tell_apart_are_refused(tmp_path, wrapped):
    def written(*numbers):
        # The second of two numbers in a value is none that makes it one of floats.
        texts = [wrapped.format(number, 2**53 + 1) for number in numbers]
        return LogFiles.discover(write_ids(tmp_path / "log.json", texts))

    assert len(read_all(written(2**53 + 1, 2**63 - 1))) == 2
    assert len(read_all(written(1.5, 2**64, "123456789012345680000"))) == 3
    message = (
        rf"number in column 'id' .*: {2**64 + 1}\. .*decimal128\(38, 0\), or .* in place of the double of"
    )
    with pytest.raises(SchemaError, match=message):
        read_all(written(1, 2**64 + 1))
    with pytest.raises(SchemaError, match=message):
        read_all(written(1.5, 2**64 + 1))


@pytest.mark.parametrize("format", ["csv", "json"])
def test_numbers_whose_type_is_named_may_be_rounded_or_exact(tmp_path, format):
    numbers = [12345678901234567890123, 12345678901234567890124]
    path = write_ids(tmp_path / f"log.{format}", numbers)
    for kind, read in ("double", float), (pa.decimal128(38, 0), int):
        assert [read(value) for value in numbers] == (
            read_all(LogFiles.discover(path, schema={"id": kind}))["id"].to_pylist()
        )


@pytest.mark.parametrize("format", ["csv", "json"])
def test_floats_may_be_large_and_whole(tmp_path, format):
    javascripts = "123456789012345680000"  # the fewest digits that tell the float, and zeros
    texts = ["1.5", "1e300", str(2**60), "-9.1e15", "9100000000000001.5", javascripts]
    path = write_ids(tmp_path / f"log.{format}", texts)
    assert read_all(LogFiles.discover(path))["id"].to_pylist() == [float(text) for text in texts]


def test_a_json_column_that_changes_its_type_while_types_are_inferred_is_named(tmp_path):
    (tmp_path / "1.json").write_text('{"ts": 1}\n{"ts": "x"}\n')
    with pytest.raises(SchemaError, match=r"'ts' changed from number to string in line 2.*repair the lines"):
        read_all(LogFiles.discover(tmp_path))


def test_a_fault_of_a_parquet_file_is_one_sentence_and_one_advice(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1" * 9 + b"cut")
    with pytest.raises(SourceError) as error:
        read_all(LogFiles.discover(tmp_path))
    assert ".." not in str(error.value)
    assert "format=" not in str(error.value)


CUT_CSV = [
    ('a,b\n1,"x"\n2,"yz', True),
    ('a,b\n1,"x"\n2,"y\nz\n3,w\n', True),
    ('a,b\n1,"x"\n2,"y""', True),
    ('a,b\n1,"x"\n2', False),
    ('a,b\n1,"x"\n,,\n', False),
    ('a,b\n1,"x"\n,,\n,,\n', False),
    ('a,b\n1,"xxxxx"\n,,\n' + 8 * '2,"x"\n', False),
]


@pytest.mark.parametrize("newlines_in_values", [False, True])
@pytest.mark.parametrize("block", [8, 16, 8 << 20])
@pytest.mark.parametrize(("text", "is_quoted"), CUT_CSV)
def test_a_csv_file_that_ends_within_a_row_is_an_error(
    tmp_path, monkeypatch, newlines_in_values, block, text, is_quoted
):
    (tmp_path / "1.csv").write_text('a,b\n1,"x"\n')
    (tmp_path / "2.csv").write_text(text)
    monkeypatch.setattr("flinkcore.log.formats.text_formats.BLOCK_BYTES", block)
    source = LogFiles.discover(tmp_path, format_options={"newlines_in_values": newlines_in_values})
    message = (
        "ends within a quoted value|newlines_in_values|two block boundaries"
        if is_quoted
        else "Expected 2 columns"
    )
    with pytest.raises(SourceError, match=rf"2\.csv cannot be read: .*({message})"):
        read_all(source)


@pytest.mark.parametrize("block", [8, 9, 16, 8 << 20])
def test_lines_of_csv_that_a_stray_quote_makes_one_are_an_error(tmp_path, monkeypatch, block):
    (tmp_path / "1.csv").write_text("a,b\n1,x\n")
    (tmp_path / "2.csv").write_text('a,b\n\n1,x\n2,"y\n3,z\n4,w"\n5,v\n')
    monkeypatch.setattr("flinkcore.log.formats.text_formats.BLOCK_BYTES", block)
    message = "3 rows in 5 lines below the header" if block > 16 else ""
    for columns in (["a"], ["b"]):
        with pytest.raises(SourceError, match=rf"2\.csv cannot be read: .*{message}.*newlines_in_values"):
            read_all(LogFiles.discover(tmp_path), columns=columns)
    monkeypatch.setattr("flinkcore.log.formats.text_formats.BLOCK_BYTES", 8 << 20)
    source = LogFiles.discover(tmp_path, format_options={"newlines_in_values": True})
    assert read_all(source)["b"].to_pylist() == ["x", "x", "y\n3,z\n4,w", "v"]


def read_with_warnings(source, columns=None):
    warnings = []
    batches = [batch for chunk in source.chunks(1) for batch in chunk.read(columns, 100, (), warnings)]
    return pa.Table.from_batches(batches, source.schema), warnings


@pytest.mark.parametrize("block", [8, 9, 10, 11, 12, 13, 8 << 20])
@pytest.mark.parametrize(
    ("text", "rows", "is_cut"),
    [
        ("a,b\n1,x\n2,yz", [(1, "x"), (2, "yz")], True),
        ('a,b\n1,x\n2,"yz"', [(1, "x"), (2, "yz")], True),
        ('a,b\n1,x\n2,5" ', [(1, "x"), (2, '5" ')], True),
        ('a,b\n1,x\n2,"y""z"\n', [(1, "x"), (2, 'y"z')], False),
        ("\n\na,b\r\n1,x\r\n\r\n2,y\r\n", [(1, "x"), (2, "y")], False),
        ('"a",b\r1,x\r2,y\r', [(1, "x"), (2, "y")], False),
        ("a,b\n", [], False),
        ("a,b", [], True),
    ],
)
def test_a_csv_file_without_a_last_line_break_is_read_with_a_warning(
    tmp_path, monkeypatch, block, text, rows, is_cut
):
    (tmp_path / "a.csv").write_bytes(text.encode())
    monkeypatch.setattr("flinkcore.log.formats.text_formats.BLOCK_BYTES", block)
    source = LogFiles.discover(tmp_path, schema={"a": "int64", "b": "string"})
    table, warnings = read_with_warnings(source)
    assert [tuple(row.values()) for row in table.to_pylist()] == rows
    assert [text.split(":")[0] for text in warnings] == [
        f"{tmp_path}/a.csv ends without a line break"
    ] * is_cut


@pytest.mark.parametrize("name", ["csv", "json", "csv.gz", "json.gz"])
@pytest.mark.parametrize("text", [b"", b"\n\r\n"])
def test_an_empty_text_file_among_others_is_warned_of(tmp_path, name, text):
    WRITERS[f"log.{name.replace('json.gz', 'ndjson.gz')}"](events(rows=3), tmp_path / f"1.{name}")
    (tmp_path / f"2.{name}").write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    table, warnings = read_with_warnings(LogFiles.discover(tmp_path))
    assert table == events(rows=3)
    assert warnings == [
        f"{tmp_path}/2.{name} is empty: it adds no event. Take it out of the log if nothing is missing"
    ]


def test_a_line_of_json_that_does_not_end_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("flinkcore.log.formats.text_formats.BLOCK_BYTES", 64)
    write_json(pa.table({"ts": [1]}), tmp_path / "1.json")
    (tmp_path / "2.json").write_text('{"ts": 1, "text": "' + 1100 * "x" + '"}\n')
    with pytest.raises(SourceError, match=r"2\.json cannot be read: a line has more than 1,024 bytes"):
        read_all(LogFiles.discover(tmp_path))


def test_an_arrow_stream_whose_end_is_missing_is_warned_of(tmp_path):
    write_ipc(events(), tmp_path / "a.arrows", pa.ipc.new_stream)
    assert read_with_warnings(LogFiles.discover(tmp_path)) == (events(), [])
    data = (tmp_path / "a.arrows").read_bytes()
    assert data.endswith(little_endian(-1, 0))
    (tmp_path / "a.arrows").write_bytes(data[:-8])
    table, (warning,) = read_with_warnings(LogFiles.discover(tmp_path))
    assert table == events()
    assert warning.startswith(f"{tmp_path}/a.arrows is an Arrow stream without an end-of-stream marker")


def test_what_follows_the_end_of_an_arrow_stream_is_not_passed_over(tmp_path):
    write_ipc(events(), tmp_path / "a.arrows", pa.ipc.new_stream)
    data = (tmp_path / "a.arrows").read_bytes()
    (tmp_path / "a.arrows").write_bytes(data + data)
    with pytest.raises(SourceError, match=rf"a\.arrows cannot be read: {len(data)} bytes follow the end"):
        read_all(LogFiles.discover(tmp_path))


def test_a_csv_row_with_too_few_values_is_an_error(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n3\n")
    with pytest.raises(SourceError, match=r"a\.csv cannot be read: .*Expected 2 columns, got 1"):
        read_all(LogFiles.discover(tmp_path))


def test_a_row_of_csv_that_is_not_utf_8_and_has_other_fields_is_an_error_and_nothing_is_printed(
    tmp_path, monkeypatch, capfd
):
    (tmp_path / "a.csv").write_bytes(b"ts,at\n1,2\n\xff\xfe,2,3\n4,5\n")
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
    with pytest.raises(SourceError, match=r"a\.csv cannot be read: .*Expected 2 columns, got 3"):
        read_all(LogFiles.discover(tmp_path))
    assert capfd.readouterr() == ("", "")
    assert sys.unraisablehook is sys.__unraisablehook__


def test_a_damaged_page_is_an_error(tmp_path):
    pq.write_table(events(rows=50_000), tmp_path / "a.parquet", row_group_size=10_000, compression="zstd")
    data = bytearray((tmp_path / "a.parquet").read_bytes())
    middle = len(data) // 2
    data[middle : middle + 200] = bytes(200)
    (tmp_path / "a.parquet").write_bytes(data)
    with pytest.raises(SourceError, match=r"a\.parquet cannot be read"):
        read_all(LogFiles.discover(tmp_path), 3)


def replace_once(path, found, other):
    data = path.read_bytes()
    assert data.count(found) == 1
    path.write_bytes(data.replace(found, other))


def little_endian(*numbers, width=4):
    return b"".join(number.to_bytes(width, "little", signed=True) for number in numbers)


@pytest.mark.parametrize("opener", [pa.ipc.new_file, pa.ipc.new_stream], ids=["file", "stream"])
@pytest.mark.parametrize(
    ("column", "found", "lie"),
    [
        (pa.array(["aaaa", "bbbb"]), little_endian(0, 4, 8), little_endian(0, 4, 1 << 30)),
        (pa.array(["aaaa", "bbbb"]), little_endian(0, 4, 8), little_endian(0, 1 << 30, 8)),
        (pa.array(["aaaa", "bbbb"]), little_endian(0, 4, 8), little_endian(0, -(1 << 30), 8)),
        (pa.array(["aaaa", "bbbb"]), b"aaaabbbb", b"aaaa\xff\xffbb"),
        (pa.array([[1], [2, 3]]), little_endian(0, 1, 3), little_endian(0, 1 << 20, 3)),
        (
            pa.DictionaryArray.from_arrays(pa.array([2, 0, 1], pa.int32()), ["x", "y", "z"]),
            little_endian(2, 0, 1),
            little_endian(2, 1 << 29, 1),
        ),
        (
            pa.array(["the first of the long ones"], pa.string_view()),
            b"the " + little_endian(0, 0),
            b"the " + little_endian(9, 1 << 20),
        ),
        (
            pa.RunEndEncodedArray.from_arrays(pa.array([2, 5], pa.int32()), pa.array([7, 8])),
            little_endian(2, 5),
            little_endian(-2, 5),
        ),
    ],
    ids=["end", "offset", "negative", "text", "list", "dictionary", "view", "runs"],
)
def test_what_an_arrow_file_says_of_its_values_is_checked_before_it_is_followed(
    tmp_path, opener, column, found, lie
):
    write_ipc(pa.table({"ts": range(len(column)), "other": column}), tmp_path / "a.arrow", opener)
    replace_once(tmp_path / "a.arrow", found, lie)
    source = LogFiles.discover(tmp_path)
    with pytest.raises(SourceError, match=r"a\.arrow cannot be read: column 'other': .*write it again"):
        read_all(source)
    assert read_all(source, columns=["ts"])["ts"].to_pylist() == list(range(len(column)))


@pytest.mark.parametrize("name", ["log.arrow", "log.arrows", "log.parquet"])
def test_a_file_that_is_cut_while_it_is_read_is_an_error(tmp_path, name):
    WRITERS[name](events(rows=100_000), tmp_path / name)
    (chunk,) = LogFiles.discover(tmp_path).chunks(1)
    batches = chunk.read(None, 100)
    next(batches)
    with (tmp_path / name).open("r+b") as file:
        file.truncate(10_000)
    with pytest.raises(SourceError, match=rf"{name} was overwritten .* 10,000 bytes"):
        list(batches)


def test_a_length_that_no_memory_holds_is_an_error_that_names_the_file(tmp_path):
    table = pa.table({"ts": range(1000)})
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as sink:
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_file(sink, table.schema, options=options) as writer:
            writer.write_table(table)
    replace_once(tmp_path / "a.arrow", little_endian(8000, width=8), little_endian(1 << 60, width=8))
    with pytest.raises(
        SourceError, match=r"a\.arrow cannot be read: .*more memory than there is.*write it again"
    ):
        read_all(LogFiles.discover(tmp_path))


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_checksums_of_parquet_pages_are_verified(tmp_path, version):
    options = {"compression": "none", "use_dictionary": False, "data_page_version": version}
    pq.write_table(events(), tmp_path / "a.parquet", write_page_checksum=True, **options)
    replace_once(tmp_path / "a.parquet", little_endian(500, 501, width=8), little_endian(500, 502, width=8))
    source = LogFiles.discover(tmp_path)
    with pytest.raises(SourceError, match=r"a\.parquet cannot be read: .*CRC checksum verification failed"):
        read_all(source)
    assert read_all(source, columns=["user"]) == events().select(["user"])


def varint(number):
    zigzag, encoded = 2 * number, b""
    while zigzag > 127:
        encoded += bytes([zigzag & 127 | 128])
        zigzag >>= 7
    return encoded + bytes([zigzag])


@pytest.mark.parametrize("place", [0, 1, -1])
@pytest.mark.parametrize("lie", [12_344, 12_346])
def test_a_parquet_footer_that_contradicts_itself_on_the_rows_is_an_error(tmp_path, place, lie):
    path = tmp_path / "a.parquet"
    numbers = range(12_345)
    pq.write_table(
        pa.table({"ts": numbers}), path, use_dictionary=False, write_statistics=False, store_schema=False
    )
    data = bytearray(path.read_bytes())
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    places = [at for at in range(footer, len(data)) if data.startswith(varint(12_345), at)]
    assert (
        len(places) == 4
    )  # rows of the file, values of the column, its histogram of levels, rows of the row group
    at = places[place]
    data[at : at + len(varint(lie))] = varint(lie)
    path.write_bytes(data)
    with pytest.raises(
        SourceError, match=r"a\.parquet cannot be read: .*(rows|values).*The file is truncated, damaged"
    ):
        read_all(LogFiles.discover(tmp_path))


@pytest.mark.parametrize("name", ["log.parquet", "log.jsonl"])
@pytest.mark.parametrize("nested", [False, True])
def test_text_that_is_not_utf_8_is_an_error_that_names_the_column(tmp_path, name, nested):
    text = [["plain"], ["Grüße"]] if nested else ["plain", "Grüße"]
    if name == "log.parquet":
        pq.write_table(
            pa.table({"ts": [1, 2], "text": text}),
            tmp_path / name,
            compression="none",
            write_statistics=False,
        )
    else:
        rows = [{"ts": ts, "text": value} for ts, value in enumerate(text)]
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (tmp_path / name).write_bytes(lines.encode())
    assert read_all(LogFiles.discover(tmp_path))["text"].to_pylist() == text
    replace_once(tmp_path / name, "Grüße".encode(), b"Gr\xffsser")
    source = LogFiles.discover(tmp_path)
    with pytest.raises(SourceError, match=rf"{name} cannot be read: column 'text': .*Invalid UTF8"):
        read_all(source)
    assert read_all(source, columns=["ts"]).num_rows == 2


def test_a_file_that_vanished_is_an_error(tmp_path):
    pq.write_table(events(), tmp_path / "1.parquet")
    pq.write_table(events(), tmp_path / "2.parquet")
    chunks = LogFiles.discover(tmp_path).chunks(1)
    (tmp_path / "2.parquet").unlink()
    with pytest.raises(SourceError, match=r"2\.parquet is not there any more"):
        list(chunks[1].read(None, 100))


@pytest.mark.parametrize("name", ["log.parquet", "log.arrow", "log.arrows", "log.csv", "log.json"])
def test_files_without_rows_add_nothing(tmp_path, name):
    extension = name.split(".")[1]
    WRITERS[name](events(rows=0), tmp_path / f"1.{extension}")
    WRITERS[name](events(rows=3), tmp_path / f"2.{extension}")
    if extension in ("csv", "json"):
        (tmp_path / f"0.{extension}").touch()
        (tmp_path / f"3.{extension}").touch()
    assert read_all(LogFiles.discover(tmp_path))["ts"].to_pylist() == [0, 1, 2]


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_a_file_of_no_bytes_is_damaged(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(SourceError, match=f"{name} cannot be read"):
        LogFiles.discover(tmp_path).chunks(1)


def test_files_that_are_all_empty_have_no_schema(tmp_path):
    (tmp_path / "a.json").touch()
    with pytest.raises(SourceError, match=r"its file is empty: .*a\.json. Skip the replay, or add"):
        LogFiles.discover(tmp_path).chunks(1)


def test_a_column_that_two_directories_give_is_refused(tmp_path):
    folder = tmp_path / "day=1" / "more" / "day=2"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"n": [1]}), folder / "a.parquet")
    with pytest.raises(SchemaError, match=r"two directories of .*a\.parquet give the column 'day'"):
        read_all(LogFiles.discover(tmp_path))
    assert read_all(LogFiles.discover(tmp_path / "day=1")).to_pylist() == [{"n": 1, "day": 2}]
