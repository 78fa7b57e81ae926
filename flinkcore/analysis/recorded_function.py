"""Functions whose calls are recorded: what each gave, and what a process function did with timers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

from flinkcore.common.output_tag import OutputTag
from flinkcore.datastream.functions import (
    AggregateFunction,
    KeyedProcessFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    RuntimeContext,
)
from flinkcore.datastream.time_domain import TimeDomain
from flinkcore.datastream.timerservice import TimerService
from flinkcore.datastream.window import Window
from flinkcore.datastream.window.window_operation import AnyWindowFunction
from flinkcore.operators.keys.key_context import KeyContext
from flinkcore.operators.records.copies import copied_function
from flinkcore.operators.windowing.window_calls import window_call


class TimerAct(NamedTuple):
    """Something that happened to a timer.

    Attributes
    ----------
    action : str
        "registered", "deleted" or "fired"; where there is such a timer already, or is none, that has no effect.
    is_event_time : bool
        Whether it is a timer of event time, and not of processing time.
    timestamp : int
        In ms since the epoch.
    arrival_ms, watermark : int
        Time of the clock, and the watermark in force.
    by_element : int or None
        Number of elements before the one whose call did it, or None if a timer's call did or the timer fired.
    call : int
        The number of the call that did it, or for which it fired, counted from 0 on.
    event : int or None
        The number of that element, where elements have numbers.
    """

    action: str
    is_event_time: bool
    timestamp: int
    arrival_ms: int
    watermark: int
    by_element: int | None
    call: int
    event: int | None = None


@dataclass
class Call:
    """A call for an element, or for a timer, and its results among all; each counted from 0 on."""

    number: int
    element: int | None
    timer: TimerAct | None
    arrival_ms: int
    watermark: int
    first_result: int
    n_results: int = 0


@dataclass
class Journal:
    """Record of calls and timers, in the order in which they happened."""

    calls: list[Call] = field(default_factory=list)
    timers: list[TimerAct] = field(default_factory=list)
    n_elements: int = 0
    n_results: int = 0

    def begin(self, timers: TimerService, fired: TimerAct | None = None) -> Call:
        """Begin a call: for a timer that has fired, or for the next element."""
        element = None
        if fired is None:
            element, self.n_elements = self.n_elements, self.n_elements + 1
        else:
            self.timers.append(fired)
        now_ms, watermark = timers.current_processing_time(), timers.current_watermark()
        self.calls.append(Call(len(self.calls), element, fired, now_ms, watermark, self.n_results))
        return self.calls[-1]

    def add_result(self, call: Call, result: Any) -> None:
        """Count a result of a call, unless it is of a side output."""
        if not _is_aside(result):
            call.n_results += 1
            self.n_results += 1


def _is_aside(result: Any) -> bool:
    return isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], OutputTag)


class RecordedTimerService(TimerService):
    """The timer service of a call, which notes what the call does with timers."""

    def __init__(self, timers: TimerService, journal: Journal, call: Call) -> None:
        self._timers = timers
        self._journal = journal
        self._call = call

    def _note(self, action: str, is_event_time: bool, timestamp: int) -> None:
        now_ms, watermark = self.current_processing_time(), self.current_watermark()
        self._journal.timers.append(
            TimerAct(
                action, is_event_time, timestamp, now_ms, watermark, self._call.element, self._call.number
            )
        )

    def current_processing_time(self) -> int:
        return self._timers.current_processing_time()

    def current_watermark(self) -> int:
        return self._timers.current_watermark()

    def register_processing_time_timer(self, timestamp: int) -> None:
        self._timers.register_processing_time_timer(timestamp)
        self._note("registered", False, timestamp)

    def register_event_time_timer(self, timestamp: int) -> None:
        self._timers.register_event_time_timer(timestamp)
        self._note("registered", True, timestamp)

    def delete_processing_time_timer(self, timestamp: int) -> None:
        self._timers.delete_processing_time_timer(timestamp)
        self._note("deleted", False, timestamp)

    def delete_event_time_timer(self, timestamp: int) -> None:
        self._timers.delete_event_time_timer(timestamp)
        self._note("deleted", True, timestamp)


class _RecordedContext:
    """The context of a call, with a timer service that is recorded."""

    def __init__(self, context: Any, timers: RecordedTimerService) -> None:
        self._context = context
        self._timers = timers

    def timer_service(self) -> TimerService:
        return self._timers

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


class RecordedFunction(KeyedProcessFunction):
    """Calls a process function, and records it; all copies write to one journal.

    Parameters
    ----------
    function : KeyedProcessFunction
    journal : Journal, optional
        By default a new one.
    """

    def __init__(self, function: KeyedProcessFunction, journal: Journal | None = None) -> None:
        self.journal = Journal() if journal is None else journal
        self._function = function

    def __deepcopy__(self, memo: dict[int, Any]) -> RecordedFunction:
        return RecordedFunction(copied_function(self._function), self.journal)

    def open(self, runtime_context: RuntimeContext) -> None:
        self._function.open(runtime_context)

    def close(self) -> None:
        self._function.close()

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        call = self.journal.begin(ctx.timer_service())
        return self._results(call, self._function.process_element(value, self._context(ctx, call)))

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        timers = ctx.timer_service()
        fired = TimerAct(
            "fired",
            ctx.time_domain() is TimeDomain.EVENT_TIME,
            timestamp,
            timers.current_processing_time(),
            timers.current_watermark(),
            None,
            len(self.journal.calls),
        )
        call = self.journal.begin(timers, fired)
        return self._results(call, self._function.on_timer(timestamp, self._context(ctx, call)))

    def _context(self, ctx: Any, call: Call) -> Any:
        return _RecordedContext(ctx, RecordedTimerService(ctx.timer_service(), self.journal, call))

    def _results(self, call: Call, results: Any) -> Iterator[Any]:
        for result in () if results is None else results:
            self.journal.add_result(call, result)
            yield result


@dataclass
class WindowCall:
    """Results of a window's firing.

    Attributes
    ----------
    fired_at : tuple of Window and int, or None
        Window and watermark, or None if its aggregate had no result, so that no function was called.
    n_results : int
    """

    fired_at: tuple[Window, int] | None = None
    n_results: int = 0


class RecordedAggregateFunction(AggregateFunction):  # type: ignore[type-arg]
    """Aggregates by a function, and notes a call for each result of an aggregate, even if that is None."""

    def __init__(self, function: AggregateFunction[Any, Any, Any], calls: list[WindowCall]) -> None:
        self._function = function
        self._calls = calls

    def __deepcopy__(self, memo: dict[int, Any]) -> RecordedAggregateFunction:
        return RecordedAggregateFunction(copied_function(self._function), self._calls)

    def open(self, runtime_context: RuntimeContext) -> None:
        self._function.open(runtime_context)

    def close(self) -> None:
        self._function.close()

    def create_accumulator(self) -> Any:
        return self._function.create_accumulator()

    def add(self, value: Any, accumulator: Any) -> Any:
        return self._function.add(value, accumulator)

    def get_result(self, accumulator: Any) -> Any:
        self._calls.append(WindowCall())
        return self._function.get_result(accumulator)

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return self._function.merge(acc_a, acc_b)


class RecordedWindowFunction(ProcessWindowFunction):  # type: ignore[type-arg]
    """Calls a window function, or returns the aggregate without one, and notes it among the calls.

    Parameters
    ----------
    function : WindowFunction, AllWindowFunction, ProcessWindowFunction, ProcessAllWindowFunction or None
    calls : list of WindowCall
    is_noted : bool
        Whether a call is there already, as of a `RecordedAggregateFunction`.
    """

    def __init__(self, function: AnyWindowFunction | None, calls: list[WindowCall], is_noted: bool) -> None:
        self._function = function
        self._calls = calls
        self._is_noted = is_noted

    def __deepcopy__(self, memo: dict[int, Any]) -> RecordedWindowFunction:
        function = None if self._function is None else copied_function(self._function)
        return RecordedWindowFunction(function, self._calls, self._is_noted)

    def open(self, runtime_context: RuntimeContext) -> None:
        if self._function is not None:
            self._function.open(runtime_context)

    def close(self) -> None:
        if self._function is not None:
            self._function.close()

    def process(self, key: Any, context: Any, elements: Any) -> Any:
        if not self._is_noted:
            self._calls.append(WindowCall())
        call = self._calls[-1]
        call.fired_at = context.window(), context.current_watermark()
        given = elements
        if self._function is not None:
            of_key = cast(KeyContext, SimpleNamespace(current_key=key))
            given = window_call(self._function, context, of_key)[0](elements)
        is_refused = isinstance(given, str | bytes | bytearray | dict) or not hasattr(given, "__iter__")
        return given if is_refused else _counted(call, given)

    def clear(self, context: Any) -> None:
        if isinstance(self._function, ProcessWindowFunction | ProcessAllWindowFunction):
            self._function.clear(context)


def _counted(call: WindowCall, results: Iterable[Any]) -> Iterator[Any]:
    for result in results:
        call.n_results += not _is_aside(result)
        yield result
