"""A source reader that does what a test says, poll by poll."""

from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from equipment.recorders import OutputRecorder

from flinkcore.common import WatermarkStrategy
from flinkcore.datastream.connectors.base import InputStatus, ReaderOutput, SourceReader
from flinkcore.elements.sources.source_operator import SourceOperator
from flinkcore.errors import UnsupportedOperationError
from flinkcore.operators.timers.processing_time import DrivenProcessingTimeService

Action = Callable[[ReaderOutput[Any]], None]


@dataclass(frozen=True)
class Split:
    split_id: str


class ScriptedReader(SourceReader[Any, Split]):
    def __init__(self, can_pause: bool = True) -> None:
        self.can_pause = can_pause
        self.script: deque[Action] = deque()
        self.calls: list[Any] = []
        self.ends = False

    def start(self) -> None:
        self.calls.append("start")

    def poll_next(self, output: ReaderOutput[Any]) -> InputStatus:
        if self.script:
            self.script.popleft()(output)
            return InputStatus.MORE_AVAILABLE
        return InputStatus.END_OF_INPUT if self.ends else InputStatus.NOTHING_AVAILABLE

    def snapshot_state(self, checkpoint_id: int) -> list[Split]:
        return [Split(f"at {checkpoint_id}")]

    def add_splits(self, splits: Sequence[Split]) -> None:
        self.calls.append(("add", [split.split_id for split in splits]))

    def notify_no_more_splits(self) -> None:
        self.calls.append("no more")

    def pause_or_resume_splits(
        self, splits_to_pause: Collection[str], splits_to_resume: Collection[str]
    ) -> None:
        self.calls.append(("pause", list(splits_to_pause), "resume", list(splits_to_resume)))
        if not self.can_pause:
            raise UnsupportedOperationError("no")

    def close(self) -> None:
        self.calls.append("close")

    def pauses(self) -> list[tuple[list[str], list[str]]]:
        """Return what was paused and resumed since the last call, and forget all calls."""
        found = [(call[1], call[3]) for call in self.calls if call[0] == "pause"]
        self.calls.clear()
        return found


class OperatorUnderTest:
    """A source operator with a scripted reader on a driven clock, opened with splits."""

    def __init__(
        self,
        strategy: WatermarkStrategy,
        splits: Sequence[str] = ("a", "b"),
        *,
        can_pause: bool = True,
        start_ms: int = 1000,
        interval_ms: int = 10,
        **settings: Any,
    ) -> None:
        self.clock = DrivenProcessingTimeService(start_ms)
        self.reader = ScriptedReader(can_pause)
        self.recorder = OutputRecorder()
        self.reported: list[int] = []
        if strategy.alignment_parameters is not None:
            settings.setdefault("report_watermark", self.reported.append)
        self.operator: SourceOperator[Split] = SourceOperator(
            lambda context: self.reader, strategy, self.recorder, self.clock, interval_ms, **settings
        )
        self.operator.open()
        if splits:
            self.operator.add_splits([Split(split) for split in splits])
        self.operator.emit_next()
        self.reader.calls.clear()

    def poll(self, action: Action) -> None:
        """Let the reader do something in one poll."""
        self.reader.script.append(action)
        assert self.operator.emit_next() is InputStatus.MORE_AVAILABLE

    def collect(self, split: str | None, timestamp_ms: int | None, value: Any = "v") -> None:
        def action(output: ReaderOutput[Any]) -> None:
            out = output if split is None else output.create_output_for_split(split)
            out.collect(value, timestamp_ms)

        self.poll(action)

    def taken(self) -> list[tuple[Any, ...]]:
        return self.recorder.take()

    def watermarks(self) -> list[tuple[Any, ...]]:
        """Return what was emitted since the last call, but for records."""
        return [entry for entry in self.recorder.take() if entry[0] != "record"]
