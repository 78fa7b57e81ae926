"""Functions of a job that call ``sys.exit``: the job fails, and the program goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from flinkcore.errors import UserCodeError


@contextmanager
def exits_as_errors() -> Iterator[None]:
    """Raise a UserCodeError where a function calls ``sys.exit``: neither program nor process of Spark's is to end.

    Notes
    -----
    PyFlink's functions run in other processes than the program, and fail the job alone.
    """
    try:
        yield
    except SystemExit as exit_:
        raise UserCodeError(
            f"a function of the job called sys.exit({exit_.code!r}): let it raise an error, and end the program where "
            "it runs the job"
        ) from exit_
