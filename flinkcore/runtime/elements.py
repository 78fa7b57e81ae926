"""What travels between operators: records, watermarks, watermark statuses and latency markers."""

from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from flinkcore.common.watermark import Watermark

T = TypeVar("T")


@dataclass(slots=True)
class StreamRecord(Generic[T]):
    """A value and its event time.

    Parameters
    ----------
    value : object
    timestamp : int or None
        Milliseconds since the epoch; None: the record carries none.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.runtime.streamrecord.StreamRecord``.
    """

    value: T
    timestamp: int | None = None


class WatermarkStatus(Enum):
    """Whether a channel takes part in the watermark of its reader.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.runtime.watermarkstatus.WatermarkStatus``.
    """

    ACTIVE = "active"
    IDLE = "idle"


@dataclass(frozen=True, slots=True)
class LatencyMarker:
    """Sent by a source now and then, and measured by every operator it passes.

    Parameters
    ----------
    marked_time : int
        Processing time at the source, in ms since the epoch.
    operator_id : str
        The source.
    subtask_index : int
        Which of the source's subtasks.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.runtime.streamrecord.LatencyMarker``.
    """

    marked_time: int
    operator_id: str
    subtask_index: int


StreamElement = StreamRecord[T] | Watermark | WatermarkStatus | LatencyMarker
