"""The operators of process functions: of one stream or two, with keys or without, and beside a broadcast stream."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from flinkcore.common.watermark import Watermark
from flinkcore.datastream.functions import (
    BroadcastProcessFunction,
    CoProcessFunction,
    Function,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
    RuntimeContext,
)
from flinkcore.datastream.state import MapStateDescriptor
from flinkcore.datastream.timerservice import TimerService
from flinkcore.errors import LifecycleError
from flinkcore.operators.function_calls import (
    KeyedCalls,
    KeyedElementCall,
    KeySelector,
    call_for_element,
)
from flinkcore.operators.function_results import FunctionResults
from flinkcore.operators.process_contexts import (
    BroadcastElementContext,
    ContextOfTimers,
    ElementContext,
    KeyedBroadcastTimerContext,
    KeyedElementContext,
    KeyedReadOnlyElementContext,
    KeyedTimerContext,
    ReadOnlyElementContext,
)
from flinkcore.operators.records.output import Output, OutputFullError
from flinkcore.operators.records.stream_elements import StreamRecord
from flinkcore.operators.state import KeyedStateBackend, OperatorStateBackend
from flinkcore.operators.stream_operator import (
    AbstractStreamOperator,
    ElementCall,
    OneInputStreamOperator,
    TwoInputStreamOperator,
    refuse_before_open,
)
from flinkcore.operators.timers import InternalTimeServiceManager
from flinkcore.operators.timers.function_timer_services import UnkeyedTimerService
from flinkcore.operators.timers.processing_time import ProcessingTimeService

F = TypeVar("F", bound=Function)


class UnkeyedFunctionOperator(AbstractStreamOperator, Generic[F]):
    """Opens and closes a function on streams without keys, and gives it processing time and watermark.

    Notes
    -----
    Flink's ``AbstractUdfStreamOperator``, with what ``ProcessOperator``, ``CoProcessOperator`` and
    ``CoBroadcastWithNonKeyedOperator`` have in common.
    """

    def __init__(self, function: F, output: Output, processing_time_service: ProcessingTimeService) -> None:
        super().__init__(output)
        self._function = function
        self._results = FunctionResults(function, output)
        self._timer_service = UnkeyedTimerService(processing_time_service)
        self._context = ElementContext(self._timer_service)

    def open(self, runtime_context: RuntimeContext) -> None:
        self._function.open(runtime_context)

    def restore_watermark(self, watermark_ms: int) -> None:
        """Take the watermark of a snapshot, before `open`."""
        self._timer_service.watermark = watermark_ms

    def process_watermark(self, watermark: Watermark) -> None:
        self._timer_service.watermark = watermark.timestamp
        super().process_watermark(watermark)

    def close(self) -> None:
        self._function.close()


class ProcessOperator(UnkeyedFunctionOperator[ProcessFunction], OneInputStreamOperator):
    """Calls a function for every element; its results carry the element's timestamp.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.ProcessOperator``.
    """

    def process_element(self, record: StreamRecord[Any]) -> None:
        call_for_element(self._function.process_element, self._context, self._results, record)


class CoProcessOperator(UnkeyedFunctionOperator[CoProcessFunction], TwoInputStreamOperator):
    """Calls a function for every element of two streams; its results carry the element's timestamp.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.co.CoProcessOperator``.
    """

    def process_element1(self, record: StreamRecord[Any]) -> None:
        call_for_element(self._function.process_element1, self._context, self._results, record)

    def process_element2(self, record: StreamRecord[Any]) -> None:
        call_for_element(self._function.process_element2, self._context, self._results, record)


class BroadcastProcessOperator(UnkeyedFunctionOperator[BroadcastProcessFunction], TwoInputStreamOperator):
    """Calls a function for every element of a stream, and of a broadcast stream, which is the second input.

    Parameters
    ----------
    function : BroadcastProcessFunction
    broadcast_states : sequence of MapStateDescriptor
        The states that the function can ask for.
    output : Output
    operator_state_backend : OperatorStateBackend
        Has the broadcast states.
    processing_time_service : ProcessingTimeService

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.co.CoBroadcastWithNonKeyedOperator``.
    """

    def __init__(
        self,
        function: BroadcastProcessFunction,
        broadcast_states: Sequence[MapStateDescriptor[Any, Any]],
        output: Output,
        operator_state_backend: OperatorStateBackend,
        processing_time_service: ProcessingTimeService,
    ) -> None:
        super().__init__(function, output, processing_time_service)
        self._broadcast_states = broadcast_states
        self._operator_state_backend = operator_state_backend
        self._read_only_context = ReadOnlyElementContext(self._timer_service, operator_state_backend)
        self._broadcast_context = BroadcastElementContext(self._timer_service, operator_state_backend)

    def open(self, runtime_context: RuntimeContext) -> None:
        for descriptor in self._broadcast_states:
            self._operator_state_backend.get_broadcast_state(descriptor)
        super().open(runtime_context)

    def process_element1(self, record: StreamRecord[Any]) -> None:
        call_for_element(self._function.process_element, self._read_only_context, self._results, record)

    def process_element2(self, record: StreamRecord[Any]) -> None:
        call_for_element(
            self._function.process_broadcast_element, self._broadcast_context, self._results, record
        )


class KeyedFunctionOperator(AbstractStreamOperator, Generic[F]):
    """Has the timers and the keyed state of a function; a watermark fires timers before it is forwarded.

    Parameters
    ----------
    function : Function
    output : Output
    keyed_state_backend : KeyedStateBackend
        The operator's own, with its key context.
    processing_time_service : ProcessingTimeService

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
    ) -> None:
        super().__init__(output)
        self._function = function
        self._keyed_state_backend = keyed_state_backend
        self._time_service_manager = InternalTimeServiceManager(
            keyed_state_backend.key_context, processing_time_service, keyed_state_backend.set_current_key_id
        )

    @property
    def time_service_manager(self) -> InternalTimeServiceManager:
        return self._time_service_manager

    def _keyed_calls(self, make_timer_context: Callable[[TimerService], ContextOfTimers]) -> KeyedCalls:
        """Return the calls of the function, whose timers are started by this."""
        return KeyedCalls(
            self._function,
            self._output,
            self._keyed_state_backend,
            self._time_service_manager,
            make_timer_context,
        )

    def process_watermark(self, watermark: Watermark) -> None:
        self._keyed_state_backend.advance_watermark(watermark.timestamp)
        try:
            self._time_service_manager.advance_watermark(watermark.timestamp)
        except OutputFullError as full:
            full.then(partial(super().process_watermark, watermark))
            raise
        super().process_watermark(watermark)

    def close(self) -> None:
        self._function.close()


