"""Sources: their readers, the outputs of records and watermarks, alignment, and the contexts of source functions."""

from flinkcore.runtime.sources.source import (
    InputStatus,
    ReaderOutput,
    ReaderSource,
    SourceOutput,
    SourceReader,
    SourceReaderContext,
)
from flinkcore.runtime.sources.source_operator import SourceOperator
from flinkcore.runtime.sources.source_reader_base import (
    RecordEmitter,
    RecordsBySplits,
    SourceReaderBase,
    SplitReader,
)
from flinkcore.runtime.sources.timestamped_source import TimestampedSource, TimestampedSplit
from flinkcore.runtime.sources.watermark_alignment import SourceCoordinator, WatermarkAlignmentGroups

__all__ = [
    "InputStatus",
    "ReaderOutput",
    "ReaderSource",
    "RecordEmitter",
    "RecordsBySplits",
    "SourceCoordinator",
    "SourceOperator",
    "SourceOutput",
    "SourceReader",
    "SourceReaderBase",
    "SourceReaderContext",
    "SplitReader",
    "TimestampedSource",
    "TimestampedSplit",
    "WatermarkAlignmentGroups",
]
