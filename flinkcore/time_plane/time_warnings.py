"""Doubts about the times of a log: their units, the order of arrivals, very many ticks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.column_ops import output_schema, shown_column
from flinkcore._internal.arrow.time_units import TIME_UNITS, UNIT_NAMES, TimeUnit, looks_dated
from flinkcore._internal.show.times import dated
from flinkcore.common.split_origin import FILE
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.errors import ConfigurationError
from flinkcore.log.event_log import EventLog
from flinkcore.log.event_reader import arrival_column
from flinkcore.time_plane.split_operator import own_generator
from flinkcore.time_plane.tick_clock import TickClock
from flinkcore.time_plane.timed_log import TimedLog
from flinkcore.time_plane.timeline import SplitTimes

_USUAL_PERCENT = 1
"""Some events go back in most logs, as writers of several threads make them."""


@dataclass(frozen=True)
class ReadTimes:
    """The event times or the arrivals of a log, as they were read.

    Attributes
    ----------
    setting : str
        "timestamp" or "arrival".
    kind : pyarrow.DataType
        Type of the column.
    column : str
        Name of the column in messages.
    is_computed : bool
        Whether that is the text of an expression.
    unit : {"s", "ms", "us", "ns"} or None
        Unit that was given.
    least_ms, greatest_ms : int
        All times lie between them.
    named_elsewhere : bool
        Whether it is the watermark strategy that names the column, and not the log.
    """

    setting: str
    kind: pa.DataType
    column: str
    is_computed: bool
    unit: TimeUnit | None
    least_ms: int
    greatest_ms: int
    named_elsewhere: bool = False

    @classmethod
    def of_arrivals(cls, log: EventLog, least_ms: int, greatest_ms: int) -> ReadTimes:
        """Return the arrivals of a log that records them."""
        arrival, ops = arrival_column(log)
        assert arrival is not None
        kind = output_schema(ops, log.schema).field(arrival).type
        column, computed = shown_column(arrival, ops)
        return cls("arrival", kind, column, computed, log.arrival_unit, least_ms, greatest_ms)

    def looks_like(self) -> TimeUnit | None:
        """Return the unit other than ms in which all times would lie between 1973 and 2200, taken as numbers of ms."""
        for unit in TIME_UNITS:
            if unit != "ms" and looks_dated(self.least_ms, unit) and looks_dated(self.greatest_ms, unit):
                return unit
        return None

    @property
    def fault(self) -> str | None:
        """Message about integers without a unit that cannot be milliseconds, or None if these are not such.

        All would lie where no event log of today has any, but would not in another unit.
        """
        unit = self.looks_like()
        if unit is None or self.unit is not None or not pa.types.is_integer(self.kind):
            return None
        setting = f"{self.setting}_unit"
        advice = f"Give {setting}={unit!r}"
        if self.named_elsewhere:
            advice = f"Name it in from_event_log(timestamp=..., {setting}={unit!r}) and not in with_timestamp_assigner"
        return (
            f"{'expression' if self.is_computed else 'column'} {self.column!r} was read as milliseconds since the "
            f"epoch, but its values {self.least_ms} to {self.greatest_ms} look like {UNIT_NAMES[unit]}. {advice}, or "
            f"{self.setting}_unit='ms' if they are milliseconds"
        )


def check_units(read: Iterable[ReadTimes]) -> None:
    """Check that integers which were read as milliseconds can be such.

    Raises
    ------
    ConfigurationError
        If they cannot, and no unit is given: see :attr:`ReadTimes.fault`.
    """
    faults = [fault for times in read if (fault := times.fault) is not None]
    if faults:
        raise ConfigurationError(". ".join(faults))


def checked_times(timed: TimedLog, splits: SplitTimes) -> list[ReadTimes]:
    """Return the times of a log whose unit is to be checked, without those that the log does not give.

    Parameters
    ----------
    timed : TimedLog
        The log.
    splits : SplitTimes
        The least and greatest times of each split.
    """
    return [times for times in _times_read(timed, splits) if times.setting in timed.log.checked_units]


def _times_read(timed: TimedLog, splits: SplitTimes) -> list[ReadTimes]:
    live = splits.events > 0
    if not live.any():
        return []
    log = timed.log
    least, greatest = splits.min_timestamp_ms[live].min(), splits.max_timestamp_ms[live].max()
    column, computed = shown_column(log.timestamp, timed.before)
    is_own = timed.strategy.timestamp_column is not None and log.timestamp_unit is None
    kind, unit = timed.found_type(), log.timestamp_unit
    read = [ReadTimes("timestamp", kind, column, computed, unit, int(least), int(greatest), is_own)]
    if log.arrival is not None:
        read.append(ReadTimes.of_arrivals(log, *splits.arrival_range))
    return read


def time_warnings(timed: TimedLog, splits: SplitTimes) -> list[str]:
    """Return what is suspicious once the first pass has seen all times.

    Parameters
    ----------
    timed : TimedLog
        The log.
    splits : SplitTimes
        The least and greatest times of each split, and how many of its events went back.

    Returns
    -------
    list of str
        Doubts about units that were given, or that an expression takes, and about the order of arrivals.
    """
    warnings = [*map(_unit_warning, _times_read(timed, splits)), _order_warning(timed, splits)]
    return [warning for warning in warnings if warning is not None]


def _unit_warning(times: ReadTimes) -> str | None:
    takes_unit = times.unit is not None or (times.is_computed and pa.types.is_timestamp(times.kind))
    if not takes_unit or times.unit == "ms" or times.looks_like() is None:
        return None
    least, greatest = (np.datetime64(end, "ms") for end in (times.least_ms, times.greatest_ms))
    if times.unit is None:
        return (
            f"expression {times.column!r} gives times from {least} to {greatest}. If they are wrong, it takes numbers "
            "to be in another unit than they are: let it take the right one"
        )
    return (
        f"{'expression' if times.is_computed else 'column'} {times.column!r}, read in {UNIT_NAMES[times.unit]}, gives "
        f"times from {least} to {greatest}. If they are wrong, give another {times.setting}_unit"
    )


def _order_warning(timed: TimedLog, splits: SplitTimes) -> str | None:
    """Word the suspicion that many events were recorded before one that precedes them in their split."""
    if not goes_back(splits):
        return None
    return (
        f"arrivals go back: more than {_USUAL_PERCENT} % of the {int(splits.events.sum()):,} events were recorded to "
        "arrive before one that precedes them in their split. They count as arriving with it (the running maximum), so "
        f"that many may be late: {order_advice(timed)}"
    )


def goes_back(splits: SplitTimes) -> bool:
    """Return whether many events were recorded to arrive before one that precedes them in their split."""
    return 100 * int(splits.raised.sum()) > _USUAL_PERCENT * int(splits.events.sum())


def order_advice(timed: TimedLog) -> str:
    """Return what to do about a log whose events do not lie in the order of their arrivals."""
    split = timed.log.split
    if split is None:
        advice = (
            "sort the log by arrival, or name split= (--split; --split-per-file if each file is in order)"
        )
    else:
        within = repr(split) if isinstance(split, str) else "file" if split is FILE else "partition"
        advice = (
            f"sort the log by arrival within each {within}, or name another split= if that is not what wrote the "
            "events in order"
        )
    if timed.log.is_written_by_spark:
        advice += (
            ". Spark has written the files, with their rows in no order: name position=, a column that orders them, "
            "such as an offset, or give spark.read.parquet(...), whose rows arrival puts in order"
        )
    return advice


MANY_CALLS = 50_000_000
CALLS_PER_SECOND = 5_000_000


def tick_calls_warning(strategy: WatermarkStrategy, clock: TickClock, n_splits: int) -> str | None:
    """Return what to warn of if a generator that has not declared `changes_at_events_only` makes the pass take long.

    Parameters
    ----------
    strategy : WatermarkStrategy
        Has a generator of its own.
    clock : TickClock
    n_splits : int

    Returns
    -------
    str or None
        From `MANY_CALLS` calls on: how many, how long they take at least, and what to do.
    """
    if clock.interval_ms == 0:
        return None
    ticks = (clock.end_of_ticks_ms - clock.opened_ms) // clock.interval_ms - 1
    calls = ticks * n_splits
    if calls < MANY_CALLS or own_generator(strategy, lambda: 0).changes_at_events_only:
        return None
    seconds = calls / CALLS_PER_SECOND
    splits = "1 split" if n_splits == 1 else f"{n_splits:,} splits"
    first, last = dated(clock.first_arrival_ms, " ms"), dated(clock.last_arrival_ms, " ms")
    return (
        f"{strategy}: on_periodic_emit is called at every tick from the first arrival, {first}, to the last, {last}: "
        f"{ticks:,} ticks of {clock.interval_ms:,} ms in each of {splits}, which takes {seconds:,.0f} s or more. If a "
        "call without an event since the one before changes nothing, say so: changes_at_events_only = True in the "
        "class of the generator. A longer auto-watermark interval helps, too"
    )
