"""The operator of windows whose elements are kept, for an evictor to remove some."""

from functools import partial
from typing import Any

from flinkcore.datastream.functions import AggregateFunction
from flinkcore.datastream.state import ListStateDescriptor, StateDescriptor
from flinkcore.datastream.window import TimestampedValue, Window
from flinkcore.errors import UserCodeError
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.operators.function_results import shown
from flinkcore.runtime.output import OutputFullError
from flinkcore.runtime.windowing.window_calls import aggregated, reduced
from flinkcore.runtime.windowing.window_operator import CONTENTS, WindowOperator


class EvictingWindowOperator(WindowOperator):
    """Keeps all elements of a window with their timestamps, and lets an evictor remove some at each firing.

    What the evictor leaves goes to the functions: a reduce or aggregate function, too, sees it only then. It stays for
    the next firing. A window that the evictor has emptied fires all the same, the first time.

    Parameters are those of :class:`WindowOperator`; the operation has an evictor.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.runtime.operators.windowing.EvictingWindowOperator``.
    """

    def _contents_descriptor(self) -> StateDescriptor:
        return ListStateDescriptor(CONTENTS)

    def _append(self, record: StreamRecord[Any]) -> None:
        self._state.add((record.value, record.timestamp))

    def _emit_contents(self, window: Window) -> None:
        contents = self._state.get()
        if not contents:
            return
        elements = [TimestampedValue(value, timestamp) for value, timestamp in contents]
        self._evict("evict_before", elements, window)
        try:
            self._give([element.value for element in elements], window)
        except OutputFullError as full:
            full.then(partial(self._keep, elements, window))
            raise
        self._keep(elements, window)

    def _keep(self, elements: list[TimestampedValue], window: Window) -> None:
        """Keep what the evictor leaves after the functions have given all."""
        self._evict("evict_after", elements, window)
        self._state.update([(element.value, element.timestamp) for element in elements])

    def _evict(self, method: str, elements: list[TimestampedValue], window: Window) -> None:
        evictor = self._operation.evictor
        before = len(elements)
        try:
            given = getattr(evictor, method)(elements, before, window, self._trigger_context)
        except Exception as failure:
            raise self._results.failed(method, window, failure, evictor) from failure
        if isinstance(given, list):  # meant as what is to be left, which Flink would ignore
            raise self._misused(method, f"gave {shown(given)} at", window)
        for element in elements:
            if type(element) is not TimestampedValue:
                raise self._misused(method, f"left {shown(element)} in", window)

    def _misused(self, method: str, what: str, window: Window) -> UserCodeError:
        return UserCodeError(
            f"{type(self._operation.evictor).__qualname__}.{method} {what} {self._results.described(window)}: it is to "
            "remove elements from the list that it is given, to put nothing else in, and to return no list"
        )

    def _give(self, values: list[Any], window: Window) -> None:
        aggregation = self._operation.pre_aggregation
        if aggregation is None:
            self._emit(window, values)
            return
        try:
            if isinstance(aggregation, AggregateFunction):
                result = aggregated(aggregation, values)
            else:
                result = reduced(aggregation, values)
        except Exception as failure:
            raise self._aggregation_failed(window, failure) from failure
        if self._call is None:
            self._output.collect(StreamRecord(result, window.max_timestamp()))
        else:
            self._emit(window, [result])
