"""Messages in JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from flinkcore.errors import ConfigurationError
from flinkcore.log.decoding.value_decoder import DecodedColumn
from flinkcore.log.formats.bad_records import Record, SoundRecords, examined
from flinkcore.log.formats.json_format import checked_json_types, parse_lines
from flinkcore.log.schemas.given_schema import GivenSchema

_NULL = b"null"
_MOST_SHOWN = 12


def json_values(schema: Any) -> JsonValues:
    """Return the decoder of a column whose values are objects of JSON, for ``from_event_log(decode=...)``.

    Parameters
    ----------
    schema : pyarrow.Schema, pyspark.sql.types.StructType, str or mapping
        Fields that are read, with their types, such as ``"user STRING, price DOUBLE"``. A field that a value lacks is
        null, and others are left out.

    Returns
    -------
    JsonValues
        It makes a column of structs. An empty value, ``null`` and null are null.

    Raises
    ------
    ConfigurationError
        If the schema is not one, or Arrow does not read one of its types from JSON.

    Examples
    --------
    >>> env.from_event_log(path, decode={"value": json_values("user STRING, at TIMESTAMP")}, ...)  # doctest: +SKIP
    """
    types = GivenSchema.of(schema).types
    if not types:
        raise ConfigurationError(
            "json_values needs the fields of the values, such as 'user STRING, price DOUBLE'"
        )
    return JsonValues(pa.schema(list(checked_json_types(types, "values of JSON").items())))


@dataclass(frozen=True)
class JsonValues:
    """Decoder of objects of JSON; made by `json_values`.

    Attributes
    ----------
    schema : pyarrow.Schema
        Plain types of the fields.
    """

    schema: pa.Schema

    def prepared(self) -> JsonValues:
        return self

    @property
    def type(self) -> pa.DataType:
        return pa.struct(list(self.schema))

    def decode(self, messages: Sequence[bytes | None]) -> DecodedColumn:
        # A line break within a message is white space, for texts have none but escaped ones.
        rows = [
            row for row, message in enumerate(messages) if message and message.strip() not in (b"", _NULL)
        ]
        records = [Record(row, messages[row].translate(_SPACES) + b"\n") for row in rows]  # type: ignore[union-attr]
        parts: list[pa.Array] = []
        found: list[int] = []
        faults: dict[int, str] = {}
        done = 0
        for part in examined(records, self._parsed):
            if isinstance(part, SoundRecords):
                parts += part.rows.to_struct_array().chunks
                found += rows[done : done + part.rows.num_rows]
                done += part.rows.num_rows
            else:
                faults[part.record.line] = part.reason
                done += 1
        places: list[int | None] = [None] * len(messages)
        for place, row in enumerate(found):
            places[row] = place
        values = pa.concat_arrays(parts) if parts else pa.array([], self.type)
        return DecodedColumn(values.take(pa.array(places, pa.int64())), faults)

    def unknown_key(self, path: Sequence[str], messages: Sequence[bytes | None]) -> str | None:
        """Return which key no message has, and which keys there are; None if some message has the field.

        Parameters
        ----------
        path : sequence of str
            Names of a field of the schema, and of those within it.
        messages : sequence of bytes or None
        """
        objects: list[Any] = []
        for message in messages:
            with suppress(ValueError):
                objects.append(json.loads(message or _NULL))
        place = "messages"
        for key in path:
            objects = [each for each in objects if isinstance(each, dict)]
            keys = dict.fromkeys(name for each in objects for name in each)
            if keys and key not in keys:
                first = f"none of the first {len(objects):,} {place}"
                shown = ", ".join(list(keys)[:_MOST_SHOWN]) + (", ..." if len(keys) > _MOST_SHOWN else "")
                return f"{first} has the key {key!r}: keys are {shown}"
            objects, place = [each.get(key) for each in objects], f"values of {key!r}"
        return None

    def _parsed(self, text: bytes) -> pa.Table:
        table = parse_lines(text, self.schema, "ignore").select(self.schema.names)
        # No message is blank, so that there are as many objects as messages only if each is one.
        if table.num_rows != text.count(b"\n"):
            raise pa.ArrowInvalid("it has several objects")
        table.validate(full=True)  # above all, whether text is UTF-8
        return table.combine_chunks()


_SPACES = bytes.maketrans(b"\n\r", b"  ")
