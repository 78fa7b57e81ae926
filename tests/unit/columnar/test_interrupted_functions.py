"""Ctrl-C while functions of the user's run in the threads of several operators: it never waits for their end."""

import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from flinkcore._internal.python import replay_threads as replay_threads_module
from flinkcore.columnar.stages import result_batches
from flinkcore.common import WatermarkStrategy
from flinkcore.datastream import DataStream, StreamExecutionEnvironment
from flinkcore.datastream.functions import KeyedProcessFunction, ProcessAllWindowFunction
from flinkcore.datastream.window import TumblingEventTimeWindows
from flinkcore.errors import UserCodeError

SOON = 5
COLUMNS = pa.schema({"key": pa.int64(), "ts": pa.int64()})
EVENTS = pa.table({"key": list(range(20)), "ts": list(range(20)), "at": list(range(20))})
BEGUN = threading.Event()
WAKE = threading.Event()


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_batches, "BATCH_ROWS", 100)


def replay_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("flinkcore-")]


def all_threads_end() -> bool:
    """Whether no thread is left, also where the machine has let them run for a moment only."""
    for thread in replay_threads():
        thread.join(SOON)
    return not replay_threads()


def row_of(value: Any) -> tuple[int, int]:
    return value.key, value.ts


class PassOn(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield row_of(value)


class GiveWithoutEnd(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        BEGUN.set()
        for _ in count():
            yield row_of(value)


class GiveSlowly(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        BEGUN.set()
        for _ in count():
            time.sleep(0.01)
            yield row_of(value)


class NeverReturn(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        BEGUN.set()
        while True:
            pass


class Wait(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        BEGUN.set()
        WAKE.wait(60)


def never_return() -> None:
    while True:
        pass


class LoseTheFirstInterrupt(KeyedProcessFunction):
    def __init__(self, until_interrupted: Callable[[], object] = never_return) -> None:
        self.until_interrupted = until_interrupted

    def process_element(self, value: Any, ctx: Any) -> Any:
        def callback(_: object) -> None:
            BEGUN.set()
            self.until_interrupted()

        referred = type("Referred", (), {})()
        reference = weakref.ref(referred, callback)
        del referred  # calls the callback, in which an interrupt is reported, and lost
        assert reference() is None
        never_return()


class CollectAll(ProcessAllWindowFunction):
    def process(self, context: Any, elements: Any) -> Any:
        for element in elements:
            yield row_of(element)


class GiveAllWithoutEnd(ProcessAllWindowFunction):
    def process(self, context: Any, elements: Any) -> Any:
        BEGUN.set()
        for _ in count():
            yield 1, 1


def in_a_row(*functions: KeyedProcessFunction | ProcessAllWindowFunction) -> DataStream:
    env = StreamExecutionEnvironment().set_parallelism(2)
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    stream: Any = env.from_event_log(EVENTS, timestamp="ts", arrival="at").assign_timestamps_and_watermarks(
        strategy
    )
    for function in functions:
        if isinstance(function, ProcessAllWindowFunction):
            stream = stream.window_all(TumblingEventTimeWindows(10)).process(function, COLUMNS)
        else:
            stream = stream.key_by("key").process(function, COLUMNS)
    return stream  # type: ignore[no-any-return]


@contextmanager
def interrupted() -> Iterator[None]:
    """An interrupt comes once a function has begun, and again if Python has lost it; the block is to end soon after."""
    came = []
    hook = sys.unraisablehook

    def interrupt_again_or_report(lost: Any) -> None:
        if threading.current_thread() is threading.main_thread() and lost.exc_type is KeyboardInterrupt:
            signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
        else:
            hook(lost)

    def interrupt(*_: object) -> None:
        if BEGUN.is_set():
            signal.setitimer(signal.ITIMER_REAL, 0)
            came.append(time.monotonic())
            raise KeyboardInterrupt

    BEGUN.clear()
    before = signal.signal(signal.SIGALRM, interrupt)
    sys.unraisablehook = interrupt_again_or_report
    signal.setitimer(signal.ITIMER_REAL, 0.2, 0.1)
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
        assert time.monotonic() - came[0] < SOON
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        sys.unraisablehook = hook


ROWS: dict[str, Callable[[], list[Any]]] = {
    "gives without end, first": lambda: [GiveWithoutEnd(), PassOn()],
    "gives without end, in the middle": lambda: [PassOn(), GiveWithoutEnd(), PassOn()],
    "gives slowly": lambda: [PassOn(), GiveSlowly(), PassOn()],
    "never returns, first": lambda: [NeverReturn(), PassOn()],
    "never returns, in the middle": lambda: [PassOn(), NeverReturn(), PassOn()],
    "never returns, last": lambda: [PassOn(), NeverReturn()],
    "never returns, alone": lambda: [NeverReturn()],
    "never returns, before windows of all": lambda: [NeverReturn(), CollectAll()],
    "windows of all without end": lambda: [PassOn(), GiveAllWithoutEnd(), PassOn()],
}


# What Python loses amid a callback is reported, and repeated by the replay: its threads are to end all the same.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("functions", ROWS)
def test_an_interrupt_ends_functions_of_several_operators(functions: str) -> None:
    job = in_a_row(*ROWS[functions]())
    with interrupted():
        job.execute().to_arrow()
    assert all_threads_end()


def test_an_interrupt_that_a_callback_loses_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    lost: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda report: lost.append(report.exc_type))
    job = in_a_row(PassOn(), LoseTheFirstInterrupt(), PassOn())
    with interrupted():
        job.execute().to_arrow()
    assert all_threads_end()
    assert set(lost) == {KeyboardInterrupt}


def test_a_call_that_was_left_behind_is_interrupted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "unraisablehook", lambda report: None)
    monkeypatch.setattr(replay_threads_module, "INTERRUPT_SECONDS", 0.05)
    WAKE.clear()
    with interrupted():
        in_a_row(PassOn(), LoseTheFirstInterrupt(lambda: WAKE.wait(60)), PassOn()).execute().to_arrow()
    assert replay_threads()
    WAKE.set()
    assert all_threads_end()


def test_an_interrupt_leaves_a_call_behind_that_cannot_be_interrupted() -> None:
    job = in_a_row(PassOn(), Wait(), PassOn())
    WAKE.clear()
    with interrupted():
        job.execute().to_arrow()
    assert replay_threads()
    WAKE.set()
    assert all_threads_end()


@pytest.mark.parametrize("returns", [True, False])
def test_an_interrupt_ends_functions_over_elements(returns: bool) -> None:
    def flat_map(value: int) -> Any:
        BEGUN.set()
        return count(value) if returns else never_return()

    stream = StreamExecutionEnvironment().from_collection([1]).flat_map(flat_map)
    with interrupted(), stream.execute_and_collect() as elements:
        for _ in elements:
            pass
    assert all_threads_end()


def test_an_interrupt_between_batches_ends_a_function_that_never_returns() -> None:
    class FirstThenNeverReturn(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            if value.ts < 10:
                return [row_of(value)]
            BEGUN.set()
            while True:
                pass

    with interrupted():
        for _ in in_a_row(FirstThenNeverReturn(), PassOn()).execute().to_batches():
            time.sleep(0.01)


def test_results_that_nobody_takes_any_more_end_operators_without_end() -> None:
    batches = in_a_row(PassOn(), GiveWithoutEnd()).execute().to_batches()
    for _ in range(3):
        next(batches)
    began = time.monotonic()
    batches.close()  # type: ignore[attr-defined]
    assert time.monotonic() - began < SOON
    assert all_threads_end()


def test_an_error_of_a_later_operator_ends_one_before_it_that_gives_without_end() -> None:
    class FirstThenWithoutEnd(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            yield row_of(value)
            while value.ts > 10:
                yield row_of(value)

    class Fail(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            raise ValueError("no")

    began = time.monotonic()
    with pytest.raises(UserCodeError, match="no"):
        in_a_row(FirstThenWithoutEnd(), Fail()).execute().to_arrow()
    assert time.monotonic() - began < SOON
