"""Progress of tasks: datagrams to the driver."""

import socket
import threading
from typing import Any

import pytest

pytest.importorskip("pyspark")

from flinkcore.columnar.results.progress import Progress
from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.spark.columnar import progress as progress_module
from flinkcore.spark.columnar.progress import (
    ProgressAddress,
    ProgressReceiver,
    TaskProgress,
    progress_of,
    progress_of_times,
)


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


class RemoteSession(Session):
    def __init__(self) -> None:
        super().__init__(classic=False)
        self.handlers: list[Any] = []
        self.registerProgressHandler = self.handlers.append
        self.removeProgressHandler = self.handlers.remove


class RemoteStage:
    def __init__(self, num_completed_tasks: int, num_tasks: int) -> None:
        self.num_completed_tasks = num_completed_tasks
        self.num_tasks = num_tasks


def test_remote_session_tells_how_many_tasks_are_done() -> None:
    listener, spark = Listener(), RemoteSession()
    with progress_of(spark, 100, 1, 2, listener) as address:
        assert address is None
        (handler,) = spark.handlers
        handler(stages=[RemoteStage(2, 4), RemoteStage(0, 0)], inflight_tasks=1, operation_id="a", done=False)
        assert listener.next().events_done == 25
        other = threading.Thread(target=handler, kwargs={"stages": [RemoteStage(4, 4)], "operation_id": "b"})
        other.start()
        other.join()
        handler(stages=None, inflight_tasks=0, operation_id="a", done=False)
        handler(stages=[RemoteStage(4, 4), RemoteStage(1, 2)], inflight_tasks=1, operation_id="a", done=True)
        assert listener.next().events_done == 75
    assert spark.handlers == []
    assert [state.events_done for state in listener.states] == [25, 75, 100]


def test_the_first_pass_is_told_by_the_tasks_that_are_done() -> None:
    listener, spark = Listener(), RemoteSession()
    with progress_of_times(spark, 1_000, listener):
        (handler,) = spark.handlers
        handler(stages=[RemoteStage(2, 2), RemoteStage(0, 6)], inflight_tasks=1, operation_id="a", done=False)
        state = listener.next()
        assert (state.files_done, state.files_total, state.is_of_times) == (250, 1_000, True)
        handler(stages=[RemoteStage(2, 2), RemoteStage(6, 6)], inflight_tasks=0, operation_id="a", done=True)
        assert listener.next().files_done == 1_000
    assert spark.handlers == []
    assert not any(state.is_complete for state in listener.states)


def test_the_first_pass_of_a_dataframe_is_not_told() -> None:
    listener, spark = Listener(), RemoteSession()
    with progress_of_times(spark, 0, listener):
        assert spark.handlers == []


def test_an_error_of_a_listener_of_the_first_pass_is_raised_at_its_end() -> None:
    def listener(state: Progress) -> None:
        raise ZeroDivisionError

    def read_times(spark: RemoteSession) -> None:
        with progress_of_times(spark, 10, listener):
            (handler,) = spark.handlers
            handler(stages=[RemoteStage(1, 1)], inflight_tasks=0, operation_id="a", done=True)
            while any(thread.name == "flinkcore-times" for thread in threading.enumerate()):
                threading.Event().wait(0.01)

    with pytest.raises(ZeroDivisionError):
        read_times(RemoteSession())


def test_session_without_any_progress_tells_the_end() -> None:
    listener = Listener()
    with progress_of(Session(classic=False), 10, 1, 2, listener) as address:
        assert address is None
    assert [state.events_done for state in listener.states] == [10]


def test_tasks_that_spark_reports_count_where_more_are_done_than_tasks_tell() -> None:
    listener, share = Listener(), [0.25]
    receiver = ProgressReceiver(1000, 1, listener, lambda: share[0])
    receiver.start()
    assert listener.next().events_done == 250
    TaskProgress(receiver.address("127.0.0.1"), False, 0).advance(600, 0, at_end=True)
    assert listener.next().events_done == 300
    share[0] = 0.5
    assert listener.next().events_done == 500
    receiver.stop(complete=False)


def test_status_that_cannot_be_had_does_not_matter() -> None:
    listener = Listener()
    receiver = ProgressReceiver(100, 1, listener, lambda: 1 / 0)
    receiver.start()
    TaskProgress(receiver.address("127.0.0.1"), False, 0).advance(40, 0, at_end=True)
    assert listener.next().events_done == 20
    receiver.stop(complete=True)


def test_failed_replay_is_not_told_as_complete() -> None:
    listener = Listener()
    with pytest.raises(ZeroDivisionError), progress_of(Session(classic=True), 10, 1, 2, listener):
        raise ZeroDivisionError
    assert listener.states == []


def test_what_a_listener_raises_fails_the_replay() -> None:
    called = threading.Event()

    def fail(state: Progress) -> None:
        called.set()
        raise ZeroDivisionError

    def replay() -> None:
        with progress_of(Session(classic=True), 10, 1, 2, fail) as address:
            TaskProgress(address, False, 0).advance(1, at_end=True)
            assert called.wait(20)

    with pytest.raises(ZeroDivisionError):
        replay()


def test_nobody_listens() -> None:
    with progress_of(Session(classic=True), 10, 1, 2, None) as address:
        assert address is None
    TaskProgress(None, False, 0).advance(1, at_end=True)