class KeyedProcessOperator(KeyedFunctionOperator[KeyedProcessFunction], OneInputStreamOperator):
    """Calls a function for every element of a keyed stream, and for the timers that it registers.

    Parameters
    ----------
    function : KeyedProcessFunction
    key_selector : callable or None
        Function from an element to its key, or None if elements come with their keys, to `process_element_of_key` only.
    output, keyed_state_backend, processing_time_service
        As of :class:`KeyedFunctionOperator`.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.KeyedProcessOperator``.
    """

    def __init__(
        self,
        function: KeyedProcessFunction,
        key_selector: KeySelector | None,
        output: Output,
        keyed_state_backend: KeyedStateBackend,
        processing_time_service: ProcessingTimeService,
    ) -> None:
        super().__init__(function, output, keyed_state_backend, processing_time_service)
        self._key_selector = key_selector
        self._process: ElementCall = refuse_before_open
        self._process_of_key: KeyedElementCall | None = None

    def open(self, runtime_context: RuntimeContext) -> None:
        key_context = self._keyed_state_backend.key_context
        calls = self._keyed_calls(partial(KeyedTimerContext, key_context=key_context))
        context = KeyedElementContext(calls.timer_service, key_context)
        process_element = self._function.process_element
        self._process_of_key = calls.keyed_element_call(process_element, context)
        if self._key_selector is not None:
            self._process = calls.element_call(process_element, self._key_selector, context)
        self._function.open(runtime_context)

    def process_element(self, record: StreamRecord[Any]) -> None:
        self._process(record)

    @property
    def element_call(self) -> ElementCall:
        return self._process

    @property
    def process_element_of_key(self) -> KeyedElementCall:
        """Return what processes a record whose key is known, as `process_element` does.

        Raises
        ------
        LifecycleError
            If the operator is not open.
        """
        if self._process_of_key is None:
            raise LifecycleError("the operator of a keyed function is to be opened before elements come")
        return self._process_of_key


