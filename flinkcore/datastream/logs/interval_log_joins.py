"""Two keyed streams of logs that are joined by time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

from flinkcore._internal.arrow.schemas import Schema
from flinkcore.common.output_tag import OutputTag
from flinkcore.datastream.data_stream import DataStream
from flinkcore.datastream.functions import ProcessJoinFunction
from flinkcore.datastream.graph.declared_type import declared_type, gives_elements, named_outputs
from flinkcore.datastream.graph.element_transformations import ConnectedTransformation
from flinkcore.datastream.graph.transformations import IntervalJoinTransformation
from flinkcore.datastream.interval_joins import JoinInTime, JoinWithinBounds
from flinkcore.datastream.logs.keyed_log_stream import KeyedLogStream
from flinkcore.datastream.logs.log_stream import LogStream


class IntervalLogJoin(JoinInTime[KeyedLogStream, "IntervalLogJoined"]):
    """Two keyed streams of logs to be joined by time; :meth:`between` sets the interval.

    Notes
    -----
    The columnar counterpart of :class:`IntervalJoin`; made by :meth:`KeyedLogStream.interval_join`.
    """

    def _within(self, lower_bound_ms: int, upper_bound_ms: int) -> IntervalLogJoined:
        return IntervalLogJoined(self._left, self._right, lower_bound_ms, upper_bound_ms)


class IntervalLogJoined(JoinWithinBounds[KeyedLogStream]):
    """An interval join of logs that lacks its function; each call returns a new object."""

    @overload
    def process(
        self,
        process_join_function: ProcessJoinFunction[Any, Any],
        output_type: Schema,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> LogStream: ...

    @overload
    def process(self, process_join_function: ProcessJoinFunction[Any, Any]) -> DataStream: ...

    def process(
        self,
        process_join_function: ProcessJoinFunction[Any, Any],
        output_type: Schema | None = None,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> LogStream | DataStream:
        """Return the results of a function for every pair; it runs row by row.

        A row of either stream is kept until the watermark, the minimum of both streams, has passed the timestamps of
        all rows that could join it. The order in which two rows arrive makes no difference.

        Parameters
        ----------
        process_join_function : ProcessJoinFunction
            Rows are ``flinkcore.common.Row`` with the columns of their stream. Every subtask works on a copy.
        output_type, side_outputs, timestamp_column
            As of :meth:`KeyedLogStream.process`. Results have the greater timestamp of the pair.

        Raises
        ------
        ConfigurationError
            If the function is of another class, the lower bound is greater than the upper one, or a type is not a
            schema.

        Notes
        -----
        Flink's ``KeyedStream.IntervalJoined.process``.
        """
        operation = self._operation(process_join_function)
        if gives_elements("process", output_type, side_outputs, timestamp_column):
            left, right = self._left.elements(), self._right.elements()
            return left._then(
                ConnectedTransformation(left._input(), right._input(), operation, declared_type(None))
            )
        return self._left._then(
            IntervalJoinTransformation(
                self._left._input(),
                self._right._input(),
                operation,
                output_type,
                named_outputs(side_outputs),
                timestamp_column,
            )
        )
