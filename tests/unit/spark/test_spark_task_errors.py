"""Errors of Spark's tasks arrive on the driver whole."""

import importlib
import os
import pickle
import pkgutil
import traceback
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PythonException

import flinkcore
from flinkcore import errors
from flinkcore._internal.arrow.expressions import RowFailure
from flinkcore._internal.python.replay_threads import ReplayStoppedError
from flinkcore._native.state_columns import EntryError
from flinkcore.elements.sources import stream_source
from flinkcore.errors import (
    ConfigurationError,
    DataError,
    FlinkcoreError,
    OutOfMemoryError,
    SourceError,
    TimerError,
    UserCodeError,
    WorkerLostError,
)
from flinkcore.operators.records.output import OutputFullError
from flinkcore.savepoints import pyflink_coders
from flinkcore.spark.columns.job_columns import NotJustColumns
from flinkcore.spark.logs.plan_nodes import NotJustFiles
from flinkcore.spark.shipping import task_errors
from flinkcore.spark.shipping.task_errors import PacksErrors, task_errors_raised
from flinkcore.sql.expressions import json_functions
from flinkcore.sql.formats import json_paths, printf
from flinkcore.sql.nodes import native_conditions

MESSAGE = "row 7: no time;\n\nParagraph two: ValueError: of a user\n\n  at line 3\nException\n SQLSTATE: 0\n\nend é\n"


def error_classes() -> list[type[BaseException]]:
    """All classes of exceptions that modules of the package define."""
    found: dict[type[BaseException], None] = {}
    for module in pkgutil.walk_packages(flinkcore.__path__, "flinkcore."):
        if module.name.startswith("flinkcore.examples") or module.name.endswith("__main__"):
            continue
        for value in vars(importlib.import_module(module.name)).values():
            if (
                isinstance(value, type)
                and issubclass(value, BaseException)
                and value.__module__.startswith("flinkcore.")
            ):
                found[value] = None
    return sorted(found, key=lambda each: each.__qualname__)


CLASSES = error_classes()


def an_error(kind: type[BaseException]) -> BaseException:
    if kind is TimerError:
        return TimerError(17, ValueError(MESSAGE))
    return kind(MESSAGE)


