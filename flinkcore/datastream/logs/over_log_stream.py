"""Frames of the rows of each key of an event log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NoReturn

from flinkcore.common.output_tag import OutputTag
from flinkcore.common.time import Interval, bound_ms
from flinkcore.datastream.aggregates import Aggregate
from flinkcore.datastream.graph.declared_type import require_output_tag, with_settings
from flinkcore.datastream.graph.transformations import OverTransformation
from flinkcore.errors import ArgumentTypeError, ConfigurationError

if TYPE_CHECKING:
    from flinkcore.datastream.logs.keyed_log_stream import KeyedLogStream
    from flinkcore.datastream.logs.log_stream import LogStream

MOST_ROWS: Final = 2**31


class OverLogStream:
    """The rows of a log with a frame for each of them; made by :meth:`KeyedLogStream.over`.

    Parameters
    ----------
    stream : KeyedLogStream
    preceding_rows, preceding_ms : int or None
        Rows or ms by which frames go back, or None for all rows before.
    unit : str
        ``"rows"`` or ``"range"``.
    by : str
        ``"event_time"`` or ``"arrival"``.
    """

    def __init__(
        self,
        stream: KeyedLogStream,
        preceding_rows: int | None,
        preceding_ms: int | None,
        unit: str,
        by: str,
    ) -> None:
        self._stream = stream
        self._preceding_rows, self._preceding_ms = preceding_rows, preceding_ms
        self._unit, self._by = unit, by
        self._late_tag: OutputTag | None = None

    if not TYPE_CHECKING:  # a type checker knows that there is no such call

        def __getattr__(self, name: str) -> NoReturn:
            from flinkcore.datastream.wrong_calls import refuse_call_of_frames  # knows the streams

            refuse_call_of_frames(name)

    def side_output_late_data(self, output_tag: OutputTag) -> OverLogStream:
        """Return these frames with a side output of late rows, which are counted and dropped otherwise.

        Parameters
        ----------
        output_tag : OutputTag
            Tag for :meth:`LogStream.get_side_output`, whose rows are as they came.

        Raises
        ------
        ConfigurationError
            If rows are ordered by arrival, so that none is late, or it is not a tag.
        """
        if self._by == "arrival":
            raise ConfigurationError(
                "over(by='arrival').side_output_late_data(...): no row is late by arrival. Leave it out, or take "
                "by='event_time'"
            )
        return with_settings(self, late_tag=require_output_tag(output_tag, "side_output_late_data"))

    def aggregate(self, *unnamed: Aggregate, **aggregates: Aggregate) -> LogStream:
        """Return the rows with aggregates over their frames as further columns.

        Parameters
        ----------
        *unnamed
            Refused: an aggregate needs a name.
        **aggregates : Aggregate
            Columns to add, from :mod:`flinkcore.datastream.aggregates`.

        Raises
        ------
        ConfigurationError
            If there is no aggregate, or a value is of another class.
        """
        step = OverTransformation(
            self._stream._input(),
            self._preceding_rows,
            self._preceding_ms,
            self._unit,
            self._by,
            named_aggregates(aggregates, unnamed),
            late_tag=self._late_tag,
        )
        return self._stream._then(step)


def over_frame(
    stream: KeyedLogStream, preceding: int | Interval | None, unit: str | None, by: str
) -> OverLogStream:
    """Return frames of rows; parameters as of :meth:`KeyedLogStream.over`.

    Raises
    ------
    ConfigurationError
        If the frame is negative or not possible.
    """
    if by not in ("event_time", "arrival"):
        raise ConfigurationError(f"over(by=...) is 'event_time' or 'arrival', not {by!r}")
    if unit not in (None, "rows", "range"):
        raise ConfigurationError(f"over(unit=...) is 'rows' or 'range', not {unit!r}")
    is_number = isinstance(preceding, int) and not isinstance(preceding, bool)
    has_rows = is_number or (preceding is None and (unit == "rows" or by == "arrival"))
    own = "rows" if has_rows else "range"
    if unit not in (None, own) or (own == "range" and by == "arrival"):
        raise ConfigurationError(
            f"over({preceding!r}, unit={unit!r}, by={by!r}): a number of rows is a frame of rows, a length of time one "
            "of a range of event time, and by arrival all frames are of rows"
        )
    if preceding is None:
        return OverLogStream(stream, None, None, own, by)
    if own == "range":
        return OverLogStream(stream, None, bound_ms(preceding, "over"), own, by)
    assert isinstance(preceding, int)
    if not 0 <= preceding < MOST_ROWS:
        raise ConfigurationError(f"over({preceding}): from 0 to {MOST_ROWS - 1:,} rows may precede a row")
    return OverLogStream(stream, preceding, None, own, by)


def named_aggregates(
    aggregates: Mapping[str, Aggregate], unnamed: Sequence[object] = ()
) -> tuple[tuple[str, Aggregate], ...]:
    """Return aggregates with their names.

    Raises
    ------
    ConfigurationError
        If no aggregate is given, or one has no name or is not an Aggregate.
    """
    if unnamed:
        raise ArgumentTypeError(f"aggregate got {unnamed[0]} without a name: write aggregate(n=count())")
    if not aggregates:
        raise ConfigurationError("aggregate needs at least one: aggregate(n=count())")
    for name, aggregate in aggregates.items():
        if not isinstance(aggregate, Aggregate):
            raise ArgumentTypeError(
                f"aggregate({name}=...) takes an aggregate such as count() or sum_('price'), not {aggregate!r}"
            )
    return tuple(aggregates.items())
