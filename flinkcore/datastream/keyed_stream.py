"""Streams partitioned by key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from flinkcore.common.output_tag import OutputTag
from flinkcore.common.schemas import Schema, is_schema
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.datastream.data_stream import DataStream
from flinkcore.datastream.declared_type import declared_type, refuse_columns_of_outputs
from flinkcore.datastream.element_transformations import (
    ElementProcessTransformation,
    KeyedTransformation,
    Partitioning,
    ReduceTransformation,
)
from flinkcore.datastream.functions import (
    KeyedBatchProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    ReduceFunction,
    require_function,
)
from flinkcore.datastream.functions.rolling_aggregation import RollingAggregation
from flinkcore.datastream.transformations import (
    BatchProcessTransformation,
    PartitionTransformation,
    ProcessTransformation,
    Transformation,
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

    Parameters
    ----------
    stream : DataStream
    key_columns : tuple of str
        Columns that make up the key; empty if a function gives it.
    key_selector : KeySelector or callable, optional
    key_type : TypeInformation, optional
        Of what the function gives.

    Notes
    -----
    Follows ``pyflink.datastream.KeyedStream``: what is not about keys applies to the stream before it was keyed.
    """

    def __init__(
        self,
        stream: DataStream,
        key_columns: tuple[str, ...],
        key_selector: KeySelector | Callable[[Any], Any] | None = None,
        key_type: TypeInformation | None = None,
    ) -> None:
        super().__init__(stream._environment, stream._transformation)
        self._key_columns = key_columns
        self._key_selector = key_selector
        self._key_type = key_type

    def _input(self) -> Transformation:
        if self._key_selector is None:
            return PartitionTransformation(self._transformation, self._key_columns)
        assert self._key_type is not None
        return KeyedTransformation(self._transformation, self._key_selector, self._key_type)

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
        the size. Both run over columns; rows in no window, where the slide is above the size, are counted.
        """
        if slide == 0:
            return self.window(CountTumblingWindowAssigner(size))
        return self.window(CountSlidingWindowAssigner(size, slide))

    def interval_join(self, other_stream: KeyedStream) -> IntervalJoin:
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

    def reduce(self, func: ReduceFunction[Any] | Callable[[Any, Any], Any]) -> DataStream:
        """Return for each element what it and all before it of its key are reduced to.

        Parameters
        ----------
        func : ReduceFunction or callable
            Of two elements.

        Raises
        ------
        ConfigurationError
            If it cannot be called.

        Notes
        -----
        Follows ``pyflink.datastream.KeyedStream.reduce``.
        """
        require_function(func, ReduceFunction, "reduce")
        return self._then(ReduceTransformation(self._input(), func, self.get_type()))

    def sum(self, position_to_sum: int | str = 0) -> DataStream:
        """Return for each element the one before it of its key, with the sum of a field.

        Parameters
        ----------
        position_to_sum : int or str
            Position or name of the field; 0 is a number itself.

        Raises
        ------
        ConfigurationError
            If it is neither, or elements of the declared type have no such field.
        """
        return self._rolling(RollingAggregation.Kind.SUM, position_to_sum)

    def min(self, position_to_min: int | str = 0) -> DataStream:
        """Return for each element the first one of its key, with the smallest value of a field so far."""
        return self._rolling(RollingAggregation.Kind.MIN, position_to_min)

    def max(self, position_to_max: int | str = 0) -> DataStream:
        """Return for each element the first one of its key, with the largest value of a field so far."""
        return self._rolling(RollingAggregation.Kind.MAX, position_to_max)

    def min_by(self, position_to_min_by: int | str = 0) -> DataStream:
        """Return for each element that of its key with the smallest value of a field so far; the first of equals."""
        return self._rolling(RollingAggregation.Kind.MIN_BY, position_to_min_by)

    def max_by(self, position_to_max_by: int | str = 0) -> DataStream:
        """Return for each element that of its key with the largest value of a field so far; the first of equals."""
        return self._rolling(RollingAggregation.Kind.MAX_BY, position_to_max_by)

    def _rolling(self, kind: RollingAggregation.Kind, position: int | str) -> DataStream:
        aggregation = RollingAggregation(kind, position)
        aggregation.check_type(self.get_type())
        return self.reduce(aggregation)

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
        output_type : pyarrow.Schema or TypeInformation, optional
            A schema names the columns of the results of a columnar job; any other type, or none, makes the job run
            element by element. Of a schema, a result for a row is a Row, a tuple or list in the order of the
            columns, or a dict; where there is one column only, also the bare value, and that alone where the
            column is a list, struct or map. Integers for a timestamp column are in that column's unit:
            ``ctx.timestamp()`` fits ``timestamp('ms')``.
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
            If the function is another one, or a type is none.

        Notes
        -----
        Follows ``pyflink.datastream.KeyedStream.process``.
        """
        if not isinstance(func, KeyedProcessFunction | KeyedBatchProcessFunction):
            raise ConfigurationError(
                "process on a keyed stream takes a KeyedProcessFunction or a KeyedBatchProcessFunction, "
                f"not {func!r}"
            )
        is_over_batches = isinstance(func, KeyedBatchProcessFunction)
        if isinstance(func, KeyedProcessFunction) and not is_schema(output_type):
            refuse_columns_of_outputs(side_outputs, timestamp_column)
            return self._then(ElementProcessTransformation(self._input(), func, declared_type(output_type)))
        if not self._key_columns:
            raise ConfigurationError(
                "an output_type that is a pyarrow.Schema needs a key of columns, key_by('user'), or take a type of "
                "Types such as Types.ROW_NAMED([...], [...])"
            )
        transformation = BatchProcessTransformation if is_over_batches else ProcessTransformation
        return self._then(
            transformation(self._input(), func, output_type, tuple(side_outputs), timestamp_column)
        )

    def _repartition(self, partitioning: Partitioning) -> DataStream:
        raise ConfigurationError(
            f"{partitioning.value} cannot take the place of a key: call it on the stream before key_by"
        )

    def partition_custom(self, partitioner: Any, key_selector: Any) -> DataStream:
        """Raise a ConfigurationError: the key says where elements go."""
        raise ConfigurationError(
            "partition_custom cannot take the place of a key: call it on the stream before key_by"
        )

    def broadcast(self, *descriptors: Any) -> Any:
        """Raise a ConfigurationError: the key says where elements go."""
        raise ConfigurationError(
            "broadcast cannot take the place of a key: call it on the stream before key_by"
        )

    def project(self, *field_indexes: int) -> DataStream:
        """Return tuples with some of the fields of this stream's tuples, without a key."""
        return DataStream(self._environment, self._transformation).project(*field_indexes)
