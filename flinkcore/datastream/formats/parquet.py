"""PyFlink's ``pyflink.datastream.formats.parquet`` names: rows in Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, NoReturn

from flinkcore.common.missing_features import MISSING_FORMAT_NAMES, refuse_name
from flinkcore.common.serialization import BulkWriterFactory
from flinkcore.common.typeinfo import RowTypeInfo
from flinkcore.datastream.formats.arrow_format import ArrowRowFormat, ArrowWriterFactory
from flinkcore.datastream.formats.row_types import checked_row_type


class ParquetColumnarRowInputFormat(ArrowRowFormat):
    """Reads rows of Parquet files.

    Parameters
    ----------
    row_type : RowTypeInfo
        PyFlink takes a ``RowType`` of the Table API. Any other type is a ConfigurationError.
    hadoop_config : object
        Ignored.
    batch_size : int
        Number of rows that are read at once.
    is_utc_timestamp, is_case_sensitive : bool
        Ignored: timestamps are those of the file, and names are case-sensitive.

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
        import pyarrow as pa
        import pyarrow.parquet as pq

        opened = pq.ParquetFile(pa.BufferReader(file.read()), page_checksum_verification=True)
        names = self.row_type.get_field_names()
        has_all = set(names) <= set(opened.schema_arrow.names)  # else `read` says which there are
        yield from opened.iter_batches(self._batch_size, columns=names if has_all else None)


class ParquetBulkWriters:
    """Creates the writers of Parquet files.

    Notes
    -----
    Follows ``pyflink.datastream.formats.parquet.ParquetBulkWriters``.
    """

    @staticmethod
    def for_row_type(
        row_type: RowTypeInfo, hadoop_config: Any = None, utc_timestamp: bool = False
    ) -> BulkWriterFactory:
        """Return the factory of writers for a type of rows.

        Parameters
        ----------
        row_type : RowTypeInfo
            PyFlink takes a ``RowType`` of the Table API. Any other type, or a field without an Arrow type, is a
            ConfigurationError.
        hadoop_config, utc_timestamp : object
            Ignored.
        """

        def open_writer(file: BinaryIO, schema: Any) -> Any:
            import pyarrow.parquet as pq

            return pq.ParquetWriter(file, schema)

        return ArrowWriterFactory(checked_row_type(row_type, "ParquetBulkWriters"), open_writer)


def __getattr__(name: str) -> NoReturn:
    """Report what to use instead of names that PyFlink has and flinkcore does not."""
    refuse_name(__name__, name, MISSING_FORMAT_NAMES)
