"""What the harnesses of all operators have in common."""

import os
from collections.abc import Callable
from types import TracebackType
from typing import Any, Generic, TypeVar

from flinkcore._native.key_groups import compute_key_group_range_for_operator_index
from flinkcore.common.constants import MIN_TIMESTAMP
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.time import Duration, Time
from flinkcore.common.timestamp_assigner import as_timestamp
from flinkcore.common.watermark import Watermark
from flinkcore.errors import ConfigurationError, DataError, LifecycleError
from flinkcore.runtime.checkpoint import OperatorBackends
from flinkcore.runtime.elements import StreamElement, StreamRecord, WatermarkStatus
from flinkcore.runtime.java_keys import JavaKeys
from flinkcore.runtime.key_context import KeyContext
from flinkcore.runtime.operators import AbstractStreamOperator
from flinkcore.runtime.operators.function_calls import KeySelector
from flinkcore.runtime.state import DefaultKeyedStateStore, KeyedStateBackend, OperatorStateBackend
from flinkcore.runtime.streaming_runtime_context import StreamingRuntimeContext, TaskInfo
from flinkcore.testing.collected_output import CollectedOutput
from flinkcore.testing.manual_clock import ManualClock
from flinkcore.testing.operator_subtask_state import OperatorSubtaskState
from flinkcore.testing.stream_operator_parameters import StreamOperatorParameters

OUT = TypeVar("OUT")
H = TypeVar("H", bound="AbstractStreamOperatorTestHarness[Any]")
ARGUMENT = TypeVar("ARGUMENT")

TASK = TaskInfo("operator")
"""The only subtask of an operator, with 128 key groups."""


