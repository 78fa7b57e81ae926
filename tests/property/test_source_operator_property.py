"""A source of several splits under SourceOperator emits, and is paused, as plain models say."""

from typing import Any

from equipment.example_counts import examples
from equipment.scripted_reader import OperatorUnderTest, Split
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from jobs.golden_generators import golden_strategy
from models.source_alignment import AlignedSourceModel
from models.source_outputs import SourceModel
from models.watermarks import generator_of

from flinkcore.common import Duration, Watermark
from flinkcore.datastream.connectors.base import ReaderOutput, SourceOutput

GENERATORS = [
    {"type": "bounded", "delay": 3},
    {"type": "ascending"},
    {"type": "punctuated"},
    {"type": "none"},
]
PARAMETERS = st.sampled_from(GENERATORS) | st.builds(
    lambda of, timeout: {"type": "idleness", "of": of, "timeout": timeout},
    st.sampled_from(GENERATORS),
    st.integers(1, 25),
)
SPLITS = ["a", "b", "c", "d"]
OUTPUTS = st.integers(0, 7)
TIMESTAMPS = st.integers(-5, 40) | st.none() | st.integers(-(2**63), 2**63 - 1)


class SourceMachine(RuleBasedStateMachine):
    @initialize(parameters=PARAMETERS, splits=st.lists(st.sampled_from(SPLITS), unique=True))
    def build(self, parameters: dict[str, Any], splits: list[str]) -> None:
        self.tested = OperatorUnderTest(golden_strategy(parameters, assigner=False), splits)
        self.model = SourceModel(lambda: generator_of(parameters), splits, 1000, 10)
        self.now_ms = 1000

    @rule(number=OUTPUTS, timestamp=TIMESTAMPS)
    def collect(self, number: int, timestamp: int | None) -> None:
        if not self.waits():
            output = self.output(number)
            self.tested.collect(output, timestamp)
            self.model.collect(output, timestamp)

    @rule(number=OUTPUTS, watermark=st.integers(-5, 40))
    def emit_watermark(self, number: int, watermark: int) -> None:
        if not self.waits():
            output = self.output(number)
            self.tested.poll(lambda out: self._of(out, output).emit_watermark(Watermark(watermark)))
            self.model.put(output, ("watermark", watermark))

    @rule(number=OUTPUTS, idle=st.booleans())
    def mark(self, number: int, idle: bool) -> None:
        if not self.waits():
            output = self.output(number)
            self.tested.poll(
                lambda out: self._of(out, output).mark_idle() if idle else self._of(out, output).mark_active()
            )
            self.model.put(output, ("status", "idle" if idle else "active"))

    @rule(split=st.sampled_from(SPLITS))
    def add_or_release(self, split: str) -> None:
        if split in self.model.splits:
            if self.waits():
                return
            self.tested.poll(lambda out: out.release_output_for_split(split))
            self.model.release(split)
        else:
            self.tested.operator.add_splits([Split(split)])
            self.model.add(split)

    @rule(ms=st.integers(0, 35))
    def advance(self, ms: int) -> None:
        self.now_ms += ms
        self.tested.clock.advance_to(self.now_ms)
        self.model.advance_to(self.now_ms)

    def output(self, number: int) -> str | None:
        """The main output for 0, else that of a split, if there is any."""
        splits = list(self.model.splits)
        return splits[number % len(splits)] if number and splits else None

    def waits(self) -> bool:
        return False

    @precondition(lambda self: hasattr(self, "model"))
    @invariant()
    def agree(self) -> None:
        assert self.tested.taken() == self.model.out
        self.model.out.clear()
        metrics = self.tested.operator.split_metrics
        for split, model in self.model.splits.items():
            assert (metrics[split].current_watermark, metrics[split].is_idle) == (model.watermark, model.idle)
        assert self.tested.operator.watermark_gauge.value == self.model.emitted

    @staticmethod
    def _of(output: ReaderOutput[Any], split: str | None) -> SourceOutput[Any]:
        return output if split is None else output.create_output_for_split(split)


class AlignedSourceMachine(SourceMachine):
    """The same on a source that is told how far to read; whole sources that wait are not polled."""

    model: AlignedSourceModel

    @initialize(
        parameters=PARAMETERS,
        splits=st.lists(st.sampled_from(SPLITS), unique=True, min_size=2),
        buffer_size=st.sampled_from([0, 0, 1, 2, 3]),
    )
    def build(  # type: ignore[override]
        self, parameters: dict[str, Any], splits: list[str], buffer_size: int
    ) -> None:
        strategy = golden_strategy(parameters, assigner=False).with_watermark_alignment(
            "group", Duration.of_millis(0), Duration.of_millis(30)
        )
        self.tested = OperatorUnderTest(strategy, splits, watermark_buffer_size=buffer_size)
        self.model = AlignedSourceModel(lambda: generator_of(parameters), splits, 1000, 10, 30, buffer_size)
        self.now_ms = 1000

    @rule(max_watermark=st.integers(-5, 40))
    def announce(self, max_watermark: int) -> None:
        self.tested.operator.update_max_desired_watermark(max_watermark)
        self.model.announce(max_watermark)

    def waits(self) -> bool:
        return self.model.waiting_since_ms is not None

    @precondition(lambda self: hasattr(self, "model"))
    @invariant()
    def agree_on_alignment(self) -> None:
        operator = self.tested.operator
        assert operator.is_waiting_for_alignment == self.waits()
        assert self.tested.reader.pauses() == self.model.pauses
        assert self.tested.reported == self.model.reported
        self.model.pauses.clear()


TestSourceOperator = SourceMachine.TestCase
TestSourceOperator.settings = settings(max_examples=examples(75), stateful_step_count=40, deadline=None)
TestAlignedSourceOperator = AlignedSourceMachine.TestCase
TestAlignedSourceOperator.settings = settings(
    max_examples=examples(100), stateful_step_count=50, deadline=None
)
