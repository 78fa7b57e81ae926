"""Harnesses of functions, made and opened in one call, and closed when a test ends.

Element types are not part of a function's type, so that makers return harnesses of Any. The type of a variable can say
more: ``harness: KeyedOneInputStreamOperatorTestHarness[str, Payment, Alert] = for_keyed_process_function(...)``.
"""

import os
from collections.abc import Callable
from contextlib import ExitStack
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.datastream.functions import (
    BroadcastProcessFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
)
from flinkcore.datastream.graph.interval_join_operation import IntervalJoinOperation
from flinkcore.datastream.state import MapStateDescriptor
from flinkcore.datastream.timestamps import (
    AssignerWithPeriodicWatermarks,
    AssignerWithPunctuatedWatermarks,
    StrategyOrAssigner,
    as_watermark_strategy,
)
from flinkcore.datastream.window import WindowOperation
from flinkcore.errors import ConfigurationError
from flinkcore.operators.interval_join_operator import IntervalJoinOperator
from flinkcore.operators.process_operators import (
    BroadcastProcessOperator,
    CoProcessOperator,
    KeyedBroadcastProcessOperator,
    KeyedCoProcessOperator,
    KeyedProcessOperator,
    ProcessOperator,
)
from flinkcore.operators.records.output import Output
from flinkcore.operators.state import KeyedStateBackend
from flinkcore.operators.stream_operator import OneInputStreamOperator
from flinkcore.operators.streaming_runtime_context import TaskInfo
from flinkcore.operators.timers.processing_time import ProcessingTimeService
from flinkcore.operators.timestamps_and_watermarks_operator import TimestampsAndWatermarksOperator
from flinkcore.operators.windowing import make_window_operator
from flinkcore.testing.abstract_stream_operator_test_harness import (
    TASK,
    AbstractStreamOperatorTestHarness,
    ClockedTestHarness,
    K,
    StreamOperatorParameters,
)
from flinkcore.testing.one_input_stream_operator_test_harness import (
    KeyedOneInputStreamOperatorTestHarness,
    OneInputStreamOperatorTestHarness,
)
from flinkcore.testing.operator_subtask_state import OperatorSubtaskState
from flinkcore.testing.source_test_harnesses import for_source, for_source_function
from flinkcore.testing.two_input_stream_operator_test_harness import (
    BroadcastOperatorTestHarness,
    KeyedBroadcastOperatorTestHarness,
    KeyedTwoInputStreamOperatorTestHarness,
    TwoInputStreamOperatorTestHarness,
)

H = TypeVar("H", bound=AbstractStreamOperatorTestHarness[Any])
C = TypeVar("C", bound=ClockedTestHarness[Any])
State = OperatorSubtaskState | str | os.PathLike[str]


def for_process_function(
    function: ProcessFunction, *, task: TaskInfo = TASK, restore_from: State | None = None
) -> OneInputStreamOperatorTestHarness[Any, Any]:
    """Return an open harness of a function on a stream without keys.

    Parameters
    ----------
    function : ProcessFunction
        A new instance for each harness, also for a restored one.
    task : TaskInfo, optional
        The subtask and the parallelism; by default the only one.
    restore_from : OperatorSubtaskState or path, optional
        Restored before the function is opened; see `initialize_state`.

    Raises
    ------
    ConfigurationError
        If the function is of another class, or the task is invalid.
    Exception
        Any that `function.open` raises.

    Notes
    -----
    Flink's ``ProcessFunctionTestHarnesses.forProcessFunction``, as its siblings below.
    """
    _require(function, ProcessFunction)

    def make_operator(given: StreamOperatorParameters) -> ProcessOperator:
        return ProcessOperator(function, given.output, given.processing_time_service)

    return _opened(OneInputStreamOperatorTestHarness(make_operator, task=task), restore_from)


