"""PyFlink's ``pyflink.datastream.connectors`` names: sources and sinks of elements."""

from functools import partial
from typing import TYPE_CHECKING, Final

from flinkcore._internal.python.lazy_names import by_name, lazy_names
from flinkcore._internal.python.missing_features import refuse_name
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

if TYPE_CHECKING:
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


_MODULES: Final = by_name(
    {
        "file_system": "BucketAssigner FileSink FileSource FileSourceBuilder OutputFileConfig RollingPolicy "
        "StreamFormat",
        "kafka": "FlinkKafkaConsumer FlinkKafkaProducer KafkaRecordDeserializationSchema KafkaSink KafkaSource "
        "Semantic",
        "source_reader_base": "RecordEmitter RecordsBySplits SourceReaderBase SplitReader",
    }
)
"""Modules of PyFlink's names of files, and of others that few programs need."""

__getattr__, __dir__ = lazy_names(__name__, _MODULES, partial(refuse_name, __name__))
