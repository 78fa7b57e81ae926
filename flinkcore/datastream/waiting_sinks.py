"""Sinks that no job has run, and the message about them when a script ends."""

import atexit
import sys
from typing import ClassVar


class WaitingSinks:
    """The number of sinks of an environment that wait for a job.

    A script that ends with such sinks has written nothing there, so it gets a message. The message does not depend on
    the environment, which may be gone by then. It is left out in interactive sessions and tests, and after an
    exception, which says more.
    """

    _all: ClassVar[set["WaitingSinks"]] = set()
    _is_registered: ClassVar[bool] = False

    def __init__(self) -> None:
        self._number = 0

    def add(self) -> None:
        """Count another sink, if the process runs a script."""
        if not _is_script():  # asked now: at the end, Python has removed the file's name
            return
        self._number += 1
        self._all.add(self)
        if not WaitingSinks._is_registered:
            WaitingSinks._is_registered = True
            atexit.register(_report)

    def clear(self) -> None:
        """Count from 0 again: a job runs the sinks, or the program has only asked for their description."""
        self._number = 0
        self._all.discard(self)

    @classmethod
    def total(cls) -> int:
        """Return the number of waiting sinks of all environments."""
        return sum(each._number for each in cls._all)


def _report() -> None:
    number = WaitingSinks.total()
    # With `python -i` the session has begun by now.
    if number and not hasattr(sys, "ps1") and getattr(sys, "last_value", None) is None:
        what = "1 sink was never run, and has" if number == 1 else f"{number} sinks were never run, and have"
        print(
            f"flinkcore: {what} written nothing. Add env.execute() at the end of the program",
            file=sys.stderr,
        )


def _is_script() -> bool:
    """Return whether the process runs a script, and not a session, a notebook or tests."""
    if (
        hasattr(sys, "ps1")
        or sys.flags.interactive
        or not sys.modules.keys().isdisjoint(("IPython", "_pytest"))
    ):
        return False
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    return hasattr(main, "__file__") and not (spec is not None and spec.name.startswith("unittest"))
