"""Calls that pause amid functions that they call, and go on when more is asked for."""

import gc
import threading
import time
import weakref
from contextvars import ContextVar
from itertools import count
from typing import Any

import pytest

from flinkcore.elements.pausable_call import PausableCall

SETTING: ContextVar[int] = ContextVar("SETTING", default=0)
SOON = 10


def threads_of_calls() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "flinkcore-elements"]


def test_parts_are_given_in_order_and_no_other_runs_ahead() -> None:
    call: PausableCall[int] = PausableCall()
    made = []

    def make() -> None:
        for number in range(100):
            made.append(number)
            call.give(number)
        made.append("the end")

    for part in call.run(make):
        assert made[-1] == part
    assert made == [*range(100), "the end"]
    assert not threads_of_calls()


def test_what_a_call_raises_comes_behind_its_parts() -> None:
    call: PausableCall[str] = PausableCall()

    def fail() -> None:
        call.give("part")
        raise ValueError("in the call")

    parts = call.run(fail)
    assert next(parts) == "part"
    with pytest.raises(ValueError, match="in the call"):
        next(parts)
    assert list(parts) == []


def test_a_call_that_gives_nothing_ends() -> None:
    assert list(PausableCall[int]().run(lambda: None)) == []


@pytest.mark.parametrize("closes", [True, False])
def test_a_call_ends_when_nobody_takes_its_parts_any_more(closes: bool) -> None:
    call: PausableCall[int] = PausableCall()
    ended = []

    def never_end() -> None:
        try:
            for number in count():
                call.give(number)
        finally:
            ended.append(True)

    parts = call.run(never_end)
    assert [next(parts), next(parts)] == [0, 1]
    if closes:
        parts.close()
    del parts
    assert ended
    assert not threads_of_calls()


def test_a_call_that_gives_a_part_when_nobody_takes_any_more_ends() -> None:
    call: PausableCall[int] = PausableCall()
    stopped = threading.Event()

    def give_late() -> None:
        call.give(0)
        assert stopped.wait(SOON)
        call.give(1)
        call.give(2)

    parts = call.run(give_late)
    assert next(parts) == 0
    # As if the one that takes the parts had asked for the next one, and were interrupted meanwhile.
    with call._lock:
        call._is_running = True
        call._turn.notify_all()
    (thread,) = threads_of_calls()
    closing = threading.Thread(target=parts.close)
    closing.start()
    while not call._threads._is_stopped:
        time.sleep(0.001)
    time.sleep(0.05)  # threads that wait by now have been woken
    stopped.set()
    thread.join(SOON)
    assert not thread.is_alive()
    closing.join()


def test_a_call_sees_context_variables_of_its_caller() -> None:
    call: PausableCall[int] = PausableCall()
    held = SETTING.set(7)
    try:
        assert list(call.run(lambda: call.give(SETTING.get()))) == [7]
    finally:
        SETTING.reset(held)


def test_a_job_that_is_dropped_ends_its_thread_and_closes_its_functions() -> None:
    from flinkcore.datastream import StreamExecutionEnvironment
    from flinkcore.datastream.functions import FlatMapFunction

    closed = threading.Event()

    class Endless(FlatMapFunction):
        def flat_map(self, value: Any) -> Any:
            return count(value)

        def close(self) -> None:
            closed.set()

    elements = StreamExecutionEnvironment().from_collection([3]).flat_map(Endless()).execute_and_collect()
    assert next(elements) == 3
    dropped = weakref.ref(elements)
    del elements
    gc.collect()
    assert dropped() is None
    assert closed.wait(SOON)
    assert not threads_of_calls()
