"""The operator that makes the watermarks of one split of a table of Flink SQL, in whole columns of events."""

from __future__ import annotations

import numpy as np

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._native.valve import WATERMARK_KIND
from flinkcore._native.watermark_generator import RowtimeWatermarkGenerator
from flinkcore.common.rowtime_watermarks import RowtimeWatermarksSupplier
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.time_plane.emissions import EmissionCause
from flinkcore.time_plane.split_operator import SplitState
from flinkcore.time_plane.tick_clock import TickClock


class RowtimeEmissions:
    """Emissions of a split, as `SplitEmissions` gives them."""

    def __init__(self) -> None:
        self._parts: list[Int64s] = []

    def add(self, rows: Int64s) -> None:
        """Take emissions, which follow those before."""
        if len(rows):
            self._parts.append(rows)

    def __len__(self) -> int:
        """Return how many have been taken since `take`."""
        return sum(map(len, self._parts))

    def take(self) -> Int64s:
        """Return those since the last call, in their order; see `SplitEmissions.take`."""
        parts, self._parts = self._parts, []
        return np.concatenate(parts) if parts else np.empty((0, 3), np.int64)


class RowtimeOperator:
    """Runs the native generator of a table over the events of a split; as `SplitOperator` runs other generators.

    Parameters
    ----------
    supplier : RowtimeWatermarksSupplier
    clock : TickClock
    restored : SplitState or None
        State of the split's operator in the checkpoint, or None if it is opened now.

    Notes
    -----
    Flink's ``WatermarkAssignerOperator``, whose last watermark at the end of the table is 2**63 - 1 alone.
    """

    def __init__(
        self, supplier: RowtimeWatermarksSupplier, clock: TickClock, restored: SplitState | None = None
    ) -> None:
        self.emissions = RowtimeEmissions()
        self._clock = clock
        self._unseen = restored is not None and restored.unseen
        self._generator = RowtimeWatermarkGenerator(
            supplier.delay_ms,
            supplier.interval_ms,
            supplier.lowest_ms,
            clock.first_tick_ms,
            EmissionCause.EVENT << 2 | WATERMARK_KIND,
            EmissionCause.TICK << 2 | WATERMARK_KIND,
        )
        if restored is not None:
            current_ms, last_ms = restored.generator
            self._generator.state = current_ms, last_ms

    @staticmethod
    def supplier_of(strategy: WatermarkStrategy) -> RowtimeWatermarksSupplier | None:
        """Return the supplier of a strategy whose generators run natively, or None of another one."""
        supplier = strategy.generator_supplier
        has_no_idleness = strategy.idleness_ms is None
        return supplier if has_no_idleness and isinstance(supplier, RowtimeWatermarksSupplier) else None

    def process(
        self, positions: Int64s, arrivals_ms: Int64s, ticks_ms: Int64s, timestamps_ms: Int64s
    ) -> None:
        """Take in the next events of the split; parameters as of `SplitOperator.process`."""
        columns = map(np.ascontiguousarray, (positions, arrivals_ms, ticks_ms, timestamps_ms))
        self.emissions.add(self._generator.on_events(*columns))
        self._unseen = True

    def finish(self) -> None:
        """Make the calls at the ticks that are left."""
        self._call_before(self._clock.end_of_ticks_ms)

    def stop(self) -> SplitState:
        """Make the calls at the ticks that come before the cut; where the operator stands."""
        self._call_before(self._clock.stop_of_ticks_ms)
        current_ms, last_ms = self._generator.state
        return SplitState([current_ms, last_ms], self._unseen, last_ms, False)

    def _call_before(self, end_ms: int) -> None:
        self.emissions.add(self._generator.on_ticks_before(end_ms))
