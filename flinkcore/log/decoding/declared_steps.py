"""Steps that decode a log of records as the table of a connector declares its messages."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore.datastream.graph.declared_messages import DeclaredMessages, format_options, ignores_errors
from flinkcore.errors import UnsupportedOperationError
from flinkcore.log.decoding.avro_values import avro_values
from flinkcore.log.decoding.base64_fields import Base64Fields, has_binaries, types_within
from flinkcore.log.decoding.computed_columns import ComputedColumns
from flinkcore.log.decoding.csv_values import csv_values
from flinkcore.log.decoding.debezium import DebeziumValues, debezium_values, steps_of
from flinkcore.log.decoding.decoded_chunk import Decoding, decoded_schema
from flinkcore.log.decoding.json_values import json_values
from flinkcore.log.decoding.lenient_fields import LenientFields
from flinkcore.log.decoding.map_fields import MapFields, with_lists
from flinkcore.log.decoding.present_messages import PresentMessages
from flinkcore.log.decoding.raw_values import raw_values
from flinkcore.log.decoding.value_decoder import ValueDecoder

_VALUE, _KEY = "value", "key"
_OF_RECORDS: Final = frozenset(
    (_VALUE, _KEY, "topic", "partition", "offset", "timestamp", "timestampType", "headers")
)


def declared_steps(schema: pa.Schema, declared: DeclaredMessages, gives_positions: bool) -> Decoding:
    """Return the steps that decode a log of records, or none if the log has the fields as columns already.

    Parameters
    ----------
    schema : pyarrow.Schema
        Columns before the steps.
    declared : DeclaredMessages
    gives_positions : bool
        As of `steps_of`.

    Raises
    ------
    UnsupportedOperationError
        If a format has no decoder.
    """
    if not _has_messages(schema, declared):
        return ()
    decoders = {_VALUE: _decoder(declared, declared.value_format, declared.value_fields, _VALUE)}
    if declared.key_format is not None and len(declared.key_fields) and _KEY in schema.names:
        decoders[_KEY] = _decoder(declared, declared.key_format, declared.key_fields, _KEY)
    is_upsert = declared.options.get("connector", "").startswith("upsert-")
    decoding = steps_of(schema, decoders, gives_positions)
    if not isinstance(decoders[_VALUE], DebeziumValues):  # whose step leaves null messages out by itself
        decoding = (*decoding, PresentMessages(_VALUE, is_upsert))
    return (*decoding, _columns(declared, decoded_schema(decoding, schema)))


def _has_messages(schema: pa.Schema, declared: DeclaredMessages) -> bool:
    """Return whether the column ``value`` of a log has messages, and the log not the fields as columns."""
    if _VALUE not in schema.names or pa.types.is_struct(schema.field(_VALUE).type):
        return False
    fields = declared.value_fields
    names = set(fields.names)
    if not names <= _OF_RECORDS:
        return not names <= set(schema.names)
    # Columns of records are named like all fields: values of a table that has binaries there are its own.
    is_own = _VALUE in names and pa.types.is_binary(fields.field(_VALUE).type)
    return pa.types.is_binary(schema.field(_VALUE).type) and not is_own


def _columns(declared: DeclaredMessages, decoded: pa.Schema) -> ComputedColumns:
    """Return the step that makes columns of the fields of decoded messages."""
    fields = {name: pc.field(_VALUE, name) for name in declared.value_fields.names}
    kinds = {field.name: field.type for field in decoded.field(_VALUE).type}
    if _KEY in decoded.names and pa.types.is_struct(decoded.field(_KEY).type):
        for field in decoded.field(_KEY).type:
            name = declared.key_prefix + field.name
            fields[name], kinds[name] = pc.field(_KEY, field.name), field.type
    left = [field for field in decoded if field.name not in fields]
    made = [pa.field(name, kinds[name]) for name in fields]
    return ComputedColumns(pa.schema([*left, *made]), tuple(fields.items()))


def _of_json(name: str, fields: pa.Schema, is_lenient: bool) -> ValueDecoder | DebeziumValues:
    is_json = name == "json"
    has_maps = any(pa.types.is_map(kind) for field in fields for kind in types_within(field.type))
    if has_maps and not is_json:
        raise UnsupportedOperationError(
            f"a column has a MAP or MULTISET, which messages of the format {name!r} are not decoded as: declare a ROW "
            "of its keys, or give a log with the columns of the table"
        )
    read = pa.schema([field.with_type(with_lists(field.type)) for field in fields]) if has_maps else fields
    messages: ValueDecoder = json_values(read) if is_json else debezium_values(read).envelopes
    if is_lenient:
        messages = LenientFields(messages)
    if any(has_binaries(field.type) for field in fields):
        messages = Base64Fields(messages, is_lenient)
    if has_maps:
        messages = MapFields(messages, pa.struct(list(fields)))
    return messages if is_json else DebeziumValues(messages)


def _decoder(
    declared: DeclaredMessages, name: str, fields: pa.Schema, column: str
) -> ValueDecoder | DebeziumValues:
    options = declared.options
    if name == "avro":
        return avro_values(declared.key_schema if column == _KEY else declared.value_schema)
    if name in ("json", "debezium-json"):
        return _of_json(name, fields, ignores_errors(options))
    if name == "csv":
        return csv_values(fields, format_options(name, options, column))
    if name == "raw":
        keeps_nulls = column == _KEY or not options.get("connector", "").startswith("upsert-")
        return raw_values(fields, format_options(name, options, column), keeps_nulls)
    if name == "avro-confluent":
        found = {
            key.rpartition("avro-confluent.")[2]: value
            for key, value in options.items()
            if "avro-confluent." in key
        }
        topic = options.get("topic", "")
        return avro_values(registry=found.get("url"), subject=found.get("subject", f"{topic}-value"))
    raise UnsupportedOperationError(
        f"messages of the format {name!r} are not decoded for a table: json, csv, raw, debezium-json, "
        "avro and avro-confluent are. Give a log with the columns of the table, or one of from_event_log(decode=...) "
        "with columns that are selected"
    )
