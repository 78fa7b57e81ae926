"""Streams partitioned by key."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flinkcore.common.output_tag import OutputTag
from flinkcore.common.schemas import Schema
from flinkcore.datastream.data_stream import DataStream
from flinkcore.datastream.functions import KeyedBatchProcessFunction, KeyedProcessFunction
from flinkcore.datastream.transformations import (
    BatchProcessTransformation,
    PartitionTransformation,
    ProcessTransformation,
)
from flinkcore.datastream.window import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
    WindowAssigner,
)
from flinkcore.datastream.window.window_assigner import require_assigner
from flinkcore.datastream.windowed_stream import WindowedStream
from flinkcore.errors import ConfigurationError

if TYPE_CHECKING:
    from flinkcore.datastream.interval_join import IntervalJoin


class KeyedStream(DataStream):
    """A stream partitioned by key.

    Notes
    -----
    Follows ``pyflink.datastream.KeyedStream``: calls inherited from :class:`DataStream` apply to the stream
    before it was keyed.
    """

    def __init__(self, stream: DataStream, key_columns: tuple[str, ...]) -> None:
        super().__init__(stream._environment, stream._transformation)
        self._key_columns = key_columns

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> WindowedStream:
        """Return this stream cut into windows.

        Parameters
        ----------
        window_assigner : WindowAssigner
            From :mod:`flinkcore.datastream.window`.

        Raises
        ------
        ConfigurationError
            If it is not a window assigner.
        """
        return WindowedStream(self, require_assigner(window_assigner, "window"))

    def count_window(self, size: int, slide: int = 0) -> WindowedStream:
        """Return this stream cut into windows of so many rows of a key.

        Parameters
        ----------
        size : int
            Rows of a window, at least 1.
        slide : int
            A window starts at every so many rows; 0: each behind the one before.

        Raises
        ------
        ConfigurationError
            If the size is below 1, or the slide negative.

        Notes
        -----
        Follows ``pyflink.datastream.KeyedStream.count_window``: only full windows fire. Java's sliding count windows
        fire at every slide: ``window(GlobalWindows.create())`` with a CountTrigger of the slide and a CountEvictor of
        the size.
        """
        if slide == 0:
            return self.window(CountTumblingWindowAssigner(size))
        return self.window(CountSlidingWindowAssigner(size, slide))

    def interval_join(self, other_stream: "KeyedStream") -> "IntervalJoin":
        """Return this stream and another one, to be joined where timestamps of a key are close; this is the left one.

        Parameters
        ----------
        other_stream : KeyedStream
            With as many key columns as this one, of the same types.

        Raises
        ------
        ConfigurationError
            If it is no keyed stream of this environment.

        Notes
        -----
        Flink's ``KeyedStream.intervalJoin``, which PyFlink does not have.

        Examples
        --------
        >>> clicks.interval_join(orders).between(
        ...     Time.seconds(-5), Time.seconds(10)
        ... ).process(MyJoin(), schema)  # doctest: +SKIP
        """
        from flinkcore.datastream.interval_join import IntervalJoin  # made of this class

        self._require_stream(other_stream, "interval_join")
        if not isinstance(other_stream, KeyedStream):
            raise ConfigurationError("interval_join takes a keyed stream: call key_by on the other one, too")
        return IntervalJoin(self, other_stream)

    def process(
        self,
        func: KeyedProcessFunction | KeyedBatchProcessFunction,
        output_type: Schema = None,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> DataStream:
        """Return what a function gives for the rows of each key, and for the timers that it registers.

        Rows are ``flinkcore.common.Row`` with the columns of this stream, and come in the order of the replay. The
        replay clock is the processing time. Every parallel instance works on a copy of the function.

        Parameters
        ----------
        func : KeyedProcessFunction or KeyedBatchProcessFunction
            The latter gets Arrow batches of rows of many keys, not rows.
        output_type : pyarrow.Schema
            Columns of the results. A result for a row is a Row, a tuple or list in the order of the columns, or a dict;
            where there is one column only, also the bare value, and that alone where the column is a list, struct or
            map.
        side_outputs : sequence of OutputTag
            Side outputs that are wanted, each with a schema as its `type_info`. One that is asked for by
            :meth:`get_side_output` need not be named here. What the function emits to others is counted and
            dropped, as in Flink.
        timestamp_column : str, optional
            Name of a column that all outputs get after their own, with the timestamps of the records: null where a
            record has none, which is so in the main output of processing-time timers. Not for functions over batches.

        Raises
        ------
        ConfigurationError
            If the function is another one, or a type is missing or no schema.

        Notes
        -----
        Follows ``pyflink.datastream.KeyedStream.process``. Deliberate difference: the type is an Arrow schema, and
        not optional.
        """
        if not isinstance(func, KeyedProcessFunction | KeyedBatchProcessFunction):
            raise ConfigurationError(
                "process on a keyed stream takes a KeyedProcessFunction or a KeyedBatchProcessFunction, "
                f"not {func!r}"
            )
        keyed = PartitionTransformation(self._transformation, self._key_columns)
        is_over_batches = isinstance(func, KeyedBatchProcessFunction)
        transformation = BatchProcessTransformation if is_over_batches else ProcessTransformation
        return DataStream(
            self._environment,
            transformation(keyed, func, output_type, tuple(side_outputs), timestamp_column),
        )