class KeyedCoProcessOperator(
    KeyedFunctionOperator[KeyedCoProcessFunction | CoProcessFunction], TwoInputStreamOperator
):
    """Calls a function for every element of two keyed streams, and for the timers that it registers.

    Timers follow the combined watermark of both inputs.

    Parameters
    ----------
    function : KeyedCoProcessFunction or CoProcessFunction
    key_selector1, key_selector2 : callable
        From an element of either input to its key.
    output, keyed_state_backend, processing_time_service
        As of :class:`KeyedFunctionOperator`.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.co.KeyedCoProcessOperator``.
    """

    def __init__(
        self,
        function: KeyedCoProcessFunction | CoProcessFunction,
        key_selector1: KeySelector,
        key_selector2: KeySelector,
        output: Output,
        keyed_state_backend: KeyedStateBackend,
        processing_time_service: ProcessingTimeService,
    ) -> None:
        super().__init__(function, output, keyed_state_backend, processing_time_service)
        self._key_selectors = (key_selector1, key_selector2)
        self._process1: ElementCall = refuse_before_open
        self._process2: ElementCall = refuse_before_open

    def open(self, runtime_context: RuntimeContext) -> None:
        key_context = self._keyed_state_backend.key_context
        calls = self._keyed_calls(partial(KeyedTimerContext, key_context=key_context))
        context = KeyedElementContext(calls.timer_service, key_context)
        key_selector1, key_selector2 = self._key_selectors
        self._process1 = calls.element_call(self._function.process_element1, key_selector1, context)
        self._process2 = calls.element_call(self._function.process_element2, key_selector2, context)
        self._function.open(runtime_context)

    def process_element1(self, record: StreamRecord[Any]) -> None:
        self._process1(record)

    def process_element2(self, record: StreamRecord[Any]) -> None:
        self._process2(record)


class KeyedBroadcastProcessOperator(
    KeyedFunctionOperator[KeyedBroadcastProcessFunction], TwoInputStreamOperator
):
    """Calls a function for every element of a keyed stream, for its timers, and for a broadcast second input.

    Timers follow the combined watermark of both inputs.

    Parameters
    ----------
    function : KeyedBroadcastProcessFunction
    key_selector : callable
        From an element of the first input to its key.
    broadcast_states : sequence of MapStateDescriptor
        The states that the function can ask for.
    output, keyed_state_backend, processing_time_service
        As of :class:`KeyedFunctionOperator`.
    operator_state_backend : OperatorStateBackend
        Has the broadcast states.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.co.CoBroadcastWithKeyedOperator``. Deliberate difference:
    there is no current key during a call for a broadcast element, so that keyed state is not changed by accident; in
    Flink the key of the previous element is still the current one.
    """

    def __init__(
        self,
        function: KeyedBroadcastProcessFunction,
        key_selector: KeySelector,
        broadcast_states: Sequence[MapStateDescriptor[Any, Any]],
        output: Output,
        keyed_state_backend: KeyedStateBackend,
        operator_state_backend: OperatorStateBackend,
        processing_time_service: ProcessingTimeService,
    ) -> None:
        super().__init__(function, output, keyed_state_backend, processing_time_service)
        self._key_selector = key_selector
        self._broadcast_states = broadcast_states
        self._operator_state_backend = operator_state_backend
        self._process: ElementCall = refuse_before_open
        self._process_broadcast: ElementCall = refuse_before_open

    def open(self, runtime_context: RuntimeContext) -> None:
        broadcast = self._operator_state_backend
        for descriptor in self._broadcast_states:
            broadcast.get_broadcast_state(descriptor)
        key_context = self._keyed_state_backend.key_context
        calls = self._keyed_calls(
            partial(KeyedBroadcastTimerContext, operator_state_backend=broadcast, key_context=key_context)
        )
        self._process = calls.element_call(
            self._function.process_element,
            self._key_selector,
            KeyedReadOnlyElementContext(calls.timer_service, broadcast, key_context),
        )
        self._process_broadcast = partial(
            call_for_element,
            self._function.process_broadcast_element,
            BroadcastElementContext(calls.timer_service, broadcast),
            FunctionResults(self._function, self._output),
        )
        self._function.open(runtime_context)

    def process_element1(self, record: StreamRecord[Any]) -> None:
        self._process(record)

    def process_element2(self, record: StreamRecord[Any]) -> None:
        self._keyed_state_backend.key_context.clear_current_key()
        self._process_broadcast(record)
