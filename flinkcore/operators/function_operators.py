"""The operators of functions of single elements: map, filter, flat map, reduce, and their likes for two inputs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from flinkcore._internal.values.timestamps import MAX_TIMESTAMP
from flinkcore._native.element_calls import FilterCall, MapCall, ReduceCall
from flinkcore.common.watermark import Watermark
from flinkcore.datastream.functions import (
    FilterFunction,
    FlatMapFunction,
    Function,
    FunctionOrCallable,
    MapFunction,
    ReduceFunction,
    RuntimeContext,
    function_call,
)
from flinkcore.datastream.functions.rolling_aggregation import RollingAggregation
from flinkcore.datastream.state import ValueStateDescriptor
from flinkcore.errors import DataError, FlinkcoreError, UserCodeError
from flinkcore.operators.function_calls import KeySelector, key_selector_failed, selected_key
from flinkcore.operators.function_results import FunctionResults
from flinkcore.operators.records.output import Output
from flinkcore.operators.records.stream_elements import StreamRecord
from flinkcore.operators.state import KeyedStateBackend
from flinkcore.operators.stream_operator import (
    AbstractStreamOperator,
    ElementCall,
    OneInputStreamOperator,
    TwoInputStreamOperator,
    refuse_before_open,
)

Conversion = Callable[[Any], Any]

STATE_NAME = "_op_state"


@dataclass(frozen=True)
class KeyedInput:
    """Keyed input of an operator: finds the key of an element, and the state that belongs to it.

    Attributes
    ----------
    key_selector : callable
    backend : KeyedStateBackend
        The operator's own, with its key context.
    """

    key_selector: KeySelector
    backend: KeyedStateBackend

    def set_key_before(self, call: ElementCall) -> ElementCall:
        """Return a call that makes an element's key the current one before another call."""
        key_selector, set_current_key = self.key_selector, self.backend.set_current_key

        def process(record: StreamRecord[Any]) -> None:
            set_current_key(selected_key(key_selector, record))
            call(record)

        return process


class ElementFunctionOperator(AbstractStreamOperator):
    """Opens and closes a function, and names it in errors.

    Parameters
    ----------
    function : Function or callable
    output : Output
    conversion : callable, optional
        From a result of the function to a value of the declared type.
    keyed_inputs : tuple of KeyedInput
        By input, if the function has keyed state.

    Notes
    -----
    Flink's ``AbstractUdfStreamOperator``.
    """

    def __init__(
        self,
        function: FunctionOrCallable,
        output: Output,
        conversion: Conversion | None = None,
        keyed_inputs: tuple[KeyedInput, ...] = (),
    ) -> None:
        super().__init__(output)
        self._function = function
        self._conversion = conversion
        self._keyed_inputs = keyed_inputs
        key_context = keyed_inputs[0].backend.key_context if keyed_inputs else None
        self._results = FunctionResults(function, output, key_context)

    def open(self, runtime_context: RuntimeContext) -> None:
        if isinstance(self._function, Function):
            self._function.open(runtime_context)

    def close(self) -> None:
        if isinstance(self._function, Function):
            self._function.close()

    def process_watermark(self, watermark: Watermark) -> None:
        if self._keyed_inputs:
            self._keyed_inputs[0].backend.advance_watermark(watermark.timestamp)
        super().process_watermark(watermark)

    def _with_key(self, call: ElementCall, input_index: int = 0) -> ElementCall:
        return self._keyed_inputs[input_index].set_key_before(call) if self._keyed_inputs else call

    def _misfit(
        self, method: str, value: Any, record: StreamRecord[Any], failure: Exception
    ) -> FlinkcoreError:
        """Return the error to raise if a result cannot be converted to the declared type."""
        if not isinstance(failure, DataError):
            return self._failed(method, record, failure)
        return self._results.misfit(value, f" at {self._results.described(record)}", failure, method)

    def _failed(self, method: str, record: StreamRecord[Any], failure: Exception) -> UserCodeError:
        """Return the error to raise from a failure of the function; one of flinkcore's own is raised as it is."""
        if isinstance(failure, FlinkcoreError):
            raise failure
        return self._results.failed(method, record, failure)


class OneInputFunctionOperator(ElementFunctionOperator, OneInputStreamOperator):
    """An operator of a function of the elements of one input."""

    _call: ElementCall = staticmethod(refuse_before_open)

    def open(self, runtime_context: RuntimeContext) -> None:
        super().open(runtime_context)
        self._call = self._made_call()

    @abstractmethod
    def _made_call(self) -> ElementCall:
        """Return the call that processes a record; the function is open."""

    @property
    def element_call(self) -> ElementCall:
        return self._call

    def process_element(self, record: StreamRecord[Any]) -> None:
        self._call(record)


class TwoInputFunctionOperator(ElementFunctionOperator, TwoInputStreamOperator):
    """An operator of a function with a method for each of two inputs."""

    _method: ClassVar[str]
    """Name of both methods, without their number."""

    _call1: ElementCall = staticmethod(refuse_before_open)
    _call2: ElementCall = staticmethod(refuse_before_open)

    def open(self, runtime_context: RuntimeContext) -> None:
        super().open(runtime_context)
        first, second = (f"{self._method}{number}" for number in (1, 2))
        self._call1 = self._with_key(self._made_call(getattr(self._function, first), first), 0)
        self._call2 = self._with_key(self._made_call(getattr(self._function, second), second), 1)

    @abstractmethod
    def _made_call(self, call: Callable[[Any], Any], method: str) -> ElementCall:
        """Return the call that processes a record by a method of the function."""

    def process_element1(self, record: StreamRecord[Any]) -> None:
        self._call1(record)

    def process_element2(self, record: StreamRecord[Any]) -> None:
        self._call2(record)


