"""Checkpoints whose content was changed, and whose checksums were made anew: no checksum tells of that."""

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa


def manifest_of(path: Path) -> Path:
    (found,) = path.glob("manifest-*.json")
    return found


def read_content(path: Path) -> dict[str, Any]:
    """What the manifest says."""
    content: dict[str, Any] = json.loads(manifest_of(path).read_text())["checkpoint"]
    return content


def write_content(path: Path, content: Any) -> None:
    """Let the manifest say something, with a checksum that is right."""
    document = json.loads(manifest_of(path).read_text())
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    document |= {"checkpoint": content, "sha256": hashlib.sha256(text.encode()).hexdigest()}
    manifest_of(path).write_text(json.dumps(document))


def forge(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change what the manifest says, and let it count its tables as the writer would."""
    content = read_content(path)
    counts = _table_counts(content)
    change(content)
    with suppress(AttributeError, KeyError, TypeError):  # no parts, whose tables could be counted
        if counts != _table_counts(content):
            content["n_tables"] = _table_counts(content)
    write_content(path, content)


def _table_counts(content: dict[str, Any]) -> dict[str, list[int]]:
    counts: dict[str, list[int]] = {}
    for part in sorted(content["parts"], key=lambda part: part["subtask"]):
        counts.setdefault(str(part["uid"]), []).append(len(part["tables"]))
    return counts


def read_table(path: Path, table: dict[str, Any]) -> pa.RecordBatch:
    """The rows of a table of the manifest."""
    with pa.ipc.open_file(path / table["file"]) as reader:
        return reader.get_batch(0)


def write_file(path: Path, table: dict[str, Any], data: bytes) -> None:
    """Let a table's file have some bytes, and its entry tell of them."""
    (path / table["file"]).write_bytes(data)
    table |= {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def arrow_file(batch: pa.RecordBatch, compression: str | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def write_table(path: Path, table: dict[str, Any], batch: pa.RecordBatch) -> None:
    """Let a table have other rows, and its entry tell of them as the writer would."""
    write_file(path, table, arrow_file(batch))
    table["n_rows"] = batch.num_rows
    names = batch.schema.names
    if table["kind"] == "timers" and names[:2] == ["is_event_time", "timestamp_ms"]:
        pairs = list(zip(*(batch.column(number).to_pylist() for number in (0, 1)), strict=True))
        table["attributes"] = {
            domain: _extent([time for is_event_time, time in pairs if is_event_time is wanted])
            for domain, wanted in (("event_time", True), ("processing_time", False))
        }
    if table["kind"] == "windows" and "window_end" in names:
        ends = [end for end in batch.column(names.index("window_end")).to_pylist() if end is not None]
        least, greatest = (min(ends), max(ends)) if ends else (None, None)
        table["attributes"] |= {"earliest_end_ms": least, "latest_end_ms": greatest}


def _extent(times: list[Any]) -> dict[str, Any]:
    known = [time for time in times if time is not None]
    return {"count": len(times)} | ({"earliest_ms": min(known), "latest_ms": max(known)} if known else {})


def forge_table(
    path: Path, kind: str, change: Callable[[pa.RecordBatch], pa.RecordBatch], at: int = 0
) -> None:
    """Change the rows of a table of a kind, of those that there are the one at a place."""

    def of_content(content: dict[str, Any]) -> None:
        tables = [each for part in content["parts"] for each in part["tables"] if each["kind"] == kind]
        write_table(path, tables[at], change(read_table(path, tables[at])))

    forge(path, of_content)


def with_column(batch: pa.RecordBatch, name: str, values: Any) -> pa.RecordBatch:
    """A batch with other values in a column, which are an array, or a list of values of the type that it had."""
    place = batch.schema.get_field_index(name)
    array = values if isinstance(values, pa.Array) else pa.array(values, batch.schema.field(name).type)
    return batch.set_column(place, name, array)
