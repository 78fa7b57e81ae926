"""Threads that prepare steps between them and process them in every partition."""

import threading
import time
from collections.abc import Iterator
from itertools import count, islice

import pytest

from flinkcore._internal.python.replay_threads import ReplayThreads
from flinkcore.columnar.local.partition_threads import (
    RESULTS_AHEAD,
    STEPS_AHEAD,
    PartitionThreads,
)


def no_thread_is_left() -> bool:
    return not any(thread.name.startswith("flinkcore-") for thread in threading.enumerate())


@pytest.mark.parametrize("partitions", [1, 2, 5])
def test_every_partition_processes_every_step_in_order(partitions: int) -> None:
    seen: list[list[int]] = [[] for _ in range(partitions)]

    def process(partition: int, step: int) -> Iterator[int]:
        seen[partition].append(step)
        yield partition
        yield step

    threads = PartitionThreads(iter(range(100)), lambda step: step * 10, process, partitions, ReplayThreads())
    done = list(threads.run())
    assert done == [
        (step * 10, [[partition, step * 10] for partition in range(partitions)]) for step in range(100)
    ]
    assert seen == [[step * 10 for step in range(100)]] * partitions
    assert no_thread_is_left()


def test_no_steps_give_nothing() -> None:
    assert (
        list(
            PartitionThreads(
                iter(()), lambda step: step, lambda partition, step: [step], 3, ReplayThreads()
            ).run()
        )
        == []
    )


def test_reading_waits_for_the_consumer() -> None:
    read = []

    def steps() -> Iterator[int]:
        for step in range(1000):
            read.append(step)
            yield step

    running = PartitionThreads(
        steps(), lambda step: step, lambda partition, step: [step], 2, ReplayThreads()
    ).run()
    for given in range(20):
        next(running)
        assert len(read) <= given + 2 + 2 + STEPS_AHEAD
    running.close()  # type: ignore[attr-defined]
    assert no_thread_is_left()
    assert len(read) < 1000


@pytest.mark.parametrize("part", ["reading", "preparing", "processing"])
def test_an_error_is_raised_in_place_of_the_step_that_failed(part: str) -> None:
    def fail(where: str, step: int) -> None:
        if where == part and step == 7:
            raise ValueError(f"{where} step {step}")

    def steps() -> Iterator[int]:
        for step in range(1000):
            fail("reading", step)
            yield step

    def prepare(step: int) -> int:
        fail("preparing", step)
        return step

    def process(partition: int, step: int) -> list[int]:
        if partition == 1:
            fail("processing", step)
        return [step]

    running = PartitionThreads(steps(), prepare, process, 3, ReplayThreads()).run()
    assert [step for step, _ in islice(running, 7)] == list(range(7))
    with pytest.raises(ValueError, match=f"^{part} step 7$"):
        next(running)
    assert no_thread_is_left()


def test_steps_are_read_by_one_thread_at_a_time() -> None:
    class Steps:
        def __init__(self) -> None:
            self.left = 30
            self.reading = threading.Lock()

        def __iter__(self) -> "Steps":
            return self

        def __next__(self) -> int:
            assert self.reading.acquire(blocking=False)
            try:
                time.sleep(0.001)  # long enough for another thread to come by
                if self.left == 0:
                    raise StopIteration
                self.left -= 1
                return self.left
            finally:
                self.reading.release()

    threads = PartitionThreads(Steps(), lambda step: step, lambda partition, step: [step], 4, ReplayThreads())
    assert len(list(threads.run())) == 30


def test_results_of_a_long_step_are_taken_as_they_come_and_in_order() -> None:
    furthest = [0, 0, 0]

    def process(partition: int, step: int) -> Iterator[tuple[int, int, int]]:
        for number in range(10 * RESULTS_AHEAD if step == 1 else 2):
            furthest[partition] = number
            yield step, partition, number

    running = PartitionThreads(iter(range(3)), lambda step: step, process, 3, ReplayThreads()).run()
    found = []
    for step, outputs in running:
        for partition, output in enumerate(outputs):
            for result in output:
                found.append(result)
                if step == 1:
                    assert max(furthest[partition + 1 :], default=0) < RESULTS_AHEAD
                    assert furthest[partition] <= result[-1] + RESULTS_AHEAD
    assert found == [
        (step, partition, number)
        for step in range(3)
        for partition in range(3)
        for number in range(10 * RESULTS_AHEAD if step == 1 else 2)
    ]
    assert no_thread_is_left()


def test_a_partition_may_come_to_a_long_step_after_it_has_been_given() -> None:
    is_given = threading.Event()

    def steps() -> Iterator[int]:
        yield 0
        assert is_given.wait(10)  # so long one of the partitions reads
        yield 1

    many = 2 * RESULTS_AHEAD
    lengths = []
    for step, outputs in PartitionThreads(
        steps(), lambda step: step, lambda *_: range(many), 2, ReplayThreads()
    ).run():
        is_given.set()
        lengths.append((step, [len(list(output)) for output in outputs]))
    assert lengths == [(0, [many, many]), (1, [many, many])]


def test_an_error_of_another_partition_ends_a_long_step() -> None:
    is_long = threading.Event()

    def process(partition: int, step: int) -> Iterator[int]:
        for number in count():
            if partition == 1 and is_long.wait(10):
                raise ValueError("in the other one")
            yield number

    running = PartitionThreads(iter([0]), lambda step: step, process, 2, ReplayThreads()).run()
    _, (first, _) = next(running)
    is_long.set()
    with pytest.raises(ValueError, match="in the other one"):
        for _ in first:
            pass
    running.close()  # type: ignore[attr-defined]
    assert no_thread_is_left()


def test_threads_that_have_started_end_if_another_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def start_or_fail(thread: threading.Thread) -> None:
        if thread.name == "flinkcore-2":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_or_fail)
    threads = PartitionThreads(
        iter(range(100)), lambda step: step, lambda partition, step: [step], 4, ReplayThreads()
    )
    with pytest.raises(RuntimeError, match="can't start"):
        list(threads.run())
    assert no_thread_is_left()


def test_a_partition_that_is_amid_a_step_stops_between_two_results() -> None:
    is_amid = threading.Event()

    def process(partition: int, step: int) -> Iterator[int]:
        yield step
        while step == 1:  # as a step with results without end
            is_amid.set()
            yield step

    running = PartitionThreads(iter(range(3)), lambda step: step, process, 2, ReplayThreads()).run()
    assert next(running) == (0, [[0], [0]])
    assert is_amid.wait(10)
    running.close()  # type: ignore[attr-defined]
    assert no_thread_is_left()


def test_an_interrupt_while_a_thread_begins_ends_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Event()

    def steps() -> Iterator[int]:
        begun.set()
        time.sleep(0.2)
        yield 1

    def start(thread: threading.Thread) -> None:
        original(thread)
        begun.wait()
        raise KeyboardInterrupt

    original = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", start)
    read = steps()
    with pytest.raises(KeyboardInterrupt):
        list(
            PartitionThreads(
                read, lambda step: step, lambda partition, step: [step], 3, ReplayThreads()
            ).run()
        )
    assert no_thread_is_left()
    read.close()  # nobody is in it any more
