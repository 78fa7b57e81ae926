"""Delta tables written by hand, with what the library `deltalake` reads and does not write."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_BITMAP_ARRAY = 1681511377


def column(name: str, kind: str, **metadata: Any) -> dict[str, Any]:
    """A column of a schema, its metadata without their prefix."""
    named = {f"delta.{key}": value for key, value in metadata.items()}
    return {"name": name, "type": kind, "nullable": True, "metadata": named}


def write_delta_log(
    path: Path,
    columns: Iterable[dict[str, Any]],
    files: Iterable[dict[str, Any]],
    *,
    features: Iterable[str] = (),
    readers: Iterable[str] | None = None,
    configuration: Mapping[str, str] | None = None,
    partition_by: Iterable[str] = (),
) -> str:
    """Write the log of a table of one version, and return the table's path; features are of readers and writers."""
    named = list(features)
    actions: list[dict[str, Any]] = [
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": named if readers is None else list(readers),
                "writerFeatures": named,
            }
        },
        {
            "metaData": {
                "id": "6f1e4f0a-0000-4000-8000-000000000000",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": list(columns)}),
                "partitionColumns": list(partition_by),
                "createdTime": 0,
                "configuration": dict(configuration or {}),
            }
        },
        *({"add": file} for file in files),
    ]
    log = path / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020d}.json").write_text("\n".join(map(json.dumps, actions)))
    return str(path)


def add_file(
    path: Path, name: str, rows: pa.Table, partition: Mapping[str, str] | None = None, **action: Any
) -> dict[str, Any]:
    """Write a data file, and return the action that adds it to the table."""
    path.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, path / name, row_group_size=4)
    return {
        "path": quote(name),
        "partitionValues": dict(partition or {}),
        "size": (path / name).stat().st_size,
        "modificationTime": 0,
        "dataChange": True,
        "stats": json.dumps({"numRecords": rows.num_rows}),
        **action,
    }


def deletion_vector(rows: Iterable[int]) -> dict[str, Any]:
    """The descriptor of a deletion vector within the log itself."""
    deleted = BitMap(rows)
    payload = _BITMAP_ARRAY.to_bytes(4, "little") + (1).to_bytes(8, "little") + bytes(4) + deleted.serialize()
    return {
        "storageType": "i",
        "pathOrInlineDv": _z85(payload),
        "sizeInBytes": len(payload),
        "cardinality": len(deleted),
    }


def _z85(data: bytes) -> str:
    padded = data + bytes(-len(data) % 4)
    text = ""
    for start in range(0, len(padded), 4):
        word = int.from_bytes(padded[start : start + 4], "big")
        text += "".join(_Z85[word // 85**place % 85] for place in (4, 3, 2, 1, 0))
    return text
