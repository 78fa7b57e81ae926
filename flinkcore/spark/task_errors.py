"""Errors of flinkcore that a Spark task raised, as the errors that they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PythonException

from flinkcore import errors

_RAISED = re.compile(
    r"^flinkcore\.errors\.(\w+): (.*?)(?=^\S*(?:Error|Exception)\b|^\s+at |^$|^ SQLSTATE|\Z)", re.M | re.S
)


@contextmanager
def told_plainly() -> Iterator[None]:
    """Raise what flinkcore raised in a task, instead of the JVM's account of it, which becomes its cause."""
    try:
        yield
    except PythonException as error:
        found = list(_RAISED.finditer(str(error)))
        kind = getattr(errors, found[-1].group(1), None) if found else None
        if kind is None:
            raise
        raise kind(found[-1].group(2).strip()) from error
