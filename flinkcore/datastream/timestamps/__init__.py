"""Timestamp and watermark assigners as they were before ``WatermarkStrategy`` (Flink 1.20), to be subclassed."""

from flinkcore.datastream.timestamps.ascending_timestamp_extractor import (
    AscendingTimestampExtractor,
    FailingHandler,
    IgnoringHandler,
    LoggingHandler,
    MonotonyViolationHandler,
)
from flinkcore.datastream.timestamps.assigner_adapters import (
    AssignerWithPeriodicWatermarksAdapter,
    AssignerWithPunctuatedWatermarksAdapter,
    StrategyOrAssigner,
    as_watermark_strategy,
)
from flinkcore.datastream.timestamps.assigners import (
    AssignerWithPeriodicWatermarks,
    AssignerWithPunctuatedWatermarks,
)
from flinkcore.datastream.timestamps.bounded_out_of_orderness_timestamp_extractor import (
    BoundedOutOfOrdernessTimestampExtractor,
)
from flinkcore.datastream.timestamps.ingestion_time_extractor import IngestionTimeExtractor

__all__ = [
    "AscendingTimestampExtractor",
    "AssignerWithPeriodicWatermarks",
    "AssignerWithPeriodicWatermarksAdapter",
    "AssignerWithPunctuatedWatermarks",
    "AssignerWithPunctuatedWatermarksAdapter",
    "BoundedOutOfOrdernessTimestampExtractor",
    "FailingHandler",
    "IgnoringHandler",
    "IngestionTimeExtractor",
    "LoggingHandler",
    "MonotonyViolationHandler",
    "StrategyOrAssigner",
    "as_watermark_strategy",
]
