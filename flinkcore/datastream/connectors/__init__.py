"""PyFlink's ``pyflink.datastream.connectors`` names: sources and sinks of elements."""

from importlib import import_module
from typing import Any, Final

from flinkcore.common.missing_features import MISSING_CONNECTOR_NAMES, refuse_name
from flinkcore.datastream.connectors.base import (
    DeliveryGuarantee,
    InputStatus,
    ReaderOutput,
    Sink,
    SinkWriter,
    Source,
    SourceOutput,
    SourceReader,
    SourceReaderContext,
    SourceSplit,
    WriterContext,
)
from flinkcore.datastream.connectors.collection import CollectionSource
from flinkcore.datastream.connectors.number_seq import NumberSequenceSource
from flinkcore.datastream.connectors.source_reader_base import (
    RecordEmitter,
    RecordsBySplits,
    SourceReaderBase,
    SplitReader,
)

__all__ = [
    "CollectionSource",
    "DeliveryGuarantee",
    "InputStatus",
    "NumberSequenceSource",
    "ReaderOutput",
    "RecordEmitter",
    "RecordsBySplits",
    "Sink",
    "SinkWriter",
    "Source",
    "SourceOutput",
    "SourceReader",
    "SourceReaderBase",
    "SourceReaderContext",
    "SourceSplit",
    "SplitReader",
    "WriterContext",
]


_OF_FILES: Final = frozenset(
    (
        "BucketAssigner",
        "FileSink",
        "FileSource",
        "FileSourceBuilder",
        "OutputFileConfig",
        "RollingPolicy",
        "StreamFormat",
    )
)


def __getattr__(name: str) -> Any:
    """Return what PyFlink has here of the connector for files; report what to use instead of others."""
    if name not in _OF_FILES:
        refuse_name(__name__, name, MISSING_CONNECTOR_NAMES)
    return getattr(import_module("flinkcore.datastream.connectors.file_system"), name)
