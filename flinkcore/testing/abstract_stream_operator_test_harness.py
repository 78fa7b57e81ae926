"""Base of all harnesses: a clock, state, parameters of operators, and an output that is kept."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, TypeVar

from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore._native.key_groups import compute_key_group_range_for_operator_index
from flinkcore.checkpoint import OperatorBackends, OperatorSnapshot
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.time import Interval, interval_ms
from flinkcore.common.timestamp_assigner import as_timestamp
from flinkcore.common.watermark import Watermark
from flinkcore.errors import ConfigurationError, DataError, LifecycleError
from flinkcore.operators.function_calls import KeySelector
from flinkcore.operators.keys.java_keys import JavaKeys
from flinkcore.operators.keys.key_context import KeyContext
from flinkcore.operators.process_operators import UnkeyedFunctionOperator
from flinkcore.operators.records.copies import copied
from flinkcore.operators.records.output import Output
from flinkcore.operators.records.stream_elements import (
    LatencyMarker,
    StreamElement,
    StreamRecord,
    WatermarkStatus,
)
from flinkcore.operators.state import DefaultKeyedStateStore, KeyedStateBackend, OperatorStateBackend
from flinkcore.operators.state.state_table import VOID_NAMESPACE
from flinkcore.operators.stream_operator import AbstractStreamOperator
from flinkcore.operators.streaming_runtime_context import StreamingRuntimeContext, TaskInfo
from flinkcore.operators.timers.processing_time import DrivenProcessingTimeService, ProcessingTimeService
from flinkcore.testing.operator_subtask_state import OperatorSubtaskState

OUT = TypeVar("OUT")
H = TypeVar("H", bound="ClockedTestHarness[Any]")
ARGUMENT = TypeVar("ARGUMENT")
K = TypeVar("K", bound=Hashable)


class ManualClock(DrivenProcessingTimeService):
    """Processing time that a test moves; callbacks that are due run then.

    Parameters
    ----------
    start_ms : int, default 0
        The time that it shows at first, in ms since the epoch.

    Notes
    -----
    Flink's ``TestProcessingTimeService``, under a name that pytest does not take for a class of tests.

    Examples
    --------
    >>> from datetime import timedelta
    >>> clock = ManualClock()
    >>> timer = clock.register_timer(60_000, lambda timestamp: print("called at", timestamp))
    >>> clock.advance_by(59_999)
    >>> clock.advance_by(timedelta(milliseconds=1))
    called at 60000
    """

    def advance_by(self, interval: Interval) -> None:
        """Advance the clock; see `advance_to`.

        Parameters
        ----------
        interval : Time, Duration, datetime.timedelta or int (ms)
            An int is in ms.

        Raises
        ------
        ConfigurationError
            If it is not an interval of time.
        TimerError, LifecycleError
            As `advance_to`.
        """
        self.advance_to(self.now_ms + interval_ms(interval, "interval"))


class CollectedOutput(Output, Generic[OUT]):
    """An :class:`Output` that keeps all elements, in order.

    Attributes
    ----------
    elements : list of StreamElement
        Elements of the main output. Records, and values that are lists, dictionaries or other containers, are copies,
        as they were when they were emitted.

    Notes
    -----
    Flink's ``AbstractStreamOperatorTestHarness.MockOutput``.
    """

    def __init__(self) -> None:
        self.elements: list[StreamElement[OUT]] = []
        self._side: dict[OutputTag, list[StreamRecord[Any]]] = {}

    def side(self, output_tag: OutputTag) -> list[StreamRecord[Any]]:
        """Return the records of a side output.

        Raises
        ------
        ConfigurationError
            If it is not an OutputTag.
        """
        if not isinstance(output_tag, OutputTag):
            raise ConfigurationError(f"a side output is asked for by its OutputTag, not by {output_tag!r}")
        return self._side.setdefault(output_tag, [])

    def collect(self, record: StreamRecord[Any]) -> None:
        self.elements.append(StreamRecord(copied(record.value), record.timestamp))

    def collect_side(self, output_tag: OutputTag, record: StreamRecord[Any]) -> None:
        self.side(output_tag).append(StreamRecord(copied(record.value), record.timestamp))

    def emit_watermark(self, watermark: Watermark) -> None:
        self.elements.append(watermark)

    def emit_watermark_status(self, status: WatermarkStatus) -> None:
        self.elements.append(status)

    def emit_latency_marker(self, latency_marker: LatencyMarker) -> None:
        self.elements.append(latency_marker)


@dataclass(frozen=True)
class StreamOperatorParameters:
    """Context from which an operator factory takes what its operator needs.

    Parameters
    ----------
    output : Output
    processing_time_service : ProcessingTimeService
    operator_state_backend : OperatorStateBackend
    task : TaskInfo
    keyed_backend : KeyedStateBackend, optional
    key_selectors : tuple of callable
        By input, of a keyed harness.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.StreamOperatorParameters``, with what an operator in
    Flink gets from its task later.
    """

    output: Output
    processing_time_service: ProcessingTimeService
    operator_state_backend: OperatorStateBackend
    task: TaskInfo
    keyed_backend: KeyedStateBackend | None = None
    key_selectors: tuple[KeySelector, ...] = ()

    @property
    def keyed_state_backend(self) -> KeyedStateBackend:
        """The keyed state; a ConfigurationError in a harness without keys."""
        if self.keyed_backend is None:
            raise ConfigurationError(
                "the operator needs keyed state. Take a harness whose name begins with Keyed, and give it a key "
                "selector"
            )
        return self.keyed_backend

    @property
    def key_selector(self) -> KeySelector:
        """Selector of the key of an element of the first keyed input."""
        return self._key_selector(0)

    @property
    def key_selector2(self) -> KeySelector:
        """Selector of the key of an element of the second input."""
        return self._key_selector(1)

    def _key_selector(self, index: int) -> KeySelector:
        if index >= len(self.key_selectors):
            raise ConfigurationError(
                f"the operator needs {index + 1} key selectors, the harness was given {len(self.key_selectors)}"
            )
        return self.key_selectors[index]


def checked_key_selector(key_selector: Any, what: str = "key_selector") -> KeySelector:
    """Return a key selector; raise a ConfigurationError if it is not callable."""
    if callable(key_selector):
        selector: KeySelector = key_selector
        return selector
    raise ConfigurationError(
        f"{what} is a function from an element to its key, such as lambda value: value[0], not {key_selector!r}"
    )


TASK = TaskInfo("operator")
"""The only subtask of an operator, with 128 key groups."""


class ClockedTestHarness(ABC, Generic[OUT]):
    """Runs one subtask, with a clock that the test moves, and an output that keeps all elements.

    It must be opened before anything else and closed at the end, as ``with`` does.

    Parameters
    ----------
    task : TaskInfo
        The subtask and the parallelism.

    Raises
    ------
    ConfigurationError
        If the task is invalid.
    """

    def __init__(self, task: TaskInfo) -> None:
        if not 0 <= task.index < task.parallelism:
            raise ConfigurationError(
                f"the subtask index {task.index} is out of range for the parallelism {task.parallelism}"
            )
        self._task = task
        self._clock = ManualClock()
        self._output: CollectedOutput[OUT] = CollectedOutput()
        self._opened = False
        self._closed = False
        self._in_call: str | None = None

    # ---- life ----

    def open(self) -> None:
        """Open the operator or reader; close it after an error.

        Raises
        ------
        LifecycleError
            If it was opened before.
        Exception
            Whatever the function's `open` raises.
        """
        self._refuse_closed("open")
        if self._opened:
            raise LifecycleError(
                "the harness is open already: the makers of harnesses, such as for_process_function, open it"
            )
        self._opened = True
        try:
            self._open_subtask()
        except BaseException:
            self._close(finish=False)
            raise

    @abstractmethod
    def _open_subtask(self) -> None:
        """Open what it runs."""

    @abstractmethod
    def _close_subtask(self, finish: bool) -> None:
        """Close what was opened, perhaps only in part; finish it before, unless there was an error."""

    def close(self) -> None:
        """Finish and close the operator or reader; the output is kept. Closing twice is not an error.

        No timer fires. It is closed even if finishing it fails.
        """
        self._close(finish=True)

    def _close(self, finish: bool) -> None:
        if self._closed:
            return
        self._refuse_in_call("close")
        self._closed = True
        self._clock.shutdown_service()
        if self._opened:
            self._close_subtask(finish)

    def refuse_leaks(self) -> None:
        """Raise an AssertionError if keyed state or timers are left. This harness has neither."""

    def __enter__(self: H) -> H:
        """Open the harness, if it is not open."""
        if not self._opened:
            self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the harness; after an error, without finishing the operator."""
        self._close(finish=error is None)

    # ---- time ----

    def set_processing_time(self, time_ms: int) -> None:
        """Set the clock, and fire the processing-time timers at or before this time.

        Parameters
        ----------
        time_ms : int
            In ms since the epoch; 0 at first. If it goes back, nothing fires.

        Raises
        ------
        TimerError
            If a timer fails; its cause is the UserCodeError.
        DataError
            If it is not a timestamp.
        """
        checked = checked_timestamp(time_ms, "processing time")
        self._call("set_processing_time", self._clock.advance_to, checked, needs_open=False)

    def advance_time(self, interval: Interval) -> None:
        """Advance the clock; see `set_processing_time`. An int is in ms."""
        self._call("advance_time", self._clock.advance_by, interval, needs_open=False)

    def get_processing_time(self) -> int:
        """Return the processing time, in ms since the epoch."""
        return self._clock.now_ms

    def get_processing_time_service(self) -> ManualClock:
        """Return the clock; move it by `set_processing_time`."""
        return self._clock

    # ---- output ----

    def get_output(self) -> list[StreamElement[OUT]]:
        """Return the emitted records, watermarks, statuses and latency markers, in order.

        It is the harness's own list, which grows, and which may be cleared.
        """
        return self._output.elements

    def take_output(self) -> list[StreamElement[OUT]]:
        """Return the elements emitted since the last call, and remove them."""
        taken = self._output.elements.copy()
        self._output.elements.clear()
        return taken

    def extract_output_stream_records(self) -> list[StreamRecord[OUT]]:
        """Return the records of the main output."""
        return [element for element in self._output.elements if isinstance(element, StreamRecord)]

    def extract_output_values(self) -> list[OUT]:
        """Return the values of the records of the main output."""
        return [record.value for record in self.extract_output_stream_records()]

    def get_side_output(self, output_tag: OutputTag) -> list[StreamRecord[Any]]:
        """Return the records of a side output: the harness's own list, which may be empty and grows."""
        return self._output.side(output_tag)

    # ---- calls ----

    def _call(
        self, name: str, method: Callable[[ARGUMENT], object], argument: ARGUMENT, needs_open: bool = True
    ) -> None:
        self._refuse_in_call(name)
        if needs_open:
            self._refuse_unless_open(name)
        else:
            self._refuse_closed(name)
        self._in_call = name
        try:
            method(argument)
        finally:
            self._in_call = None

    def _refuse_in_call(self, what: str) -> None:
        if self._in_call is not None:
            raise LifecycleError(
                f"{what}() was called by what {self._in_call}() runs; wait until that has returned"
            )

    def _refuse_unless_open(self, what: str) -> None:
        self._refuse_closed(what)
        if not self._opened:
            raise LifecycleError(
                f"{what}() needs an open harness. Call open() before, or use it in a with statement"
            )

    def _refuse_closed(self, what: str) -> None:
        if self._closed:
            raise LifecycleError(f"{what}() comes after the harness was closed")


