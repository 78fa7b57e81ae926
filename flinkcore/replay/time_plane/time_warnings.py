"""What is suspicious of the times of a log: units, the order of arrivals, very many ticks. Reported, never acted on."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore.common.shown_times import EARLIEST_DATE_MS, dated
from flinkcore.common.split_origin import FILE
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.replay.log.column_ops import output_schema, shown_column
from flinkcore.replay.log.event_reader import arrival_column
from flinkcore.replay.time_plane.split_operator import own_generator
from flinkcore.replay.time_plane.tick_clock import TickClock
from flinkcore.replay.time_plane.timed_log import TimedLog
from flinkcore.replay.time_plane.timeline import SplitTimes

# An integer column is guessed to be in another unit if all its instants, read as ms, lie in a stretch that no
# event log of today has: seconds look like 1970-1973, microseconds like the year 5138 and later.
_SECONDS_LOOK_MS = (10**8, EARLIEST_DATE_MS)
_MICROSECONDS_LOOK_MS = (10**14, 10**17)
_NANOSECONDS_LOOK_MS = (10**17, 2**63 - 1)

_USUAL_PERCENT = 1
"""Some events go back in most logs, as writers of several threads make them."""


def time_warnings(timed: TimedLog, splits: SplitTimes) -> list[str]:
    """Return what is suspicious once the first pass has seen all times.

    Parameters
    ----------
    timed : TimedLog
    splits : SplitTimes
        The least and greatest times of each split, and how many of its events went back.

    Returns
    -------
    list of str
        Of the unit of the event time, of that of recorded arrivals, and of the order of arrivals.
    """
    warnings = [*_unit_warnings(timed, splits), _order_warning(timed, splits)]
    return [warning for warning in warnings if warning is not None]


def _unit_warnings(timed: TimedLog, splits: SplitTimes) -> list[str | None]:
    live = splits.events > 0
    if not live.any():
        return []
    name, computed = shown_column(timed.log.timestamp, timed.before)
    ends = np.array([splits.min_timestamp_ms[live].min(), splits.max_timestamp_ms[live].max()])
    warnings = [unit_warning(timed.time_type(), name, ends, computed)]
    arrival, ops = arrival_column(timed.log)
    if arrival is not None:
        arrival_type = output_schema(ops, timed.log.schema).field(arrival).type
        name, computed = shown_column(arrival, ops)
        ends = np.array(splits.arrival_range)
        warnings.append(unit_warning(arrival_type, name, ends, computed, is_arrival=True))
    return warnings


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


def suspected_unit(timestamps_ms: npt.NDArray[np.int64]) -> str | None:
    """Guess whether integers taken for milliseconds are in another unit.

    Parameters
    ----------
    timestamps_ms : numpy.ndarray, shape (n,), int64
        All timestamps of an integer column, or only the least and the greatest.

    Returns
    -------
    "s", "us", "ns" or None
        None if there is no reason to doubt, or no timestamp. A guess is for the report; it is never applied.
    """
    if len(timestamps_ms) == 0:
        return None
    least, greatest = int(timestamps_ms.min()), int(timestamps_ms.max())
    for unit, (low, high) in (
        ("s", _SECONDS_LOOK_MS),
        ("us", _MICROSECONDS_LOOK_MS),
        ("ns", _NANOSECONDS_LOOK_MS),
    ):
        if low <= least and greatest < high:
            return unit
    return None


def unit_warning(
    arrow_type: pa.DataType,
    column: str,
    timestamps_ms: npt.NDArray[np.int64],
    computed: bool = False,
    is_arrival: bool = False,
) -> str | None:
    """Word the suspicion of :func:`suspected_unit` for a report.

    Parameters
    ----------
    arrow_type : pyarrow.DataType
        Of the column: only integers, and times that are computed, can be in a wrong unit.
    column : str
        What messages call it.
    timestamps_ms : numpy.ndarray, shape (n,), int64
        As for :func:`suspected_unit`.
    computed : bool
        True if `column` is the text of an expression.
    is_arrival : bool
        True if it gives the arrivals, not the event time.

    Returns
    -------
    str or None
        None if there is nothing to warn of.
    """
    gives_times = computed and pa.types.is_timestamp(arrow_type)
    unit = suspected_unit(timestamps_ms) if gives_times or pa.types.is_integer(arrow_type) else None
    if unit is None:
        return None
    if gives_times:
        least, greatest = (
            np.datetime64(int(end), "ms") for end in (timestamps_ms.min(), timestamps_ms.max())
        )
        return (
            f"expression {column!r} gives times from {least} to {greatest}; if they are wrong, it takes numbers to be "
            "in another unit than they are: choose another "
            f"--{'arrival' if is_arrival else 'timestamp'}-unit on the command line"
        )
    words = {"s": "seconds", "us": "microseconds", "ns": "nanoseconds"}[unit]
    convert = {"s": "* 1000", "us": "/ 1000", "ns": "/ 1000000"}[unit]
    if computed:
        advice = "let the expression give milliseconds"
    else:
        expression = f"pyarrow.compute.field({column!r}) {convert}"
        advice = (
            f"give from_event_log(..., arrival={expression}), or --arrival-unit {unit} on the command line"
            if is_arrival
            else f"give the watermark strategy .with_timestamp_assigner({expression}), or --timestamp-unit "
            f"{unit} on the command line"
        )
    return (
        f"{'expression' if computed else 'column'} {column!r} was read as milliseconds since the epoch, but "
        f"its values {int(timestamps_ms.min())} to {int(timestamps_ms.max())} look like {words}; if they are, "
        f"{advice}"
    )


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