class AbstractStreamOperatorTestHarness(Generic[OUT]):
    """Runs one subtask of an operator, with a clock that stands still, state, and an output that keeps everything.

    To be opened before elements come and closed at the end, which ``with`` does.

    Parameters
    ----------
    operator_factory : callable
        From :class:`StreamOperatorParameters` to the operator.
    operator_type : type
        What it has to make.
    task : TaskInfo
        Which subtask it is, of how many; its name is the operator's uid in checkpoints.
    key_selectors : tuple of callable, optional
        Of an operator with keys.
    key_type : pyarrow.DataType, optional
        As of `JavaKeys`.

    Raises
    ------
    ConfigurationError
        If the task is not possible, or the factory gives no operator, or one with another number of inputs.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.util.AbstractStreamOperatorTestHarness``. Deliberate differences: one clock
    counts for timers and for times to live; what comes before `open` or after `close` is refused.
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
        if not 0 <= task.index < task.parallelism:
            raise ConfigurationError(
                f"of {task.parallelism} subtasks there is none with the index {task.index}"
            )
        self._task = task
        self._clock = ManualClock()
        self._output: CollectedOutput[OUT] = CollectedOutput()
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
        self._opened = False
        self._closed = False
        self._in_call: str | None = None

    # ---- life ----

    def initialize_state(self, state: OperatorSubtaskState | str | os.PathLike[str]) -> None:
        """Restore this subtask's share of a snapshot; before `open`.

        Nothing fires. Timers and times to live know the watermark of the snapshot from then on; Flink's know none.

        Parameters
        ----------
        state : OperatorSubtaskState or path
            Of one subtask, if this is the same of as many; otherwise of all (`repackage_state`). A path is that of a
            checkpoint with one operator; `OperatorSubtaskState.read` chooses one of several.

        Raises
        ------
        LifecycleError
            If the harness was opened, or has state already.
        ConfigurationError, SourceError
            As `OperatorSubtaskState.restore`, and `read`.
        """
        self._refuse_closed("initialize_state")
        if self._opened or self._initialized:
            raise LifecycleError("state is restored once, before the harness is opened")
        if not isinstance(state, OperatorSubtaskState):
            state = OperatorSubtaskState.read(state)
        self._watermark_ms = state.restore(self._backends, self._task)
        self._initialized = True

    def open(self) -> None:
        """Open the operator, and with it the function; close it if that fails.

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
        store = None if self._keyed_state is None else DefaultKeyedStateStore(self._keyed_state)
        try:
            self._operator.open(StreamingRuntimeContext(self._task, store))
        except BaseException:
            self._close(finish=False)
            raise

    def close(self) -> None:
        """Finish and close the operator, and with it the function; the output stays. Closing twice is no error.

        No timer fires: to see what is left fire, process the maximum watermark before.

        Notes
        -----
        What was opened is closed even if finishing it fails.
        """
        self._close(finish=True)

    def _close(self, finish: bool) -> None:
        if self._closed:
            return
        self._refuse_in_call("close")
        self._closed = True
        self._clock.shutdown_service()
        if self._opened:
            try:
                if finish:
                    self._operator.finish()
            finally:
                self._operator.close()

    def __enter__(self: H) -> H:
        """Open the harness, unless it is open."""
        if not self._opened:
            self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the harness; after an error without finishing the operator."""
        self._close(finish=error is None)

    # ---- time ----

    def set_processing_time(self, time_ms: int) -> None:
        """Set the clock, and fire the processing-time timers at or before this time.

        Parameters
        ----------
        time_ms : int
            In ms since the epoch; 0 at first. It may go back: nothing fires then.

        Raises
        ------
        TimerError
            If a timer fails; its cause is the UserCodeError.
        DataError
            If it is no timestamp.
        """
        checked = checked_timestamp(time_ms, "processing time")
        self._call("set_processing_time", self._clock.advance_to, checked, needs_open=False)

    def advance_time(self, interval: int | Time | Duration) -> None:
        """Move the clock on, as `set_processing_time` does; an int is in ms."""
        self._call("advance_time", self._clock.advance_by, interval, needs_open=False)

    def get_processing_time(self) -> int:
        """Return what the clock shows, in ms since the epoch."""
        return self._clock.now_ms

    def get_processing_time_service(self) -> ManualClock:
        """Return the clock; move it by `set_processing_time`."""
        return self._clock

    def get_current_watermark(self) -> int:
        """Return the operator's watermark in ms; that of the snapshot before the first, -2**63 without one."""
        return self._watermark_ms

    def num_event_time_timers(self) -> int:
        """Return how many event-time timers wait."""
        timers = self._operator.time_service_manager
        return 0 if timers is None else timers.num_event_time_timers()

    def num_processing_time_timers(self) -> int:
        """Return how many processing-time timers wait, of keys; the operator's own ticks do not count."""
        timers = self._operator.time_service_manager
        return 0 if timers is None else timers.num_processing_time_timers()

    # ---- output ----

    def get_output(self) -> list[StreamElement[OUT]]:
        """Return everything that was emitted, in order: records, watermarks, statuses and latency markers.

        The list is the harness's own, which grows; it may be changed, such as cleared.
        """
        return self._output.elements

    def take_output(self) -> list[StreamElement[OUT]]:
        """Return what was emitted since the last call, and forget it."""
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
        """Return the records of a side output; the list grows, and may be changed. Empty where none came."""
        return self._output.side(output_tag)

    # ---- snapshots ----

    def snapshot(self) -> OperatorSubtaskState:
        """Return what this subtask holds, as a checkpoint of a job would have it: timers, state and watermark.

        Raises
        ------
        SchemaError
            If a value, key or namespace is of a type that no checkpoint holds.
        LifecycleError
            If it is taken while a callback runs, or the harness is not open.
        """
        self._refuse_in_call("snapshot")
        self._refuse_unless_open("snapshot")
        return OperatorSubtaskState.of_snapshot(self._backends.snapshot(self._watermark_ms), self._task)

    @staticmethod
    def repackage_state(*states: OperatorSubtaskState) -> OperatorSubtaskState:
        """Join the snapshots of the subtasks of an operator, for harnesses of another parallelism.

        Raises
        ------
        ConfigurationError
            If there is none, they are of operators of different parallelism, or a subtask is there twice.
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
        """Give a state to one subtask of another parallelism.

        `initialize_state` does so by itself; this one is for tests that were written for Flink's harness.

        Raises
        ------
        ConfigurationError
            If key groups or old parallelism are not those of the state, or there is no such subtask.
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
        """Raise an AssertionError if keyed state or timers are left.

        State with a time to live is none that leaks.
        """
        __tracebackhide__ = True
        left = [] if self._keyed_state is None else _state_left(self._keyed_state)
        if n := self.num_event_time_timers():
            left.append(f"{n} event-time timer{'s' * (n > 1)}")
        if n := self.num_processing_time_timers():
            left.append(f"{n} processing-time timer{'s' * (n > 1)}")
        if left:
            raise AssertionError(f"{self._task.name!r} leaves behind: {'; '.join(left)}")

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
                f"{what}() needs an open harness: call open() before, or use it in a with statement"
            )

    def _refuse_closed(self, what: str) -> None:
        if self._closed:
            raise LifecycleError(f"{what}() comes after the harness was closed")


def checked_record(value: Any, timestamp: int | None) -> StreamRecord[Any]:
    """Return a record for an operator, which may change it.

    Raises
    ------
    DataError
        If the timestamp is none, or comes with a record that brings its own.
    """
    if isinstance(value, StreamRecord):
        if timestamp is not None:
            raise DataError(f"{value} has its own timestamp; give {timestamp!r} only with a plain value")
        value, timestamp = value.value, value.timestamp
    return StreamRecord(value, None if timestamp is None else checked_timestamp(timestamp, "timestamp"))


def checked_watermark(watermark: int | Watermark) -> Watermark:
    """Return a watermark; a DataError where it is none."""
    if isinstance(watermark, Watermark):
        return watermark
    return Watermark(checked_timestamp(watermark, "watermark"))


def checked_status(status: WatermarkStatus) -> WatermarkStatus:
    """Return a status; a DataError where it is none."""
    if not isinstance(status, WatermarkStatus):
        raise DataError(f"a status is WatermarkStatus.IDLE or WatermarkStatus.ACTIVE, not {status!r}")
    return status


def checked_timestamp(timestamp: object, what: str) -> int:
    """Return a time as an int; a DataError where it is none."""
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
