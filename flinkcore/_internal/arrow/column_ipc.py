"""Named columns of any lengths as one Arrow IPC stream: what tasks and driver exchange of the time plane."""

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from flinkcore.errors import DataError, SchemaError

_VERSION = 1


def write_columns(kind: str, scalars: Mapping[str, Any], columns: Mapping[str, Any]) -> bytes:
    """Return an Arrow IPC stream of one row, whose columns are lists.

    Parameters
    ----------
    kind : str
        Kind of the content; `read_columns` checks it.
    scalars : mapping
        Further values, as JSON in the metadata of the schema.
    columns : mapping of str to numpy.ndarray or list

    Raises
    ------
    SchemaError
        If a list holds values of different types, or of a type that Arrow does not know.
    """
    lists = {}
    for name, values in columns.items():
        try:
            array = _array(values)
        except (pa.ArrowException, OverflowError) as error:
            raise SchemaError(
                f"{name} cannot be an Arrow column: {error}; cast the column to one type"
            ) from error
        lists[name] = pa.LargeListArray.from_arrays(pa.array([0, len(array)], pa.int64()), array)
    header = json.dumps({"kind": kind, "version": _VERSION, **scalars})
    fields = [pa.field(name, array.type) for name, array in lists.items()]
    schema = pa.schema(fields, {"flinkcore": header})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(list(lists.values()), schema=schema))
    return bytes(sink.getvalue())


def _array(values: Any) -> pa.Array:
    try:
        return pa.array(values)
    except OverflowError:
        # Arrow takes all integers for int64: these are of a column of unsigned ones.
        return pa.array(values, pa.uint64())


def read_columns(kind: str, data: bytes) -> tuple[dict[str, Any], dict[str, pa.Array]]:
    """Return the scalars and columns that `write_columns` wrote.

    Raises
    ------
    DataError
        If the bytes are not of this kind, or of another version.
    """
    try:
        with pa.ipc.open_stream(data) as reader:
            batch = reader.read_next_batch()
        header = json.loads(batch.schema.metadata[b"flinkcore"])
    except (pa.ArrowException, StopIteration, KeyError, TypeError, ValueError) as error:
        raise DataError(f"these {len(data)} bytes are not {kind}: {error}") from error
    if header.pop("kind", None) != kind or header.pop("version", None) != _VERSION:
        raise DataError(
            f"these {len(data)} bytes are not {kind} of this version of flinkcore; make them again"
        )
    return header, {name: batch.column(name).flatten() for name in batch.schema.names}
