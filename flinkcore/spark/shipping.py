"""Functions for Spark's Python workers, also where flinkcore is not installed on them."""

from __future__ import annotations

import atexit
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle

import flinkcore
from flinkcore.errors import UserCodeError
from flinkcore.spark.session import is_classic, spark_version
from flinkcore.spark.task_errors import RaisesTaskErrors

ARCHIVE_SETTING = "spark.flinkcore.archive"
"""Name under which the package was shipped, as a setting of the session."""

_ARCHIVE = "flinkcore-package"

BatchFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def ship_flinkcore(spark: Any) -> None:
    """Send the installed package to all executors of a session, for clusters that do not have it.

    The executors need the same platform and Python version as the driver, and pyarrow and numpy. Not needed,
    and best left out, where flinkcore is installed on all nodes or comes with the job's environment
    (`venv-pack`, `%pip`, an image).

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        Classic or remote. Jobs of this session take the package from here from now on.
    """
    archive = _packed()
    if is_classic(spark) and spark_version() < (4, 0):
        spark.sparkContext.addArchive(f"{archive}#{_ARCHIVE}")
    else:
        spark.addArtifact(f"{archive}#{_ARCHIVE}", archive=True)
    spark.conf.set(ARCHIVE_SETTING, _ARCHIVE)


@cache
def _packed() -> Path:
    """The package as an archive; Spark may read it for as long as the process lives."""
    folder = tempfile.TemporaryDirectory(prefix="flinkcore-ship-")
    atexit.register(folder.cleanup)
    archive = Path(folder.name, f"{_ARCHIVE}.zip")
    package = Path(flinkcore.__file__).parent
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(package.rglob("*")):
            if path.suffix in {".py", ".so", ".pyd", ".parquet"}:
                packed.write(path, Path(package.name, path.relative_to(package)))
    return archive


def portable(spark: Any, task: BatchFunction) -> BatchFunction:
    """Wrap a task so that a worker finds flinkcore before it unpickles the task.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        Tells whether `ship_flinkcore` was called.
    task
        Picklable; takes and gives batches.

    Raises
    ------
    UserCodeError
        If it cannot be pickled, because of what the user's functions in it hold.
    """
    try:
        pickled = cloudpickle.dumps(RaisesTaskErrors(task))
    except Exception as failure:
        raise UserCodeError(
            f"the job cannot be sent to Spark's workers: {type(failure).__name__}: {failure}. Let functions and "
            "generators make what cannot be pickled (connections, locks, the Spark session) in open(), or when they "
            "are made on the worker"
        ) from failure
    archive = spark.conf.get(ARCHIVE_SETTING, None)
    package = flinkcore.__file__

    # A nested function travels by value: nothing in it may come from flinkcore.
    def run(batches: Any) -> Any:
        import os
        import pickle
        import sys

        if archive is None:
            # A worker looks into its working directory first, where a source tree may hide the driver's package.
            folder = os.path.dirname(os.path.dirname(package))
            if os.path.exists(package) and "flinkcore" not in sys.modules:
                sys.path.insert(0, folder)
        if archive is not None:
            from pyspark import SparkFiles

            folder = SparkFiles.get(archive)
            if folder not in sys.path:
                sys.path.insert(0, folder)
        yield from pickle.loads(pickled)(batches)

    return run
