"""A log through source operators, one for each split, and their coordinator, which an aligned replay follows."""

from collections import deque
from collections.abc import Callable, Collection
from typing import Any

from equipment.recorders import OutputRecorder
from equipment.scripted_reader import ScriptedReader, Split
from models.aligned_replay import AlignedReplayModel
from models.valve import ValveModel

from flinkcore.common import WatermarkAlignmentParams, WatermarkStrategy
from flinkcore.datastream.connectors.base import InputStatus, ReaderOutput
from flinkcore.elements.sources.source_operator import SourceOperator
from flinkcore.elements.sources.watermark_alignment import SourceCoordinator, WatermarkAlignmentGroups
from flinkcore.operators.timers.processing_time import DrivenProcessingTimeService, ScheduledTimer


class SteppedService(DrivenProcessingTimeService):
    """Runs the ticks, which are scheduled first, by the clock, and the reports when it is told to."""

    report: Callable[[], None] | None = None
    has_ticks = False

    def schedule_with_fixed_delay(self, callback: Any, initial_delay: int, period: int) -> ScheduledTimer:
        if not self.has_ticks:
            self.has_ticks = True
            return super().schedule_with_fixed_delay(callback, initial_delay, period)
        self.report = lambda: callback(self.current_processing_time())
        return self.register_timer(2**62, lambda _: None)


class QueueReader(ScriptedReader):
    """Gives the events of one split that have arrived, unless it is paused."""

    def __init__(self, clock: DrivenProcessingTimeService) -> None:
        super().__init__()
        self.clock = clock
        self.queue: deque[tuple[int, int]] = deque()
        self.is_paused = False

    def poll_next(self, output: ReaderOutput[Any]) -> InputStatus:
        if self.is_paused or not self.queue or self.queue[0][0] > self.clock.current_processing_time():
            return InputStatus.NOTHING_AVAILABLE
        output.create_output_for_split("split").collect("event", self.queue.popleft()[1])
        return InputStatus.MORE_AVAILABLE

    def pause_or_resume_splits(
        self, splits_to_pause: Collection[str], splits_to_resume: Collection[str]
    ) -> None:
        self.is_paused = bool(splits_to_pause)


class AlignedSources:
    """What comes before the last arrival of a model's log: `steps` of the valve, and `paused_spans`."""

    def __init__(self, model: AlignedReplayModel, strategy: WatermarkStrategy) -> None:
        parameters = strategy.alignment_parameters
        assert parameters is not None
        self.model = model
        self.valve = ValveModel(len(model.splits))
        self.steps: list[tuple[int, int]] = []
        self.paused_spans: list[tuple[Any, int, int]] = []
        self.paused_since: dict[int, int] = {}
        self._build(strategy, parameters)
        last = max(model.recorded)
        ticks = set(range(model.opened + model.interval_ms, last, model.interval_ms))
        first_update = -(-model.opened // parameters.update_interval_ms) * parameters.update_interval_ms
        updates = set(range(first_update, last, parameters.update_interval_ms))
        for clock in sorted(ticks | updates):
            self._advance(clock, is_update=clock in updates)

    def _build(self, strategy: WatermarkStrategy, parameters: WatermarkAlignmentParams) -> None:
        self.clocks = [SteppedService() for _ in self.model.splits]
        self.readers = [QueueReader(clock) for clock in self.clocks]
        self.recorders = [OutputRecorder() for _ in self.clocks]
        self.coordinator = SourceCoordinator(
            "log", parameters, WatermarkAlignmentGroups(), DrivenProcessingTimeService()
        )
        self.operators: list[SourceOperator[Split]] = []
        for channel, (clock, reader, recorder) in enumerate(
            zip(self.clocks, self.readers, self.recorders, strict=True)
        ):
            operator: SourceOperator[Split] = SourceOperator(
                lambda context, reader=reader: reader,  # type: ignore[misc]
                strategy,
                recorder,
                clock,
                self.model.interval_ms,
                report_watermark=self.coordinator.reporter(channel),
            )
            operator.open()
            operator.add_splits([Split("split")])
            operator.emit_next()
            self.coordinator.subtask_ready(channel, operator)
            self.operators.append(operator)
        for event, arrival in zip(self.model.events, self.model.recorded, strict=True):
            channel = self.model.splits.index(event.split)
            self.readers[channel].queue.append((arrival - self.model.opened, event.timestamp_ms))

    def _advance(self, clock: int, *, is_update: bool) -> None:
        for channel, service in enumerate(self.clocks):
            # A tick sees what has arrived by then: so the clock comes close to it, and reads, before it strikes.
            self._read(channel, clock - self.model.opened)
            service.advance_to(clock - self.model.opened)
            self._take(channel, clock)
        if is_update:
            for service in self.clocks:
                assert service.report is not None
                service.report()
            self.coordinator.announce_combined_watermark()
            self._note_pauses(clock)

    def _read(self, channel: int, now: int) -> None:
        reader = self.readers[channel]
        arrived = [
            (min(at, reader.clock.current_processing_time()), ts) for at, ts in reader.queue if at <= now
        ]
        reader.queue = deque([*arrived, *list(reader.queue)[len(arrived) :]])
        while self.operators[channel].emit_next() is InputStatus.MORE_AVAILABLE:
            pass

    def _take(self, channel: int, clock: int) -> None:
        for kind, *entry in self.recorders[channel].take():
            if kind == "record":
                continue
            put = self.valve.input_watermark if kind == "watermark" else self.valve.input_watermark_status
            value = entry[0]
            self.steps += [(clock, int(step)) for told, step in put(channel, value) if told == "watermark"]

    def _note_pauses(self, clock: int) -> None:
        for channel, split in enumerate(self.model.splits):
            waits = self.operators[channel].is_waiting_for_alignment
            assert waits or not self.readers[channel].is_paused
            if waits and channel not in self.paused_since:
                self.paused_since[channel] = clock
            elif not waits and channel in self.paused_since:
                self.paused_spans.append((split, self.paused_since.pop(channel), clock))
