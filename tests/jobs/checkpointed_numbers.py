"""A source function with a state: numbers, of which each run emits those that the runs before have not."""

from typing import Any

from flinkcore.datastream import CheckpointedFunction, ParallelSourceFunction
from flinkcore.datastream.state import ListStateDescriptor


class CheckpointedNumbers(ParallelSourceFunction, CheckpointedFunction):
    """Emits numbers from 0 on, up to a number if there is one, each with itself as its timestamp.

    Pauses are of unequal length. Its state is the next number of each subtask.
    """

    def __init__(self, stop: int | None = None) -> None:
        self.stop = stop
        self.runs = True
        self.next = 0

    def initialize_state(self, context: Any) -> None:
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("next"))
        for number in self.state.get():
            self.next = number

    def snapshot_state(self, context: Any) -> None:
        self.state.update([self.next])

    def run(self, ctx: Any) -> None:
        while self.runs and (self.stop is None or self.next < self.stop):
            with ctx.get_checkpoint_lock():
                ctx.collect_with_timestamp(self.next, self.next)
                self.next += 1
            ctx.sleep(1 if self.next % 5 else 7)

    def cancel(self) -> None:
        self.runs = False
