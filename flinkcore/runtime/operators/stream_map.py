"""The operator that runs a MapFunction."""

from __future__ import annotations

from typing import Any

from flinkcore.datastream.functions import MapFunction, RuntimeContext, function_call
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.operators.element_function_operator import ElementCall, ElementFunctionOperator
from flinkcore.runtime.operators.keyed_function_operator import refuse_before_open
from flinkcore.runtime.operators.stream_operator import OneInputStreamOperator


class StreamMap(ElementFunctionOperator, OneInputStreamOperator):
    """Replaces the value of each record by what a function makes of it.

    Parameters are those of :class:`ElementFunctionOperator`; the function is a MapFunction or a callable.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.StreamMap``: the record itself goes on, with another value.
    """

    _call: ElementCall = staticmethod(refuse_before_open)

    def open(self, runtime_context: RuntimeContext) -> None:
        """Open the function; before anything is processed."""
        super().open(runtime_context)
        function, collect, failed = self._function, self._output.collect, self._failed
        conversion = self._conversion
        call = function_call(function, MapFunction, "map")

        def process(record: StreamRecord[Any]) -> None:
            try:
                record.value = call(record.value)
            except Exception as failure:
                raise failed("map", record, failure) from failure
            collect(record)

        def process_converted(record: StreamRecord[Any]) -> None:
            try:
                value = call(record.value)
            except Exception as failure:
                raise failed("map", record, failure) from failure
            try:
                record.value = conversion(value)  # type: ignore[misc]
            except Exception as failure:
                raise self._misfit("map", value, record, failure) from failure
            collect(record)

        self._call = self._with_key(process if conversion is None else process_converted)

    @property
    def element_call(self) -> ElementCall:
        """What processes a record as `process_element` does, in fewer calls."""
        return self._call

    def process_element(self, record: StreamRecord[Any]) -> None:
        """Map a record.

        Raises
        ------
        UserCodeError
            If the function raises.
        DataError
            If it gives something else than a value of the declared type.
        """
        self._call(record)
