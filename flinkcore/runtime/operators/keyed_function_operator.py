"""What operators of functions on keyed streams have in common."""

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

from flinkcore.common.watermark import Watermark
from flinkcore.datastream.functions import Function
from flinkcore.datastream.timerservice import TimerService
from flinkcore.errors import LifecycleError
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.latency import LatencyStats
from flinkcore.runtime.operators.keyed_calls import KeyedCalls, TimerContext
from flinkcore.runtime.operators.stream_operator import AbstractStreamOperator
from flinkcore.runtime.output import Output, OutputFullError
from flinkcore.runtime.processing_time import ProcessingTimeService
from flinkcore.runtime.state import KeyedStateBackend
from flinkcore.runtime.timers import InternalTimeServiceManager

F = TypeVar("F", bound=Function)


class KeyedFunctionOperator(AbstractStreamOperator, Generic[F]):
    """Has the timers and the keyed state of a function; a watermark fires timers, and is then passed on.

    Parameters
    ----------
    function : Function
    output : Output
    keyed_state_backend : KeyedStateBackend
        The operator's own, with its key context.
    processing_time_service : ProcessingTimeService
    latency_stats : LatencyStats, optional

    Notes
    -----
    Flink's ``AbstractUdfStreamOperator``, with what ``KeyedProcessOperator``, ``KeyedCoProcessOperator`` and
    ``CoBroadcastWithKeyedOperator`` have in common.
    """

    def __init__(
        self,
        function: F,
        output: Output,
        keyed_state_backend: KeyedStateBackend,
        processing_time_service: ProcessingTimeService,
        latency_stats: LatencyStats | None = None,
    ) -> None:
        super().__init__(output, latency_stats)
        self._function = function
        self._keyed_state_backend = keyed_state_backend
        self._time_service_manager = InternalTimeServiceManager(
            keyed_state_backend.key_context, processing_time_service, keyed_state_backend.set_current_key_id
        )

    @property
    def time_service_manager(self) -> InternalTimeServiceManager:
        """The operator's timers, for snapshots, and for restoring them before `open`."""
        return self._time_service_manager

    def _keyed_calls(self, make_timer_context: Callable[[TimerService], TimerContext]) -> KeyedCalls:
        # Starts the timers.
        return KeyedCalls(
            self._function,
            self._output,
            self._keyed_state_backend,
            self._time_service_manager,
            make_timer_context,
        )

    def process_watermark(self, watermark: Watermark) -> None:
        """Fire event-time timers, and pass the watermark on."""
        self._keyed_state_backend.advance_watermark(watermark.timestamp)
        try:
            self._time_service_manager.advance_watermark(watermark.timestamp)
        except OutputFullError as full:
            full.then(partial(super().process_watermark, watermark))
            raise
        super().process_watermark(watermark)

    def close(self) -> None:
        """Close the function."""
        self._function.close()


def refuse_before_open(record: StreamRecord[Any]) -> None:
    """Raise a LifecycleError."""
    raise LifecycleError(f"the element {record.value!r} comes before the operator was opened")
