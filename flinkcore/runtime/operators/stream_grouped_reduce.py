"""The operator that runs a ReduceFunction on a keyed stream."""

from __future__ import annotations

from typing import Any

from flinkcore.common.constants import MAX_TIMESTAMP
from flinkcore.common.watermark import Watermark
from flinkcore.datastream.functions import ReduceFunction, RuntimeContext, function_call
from flinkcore.datastream.functions.rolling_aggregation import RollingAggregation
from flinkcore.datastream.state import ValueStateDescriptor
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.operators.element_function_operator import ElementCall, ElementFunctionOperator
from flinkcore.runtime.operators.keyed_calls import selected_key
from flinkcore.runtime.operators.keyed_function_operator import refuse_before_open
from flinkcore.runtime.operators.stream_operator import OneInputStreamOperator

STATE_NAME = "_op_state"


class StreamGroupedReduce(ElementFunctionOperator, OneInputStreamOperator):
    """Replaces the value of each record by what it and all before it of its key are reduced to.

    Parameters are those of :class:`ElementFunctionOperator`, with one keyed input.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.StreamGroupedReduceOperator``.
    """

    _call: ElementCall = staticmethod(refuse_before_open)

    def open(self, runtime_context: RuntimeContext) -> None:
        """Open the function and ask for the state; before anything is processed."""
        super().open(runtime_context)
        keyed = self._keyed_inputs[0]
        key_selector, set_current_key = keyed.key_selector, keyed.backend.key_context.set_current_key
        state = keyed.backend.get_or_create_keyed_state(ValueStateDescriptor(STATE_NAME))
        current, update = state.value, state.update
        collect, failed, conversion = self._collect_reduced, self._failed, self._conversion
        reduce = function_call(self._function, ReduceFunction, "reduce")
        begin = self._function.begin if isinstance(self._function, RollingAggregation) else None

        def process(record: StreamRecord[Any]) -> None:
            value = record.value
            try:
                key = key_selector(value)
            except Exception:
                key = selected_key(key_selector, record)  # says what failed
            set_current_key(key)
            before = current()
            if before is not None:
                try:
                    value = reduce(before, value)
                except Exception as failure:
                    raise failed("reduce", record, failure) from failure
                if conversion is not None:
                    try:
                        value = conversion(value)
                    except Exception as failure:
                        raise self._misfit("reduce", value, record, failure) from failure
                record.value = value
            elif begin is not None:
                begin(value)
            update(value)
            collect(record)

        self._call = process

    @property
    def _collect_reduced(self) -> ElementCall:
        """What takes each record with the value that it has been reduced to."""
        return self._output.collect

    @property
    def element_call(self) -> ElementCall:
        """What processes a record as `process_element` does, in fewer calls."""
        return self._call

    def process_element(self, record: StreamRecord[Any]) -> None:
        """Reduce a record.

        Raises
        ------
        UserCodeError
            If the function or the key selector raises.
        DataError
            If the key cannot be one, or the function gives something else than a value of the declared type.
        """
        self._call(record)


class BatchGroupedReduce(StreamGroupedReduce):
    """Gives for each key what all its records are reduced to, when the input has ended.

    Keys come in the order of their first records; results carry no timestamp.

    Parameters are those of :class:`StreamGroupedReduce`.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.BatchGroupedReduceOperator``.
    """

    @property
    def _collect_reduced(self) -> ElementCall:
        key_context, reduced = self._keyed_inputs[0].backend.key_context, self._reduced

        def hold(record: StreamRecord[Any]) -> None:
            reduced[key_context.current_key] = record.value

        return hold

    def open(self, runtime_context: RuntimeContext) -> None:
        """Open the function and ask for the state; before anything is processed."""
        self._reduced: dict[Any, Any] = {}
        super().open(runtime_context)

    def process_watermark(self, watermark: Watermark) -> None:
        """Give all results before the last watermark, which is passed on."""
        if watermark.timestamp == MAX_TIMESTAMP:
            reduced, self._reduced = self._reduced, {}
            for value in reduced.values():
                self._output.collect(StreamRecord(value))
        super().process_watermark(watermark)
