"""Messages of JSON of which a field that cannot be read is null, as with ``json.ignore-parse-errors``."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final

import pyarrow as pa

from flinkcore.log.decoding.value_decoder import DecodedColumn, ValueDecoder

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_UNREADABLE: Final = (pa.ArrowException, ArithmeticError, TypeError, ValueError)


@dataclass(frozen=True)
class LenientFields:
    """A decoder of JSON that reads the fields of a message one by one if it cannot be decoded as a whole.

    A text that is not an object stays a fault.

    Attributes
    ----------
    messages : ValueDecoder

    Notes
    -----
    Follows Flink's ``JsonToRowDataConverters`` with ``ignoreParseErrors``.
    """

    messages: ValueDecoder

    def prepared(self) -> LenientFields:
        return replace(self, messages=self.messages.prepared())

    @property
    def type(self) -> pa.DataType:
        return self.messages.type

    def decode(self, messages: Sequence[bytes | None]) -> DecodedColumn:
        found = self.messages.decode(messages)
        values: list[Any] = []
        places = list(range(len(messages)))
        for row in sorted(found.faults):
            try:
                value = json.loads(messages[row] or b"", parse_float=Decimal)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                places[row] = len(messages) + len(values)
                values.append(_read(value, self.type))
                del found.faults[row]
        if values:
            both = pa.concat_arrays([found.values, pa.array(values, self.type)])
            found.values = both.take(pa.array(places, pa.int64()))
        return found


def _read(value: Any, kind: pa.DataType) -> Any:
    """Return a value of JSON as one of a type; it and what is within it is null where it cannot be read."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        if not isinstance(value, dict):
            return None
        return {field.name: _read(value.get(field.name), field.type) for field in kind}
    if pa.types.is_list(kind):
        return [_read(each, kind.value_type) for each in value] if isinstance(value, list) else None
    try:
        return pa.scalar(_plain(value, kind), kind).as_py()
    except _UNREADABLE:
        return None


def _plain(value: Any, kind: pa.DataType) -> Any:
    if isinstance(value, str | Decimal):
        text = str(value)
    else:
        text = json.dumps(value, default=float, separators=(",", ":"), ensure_ascii=False)
    if pa.types.is_string(kind):
        return text
    if pa.types.is_binary(kind):
        return text.encode()
    text = text.strip()
    if pa.types.is_boolean(kind):
        return text.lower() == "true"
    if pa.types.is_integer(kind):
        if isinstance(value, Decimal):
            return int(value)
        if _INTEGER.fullmatch(text) is None:
            raise ValueError(text)
        return int(text)
    if pa.types.is_decimal(kind):
        return Decimal(text).quantize(Decimal(1).scaleb(-kind.scale), ROUND_HALF_UP)
    return float(text)
