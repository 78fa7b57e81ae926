"""PyFlink's ``pyflink.datastream.formats.parquet`` names: rows in Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from flinkcore.common.configuration import Configuration
from flinkcore.common.serialization import BulkWriter, BulkWriterFactory
from flinkcore.common.typeinfo import RowTypeInfo
from flinkcore.common.typeinfo.type_information import Conversion
from flinkcore.datastream.connectors.file_system.file_source import StreamFormat
from flinkcore.datastream.formats.arrow_format import (
    ArrowRowFormat,
    ArrowWriterFactory,
    BatchWriter,
)
from flinkcore.datastream.formats.avro import AvroSchema, GenericRecordAvroTypeInfo, generic_record
from flinkcore.datastream.formats.row_types import declared_row
from flinkcore.errors import ConfigurationError, DataError, SchemaError
from flinkcore.table.types import RowType


class ParquetColumnarRowInputFormat(ArrowRowFormat):
    """Reads rows of Parquet files.

    Parameters
    ----------
    row_type : RowTypeInfo or RowType
        Any other type is a ConfigurationError.
    hadoop_config : object
        Ignored.
    batch_size : int
        Number of rows that are read at once.
    is_utc_timestamp : bool
        Ignored: timestamps are those of the file.
    is_case_sensitive : bool
        Whether names of columns must have the case of the fields.

    Notes
    -----
    Follows ``pyflink.datastream.formats.parquet.ParquetColumnarRowInputFormat``.
    """

    def __init__(
        self,
        row_type: RowTypeInfo | RowType,
        hadoop_config: Any = None,
        batch_size: int = 2048,
        is_utc_timestamp: bool = False,
        is_case_sensitive: bool = True,
    ) -> None:
        super().__init__(declared_row(row_type, "ParquetColumnarRowInputFormat"))
        self._batch_size = batch_size
        self._is_case_sensitive = is_case_sensitive

    def batches(self, file: Any, name: str) -> Iterator[Any]:
        opened = _opened(file)
        names = self.row_type.get_field_names()
        found = opened.schema_arrow.names
        if not self._is_case_sensitive:
            by_case = {name.lower(): name for name in reversed(found)}
            columns = [by_case.get(name.lower(), name) for name in names]
        else:
            columns = names
        has_all = set(columns) <= set(found)  # else `read` says which there are
        for batch in opened.iter_batches(self._batch_size, columns=columns if has_all else None):
            yield batch.select(columns).rename_columns(names) if has_all else batch


def _opened(file: Any) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Timestamps in 96 bits go beyond nanoseconds in 64.
    return pq.ParquetFile(
        pa.BufferReader(file.read()), page_checksum_verification=True, coerce_int96_timestamp_unit="us"
    )


class ParquetBulkWriters:
    """Creates the writers of Parquet files.

    Notes
    -----
    Follows ``pyflink.datastream.formats.parquet.ParquetBulkWriters``.
    """

    @staticmethod
    def for_row_type(
        row_type: RowTypeInfo | RowType, hadoop_config: Any = None, utc_timestamp: bool = False
    ) -> BulkWriterFactory:
        """Return the factory of writers for a type of rows.

        Parameters
        ----------
        row_type : RowTypeInfo or RowType
            Decimals are rounded to the digits of a ``RowType``. Any other type, or a field without an Arrow type, is a
            ConfigurationError.
        hadoop_config : Configuration, optional
            ``parquet.compression`` counts: SNAPPY by default; any other value of it that Parquet does not have is a
            ConfigurationError.
        utc_timestamp : bool
            Ignored: timestamps are written as they are.
        """
        compression = _compression(hadoop_config)

        def open_writer(file: BinaryIO, schema: Any) -> Any:
            import pyarrow.parquet as pq

            return pq.ParquetWriter(file, schema, compression=compression)

        return ArrowWriterFactory(declared_row(row_type, "ParquetBulkWriters"), open_writer)


_COMPRESSIONS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "BROTLI", "ZSTD", "LZ4", "LZ4_RAW")


def _compression(hadoop_config: Configuration | None) -> str:
    settings = {} if hadoop_config is None else hadoop_config.to_dict()
    name = settings.get("parquet.compression", "SNAPPY").upper()
    if name not in _COMPRESSIONS:
        raise ConfigurationError(f"parquet.compression is one of {', '.join(_COMPRESSIONS)}, not {name!r}")
    return {"UNCOMPRESSED": "none", "LZ4_RAW": "lz4"}.get(name, name.lower())


class AvroParquetReaders:
    """Creates formats that read Parquet files as records of Avro.

    Notes
    -----
    Follows ``pyflink.datastream.formats.parquet.AvroParquetReaders``.
    """

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> StreamFormat:
        """Return the format of a schema.

        Fields are read by name; records are dictionaries, as of ``AvroInputFormat``.

        Raises
        ------
        ConfigurationError
            If it is not a schema of records.
        """
        return _AvroParquetFormat(schema)


class _AvroParquetFormat(StreamFormat):
    def __init__(self, schema: AvroSchema) -> None:
        self._type = GenericRecordAvroTypeInfo(schema)
        self._schema = schema
        schema.types_read.arrow_schema()  # fails now if a field has no type

    def produced_type(self) -> GenericRecordAvroTypeInfo:
        return self._type

    def read(self, file: BinaryIO, name: str) -> Iterator[dict[str, Any]]:
        """Yield the records of a file; raise DataError if it does not have them, SchemaError if a column is missing."""
        import pyarrow as pa

        types = self._schema.types_read
        wanted = types.arrow_schema()
        convert = types.from_arrow(types.schema) or (lambda record: record)
        try:
            opened = _opened(file)
            missing = [field for field in wanted.names if field not in opened.schema_arrow.names]
            if missing:
                raise SchemaError(
                    f"{name} has no column {missing[0]!r}; it has {', '.join(opened.schema_arrow.names)}"
                )
            for batch in opened.iter_batches(columns=wanted.names):
                table = pa.Table.from_batches([batch]).select(wanted.names).cast(wanted)
                for record in table.to_pylist():
                    yield convert(record)
        except (pa.ArrowException, ValueError) as failure:
            if isinstance(failure, DataError):
                raise
            raise DataError(
                f"{name} does not have records of {self._schema!s:.200}: {failure}", file=name
            ) from failure


class AvroParquetWriters:
    """Creates writers of Parquet files from records of Avro.

    Notes
    -----
    Follows ``pyflink.datastream.formats.parquet.AvroParquetWriters``. Lists are written as Arrow's, in three levels; a
    value of a union of several types is a group with the fields member0, member1, ..., all but one null. A union of
    types whose values cannot be told apart, such as two records or int and long, is a ConfigurationError.
    """

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> BulkWriterFactory:
        """Return the factory of writers of dictionaries, or Rows with names; errors as of ``AvroParquetReaders``."""
        return _AvroParquetWriterFactory(schema)


class _AvroParquetWriterFactory(BulkWriterFactory):
    def __init__(self, schema: AvroSchema) -> None:
        self._type = GenericRecordAvroTypeInfo(schema)
        self._schema = schema
        schema.types.arrow_schema()  # fails now if a field has no type

    def create(self, file: BinaryIO) -> BulkWriter:
        return _AvroParquetWriter(file, self._schema, self._type.conversion())


class _AvroParquetWriter(BatchWriter):
    def __init__(self, file: BinaryIO, schema: AvroSchema, conversion: Conversion) -> None:
        import pyarrow.parquet as pq

        self._conversion = conversion
        self._convert = schema.types.to_arrow(schema.types.schema) or (lambda record: record)
        self._arrow_schema = schema.types.arrow_schema()
        super().__init__(pq.ParquetWriter(file, self._arrow_schema), "records are not of the schema")

    def _checked(self, element: Any) -> Any:
        record = generic_record(element)
        if record is None:
            raise DataError("None is not a record of Avro. Drop it before")
        self._conversion(record)
        return self._convert(record)

    def _batch(self, elements: list[Any]) -> Any:
        import pyarrow as pa

        return pa.RecordBatch.from_pylist(elements, self._arrow_schema)
