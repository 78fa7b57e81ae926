"""Binaries in messages of JSON, which are texts in base64."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore.log.decoding.value_decoder import DecodedColumn, ValueDecoder


def types_within(kind: pa.DataType) -> Iterator[pa.DataType]:
    """Yield a type and those of its fields and elements."""
    yield kind
    for number in range(kind.num_fields):
        yield from types_within(kind.field(number).type)


def has_binaries(kind: pa.DataType) -> bool:
    """Return whether a type is binary or has binary fields or elements."""
    return any(pa.types.is_binary(each) for each in types_within(kind))


@dataclass(frozen=True)
class Base64Fields:
    """A decoder whose binary fields are texts in base64, as Flink's JSON format has them.

    Attributes
    ----------
    messages : ValueDecoder
        Decoder that reads the texts as binaries.
    is_lenient : bool
        Whether a field that is not base64 is null, and not a fault.
    """

    messages: ValueDecoder
    is_lenient: bool

    def prepared(self) -> Base64Fields:
        return replace(self, messages=self.messages.prepared())

    @property
    def type(self) -> pa.DataType:
        return self.messages.type

    def decode(self, messages: Sequence[bytes | None]) -> DecodedColumn:
        found = self.messages.decode(messages)
        columns = []
        for number, field in enumerate(self.type):
            column = pc.struct_field(found.values, number)
            if has_binaries(field.type):
                values = column.to_pylist()
                for row, value in enumerate(values):
                    try:
                        values[row] = _decoded(value, field.type)
                    except ValueError as failure:
                        values[row] = None
                        if not self.is_lenient:
                            found.faults.setdefault(row, f"field {field.name!r} is not base64: {failure}")
                column = pa.array(values, field.type)
            columns.append(column)
        is_null = found.values.is_null()
        return DecodedColumn(
            pa.StructArray.from_arrays(columns, fields=list(self.type), mask=is_null), found.faults
        )


def _decoded(value: Any, kind: pa.DataType) -> Any:
    """Return a value with decoded binaries; raise a ValueError if one is not base64."""
    if value is None or not has_binaries(kind):
        return value
    if pa.types.is_struct(kind):
        return {field.name: _decoded(value[field.name], field.type) for field in kind}
    if pa.types.is_list(kind):
        return [_decoded(each, kind.value_type) for each in value]
    return b64decode(b"".join(value.split()), validate=True)
