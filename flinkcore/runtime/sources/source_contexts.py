"""Which source context a job's time characteristic asks for."""

from contextlib import AbstractContextManager
from typing import Any, TypeVar

from flinkcore.common.watermark import Watermark
from flinkcore.datastream.time_characteristic import TimeCharacteristic
from flinkcore.errors import ConfigurationError
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.output import Output
from flinkcore.runtime.processing_time import ProcessingTimeService
from flinkcore.runtime.sources.source_context import SourceContext, SwitchingOnCloseContext
from flinkcore.runtime.sources.watermark_context import AutomaticWatermarkContext, ManualWatermarkContext

T = TypeVar("T")


class NonTimestampContext(SourceContext[T]):
    """Processing time: elements carry no timestamp; timestamps, watermarks and idleness are ignored.

    Notes
    -----
    Flink's ``StreamSourceContexts.NonTimestampContext``.
    """

    def __init__(self, checkpoint_lock: AbstractContextManager[Any], output: Output) -> None:
        self._checkpoint_lock = checkpoint_lock
        self._output = output

    def collect(self, element: T) -> None:
        """Emit an element."""
        with self._checkpoint_lock:
            self._output.collect(StreamRecord(element))

    def collect_with_timestamp(self, element: T, timestamp_ms: int) -> None:
        """Emit an element; the timestamp is ignored."""
        self.collect(element)

    def emit_watermark(self, watermark: Watermark) -> None:
        """Do nothing."""

    def mark_as_temporarily_idle(self) -> None:
        """Do nothing."""

    @property
    def checkpoint_lock(self) -> AbstractContextManager[Any]:
        """The lock under which elements are handled."""
        return self._checkpoint_lock

    def close(self) -> None:
        """Do nothing: nothing is scheduled."""


def get_source_context(
    time_characteristic: TimeCharacteristic,
    processing_time_service: ProcessingTimeService,
    checkpoint_lock: AbstractContextManager[Any],
    output: Output,
    *,
    watermark_interval_ms: int,
    idle_timeout_ms: int | None = None,
    emit_progressive_watermarks: bool = True,
) -> SourceContext[Any]:
    """Return the context of a source function; once closed, it raises a LifecycleError for what is emitted.

    Parameters
    ----------
    time_characteristic : TimeCharacteristic
        EventTime: :class:`ManualWatermarkContext`; IngestionTime: :class:`AutomaticWatermarkContext`;
        ProcessingTime: :class:`NonTimestampContext`.
    processing_time_service : ProcessingTimeService
        Calls back for idleness and automatic watermarks.
    checkpoint_lock : context manager
        Held around all that is emitted; reentrant, such as ``threading.RLock()``.
    output : Output
    watermark_interval_ms : int
        Of automatic watermarks; other characteristics do not look at it.
    idle_timeout_ms : int or None, default None
        After how long a source without elements is idle; None: idle only where it says so.
    emit_progressive_watermarks : bool, default True
        False, as for batch execution: only the final watermark is emitted.

    Raises
    ------
    ConfigurationError
        If the interval or the timeout is not above zero, or ingestion time is asked for without progressive
        watermarks.

    Notes
    -----
    Flink 1.20's ``StreamSourceContexts.getSourceContext``; None stands for its timeout of -1.
    """
    context: SourceContext[Any]
    if time_characteristic is TimeCharacteristic.EventTime:
        context = ManualWatermarkContext(
            output, processing_time_service, checkpoint_lock, idle_timeout_ms, emit_progressive_watermarks
        )
    elif time_characteristic is TimeCharacteristic.IngestionTime:
        if not emit_progressive_watermarks:
            raise ConfigurationError(
                "ingestion time is not available without progressive watermarks: use event time or processing "
                "time, or let progressive watermarks be emitted"
            )
        context = AutomaticWatermarkContext(
            output, processing_time_service, checkpoint_lock, idle_timeout_ms, watermark_interval_ms
        )
    elif time_characteristic is TimeCharacteristic.ProcessingTime:
        context = NonTimestampContext(checkpoint_lock, output)
    else:
        raise ConfigurationError(
            f"a time characteristic is one of TimeCharacteristic, not {time_characteristic!r}"
        )
    return SwitchingOnCloseContext(context)
