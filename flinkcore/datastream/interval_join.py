"""Two keyed streams whose rows are joined where their timestamps are close."""

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

from flinkcore.common.output_tag import OutputTag
from flinkcore.common.schemas import Schema, is_schema
from flinkcore.common.time import Duration, Time, interval_or_ms
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.datastream.data_stream import DataStream
from flinkcore.datastream.declared_type import declared_type, refuse_columns_of_outputs
from flinkcore.datastream.element_transformations import ConnectedTransformation
from flinkcore.datastream.functions import ProcessJoinFunction
from flinkcore.datastream.interval_join_operation import IntervalJoinOperation
from flinkcore.datastream.join_transformations import IntervalJoinTransformation
from flinkcore.errors import ConfigurationError

if TYPE_CHECKING:
    from flinkcore.datastream.keyed_stream import KeyedStream


class IntervalJoin:
    """Two keyed streams to be joined by time; :meth:`between` says how far apart.

    Notes
    -----
    Flink's ``KeyedStream.IntervalJoin``; made by :meth:`KeyedStream.interval_join`.
    """

    def __init__(self, left: "KeyedStream", right: "KeyedStream") -> None:
        self._left = left
        self._right = right

    def in_event_time(self) -> "IntervalJoin":
        """Return this: there is no other time."""
        return self

    def in_processing_time(self) -> "IntervalJoin":
        """Raise a ConfigurationError, as Flink does: intervals are of event time only."""
        raise ConfigurationError(
            "an interval join is of event time only, in Flink, too; leave in_processing_time out"
        )

    def between(
        self, lower_bound: int | Time | Duration, upper_bound: int | Time | Duration
    ) -> "IntervalJoined":
        """Return what joins each left row with the right rows from one bound to the other, both inclusive.

        Parameters
        ----------
        lower_bound, upper_bound : int, Time or Duration
            Of the right timestamp minus the left one; may be negative. A number is milliseconds.

        Raises
        ------
        ConfigurationError
            If a bound is something else, or the lower one is greater.
        """
        bounds = interval_or_ms(lower_bound, "between"), interval_or_ms(upper_bound, "between")
        return IntervalJoined(self._left, self._right, *bounds)


class IntervalJoined:
    """An interval join, to be given its function.

    Notes
    -----
    Flink's ``KeyedStream.IntervalJoined``. Deliberate difference: each call returns a new object and leaves the old one
    as it was.
    """

    def __init__(
        self, left: "KeyedStream", right: "KeyedStream", lower_bound_ms: int, upper_bound_ms: int
    ) -> None:
        self._left = left
        self._right = right
        self._lower_bound_ms = lower_bound_ms
        self._upper_bound_ms = upper_bound_ms
        self._is_lower_bound_inclusive = True
        self._is_upper_bound_inclusive = True
        self._left_late_tag: OutputTag | None = None
        self._right_late_tag: OutputTag | None = None

    def _with(self, **settings: Any) -> "IntervalJoined":
        changed = copy(self)
        for name, value in settings.items():
            setattr(changed, f"_{name}", value)
        return changed

    def lower_bound_exclusive(self) -> "IntervalJoined":
        """Return this without the lower bound itself."""
        return self._with(is_lower_bound_inclusive=False)

    def upper_bound_exclusive(self) -> "IntervalJoined":
        """Return this without the upper bound itself."""
        return self._with(is_upper_bound_inclusive=False)

    def side_output_left_late_data(self, output_tag: OutputTag) -> "IntervalJoined":
        """Return this with left rows that come behind the watermark sent to a side output, as they came.

        Parameters
        ----------
        output_tag : OutputTag

        Raises
        ------
        ConfigurationError
            If it is not an output tag.
        """
        return self._with(left_late_tag=_required_tag(output_tag, "side_output_left_late_data"))

    def side_output_right_late_data(self, output_tag: OutputTag) -> "IntervalJoined":
        """Return this with right rows that come behind the watermark sent to a side output; as the left ones."""
        return self._with(right_late_tag=_required_tag(output_tag, "side_output_right_late_data"))

    def process(
        self,
        process_join_function: ProcessJoinFunction[Any, Any],
        output_type: Schema | TypeInformation | None = None,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> DataStream:
        """Return what a function gives for every pair; it runs row by row.

        A row of either stream waits until the watermark, the lesser one of both streams, says that no row can come
        any more that joins it. Which of two rows came first makes no difference.

        Parameters
        ----------
        process_join_function : ProcessJoinFunction
            Rows are ``flinkcore.common.Row`` with the columns of their stream. Every parallel instance works on a copy.
        output_type, side_outputs, timestamp_column
            As of :meth:`KeyedStream.process`. The timestamp is the greater one of the pair.

        Raises
        ------
        ConfigurationError
            If the function is another one, the lower bound is greater than the upper one, or a type is none.

        Notes
        -----
        Flink's ``KeyedStream.IntervalJoined.process``.
        """
        operation = IntervalJoinOperation(
            self._lower_bound_ms,
            self._upper_bound_ms,
            process_join_function,
            self._is_lower_bound_inclusive,
            self._is_upper_bound_inclusive,
            self._left_late_tag,
            self._right_late_tag,
        )
        left, right = self._left._input(), self._right._input()
        if not is_schema(output_type):
            refuse_columns_of_outputs(side_outputs, timestamp_column)
            return self._left._then(
                ConnectedTransformation(left, right, operation, declared_type(output_type))
            )
        return self._left._then(
            IntervalJoinTransformation(
                left, right, operation, output_type, tuple(side_outputs), timestamp_column
            )
        )


def _required_tag(output_tag: object, call: str) -> OutputTag:
    if not isinstance(output_tag, OutputTag):
        raise ConfigurationError(f"{call} takes an OutputTag, such as OutputTag('late'), not {output_tag!r}")
    return output_tag