class AbstractStreamOperatorTestHarness(ClockedTestHarness[OUT]):
    """Runs one subtask of an operator, with a clock that the test moves, state, and an output that keeps all elements.

    It must be opened before elements are processed and closed at the end, as ``with`` does.

    Parameters
    ----------
    operator_factory : callable
        From :class:`StreamOperatorParameters` to the operator.
    operator_type : type
        The type of operator that it must return.
    task : TaskInfo
        The subtask and the parallelism; its name is the operator's uid in checkpoints.
    key_selectors : tuple of callable, optional
        By input, of an operator with keys.
    key_type : pyarrow.DataType, optional
        As of `JavaKeys`.

    Raises
    ------
    ConfigurationError
        If the task is invalid, or the factory returns no operator, or one with another number of inputs.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.util.AbstractStreamOperatorTestHarness``. Deliberate differences: timers
    and times to live run on the same clock; calls before `open` or after `close` are refused.
    """

    def __init__(
        self,
        operator_factory: Callable[[StreamOperatorParameters], AbstractStreamOperator],
        operator_type: type[AbstractStreamOperator],
        task: TaskInfo,
        key_selectors: tuple[KeySelector, ...] | None = None,
        key_type: Any = None,
    ) -> None:
        if not callable(operator_factory):
            raise ConfigurationError(
                "a harness makes its operator by a function of StreamOperatorParameters, such as "
                f"lambda parameters: MyOperator(parameters.output), not {operator_factory!r}"
            )
        super().__init__(task)
        self._operator_state = OperatorStateBackend()
        self._keyed_state: KeyedStateBackend | None = None
        if key_selectors is not None:
            key_groups = compute_key_group_range_for_operator_index(
                task.max_parallelism, task.parallelism, task.index
            )
            key_group_of = JavaKeys(task.max_parallelism, key_type)
            key_context = KeyContext(task.max_parallelism, key_groups, key_group_of)
            self._keyed_state = KeyedStateBackend(key_context, self._clock)
            self._key_group_of = key_group_of
        self._operator = operator_factory(
            StreamOperatorParameters(
                self._output, self._clock, self._operator_state, task, self._keyed_state, key_selectors or ()
            )
        )
        if not isinstance(self._operator, operator_type):
            raise ConfigurationError(
                f"this harness takes a {operator_type.__name__}, and its operator factory gave {self._operator!r}"
            )
        self._watermark_ms = MIN_TIMESTAMP
        self._initialized = False

    # ---- life ----

    def initialize_state(self, state: OperatorSubtaskState | str | os.PathLike[str]) -> None:
        """Restore this subtask's share of a snapshot; before `open`.

        Nothing fires. The current watermark is that of the snapshot; Flink restores none.

        Parameters
        ----------
        state : OperatorSubtaskState or path
            State of this subtask at the same parallelism, or of all subtasks (`repackage_state`). A path is that of a
            checkpoint with one operator; `OperatorSubtaskState.read` selects one of several.

        Raises
        ------
        LifecycleError
            If the harness was opened, or state was restored before.
        ConfigurationError, SourceError
            See `OperatorSubtaskState.restore` and `read`.
        """
        self._refuse_closed("initialize_state")
        if self._opened or self._initialized:
            raise LifecycleError("state is restored once, before the harness is opened")
        if not isinstance(state, OperatorSubtaskState):
            state = OperatorSubtaskState.read(state)
        self._watermark_ms = state.restore(self._backends, self._task)
        self._restore_watermark(state)
        self._initialized = True

    def _restore_watermark(self, state: OperatorSubtaskState) -> None:
        """Let the operator have the watermark of a snapshot, as far as its timers do not."""
        if isinstance(self._operator, UnkeyedFunctionOperator):
            self._operator.restore_watermark(self._watermark_ms)

    def _open_subtask(self) -> None:
        store = None if self._keyed_state is None else DefaultKeyedStateStore(self._keyed_state)
        self._operator.open(StreamingRuntimeContext(self._task, store))

    def _close_subtask(self, finish: bool) -> None:
        try:
            if finish:
                self._operator.finish()
        finally:
            self._operator.close()

    # ---- time ----

    def get_current_watermark(self) -> int:
        """Return the operator's watermark in ms since the epoch: at first that of the snapshot, or -2**63."""
        return self._watermark_ms

    def num_event_time_timers(self) -> int:
        """Return the number of pending event-time timers."""
        timers = self._operator.time_service_manager
        return 0 if timers is None else timers.num_event_time_timers()

    def num_processing_time_timers(self) -> int:
        """Return the number of pending processing-time timers of keys; ticks of the operator do not count."""
        timers = self._operator.time_service_manager
        return 0 if timers is None else timers.num_processing_time_timers()

    # ---- snapshots ----

    def snapshot(self) -> OperatorSubtaskState:
        """Return a snapshot of timers, state and watermark, with the content of a job's checkpoint.

        Raises
        ------
        SchemaError
            If a value, key or namespace is of a type that no checkpoint supports.
        LifecycleError
            If a callback is running, or the harness is not open.
        """
        self._refuse_in_call("snapshot")
        self._refuse_unless_open("snapshot")
        return OperatorSubtaskState.of_snapshot(self._operator_snapshot(), self._task)

    def _operator_snapshot(self) -> OperatorSnapshot:
        return self._backends.snapshot(self._watermark_ms)

    @staticmethod
    def repackage_state(*states: OperatorSubtaskState) -> OperatorSubtaskState:
        """Join the snapshots of the subtasks of an operator, for harnesses of another parallelism.

        Raises
        ------
        ConfigurationError
            If no state is given, they are of different parallelism, or a subtask is there twice.
        """
        return OperatorSubtaskState.repackage(states)

    @staticmethod
    def repartition_operator_state(
        state: OperatorSubtaskState,
        num_key_groups: int,
        old_parallelism: int,
        new_parallelism: int,
        subtask_index: int,
    ) -> OperatorSubtaskState:
        """Assign a state to one subtask of another parallelism.

        `initialize_state` does so by itself; this method is for tests written for Flink's harness.

        Raises
        ------
        ConfigurationError
            If key groups or old parallelism are not those of the state, or the subtask does not exist.
        """
        if (num_key_groups, old_parallelism) != (state.max_parallelism, state.parallelism):
            raise ConfigurationError(
                f"the state has {state.max_parallelism} key groups and is of {state.parallelism} subtasks, not "
                f"{num_key_groups} and {old_parallelism}"
            )
        return state.assign(subtask_index, new_parallelism)

    @property
    def _backends(self) -> OperatorBackends:
        return OperatorBackends(self._keyed_state, self._operator.time_service_manager, self._operator_state)

    # ---- leaks ----

    def refuse_leaks(self) -> None:
        """Raise an AssertionError if keyed state or timers are left; state with a time to live is not a leak."""
        __tracebackhide__ = True
        left = [] if self._keyed_state is None else _state_left(self._keyed_state)
        if n := self.num_event_time_timers():
            left.append(f"{n} event-time timer{'s' * (n > 1)}")
        if n := self.num_processing_time_timers():
            left.append(f"{n} processing-time timer{'s' * (n > 1)}")
        if left:
            raise AssertionError(f"{self._task.name!r} leaves behind: {'; '.join(left)}")


