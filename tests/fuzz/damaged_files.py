"""Damaged and forged log files, and what a replay makes of each; run as a program, it answers `fuzz.trials`."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from fuzz.trials import serve

from flinkcore._internal.io.avro_files import raw_schema
from flinkcore.common import Duration, Time, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count, max_, sum_
from flinkcore.errors import FlinkcoreError
from flinkcore.log.sources.log_sources import LogFiles

ROWS = 300
FLAT = ("ts", "arrival", "split", "user", "price", "amount", "flag", "at")

AVRO_TYPES: dict[str, list[Any]] = {
    "ts": ["long"],
    "arrival": ["long"],
    "split": ["string"],
    "user": ["string"],
    "price": ["double"],
    "amount": ["int"],
    "flag": ["boolean"],
    "at": [{"type": "long", "logicalType": "local-timestamp-micros"}],
    "tags": [{"type": "array", "items": ["null", "string"]}],
    "place": [
        {
            "type": "record",
            "name": "place",
            "fields": [{"name": "x", "type": "double"}, {"name": "name", "type": "string"}],
        }
    ],
    "exact": [{"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}],
    "bytes": ["bytes"],
}


@cache
def events() -> pa.Table:
    """A log with columns of many types and layouts; those in `FLAT` fit into text formats."""
    rng = random.Random(1)
    numbers = range(ROWS)
    users = [None if n % 50 == 49 else f"user-{rng.randrange(20)}" for n in numbers]
    texts = pa.array([None if n % 9 == 8 else "ß" * (n % 25) for n in numbers])
    return pa.table(
        {
            "ts": pa.array([1_000 * n - rng.randrange(3_000) for n in numbers], pa.int64()),
            "arrival": pa.array([1_000 * n for n in numbers], pa.int64()),
            "split": pa.array([f"s{n % 3}" for n in numbers]),
            "user": pa.array(users),
            "price": pa.array([None if n % 11 == 10 else n / 4 for n in numbers], pa.float64()),
            "amount": pa.array(numbers, pa.int32()),
            "flag": pa.array([n % 2 == 0 for n in numbers]),
            "at": pa.array([n * 1_000_001 for n in numbers], pa.timestamp("us")),
            "large": texts.cast(pa.large_string()),
            "tags": pa.array([None if n % 8 == 7 else ["a", "bb", None][: n % 4] for n in numbers]),
            "place": pa.array([{"x": n / 2, "name": f"p{n}"} for n in numbers]),
            "pairs": pa.array([[(f"k{n}", n)] for n in numbers], pa.map_(pa.string(), pa.int64())),
            "exact": pa.array(numbers, pa.int32()).cast(pa.decimal128(12, 2)),
            "bytes": texts.cast(pa.binary()),
            "code": texts.dictionary_encode(),
        }
    )


@cache
def in_arrow_layouts() -> pa.Table:
    """The same with the layouts that only Arrow files have."""
    table = events()
    runs = pa.RunEndEncodedArray.from_arrays(
        pa.array([ROWS // 3, ROWS], pa.int32()), pa.array([7, 8], pa.int64())
    )
    text = table["large"].combine_chunks().cast(pa.string())
    for name, column in (
        ("view", text.cast(pa.string_view())),
        ("half", pa.array([n / 2 for n in range(ROWS)], pa.float32()).cast(pa.float16())),
        ("runs", runs),
        ("user", table["user"].combine_chunks().dictionary_encode()),
    ):
        at = table.schema.get_field_index(name)
        table = table.append_column(name, column) if at < 0 else table.set_column(at, name, column)
    return table


def _write_ipc(path: Path, opener: Callable[..., Any], compression: str | None) -> None:
    table = in_arrow_layouts()
    if compression is not None:
        # Compressed bodies of run ends are not written by every version of Arrow.
        table = table.drop_columns(["runs"])
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.OSFile(str(path), "wb") as sink, opener(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=100)


def _write_parquet(path: Path, **options: Any) -> None:
    pq.write_table(events(), path, row_group_size=100, **options)


def _write_lines(path: Path) -> None:
    lines = "".join(json.dumps(row, default=str) + "\n" for row in events().select(FLAT).to_pylist())
    path.write_bytes(gzip.compress(lines.encode()) if path.suffix == ".gz" else lines.encode())


def _write_avro(path: Path, codec: str) -> None:
    schema = {
        "type": "record",
        "name": "event",
        "fields": [{"name": name, "type": ["null", *kinds]} for name, kinds in AVRO_TYPES.items()],
    }
    with path.open("wb") as file:
        rows = events().select(list(AVRO_TYPES)).to_pylist()
        fastavro.writer(file, fastavro.parse_schema(schema), rows, codec=codec, sync_interval=2_000)


def _write_grown_lines(path: Path) -> None:
    """Lines that get keys, at the top and within objects, as they go on."""
    rows = [
        {**row, "inner": {"a": n, **({"b": [{"x": n, **({"y": "é"} if n % 7 else {})}]} if n > 40 else {})}}
        | ({"new": n} if n > 200 else {})
        for n, row in enumerate(events().select(FLAT).to_pylist())
    ]
    path.write_text("".join(json.dumps(row, default=str) + "\n" for row in rows))


AVRO_LOGICAL: dict[str, tuple[Any, Any]] = {
    "date": ({"type": "int", "logicalType": "date"}, -(2**31)),
    "time": ({"type": "long", "logicalType": "time-micros"}, 86_399_999_999),
    "millis": ({"type": "long", "logicalType": "timestamp-millis"}, 2**63 - 1),
    "nanos": ({"type": "long", "logicalType": "timestamp-nanos"}, -(2**63)),
    "exact": ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, b"\x01\x02"),
    "id": ({"type": "fixed", "name": "id", "size": 16, "logicalType": "uuid"}, b"0123456789abcdef"),
}


def _write_logical_avro(path: Path) -> None:
    """Records with logical types, whose values Python has not, in long forms of nullable types."""
    types = {name: kinds for name, kinds in AVRO_TYPES.items() if name in FLAT}
    logical = {name: [{"type": "null"}, kind] for name, (kind, _) in AVRO_LOGICAL.items()}
    fields = {name: [{"type": "null"}, *kinds] for name, kinds in types.items()} | logical
    record = {
        "type": "record",
        "name": "event",
        "fields": [{"name": n, "type": t} for n, t in fields.items()],
    }
    rows = [
        row | {name: None if at % 5 == 0 else value for name, (_, value) in AVRO_LOGICAL.items()}
        for at, row in enumerate(_raw_rows(types))
    ]
    with path.open("wb") as file:
        fastavro.writer(file, fastavro.parse_schema(raw_schema(record)), rows, sync_interval=2_000)
    path.write_bytes(_with_schema(path.read_bytes(), record))


def _raw_rows(names: Any) -> list[dict[str, Any]]:
    table = events().select(list(names))
    at = table.schema.get_field_index("at")
    return list(table.set_column(at, "at", table["at"].cast(pa.timestamp("us")).cast(pa.int64())).to_pylist())


def _with_schema(data: bytes, schema: Any) -> bytes:
    """A file of Avro with another schema in its header, before the first marker."""
    blocks = io.BytesIO(data)
    reader = fastavro.block_reader(blocks)
    marker = reader._header["sync"]
    header, entries = io.BytesIO(), {"avro.codec": b"null", "avro.schema": json.dumps(schema).encode()}
    fastavro.schemaless_writer(header, {"type": "map", "values": "bytes"}, entries)
    return b"Obj\x01" + header.getvalue() + data[data.index(marker) :]


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes
    ----------
    extension : str
    write : callable
        Writes an undamaged file to a path.
    """

    extension: str
    write: Callable[[Path], None]


