"""Streams of event logs that are partitioned by key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, overload

from flinkcore._internal.arrow.schemas import Schema
from flinkcore.common import Duration, Time
from flinkcore.common.output_tag import OutputTag
from flinkcore.datastream.aggregates import Aggregate
from flinkcore.datastream.data_stream import DataStream
from flinkcore.datastream.functions import (
    KeyedBatchProcessFunction,
    KeyedProcessFunction,
    ReduceFunction,
)
from flinkcore.datastream.graph.column_arguments import require_boolean
from flinkcore.datastream.graph.declared_type import gives_elements, named_outputs
from flinkcore.datastream.graph.key_columns import KeyColumns
from flinkcore.datastream.graph.top_rows import Rank, require_dedup_arguments, top_step
from flinkcore.datastream.graph.transformations import (
    BatchProcessTransformation,
    DeduplicateTransformation,
    GroupAggregateTransformation,
    PartitionTransformation,
    ProcessTransformation,
    Transformation,
)
from flinkcore.datastream.keyed_stream import KeyedStream
from flinkcore.datastream.logs.keyed_joins import KeyedJoins
from flinkcore.datastream.logs.log_stream import LogStream
from flinkcore.datastream.stream import WithoutStep, instead_of_key
from flinkcore.errors import ArgumentTypeError

if TYPE_CHECKING:
    from flinkcore.datastream.logs.interval_log_joins import IntervalLogJoin
    from flinkcore.datastream.logs.over_log_stream import OverLogStream
    from flinkcore.datastream.logs.windowed_log_streams import WindowedLogStream
    from flinkcore.datastream.window import WindowAssigner


class KeyedLogStream(WithoutStep, KeyedJoins):
    """A stream of an event log partitioned by key; calls that do not depend on keys apply to the stream before.

    Parameters
    ----------
    stream : LogStream
    key : KeyColumns
        Columns that make up the key; none: all rows have the same key.

    Notes
    -----
    The columnar counterpart of :class:`KeyedStream`; made by :meth:`LogStream.key_by`.
    """

    def __init__(self, stream: LogStream, key: KeyColumns) -> None:
        super().__init__(stream._environment, stream._transformation)
        self._key = key

    def _input(self) -> Transformation:
        return PartitionTransformation(self._transformation, self._key)

    def _collected(self) -> Transformation:
        return self.elements()._collected()

    def elements(self) -> KeyedStream:
        """Return the rows as a keyed stream of single elements; see :meth:`LogStream.elements`."""
        return KeyedStream(super().elements(), self._key.names)

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> WindowedLogStream:
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
        from flinkcore.datastream.logs.windowed_log_streams import WindowedLogStream

        return WindowedLogStream(self, window_assigner)

    def count_window(self, size: int, slide: int = 0) -> WindowedLogStream:
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

    def interval_join(self, other_stream: KeyedLogStream) -> IntervalLogJoin:
        """Return this stream (left) and another one (right), to be joined where timestamps of a key are close.

        Parameters
        ----------
        other_stream : KeyedLogStream
            With as many key columns as this one, of the same types.

        Raises
        ------
        ConfigurationError
            If it is not a keyed stream of a log of this environment.

        Notes
        -----
        Flink's ``KeyedStream.intervalJoin``, which PyFlink does not have.

        Examples
        --------
        >>> clicks.interval_join(orders).between(
        ...     Time.seconds(-5), Time.seconds(10)
        ... ).process(MyJoin(), schema)  # doctest: +SKIP
        """
        from flinkcore.datastream.logs.interval_log_joins import IntervalLogJoin  # made of this class

        self._require_stream(other_stream, "interval_join")
        if not isinstance(other_stream, KeyedLogStream):
            raise ArgumentTypeError("interval_join takes a keyed stream: call key_by on the other one, too")
        return IntervalLogJoin(self, other_stream)

    def reduce(self, func: ReduceFunction[Any] | Callable[[Any, Any], Any]) -> DataStream:
        """Return for each row the reduction of all rows of its key up to it; as :meth:`KeyedStream.reduce`."""
        return self.elements().reduce(func)

    @overload  # type: ignore[override]
    def process(
        self,
        func: KeyedProcessFunction | KeyedBatchProcessFunction,
        output_type: Schema,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> LogStream: ...

    @overload
    def process(self, func: KeyedProcessFunction) -> DataStream: ...

    def process(
        self,
        func: KeyedProcessFunction | KeyedBatchProcessFunction,
        output_type: Schema | None = None,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> LogStream | DataStream:
        """Return the results of a function for the rows of each key, and for the timers that it registers.

        Rows are ``flinkcore.common.Row`` with the columns of this stream, in the order of the replay. Processing time
        is the replay clock. Every subtask works on a copy of the function.

        Parameters
        ----------
        func : KeyedProcessFunction or KeyedBatchProcessFunction
            The latter gets Arrow batches of rows of many keys.
        output_type : pyarrow.Schema, optional
            The columns of the results. A result is a Row, a tuple or list in the order of the columns, or a dict; with
            a single column also the bare value, and only that if the column is a list, struct or map. Integers for a
            timestamp column are in that column's unit: ``ctx.timestamp()`` fits ``timestamp('ms')``. Without a schema,
            the results are single elements, as of :meth:`KeyedStream.process`.
        side_outputs : sequence of OutputTag
            Side outputs of the function, each with a schema as its `type_info`; those that are taken by
            :meth:`get_side_output` need not be listed. Elements for other tags are counted and dropped, as in Flink.
        timestamp_column : str, optional
            Name of an additional last column of all outputs, with the timestamps of the records; null for a record
            without one, such as a result of a processing-time timer in the main output. Not for functions over batches.

        Raises
        ------
        ConfigurationError
            If the function is of another class, or a type is not a schema.

        Notes
        -----
        Follows ``pyflink.datastream.KeyedStream.process``.
        """
        if not isinstance(func, KeyedProcessFunction | KeyedBatchProcessFunction):
            raise ArgumentTypeError(
                "process on a keyed stream takes a KeyedProcessFunction or a KeyedBatchProcessFunction, "
                f"not {func!r}"
            )
        if isinstance(func, KeyedProcessFunction) and gives_elements(
            "process", output_type, side_outputs, timestamp_column
        ):
            return self.elements().process(func)
        is_over_batches = isinstance(func, KeyedBatchProcessFunction)
        transformation = BatchProcessTransformation if is_over_batches else ProcessTransformation
        return self._then(
            transformation(self._input(), func, output_type, named_outputs(side_outputs), timestamp_column)
        )

    def deduplicate(
        self,
        keep: Literal["first", "last"] = "first",
        by: Literal["event_time", "arrival"] = "event_time",
        *,
        changes: bool = False,
        late_to: OutputTag | None = None,
    ) -> LogStream:
        """Return one row of each key, with all its columns.

        Rows with a column ``row_kind`` are changes, of which the last by arrival can be kept: a row that equals the one
        before it changes nothing, and ``-U`` and ``-D`` withdraw the row of their key, whatever their other columns
        are.

        Parameters
        ----------
        keep : str
            ``"first"`` or ``"last"``.
        by : str
            ``"event_time"`` or ``"arrival"``. Of rows with the same event time, the first to arrive is the first, and
            the last to arrive the last.
        changes : bool
            By default each key has one result: the first row by event time comes once the watermark has reached it, the
            first by arrival at once, and the last row when the log ends. If true, the row comes at once, as ``+I``, and
            when another one replaces it, the old row comes as ``-U`` and the new one as ``+U``, in a last column
            ``row_kind``.
        late_to : OutputTag, optional
            Side output of rows that are late, as they came; see :meth:`LogStream.get_side_output`. By default they are
            counted and dropped.

        Raises
        ------
        ConfigurationError
            If an argument is another one, or there is a side output of late rows and none can be late.

        Notes
        -----
        Flink SQL's ``ROW_NUMBER() OVER (PARTITION BY key ORDER BY time) = 1``. The first row by event time follows
        ``RowTimeDeduplicateKeepFirstRowFunction``: rows behind the watermark are late, counted and dropped. Changes
        follow ``RowTimeDeduplicateFunction``, which drops none. Of changes it is the changelog normalization of Flink
        (``DeduplicateFunctionHelper.processLastRowOnChangelog``). Deliberate difference: by arrival, a row that is no
        change and equals the last one replaces it, too.

        Examples
        --------
        >>> orders.key_by("id").deduplicate(keep="last")  # doctest: +SKIP
        """
        require_dedup_arguments(keep, by, changes, late_to)
        return self._then(DeduplicateTransformation(self._input(), keep, by, changes, late_tag=late_to))

    def top(
        self,
        n: int,
        by: str | Sequence[str],
        *,
        descending: bool | Sequence[bool] = True,
        nulls_last: bool | Sequence[bool] | None = None,
        rank: Rank = "row_number",
        rank_column: str | None = "rank",
        skip: int = 0,
        changes: bool = False,
        window_end: str | None = None,
        late_to: OutputTag | None = None,
    ) -> LogStream:
        """Return the highest rows of each key, with all their columns and their rank.

        Rows with a column ``row_kind`` are changes: ``-U`` and ``-D`` withdraw the first row that equals them, and the
        next one moves up. One that equals none changes nothing. All rows of a key are kept then.

        Parameters
        ----------
        n : int
            Number of rows, or of ranks, of each key; at least 1.
        by : str or list of str
            Columns that order the rows, the first one before the others. Of equal rows, the one that arrived first is
            higher.
        descending : bool or list of bool
            Whether the highest values come first, for all columns or for each.
        nulls_last : bool or list of bool, optional
            Whether nulls come after all values, or before them. By default a null is less than any value, as in Flink.
        rank : str
            ``"row_number"``; with ``"rank"`` or ``"dense_rank"``, equal rows have equal ranks, and results are all rows
            whose rank is at most `n`: ``top(1, by="price", rank="rank")`` has all bids of the highest price.
        rank_column : str or None
            Name of the column with the rank (int64), or None if there should not be one.
        skip : int
            Number of the highest rows, or ranks, to leave out before these.
        changes : bool
            By default the rows come when the log ends. If true, they come at once, with a last column ``row_kind``:
            ``+I`` for a row that enters, ``-D`` for one that leaves, ``-U`` and ``+U`` where another row takes a rank.
        window_end : str, optional
            Column with the end of the window to which each row belongs, such as ``"window_end"`` of results of windows.
            The rows of each key *and window* come when the watermark has reached its end; rows that come later are
            late.
        late_to : OutputTag, optional
            Side output of rows that are late, as they came; see :meth:`LogStream.get_side_output`. By default they are
            counted and dropped.

        Raises
        ------
        ConfigurationError
            If an argument is another one.

        Notes
        -----
        Flink SQL's Top-N and window Top-N. Changes follow ``AppendOnlyTopNFunction`` and ``FastTop1Function``, of rows
        that are changes ``RetractableTopNFunction``; with ``rank_column=None`` they are fewer, as there. Flink streams
        row numbers alone: changes of ``"rank"`` and ``"dense_rank"`` go from the higher rows to the lower, and the new
        row comes last. NaN is greater than all numbers.

        Examples
        --------
        >>> bids.key_by("auction").top(10, by="price")  # doctest: +SKIP
        """
        return self._then(
            top_step(
                self._input(),
                n,
                by,
                descending=descending,
                nulls_last=nulls_last,
                rank=rank,
                rank_column=rank_column,
                skip=skip,
                changes=changes,
                window_end=window_end,
                late_to=late_to,
            )
        )

    def over(
        self,
        preceding: int | Time | Duration | timedelta | None = None,
        *,
        unit: Literal["rows", "range"] | None = None,
        by: Literal["event_time", "arrival"] = "event_time",
    ) -> OverLogStream:
        """Return this stream with a frame for each row: the rows of its key before it, and the row itself.

        Call ``aggregate`` on the result, which adds a column for each aggregate. By event time, rows wait until the
        watermark has reached them, and come by timestamp, rows of equal timestamps in the order in which they arrived.

        Parameters
        ----------
        preceding : int or Time, optional
            Start of a frame: a number of rows before its row, 0 for the row alone, or a length of time (Time, Duration
            or timedelta). By default a frame has all rows before.
        unit : str, optional
            ``"rows"``: a frame ends with its row. ``"range"``: it ends with the last row of the same timestamp, so that
            rows of equal timestamps have equal results. By default that of `preceding`, and ``"range"`` if that is
            None, as in SQL; by arrival always ``"rows"``.
        by : str
            ``"event_time"``, or ``"arrival"``: rows come at once, in the order in which they arrive, for which a frame
            cannot be a length of time.

        Raises
        ------
        ConfigurationError
            If the frame is negative or not possible.

        Notes
        -----
        Flink SQL's ``agg(...) OVER (PARTITION BY key ORDER BY time ROWS | RANGE BETWEEN preceding AND CURRENT ROW)``,
        after ``RowTimeRowsBoundedPrecedingFunction``, ``RowTimeRangeBoundedPrecedingFunction`` and
        ``AbstractRowTimeUnboundedPrecedingOver``. Late rows are counted and dropped: with all rows before, those at or
        behind the watermark. A bounded frame drops only rows at or before the last timestamp of their key that has come
        up; other late rows come with the next watermark. As in Flink, it also drops timestamps up to 0 (1970), and a
        frame of time forgets a key that has had no rows for one and a half times its length. Sums and means of floats
        subtract what leaves a frame, as in Flink, so that they may differ from a new sum in their last bits, and a NaN
        stays. Deliberate difference: rows that one watermark lets through come by timestamp across keys.

        Examples
        --------
        >>> from flinkcore.datastream.aggregates import mean
        >>> auctions.key_by("seller").over(9).aggregate(mean_price=mean("price"))  # doctest: +SKIP
        """
        from flinkcore.datastream.logs.over_log_stream import over_frame

        return over_frame(self, preceding, unit, by)

    def aggregate(self, *unnamed: Aggregate, changes: bool = False, **aggregates: Aggregate) -> LogStream:
        """Return aggregates over all rows of each key, without windows.

        Parameters
        ----------
        *unnamed
            Refused: an aggregate needs a name.
        changes : bool
            By default each key has one row, when the log ends. If true, each row of the stream gives the change of its
            key's result at once: ``+I`` the first one; then the result before as ``-U`` and the new one as ``+U``, in a
            last column ``row_kind``, and nothing if both are the same.
        **aggregates : Aggregate
            Columns of the results after those of the key, from :mod:`flinkcore.datastream.aggregates`.

        Raises
        ------
        ConfigurationError
            If there is no aggregate, or one is not an Aggregate.

        Notes
        -----
        Flink SQL's ``GROUP BY``, after ``GroupAggFunction``. Rows with a column ``row_kind`` are changes: ``-U`` and
        ``-D`` are subtracted, by count, sum, mean, min, max, count_distinct, first, last and collect, and a key that
        loses its last row gives ``-D``. A minimum, maximum, first or last value then keeps all values of its key, as
        ``MinWithRetractAggFunction`` and ``FirstValueWithRetractAggFunction`` do.
        Order and watermarks make no difference, and no row is late.

        Examples
        --------
        >>> from flinkcore.datastream.aggregates import mean
        >>> bids.key_by("category").aggregate(mean_price=mean("price"), changes=True)  # doctest: +SKIP
        """
        from flinkcore.datastream.logs.over_log_stream import named_aggregates

        require_boolean(changes, "aggregate(changes=...)")
        step = GroupAggregateTransformation(self._input(), named_aggregates(aggregates, unnamed), changes)
        return self._then(step)

    broadcast = instead_of_key("broadcast")
