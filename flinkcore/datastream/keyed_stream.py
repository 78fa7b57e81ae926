"""Keyed streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from flinkcore._internal.values.row import Row
from flinkcore.common.typeinfo import TypeInformation, Types
from flinkcore.datastream.data_stream import DataStream
from flinkcore.datastream.functions import (
    KeyedProcessFunction,
    KeySelector,
    ReduceFunction,
    require_function,
)
from flinkcore.datastream.functions.rolling_aggregation import RollingAggregation
from flinkcore.datastream.graph.declared_type import declared_type
from flinkcore.datastream.graph.element_transformations import (
    ElementProcessTransformation,
    KeyedCollectTransformation,
    KeyedTransformation,
    KeyedValuesTransformation,
    Partitioning,
    ReduceTransformation,
)
from flinkcore.datastream.graph.key_columns import KeyColumns
from flinkcore.datastream.graph.transformations import PartitionTransformation, Transformation
from flinkcore.datastream.stream import WithoutStep, instead_of_key, refused_on_keys
from flinkcore.errors import ArgumentTypeError, ConfigurationError

if TYPE_CHECKING:
    from flinkcore.datastream.interval_joins import IntervalJoin
    from flinkcore.datastream.window import WindowAssigner
    from flinkcore.datastream.windowed_streams import WindowedStream


class _WithKey(KeyedProcessFunction):
    """Puts its key before each element, as PyFlink collects a keyed stream."""

    def process_element(self, value: Any, ctx: Any) -> Iterator[Row]:
        yield Row(f0=ctx.get_current_key(), f1=value)


def _itself(value: Any) -> Any:
    return value


class KeyedStream(WithoutStep, DataStream):
    """A stream of single elements partitioned by key.

    Parameters
    ----------
    stream : DataStream
    key_columns : tuple of str
        Fields that make up the key; empty if a function returns it.
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
            return PartitionTransformation(self._transformation, KeyColumns(self._key_columns))
        assert self._key_type is not None
        return KeyedTransformation(self._transformation, self._key_selector, self._key_type)

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
        """Return this stream cut into windows of a number of elements per key.

        Parameters
        ----------
        size : int
            Elements of a window, at least 1.
        slide : int
            Elements from the start of a window to that of the next one; 0: the size, so that windows do not overlap.

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
        from flinkcore.datastream.window.count_windows import count_assigner

        return self.window(count_assigner(size, slide))

    def interval_join(self, other_stream: KeyedStream) -> IntervalJoin:
        """Return this stream (left) and another one (right), to be joined where timestamps of a key are close.

        Parameters
        ----------
        other_stream : KeyedStream
            With keys of the same type.

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
        ... ).process(MyJoin(), Types.STRING())  # doctest: +SKIP
        """
        from flinkcore.datastream.interval_joins import IntervalJoin  # made of this class

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

    def process(  # type: ignore[override]
        self, func: KeyedProcessFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Return the results of a function for the elements of each key, and for the timers that it registers.

        Parameters
        ----------
        func : KeyedProcessFunction
            Every subtask works on a copy. Processing time is that of the job's clock.
        output_type : TypeInformation, optional
            Type of the results; any Python object by default.

        Raises
        ------
        ConfigurationError
            If the function is of another class, or the type is not a type.

        Notes
        -----
        Follows ``pyflink.datastream.KeyedStream.process``.
        """
        if not isinstance(func, KeyedProcessFunction):
            raise ArgumentTypeError(f"process on a keyed stream takes a KeyedProcessFunction, not {func!r}")
        return self._then(ElementProcessTransformation(self._input(), func, declared_type(output_type)))

    def _repartition(self, partitioning: Partitioning) -> DataStream:
        raise ConfigurationError(
            f"{partitioning.value} cannot take the place of a key: call it on the stream before key_by"
        )

    partition_custom = instead_of_key("partition_custom")
    broadcast = instead_of_key("broadcast")
    cache = refused_on_keys("Cache")
