"""Warnings to the user of the package, which point at a line of the user's program."""

import os
import sys
import threading
import warnings
from collections.abc import Iterator
from types import FrameType

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STANDARD_LIBRARY = os.path.dirname(os.__file__) + os.sep
_SITE_PACKAGES = _STANDARD_LIBRARY + "site-packages" + os.sep


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user's program that has called the package.

    Parameters
    ----------
    message : str
        What is suspicious, then what to do.
    category : type of Warning, default UserWarning
        Class of the warning.

    Notes
    -----
    In a thread that flinkcore has started, the line is that at which the main thread is.
    """
    frame = user_frame()
    warnings.warn_explicit(
        message,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=frame.f_globals.get("__name__", "<unknown>"),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )


def user_frame() -> FrameType:
    """Return the innermost frame that is neither of this package nor of Python's library, or else the outermost."""
    frame = sys._getframe(1)
    found = next(filter(_is_users, _outwards(frame)), None)
    if found is None and threading.current_thread() is not threading.main_thread():
        ident = threading.main_thread().ident
        frame = sys._current_frames().get(-1 if ident is None else ident, frame)
        found = next(filter(_is_users, _outwards(frame)), None)
    return list(_outwards(frame))[-1] if found is None else found


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_users(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    if name.startswith("<frozen ") or frame.f_globals.get("__name__", "").partition(".")[0] == "flinkcore":
        return False
    path = os.path.abspath(name)
    if path.startswith(_STANDARD_LIBRARY) and not path.startswith(_SITE_PACKAGES):
        return False
    return not path.startswith(_PACKAGE)