def for_keyed_process_function(
    function: KeyedProcessFunction,
    key_selector: Callable[[Any], K],
    key_type: Any = None,
    *,
    task: TaskInfo = TASK,
    restore_from: State | None = None,
) -> KeyedOneInputStreamOperatorTestHarness[K, Any, Any]:
    """Return an open harness of a function on a keyed stream.

    Parameters
    ----------
    function : KeyedProcessFunction
    key_selector : callable
        From an element to its key.
    key_type : pyarrow.DataType, optional
        As of :class:`KeyedOneInputStreamOperatorTestHarness`.
    task, restore_from
        As of `for_process_function`, whose errors it raises.
    """
    _require(function, KeyedProcessFunction)

    def make_operator(given: StreamOperatorParameters) -> KeyedProcessOperator:
        return KeyedProcessOperator(function, given.key_selector, *_keyed(given))

    return _opened(
        KeyedOneInputStreamOperatorTestHarness(make_operator, key_selector, key_type, task=task), restore_from
    )


def for_co_process_function(
    function: CoProcessFunction, *, task: TaskInfo = TASK, restore_from: State | None = None
) -> TwoInputStreamOperatorTestHarness[Any, Any, Any]:
    """Return an open harness of a function on two streams without keys; as `for_process_function`."""
    _require(function, CoProcessFunction)

    def make_operator(given: StreamOperatorParameters) -> CoProcessOperator:
        return CoProcessOperator(function, given.output, given.processing_time_service)

    return _opened(TwoInputStreamOperatorTestHarness(make_operator, task=task), restore_from)


def for_keyed_co_process_function(
    function: KeyedCoProcessFunction,
    key_selector1: Callable[[Any], K],
    key_selector2: Callable[[Any], K],
    key_type: Any = None,
    *,
    task: TaskInfo = TASK,
    restore_from: State | None = None,
) -> KeyedTwoInputStreamOperatorTestHarness[K, Any, Any, Any]:
    """Return an open harness of a function on two keyed streams; as `for_keyed_process_function`."""
    _require(function, KeyedCoProcessFunction)

    def make_operator(given: StreamOperatorParameters) -> KeyedCoProcessOperator:
        return KeyedCoProcessOperator(function, given.key_selector, given.key_selector2, *_keyed(given))

    return _opened(
        KeyedTwoInputStreamOperatorTestHarness(
            make_operator, key_selector1, key_selector2, key_type, task=task
        ),
        restore_from,
    )


def for_broadcast_process_function(
    function: BroadcastProcessFunction,
    *descriptors: MapStateDescriptor[Any, Any],
    task: TaskInfo = TASK,
    restore_from: State | None = None,
) -> BroadcastOperatorTestHarness[Any, Any, Any]:
    """Return an open harness of a function on a stream and a broadcast one.

    Parameters
    ----------
    function : BroadcastProcessFunction
    *descriptors : MapStateDescriptor
        Descriptors of the broadcast states.
    task, restore_from
        As of `for_process_function`, whose errors it raises.
    """
    _require(function, BroadcastProcessFunction)

    def make_operator(given: StreamOperatorParameters) -> BroadcastProcessOperator:
        return BroadcastProcessOperator(
            function, descriptors, given.output, given.operator_state_backend, given.processing_time_service
        )

    return _opened(BroadcastOperatorTestHarness(make_operator, task=task), restore_from)


