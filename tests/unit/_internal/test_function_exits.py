"""Functions of a job that call ``sys.exit``: the job fails, and the program goes on."""

import gc
import signal
import sys
from collections.abc import Iterator
from functools import partial
from time import sleep
from typing import Any

import pyarrow as pa
import pytest

from flinkcore._internal.python.function_exits import exits_as_errors
from flinkcore.common import Duration, Types, WatermarkStrategy
from flinkcore.datastream import DataStream, MapFunction, StreamExecutionEnvironment
from flinkcore.datastream.functions import KeyedProcessFunction, RuntimeContext
from flinkcore.errors import UserCodeError

EXIT = r"a function of the job called sys\.exit\(3\)"


def exiting(value: Any) -> Any:
    return sys.exit(3) if value == 2 else value


class ExitsAsItOpens(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        sys.exit(3)

    def map(self, value: Any) -> Any:
        return value


def numbers() -> DataStream:
    return StreamExecutionEnvironment.get_execution_environment().from_collection([1, 2, 3], Types.LONG())


@pytest.mark.parametrize(
    "stream",
    [
        lambda: numbers().map(exiting),
        lambda: numbers().flat_map(lambda value: [exiting(value)]),
        lambda: numbers().filter(exiting),
        lambda: numbers().key_by(exiting).reduce(lambda one, other: one),
        lambda: numbers().map(ExitsAsItOpens()),
    ],
    ids=["map", "flat map", "filter", "key selector", "open"],
)
def test_a_function_that_exits_fails_the_job(stream: Any) -> None:
    with pytest.raises(UserCodeError, match=EXIT) as failed:
        list(stream().execute_and_collect())
    assert isinstance(failed.value.__cause__, SystemExit)
    written = stream()
    written.print()
    with pytest.raises(UserCodeError, match=EXIT):
        written.get_execution_environment().execute()


def test_a_job_in_the_background_fails_where_its_result_is_asked_for() -> None:
    stream = numbers().map(exiting)
    stream.print()
    client = stream.get_execution_environment().execute_async()
    with pytest.raises(UserCodeError, match=EXIT):
        client.get_job_execution_result().result()


class ExitsAtARow(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        yield exiting(value["number"]), value["user"]


@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_function_over_an_event_log_that_exits_fails_the_replay(parallelism: int) -> None:
    log = pa.table({"user": ["a", "b", "a"], "number": [1, 2, 3], "ts": [1, 2, 3]})
    env = StreamExecutionEnvironment().set_parallelism(parallelism)
    results = (
        env.from_event_log(log, timestamp="ts")
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(1))
        )
        .key_by("user")
        .process(ExitsAtARow(), pa.schema({"number": pa.int64(), "user": pa.string()}))
        .execute()
    )
    with pytest.raises(UserCodeError, match=EXIT):
        results.to_arrow()


def test_a_program_that_exits_while_it_takes_results_does_so() -> None:
    def program() -> None:
        for number in numbers().map(lambda number: number).execute_and_collect():
            sys.exit(number)

    with pytest.raises(SystemExit):
        program()


def stop(signum: int, frame: Any) -> None:
    signal.signal(signum, signal.SIG_IGN)
    sys.exit(5)


def stop_without_frame(signum: int, frame: Any) -> None:
    del frame
    sys.exit(5)


class Stopper:
    def stop(self, *given: Any) -> None:
        stop(*given)

    def __call__(self, signum: int, frame: Any) -> None:
        stop_without_frame(signum, frame)


def stopped_in_function(value: Any) -> Any:
    signal.raise_signal(signal.SIGTERM)
    return value


class StopsAsItIsPickled:
    def __reduce__(self) -> Any:
        signal.raise_signal(signal.SIGTERM)
        return StopsAsItIsPickled, ()


@pytest.mark.parametrize(
    "handler",
    [
        stop,
        stop_without_frame,
        lambda *_: sys.exit(5),
        Stopper().stop,
        Stopper(),
        partial(lambda code, *_: sys.exit(code), 5),
        partial(stop_without_frame),
    ],
    ids=["function", "deletes its frame", "lambda", "method", "object", "partial", "partial without frame"],
)
@pytest.mark.parametrize(
    "stream",
    [
        lambda: numbers().map(stopped_in_function),
        lambda: StreamExecutionEnvironment().from_collection([StopsAsItIsPickled()]).rebalance().map(str),
    ],
    ids=["in a function", "between functions"],
)
def test_a_signal_handler_that_exits_ends_the_program(handler: Any, stream: Any) -> None:
    before = signal.signal(signal.SIGTERM, handler)
    try:
        with pytest.raises(SystemExit, match="5"):
            list(stream().execute_and_collect())
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_signal_handler_that_exits_while_a_job_waits_ends_the_program() -> None:
    before = signal.signal(signal.SIGALRM, stop)
    env = StreamExecutionEnvironment()
    stream = env.from_collection([1], Types.LONG()).map(lambda value: sleep(60))
    gc.disable()  # Python drops what a handler raises within a callback of the collector, as Hypothesis has one
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(SystemExit, match="5"):
            list(stream.execute_and_collect())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gc.enable()


def test_other_errors_pass() -> None:
    with pytest.raises(KeyboardInterrupt), exits_as_errors():
        raise KeyboardInterrupt
