"""Errors of flinkcore that a Spark task raised, raised again on the driver as the errors that they are.

Of what a task raises Spark brings a text to the driver. An error of flinkcore, with its attributes and causes, is
packed into that text. It is signed with a key that the task got from the driver: a text may have values of a data file
in it, from which nothing must be unpickled.
"""

from __future__ import annotations

import hmac
import pickle
import re
import secrets
import traceback
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.errors import PythonException

from flinkcore.errors import ConfigurationError, FlinkcoreError
from flinkcore.spark.shipping.worker_environment import NOT_READY

MOST_BYTES: Final = 1 << 20
"""An exception of more bytes, say with a table in it, comes to the driver in words."""

_DEEPEST: Final = 8
_KEY: Final = secrets.token_bytes(32)
_PACKED: Final = re.compile(r"\[packed error ([A-Za-z0-9+/=]+) ([0-9a-f]{64})\]")


class TaskError(Exception):
    """What leaves a task instead of an error of flinkcore: its traceback in words, and the error itself, packed."""


@dataclass(frozen=True)
class RaisesTaskErrors:
    """A task whose errors can be raised on the driver; picklable as the task is.

    Attributes
    ----------
    task
        Takes and gives batches.
    key
        Signs errors.
    """

    task: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
    key: bytes = _KEY

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What the task gives.

        Raises
        ------
        TaskError
            If the task raises an error of flinkcore.
        """
        try:
            yield from self.task(batches)
        except FlinkcoreError as error:
            packed = b64encode(zlib.compress(_pickled(error, 0))).decode()
            # In words rather than as the cause, which Spark leaves out of what it tells.
            told = "".join(traceback.format_exception(error)).strip()
            raise TaskError(f"{told}\n[packed error {packed} {_signature(self.key, packed)}]") from None


@contextmanager
def told_plainly() -> Iterator[None]:
    """Raise what flinkcore raised in a task; the JVM's account, with the task's traceback, is its innermost cause."""
    error = None
    try:
        yield
    except PythonException as account:
        error = _packed_in(account) or _not_ready(account)
        if error is None:
            raise
    if error is not None:
        raise error


def _packed_in(account: PythonException) -> BaseException | None:
    for packed, signature in reversed(_PACKED.findall(str(account))):
        if hmac.compare_digest(signature, _signature(_KEY, packed)):
            error: BaseException = pickle.loads(zlib.decompress(b64decode(packed)))
            innermost = error
            while innermost.__cause__ is not None:
                innermost = innermost.__cause__
            innermost.__cause__ = account
            return error
    return None


def _not_ready(account: PythonException) -> ConfigurationError | None:
    """Where a worker had no flinkcore to raise an error with."""
    found = re.search(f"{NOT_READY}([^\n]*)", str(account))
    if found is None:
        return None
    error = ConfigurationError(found[1])
    error.__cause__ = account
    return error


def _signature(key: bytes, packed: str) -> str:
    return hmac.new(key, packed.encode(), "sha256").hexdigest()


def _in_words(error: BaseException) -> str:
    return f"{type(error).__qualname__}: {error}"


def _pickled(error: BaseException, depth: int) -> bytes:
    file = BytesIO()
    _ErrorPickler(file, None, depth).dump(error)
    return file.getvalue()


class _ErrorPickler(cloudpickle.CloudPickler):  # type: ignore[misc]
    """Pickles exceptions with their causes; of one that cannot be pickled, or read again, the words.

    Parameters
    ----------
    file : BytesIO
    whole : BaseException or None
        The exception that is pickled as it is, but for other exceptions in it.
    depth : int
        How many exceptions it is within.
    """

    def __init__(self, file: BytesIO, whole: BaseException | None, depth: int) -> None:
        super().__init__(file)
        self._whole = whole
        self._depth = depth

    def reducer_override(self, value: Any) -> Any:
        """Return how an exception is made again."""
        if not isinstance(value, BaseException) or value is self._whole:
            return super().reducer_override(value)
        if self._depth == _DEEPEST:
            return RuntimeError, (_in_words(value),)
        cause = value.__cause__
        caused_by = None if cause is None else _pickled(cause, self._depth + 1)
        return _read, (_alone(value, self._depth), _in_words(value), caused_by)


def _alone(error: BaseException, depth: int) -> bytes | None:
    """The exception without its cause; None if it cannot be pickled, or read."""
    file = BytesIO()
    try:
        _ErrorPickler(file, error, depth + 1).dump(error)
        pickled = file.getvalue()
        read = pickle.loads(pickled)
    except Exception:
        return None
    same = type(read) is type(error) and str(read) == str(error)
    return pickled if same and len(pickled) <= MOST_BYTES else None


def _read(alone: bytes | None, words: str, caused_by: bytes | None) -> BaseException:
    error: BaseException = RuntimeError(words)
    if alone is not None:
        with suppress(Exception):  # of a module that the driver lacks
            error = pickle.loads(alone)
    if caused_by is not None:
        error.__cause__ = pickle.loads(caused_by)
    return error
