"""An event log, and what gives its events their times and watermarks: all that the time plane knows of a job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import pyarrow as pa

from flinkcore._internal.arrow.column_ops import ColumnOp, column_behind, output_schema
from flinkcore._internal.show.times import dated
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.errors import ConfigurationError
from flinkcore.log.event_log import EventLog
from flinkcore.log.event_reader import EventReader
from flinkcore.time_plane.record_blocks import RecordLimits
from flinkcore.time_plane.time_cut import TimeCut

T = TypeVar("T", bound="TimedLog")


@dataclass(frozen=True)
class TimedLog:
    """An event log with its watermark strategy; picklable.

    Parameters
    ----------
    log : EventLog
        Its timestamp is a column of what `before` gives, its arrival and split are columns of the log itself.
    before : tuple of ColumnOp
        Ahead of the watermark strategy: rows that they filter out do not move the watermark.
    strategy : WatermarkStrategy
        Its `timestamp_column` is already taken into account by `before` and `log`.
    auto_watermark_interval_ms : int
        0: no periodic watermarks.
    timestamp_range : tuple of int
        Lowest and highest timestamp, in ms, that the job has windows for.
    batch_rows : int
        Rows of a batch that is read, at most; results do not depend on it.
    batch_bytes : int
        Bytes of a batch, at most, unless it has only one row; results do not depend on it, either.
    record_limits : RecordLimits
        Limits of the memory that the first pass takes.
    """

    log: EventLog
    before: tuple[ColumnOp, ...]
    strategy: WatermarkStrategy
    auto_watermark_interval_ms: int
    timestamp_range: tuple[int, int]
    batch_rows: int
    batch_bytes: int
    record_limits: RecordLimits

    @property
    def is_by_element(self) -> bool:
        """Return whether the strategy has a generator of its own, which is called event by event."""
        return self.strategy.generator_supplier is not None

    def resumed_from(self: T, cut: TimeCut) -> T:
        """Return the log as it is read from a checkpoint: without what the run before took, if that was cut.

        Raises
        ------
        ConfigurationError
            If the log is to be cut before that.
        """
        if cut.until_ms is None:
            return self
        if self.log.until_ms is not None and self.log.until_ms < cut.until_ms:
            raise ConfigurationError(
                f"until= is {dated(self.log.until_ms, ' ms')}, and the checkpoint has all that arrived before "
                f"{dated(cut.until_ms, ' ms')}. Give a later time, or start from an earlier checkpoint"
            )
        return replace(self, log=replace(self.log, since_ms=cut.until_ms))

    def reader(self, columns: Sequence[str] | Literal["all"] | None, is_placed: bool = True) -> EventReader:
        """Return the reader of the log: both passes reject the same rows.

        Parameters
        ----------
        columns
            Columns that are needed of the results of `before`, or None for the timestamp alone.
        is_placed
            Whether the positions of rows are needed where arrivals are recorded and only their content gives them.
        """
        if not (self.log.by_arrival and (is_placed or self.log.arrival is None)):
            content: Sequence[str] = ()
        elif self.log.position is None:
            content = self.content_columns()
        else:
            content = [self.log.position]
        doubtful = self.log.doubtful(self.content_columns)
        return EventReader(
            self.log,
            self.before,
            columns,
            self.timestamp_range,
            content,
            doubtful,
            self.batch_rows,
            self.batch_bytes,
        )

    def content_columns(self) -> list[str]:
        """Return the columns of the log that the job reads.

        Their values order rows that arrive together, if rows have no positions, and decide which rows are events.
        """
        return EventReader(self.log, self.before, None, self.timestamp_range).columns_read

    def time_type(self) -> pa.DataType:
        """Return the Arrow type of event times in results."""
        return pa.int64() if self.log.integer_times else self.timestamp_type()

    def timestamp_type(self) -> pa.DataType:
        """Return the Arrow type of event times as timestamps, which has no time zone if theirs is not known.

        Numbers and text are instants, whether a reader of text files has found the times in it or not.
        """
        found, column = self.found_type(), column_behind(self.log.timestamp, self.before)
        if column is not None and self.log.is_text(column):
            return pa.timestamp("ms", "UTC")
        if pa.types.is_date(found):
            return pa.timestamp("ms")
        return pa.timestamp("ms", found.tz if pa.types.is_timestamp(found) else "UTC")

    def found_type(self) -> pa.DataType:
        """Return the Arrow type of the column with the event time."""
        return output_schema(self.before, self.log.schema).field(self.log.timestamp).type
