"""Joins of keyed streams of logs, over columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from flinkcore._internal.arrow.expressions import Expression
from flinkcore.common.time import Interval, interval_ms
from flinkcore.datastream.graph.join_operations import (
    JoinOperation,
    RegularJoin,
    TemporalJoin,
    TimeIntervalJoin,
    WindowJoin,
)
from flinkcore.datastream.graph.transformations import JoinTransformation, Transformation
from flinkcore.datastream.logs.log_stream import LogStream
from flinkcore.errors import ArgumentTypeError

if TYPE_CHECKING:
    from flinkcore.common.output_tag import OutputTag
    from flinkcore.datastream.logs.keyed_log_stream import KeyedLogStream
    from flinkcore.datastream.window import WindowAssigner


class KeyedJoins(LogStream):
    """Joins of a keyed stream with another one, as Flink SQL has them: natively, without a Python object per row.

    Results have the columns of the left row, those of the right one (with a suffix where both have a name), and nulls
    for a row that is missing. Keys are compared in order: give both ``key_by`` the same number of columns. Keys with
    nulls match nothing unless ``nulls_equal`` is true; ``key_by(..., null_keys=True)`` lets them in. A condition on
    both rows is a further part of what matches.
    """

    def _input(self) -> Transformation:
        raise NotImplementedError

    def _joined(self, other: KeyedLogStream, operation: JoinOperation) -> LogStream:
        from flinkcore.datastream.logs.keyed_log_stream import KeyedLogStream

        self._require_stream(other, operation.call)
        if not isinstance(other, KeyedLogStream):
            raise ArgumentTypeError(
                f"{operation.call} takes a keyed stream: call key_by on the other one, too"
            )
        return self._then(JoinTransformation(self._input(), other._input(), operation))

    def join_interval(
        self,
        other: KeyedLogStream,
        lower: Interval,
        upper: Interval,
        how: Literal["inner", "left", "right", "full"] = "inner",
        *,
        where: Expression | None = None,
        suffix: str = "_right",
        nulls_equal: bool = False,
    ) -> LogStream:
        """Return pairs of rows of a key whose timestamps are close.

        Parameters
        ----------
        other : KeyedLogStream
            Right stream.
        lower, upper : Time, Duration, datetime.timedelta or int (ms)
            Bounds of the right timestamp minus the left one, both included; may be negative.
        how : str
            ``"left"``, ``"right"`` and ``"full"`` also return rows without a match, once the watermark has passed all
            rows that could match them.
        where : pyarrow.compute.Expression, optional
            Condition on columns of both rows, named as in the results; null is not true.
        suffix : str
            Added to names of right columns that left ones have, too.
        nulls_equal : bool
            Whether keys with nulls match each other.

        Returns
        -------
        LogStream
            A pair has the later of both timestamps. Operators that follow see watermarks that are lower by the larger
            bound, so that no result is late for them.

        Raises
        ------
        ConfigurationError
            If the lower bound is greater than the upper one, or a setting is out of its range.

        Notes
        -----
        Flink SQL's interval join (``RowTimeIntervalJoin``): no row is too late; a late one is joined with the rows that
        are still kept. :meth:`interval_join` is that of the DataStream API, with a function and late rows.
        Deliberate difference: see ``_native/interval_join.pyx``.

        Examples
        --------
        >>> orders.key_by("id").join_interval(
        ...     payments.key_by("order"), Time.seconds(0), Time.hours(1), how="left"
        ... )  # doctest: +SKIP
        """
        first, last = (interval_ms(bound, "join_interval") for bound in (lower, upper))
        return self._joined(other, TimeIntervalJoin(how, where, suffix, nulls_equal, first, last))

    def join_window(
        self,
        other: KeyedLogStream,
        window: WindowAssigner[Any, Any],
        how: Literal["inner", "left", "right", "full", "semi", "anti"] = "inner",
        *,
        where: Expression | None = None,
        suffix: str = "_right",
        nulls_equal: bool = False,
        left_late_to: OutputTag | None = None,
        right_late_to: OutputTag | None = None,
    ) -> LogStream:
        """Return pairs of rows of a key that are in the same window, when the watermark passes its end.

        Parameters
        ----------
        window : WindowAssigner
            Tumbling, sliding or cumulative windows of event time, or windows of local time.
        how : str
            ``"semi"`` returns left rows with a match, ``"anti"`` those without one, each with its own columns alone.
        other, where, suffix, nulls_equal
            As of :meth:`join_interval`.
        left_late_to, right_late_to : OutputTag, optional
            Side outputs of rows of each stream all of whose windows have fired, as they came; see
            :meth:`LogStream.get_side_output`. By default they are counted and dropped.

        Returns
        -------
        LogStream
            With the columns ``window_start`` and ``window_end`` last. Results have the last moment of the window as
            their timestamp.

        Raises
        ------
        ConfigurationError
            If the windows are others, a setting is out of its range, or both side outputs have one name.

        Notes
        -----
        Flink SQL's window join (``WindowJoinOperator``).

        Examples
        --------
        >>> persons.key_by("id").join_window(
        ...     auctions.key_by("seller"), TumblingEventTimeWindows.of(Time.seconds(10)), how="semi"
        ... )  # doctest: +SKIP
        """
        from flinkcore.datastream.window.window_assigner import require_assigner

        require_assigner(window, "join_window")
        operation = WindowJoin(
            how,
            where,
            suffix,
            nulls_equal,
            window,
            left_late_tag=left_late_to,
            right_late_tag=right_late_to,
        )
        return self._joined(other, operation)

    def join_regular(
        self,
        other: KeyedLogStream,
        how: Literal["inner", "left", "right", "full", "semi", "anti"] = "inner",
        *,
        where: Expression | None = None,
        suffix: str = "_right",
        nulls_equal: bool = False,
        changes: bool = False,
    ) -> LogStream:
        """Return pairs of rows of a key, whenever they come; a row is kept until it is withdrawn, or the log ends.

        Rows of a stream with a column ``row_kind`` are changes: ``-U`` and ``-D`` withdraw the first row that equals
        them, with its pairs. One that equals none changes nothing.

        Parameters
        ----------
        how : str
            ``"semi"`` returns left rows with a match, ``"anti"`` those without one, each with its own columns alone.
        changes : bool
            By default rows without a match come when the log ends, and if a stream is one of changes, all results do.
            If true, they come at once, as ``+I``, and are withdrawn as ``-D`` when their first match comes; the kind is
            in a last column ``row_kind``.
        other, where, suffix, nulls_equal
            As of :meth:`join_interval`.

        Returns
        -------
        LogStream
            Results have the timestamp of the row that made them.

        Raises
        ------
        ConfigurationError
            If a setting is out of its range.

        Notes
        -----
        Flink SQL's regular join (``StreamingJoinOperator``, ``StreamingSemiAntiJoinOperator``). Deliberate difference:
        rows match in order of their coming, and a row without a match comes or goes next to the pair that decides it.

        Examples
        --------
        >>> bids.key_by("auction").join_regular(auctions.key_by("id"))  # doctest: +SKIP
        """
        return self._joined(other, RegularJoin(how, where, suffix, nulls_equal, changes))

    def join_temporal(
        self,
        other: KeyedLogStream,
        how: Literal["inner", "left"] = "inner",
        *,
        where: Expression | None = None,
        suffix: str = "_right",
        nulls_equal: bool = False,
    ) -> LogStream:
        """Return each row with the version of its key that is valid at its event time.

        The rows of the other stream are versions: each is valid from its event time until that of the next one. A row
        waits for the watermark, so that all versions that came in time are known. Late rows are joined, too, with the
        versions that are still kept: the newest one that the watermark has reached, and later ones.

        Parameters
        ----------
        other : KeyedLogStream
            Versions; of several with one event time, the last to arrive counts.
        how : str
            ``"left"`` also returns rows without a version.
        where, suffix, nulls_equal
            As of :meth:`join_interval`.

        Returns
        -------
        LogStream
            Results have the timestamp of the left row; those of a key that are due together come in order of arrival.

        Raises
        ------
        ConfigurationError
            If a setting is out of its range.

        Notes
        -----
        Flink SQL's ``FOR SYSTEM_TIME AS OF`` (``TemporalRowTimeJoinOperator``).

        Examples
        --------
        >>> orders.key_by("currency").join_temporal(rates.key_by("currency"), how="left")  # doctest: +SKIP
        """
        return self._joined(other, TemporalJoin(how, where, suffix, nulls_equal))
