"""Small files that unpack to more than a process may have end a replay with an error that names them."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from equipment.process_limits import limit_memory

MOST_BYTES = 256 << 20
"""That reading a file may add to the address space of its process."""

READ = """
import json, sys, warnings
from flinkcore.errors import OutOfMemoryError, SourceError
from flinkcore.log.sources.log_sources import LogFiles

def read(path):
    try:
        return sum(batch.num_rows for chunk in LogFiles.discover(path).chunks(1) for batch in chunk.read(None, 1 << 17))
    except (OutOfMemoryError, SourceError) as error:
        return str(error)

warnings.simplefilter("ignore")
small, *bombs = sys.argv[2:]
read(small)  # loads what is needed
limit_memory(int(sys.argv[1]))
print(json.dumps([read(path) for path in bombs]))
"""


def texts(path: Path, length: int) -> None:
    """Many rows of a text that Parquet has once."""
    rows = pa.array(np.zeros(200_000, np.int32))
    table = pa.table({"ts": rows, "text": pa.DictionaryArray.from_arrays(rows, ["x" * length])})
    pq.write_table(
        table,
        path,
        compression="zstd",
        dictionary_pagesize_limit=2 * length + 100,
        write_statistics=False,
        store_schema=False,
    )


def numbers(path: Path, rows: int) -> None:
    """A batch of zeros, as Arrow compresses it."""
    batch = pa.record_batch({"ts": np.zeros(rows, np.int64)})
    with pa.ipc.new_file(path, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(batch)


def records(path: Path, length: int) -> None:
    """A record of Avro with bytes that deflate well."""
    kinds = [{"name": "ts", "type": "long"}, {"name": "value", "type": "bytes"}]
    schema = fastavro.parse_schema({"type": "record", "name": "event", "fields": kinds})
    with path.open("wb") as file:
        fastavro.writer(file, schema, [{"ts": 1, "value": bytes(length)}], codec="deflate")


def lines(path: Path, length: int) -> None:
    """A second line that is very long."""
    begin = (b'{"ts": 1}\n{"ts": ', b"}\n") if ".json" in path.name else (b"ts\n1\n", b"\n")
    with gzip.open(path, "wb", 1) as file:
        file.write(begin[0])
        for _ in range(max(length >> 20, 1)):
            file.write(b"1" * min(length, 1 << 20))
        file.write(begin[1])


@pytest.mark.parametrize(
    ("name", "write", "size"),
    [
        ("log.parquet", texts, 1 << 20),
        ("log.arrow", numbers, MOST_BYTES >> 2),
        ("log.avro", records, MOST_BYTES + (64 << 20)),
        ("log.csv.gz", lines, MOST_BYTES + (64 << 20)),
        ("log.json.gz", lines, MOST_BYTES + (64 << 20)),
    ],
)
def test_a_small_file_that_unpacks_to_more_than_the_process_may_have_is_refused(
    tmp_path: Path, name: str, write: Callable[[Path, int], None], size: int
) -> None:
    small, bomb = tmp_path / f"small-{name}", tmp_path / name
    write(small, 1)
    write(bomb, size)
    assert bomb.stat().st_size < size // 200
    command = [sys.executable, "-c", limit_memory() + READ, str(MOST_BYTES), str(small), str(bomb)]
    environment = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system"}  # others take addresses in advance
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    (found,) = json.loads(done.stdout)
    assert isinstance(found, str), f"{found} rows"
    assert str(bomb) in found
