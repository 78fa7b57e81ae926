"""Columns of messages that become columns of structs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from flinkcore._internal.arrow.column_ops import shown_names
from flinkcore.errors import ConfigurationError, SchemaError
from flinkcore.log.decoding.decoded_chunk import BadMessage, BadRows, DecodedRows
from flinkcore.log.decoding.json_values import JsonValues
from flinkcore.log.decoding.value_decoder import ValueDecoder
from flinkcore.log.sources.chunks import Chunk

_LOOKED_AT = 100
"""Messages of which to name the keys."""

_EXAMPLE = 'such as {"value": json_values("user STRING, price DOUBLE")}'


@dataclass(frozen=True)
class DecodedValues:
    """A step that decodes columns of binaries or text; a null one and an empty one are null.

    Attributes
    ----------
    decoders : mapping of str to ValueDecoder
        By column; prepared.
    """

    keeps_rows: ClassVar[bool] = True
    is_columnar: ClassVar[bool] = False

    decoders: Mapping[str, ValueDecoder]

    @classmethod
    def of(cls, decode: Any) -> DecodedValues:
        """Take the decoders that a program gives.

        Raises
        ------
        ConfigurationError
            If it is not a mapping of columns to decoders, or a decoder cannot read its schemas.
        """
        is_mapping = isinstance(decode, Mapping) and all(isinstance(name, str) for name in decode)
        if not is_mapping or not all(callable(getattr(each, "prepared", None)) for each in decode.values()):
            raise ConfigurationError(
                f"decode= is a mapping of columns to decoders, {_EXAMPLE}, or 'debezium', not {decode!r:.80}"
            )
        return cls({name: decoder.prepared() for name, decoder in decode.items()})

    def check(self, source: pa.Schema) -> None:
        """Raise a SchemaError if the source of a log lacks a column to decode, or has another type of it."""
        for name in self.decoders:
            if name not in source.names:
                raise SchemaError(
                    f"decode= names column {name!r}, which the log does not have: {shown_names(source)}"
                )
            kind = source.field(name).type
            if not (pa.types.is_binary(kind) or pa.types.is_string(kind) or pa.types.is_null(kind)):
                raise SchemaError(
                    f"decode= names column {name!r}, which is {kind}: messages are binary or text. Leave it out if it "
                    "is decoded already"
                )

    def schema(self, before: pa.Schema) -> pa.Schema:
        return pa.schema(
            [
                pa.field(field.name, self.decoders[field.name].type) if field.name in self.decoders else field
                for field in before
            ]
        )

    def inputs(self, names: Sequence[str]) -> list[str]:
        return list(names)

    def makes(self, name: str) -> bool:
        return name in self.decoders

    def why_null(self, name: str, chunk: Chunk) -> str | None:
        for column, decoder in self.decoders.items():
            if name == column:
                return None
            if isinstance(decoder, JsonValues) and name.startswith(f"{column}."):
                rows = next(chunk.read([column], _LOOKED_AT), None)
                messages = [] if rows is None else rows.column(0).cast(pa.binary()).to_pylist()
                unknown = decoder.unknown_key(name[len(column) + 1 :].split("."), messages)
                return None if unknown is None else f"{unknown}. Correct the schema of {column!r} in decode="
        return chunk.why_null(name)

    def decode(self, batch: pa.RecordBatch, names: Sequence[str], bad: BadRows) -> DecodedRows:
        decoded = DecodedRows([])
        for name in names:
            column = batch.column(name)
            if name in self.decoders:
                messages = column.cast(pa.binary()).to_pylist()
                found = self.decoders[name].decode(messages)
                for row, reason in found.faults.items():
                    text = messages[row].decode(errors="backslashreplace")
                    decoded.faults.setdefault(row, BadMessage(name, reason, text))
                column = found.values
            decoded.columns.append(column)
        return decoded
