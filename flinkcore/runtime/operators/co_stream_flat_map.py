"""The operator that runs a CoFlatMapFunction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flinkcore.datastream.functions import RuntimeContext
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.operators.element_function_operator import ElementCall, ElementFunctionOperator
from flinkcore.runtime.operators.keyed_function_operator import refuse_before_open
from flinkcore.runtime.operators.stream_operator import TwoInputStreamOperator


class CoStreamFlatMap(ElementFunctionOperator, TwoInputStreamOperator):
    """Gives all that a function makes of each record of two inputs, one by one as it makes it.

    Parameters are those of :class:`ElementFunctionOperator`; the function is a CoFlatMapFunction, and may emit to side
    outputs, as in PyFlink. What it gives is converted by the output.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.co.CoStreamFlatMap``.
    """

    _call1: ElementCall = staticmethod(refuse_before_open)
    _call2: ElementCall = staticmethod(refuse_before_open)

    def open(self, runtime_context: RuntimeContext) -> None:
        """Open the function; before anything is processed."""
        super().open(runtime_context)
        function: Any = self._function
        self._call1 = self._with_key(self._flat_map(function.flat_map1, "flat_map1"), 0)
        self._call2 = self._with_key(self._flat_map(function.flat_map2, "flat_map2"), 1)

    def _flat_map(self, call: Callable[[Any], Any], method: str) -> ElementCall:
        results = self._results

        def process(record: StreamRecord[Any]) -> None:
            try:
                given = call(record.value)
            except Exception as failure:
                raise results.failed(method, record, failure) from failure
            if given is not None:
                results.emit(given, record.timestamp, record.timestamp, method, record)

        return process

    def process_element1(self, record: StreamRecord[Any]) -> None:
        """Flat-map a record of the first input; errors as of `StreamFlatMap.process_element`."""
        self._call1(record)

    def process_element2(self, record: StreamRecord[Any]) -> None:
        """Flat-map a record of the second input; errors as of `StreamFlatMap.process_element`."""
        self._call2(record)
