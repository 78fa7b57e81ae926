"""The elements of streams: records, watermarks, watermark statuses and latency markers."""

from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from flinkcore._native.element_calls import StreamRecord
from flinkcore.common.watermark import Watermark

__all__ = ["LatencyMarker", "StreamElement", "StreamRecord", "WatermarkStatus"]

T = TypeVar("T")


class WatermarkStatus(Enum):
    """Status of a channel: whether it counts for the combined watermark of its reader.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.runtime.watermarkstatus.WatermarkStatus``.
    """

    ACTIVE = "active"
    IDLE = "idle"


@dataclass(frozen=True, slots=True)
class LatencyMarker:
    """Emitted by a source at intervals, and measured by every operator that it passes.

    Parameters
    ----------
    marked_time : int
        Processing time at the source, in ms since the epoch.
    operator_id : str
        Identifier of the source.
    subtask_index : int
        Index of the source's subtask.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.runtime.streamrecord.LatencyMarker``.
    """

    marked_time: int
    operator_id: str
    subtask_index: int


StreamElement = StreamRecord[T] | Watermark | WatermarkStatus | LatencyMarker
