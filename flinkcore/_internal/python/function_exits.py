"""Functions of a job that call ``sys.exit``: the job fails, and the program continues."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from inspect import CO_VARARGS
from types import CodeType, FrameType
from typing import Any

from flinkcore.errors import UserCodeError


@contextmanager
def exits_as_errors() -> Iterator[None]:
    """Raise a UserCodeError where a function calls ``sys.exit``: neither program nor process of Spark's is to end.

    Raises
    ------
    UserCodeError
        If a function of the job called ``sys.exit``.
    SystemExit
        If a signal handler of the program did, also one that interrupted a function.

    Notes
    -----
    PyFlink's functions run in other processes than the program, and fail the job alone.
    """
    try:
        yield
    except SystemExit as exit_:
        from traceback import walk_tb  # the start of a job can do without

        handlers = _codes_of_signal_handlers()
        if any(
            frame.f_code in handlers or _was_given_interrupted_frame(frame)
            for frame, _ in walk_tb(exit_.__traceback__)
        ):
            raise
        raise UserCodeError(
            f"a function of the job called sys.exit({exit_.code!r}). Let it raise an error, and end the program where "
            "it runs the job"
        ) from exit_


def _codes_of_signal_handlers() -> set[CodeType]:
    """Return the code of the functions that handle signals now; one may have deleted the frame that it was given."""
    import signal
    from functools import partial

    codes = set[CodeType | None]()
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        while isinstance(handler, partial):
            handler = handler.func
        if callable(handler):
            call = handler if hasattr(handler, "__code__") else type(handler).__call__
            codes.add(getattr(call, "__code__", None))
    return {code for code in codes if code is not None}


def _was_given_interrupted_frame(frame: FrameType) -> bool:
    """Return whether a function was given the frame that it interrupted, as signal handlers are, now or before."""
    code = frame.f_code
    given = [frame.f_locals.get(name) for name in code.co_varnames[: code.co_argcount]]
    if code.co_flags & CO_VARARGS:
        given += frame.f_locals.get(code.co_varnames[code.co_argcount + code.co_kwonlyargcount], ())
    return frame.f_back is not None and any(value is frame.f_back for value in given)