KINDS = {
    "arrow-file": Kind("arrow", lambda path: _write_ipc(path, pa.ipc.new_file, None)),
    "arrow-file-lz4": Kind("arrow", lambda path: _write_ipc(path, pa.ipc.new_file, "lz4")),
    "arrow-file-zstd": Kind("arrow", lambda path: _write_ipc(path, pa.ipc.new_file, "zstd")),
    "arrow-stream": Kind("arrows", lambda path: _write_ipc(path, pa.ipc.new_stream, None)),
    "arrow-stream-zstd": Kind("arrows", lambda path: _write_ipc(path, pa.ipc.new_stream, "zstd")),
    "parquet-plain": Kind(
        "parquet", lambda path: _write_parquet(path, compression="none", use_dictionary=False)
    ),
    "parquet-snappy": Kind("parquet", lambda path: _write_parquet(path)),
    "parquet-zstd-v2": Kind(
        "parquet", lambda path: _write_parquet(path, compression="zstd", data_page_version="2.0")
    ),
    "parquet-gzip": Kind("parquet", lambda path: _write_parquet(path, compression="gzip")),
    "parquet-lz4": Kind("parquet", lambda path: _write_parquet(path, compression="lz4")),
    "parquet-delta": Kind(
        "parquet",
        lambda path: _write_parquet(
            path,
            use_dictionary=False,
            column_encoding={
                "ts": "DELTA_BINARY_PACKED",
                "user": "DELTA_BYTE_ARRAY",
                "price": "BYTE_STREAM_SPLIT",
            },
        ),
    ),
    "parquet-checksums": Kind(
        "parquet", lambda path: _write_parquet(path, use_dictionary=False, write_page_checksum=True)
    ),
    "parquet-checksums-v2": Kind(
        "parquet",
        lambda path: _write_parquet(
            path, compression="zstd", use_dictionary=False, write_page_checksum=True, data_page_version="2.0"
        ),
    ),
    "avro": Kind("avro", lambda path: _write_avro(path, "null")),
    "avro-deflate": Kind("avro", lambda path: _write_avro(path, "deflate")),
    "avro-logical": Kind("avro", _write_logical_avro),
    "csv": Kind("csv", lambda path: pacsv.write_csv(events().select(FLAT), path)),
    "csv-gzip": Kind("csv.gz", lambda path: _write_packed_csv(path)),
    "json": Kind("json", _write_lines),
    "json-grown": Kind("json", _write_grown_lines),
    "json-gzip": Kind("json.gz", _write_lines),
}


