"""The clock of the machine on another day, as a program reads it."""

from __future__ import annotations

import datetime
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Final
from unittest import mock

_DAY_AND_MORE_S: Final = 86_400 + 12_345

_OWN_PACKAGE: Final = __name__.partition(".")[0]

_INSTALLED: Final = frozenset(Path(sysconfig.get_path(place)).resolve() for place in ("purelib", "platlib"))

UNSEEN: Final = (
    "reads other than time.time(), time.time_ns(), and now(), utcnow() and today() of datetime; and these in installed "
    "packages, or by names in closures, default values and classes"
)
"""Ways to read the clock that do not show another day."""


class _LikeDatetime(type):
    """Instances and subclasses of the class are those of datetime."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, datetime.datetime)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, datetime.datetime)


class _Datetime(datetime.datetime, metaclass=_LikeDatetime):
    """Makes values of datetime, with the present from `time.time`, which datetime itself does not ask."""

    def __new__(cls, *args: Any, **settings: Any) -> Any:
        return datetime.datetime(*args, **settings)

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        return datetime.datetime.fromtimestamp(time.time(), tz)

    @classmethod
    def utcnow(cls) -> Any:
        return cls.now(datetime.timezone.utc).replace(tzinfo=None)


@contextmanager
def on_another_day(job: object) -> Iterator[None]:
    """Let the clock that a program reads show a time that is more than a day later, except to what is `UNSEEN`.

    Parameters
    ----------
    job : callable
        Function of the program; the package of its module belongs to it even if it is installed. So do all modules that
        are neither installed, nor of Python or flinkcore.
    """
    seconds, nanoseconds = time.time, time.time_ns

    def later() -> float:
        return seconds() + _DAY_AND_MORE_S

    def later_ns() -> int:
        return nanoseconds() + _DAY_AND_MORE_S * 10**9

    module = ModuleType("datetime")
    vars(module).update(vars(datetime), datetime=_Datetime)
    # By identity: values of globals may compare in their own ways.
    others = {
        id(seconds): later,
        id(nanoseconds): later_ns,
        id(datetime): module,
        id(datetime.datetime): _Datetime,
    }
    changed = [
        (names, name, value, others[id(value)])
        for names in _globals_of_program(str(getattr(job, "__module__", "")))
        for name, value in names.items()
        if id(value) in others
    ]
    with mock.patch("time.time", later), mock.patch("time.time_ns", later_ns):
        try:
            for names, name, _, other in changed:
                names[name] = other
            yield
        finally:
            for names, name, value, other in changed:
                if names.get(name) is other:  # else the program has given the name another value
                    names[name] = value


def _globals_of_program(job_module: str) -> list[dict[str, Any]]:
    """Return the globals of the modules of a program."""
    return [
        vars(module)
        for name, module in list(sys.modules.items())
        if isinstance(module, ModuleType) and (_is_near(name, job_module) or not _is_others(name, module))
    ]


def _is_near(name: str, job_module: str) -> bool:
    package = job_module.partition(".")[0]
    return name == job_module or (name.partition(".")[0] == package != _OWN_PACKAGE)


def _is_others(name: str, module: ModuleType) -> bool:
    """Return whether a module is of Python, of flinkcore, or installed."""
    package = name.partition(".")[0]
    if package == _OWN_PACKAGE or package in sys.stdlib_module_names:
        return True
    file = getattr(module, "__file__", None)
    return file is not None and not _INSTALLED.isdisjoint(Path(file).resolve().parents)
