"""PyFlink's ``pyflink.common`` names: time, watermark strategies and settings, without a JVM."""

from flinkcore.common.constants import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.time import Duration, Time
from flinkcore.common.timestamp_assigner import TimestampAssigner
from flinkcore.common.watermark import Watermark
from flinkcore.common.watermark_alignment_params import WatermarkAlignmentParams
from flinkcore.common.watermark_generator import WatermarkGenerator, WatermarkOutput
from flinkcore.common.watermark_strategy import WatermarkStrategy

__all__ = [
    "MAX_TIMESTAMP",
    "MIN_TIMESTAMP",
    "Duration",
    "ExecutionConfig",
    "OutputTag",
    "Time",
    "TimestampAssigner",
    "Watermark",
    "WatermarkAlignmentParams",
    "WatermarkGenerator",
    "WatermarkOutput",
    "WatermarkStrategy",
]