def checked_record(value: Any, timestamp: int | None) -> StreamRecord[Any]:
    """Return a new record, which the operator may change.

    Raises
    ------
    DataError
        If the timestamp is invalid, or is given with a StreamRecord, which has its own.
    """
    if isinstance(value, StreamRecord):
        if timestamp is not None:
            raise DataError(f"{value} has its own timestamp; give {timestamp!r} only with a plain value")
        value, timestamp = value.value, value.timestamp
    return StreamRecord(value, None if timestamp is None else checked_timestamp(timestamp, "timestamp"))


def checked_watermark(watermark: int | Watermark) -> Watermark:
    """Return a watermark; raise a DataError if it is invalid."""
    timestamp = watermark.timestamp if isinstance(watermark, Watermark) else watermark
    return Watermark(checked_timestamp(timestamp, "watermark"))


def checked_status(status: WatermarkStatus) -> WatermarkStatus:
    """Return a status; raise a DataError if it is invalid."""
    if not isinstance(status, WatermarkStatus):
        raise DataError(f"a status is WatermarkStatus.IDLE or WatermarkStatus.ACTIVE, not {status!r}")
    return status


def checked_timestamp(timestamp: object, what: str) -> int:
    """Return a time as an int; raise a DataError if it is invalid."""
    checked = as_timestamp(timestamp)
    if checked is None:
        raise DataError(
            f"the {what} is an int of 64 bits, in milliseconds since the epoch, not {timestamp!r}"
        )
    return checked