def _write_packed_csv(path: Path) -> None:
    with pa.CompressedOutputStream(str(path), "gzip") as sink:
        pacsv.write_csv(events().select(FLAT), sink)


@cache
def whole(kind: str) -> bytes:
    """Return the bytes of an undamaged file of a kind."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"whole.{KINDS[kind].extension}"
        KINDS[kind].write(path)
        return path.read_bytes()


@cache
def bytes_with_checksums(kind: str) -> set[int]:
    """Return where in an undamaged file there are bytes of pages that a checksum covers."""
    if not kind.startswith("parquet-checksums"):
        return set()
    data = whole(kind)
    metadata = pq.ParquetFile(pa.BufferReader(data)).metadata
    covered: set[int] = set()
    for number in range(metadata.num_row_groups):
        for leaf in range(metadata.num_columns):
            # Without a dictionary, and with few rows, a column chunk is one page: its header, then these bytes.
            chunk = metadata.row_group(number).column(leaf)
            end = chunk.data_page_offset + chunk.total_compressed_size
            covered.update(range(end - _page_bytes(data, chunk.data_page_offset), end))
    return covered


def _page_bytes(data: bytes, at: int) -> int:
    """Return the third number of a page's header, which is its size; Thrift's compact protocol."""
    number = 0
    for _ in range(3):
        assert data[at] == 0x15  # the next field, of 32 bits
        at, number, shift = at + 1, 0, 0
        while True:
            number |= (data[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 128:
                break
    return number >> 1  # sizes are not negative


# ---- damage


@dataclass(frozen=True)
class Damage:
    """One change of a file.

    Attributes
    ----------
    operation : str
        One of `OPERATIONS`.
    place : int
        Of a byte, modulo the size of the file; from the end, if it is negative.
    length : int
        How many bytes, for those operations that take a number of them.
    value : int
        The bit, byte, number or other place, whichever the operation takes.
    """

    operation: str
    place: int
    length: int
    value: int

    def apply(self, data: bytearray) -> None:
        """Change the bytes of a file."""
        if data:
            OPERATIONS[self.operation](data, self.place % len(data), self.length, self.value)


def _flip(data: bytearray, at: int, length: int, value: int) -> None:
    data[at] ^= 1 << value % 8


def _overwrite(data: bytearray, at: int, length: int, value: int) -> None:
    data[at : at + length] = bytes([value % 256]) * len(data[at : at + length])


def _forge(data: bytearray, at: int, length: int, value: int) -> None:
    """Put another number where one of 4 or 8 bytes may be."""
    width = 8 if length % 2 else 4
    at = at // width * width
    data[at : at + width] = (value & ((1 << 8 * width) - 1)).to_bytes(width, "little")[: len(data) - at]


def _nudge(data: bytearray, at: int, length: int, value: int) -> None:
    """Change a number of 4 bytes by a little."""
    at = at // 4 * 4
    found = int.from_bytes(data[at : at + 4], "little") + value % 9 - 4
    data[at : at + 4] = (found & 0xFFFFFFFF).to_bytes(4, "little")[: len(data) - at]


def _truncate(data: bytearray, at: int, length: int, value: int) -> None:
    del data[at:]


def _insert(data: bytearray, at: int, length: int, value: int) -> None:
    data[at:at] = bytes([value % 256]) * length


def _remove(data: bytearray, at: int, length: int, value: int) -> None:
    del data[at : at + length]


def _swap(data: bytearray, at: int, length: int, value: int) -> None:
    first, second = sorted((at, value % len(data)))
    length = min(length, second - first, len(data) - second)
    one, other = data[first : first + length], data[second : second + length]
    data[first : first + length], data[second : second + length] = other, one


OPERATIONS: dict[str, Callable[[bytearray, int, int, int], None]] = {
    "flip": _flip,
    "overwrite": _overwrite,
    "forge": _forge,
    "nudge": _nudge,
    "truncate": _truncate,
    "insert": _insert,
    "remove": _remove,
    "swap": _swap,
}


def damaged(data: bytes, damages: list[Damage]) -> bytes:
    """Return the bytes of a file, changed by one damage after the other."""
    changed = bytearray(data)
    for damage in damages:
        damage.apply(changed)
    return bytes(changed)


def request(kind: str, damages: list[Damage]) -> Any:
    """Return what `fuzz.trials` asks this program."""
    return [kind, [astuple(damage) for damage in damages]]


# ---- trials


def _rows(path: Path, suspicions: list[str]) -> pa.Table:
    source = LogFiles.discover(path)
    batches = [batch for chunk in source.chunks(2) for batch in chunk.read(None, 128, (), suspicions)]
    for batch in batches:
        batch.validate(full=True)
    return pa.Table.from_batches(batches, source.schema)


def _replay(path: Path) -> pa.Table:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    log = env.from_event_log(str(path), timestamp="ts", arrival="arrival", split="split", on_bad_row="drop")
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(2))
    windows = (
        log.assign_timestamps_and_watermarks(strategy)
        .key_by("user")
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
    )
    return windows.aggregate(events=count(), price=sum_("price"), most=max_("amount")).execute().to_arrow()


def _undamaged(kind: str, folder: str) -> tuple[pa.Table, pa.Table]:
    path = Path(folder) / f"whole.{KINDS[kind].extension}"
    path.write_bytes(whole(kind))
    return _rows(path, []), _replay(path)


def outcome(path: Path, rows: pa.Table, results: pa.Table) -> dict[str, Any]:
    """Read and replay a file; say what became of it.

    Returns
    -------
    dict
        "outcome": "refused", "the same rows", "other rows"; or what must not be: "raw error", "nameless error".
        "detail": the message. With other rows, "first_rows": they are the first of the undamaged ones; "warned".
    """
    suspicions: list[str] = []
    try:
        found = _rows(path, suspicions)
    except FlinkcoreError as error:
        named = path.name in str(error)
        return {
            "outcome": "refused" if named else "nameless error",
            "detail": f"{type(error).__name__}: {error}",
        }
    except Exception as error:
        return {"outcome": "raw error", "detail": f"reading: {type(error).__name__}: {error}"}
    try:
        replayed = _replay(path)
    except FlinkcoreError as error:
        return {"outcome": "refused", "detail": f"{type(error).__name__}: {error}"}
    except Exception as error:
        return {"outcome": "raw error", "detail": f"replay: {type(error).__name__}: {error}"}
    if found.equals(rows) and replayed.equals(results):
        return {"outcome": "the same rows", "detail": ""}
    first_rows = _are_first_rows(found, rows)
    return {"outcome": "other rows", "detail": "", "first_rows": first_rows, "warned": bool(suspicions)}


def _are_first_rows(found: pa.Table, rows: pa.Table) -> bool:
    """Return whether a file has the first rows of the undamaged one, of which text formats may infer other types."""
    try:
        return bool(found.equals(rows.slice(0, found.num_rows).cast(found.schema)))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, ValueError):
        return False


def main() -> None:
    """Answer `fuzz.trials`."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        known = {kind: _undamaged(kind, folder) for kind in KINDS}
        files = iter(range(1 << 62))

        def trial(asked: Any) -> dict[str, Any]:
            kind, damages = asked
            path = Path(folder) / f"{next(files)}.{KINDS[kind].extension}"
            path.write_bytes(damaged(whole(kind), [Damage(*damage) for damage in damages]))
            try:
                return outcome(path, *known[kind])
            finally:
                os.unlink(path)

        serve(trial)


if __name__ == "__main__":
    main()
