"""Settings that make events of the rows of a log: their times, splits and order."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from flinkcore._internal.arrow.expressions import Expression, is_expression
from flinkcore._internal.arrow.sort_keys import SortKey
from flinkcore._internal.arrow.time_units import TimeUnit, check_time_unit
from flinkcore._internal.show.times import format_timestamp
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.split_origin import PARTITION, SplitOrigin
from flinkcore.errors import ArgumentTypeError, ConfigurationError


@dataclass(frozen=True, kw_only=True)
class LogSettings:
    """Times, splits and order of the rows of an event log, and what happens to those that cannot be read.

    Attributes
    ----------
    timestamp : str, pyarrow.compute.Expression or None
        None if the columns of the log are those of Kafka's records. Else a column with the source timestamp: an Arrow
        timestamp (any unit; without a zone it is UTC) or date, an integer in milliseconds since the epoch, ISO 8601
        text, or a number in ``timestamp_unit``. Fractions of a millisecond are floored. An expression gives one of
        these.
    arrival : str or pyarrow.compute.Expression, optional
        Column with the processing time at which the event reached the system, of the same types, or an
        expression over the log's columns that gives it. Without it the position in the split gives it: ``rate``
        events per second from ``arrival_start_ms``.
    split : str, SplitOrigin or None
        Column (integer, string, binary, bool, date) whose value names the split; ``FILE``: each file is one;
        ``PARTITION``: each partition that the paths of all files name. None if the whole log is one split.
    rate : float
        Events per second and split, if there is no arrival column.
    arrival_start_ms : int
        Arrival of the first event of each split, in ms since the epoch, if there is no arrival column.
    on_bad_row : "fail", "drop" or OutputTag
        Fate of a row whose timestamp, arrival or split is null, whose timestamp or arrival is text that is not a time,
        whose window would not fit into 64 bits of milliseconds, or whose arrival is further than 2**61 ms from the
        epoch: an error that names it, a count per reason, or the side output with this tag.
    has_positions : bool
        Whether it counts where a row lies, as in a file. If not, arrival orders the rows of a split, and ties go by
        their content; without arrival the order is the one in which they come.
    position : str, optional
        Column of integers, from 0 to 2**59 - 1, by which ties go instead of the content.
    ordered_by : tuple of SortKey
        Sort keys of the rows of a split after their arrival, if they lie in no order.
    timestamp_unit, arrival_unit : {"s", "ms", "us", "ns"} or None
        Unit of the numbers that ``timestamp`` and ``arrival`` hold, or None if integers are ms, as far as they look so.
    integer_times : bool
        Whether the times of results are integers in ms, not Arrow timestamps.
    until_ms : int or None
        Arrival in ms since the epoch before which events are taken; what arrives then or later waits for another run.
    checked_units : tuple of str
        Settings for whose columns it is an error if integers without a unit cannot be milliseconds.

    Raises
    ------
    ConfigurationError
        If a setting has no meaning.
    """

    timestamp: str | Expression | None
    arrival: str | Expression | None = None
    split: str | SplitOrigin | None = None
    rate: float = 1000.0
    arrival_start_ms: int = 0
    on_bad_row: Literal["fail", "drop"] | OutputTag = "fail"
    has_positions: bool = True
    position: str | None = None
    ordered_by: tuple[SortKey, ...] = ()
    timestamp_unit: TimeUnit | None = None
    arrival_unit: TimeUnit | None = None
    integer_times: bool = False
    until_ms: int | None = None
    checked_units: tuple[str, ...] = ("timestamp", "arrival")

    def __post_init__(self) -> None:
        if self.timestamp is not None and not is_expression(self.timestamp):
            _require_column(self.timestamp, "timestamp", " or a pyarrow expression")
        if self.arrival is not None and not is_expression(self.arrival):
            _require_column(self.arrival, "arrival", " or a pyarrow expression")
        if self.split is not None and not isinstance(self.split, SplitOrigin):
            _require_column(self.split, "split", ", FILE, PARTITION or None")
        rate, start = self.rate, self.arrival_start_ms
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < math.inf:
            raise ConfigurationError(f"rate must be a number of records per second above zero, not {rate!r}")
        object.__setattr__(self, "rate", float(rate))
        if isinstance(start, bool) or not isinstance(start, int):
            raise ArgumentTypeError(f"arrival_start_ms must be an integer, not {start!r}")
        if not -(2**63) < start < 2**63 - 1:
            raise ConfigurationError(
                f"arrival_start_ms is a number of milliseconds since the epoch in 64 bits, not {start!r}"
            )
        is_policy = isinstance(self.on_bad_row, str) and self.on_bad_row in ("fail", "drop")
        if not is_policy and not isinstance(self.on_bad_row, OutputTag):
            raise ConfigurationError(
                f"on_bad_row must be 'fail', 'drop' or an OutputTag, not {self.on_bad_row!r}"
            )
        check_time_unit(self.timestamp_unit, "timestamp_unit")
        check_time_unit(self.arrival_unit, "arrival_unit")
        if self.arrival_unit is not None and self.arrival is None:
            raise ConfigurationError(
                f"arrival_unit={self.arrival_unit!r} needs arrival=, the column whose numbers have this unit"
            )
        if self.until_ms is not None and self.arrival is None:
            raise ConfigurationError(
                "until= is a time of arrival, and this log has no arrival column: name it with arrival=. Without one, "
                "the number of a row in its split gives its arrival, and a run ends with the rows that it is given"
            )
        if not isinstance(self.integer_times, bool):
            raise ArgumentTypeError(f"integer_times must be True or False, not {self.integer_times!r}")

    def in_words(self, order_without_arrival: str | None, has_paths: bool) -> str:
        """Return the settings as text.

        Parameters
        ----------
        order_without_arrival : str or None
            Order of rows without positions, if there are no arrivals, or None if rows have positions.
        has_paths : bool
            Whether the log is read from paths, which may name partitions.
        """
        arrival = self.arrival
        if arrival is None:
            arrival = f"by position, {self.rate:g} records/s from {self.arrival_start_ms} ms"
        order = ""
        if self.ordered_by:
            by = [*(["arrival"] if self.arrival is not None else []), *map(str, self.ordered_by)]
            order = f", in order of {', then '.join(by)}"
        elif order_without_arrival is not None:
            order = ", in order of arrival" if self.arrival is not None else f", in {order_without_arrival}"
        split = "one split" if self.split is None else str(self.split)
        if isinstance(self.split, str):
            split = f"split by {self.split}"
        elif self.split is PARTITION:
            split = "one split, or one for each partition in its paths or columns"
            if not has_paths:
                split = "one split, unless its columns are those of Kafka"
        timestamp = "that of the records"
        if self.timestamp is not None:
            timestamp = _in_unit(self.timestamp, self.timestamp_unit)
        until = "" if self.until_ms is None else f", what arrives before {format_timestamp(self.until_ms)}"
        return f"timestamp {timestamp}, arrival {_in_unit(arrival, self.arrival_unit)}, {split}{order}{until}"


def _in_unit(column: object, unit: TimeUnit | None) -> str:
    return str(column) if unit is None else f"{column} in {unit}"


def _require_column(name: Any, setting: str, otherwise: str) -> None:
    if not isinstance(name, str) or not name:
        kind = ConfigurationError if isinstance(name, str) else ArgumentTypeError
        raise kind(f"{setting} must be the name of a column{otherwise}, not {name!r}")
