"""Warnings to the user of the package, which point at a line of the user's program."""

import os
import sys
import threading
import warnings
from collections.abc import Iterator
from types import FrameType

import flinkcore

_PACKAGE = os.path.dirname(os.path.abspath(flinkcore.__file__)) + os.sep
_STANDARD_LIBRARY = os.path.dirname(os.__file__) + os.sep
_SITE_PACKAGES = _STANDARD_LIBRARY + "site-packages" + os.sep
_BETWEEN = frozenset({"flinkcore", "pyspark", "py4j"})
"""Packages whose frames lie between the user's program and a warning; Spark also runs threads of its own."""


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user's program that has called the package.

    Parameters
    ----------
    message : str
        The doubt, and what to do about it.
    category : type of Warning, default UserWarning
        Class of the warning.

    Notes
    -----
    In a thread that flinkcore or Spark has started, the line is that at which the main thread is.
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
    """Return the innermost frame of neither this package, Spark nor Python's library, or else the outermost."""
    frame = sys._getframe(1)
    found = next(filter(_is_users, _outwards(frame)), None)
    if found is None and threading.current_thread() is not threading.main_thread():
        ident = threading.main_thread().ident
        frame = sys._current_frames().get(-1 if ident is None else ident, frame)
        # A library may be at work for the program meanwhile.
        among = [each for each in _outwards(frame) if _is_users(each)]
        found = next((each for each in among if not _is_installed(each)), among[0] if among else None)
    return list(_outwards(frame))[-1] if found is None else found


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_installed(frame: FrameType) -> bool:
    folders = frame.f_code.co_filename.split(os.sep)
    return "site-packages" in folders or "dist-packages" in folders


def _is_users(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    if name.startswith("<frozen ") or frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        return False
    path = os.path.abspath(name)
    if path.startswith(_STANDARD_LIBRARY) and not path.startswith(_SITE_PACKAGES):
        return False
    return not path.startswith(_PACKAGE)
