"""Changes of a database in Debezium's envelope: each becomes the rows that it inserts, updates or deletes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.column_ops import shown_names
from flinkcore._internal.arrow.plain_columns import plain_column
from flinkcore._internal.arrow.unified_types import fits, unified_type
from flinkcore.datastream.graph.columnar_windows import ROW_KIND
from flinkcore.errors import ConfigurationError, SchemaError
from flinkcore.log.decoding.decoded_chunk import BadMessage, BadRows, DecodedRows, Decoding, passed_on
from flinkcore.log.decoding.decoded_values import DecodedValues
from flinkcore.log.decoding.json_values import JsonValues, json_values
from flinkcore.log.decoding.value_decoder import DecodedColumn, ValueDecoder
from flinkcore.log.order.content_order import content_numbers
from flinkcore.log.order.row_order import POSITION
from flinkcore.log.sources.chunks import Chunk

DEBEZIUM: Final = "debezium"
"""Value of ``decode=`` where the envelope lies in the columns of the log."""

_ROWS: Final = ("op", "before", "after")
_OF_SOURCE: Final = ("ts_ms", "source")
_PAYLOAD: Final = "payload"
_SCHEMA: Final = "schema"
_WRAPPER: Final = (_SCHEMA, _PAYLOAD)
_INSERT, _UPDATE, _DELETE, _TOMBSTONE, _BAD = range(5)
_OPERATIONS: Final = {"c": _INSERT, "r": _INSERT, "u": _UPDATE, "d": _DELETE}
_KINDS: Final = pa.array(["+I", "-U", "+U", "-D", None])
_SPARE_BITS: Final = 4
"""So many bits of the 59 of a content are left out: positions of a run have 56."""
_REPLICA_IDENTITY: Final = (
    "the 'before' of {} is null. Let the database record whole rows, as Postgres with REPLICA IDENTITY FULL"
)


def debezium_values(values: Any) -> DebeziumValues:
    """Return the decoder of a column of changes in Debezium's envelope, for ``from_event_log(decode=...)``.

    A creation and a row of a snapshot become one row with the kind ``+I``, an update ``-U`` with the row before and
    ``+U`` with the one after, and a deletion ``-D`` with the row before. The kind is a column ``row_kind``; ``source``
    and ``ts_ms`` of the envelope are columns, too, except where the log has columns of these names, which stay. Null
    values (tombstones) are left out.

    Parameters
    ----------
    values : pyarrow.Schema, pyspark.sql.types.StructType, str, mapping or decoder
        Fields of the rows, if the messages are JSON, with or without the ``schema`` and ``payload`` of Kafka Connect.
        Or the decoder of the envelopes, such as :func:`avro_values`.

    Returns
    -------
    DebeziumValues

    Raises
    ------
    ConfigurationError
        If the schema is not one.

    Notes
    -----
    Follows Flink's ``DebeziumJsonDeserializationSchema``, which also refuses updates and deletions without the row
    before.

    Examples
    --------
    >>> env.from_event_log(path, decode={"value": debezium_values("id BIGINT, name STRING")}, ...)  # doctest: +SKIP
    """
    if callable(getattr(values, "prepared", None)):
        return DebeziumValues(values)
    row = json_values(values).type
    source = pa.struct({"ts_ms": pa.int64(), "db": pa.string(), "schema": pa.string(), "table": pa.string()})
    envelope = {"op": pa.string(), "before": row, "after": row, "ts_ms": pa.int64(), "source": source}
    return DebeziumValues(JsonValues(pa.schema({**envelope, _PAYLOAD: pa.struct(envelope)})))


@dataclass(frozen=True)
class DebeziumValues:
    """Decoder of envelopes; made by `debezium_values`. `DebeziumChanges` makes rows of them.

    Attributes
    ----------
    envelopes : ValueDecoder
    """

    envelopes: ValueDecoder

    def prepared(self) -> DebeziumValues:
        return DebeziumValues(self.envelopes.prepared())

    @property
    def type(self) -> pa.DataType:
        return self.envelopes.type

    def decode(self, messages: Sequence[bytes | None]) -> DecodedColumn:
        return self.envelopes.decode(messages)


@dataclass(frozen=True)
class DebeziumChanges:
    """A step that makes rows of envelopes.

    Attributes
    ----------
    column : str or None
        Column with the envelopes, which becomes one of rows; None if their fields are columns of the log, and so are
        those of the rows.
    paths : mapping of str to tuple of str
        For each field of the envelope, where it is: alone, or also within the payload.
    row : pyarrow.StructType
        Type of the rows.
    made : pyarrow.Schema
        Columns that the step makes.
    content : tuple of str
        Columns whose values give positions to changes that have no others, so that both rows of an update stay
        together: by its own content, the row after could come first. Empty if changes need no positions.
    """

    keeps_rows: ClassVar[bool] = False
    is_columnar: ClassVar[bool] = False

    column: str | None
    paths: dict[str, tuple[tuple[str, ...], ...]]
    row: pa.StructType
    made: pa.Schema
    content: tuple[str, ...] = ()

    @classmethod
    def of(cls, schema: pa.Schema, column: str | None, gives_positions: bool) -> DebeziumChanges:
        """Return the step for a log.

        Parameters
        ----------
        schema : pyarrow.Schema
            Columns before the step.
        column : str or None
            As the attribute.
        gives_positions : bool
            Whether changes that arrive together have no other order than that of their content.

        Raises
        ------
        SchemaError
            If there is not an envelope.
        """
        outer = schema if column is None else pa.schema(list(schema.field(column).type))
        payload = outer.field(_PAYLOAD).type if _PAYLOAD in outer.names else pa.struct([])
        inner = pa.schema(list(payload)) if pa.types.is_struct(payload) else pa.schema([])
        base = () if column is None else (column,)
        paths: dict[str, tuple[tuple[str, ...], ...]] = {}
        types: dict[str, pa.DataType] = {}
        for name in (*_ROWS, *_OF_SOURCE):
            found = [((*base, name), outer)] if name in outer.names else []
            found += [((*base, _PAYLOAD, name), inner)] if name in inner.names else []
            for path, within in found:
                paths[name] = (*paths.get(name, ()), path)
                kind = within.field(name).type
                types[name] = _united(name, types.get(name, pa.null()), kind)
        missing = [name for name in ("op", "after") if name not in paths]
        if missing:
            where = "the log" if column is None else f"column {column!r}"
            raise SchemaError(
                f"{where} has no {' and no '.join(map(repr, missing))}, which Debezium's envelope has: "
                f"{shown_names(outer)}"
            )
        row = _united("before and after", types.get("before", pa.null()), types["after"])
        if not pa.types.is_struct(row):
            raise SchemaError(f"'after' of Debezium's envelope is {row}, and rows are structs")
        made = {field.name: field.type for field in row} if column is None else {column: row}
        made.setdefault(ROW_KIND, pa.string())
        if ROW_KIND in (row.names if column is None else schema.names):
            raise SchemaError(
                f"the log has a column {ROW_KIND!r}, and the kinds of changes are to be one: rename it"
            )
        for name in _OF_SOURCE:
            if name in paths and name not in schema.names and name not in made:
                made[name] = types[name]
        content = [name for name in schema.names if column is not None or name != _SCHEMA]
        given_by = tuple(sorted(content)) if gives_positions else ()
        return cls(column, paths, row, pa.schema(list(made.items())), given_by)

    def schema(self, before: pa.Schema) -> pa.Schema:
        left = [
            field for field in before if not self._takes(field.name) and field.name not in self.made.names
        ]
        return pa.schema([*self.made, *left])

    def _takes(self, name: str) -> bool:
        return self.column is None and name in (*_ROWS, *_WRAPPER)

    def inputs(self, names: Sequence[str]) -> list[str]:
        read = [path[0] for name in _ROWS for path in self.paths.get(name, ())]
        for name in names:
            if self._gives(name):
                read += self.content
            elif name in _OF_SOURCE and name in self.made.names:  # or a field of the rows has this name
                read += [path[0] for path in self.paths.get(name, ())]
            elif name not in self.made.names:
                read.append(name)
        return list(dict.fromkeys(read))

    def makes(self, name: str) -> bool:
        return name in self.made.names or self._gives(name)

    def _gives(self, name: str) -> bool:
        return name == POSITION and bool(self.content)

    def why_null(self, name: str, chunk: Chunk) -> str | None:
        return None if self.makes(name) else chunk.why_null(name)

    def decode(self, batch: pa.RecordBatch, names: Sequence[str], bad: BadRows) -> DecodedRows:
        operations = self._field(batch, "op", pa.string())
        sides = [self._field(batch, name, self.row) for name in ("before", "after")]
        codes = _codes(operations, *sides)
        if bad is not None:
            codes[bad] = _BAD
        decoded = DecodedRows([], self._faults(operations, sides, codes, bad))
        codes[list(decoded.faults)] = _BAD
        rows = np.repeat(np.arange(len(codes)), _ROWS_OF[codes])
        is_second = np.zeros(len(rows), np.bool_)
        is_second[1:] = (rows[1:] == rows[:-1]) if len(rows) else False
        kinds = _KIND_OF[codes[rows]] + is_second
        has_before = (kinds == 1) | (kinds == 3)
        places = rows + np.where(has_before, 0, len(codes))
        made = pa.concat_arrays(sides).take(pa.array(places))
        decoded.rows = rows
        for name in names:
            if name == ROW_KIND:
                column = _KINDS.take(pa.array(kinds))
            elif name == self.column:
                column = made
            elif self.column is None and name in self.row.names:
                column = pc.struct_field(made, name)
            elif name in self.made.names:
                column = self._field(batch, name, self.made.field(name).type).take(pa.array(rows))
            elif self._gives(name):
                numbers = content_numbers(batch.select(list(self.content))) >> _SPARE_BITS
                column = pa.array(numbers[rows])
            else:
                column = passed_on(batch, name, rows)
            if name == POSITION:  # both rows of an update are one record of the source
                column = pa.array(2 * column.to_numpy() + is_second)
            decoded.columns.append(column)
        return decoded

    def _field(self, batch: pa.RecordBatch, name: str, kind: pa.DataType) -> pa.Array:
        """Return a field of the envelopes, from the payload where there is one."""
        found = pa.nulls(batch.num_rows, kind)
        for column, *inner in self.paths.get(name, ()):
            values = batch.column(column)
            for field in inner:
                values = pc.struct_field(values, field)
            if pa.types.is_null(values.type):
                continue
            values = plain_column(values, kind)
            # There are no choices between structs in all versions of Arrow.
            is_there = values.is_valid().to_numpy(zero_copy_only=False)
            both = pa.concat_arrays([found, values])
            found = both.take(pa.array(np.arange(len(found)) + np.where(is_there, len(found), 0)))
        return found

    def _faults(
        self,
        operations: pa.Array,
        sides: Sequence[pa.Array],
        codes: npt.NDArray[np.int64],
        bad: BadRows,
    ) -> dict[int, BadMessage]:
        lacks_before, lacks_after = map(_nulls, sides)
        wrong = (
            ((codes == _BAD), "its op is {}, which is not c, r, u or d"),
            (((codes == _UPDATE) | (codes == _DELETE)) & lacks_before, _REPLICA_IDENTITY),
            (((codes == _UPDATE) | (codes == _INSERT)) & lacks_after, "the 'after' of {} is null"),
        )
        faults: dict[int, BadMessage] = {}
        for rows, reason in wrong:
            for row in np.flatnonzero(rows if bad is None else rows & ~bad).tolist():
                shown = {
                    name: side[row].as_py() for name, side in zip(_ROWS, (operations, *sides), strict=True)
                }
                text = json.dumps(shown, default=str)
                named = f"a change of op {shown['op']!r}" if reason != wrong[0][1] else repr(shown["op"])
                faults.setdefault(row, BadMessage(self.column or "op", reason.format(named), text))
        return faults


_ROWS_OF: Final = np.array([1, 2, 1, 0, 1])
"""Rows that a change becomes, by its code."""
_KIND_OF: Final = np.array([0, 1, 3, 4, 4])
"""Kind of the first of them, as a place in `_KINDS`."""


def _codes(operations: pa.Array, before: pa.Array, after: pa.Array) -> npt.NDArray[np.int64]:
    codes = np.array([_OPERATIONS.get(operation, _BAD) for operation in operations.to_pylist()], np.int64)
    is_nothing = _nulls(operations) & _nulls(before) & _nulls(after)
    codes[is_nothing] = _TOMBSTONE
    return codes


def _nulls(column: pa.Array) -> npt.NDArray[np.bool_]:
    mask: npt.NDArray[np.bool_] = column.is_null().to_numpy(zero_copy_only=False)
    return mask


def _united(name: str, first: pa.DataType, second: pa.DataType) -> pa.DataType:
    united = unified_type(first, second)
    if not fits(second, united):
        raise SchemaError(
            f"{name} of Debezium's envelope is both {first} and {second}: give files its type in schema=, and a "
            "DataFrame by spark.read.schema(...), which takes a column of nulls alone for text"
        )
    return united


def steps_of(schema: pa.Schema, decode: Any, gives_positions: bool = False) -> Decoding:
    """Return the steps that decode a log.

    Parameters
    ----------
    schema : pyarrow.Schema
        Columns before the steps.
    decode : mapping of str to ValueDecoder, or "debezium"
        As given to ``from_event_log``.
    gives_positions : bool
        Whether steps that make several rows of one give them a column `POSITION`, for the log has no other order of
        rows that arrive together than that of their content.

    Raises
    ------
    ConfigurationError
        If it is neither, or a decoder cannot read its schemas.
    SchemaError
        If the log lacks a column to decode, or has another type of it.
    """
    if decode == DEBEZIUM:
        return (DebeziumChanges.of(schema, None, gives_positions),)
    values = DecodedValues.of(decode)
    values.check(schema)
    columns = [name for name, decoder in values.decoders.items() if isinstance(decoder, DebeziumValues)]
    if len(columns) > 1:
        raise ConfigurationError(
            f"decode= has Debezium's envelopes in {' and '.join(columns)}: a log has them in one column"
        )
    decoded = values.schema(schema)
    return (values, *(DebeziumChanges.of(decoded, column, gives_positions) for column in columns))