def raise_from_a_task(error: BaseException, cause: BaseException | None = None) -> None:
    """Raise what a task raises, as far as Spark tells of it: a text among others."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if cause is None:
            raise error
        raise error from cause
        yield

    try:
        list(PacksErrors(task)(iter(())))
    except BaseException as raised:
        text = "".join(traceback.format_exception(raised))
        account = f"Job aborted: Lost task 0.0: PythonException: {text}\n\tat org.apache.spark.Task\n\n{text}"
        raise PythonException(account) from None


def arrived(error: BaseException, cause: BaseException | None = None) -> BaseException:
    with pytest.raises(type(error)) as caught, task_errors_raised():
        raise_from_a_task(error, cause)
    return caught.value


def test_the_walk_finds_the_classes_of_errors() -> None:
    own = [
        value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)
    ]
    assert set(own) < set(CLASSES)
    others = {kind for kind in CLASSES if not issubclass(kind, FlinkcoreError)}
    # None of these comes to a user.
    assert others == {
        task_errors.TaskError,
        NotJustFiles,
        NotJustColumns,
        EntryError,
        OutputFullError,
        ReplayStoppedError,
        RowFailure,
        stream_source._Cancelled,
        json_functions._Empty,
        json_paths.PathError,
        printf.FormatError,
        native_conditions._NotNative,
        pyflink_coders._FoundRow,
        errors.LateEventsWarning,
        errors.RejectedRowsWarning,
    }


# OutputFullError holds the calls with which its operator goes on, and never leaves it. Of an EntryError, the reader of
# savepoints makes an error with file and position, and of a RowFailure the step of the expression one with the row.
UNPICKLED = OutputFullError, EntryError, RowFailure


@pytest.mark.parametrize("kind", [kind for kind in CLASSES if kind not in UNPICKLED])
def test_every_error_can_be_pickled(kind: type[BaseException]) -> None:
    error = an_error(kind)
    error.remark = "split 3"  # type: ignore[attr-defined]
    read = pickle.loads(pickle.dumps(error))
    assert type(read) is kind
    assert str(read) == str(error)
    assert read.__dict__ == error.__dict__ or kind is TimerError


@pytest.mark.parametrize("kind", [kind for kind in CLASSES if issubclass(kind, FlinkcoreError)])
def test_every_error_of_a_task_arrives_with_class_message_attributes_and_causes(
    kind: type[BaseException],
) -> None:
    error = an_error(kind)
    error.remark = {"split": 3}  # type: ignore[attr-defined]
    found = arrived(error, None if kind is TimerError else KeyError("user"))
    assert type(found) is kind
    assert str(found) == str(error)
    assert MESSAGE in str(found)
    assert found.remark == {"split": 3}  # type: ignore[attr-defined]
    if isinstance(found, TimerError):
        assert found.timestamp_ms == 17
        assert isinstance(found.__cause__, ValueError)
        assert str(found.__cause__) == MESSAGE
    else:
        assert isinstance(found.__cause__, KeyError)
        assert found.__cause__.args == ("user",)
    assert found.__cause__.__cause__ is None
    account = found.__cause__.__context__
    assert isinstance(account, PythonException)
    assert "raise_from_a_task" in str(account) or "in task" in str(account)


def test_the_driver_shows_where_a_function_failed_and_nothing_of_sparks() -> None:
    def halved(value: int) -> int:
        return value // 0

    failure: BaseException | None = None
    try:
        halved(1)
    except ZeroDivisionError as raised:
        failure = raised
    found = arrived(UserCodeError("halved failed at the element 1"), failure)
    shown = "".join(traceback.format_exception(found))
    line = halved.__code__.co_firstlineno + 1
    place = f'File "{__file__}", line {line}, in halved\n    return value // 0\n'
    assert (
        shown.index(place) < shown.index("ZeroDivisionError: ") < shown.index("UserCodeError: halved failed")
    )
    assert "PythonException" not in shown
    assert "packed error" not in shown


def test_what_a_task_tells_spark_begins_with_the_error_and_the_place_of_the_function() -> None:
    def halved(value: int) -> int:
        return value // 0

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from map(halved, [1])
        except ZeroDivisionError as failure:
            failure.__traceback__ = (
                failure.__traceback__ and failure.__traceback__.tb_next
            )  # this is no user's
            raise UserCodeError("halved failed at the element 1") from failure

    line = halved.__code__.co_firstlineno + 1
    for key in (b"key", None):
        with pytest.raises(task_errors.TaskError) as caught:
            list(PacksErrors(task, key)(iter(())))
        told = str(caught.value).splitlines()
        assert told[:2] == [
            "UserCodeError: halved failed at the element 1",
            f"in halved ({__file__}, line {line})",
        ]
        assert "ZeroDivisionError" in str(caught.value)
        assert ("packed error" in told[-1]) == (key is not None)


@pytest.mark.parametrize("key", [b"key", None])
def test_what_a_task_tells_spark_is_unicode_whatever_its_error_says(key: bytes | None) -> None:
    # Spark's worker fails to send other texts, for which its JVM waits.
    name = os.fsdecode(b"caf\xe9.txt")

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise UserCodeError(f"open() failed for {name}") from FileNotFoundError(name)
        yield

    with pytest.raises(task_errors.TaskError) as caught:
        list(PacksErrors(task, key)(iter(())))
    assert r"caf\udce9.txt" in str(caught.value)
    assert str(caught.value).encode()


def test_an_error_arrives_with_the_name_of_a_file_that_is_not_unicode() -> None:
    name = os.fsdecode(b"caf\xe9.txt")
    found = arrived(UserCodeError(f"open() failed for {name}"), FileNotFoundError(name))
    assert str(found) == f"open() failed for {name}"
    assert str(found.__cause__) == name


def test_of_an_endless_recursion_the_innermost_places_travel() -> None:
    def deeper(value: int) -> int:
        return deeper(value + 1)

    failure: BaseException | None = None
    try:
        deeper(0)
    except RecursionError as raised:
        failure = raised
    found = arrived(UserCodeError("too deep"), failure)
    assert found.__cause__ is not None
    places = traceback.extract_tb(found.__cause__.__traceback__)
    assert [place.name for place in places] == ["deeper"] * task_errors._MOST_PLACES


class UserError(Exception):
    def __init__(self, row: int, *, column: str) -> None:
        super().__init__(f"row {row} of {column}")
        self.row = row


class Large(Exception):
    def __init__(self, told: str) -> None:
        super().__init__(told)
        self.table = bytes(task_errors.MOST_BYTES)


class Untold(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class Unpicklable(Exception):
    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a connection")


@pytest.mark.parametrize("cause", [UserError(3, column="a"), Unpicklable("lost"), Large("table")])
def test_a_cause_that_cannot_travel_is_told_in_words_and_keeps_its_own(cause: BaseException) -> None:
    cause.__cause__ = KeyError("below")
    found = arrived(UserCodeError("open() failed"), cause)
    assert type(found.__cause__) is RuntimeError
    assert str(found.__cause__) == f"{type(cause).__qualname__}: {cause}"
    assert type(found.__cause__.__cause__) is KeyError


def test_the_cause_of_a_timer_error_need_not_travel() -> None:
    found = arrived(TimerError(5, Unpicklable("lost")))
    assert isinstance(found, TimerError)
    assert found.timestamp_ms == 5
    assert str(found.__cause__) == "Unpicklable: lost"


def test_causes_that_go_in_a_circle_end() -> None:
    error, cause = SourceError("a"), ValueError("b")
    error.other, cause.other = cause, error  # type: ignore[attr-defined]
    assert str(arrived(error, cause)) == "a"
    first, second = ValueError("first"), KeyError("second")
    first.__cause__, second.__cause__ = second, first
    assert repr(arrived(UserCodeError("of both"), first).__cause__) == repr(first)


class Refused(DataError):
    def __init__(self, row: int, *, column: str) -> None:
        super().__init__(f"row {row} of {column}")


def test_a_users_error_that_cannot_travel_arrives_as_the_one_of_flinkcore_that_it_is_derived_from() -> None:
    with pytest.raises(DataError, match=r"^Refused: row 3 of a$"), task_errors_raised():
        raise_from_a_task(Refused(3, column="a"))


def test_an_error_of_another_kind_stays_what_spark_raises() -> None:
    with pytest.raises(PythonException, match="ZeroDivisionError: of a user"), task_errors_raised():
        raise_from_a_task(ZeroDivisionError("of a user"))


def test_what_a_data_file_says_is_not_unpickled() -> None:
    with pytest.raises(PythonException) as genuine:
        raise_from_a_task(DataError("a"))
    (packed, signature), *_ = task_errors._PACKED.findall(str(genuine.value))
    forged = f"[packed error {packed} {signature[::-1]}]"
    with pytest.raises(PythonException, match="packed error"), task_errors_raised():
        raise PythonException(f"the text {forged} is no time")
    assert str(arrived(DataError(f"the text {forged} is no time"))) == f"the text {forged} is no time"


def test_a_cause_whose_text_raises_arrives() -> None:
    found = arrived(UserCodeError("open() failed"), Untold())
    assert isinstance(found.__cause__, Untold)


def test_a_function_that_exits_is_an_error_of_the_job() -> None:
    with (
        pytest.raises(UserCodeError, match=r"a function of the job called sys\.exit\(3\)") as caught,
        task_errors_raised(),
    ):
        raise_from_a_task(SystemExit(3))
    assert isinstance(caught.value.__cause__, SystemExit)


@pytest.mark.parametrize(
    "account",
    [
        "Lost task 0.0 in stage 3.0 (TID 4) (10.0.0.7 executor 2): SparkException: Python worker exited unexpectedly",
        "Lost task 0.0 in stage 3.0 (TID 4) (10.0.0.7 executor 2): ExecutorLostFailure (executor 2 exited ...)",
    ],
)
def test_a_worker_that_dies_is_told_with_its_place(account: str) -> None:
    with (
        pytest.raises(WorkerLostError, match=r"on executor 2 at 10\.0\.0\.7\. .*memory") as caught,
        task_errors_raised(),
    ):
        raise Py4JError(account)
    assert isinstance(caught.value.__cause__, Py4JError)


@pytest.mark.parametrize(
    ("account", "message"),
    [
        (
            Py4JError(
                "Lost task 0.0 in stage 3.0 (TID 4) (10.0.0.7 executor 2): ExecutorLostFailure (executor 2 exited "
                "caused by a running task) Reason: Container killed by YARN for exceeding physical memory limits. 9 GB"
            ),
            r"on executor 2 at 10\.0\.0\.7, .*exceeding physical memory limits\. .*spark\.executor\.memoryOverhead",
        ),
        (
            Py4JError(
                "(10.0.0.7 executor 2): ExecutorLostFailure (executor 2 exited with exit code 137(SIGKILL))"
            ),
            r"exit code 137.*spark\.executor\.memoryOverhead",
        ),
        (
            Py4JError("(10.0.0.7 executor 2): java.lang.OutOfMemoryError: Java heap space\n\tat java.base"),
            r"Java's heap is full on executor 2 at 10\.0\.0\.7\. Raise spark\.executor\.memory",
        ),
        (
            Py4JError(
                "An error occurred while calling o109.collectToPython.\n: java.lang.OutOfMemoryError: Java heap space\n"
                "\tat org.apache.spark.sql.execution.SparkPlan$$anon$1._next(SparkPlan.scala:447)"
            ),
            r"Java's heap is full in the Spark driver.* Raise spark\.driver\.memory",
        ),
        (
            Py4JNetworkError("Answer from Java side is empty"),
            r"JVM of the Spark driver .*spark\.driver\.memory",
        ),
        (
            ConnectionRefusedError(111, "Connection refused"),
            r"JVM of the Spark driver .*spark\.driver\.memory",
        ),
        (
            Py4JError(
                "Total size of serialized results of 9 tasks (1030.1 MiB) is bigger than spark.driver.maxResultSize "
                "1024.0 MiB."
            ),
            r"driver does not take the results: .*Raise spark\.driver\.maxResultSize",
        ),
    ],
)
def test_memory_that_spark_lacks_is_told_with_the_settings_that_help(
    account: Exception, message: str
) -> None:
    with pytest.raises(OutOfMemoryError, match=message) as caught, task_errors_raised():
        raise account
    assert caught.value.__cause__ is account
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("error", [MemoryError(), pa.ArrowMemoryError("malloc of size 64000000 failed")])
def test_memory_that_a_python_worker_lacks_is_told_with_its_limit(error: MemoryError) -> None:
    with (
        pytest.raises(
            OutOfMemoryError, match=r"Arrow holds .*Raise spark\.executor\.pyspark\.memory"
        ) as caught,
        task_errors_raised(),
    ):
        raise_from_a_task(error)
    assert isinstance(caught.value.__cause__, MemoryError)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("error_class", ["[CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND] ", ""])
def test_rows_of_a_dataframe_that_are_lost_with_their_executor_are_told_of_by_every_spark(
    error_class: str,
) -> None:
    account = f"org.apache.spark.SparkException: {error_class}Checkpoint block rdd_13_1 not found! Either the executor"
    with pytest.raises(WorkerLostError, match="Run the job again") as caught, task_errors_raised():
        raise Py4JError(account)
    assert isinstance(caught.value.__cause__, Py4JError)


def test_an_executor_without_pyarrow_that_joins_after_the_preflight_is_named_with_the_ways_out() -> None:
    account = (
        "Lost task 0.0 in stage 3.0 (TID 4) (10.0.0.7 executor 2): org.apache.spark.api.python.PythonException: "
        "Traceback (most recent call last):\n  import pyarrow as pa\nModuleNotFoundError: No module named 'pyarrow'\n"
    )
    with (
        pytest.raises(
            ConfigurationError, match=r"executor 2 at 10\.0\.0\.7 joined after .* needs pyarrow .*venv-pack"
        ) as caught,
        task_errors_raised(),
    ):
        raise Py4JError(account)
    assert isinstance(caught.value.__cause__, Py4JError)


@pytest.mark.parametrize(
    "account", ["something else", "ModuleNotFoundError: No module named 'pyarrow_of_mine'"]
)
def test_other_errors_of_the_jvm_stay_as_they_are(account: str) -> None:
    with pytest.raises(Py4JError, match=account), task_errors_raised():
        raise Py4JError(account)
