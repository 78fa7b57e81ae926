"""PyFlink's ``pyflink.datastream.formats.orc`` names: rows in ORC files."""

from __future__ import annotations

from typing import Any, BinaryIO, Final

from flinkcore.common.configuration import Configuration
from flinkcore.common.serialization import BulkWriterFactory
from flinkcore.common.typeinfo import RowTypeInfo
from flinkcore.datastream.formats.arrow_format import ArrowWriterFactory, row_schema
from flinkcore.datastream.formats.row_types import declared_row
from flinkcore.errors import ConfigurationError
from flinkcore.table.types import RowType

_COMPRESSIONS: Final = {
    "NONE": "uncompressed",
    "ZLIB": "zlib",
    "SNAPPY": "snappy",
    "LZ4": "lz4",
    "ZSTD": "zstd",
}
_SIZES: Final = {
    "orc.stripe.size": "stripe_size",
    "orc.compress.size": "compression_block_size",
    "orc.row.index.stride": "row_index_stride",
}


class OrcBulkWriters:
    """Creates the writers of ORC files.

    Notes
    -----
    Follows ``pyflink.datastream.formats.orc.OrcBulkWriters``.
    """

    @staticmethod
    def for_row_type(
        row_type: RowTypeInfo | RowType,
        writer_properties: Configuration | None = None,
        hadoop_config: Any = None,
    ) -> BulkWriterFactory:
        """Return the factory of writers for a type of rows.

        Parameters
        ----------
        row_type : RowTypeInfo or RowType
            Any other type, or a field that ORC has no type for, is a ConfigurationError.
        writer_properties : Configuration, optional
            ``orc.compress`` (ZLIB by default), ``orc.compress.size``, ``orc.stripe.size`` and ``orc.row.index.stride``;
            others are a ConfigurationError.
        hadoop_config : object
            Ignored.
        """
        checked = declared_row(row_type, "OrcBulkWriters")
        options = _options(writer_properties)
        _check_types(checked)

        def open_writer(file: BinaryIO, schema: Any) -> Any:
            return _OrcWriter(file, options)

        return ArrowWriterFactory(checked, open_writer)


def _options(properties: Configuration | None) -> dict[str, Any]:
    options: dict[str, Any] = {"compression": "zlib"}
    for key, value in ({} if properties is None else properties.to_dict()).items():
        if key == "orc.compress" and value.upper() in _COMPRESSIONS:
            options["compression"] = _COMPRESSIONS[value.upper()]
        elif key in _SIZES and value.isdecimal():
            options[_SIZES[key]] = int(value)
        else:
            raise ConfigurationError(
                f"{key}={value} is not a property of ORC writers here: "
                f"orc.compress is one of {', '.join(_COMPRESSIONS)}, "
                f"and {', '.join(_SIZES)} are numbers"
            )
    return options


def _check_types(row_type: RowTypeInfo | RowType) -> None:
    import pyarrow as pa
    from pyarrow import orc

    for field in row_schema(row_type):
        try:
            orc.write_table(pa.schema([field]).empty_table(), pa.BufferOutputStream())
        except pa.ArrowException as failure:
            raise ConfigurationError(
                f"ORC has no column for the field {field.name!r}: {failure}"
            ) from failure


class _OrcWriter:
    """An ORC file that takes batches, as Arrow's writers of other formats do."""

    def __init__(self, file: BinaryIO, options: dict[str, Any]) -> None:
        from pyarrow import orc

        self._writer = orc.ORCWriter(file, **options)

    def write_batch(self, batch: Any) -> None:
        """Write a ``pyarrow.RecordBatch``."""
        import pyarrow as pa

        self._writer.write(pa.Table.from_batches([batch]))

    def close(self) -> None:
        """Write the footer."""
        self._writer.close()
