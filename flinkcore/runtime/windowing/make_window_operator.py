"""From a window operation to its operator."""

from flinkcore.datastream.window import WindowOperation
from flinkcore.runtime.latency import LatencyStats
from flinkcore.runtime.operators.keyed_calls import KeySelector
from flinkcore.runtime.output import Output
from flinkcore.runtime.processing_time import ProcessingTimeService
from flinkcore.runtime.state import KeyedStateBackend
from flinkcore.runtime.windowing.evicting_window_operator import EvictingWindowOperator
from flinkcore.runtime.windowing.window_operator import WindowOperator


def make_window_operator(
    operation: WindowOperation,
    key_selector: KeySelector | None,
    output: Output,
    keyed_state_backend: KeyedStateBackend,
    processing_time_service: ProcessingTimeService,
    latency_stats: LatencyStats | None = None,
) -> WindowOperator:
    """Return the operator that does what an operation says; parameters as of :class:`WindowOperator`.

    Notes
    -----
    Flink's ``WindowOperatorBuilder``.
    """
    kind = WindowOperator if operation.evictor is None else EvictingWindowOperator
    return kind(operation, key_selector, output, keyed_state_backend, processing_time_service, latency_stats)
