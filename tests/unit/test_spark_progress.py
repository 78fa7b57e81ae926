"""Progress of tasks: datagrams to the driver."""

import socket
import threading
from typing import Any

import pytest

pytest.importorskip("pyspark")

from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.replay.results.progress import Progress
from flinkcore.spark.columnar import progress as progress_module
from flinkcore.spark.columnar.progress import ProgressAddress, ProgressReceiver, TaskProgress, progress_of


class Listener:
    def __init__(self) -> None:
        self.states: list[Progress] = []
        self.told = threading.Event()

    def __call__(self, state: Progress) -> None:
        self.states.append(state)
        self.told.set()

    def next(self) -> Progress:
        assert self.told.wait(20)
        self.told.clear()
        return self.states[-1]


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "INTERVAL_SECONDS", 0)


def test_half_of_the_work_is_the_map_side() -> None:
    listener = Listener()
    receiver = ProgressReceiver(1000, 2, listener)
    address = receiver.address("127.0.0.1")
    receiver.start()
    TaskProgress(address, False, 0).advance(400, at_end=True)
    assert listener.next().events_done == 200
    TaskProgress(address, False, 1).advance(600, at_end=True)
    state = listener.next()
    assert (state.events_done, state.watermark_ms) == (500, MIN_TIMESTAMP)
    behind = TaskProgress(address, True, 0, total=500)
    behind.advance(250, 7000, at_end=True)
    assert listener.next().watermark_ms == 7000
    TaskProgress(address, True, 1, total=500).advance(400, 9000, at_end=True)
    state = listener.next()
    assert (state.events_done, state.watermark_ms) == (825, 7000)
    # A partition that has ended does not say how far the others are.
    behind.advance(250, 9500, at_end=True)
    assert listener.next().watermark_ms == 9000
    receiver.stop(complete=True)
    assert (listener.states[-1].events_done, listener.states[-1].watermark_ms) == (1000, MAX_TIMESTAMP)


def test_task_that_is_tried_again_starts_over() -> None:
    listener = Listener()
    receiver = ProgressReceiver(100, 1, listener)
    receiver.start()
    for done in (80, 20):
        TaskProgress(receiver.address("127.0.0.1"), False, 0).advance(done, at_end=True)
        assert listener.next().events_done == done // 2
    receiver.stop(complete=False)
    assert len(listener.states) == 2


def test_what_others_send_is_ignored() -> None:
    listener = Listener()
    receiver = ProgressReceiver(100, 1, listener)
    address = receiver.address("127.0.0.1")
    receiver.start()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for junk in (b"", b"hello", b"\0" * 49, b"x" * 2000):
            sender.sendto(junk, (address.host, address.port))
    ProgressAddress(address.host, address.port, b"?" * 16).tell(False, 0, 99, 0, 0)
    TaskProgress(address, False, 0).advance(10, at_end=True)
    assert listener.next().events_done == 5
    receiver.stop(complete=False)


@pytest.mark.parametrize("host", ["no.such.host.invalid", "127.0.0.1"])
def test_task_does_not_mind_if_nobody_receives(host: str) -> None:
    TaskProgress(ProgressAddress(host, 9, b"?" * 16), True, 0).advance(1, at_end=True)


class Session:
    def __init__(self, classic: bool) -> None:
        self.conf: Any = {"spark.driver.host": "127.0.0.1"}
        if classic:
            self._jsparkSession = object()


def test_tasks_of_a_remote_session_tell_nothing() -> None:
    listener = Listener()
    with progress_of(Session(classic=False), 10, 1, listener) as address:
        assert address is None
    assert listener.states == []


def test_failed_replay_is_not_told_as_complete() -> None:
    listener = Listener()
    with pytest.raises(ZeroDivisionError), progress_of(Session(classic=True), 10, 1, listener):
        raise ZeroDivisionError
    assert listener.states == []


def test_what_a_listener_raises_fails_the_replay() -> None:
    called = threading.Event()

    def fail(state: Progress) -> None:
        called.set()
        raise ZeroDivisionError

    def replay() -> None:
        with progress_of(Session(classic=True), 10, 1, fail) as address:
            TaskProgress(address, False, 0).advance(1, at_end=True)
            assert called.wait(20)

    with pytest.raises(ZeroDivisionError):
        replay()


def test_nobody_listens() -> None:
    with progress_of(Session(classic=True), 10, 1, None) as address:
        assert address is None
    TaskProgress(None, False, 0).advance(1, at_end=True)
