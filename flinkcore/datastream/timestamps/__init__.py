"""Timestamp and watermark assigners as they were before ``WatermarkStrategy`` (Flink 1.20), to be subclassed."""

from flinkcore.datastream.timestamps.assigner_adapters import (
    AssignerWithPeriodicWatermarksAdapter,
    AssignerWithPunctuatedWatermarksAdapter,
    StrategyOrAssigner,
    as_watermark_strategy,
)
from flinkcore.datastream.timestamps.assigners import (
    AscendingTimestampExtractor,
    AssignerWithPeriodicWatermarks,
    AssignerWithPunctuatedWatermarks,
    BoundedOutOfOrdernessTimestampExtractor,
    FailingHandler,
    IgnoringHandler,
    IngestionTimeExtractor,
    LoggingHandler,
    MonotonyViolationHandler,
)

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
