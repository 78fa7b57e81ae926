"""Pickled tasks: a Python worker of Spark has to find flinkcore before it can unpickle one."""

from __future__ import annotations

import gc
import io
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import pyarrow as pa
from pyspark import cloudpickle

from flinkcore.errors import FlinkcoreError, UserCodeError, in_words
from flinkcore.log.sources.log_sources import LogFiles
from flinkcore.spark.shipping.preflight import least_versions
from flinkcore.spark.shipping.sent_files import SentFiles
from flinkcore.spark.shipping.task_errors import PacksErrors
from flinkcore.spark.shipping.worker_environment import run_with_flinkcore, worker_place

BatchFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

KEPT_BYTES: Final = 64 << 20
"""A worker keeps the memory of its tasks for the next one if Arrow has never used more than this at once."""

IN_OPEN: Final = "Let functions make what cannot be pickled (connections, locks, the Spark session) in open()"
"""Advice where a function cannot be pickled."""


def unsendable(what: str, failure: Exception, advice: str) -> UserCodeError:
    """Return the error to raise where something of the user's cannot be pickled."""
    return UserCodeError(f"{what} cannot be sent to Spark's workers: {in_words(failure)}. {advice}")


class _TaskPickler(cloudpickle.CloudPickler):  # type: ignore[misc]
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, LogFiles):
            return obj.without_files().__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        return super().reducer_override(obj)


def pickled_for_tasks(value: Any) -> bytes:
    """Pickle a value for tasks; the logs in it come without their files."""
    buffer = io.BytesIO()
    _TaskPickler(buffer).dump(value)
    return buffer.getvalue()


def unpickled(pickled: bytes) -> Any:
    """Unpickle on a worker what the driver has pickled.

    Raises
    ------
    UserCodeError
        If functions in it are from a module that this worker lacks, or hold an object that cannot be unpickled.
    """
    try:
        return pickle.loads(pickled)
    except ModuleNotFoundError as failure:
        module = (failure.name or "").partition(".")[0]
        raise UserCodeError(
            f"functions of this job need the module {module!r}, which the Python worker {worker_place()} does not "
            f"have. Call env.add_python_file with the path of {module}.py, or of a folder or wheel that has it, or "
            "install it on the executors"
        ) from failure
    except FlinkcoreError:
        raise
    except Exception as failure:
        raise UserCodeError(
            f"what functions of this job hold cannot be unpickled by the Python worker {worker_place()}: "
            f"{in_words(failure)}. Let functions make such objects in open(), or give their classes a __reduce__"
        ) from failure


@dataclass(frozen=True)
class ShippedTask:
    """A task that is unpickled where it runs.

    Attributes
    ----------
    pickled : bytes
    """

    pickled: bytes

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the task; see `unpickled`."""
        yield from unpickled(self.pickled)(batches)
        _leave_imports_out_of_collections()
        # A worker runs other tasks next, which take much of their memory from elsewhere. To take the memory of a small
        # task from the system again costs a third as much as the task.
        pool = pa.default_memory_pool()
        if (pool.max_memory() or 0) > KEPT_BYTES:
            pool.release_unused()


_modules_left_out = 0


@cache
def _pickled_runner() -> bytes:
    """Return the function that runs a task where flinkcore may be missing: to pickle it by value takes long."""
    pickled: bytes = cloudpickle.dumps(run_with_flinkcore)
    return pickled


def _leave_imports_out_of_collections() -> None:
    """Spare the garbage collector what imported modules hold, which lives as long as the process.

    PySpark's daemon collects all garbage after each task of a reused worker. Modules, pandas among them, made that cost
    a third as much as a whole small replay.
    """
    global _modules_left_out
    if len(sys.modules) > _modules_left_out:
        _modules_left_out = len(sys.modules)
        gc.collect()  # garbage, and the batches that it may hold, would be left out, too
        gc.freeze()


def portable(
    spark: Any, task: BatchFunction, for_user: bool = False, broadcasts: Sequence[Any] = ()
) -> BatchFunction:
    """Wrap a task so that a worker finds flinkcore before it unpickles the task.

    Before the first task of a session its executors are looked at; see `SentFiles.for_tasks`.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
    task : callable
        Takes and yields record batches.
    for_user : bool
        Whether it is the user's query that runs it, so that nobody raises its errors again (`task_errors_raised`).
    broadcasts : sequence of pyspark.Broadcast
        Broadcasts that the task uses: Spark sends those that it finds in the function itself.

    Raises
    ------
    UserCodeError
        If a function of the user's in it cannot be pickled.
    ConfigurationError
        If executors lack what replays need.
    """
    try:
        shipped = ShippedTask(pickled_for_tasks(task))
    except Exception as failure:
        raise unsendable(
            "the job", failure, f"{IN_OPEN}, and generators when the worker makes them"
        ) from failure
    artifacts = tuple(SentFiles.of(spark).for_tasks(spark))
    least, runner = least_versions(), _pickled_runner()
    pickled = pickle.dumps(PacksErrors(shipped, None) if for_user else PacksErrors(shipped))

    # A nested function is pickled by value, and so must be what it refers to in flinkcore.
    def run(batches: Any) -> Any:
        yield from pickle.loads(runner)(batches, pickled, least, *artifacts)

    run.__dict__["broadcasts"] = tuple(broadcasts)
    # Spark's plans show the step by this name, even in a query that begins from a DataFrame of results.
    run.__name__ = f"flinkcore.{type(task).__name__}"
    return run
