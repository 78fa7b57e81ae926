"""The operator that runs a FlatMapFunction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flinkcore.datastream.functions import FlatMapFunction, RuntimeContext, function_call
from flinkcore.errors import DataError
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.operators.element_function_operator import ElementCall, ElementFunctionOperator
from flinkcore.runtime.operators.keyed_function_operator import refuse_before_open
from flinkcore.runtime.operators.stream_operator import OneInputStreamOperator


class StreamFlatMap(ElementFunctionOperator, OneInputStreamOperator):
    """Gives all that a function makes of each record, one by one as it makes it.

    Parameters are those of :class:`ElementFunctionOperator`; the function is a FlatMapFunction or a callable.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.StreamFlatMap``: all results are values of one record.
    """

    _call: ElementCall = staticmethod(refuse_before_open)

    def open(self, runtime_context: RuntimeContext) -> None:
        """Open the function; before anything is processed."""
        super().open(runtime_context)
        self._call = self._with_key(
            self._flat_map(function_call(self._function, FlatMapFunction, "flat_map"), "flat_map")
        )

    def _flat_map(self, call: Callable[[Any], Any], method: str) -> ElementCall:
        collect, failed, conversion = self._output.collect, self._failed, self._conversion
        misfit = self._misfit

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
                        raise misfit(method, value, record, failure) from failure
                    record.timestamp = timestamp
                    collect(record)
            except Exception as failure:
                record.value = element
                raise failed(method, record, failure) from failure

        return process

    @property
    def element_call(self) -> ElementCall:
        """What processes a record as `process_element` does, in fewer calls."""
        return self._call

    def process_element(self, record: StreamRecord[Any]) -> None:
        """Flat-map a record.

        Raises
        ------
        UserCodeError
            If the function raises, or gives what is no iterable.
        DataError
            If it gives something else than values of the declared type.
        """
        self._call(record)