class StreamMap(OneInputFunctionOperator):
    """Replaces the value of each record by the result of a MapFunction or a callable.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.StreamMap``: the same record is emitted, with another value.
    """

    def _made_call(self) -> ElementCall:
        collect, failed, conversion = self._output.collect, self._failed, self._conversion
        call = function_call(self._function, MapFunction, "map")
        return self._with_key(MapCall(call, conversion, collect, failed, self._misfit).process)


class StreamFilter(OneInputFunctionOperator):
    """Forwards the records for which a FilterFunction or a callable returns true.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.StreamFilter``.
    """

    def _made_call(self) -> ElementCall:
        collect, failed, conversion = self._output.collect, self._failed, self._conversion
        call = function_call(self._function, FilterFunction, "filter")
        return self._with_key(FilterCall(call, conversion, collect, failed, self._misfit).process)


class StreamFlatMap(OneInputFunctionOperator):
    """Emits the results of a FlatMapFunction or a callable for each record, one by one as it makes them.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.StreamFlatMap``: the same record is emitted, with each of the
    values.
    """

    def _made_call(self) -> ElementCall:
        collect, failed, conversion = self._output.collect, self._failed, self._conversion
        misfit, call = self._misfit, function_call(self._function, FlatMapFunction, "flat_map")

        def process(record: StreamRecord[Any]) -> None:
            element, timestamp = record.value, record.timestamp
            try:
                results = call(element)
                if results is None:
                    return
                for value in results:
                    try:
                        record.value = value if conversion is None else conversion(value)
                    except DataError as failure:
                        record.value = element
                        raise misfit("flat_map", value, record, failure) from failure
                    record.timestamp = timestamp
                    collect(record)
            except Exception as failure:
                record.value = element
                raise failed("flat_map", record, failure) from failure

        return self._with_key(process)


class StreamGroupedReduce(OneInputFunctionOperator):
    """Replaces the value of each record by the reduction of all values of its key so far.

    The function is a ReduceFunction or a callable; there is one keyed input.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.StreamGroupedReduceOperator``.
    """

    def _made_call(self) -> ElementCall:
        keyed = self._keyed_inputs[0]
        return ReduceCall(
            keyed.backend.key_context,
            keyed.backend.get_or_create_keyed_state(ValueStateDescriptor(STATE_NAME)),
            keyed.key_selector,
            function_call(self._function, ReduceFunction, "reduce"),
            self._function.begin if isinstance(self._function, RollingAggregation) else None,
            self._conversion,
            self._collect_reduced,
            self._failed,
            self._misfit,
            key_selector_failed,
        ).process

    @property
    def _collect_reduced(self) -> ElementCall:
        """Return what takes each record with its reduced value."""
        return self._output.collect


class BatchGroupedReduce(StreamGroupedReduce):
    """Emits the reduction of all values of each key when the input has ended.

    Keys come in the order of their first records; results carry no timestamp.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.BatchGroupedReduceOperator``.
    """

    @property
    def _collect_reduced(self) -> ElementCall:
        key_context, reduced = self._keyed_inputs[0].backend.key_context, self._reduced

        def hold(record: StreamRecord[Any]) -> None:
            reduced[key_context.current_key_id] = record.value

        return hold

    def open(self, runtime_context: RuntimeContext) -> None:
        self._reduced: dict[int, Any] = {}  # by the id of the key, which its state holds
        super().open(runtime_context)

    def process_watermark(self, watermark: Watermark) -> None:
        """Forward a watermark; the last one after all results."""
        if watermark.timestamp == MAX_TIMESTAMP:
            reduced, self._reduced = self._reduced, {}
            for value in reduced.values():
                self._output.collect(StreamRecord(value))
        super().process_watermark(watermark)


class CoStreamMap(TwoInputFunctionOperator):
    """Replaces the value of each record of two inputs by the result of a CoMapFunction, and drops it if that is None.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.co.CoStreamMap``; dropping None is PyFlink's.
    """

    _method = "map"

    def _made_call(self, call: Callable[[Any], Any], method: str) -> ElementCall:
        collect, failed, conversion = self._output.collect, self._failed, self._conversion

        def process(record: StreamRecord[Any]) -> None:
            try:
                value = call(record.value)
            except Exception as failure:
                raise failed(method, record, failure) from failure
            if value is None:
                return
            try:
                record.value = value if conversion is None else conversion(value)
            except Exception as failure:
                raise self._misfit(method, value, record, failure) from failure
            collect(record)

        return process


class CoStreamFlatMap(TwoInputFunctionOperator):
    """Emits the results of a CoFlatMapFunction for each record of two inputs, one by one as it makes them.

    The function may emit to side outputs, as in PyFlink. The output converts the results.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.co.CoStreamFlatMap``.
    """

    _method = "flat_map"

    def _made_call(self, call: Callable[[Any], Any], method: str) -> ElementCall:
        results = self._results

        def process(record: StreamRecord[Any]) -> None:
            try:
                given = call(record.value)
            except Exception as failure:
                raise results.failed(method, record, failure) from failure
            if given is not None:
                results.emit(given, record.timestamp, record.timestamp, method, record)

        return process