SHOWN_KEYS = 5


def _state_left(backend: KeyedStateBackend) -> list[str]:
    left = []
    for name in backend.state_names:
        keys = [] if backend.has_time_to_live(name) else backend.get_keys(name)
        shown = ", ".join(map(repr, keys[:SHOWN_KEYS])) + ", ..." * (len(keys) > SHOWN_KEYS)
        if keys:
            left.append(f"the state {name!r} of {len(keys)} key{'s' * (len(keys) > 1)} ({shown})")
    return left


class KeyedTestHarness(Generic[K]):
    """The keyed side of a harness: shows the state without changing it.

    Notes
    -----
    Follows Flink's ``KeyedOneInputStreamOperatorTestHarness`` and its siblings; it replaces
    ``getOperator().setCurrentKey``.
    """

    _keyed_state: KeyedStateBackend | None
    _key_group_of: JavaKeys

    def num_keyed_state_entries(self, namespace: Hashable = ...) -> int:
        """Return the number of entries of all states, in one namespace if it is given.

        A key counts once for each state and namespace, however long its list or map is; an expired value counts until
        it is cleaned up, as in Flink.
        """
        return self._backend.num_key_value_state_entries(namespace)

    def get_keyed_state(self, name: str, key: K, namespace: Hashable = VOID_NAMESPACE) -> Any:
        """Return the value of a state for a key, if it has not expired.

        Parameters
        ----------
        name : str
            Name of the state's descriptor.
        key : hashable
        namespace : hashable, optional
            Such as a window; by default that of state without windows.

        Returns
        -------
        object
            A copy of the value, list or dictionary, or the result of an aggregating state; None if there is no value.
            A map with keys that no dictionary tells apart or holds, such as 0.0 and -0.0, or lists, is a list of pairs.
            It is not an access to the time to live.

        Raises
        ------
        ConfigurationError
            If the operator has not asked for a state of this name.
        DataError
            If the key belongs to another subtask.
        """
        return copied(self._backend.look_up(name, key, namespace))

    def get_keys(self, name: str, namespace: Hashable = ...) -> list[K]:
        """Return the keys with a value that has not expired, in all namespaces or one."""
        return self._backend.get_keys(name, namespace)

    def owns_key(self, key: K) -> bool:
        """Return whether a key belongs to this subtask.

        Raises
        ------
        DataError
            If it is of a type that cannot be a key.
        """
        first, last = self._backend.key_context.key_group_range
        return first <= self._key_group_of(key) <= last

    @property
    def _backend(self) -> KeyedStateBackend:
        assert self._keyed_state is not None
        return self._keyed_state