def for_keyed_broadcast_process_function(
    function: KeyedBroadcastProcessFunction,
    key_selector: Callable[[Any], K],
    *descriptors: MapStateDescriptor[Any, Any],
    key_type: Any = None,
    task: TaskInfo = TASK,
    restore_from: State | None = None,
) -> KeyedBroadcastOperatorTestHarness[K, Any, Any, Any]:
    """Return an open harness of a function on a keyed stream and a broadcast one.

    Parameters
    ----------
    function : KeyedBroadcastProcessFunction
    key_selector : callable
        From an element of the keyed stream to its key.
    *descriptors : MapStateDescriptor
        Descriptors of the broadcast states.
    key_type, task, restore_from
        As of `for_keyed_process_function`, whose errors it raises.
    """
    _require(function, KeyedBroadcastProcessFunction)

    def make_operator(given: StreamOperatorParameters) -> KeyedBroadcastProcessOperator:
        return KeyedBroadcastProcessOperator(
            function,
            given.key_selector,
            descriptors,
            given.output,
            given.keyed_state_backend,
            given.operator_state_backend,
            given.processing_time_service,
        )

    return _opened(
        KeyedBroadcastOperatorTestHarness(make_operator, key_selector, key_type, task=task), restore_from
    )


def for_window_operation(
    operation: WindowOperation,
    key_selector: Callable[[Any], K],
    key_type: Any = None,
    *,
    task: TaskInfo = TASK,
    restore_from: State | None = None,
) -> KeyedOneInputStreamOperatorTestHarness[K, Any, Any]:
    """Return an open harness of windows on a keyed stream, with their trigger, evictor and functions.

    The contents of a window are ``harness.get_keyed_state("window-contents", key, window)``; records that are late for
    all their windows are in ``harness.get_side_output(operation.late_tag)``.

    Parameters
    ----------
    operation : WindowOperation
    key_selector, key_type, task, restore_from
        As of `for_keyed_process_function`, whose errors it raises.

    Notes
    -----
    Flink's tests put a ``WindowOperator`` into a ``KeyedOneInputStreamOperatorTestHarness`` likewise. The operator is
    that of jobs, which follows PyFlink where an element fires a window whose aggregate is None.
    """
    _require(operation, WindowOperation)

    def make_operator(given: StreamOperatorParameters) -> OneInputStreamOperator:
        return make_window_operator(operation, given.key_selector, *_keyed(given), as_in_pyflink=True)

    return _opened(
        KeyedOneInputStreamOperatorTestHarness(make_operator, key_selector, key_type, task=task), restore_from
    )


def for_interval_join(
    operation: IntervalJoinOperation,
    key_selector1: Callable[[Any], K],
    key_selector2: Callable[[Any], K],
    key_type: Any = None,
    *,
    task: TaskInfo = TASK,
    restore_from: State | None = None,
) -> KeyedTwoInputStreamOperatorTestHarness[K, Any, Any, Any]:
    """Return an open harness of an interval join of two keyed streams, the first of which is the left one.

    Buffered elements by timestamp are ``harness.get_keyed_state("LEFT_BUFFER", key)`` and ``"RIGHT_BUFFER"``; late ones
    are in ``harness.get_side_output(operation.left_late_tag)``.

    Parameters
    ----------
    operation : IntervalJoinOperation
        Such as ``IntervalJoinOperation(-1000, 1000, MyProcessJoinFunction())``.
    key_selector1, key_selector2, key_type, task, restore_from
        As of `for_keyed_co_process_function`, whose errors it raises.

    Notes
    -----
    Flink's tests put an ``IntervalJoinOperator`` into a ``KeyedTwoInputStreamOperatorTestHarness`` likewise.
    """
    _require(operation, IntervalJoinOperation)

    def make_operator(given: StreamOperatorParameters) -> IntervalJoinOperator:
        return IntervalJoinOperator(operation, given.key_selector, given.key_selector2, *_keyed(given))

    return _opened(
        KeyedTwoInputStreamOperatorTestHarness(
            make_operator, key_selector1, key_selector2, key_type, task=task
        ),
        restore_from,
    )


