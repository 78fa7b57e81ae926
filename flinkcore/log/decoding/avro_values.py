"""Messages in Avro, with or without the header of a schema registry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from io import BytesIO
from typing import Any

import pyarrow as pa

from flinkcore._internal.arrow.plain_columns import plain_type
from flinkcore._internal.io.avro_files import avro_library, parsed_schema, raw_schema
from flinkcore._internal.io.avro_types import AvroTypes, Conversion
from flinkcore.errors import ConfigurationError, DataError
from flinkcore.log.decoding.schemas_by_id import schema_of, schemas_by_id, schemas_of_registry
from flinkcore.log.decoding.value_decoder import DecodedColumn, decoded_one_by_one
from flinkcore.log.decoding.wire_format import unframed


def avro_values(
    schema: Any = None,
    *,
    schemas: Any = None,
    registry: str | None = None,
    subject: str | None = None,
    has_header: bool | None = None,
) -> AvroValues:
    """Return the decoder of a column whose values are records of Avro, for ``from_event_log(decode=...)``.

    Needs the library `fastavro` (``flinkcore[avro]``).

    Parameters
    ----------
    schema : str, os.PathLike or dict, optional
        Schema of the column: a dict, its text, or the path of its file. By default that of `schemas` or `registry` with
        the highest id, or the latest version. Values with another schema are resolved to it, as Avro does.
    schemas : mapping of int to schema, str or os.PathLike, optional
        Schemas of the values by the id in the header of Confluent's serializers; or a local folder that has them in
        files such as ``17.avsc``.
    registry : str, optional
        URL of a schema registry, with a user and a password if it needs them. All versions of `subject` are fetched
        once, where the job is planned.
    subject : str, optional
        Subject in the registry, such as ``clicks-value``.
    has_header : bool, optional
        Whether values begin with the header of Confluent's serializers, a zero byte and the id of the schema. By
        default so with `schemas` or `registry`. With `schema` alone, every value is read with that schema.

    Returns
    -------
    AvroValues
        It makes a column of structs. An empty value and null are null.

    Raises
    ------
    ConfigurationError
        If settings contradict each other, or a schema is not one.

    Examples
    --------
    >>> decoder = avro_values(registry="http://registry:8081", subject="clicks-value")
    """
    if schema is None and schemas is None and registry is None:
        raise ConfigurationError("avro_values needs schema=, schemas= or registry=")
    if (registry is None) != (subject is None):
        raise ConfigurationError("registry= and subject= belong together: give both, or schemas= by id")
    if schemas is not None and registry is not None:
        raise ConfigurationError("schemas= and registry= exclude each other: give one of both")
    is_framed = has_header if has_header is not None else schemas is not None or registry is not None
    if not is_framed and (schemas is not None or registry is not None):
        raise ConfigurationError("without a header, values have no id of a schema: give schema= alone")
    by_id = None if schemas is None else schemas_by_id(schemas)
    reader = None if schema is None else schema_of(schema)
    return AvroValues(reader, by_id, registry, subject, is_framed)


@dataclass(frozen=True)
class AvroValues:
    """Decoder of records of Avro; made by `avro_values`.

    Attributes
    ----------
    schema : object or None
        Schema of the column as it was read from JSON; None until the decoder is prepared.
    schemas : mapping of int to object, or None
        Schemas of values by id; None if all have that of the column.
    registry, subject : str or None
        Where these are fetched.
    is_framed : bool
        Whether values begin with the header of Confluent's serializers.
    """

    schema: Any
    schemas: Mapping[int, Any] | None
    registry: str | None = field(default=None, repr=False)
    subject: str | None = None
    is_framed: bool = False

    def prepared(self) -> AvroValues:
        avro_library()
        schemas = self.schemas
        if self.registry is not None and self.subject is not None:
            schemas = schemas_of_registry(self.registry, self.subject)
        schema = self.schema
        if schema is None:
            assert schemas is not None
            ordered = list(schemas) if self.registry is not None else sorted(schemas)
            schema = schemas[ordered[-1]]
        prepared = replace(self, schema=schema, schemas=schemas, registry=None)
        _ = prepared._reader
        return prepared

    @property
    def type(self) -> pa.DataType:
        return self._reader.type

    @cached_property
    def _reader(self) -> _Reader:
        return _Reader.of(self.schema, self.schemas)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_reader"}

    def decode(self, messages: Sequence[bytes | None]) -> DecodedColumn:
        reader = self._reader
        return decoded_one_by_one(
            messages, reader.type, reader.record_of_framed if self.is_framed else reader.record
        )


@dataclass(frozen=True)
class _Reader:
    """Schemas as the library takes them, without logical types, so that Arrow converts and checks what values mean."""

    schema: Any
    written_as: Mapping[int, Any] | None
    convert: Conversion | None
    type: pa.DataType

    @classmethod
    def of(cls, schema: Any, schemas: Mapping[int, Any] | None) -> _Reader:
        parsed = parsed_schema(schema)
        types = AvroTypes(parsed)
        kind = plain_type(pa.struct(list(types.arrow_schema())))
        written_as = None
        if schemas is not None:
            written_as = {number: raw_schema(parsed_schema(each)) for number, each in schemas.items()}
        return cls(raw_schema(parsed), written_as, types.raw_to_arrow(parsed), kind)

    def record_of_framed(self, message: bytes) -> Any:
        framed = unframed(message)
        if self.written_as is None:
            return self.record(framed.body)
        if framed.schema_id not in self.written_as:
            known = ", ".join(map(str, sorted(self.written_as)))
            raise DataError(f"its schema has the id {framed.schema_id}, and there are {known}")
        return self.record(framed.body, self.written_as[framed.schema_id])

    def record(self, body: bytes, written_as: Any = None) -> Any:
        stream = BytesIO(body)
        read_as = None if written_as is None or written_as == self.schema else self.schema
        record = avro_library().schemaless_reader(
            stream, self.schema if written_as is None else written_as, read_as
        )
        left = len(body) - stream.tell()
        if left:
            raise DataError(
                f"{left} bytes follow the record: it has another schema, or a header (has_header=True)"
            )
        return record if self.convert is None else self.convert(record)
