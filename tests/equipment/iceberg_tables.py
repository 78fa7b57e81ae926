"""Iceberg tables in a catalog of one test, also with files that the library `pyiceberg` reads and does not write."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record
from pyroaring import BitMap


def catalog_at(path: Path) -> Catalog:
    """A catalog in a directory, with the namespace `logs`."""
    settings = {"type": "sql", "uri": f"sqlite:///{path}/catalog.db", "warehouse": f"file://{path}/warehouse"}
    catalog = load_catalog("test", **settings)
    catalog.create_namespace("logs")
    return catalog


def data_files(table: Any) -> list[str]:
    """Locations of the table's files."""
    return sorted(task.file.file_path for task in table.scan().plan_files())


def puffin(deleted: Mapping[str, Iterable[int]]) -> bytes:
    """A Puffin file with the deletion vectors of data files."""
    content, blobs = b"PFA1", []
    for file, rows in deleted.items():
        bitmap = BitMap(rows).serialize()
        vector = bytes.fromhex("d1d33964") + (1).to_bytes(8, "little") + bytes(4) + bitmap
        blob = len(vector).to_bytes(4, "big") + vector + crc32(vector).to_bytes(4, "big")
        blobs.append(
            {
                "type": "deletion-vector-v1",
                "fields": [],
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": len(content),
                "length": len(blob),
                "properties": {"referenced-data-file": file},
            }
        )
        content += blob
    footer = json.dumps({"blobs": blobs}).encode()
    return content + b"PFA1" + footer + len(footer).to_bytes(4, "little") + bytes(4) + b"PFA1"


def add_file(
    table: Any,
    name: str,
    rows: pa.Table | bytes,
    content: DataFileContent = DataFileContent.DATA,
    partition: Mapping[int, Any] | None = None,
    **file: Any,
) -> None:
    """Write a file into the table as it is, and add it: data, position deletes or equality deletes."""
    location = f"{table.location()}/data/{name}"
    path = Path(location.removeprefix("file://"))
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(rows, bytes):
        path.write_bytes(rows)
    else:
        pq.write_table(rows, path)
    arguments = {
        "content": content,
        "file_path": location,
        "file_format": FileFormat.PARQUET,
        "partition": Record(*(partition or {}).values()),
        "record_count": 1 if isinstance(rows, bytes) else rows.num_rows,
        "file_size_in_bytes": path.stat().st_size,
        "column_sizes": {},
        "value_counts": {},
        "null_value_counts": {},
        "nan_value_counts": {},
        "lower_bounds": {},
        "upper_bounds": {},
        "split_offsets": None,
        "equality_ids": None,
        "sort_order_id": None,
        "key_metadata": None,
        "spec_id": table.metadata.default_spec_id,
        **file,
    }
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
        append.append_data_file(DataFile.from_args(**arguments))
