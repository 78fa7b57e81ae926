"""The operator that runs a CoMapFunction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flinkcore.datastream.functions import RuntimeContext
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.operators.element_function_operator import ElementCall, ElementFunctionOperator
from flinkcore.runtime.operators.keyed_function_operator import refuse_before_open
from flinkcore.runtime.operators.stream_operator import TwoInputStreamOperator


class CoStreamMap(ElementFunctionOperator, TwoInputStreamOperator):
    """Replaces the value of each record of two inputs by what a function makes of it, and drops it if that is None.

    Parameters are those of :class:`ElementFunctionOperator`; the function is a CoMapFunction.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.co.CoStreamMap``; leaving out None is PyFlink's.
    """

    _call1: ElementCall = staticmethod(refuse_before_open)
    _call2: ElementCall = staticmethod(refuse_before_open)

    def open(self, runtime_context: RuntimeContext) -> None:
        """Open the function; before anything is processed."""
        super().open(runtime_context)
        function: Any = self._function
        self._call1 = self._with_key(self._map(function.map1, "map1"), 0)
        self._call2 = self._with_key(self._map(function.map2, "map2"), 1)

    def _map(self, call: Callable[[Any], Any], method: str) -> ElementCall:
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

    def process_element1(self, record: StreamRecord[Any]) -> None:
        """Map a record of the first input; errors as of `StreamMap.process_element`."""
        self._call1(record)

    def process_element2(self, record: StreamRecord[Any]) -> None:
        """Map a record of the second input; errors as of `StreamMap.process_element`."""
        self._call2(record)
