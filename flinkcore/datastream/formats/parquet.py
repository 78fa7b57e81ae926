"""PyFlink's ``pyflink.datastream.formats.parquet`` names: rows in Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from flinkcore.common.serialization import BulkWriterFactory
from flinkcore.common.typeinfo import RowTypeInfo
from flinkcore.datastream.formats.arrow_format import ArrowRowFormat, ArrowWriterFactory, checked_row_type


class ParquetColumnarRowInputFormat(ArrowRowFormat):
    """Rows of Parquet files.

    Parameters
    ----------
    row_type : RowTypeInfo
        PyFlink takes a ``RowType`` of the Table API.
    hadoop_config : object
        Of PyFlink; without meaning here.
    batch_size : int
        Rows that are read at once.
    is_utc_timestamp, is_case_sensitive : bool
        Of PyFlink; timestamps are as the file has them, and names are case sensitive.

    Raises
    ------
    ConfigurationError
        If it is no row.

    Notes
    -----
    Follows ``pyflink.datastream.formats.parquet.ParquetColumnarRowInputFormat``.
    """

    def __init__(
        self,
        row_type: RowTypeInfo,
        hadoop_config: Any = None,
        batch_size: int = 2048,
        is_utc_timestamp: bool = False,
        is_case_sensitive: bool = True,
    ) -> None:
        super().__init__(checked_row_type(row_type, "ParquetColumnarRowInputFormat"))
        self._batch_size = batch_size

    def batches(self, file: Any, name: str) -> Iterator[Any]:
        """Yield the batches of a file, whose pages are checked where it has checksums."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        opened = pq.ParquetFile(pa.BufferReader(file.read()), page_checksum_verification=True)
        names = self.row_type.get_field_names()
        has_all = set(names) <= set(opened.schema_arrow.names)  # else `read` says which there are
        yield from opened.iter_batches(self._batch_size, columns=names if has_all else None)


class ParquetBulkWriters:
    """Makes the writers of Parquet files.

    Notes
    -----
    Follows ``pyflink.datastream.formats.parquet.ParquetBulkWriters``.
    """

    @staticmethod
    def for_row_type(
        row_type: RowTypeInfo, hadoop_config: Any = None, utc_timestamp: bool = False
    ) -> BulkWriterFactory:
        """Return what makes writers of rows.

        Parameters
        ----------
        row_type : RowTypeInfo
            PyFlink takes a ``RowType`` of the Table API.
        hadoop_config, utc_timestamp : object
            Of PyFlink; without meaning here.

        Raises
        ------
        ConfigurationError
            If it is no row, or a field has no type of Arrow's.
        """

        def open_writer(file: BinaryIO, schema: Any) -> Any:
            import pyarrow.parquet as pq

            return pq.ParquetWriter(file, schema)

        return ArrowWriterFactory(checked_row_type(row_type, "ParquetBulkWriters"), open_writer)
