"""PyFlink's ``pyflink.datastream.connectors`` names: sources and sinks of elements."""

from typing import NoReturn

from flinkcore.common.missing_features import MISSING_CONNECTORS, refuse_name
from flinkcore.datastream.connectors.base import (
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


def __getattr__(name: str) -> NoReturn:
    """Report what to use instead of connectors that PyFlink has and flinkcore does not."""
    refuse_name(__name__, name, MISSING_CONNECTORS)
