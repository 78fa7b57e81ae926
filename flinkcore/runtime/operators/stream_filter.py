"""The operator that runs a FilterFunction."""

from __future__ import annotations

from typing import Any

from flinkcore.datastream.functions import FilterFunction, RuntimeContext, function_call
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.operators.element_function_operator import ElementCall, ElementFunctionOperator
from flinkcore.runtime.operators.keyed_function_operator import refuse_before_open
from flinkcore.runtime.operators.stream_operator import OneInputStreamOperator


class StreamFilter(ElementFunctionOperator, OneInputStreamOperator):
    """Lets those records pass for which a function returns true.

    Parameters are those of :class:`ElementFunctionOperator`; the function is a FilterFunction or a callable.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.StreamFilter``.
    """

    _call: ElementCall = staticmethod(refuse_before_open)

    def open(self, runtime_context: RuntimeContext) -> None:
        """Open the function; before anything is processed."""
        super().open(runtime_context)
        collect, failed = self._output.collect, self._failed
        call = function_call(self._function, FilterFunction, "filter")

        def process(record: StreamRecord[Any]) -> None:
            try:
                passes = call(record.value)
            except Exception as failure:
                raise failed("filter", record, failure) from failure
            if passes:
                collect(record)

        self._call = self._with_key(process)

    @property
    def element_call(self) -> ElementCall:
        """What processes a record as `process_element` does, in fewer calls."""
        return self._call

    def process_element(self, record: StreamRecord[Any]) -> None:
        """Let a record pass, or not.

        Raises
        ------
        UserCodeError
            If the function raises.
        """
        self._call(record)
