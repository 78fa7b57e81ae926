"""The merge of the splits of a log: at once, or by ranges of time that are merged apart from each other.

If splits neither turn idle nor are aligned, the state of a merge at the start of a range follows from the maximum
timestamp of each split before it: generators and valve depend on nothing else. So where there are many records, a first
job finds the maxima of each range, and a second one merges each range by itself; the driver only joins their steps.
With idleness or alignment the state depends on what was emitted before, so the driver merges one range after the other:
its memory is bounded, too, but it reads all records (60 ns each).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.arrow.column_ipc import read_columns, write_columns
from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore._native.event_log import packed_integers, unpacked_integers
from flinkcore._native.packed_steps import PackedSteps, StepPacker
from flinkcore._native.timeline import (
    SplitMerge,
    SplitRecords,
    continue_holders,
    leads_of_ends,
    restore_split_merge,
    split_merge_state,
)
from flinkcore.common.watermark_strategy import WatermarkAlignmentParams
from flinkcore.time_plane.generator_spec import GeneratorSpec
from flinkcore.time_plane.paused_spans import summary_interval_ms
from flinkcore.time_plane.record_blocks import RecordBlock
from flinkcore.time_plane.unordered_times import Cells, records_in_order

Blocks = Iterable[RecordBlock]
"""Blocks in log order, with the numbers that splits have in the log."""


@dataclass(frozen=True, eq=False)
class MergedSplits:
    """Results of a merge besides its steps, as of `SplitMerge`.

    Parameters
    ----------
    statuses, holders, idle_spans, paused_spans : tuple of numpy.ndarray of int64
    final_watermarks : numpy.ndarray of int64, shape (n_splits,)
    state : dict
        As of `split_merge_state`.
    """

    statuses: tuple[Int64s, ...]
    holders: tuple[Int64s, ...]
    idle_spans: tuple[Int64s, ...]
    paused_spans: tuple[Int64s, ...]
    final_watermarks: Int64s
    state: dict[str, Any]

    @classmethod
    def of(cls, merge: SplitMerge) -> MergedSplits:
        """Return the results of a merge that has run."""
        return cls(
            merge.statuses(),
            merge.holders(),
            merge.idle_spans(),
            merge.paused_spans(),
            merge.final_watermarks(),
            split_merge_state(merge),
        )


@dataclass(frozen=True)
class SplitsMerge:
    """Settings of the merge of the splits of a log; picklable.

    Parameters
    ----------
    n_splits : int
    generator : GeneratorSpec
    interval_ms : int
        The auto-watermark interval.
    alignment : WatermarkAlignmentParams or None
    by_arrival : bool
        Whether the records are cells of a log whose rows have no positions.
    replay_range : (int, int)
    stops : bool
    window_emissions : int
        As of `SplitMerge`.
    """

    n_splits: int
    generator: GeneratorSpec
    interval_ms: int
    alignment: WatermarkAlignmentParams | None
    by_arrival: bool
    replay_range: tuple[int, int]
    stops: bool
    window_emissions: int

    @property
    def summary_ms(self) -> int:
        """Interval of the ticks of the records."""
        return summary_interval_ms(self.interval_ms, self.alignment)

    def begin(self, packer: StepPacker) -> tuple[SplitRecords, SplitMerge]:
        """Return a merge, whose steps go into a packer, and the records that it reads."""
        alignment = self.alignment
        # A log without splits holds its replay back as one split without events does.
        records = SplitRecords(splits=max(1, self.n_splits), interval_ms=self.summary_ms)
        first_arrival_ms, last_arrival_ms = self.replay_range
        return records, SplitMerge(
            records,
            packer,
            interval_ms=self.interval_ms,
            out_of_orderness_ms=self.generator.out_of_orderness_ms,
            idleness_ms=self.generator.idleness_ms,
            first_arrival_ms=first_arrival_ms,
            last_arrival_ms=last_arrival_ms,
            max_drift_ms=alignment.max_allowed_watermark_drift_ms if alignment else None,
            update_interval_ms=alignment.update_interval_ms if alignment else None,
            window_emissions=self.window_emissions,
        )

    def add(self, records: SplitRecords, blocks: Blocks) -> None:
        """Add the records of a range."""
        if not self.by_arrival:
            for block in blocks:
                add_parts(records, block)
            return
        cells = Cells()
        for block in blocks:
            cells.add(np.repeat(block.split, block.n_records), block.tick_ms, block.timestamp_ms)
        generator = self.generator
        in_order = records_in_order(
            cells, self.n_splits, self.summary_ms, generator.idleness_ms, generator.makes_steps
        )
        add_parts(records, in_order)

    def run(self, merge: SplitMerge, until_ms: int | None) -> None:
        """Run to the end of a range, or of the log if it is None."""
        if until_ms is None:
            merge.run(stops=self.stops)
        else:
            merge.run_before(until_ms)

    # ---- ranges that are merged apart ----

    @property
    def is_divisible(self) -> bool:
        """Return whether ranges can be merged apart from each other."""
        return self.alignment is None and self.generator.idleness_ms is None and self.generator.makes_steps

    def maxima(self, blocks: Blocks) -> Int64s:
        """Return the maximum timestamp of each split in a range; -2**63 for a split without events in it."""
        found = np.full(max(1, self.n_splits), MIN_TIMESTAMP)
        for block in blocks:
            np.maximum.at(found, block.split, block.max_timestamp_ms)
        return found

    def state_at(self, maxima: Int64s) -> dict[str, Any]:
        """Return the state of a merge from the start of a log up to some clock, as of `split_merge_state`.

        Parameters
        ----------
        maxima : numpy.ndarray of int64, shape (n_splits,)
            Maximum timestamps of the splits before that clock.
        """
        delay = self.generator.out_of_orderness_ms
        assert delay is not None
        state = split_merge_state(self.begin(StepPacker())[1])
        generator_ms = np.maximum(maxima, state["generator_ms"])
        watermark_ms = generator_ms - delay - 1
        return state | {
            "generator_ms": generator_ms,
            "watermark_ms": watermark_ms,
            "channel_ms": watermark_ms,
            "output_ms": int(watermark_ms.min()),
        }

    def merged_range(
        self,
        blocks: Blocks,
        since_ms: int | None,
        until_ms: int | None,
        maxima: Int64s | None,
    ) -> RangeMerge:
        """Merge a range by itself.

        Parameters
        ----------
        blocks : iterable of RecordBlock
            As of `add`.
        since_ms, until_ms : int or None
            Start and end of the range, or None for those of the log. An end is not after the last tick with an event:
            a tick at the last arrival is run with the last range only.
        maxima : numpy.ndarray of int64, shape (n_splits,), or None
            Maximum timestamps of the splits before the range; of the first range None.
        """
        packer = StepPacker()
        records, merge = self.begin(packer)
        if since_ms is not None and maxima is not None:
            state = self.state_at(maxima)
            restore_split_merge(merge, state, since_ms)
            if state["watermark_ms"].max() > MIN_TIMESTAMP:
                continue_holders(merge)
        self.add(records, blocks)
        self.run(merge, until_ms)
        return RangeMerge(MergedSplits.of(merge), packer.finish(), *leads_of_ends(merge))


_ROWS_OVER_TIME: Final = {"statuses": 3, "holders": 3, "idle_spans": 3, "paused_spans": 3}
"""Results of a merge, and how many columns they have."""


@dataclass(frozen=True, eq=False)
class RangeMerge:
    """A range that was merged by itself.

    Parameters
    ----------
    merged : MergedSplits
    steps : PackedSteps
    first_clock_ms, first_led, last_led, lead_clock_ms
        As of `leads_of_ends`.
    """

    merged: MergedSplits
    steps: PackedSteps
    first_clock_ms: int
    first_led: float
    last_led: float
    lead_clock_ms: int

    def to_ipc(self) -> bytes:
        """Return the range as an Arrow IPC stream."""
        merged = self.merged
        columns: dict[str, Any] = {
            "final_watermarks": merged.final_watermarks,
            "steps": np.frombuffer(self.steps.buffer, np.uint8),
        }
        for name in _ROWS_OVER_TIME:
            for at, column in enumerate(getattr(merged, name)):
                # Rows that follow each other differ by little.
                differences = np.diff(column, prepend=column[:1])
                columns[f"{name}.{at}"] = packed_integers(differences)
                columns[f"{name}.{at}.ends"] = np.array([len(column), *column[:1]])
        scalars: dict[str, Any] = {
            name: getattr(self, name) for name in ("first_clock_ms", "first_led", "last_led", "lead_clock_ms")
        }
        for name, value in merged.state.items():
            if isinstance(value, int):
                scalars[f"state.{name}"] = value
            else:
                columns[f"state.{name}"] = value
        return write_columns("RangeMerge", scalars, columns)

    @classmethod
    def from_ipc(cls, data: bytes) -> RangeMerge:
        """Return the range that `to_ipc` wrote; a DataError if these bytes are something else."""
        scalars, columns = read_columns("RangeMerge", data)
        found = {name: column.to_numpy() for name, column in columns.items()}
        state: dict[str, Any] = {
            name.removeprefix("state."): value
            for name, value in (scalars | found).items()
            if name.startswith("state.")
        }
        parts = {
            name: tuple(_unpacked(found, f"{name}.{at}") for at in range(width))
            for name, width in _ROWS_OVER_TIME.items()
        }
        merged = MergedSplits(**parts, final_watermarks=found["final_watermarks"], state=state)
        ends = (scalars[name] for name in ("first_clock_ms", "first_led", "last_led", "lead_clock_ms"))
        return cls(merged, PackedSteps(found["steps"].copy()), *ends)


def _unpacked(columns: Mapping[str, Any], name: str) -> Int64s:
    length, *first = columns[f"{name}.ends"].tolist()
    column = np.empty(length, np.int64)
    unpacked_integers(columns[name], column)
    np.cumsum(column, out=column)
    return column + first[0] if first else column


def joined_ranges(
    merge: SplitsMerge, ranges: Iterable[tuple[RangeMerge, Int64s | None]], packer: StepPacker
) -> MergedSplits:
    """Return what one merge over all ranges would have emitted.

    Parameters
    ----------
    merge : SplitsMerge
    ranges : iterable of tuple
        In the order of time, each with the `maxima` that `SplitsMerge.merged_range` was given.
    packer : StepPacker
        Takes the steps.
    """
    holders: list[tuple[Int64s, ...]] = []
    led, lead_clock_ms = 0.0, 0
    last: RangeMerge | None = None
    for last, maxima in ranges:
        for number in range(last.steps.n_blocks):
            clock_ms, watermark_ms, _, _ = last.steps.block(number)
            packer.add(clock_ms, watermark_ms)
        clocks, splits, leads = (column.copy() for column in last.merged.holders)
        if len(clocks) and clocks[0] == MIN_TIMESTAMP:
            # The first holder is the last one of the ranges before.
            if last.first_clock_ms == MIN_TIMESTAMP:
                continue
            assert maxima is not None
            led += _led(merge.state_at(maxima), lead_clock_ms, last.first_clock_ms) + last.first_led
            _close(holders, led, int(clocks[1]) if len(clocks) > 1 else last.lead_clock_ms)
            clocks, splits, leads = clocks[1:], splits[1:], leads[1:]
            led = last.last_led if len(clocks) else led
        else:
            led = last.last_led
        lead_clock_ms = last.lead_clock_ms
        if len(clocks):
            holders.append((clocks, splits, leads))
    assert last is not None, "a log has at least one range"
    return replace(last.merged, holders=_concatenated(holders))


def _led(state: Mapping[str, Any], since_ms: int, until_ms: int) -> float:
    """Lead times length of time of the holder between two emissions, of which the state is known: as of the kernel."""
    watermarks = state["watermark_ms"]
    if len(watermarks) < 2:
        return 0.0
    least, following = np.partition(watermarks, 1)[:2].tolist()
    if least == MIN_TIMESTAMP and following > least:
        return (float(since_ms) - float(state["opened_ms"])) * (float(until_ms) - since_ms)
    return float(following - least) * (float(until_ms) - since_ms)


def _close(holders: list[tuple[Int64s, ...]], led: float, until_ms: int) -> None:
    """Write the lead of the last holder so far."""
    clocks, _, leads = holders[-1]
    if until_ms > clocks[-1]:
        leads[-1] = int(min(led / (float(until_ms) - float(clocks[-1])), 9.2e18))


def _concatenated(parts: list[tuple[Int64s, ...]]) -> tuple[Int64s, ...]:
    none = (np.empty(0, np.int64),) * 3
    return tuple(np.concatenate(columns) for columns in zip(none, *parts, strict=True))


def add_parts(records: SplitRecords, block: RecordBlock) -> None:
    """Add a block to the records of a merge."""
    records.add_parts(
        block.split,
        block.first_tick_ms,
        block.last_tick_ms,
        block.max_timestamp_ms,
        block.n_records,
        block.tick_ms,
        block.timestamp_ms,
    )
