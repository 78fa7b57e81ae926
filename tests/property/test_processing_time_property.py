"""The driven clock against a model that looks through a list of all timers ever registered."""

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from flinkcore.operators.timers.processing_time import DrivenProcessingTimeService, ScheduledTimer


@dataclass
class ModelTimer:
    """When it is due, in which order it was registered, how it repeats, and what its first run does."""

    number: int
    name: int
    due: int
    rate: int | None = None
    delay: int | None = None
    registers: int | None = None
    cancels: int | None = None
    pending: bool = True
    cancelled: bool = False


@dataclass
class Model:
    now: int = 0
    n_registered: int = 0
    timers: list[ModelTimer] = field(default_factory=list)
    runs: list[tuple[int, int]] = field(default_factory=list)

    def number(self) -> int:
        self.n_registered += 1
        return self.n_registered

    def register(self, due: int, **fields: int | None) -> None:
        self.timers.append(ModelTimer(self.number(), len(self.timers), due, **fields))  # type: ignore[arg-type]

    def cancel(self, name: int) -> bool:
        timer = self.timers[name]
        if timer.cancelled or not (timer.pending or timer.rate or timer.delay):
            return False
        timer.pending, timer.cancelled = False, True
        return True

    def advance_to(self, now: int) -> None:
        self.now = now
        while due := [timer for timer in self.timers if timer.pending and timer.due <= now]:
            timer = min(due, key=lambda timer: (timer.due, timer.number))
            time, registers, cancels = timer.due, timer.registers, timer.cancels
            timer.registers = timer.cancels = None
            if timer.rate is not None:
                timer.due, timer.number = time + timer.rate, self.number()
            else:
                timer.pending = False
            self.runs.append((timer.name, time))
            if registers is not None:
                self.register(registers)
            if cancels is not None and cancels < len(self.timers):
                self.cancel(cancels)
            if timer.delay is not None and not timer.cancelled:
                timer.pending, timer.due, timer.number = True, now + timer.delay, self.number()


TIMES = st.integers(-20, 60)
PERIODS = st.integers(1, 15)
NAMES = st.none() | st.integers(0, 12)


class ProcessingTimeMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = DrivenProcessingTimeService()
        self.model = Model()
        self.timers: list[ScheduledTimer] = []
        self.runs: list[tuple[int, int]] = []

    def register(
        self, due: int, registers: int | None, cancels: int | None, rate: int | None, delay: int | None
    ) -> None:
        name = len(self.timers)
        first = True

        def callback(timestamp: int) -> None:
            nonlocal first
            self.runs.append((name, timestamp))
            if first:
                first = False
                if registers is not None:
                    self.register(registers, None, None, None, None)
                if cancels is not None and cancels < len(self.timers):
                    self.timers[cancels].cancel()

        if rate is not None:
            timer = self.clock.schedule_at_fixed_rate(callback, due, rate)
        elif delay is not None:
            timer = self.clock.schedule_with_fixed_delay(callback, due, delay)
        else:
            timer = self.clock.register_timer(due, callback)
        self.timers.append(timer)

    @rule(due=TIMES, registers=st.none() | TIMES, cancels=NAMES)
    def one_shot(self, due: int, registers: int | None, cancels: int | None) -> None:
        self.model.register(due, registers=registers, cancels=cancels)
        self.register(due, registers, cancels, None, None)

    @rule(first=st.integers(0, 20), period=PERIODS, registers=st.none() | TIMES, cancels=NAMES)
    def fixed_rate(self, first: int, period: int, registers: int | None, cancels: int | None) -> None:
        self.model.register(self.model.now + first, rate=period, registers=registers, cancels=cancels)
        self.register(first, registers, cancels, period, None)

    @rule(first=st.integers(0, 20), delay=PERIODS, registers=st.none() | TIMES, cancels=NAMES)
    def fixed_delay(self, first: int, delay: int, registers: int | None, cancels: int | None) -> None:
        self.model.register(self.model.now + first, delay=delay, registers=registers, cancels=cancels)
        self.register(first, registers, cancels, None, delay)

    @precondition(lambda self: self.timers)
    @rule(choice=st.integers(0, 10**6))
    def cancel(self, choice: int) -> None:
        name = choice % len(self.timers)
        assert self.timers[name].cancel() == self.model.cancel(name)

    @rule(step=st.integers(-5, 40))
    def advance(self, step: int) -> None:
        self.clock.advance_to(self.model.now + step)
        self.model.advance_to(self.model.now + step)

    @invariant()
    def the_same_has_run_and_waits(self) -> None:
        assert self.runs == self.model.runs
        assert self.clock.pending_timers == sum(timer.pending for timer in self.model.timers)
        for timer, expected in zip(self.timers, self.model.timers, strict=True):
            assert timer.is_cancelled == expected.cancelled
            assert timer.is_done == (expected.cancelled or not expected.pending)


ProcessingTimeMachine.TestCase.settings = settings(deadline=None, max_examples=60, stateful_step_count=30)
TestProcessingTime = ProcessingTimeMachine.TestCase
