"""Keyed streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from flinkcore._internal.arrow.schemas import Schema, is_schema
from flinkcore._internal.values.row import Row
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.typeinfo import TypeInformation, Types
from flinkcore.datastream.data_stream import DataStream
from flinkcore.datastream.functions import (
    KeyedBatchProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    ReduceFunction,
    require_function,
)
from flinkcore.datastream.functions.rolling_aggregation import RollingAggregation
from flinkcore.datastream.graph.declared_type import declared_type, named_outputs, refuse_columns_of_outputs
from flinkcore.datastream.graph.element_transformations import (
    ElementProcessTransformation,
    KeyedCollectTransformation,
    KeyedTransformation,
    KeyedValuesTransformation,
    Partitioning,
    ReduceTransformation,
)
from flinkcore.datastream.graph.transformations import (
    BatchProcessTransformation,
    PartitionTransformation,
    ProcessTransformation,
    Transformation,
)
from flinkcore.errors import ArgumentTypeError, ConfigurationError

if TYPE_CHECKING:
    from flinkcore.datastream.joined_streams import IntervalJoin
    from flinkcore.datastream.window import WindowAssigner
    from flinkcore.datastream.windowed_streams import WindowedStream


class _WithKey(KeyedProcessFunction):
    """Puts its key before each element, as PyFlink collects a keyed stream."""

    def process_element(self, value: Any, ctx: Any) -> Iterator[Row]:
        yield Row(f0=ctx.get_current_key(), f1=value)


def _itself(value: Any) -> Any:
    return value


def _not_of_keyed_streams(what: str) -> Any:
    """Return a method of steps, which a keyed stream is not."""

    def refuse(self: KeyedStream, *arguments: Any) -> NoReturn:
        raise ConfigurationError(
            f"{what} for KeyedStream is not supported: call it on the stream before key_by, or on the step behind it"
        )

    refuse.__doc__ = "Raise a ConfigurationError: a keyed stream has no step of its own."
    return refuse


class KeyedStream(DataStream):
    """A stream partitioned by key.

    Parameters
    ----------
    stream : DataStream
    key_columns : tuple of str
        Columns that make up the key; empty if a function returns it.
    key_selector : KeySelector or callable, optional
    key_type : TypeInformation, optional
        Type of the function's keys.

    Notes
    -----
    Follows ``pyflink.datastream.KeyedStream``: calls that do not depend on keys apply to the stream before `key_by`.
    Its elements are collected, and go to a Sink, as Rows of the key, ``f0``, and the element, ``f1``; `print`,
    `add_sink`, `union` and `project` take the elements alone.
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

    set_parallelism = _not_of_keyed_streams("Set parallelism")
    set_max_parallelism = _not_of_keyed_streams("Set max parallelism")
    force_non_parallel = _not_of_keyed_streams("Set force non-parallel")
    name = _not_of_keyed_streams("Set name")
    get_name = _not_of_keyed_streams("Get name")
    uid = _not_of_keyed_streams("Set uid")
    set_uid_hash = _not_of_keyed_streams("Set uid hash")
    set_description = _not_of_keyed_streams("Set description")
    set_buffer_timeout = _not_of_keyed_streams("Set buffer timeout")
    start_new_chain = _not_of_keyed_streams("Start new chain")
    disable_chaining = _not_of_keyed_streams("Disable chaining")
    slot_sharing_group = _not_of_keyed_streams("Setting slot sharing group")
    cache = _not_of_keyed_streams("Cache")

    def _values(self) -> Transformation:
        if self._key_selector is None:
            return self._transformation
        values = KeyedValuesTransformation(self._input(), _itself, self._transformation.element_type)
        return self._then(values)._transformation

    def _collected(self) -> Transformation:
        key_type = declared_type(self._key_type)
        pair = Types.ROW_NAMED(["f0", "f1"], [key_type, self._transformation.element_type])
        return KeyedCollectTransformation(self._input(), _WithKey(), pair)

    def get_type(self) -> TypeInformation:
        """Return the declared type of what is collected and goes to sinks: Rows of the key and the element."""
        return self._collected().element_type

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
        from flinkcore.datastream.windowed_streams import WindowedStream

        return WindowedStream(self, window_assigner)

    def count_window(self, size: int, slide: int = 0) -> WindowedStream:
        """Return this stream cut into windows of a number of rows per key.

        Parameters
        ----------
        size : int
            Rows of a window, at least 1.
        slide : int
            Rows from the start of a window to the start of the next one; 0: the size, so that windows do not overlap.

        Raises
        ------
        ConfigurationError
            If the size is below 1, or the slide negative.

        Notes
        -----
        Follows ``pyflink.datastream.KeyedStream.count_window``: only full windows fire. Java's sliding count windows
        fire at every slide: ``window(GlobalWindows.create())`` with a CountTrigger of the slide and a CountEvictor of
        the size. Both run over columns. If the slide is above the size, the rows between windows are counted in the
        report.
        """
        from flinkcore.datastream.window.count_windows import count_assigner

        return self.window(count_assigner(size, slide))

    def interval_join(self, other_stream: KeyedStream) -> IntervalJoin:
        """Return this stream (left) and another one (right), to be joined where timestamps of a key are close.

        Parameters
        ----------
        other_stream : KeyedStream
            With as many key columns as this one, of the same types.

        Raises
        ------
        ConfigurationError
            If it is not a keyed stream of this environment.

        Notes
        -----
        Flink's ``KeyedStream.intervalJoin``, which PyFlink does not have.

        Examples
        --------
        >>> clicks.interval_join(orders).between(
        ...     Time.seconds(-5), Time.seconds(10)
        ... ).process(MyJoin(), schema)  # doctest: +SKIP
        """
        from flinkcore.datastream.joined_streams import IntervalJoin  # made of this class

        self._require_stream(other_stream, "interval_join")
        if not isinstance(other_stream, KeyedStream):
            raise ArgumentTypeError("interval_join takes a keyed stream: call key_by on the other one, too")
        return IntervalJoin(self, other_stream)

    def reduce(self, func: ReduceFunction[Any] | Callable[[Any, Any], Any]) -> DataStream:
        """Return for each element the reduction of all elements of its key up to it.

        Parameters
        ----------
        func : ReduceFunction or callable
            From two elements to one.

        Raises
        ------
        ConfigurationError
            If it cannot be called.

        Notes
        -----
        Follows ``pyflink.datastream.KeyedStream.reduce``.
        """
        require_function(func, ReduceFunction, "reduce")
        return self._then(ReduceTransformation(self._input(), func, self._transformation.element_type))

    def sum(self, position_to_sum: int | str = 0) -> DataStream:
        """Return for each element the first one of its key, with the sum of a field so far.

        Parameters
        ----------
        position_to_sum : int or str
            Position or name of the field; of elements that are plain numbers, 0.

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
        """Return for each element the one of its key with the smallest value of a field so far; the first of equals."""
        return self._rolling(RollingAggregation.Kind.MIN_BY, position_to_min_by)

    def max_by(self, position_to_max_by: int | str = 0) -> DataStream:
        """Return for each element the one of its key with the largest value of a field so far; the first of equals."""
        return self._rolling(RollingAggregation.Kind.MAX_BY, position_to_max_by)

    def _rolling(self, kind: RollingAggregation.Kind, position: int | str) -> DataStream:
        aggregation = RollingAggregation(kind, position)
        aggregation.check_type(self._transformation.element_type)
        return self.reduce(aggregation)

    def process(
        self,
        func: KeyedProcessFunction | KeyedBatchProcessFunction,
        output_type: Schema = None,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> DataStream:
        """Return the results of a function for the rows of each key, and for the timers that it registers.

        Rows are ``flinkcore.common.Row`` with the columns of this stream, in the order of the replay. Processing time
        is the replay clock. Every subtask works on a copy of the function.

        Parameters
        ----------
        func : KeyedProcessFunction or KeyedBatchProcessFunction
            The latter gets Arrow batches of rows of many keys.
        output_type : pyarrow.Schema or TypeInformation, optional
            A schema: the columns of the results of a columnar job. Any other type, or none, makes the job run element
            by element. With a schema, a result is a Row, a tuple or list in the order of the columns, or a dict; with a
            single column also the bare value, and only that if the column is a list, struct or map. Integers for a
            timestamp column are in that column's unit: ``ctx.timestamp()`` fits ``timestamp('ms')``.
        side_outputs : sequence of OutputTag
            Side outputs of the function, each with a schema as its `type_info`; those that are taken by
            :meth:`get_side_output` need not be listed. Elements for other tags are counted and dropped, as in Flink.
        timestamp_column : str, optional
            Name of an additional last column of all outputs, with the timestamps of the records; null for a record
            without one, such as a result of a processing-time timer in the main output. Not for functions over batches.

        Raises
        ------
        ConfigurationError
            If the function is of another class, or a type is no type.

        Notes
        -----
        Follows ``pyflink.datastream.KeyedStream.process``.
        """
        if not isinstance(func, KeyedProcessFunction | KeyedBatchProcessFunction):
            raise ArgumentTypeError(
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
            transformation(self._input(), func, output_type, named_outputs(side_outputs), timestamp_column)
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
