"""PyFlink's ``pyflink.table.window``: windows of groups, and of OVER, by expressions."""

from __future__ import annotations

from typing import Any, TypeVar

from flinkcore._internal.python.missing_features import refuse_name
from flinkcore.table.calls import Recorded, called
from flinkcore.table.expression import Expression

__all__ = ["GroupWindow", "Over", "OverWindow", "Session", "Slide", "Tumble"]

Step = TypeVar("Step", bound=Recorded)


def _next(kind: type[Step], target: Recorded | str, name: str, method: str, *arguments: Any) -> Step:
    return kind(called(target, name, method, arguments))


class GroupWindow(Recorded):
    """A window with a name, of ``Table.window``."""


class _OnTime(Recorded):
    def alias(self, alias: str) -> GroupWindow:
        """Name the window."""
        return _next(GroupWindow, self, "alias", "as", alias)


class _Sized(Recorded):
    def on(self, time_field: Expression[Any]) -> _OnTime:
        """Let a time attribute place rows into windows."""
        return _next(_OnTime, self, "on", "on", time_field)


class _Sliding(Recorded):
    def every(self, slide: Expression[Any]) -> _Sized:
        """Let a window begin so often: an interval of time or of rows."""
        return _next(_Sized, self, "every", "every", slide)


class Tumble:
    """Windows of one size, one after the other."""

    @classmethod
    def over(cls, size: Expression[Any]) -> _Sized:
        """Return windows of a size: an interval of time or of rows."""
        return _next(_Sized, "Tumble", "over", "over", size)


class Slide:
    """Windows of one size that overlap."""

    @classmethod
    def over(cls, size: Expression[Any]) -> _Sliding:
        """Return windows of a size: an interval of time or of rows."""
        return _next(_Sliding, "Slide", "over", "over", size)


class Session:
    """Windows that end when no row comes for a while."""

    @classmethod
    def with_gap(cls, gap: Expression[Any]) -> _Sized:
        """Return windows that end after an interval of time without rows."""
        return _next(_Sized, "Session", "with_gap", "withGap", gap)


class OverWindow(Recorded):
    """A window of OVER with a name, of ``Table.over_window``."""


class _Bounded(Recorded):
    def alias(self, alias: str) -> OverWindow:
        """Name the window."""
        return _next(OverWindow, self, "alias", "as", alias)

    def following(self, following: Expression[Any]) -> _Bounded:
        """End the window so far after the row."""
        return _next(_Bounded, self, "following", "following", following)


class _Ordered(Recorded):
    def alias(self, alias: str) -> OverWindow:
        """Name the window, which begins with the first row."""
        return _next(OverWindow, self, "alias", "as", alias)

    def preceding(self, preceding: Expression[Any]) -> _Bounded:
        """Begin the window so far before the row."""
        return _next(_Bounded, self, "preceding", "preceding", preceding)


class _Partitioned(Recorded):
    def order_by(self, order_by: Expression[Any]) -> _Ordered:
        """Order rows by a time attribute."""
        return _next(_Ordered, self, "order_by", "orderBy", order_by)


class Over:
    """Windows of each row over the rows before it."""

    @classmethod
    def order_by(cls, order_by: Expression[Any]) -> _Ordered:
        """Return windows over all rows, in the order of a time attribute."""
        return _next(_Ordered, "Over", "order_by", "orderBy", order_by)

    @classmethod
    def partition_by(cls, *partition_by: Expression[Any]) -> _Partitioned:
        """Return windows over the rows with the same values."""
        return _next(_Partitioned, "Over", "partition_by", "partitionBy", *partition_by)


def __getattr__(name: str) -> Any:
    """Report what to use instead of a name of PyFlink's that flinkcore does not have."""
    refuse_name(__name__, name)
