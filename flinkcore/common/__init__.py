"""PyFlink's ``pyflink.common`` names: time, watermark strategies and settings, without a JVM."""

from functools import partial
from typing import TYPE_CHECKING, Final

from flinkcore._internal.python.lazy_names import by_name, lazy_names
from flinkcore._internal.python.missing_features import refuse_name
from flinkcore._internal.values.row import Row
from flinkcore._internal.values.row_kind import RowKind
from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.common.completable_future import CompletableFuture
from flinkcore.common.config_options import ConfigOption, ConfigOptions
from flinkcore.common.configuration import Configuration
from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.common.job_client import JobClient
from flinkcore.common.job_execution_result import JobExecutionResult
from flinkcore.common.job_id import JobID
from flinkcore.common.job_status import JobStatus
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.percentile_watermarks import PercentileOutOfOrdernessWatermarks
from flinkcore.common.serialization import (
    ByteArraySchema,
    DeserializationSchema,
    Encoder,
    SerializationSchema,
    SimpleStringSchema,
)
from flinkcore.common.serializer import PickleSerializer, Serializer
from flinkcore.common.time import Duration, Instant, Time
from flinkcore.common.timestamp_assigner import RecordTimestampAssigner, TimestampAssigner
from flinkcore.common.typeinfo import TypeInformation, Types
from flinkcore.common.watermark import Watermark
from flinkcore.common.watermark_generators import (
    AscendingTimestampsWatermarks,
    BoundedOutOfOrdernessWatermarks,
    NoWatermarksGenerator,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarksWithIdleness,
)
from flinkcore.common.watermark_strategy import WatermarkAlignmentParams, WatermarkStrategy

if TYPE_CHECKING:
    from flinkcore.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration

__all__ = [
    "MAX_TIMESTAMP",
    "MIN_TIMESTAMP",
    "AscendingTimestampsWatermarks",
    "BoundedOutOfOrdernessWatermarks",
    "ByteArraySchema",
    "CompletableFuture",
    "ConfigOption",
    "ConfigOptions",
    "Configuration",
    "DeserializationSchema",
    "Duration",
    "Encoder",
    "ExecutionConfig",
    "Instant",
    "JobClient",
    "JobExecutionResult",
    "JobID",
    "JobStatus",
    "NoWatermarksGenerator",
    "OutputTag",
    "PercentileOutOfOrdernessWatermarks",
    "PickleSerializer",
    "RecordTimestampAssigner",
    "RestartStrategies",
    "RestartStrategyConfiguration",
    "Row",
    "RowKind",
    "SerializationSchema",
    "Serializer",
    "SimpleStringSchema",
    "Time",
    "TimestampAssigner",
    "TypeInformation",
    "Types",
    "Watermark",
    "WatermarkAlignmentParams",
    "WatermarkGenerator",
    "WatermarkOutput",
    "WatermarkStrategy",
    "WatermarksWithIdleness",
]

_MODULES: Final = by_name({"restart_strategy": "RestartStrategies RestartStrategyConfiguration"})
"""Modules of the names that few programs use."""

__getattr__, __dir__ = lazy_names(__name__, _MODULES, partial(refuse_name, __name__))
