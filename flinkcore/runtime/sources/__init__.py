"""Where records come from: what sources are given to emit records, timestamps and watermarks."""

from flinkcore.runtime.sources.collection_source import CollectionSource, CollectionSplit
from flinkcore.runtime.sources.source import Boundedness, Source, SourceReaderContext, SourceSplit
from flinkcore.runtime.sources.source_coordinator import SourceCoordinator, WatermarkAlignmentGroups
from flinkcore.runtime.sources.source_operator import SourceOperator
from flinkcore.runtime.sources.source_output import ReaderOutput, SourceOutput
from flinkcore.runtime.sources.source_reader import InputStatus, SourceReader
from flinkcore.runtime.sources.source_reader_base import SourceReaderBase
from flinkcore.runtime.sources.split_reader import RecordEmitter, RecordsBySplits, SplitReader

__all__ = [
    "Boundedness",
    "CollectionSource",
    "CollectionSplit",
    "InputStatus",
    "ReaderOutput",
    "RecordEmitter",
    "RecordsBySplits",
    "Source",
    "SourceCoordinator",
    "SourceOperator",
    "SourceOutput",
    "SourceReader",
    "SourceReaderBase",
    "SourceReaderContext",
    "SourceSplit",
    "SplitReader",
    "WatermarkAlignmentGroups",
]
