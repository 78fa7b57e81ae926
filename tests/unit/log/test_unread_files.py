"""Files that are sound but cannot be read here say why; and what is read of a file for its number of rows alone."""

import bz2
import codecs
import gzip

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from equipment.encrypted_parquet import write_encrypted

from flinkcore._internal.arrow.plain_columns import narrowest
from flinkcore.errors import SchemaError, SourceError
from flinkcore.log.formats.file_format import source_faults
from flinkcore.log.sources.log_sources import LogFiles

SECRETS = pa.table({"ts": [1, 2], "secret": ["a", "b"]})


def read(path, columns=None):
    (chunk,) = LogFiles.discover(path).chunks(1)
    return pa.Table.from_batches(chunk.read(columns, 10))


@pytest.mark.parametrize(
    ("plaintext_footer", "encrypted", "columns"),
    [
        (False, ["secret"], ["ts"]),
        (True, ["secret"], ["secret"]),
        (True, ["secret"], None),
        (True, ["ts"], ["ts"]),
    ],
)
def test_encrypted_parquet_is_named_as_such(tmp_path, plaintext_footer, encrypted, columns):
    path = tmp_path / "a.parquet"
    write_encrypted(path, SECRETS, encrypted, plaintext_footer)
    with pytest.raises(SourceError, match=r"a\.parquet cannot be read: .*The file is encrypted, or") as error:
        read(path, columns)
    assert "damaged" not in str(error.value)


def test_columns_that_are_not_encrypted_are_read(tmp_path):
    write_encrypted(tmp_path / "a.parquet", SECRETS, ["secret"], True)
    assert read(tmp_path / "a.parquet", ["ts"]).to_pydict() == {"ts": [1, 2]}


@pytest.mark.parametrize(
    "text",
    [
        "Support for codec 'lzo' not built",
        "Not yet implemented: Unsupported encoding.",
        "Expected all lists to be of size=2 but index 3 had size=0",
    ],
)
@pytest.mark.parametrize("kind", [pa.ArrowNotImplementedError, OSError])
def test_what_arrow_does_not_implement_is_not_called_damaged(kind, text):
    message = "a.parquet cannot be read: .*Arrow does not read this: write the file with another compression"
    with pytest.raises(SourceError, match=message), source_faults("a.parquet", "It is damaged"):
        raise kind(text)


def test_a_compression_of_avro_that_is_not_known_is_not_called_damaged(tmp_path):
    with (tmp_path / "a.avro").open("wb") as file:
        schema = {"type": "record", "name": "r", "fields": [{"name": "ts", "type": "long"}]}
        fastavro.writer(file, schema, [{"ts": 1}], codec="deflate")
    content = (tmp_path / "a.avro").read_bytes().replace(b"\x0edeflate", b"\x0eunknown")
    (tmp_path / "a.avro").write_bytes(content)
    with pytest.raises(
        SourceError, match="compressed by b'unknown', which is not supported; supported are null"
    ) as error:
        read(tmp_path / "a.avro")
    assert "damaged" not in str(error.value)


@pytest.mark.parametrize("name", ["a.csv", "a.json"])
@pytest.mark.parametrize(
    ("encode", "message"),
    [
        (
            lambda text: text.encode("utf-16"),
            "it is not UTF-8, but UTF-16 or UTF-32, or not text: write it as UTF-8",
        ),
        (lambda text: codecs.BOM_UTF16_BE + text.encode("utf-16-be"), "it is not UTF-8, but UTF-16"),
        (
            lambda text: gzip.compress(text.encode()),
            "it is compressed, but its name does not say so: rename it",
        ),
        (
            lambda text: bz2.compress(text.encode()),
            "it is compressed, but its name does not say so: rename it",
        ),
        (lambda text: pa.compress(text.encode(), "zstd", asbytes=True), "it is compressed, but its name"),
    ],
)
def test_text_in_other_bytes_is_not_called_damaged(tmp_path, name, encode, message):
    text = "ts\n1\n" if name == "a.csv" else '{"ts": 1}\n'
    (tmp_path / name).write_bytes(encode(text))
    with pytest.raises(SourceError, match=rf"a\..* cannot be read: {message}") as error:
        read(tmp_path / name)
    assert "damaged" not in str(error.value)


def test_files_without_columns_are_not_called_empty(tmp_path):
    for number in range(2):
        pq.write_table(pa.table({}), tmp_path / f"{number}.parquet")
    with pytest.raises(
        SchemaError, match=r"the log has no columns: .*0\.parquet and so on may have rows, but a row"
    ):
        read(tmp_path)
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "a.json").write_text("{}\n{}\n")
    with pytest.raises(
        SchemaError, match=r"a\.json may have rows, but a row without columns has no timestamp"
    ):
        read(tmp_path / "lines")


@pytest.mark.parametrize(
    ("columns", "name"),
    [
        ({"m": pa.map_(pa.string(), pa.string()), "t": pa.string(), "n": pa.int64(), "b": pa.bool_()}, "b"),
        ({"m": pa.map_(pa.string(), pa.string()), "t": pa.string(), "d": pa.decimal256(50, 1)}, "d"),
        ({"s": pa.struct({"x": pa.int8()}), "t": pa.binary()}, "t"),
        ({"l": pa.list_(pa.int8())}, "l"),
    ],
)
def test_the_column_that_takes_least_tells_the_number_of_rows(columns, name):
    assert narrowest(pa.schema(columns)) == [name]


@pytest.mark.parametrize("extension", ["parquet", "arrow"])
def test_only_the_narrowest_column_is_read_for_partitions_alone(tmp_path, extension, monkeypatch):
    folder = tmp_path / "day=1"
    folder.mkdir()
    table = pa.table(
        {"wide": [[("k", "v")]] * 5, "flag": [True] * 5},
        schema=pa.schema({"wide": pa.map_(pa.string(), pa.string()), "flag": pa.bool_()}),
    )
    if extension == "parquet":
        pq.write_table(table, folder / "a.parquet")
    else:
        with pa.OSFile(str(folder / "a.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    source = LogFiles.discover(tmp_path)
    (chunk,) = source.chunks(1)
    asked = []
    batches = type(source.format).batches
    monkeypatch.setattr(
        type(source.format),
        "batches",
        lambda self, file, pieces, columns: (
            asked.append(columns.names),
            batches(self, file, pieces, columns),
        )[1],
    )
    assert [batch.to_pydict() for batch in chunk.read(["day"], 10)] == [{"day": [1] * 5}]
    assert asked == [["flag"]]
