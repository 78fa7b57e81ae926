"""A log's time plane, its generators called event by event: by the element pass, and by the runtime's operators."""

from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from models.timed_log import Log
from models.watermarks import ReplayModel

from flinkcore._native.valve import StatusWatermarkValve
from flinkcore.common import WatermarkStrategy
from flinkcore.common.watermark import Watermark
from flinkcore.operators.records.stream_elements import StreamRecord, WatermarkStatus
from flinkcore.operators.timers.processing_time import DrivenProcessingTimeService
from flinkcore.operators.timestamps_and_watermarks_operator import TimestampsAndWatermarksOperator
from flinkcore.time_plane.chunk_times import ArrivalRate
from flinkcore.time_plane.element_pass import ElementPass, PlacedTimes, with_emissions
from flinkcore.time_plane.emissions import EmissionRuns, Emissions
from flinkcore.time_plane.generator_spec import GeneratorSpec
from flinkcore.time_plane.timeline import TimePlane


def stepped_plane(
    log: Log,
    strategy: WatermarkStrategy,
    interval_ms: int,
    rate: ArrivalRate | None = None,
    parts: int = 1,
    run_rows: int = 1 << 19,
) -> TimePlane:
    """The element pass, its splits dealt out to some parts, whose emissions are sent as bytes, in runs of few rows."""
    plane = log.time_plane(GeneratorSpec(None), interval_ms, rate)
    if plane.events == 0:
        return plane
    n_splits = len(plane.split_values)
    passes = [
        ElementPass(strategy, interval_ms, plane, range(part, n_splits, parts), run_rows)
        for part in range(parts)
    ]
    sent: list[tuple[int, bytes]] = []
    for index, batches in enumerate(log.chunks()):
        clock = plane.enter(index)
        for batch in batches:
            arrivals, splits, positions = clock.order(batch)
            times = PlacedTimes(splits, positions, arrivals, batch.timestamp_ms)
            for part, element_pass in enumerate(passes):
                runs = element_pass.add(times.take((splits % parts == part).nonzero()[0]))
                sent += [(len(sent) + number, run.to_ipc()) for number, run in enumerate(runs)]
    for element_pass in passes:
        sent += [(len(sent) + number, run.to_ipc()) for number, run in enumerate([*element_pass.finish()])]
    with closing(EmissionRuns(memory_bytes=64 * run_rows, buffer_rows=0)) as received:
        for number, data in reversed(sent):
            received.add(number, Emissions.from_ipc(data))
        return with_emissions(plane, received)


@dataclass
class RuntimeReplay:
    """A log through the runtime's operators, one for each split, on clocks that count from the opening."""

    model: ReplayModel
    strategy: WatermarkStrategy
    steps: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        model = self.model
        if model.events:
            self.clock_ms = min(model.arrivals)
            self.valve = StatusWatermarkValve(len(model.splits))
            self._replay(min(model.arrivals), max(model.arrivals), model.interval_ms)
        self.steps.append((2**63 - 1, 2**63 - 1))

    def _replay(self, first: int, last: int, interval: int) -> None:
        first_tick = -(-first // interval) * interval if interval else last + 1
        opened = first_tick - interval if interval else first
        clocks = [DrivenProcessingTimeService() for _ in self.model.splits]
        operators = [
            TimestampsAndWatermarksOperator(self.strategy, _Channel(self, channel), clock, interval)
            for channel, clock in enumerate(clocks)
        ]
        for operator in operators:
            operator.open()
        order = sorted(range(len(self.model.events)), key=self.model.place_of)
        for tick in [*range(first_tick, last + 1, interval or 1), None]:
            while order and (tick is None or self.model.arrivals[order[0]] <= tick):
                event = order.pop(0)
                self.clock_ms, split, _ = self.model.place_of(event)  # type: ignore[assignment]
                operators[int(split)].process_element(
                    StreamRecord(None, self.model.events[event].timestamp_ms)
                )
            self.clock_ms = last if tick is None else tick
            for clock, operator in zip(clocks, operators, strict=True):
                if tick is None:
                    clock.quiesce()
                clock.advance_to(self.clock_ms - opened)
                if tick is None:
                    operator.finish()

    def take(self, emitted: list[Any]) -> None:
        self.steps += [(self.clock_ms, int(value)) for kind, value in emitted if kind == "watermark"]


@dataclass
class _Channel:
    replay: RuntimeReplay
    number: int

    def collect(self, record: StreamRecord[Any]) -> None:
        pass

    def collect_side(self, output_tag: Any, record: StreamRecord[Any]) -> None:
        pass

    def emit_watermark(self, watermark: Watermark) -> None:
        self.replay.take(self.replay.valve.input_watermark(self.number, watermark.timestamp))

    def emit_watermark_status(self, status: WatermarkStatus) -> None:
        told = "idle" if status is WatermarkStatus.IDLE else "active"
        self.replay.take(self.replay.valve.input_watermark_status(self.number, told))

    def emit_latency_marker(self, latency_marker: Any) -> None:
        pass
