"""The operator that makes the watermarks of one split of a log, event by event."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.show.times import dated
from flinkcore.checkpoint.checkpoint_table import CheckpointTable, TableColumns
from flinkcore.common.generators.supplied_generators import HeldGenerators
from flinkcore.common.time import Time
from flinkcore.common.watermark_generators import RelativeClock, WatermarkGenerator, WatermarksWithIdleness
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.errors import UserCodeError
from flinkcore.operators.records.copies import copied_strategy
from flinkcore.operators.timestamps_and_watermarks_operator import WatermarkEmitter
from flinkcore.time_plane.emissions import EmissionCause, SplitEmissions
from flinkcore.time_plane.tick_clock import TickClock

_SHAPES = b"flinkcore.shapes"


@dataclass(frozen=True)
class SplitState:
    """The operator of one split.

    Parameters
    ----------
    generator : object
        State of the generator, or with an idle timeout that of `WatermarksWithIdleness`.
    unseen : bool
        Whether there were events since its last periodic call.
    watermark_ms : int
        The last watermark that it has emitted.
    is_idle : bool
        The last status that it has emitted.
    """

    generator: Any
    unseen: bool
    watermark_ms: int
    is_idle: bool


@dataclass(frozen=True)
class SplitStates:
    """The operators of some splits.

    Parameters
    ----------
    splits : sequence of int
        Numbers of the splits.
    states : sequence of SplitState
    """

    splits: Sequence[int]
    states: Sequence[SplitState]

    @classmethod
    def concatenate(cls, parts: Sequence[SplitStates]) -> SplitStates:
        """Return the operators of all parts, by number."""
        found = sorted(
            ((split, state) for part in parts for split, state in zip(part.splits, part.states, strict=True)),
            key=lambda entry: entry[0],
        )
        return cls([split for split, _ in found], [state for _, state in found])

    @property
    def generators(self) -> list[Any]:
        """Return what the generators hold."""
        return [state.generator for state in self.states]

    @property
    def columns(self) -> dict[str, Int64s]:
        """The rest, as columns of a `TimeCut`."""
        return {
            "unseen": np.array([state.unseen for state in self.states], np.int64),
            "watermark_ms": np.array([state.watermark_ms for state in self.states], np.int64),
            "operator_idle": np.array([state.is_idle for state in self.states], np.int64),
        }

    def to_ipc(self) -> bytes:
        """Return the states as an Arrow IPC stream.

        Raises
        ------
        SchemaError
            If a column cannot hold what a generator holds.
        """
        columns = TableColumns("the splits")
        columns.add_numbers("split", np.array(self.splits, np.int64), pa.int64())
        columns.add_values("generator", self.generators)
        for name, numbers in self.columns.items():
            columns.add_numbers(name, numbers, pa.int64())
        table = columns.table({})
        batch = table.batch.replace_schema_metadata({_SHAPES: json.dumps(dict(table.shapes))})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        return bytes(sink.getvalue())

    @classmethod
    def from_ipc(cls, data: bytes) -> SplitStates:
        """Return the states that `to_ipc` wrote."""
        with pa.ipc.open_stream(data) as reader:
            batch = reader.read_next_batch()
        table = CheckpointTable(batch, json.loads(batch.schema.metadata[_SHAPES]), {})
        unseen, watermarks, idle = (
            table.numbers(name, pa.int64()).tolist() for name in ("unseen", "watermark_ms", "operator_idle")
        )
        states = [
            SplitState(generator, bool(has_unseen), watermark_ms, bool(is_idle))
            for generator, has_unseen, watermark_ms, is_idle in zip(
                table.values("generator"), unseen, watermarks, idle, strict=True
            )
        ]
        return cls(table.numbers("split", pa.int64()).tolist(), states)


class SplitOperator:
    """Runs a strategy's generator over the events of a split, on the replay clock.

    The generator is called at every event, at every tick up to the last arrival of the log, and once at the end. A
    tick comes after all events that have arrived by then. Where the generator declares that it
    `changes_at_events_only`, the calls without events before them are left out, but for the first of all, and those
    at which idleness begins to count and is found.

    Parameters
    ----------
    strategy : WatermarkStrategy
        Its generator and its idleness.
    split : object
        Value of the split column, or None if the log has a single split.
    clock : TickClock
    held : HeldGenerators
        Generators of the other splits.
    restored : SplitState or None
        State of the split's operator in the checkpoint, or None if it is opened now.

    Raises
    ------
    ConfigurationError
        If the strategy's supplier gives no generator, or that of another split.
    UserCodeError
        If it raises, or the strategy cannot be copied.

    Notes
    -----
    Flink's ``TimestampsAndWatermarksOperator``, on a clock that counts from the operator's opening: what that emits
    passes through the same `WatermarkEmitter`.
    """

    def __init__(
        self,
        strategy: WatermarkStrategy,
        split: Any,
        clock: TickClock,
        held: HeldGenerators,
        restored: SplitState | None = None,
    ) -> None:
        self.emissions = SplitEmissions()
        self._clock = clock
        self._output = WatermarkEmitter(self.emissions)
        if restored is not None:
            self._output = WatermarkEmitter(self.emissions, restored.watermark_ms, restored.is_idle)
        name = None if split is None else str(split)
        generator = own_generator(strategy, self._since_opening, name, held)
        self._calls_every_tick = not generator.changes_at_events_only
        self._idleness_ms = strategy.idleness_ms or 0
        self._idleness: WatermarksWithIdleness | None = None
        if strategy.idleness_ms is not None:
            generator = self._idleness = WatermarksWithIdleness(
                generator, Time(strategy.idleness_ms), self._since_opening
            )
        self._generator = generator
        self._next_tick = clock.first_tick_ms
        self._unseen = False
        if restored is not None:
            generator.restore_state(restored.generator)
            self._unseen = restored.unseen

    def _since_opening(self) -> int:
        return self.emissions.clock_ms - self._clock.opened_ms

    def process(
        self,
        positions: Int64s,
        arrivals_ms: Int64s,
        ticks_ms: Int64s,
        timestamps_ms: Int64s,
    ) -> None:
        """Take in the next events of the split.

        Parameters
        ----------
        positions, arrivals_ms, ticks_ms, timestamps_ms : numpy.ndarray of int64, shape (n,)
            Positions rise; arrivals, and the first ticks that see the events, do not go back.

        Raises
        ------
        UserCodeError
            If the generator raises, or emits something other than a watermark.
        """
        place = self.emissions
        on_event, output = self._generator.on_event, self._output
        place.cause = EmissionCause.EVENT
        columns = [column.tolist() for column in (positions, arrivals_ms, ticks_ms, timestamps_ms)]
        for position, arrival, tick, timestamp in zip(*columns, strict=True):
            if tick > self._next_tick:
                self._call_before(tick)
                place.cause = EmissionCause.EVENT
            self._unseen = True
            place.clock_ms, place.position = arrival, position
            try:
                on_event(None, timestamp, output)
            except UserCodeError as error:
                raise UserCodeError(
                    f"{error} (position {position} of the split, arrival {dated(arrival, ' ms')})"
                ) from error.__cause__

    def finish(self) -> None:
        """Make the calls at the ticks that are left, and the last one.

        Raises
        ------
        UserCodeError
            If the generator raises, or emits something other than a watermark.
        """
        self._call_before(self._clock.end_of_ticks_ms)
        self._call(self._clock.last_arrival_ms, EmissionCause.END_OF_LOG)

    def stop(self) -> SplitState:
        """Make the calls at the ticks that come before the cut; where the operator stands.

        Raises
        ------
        UserCodeError
            If the generator raises, or emits something other than a watermark.
        UnsupportedOperationError
            If it has no snapshots.
        """
        self._call_before(self._clock.stop_of_ticks_ms)
        held = self._generator.snapshot_state()
        return SplitState(held, self._unseen, self._output.watermark_ms, self._output.is_idle)

    def _call_before(self, end_ms: int) -> None:
        """Make the calls at all ticks before this one, at none of which there are new events but the first."""
        first, interval = self._next_tick, self._clock.interval_ms
        if first >= end_ms:
            return
        self._next_tick = end_ms
        if self._calls_every_tick:
            for tick in range(first, end_ms, interval):
                self._call(tick, EmissionCause.TICK)
            return
        had_events = self._unseen
        self._call(first, EmissionCause.TICK)
        if self._idleness is None:
            return
        if had_events and first + interval < end_ms:
            self._call(first + interval, EmissionCause.TICK)
        if self._idleness.start_of_inactivity_ms == 0:
            return
        counts_from = self._clock.opened_ms + self._idleness.start_of_inactivity_ms
        found_at = counts_from + (self._idleness_ms // interval + 1) * interval
        if first < found_at < end_ms:
            self._call(found_at, EmissionCause.TICK)

    def _call(self, clock_ms: int, cause: EmissionCause) -> None:
        place = self.emissions
        place.cause, place.clock_ms, place.position = cause, clock_ms, 0
        self._unseen = False
        try:
            self._generator.on_periodic_emit(self._output)
        except UserCodeError as error:
            raise UserCodeError(
                f"{error} (at {dated(clock_ms, ' ms')} of the replay clock)"
            ) from error.__cause__


def own_generator(
    strategy: WatermarkStrategy,
    clock: RelativeClock,
    split: str | None = None,
    held: HeldGenerators | None = None,
) -> WatermarkGenerator[Any]:
    """Return a generator of a copy of the strategy without its idleness; parameters of `create_watermark_generator`."""
    own = copied_strategy(replace(strategy, idleness_ms=None, timestamp_column=None))
    return own.create_watermark_generator(clock, split, held)