def for_watermark_strategy(
    watermark_strategy: StrategyOrAssigner, auto_watermark_interval_ms: int = 200
) -> OneInputStreamOperatorTestHarness[Any, Any]:
    """Return an open harness of a watermark strategy.

    Periodic watermarks are emitted when the clock moves: ``harness.advance_time(200)``.

    Parameters
    ----------
    watermark_strategy : WatermarkStrategy, AssignerWithPeriodicWatermarks or AssignerWithPunctuatedWatermarks
        Its timestamp assigner must take elements, not name a column.
    auto_watermark_interval_ms : int
        0: no periodic watermarks.

    Raises
    ------
    ConfigurationError
        If it is not a strategy or one for columns only, or the interval is negative.
    UserCodeError
        If its generator cannot be created.
    """
    if not isinstance(watermark_strategy, AssignerWithPeriodicWatermarks | AssignerWithPunctuatedWatermarks):
        _require(watermark_strategy, WatermarkStrategy)
    strategy = as_watermark_strategy(watermark_strategy)

    def make_operator(given: StreamOperatorParameters) -> TimestampsAndWatermarksOperator:
        return TimestampsAndWatermarksOperator(
            strategy, given.output, given.processing_time_service, auto_watermark_interval_ms
        )

    return _opened(OneInputStreamOperatorTestHarness(make_operator))


def _keyed(given: StreamOperatorParameters) -> tuple[Output, KeyedStateBackend, ProcessingTimeService]:
    return given.output, given.keyed_state_backend, given.processing_time_service


def _require(function: object, kind: type) -> None:
    if isinstance(function, type):
        raise ConfigurationError(
            f"this harness takes a {kind.__name__}, not a class. Make a {function.__name__}()"
        )
    if not isinstance(function, kind):
        raise ConfigurationError(f"this harness takes a {kind.__name__}, not {function!r}")


def _opened(harness: H, restore_from: State | None = None) -> H:
    if restore_from is not None:
        harness.initialize_state(restore_from)
    harness.open()
    return harness


P = ParamSpec("P")


class HarnessMakers:
    """The makers of ``flinkcore.testing``, and `close_at_end` for other harnesses.

    As a context manager it closes all of them, the last one first, even after an error.

    Examples
    --------
    >>> from flinkcore.datastream import ProcessFunction
    >>> class Double(ProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         yield 2 * value
    >>> with HarnessMakers() as harnesses:
    ...     harness = harnesses.for_process_function(Double())
    ...     harness.process_element(4)
    ...     harness.extract_output_values()
    [8]
    """

    def __init__(self) -> None:
        self._made: list[ClockedTestHarness[Any]] = []
        self._at_end = ExitStack()
        self.for_process_function = self._closing(for_process_function)
        self.for_keyed_process_function = self._closing(for_keyed_process_function)
        self.for_co_process_function = self._closing(for_co_process_function)
        self.for_keyed_co_process_function = self._closing(for_keyed_co_process_function)
        self.for_broadcast_process_function = self._closing(for_broadcast_process_function)
        self.for_keyed_broadcast_process_function = self._closing(for_keyed_broadcast_process_function)
        self.for_window_operation = self._closing(for_window_operation)
        self.for_interval_join = self._closing(for_interval_join)
        self.for_watermark_strategy = self._closing(for_watermark_strategy)
        self.for_source = self._closing(for_source)
        self.for_source_function = self._closing(for_source_function)

    def close_at_end(self, harness: C) -> C:
        """Return a harness, open or not, and close it at the end."""
        self._made.append(harness)
        self._at_end.callback(harness.close)
        return harness

    def refuse_leaks(self) -> None:
        """Raise an AssertionError if keyed state or timers are left in any of the harnesses."""
        __tracebackhide__ = True
        for harness in self._made:
            harness.refuse_leaks()

    def _closing(self, make: Callable[P, C]) -> Callable[P, C]:
        @wraps(make)
        def made(*args: P.args, **kwargs: P.kwargs) -> C:
            return self.close_at_end(make(*args, **kwargs))

        return made

    def __enter__(self) -> "HarnessMakers":
        return self

    def __exit__(self, *error: object) -> None:
        self._at_end.__exit__(None, None, None)
