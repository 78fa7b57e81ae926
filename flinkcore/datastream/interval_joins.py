"""Two keyed streams that are joined by time."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Generic, TypeVar

from flinkcore.common.output_tag import OutputTag
from flinkcore.common.time import Interval, interval_ms
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.datastream.data_stream import DataStream
from flinkcore.datastream.functions import ProcessJoinFunction
from flinkcore.datastream.graph.declared_type import declared_type, require_output_tag, with_settings
from flinkcore.datastream.graph.element_transformations import ConnectedTransformation
from flinkcore.datastream.graph.interval_join_operation import IntervalJoinOperation
from flinkcore.datastream.keyed_stream import KeyedStream
from flinkcore.datastream.stream import Stream
from flinkcore.errors import ConfigurationError

Keyed = TypeVar("Keyed", bound=Stream)
Bounded = TypeVar("Bounded")
J = TypeVar("J", bound="JoinInTime[Any, Any]")
B = TypeVar("B", bound="JoinWithinBounds[Any]")


class JoinInTime(Generic[Keyed, Bounded]):
    """Two keyed streams to be joined by time, which become a join within bounds."""

    def __init__(self, left: Keyed, right: Keyed) -> None:
        self._left = left
        self._right = right

    @abstractmethod
    def _within(self, lower_bound_ms: int, upper_bound_ms: int) -> Bounded:
        """Return the join within bounds."""

    def in_event_time(self: J) -> J:
        """Return this join: interval joins are always in event time."""
        return self

    def in_processing_time(self: J) -> J:
        """Raise a ConfigurationError, as Flink does: intervals are of event time only."""
        raise ConfigurationError(
            "an interval join is of event time only, in Flink, too; leave in_processing_time out"
        )

    def between(self, lower_bound: Interval, upper_bound: Interval) -> Bounded:
        """Return the join of each left element with the right ones in an interval, both bounds inclusive.

        Parameters
        ----------
        lower_bound, upper_bound : Time, Duration, datetime.timedelta or int (ms)
            Bounds of the right timestamp minus the left one; may be negative. A number is milliseconds.

        Raises
        ------
        ConfigurationError
            If a bound is of another type, or the lower one is greater than the upper one.
        """
        return self._within(interval_ms(lower_bound, "between"), interval_ms(upper_bound, "between"))


class JoinWithinBounds(Generic[Keyed]):
    """An interval join that lacks its function."""

    def __init__(self, left: Keyed, right: Keyed, lower_bound_ms: int, upper_bound_ms: int) -> None:
        self._left = left
        self._right = right
        self._lower_bound_ms = lower_bound_ms
        self._upper_bound_ms = upper_bound_ms
        self._is_lower_bound_inclusive = True
        self._is_upper_bound_inclusive = True
        self._left_late_tag: OutputTag | None = None
        self._right_late_tag: OutputTag | None = None

    def lower_bound_exclusive(self: B) -> B:
        """Return this join without the lower bound itself."""
        return with_settings(self, is_lower_bound_inclusive=False)

    def upper_bound_exclusive(self: B) -> B:
        """Return this join without the upper bound itself."""
        return with_settings(self, is_upper_bound_inclusive=False)

    def side_output_left_late_data(self: B, output_tag: OutputTag) -> B:
        """Return this join with a side output for left elements behind the watermark, which are unchanged."""
        return with_settings(self, left_late_tag=require_output_tag(output_tag, "side_output_left_late_data"))

    def side_output_right_late_data(self: B, output_tag: OutputTag) -> B:
        """Return this join with a side output for right elements behind the watermark, which are unchanged."""
        return with_settings(
            self, right_late_tag=require_output_tag(output_tag, "side_output_right_late_data")
        )

    def _operation(self, function: ProcessJoinFunction[Any, Any]) -> IntervalJoinOperation:
        return IntervalJoinOperation(
            self._lower_bound_ms,
            self._upper_bound_ms,
            function,
            self._is_lower_bound_inclusive,
            self._is_upper_bound_inclusive,
            self._left_late_tag,
            self._right_late_tag,
        )


class IntervalJoin(JoinInTime[KeyedStream, "IntervalJoined"]):
    """Two keyed streams to be joined by time; :meth:`between` sets the interval.

    Notes
    -----
    Flink's ``KeyedStream.IntervalJoin``; made by :meth:`KeyedStream.interval_join`.
    """

    def _within(self, lower_bound_ms: int, upper_bound_ms: int) -> IntervalJoined:
        return IntervalJoined(self._left, self._right, lower_bound_ms, upper_bound_ms)


class IntervalJoined(JoinWithinBounds[KeyedStream]):
    """An interval join that lacks its function.

    Notes
    -----
    Flink's ``KeyedStream.IntervalJoined``. Deliberate difference: each call returns a new object and leaves the old one
    as it was.
    """

    def process(
        self, process_join_function: ProcessJoinFunction[Any, Any], output_type: TypeInformation | None = None
    ) -> DataStream:
        """Return the results of a function for every pair.

        An element of either stream is kept until the watermark, the minimum of both streams, has passed the timestamps
        of all elements that could join it. The order in which two elements arrive makes no difference.

        Parameters
        ----------
        process_join_function : ProcessJoinFunction
            Every subtask works on a copy.
        output_type : TypeInformation, optional
            Type of the results, any Python object by default; they have the greater timestamp of the pair.

        Raises
        ------
        ConfigurationError
            If the function is of another class, the lower bound is greater than the upper one, or the type is not a
            type.

        Notes
        -----
        Flink's ``KeyedStream.IntervalJoined.process``.
        """
        return self._left._then(
            ConnectedTransformation(
                self._left._input(),
                self._right._input(),
                self._operation(process_join_function),
                declared_type(output_type),
            )
        )
