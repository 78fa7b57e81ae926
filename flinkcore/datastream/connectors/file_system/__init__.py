"""PyFlink's ``pyflink.datastream.connectors.file_system`` names: sources and sinks of files."""

from typing import NoReturn

from flinkcore._internal.python.missing_features import refuse_name
from flinkcore.common.serialization import BulkWriterFactory
from flinkcore.datastream.connectors.file_system.file_sink import (
    BucketAssigner,
    FileSink,
    FileSinkBuilder,
    OutputFileConfig,
    RollingPolicy,
)
from flinkcore.datastream.connectors.file_system.file_source import (
    BulkFormat,
    FileSource,
    FileSourceBuilder,
    StreamFormat,
)

__all__ = [
    "BucketAssigner",
    "BulkFormat",
    "BulkWriterFactory",
    "FileSink",
    "FileSinkBuilder",
    "FileSource",
    "FileSourceBuilder",
    "OutputFileConfig",
    "RollingPolicy",
    "StreamFormat",
]


def __getattr__(name: str) -> NoReturn:
    """Report what to use instead of names that PyFlink has here and flinkcore does not."""
    refuse_name(__name__, name)
